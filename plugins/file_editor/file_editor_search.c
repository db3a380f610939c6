/* SPDX-License-Identifier: MIT */
/* file_editor_search.c - the command search: the lines of a file, or of the files of a folder,
 * that match. The file service walks the folder; memory is a block, a line and the answer. */
#include <string.h>

#include "core/base/buf.h"
#include "core/base/clock.h"
#include "core/base/utf8.h"
#include "file_editor_search.h"

#define SEARCH_LINES 100 /* default of `max` */
#define SEARCH_SHOWN 400 /* bytes of a line in the answer */
#define SEARCH_FILE_MAX ((uint64_t)16 * 1024 * 1024)
#define SEARCH_LINE_MAX ((size_t)1024 * 1024) /* the rest of a longer line is not searched */
#define SEARCH_END_MAX ((size_t)4 * 1024)     /* of an answer: what was left out */
#define SEARCH_PATH_MAX ((size_t)64 * 1024)
#define SEARCH_DEPTH 64 /* levels of folders */
/* Limits of one call. At a limit, the search answers its results so far. */
#define SEARCH_ENTRIES_MAX 1000000
#define SEARCH_BYTES_MAX ((uint64_t)8 * 1024 * 1024 * 1024)
#define SEARCH_MS 20000
#define SEARCH_MARGIN_MS 500 /* before the deadline of the call */

enum left_out {
    LEFT_MAX,
    LEFT_ANSWER,
    LEFT_BINARY,
    LEFT_HIDDEN,
    LEFT_LARGE,
    LEFT_LINKS,
    LEFT_UNREADABLE,
    LEFT_DEEP,
    LEFT_REST,
    LEFT_KINDS
};

static const char *const left_texts[LEFT_KINDS] = {
    "over `max`",
    "over the size of an answer",
    "binary",
    "hidden",
    "over 16 MiB",
    "links",
    "unreadable",
    "folders deeper than 64 levels",
    "lines from their first 1 MiB on",
};

/* The result so far. It is restored to `before` if the present file is binary. */
struct tally {
    uint64_t lines, files, shown;
    uint64_t left[LEFT_KINDS];
    size_t text; /* bytes of the answer */
};

struct search {
    struct ng_call *call;
    const struct editor_job *job;
    struct matcher *matcher;
    struct name_glob *glob;
    uint64_t max;
    int64_t deadline_ns;
    struct buf answer;
    struct buf line; /* the beginning of a line that goes on in the next block */
    struct tally tally;
    uint64_t entries, bytes; /* looked at */
    const char *stopped;     /* the limit that was reached; NULL: none */
    int rc;
    /* The present file. */
    struct buf path; /* absolute */
    struct tally before;
    uint64_t number; /* of its lines before the block */
    bool is_open;
    bool is_begun;
    bool skips; /* the rest of a line that is too long */
};

/* ---- the answer */

/* At most SEARCH_SHOWN bytes of the line around its match, as valid UTF-8. {NULL, 0}: out of
 * memory. */
static struct ng_str search_excerpt(struct search *search, struct ng_str text,
                                    const struct match_line *line)
{
    struct ng_str whole = {text.data + line->start, line->end - line->start};
    size_t from = line->from - line->start;
    size_t to = line->to - line->start;
    /* Bytes that are no UTF-8 take three bytes in the answer. */
    size_t room = SEARCH_SHOWN;
    for (;;) {
        size_t start = 0;
        struct ng_str shown = whole;
        if (whole.len > room) {
            size_t around = room - size_min(room, to - from);
            start = from - size_min(from, around / 2);
            start = size_min(start, whole.len - room);
            while (start < from && !utf8_is_start(whole.data[start])) {
                start++;
            }
            shown = str_make(whole.data + start, size_min(room, whole.len - start));
            if (start + shown.len < whole.len) {
                size_t end = shown.len;
                while (end > 0 && end + UTF8_BYTES_MAX > shown.len &&
                       !utf8_is_start(shown.data[end])) {
                    end--;
                }
                shown.len = end;
            }
        }
        struct ng_str clean = editor_clean(search->call, shown);
        if (clean.len <= SEARCH_SHOWN || room <= SEARCH_SHOWN / 3) {
            return clean;
        }
        room = SEARCH_SHOWN / 3;
    }
}

