/* SPDX-License-Identifier: MIT */
/* files_marks.c - states of the hash after each FILES_MARK_BYTES of a content. Another content
 * with the same beginning is hashed from the last state within it. */
#include "core/base/minmax.h"
#include "core/base/str.h"
#include "core/base/text/hex.h"
#include "core/base/text/sha256.h"
#include "files_state.h"

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
