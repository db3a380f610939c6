/* SPDX-License-Identifier: MIT */
/* collections.c - the declared collections and their indexes. Indexes are created once the
 * server is reachable, which may be after the declaration. */
#include "core/base/lock.h"
#include "db.h"

#include <stdio.h>

static void collection_free(struct db_collection *collection)
{
    for (size_t i = 0; i < collection->field_count; i++) {
        free(collection->fields[i].name);
        free(collection->fields[i].path);
    }
    free(collection->fields);
    free(collection->name);
    free(collection);
}

void collections_free(struct mongo *db)
{
    while (db->collections != NULL) {
        struct db_collection *next = db->collections->next;
        collection_free(db->collections);
        db->collections = next;
    }
}

static struct db_collection *find_declared(struct mongo *db, struct ng_str name)
{
    lock_take(&db->collections_lock);
    struct db_collection *found = db->collections; /* the newest declaration comes first */
    while (found != NULL && !str_equal(ng_str_of(found->name), name)) {
        found = found->next;
    }
    lock_release(&db->collections_lock);
    return found;
}

const struct db_collection *collection_find(struct mongo *db, struct ng_str name)
{
    return find_declared(db, name);
}

struct db_collection **collections_list(struct mongo *db, size_t *ret_count)
{
    size_t count = 0;
    lock_take(&db->collections_lock);
    for (struct db_collection *at = db->collections; at != NULL; at = at->next) {
        count++;
    }
    struct db_collection **list = calloc(count + 1, sizeof(*list));
    count = 0;
    for (struct db_collection *at = db->collections; at != NULL && list != NULL;
         at = at->next) {
        bool seen = false;
        for (size_t i = 0; i < count; i++) {
            seen = seen || strcmp(list[i]->name, at->name) == 0;
        }
        if (!seen) {
            list[count++] = at;
        }
    }
    lock_release(&db->collections_lock);
    *ret_count = count;
    return list;
}

/* ---- declaring ---- */

static bool field_copy(struct db_field *field, const struct ng_field *from)
{
    static const char below[] = "notegate.fields.";
    size_t len = strlen(from->name);
    field->name = strdup(from->name);
    field->path = malloc(sizeof(below) + len);
    field->use = from->use;
    if (from->weight > 0) {
        field->weight = from->weight;
    } else {
        field->weight = 1.0;
    }
    if (field->name == NULL || field->path == NULL) {
        return false;
    }
    memcpy(field->path, below, sizeof(below) - 1);
    for (size_t i = 0; i <= len; i++) {
        if (from->name[i] == '.') {
            field->path[sizeof(below) - 1 + i] = '/';
        } else {
            field->path[sizeof(below) - 1 + i] = from->name[i];
        }
    }
    return true;
}

static struct db_collection *collection_copy(const struct ng_collection *decl)
{
    size_t size = sizeof(struct ng_field);
    if (decl->field_size != 0) {
        size = decl->field_size;
    }
    struct db_collection *copy = calloc(1, sizeof(*copy));
    if (copy == NULL) {
        return NULL;
    }
    copy->name = strdup(decl->name);
    copy->flags = decl->flags;
    copy->is_entry = is_entry_collection(decl->name, &copy->text_member);
    copy->fields = calloc(decl->field_count + 1, sizeof(*copy->fields));
    bool good = copy->name != NULL && copy->fields != NULL;
    for (size_t i = 0; i < decl->field_count && good; i++) {
        const char *at = (const char *)decl->fields + i * size;
        struct ng_field field = {0};
        memcpy(&field, at, size_min(size, sizeof(field)));
        copy->field_count++;
        good = field_copy(&copy->fields[i], &field);
    }
    if (!good) {
        if (copy->fields == NULL) {
            copy->field_count = 0;
        }
        collection_free(copy);
        return NULL;
    }
    return copy;
}

