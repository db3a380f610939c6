/* SPDX-License-Identifier: MIT */
/*
 * indexes.c - makes the indexes of all collections on a thread of its own. A collection that
 * does not exist yet gets them before its first document, as that costs nothing; building them
 * on one that has documents may take long, and no write waits for it.
 */
#include "indexes.h"

#include <stdio.h>

/* Fields with an index, of one collection. */
#define FIELDS_MAX 48
#define FIELD_NAME_MAX 128
/* Pause after a refused or failed attempt, doubled up to the last. */
#define RETRY_FIRST_MS 1000
#define RETRY_LAST_MS 300000
/* Pause between two looks at the attempt of another thread. */
#define BUSY_MS 50

struct indexes {
    pthread_t thread;
    bool started;
    struct index_state own; /* of our own collections */
};

static bool ask(struct mongo *db, const char *collection, const bson_t *list,
                struct fault *fault)
{
    return op_command(db, NULL, db->database,
                      bson_of("createIndexes:t, indexes:A", collection, list), NULL, fault);
}

/* A single one again, once what was in its way is dropped. */
static bool create(struct mongo *db, const char *collection, const bson_t *list,
                   struct fault *fault)
{
    bson_t index;
    bool good = ask(db, collection, list, fault);
    if (!good && bson_count_keys(list) == 1 && member_doc(list, "0", &index) &&
        conflict_clear(db, collection, &index, fault)) {
        good = ask(db, collection, list, fault);
    }
    /* Without the right to make them: an administrator may have done it. */
    if (!good && fault->answered && fault->code == SERVER_UNAUTHORIZED &&
        indexes_are_there(db, collection, list)) {
        memset(fault, 0, sizeof(*fault));
        good = true;
    }
    return good;
}

/* Those of one collection, made together. Where the server refuses, each alone, so that one
 * refusal does not hold up the others. Takes the list. */
static bool indexes_make(struct mongo *db, const char *collection, bson_t *list,
                         struct fault *fault)
{
    bson_iter_t iter;
    bson_t index;
    bool good = create(db, collection, list, fault);
    if (!good && fault->answered && fault->code != SERVER_UNAUTHORIZED &&
        bson_count_keys(list) > 1 && bson_iter_init(&iter, list)) {
        good = true;
        while ((good || fault->answered) && bson_iter_next(&iter) && iter_doc(&iter, &index)) {
            struct fault other;
            bson_t *alone = bson_of("0:D", &index);
            if (!create(db, collection, alone, &other) && good) {
                *fault = other;
                good = false;
            }
            bson_destroy(alone);
        }
    }
    bson_destroy(list);
    return good;
}

/* Some servers refuse other characters in names than these. */
static void field_name(const char *field, char ret[FIELD_NAME_MAX])
{
    (void)snprintf(ret, FIELD_NAME_MAX, "by_%s", field);
    for (char *c = ret; *c != '\0'; c++) {
        if (*c == '.' || *c == '/') {
            *c = '_';
        }
    }
}

/* Keys with equal values first, then the order, as queries have them. Lists of entries by a
 * field are sorted by the last change, others by creation. People ask for entries by a field
 * alone: it comes before what only the gateway asks for. */
static bool make_plain(struct mongo *db, const struct db_collection *collection,
                       struct fault *fault)
{
    bson_t *list =
        bson_of("0:{name:t, key:{space:1, notegate.deleted:1, notegate.created_seq:1}}, "
                "1:{name:t, key:{space:1, notegate.deleted:1, notegate.updated:1, "
                "notegate.created_seq:1}}, 2:{name:t, key:{space:1, notegate.id:1}}, "
                "3:{name:t, key:{notegate.waiting:1}, sparse:T}",
                "order", "by_updated", "ids", "waiting");
    if (db->sharded) {
        bson_add(list, "4:{name:t, key:{space:1, _id:1}}", "space_id");
    }
    for (size_t i = 0; i < collection->field_count && i < FIELDS_MAX; i++) {
        const struct db_field *field = &collection->fields[i];
        char name[FIELD_NAME_MAX], at[16];
        if (field->use == NG_FIELD_TEXT) {
            continue;
        }
        bson_t *keys = bson_of("space:1");
        if (collection->is_entry) {
            bson_add(keys, "%:1, notegate.deleted:1, notegate.updated:1", field->path);
        } else {
            bson_add(keys, "notegate.deleted:1, %:1", field->path);
        }
        bson_add(keys, "notegate.created_seq:1");
        field_name(field->name, name);
        (void)snprintf(at, sizeof(at), "%u", bson_count_keys(list));
        bson_add(list, "%:{name:t, key:D}", at, name, keys);
        bson_destroy(keys);
    }
    return indexes_make(db, collection->name, list, fault);
}

