/* SPDX-License-Identifier: MIT */
/* collections.c - the declared collections. */
#include "core/base/lock.h"
#include "document.h"

#include <stdio.h>

static void collection_free(struct db_collection *collection)
{
    arena_done(&collection->memory);
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

struct db_collection *collection_next(struct mongo *db, const struct db_collection *after)
{
    struct db_collection *next = NULL;
    lock_take(&db->collections_lock);
    next = after == NULL ? db->collections : after->next;
    while (next != NULL && next->is_replaced) {
        next = next->next;
    }
    lock_release(&db->collections_lock);
    return next;
}

struct db_collection *collection_find(struct mongo *db, struct ng_str name)
{
    struct db_collection *found = NULL;
    do {
        found = collection_next(db, found);
    } while (found != NULL && !str_equal(ng_str_of(found->name), name));
    return found;
}

bool is_searchable(const struct db_collection *collection)
{
    bool any = (collection->flags & NG_COLLECTION_TEXT_SEARCH) != 0;
    for (size_t i = 0; i < collection->field_count; i++) {
        any = any || collection->fields[i].use == NG_FIELD_TEXT;
    }
    return any;
}

/* ---- declaring ---- */

static const char *path_below(struct arena *memory, const char *name)
{
    size_t size = sizeof(FIELDS_BELOW) + strlen(name);
    char *path = arena_zalloc(memory, size);
    if (path != NULL) {
        (void)snprintf(path, size, "%s%s", FIELDS_BELOW, name);
        for (char *c = path + sizeof(FIELDS_BELOW) - 1; *c != '\0'; c++) {
            if (*c == '.') {
                *c = '/';
            }
        }
    }
    return path;
}

static void field_copy(struct db_field *field, const struct db_collection *collection,
                       struct arena *memory, const struct ng_field *from)
{
    field->name = arena_copy(memory, ng_str_of(from->name)).data;
    field->path = field->name;
    if (!collection->is_entry) {
        field->path = path_below(memory, from->name);
    }
    field->use = from->use;
    field->weight = from->weight;
    if (!(field->weight > 0)) {
        field->weight = 1.0;
    }
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
    struct arena *memory = &copy->memory;
    copy->name = arena_copy(memory, ng_str_of(decl->name)).data;
    copy->flags = decl->flags;
    copy->is_entry = is_entry_collection(decl->name, &copy->text_member);
    copy->fields = arena_zalloc(memory, decl->field_count * sizeof(*copy->fields));
    for (; copy->field_count < decl->field_count && !memory->failed; copy->field_count++) {
        const char *at = (const char *)decl->fields + copy->field_count * size;
        struct ng_field field = {0};
        memcpy(&field, at, size_min(size, sizeof(field)));
        field_copy(&copy->fields[copy->field_count], copy, memory, &field);
    }
    if (memory->failed) {
        collection_free(copy);
        return NULL;
    }
    return copy;
}

int collection_declare(void *self, struct ng_call *call, const struct ng_collection *decl)
{
    struct mongo *db = self;
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
    bool bare = decl->field_count == 0 && decl->flags == 0;
    lock_take(&db->collections_lock);
    struct db_collection *former = db->collections;
    while (former != NULL && (former->is_replaced || strcmp(former->name, decl->name) != 0)) {
        former = former->next;
    }
    bool known = bare && former != NULL;
    if (!known) {
        if (former != NULL) {
            former->is_replaced = true;
        }
        copy->next = db->collections;
        db->collections = copy;
    }
    lock_release(&db->collections_lock);
    if (known) {
        collection_free(copy);
    }
    return NG_OK;
}
