/* SPDX-License-Identifier: MIT */
/* audit_read.c - the opening reads everything that the next fold may remove: entries that are
 * in no tile yet, and those of the last, partial bundle. Full bundles never change. */
#include "audit_read.h"

#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

#include "audit_disk.h"
#include "audit_key.h"
#include "audit_log.h"
#include "audit_pending.h"
#include "core/base/arena.h"
#include "core/base/str.h"

/* Bytes of the entries that are in no tile: one append may begin below the limit of folding. */
#define READER_PENDING_MAX ((size_t)AUDIT_PENDING_MAX + AUDIT_BATCH_MAX)

/* Entries that are in memory. */
struct entries {
    uint64_t first;
    size_t count;
    struct buf text;
    size_t *ends;
    size_t room;
};

struct audit_reader {
    int dir;
    uint64_t folded; /* entries of the checkpoint */
    uint64_t first;  /* entry that is left by pruning */
    struct entries pending, edge, bundle;
};

static struct ng_str entries_at(const struct entries *entries, size_t i)
{
    size_t begin = i > 0 ? entries->ends[i - 1] : 0;
    return str_make(entries->text.data + begin, entries->ends[i] - begin);
}

static int entries_add(struct entries *entries, struct ng_str text)
{
    if (entries->count == entries->room) {
        size_t room = entries->room > 0 ? 2 * entries->room : TLOG_TILE_WIDTH;
        size_t *grown = realloc(entries->ends, room * sizeof(*grown));
        if (grown == NULL) {
            return NG_EINTERNAL;
        }
        entries->ends = grown;
        entries->room = room;
    }
    int rc = buf_add_str(&entries->text, text);
    if (rc == NG_OK) {
        entries->ends[entries->count++] = entries->text.len;
    }
    return rc;
}

static void entries_clear(struct entries *entries)
{
    entries->first = 0;
    entries->count = 0;
    buf_clear(&entries->text);
}

static void entries_done(struct entries *entries)
{
    buf_done(&entries->text);
    free(entries->ends);
}

/* ---- opening ---- */

static int read_no_memory(struct buf *error)
{
    (void)buf_add_c(error, "the audit log: out of memory");
    return NG_EINTERNAL;
}

static int read_waiting(void *user, const struct audit_pending_entry *entry)
{
    struct audit_reader *reader = user;
    if (reader->pending.count == 0) {
        reader->pending.first = entry->number;
    }
    return entries_add(&reader->pending, entry->text);
}

static int read_pending(struct audit_reader *reader, struct buf *error)
{
    struct audit_pending pending;
    entries_clear(&reader->pending);
    int rc = audit_pending_look(reader->dir, &pending, error);
    if (rc == NG_OK && pending.count > 0) {
        rc = audit_pending_each(&pending, read_waiting, reader, error);
    }
    audit_pending_close(&pending);
    return rc;
}

static int read_bundle(const struct audit_reader *reader, uint64_t index,
                       struct entries *entries, struct buf *error)
{
    const struct audit_tiles tiles = {reader->dir, reader->folded, error};
    struct ng_str texts[TLOG_TILE_WIDTH];
    struct buf bundle;
    size_t count = 0;
    buf_init(&bundle, TLOG_BUNDLE_MAX);
    entries_clear(entries);
    int rc = audit_tiles_entries(&tiles, index, &bundle, texts, &count);
    for (size_t i = 0; rc == NG_OK && i < count; i++) {
        rc = entries_add(entries, texts[i]);
        if (rc != NG_OK) {
            rc = read_no_memory(error);
        }
    }
    if (rc == NG_OK) {
        entries->first = index << TLOG_TILE_BITS;
    } else {
        entries_clear(entries);
    }
    buf_done(&bundle);
    return rc;
}

/* The entries that wait are read before the checkpoint: those that a fold takes in between are
 * in its tiles. */
static int read_state(struct audit_reader *reader, const struct note_key *key,
                      struct buf *error)
{
    struct checkpoint checkpoint;
    bool is_new;
    entries_clear(&reader->edge);
    int rc = read_pending(reader, error);
    if (rc == NG_OK) {
        rc = audit_log_read_checkpoint(reader->dir, key, &checkpoint, &is_new, error);
    }
    if (rc != NG_OK) {
        return rc;
    }
    reader->folded = checkpoint.size;
    rc = audit_tiles_first(reader->dir, &reader->first, error);
    if (rc != NG_OK) {
        return rc;
    }
    if (reader->pending.count > 0 && reader->pending.first > reader->folded) {
        (void)buf_printf(error,
                         "the audit log's entries from %" PRIu64 " to %" PRIu64 " are missing",
                         reader->folded, reader->pending.first - 1);
        return NG_EFAILED;
    }
    if (reader->folded % TLOG_TILE_WIDTH > 0) {
        rc = read_bundle(reader, reader->folded >> TLOG_TILE_BITS, &reader->edge, error);
    }
    return rc;
}

int audit_reader_open(const char *path, struct audit_reader **ret, struct buf *error)
{
    struct note_key key;
    size_t told = error->len;
    struct audit_reader *reader = alloc_zeroed(1, sizeof(*reader));
    if (reader == NULL) {
        return read_no_memory(error);
    }
    reader->dir = -1;
    buf_init(&reader->pending.text, READER_PENDING_MAX);
    buf_init(&reader->edge.text, TLOG_BUNDLE_MAX);
    buf_init(&reader->bundle.text, TLOG_BUNDLE_MAX);
    int rc = audit_disk_open(path, false, &reader->dir, error);
    if (rc == NG_OK) {
        rc = audit_key_load_public(reader->dir, &key, error);
    }
    if (rc == NG_OK) {
        for (unsigned i = 0; i < AUDIT_READ_TRIES; i++) {
            buf_cut(error, told);
            rc = read_state(reader, &key, error);
            if (rc != NG_EFAILED) {
                break;
            }
        }
    }
    if (rc != NG_OK) {
        audit_reader_close(reader);
        return rc;
    }
    *ret = reader;
    return NG_OK;
}

void audit_reader_close(struct audit_reader *reader)
{
    if (reader == NULL) {
        return;
    }
    entries_done(&reader->pending);
    entries_done(&reader->edge);
    entries_done(&reader->bundle);
    if (reader->dir >= 0) {
        (void)close(reader->dir);
    }
    free(reader);
}

/* ---- reading ---- */

uint64_t audit_reader_size(const struct audit_reader *reader)
{
    uint64_t waiting = reader->pending.first + reader->pending.count;
    return waiting > reader->folded ? waiting : reader->folded;
}

uint64_t audit_reader_first(const struct audit_reader *reader)
{
    return reader->first;
}

static bool entries_have(const struct entries *entries, uint64_t number, struct ng_str *ret)
{
    if (number < entries->first || number - entries->first >= entries->count) {
        return false;
    }
    *ret = entries_at(entries, (size_t)(number - entries->first));
    return true;
}

int audit_reader_get(struct audit_reader *reader, uint64_t number, struct ng_str *ret,
                     struct buf *error)
{
    if (entries_have(&reader->bundle, number, ret) ||
        (number < reader->folded && entries_have(&reader->edge, number, ret)) ||
        (number >= reader->folded && entries_have(&reader->pending, number, ret))) {
        return NG_OK;
    }
    if (number >= reader->folded || number < reader->first) {
        return NG_ENOTFOUND;
    }
    int rc = read_bundle(reader, number >> TLOG_TILE_BITS, &reader->bundle, error);
    if (rc == NG_OK && !entries_have(&reader->bundle, number, ret)) {
        rc = NG_ENOTFOUND;
    }
    return rc;
}
