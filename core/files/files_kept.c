/* SPDX-License-Identifier: MIT */
/* files_kept.c - contents that were read or saved lately, with their hashes. A file that still
 * has the content is neither copied nor hashed again: each read compares it with the content.
 */
#include <stdlib.h>

#include "core/base/minmax.h"
#include "core/base/str.h"
#include "core/base/text/hex.h"
#include "core/base/text/sha256.h"
#include "core/call/plugin.h"
#include "files_state.h"

struct file_kept {
    atomic_int refs;
    struct file_identity identity;
    char hash[FILES_HASH_SIZE];
    struct file_marks marks;
    size_t len;
    char data[]; /* ends in NUL */
};

/* ---- states of the hash, after each FILES_MARK_BYTES ---- */

void files_marks_done(struct file_marks *marks)
{
    while (marks->count > 0) {
        sha256_free(marks->items[--marks->count]);
    }
}

static struct sha256 *add_mark(struct file_marks *marks, const struct sha256 *state)
{
    struct sha256 *copy = sha256_copy(state);
    if (copy != NULL) {
        marks->items[marks->count++] = copy;
    }
    return copy;
}

/* The hash at the last state of `ret`, which gets those of `from` in the first `same` bytes.
 * NULL: out of memory. */
static struct sha256 *marks_begin(const struct file_marks *from, size_t same,
                                  struct file_marks *ret)
{
    size_t count = 0;
    if (from != NULL) {
        count = size_min(from->count, same / FILES_MARK_BYTES);
    }
    for (size_t i = 0; i < count; i++) {
        if (add_mark(ret, from->items[i]) == NULL) {
            return NULL;
        }
    }
    return count > 0 ? sha256_copy(ret->items[count - 1]) : sha256_new();
}

void files_hash_marked(struct ng_str data, const struct file_marks *from, size_t same,
                       struct file_marks *ret, char hash[FILES_HASH_SIZE])
{
    unsigned char digest[SHA256_BYTES];
    ret->count = 0;
    hash[0] = '\0';
    struct sha256 *running = marks_begin(from, same, ret);
    bool good = running != NULL;
    size_t at = ret->count * FILES_MARK_BYTES;
    while (good && at < data.len) {
        size_t len = size_min(FILES_MARK_BYTES, data.len - at);
        good = sha256_add(running, str_make(data.data + at, len)) == NG_OK;
        at += len;
        if (good && len == FILES_MARK_BYTES && ret->count < FILES_MARKS) {
            good = add_mark(ret, running) != NULL;
        }
    }
    if (good && sha256_now(running, digest) == NG_OK) {
        hex_write(digest, (FILES_HASH_SIZE - 1) / 2, hash);
    }
    sha256_free(running);
    if (hash[0] == '\0') {
        files_marks_done(ret);
    }
}

/* ---- kept contents ---- */

void files_kept_init(struct files_kept *table)
{
    lock_init(&table->lock, LOCK_FILES_KEPT);
}

static void kept_unref(void *object)
{
    struct file_kept *kept = object;
    if (kept != NULL && atomic_fetch_sub(&kept->refs, 1) == 1) {
        files_marks_done(&kept->marks);
        free(kept);
    }
}

void files_kept_done(struct files_kept *table)
{
    for (size_t i = 0; i < table->count; i++) {
        kept_unref(table->items[i]);
    }
    table->count = 0;
    lock_done(&table->lock);
}

void files_kept_stats(struct files *files, struct files_kept_stats *ret)
{
    struct files_kept *table = &files->kept;
    lock_take(&table->lock);
    *ret = (struct files_kept_stats){table->bytes, table->count, FILES_KEPT_BYTES, table->hits,
                                     table->misses};
    lock_release(&table->lock);
}

/* ---- the table; with its lock held */

/* `count`: there is none. */
static size_t kept_index(const struct files_kept *table, struct file_identity identity)
{
    size_t i = 0;
    while (i < table->count && !files_same(table->items[i]->identity, identity)) {
        i++;
    }
    return i;
}

static void kept_remove(struct files_kept *table, size_t index)
{
    struct file_kept *kept = table->items[index];
    table->count--;
    memmove(table->items + index, table->items + index + 1,
            (table->count - index) * sizeof(*table->items));
    table->bytes -= kept->len;
    kept_unref(kept);
}

/* To the front: the last one is evicted first. */
static void kept_use(struct files_kept *table, size_t index)
{
    struct file_kept *kept = table->items[index];
    memmove(table->items + 1, table->items, index * sizeof(*table->items));
    table->items[0] = kept;
}

/* Takes over the caller's reference. */
static void kept_put(struct files_kept *table, struct file_kept *kept)
{
    size_t old = kept_index(table, kept->identity);
    if (old < table->count) {
        kept_remove(table, old);
    }
    while (table->count > 0 &&
           (table->count == FILES_KEPT_MAX || table->bytes > FILES_KEPT_BYTES - kept->len)) {
        kept_remove(table, table->count - 1);
    }
    table->items[table->count++] = kept;
    table->bytes += kept->len;
    kept_use(table, table->count - 1);
}

/* ---- the content of a file */

/* The content that the file had, with a reference. NULL: none of this size is kept. */
static struct file_kept *kept_find(struct files_kept *table, const struct stat *st)
{
    struct file_kept *found = NULL;
    lock_take(&table->lock);
    size_t i = kept_index(table, files_identity(st));
    if (i < table->count && table->items[i]->len == (size_t)st->st_size) {
        found = table->items[i];
        atomic_fetch_add(&found->refs, 1);
        kept_use(table, i);
    }
    lock_release(&table->lock);
    return found;
}

