/* SPDX-License-Identifier: MIT */
/* history_blame.c - history_blame: the revision that put in each line of a document. */
#include <stdlib.h>
#include <string.h>

#include "core/base/hash_table.h"
#include "core/base/merge/blame.h"
#include "core/base/minmax.h"
#include "core/base/str.h"
#include "core/base/utf8.h"
#include "history.h"

/* Bytes of a run of lines in the answer without its texts, and of what follows all. */
#define BLAME_ROW_MAX ((size_t)256)
#define BLAME_END_MAX ((size_t)64)

/* The newest revisions alone are read first: often no line is older. */
#define BLAME_NEAR ((uint64_t)256)

/* In `struct blame` a version of a file has the index of its path in the bits from here on. */
#define BLAME_PATH_SHIFT 48

struct blamed {
    struct ng_call *call;
    struct history_target target;
    struct history_version version;
    struct ng_str text;         /* of the version, as it is blamed */
    struct history_paths paths; /* of a document one, all its revisions */
    size_t at;                  /* the path that is walked through */
    struct blame *blame;
    uint64_t first; /* forward: the revision that the walk began with, with its path */
    bool is_view;   /* the text is a view, and so are those of earlier versions */
    bool exact;     /* no revision was thinned out */
    bool has_gap;   /* a version that was walked through follows a content that was not kept */
    int rc;
};

static uint64_t with_path(const struct blamed *blamed, uint64_t revision)
{
    return (uint64_t)blamed->at << BLAME_PATH_SHIFT | revision;
}

/* Is it the one whose lines are asked for? */
static bool is_target(const struct blamed *blamed, const struct ng_doc *row)
{
    return blamed->at == 0 && row->revision == blamed->version.revision;
}

/* ---- forward, by what each change replaced ---- */

enum blame_outcome {
    BLAME_DONE,
    BLAME_OLDER, /* a line may be older than the walk's first revision */
    BLAME_UNFIT  /* a text is too long or none, or there was too much to compare */
};

/* Lines of a content that was not kept count for the version behind it. */
static bool follows_gap(struct blamed *blamed, struct ng_str data)
{
    const struct ng_host *host = blamed->call->host;
    const struct ng_value *body = NULL;
    return blamed->target.collection == NULL && data.len > 0 &&
           host->json_parse(blamed->call, data, &body) == NG_OK &&
           host->json_get(body, "gap") != NULL;
}

static int blame_newer(struct blamed *blamed, const struct ng_doc *row)
{
    struct ng_str text = row->deleted ? ng_str_of("") : row->text;
    uint64_t revision = with_path(blamed, row->revision);
    bool is_whole = row->text_splice == NULL;
    if (blamed->blame == NULL) {
        blamed->first = revision;
        return is_whole && utf8_valid(text)
                   ? blame_new(BLAME_FORWARD, text, revision, &blamed->blame)
                   : NG_EINVAL;
    }
    const struct ng_splice splice =
        is_whole ? blame_splice_to(blamed->blame, text) : *row->text_splice;
    int rc = blame_check_utf8(blamed->blame, &splice);
    return rc == NG_OK ? blame_step(blamed->blame, revision, &splice) : rc;
}

static int take_newer(void *user, const struct ng_doc *row)
{
    struct blamed *blamed = user;
    if (is_target(blamed, row)) {
        return 0;
    }
    blamed->rc = blame_newer(blamed, row);
    blamed->has_gap = blamed->has_gap || follows_gap(blamed, row->event_data);
    return blamed->rc != NG_OK || blamed->call->host->cancelled(blamed->call);
}

/* Is a line as old as the walk's first revision, or older? */
static int blame_reaches(struct blamed *blamed, enum blame_outcome *ret)
{
    uint64_t *revisions = NULL;
    size_t count = 0;
    int rc = blame_result(blamed->blame, &revisions, &count);
    *ret = BLAME_DONE;
    for (size_t i = 0; rc == NG_OK && i < count; i++) {
        if (revisions[i] == blamed->first) {
            *ret = BLAME_OLDER;
            break;
        }
    }
    free(revisions);
    return rc;
}

/* The revisions at one path, from `from` on. */
static int blame_forward_path(struct blamed *blamed, size_t at, uint64_t from)
{
    const struct history_path *path = &blamed->paths.items[at];
    struct ng_range range = {.size = sizeof(range),
                             .from = from,
                             .to = path->last,
                             .limit = UINT32_MAX,
                             .with_body = true,
                             .ascending = true,
                             .flags = NG_RANGE_SPLICES};
    blamed->at = at;
    int rc = blamed->call->host->history(blamed->call, &path->target.key, &range, take_newer,
                                         blamed);
    return rc == NG_OK ? blamed->rc : rc;
}

