/* SPDX-License-Identifier: MIT */
/* file_editor_view.c - the command view: whole files, ranges of files of any size, folders. */
#include <stdlib.h>
#include <string.h>

#include "core/base/array.h"
#include "core/base/buf.h"
#include "core/base/minmax.h"
#include "core/base/text/lines_part.h"
#include "core/base/utf8.h"
#include "file_editor.h"

#define VIEW_DEPTH 3 /* listed levels; the header says 2, for compatibility */
#define VIEW_NUMBER_WIDTH 6
#define VIEW_HEADER (320 + LINES_PART_NOTE_MAX) /* without the two paths */
#define VIEW_BOM_MAX 3

/* ---- ranges */

static int check_range(struct ng_call *call, const int64_t range[2], size_t lines)
{
    const struct ng_host *host = call->host;
    long long first = range[0];
    long long second = range[1];
    if (first < 1 || (uint64_t)first > lines) {
        return editor_fail_input(
            call, "view_range", "a first line of the file",
            host->format(
                call,
                "Invalid `view_range`: [%lld, %lld]. Its first element `%lld` should be "
                "within the range of lines of the file: [1, %zu]",
                first, second, first, lines));
    }
    if (second > 0 && (uint64_t)second > lines) {
        return editor_fail_input(
            call, "view_range", "a last line of the file, or -1",
            host->format(call,
                         "Invalid `view_range`: [%lld, %lld]. Its second element `%lld` should "
                         "be smaller than the number of lines in the file: `%zu`",
                         first, second, second, lines));
    }
    if (second != -1 && second < first) {
        return editor_fail_input(
            call, "view_range", "a last line not before the first",
            host->format(call,
                         "Invalid `view_range`: [%lld, %lld]. Its second element `%lld` should "
                         "be larger or equal than its first `%lld`",
                         first, second, second, first));
    }
    return NG_OK;
}

static bool get_range(struct ng_call *call, int64_t range[2])
{
    const struct ng_host *host = call->host;
    const struct ng_value *first = host->json_first(ng_arg(call, "view_range"));
    if (first == NULL) {
        return false;
    }
    (void)host->json_integer(first, &range[0]);
    (void)host->json_integer(host->json_next(first), &range[1]);
    return true;
}

/* ---- the part that fits the answer */

/* Lines of a file. */
struct part {
    struct ng_str path;
    struct ng_str prefix; /* a warning, or absent */
    struct ng_str
        text; /* begins with line `first`; may end before `last` if that does not fit */
    size_t first, last; /* the requested lines */
    size_t total;       /* of the file */
};

/* Bytes of lines in the answer, beside its other texts. */
static size_t part_room(struct ng_call *call, struct ng_str path)
{
    size_t room = call->host->answer_room(call);
    return room - size_min(room, VIEW_HEADER + 2 * path.len);
}

/* Bytes of a line's number and its end, as editor_numbered() writes them. */
static size_t number_bytes(size_t line)
{
    size_t width = 0;
    for (; line > 0; line /= 10) {
        width++;
    }
    return size_max(width, VIEW_NUMBER_WIDTH) + 3;
}

/* The number of whole lines that fit. *ret_bytes: the bytes of the text that fit. */
static size_t lines_that_fit(const struct part *part, size_t room, size_t *ret_bytes)
{
    size_t line = part->first;
    size_t shown = number_bytes(line);
    size_t at = 0;
    for (; shown <= room && line <= part->last; at++) {
        if (at >= part->text.len || part->text.data[at] == '\n') {
            line++;
            shown += number_bytes(line);
        } else {
            shown += part->text.data[at] == '\t' ? sizeof(EDITOR_TAB) - 1 : 1;
        }
    }
    /* The last byte did not fit. */
    *ret_bytes = size_min(part->text.len, at - (at > 0 && shown > room));
    return line - part->first;
}

static int part_reply(struct ng_call *call, const struct part *part)
{
    size_t bytes = 0;
    size_t count = part->last - part->first + 1;
    size_t fits = lines_that_fit(part, part_room(call, part->path), &bytes);
    struct ng_str text = part->text;
    char note[LINES_PART_NOTE_MAX] = "";
    if (fits == 0) {
        text = utf8_cut(text, bytes);
    }
    if (fits < count) {
        const struct lines_part shown = {part->first, part->last, part->total, fits, text.len};
        lines_part_note(note, "view_range", &shown);
    }
    struct ng_str lines = editor_numbered(call, text, 1, size_max(fits, 1), part->first);
    return editor_reply_lines(call, part->prefix, part->path, lines, note);
}

