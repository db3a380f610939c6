/* SPDX-License-Identifier: MIT */
/* history_command.c - notegate show, diff and blame of one document. */
#include "history_command.h"

#include <inttypes.h>

#include "core/base/minmax.h"
#include "core/base/str.h"
#include "core/base/text/base64.h"
#include "core/history/point.h"
#include "history_changes.h"
#include "history_session.h"

/* Lines that an answer is asked for: as many as it holds. */
#define COMMAND_LINES_MAX INT32_MAX

struct document {
    struct history_name name;
    struct history_range range; /* of diff; else `from` is the point */
    uint64_t first, last;       /* of blame; last 0: to the end */
    char point[32];             /* the revision of the first answer, for those behind it */
};

/* ---- words and options ---- */

static int document_check(struct command_line *line, enum history_points points,
                          struct document *ret)
{
    const char *why = "";
    const char *at = line->find.at;
    *ret = (struct document){.first = 1};
    const struct command_filter space = {.name = "space", .value = line->find.space};
    if (command_check_filters(line, &space, 1) != COMMAND_OK) {
        return COMMAND_USAGE;
    }
    int rc = history_name_parse(&line->arena, ng_str_of(line->words[0]),
                                at != NULL ? HISTORY_POINT_NONE : points, &ret->name, &why);
    if (rc != NG_OK) {
        return command_usage(line, "\"%s\" names no document: %s", line->words[0], why);
    }
    bool has_space = ret->name.space.data != NULL || ret->name.path.len > 0;
    if (line->find.space != NULL && has_space) {
        return command_usage(line, "\"%s\" names the space already: leave out --space",
                             line->words[0]);
    }
    if (line->find.space != NULL) {
        ret->name.space = ng_str_of(line->find.space);
    }
    struct ng_str point = at != NULL ? ng_str_of(at) : ret->name.point;
    bool good = points == HISTORY_POINT_RANGE ? history_range_parse(point, &ret->range)
                                              : history_is_point(point);
    if (point.data != NULL && !good) {
        return command_usage(
            line,
            "--at is \"%s\", it must be a revision (7), a change (#1234), a "
            "time (2026-01-28T14:30:00Z), a day, how long ago (30m, 2h, 7d), or "
            "now%s",
            at, points == HISTORY_POINT_RANGE ? "; or two of them, A..B" : "");
    }
    if (points == HISTORY_POINT_ONE) {
        ret->range.from = point;
    }
    return COMMAND_OK;
}

/* The name of what is not there may end in what was meant as a point. */
static int document_missed(const struct document *document, int rc)
{
    struct ng_str tail = document->name.tail;
    if (rc == COMMAND_FAILED && tail.data != NULL) {
        command_error(
            "\"@%.*s\" is part of the name; a point is a revision such as 7, or " POINT_FORMS,
            (int)tail.len, tail.data);
    }
    return rc;
}

/* ---- parts of a document ---- */

/* The parts behind the first one are of its revision, also if the document changes now. */
static void document_keep(struct document *document, const struct ng_value *answer)
{
    (void)snprintf(document->point, sizeof(document->point), "%" PRId64,
                   json_get_integer(answer, "revision"));
    document->range.from = ng_str_of(document->point);
}

static int document_ask(struct history_session *session, const struct document *document,
                        const char *tool, const struct ng_value **ret)
{
    struct ng_writer *writer = history_ask_args(&session->ask);
    history_ask_name(&session->ask, &document->name);
    history_ask_text(&session->ask, "at", document->range.from);
    json_member_int(writer, "start_line", (int64_t)document->first);
    json_member_int(writer, "max_lines",
                    document->last == 0 ? COMMAND_LINES_MAX
                                        : (int64_t)(document->last - document->first + 1));
    return document_missed(document,
                           history_ask(&session->ask, tool, HISTORY_FAILURE_PRINTED, ret));
}

typedef void print_part_fn(struct history_session *session, const struct ng_value *answer,
                           bool is_first);

