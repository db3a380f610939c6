/* SPDX-License-Identifier: MIT */
/* splice.c - contents: the hash that verify compares, and reading a revision along its chain.
 */
#include "db.h"

#include <endian.h>

/* Two 64-bit lanes, eight bytes a step, each lane a multiply and rotate with constants of its
 * own. It finds damage; it does not withstand someone who makes collisions on purpose. */
#define LANE_A UINT64_C(0x9E3779B97F4A7C15)
#define LANE_B UINT64_C(0xC2B2AE3D27D4EB4F)

static inline uint64_t rotate(uint64_t value, unsigned bits)
{
    return (value << bits) | (value >> (64 - bits));
}

static inline uint64_t load_le(const unsigned char *at, size_t count)
{
    uint64_t word = 0;
    for (size_t i = 0; i < count; i++) {
        word |= (uint64_t)at[i] << (8 * i);
    }
    return word;
}

/* Eight bytes at once. */
static inline uint64_t load_word(const unsigned char *at)
{
    uint64_t word;
    memcpy(&word, at, sizeof(word));
    return le64toh(word);
}

static uint64_t mix(uint64_t value)
{
    value ^= value >> 32;
    value *= UINT64_C(0xD6E8FEB86659FD93);
    value ^= value >> 29;
    value *= UINT64_C(0xA0761D6478BD642F);
    return value ^ (value >> 32);
}

static void hash_part(uint64_t lanes[2], struct ng_str part)
{
    const unsigned char *at = (const unsigned char *)part.data;
    size_t left = part.len;
    while (left > 0) {
        size_t count = left < 8 ? left : 8;
        uint64_t word = count == 8 ? load_word(at) : load_le(at, count);
        lanes[0] = rotate(lanes[0] ^ (word * LANE_A), 29) * LANE_B;
        lanes[1] = rotate(lanes[1] + (word ^ LANE_B), 37) * LANE_A;
        at += count;
        left -= count;
    }
    lanes[0] = mix(lanes[0] ^ (uint64_t)part.len);
    lanes[1] = mix(lanes[1] + (uint64_t)part.len * LANE_B);
}

void content_hash(struct ng_str json, struct ng_str text, bool deleted,
                  unsigned char ret[HASH_BYTES])
{
    uint64_t lanes[2] = {LANE_A, LANE_B ^ (deleted ? 1U : 0U)};
    hash_part(lanes, json);
    hash_part(lanes, text);
    uint64_t a = mix(lanes[0] + rotate(lanes[1], 17));
    uint64_t b = mix(lanes[1] ^ a);
    for (unsigned i = 0; i < 8; i++) {
        ret[i] = (unsigned char)(a >> (8 * i));
        ret[8 + i] = (unsigned char)(b >> (8 * i));
    }
}

/* Applies the row of LOG_CHAIN that the statement stands on. */
static int state_apply(struct state *state, sqlite3_stmt *stmt)
{
    struct ng_str json = column_str(stmt, 4);
    struct ng_str text = column_str(stmt, 7);
    int rc;
    if (sqlite3_column_int(stmt, 1) == LOG_WHOLE) {
        rc = bytes_set(&state->json, json);
        if (rc == NG_OK) {
            rc = bytes_set(&state->text, text);
        }
    } else {
        rc = bytes_splice(&state->json, column_u64(stmt, 2), column_u64(stmt, 3), json);
        if (rc == NG_OK) {
            rc = bytes_splice(&state->text, column_u64(stmt, 5), column_u64(stmt, 6), text);
        }
    }
    state->revision = column_u64(stmt, 0);
    return rc;
}

/* The whole copy that the way to `revision` begins at. */
static int find_start(struct conn *conn, int64_t doc, uint64_t revision, uint64_t *ret)
{
    sqlite3_stmt *stmt = conn_stmt(conn, STMT_LOG_START);
    if (stmt == NULL) {
        return NG_EINTERNAL;
    }
    sqlite3_bind_int64(stmt, 1, doc);
    bind_u64(stmt, 2, revision);
    int rc = sqlite3_step(stmt);
    if (rc == SQLITE_ROW) {
        *ret = column_u64(stmt, 0);
        rc = SQLITE_DONE;
    }
    sqlite3_reset(stmt);
    return rc == SQLITE_DONE ? NG_OK : NG_EINTERNAL;
}

int state_load(struct conn *conn, int64_t doc, uint64_t revision, struct state *state)
{
    uint64_t start = 0;
    bool onward = state->doc == doc && state->revision <= revision;
    int rc = find_start(conn, doc, revision, &start);
    if (rc != NG_OK) {
        return rc;
    }
    if (start == 0) {
        return NG_EUNAVAILABLE; /* a splice without anything to lay it on */
    }
    if (onward && state->revision == revision) {
        return NG_OK;
    }
    if (onward && state->revision >= start) {
        start = state->revision + 1;
    } else {
        state->revision = 0;
    }
    state->doc = doc;
    sqlite3_stmt *stmt = conn_stmt(conn, STMT_LOG_CHAIN);
    if (stmt == NULL) {
        state->doc = 0;
        return NG_EINTERNAL;
    }
    sqlite3_bind_int64(stmt, 1, doc);
    bind_u64(stmt, 2, start);
    bind_u64(stmt, 3, revision);
    int step = SQLITE_DONE;
    while (rc == NG_OK && (step = sqlite3_step(stmt)) == SQLITE_ROW) {
        rc = state_apply(state, stmt);
    }
    sqlite3_reset(stmt);
    if (rc == NG_OK && step != SQLITE_DONE) {
        rc = NG_EINTERNAL;
    }
    if (rc == NG_OK && state->revision != revision) {
        rc = NG_ENOTFOUND;
    }
    if (rc != NG_OK) {
        state->doc = 0;
    }
    return rc;
}

void state_done(struct state *state)
{
    bytes_done(&state->json);
    bytes_done(&state->text);
    state->doc = 0;
}
