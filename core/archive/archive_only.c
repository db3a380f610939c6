/* SPDX-License-Identifier: MIT */
/* archive_only.c - restores one document or one file of an archive; replaces nothing. */
#include "archive.h"
#include "core/base/str.h"
#include "core/base/text/edit_distance.h"
#include "core/call/gateway.h"
#include "core/store/store.h"
#include "files_pack.h"

struct only {
    struct archive_only *wanted;
    struct call *call;
    bool found;           /* the document: json, text and data of the revision */
    uint64_t revision;    /* the one that was found */
    uint64_t deleted;     /* the newest revision is this tombstone; 0: it is none */
    uint64_t last;        /* the last revision that is no tombstone */
    size_t near_distance; /* of near_id */
    struct buf json, text, data;
};

static int only_copy(struct buf *to, struct ng_str from, struct buf *error)
{
    buf_clear(to);
    if (buf_add_str(to, from) != NG_OK) {
        buf_add_c(error, "out of memory");
        return NG_EINTERNAL;
    }
    return NG_OK;
}

static bool only_is_key(const struct ng_key *a, const struct ng_key *b)
{
    return str_equal(a->collection, b->collection) && str_equal(a->space, b->space) &&
           str_equal(a->id, b->id);
}

/* Another space is one edit. */
static int only_note_near(struct only *only, const struct ng_key *key, struct buf *error)
{
    struct archive_only *wanted = only->wanted;
    size_t distance = edit_distance(key->id, wanted->key.id, 1 + wanted->key.id.len / 4);
    if (distance == SIZE_MAX) {
        return NG_OK;
    }
    distance += !str_equal(key->space, wanted->key.space);
    if (distance >= only->near_distance) {
        return NG_OK;
    }
    only->near_distance = distance;
    int rc = only_copy(&wanted->near_space, key->space, error);
    return rc != NG_OK ? rc : only_copy(&wanted->near_id, key->id, error);
}

static int only_revision(struct only *only, const struct ng_record *record, struct buf *error)
{
    const struct ng_doc *doc = record->doc;
    uint64_t wanted = only->wanted->revision;
    if (!only_is_key(&doc->key, &only->wanted->key)) {
        return record->newest && !doc->deleted ? only_note_near(only, &doc->key, error) : NG_OK;
    }
    if (!doc->deleted) {
        only->last = doc->revision;
    }
    if (wanted != 0 ? doc->revision != wanted : !record->newest) {
        return NG_OK;
    }
    if (doc->deleted) {
        only->deleted = doc->revision;
        return NG_OK;
    }
    only->found = true;
    only->revision = doc->revision;
    int rc = only_copy(&only->json, doc->json, error);
    return rc != NG_OK ? rc : only_copy(&only->text, doc->text, error);
}

/* First pass. Events follow all revisions. */
static int only_record(void *user, const struct ng_record *record, struct buf *error)
{
    struct only *only = user;
    const struct ng_key *key = &only->wanted->key;
    if (record->kind == NG_RECORD_REVISION &&
        str_equal(record->doc->key.collection, key->collection)) {
        return only_revision(only, record, error);
    }
    if (record->kind == NG_RECORD_EVENT && only->found && record->event->data.len > 0 &&
        record->event->revision == only->revision && only_is_key(&record->event->key, key)) {
        return only_copy(&only->data, record->event->data, error);
    }
    return NG_OK;
}

static int only_file(void *user, const struct packed_file *file, struct buf *error)
{
    struct only *only = user;
    struct unpack *unpack = only->wanted->unpack;
    return unpack != NULL && !only->found ? unpack_file(unpack, file, error) : NG_OK;
}

static int only_change(struct ng_call *call, const struct ng_doc *present,
                       struct ng_draft *next, void *user)
{
    const struct only *only = user;
    struct ng_str uri = only->wanted->uri;
    struct ng_str text = buf_str(&only->text);
    if (present->revision > 0 && !present->deleted) {
        return ng_fail(call, NG_EFAILED,
                       "%.*s exists (revision %llu), and a restore replaces nothing: rename or "
                       "delete it first, or restore into another data directory (--data-dir)",
                       (int)uri.len, uri.data, (unsigned long long)present->revision);
    }
    int rc = store_draft_json(next, buf_str(&only->json));
    if (rc == NG_OK) {
        rc = store_draft_text(next, &text, 1);
    }
    if (rc == NG_OK && only->data.len > 0) {
        store_draft_event(next, buf_str(&only->data));
    }
    return rc;
}

static int only_write(struct only *only, struct buf *error)
{
    const struct ng_change change = {
        .size = sizeof(change), .key = only->wanted->key, .fn = only_change, .user = only};
    int rc = store_write_wait(only->call->gateway->store, only->call, &change, 1);
    if (rc != NG_OK) {
        buf_add_str(error, only->call->staged.message);
    }
    return rc;
}

static int only_missing(const struct only *only, struct buf *error)
{
    if (only->deleted == 0) {
        return NG_ENOTFOUND;
    }
    buf_add_c(error, "the document was deleted before the backup");
    if (only->last > 0) {
        buf_printf(error, "; its last content is ?revision=%llu",
                   (unsigned long long)only->last);
    }
    return NG_EFAILED;
}

static int only_place(struct only *only, const struct archive_source *source, struct buf *error)
{
    struct unpack *unpack = only->wanted->unpack;
    const struct archive_sink sink = {NULL, NULL, only, only_file};
    struct archive_counts counts;
    if (source->rewind(source->user) != NG_OK) {
        buf_add_c(error, "the backup cannot be read a second time");
        return NG_EFAILED;
    }
    unpack_begin(unpack, true);
    int rc = archive_read(source->get, source->user, &sink, &counts, error);
    return rc != NG_OK ? rc : unpack_sync(unpack, error);
}

static int only_run(struct only *only, const struct archive_source *source, struct buf *error)
{
    struct unpack *unpack = only->wanted->unpack;
    const struct archive_sink sink = {NULL, only_record, only, only_file};
    struct archive_counts counts;
    if (unpack != NULL) {
        unpack_begin(unpack, false);
    }
    int rc = archive_read(source->get, source->user, &sink, &counts, error);
    if (rc != NG_OK || only->found) {
        return rc != NG_OK ? rc : only_write(only, error);
    }
    if (unpack != NULL && unpack_found(unpack, NULL)) {
        return only_place(only, source, error);
    }
    only->wanted->has_files = counts.files > 0;
    return only_missing(only, error);
}

int archive_restore_only(struct archive_only *only, struct call *call,
                         const struct archive_source *source, struct buf *error)
{
    struct only state = {.wanted = only, .call = call, .near_distance = SIZE_MAX};
    struct buf *all[] = {&state.json, &state.text, &state.data};
    for (size_t i = 0; i < NG_COUNT(all); i++) {
        buf_init(all[i], ARCHIVE_LINE_MAX);
    }
    int rc = only_run(&state, source, error);
    for (size_t i = 0; i < NG_COUNT(all); i++) {
        buf_done(all[i]);
    }
    return rc;
}
