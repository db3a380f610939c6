/* SPDX-License-Identifier: MIT */
/* undo_select.c - the documents whose changes an undo takes back. */
#include <stdlib.h>

#include "core/base/minmax.h"
#include "core/base/str.h"
#include "core/call/gateway.h"
#include "core/dispatch/dispatch.h"
#include "core/history/trail.h"
#include "core/json/json.h"
#include "core/store/store.h"
#include "undo.h"

/* Numbers around that of an event of a move among which that of its other one is: both come
 * with one transaction. */
#define MOVE_NEAR 1000

/* Memory of the data of one event of an undo. */
#define DONE_DATA_MAX ((size_t)16 << 20)

bool undo_doc_is(const struct hash_link *link, const void *key)
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

static int doc_add_revision(struct undo *undo, struct undo_doc *doc, uint64_t revision)
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
    doc->revisions[doc->count++] = revision;
    return NG_OK;
}

static int doc_add(struct undo *undo, struct undo_doc *doc, const struct ng_event *event,
                   const struct undo_file_change *change)
{
    int rc = change->version != 0 ? doc_add_revision(undo, doc, change->version) : NG_OK;
    doc->first_seq = doc->first_seq == 0 ? event->seq : u64_min(doc->first_seq, event->seq);
    doc->last_seq = u64_max(doc->last_seq, event->seq);
    doc->is_file = change->is_file;
    doc->is_folder = change->is_folder;
    if (change->is_across || change->has_gap) {
        doc->refused = "not_kept";
    }
    bool moves = change->is_file && (change->from.len > 0 || change->across.len > 0);
    if (moves && event->seq > doc->moved_seq) {
        doc->across = change->across;
        doc->moved_space = doc->key.space;
        doc->moved_version = 0;
        doc->moved_seq = event->seq;
        doc->moved_at = change->version;
        doc->moved_from = change->from;
        doc->folder = change->folder;
    }
    doc->is_foreign = doc->is_foreign || !str_equal(event->agent, undo->call->caller.agent);
    return rc;
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
    struct ng_str moved_from, moved_to; /* the event at the old path of a move was there */
    int rc;
};

static int fail_many(struct undo *undo)
{
    return call_fail(undo->call, NG_ETOOLARGE,
                     "more than %zu documents, or %zu changes, are selected; take them back in "
                     "parts, by `since` and `until`, or by `collection`",
                     UNDO_DOCUMENTS_MAX, UNDO_CHANGES_MAX);
}

/* The document that the change counts for: of a file the stay at its path in which it was made.
 */
static int select_doc(struct undo *undo, const struct ng_event *event,
                      const struct undo_file_change *change, struct undo_doc **ret)
{
    uint64_t hash = doc_key_hash(&change->key);
    struct hash_link *link = hash_table_find(&undo->table, hash, undo_doc_is, &change->key);
    struct undo_doc *oldest = link != NULL ? HASH_ITEM(link, struct undo_doc, link) : NULL;
    *ret = NULL;
    for (struct undo_doc *at = oldest; at != NULL && event->seq >= at->moved_seq;
         at = at->later) {
        *ret = at;
    }
    if (*ret != NULL) {
        return NG_OK;
    }
    if (undo->doc_count == UNDO_DOCUMENTS_MAX) {
        return fail_many(undo);
    }
    if (oldest != NULL) {
        hash_table_remove(&undo->table, link);
    }
    struct undo_doc *doc = doc_new(undo, &undo->table, &change->key, event->key.collection);
    if (doc == NULL) {
        return call_no_memory(undo->call);
    }
    doc->later = oldest;
    *undo->last = doc;
    undo->last = &doc->next;
    undo->doc_count++;
    *ret = doc;
    return NG_OK;
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
    if (selecting->rc == NG_OK && change.to.len > 0) {
        selecting->moved_to = change.to;
        selecting->moved_from = arena_copy(&undo->call->arena, event->key.id);
        return 0;
    }
    if (selecting->rc == NG_OK) {
        selecting->rc = undo_move_note(undo, event, &change);
    }
    if (selecting->rc != NG_OK) {
        return 1;
    }
    undo->change_total++;
    add_agent(undo, event->agent);
    if (change.is_source) { /* counts by the event in the other space */
        return 0;
    }
    struct undo_doc *doc = NULL;
    selecting->rc = undo->change_total > UNDO_CHANGES_MAX
                        ? fail_many(undo)
                        : select_doc(undo, event, &change, &doc);
    if (doc != NULL) {
        doc->collection = collection;
        selecting->rc = doc_add(undo, doc, event, &change);
    }
    return selecting->rc != NG_OK;
}

