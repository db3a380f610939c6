/* SPDX-License-Identifier: MIT */
/* audit_log.c - appends and folds. After a failure the state in memory is dropped, and the next
 * step loads what is on the disk. */
#include "audit_log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "audit_disk.h"
#include "audit_key.h"
#include "audit_pending.h"
#include "core/base/arena.h"
#include "core/base/str.h"

#define LOG_TILE_FOLDER "tile"
#define LOG_TILE_MODE (S_IRUSR | S_IWUSR)

/* The last, partial tile of a level. */
struct log_edge {
    size_t width;
    bool changed; /* since the last fold */
    struct tlog_hash hashes[TLOG_TILE_WIDTH];
};

struct audit_log {
    int dir;
    bool is_stale;    /* a step failed: load before the next */
    bool has_news;    /* a checkpoint is due even without entries: there is none yet */
    uint64_t durable; /* entries, with those in `pending` */
    struct note_signer signer;
    struct checkpoint checkpoint;
    struct audit_pending pending;
    uint64_t folded; /* entries in tiles and edges; ahead of the checkpoint during a fold */
    struct log_edge edges[TLOG_LEVELS];
    struct buf bundle;               /* the last, partial bundle */
    struct audit_disk_batch written; /* tiles of a fold */
    /* The folders that files were written to last, by level: they are durable. */
    char folders[TLOG_LEVELS + 1][TLOG_PATH_SIZE];
};

uint64_t audit_log_size(const struct audit_log *log)
{
    return log->durable;
}

struct checkpoint audit_log_checkpoint(const struct audit_log *log)
{
    return log->checkpoint;
}

const struct note_key *audit_log_key(const struct audit_log *log)
{
    return &log->signer.key;
}

static int log_no_memory(struct buf *error)
{
    (void)buf_add_c(error, "the audit log: out of memory");
    return NG_EINTERNAL;
}

static int log_damaged(struct buf *error, const char *what)
{
    (void)buf_printf(
        error,
        "the audit log is damaged: %s; `notegate audit verify` tells more. Restore "
        "its folder from a backup, or move it away to begin a new log",
        what);
    return NG_EFAILED;
}

/* ---- loading ---- */

int audit_log_read_checkpoint(int dir, const struct note_key *key, struct checkpoint *ret,
                              bool *ret_is_new, struct buf *error)
{
    struct buf note;
    *ret = (struct checkpoint){.size = 0};
    buf_init(&note, NOTE_BYTES_MAX);
    int rc = audit_disk_read(dir, AUDIT_CHECKPOINT_FILE, &note);
    *ret_is_new = rc == NG_ENOTFOUND;
    if (rc == NG_OK) {
        rc = checkpoint_open(buf_str(&note), key, ret);
        if (rc == NG_ENOTFOUND) {
            (void)buf_printf(error,
                             "the audit log's checkpoint is not signed by its key %s+%08x",
                             key->name, key->id);
            rc = NG_EFAILED;
        } else if (rc == NG_EFAILED) {
            (void)buf_printf(
                error,
                "the signature of the audit log's checkpoint is not that of its key "
                "%s+%08x",
                key->name, key->id);
        } else if (rc == NG_EINVAL) {
            (void)buf_add_c(error, "the audit log's checkpoint is no signed note of this log");
            rc = NG_EFAILED;
        } else if (rc != NG_OK) {
            rc = log_no_memory(error);
        }
    } else if (!*ret_is_new) {
        (void)audit_disk_fail(rc, AUDIT_CHECKPOINT_FILE, "read", error);
        rc = rc == NG_ETOOLARGE ? NG_EFAILED : rc;
    }
    buf_done(&note);
    return *ret_is_new ? NG_OK : rc;
}

/* The root of what is in the tiles: the partial ones have what it needs. */
static int log_root(const struct audit_log *log, struct tlog_hash *ret)
{
    struct tlog_range range = {.size = 0};
    int rc = NG_OK;
    for (unsigned level = TLOG_LEVELS; level-- > 0;) {
        const struct log_edge *edge = &log->edges[level];
        for (size_t i = 0; rc == NG_OK && i < edge->width; i++) {
            rc = tlog_range_add(&range, level * TLOG_TILE_BITS, &edge->hashes[i]);
        }
    }
    return rc == NG_OK ? tlog_range_root(&range, ret) : rc;
}

