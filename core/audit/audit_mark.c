/* SPDX-License-Identifier: MIT */
/* audit_mark.c - the file has two numbers in one line. */
#include "audit_mark.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "audit_disk.h"
#include "audit_read.h"
#include "core/base/array.h"
#include "core/base/str.h"

#define MARK_MAX ((size_t)64)
/* Numbers that are held in memory: 2 GiB of them. */
#define SEQS_MAX ((size_t)256 * 1024 * 1024)
/* In front of a number, in an entry. Within a string of JSON its quotes would be escaped. */
#define SEQ_MEMBER "\"seq\":"

int audit_mark_read(int dir, struct audit_mark *ret, struct buf *error)
{
    struct buf text;
    buf_init(&text, MARK_MAX);
    int rc = audit_disk_read(dir, AUDIT_MARK_FILE, &text);
    if (rc == NG_OK) {
        struct ng_str line = buf_str(&text);
        size_t space = str_find(line, ng_str_of(" "), 0);
        if (space >= line.len ||
            !str_number(str_make(line.data, space), UINT64_MAX, &ret->seq) ||
            !str_number(str_make(line.data + space + 1, line.len - space - 1), UINT64_MAX,
                        &ret->entries)) {
            (void)buf_add_c(error, "the audit log's file " AUDIT_MARK_FILE
                                   " does not have two numbers: remove it, and the next start "
                                   "looks for no changes that lack their entries");
            rc = NG_EFAILED;
        }
    } else if (rc != NG_ENOTFOUND) {
        (void)audit_disk_fail(rc, AUDIT_MARK_FILE, "read", error);
        rc = rc == NG_ETOOLARGE ? NG_EFAILED : rc;
    }
    buf_done(&text);
    return rc;
}

int audit_mark_write(int dir, const struct audit_mark *mark, struct buf *error)
{
    char text[MARK_MAX];
    (void)snprintf(text, sizeof(text), "%" PRIu64 " %" PRIu64, mark->seq, mark->entries);
    int rc = audit_disk_replace(dir, AUDIT_MARK_FILE, ng_str_of(text), S_IRUSR | S_IWUSR);
    return rc == NG_OK ? rc : audit_disk_fail(rc, AUDIT_MARK_FILE, "written", error);
}

/* ---- numbers ---- */

static int seqs_add(struct audit_seqs *seqs, uint64_t seq)
{
    int rc = array_reserve((void **)&seqs->items, &seqs->room, seqs->count + 1,
                           sizeof(*seqs->items), SEQS_MAX);
    if (rc == NG_OK) {
        seqs->items[seqs->count++] = seq;
    }
    return rc;
}

static int seqs_take(struct audit_seqs *seqs, struct ng_str entry, uint64_t above)
{
    const struct ng_str member = ng_str_of(SEQ_MEMBER);
    int rc = NG_OK;
    size_t at = str_find(entry, member, 0);
    while (rc == NG_OK && at < entry.len) {
        uint64_t seq = 0;
        for (at += member.len; at < entry.len && str_is_digit(entry.data[at]); at++) {
            seq = seq * 10 + (uint64_t)(entry.data[at] - '0');
        }
        if (seq > above) {
            rc = seqs_add(seqs, seq);
        }
        at = str_find(entry, member, at);
    }
    return rc;
}

static int seqs_compare(const void *a, const void *b)
{
    uint64_t first = *(const uint64_t *)a;
    uint64_t second = *(const uint64_t *)b;
    return (first > second) - (first < second);
}

int audit_seqs_read(const char *path, const struct audit_mark *mark, struct audit_seqs *ret,
                    struct buf *error)
{
    struct audit_reader *reader = NULL;
    *ret = (struct audit_seqs){.items = NULL};
    int rc = audit_reader_open(path, &reader, error);
    if (rc != NG_OK) {
        return rc;
    }
    /* With small limits entries behind the mark may be pruned: their changes get new ones. */
    uint64_t begin = u64_max(mark->entries, audit_reader_first(reader));
    for (uint64_t i = begin; rc == NG_OK && i < audit_reader_size(reader); i++) {
        struct ng_str entry;
        rc = audit_reader_get(reader, i, &entry, error);
        if (rc == NG_OK && seqs_take(ret, entry, mark->seq) != NG_OK) {
            (void)buf_add_c(error, "the audit log: out of memory");
            rc = NG_EINTERNAL;
        }
    }
    audit_reader_close(reader);
    if (ret->count > 0) {
        qsort(ret->items, ret->count, sizeof(*ret->items), seqs_compare);
    }
    return rc;
}

bool audit_seqs_have(const struct audit_seqs *seqs, uint64_t seq)
{
    return seqs->count > 0 &&
           bsearch(&seq, seqs->items, seqs->count, sizeof(*seqs->items), seqs_compare) != NULL;
}

void audit_seqs_done(struct audit_seqs *seqs)
{
    free(seqs->items);
}