/* ---- large files: keeps the requested lines only */

struct stream {
    struct ng_call *call;
    int64_t first, last; /* last -1: to the end */
    size_t line;         /* present line, from 1 */
    size_t most;         /* bytes to keep: more than fit the answer */
    struct buf lines;
    struct editor_check check;
};

static void stream_byte(struct stream *stream, char c)
{
    bool wanted = stream->line >= (uint64_t)stream->first && stream->lines.len < stream->most &&
                  (stream->last == -1 || stream->line <= (uint64_t)stream->last);
    if (wanted) {
        buf_add_char(&stream->lines, c);
    }
    stream->line += c == '\n';
}

static int stream_chunk(void *user, struct ng_str chunk)
{
    struct stream *stream = user;
    editor_check_add(&stream->check, chunk);
    for (size_t i = 0; i < chunk.len; i++) {
        stream_byte(stream, chunk.data[i]);
    }
    return stream->lines.rc != NG_OK;
}

/* The last line of a range: -1 is the end. */
static size_t range_last(const int64_t range[2], size_t lines)
{
    return range[1] == -1 ? lines : (size_t)range[1];
}

static int stream_reply(struct stream *stream, struct ng_str path, const int64_t range[2])
{
    struct ng_call *call = stream->call;
    int rc = check_range(call, range, stream->line);
    if (rc != NG_OK) {
        return rc;
    }
    struct part part = {
        .path = path,
        .text = str_or(buf_str(&stream->lines), ng_str_of("")),
        .first = (size_t)range[0],
        .last = range_last(range, stream->line),
        .total = stream->line,
    };
    size_t bom = range[0] == 1 ? editor_bom(part.text) : 0;
    part.text = str_make(part.text.data + bom, part.text.len - bom);
    const char *fault = editor_check_end(&stream->check);
    if (fault != NULL) {
        part.prefix = editor_warning(call, path, fault);
        part.text = editor_clean(call, part.text);
    }
    if (part.text.data == NULL) {
        return ng_fail(call, NG_ETOOLARGE, "The answer is too large for one call.");
    }
    return part_reply(call, &part);
}

static int view_stream(struct ng_call *call, struct ng_str path, const int64_t range[2])
{
    struct stream stream = {
        .call = call,
        .first = range[0],
        .last = range[1],
        .line = 1,
        .most = part_room(call, path) + VIEW_BOM_MAX + 1,
    };
    buf_init(&stream.lines, SIZE_MAX / 4);
    struct ng_file file = {.size = sizeof(file)};
    int rc = call->host->file_stream(call, path, stream_chunk, &stream, &file);
    if (rc == NG_OK && file.revision.data == NULL) {
        rc = ng_fail(call, NG_EINTERNAL, "Out of memory while reading %.*s.", (int)path.len,
                     path.data);
    }
    if (rc == NG_OK) {
        rc = stream_reply(&stream, path, range);
    }
    if (rc == NG_OK) {
        rc = call->host->revision_text(call, file.revision);
    }
    buf_done(&stream.lines);
    return rc;
}

/* ---- whole files */

static int view_whole(struct ng_call *call, const struct editor *editor, struct ng_str path,
                      const int64_t *range)
{
    struct ng_file file = {.size = sizeof(file)};
    int rc = call->host->file_read(call, path, editor->max_file_size, &file);
    if (rc == NG_ETOOLARGE) {
        call->host->hint(call,
                         "View a part of it with `view_range`, or find its lines with the "
                         "command `search`.");
    }
    if (rc != NG_OK) {
        return rc;
    }
    struct ng_str text = file.data;
    const char *fault = editor_not_text(text);
    size_t bom = editor_bom(text);
    struct part part = {.path = path, .first = 1};
    text = str_make(text.data + bom, text.len - bom);
    if (fault != NULL) {
        part.prefix = editor_warning(call, path, fault);
        text = editor_clean(call, text);
    }
    if (text.data == NULL) {
        return ng_fail(call, NG_ETOOLARGE, "The answer is too large for one call.");
    }
    part.total = editor_count(text, '\n') + 1;
    part.last = part.total;
    if (range != NULL) {
        rc = check_range(call, range, part.total);
        part.first = (size_t)range[0];
        part.last = range_last(range, part.total);
    }
    if (rc != NG_OK) {
        return rc;
    }
    size_t at = editor_line_start(text, part.first);
    part.text = str_make(text.data + at, text.len - at);
    rc = part_reply(call, &part);
    if (rc == NG_OK) {
        rc = call->host->revision_text(call, file.revision);
    }
    return rc;
}