/* From the oldest kept revision on; with `from`, from that one on, of the newest path. */
static enum blame_outcome blame_forward(struct blamed *blamed, uint64_t from)
{
    const struct history_version *version = &blamed->version;
    const struct history_paths *paths = &blamed->paths;
    enum blame_outcome outcome = BLAME_DONE;
    int rc = NG_OK;
    for (size_t at = from != 0 ? 1 : paths->count; at > 0 && rc == NG_OK; at--) {
        uint64_t first = paths->items[at - 1].first;
        rc = blame_forward_path(blamed, at - 1, from != 0 ? from : first);
    }
    if (rc == NG_OK && blamed->blame == NULL) {
        blamed->first = version->revision;
        rc = blame_new(BLAME_FORWARD, blamed->text, version->revision, &blamed->blame);
    } else if (rc == NG_OK) {
        rc = blame_step_text(blamed->blame, version->revision, blamed->text);
    }
    if (rc == NG_OK && from != 0) {
        rc = blame_reaches(blamed, &outcome);
    }
    return rc == NG_OK && blame_exact(blamed->blame) ? outcome : BLAME_UNFIT;
}

static void blame_discard(struct blamed *blamed)
{
    blame_free(blamed->blame);
    blamed->blame = NULL;
    blamed->has_gap = false;
    blamed->rc = NG_OK;
}

/* ---- backward, by whole texts ---- */

/* One revision after the other, from the newest on. */
struct blame_row {
    struct blamed *blamed;
    uint64_t revision;
};

static int step_older(void *user, struct ng_str text)
{
    const struct blame_row *row = user;
    struct blamed *blamed = row->blamed;
    if (!utf8_valid(text)) {
        text = ng_str_of("");
    }
    blamed->rc = blame_step_text(blamed->blame, row->revision, text);
    return 0;
}

static int take_older(void *user, const struct ng_doc *row)
{
    struct blamed *blamed = user;
    struct blame_row step = {blamed, with_path(blamed, row->revision)};
    struct ng_str text = row->deleted ? ng_str_of("") : row->text;
    if (is_target(blamed, row)) {
        return 0;
    }
    int rc = NG_OK;
    if (blamed->is_view && !row->deleted) {
        rc = blamed->call->host->file_view(blamed->call, blamed->target.key.id, text,
                                           step_older, &step);
    } else {
        (void)step_older(&step, text);
    }
    blamed->rc = rc == NG_OK ? blamed->rc : rc;
    blamed->has_gap = blamed->has_gap || follows_gap(blamed, row->event_data);
    return blamed->rc != NG_OK || blame_settled(blamed->blame) ||
           blamed->call->host->cancelled(blamed->call);
}

static int blame_backward_path(struct blamed *blamed, size_t at)
{
    const struct history_path *path = &blamed->paths.items[at];
    struct ng_range range = {.size = sizeof(range),
                             .from = path->first,
                             .to = path->last,
                             .limit = UINT32_MAX,
                             .with_body = true};
    blamed->at = at;
    return blamed->call->host->history(blamed->call, &path->target.key, &range, take_older,
                                       blamed);
}

static int blame_backward(struct blamed *blamed)
{
    struct ng_call *call = blamed->call;
    int rc = blame_new(BLAME_BACKWARD, blamed->text, blamed->version.revision, &blamed->blame);
    if (rc != NG_OK) {
        return history_no_memory(call);
    }
    for (size_t at = 0; at < blamed->paths.count && rc == NG_OK && blamed->rc == NG_OK &&
                        !blame_settled(blamed->blame);
         at++) {
        rc = blame_backward_path(blamed, at);
    }
    if (rc == NG_OK && blamed->rc == NG_ETOOLARGE) {
        return ng_fail(call, NG_ETOOLARGE, "an earlier text has more than %zu bytes",
                       HISTORY_TEXT_MAX);
    }
    if (rc == NG_OK && blamed->rc != NG_OK) {
        return history_no_memory(call);
    }
    return rc;
}

/* Are all revisions kept that led to this one? */
static int blame_count(struct blamed *blamed)
{
    const struct history_paths *paths = &blamed->paths;
    bool has_gap =
        blamed->has_gap || history_has_gap(blamed->call, &blamed->target, blamed->version.doc);
    blamed->exact = blame_exact(blamed->blame) && !paths->is_cut && !has_gap;
    int rc = NG_OK;
    for (size_t at = 0; at < paths->count && rc == NG_OK && blamed->exact; at++) {
        const struct history_path *path = &paths->items[at];
        const struct ng_range range = {
            .size = sizeof(range), .from = path->first, .to = path->last};
        uint64_t kept = 0;
        rc = blamed->call->host->history_count(blamed->call, &path->target.key, &range, &kept);
        blamed->exact = kept == path->last - path->first + 1;
    }
    return rc;
}