/* A server may lack text indexes: searches then use filters. */
static bool make_text(struct mongo *db, const struct db_collection *collection,
                      struct fault *fault)
{
    return indexes_make(db, collection->name,
                        bson_of("0:{name:t, key:{notegate.words:t}, default_language:t, "
                                "language_override:t}",
                                "text_words", "text", "none", "notegate_language"),
                        fault);
}

/* ---- the state of a collection's indexes ---- */

/* Of a declared collection, or of our own. */
static struct index_state *state_of(struct mongo *db, struct db_collection *collection)
{
    if (collection == NULL) {
        return &db->indexes->own;
    }
    return &collection->indexes;
}

/* The server has no text indexes, or one of another form: asking again changes nothing. */
static bool is_final(const struct fault *fault)
{
    static const uint32_t codes[] = {SERVER_COMMAND_UNKNOWN,     SERVER_INVALID_OPTIONS,
                                     SERVER_INDEX_SPECIFICATION, SERVER_CANNOT_CREATE_INDEX,
                                     SERVER_INDEX_OPTIONS,       SERVER_INDEX_KEYS,
                                     SERVER_NOT_SUPPORTED,       SERVER_NOT_IMPLEMENTED};
    for (size_t i = 0; i < NG_COUNT(codes) && fault->answered; i++) {
        if (fault->code == codes[i]) {
            return true;
        }
    }
    return false;
}

/* The relay numbers nothing until `ref` is there. The feed passes over quiet events by their
 * index. */
static bool make_own(struct mongo *db, struct fault *fault)
{
    struct fault other;
    bool good = indexes_make(db, OWN_EVENTS,
                             bson_of("0:{name:t, key:{ref:1}, unique:T}", "ref"), fault);
    if (good) {
        atomic_store(&db->ref_index, REF_READY);
        relay_kick(db, NULL);
    } else if (fault->answered) {
        atomic_store(&db->ref_index, REF_REFUSED);
    }
    if (!indexes_make(db, OWN_EVENTS, bson_of("0:{name:t, key:{quiet:1, _id:1}}", "quiet"),
                      &other) &&
        good) {
        *fault = other;
        good = false;
    }
    if (!indexes_make(db, OWN_ANSWERS, bson_of("0:{name:t, key:{expires:1}}", "expires"),
                      &other) &&
        good) {
        *fault = other;
        good = false;
    }
    return good;
}

static bool make_searchable(struct mongo *db, struct db_collection *collection,
                            struct fault *fault)
{
    bool made = make_text(db, collection, fault);
    bool filled = words_fill(db, collection);
    if (!made && !is_final(fault)) {
        return false;
    }
    atomic_store(&collection->text_index, made && filled);
    return filled;
}

/* The text index apart from the rest: neither is held up by a refusal of the other. */
static bool make_declared(struct mongo *db, struct db_collection *collection,
                          struct fault *fault)
{
    struct fault text = {0};
    bool good = make_plain(db, collection, fault);
    if (is_searchable(collection) && (good || fault->answered) &&
        !make_searchable(db, collection, &text)) {
        if (good) {
            *fault = text;
        }
        good = false;
    }
    return good;
}

/* For sentences: the consequence of missing indexes. */
static const char *loss_of(struct mongo *db, const struct index_state *state)
{
    if (state == &db->indexes->own && atomic_load(&db->ref_index) != REF_READY) {
        return "changes get no numbers and events wait";
    }
    return "queries and searches take longer";
}

static void note_attempt(struct mongo *db, const char *name, struct index_state *state,
                         bool good, const struct fault *fault)
{
    if (good) {
        atomic_store(&state->ready, true);
        return;
    }
    state->pause_ms = i64_min(i64_max(2 * state->pause_ms, RETRY_FIRST_MS), RETRY_LAST_MS);
    atomic_store(&state->due_ms, monotonic_ms() + state->pause_ms);
    if (fault->answered && !state->told) {
        char text[2 * DB_ERROR_MAX];
        state->told = true;
        const char *hint = "";
        if (fault->code == SERVER_UNAUTHORIZED) {
            hint = "; the user of mongo.uri needs the right createIndex (role readWrite)";
        }
        (void)snprintf(text, sizeof(text),
                       "the indexes of the collection %s cannot be created: %s%s; until they "
                       "are, %s",
                       name, fault->text, hint, loss_of(db, state));
        watch_tell(db, text);
    }
}

