/* SPDX-License-Identifier: MIT */
/* relay_move.c - one scan: entries of outboxes become events and versions, then leave the
 * outbox. After a crash at any step, the next scan finds the event by its revision and
 * continues from there.
 *
 * All collections are read at one moment: what was acknowledged before a change that the scan
 * has found is found too, in whichever collection it is, and gets a lower number. */
#include <stdio.h>
#include <time.h>

#include "core/base/array.h"
#include "relay.h"

/* Documents, bytes and entries of one round. */
#define SCAN_DOCS 200
#define SCAN_BYTES ((size_t)32 * 1024 * 1024)
#define ROUND_ENTRIES 1000

struct found {
    const struct db_collection *collection;
    bson_t *doc;
    uint64_t moved;     /* its last revision moved in this round */
    uint64_t moved_seq; /* the sequence number of that revision */
    uint64_t moved_order;
    uint64_t created; /* sequence number of the event that created it */
    uint64_t bytes;   /* of the moved entries */
    bool created_here;
};

struct entry {
    struct found *found;
    bson_t *doc; /* as it is in the outbox */
    uint64_t order, revision, seq;
    struct bytes ref;
};

struct round {
    struct mongo *db;
    struct found *docs;
    size_t doc_count, doc_cap, bytes;
    const struct db_collection *collection; /* the collection being scanned */
    size_t of_collection;
    uint64_t until; /* later changes wait: earlier ones were left for the next round */
    struct entry *entries;
    size_t count, cap;
    bool more, failed;
};

static void entry_done(struct entry *entry)
{
    bson_destroy(entry->doc);
    bytes_done(&entry->ref);
}

static void round_done(struct round *round)
{
    for (size_t i = 0; i < round->doc_count; i++) {
        bson_destroy(round->docs[i].doc);
    }
    for (size_t i = 0; i < round->count; i++) {
        entry_done(&round->entries[i]);
    }
    free(round->docs);
    free(round->entries);
}

static int keep_doc(void *user, const bson_t *doc)
{
    struct round *round = user;
    round->failed = array_reserve((void **)&round->docs, &round->doc_cap, round->doc_count + 1,
                                  sizeof(*round->docs), UINT32_MAX) != NG_OK;
    if (round->failed) {
        return 1;
    }
    struct found found = {.collection = round->collection, .doc = bson_copy(doc)};
    found.created = member_u64(doc, "notegate.created_event");
    round->docs[round->doc_count++] = found;
    round->bytes += doc->len;
    if (++round->of_collection == SCAN_DOCS || round->bytes > SCAN_BYTES) {
        round->more = true;
        round->until = u64_min(round->until, member_u64(doc, "notegate.waiting"));
        return 1;
    }
    return 0;
}

static bool scan(struct round *round, struct session *moment,
                 const struct db_collection *collection, struct fault *fault)
{
    round->collection = collection;
    round->of_collection = 0;
    return op_find(round->db, moment, collection->name, bson_of("notegate.waiting:{$gt:0}"),
                   bson_of("sort:{notegate.waiting:1}, limit:l, maxTimeMS:l, "
                           "projection:{outbox:1, space:1, notegate.id:1, notegate.waiting:1, "
                           "notegate.created_event:1}",
                           (int64_t)SCAN_DOCS, (int64_t)round->db->timeout_ms),
                   keep_doc, round, fault);
}

/* marks: of relay_mark(). */
static bool scan_marked(struct round *round, struct session *moment, uint64_t marks,
                        struct fault *fault)
{
    bool good = true;
    struct db_collection *collection = NULL;
    while (good && (collection = collection_next(round->db, collection)) != NULL) {
        if ((relay_mark(collection) & marks) != 0) {
            good = scan(round, moment, collection, fault) && !round->failed;
        }
    }
    return good;
}

/* The moment is that of the first read. What is marked since may have been acknowledged before
 * it; those marks stay for the next round. */
static bool scan_all(struct round *round, uint64_t dirty, struct fault *fault)
{
    struct mongo *db = round->db;
    struct session moment;
    uint64_t doubts = atomic_load(&db->doubts);
    if (!session_begin(db, SESSION_SNAPSHOT, &moment, fault)) {
        return false;
    }
    bool good = scan_marked(round, &moment, dirty, fault);
    uint64_t marked = atomic_load(&db->relay->dirty) & ~dirty;
    good = good && scan_marked(round, &moment, marked, fault);
    session_end(&moment);
    round->more = round->more || doubts_grew(db, &doubts);
    return good;
}