/* The partial tiles, whose root is that of the checkpoint. */
static int log_load_edges(struct audit_log *log, const struct audit_tiles *tiles)
{
    struct tlog_hash root;
    log->folded = tiles->size;
    int rc = NG_OK;
    for (unsigned level = TLOG_LEVELS; rc == NG_OK && level-- > 0;) {
        struct log_edge *edge = &log->edges[level];
        uint64_t count = tlog_tile_count(level, tiles->size);
        edge->width = count % TLOG_TILE_WIDTH;
        edge->changed = false;
        if (edge->width > 0) {
            rc = audit_tiles_read(tiles, level, count >> TLOG_TILE_BITS, edge->hashes);
        }
    }
    if (rc == NG_OK) {
        rc = log_root(log, &root);
    }
    if (rc == NG_OK && !tlog_hash_equal(&root, &log->checkpoint.root)) {
        return log_damaged(tiles->error, "the checkpoint has another root than the tiles");
    }
    return rc;
}

static int log_load_bundle(struct audit_log *log, const struct audit_tiles *tiles)
{
    struct ng_str entries[TLOG_TILE_WIDTH];
    struct tlog_hash leaf;
    size_t count = 0;
    buf_clear(&log->bundle);
    int rc = NG_OK;
    if (log->edges[0].width > 0) {
        rc = audit_tiles_entries(tiles, tiles->size >> TLOG_TILE_BITS, &log->bundle, entries,
                                 &count);
    }
    for (size_t i = 0; rc == NG_OK && i < count; i++) {
        rc = tlog_hash_leaf(entries[i], &leaf);
        if (rc == NG_OK && !tlog_hash_equal(&leaf, &log->edges[0].hashes[i])) {
            return log_damaged(tiles->error,
                               "an entry of the last bundle is not that of its tile");
        }
    }
    return rc;
}

/* Removes the partial tiles of one level that the checkpoint does not need, from entry `first`
 * on. */
static int log_clear_level(const struct audit_log *log, unsigned level, uint64_t first,
                           struct buf *error)
{
    char name[TLOG_PATH_SIZE];
    char keep[8];
    uint64_t from = tlog_tile_count(level, first) >> TLOG_TILE_BITS;
    uint64_t to = tlog_tile_count(level, log->checkpoint.size) >> TLOG_TILE_BITS;
    for (uint64_t index = from; index <= to; index++) {
        size_t width = tlog_tile_width(level, index, log->checkpoint.size);
        /* The path of a partial tile without its last part is that of their folder. */
        tlog_tile_path(level, index, 1, name);
        *strrchr(name, '/') = '\0';
        (void)snprintf(keep, sizeof(keep), "%zu", width);
        bool is_partial = width > 0 && width < TLOG_TILE_WIDTH;
        int rc = audit_disk_clear(log->dir, name, is_partial ? keep : NULL);
        if (rc != NG_OK) {
            return audit_disk_fail(rc, name, "removed", error);
        }
    }
    return NG_OK;
}

static int log_clear_partial(const struct audit_log *log, uint64_t first, struct buf *error)
{
    int rc = NG_OK;
    for (unsigned level = 0; rc == NG_OK && level <= TLOG_ENTRIES; level++) {
        rc = log_clear_level(log, level, first, error);
    }
    return rc;
}

/* Pending entries go on behind the checkpoint, or are all in its tiles: then the end of that
 * fold is made up for. is_new: there is no checkpoint. */
