/* SPDX-License-Identifier: MIT */
/* intent_end.c - completes or aborts a change of several documents, from any gateway: see
 * intent.c. */
#include "intent.h"

/* An open intent is aborted this long after it was first seen. */
#define OPEN_MS 5000
#define SWEEP_MAX 50

struct put_list {
    bson_t *list[NG_CHANGES_MAX * 4];
    size_t count;
};

static int keep_put(void *user, const bson_t *doc)
{
    struct put_list *puts = user;
    puts->list[puts->count++] = bson_copy(doc);
    return puts->count == NG_COUNT(puts->list);
}

static bool load_puts(struct mongo *db, const char *batch, struct put_list *ret,
                      struct fault *fault)
{
    bson_t filter = BSON_INITIALIZER;
    ret->count = 0;
    BSON_APPEND_UTF8(&filter, "intent", batch);
    bool good = op_find(db, OWN_INTENT_PUTS, &filter, NULL, keep_put, ret, fault);
    bson_destroy(&filter);
    return good;
}

static void puts_done(struct put_list *puts)
{
    for (size_t i = 0; i < puts->count; i++) {
        bson_destroy(puts->list[i]);
    }
}

static void lock_filter(const bson_t *put, const char *batch, bson_t *ret)
{
    bson_init(ret);
    put_str(ret, "_id", member_str(put, "document"));
    BSON_APPEND_UTF8(ret, "notegate.intent", batch);
}

static bool collection_of(const bson_t *put, char ret[NG_COLLECTION_MAX + 1])
{
    struct ng_str name = member_str(put, "collection");
    if (name.len > NG_COLLECTION_MAX) {
        return false;
    }
    memcpy(ret, name.data, name.len);
    ret[name.len] = '\0';
    return true;
}

/* Removes one lock without a change; a placeholder is deleted. */
static bool unlock(struct mongo *db, const bson_t *put, const char *batch, struct fault *fault)
{
    char collection[NG_COLLECTION_MAX + 1];
    bson_t filter, update;
    int64_t matched = 0;
    if (!collection_of(put, collection)) {
        return true;
    }
    lock_filter(put, batch, &filter);
    BSON_APPEND_UTF8(&filter, "notegate.place_of", batch);
    bool good = op_delete(db, collection, &filter, false, NULL, fault);
    bson_destroy(&filter);
    if (!good) {
        return false;
    }
    lock_filter(put, batch, &filter);
    bson_init(&update);
    nest_text(&update, "$unset", "notegate.intent", "");
    good = op_update(db, collection, &filter, &update, &matched, fault);
    bson_destroy(&filter);
    bson_destroy(&update);
    return good;
}

/* Conditional on the lock, so the change is made only once. */
static bool apply(struct mongo *db, const bson_t *put, const char *batch, struct fault *fault)
{
    char collection[NG_COLLECTION_MAX + 1];
    bson_t filter, update;
    int64_t matched = 0;
    struct ng_str change = member_str(put, "change");
    if (change.data == NULL || !collection_of(put, collection)) {
        return unlock(db, put, batch, fault);
    }
    if (!bson_init_static(&update, (const uint8_t *)change.data, change.len)) {
        return true;
    }
    lock_filter(put, batch, &filter);
    bool good = op_update(db, collection, &filter, &update, &matched, fault);
    bson_destroy(&filter);
    return good;
}

/* The intent is deleted last, so that leftover puts can be found by it after a crash. */
static bool forget(struct mongo *db, const char *batch, struct fault *fault)
{
    bson_t filter = BSON_INITIALIZER;
    bson_t puts = BSON_INITIALIZER;
    BSON_APPEND_UTF8(&filter, "_id", batch);
    BSON_APPEND_UTF8(&puts, "intent", batch);
    bool good = op_delete(db, OWN_INTENT_PUTS, &puts, true, NULL, fault) &&
                op_delete(db, OWN_INTENTS, &filter, false, NULL, fault);
    bson_destroy(&filter);
    bson_destroy(&puts);
    return good;
}

bool intent_apply(struct mongo *db, const char *batch, bool done, struct fault *fault)
{
    struct put_list *puts = calloc(1, sizeof(*puts));
    if (puts == NULL) {
        (void)intent_fail(fault, NG_EINTERNAL,
                          "no memory to end a change of several documents");
        return false;
    }
    bool good = load_puts(db, batch, puts, fault);
    for (size_t i = 0; i < puts->count && good; i++) {
        if (done) {
            good = apply(db, puts->list[i], batch, fault);
        } else {
            good = unlock(db, puts->list[i], batch, fault);
        }
    }
    puts_done(puts);
    free(puts);
    return good && forget(db, batch, fault);
}

