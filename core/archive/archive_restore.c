/* SPDX-License-Identifier: MIT */
/* archive_restore.c - restores an archive into an empty store, all or nothing. */
#include "archive.h"
#include "core/base/str.h"
#include "core/call/call.h"
#include "core/json/json.h"
#include "core/store/store.h"
#include "files_pack.h"

/* Memory for collections that no present plugin declares. */
#define RESTORE_DECLARED_MAX ((size_t)16 * 1024 * 1024)

struct restore {
    const struct archive_origin *into;
    struct call *call;
    struct arena declared; /* collections of the archive, for the whole restore */
    struct ng_collection *collections[STORE_COLLECTIONS_MAX];
    size_t collection_count;
    struct arena arena; /* of one record */
};

static const struct ng_collection *restore_collection(struct restore *restore,
                                                      struct ng_str name)
{
    const struct archive_origin *into = restore->into;
    const struct ng_collection *known = NULL;
    if (into->collection != NULL) {
        known = into->collection(into->user, name);
    }
    for (size_t i = 0; known == NULL && i < restore->collection_count; i++) {
        if (str_is(name, restore->collections[i]->name)) {
            known = restore->collections[i];
        }
    }
    return known;
}

static int restore_why(struct restore *restore, struct buf *error, int rc)
{
    struct ng_str text = restore->call->staged.message;
    if (text.len > 0) {
        buf_add_str(error, text);
    } else {
        buf_printf(error, "%s refused the record without saying why",
                   restore->into->backend->name);
    }
    return rc;
}

static struct ng_collection *restore_copy(struct restore *restore,
                                          const struct ng_collection *from)
{
    struct arena *arena = &restore->declared;
    struct ng_collection *copy = arena_zalloc(arena, sizeof(*copy));
    struct ng_field *fields = arena_zalloc(arena, from->field_count * sizeof(*fields));
    if (copy == NULL || fields == NULL) {
        return NULL;
    }
    for (size_t i = 0; i < from->field_count; i++) {
        fields[i] = from->fields[i];
        fields[i].name = arena_copy(arena, ng_str_of(from->fields[i].name)).data;
    }
    *copy = *from;
    copy->name = arena_copy(arena, ng_str_of(from->name)).data;
    copy->fields = fields;
    if (arena->failed) {
        return NULL;
    }
    return copy;
}

/* First pass: declares each collection as a present plugin does, else as the archive does. */
static int restore_declare(void *user, const struct ng_collection *collection,
                           struct buf *error)
{
    struct restore *restore = user;
    const struct archive_origin *into = restore->into;
    const struct ng_collection *known =
        restore_collection(restore, ng_str_of(collection->name));
    if (known == NULL) {
        struct ng_collection *copy = NULL;
        if (restore->collection_count < STORE_COLLECTIONS_MAX) {
            copy = restore_copy(restore, collection);
        }
        if (copy == NULL) {
            buf_add_c(error, "too many collections, or out of memory");
            return NG_ETOOLARGE;
        }
        restore->collections[restore->collection_count++] = copy;
        known = copy;
    }
    int rc = into->backend->declare(into->db, &restore->call->pub, known);
    return rc == NG_OK ? NG_OK : restore_why(restore, error, rc);
}

/* The indexed fields of a newest revision. */
static int restore_fields(struct restore *restore, const struct ng_collection *collection,
                          struct ng_record *record, struct buf *error)
{
    const struct ng_value *body = NULL;
    struct json_error json_error;
    if (record->doc->deleted || collection->field_count == 0) {
        return NG_OK;
    }
    if (json_parse(&restore->arena, record->doc->json, JSON_DEPTH_DEFAULT * 2, &body,
                   &json_error) != NG_OK) {
        buf_printf(error, "the document is not JSON: %s", json_error.message);
        return NG_EFAILED;
    }
    int rc =
        store_fields(&restore->arena, collection, body, &record->fields, &record->field_count);
    if (rc != NG_OK) {
        buf_add_c(error, "out of memory");
    }
    return rc;
}