static int log_load_pending(struct audit_log *log, bool is_new, uint64_t end, struct buf *error)
{
    struct stat info;
    audit_pending_close(&log->pending);
    /* This also makes the name of the checkpoint durable, before its entries are removed. */
    int rc = audit_pending_open(log->dir, end, &log->pending, error);
    if (rc == NG_OK && is_new && log->pending.count == 0 &&
        fstatat(log->dir, LOG_TILE_FOLDER, &info, AT_SYMLINK_NOFOLLOW) == 0) {
        return log_damaged(error, "it has tiles, but its checkpoint is missing");
    }
    if (rc != NG_OK || log->pending.count == 0) {
        return rc;
    }
    uint64_t first = log->pending.first;
    if (first == log->checkpoint.size) {
        return NG_OK;
    }
    if (first > log->checkpoint.size || first + log->pending.count > log->checkpoint.size) {
        return log_damaged(error, "its pending entries do not follow its checkpoint");
    }
    rc = log_clear_partial(log, first, error);
    return rc == NG_OK ? audit_pending_clear(&log->pending, error) : rc;
}

/* end: entries that are known to be durable; UINT64_MAX: not known yet. */
static int log_load(struct audit_log *log, uint64_t end, struct buf *error)
{
    bool is_new;
    memset(log->folders, 0, sizeof(log->folders));
    int rc =
        audit_log_read_checkpoint(log->dir, &log->signer.key, &log->checkpoint, &is_new, error);
    if (rc == NG_OK && is_new &&
        tlog_range_root(&(struct tlog_range){.size = 0}, &log->checkpoint.root) != NG_OK) {
        rc = log_no_memory(error);
    }
    const struct audit_tiles tiles = {log->dir, log->checkpoint.size, error};
    size_t told = error->len;
    if (rc == NG_OK) {
        rc = log_load_edges(log, &tiles);
    }
    if (rc == NG_OK) {
        rc = log_load_bundle(log, &tiles);
    }
    if (rc == NG_EINTERNAL && error->len == told) {
        (void)log_no_memory(error);
    }
    if (rc == NG_OK) {
        rc = log_load_pending(log, is_new, end, error);
    }
    if (rc == NG_OK && audit_tiles_reach(&tiles) > log->checkpoint.size + log->pending.count) {
        rc = log_damaged(error, "its tiles have more entries than its checkpoint: that is an "
                                "older one");
    }
    if (rc == NG_OK) {
        log->durable = log->checkpoint.size + log->pending.count;
        log->has_news = is_new || log->pending.count > 0;
        log->is_stale = false;
    }
    return rc;
}

/* A folder with a checkpoint or tiles, but without a key, was a log. */
static int log_is_new(int dir, bool *ret, struct buf *error)
{
    static const char *const parts[] = {AUDIT_CHECKPOINT_FILE, LOG_TILE_FOLDER,
                                        AUDIT_KEY_PUBLIC_FILE};
    struct stat info;
    *ret = true;
    for (size_t i = 0; i < NG_COUNT(parts); i++) {
        if (fstatat(dir, parts[i], &info, AT_SYMLINK_NOFOLLOW) == 0) {
            *ret = false;
        } else if (errno != ENOENT) {
            return audit_disk_fail(NG_EUNAVAILABLE, parts[i], "looked at", error);
        }
    }
    return NG_OK;
}

int audit_log_open(const char *path, struct ng_str name, struct audit_log **ret,
                   struct buf *error)
{
    bool is_new = false;
    *ret = NULL;
    if (!note_name_is_valid(name)) {
        (void)buf_printf(error, "\"%.*s\" is no name of an audit log", (int)name.len,
                         name.data);
        return NG_EINVAL;
    }
    struct audit_log *log = alloc_zeroed(1, sizeof(*log));
    if (log == NULL) {
        return log_no_memory(error);
    }
    log->dir = -1;
    log->pending.fd = -1;
    buf_init(&log->bundle, TLOG_BUNDLE_MAX);
    int rc = audit_disk_open(path, true, &log->dir, error);
    if (rc == NG_OK) {
        rc = log_is_new(log->dir, &is_new, error);
    }
    if (rc == NG_OK) {
        rc = audit_key_load(log->dir, is_new, name, &log->signer, error);
    }
    if (rc == NG_OK) {
        rc = log_load(log, UINT64_MAX, error);
    }
    if (rc != NG_OK) {
        audit_log_close(log);
        return rc;
    }
    *ret = log;
    return NG_OK;
}