/* ---- the entries, oldest first ---- */

static bool add_entry(struct round *round, struct found *found, const bson_t *view,
                      uint64_t order)
{
    if (array_reserve((void **)&round->entries, &round->cap, round->count + 1,
                      sizeof(*round->entries), UINT32_MAX) != NG_OK) {
        return false;
    }
    struct entry *entry = &round->entries[round->count++];
    *entry = (struct entry){.found = found,
                            .order = order,
                            .doc = bson_copy(view),
                            .revision = member_u64(view, "revision")};
    return name_version(found->collection->name, member_str(found->doc, "_id"), entry->revision,
                        &entry->ref) == NG_OK;
}

static bool add_entries(struct round *round, struct found *found)
{
    bson_iter_t iter, list;
    bson_t view;
    uint64_t order = 0;
    if (!bson_iter_init_find(&iter, found->doc, "outbox") || !bson_iter_recurse(&iter, &list)) {
        return true;
    }
    while (bson_iter_next(&list)) {
        if (iter_doc(&list, &view)) {
            /* Clocks of two gateways may disagree; the order of revisions never does. */
            order = u64_max(member_u64(&view, "stamp"), order);
            if (!add_entry(round, found, &view, order)) {
                return false;
            }
        }
    }
    return true;
}

static int order_of(uint64_t a, uint64_t b)
{
    return (a > b) - (a < b);
}

static int compare(const void *left, const void *right)
{
    const struct entry *a = left;
    const struct entry *b = right;
    int order = order_of(a->order, b->order);
    if (order == 0) {
        order = (a->found > b->found) - (a->found < b->found);
    }
    if (order == 0) {
        order = order_of(a->revision, b->revision);
    }
    return order;
}

static bool list_entries(struct round *round)
{
    for (size_t i = 0; i < round->doc_count; i++) {
        if (!add_entries(round, &round->docs[i])) {
            return false;
        }
    }
    if (round->count > 0) {
        qsort(round->entries, round->count, sizeof(*round->entries), compare);
    }
    if (round->count > 0 && round->entries[0].order > round->until) {
        round->until = UINT64_MAX; /* the marks are lower than what waits */
    }
    while (round->count > ROUND_ENTRIES ||
           (round->count > 0 && round->entries[round->count - 1].order > round->until)) {
        entry_done(&round->entries[--round->count]);
        round->more = true;
    }
    return true;
}

/* ---- sequence numbers ---- */

static int keep_seq(void *user, const bson_t *event)
{
    uint64_t *seq = user;
    *seq = member_u64(event, "_id");
    return 1;
}

void last_seq_saw(struct mongo *db, uint64_t seq)
{
    uint64_t known = atomic_load(&db->last_seq);
    while (seq > known && !atomic_compare_exchange_weak(&db->last_seq, &known, seq)) {
    }
}

static bool read_newest(struct mongo *db, bson_t *filter, struct fault *fault)
{
    uint64_t last = 0;
    bool good = op_find(db, NULL, OWN_EVENTS, filter,
                        bson_of("sort:{_id:-1}, limit:l", (int64_t)1), keep_seq, &last, fault);
    last_seq_saw(db, last);
    return good;
}

bool last_seq_read(struct mongo *db, struct fault *fault)
{
    return read_newest(db, bson_new(), fault);
}

bool last_seq_follow(struct mongo *db, struct fault *fault)
{
    bson_t *newer = bson_of("quiet:F, _id:{$gt:u}", atomic_load(&db->last_seq));
    return read_newest(db, newer, fault);
}

/* The number after the last one given. */
static bool find_next_seq(struct mongo *db, struct fault *fault)
{
    bool good = last_seq_read(db, fault);
    db->relay->next_seq = atomic_load(&db->last_seq) + 1;
    return good;
}

static int match_event(void *user, const bson_t *event)
{
    struct round *round = user;
    struct ng_str ref = member_str(event, "ref");
    for (size_t i = 0; i < round->count; i++) {
        if (str_equal(bytes_str(&round->entries[i].ref), ref)) {
            round->entries[i].seq = member_u64(event, "_id");
        }
    }
    return 0;
}

