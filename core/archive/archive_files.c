/* SPDX-License-Identifier: MIT */
/* archive_files.c - writes and reads the lines of an archive about files. */
#include <string.h>

#include "archive_hash.h"
#include "archive_in.h"
#include "archive_out.h"
#include "core/base/str.h"
#include "core/call/call.h"
#include "files_pack.h"

#define ARCHIVE_PATH_MAX 4096
#define ARCHIVE_MODE_MAX 0777U

/* ---- writing ---- */

static void write_root_names(struct archive_out *out, const struct packed_file *file)
{
    archive_line_bytes(out, "space", file->space);
    archive_line_bytes(out, "path", file->path);
    if (file->real.len > 0 && !str_equal(file->real, file->path)) {
        archive_line_bytes(out, "real", file->real);
    }
    if (file->plugin.len > 0) {
        archive_line_bytes(out, "plugin", file->plugin);
    }
}

static int write_root(struct archive_out *out, const struct packed_file *file)
{
    archive_line_begin(out, "root");
    archive_line_int(out, "root", file->root);
    write_root_names(out, file);
    return archive_line_end(out, "h", ARCHIVE_LINE_HASH_CHARS);
}

/* Line 1: an element of "without". */
static int write_without(void *user, const struct packed_file *file)
{
    struct archive_out *out = user;
    if (!file->empty) {
        json_object(&out->writer);
        write_root_names(out, file);
        json_end(&out->writer);
    }
    return NG_OK;
}

static int write_entry(struct archive_out *out, const struct packed_file *file,
                       const char *kind)
{
    archive_line_begin(out, kind);
    archive_line_int(out, "root", file->root);
    archive_line_bytes(out, "path", file->path);
    if (file->kind == PACKED_LEFT_OUT) {
        out->counts.left_out++;
        archive_line_bytes(out, "why", ng_str_of(file->why));
    } else {
        archive_line_int(out, "mode", file->mode);
    }
    if (file->kind == PACKED_FILE) {
        json_name(&out->writer, "modified_ms");
        json_int(&out->writer, file->modified_ms);
        sha256_free(out->file_hash);
        out->file_hash = sha256_new();
        out->file_size = 0;
        if (out->file_hash == NULL) {
            return archive_out_fail(out, NG_EINTERNAL, "out of memory");
        }
    }
    return archive_line_end(out, "h", ARCHIVE_LINE_HASH_CHARS);
}

static int write_piece(struct archive_out *out, const struct packed_file *file)
{
    archive_line_begin(out, "piece");
    archive_line_bytes(out, "bytes", file->bytes);
    out->file_size += file->bytes.len;
    if (sha256_add(out->file_hash, file->bytes) != NG_OK) {
        return archive_out_fail(out, NG_EINTERNAL, "the hash failed");
    }
    return archive_line_end(out, "h", ARCHIVE_LINE_HASH_CHARS);
}

static int write_file_end(struct archive_out *out, const struct packed_file *file)
{
    char hex[SHA256_HEX_SIZE];
    if (archive_hash_hex(out->file_hash, hex) != NG_OK) {
        return archive_out_fail(out, NG_EINTERNAL, "the hash failed");
    }
    archive_line_begin(out, "file_end");
    archive_line_int(out, "size", out->file_size);
    archive_line_bytes(out, "content", ng_str_of(hex));
    archive_line_flag(out, "changed", file->changed);
    out->counts.changed += file->changed;
    out->counts.files++;
    return archive_line_end(out, "h", ARCHIVE_LINE_HASH_CHARS);
}