/* ---- what an earlier part of this undo has done ---- */

/* The changes of a file at one path are told apart by the oldest of them. */
static uint64_t doc_begin(const struct undo_doc *doc)
{
    return doc->count > 0 ? doc->revisions[0] : 0;
}

static bool is_done(const struct hash_link *link, const void *user)
{
    const struct undo_doc *done = HASH_ITEM(link, struct undo_doc, link);
    const struct undo_doc *doc = user;
    return doc_key_equal(&done->key, &doc->key) && doc_begin(done) == doc_begin(doc);
}

static int done_add(struct undo *undo, const struct ng_key *key, const struct ng_value *of)
{
    int64_t begin = 0;
    struct undo_doc *done = doc_new(undo, &undo->done, key, key->collection);
    if (done == NULL) {
        return call_no_memory(undo->call);
    }
    bool has = json_integer(json_first(of), &begin) == NG_OK;
    return has ? doc_add_revision(undo, done, (uint64_t)begin) : NG_OK;
}

static int done_take(void *user, const struct ng_event *event)
{
    struct selecting *selecting = user;
    struct undo *undo = selecting->undo;
    const struct ng_value *data = NULL;
    struct undo_file_change change;
    struct arena arena;
    selecting->rc = undo_file_change(undo, event, &change);
    bool here = change.across.len == 0 || change.is_source; /* else the event there tells it */
    if (selecting->rc != NG_OK || !here || event->data.len == 0) {
        return selecting->rc != NG_OK;
    }
    arena_init(&arena, DONE_DATA_MAX);
    if (json_parse(&arena, event->data, JSON_DEPTH_DEFAULT, &data, NULL) == NG_OK) {
        const struct ng_value *at = undo_taken_next(data, NULL);
        for (; at != NULL && selecting->rc == NG_OK; at = undo_taken_next(data, at)) {
            struct ng_key key = change.key;
            key.id = str_or(json_get_text(at, "path"), key.id); /* it may have been followed */
            selecting->rc = done_add(undo, &key, json_get(at, "of"));
        }
    }
    arena_done(&arena);
    return selecting->rc != NG_OK;
}

static int leave_out_done(struct undo *undo)
{
    int rc = NG_OK;
    for (struct undo_doc *doc = undo->first; doc != NULL && rc == NG_OK; doc = doc->next) {
        uint64_t hash = doc_key_hash(&doc->key);
        doc->is_out = hash_table_find(&undo->done, hash, is_done, doc) != NULL;
        if (doc->is_out) { /* its old folder may be empty now */
            rc = undo_carry(undo, &undo->left, doc->key.id, doc->folder);
        }
    }
    return rc;
}

/* ---- walks ---- */

static int select_walk(struct selecting *selecting, const struct ng_trail *wanted,
                       ng_event_fn *take)
{
    struct undo *undo = selecting->undo;
    struct ng_trail what = *wanted;
    uint64_t next = what.until;
    int rc = NG_OK;
    while (rc == NG_OK && selecting->rc == NG_OK && next != 0) {
        what.until = next;
        rc = trail_walk(undo->call, &what, take, selecting, &next);
        if (rc == NG_OK && undo->call->pub.host->cancelled(&undo->call->pub)) {
            rc = call_fail(undo->call, NG_ECANCELLED, "cancelled; nothing was taken back");
        }
    }
    return rc != NG_OK ? rc : selecting->rc;
}

