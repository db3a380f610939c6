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

struct blamed {
    struct ng_call *call;
    struct history_target target;
    struct history_version version;
    struct blame *blame;
    uint64_t first; /* forward: the revision that the walk began with */
    bool exact;     /* no revision was thinned out */
    int rc;
};

/* ---- forward, by what each change replaced ---- */

enum blame_outcome {
    BLAME_DONE,
    BLAME_OLDER, /* a line may be older than the walk's first revision */
    BLAME_UNFIT  /* a text is too long or none, or there was too much to compare */
};

static int blame_newer(struct blamed *blamed, const struct ng_doc *row)
{
    struct ng_str text = row->deleted ? ng_str_of("") : row->text;
    bool is_whole = row->text_splice == NULL;
    if (blamed->blame == NULL) {
        blamed->first = row->revision;
        return is_whole && utf8_valid(text)
                   ? blame_new(BLAME_FORWARD, text, row->revision, &blamed->blame)
                   : NG_EINVAL;
    }
    const struct ng_splice splice =
        is_whole ? blame_splice_to(blamed->blame, text) : *row->text_splice;
    int rc = blame_check_utf8(blamed->blame, &splice);
    return rc == NG_OK ? blame_step(blamed->blame, row->revision, &splice) : rc;
}

static int take_newer(void *user, const struct ng_doc *row)
{
    struct blamed *blamed = user;
    if (row->revision == blamed->version.revision) {
        return 0;
    }
    blamed->rc = blame_newer(blamed, row);
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

/* From the oldest kept revision that is not before `from` on. */
static enum blame_outcome blame_forward(struct blamed *blamed, uint64_t from)
{
    const struct history_version *version = &blamed->version;
    struct ng_range range = {.size = sizeof(range),
                             .from = from,
                             .to = version->revision,
                             .limit = UINT32_MAX,
                             .with_body = true,
                             .ascending = true,
                             .flags = NG_RANGE_SPLICES};
    enum blame_outcome outcome = BLAME_DONE;
    int rc = blamed->call->host->history(blamed->call, &blamed->target.key, &range, take_newer,
                                         blamed);
    rc = rc == NG_OK ? blamed->rc : rc;
    if (rc == NG_OK && blamed->blame == NULL) {
        blamed->first = version->revision;
        rc = blame_new(BLAME_FORWARD, version->doc->text, version->revision, &blamed->blame);
    } else if (rc == NG_OK) {
        rc = blame_step_text(blamed->blame, version->revision, version->doc->text);
    }
    if (rc == NG_OK && from > 1) {
        rc = blame_reaches(blamed, &outcome);
    }
    return rc == NG_OK && blame_exact(blamed->blame) ? outcome : BLAME_UNFIT;
}

static void blame_discard(struct blamed *blamed)
{
    blame_free(blamed->blame);
    blamed->blame = NULL;
    blamed->rc = NG_OK;
}

/* ---- backward, by whole texts ---- */

/* One revision after the other, from the newest on. */
static int take_older(void *user, const struct ng_doc *row)
{
    struct blamed *blamed = user;
    if (row->revision == blamed->version.revision) {
        return 0;
    }
    struct ng_str text = row->deleted ? ng_str_of("") : row->text;
    if (!utf8_valid(text)) {
        text = ng_str_of("");
    }
    blamed->rc = blame_step_text(blamed->blame, row->revision, text);
    return blamed->rc != NG_OK || blame_settled(blamed->blame) ||
           blamed->call->host->cancelled(blamed->call);
}

static int blame_backward(struct blamed *blamed)
{
    struct ng_call *call = blamed->call;
    struct ng_range range = {.size = sizeof(range),
                             .to = blamed->version.revision,
                             .limit = UINT32_MAX,
                             .with_body = true};
    int rc = blame_new(BLAME_BACKWARD, blamed->version.doc->text, blamed->version.revision,
                       &blamed->blame);
    if (rc != NG_OK) {
        return history_no_memory(call);
    }
    rc = call->host->history(call, &blamed->target.key, &range, take_older, blamed);
    if (rc == NG_OK && blamed->rc == NG_ETOOLARGE) {
        return ng_fail(call, NG_ETOOLARGE, "an earlier text has more than %zu bytes",
                       HISTORY_TEXT_MAX);
    }
    if (rc == NG_OK && blamed->rc != NG_OK) {
        return history_no_memory(call);
    }
    return rc;
}

/*
 * Both ways give the same result. Forward costs as much as was changed, but needs all
 * revisions; backward ends where every line has its revision, and does without texts before
 * that, whatever they are.
 */
static int blame_all(struct blamed *blamed)
{
    struct ng_call *call = blamed->call;
    const struct ng_range range = {.size = sizeof(range), .to = blamed->version.revision};
    enum blame_outcome outcome = BLAME_OLDER;
    uint64_t kept = 0;
    if (range.to > BLAME_NEAR) {
        outcome = blame_forward(blamed, range.to - BLAME_NEAR + 1);
    }
    if (outcome == BLAME_OLDER) {
        blame_discard(blamed);
        outcome = blame_forward(blamed, 1);
    }
    int rc = NG_OK;
    if (outcome != BLAME_DONE) {
        blame_discard(blamed);
        rc = blame_backward(blamed);
    }
    if (rc == NG_OK) {
        rc = call->host->history_count(call, &blamed->target.key, &range, &kept);
        blamed->exact = blame_exact(blamed->blame) && kept == blamed->version.revision;
    }
    return rc;
}

/* ---- the answer ---- */

/* A cache: the change that made a revision. */
struct blame_change {
    struct hash_link link;
    uint64_t revision;
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
    if (history_change_of(blamed->call, &blamed->target, revision, &found->change) != NG_OK ||
        hash_table_add(table, &found->link, revision) != NG_OK) {
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
    json_object(writer);
    json_member_int(writer, "first", (int64_t)lines->first);
    json_member_int(writer, "last", (int64_t)lines->last);
    json_member_string(writer, "text", lines->text);
    json_member_int(writer, "revision", (int64_t)revision);
    history_put_change(writer, change);
    json_end(writer);
    return NG_OK;
}

/* The lines from `first` on, which begins at `at`, that have its revision: at most `most`. */
static struct blame_lines lines_from(struct blamed *blamed, const uint64_t *revisions,
                                     uint64_t first, uint64_t most, size_t at)
{
    struct ng_str text = blamed->version.doc->text;
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
        at += history_line(blamed->version.doc->text, at).len + 1;
    }
    while (rc == NG_OK && fits && line < end) {
        struct blame_lines lines = lines_from(blamed, revisions, line, end - line, at);
        uint64_t last = lines.last;
        size_t room = call->host->answer_room(call);
        fits = lines_cut(&lines, room - size_min(room, BLAME_ROW_MAX + BLAME_END_MAX));
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
    struct ng_str text = blamed->version.doc->text;
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
        rc = blame_text(&blamed);
    }
    blame_free(blamed.blame);
    return rc;
}
