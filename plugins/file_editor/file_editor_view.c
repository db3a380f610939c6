/* SPDX-License-Identifier: MIT */
/* file_editor_view.c - the command view: whole files, ranges of files of any size, folders. */
#include <stdlib.h>
#include <string.h>

#include "core/base/array.h"
#include "core/base/buf.h"
#include "core/base/minmax.h"
#include "file_editor.h"

#define VIEW_DEPTH 3 /* listed levels; the header says 2, for compatibility */
#define VIEW_NUMBER_WIDTH 6
#define VIEW_HEADER 320 /* header and warning, without the two paths */

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

static int fail_result_size(struct ng_call *call, const int64_t range[2], uint64_t max,
                            int64_t fits)
{
    if (fits < range[0]) {
        return ng_fail(call, NG_ETOOLARGE,
                       "Line %lld alone is over the limit of an answer (%llu bytes), so no "
                       "line of this `view_range` fits",
                       (long long)range[0], (unsigned long long)max);
    }
    return ng_fail(call, NG_ETOOLARGE,
                   "The lines of `view_range` [%lld, %lld] are over the limit of an answer "
                   "(%llu bytes). Lines %lld to %lld fit: view [%lld, %lld]",
                   (long long)range[0], (long long)range[1], (unsigned long long)max,
                   (long long)range[0], (long long)fits, (long long)range[0], (long long)fits);
}

/* Counts the numbered lines that fit an answer. */
struct fit {
    uint64_t max;
    uint64_t shown; /* bytes of the lines so far */
    int64_t fits;   /* last line that fits; 0: none */
    bool over;
};

static uint64_t number_width(size_t line)
{
    uint64_t width = 0;
    for (; line > 0; line /= 10) {
        width++;
    }
    return u64_max(width, VIEW_NUMBER_WIDTH) + 2;
}

static void fit_start(struct fit *fit, const struct editor *editor, struct ng_str path)
{
    uint64_t header = VIEW_HEADER + 2 * (uint64_t)path.len;
    *fit = (struct fit){.max = u64_max(editor->max_result, header) - header};
}

/* Adds a byte of line `line`; its end adds the number, too. */
static void fit_add(struct fit *fit, size_t line, char c)
{
    fit->shown++;
    if (c == '\t') {
        fit->shown += sizeof(EDITOR_TAB) - 2;
    }
    fit->over = fit->over || fit->shown + number_width(line) + 1 > fit->max;
    if (c == '\n') {
        fit->shown += number_width(line);
        if (!fit->over) {
            fit->fits = (int64_t)line;
        }
    }
}

/* ---- large files: keeps the requested lines only */

struct stream {
    struct ng_call *call;
    int64_t first, last; /* last -1: to the end */
    size_t line;         /* present line, from 1 */
    struct fit fit;
    struct buf lines;
    struct editor_check check;
};

static void stream_byte(struct stream *stream, char c)
{
    bool wanted = stream->line >= (uint64_t)stream->first && !stream->fit.over &&
                  (stream->last == -1 || stream->line <= (uint64_t)stream->last);
    if (wanted) {
        fit_add(&stream->fit, stream->line, c);
        buf_add_char(&stream->lines, c);
        if (stream->fit.over) {
            buf_done(&stream->lines);
        }
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
    if (stream->fit.over) {
        return fail_result_size(call, range, stream->fit.max, stream->fit.fits);
    }
    struct ng_str text = str_or(buf_str(&stream->lines), ng_str_of(""));
    if (range[0] == 1 && editor_bom(text) > 0) {
        text = str_make(text.data + editor_bom(text), text.len - editor_bom(text));
    }
    const char *fault = editor_check_end(&stream->check);
    struct ng_str prefix = {NULL, 0};
    if (fault != NULL) {
        prefix = editor_warning(call, path, fault);
        text = editor_clean(call, text);
    }
    size_t last = range_last(range, stream->line);
    struct ng_str lines =
        editor_numbered(call, text, 1, last - (size_t)range[0] + 1, (size_t)range[0]);
    return editor_reply_lines(call, prefix, path, lines, "");
}

static int view_stream(struct ng_call *call, const struct editor *editor, struct ng_str path,
                       const int64_t range[2])
{
    struct stream stream = {
        .call = call,
        .first = range[0],
        .last = range[1],
        .line = 1,
    };
    buf_init(&stream.lines, SIZE_MAX / 4);
    fit_start(&stream.fit, editor, path);
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

/* The last line that fits, beginning with `first`. */
static int64_t lines_that_fit(struct ng_str text, int64_t first, struct fit *fit)
{
    size_t line = 1;
    for (size_t i = 0; i < text.len && !fit->over; i++) {
        if (line >= (uint64_t)first) {
            fit_add(fit, line, text.data[i]);
        }
        line += text.data[i] == '\n';
    }
    return fit->fits;
}

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
    text = str_make(text.data + bom, text.len - bom);
    struct ng_str prefix = {NULL, 0};
    if (fault != NULL) {
        prefix = editor_warning(call, path, fault);
        text = editor_clean(call, text);
    }
    if (text.data == NULL) {
        return ng_fail(call, NG_ETOOLARGE, "The answer is too large for one call.");
    }
    size_t total = editor_count(text, '\n') + 1;
    size_t first = 1;
    size_t last = total;
    if (range != NULL) {
        rc = check_range(call, range, total);
        first = (size_t)range[0];
        last = range_last(range, total);
    }
    if (rc != NG_OK) {
        return rc;
    }
    struct ng_str lines = editor_numbered(call, text, first, last, first);
    struct fit fit;
    fit_start(&fit, editor, path);
    if (range != NULL && lines.len > fit.max) {
        return fail_result_size(call, range, fit.max, lines_that_fit(text, range[0], &fit));
    }
    rc = editor_reply_lines(call, prefix, path, lines, "");
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
        return view_stream(call, editor, path, range);
    }
    return view_whole(call, editor, path, ranged ? range : NULL);
}
