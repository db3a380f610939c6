/* SPDX-License-Identifier: MIT */
/* archive_files.c - an archive's lines about files, written and read. */
#include <string.h>

#include "archive_hash.h"
#include "archive_in.h"
#include "archive_out.h"
#include "core/base/str.h"
#include "core/call/call.h"
#include "core/files/files_pack.h"

#define ARCHIVE_PATH_MAX 4096
#define ARCHIVE_MODE_MAX 0777U

/* ---- writing ---- */

static int write_root(struct archive_out *out, const struct archive_file *file)
{
    archive_line_begin(out, "root");
    archive_line_int(out, "root", file->root);
    archive_line_bytes(out, "space", file->space);
    archive_line_bytes(out, "path", file->path);
    return archive_line_end(out, "h", ARCHIVE_LINE_HASH_CHARS);
}

static int write_entry(struct archive_out *out, const struct archive_file *file,
                       const char *kind)
{
    archive_line_begin(out, kind);
    archive_line_int(out, "root", file->root);
    archive_line_bytes(out, "path", file->path);
    if (file->kind == ARCHIVE_LEFT_OUT) {
        out->counts.left_out++;
        archive_line_bytes(out, "why", ng_str_of(file->why));
    } else {
        archive_line_int(out, "mode", file->mode);
    }
    if (file->kind == ARCHIVE_FILE) {
        json_name(&out->writer, "modified_ms");
        json_int(&out->writer, file->modified_ms);
        archive_hash_free(out->file_hash);
        out->file_hash = archive_hash_new();
        out->file_size = 0;
        if (out->file_hash == NULL) {
            return archive_out_fail(out, NG_EINTERNAL, "out of memory");
        }
    }
    return archive_line_end(out, "h", ARCHIVE_LINE_HASH_CHARS);
}

static int write_piece(struct archive_out *out, const struct archive_file *file)
{
    archive_line_begin(out, "piece");
    archive_line_bytes(out, "bytes", file->bytes);
    out->file_size += file->bytes.len;
    if (archive_hash_add(out->file_hash, file->bytes) != NG_OK) {
        return archive_out_fail(out, NG_EINTERNAL, "the hash failed");
    }
    return archive_line_end(out, "h", ARCHIVE_LINE_HASH_CHARS);
}

static int write_file_end(struct archive_out *out, const struct archive_file *file)
{
    char hex[ARCHIVE_HASH_CHARS + 1];
    if (archive_hash_hex(out->file_hash, hex) != NG_OK) {
        return archive_out_fail(out, NG_EINTERNAL, "the hash failed");
    }
    archive_line_begin(out, "file_end");
    archive_line_int(out, "size", out->file_size);
    archive_line_bytes(out, "content", ng_str_of(hex));
    if (file->changed) {
        out->counts.changed++;
        json_name(&out->writer, "changed");
        json_bool(&out->writer, true);
    }
    out->counts.files++;
    return archive_line_end(out, "h", ARCHIVE_LINE_HASH_CHARS);
}

static int write_file(void *user, const struct archive_file *file)
{
    struct archive_out *out = user;
    switch (file->kind) {
    case ARCHIVE_ROOT:
        return write_root(out, file);
    case ARCHIVE_FOLDER:
        return write_entry(out, file, "folder");
    case ARCHIVE_FILE:
        return write_entry(out, file, "file");
    case ARCHIVE_PIECE:
        return write_piece(out, file);
    case ARCHIVE_FILE_END:
        return write_file_end(out, file);
    case ARCHIVE_LEFT_OUT:
        break;
    }
    return write_entry(out, file, "left_out");
}

int archive_write_files(struct archive_out *out)
{
    int rc = files_pack(out->origin->files, out->call, write_file, out);
    if (out->rc == NG_OK) {
        out->rc = rc;
    }
    archive_hash_free(out->file_hash);
    out->file_hash = NULL;
    return out->rc;
}

/* ---- reading ---- */

static int give_file(struct archive_in *in, const struct archive_file *file)
{
    struct buf why;
    int rc = NG_OK;
    if (in->sink == NULL || in->sink->file == NULL) {
        return NG_OK;
    }
    buf_init(&why, ARCHIVE_PATH_MAX * 4);
    rc = in->sink->file(in->sink->user, file, &why);
    if (rc != NG_OK) {
        (void)archive_in_fail(in, "%s", buf_cstr(&why));
    }
    buf_done(&why);
    return rc;
}

/* Relative, and nothing in it leads out of the root. */
static bool path_stays_below(struct ng_str path)
{
    if (path.len == 0 || path.len >= ARCHIVE_PATH_MAX || memchr(path.data, '\0', path.len)) {
        return false;
    }
    while (path.len > 0) {
        const char *slash = memchr(path.data, '/', path.len);
        struct ng_str part = {path.data,
                              slash == NULL ? path.len : (size_t)(slash - path.data)};
        if (part.len == 0 || str_is(part, ".") || str_is(part, "..")) {
            return false;
        }
        size_t taken = part.len + (slash == NULL ? 0 : 1);
        path = str_make(path.data + taken, path.len - taken);
        if (slash != NULL && path.len == 0) {
            return false;
        }
    }
    return true;
}