/* Finds events that already exist, from a scan that was interrupted. */
static bool find_moved(struct round *round, struct fault *fault)
{
    bson_t list = BSON_INITIALIZER;
    for (size_t i = 0; i < round->count; i++) {
        bson_item(&list, (uint32_t)i, bytes_str(&round->entries[i].ref));
    }
    bool good = op_find(round->db, NULL, OWN_EVENTS, bson_of("ref:{$in:A}", &list), NULL,
                        match_event, round, fault);
    bson_destroy(&list);
    return good;
}

/* ---- moving ---- */

static bson_t *event_doc(const struct entry *entry)
{
    const bson_t *main = entry->found->doc;
    struct ng_event event = {.seq = entry->seq,
                             .time_ms = member_i64(entry->doc, "time"),
                             .key = {.collection = ng_str_of(entry->found->collection->name),
                                     .space = member_str(main, "space"),
                                     .id = member_str(main, "notegate.id")},
                             .revision = entry->revision,
                             .agent = member_str(entry->doc, "agent"),
                             .tool = member_str(entry->doc, "tool"),
                             .action = member_str(entry->doc, "action"),
                             .data = member_str(entry->doc, "data"),
                             .origin = origin_of(entry->doc)};
    bson_t *doc = event_bson(&event, bytes_str(&entry->ref), member_str(main, "_id"));
    struct ng_str gateway = member_str(entry->doc, "gateway");
    bson_add(doc, "quiet:b, batch:s", member_bool(entry->doc, "quiet"),
             member_str(entry->doc, "batch"));
    if (gateway.len > 0) {
        put_str(doc, "gateway", gateway);
    }
    return doc;
}

static bool insert_events(struct round *round, struct fault *fault)
{
    struct mongo *db = round->db;
    struct docs events = {.count = 0};
    uint64_t seq = db->relay->next_seq;
    for (size_t i = 0; i < round->count && events.rc == NG_OK; i++) {
        if (round->entries[i].seq == 0) {
            round->entries[i].seq = seq++;
            (void)docs_add(&events, event_doc(&round->entries[i]));
        }
    }
    bool good = events.rc == NG_OK &&
                op_insert_many(db, NULL, OWN_EVENTS, (void *)events.list, events.count, fault);
    if (good) {
        db->relay->next_seq = seq;
        atomic_fetch_add(&db->stat_relayed, events.count);
        last_seq_saw(db, seq - 1);
    }
    docs_done(&events);
    return good;
}

/* Notes that the entry of its document is moved. */
static void follow(const struct entry *entry)
{
    struct found *found = entry->found;
    if (member_bool(entry->doc, "creates")) {
        found->created = entry->seq;
        found->created_here = true;
    }
    found->moved = entry->revision;
    found->moved_seq = entry->seq;
    found->moved_order = entry->order;
    found->bytes += entry->doc->len;
}

static bool insert_versions(struct round *round, struct fault *fault)
{
    struct mongo *db = round->db;
    struct docs versions = {.count = 0};
    for (size_t i = 0; i < round->count && versions.rc == NG_OK; i++) {
        const struct entry *entry = &round->entries[i];
        follow(entry);
        if (member_i64(entry->doc, "kept") != KEPT_NONE) {
            (void)docs_add(&versions, version_bson(entry->found->collection->name,
                                                   member_str(entry->found->doc, "_id"),
                                                   bytes_str(&entry->ref), entry->seq,
                                                   entry->found->created, entry->doc));
        }
    }
    bool good = versions.rc == NG_OK;
    if (good &&
        !op_insert_many(db, NULL, OWN_VERSIONS, (void *)versions.list, versions.count, fault)) {
        /* Some may exist already: insert one by one. One that a majority does not have yet may
         * be rolled back, and its outbox is all that is left then. */
        for (size_t i = 0; i < versions.count && good; i++) {
            good = op_insert(db, NULL, OWN_VERSIONS, versions.list[i], fault) ||
                   (fault->duplicate && !fault->outcome_unknown);
        }
    }
    docs_done(&versions);
    return good;
}

/* If nothing came after the moved entries, empties the outbox and clears its mark; else removes
 * only those. The document waits since the entry after them, as its stamp cannot be lower. */
