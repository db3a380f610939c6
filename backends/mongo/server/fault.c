/* SPDX-License-Identifier: MIT */
/* fault.c - classifies the errors of the driver and the server. */
#include "server.h"

#include <stdio.h>

static bool is_network(const bson_error_t *error)
{
    return error->domain == MONGOC_ERROR_STREAM ||
           (error->domain == MONGOC_ERROR_CLIENT && error->code == MONGOC_ERROR_STREAM_SOCKET);
}

static bool says_no_space(const bson_error_t *error)
{
    return error->code == SERVER_NO_SPACE || strstr(error->message, "No space left") != NULL ||
           strstr(error->message, "no space left") != NULL ||
           strstr(error->message, "OutOfDiskSpace") != NULL;
}

static bool says_no_login(const bson_error_t *error)
{
    return (error->domain == MONGOC_ERROR_CLIENT &&
            error->code == MONGOC_ERROR_CLIENT_AUTHENTICATE) ||
           (error->domain == MONGOC_ERROR_SERVER &&
            (error->code == SERVER_UNAUTHORIZED || error->code == SERVER_AUTH_FAILED)) ||
           strstr(error->message, "uthentication failed") != NULL;
}

static bool says_too_large(const bson_error_t *error)
{
    return error->code == SERVER_TOO_LARGE || error->code == SERVER_TOO_LARGE_LATER ||
           error->code == SERVER_TOO_LARGE_UPDATE ||
           (error->domain == MONGOC_ERROR_BSON && strstr(error->message, "too large") != NULL);
}

/* The write concern was not met in time: the change was made, but may still be rolled back. */
static bool concern_failed(const bson_t *reply)
{
    bson_iter_t iter;
    return reply != NULL && (bson_iter_init_find(&iter, reply, "writeConcernErrors") ||
                             bson_iter_init_find(&iter, reply, "writeConcernError"));
}

/* The driver sends a change twice. Before 1.24 it reports the second answer, whatever the first
 * attempt has made; from then on the first, if the second has made nothing. */
static bool says_none_made(const bson_t *reply)
{
    return mongoc_check_version(1, 24, 0) && !concern_failed(reply) && reply != NULL &&
           mongoc_error_has_label(reply, "NoWritesPerformed");
}

void fault_set(struct mongo *db, struct fault *fault, const bson_error_t *error,
               const bson_t *reply)
{
    memset(fault, 0, sizeof(*fault));
    fault->code = error->code;
    fault->answered = error->domain == MONGOC_ERROR_SERVER;
    fault->rc = NG_EUNAVAILABLE;
    const char *form = "MongoDB at %s failed: %s";
    if (error->code == SERVER_DUPLICATE || strstr(error->message, "E11000") != NULL) {
        fault->duplicate = true;
        fault->rc = NG_ECONFLICT;
    } else if (says_no_login(error)) {
        form = "MongoDB at %s refused the credentials of mongo.uri: %s";
    } else if (says_no_space(error)) {
        fault->rc = NG_EFULL;
        form = "MongoDB at %s has no room left: make room on its disk (%s)";
    } else if (says_too_large(error)) {
        fault->rc = NG_ETOOLARGE;
        form = "MongoDB at %s refuses a document over its limit of 16 MiB: %s";
    } else if (is_network(error) ||
               (reply != NULL && mongoc_error_has_label(reply, "RetryableWriteError"))) {
        fault->outcome_unknown = true;
        form = "MongoDB at %s does not answer: %s; check that the server runs";
    } else if (error->domain == MONGOC_ERROR_SERVER_SELECTION) {
        form = "MongoDB at %s does not answer: %s; check that the server runs";
    } else if (error->domain == MONGOC_ERROR_SERVER && error->code == SERVER_TIME_LIMIT) {
        fault->rc = NG_ETIMEOUT;
        form = "MongoDB at %s took longer than its time limit: %s";
    }
    if (concern_failed(reply)) {
        fault->outcome_unknown = true;
    }
    fault->none_made = fault->outcome_unknown && says_none_made(reply);
    fault->transient =
        reply != NULL && mongoc_error_has_label(reply, "TransientTransactionError");
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    (void)snprintf(fault->text, sizeof(fault->text), form, db->where, error->message);
#pragma GCC diagnostic pop
    if (error->domain == MONGOC_ERROR_SERVER_SELECTION ||
        (error->domain == MONGOC_ERROR_CLIENT &&
         error->code == MONGOC_ERROR_CLIENT_AUTHENTICATE)) {
        conn_down(db, fault);
    } else if (is_network(error)) {
        /* One slow operation does not mean the server is down if others are answered. */
        if (monotonic_ms() - atomic_load(&db->good_ms) > db->timeout_ms / 2 ||
            atomic_load(&db->down_until_ms) != 0) {
            conn_down(db, fault);
        }
    } else if (fault->answered) {
        conn_good(db);
    }
}

int fault_fail(struct ng_call *call, const struct fault *fault, const char *doing)
{
    int rc = NG_EINTERNAL;
    if (fault->rc != NG_OK) {
        rc = fault->rc;
    }
    return ng_fail(call, rc, "%s failed: %s", doing, fault->text);
}

int fault_end(struct ng_call *call, int rc, const struct fault *fault, const char *doing)
{
    if (rc == NG_OK) {
        return rc;
    }
    return fault_fail(call, fault, doing);
}

int fault_refuse(struct fault *fault, int rc, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    (void)vsnprintf(fault->text, sizeof(fault->text), format, args);
    va_end(args);
    fault->rc = rc;
    fault->transient = false;
    return rc;
}

int fault_conflict(struct fault *fault)
{
    return fault_refuse(fault, NG_ECONFLICT,
                        "the document was changed in the meantime; read it again and retry");
}