void audit_log_close(struct audit_log *log)
{
    if (log == NULL) {
        return;
    }
    audit_pending_close(&log->pending);
    if (log->dir >= 0) {
        (void)close(log->dir);
    }
    note_signer_done(&log->signer);
    buf_done(&log->bundle);
    free(log);
}

/* Before each step: the state in memory is that of the disk. */
static int log_ready(struct audit_log *log, struct buf *error)
{
    return log->is_stale ? log_load(log, log->durable, error) : NG_OK;
}

/* ---- folding ---- */

static int log_write_file(struct audit_log *log, unsigned level, uint64_t index, size_t width,
                          struct ng_str bytes, struct buf *error)
{
    char name[TLOG_PATH_SIZE];
    char folder[TLOG_PATH_SIZE];
    int rc = NG_OK;
    tlog_tile_path(level, index, width, name);
    memcpy(folder, name, sizeof(folder));
    *strrchr(folder, '/') = '\0';
    if (strcmp(folder, log->folders[level]) != 0) {
        rc = audit_disk_make_folders(log->dir, name);
        if (rc == NG_OK) {
            memcpy(log->folders[level], folder, sizeof(folder));
        }
    }
    if (rc == NG_OK) {
        rc = audit_disk_batch_put(&log->written, log->dir, name, bytes, LOG_TILE_MODE);
    }
    return rc == NG_OK ? rc : audit_disk_fail(rc, name, "written", error);
}

static int log_sync_files(struct audit_log *log, struct buf *error)
{
    int rc = audit_disk_batch_sync(&log->written, log->dir);
    return rc == NG_OK ? rc : audit_disk_fail(rc, LOG_TILE_FOLDER, "written", error);
}

/* Writes the last tile of a level; `size` entries are in the tree. */
static int log_write_edge(struct audit_log *log, unsigned level, uint64_t size,
                          struct buf *error)
{
    struct log_edge *edge = &log->edges[level];
    uint64_t index = (tlog_tile_count(level, size) - edge->width) >> TLOG_TILE_BITS;
    struct ng_str bytes = str_make((const char *)edge->hashes, edge->width * SHA256_BYTES);
    int rc = log_write_file(log, level, index, edge->width, bytes, error);
    if (rc == NG_OK && level == 0) {
        rc =
            log_write_file(log, TLOG_ENTRIES, index, edge->width, buf_str(&log->bundle), error);
    }
    edge->changed = rc != NG_OK;
    return rc;
}

/* Adds a hash to a level; a tile that is full is written, and its root rises. */
static int log_add_hash(struct audit_log *log, const struct tlog_hash *leaf, uint64_t size,
                        struct buf *error)
{
    struct tlog_hash hash = *leaf;
    for (unsigned level = 0; level < TLOG_LEVELS; level++) {
        struct log_edge *edge = &log->edges[level];
        edge->hashes[edge->width++] = hash;
        edge->changed = true;
        if (edge->width < TLOG_TILE_WIDTH) {
            break;
        }
        int rc = log_write_edge(log, level, size, error);
        if (rc == NG_OK && tlog_hash_full(edge->hashes, edge->width, &hash) != NG_OK) {
            rc = log_no_memory(error);
        }
        if (rc != NG_OK) {
            return rc;
        }
        edge->width = 0;
        if (level == 0) {
            buf_clear(&log->bundle);
        }
    }
    return NG_OK;
}

struct log_fold {
    struct audit_log *log;
    struct buf *error;
};

static int log_fold_entry(void *user, const struct audit_pending_entry *entry)
{
    const struct log_fold *fold = user;
    struct audit_log *log = fold->log;
    char head[TLOG_ENTRY_HEAD];
    tlog_bundle_head(entry->text.len, head);
    (void)buf_add(&log->bundle, head, sizeof(head));
    if (buf_add_str(&log->bundle, entry->text) != NG_OK) {
        return log_no_memory(fold->error);
    }
    log->folded++;
    return log_add_hash(log, &entry->leaf, log->folded, fold->error);
}