/* The event at the new path of a move, by that at the old one. */
struct nearest {
    struct selecting selecting;
    struct ng_str from;
    uint64_t seq;     /* of the one at the old path */
    uint64_t nearest; /* 0: there is none */
};

static uint64_t numbers_apart(uint64_t a, uint64_t b)
{
    return u64_max(a, b) - u64_min(a, b);
}

static int nearest_take(void *user, const struct ng_event *event)
{
    struct nearest *near = user;
    struct undo_file_change change;
    near->selecting.rc = undo_file_change(near->selecting.undo, event, &change);
    bool closer = near->nearest == 0 || numbers_apart(event->seq, near->seq) <
                                            numbers_apart(near->nearest, near->seq);
    if (closer && str_equal(change.from, near->from)) {
        near->nearest = event->seq;
    }
    return near->selecting.rc != NG_OK;
}

/* The number of the event at the old path of a move stands for the move. */
static int select_moved(struct selecting *selecting, uint64_t seq)
{
    struct undo *undo = selecting->undo;
    struct nearest near = {
        .selecting = {.undo = undo}, .from = selecting->moved_from, .seq = seq};
    struct ng_trail what = undo->what;
    what.id = selecting->moved_to;
    what.id_prefix = false;
    what.since = seq > MOVE_NEAR ? seq - MOVE_NEAR : 0;
    what.until = u64_min(seq + MOVE_NEAR, undo->what.until);
    int rc = select_walk(&near.selecting, &what, nearest_take);
    if (rc != NG_OK || near.nearest == 0) {
        return rc;
    }
    what.since = near.nearest - 1;
    what.until = near.nearest;
    return select_walk(selecting, &what, select_take);
}

static int select_number(struct undo *undo, uint64_t seq)
{
    struct selecting selecting = {.undo = undo};
    size_t before = undo->change_total;
    if (seq == 0 || seq > undo->what.until) {
        return call_fail(undo->call, NG_ENOTFOUND,
                         "`changes`: there is no change with the number %llu",
                         (unsigned long long)seq);
    }
    struct ng_trail what = undo->what;
    what.since = seq - 1;
    what.until = seq;
    int rc = select_walk(&selecting, &what, select_take);
    if (rc == NG_OK && selecting.moved_to.len > 0) {
        rc = select_moved(&selecting, seq);
    }
    if (rc == NG_OK && undo->change_total == before && undo->done.count == 0) {
        rc = call_fail(undo->call, NG_ENOTFOUND,
                       "`changes`: %llu is no change of a document that you may see and that "
                       "keeps revisions",
                       (unsigned long long)seq);
    }
    return rc;
}

static int by_number(const void *a, const void *b)
{
    uint64_t left = *(const uint64_t *)a;
    uint64_t right = *(const uint64_t *)b;
    return (left > right) - (left < right);
}

/* The newest first, as a walk gives them: a move is taken back before the one before it. */
static int select_numbers(struct undo *undo)
{
    size_t count = undo->change_count;
    uint64_t *numbers = arena_alloc(&undo->call->arena, (count + 1) * sizeof(*numbers));
    int rc = NG_OK;
    if (numbers == NULL || undo->changes == NULL) {
        return call_no_memory(undo->call);
    }
    if (count > 0) {
        memcpy(numbers, undo->changes, count * sizeof(*numbers));
        qsort(numbers, count, sizeof(*numbers), by_number);
    }
    for (size_t i = count; rc == NG_OK && i > 0; i--) {
        rc = select_number(undo, numbers[i - 1]);
    }
    return rc;
}

/* ---- changes that the caller may not see ---- */

struct checking {
    struct undo *undo;
    bool all;
    int rc;
};