static void kept_count(struct files_kept *table, bool hit)
{
    lock_take(&table->lock);
    table->hits += hit;
    table->misses += !hit;
    lock_release(&table->lock);
}

/* ---- reading and saving */

static bool fits(off_t size)
{
    return size >= (off_t)FILES_KEPT_LEAST && size <= (off_t)FILES_KEPT_LARGEST;
}

static struct file_kept *kept_new(const struct stat *st, size_t len)
{
    struct file_kept *kept = alloc_bytes(sizeof(*kept) + len + 1);
    if (kept != NULL) {
        atomic_init(&kept->refs, 1);
        kept->identity = files_identity(st);
        kept->marks.count = 0;
        kept->len = len;
        kept->data[len] = '\0';
    }
    return kept;
}

/* The kept content, if the file still has it. */
static struct file_kept *kept_current(struct files_kept *table, int fd, const struct stat *st)
{
    struct file_kept *kept = kept_find(table, st);
    if (kept != NULL && !files_has_content(fd, str_make(kept->data, kept->len))) {
        kept_unref(kept);
        return NULL;
    }
    return kept;
}

static int kept_read(struct files_kept *table, struct call *call, struct ng_str path, int fd,
                     const struct stat *st, struct file_kept **ret)
{
    struct file_kept *kept = kept_new(st, (size_t)st->st_size);
    if (kept == NULL) {
        return call_no_memory(call);
    }
    int rc = files_fill(call, path, fd, kept->data, (size_t)st->st_size, &kept->len);
    kept->data[kept->len] = '\0';
    if (rc == NG_OK) {
        files_hash_marked(str_make(kept->data, kept->len), NULL, 0, &kept->marks, kept->hash);
        rc = kept->hash[0] != '\0' ? NG_OK : call_no_memory(call);
    }
    if (rc != NG_OK) {
        kept_unref(kept);
        return rc;
    }
    if (kept->len == (size_t)st->st_size) { /* else it was cut off meanwhile */
        atomic_fetch_add(&kept->refs, 1);
        lock_take(&table->lock);
        kept_put(table, kept);
        lock_release(&table->lock);
    }
    *ret = kept;
    return NG_OK;
}

int files_load_hashed(struct files *files, struct call *call, const struct files_load *load,
                      struct ng_str *ret_data, char hash[FILES_HASH_SIZE])
{
    struct files_kept *table = &files->kept;
    struct stat st;
    hash[0] = '\0';
    if (load->ret_kept != NULL) {
        *load->ret_kept = NULL;
    }
    if (fstat(load->fd, &st) != 0 || !fits(st.st_size) ||
        (load->max_bytes > 0 && (uint64_t)st.st_size > load->max_bytes)) {
        int rc = files_load(call, load->path, load->fd, load->max_bytes, ret_data);
        if (rc != NG_OK) {
            return rc;
        }
        files_hash(*ret_data, hash);
        return hash[0] != '\0' ? NG_OK : call_no_memory(call);
    }
    int rc = call_count_bytes(call, (size_t)st.st_size);
    if (rc != NG_OK) {
        return rc;
    }
    struct file_kept *kept = kept_current(table, load->fd, &st);
    kept_count(table, kept != NULL);
    if (kept == NULL) {
        rc = kept_read(table, call, load->path, load->fd, &st, &kept);
    }
    if (rc != NG_OK) {
        return rc;
    }
    if (call_pin(call, kept_unref, kept) != NG_OK) { /* which has released it */
        return call_no_memory(call);
    }
    *ret_data = str_make(kept->data, kept->len);
    memcpy(hash, kept->hash, sizeof(kept->hash));
    if (load->ret_kept != NULL) {
        *load->ret_kept = kept;
    }
    return NG_OK;
}

static void marks_free(void *object)
{
    files_marks_done(object);
    free(object);
}

int files_hash_next(struct file_op *op, size_t same)
{
    const struct file_marks *from = NULL;
    struct file_marks *marks = NULL;
    op->marks = NULL;
    if (fits((off_t)op->next.len)) {
        marks = alloc_zeroed(1, sizeof(*marks));
    }
    if (marks == NULL) {
        files_hash(op->next, op->record.after);
    } else if (call_pin(op->call, marks_free, marks) != NG_OK) {
        return call_no_memory(op->call);
    } else {
        if (op->base != NULL) {
            from = &op->base->marks;
        }
        files_hash_marked(op->next, from, same, marks, op->record.after);
        op->marks = marks;
    }
    return op->record.after[0] != '\0' ? NG_OK : call_no_memory(op->call);
}

static void kept_forget(struct files_kept *table, const struct stat *st)
{
    lock_take(&table->lock);
    size_t i = kept_index(table, files_identity(st));
    if (i < table->count) {
        kept_remove(table, i);
    }
    lock_release(&table->lock);
}

void files_keep_saved(struct files *files, const struct file_op *op)
{
    struct files_kept *table = &files->kept;
    struct stat st;
    if (op->fd >= 0 && fstat(op->fd, &st) == 0) {
        kept_forget(table, &st); /* its content was replaced */
    }
    int saved = op->put == FILE_PUT_RENAME ? op->temp : op->fd;
    if (!fits((off_t)op->next.len) || fstat(saved, &st) != 0) {
        return;
    }
    struct file_kept *kept = kept_new(&st, op->next.len);
    if (kept == NULL) {
        return;
    }
    memcpy(kept->data, op->next.data, op->next.len);
    memcpy(kept->hash, op->record.after, sizeof(kept->hash));
    if (op->marks != NULL) {
        kept->marks = *op->marks;
        op->marks->count = 0; /* the states pass over */
    }
    lock_take(&table->lock);
    kept_put(table, kept);
    lock_release(&table->lock);
}
