/* SPDX-License-Identifier: MIT */
/* file_editor_view.c - the command view: files whole, ranges of files of any size, folders. */
#include <stdlib.h>
#include <string.h>

#include "core/base/minmax.h"
#include "file_editor.h"

#define VIEW_DEPTH 3 /* levels listed; the header says 2, as it always has */
#define VIEW_NUMBER_WIDTH 6
#define VIEW_HEADER 320 /* header and warning, the path (twice) not counted */

/* ---- ranges */

static struct ng_str range_message(struct ng_call *call, const int64_t range[2], int which,
                                   size_t lines)
{
    const struct ng_host *host = call->host;
    long long first = range[0];
    long long second = range[1];
    switch (which) {
    case 0:
        return host->format(call,
                            "Invalid `view_range`: [%lld, %lld]. Its first element `%lld` "
                            "should be within the range of lines of the file: [1, %zu]",
                            first, second, first, lines);
    case 1:
        return host->format(call,
                            "Invalid `view_range`: [%lld, %lld]. Its second element `%lld` "
                            "should be smaller than the number of lines in the file: `%zu`",
                            first, second, second, lines);
    default:
        return host->format(call,
                            "Invalid `view_range`: [%lld, %lld]. Its second element `%lld` "
                            "should be larger or equal than its first `%lld`",
                            first, second, second, first);
    }
}