int collection_declare(struct mongo *db, struct ng_call *call, const struct ng_collection *decl)
{
    if (strncmp(decl->name, OWN_PREFIX, sizeof(OWN_PREFIX) - 1) == 0 ||
        strncmp(decl->name, "system", 6) == 0) {
        return ng_fail(call, NG_EINVAL,
                       "a collection cannot be called %s: MongoDB or this "
                       "backend keeps its own things under such names",
                       decl->name);
    }
    struct db_collection *copy = collection_copy(decl);
    if (copy == NULL) {
        return ng_fail(call, NG_EINTERNAL, "no memory to declare the collection %s",
                       decl->name);
    }
    lock_take(&db->collections_lock);
    copy->next = db->collections;
    db->collections = copy;
    lock_release(&db->collections_lock);
    return NG_OK;
}

/* ---- indexes ---- */

struct index {
    bson_t list; /* for createIndexes */
    uint32_t count;
};

static void index_begin(struct index *index, bson_t *one, const char *name)
{
    char digits[16];
    const char *key = NULL;
    (void)bson_uint32_to_string(index->count++, &key, digits, sizeof(digits));
    BSON_APPEND_DOCUMENT_BEGIN(&index->list, key, one);
    BSON_APPEND_UTF8(one, "name", name);
}

static void index_paths(struct index *index, const char *name, const char *const *paths,
                        size_t count, const char *option)
{
    bson_t one, keys;
    index_begin(index, &one, name);
    BSON_APPEND_DOCUMENT_BEGIN(&one, "key", &keys);
    for (size_t i = 0; i < count; i++) {
        (void)bson_append_int32(&keys, paths[i], -1, 1);
    }
    (void)bson_append_document_end(&one, &keys);
    if (option != NULL) {
        (void)bson_append_bool(&one, option, -1, true);
    }
    (void)bson_append_document_end(&index->list, &one);
}

static bool index_make(struct mongo *db, const char *collection, struct index *index,
                       struct fault *fault)
{
    bson_t command = BSON_INITIALIZER;
    bson_t reply;
    bson_error_t error;
    mongoc_client_t *client = conn_acquire(db, fault);
    if (client == NULL) {
        bson_destroy(&command);
        return false;
    }
    BSON_APPEND_UTF8(&command, "createIndexes", collection);
    BSON_APPEND_ARRAY(&command, "indexes", &index->list);
    bool good = mongoc_client_write_command_with_opts(client, db->database, &command, NULL,
                                                      &reply, &error);
    if (good) {
        conn_good(db);
    } else {
        fault_set(db, fault, &error, &reply);
    }
    bson_destroy(&reply);
    bson_destroy(&command);
    conn_release(db, client);
    return good;
}

static bool make_plain(struct mongo *db, const struct db_collection *collection,
                       struct fault *fault)
{
    static const char *const order[] = {"space", "notegate.deleted", "notegate.created_seq"};
    static const char *const updated[] = {"space", "notegate.deleted", "notegate.updated"};
    static const char *const ids[] = {"space", "notegate.id"};
    static const char *const waiting[] = {"notegate.waiting"};
    struct index index = {.count = 0};
    bson_init(&index.list);
    index_paths(&index, "order", order, 3, NULL);
    index_paths(&index, "updated", updated, 3, NULL);
    index_paths(&index, "ids", ids, 2, NULL);
    index_paths(&index, "waiting", waiting, 1, "sparse");
    for (size_t i = 0; i < collection->field_count; i++) {
        const struct db_field *field = &collection->fields[i];
        const char *paths[] = {"space", "notegate.deleted", field->path,
                               "notegate.created_seq"};
        if (field->use != NG_FIELD_TEXT) {
            index_paths(&index, field->path + sizeof("notegate.fields") - 1 + 1, paths, 4,
                        NULL);
        }
    }
    bool good = index_make(db, collection->name, &index, fault);
    bson_destroy(&index.list);
    return good;
}

