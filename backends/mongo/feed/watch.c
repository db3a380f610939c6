/* SPDX-License-Identifier: MIT */
/*
 * watch.c - a change stream over the events and the lease: it tells the core of commits by
 * other gateways, and the relay of work and of a lease that is free. Both poll while there is
 * none.
 */
#include "relay.h"

#include <stdio.h>

#define AWAIT_MS 500
/* Pause before a broken stream is opened again. */
#define REOPEN_MS 1000
/* The server has no such streams: asked again after this time, as it may have been replaced. */
#define ABSENT_MS 60000

void watch_tell(struct mongo *db, const char *notice)
{
    struct watch *watch = db->watch;
    lock_take(&watch->lock);
    if (watch->changed != NULL) {
        watch->changed(watch->user, atomic_load(&watch->live), notice);
    } else if (notice != NULL) {
        (void)bytes_add(&watch->notices, notice, strlen(notice) + 1);
    }
    lock_release(&watch->lock);
}

static void set_live(struct mongo *db, bool live, const char *notice)
{
    bool was = atomic_exchange(&db->watch->live, live);
    if (was != live || notice != NULL) {
        watch_tell(db, notice);
        relay_poll(db);
    }
}

static mongoc_change_stream_t *stream_open(struct mongo *db, mongoc_client_t *client,
                                           const bson_t *token)
{
    /* Not the heartbeats beside the lease, nor the removal of old events; and not the events
     * themselves, which are read by their numbers. */
    bson_t *pipeline = bson_of("pipeline:[{$match:{operationType:{$in:[t,t]}, "
                               "$or:[{ns.coll:t}, {ns.coll:t, documentKey._id:t}]}}, "
                               "{$project:{ns:1, documentKey:1, fullDocument.quiet:1, "
                               "updateDescription.updatedFields:1}}]",
                               "insert", "update", OWN_EVENTS, OWN_META, "relay");
    bson_t *opts = bson_of("maxAwaitTimeMS:l", i64_min(AWAIT_MS, db->timeout_ms / 2));
    if (token != NULL) {
        BSON_APPEND_DOCUMENT(opts, "resumeAfter", token);
    }
    mongoc_database_t *database = mongoc_client_get_database(client, db->database);
    mongoc_change_stream_t *stream = mongoc_database_watch(database, pipeline, opts);
    mongoc_database_destroy(database);
    bson_destroy(pipeline);
    bson_destroy(opts);
    return stream;
}

/* An event has a number, the lease or its kicks concern the relay. A quiet event is in no feed:
 * it wakes none. */
static void take_change(struct mongo *db, const bson_t *change)
{
    if (str_equal(member_str(change, "ns.coll"), ng_str_of(OWN_META))) {
        bson_iter_t iter;
        bool kick = member(change, "updateDescription.updatedFields.kicks", &iter) &&
                    !member(change, "updateDescription.updatedFields.owner", &iter);
        if (!kick || relay_is_owner(db)) {
            relay_poll(db);
        }
        return;
    }
    last_seq_saw(db, member_u64(change, "documentKey._id"));
    if (!member_bool(change, "fullDocument.quiet")) {
        watch_tell(db, NULL);
    }
}

static void token_keep(struct watch *watch, mongoc_change_stream_t *stream)
{
    const bson_t *token = mongoc_change_stream_get_resume_token(stream);
    if (token != NULL) {
        bson_destroy(watch->token);
        watch->token = bson_copy(token);
    }
}

/* The server's answer to a stream that it does not have in any state. */
static bool is_absent(uint32_t code)
{
    static const uint32_t codes[] = {SERVER_ILLEGAL_OPERATION, SERVER_COMMAND_UNKNOWN,
                                     SERVER_NOT_SUPPORTED,     SERVER_NOT_IMPLEMENTED,
                                     SERVER_STAGE_UNKNOWN,     SERVER_NO_STREAMS};
    for (size_t i = 0; i < NG_COUNT(codes); i++) {
        if (code == codes[i]) {
            return true;
        }
    }
    return false;
}

