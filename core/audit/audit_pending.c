/* SPDX-License-Identifier: MIT */
/* audit_pending.c - records, one behind the other. */
#include "audit_pending.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "audit_disk.h"
#include "core/audit/tlog/tlog_tile.h"
#include "core/base/arena.h"
#include "core/base/files/fd_io.h"
#include "core/base/log.h"
#include "core/base/str.h"

/* Bytes that are read at once; the longest record fits several times. */
#define PENDING_BLOCK ((size_t)1024 * 1024)

/* ---- reading ---- */

/* The file, block by block. */
struct pending_reader {
    int fd;
    char *block;
    size_t at, len;
    off_t end; /* of the records read so far */
};

static int reader_open(struct pending_reader *reader, int fd)
{
    *reader = (struct pending_reader){.fd = fd, .block = alloc_bytes(PENDING_BLOCK)};
    if (reader->block == NULL) {
        return NG_EINTERNAL;
    }
    return lseek(fd, 0, SEEK_SET) == 0 ? NG_OK : NG_EUNAVAILABLE;
}

/* Bytes at hand, after a read if they are fewer than `wanted` and the file has more. */
static int reader_fill(struct pending_reader *reader, size_t wanted, size_t *ret_len)
{
    size_t got = 1;
    if (reader->len - reader->at < wanted) {
        memmove(reader->block, reader->block + reader->at, reader->len - reader->at);
        reader->len -= reader->at;
        reader->at = 0;
    }
    while (reader->len - reader->at < wanted && got > 0) {
        if (fd_get(&reader->fd, reader->block + reader->len, PENDING_BLOCK - reader->len,
                   &got) != NG_OK) {
            return NG_EUNAVAILABLE;
        }
        reader->len += got;
    }
    *ret_len = reader->len - reader->at;
    return NG_OK;
}

/* The next record. NG_ENOTFOUND: no whole one follows. */
static int reader_next(struct pending_reader *reader, struct audit_pending_entry *ret)
{
    uint64_t number;
    uint16_t len;
    struct tlog_hash leaf;
    size_t room;
    int rc = reader_fill(reader, AUDIT_PENDING_HEAD, &room);
    if (rc != NG_OK || room < AUDIT_PENDING_HEAD) {
        return rc != NG_OK ? rc : NG_ENOTFOUND;
    }
    const char *head = reader->block + reader->at;
    memcpy(&number, head, sizeof(number));
    memcpy(&len, head + sizeof(number), sizeof(len));
    size_t size = AUDIT_PENDING_HEAD + be16toh(len);
    rc = reader_fill(reader, size, &room);
    if (rc != NG_OK || room < size) {
        return rc != NG_OK ? rc : NG_ENOTFOUND;
    }
    head = reader->block + reader->at;
    ret->number = be64toh(number);
    memcpy(&ret->leaf, head + sizeof(number) + sizeof(len), sizeof(ret->leaf));
    ret->text = str_make(head + AUDIT_PENDING_HEAD, be16toh(len));
    rc = tlog_hash_leaf(ret->text, &leaf);
    if (rc == NG_OK && !tlog_hash_equal(&leaf, &ret->leaf)) {
        rc = NG_ENOTFOUND;
    }
    if (rc == NG_OK) {
        reader->at += size;
        reader->end += (off_t)size;
    }
    return rc;
}

/* ---- opening ---- */

static int pending_scan(struct audit_pending *pending, uint64_t end, struct buf *error)
{
    struct pending_reader reader;
    struct audit_pending_entry entry;
    int rc = reader_open(&reader, pending->fd);
    while (rc == NG_OK && (rc = reader_next(&reader, &entry)) == NG_OK && entry.number < end) {
        pending->first = pending->count == 0 ? entry.number : pending->first;
        if (entry.number != pending->first + pending->count) {
            (void)buf_printf(error,
                             "the audit log's file " AUDIT_PENDING_FILE " has entry %" PRIu64
                             " behind entry %" PRIu64,
                             entry.number, pending->first + pending->count - 1);
            rc = NG_EFAILED;
            break;
        }
        pending->count++;
        pending->len = reader.end;
    }
    free(reader.block);
    if (rc == NG_EINTERNAL || rc == NG_EUNAVAILABLE) {
        (void)audit_disk_fail(rc, AUDIT_PENDING_FILE, "read", error);
    }
    return rc == NG_ENOTFOUND ? NG_OK : rc;
}

/* Cuts the file to the records that count. *ret_bytes: that it had behind them. */
static int pending_cut(const struct audit_pending *pending, off_t *ret_bytes)
{
    struct stat info;
    if (fstat(pending->fd, &info) != 0) {
        return NG_EUNAVAILABLE;
    }
    *ret_bytes = info.st_size - pending->len;
    if (*ret_bytes == 0) {
        return NG_OK;
    }
    return ftruncate(pending->fd, pending->len) == 0 && fsync(pending->fd) == 0
               ? NG_OK
               : NG_EUNAVAILABLE;
}