static int check_take(void *user, const struct ng_event *event)
{
    struct checking *checking = user;
    struct undo *undo = checking->undo;
    const struct ng_collection *collection = NULL;
    struct undo_file_change change;
    if (!select_counts(undo, event, &collection)) {
        return 0;
    }
    checking->rc = undo_file_change(undo, event, &change);
    if (checking->rc != NG_OK || change.to.len > 0 || change.is_source) {
        return checking->rc != NG_OK;
    }
    uint64_t hash = doc_key_hash(&change.key);
    checking->all = event->seq <= undo->what.until &&
                    hash_table_find(&undo->table, hash, undo_doc_is, &change.key) != NULL;
    return !checking->all;
}

int undo_select_is_all(struct undo *undo, bool *ret_all)
{
    struct checking checking = {undo, true, NG_OK};
    const struct ng_trail what = {
        .size = sizeof(what), .until = UINT64_MAX, .runs = undo->what.runs};
    uint64_t next = 0;
    struct call *own = dispatch_child(undo->call);
    *ret_all = false;
    if (own == NULL) {
        return call_no_memory(undo->call);
    }
    call_take_key(own, NULL);
    own->caller.all_spaces = true;
    own->may_block = true;
    int rc = trail_walk(own, &what, check_take, &checking, &next);
    call_unref(own);
    if (rc != NG_OK) {
        return call_fail(undo->call, rc, "the changes of the run could not be read");
    }
    *ret_all = checking.rc == NG_OK && checking.all && next == 0;
    return checking.rc;
}

/* ---- the selection ---- */

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

/* A file that left for a space where its move is not selected: a conflict, with all changes. */
static int select_lone(struct undo *undo)
{
    const struct undo_across *at = undo_across_lone(undo, undo->across);
    for (; at != NULL; at = undo_across_lone(undo, at->next)) {
        uint64_t hash = doc_key_hash(&at->key);
        struct hash_link *link = hash_table_find(&undo->table, hash, undo_doc_is, &at->key);
        struct undo_doc *doc = link != NULL ? HASH_ITEM(link, struct undo_doc, link) : NULL;
        if (doc == NULL) {
            doc = doc_new(undo, &undo->table, &at->key, at->collection);
            if (doc == NULL) {
                return call_no_memory(undo->call);
            }
            *undo->last = doc;
            undo->last = &doc->next;
        }
        doc->is_file = true;
        doc->is_foreign = doc->is_foreign || at->is_foreign;
        doc->refused = undo_across_refusal(undo);
        int rc = doc_add_revision(undo, doc, at->version);
        if (rc != NG_OK) {
            return rc;
        }
    }
    return NG_OK;
}

static void sort_all(struct undo *undo)
{
    for (struct undo_doc *doc = undo->first; doc != NULL; doc = doc->next) {
        sort_revisions(doc);
    }
}

int undo_select(struct undo *undo)
{
    struct selecting selecting = {.undo = undo};
    int rc = NG_OK;
    undo->last = &undo->first;
    if (undo->recorded) {
        struct ng_str run = ng_str_of(undo->run);
        const struct ng_trail done = {.size = sizeof(done),
                                      .since = undo->what.until,
                                      .until = UINT64_MAX,
                                      .runs = {&run, 1},
                                      .spaces = undo->what.spaces};
        rc = select_walk(&selecting, &done, done_take);
    }
    if (rc == NG_OK && undo->changes != NULL) {
        rc = select_numbers(undo);
    } else if (rc == NG_OK) {
        rc = select_walk(&selecting, &undo->what, select_take);
    }
    sort_all(undo);
    if (rc == NG_OK) {
        rc = leave_out_done(undo);
    }
    if (rc == NG_OK) {
        rc = undo_moves_end(undo);
    }
    if (rc == NG_OK) {
        rc = select_lone(undo);
    }
    sort_all(undo);
    return rc;
}