/*
 * Both ways give the same result. Forward costs as much as was changed, but needs all
 * revisions; backward ends where every line has its revision, and does without texts before
 * that, whatever they are. Views are not what changes replaced: they are compared backward.
 */
static int blame_all(struct blamed *blamed)
{
    const struct history_path *path = &blamed->paths.items[0];
    enum blame_outcome outcome = blamed->is_view ? BLAME_UNFIT : BLAME_OLDER;
    if (outcome == BLAME_OLDER && path->last - path->first >= BLAME_NEAR) {
        outcome = blame_forward(blamed, path->last - BLAME_NEAR + 1);
    }
    if (outcome == BLAME_OLDER) {
        blame_discard(blamed);
        outcome = blame_forward(blamed, 0);
    }
    int rc = NG_OK;
    if (outcome != BLAME_DONE) {
        blame_discard(blamed);
        rc = blame_backward(blamed);
    }
    return rc == NG_OK ? blame_count(blamed) : rc;
}

/* ---- the answer ---- */

/* The path of a revision of the result, and the revision there. */
static const struct history_path *path_of(const struct blamed *blamed, uint64_t *inout_revision)
{
    size_t at = (size_t)(*inout_revision >> BLAME_PATH_SHIFT);
    *inout_revision -= (uint64_t)at << BLAME_PATH_SHIFT;
    return &blamed->paths.items[at];
}

/* A cache: the change that made a revision. */
struct blame_change {
    struct hash_link link;
    uint64_t revision; /* with its path */
    struct history_change change;
};

static bool change_is(const struct hash_link *link, const void *key)
{
    return HASH_ITEM(link, struct blame_change, link)->revision == *(const uint64_t *)key;
}

static const struct history_change *change_of(struct blamed *blamed, struct hash_table *table,
                                              uint64_t revision)
{
    struct hash_link *link = hash_table_find(table, revision, change_is, &revision);
    if (link != NULL) {
        return &HASH_ITEM(link, struct blame_change, link)->change;
    }
    struct blame_change *found = ng_alloc(blamed->call, sizeof(*found));
    if (found == NULL) {
        return NULL;
    }
    *found = (struct blame_change){.revision = revision};
    const struct history_path *path = path_of(blamed, &revision);
    if (history_change_of(blamed->call, &path->target, revision, &found->change) != NG_OK ||
        hash_table_add(table, &found->link, found->revision) != NG_OK) {
        return NULL;
    }
    return &found->change;
}

/* Lines one after the other with the same revision. */
struct blame_lines {
    uint64_t first, last;
    struct ng_str text;
};

static int put_lines(struct blamed *blamed, struct ng_writer *writer, struct hash_table *table,
                     const struct blame_lines *lines, uint64_t revision)
{
    const struct history_change *change = change_of(blamed, table, revision);
    if (change == NULL) {
        return history_no_memory(blamed->call);
    }
    const struct history_path *path = path_of(blamed, &revision);
    json_object(writer);
    json_member_int(writer, "first", (int64_t)lines->first);
    json_member_int(writer, "last", (int64_t)lines->last);
    json_member_string(writer, "text", lines->text);
    json_member_int(writer, "revision", (int64_t)revision);
    if (path != blamed->paths.items) {
        json_member_string(writer, "path", path->target.key.id);
    }
    history_put_change(writer, change);
    json_end(writer);
    return NG_OK;
}

/* The lines from `first` on, which begins at `at`, that have its revision: at most `most`. */
static struct blame_lines lines_from(struct blamed *blamed, const uint64_t *revisions,
                                     uint64_t first, uint64_t most, size_t at)
{
    struct ng_str text = blamed->text;
    struct blame_lines lines = {first, first, history_line(text, at)};
    while (lines.last - first + 1 < most && revisions[lines.last] == revisions[first - 1]) {
        lines.text.len += 1 + history_line(text, at + lines.text.len + 1).len;
        lines.last++;
    }
    return lines;
}

/* Only those that `room` bytes of JSON hold; false: none. The first one may be empty. */
static bool lines_cut(struct blame_lines *lines, size_t room)
{
    struct ng_str whole = lines->text;
    size_t len = json_cut(whole, room).len;
    if (len == whole.len || room == 0) {
        return room > 0;
    }
    while (len > 0 && whole.data[len] != '\n') {
        len--;
    }
    lines->text.len = len;
    lines->last = lines->first + u64_max(history_count_lines(lines->text), 1) - 1;
    return whole.data[len] == '\n';
}