/* One attempt at a time for each collection. false: another thread is at it. */
static bool attempt(struct mongo *db, struct db_collection *collection, struct fault *fault)
{
    struct index_state *state = state_of(db, collection);
    const char *name = OWN_EVENTS;
    if (atomic_exchange(&state->busy, true)) {
        return false;
    }
    bool good;
    if (collection != NULL) {
        name = collection->name;
        good = make_declared(db, collection, fault);
    } else {
        good = make_own(db, fault);
    }
    note_attempt(db, name, state, good, fault);
    atomic_store(&state->busy, false);
    return true;
}

/* ---- before the first write ---- */

/* The number of rows in the first answer to a command; -1: it failed. */
static int rows_of(struct mongo *db, bson_t *command)
{
    struct fault fault;
    bson_t reply, batch;
    int count = -1;
    if (op_command(db, NULL, db->database, command, &reply, &fault) &&
        member_doc(&reply, "cursor.firstBatch", &batch)) {
        count = (int)bson_count_keys(&batch);
    }
    bson_destroy(&reply);
    return count;
}

void collection_prepare(struct mongo *db, const char *name)
{
    struct fault fault = {0};
    struct db_collection *collection = collection_find(db, ng_str_of(name));
    struct index_state *state = state_of(db, collection);
    bool known = collection != NULL || str_begins(ng_str_of(name), OWN_PREFIX);
    if (!known || atomic_load(&state->ready) || atomic_load(&state->due_ms) != 0) {
        return;
    }
    bson_t *list = bson_of("listCollections:1, filter:{name:t}, nameOnly:T", name);
    if (rows_of(db, list) != 0) {
        atomic_store(&state->due_ms, monotonic_ms()); /* left to the thread */
        return;
    }
    (void)attempt(db, collection, &fault);
}

void text_index_lost(struct db_collection *collection)
{
    atomic_store(&collection->text_index, false);
    atomic_store(&collection->indexes.ready, false);
}

size_t indexes_missing(struct mongo *db)
{
    struct db_collection *collection = NULL;
    size_t count = 0;
    do {
        count += !atomic_load(&state_of(db, collection)->ready);
        collection = collection_next(db, collection);
    } while (collection != NULL);
    return count;
}

/* ---- the thread ---- */

void indexes_advise(struct mongo *db, ng_finding_fn *advice, void *user)
{
    struct db_collection *collection = NULL;
    do {
        char text[2 * DB_ERROR_MAX];
        struct fault fault = {0};
        struct index_state *state = state_of(db, collection);
        bool due = advice != NULL || monotonic_ms() >= atomic_load(&state->due_ms);
        while (due && !atomic_load(&state->ready) && !attempt(db, collection, &fault)) {
            due = advice != NULL && pause_unless(&db->closing, BUSY_MS);
        }
        if (advice != NULL && !atomic_load(&state->ready) && fault.rc != NG_OK) {
            const char *name = OWN_EVENTS;
            if (collection != NULL) {
                name = collection->name;
            }
            (void)snprintf(text, sizeof(text),
                           "the collection %s lacks indexes, so that %s: %s", name,
                           loss_of(db, state), fault.text);
            advice(user, text);
        }
        collection = collection_next(db, collection);
    } while (collection != NULL && !atomic_load(&db->closing));
}

static void *indexes_main(void *user)
{
    (void)pthread_setname_np(pthread_self(), "ng-indexes");
    struct mongo *db = user;
    do {
        indexes_advise(db, NULL, NULL);
    } while (pause_unless(&db->closing, RETRY_FIRST_MS));
    return NULL;
}

int indexes_open(struct mongo *db)
{
    db->indexes = calloc(1, sizeof(*db->indexes));
    if (db->indexes == NULL) {
        return NG_EINTERNAL;
    }
    return thread_open(&db->indexes->thread, indexes_main, db, &db->indexes->started);
}

void indexes_close(struct mongo *db)
{
    if (db->indexes == NULL) {
        return;
    }
    if (db->indexes->started) {
        (void)pthread_join(db->indexes->thread, NULL);
    }
    free(db->indexes);
    db->indexes = NULL;
}