/* ---- folders */

struct names {
    struct ng_call *call;
    struct ng_str *items;
    size_t count, cap;
    uint64_t bytes;
    bool failed;
};

static int add_name(void *user, const struct ng_file_entry *entry)
{
    struct names *names = user;
    if (array_reserve((void **)&names->items, &names->cap, names->count + 1,
                      sizeof(*names->items), NG_FILE_ENTRIES_MAX) != NG_OK) {
        names->failed = true;
        return 1;
    }
    names->items[names->count++] = entry->name;
    names->bytes += entry->name.len + 1;
    return 0;
}

/* The order of UTF-16 code units: the order of bytes, except that characters beyond U+FFFF come
 * before U+E000. */
static int by_code_unit(const void *left, const void *right)
{
    const struct ng_str *a = left;
    const struct ng_str *b = right;
    size_t least = size_min(a->len, b->len);
    size_t i = 0;
    while (i < least && a->data[i] == b->data[i]) {
        i++;
    }
    if (i == least) {
        return (a->len > b->len) - (a->len < b->len);
    }
    int x = (unsigned char)a->data[i];
    int y = (unsigned char)b->data[i];
    if ((x >= 0xf0) != (y >= 0xf0) && int_min(x, y) >= 0xee) {
        return y - x;
    }
    return x - y;
}

static int reply_names(struct ng_call *call, struct ng_str path, struct names *names)
{
    char *text = ng_alloc(call, (size_t)names->bytes + 1);
    if (text == NULL) {
        return ng_fail(call, NG_ETOOLARGE, "The folder %.*s holds too much for one answer.",
                       (int)path.len, path.data);
    }
    if (names->count > 0) {
        qsort(names->items, names->count, sizeof(*names->items), by_code_unit);
    }
    size_t len = 0;
    for (size_t i = 0; i < names->count; i++) {
        if (i > 0) {
            text[len++] = '\n';
        }
        memcpy(text + len, names->items[i].data, names->items[i].len);
        len += names->items[i].len;
    }
    struct ng_str clean = editor_clean(call, str_make(text, len));
    struct ng_str pieces[] = {
        ng_str_of("Here's the files and directories up to 2 levels deep in "),
        path,
        ng_str_of(", excluding hidden items:\n"),
        clean,
        ng_str_of("\n"),
    };
    if (clean.data == NULL) {
        return ng_fail(call, NG_ETOOLARGE, "The answer is too large for one call.");
    }
    return call->host->reply_parts(call, pieces, NG_COUNT(pieces));
}

static int view_folder(struct ng_call *call, struct ng_str path)
{
    if (ng_has_arg(call, "view_range")) {
        return editor_fail_input(call, "view_range", "no range",
                                 ng_str_of("The `view_range` parameter is not allowed when "
                                           "`path` points to a directory."));
    }
    struct names names = {.call = call};
    struct ng_file_list list = {.size = sizeof(list), .path = path, .depth = VIEW_DEPTH};
    int rc = call->host->file_list(call, &list, add_name, &names);
    if (rc == NG_OK && names.failed) {
        rc = ng_fail(call, NG_EINTERNAL, "Out of memory while listing %.*s.", (int)path.len,
                     path.data);
    }
    if (rc == NG_OK) {
        rc = reply_names(call, path, &names);
    }
    free(names.items);
    return rc;
}

int editor_view(struct ng_call *call, const struct editor *editor, struct ng_str path)
{
    struct ng_file file = {.size = sizeof(file)};
    int64_t range[2] = {1, -1};
    int rc = call->host->file_stat(call, path, &file);
    if (rc != NG_OK) {
        return rc;
    }
    if (file.type == NG_FILE_NONE) {
        return editor_fail_missing(call, path);
    }
    if (file.type == NG_FILE_DIRECTORY) {
        return view_folder(call, path);
    }
    bool ranged = get_range(call, range);
    if (ranged && file.bytes > editor->max_file_size) {
        return view_stream(call, path, range);
    }
    return view_whole(call, editor, path, ranged ? range : NULL);
}