/* Bytes of the answer besides the text of the row. */
static size_t row_around(const struct blamed *blamed, uint64_t revision)
{
    const struct history_path *path = path_of(blamed, &revision);
    bool is_named = path != blamed->paths.items;
    return BLAME_ROW_MAX + BLAME_END_MAX +
           (is_named ? JSON_GROWTH_MAX * path->target.key.id.len : 0);
}

/* As many lines as the call wants and the answer holds; *ret_next: the one behind them. */
static int put_all(struct blamed *blamed, struct ng_writer *writer, const uint64_t *revisions,
                   uint64_t total, uint64_t *ret_next)
{
    struct ng_call *call = blamed->call;
    uint64_t line = (uint64_t)ng_arg_int(call, "start_line", 1);
    uint64_t most = (uint64_t)ng_arg_int(call, "max_lines", HISTORY_BLAME_LINES);
    uint64_t end = u64_min(line + u64_min(most, total), total + 1);
    struct hash_table table = {0};
    size_t at = 0;
    int rc = NG_OK;
    bool fits = true;
    for (uint64_t i = 1; i < line && total > 0; i++) {
        at += history_line(blamed->text, at).len + 1;
    }
    while (rc == NG_OK && fits && line < end) {
        struct blame_lines lines = lines_from(blamed, revisions, line, end - line, at);
        uint64_t last = lines.last;
        size_t room = call->host->answer_room(call);
        size_t around = row_around(blamed, revisions[line - 1]);
        fits = lines_cut(&lines, room - size_min(room, around));
        if (fits) {
            rc = put_lines(blamed, writer, &table, &lines, revisions[line - 1]);
            at += lines.text.len + 1;
            line = lines.last + 1;
            fits = lines.last == last;
        }
    }
    hash_table_done(&table);
    *ret_next = line;
    return rc;
}

static int blame_answer(struct blamed *blamed, const uint64_t *revisions, uint64_t total)
{
    struct ng_call *call = blamed->call;
    uint64_t start = 0;
    uint64_t next = 0;
    int rc = history_start_line(call, total, &start);
    if (rc != NG_OK) {
        return rc;
    }
    struct ng_writer *writer = call->host->reply_json(call);
    json_object(writer);
    history_put_key(writer, &blamed->target.shown);
    json_member_int(writer, "revision", (int64_t)blamed->version.revision);
    json_member_int(writer, "total_lines", (int64_t)total);
    json_member_bool(writer, "exact", blamed->exact);
    json_name(writer, "lines");
    json_array(writer);
    rc = put_all(blamed, writer, revisions, total, &next);
    json_end(writer);
    if (rc == NG_OK && next <= total) {
        json_member_int(writer, "next_line", (int64_t)next);
    }
    json_end(writer);
    if (rc == NG_OK && next == start && total > 0) {
        return history_line_too_long(call, start);
    }
    return rc;
}

static int blame_text(struct blamed *blamed)
{
    struct ng_call *call = blamed->call;
    struct ng_str text = blamed->text;
    uint64_t *revisions = NULL;
    size_t count = 0;
    if (text.len > HISTORY_TEXT_MAX) {
        return ng_fail(call, NG_ETOOLARGE,
                       "the text has %zu bytes, more than %zu are not traced", text.len,
                       HISTORY_TEXT_MAX);
    }
    if (!utf8_valid(text)) {
        return ng_fail(call, NG_EINVAL, "the content is not UTF-8, so it has no lines");
    }
    int rc = blame_all(blamed);
    if (rc == NG_OK && blame_result(blamed->blame, &revisions, &count) != NG_OK) {
        rc = history_no_memory(call);
    }
    if (rc == NG_OK) {
        rc = blame_answer(blamed, revisions, count);
    }
    free(revisions);
    return rc;
}

/* Its text, and the paths that it had. */
static int blame_prepare(struct blamed *blamed)
{
    struct ng_str content = str_or(blamed->version.doc->text, ng_str_of(""));
    int rc = history_view(blamed->call, &blamed->target, content, &blamed->text);
    blamed->is_view = rc == NG_OK && blamed->text.data != content.data;
    if (rc == NG_OK) {
        rc = history_paths(blamed->call, &blamed->target, blamed->version.revision,
                           &blamed->paths);
    }
    return rc;
}

int history_blame_run(void *self, struct ng_call *call, struct ng_str args)
{
    struct blamed blamed = {.call = call};
    (void)self;
    (void)args;
    int rc = history_target(call, &blamed.target);
    if (rc == NG_OK) {
        rc = history_at(call, &blamed.target, "at", ng_str_of("now"), &blamed.version);
    }
    if (rc == NG_OK) {
        rc = blame_prepare(&blamed);
    }
    if (rc == NG_OK) {
        rc = blame_text(&blamed);
    }
    blame_free(blamed.blame);
    return rc;
}
