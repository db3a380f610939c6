/* SPDX-License-Identifier: MIT */
/* origins.c - the origins of changes: a row of `trail` for each change, and one of `origins`
 * for all with the same shelf, agent, key, run and gateway. Those that were used last are kept
 * in memory from one transaction to the next, so that a change of a known run needs no look-up.
 */
#include "core/base/hash.h"
#include "core/base/minmax.h"
#include "txn.h"

/* Origins that are kept between transactions; with more, all are forgotten. */
#define ORIGINS_KEPT_MAX 1024

enum { PART_AGENT, PART_KEY, PART_RUN, PART_GATEWAY, PARTS };

struct origin {
    struct hash_link link;
    struct origin *next; /* with changes of this transaction */
    int64_t id, shelf;
    bool is_stored;                        /* it has a row */
    uint64_t first_seq, last_seq, changes; /* of this transaction */
    struct ng_str parts[PARTS];            /* in `texts` */
    char texts[];
};

/* The key of an origin. */
struct wanted_origin {
    int64_t shelf;
    struct ng_str parts[PARTS];
};

static uint64_t origin_hash(const struct wanted_origin *wanted)
{
    uint64_t hash = hash_fnv_u64(HASH_FNV_BASIS, (uint64_t)wanted->shelf);
    for (size_t i = 0; i < PARTS; i++) {
        hash = hash_fnv(hash_fnv_u64(hash, wanted->parts[i].len), wanted->parts[i]);
    }
    return hash;
}

static bool origin_is(const struct hash_link *link, const void *key)
{
    const struct origin *origin = HASH_ITEM(link, struct origin, link);
    const struct wanted_origin *wanted = key;
    bool same = origin->shelf == wanted->shelf;
    for (size_t i = 0; i < PARTS && same; i++) {
        same = str_equal(origin->parts[i], wanted->parts[i]);
    }
    return same;
}

static struct origin *origin_make(const struct wanted_origin *wanted)
{
    size_t bytes = 0;
    for (size_t i = 0; i < PARTS; i++) {
        bytes += wanted->parts[i].len;
    }
    struct origin *origin = calloc(1, sizeof(*origin) + bytes);
    if (origin == NULL) {
        return NULL;
    }
    char *at = origin->texts;
    for (size_t i = 0; i < PARTS; i++) {
        origin->parts[i] = str_move_in(&at, wanted->parts[i]);
    }
    origin->shelf = wanted->shelf;
    return origin;
}

static void origin_bind(sqlite3_stmt *stmt, const struct origin *origin)
{
    (void)sqlite3_bind_int64(stmt, 1, origin->shelf);
    for (int i = 0; i < PARTS; i++) {
        (void)bind_text(stmt, 2 + i, origin->parts[i]);
    }
}

/* The number of its row; a new one gets the next. */
static int origin_number(struct db *db, struct origin *origin)
{
    sqlite3_stmt *stmt = conn_stmt(db->writer, STMT_ORIGIN_FIND);
    if (stmt == NULL) {
        return NG_EINTERNAL;
    }
    origin_bind(stmt, origin);
    int rc = sqlite3_step(stmt);
    if (rc == SQLITE_ROW) {
        origin->id = sqlite3_column_int64(stmt, 0);
        origin->is_stored = true;
    } else if (rc == SQLITE_DONE) {
        origin->id = db->next_origin++;
    }
    (void)sqlite3_reset(stmt);
    return rc == SQLITE_ROW || rc == SQLITE_DONE ? NG_OK : NG_EINTERNAL;
}

static struct origin *origin_find(struct db *db, const struct wanted_origin *wanted)
{
    uint64_t hash = origin_hash(wanted);
    struct hash_link *link = hash_table_find(&db->origins, hash, origin_is, wanted);
    if (link != NULL) {
        return HASH_ITEM(link, struct origin, link);
    }
    struct origin *origin = origin_make(wanted);
    if (origin == NULL || origin_number(db, origin) != NG_OK ||
        hash_table_add(&db->origins, &origin->link, hash) != NG_OK) {
        free(origin);
        return NULL;
    }
    return origin;
}

int origins_add(struct db *db, int64_t shelf, const struct trail *row)
{
    const struct ng_origin *given = row->origin;
    const struct wanted_origin wanted = {
        shelf, {row->agent, given->key_id, given->run_id, row->gateway}};
    struct origin *origin = origin_find(db, &wanted);
    sqlite3_stmt *stmt = conn_stmt(db->writer, STMT_TRAIL_ADD);
    if (origin == NULL || stmt == NULL) {
        return NG_EINTERNAL;
    }
    if (origin->changes == 0) {
        origin->first_seq = row->seq;
        origin->next = NULL;
        *db->last_changed = origin;
        db->last_changed = &origin->next;
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
    return conn_run(db->writer, stmt) == SQLITE_OK ? NG_OK : NG_EINTERNAL;
}

static int origin_flush(struct db *db, struct origin *origin)
{
    sqlite3_stmt *stmt =
        conn_stmt(db->writer, origin->is_stored ? STMT_ORIGIN_UPDATE : STMT_ORIGIN_ADD);
    if (stmt == NULL) {
        return NG_EINTERNAL;
    }
    if (!origin->is_stored) {
        origin_bind(stmt, origin);
    }
    (void)sqlite3_bind_int64(stmt, 2 + PARTS, origin->id);
    (void)bind_u64(stmt, 3 + PARTS, origin->first_seq);
    (void)bind_u64(stmt, 4 + PARTS, origin->last_seq);
    (void)bind_u64(stmt, 5 + PARTS, origin->changes);
    if (conn_run(db->writer, stmt) != SQLITE_OK) {
        return NG_EINTERNAL;
    }
    origin->is_stored = true;
    origin->last_seq = origin->changes = 0;
    return NG_OK;
}

int origins_flush(struct db *db)
{
    for (struct origin *at = db->changed_origins; at != NULL; at = at->next) {
        if (origin_flush(db, at) != NG_OK) {
            return NG_EINTERNAL; /* after a rollback by sqlite none is left */
        }
    }
    db->changed_origins = NULL;
    db->last_changed = &db->changed_origins;
    if (db->origins.count > ORIGINS_KEPT_MAX) {
        origins_forget(db);
    }
    return NG_OK;
}

void origins_forget(void *user)
{
    struct db *db = user;
    struct hash_link *link = hash_table_first(&db->origins);
    while (link != NULL) {
        struct hash_link *next = hash_table_next(&db->origins, link);
        free(HASH_ITEM(link, struct origin, link));
        link = next;
    }
    hash_table_done(&db->origins);
    db->changed_origins = NULL;
    db->last_changed = &db->changed_origins;
}
