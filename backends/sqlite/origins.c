/* SPDX-License-Identifier: MIT */
/* origins.c - who made the changes of a transaction: a row of `trail` for each change, and one
 * of `origins` for all with the same shelf, agent, key, run and gateway. */
#include "core/base/minmax.h"
#include "txn.h"

enum { PART_AGENT, PART_KEY, PART_RUN, PART_GATEWAY, PARTS };

/* An origin of the changes of this transaction. */
struct origin {
    struct origin *next;  /* in its bucket */
    struct origin *later; /* in the order of first use */
    int64_t id, shelf;
    uint64_t first_seq, last_seq, changes;
    struct ng_str parts[PARTS]; /* in `texts` */
    char texts[];
};

static uint64_t hash_of(int64_t shelf, const struct ng_str *parts)
{
    uint64_t hash = UINT64_C(0xCBF29CE484222325) ^ (uint64_t)shelf;
    for (size_t i = 0; i < PARTS; i++) {
        for (size_t j = 0; j < parts[i].len; j++) {
            hash = (hash ^ (unsigned char)parts[i].data[j]) * UINT64_C(0x100000001B3);
        }
        hash ^= hash >> 31;
    }
    return hash ^ (hash >> 32);
}

static bool is_same(const struct origin *origin, int64_t shelf, const struct ng_str *parts)
{
    bool same = origin->shelf == shelf;
    for (size_t i = 0; i < PARTS && same; i++) {
        same = str_equal(origin->parts[i], parts[i]);
    }
    return same;
}

static struct origin *make(int64_t shelf, const struct ng_str *parts)
{
    size_t bytes = 0;
    for (size_t i = 0; i < PARTS; i++) {
        bytes += parts[i].len;
    }
    struct origin *origin = calloc(1, sizeof(*origin) + bytes);
    if (origin == NULL) {
        return NULL;
    }
    char *at = origin->texts;
    for (size_t i = 0; i < PARTS; i++) {
        if (parts[i].len > 0) {
            memcpy(at, parts[i].data, parts[i].len);
        }
        origin->parts[i] = str_of(at, parts[i].len);
        at += parts[i].len;
    }
    origin->shelf = shelf;
    return origin;
}

static void bind_origin(sqlite3_stmt *stmt, const struct origin *origin)
{
    (void)sqlite3_bind_int64(stmt, 1, origin->shelf);
    for (int i = 0; i < PARTS; i++) {
        (void)bind_text(stmt, 2 + i, origin->parts[i]);
    }
}

/* The number of its row; a new one gets the next. */
static int number(struct db *db, struct origin *origin)
{
    sqlite3_stmt *stmt = conn_stmt(db->writer, STMT_ORIGIN_FIND);
    if (stmt == NULL) {
        return NG_EINTERNAL;
    }
    bind_origin(stmt, origin);
    int rc = sqlite3_step(stmt);
    if (rc == SQLITE_ROW) {
        origin->id = sqlite3_column_int64(stmt, 0);
    } else if (rc == SQLITE_DONE) {
        origin->id = db->next_origin++;
    }
    (void)sqlite3_reset(stmt);
    return rc == SQLITE_ROW || rc == SQLITE_DONE ? NG_OK : NG_EINTERNAL;
}

static struct origin *find(struct txn *txn, int64_t shelf, const struct ng_str *parts)
{
    struct origin **bucket = &txn->origins[hash_of(shelf, parts) % ORIGIN_BUCKETS];
    for (struct origin *origin = *bucket; origin != NULL; origin = origin->next) {
        if (is_same(origin, shelf, parts)) {
            return origin;
        }
    }
    struct origin *origin = make(shelf, parts);
    if (origin == NULL || number(txn->db, origin) != NG_OK) {
        free(origin);
        return NULL;
    }
    origin->first_seq = UINT64_MAX;
    origin->next = *bucket;
    *bucket = origin;
    origin->later = txn->first_origin;
    txn->first_origin = origin;
    return origin;
}

int origins_add(struct txn *txn, int64_t shelf, const struct trail *row)
{
    const struct ng_origin *given = row->origin;
    const struct ng_str parts[PARTS] = {row->agent, given->key_id, given->run_id, row->gateway};
    struct origin *origin = find(txn, shelf, parts);
    sqlite3_stmt *stmt = conn_stmt(txn->db->writer, STMT_TRAIL_ADD);
    if (origin == NULL || stmt == NULL) {
        return NG_EINTERNAL;
    }
    origin->first_seq = u64_min(origin->first_seq, row->seq);
    origin->last_seq = u64_max(origin->last_seq, row->seq);
    origin->changes++;
    (void)bind_u64(stmt, 1, row->seq);
    (void)sqlite3_bind_int64(stmt, 2, row->doc);
    (void)sqlite3_bind_int64(stmt, 3, origin->id);
    if (given->has_lines) {
        (void)bind_u64(stmt, 4, given->lines_added);
        (void)bind_u64(stmt, 5, given->lines_removed);
    }
    if (given->request_id.len > 0) {
        (void)bind_text(stmt, 6, given->request_id);
    }
    return conn_run(txn->db->writer, stmt) == SQLITE_OK ? NG_OK : NG_EINTERNAL;
}

int origins_flush(struct txn *txn)
{
    int rc = NG_OK;
    for (const struct origin *origin = txn->first_origin; origin != NULL && rc == NG_OK;
         origin = origin->later) {
        sqlite3_stmt *stmt = conn_stmt(txn->db->writer, STMT_ORIGIN_SET);
        if (stmt == NULL) {
            return NG_EINTERNAL;
        }
        bind_origin(stmt, origin);
        (void)bind_u64(stmt, 2 + PARTS, origin->first_seq);
        (void)bind_u64(stmt, 3 + PARTS, origin->last_seq);
        (void)bind_u64(stmt, 4 + PARTS, origin->changes);
        (void)sqlite3_bind_int64(stmt, 5 + PARTS, origin->id);
        rc = conn_run(txn->db->writer, stmt) == SQLITE_OK ? NG_OK : NG_EINTERNAL;
    }
    origins_free(txn);
    return rc;
}

void origins_free(struct txn *txn)
{
    while (txn->first_origin != NULL) {
        struct origin *origin = txn->first_origin;
        txn->first_origin = origin->later;
        free(origin);
    }
    memset(txn->origins, 0, sizeof(txn->origins));
}
