/* SPDX-License-Identifier: MIT */
/* conn.c - the pool of clients, its limits from the URI, and the classification of errors. */
#include "core/base/lock.h"
#include "db.h"

#include <stdio.h>
#include <time.h>

/* Most clients, unless the URI says otherwise. */
#define POOL_MAX 32
/* While the server does not answer, one operation at a time tries it, with this pause in
 * between. All others fail at once, so a full queue fails as fast as a single call. */
#define DOWN_MS 250
#define BACK_OFF_MIN_MS 2
#define BACK_OFF_MAX_MS 200

/* Error codes of the server. */
enum {
    SERVER_DUPLICATE = 11000,
    SERVER_UNAUTHORIZED = 13,
    SERVER_AUTH_FAILED = 18,
    SERVER_TIME_LIMIT = 50,
    SERVER_TOO_LARGE = 10334,
    SERVER_NO_SPACE = 14031,
    SERVER_TOO_LARGE_LATER = 17419,
    SERVER_TOO_LARGE_UPDATE = 17420
};

/* NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables) */
static pthread_once_t driver_once = PTHREAD_ONCE_INIT;

static void driver_quiet(mongoc_log_level_t level, const char *domain, const char *message,
                         void *user)
{
    (void)level;
    (void)domain;
    (void)message;
    (void)user;
}

/* Once per process. The driver is never cleaned up: the module stays loaded until the process
 * ends, and another store may still be open. */
static void driver_start(void)
{
    mongoc_init();
    mongoc_log_set_handler(driver_quiet, NULL);
}

void sleep_ms(int64_t ms)
{
    struct timespec wait = {(time_t)(ms / 1000), (long)(ms % 1000) * 1000000};
    (void)nanosleep(&wait, NULL);
}

void back_off(unsigned tried)
{
    struct timespec now;
    int64_t most = BACK_OFF_MIN_MS;
    for (unsigned i = 0; i < tried && most < BACK_OFF_MAX_MS; i++) {
        most *= 2;
    }
    clock_gettime(CLOCK_MONOTONIC, &now);
    uint64_t mixed = ((uint64_t)now.tv_nsec ^ ((uint64_t)(uintptr_t)&now >> 4)) *
                     UINT64_C(0x9E3779B97F4A7C15);
    sleep_ms(1 + (int64_t)((mixed >> 33) % (uint64_t)most));
}

/* ---- opening ---- */

static void set_limit(mongoc_uri_t *uri, const char *option, int64_t ms)
{
    if (!mongoc_uri_has_option(uri, option)) {
        (void)mongoc_uri_set_option_as_int32(uri, option, (int32_t)(ms > 0 ? ms : 1));
    }
}

/* Reads go to the primary, as conditions are checked there. Writes are acknowledged once a
 * majority has them on disk, unless the URI says otherwise. */
static void set_concerns(mongoc_uri_t *uri)
{
    const mongoc_write_concern_t *present = mongoc_uri_get_write_concern(uri);
    if (present == NULL || mongoc_write_concern_is_default(present)) {
        mongoc_write_concern_t *concern = mongoc_write_concern_new();
        mongoc_write_concern_set_w(concern, MONGOC_WRITE_CONCERN_W_MAJORITY);
        mongoc_write_concern_set_journal(concern, true);
        mongoc_uri_set_write_concern(uri, concern);
        mongoc_write_concern_destroy(concern);
    }
    mongoc_read_prefs_t *primary = mongoc_read_prefs_new(MONGOC_READ_PRIMARY);
    mongoc_uri_set_read_prefs_t(uri, primary);
    mongoc_read_prefs_destroy(primary);
}

static void set_where(struct mongo *db, const mongoc_uri_t *uri)
{
    size_t at = 0;
    for (const mongoc_host_list_t *host = mongoc_uri_get_hosts(uri);
         host != NULL && at + 1 < sizeof(db->where); host = host->next) {
        int len = snprintf(db->where + at, sizeof(db->where) - at, "%s%s", at > 0 ? "," : "",
                           host->host_and_port);
        if (len > 0) {
            at += (size_t)len;
        }
    }
    if (at == 0) {
        const char *service = mongoc_uri_get_srv_hostname(uri);
        (void)snprintf(db->where, sizeof(db->where), "%s", service != NULL ? service : "?");
    }
}