static int check_range(struct ng_call *call, const int64_t range[2], size_t lines)
{
    if (range[0] < 1 || (uint64_t)range[0] > lines) {
        return editor_fail_input(call, "view_range", "a first line of the file",
                                 range_message(call, range, 0, lines));
    }
    if (range[1] > 0 && (uint64_t)range[1] > lines) {
        return editor_fail_input(call, "view_range", "a last line of the file, or -1",
                                 range_message(call, range, 1, lines));
    }
    if (range[1] != -1 && range[1] < range[0]) {
        return editor_fail_input(call, "view_range", "a last line not before the first",
                                 range_message(call, range, 2, lines));
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

/* Which of the lines shown still fit an answer. */
struct fitting {
    uint64_t max;
    uint64_t shown; /* bytes of the lines so far */
    int64_t fits;   /* last whole line that fits; 0: none */
    bool over;
};

static uint64_t number_width(size_t line)
{
    uint64_t width = 0;
    for (; line > 0; line /= 10) {
        width++;
    }
    return (u64_max(width, VIEW_NUMBER_WIDTH)) + 2;
}

static void fitting_start(struct fitting *fitting, const struct editor *editor,
                          struct ng_str path)
{
    uint64_t header = VIEW_HEADER + 2 * (uint64_t)path.len;
    *fitting = (struct fitting){
        .max = editor->max_result > header ? editor->max_result - header : 0,
    };
}

/* The next byte of line `line`; its number and line feed are counted with its end. */
static void fitting_add(struct fitting *fitting, size_t line, char c)
{
    if (c == '\t') {
        fitting->shown += sizeof(EDITOR_TAB) - 1;
    } else {
        fitting->shown += 1;
    }
    fitting->over = fitting->over || fitting->shown + number_width(line) + 1 > fitting->max;
    if (c == '\n') {
        fitting->shown += number_width(line);
        if (!fitting->over) {
            fitting->fits = (int64_t)line;
        }
    }
}

/* ---- large files: only the lines asked for are kept */

struct stream {
    struct ng_call *call;
    int64_t first, last; /* last -1: to the end */
    size_t line;         /* present line, from 1 */
    struct fitting fitting;
    char *data;
    size_t len, cap;
    uint64_t seen; /* bytes before this chunk */
    unsigned char head[3];
    struct editor_check check;
};

static int stream_keep(struct stream *stream, char c)
{
    if (stream->len == stream->cap) {
        size_t cap = 65536;
        if (stream->cap != 0) {
            cap = stream->cap * 2;
        }
        char *data = realloc(stream->data, cap);
        if (data == NULL) {
            return -1;
        }
        stream->data = data;
        stream->cap = cap;
    }
    stream->data[stream->len++] = c;
    return 0;
}

static int stream_byte(struct stream *stream, char c)
{
    bool wanted = stream->line >= (uint64_t)stream->first && !stream->fitting.over &&
                  (stream->last == -1 || stream->line <= (uint64_t)stream->last);
    if (wanted) {
        fitting_add(&stream->fitting, stream->line, c);
        if (stream->fitting.over) {
            free(stream->data);
            stream->data = NULL;
            stream->len = 0;
            stream->cap = 0;
        } else if (stream_keep(stream, c) != 0) {
            return -1;
        }
    }
    stream->line += c == '\n';
    return 0;
}

static int stream_chunk(void *user, struct ng_str chunk)
{
    struct stream *stream = user;
    editor_check_add(&stream->check, chunk);
    for (size_t i = 0; i < chunk.len; i++) {
        if (stream->seen + i < sizeof(stream->head)) {
            stream->head[stream->seen + i] = (unsigned char)chunk.data[i];
        }
        if (stream_byte(stream, chunk.data[i]) != 0) {
            return 1;
        }
    }
    stream->seen += chunk.len;
    return 0;
}

static const char *stream_not_text(struct stream *stream)
{
    bool wide = (stream->head[0] == 0xff && stream->head[1] == 0xfe) ||
                (stream->head[0] == 0xfe && stream->head[1] == 0xff);
    editor_check_end(&stream->check);
    if (wide) {
        return "it is UTF-16 text, not UTF-8";
    }
    if (stream->check.nul) {
        return "it holds NUL bytes, so it is binary or not UTF-8 text";
    }
    if (stream->check.bad) {
        return "it holds bytes that are not UTF-8 text";
    }
    return NULL;
}

static int stream_reply(struct stream *stream, struct ng_str path, const int64_t range[2])
{
    struct ng_call *call = stream->call;
    int rc = check_range(call, range, stream->line);
    if (rc != NG_OK) {
        return rc;
    }
    if (stream->fitting.over) {
        return fail_result_size(call, range, stream->fitting.max, stream->fitting.fits);
    }
    struct ng_str text = {stream->len > 0 ? stream->data : "", stream->len};
    if (range[0] == 1 && editor_bom(text) > 0) {
        text = editor_str(text.data + editor_bom(text), text.len - editor_bom(text));
    }
    const char *fault = stream_not_text(stream);
    struct ng_str prefix = {NULL, 0};
    if (fault != NULL) {
        prefix = editor_warning(call, path, fault);
        text = editor_clean(call, text);
    }
    size_t last;
    if (range[1] == -1) {
        last = stream->line;
    } else {
        last = (size_t)range[1];
    }
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
    fitting_start(&stream.fitting, editor, path);
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
    free(stream.data);
    return rc;
}

/* ---- files read whole */

/* The last line up to which the numbered lines from `first` fit. */
static int64_t lines_that_fit(struct ng_str text, int64_t first, struct fitting *fitting)
{
    size_t line = 1;
    for (size_t i = 0; i < text.len && !fitting->over; i++) {
        if (line >= (uint64_t)first) {
            fitting_add(fitting, line, text.data[i]);
        }
        line += text.data[i] == '\n';
    }
    return fitting->fits;
}

static int view_whole(struct ng_call *call, const struct editor *editor, struct ng_str path,
                      const int64_t *range)
{
    struct ng_file file = {.size = sizeof(file)};
    int rc = call->host->file_read(call, path, editor->max_file_size, &file);
    if (rc != NG_OK) {
        return rc;
    }
    struct ng_str text = file.data;
    const char *fault = editor_not_text(text);
    size_t bom = editor_bom(text);
    text = editor_str(text.data + bom, text.len - bom);
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
        if (range[1] == -1) {
            last = total;
        } else {
            last = (size_t)range[1];
        }
    }
    if (rc != NG_OK) {
        return rc;
    }
    struct ng_str lines = editor_numbered(call, text, first, last, first);
    struct fitting fitting;
    fitting_start(&fitting, editor, path);
    if (range != NULL && lines.len > fitting.max) {
        return fail_result_size(call, range, fitting.max,
                                lines_that_fit(text, range[0], &fitting));
    }
    rc = editor_reply_lines(call, prefix, path, lines, "");
    if (rc != NG_OK) {
        return rc;
    }
    return call->host->revision_text(call, file.revision);
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
    if (names->count == names->cap) {
        size_t cap = 256;
        if (names->cap != 0) {
            cap = names->cap * 2;
        }
        struct ng_str *items = realloc(names->items, cap * sizeof(*items));
        if (items == NULL) {
            names->failed = true;
            return 1;
        }
        names->items = items;
        names->cap = cap;
    }
    names->items[names->count++] = entry->name;
    names->bytes += entry->name.len + 1;
    return 0;
}

/* Order of UTF-16 code units, which is that of bytes but for characters beyond U+FFFF: those
 * come before U+E000. */
static int by_code_unit(const void *left, const void *right)
{
    const struct ng_str *a = left;
    const struct ng_str *b = right;
    size_t least = size_min(a->len, b->len);
    for (size_t i = 0; i < least; i++) {
        unsigned char x = (unsigned char)a->data[i];
        unsigned char y = (unsigned char)b->data[i];
        if (x != y) {
            bool x_beyond = x >= 0xf0;
            bool y_beyond = y >= 0xf0;
            if (x_beyond != y_beyond && (x_beyond ? y : x) >= 0xee) {
                if (x_beyond) {
                    return -1;
                }
                return 1;
            }
            if (x < y) {
                return -1;
            }
            return 1;
        }
    }
    return (a->len > b->len) - (a->len < b->len);
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
    struct ng_str clean = editor_clean(call, editor_str(text, len));
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