static int write_file(void *user, const struct packed_file *file)
{
    struct archive_out *out = user;
    switch (file->kind) {
    case PACKED_ROOT:
        return write_root(out, file);
    case PACKED_FOLDER:
        return write_entry(out, file, "folder");
    case PACKED_FILE:
        return write_entry(out, file, "file");
    case PACKED_PIECE:
        return write_piece(out, file);
    case PACKED_FILE_END:
        return write_file_end(out, file);
    case PACKED_LEFT_OUT:
    case PACKED_ROOT_LEFT_OUT:
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
    sha256_free(out->file_hash);
    out->file_hash = NULL;
    return out->rc;
}

int archive_write_without(struct archive_out *out)
{
    json_name(&out->writer, "without");
    json_array(&out->writer);
    int rc = files_pack_roots(out->origin->without, out->call, write_without, out);
    json_end(&out->writer);
    return rc;
}

static int note_plugin(void *user, const struct packed_file *file)
{
    bool *has_folders = user;
    *has_folders = *has_folders || file->plugin.len > 0;
    return NG_OK;
}

uint64_t archive_files_format(const struct archive_out *out)
{
    bool has_folders = false;
    (void)files_pack_roots(out->origin->files, out->call, note_plugin, &has_folders);
    return has_folders ? ARCHIVE_FORMAT : ARCHIVE_FORMAT_FILES;
}

/* ---- reading ---- */

static int give_file(struct archive_in *in, const struct packed_file *file)
{
    if (in->rc != NG_OK || in->sink == NULL || in->sink->file == NULL) {
        return in->rc;
    }
    return archive_in_sunk(in, in->sink->file(in->sink->user, file, &in->why));
}

/* A relative path that cannot leave the root. */
static bool path_stays_below(struct ng_str path)
{
    if (path.len == 0 || path.len >= ARCHIVE_PATH_MAX || memchr(path.data, '\0', path.len)) {
        return false;
    }
    for (;;) {
        const char *slash = memchr(path.data, '/', path.len);
        struct ng_str part = path;
        if (slash != NULL) {
            part.len = (size_t)(slash - path.data);
        }
        if (part.len == 0 || str_is(part, ".") || str_is(part, "..")) {
            return false;
        }
        if (slash == NULL) {
            return true;
        }
        path = str_make(slash + 1, path.len - part.len - 1);
    }
}

/* Absent members are "". */
static struct ng_str take_optional(struct archive_in *in, const struct ng_value *line,
                                   const char *name)
{
    return json_get(line, name) != NULL ? archive_take_bytes(in, line, name) : ng_str_of("");
}

static void take_root_names(struct archive_in *in, const struct ng_value *line,
                            struct packed_file *file)
{
    file->space = archive_take_bytes(in, line, "space");
    file->path = archive_take_bytes(in, line, "path");
    file->real = take_optional(in, line, "real");
    file->plugin = take_optional(in, line, "plugin");
}

int archive_read_without(struct archive_in *in, const struct ng_value *line)
{
    const struct ng_value *list = json_get(line, "without");
    for (const struct ng_value *one = list != NULL ? list->first : NULL; one != NULL;
         one = one->next) {
        struct packed_file file = {.kind = PACKED_ROOT_LEFT_OUT};
        take_root_names(in, one, &file);
        (void)give_file(in, &file);
    }
    return in->rc;
}

int archive_read_root(struct archive_in *in, const struct ng_value *line)
{
    struct packed_file file = {.kind = PACKED_ROOT};
    file.root = archive_take_number(in, line, "root");
    take_root_names(in, line, &file);
    if (file.root != in->root_count) {
        return archive_in_fail(in, "root %llu comes after %llu roots",
                               (unsigned long long)file.root,
                               (unsigned long long)in->root_count);
    }
    in->root_count++;
    return give_file(in, &file);
}

/* Root and path of a folder, of a file, or of an item that was left out. */
static int take_place(struct archive_in *in, const struct ng_value *line,
                      struct packed_file *file)
{
    file->root = archive_take_number(in, line, "root");
    file->path = archive_take_bytes(in, line, "path");
    if (in->rc != NG_OK) {
        return in->rc;
    }
    if (in->file_hash != NULL) {
        return archive_in_fail(in, "the previous file has no end record");
    }
    if (file->root >= in->root_count) {
        return archive_in_fail(in, "there is no root %llu", (unsigned long long)file->root);
    }
    if (!path_stays_below(file->path)) {
        return archive_in_fail(in, "\"path\" is not a path below a root");
    }
    return NG_OK;
}

static void take_mode(struct archive_in *in, const struct ng_value *line,
                      struct packed_file *file)
{
    (void)take_place(in, line, file);
    uint64_t mode = archive_take_number(in, line, "mode");
    if (mode > ARCHIVE_MODE_MAX) {
        (void)archive_in_fail(in, "\"mode\" has bits that are not permission bits");
    }
    file->mode = (uint32_t)mode;
}

int archive_read_folder(struct archive_in *in, const struct ng_value *line)
{
    struct packed_file file = {.kind = PACKED_FOLDER};
    take_mode(in, line, &file);
    return give_file(in, &file);
}

int archive_read_file(struct archive_in *in, const struct ng_value *line)
{
    struct packed_file file = {.kind = PACKED_FILE};
    take_mode(in, line, &file);
    file.modified_ms = archive_take_time(in, line, "modified_ms");
    if (in->rc != NG_OK) {
        return in->rc;
    }
    in->file_hash = sha256_new();
    in->file_size = 0;
    if (in->file_hash == NULL) {
        return archive_in_fail(in, "out of memory");
    }
    return give_file(in, &file);
}

int archive_read_piece(struct archive_in *in, const struct ng_value *line)
{
    struct packed_file file = {.kind = PACKED_PIECE};
    file.bytes = archive_take_bytes(in, line, "bytes");
    if (in->file_hash == NULL) {
        return archive_in_fail(in, "the content belongs to no file");
    }
    if (sha256_add(in->file_hash, file.bytes) != NG_OK) {
        return archive_in_fail(in, "the hash could not be computed");
    }
    in->file_size += file.bytes.len;
    return give_file(in, &file);
}

int archive_read_file_end(struct archive_in *in, const struct ng_value *line)
{
    char hex[SHA256_HEX_SIZE] = "";
    struct packed_file file = {.kind = PACKED_FILE_END};
    uint64_t size = archive_take_number(in, line, "size");
    struct ng_str content = archive_take_bytes(in, line, "content");
    if (in->file_hash == NULL) {
        return archive_in_fail(in, "an end record without a file");
    }
    if (in->rc != NG_OK) {
        return in->rc;
    }
    if (archive_hash_hex(in->file_hash, hex) != NG_OK || size != in->file_size ||
        !str_is(content, hex)) {
        return archive_in_fail(in, "the file's content does not match its hash");
    }
    sha256_free(in->file_hash);
    in->file_hash = NULL;
    file.changed = archive_take_flag(line, "changed");
    in->counts.changed += file.changed;
    in->counts.files++;
    return give_file(in, &file);
}

int archive_read_left_out(struct archive_in *in, const struct ng_value *line)
{
    struct packed_file file = {.kind = PACKED_LEFT_OUT};
    (void)take_place(in, line, &file);
    struct ng_str why = arena_copy(&in->arena, archive_take_bytes(in, line, "why"));
    in->counts.left_out++;
    file.why = why.data;
    if (file.why == NULL) {
        return archive_in_fail(in, "out of memory");
    }
    return give_file(in, &file);
}