/* A server may lack text indexes: searches then use filters. */
static bool make_text(struct mongo *db, const struct db_collection *collection,
                      struct fault *fault)
{
    bson_t one, keys, weights;
    struct index index = {.count = 0};
    bson_init(&index.list);
    index_begin(&index, &one, "words");
    BSON_APPEND_DOCUMENT_BEGIN(&one, "key", &keys);
    for (size_t i = 0; i < collection->field_count; i++) {
        if (collection->fields[i].use == NG_FIELD_TEXT) {
            BSON_APPEND_UTF8(&keys, collection->fields[i].path, "text");
        }
    }
    if ((collection->flags & NG_COLLECTION_TEXT_SEARCH) != 0) {
        BSON_APPEND_UTF8(&keys, collection->text_member, "text");
    }
    (void)bson_append_document_end(&one, &keys);
    BSON_APPEND_DOCUMENT_BEGIN(&one, "weights", &weights);
    for (size_t i = 0; i < collection->field_count; i++) {
        if (collection->fields[i].use == NG_FIELD_TEXT) {
            BSON_APPEND_INT32(
                &weights, collection->fields[i].path,
                (int32_t)(collection->fields[i].weight < 1 ? 1 : collection->fields[i].weight));
        }
    }
    (void)bson_append_document_end(&one, &weights);
    BSON_APPEND_UTF8(&one, "default_language", "none");
    BSON_APPEND_UTF8(&one, "language_override", "notegate_language");
    (void)bson_append_document_end(&index.list, &one);
    bool good = index_make(db, collection->name, &index, fault);
    bson_destroy(&index.list);
    return good;
}

static bool is_searchable(const struct db_collection *collection)
{
    bool any = (collection->flags & NG_COLLECTION_TEXT_SEARCH) != 0;
    for (size_t i = 0; i < collection->field_count; i++) {
        any = any || collection->fields[i].use == NG_FIELD_TEXT;
    }
    return any;
}

static bool prepare_own(struct mongo *db, struct fault *fault)
{
    static const char *const ref[] = {"ref"};
    static const char *const expires[] = {"expires"};
    static const char *const intent[] = {"intent"};
    struct index events = {.count = 0};
    struct index answers = {.count = 0};
    struct index puts = {.count = 0};
    bson_init(&events.list);
    bson_init(&answers.list);
    bson_init(&puts.list);
    index_paths(&events, "ref", ref, 1, "unique");
    index_paths(&answers, "expires", expires, 1, NULL);
    index_paths(&puts, "intent", intent, 1, NULL);
    bool good = index_make(db, OWN_EVENTS, &events, fault) &&
                index_make(db, OWN_ANSWERS, &answers, fault) &&
                index_make(db, OWN_INTENT_PUTS, &puts, fault);
    bson_destroy(&events.list);
    bson_destroy(&answers.list);
    bson_destroy(&puts.list);
    return good;
}

static bool prepare_all_own(struct mongo *db, struct fault *fault)
{
    bool good = prepare_own(db, fault);
    atomic_store(&db->own_refused, !good && fault->answered);
    if (good) {
        atomic_store(&db->own_ready, true);
    }
    return good;
}

static bool prepare_one(struct mongo *db, struct db_collection *collection, struct fault *fault)
{
    bool good = make_plain(db, collection, fault);
    if (good && is_searchable(collection)) {
        bool made = make_text(db, collection, fault);
        atomic_store(&collection->text_index, made);
        good = made || fault->answered;
    }
    atomic_store(&collection->refused, !good && fault->answered);
    if (good) {
        atomic_store(&collection->ready, true);
    }
    return good;
}

void collection_prepare(struct mongo *db, const char *name)
{
    struct fault fault; /* an unreachable server fails the write with the same error */
    if (strncmp(name, OWN_PREFIX, sizeof(OWN_PREFIX) - 1) == 0) {
        if (!atomic_load(&db->own_ready) && !atomic_load(&db->own_refused)) {
            (void)prepare_all_own(db, &fault);
        }
        return;
    }
    struct db_collection *collection = find_declared(db, ng_str_of(name));
    if (collection != NULL && !atomic_load(&collection->ready) &&
        !atomic_load(&collection->refused)) {
        (void)prepare_one(db, collection, &fault);
    }
}

/* Called only by the relay's thread, which also retries refused indexes. */
void collections_prepare(struct mongo *db)
{
    size_t count = 0;
    struct fault fault;
    struct db_collection **list = collections_list(db, &count);
    if (list == NULL) {
        return;
    }
    bool good = true;
    if (!atomic_load(&db->own_ready)) {
        good = prepare_all_own(db, &fault);
    }
    for (size_t i = 0; i < count && good; i++) {
        struct db_collection *collection = list[i];
        if (atomic_load(&collection->ready)) {
            continue;
        }
        good = prepare_one(db, collection, &fault);
    }
    free(list);
}