int audit_pending_open(int dir, uint64_t end, struct audit_pending *ret, struct buf *error)
{
    *ret = (struct audit_pending){.fd = -1};
    ret->fd = openat(dir, AUDIT_PENDING_FILE, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC,
                     S_IRUSR | S_IWUSR);
    if (ret->fd < 0 || fsync(dir) != 0) {
        return audit_disk_fail(NG_EUNAVAILABLE, AUDIT_PENDING_FILE, "opened", error);
    }
    off_t bytes = 0;
    int rc = pending_scan(ret, end, error);
    if (rc == NG_OK && pending_cut(ret, &bytes) != NG_OK) {
        rc = audit_disk_fail(NG_EUNAVAILABLE, AUDIT_PENDING_FILE, "cut", error);
    }
    if (rc == NG_OK && bytes > 0) {
        log_write(NG_LOG_WARNING, "audit",
                  "%lld bytes of entries that were being written at the last end were dropped",
                  (long long)bytes);
    }
    return rc;
}

int audit_pending_look(int dir, struct audit_pending *ret, struct buf *error)
{
    *ret = (struct audit_pending){.fd = -1};
    ret->fd = openat(dir, AUDIT_PENDING_FILE, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (ret->fd < 0 && errno == ENOENT) {
        return NG_OK;
    }
    return ret->fd < 0 ? audit_disk_fail(NG_EUNAVAILABLE, AUDIT_PENDING_FILE, "opened", error)
                       : pending_scan(ret, UINT64_MAX, error);
}

void audit_pending_close(struct audit_pending *pending)
{
    if (pending->fd >= 0) {
        (void)close(pending->fd);
        pending->fd = -1;
    }
}

/* ---- writing ---- */

int audit_pending_record(uint64_t number, struct ng_str entry, struct buf *batch)
{
    struct tlog_hash leaf;
    size_t before = batch->len;
    if (entry.len > TLOG_ENTRY_MAX) {
        return NG_ETOOLARGE;
    }
    int rc = tlog_hash_leaf(entry, &leaf);
    if (rc != NG_OK) {
        return rc;
    }
    uint64_t number_be = htobe64(number);
    char len[TLOG_ENTRY_HEAD];
    tlog_bundle_head(entry.len, len);
    (void)buf_add(batch, &number_be, sizeof(number_be));
    (void)buf_add(batch, len, sizeof(len));
    (void)buf_add(batch, leaf.bytes, sizeof(leaf.bytes));
    rc = buf_add_str(batch, entry);
    if (rc != NG_OK) {
        buf_cut(batch, before);
    }
    return rc;
}

int audit_pending_append(struct audit_pending *pending, struct ng_str batch, uint64_t first,
                         uint64_t count, bool *ret_stale, struct buf *error)
{
    if (lseek(pending->fd, pending->len, SEEK_SET) == pending->len &&
        fd_put(pending->fd, batch) == NG_OK && fdatasync(pending->fd) == 0) {
        pending->first = pending->count == 0 ? first : pending->first;
        pending->count += count;
        pending->len += (off_t)batch.len;
        return NG_OK;
    }
    int rc = audit_disk_fail(NG_EUNAVAILABLE, AUDIT_PENDING_FILE, "written", error);
    /* After a failed sync its pages count as written: they are taken out and written anew. */
    *ret_stale = pending_cut(pending, &(off_t){0}) != NG_OK;
    return rc;
}

int audit_pending_each(struct audit_pending *pending, audit_pending_fn *fn, void *user,
                       struct buf *error)
{
    struct pending_reader reader;
    struct audit_pending_entry entry;
    size_t told = error->len;
    int rc = reader_open(&reader, pending->fd);
    for (uint64_t i = 0; rc == NG_OK && i < pending->count; i++) {
        rc = reader_next(&reader, &entry);
        if (rc == NG_ENOTFOUND || (rc == NG_OK && entry.number != pending->first + i)) {
            (void)buf_printf(error,
                             "the audit log's file " AUDIT_PENDING_FILE
                             " was changed by another program at entry %" PRIu64,
                             pending->first + i);
            rc = NG_EFAILED;
        }
        if (rc == NG_OK) {
            rc = fn(user, &entry);
        }
    }
    free(reader.block);
    if (rc != NG_OK && error->len == told) {
        (void)audit_disk_fail(rc, AUDIT_PENDING_FILE, "read", error);
    }
    return rc;
}

int audit_pending_clear(struct audit_pending *pending, struct buf *error)
{
    if (ftruncate(pending->fd, 0) != 0 || fsync(pending->fd) != 0) {
        return audit_disk_fail(NG_EUNAVAILABLE, AUDIT_PENDING_FILE, "emptied", error);
    }
    pending->count = 0;
    pending->len = 0;
    return NG_OK;
}