static void search_report(struct search *search, struct ng_str text,
                          const struct match_line *line)
{
    struct tally *tally = &search->tally;
    tally->files += tally->lines == search->before.lines;
    tally->lines++;
    if (tally->shown == search->max) {
        tally->left[LEFT_MAX]++;
        return;
    }
    struct ng_str path = editor_clean(search->call, buf_str(&search->path));
    struct ng_str shown = search_excerpt(search, text, line);
    if (path.data == NULL || shown.data == NULL) {
        search->rc = ng_fail(search->call, NG_EINTERNAL, "Out of memory for a search.");
        return;
    }
    (void)buf_printf(&search->answer, "%.*s:%llu: ", (int)path.len, path.data,
                     (unsigned long long)search->number + 1);
    (void)buf_add_str(&search->answer, shown);
    (void)buf_add_char(&search->answer, '\n');
    if (search->answer.rc == NG_ETOOLARGE) {
        buf_cut(&search->answer, tally->text);
        tally->left[LEFT_ANSWER]++;
        return;
    }
    tally->shown++;
    tally->text = search->answer.len;
}

static int search_reply(struct search *search)
{
    struct tally *tally = &search->tally;
    struct buf end;
    buf_init(&end, SEARCH_END_MAX);
    (void)buf_printf(&end, "%llu matches in %llu files", (unsigned long long)tally->lines,
                     (unsigned long long)tally->files);
    const char *before = "\nLeft out: ";
    for (size_t i = 0; i < LEFT_KINDS; i++) {
        if (tally->left[i] > 0) {
            (void)buf_printf(&end, "%s%llu %s", before, (unsigned long long)tally->left[i],
                             left_texts[i]);
            before = ", ";
        }
    }
    if (search->stopped != NULL) {
        (void)buf_printf(&end,
                         "\nNot complete, stopped at the limit of %s. Search a folder below, "
                         "or with `glob`.",
                         search->stopped);
    }
    const struct ng_str pieces[] = {
        str_or(buf_str(&search->answer), ng_str_of("")),
        buf_str(&end),
    };
    int rc = end.rc == NG_OK && search->answer.rc == NG_OK
                 ? search->call->host->reply_parts(search->call, pieces, NG_COUNT(pieces))
                 : ng_fail(search->call, NG_EINTERNAL, "Out of memory for a search.");
    buf_done(&end);
    return rc;
}

/* ---- a file */

static void search_failed(struct search *search, enum matcher_found found)
{
    struct ng_call *call = search->call;
    if (found == MATCHER_LATE) {
        search->stopped = "time";
    } else if (found == MATCHER_CANCELLED) {
        int code = call->host->remaining_ms(call) <= 0 ? NG_ETIMEOUT : NG_ECANCELLED;
        search->rc = ng_fail(call, code, "The call was cancelled or its time is up.");
    } else {
        search->rc = ng_fail(
            call, NG_EFAILED,
            "The pattern takes too many steps on %.*s, line %llu. Use a simpler "
            "one (without nested repeats).",
            (int)search->path.len, search->path.data, (unsigned long long)search->number + 1);
    }
}

/* Whole lines. */
static void search_lines(struct search *search, struct ng_str text)
{
    struct match_line line;
    enum matcher_found found = MATCHER_NONE;
    size_t at = 0;
    while (search->rc == NG_OK &&
           (found = matcher_next(search->matcher, text, at, &line)) == MATCHER_LINE) {
        search->number += editor_count(str_make(text.data + at, line.start - at), '\n');
        search_report(search, text, &line);
        search->number++;
        at = line.next;
    }
    if (search->rc == NG_OK && found != MATCHER_NONE) {
        search->number += editor_count(str_make(text.data + at, line.start - at), '\n');
        search_failed(search, found);
        return;
    }
    search->number += editor_count(str_make(text.data + at, text.len - at), '\n');
}