static int log_write_checkpoint(struct audit_log *log, struct buf *error)
{
    struct checkpoint next = {.size = log->folded};
    struct buf note;
    buf_init(&note, NOTE_BYTES_MAX);
    int rc = log_root(log, &next.root);
    if (rc == NG_OK) {
        rc = checkpoint_sign(&next, &log->signer, &note);
    }
    if (rc != NG_OK) {
        (void)log_no_memory(error);
    } else {
        rc = audit_disk_replace(log->dir, AUDIT_CHECKPOINT_FILE, buf_str(&note), LOG_TILE_MODE);
        if (rc != NG_OK) {
            (void)audit_disk_fail(rc, AUDIT_CHECKPOINT_FILE, "written", error);
        }
    }
    if (rc == NG_OK) {
        log->checkpoint = next;
    }
    buf_done(&note);
    return rc;
}

static int log_fold_all(struct audit_log *log, struct buf *error)
{
    struct log_fold fold = {log, error};
    uint64_t first = log->checkpoint.size;
    int rc = audit_pending_each(&log->pending, log_fold_entry, &fold, error);
    for (unsigned level = 0; rc == NG_OK && level < TLOG_LEVELS; level++) {
        if (log->edges[level].width > 0 && log->edges[level].changed) {
            rc = log_write_edge(log, level, log->folded, error);
        }
    }
    if (rc == NG_OK) {
        rc = log_sync_files(log, error);
    }
    if (rc == NG_OK) {
        rc = log_write_checkpoint(log, error);
    }
    if (rc == NG_OK) {
        rc = log_clear_partial(log, first, error);
    }
    return rc == NG_OK ? audit_pending_clear(&log->pending, error) : rc;
}

int audit_log_fold(struct audit_log *log, struct buf *error)
{
    int rc = log_ready(log, error);
    if (rc != NG_OK || !log->has_news) {
        return rc;
    }
    rc = log_fold_all(log, error);
    audit_disk_batch_drop(&log->written);
    log->is_stale = rc != NG_OK;
    log->has_news = rc != NG_OK;
    return rc;
}

/* ---- appending ---- */

/* As many entries as one write takes, at least one. */
static int log_make_batch(const struct audit_log *log, const struct ng_str *entries,
                          size_t count, struct buf *batch, size_t *ret_count)
{
    int rc = NG_OK;
    *ret_count = 0;
    buf_clear(batch);
    if (log->durable > TLOG_SIZE_MAX - count) {
        return NG_ETOOLARGE;
    }
    while (rc == NG_OK && *ret_count < count) {
        rc = audit_pending_record(log->durable + *ret_count, entries[*ret_count], batch);
        *ret_count += rc == NG_OK;
    }
    return rc == NG_ETOOLARGE && *ret_count > 0 ? NG_OK : rc;
}

static int log_append_some(struct audit_log *log, const struct ng_str *entries, size_t count,
                           size_t *ret_done, struct buf *error)
{
    struct buf batch;
    size_t some = 0;
    buf_init(&batch, AUDIT_BATCH_MAX);
    int rc = log->pending.len > AUDIT_PENDING_MAX ? audit_log_fold(log, error)
                                                  : log_ready(log, error);
    if (rc == NG_OK) {
        rc = log_make_batch(log, entries, count, &batch, &some);
        if (rc == NG_ETOOLARGE) {
            (void)buf_printf(error, "the audit log does not take an entry of %zu bytes",
                             entries[0].len);
        } else if (rc != NG_OK) {
            (void)log_no_memory(error);
        }
    }
    if (rc == NG_OK) {
        rc = audit_pending_append(&log->pending, buf_str(&batch), log->durable, some,
                                  &log->is_stale, error);
    }
    if (rc == NG_OK) {
        log->durable += some;
        log->has_news = true;
        *ret_done += some;
    }
    buf_done(&batch);
    return rc;
}

int audit_log_append(struct audit_log *log, const struct ng_str *entries, size_t count,
                     size_t *ret_done, struct buf *error)
{
    int rc = NG_OK;
    *ret_done = 0;
    while (rc == NG_OK && *ret_done < count) {
        rc = log_append_some(log, entries + *ret_done, count - *ret_done, ret_done, error);
    }
    return rc;
}