static int document_parts(struct history_session *session, struct document *document,
                          const char *tool, print_part_fn *print)
{
    bool is_first = true;
    bool more = true;
    int rc = COMMAND_OK;
    while (rc == COMMAND_OK && more) {
        const struct ng_value *answer = NULL;
        rc = document_ask(session, document, tool, &answer);
        if (rc != COMMAND_OK) {
            return rc;
        }
        if (line_has(session->line, LINE_JSON)) {
            more = history_session_put_json(session, answer);
        } else {
            print(session, answer, is_first);
            more = history_session_put(session);
        }
        document_keep(document, answer);
        document->first = (uint64_t)json_get_integer(answer, "next_line");
        more = more && document->first != 0 &&
               (document->last == 0 || document->first <= document->last);
        is_first = false;
    }
    return rc;
}

/* ---- show ---- */

static void show_part(struct history_session *session, const struct ng_value *answer,
                      bool is_first)
{
    struct ng_str content = json_get_text(answer, "content");
    if (json_get(answer, "encoding") != NULL) {
        struct ng_str coded = content;
        (void)base64_decode_in(&session->ask.arena, coded, BASE64_STANDARD, &content);
    }
    if (is_first && session->out.is_terminal) {
        history_print_head(&session->text, session->out.style, answer);
    }
    history_print_text(&session->text, session->out.style, content);
    if (session->out.is_terminal && json_get(answer, "next_line") == NULL &&
        !str_ends(content, "\n")) {
        (void)buf_add_char(&session->text, '\n');
    }
}

static int show_run(struct history_session *session, void *user)
{
    return document_parts(session, user, "history_read", show_part);
}

int history_command_show(struct command_line *line)
{
    struct document document;
    int rc = document_check(line, HISTORY_POINT_ONE, &document);
    if (rc != COMMAND_OK) {
        return rc;
    }
    return history_session_run(line, show_run, &document);
}

/* ---- diff ---- */

static int diff_run(struct history_session *session, void *user)
{
    const struct document *document = user;
    const struct ng_value *answer = NULL;
    (void)history_ask_args(&session->ask);
    history_ask_name(&session->ask, &document->name);
    history_ask_text(&session->ask, "from", document->range.from);
    history_ask_text(&session->ask, "to", document->range.to);
    int rc = history_ask(&session->ask, "history_diff", HISTORY_FAILURE_PRINTED, &answer);
    if (rc != COMMAND_OK) {
        return document_missed(document, rc);
    }
    if (line_has(session->line, LINE_JSON)) {
        (void)history_session_put_json(session, answer);
        return rc;
    }
    if (line_has(session->line, LINE_STAT)) {
        history_print_stat(&session->text, session->out.style, answer);
    } else {
        history_print_diff(&session->text, session->out.style, answer);
    }
    (void)history_session_put(session);
    if (json_get(answer, "truncated") != NULL) {
        command_error("the comparison is longer than an answer and ends early (limits.result)");
        rc = COMMAND_FAILED;
    }
    return rc;
}

int history_command_diff(struct command_line *line)
{
    struct document document;
    if (line_has(line, LINE_JSON) && line_has(line, LINE_STAT)) {
        return command_usage(line, "--json has all members: leave out --stat");
    }
    if (history_changes_selected(line)) {
        return history_changes_diff(line);
    }
    int rc = document_check(line, HISTORY_POINT_RANGE, &document);
    if (rc != COMMAND_OK) {
        return rc;
    }
    return history_session_run(line, diff_run, &document);
}

/* ---- blame ---- */

static void blame_part(struct history_session *session, const struct ng_value *answer,
                       bool is_first)
{
    (void)is_first;
    history_print_blame(&session->text, session->out.style, answer);
}

static int blame_run(struct history_session *session, void *user)
{
    return document_parts(session, user, "history_blame", blame_part);
}

int history_command_blame(struct command_line *line)
{
    struct document document;
    int rc = document_check(line, HISTORY_POINT_ONE, &document);
    if (rc == COMMAND_OK && line->find.lines != NULL &&
        !history_lines_parse(ng_str_of(line->find.lines), &document.first, &document.last)) {
        rc =
            command_usage(line, "--lines is \"%s\", it must be A,B (lines from 1 on), A, or ,B",
                          line->find.lines);
    }
    if (rc != COMMAND_OK) {
        return rc;
    }
    return history_session_run(line, blame_run, &document);
}