/* Appends to the incomplete line. */
static void search_keep(struct search *search, struct ng_str part)
{
    size_t room = SEARCH_LINE_MAX - search->line.len;
    if (part.len > room) {
        search->tally.left[LEFT_REST] += !search->skips;
        search->skips = true;
        part.len = room;
    }
    if (part.len > 0 && buf_add_str(&search->line, part) != NG_OK) {
        search->rc = ng_fail(search->call, NG_EINTERNAL, "Out of memory for a search.");
    }
}

/* Searches the line, which is complete now. */
static void search_kept(struct search *search)
{
    if (search->line.len > 0) {
        search_lines(search, buf_str(&search->line));
    }
    search->number += search->skips; /* without its LF it was not counted */
    search->skips = false;
    buf_clear(&search->line);
}

static void search_block(struct search *search, struct ng_str block)
{
    if (search->line.len > 0) {
        const char *end = memchr(block.data, '\n', block.len);
        size_t len = end != NULL ? (size_t)(end - block.data) + 1 : block.len;
        search_keep(search, str_make(block.data, len));
        if (end == NULL) {
            return;
        }
        search_kept(search);
        block = str_make(block.data + len, block.len - len);
    }
    const char *last = block.len > 0 ? memrchr(block.data, '\n', block.len) : NULL;
    size_t lines = last != NULL ? (size_t)(last - block.data) + 1 : 0;
    if (lines > 0 && search->rc == NG_OK) {
        search_lines(search, str_make(block.data, lines));
    }
    if (search->rc == NG_OK) {
        search_keep(search, str_make(block.data + lines, block.len - lines));
    }
}

static void search_close(struct search *search)
{
    search->tally.left[LEFT_UNREADABLE] += search->is_open; /* it did not come to its end */
    search->is_open = false;
    search->skips = false;
    buf_clear(&search->line);
}

/* True if a limit of the call is reached. */
static bool search_is_over(struct search *search)
{
    if (search->entries > SEARCH_ENTRIES_MAX) {
        search->stopped = "1000000 files and folders";
    } else if (search->bytes > SEARCH_BYTES_MAX) {
        search->stopped = "8 GiB";
    } else if (clock_monotonic_ns() >= search->deadline_ns) {
        search->stopped = "time";
    }
    return search->stopped != NULL || search->rc != NG_OK;
}

static int search_content(void *user, struct ng_str block)
{
    struct search *search = user;
    if (block.len == 0) {
        search_kept(search);
        search->is_open = false;
        return 0;
    }
    search->bytes += block.len;
    if (memchr(block.data, '\0', block.len) != NULL) {
        search->tally = search->before;
        search->tally.left[LEFT_BINARY]++;
        buf_cut(&search->answer, search->before.text);
        search->is_open = false;
        return 1;
    }
    if (!search->is_begun) {
        search->is_begun = true;
        size_t bom = editor_bom(block);
        block = str_make(block.data + bom, block.len - bom);
    }
    search_block(search, block);
    if (search_is_over(search)) {
        search->is_open = false;
        return 1;
    }
    return 0;
}

/* ---- a folder */

static bool search_is_hidden(struct ng_str path)
{
    const char *slash = memrchr(path.data, '/', path.len);
    return *(slash != NULL ? slash + 1 : path.data) == '.';
}

static int search_skip(struct search *search, enum left_out kind)
{
    search->tally.left[kind]++;
    return 0;
}

static int search_folder(struct search *search, struct ng_str path)
{
    size_t depth = editor_count(path, '/') + 2;
    return depth > SEARCH_DEPTH ? search_skip(search, LEFT_DEEP) : NG_ENTRY_INTO;
}