static int read_conf(struct mongo *db, struct ng_call *call, const struct ng_conf *conf,
                     mongoc_uri_t **ret_uri)
{
    struct ng_str uri = call->host->conf_text(conf, "uri");
    struct ng_str name = call->host->conf_text(conf, "database");
    bson_error_t error;
    db->timeout_ms = call->host->conf_int(conf, "timeout");
    db->tombstones_ms = call->host->conf_int(conf, "tombstones");
    if (uri.data == NULL || uri.len == 0) {
        return ng_fail(call, NG_EINVAL,
                       "mongo.uri is not set: give the server's address, for example "
                       "mongodb://127.0.0.1:27017, in the configuration or in MONGODB_URL");
    }
    char *copy = str_dup(uri);
    db->database = str_dup(name);
    if (copy != NULL) {
        *ret_uri = mongoc_uri_new_with_error(copy, &error);
    } else {
        *ret_uri = NULL;
    }
    free(copy);
    if (db->database == NULL) {
        return ng_fail(call, NG_EINTERNAL, "no memory for the connection to MongoDB");
    }
    if (*ret_uri == NULL) {
        /* The driver's own message may contain part of the password. */
        return ng_fail(call, NG_EINVAL,
                       "mongo.uri is not a MongoDB address: it must look like "
                       "mongodb://[user:password@]host[:port]/[?options], with special "
                       "characters of user and password percent-encoded");
    }
    return NG_OK;
}

int conn_open(struct mongo *db, struct ng_call *call, const struct ng_conf *conf)
{
    mongoc_uri_t *uri = NULL;
    bson_error_t error;
    (void)pthread_once(&driver_once, driver_start);
    int rc = read_conf(db, call, conf, &uri);
    if (rc != NG_OK) {
        return rc;
    }
    set_limit(uri, MONGOC_URI_SERVERSELECTIONTIMEOUTMS, db->timeout_ms / 2);
    set_limit(uri, MONGOC_URI_CONNECTTIMEOUTMS, db->timeout_ms / 2);
    set_limit(uri, MONGOC_URI_SOCKETTIMEOUTMS, db->timeout_ms);
    set_limit(uri, MONGOC_URI_WAITQUEUETIMEOUTMS, db->timeout_ms);
    set_limit(uri, MONGOC_URI_MAXPOOLSIZE, POOL_MAX);
    if (!mongoc_uri_has_option(uri, MONGOC_URI_APPNAME)) {
        (void)mongoc_uri_set_appname(uri, "notegate");
    }
    set_concerns(uri);
    set_where(db, uri);
    db->pool = mongoc_client_pool_new_with_error(uri, &error);
    mongoc_uri_destroy(uri);
    if (db->pool == NULL) {
        return ng_fail(call, NG_EUNAVAILABLE,
                       "the connection to MongoDB at %s cannot be made: %s", db->where,
                       error.message);
    }
    (void)mongoc_client_pool_set_error_api(db->pool, MONGOC_ERROR_API_VERSION_2);
    return NG_OK;
}

void conn_close(struct mongo *db)
{
    if (db->pool != NULL) {
        mongoc_client_pool_destroy(db->pool);
    }
    free(db->database);
}

/* Whether an operation may use the server: always, but only one at a time while it is down. */
static bool may_try(struct mongo *db)
{
    int_fast64_t until = atomic_load(&db->down_until_ms);
    int64_t now = monotonic_ms();
    return until == 0 ||
           (now >= until &&
            atomic_compare_exchange_strong(&db->down_until_ms, &until, now + db->timeout_ms));
}

void conn_good(struct mongo *db)
{
    atomic_store(&db->good_ms, monotonic_ms());
    if (atomic_load(&db->down_until_ms) != 0) {
        atomic_store(&db->down_until_ms, 0);
    }
}

static void conn_down(struct mongo *db, const struct fault *fault)
{
    lock_take(&db->down_lock);
    (void)snprintf(db->down_text, sizeof(db->down_text), "%s", fault->text);
    lock_release(&db->down_lock);
    atomic_store(&db->down_until_ms, monotonic_ms() + DOWN_MS);
}

mongoc_client_t *conn_acquire(struct mongo *db, struct fault *fault)
{
    memset(fault, 0, sizeof(*fault));
    if (!may_try(db)) {
        fault->rc = NG_EUNAVAILABLE;
        lock_take(&db->down_lock);
        (void)snprintf(fault->text, sizeof(fault->text), "%s", db->down_text);
        lock_release(&db->down_lock);
        return NULL;
    }
    mongoc_client_t *client = mongoc_client_pool_pop(db->pool);
    if (client == NULL) {
        fault->rc = NG_EUNAVAILABLE;
        (void)snprintf(fault->text, sizeof(fault->text),
                       "all connections to MongoDB at %s are in use; try again, or raise "
                       "maxPoolSize in mongo.uri",
                       db->where);
    }
    return client;
}

void conn_release(struct mongo *db, mongoc_client_t *client)
{
    if (client != NULL) {
        mongoc_client_pool_push(db->pool, client);
    }
}

/* ---- errors ---- */

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
        if (monotonic_ms() - atomic_load(&db->good_ms) > db->timeout_ms / 2) {
            conn_down(db, fault);
        }
    } else if (fault->answered) {
        conn_good(db);
    }
}

int fault_fail(struct ng_call *call, const struct fault *fault, const char *doing)
{
    return ng_fail(call, fault->rc != NG_OK ? fault->rc : NG_EINTERNAL, "%s failed: %s", doing,
                   fault->text);
}
