/* SPDX-License-Identifier: MIT */
/* relay_move.c - one scan: entries of outboxes become events and versions, then leave the
 * outbox. After a crash at any step, the next scan finds the event by its revision and
 * continues from there. */
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
    uint64_t created;   /* sequence number of the event that created it */
    uint64_t bytes;     /* of the moved entries */
    bool created_here;
};

struct entry {
    struct found *found;
    const uint8_t *data; /* of the entry, in the document */
    uint32_t len;
    uint64_t order, revision, seq;
    struct bytes ref;
};

struct round {
    struct mongo *db;
    struct found *docs;
    size_t doc_count, doc_cap, bytes;
    const struct db_collection *collection; /* the collection being scanned */
    size_t of_collection;
    struct entry *entries;
    size_t count, cap;
    bool more, failed;
};

static void round_done(struct round *round)
{
    for (size_t i = 0; i < round->doc_count; i++) {
        bson_destroy(round->docs[i].doc);
    }
    for (size_t i = 0; i < round->count; i++) {
        bytes_done(&round->entries[i].ref);
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
        return 1;
    }
    return 0;
}

static bool scan(struct round *round, const struct db_collection *collection,
                 struct fault *fault)
{
    static const char *const wanted[] = {"outbox", "space", "notegate"};
    bson_t filter = BSON_INITIALIZER;
    bson_t opts = BSON_INITIALIZER;
    bson_t part;
    round->collection = collection;
    round->of_collection = 0;
    nest_i64(&filter, "notegate.waiting", "$gt", 0);
    nest_i32(&opts, "sort", "notegate.waiting", 1);
    BSON_APPEND_DOCUMENT_BEGIN(&opts, "projection", &part);
    for (size_t i = 0; i < NG_COUNT(wanted); i++) {
        (void)bson_append_int32(&part, wanted[i], -1, 1);
    }
    (void)bson_append_document_end(&opts, &part);
    BSON_APPEND_INT64(&opts, "limit", SCAN_DOCS);
    bool good = op_find(round->db, collection->name, &filter, &opts, keep_doc, round, fault);
    bson_destroy(&filter);
    bson_destroy(&opts);
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
    struct entry entry = {
        .found = found, .order = order, .data = bson_get_data(view), .len = view->len};
    entry.revision = member_u64(view, "revision");
    if (name_version(found->collection->name, member_str(found->doc, "_id"), entry.revision,
                     &entry.ref) != NG_OK) {
        bytes_done(&entry.ref);
        return false;
    }
    round->entries[round->count++] = entry;
    return true;
}

static bool add_entries(struct round *round, struct found *found)
{
    bson_iter_t iter, list;
    uint64_t order = 0;
    if (!bson_iter_init_find(&iter, found->doc, "outbox") || !bson_iter_recurse(&iter, &list)) {
        return true;
    }
    while (bson_iter_next(&list)) {
        const uint8_t *data = NULL;
        uint32_t len = 0;
        bson_t view;
        if (!BSON_ITER_HOLDS_DOCUMENT(&list)) {
            continue;
        }
        bson_iter_document(&list, &len, &data);
        if (!bson_init_static(&view, data, len)) {
            continue;
        }
        /* Clocks of two gateways may disagree; the order of revisions never does. */
        uint64_t stamp = member_u64(&view, "stamp");
        order = u64_max(stamp, order);
        if (!add_entry(round, found, &view, order)) {
            return false;
        }
    }
    return true;
}