bool intent_decide(struct mongo *db, const char *batch, const char *state, bool *ret_moved,
                   struct fault *fault)
{
    bson_t filter = BSON_INITIALIZER;
    bson_t update = BSON_INITIALIZER;
    int64_t matched = 0;
    BSON_APPEND_UTF8(&filter, "_id", batch);
    BSON_APPEND_UTF8(&filter, "state", "open");
    nest_text(&update, "$set", "state", state);
    bool good = op_update(db, OWN_INTENTS, &filter, &update, &matched, fault);
    bson_destroy(&filter);
    bson_destroy(&update);
    *ret_moved = good && matched > 0;
    return good;
}

bson_t *intent_find(struct mongo *db, const char *batch, struct fault *fault)
{
    bson_t filter = BSON_INITIALIZER;
    BSON_APPEND_UTF8(&filter, "_id", batch);
    bson_t *intent = op_find_one(db, OWN_INTENTS, &filter, NULL, fault);
    bson_destroy(&filter);
    return intent;
}

/* Ends an intent if this gateway may do so. true: it has ended. */
static bool resolve(struct mongo *db, const char *batch, bool only_done, struct fault *fault)
{
    bson_t *intent = intent_find(db, batch, fault);
    if (intent == NULL) {
        return false;
    }
    struct ng_str state = member_str(intent, "state");
    bool done = str_equal(state, ng_str_of("done"));
    bool open = str_equal(state, ng_str_of("open"));
    bool old = staleness_exceeds(&db->staleness, ng_str_of(batch), OPEN_MS + db->timeout_ms);
    bson_destroy(intent);
    if (done) {
        return intent_apply(db, batch, true, fault);
    }
    if (only_done || (open && !old)) {
        return false;
    }
    bool moved = false;
    if (open && (!intent_decide(db, batch, "aborted", &moved, fault) || !moved)) {
        return fault->rc == NG_OK && resolve(db, batch, true, fault);
    }
    return intent_apply(db, batch, false, fault);
}

static bool batch_of(const bson_t *doc, char ret[BATCH_ID_MAX])
{
    struct ng_str batch = member_str(doc, "notegate.intent");
    if (batch.data == NULL || batch.len >= BATCH_ID_MAX) {
        return false;
    }
    memcpy(ret, batch.data, batch.len);
    ret[batch.len] = '\0';
    return true;
}

bool intent_finish(struct mongo *db, const bson_t *doc, struct fault *fault)
{
    char batch[BATCH_ID_MAX];
    return batch_of(doc, batch) && resolve(db, batch, true, fault);
}

bool intent_help(struct mongo *db, const bson_t *doc, const char *collection,
                 struct fault *fault)
{
    char batch[BATCH_ID_MAX];
    memset(fault, 0, sizeof(*fault));
    if (!batch_of(doc, batch)) {
        return false;
    }
    bool ended = resolve(db, batch, false, fault);
    if (ended || fault->rc != NG_OK) {
        return ended;
    }
    bson_t *intent = intent_find(db, batch, fault);
    if (intent != NULL) {
        bson_destroy(intent);
        return false;
    }
    if (fault->rc != NG_OK) {
        return false;
    }
    /* The lock of an ended intent: it was set too late, and its gateway can no longer
     * commit. */
    bson_t put = BSON_INITIALIZER;
    BSON_APPEND_UTF8(&put, "collection", collection);
    put_str(&put, "document", member_str(doc, "_id"));
    bool good = unlock(db, &put, batch, fault);
    bson_destroy(&put);
    return good;
}

struct sweep {
    char list[SWEEP_MAX][BATCH_ID_MAX];
    size_t count;
};

static int keep_old(void *user, const bson_t *intent)
{
    struct sweep *sweep = user;
    struct ng_str batch = member_str(intent, "_id");
    if (batch.data != NULL && batch.len < BATCH_ID_MAX) {
        memcpy(sweep->list[sweep->count], batch.data, batch.len);
        sweep->list[sweep->count++][batch.len] = '\0';
    }
    return sweep->count == SWEEP_MAX;
}

void intent_sweep(struct mongo *db)
{
    struct fault fault;
    struct sweep sweep = {.count = 0};
    bson_t filter = BSON_INITIALIZER;
    nest_bool(&filter, "started", "$exists", true);
    (void)op_find(db, OWN_INTENTS, &filter, NULL, keep_old, &sweep, &fault);
    bson_destroy(&filter);
    for (size_t i = 0; i < sweep.count; i++) {
        if (staleness_exceeds(&db->staleness, ng_str_of(sweep.list[i]),
                              OPEN_MS + db->timeout_ms)) {
            (void)resolve(db, sweep.list[i], false, &fault);
        }
    }
}
