/* SPDX-License-Identifier: MIT */
/* undo_select.c - the documents whose changes an undo takes back. */
#include <stdlib.h>

#include "core/base/str.h"
#include "core/call/gateway.h"
#include "core/history/trail.h"
#include "core/store/store.h"
#include "undo.h"

static bool is_doc(const struct hash_link *link, const void *key)
{
    return doc_key_equal(&HASH_ITEM(link, struct undo_doc, link)->key, key);
}

/* Selects documents that keep revisions, and files. Other documents are not written by people.
 */
static bool select_counts(struct undo *undo, const struct ng_event *event,
                          const struct ng_collection **ret)
{
    *ret = store_collection(undo->call->gateway->store, event->key.collection);
    if (*ret != NULL && ((*ret)->flags & NG_COLLECTION_CONTENT) != 0 &&
        (*ret)->restore != NULL) {
        return true;
    }
    *ret = NULL;
    return str_begins(event->key.id, "/");
}

static struct undo_doc *doc_new(struct undo *undo, struct hash_table *table,
                                const struct ng_key *key, struct ng_str collection)
{
    struct arena *arena = &undo->call->arena;
    struct undo_doc *doc = arena_zalloc(arena, sizeof(*doc));
    if (doc == NULL) {
        return NULL;
    }
    doc->key = (struct ng_key){arena_copy(arena, key->collection),
                               arena_copy(arena, key->space), arena_copy(arena, key->id)};
    doc->shown = doc->key;
    doc->shown.collection = arena_copy(arena, collection);
    if (doc->shown.collection.data == NULL || doc->key.id.data == NULL ||
        doc->key.space.data == NULL || doc->key.collection.data == NULL ||
        hash_table_add(table, &doc->link, doc_key_hash(key)) != NG_OK) {
        return NULL;
    }
    return doc;
}

static int doc_add(struct undo *undo, struct undo_doc *doc, const struct ng_event *event,
                   const struct undo_file_change *change)
{
    if (doc->count == doc->room) {
        size_t room = doc->room * 2 + 4;
        uint64_t *revisions = arena_alloc(&undo->call->arena, room * sizeof(*revisions));
        if (revisions == NULL) {
            return call_no_memory(undo->call);
        }
        if (doc->count > 0) {
            memcpy(revisions, doc->revisions, doc->count * sizeof(*revisions));
        }
        doc->revisions = revisions;
        doc->room = room;
    }
    if (change->version != 0) {
        doc->revisions[doc->count++] = change->version;
    }
    doc->is_file = change->is_file;
    doc->is_folder = change->is_folder;
    doc->is_across = doc->is_across || change->is_across;
    if (change->is_file && change->from.len > 0 && event->seq > doc->moved_seq) {
        doc->moved_seq = event->seq;
        doc->moved_at = change->version;
        doc->moved_from = change->from;
        doc->folder = change->folder;
    }
    doc->is_foreign = doc->is_foreign || !str_equal(event->agent, undo->call->caller.agent);
    return NG_OK;
}

static void add_agent(struct undo *undo, struct ng_str agent)
{
    for (size_t i = 0; i < undo->agent_count; i++) {
        if (str_equal(undo->agents[i], agent)) {
            return;
        }
    }
    if (undo->agent_count < NG_COUNT(undo->agents)) {
        undo->agents[undo->agent_count++] = arena_copy(&undo->call->arena, agent);
    }
}

struct selecting {
    struct undo *undo;
    int rc;
};

static int fail_many(struct undo *undo)
{
    return call_fail(undo->call, NG_ETOOLARGE,
                     "more than %zu documents, or %zu changes, are selected; take them back in "
                     "parts, by `since` and `until`, or by `collection`",
                     UNDO_DOCUMENTS_MAX, UNDO_CHANGES_MAX);
}

int undo_carry(struct undo *undo, struct undo_carried **list, struct ng_str path,
               struct ng_str folder)
{
    struct arena *arena = &undo->call->arena;
    struct undo_carried *carried = NULL;
    if (folder.len == 0) {
        return NG_OK;
    }
    carried = arena_alloc(arena, sizeof(*carried));
    if (carried == NULL) {
        return call_no_memory(undo->call);
    }
    *carried = (struct undo_carried){*list, arena_copy(arena, path), folder};
    *list = carried;
    return carried->path.data != NULL ? NG_OK : call_no_memory(undo->call);
}

/* A file that its folder took along. done: an earlier part has moved it back. */
static int select_carried(struct undo *undo, const struct undo_file_change *change, bool done)
{
    if (!change->is_file) {
        return NG_OK;
    }
    int rc = undo_carry(undo, &undo->carried, change->key.id, change->folder);
    return rc == NG_OK && done ? undo_carry(undo, &undo->left, change->key.id, change->folder)
                               : rc;
}

