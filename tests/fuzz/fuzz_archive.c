/* SPDX-License-Identifier: MIT */
/* fuzz_archive.c - the lines of a backup under right hashes (a line that begins with '!' is the
 * last one): every archive is read to its end or refused with a sentence. */
#include <stdlib.h>
#include <string.h>

#include "core/archive/archive.h"
#include "core/archive/archive_hash.h"
#include "core/archive/files_pack.h"
#include "core/base/buf.h"
#include "core/base/str.h"

#define ARCHIVE_BYTES_MAX ((size_t)1024 * 1024)
#define ERROR_BYTES_MAX 65536

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
    if (!holds) {
        abort();
    }
}

/* Adds the line with the tail that its content asks for. */
static void add_line(struct sha256 *hash, struct buf *archive, struct ng_str line)
{
    char hex[SHA256_HEX_SIZE];
    bool last = line.len > 0 && line.data[0] == '!';
    struct buf tail;
    buf_init(&tail, ARCHIVE_BYTES_MAX);
    line = last ? str_make(line.data + 1, line.len - 1) : line;
    must(sha256_add(hash, line) == NG_OK && archive_hash_hex(hash, hex) == NG_OK);
    int chars = last ? ARCHIVE_HASH_CHARS : ARCHIVE_LINE_HASH_CHARS;
    (void)buf_printf(&tail, ",\"%s\":\"%.*s\"}\n", last ? "sha256" : "h", chars, hex);
    must(sha256_add(hash, buf_str(&tail)) == NG_OK);
    (void)buf_add_str(archive, line);
    (void)buf_add_str(archive, buf_str(&tail));
    buf_done(&tail);
}

struct source {
    struct ng_str left;
};

static int get(void *user, char *to, size_t room, size_t *ret_len)
{
    struct source *source = user;
    size_t len = source->left.len < room ? source->left.len : room;
    if (len > 0) {
        memcpy(to, source->left.data, len);
        source->left = str_make(source->left.data + len, source->left.len - len);
    }
    *ret_len = len;
    return NG_OK;
}

static int take_collection(void *user, const struct ng_collection *collection,
                           struct buf *error)
{
    (void)user;
    (void)error;
    must(collection->name != NULL); /* the backend decides what is allowed */
    return NG_OK;
}

static int take_record(void *user, const struct ng_record *record, struct buf *error)
{
    (void)user;
    (void)error;
    if (record->kind == NG_RECORD_REVISION) {
        must(record->doc->revision > 0 && record->doc->json.len >= 2);
        must(record->doc->text.len == record->doc->text_size);
    }
    return NG_OK;
}

static int take_file(void *user, const struct packed_file *file, struct buf *error)
{
    (void)user;
    (void)error;
    must(file->path.len == 0 || (file->path.data[0] != '/' || file->kind == PACKED_ROOT ||
                                 file->kind == PACKED_ROOT_LEFT_OUT));
    must(file->mode <= 0777);
    return NG_OK;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct buf archive;
    struct buf error;
    struct archive_counts counts;
    struct sha256 *hash = sha256_new();
    must(hash != NULL);
    buf_init(&archive, ARCHIVE_BYTES_MAX);
    buf_init(&error, ERROR_BYTES_MAX);
    struct ng_str rest = str_make((const char *)data, size);
    while (rest.len > 0) {
        const char *end = memchr(rest.data, '\n', rest.len);
        size_t len = end != NULL ? (size_t)(end - rest.data) : rest.len;
        add_line(hash, &archive, str_make(rest.data, len));
        len += end != NULL ? 1 : 0;
        rest = str_make(rest.data + len, rest.len - len);
    }
    if (archive.rc == NG_OK) {
        struct source source = {buf_str(&archive)};
        const struct archive_sink sink = {take_collection, take_record, NULL, take_file};
        int rc = archive_read(get, &source, &sink, &counts, &error);
        must(rc == NG_OK || (rc == NG_EFAILED && error.len > 0));
    }
    sha256_free(hash);
    buf_done(&archive);
    buf_done(&error);
    return 0;
}