/* How long to wait before the stream is opened again. */
static int64_t stream_failed(struct mongo *db, const bson_error_t *error)
{
    struct watch *watch = db->watch;
    bool lost = error->code == SERVER_HISTORY_LOST || error->code == SERVER_NO_RESUME_TOKEN ||
                error->code == SERVER_STREAM_FATAL;
    bool absent = is_absent(error->code);
    bool at_once = lost && watch->token != NULL;
    const char *text = NULL;
    char notice[2 * DB_ERROR_MAX];
    if (lost) {
        (void)snprintf(notice, sizeof(notice),
                       "the change stream of MongoDB at %s cannot be resumed (%s); the changes "
                       "it missed are read by their numbers",
                       db->where, error->message);
        bson_destroy(watch->token);
        watch->token = NULL;
        text = notice;
    } else if (absent && !watch->absent_told) {
        (void)snprintf(
            notice, sizeof(notice),
            "MongoDB at %s has no change streams (%s); the changes of other gateways "
            "are polled",
            db->where, error->message);
        watch->absent_told = true;
        text = notice;
    }
    set_live(db, false, text);
    if (at_once) {
        return 0;
    }
    if (absent) {
        return ABSENT_MS;
    }
    return REOPEN_MS;
}

/* A server that was away at start may turn out to be one that is refused. */
static void not_connected(struct mongo *db, const struct fault *fault)
{
    struct watch *watch = db->watch;
    const char *notice = NULL;
    if (fault->code == FAULT_UNFIT && !watch->refusal_told) {
        watch->refusal_told = true;
        notice = fault->text;
    }
    set_live(db, false, notice);
}

/* Reads the stream until it breaks. Returns the pause before the next one. */
static int64_t stream_run(struct mongo *db)
{
    struct watch *watch = db->watch;
    struct fault fault;
    const bson_t *change = NULL;
    const bson_t *reply = NULL;
    bson_error_t error = {0};
    mongoc_client_t *client = conn_acquire(db, &fault);
    if (client == NULL) {
        not_connected(db, &fault);
        return REOPEN_MS;
    }
    mongoc_change_stream_t *stream = stream_open(db, client, watch->token);
    bool broken = false;
    bool answered = false;
    while (!broken && !atomic_load(&db->closing)) {
        if (mongoc_change_stream_next(stream, &change)) {
            take_change(db, change);
        } else {
            broken = mongoc_change_stream_error_document(stream, &error, &reply);
        }
        if (!broken) {
            token_keep(watch, stream);
            set_live(db, true, NULL);
        }
        if (!broken && !answered) {
            conn_good(db); /* it may have been the only one to try the server */
            answered = true;
        }
    }
    int64_t pause = 0;
    if (broken) {
        fault_set(db, &fault, &error, reply);
        pause = stream_failed(db, &error);
    }
    mongoc_change_stream_destroy(stream);
    conn_release(db, client);
    return pause;
}

void *watch_main(void *user)
{
    (void)pthread_setname_np(pthread_self(), "ng-watch");
    struct mongo *db = user;
    while (!atomic_load(&db->closing)) {
        (void)pause_unless(&db->closing, stream_run(db));
    }
    return NULL;
}

void watch_set(void *self, ng_watch_fn *changed, void *user)
{
    struct mongo *db = self;
    lock_take(&db->watch->lock);
    db->watch->changed = changed;
    db->watch->user = user;
    if (changed != NULL) {
        struct bytes *notices = &db->watch->notices;
        changed(user, atomic_load(&db->watch->live), NULL);
        for (size_t at = 0; at < notices->len; at += strlen(notices->data + at) + 1) {
            changed(user, atomic_load(&db->watch->live), notices->data + at);
        }
        bytes_done(notices);
    }
    lock_release(&db->watch->lock);
}