/* Second pass: imports. */
static int restore_record(void *user, const struct ng_record *record, struct buf *error)
{
    struct restore *restore = user;
    const struct archive_origin *into = restore->into;
    struct ng_record whole = *record;
    arena_reset(&restore->arena);
    if (record->kind == NG_RECORD_REVISION) {
        const struct ng_collection *collection =
            restore_collection(restore, record->doc->key.collection);
        if (collection == NULL) {
            buf_add_c(error, "the revision's collection was not declared before it");
            return NG_EFAILED;
        }
        whole.quiet = (collection->flags & NG_COLLECTION_QUIET) != 0;
        whole.no_history = (collection->flags & NG_COLLECTION_NO_HISTORY) != 0;
        int rc = NG_OK;
        if (record->newest) {
            rc = restore_fields(restore, collection, &whole, error);
        }
        if (rc != NG_OK) {
            return rc;
        }
    }
    int rc = into->backend->import_record(into->db, &restore->call->pub, &whole);
    return rc == NG_OK ? NG_OK : restore_why(restore, error, rc);
}

/* Both passes: unpack_begin() decides whether files are written. */
static int restore_file(void *user, const struct packed_file *file, struct buf *error)
{
    struct restore *restore = user;
    if (restore->into->unpack == NULL && file->kind != PACKED_ROOT_LEFT_OUT) {
        buf_add_c(error, "the backup has files, and there is no root to restore them into");
        return NG_EFAILED;
    }
    if (restore->into->unpack == NULL) {
        return NG_OK;
    }
    return unpack_file(restore->into->unpack, file, error);
}

/* Checks the whole archive and declares its collections. */
static int restore_check(struct restore *restore, const struct archive_source *source,
                         struct archive_counts *ret, struct buf *error)
{
    struct archive_sink sink = {restore_declare, NULL, restore, restore_file};
    if (restore->into->unpack != NULL) {
        unpack_begin(restore->into->unpack, false);
    }
    int rc = archive_read(source->get, source->user, &sink, ret, error);
    if (rc == NG_OK && source->rewind(source->user) != NG_OK) {
        buf_add_c(error, "the backup cannot be read a second time");
        rc = NG_EFAILED;
    }
    return rc;
}

static int restore_keep(struct restore *restore, const struct archive_source *source,
                        struct archive_counts *ret, struct buf *error)
{
    const struct archive_origin *into = restore->into;
    struct archive_sink sink = {NULL, restore_record, restore, restore_file};
    if (into->unpack != NULL) {
        unpack_begin(into->unpack, true);
    }
    int rc = into->backend->import_begin(into->db, &restore->call->pub);
    if (rc != NG_OK) {
        return restore_why(restore, error, rc);
    }
    rc = archive_read(source->get, source->user, &sink, ret, error);
    /* Files become durable before the documents that refer to them. */
    if (rc == NG_OK && into->unpack != NULL) {
        rc = unpack_sync(into->unpack, error);
    }
    if (rc != NG_OK && into->unpack != NULL && unpack_made(into->unpack) > 0) {
        buf_printf(
            error,
            "; %llu files were restored: they stay, and the next restore continues after them",
            (unsigned long long)unpack_made(into->unpack));
    }
    int end = into->backend->import_end(into->db, &restore->call->pub, rc == NG_OK);
    if (rc == NG_OK && end != NG_OK) {
        return restore_why(restore, error, end);
    }
    return rc;
}

int archive_restore(const struct archive_origin *into, struct call *call,
                    const struct archive_source *source, struct archive_counts *ret,
                    struct buf *error)
{
    const struct ng_documents *backend = into->backend;
    struct restore restore = {.into = into, .call = call};
    if (backend->import_begin == NULL || backend->import_record == NULL ||
        backend->import_end == NULL) {
        buf_printf(error, "the backend %s does not support restore", backend->name);
        return NG_EFAILED;
    }
    /* A shared one tells by itself, as it may hold what an interrupted restore has left. */
    if ((backend->flags & NG_DOCUMENTS_SHARED) == 0 && backend->last_seq != NULL &&
        backend->last_seq(into->db) != 0) {
        buf_printf(error, "the %s store is not empty; restore into an empty one",
                   backend->name);
        return NG_EFAILED;
    }
    arena_init(&restore.arena, 0);
    arena_init(&restore.declared, RESTORE_DECLARED_MAX);
    int rc = restore_check(&restore, source, ret, error);
    if (rc == NG_OK) {
        rc = restore_keep(&restore, source, ret, error);
    }
    arena_done(&restore.arena);
    arena_done(&restore.declared);
    return rc;
}