static int select_take(void *user, const struct ng_event *event)
{
    struct selecting *selecting = user;
    struct undo *undo = selecting->undo;
    const struct ng_collection *collection = NULL;
    struct undo_file_change change;
    if (!select_counts(undo, event, &collection)) {
        return 0;
    }
    selecting->rc = undo_file_change(undo, event, &change);
    if (selecting->rc != NG_OK || change.moved_away) {
        return selecting->rc != NG_OK;
    }
    uint64_t hash = doc_key_hash(&change.key);
    bool done = hash_table_find(&undo->done, hash, is_doc, &change.key) != NULL;
    selecting->rc = select_carried(undo, &change, done);
    if (selecting->rc != NG_OK || done) {
        return selecting->rc != NG_OK;
    }
    struct hash_link *link = hash_table_find(&undo->table, hash, is_doc, &change.key);
    struct undo_doc *doc = link != NULL ? HASH_ITEM(link, struct undo_doc, link) : NULL;
    if (doc == NULL && undo->table.count < UNDO_DOCUMENTS_MAX) {
        doc = doc_new(undo, &undo->table, &change.key, event->key.collection);
        if (doc == NULL) {
            selecting->rc = call_no_memory(undo->call);
            return 1;
        }
        doc->collection = collection;
        *undo->last = doc;
        undo->last = &doc->next;
    }
    if (doc == NULL || ++undo->change_total > UNDO_CHANGES_MAX) {
        selecting->rc = fail_many(undo);
        return 1;
    }
    add_agent(undo, event->agent);
    selecting->rc = doc_add(undo, doc, event, &change);
    return selecting->rc != NG_OK;
}

/* A document that this undo has changed already. */
static int done_take(void *user, const struct ng_event *event)
{
    struct selecting *selecting = user;
    struct undo *undo = selecting->undo;
    struct undo_file_change change;
    selecting->rc = undo_file_change(undo, event, &change);
    if (selecting->rc != NG_OK) {
        return selecting->rc;
    }
    change.key.id = str_or(change.done, change.key.id); /* it may have been followed */
    uint64_t hash = doc_key_hash(&change.key);
    if (hash_table_find(&undo->done, hash, is_doc, &change.key) == NULL &&
        doc_new(undo, &undo->done, &change.key, event->key.collection) == NULL) {
        selecting->rc = call_no_memory(undo->call);
    }
    return selecting->rc != NG_OK;
}

static int select_walk(struct undo *undo, const struct ng_trail *wanted, ng_event_fn *take)
{
    struct selecting selecting = {undo, NG_OK};
    struct ng_trail what = *wanted;
    uint64_t next = what.until;
    int rc = NG_OK;
    while (rc == NG_OK && selecting.rc == NG_OK && next != 0) {
        what.until = next;
        rc = trail_walk(undo->call, &what, take, &selecting, &next);
        if (rc == NG_OK && undo->call->pub.host->cancelled(&undo->call->pub)) {
            rc = call_fail(undo->call, NG_ECANCELLED, "cancelled; nothing was taken back");
        }
    }
    return rc != NG_OK ? rc : selecting.rc;
}

static int select_numbers(struct undo *undo)
{
    int rc = NG_OK;
    for (size_t i = 0; rc == NG_OK && i < undo->change_count; i++) {
        uint64_t seq = undo->changes[i];
        size_t before = undo->change_total;
        if (seq == 0 || seq > undo->what.until) {
            return call_fail(undo->call, NG_ENOTFOUND,
                             "`changes`: there is no change with the number %llu",
                             (unsigned long long)seq);
        }
        struct ng_trail what = undo->what;
        what.since = seq - 1;
        what.until = seq;
        rc = select_walk(undo, &what, select_take);
        if (rc == NG_OK && undo->change_total == before && undo->done.count == 0) {
            rc = call_fail(undo->call, NG_ENOTFOUND,
                           "`changes`: %llu is no change of a document that you may see and "
                           "that keeps revisions",
                           (unsigned long long)seq);
        }
    }
    return rc;
}

static int by_number(const void *a, const void *b)
{
    uint64_t left = *(const uint64_t *)a;
    uint64_t right = *(const uint64_t *)b;
    return (left > right) - (left < right);
}

/* Ascending, each once. */
static void sort_revisions(struct undo_doc *doc)
{
    size_t kept = 0;
    if (doc->count == 0) {
        return; /* a file without versions, that its folder took along */
    }
    qsort(doc->revisions, doc->count, sizeof(*doc->revisions), by_number);
    for (size_t i = 0; i < doc->count; i++) {
        if (kept == 0 || doc->revisions[kept - 1] != doc->revisions[i]) {
            doc->revisions[kept++] = doc->revisions[i];
        }
    }
    doc->count = kept;
}

/* The move of a folder is taken back by its files; without any of them it is told as one that
 * is not. */
static bool is_taken_along(const struct undo *undo, const struct undo_doc *doc)
{
    const struct undo_carried *at = doc->is_folder ? undo->carried : NULL;
    while (at != NULL && !str_equal(at->folder, doc->key.id)) {
        at = at->next;
    }
    return at != NULL;
}

static void leave_out_folders(struct undo *undo)
{
    struct undo_doc **at = &undo->first;
    while (*at != NULL) {
        if (is_taken_along(undo, *at)) {
            *at = (*at)->next;
        } else {
            at = &(*at)->next;
        }
    }
    undo->last = at;
}

int undo_select(struct undo *undo)
{
    int rc = NG_OK;
    undo->last = &undo->first;
    if (undo->recorded) {
        struct ng_str run = ng_str_of(undo->run);
        const struct ng_trail done = {.size = sizeof(done),
                                      .since = undo->what.until,
                                      .until = UINT64_MAX,
                                      .runs = {&run, 1},
                                      .spaces = undo->what.spaces};
        rc = select_walk(undo, &done, done_take);
    }
    if (rc == NG_OK && undo->changes != NULL) {
        rc = select_numbers(undo);
    } else if (rc == NG_OK) {
        rc = select_walk(undo, &undo->what, select_take);
    }
    leave_out_folders(undo);
    for (struct undo_doc *doc = undo->first; doc != NULL; doc = doc->next) {
        sort_revisions(doc);
    }
    return rc;
}