static void clear_one(mongoc_bulk_operation_t *bulk, const struct found *found, bool all,
                      int64_t now)
{
    bson_t *filter = name_filter(found->doc, false);
    bson_t *update;
    if (all) {
        bson_add(filter, "notegate.revision:u", found->moved);
        update = bson_of("$set:{outbox:[], notegate.seq:u, notegate.outbox_bytes:0, "
                         "notegate.created_event:u, notegate.moved:d}, "
                         "$unset:{notegate.waiting:E}",
                         found->moved_seq, found->created, now);
    } else {
        bson_add(filter, "outbox.revision:u", found->moved);
        bson_t *set = bson_of("notegate.waiting:u", found->moved_order + 1);
        if (found->created_here) {
            put_u64(set, "notegate.created_event", found->created);
        }
        update = bson_of("$pull:{outbox:{revision:{$lte:u}}}, $inc:{notegate.outbox_bytes:l}, "
                         "$set:D",
                         found->moved, -(int64_t)found->bytes, set);
        bson_destroy(set);
    }
    (void)mongoc_bulk_operation_update_one_with_opts(bulk, filter, update, NULL, NULL);
    bson_destroy(filter);
    bson_destroy(update);
}

/* One bulk over documents of one collection. *ret_missed: some of them had changed meanwhile.
 */
static bool clear_each(struct mongo *db, const struct found *docs, size_t count, bool all,
                       bool *ret_missed, struct fault *fault)
{
    mongoc_client_t *client = conn_acquire(db, fault);
    if (client == NULL) {
        return false;
    }
    int64_t sent = 0;
    bson_t reply;
    bson_error_t error;
    bool good = true;
    int64_t now = clock_unix_ms();
    mongoc_collection_t *target =
        mongoc_client_get_collection(client, db->database, docs->collection->name);
    mongoc_bulk_operation_t *bulk =
        mongoc_collection_create_bulk_operation_with_opts(target, NULL);
    for (size_t i = 0; i < count; i++) {
        if (docs[i].moved > 0) {
            clear_one(bulk, &docs[i], all, now);
            sent++;
        }
    }
    if (sent > 0) {
        good = mongoc_bulk_operation_execute(bulk, &reply, &error) != 0;
        if (good) {
            conn_good(db);
            *ret_missed = member_i64(&reply, "nMatched") < sent;
        } else {
            fault_set(db, fault, &error, &reply);
        }
        bson_destroy(&reply);
    }
    mongoc_bulk_operation_destroy(bulk);
    mongoc_collection_destroy(target);
    conn_release(db, client);
    return good;
}

/* The documents of a collection follow each other. */
static bool clear_outboxes(const struct round *round, struct fault *fault)
{
    bool good = true;
    size_t end = 0;
    for (size_t at = 0; at < round->doc_count && good; at = end) {
        const struct found *docs = &round->docs[at];
        bool missed = false;
        while (end < round->doc_count && round->docs[end].collection == docs->collection) {
            end++;
        }
        good = clear_each(round->db, docs, end - at, true, &missed, fault) &&
               (!missed || clear_each(round->db, docs, end - at, false, &missed, fault));
    }
    return good;
}

static bool move(struct round *round, struct fault *fault)
{
    if (!list_entries(round)) {
        return false;
    }
    if (round->count == 0) {
        return true;
    }
    if (round->db->relay->next_seq == 0 &&
        (!find_next_seq(round->db, fault) || !find_moved(round, fault))) {
        return false;
    }
    return insert_events(round, fault) && insert_versions(round, fault) &&
           clear_outboxes(round, fault);
}

/* One of 64 bits; collections may share one. */
uint64_t relay_mark(const struct db_collection *collection)
{
    uint64_t hash = 0;
    for (const char *c = collection->name; *c != '\0'; c++) {
        hash = hash * 31 + (unsigned char)*c;
    }
    return UINT64_C(1) << (hash % 64);
}

bool relay_move(struct mongo *db, uint64_t dirty, bool *ret_more)
{
    struct round round = {.db = db, .until = UINT64_MAX};
    struct fault fault = {0};
    bool good = scan_all(&round, dirty, &fault);
    atomic_store(&db->backlog, round.doc_count);
    good = good && move(&round, &fault);
    *ret_more = good && round.more;
    if (!good) {
        db->relay->next_seq = 0; /* another gateway may have given numbers */
    }
    round_done(&round);
    return good;
}