int archive_read_root(struct archive_in *in, const struct ng_value *line)
{
    struct archive_file file = {.kind = ARCHIVE_ROOT};
    int rc = archive_take_number(in, line, "root", &file.root);
    rc = rc == NG_OK ? archive_take_bytes(in, line, "space", &file.space) : rc;
    rc = rc == NG_OK ? archive_take_bytes(in, line, "path", &file.path) : rc;
    if (rc == NG_OK && file.root != in->root_count) {
        rc = archive_in_fail(in, "root %llu comes after %llu roots",
                             (unsigned long long)file.root, (unsigned long long)in->root_count);
    }
    in->root_count++;
    return rc == NG_OK ? give_file(in, &file) : rc;
}

/* Of a folder, a file, what was left out. */
static int take_place(struct archive_in *in, const struct ng_value *line,
                      struct archive_file *file)
{
    int rc = archive_take_number(in, line, "root", &file->root);
    rc = rc == NG_OK ? archive_take_bytes(in, line, "path", &file->path) : rc;
    if (rc != NG_OK) {
        return rc;
    }
    if (in->file_hash != NULL) {
        return archive_in_fail(in, "the file before has no end");
    }
    if (file->root >= in->root_count) {
        return archive_in_fail(in, "there is no root %llu", (unsigned long long)file->root);
    }
    if (!path_stays_below(file->path)) {
        return archive_in_fail(in, "\"path\" is none below a root");
    }
    return NG_OK;
}

static int take_mode(struct archive_in *in, const struct ng_value *line,
                     struct archive_file *file)
{
    uint64_t mode = 0;
    int rc = take_place(in, line, file);
    rc = rc == NG_OK ? archive_take_number(in, line, "mode", &mode) : rc;
    if (rc == NG_OK && mode > ARCHIVE_MODE_MAX) {
        rc = archive_in_fail(in, "\"mode\" has more than permission bits");
    }
    file->mode = (uint32_t)mode;
    return rc;
}

int archive_read_folder(struct archive_in *in, const struct ng_value *line)
{
    struct archive_file file = {.kind = ARCHIVE_FOLDER};
    int rc = take_mode(in, line, &file);
    return rc == NG_OK ? give_file(in, &file) : rc;
}

int archive_read_file(struct archive_in *in, const struct ng_value *line)
{
    struct archive_file file = {.kind = ARCHIVE_FILE};
    int rc = take_mode(in, line, &file);
    rc = rc == NG_OK ? archive_take_time(in, line, "modified_ms", &file.modified_ms) : rc;
    if (rc != NG_OK) {
        return rc;
    }
    in->file_hash = archive_hash_new();
    in->file_size = 0;
    return in->file_hash == NULL ? archive_in_fail(in, "out of memory") : give_file(in, &file);
}

int archive_read_piece(struct archive_in *in, const struct ng_value *line)
{
    struct archive_file file = {.kind = ARCHIVE_PIECE};
    int rc = archive_take_bytes(in, line, "bytes", &file.bytes);
    if (rc == NG_OK && in->file_hash == NULL) {
        rc = archive_in_fail(in, "the piece is of no file");
    }
    if (rc == NG_OK && archive_hash_add(in->file_hash, file.bytes) != NG_OK) {
        rc = archive_in_fail(in, "the hash could not be computed");
    }
    in->file_size += file.bytes.len;
    return rc == NG_OK ? give_file(in, &file) : rc;
}

int archive_read_file_end(struct archive_in *in, const struct ng_value *line)
{
    char hex[ARCHIVE_HASH_CHARS + 1] = "";
    uint64_t size = 0;
    struct ng_str content = {NULL, 0};
    const struct ng_value *changed = json_get(line, "changed");
    struct archive_file file = {.kind = ARCHIVE_FILE_END};
    int rc = archive_take_number(in, line, "size", &size);
    rc = rc == NG_OK ? archive_take_bytes(in, line, "content", &content) : rc;
    if (rc == NG_OK && in->file_hash == NULL) {
        rc = archive_in_fail(in, "no file ends here");
    }
    if (rc != NG_OK) {
        return rc;
    }
    if (archive_hash_hex(in->file_hash, hex) != NG_OK || size != in->file_size ||
        !str_is(content, hex)) {
        return archive_in_fail(in, "the file's content is not what was written");
    }
    archive_hash_free(in->file_hash);
    in->file_hash = NULL;
    file.changed = changed != NULL && changed->type == NG_TYPE_TRUE;
    in->counts.changed += file.changed ? 1 : 0;
    in->counts.files++;
    return give_file(in, &file);
}

int archive_read_left_out(struct archive_in *in, const struct ng_value *line)
{
    struct ng_str why = {NULL, 0};
    struct archive_file file = {.kind = ARCHIVE_LEFT_OUT};
    int rc = take_place(in, line, &file);
    rc = rc == NG_OK ? archive_take_bytes(in, line, "why", &why) : rc;
    if (rc != NG_OK) {
        return rc;
    }
    in->counts.left_out++;
    struct ng_str kept = arena_copy(&in->arena, why);
    file.why = kept.data;
    return kept.data == NULL ? archive_in_fail(in, "out of memory") : give_file(in, &file);
}