static int compare(const void *left, const void *right)
{
    const struct entry *a = left;
    const struct entry *b = right;
    if (a->order != b->order) {
        if (a->order < b->order) {
            return -1;
        }
        return 1;
    }
    if (a->found != b->found) {
        if (a->found < b->found) {
            return -1;
        }
        return 1;
    }
    if (a->revision < b->revision) {
        return -1;
    }
    return a->revision > b->revision;
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
    while (round->count > ROUND_ENTRIES) {
        bytes_done(&round->entries[--round->count].ref);
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

bool last_seq_read(struct mongo *db, struct fault *fault)
{
    uint64_t last = 0;
    bson_t filter = BSON_INITIALIZER;
    bson_t opts = BSON_INITIALIZER;
    nest_i32(&opts, "sort", "_id", -1);
    BSON_APPEND_INT64(&opts, "limit", 1);
    bool good = op_find(db, OWN_EVENTS, &filter, &opts, keep_seq, &last, fault);
    bson_destroy(&filter);
    bson_destroy(&opts);
    uint64_t known = atomic_load(&db->last_seq);
    while (last > known && !atomic_compare_exchange_weak(&db->last_seq, &known, last)) {
    }
    return good;
}

/* The number after the last one given. */
static bool find_next_seq(struct mongo *db, struct fault *fault)
{
    bool good = last_seq_read(db, fault);
    db->relay.next_seq = atomic_load(&db->last_seq) + 1;
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
    bson_t filter = BSON_INITIALIZER;
    bson_t part, list;
    char digits[16];
    BSON_APPEND_DOCUMENT_BEGIN(&filter, "ref", &part);
    BSON_APPEND_ARRAY_BEGIN(&part, "$in", &list);
    for (size_t i = 0; i < round->count; i++) {
        const char *key = NULL;
        (void)bson_uint32_to_string((uint32_t)i, &key, digits, sizeof(digits));
        put_str(&list, key, bytes_str(&round->entries[i].ref));
    }
    (void)bson_append_array_end(&part, &list);
    (void)bson_append_document_end(&filter, &part);
    bool good = op_find(round->db, OWN_EVENTS, &filter, NULL, match_event, round, fault);
    bson_destroy(&filter);
    return good;
}

/* ---- moving ---- */

/* Built for each use, as a libbson view points into itself. */
static void entry_view(const struct entry *entry, bson_t *ret)
{
    if (!bson_init_static(ret, entry->data, entry->len)) {
        bson_init(ret); /* cannot happen: it was checked before */
    }
}

static bson_t *event_doc(const struct entry *entry)
{
    bson_t view;
    entry_view(entry, &view);
    bson_t *doc = bson_new();
    put_u64(doc, "_id", entry->seq);
    put_str(doc, "ref", bytes_str(&entry->ref));
    BSON_APPEND_UTF8(doc, "collection", entry->found->collection->name);
    put_str(doc, "document", member_str(entry->found->doc, "_id"));
    put_str(doc, "space", member_str(entry->found->doc, "space"));
    put_str(doc, "id", member_str(entry->found->doc, "notegate.id"));
    put_u64(doc, "revision", entry->revision);
    BSON_APPEND_DATE_TIME(doc, "time", member_i64(&view, "time"));
    put_str(doc, "agent", member_str(&view, "agent"));
    put_str(doc, "tool", member_str(&view, "tool"));
    put_str(doc, "action", member_str(&view, "action"));
    struct ng_str data = member_str(&view, "data");
    if (data.data != NULL) {
        put_str(doc, "data", data);
    }
    BSON_APPEND_BOOL(doc, "quiet", member_bool(&view, "quiet"));
    put_str(doc, "batch", member_str(&view, "batch"));
    return doc;
}

static bson_t *version_doc(const struct entry *entry, uint64_t created)
{
    bson_t view;
    entry_view(entry, &view);
    bson_t *doc = bson_new();
    put_str(doc, "_id", bytes_str(&entry->ref));
    BSON_APPEND_UTF8(doc, "collection", entry->found->collection->name);
    put_str(doc, "document", member_str(entry->found->doc, "_id"));
    put_u64(doc, "seq", entry->seq);
    put_u64(doc, "created_seq", created);
    (void)bson_concat(doc, &view);
    return doc;
}

static void docs_free(const bson_t **docs, bson_t **made, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        bson_destroy(made[i]);
    }
    free(docs);
    free(made);
}

static bool insert_events(struct round *round, struct fault *fault)
{
    struct mongo *db = round->db;
    const bson_t **docs = calloc(round->count + 1, sizeof(*docs));
    bson_t **made = calloc(round->count + 1, sizeof(*made));
    size_t count = 0;
    uint64_t seq = db->relay.next_seq;
    bool good = docs != NULL && made != NULL;
    for (size_t i = 0; i < round->count && good; i++) {
        if (round->entries[i].seq == 0) {
            round->entries[i].seq = seq++;
            docs[count] = made[count] = event_doc(&round->entries[i]);
            count++;
        }
    }
    good = good && op_insert_many(db, OWN_EVENTS, docs, count, true, fault);
    if (good) {
        db->relay.next_seq = seq;
        atomic_fetch_add(&db->stat_relayed, count);
        if (seq - 1 > atomic_load(&db->last_seq)) {
            atomic_store(&db->last_seq, seq - 1);
        }
    }
    docs_free(docs, made, count);
    return good;
}

/* Sets created_seq of each entry, and what has been moved of its document. */
static void follow(struct entry *entry, uint64_t *ret_created)
{
    struct found *found = entry->found;
    bson_t view;
    entry_view(entry, &view);
    if (member_bool(&view, "creates")) {
        found->created = entry->seq;
        found->created_here = true;
    }
    found->moved = entry->revision;
    found->moved_seq = entry->seq;
    found->bytes += entry->len;
    *ret_created = found->created;
}

static bool insert_versions(struct round *round, struct fault *fault)
{
    const bson_t **docs = calloc(round->count + 1, sizeof(*docs));
    bson_t **made = calloc(round->count + 1, sizeof(*made));
    size_t count = 0;
    bool good = docs != NULL && made != NULL;
    for (size_t i = 0; i < round->count && good; i++) {
        uint64_t created = 0;
        bson_t view;
        entry_view(&round->entries[i], &view);
        follow(&round->entries[i], &created);
        if (member_i64(&view, "kept") != KEPT_NONE) {
            docs[count] = made[count] = version_doc(&round->entries[i], created);
            count++;
        }
    }
    if (good && !op_insert_many(round->db, OWN_VERSIONS, docs, count, true, fault)) {
        /* Some may exist already: insert one by one. */
        for (size_t i = 0; i < count && good; i++) {
            good = op_insert(round->db, OWN_VERSIONS, docs[i], fault) || fault->duplicate;
        }
    }
    docs_free(docs, made, count);
    return good;
}

/* If nothing came after the moved entries: empties the outbox and clears its mark. */
static void clear_all(mongoc_bulk_operation_t *bulk, const struct found *found, int64_t now)
{
    bson_t filter = BSON_INITIALIZER;
    bson_t update = BSON_INITIALIZER;
    bson_t part, list;
    put_str(&filter, "_id", member_str(found->doc, "_id"));
    put_u64(&filter, "notegate.revision", found->moved);
    BSON_APPEND_DOCUMENT_BEGIN(&update, "$set", &part);
    BSON_APPEND_ARRAY_BEGIN(&part, "outbox", &list);
    (void)bson_append_array_end(&part, &list);
    put_u64(&part, "notegate.seq", found->moved_seq);
    put_u64(&part, "notegate.outbox_bytes", 0);
    put_u64(&part, "notegate.created_event", found->created);
    BSON_APPEND_DATE_TIME(&part, "notegate.moved", now);
    (void)bson_append_document_end(&update, &part);
    nest_text(&update, "$unset", "notegate.waiting", "");
    (void)mongoc_bulk_operation_update_one_with_opts(bulk, &filter, &update, NULL, NULL);
    bson_destroy(&filter);
    bson_destroy(&update);
}

/* If something came after the moved entries: removes only those. */
static void clear_some(mongoc_bulk_operation_t *bulk, const struct found *found)
{
    bson_t filter = BSON_INITIALIZER;
    bson_t update = BSON_INITIALIZER;
    bson_t part, pull;
    put_str(&filter, "_id", member_str(found->doc, "_id"));
    put_u64(&filter, "outbox.revision", found->moved);
    BSON_APPEND_DOCUMENT_BEGIN(&update, "$pull", &part);
    BSON_APPEND_DOCUMENT_BEGIN(&part, "outbox", &pull);
    nest_u64(&pull, "revision", "$lte", found->moved);
    (void)bson_append_document_end(&part, &pull);
    (void)bson_append_document_end(&update, &part);
    nest_i64(&update, "$inc", "notegate.outbox_bytes", -(int64_t)found->bytes);
    if (found->created_here) {
        nest_u64(&update, "$set", "notegate.created_event", found->created);
    }
    (void)mongoc_bulk_operation_update_one_with_opts(bulk, &filter, &update, NULL, NULL);
    bson_destroy(&filter);
    bson_destroy(&update);
}

/* One bulk over the collection's documents. *ret_missed: some of them had changed meanwhile. */
static bool clear_each(struct round *round, const struct db_collection *collection, bool all,
                       bool *ret_missed, struct fault *fault)
{
    mongoc_client_t *client = conn_acquire(round->db, fault);
    if (client == NULL) {
        return false;
    }
    int64_t count = 0;
    bson_t reply;
    bson_error_t error;
    bool good = true;
    int64_t now = clock_unix_ms();
    mongoc_collection_t *target =
        mongoc_client_get_collection(client, round->db->database, collection->name);
    mongoc_bulk_operation_t *bulk =
        mongoc_collection_create_bulk_operation_with_opts(target, NULL);
    for (size_t i = 0; i < round->doc_count; i++) {
        if (round->docs[i].collection == collection && round->docs[i].moved > 0) {
            if (all) {
                clear_all(bulk, &round->docs[i], now);
            } else {
                clear_some(bulk, &round->docs[i]);
            }
            count++;
        }
    }
    if (count > 0) {
        good = mongoc_bulk_operation_execute(bulk, &reply, &error) != 0;
        if (good) {
            conn_good(round->db);
            *ret_missed = member_i64(&reply, "nMatched") < count;
        } else {
            fault_set(round->db, fault, &error, &reply);
        }
        bson_destroy(&reply);
    }
    mongoc_bulk_operation_destroy(bulk);
    mongoc_collection_destroy(target);
    conn_release(round->db, client);
    return good;
}

static bool clear_outboxes(struct round *round, const struct db_collection *collection,
                           struct fault *fault)
{
    bool missed = false;
    if (!clear_each(round, collection, true, &missed, fault)) {
        return false;
    }
    return !missed || clear_each(round, collection, false, &missed, fault);
}

static bool move(struct round *round, struct db_collection **list, size_t count,
                 struct fault *fault)
{
    struct relay *relay = &round->db->relay;
    if (!list_entries(round)) {
        return false;
    }
    if (relay->next_seq == 0 && !find_next_seq(round->db, fault)) {
        return false;
    }
    if (round->count == 0) {
        return true;
    }
    if (relay->recheck && !find_moved(round, fault)) {
        return false;
    }
    if (!insert_events(round, fault) || !insert_versions(round, fault)) {
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        bool any = false;
        for (size_t j = 0; j < round->doc_count && !any; j++) {
            any = round->docs[j].collection == list[i];
        }
        if (any && !clear_outboxes(round, list[i], fault)) {
            return false;
        }
    }
    return true;
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

bool relay_move(struct mongo *db, uint64_t dirty)
{
    size_t count = 0;
    bool good = true;
    bool more = true;
    struct db_collection **list = collections_list(db, &count);
    while (list != NULL && good && more && atomic_load(&db->relay.owner)) {
        struct round round = {.db = db};
        struct fault fault = {0};
        for (size_t i = 0; i < count && good; i++) {
            if ((relay_mark(list[i]) & dirty) != 0) {
                good = scan(&round, list[i], &fault) && !round.failed;
            }
        }
        atomic_store(&db->backlog, round.doc_count);
        good = good && move(&round, list, count, &fault);
        more = round.more;
        db->relay.recheck = !good;
        if (!good) {
            db->relay.next_seq = 0; /* another gateway may have given numbers */
        }
        round_done(&round);
    }
    free(list);
    return good && list != NULL;
}

void relay_begin(struct mongo *db)
{
    struct fault fault;
    (void)last_seq_read(db, &fault);
}
