/* SPDX-License-Identifier: MIT */
/*
 * session.c - transactions and snapshots of the server.
 *
 * A transaction that the server marks as transient is run again as a whole. A commit with an
 * unknown result is sent again: the server knows the transaction and answers what became of it.
 */
#include "server.h"

#include <stdio.h>

static mongoc_session_opt_t *session_opts(enum session_kind kind)
{
    mongoc_session_opt_t *opts = mongoc_session_opts_new();
    if (kind == SESSION_SNAPSHOT) {
        /* Its commands name their moment themselves. */
        mongoc_session_opts_set_causal_consistency(opts, false);
        return opts;
    }
    mongoc_transaction_opt_t *txn = mongoc_transaction_opts_new();
    mongoc_read_concern_t *read = mongoc_read_concern_new();
    mongoc_write_concern_t *write = mongoc_write_concern_new();
    (void)mongoc_read_concern_set_level(read, MONGOC_READ_CONCERN_LEVEL_SNAPSHOT);
    mongoc_write_concern_set_w(write, MONGOC_WRITE_CONCERN_W_MAJORITY);
    mongoc_write_concern_set_journal(write, true);
    mongoc_transaction_opts_set_read_concern(txn, read);
    mongoc_transaction_opts_set_write_concern(txn, write);
    mongoc_session_opts_set_default_transaction_opts(opts, txn);
    mongoc_write_concern_destroy(write);
    mongoc_read_concern_destroy(read);
    mongoc_transaction_opts_destroy(txn);
    return opts;
}

bool session_begin(struct mongo *db, enum session_kind kind, struct session *ret,
                   struct fault *fault)
{
    bson_error_t error;
    memset(ret, 0, sizeof(*ret));
    ret->db = db;
    ret->kind = kind;
    ret->client = conn_acquire(db, fault);
    if (ret->client == NULL) {
        return false;
    }
    if (restore_refuses(db, fault)) {
        session_end(ret);
        return false;
    }
    mongoc_session_opt_t *opts = session_opts(kind);
    ret->session = mongoc_client_start_session(ret->client, opts, &error);
    mongoc_session_opts_destroy(opts);
    bool good = ret->session != NULL;
    if (good && kind == SESSION_TXN) {
        if (!presence_note(ret, fault)) {
            session_end(ret);
            return false;
        }
        good = mongoc_client_session_start_transaction(ret->session, NULL, &error);
    }
    if (!good) {
        fault_set(db, fault, &error, NULL);
        session_end(ret);
    }
    return good;
}

void session_end(struct session *session)
{
    if (session->session != NULL) {
        if (mongoc_client_session_in_transaction(session->session)) {
            (void)mongoc_client_session_abort_transaction(session->session, NULL);
        }
        /* The driver does not say whether an abort arrived. */
        if (session->kind == SESSION_TXN &&
            (mongoc_client_session_get_dirty(session->session) || conn_is_down(session->db))) {
            presence_lost(session);
        }
        mongoc_client_session_destroy(session->session);
    }
    conn_release(session->db, session->client);
    session->session = NULL;
    session->client = NULL;
}

int fault_unknown(struct mongo *db, struct fault *fault)
{
    fault->rc = NG_ETIMEOUT;
    fault->transient = false;
    (void)snprintf(fault->text, sizeof(fault->text),
                   "MongoDB at %s did not confirm the change in time; it may have been made: "
                   "read it again, or repeat the call with its idempotency key",
                   db->where);
    return fault->rc;
}

/* Sends the commit again while its result is unknown. Once it was, only the server's word that
 * the transaction is gone says that nothing was made; a server that has lost its memory of the
 * transaction says so, too. */
static bool commit(struct session *session, int64_t until_ms, bool *inout_maybe,
                   struct fault *fault)
{
    struct mongo *db = session->db;
    bool maybe = false;
    for (unsigned tried = 0;; tried++) {
        bson_error_t error;
        bson_t reply;
        if (mongoc_client_session_commit_transaction(session->session, &reply, &error)) {
            conn_good(db);
            bson_destroy(&reply);
            return true;
        }
        fault_set(db, fault, &error, &reply);
        bool unknown = mongoc_error_has_label(&reply, "UnknownTransactionCommitResult") ||
                       fault->outcome_unknown;
        bson_destroy(&reply);
        maybe = maybe || unknown;
        *inout_maybe = *inout_maybe || maybe;
        if (!unknown && (!maybe || fault->transient)) {
            return false;
        }
        if (!unknown || monotonic_ms() >= until_ms) {
            (void)fault_unknown(db, fault);
            return false;
        }
        db->shed(db);
        back_off(tried);
    }
}

/* The last attempt ended so; an earlier one may have been committed, which only a conflict
 * would have shown. */
static int txn_end(struct mongo *db, int rc, bool maybe, struct fault *fault)
{
    if (maybe && rc != NG_OK && rc != NG_ECONFLICT && rc != NG_EKEYREUSED) {
        return fault_unknown(db, fault);
    }
    return rc;
}

int txn_run(struct mongo *db, txn_fn *step, void *user, int64_t until_ms, struct fault *fault)
{
    bool maybe = false;
    bool repeats = false;
    for (unsigned tried = 0;; tried++) {
        struct session session;
        int rc = NG_OK;
        bool again = false;
        if (session_begin(db, SESSION_TXN, &session, fault)) {
            session.repeats = repeats;
            rc = step(&session, user, fault);
            if (rc == NG_OK && !commit(&session, until_ms, &maybe, fault)) {
                rc = fault->rc;
                repeats = true; /* the driver may have sent it twice itself */
            }
            session_end(&session);
            again = rc == NG_PENDING || (rc != NG_OK && fault->transient);
        } else {
            /* In an election no session may begin for a while. */
            rc = fault->rc;
            again = rc == NG_EUNAVAILABLE && (tried > 0 || fault->outcome_unknown);
        }
        if (!again) {
            return txn_end(db, rc, maybe, fault);
        }
        if (monotonic_ms() >= until_ms) {
            if (fault->code == SERVER_WRITE_CONFLICT) {
                (void)fault_refuse(
                    fault, NG_EBUSY,
                    "other changes of the same documents do not end; try again in a "
                    "moment");
            }
            return txn_end(db, fault->rc, maybe, fault);
        }
        atomic_fetch_add(&db->stat_retries, 1);
        db->shed(db);
        back_off(tried);
    }
}