static int search_file(struct search *search, const struct ng_file_entry *entry)
{
    struct ng_str root = search->job->path;
    struct ng_str name = entry->name;
    if (name.len == 0) { /* the path itself: a glob is for its name */
        const char *slash = memrchr(root.data, '/', root.len);
        name = str_make(slash + 1, (size_t)(root.data + root.len - slash) - 1);
    }
    if (!name_glob_match(search->glob, name)) {
        return 0;
    }
    if (entry->bytes > SEARCH_FILE_MAX) {
        return search_skip(search, LEFT_LARGE);
    }
    buf_clear(&search->path);
    (void)buf_add_str(&search->path, root);
    if (entry->name.len > 0) {
        (void)buf_add_char(&search->path, '/');
        (void)buf_add_str(&search->path, entry->name);
    }
    if (search->path.rc != NG_OK) {
        return search_skip(search, LEFT_UNREADABLE);
    }
    search->before = search->tally;
    search->number = 0;
    search->is_open = true;
    search->is_begun = false;
    return NG_ENTRY_INTO;
}

static int search_entry(void *user, const struct ng_file_entry *entry)
{
    struct search *search = user;
    search_close(search);
    search->entries++;
    if (search_is_over(search)) {
        return 1;
    }
    if (entry->name.len > 0 && search_is_hidden(entry->name)) {
        return search_skip(search, LEFT_HIDDEN);
    }
    if (entry->link) {
        return search_skip(search, LEFT_LINKS);
    }
    if (entry->type == NG_FILE_DIRECTORY) {
        return search_folder(search, entry->name);
    }
    return entry->type == NG_FILE_REGULAR ? search_file(search, entry) : 0;
}

static int search_run(struct search *search)
{
    struct ng_call *call = search->call;
    const struct ng_file_list list = {
        .size = sizeof(list),
        .path = search->job->path,
        .depth = SEARCH_DEPTH,
        .content = search_content,
    };
    struct ng_file file = {.size = sizeof(file)};
    int rc = call->host->file_stat(call, list.path, &file);
    if (rc == NG_OK && file.type == NG_FILE_NONE) {
        rc = editor_fail_missing(call, list.path);
    }
    if (rc == NG_OK) {
        rc = call->host->file_list(call, &list, search_entry, search);
    }
    search_close(search);
    if (search->rc != NG_OK) {
        return search->rc;
    }
    return rc == NG_OK ? search_reply(search) : rc;
}

int editor_search(struct ng_call *call, struct editor_job *job)
{
    const struct ng_host *host = call->host;
    int64_t left = host->remaining_ms(call);
    struct search search = {
        .call = call,
        .job = job,
        .max = (uint64_t)ng_arg_int(call, "max", SEARCH_LINES),
        .deadline_ns = clock_monotonic_ns() +
                       i64_min(SEARCH_MS, i64_max(left - SEARCH_MARGIN_MS, left / 2)) * 1000000,
    };
    const struct matcher_options options = {
        .pattern = ng_arg_text(call, "pattern"),
        .regex = host->json_type(ng_arg(call, "regex")) == NG_TYPE_TRUE,
        .ignore_case = host->json_type(ng_arg(call, "ignore_case")) == NG_TYPE_TRUE,
        .deadline_ns = search.deadline_ns,
    };
    size_t room = host->answer_room(call);
    buf_init(&search.answer, room - size_min(room / 2, SEARCH_END_MAX));
    buf_init(&search.line, SEARCH_LINE_MAX);
    buf_init(&search.path, SEARCH_PATH_MAX);
    int rc = matcher_open(call, &options, &search.matcher);
    if (rc == NG_OK && ng_has_arg(call, "glob")) {
        rc = name_glob_open(call, ng_arg_text(call, "glob"), &search.glob);
    }
    if (rc == NG_OK) {
        rc = search_run(&search);
    }
    matcher_close(search.matcher);
    name_glob_close(search.glob);
    buf_done(&search.answer);
    buf_done(&search.line);
    buf_done(&search.path);
    return rc;
}
