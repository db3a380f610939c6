/* SPDX-License-Identifier: MIT */
/* collections.c - the declared collections: their numbers in the file and their fields. */
#include "core/base/minmax.h"
#include "db.h"

#include <stdio.h>

static void collection_free(struct db_collection *collection)
{
    if (collection == NULL) {
        return;
    }
    for (size_t i = 0; i < collection->field_count; i++) {
        free(collection->fields[i].name);
    }
    free(collection->fields);
    free(collection->name);
    free(collection);
}

/* One item of the declaration. Its size is that of the struct when the module was compiled. */
static struct ng_field declared_field(const struct ng_collection *decl, size_t index)
{
    struct ng_field field = {0};
    size_t size = sizeof(struct ng_field);
    if (decl->field_size != 0) {
        size = decl->field_size;
    }
    const char *at = (const char *)decl->fields + index * size;
    memcpy(&field, at, size_min(size, sizeof(field)));
    return field;
}

static struct db_collection *collection_copy(const struct ng_collection *decl)
{
    struct db_collection *collection = calloc(1, sizeof(*collection));
    if (collection == NULL) {
        return NULL;
    }
    collection->name_len = strlen(decl->name);
    collection->name = str_dup(ng_str_of(decl->name));
    collection->flags = decl->flags;
    collection->fields = calloc(decl->field_count + 1, sizeof(*collection->fields));
    if (collection->name == NULL || collection->fields == NULL) {
        collection_free(collection);
        return NULL;
    }
    for (size_t i = 0; i < decl->field_count; i++) {
        struct ng_field given = declared_field(decl, i);
        struct db_field *field = &collection->fields[i];
        field->name_len = strlen(given.name);
        field->name = str_dup(ng_str_of(given.name));
        field->use = given.use;
        field->weight = given.weight > 0.0 ? given.weight : 1.0;
        field->column = given.use == NG_FIELD_TEXT ? collection->columns++ : -1;
        collection->field_count++;
        if (field->name == NULL) {
            collection_free(collection);
            return NULL;
        }
    }
    if ((decl->flags & NG_COLLECTION_TEXT_SEARCH) != 0) {
        collection->text_column = true;
        collection->columns++;
    }
    return collection;
}

/* The number of a row; creates a missing row. 0: failed. */
static int64_t number_of(struct conn *conn, const char *find, const char *add,
                         const struct db_collection *collection, const struct db_field *field)
{
    const char *const order[] = {find, add, find};
    int64_t number = 0;
    for (size_t i = 0; i < NG_COUNT(order) && number == 0; i++) {
        sqlite3_stmt *stmt = NULL;
        if (sqlite3_prepare_v2(conn->sql, order[i], -1, &stmt, NULL) != SQLITE_OK) {
            return 0;
        }
        if (field == NULL) {
            (void)bind_text(stmt, 1, str_of(collection->name, collection->name_len));
        } else {
            (void)sqlite3_bind_int64(stmt, 1, collection->id);
            (void)bind_text(stmt, 2, str_of(field->name, field->name_len));
            (void)sqlite3_bind_int(stmt, 3, (int)field->use);
        }
        if (sqlite3_step(stmt) == SQLITE_ROW) {
            number = sqlite3_column_int64(stmt, 0);
        }
        if (sqlite3_finalize(stmt) != SQLITE_OK) {
            return 0;
        }
    }
    return number;
}

static int store_numbers(struct conn *conn, struct db_collection *collection)
{
    collection->id = number_of(conn, "SELECT collection FROM collections WHERE name=?1",
                               "INSERT INTO collections(name) VALUES(?1)", collection, NULL);
    if (collection->id == 0) {
        return NG_EINTERNAL;
    }
    for (size_t i = 0; i < collection->field_count; i++) {
        struct db_field *field = &collection->fields[i];
        field->id = number_of(
            conn, "SELECT field FROM fields WHERE collection=?1 AND name=?2 AND use=?3",
            "INSERT INTO fields(collection,name,use) VALUES(?1,?2,?3)", collection, field);
        if (field->id == 0) {
            return NG_EINTERNAL;
        }
    }
    return fts_table(conn, collection);
}

int collection_declare(void *self, struct ng_call *call, const struct ng_collection *decl)
{
    struct db *db = self;
    size_t len = 0;
    if (decl->name != NULL) {
        len = strlen(decl->name);
    }
    if (len == 0 || len > NG_COLLECTION_MAX) {
        return ng_fail(call, NG_EINVAL,
                       "a collection's name has 1 to %d bytes, this one has %zu",
                       NG_COLLECTION_MAX, len);
    }
    struct db_collection *collection = collection_copy(decl);
    if (collection == NULL) {
        return ng_fail(call, NG_EINTERNAL, "no memory to declare %s", decl->name);
    }
    int rc = NG_EINTERNAL;
    if (work_begin(db, true) == SQLITE_OK) {
        rc = store_numbers(db->writer, collection);
    }
    if (rc != NG_OK) {
        rc = conn_fail(db->writer, call, "declaring a collection");
    }
    if (work_end(db, rc == NG_OK) != SQLITE_OK) {
        rc = ng_fail(call, NG_EUNAVAILABLE, "declaring the collection %s failed: %s",
                     decl->name, db->path);
    }
    if (rc != NG_OK) {
        collection_free(collection);
        return rc;
    }
    /* Changes may wait since before the start, or because the table is new: assume that each
     * collection has some. */
    atomic_init(&collection->dirty, true);
    atomic_store(&db->dirty, true);
    lock_take(&db->collections_lock);
    collection->next = db->collections;
    db->collections = collection;
    lock_release(&db->collections_lock);
    return NG_OK;
}

const struct db_collection *collection_find(struct db *db, struct ng_str name)
{
    lock_take(&db->collections_lock);
    struct db_collection *found = db->collections;
    while (found != NULL && !str_equal(str_of(found->name, found->name_len), name)) {
        found = found->next;
    }
    lock_release(&db->collections_lock);
    return found;
}

const struct db_field *collection_field(const struct db_collection *collection,
                                        struct ng_str name, bool sortable)
{
    for (size_t i = 0; i < collection->field_count; i++) {
        const struct db_field *field = &collection->fields[i];
        if (field->use != NG_FIELD_TEXT && !(sortable && field->use == NG_FIELD_TAG) &&
            str_equal(str_of(field->name, field->name_len), name)) {
            return field;
        }
    }
    return NULL;
}

void collections_free(struct db *db)
{
    while (db->collections != NULL) {
        struct db_collection *collection = db->collections;
        db->collections = collection->next;
        collection_free(collection);
    }
}
