/* SPDX-License-Identifier: MIT */
/* history_log.c - notegate log: changes, newest first. Pages are fetched as they are read. */
#include <inttypes.h>

#include "core/base/minmax.h"
#include "core/base/str.h"
#include "core/base/text_choice.h"
#include "history_command.h"
#include "history_filter.h"
#include "history_session.h"

#define LOG_TOOL "history_log"
#define LOG_TOOL_DIFF "history_diff"
/* Changes without -n where nothing is paged. */
#define LOG_DEFAULT 20
/* Changes of one page: what a first screen holds is there at once. */
#define LOG_PAGE 100
#define LOG_PAGE_DIFFS 20
#define LOG_CURSOR_MAX ((size_t)1024)

struct log {
    struct history_name name; /* id absent: of all documents */
    uint64_t left;            /* changes that are still wanted */
    struct history_ask diff;  /* the calls of -p */
    struct buf cursor;
    uint64_t shown;
};

/* ---- words and options ---- */

/* The list of runs takes a part of the filter, and has one form. */
static int log_check_runs(const struct command_line *line)
{
    if (!line_has(line, LINE_RUNS)) {
        return COMMAND_OK;
    }
    if (line->word_count > 0 || line->find.id != NULL || line->find.tool != NULL ||
        line->find.action != NULL) {
        return command_usage(line, "--runs lists runs of --agent, --run, --collection, "
                                   "--space, --since and --until: leave out the rest");
    }
    if (line_has(line, LINE_ONELINE | LINE_STAT | LINE_PATCH)) {
        return command_usage(line, "--runs has a line for each run: leave out --oneline, "
                                   "--stat and -p");
    }
    return COMMAND_OK;
}

static int log_check(struct command_line *line, struct log *log)
{
    uint64_t number = 0;
    int rc = history_filter_check(line);
    if (rc == COMMAND_OK && line->word_count > 0) {
        rc = history_filter_name(line, &log->name);
    }
    if (rc == COMMAND_OK) {
        rc = log_check_runs(line);
    }
    if (rc == COMMAND_OK && line->find.number != NULL &&
        (!str_number(ng_str_of(line->find.number), INT64_MAX, &number) || number == 0)) {
        rc = command_usage(line, "--number is \"%s\", it must be a number from 1 on",
                           line->find.number);
    }
    if (rc == COMMAND_OK && line_has(line, LINE_JSON) &&
        line_has(line, LINE_ONELINE | LINE_STAT | LINE_PATCH)) {
        rc = command_usage(line, "--json has all members: leave out --oneline, --stat and -p");
    }
    log->left = number;
    return rc;
}

/* ---- one page ---- */

static int log_ask(struct history_session *session, struct log *log,
                   const struct ng_value **ret)
{
    const struct command_line *line = session->line;
    struct ng_writer *writer = history_ask_args(&session->ask);
    uint64_t page = line_has(line, LINE_PATCH) ? LOG_PAGE_DIFFS : LOG_PAGE;
    history_filter_add(&session->ask, &log->name);
    if (line_has(line, LINE_RUNS)) {
        history_ask_text(&session->ask, "by", ng_str_of("run"));
    }
    json_member_int(writer, "limit", (int64_t)u64_min(log->left, page));
    if (log->cursor.len > 0) {
        json_member_string(writer, "cursor", buf_str(&log->cursor));
    }
    return history_ask(&session->ask, LOG_TOOL, HISTORY_FAILURE_PRINTED, ret);
}

/* Its document: a file by the path that it had then, also where it was moved on since. */
static void log_ask_document(struct log *log, const struct ng_value *change)
{
    if (history_print_is_file(change)) {
        history_ask_text(&log->diff, "path", json_get_text(change, "id"));
        return;
    }
    history_ask_text(&log->diff, "space", json_get_text(change, "space"));
    history_ask_text(&log->diff, "collection", json_get_text(change, "collection"));
    history_ask_text(&log->diff, "id", json_get_text(change, "id"));
}

/* The lines that it changed. A deletion has none. */
static int log_add_diff(struct history_session *session, struct log *log,
                        const struct ng_value *change)
{
    const struct ng_value *answer = NULL;
    const struct ng_value *revision = json_get(change, "revision");
    if (!json_is(revision, NG_TYPE_NUMBER) ||
        str_is(json_get_text(change, "action"), "deleted")) {
        return COMMAND_OK;
    }
    if (json_get_integer(change, "revision") == 0) { /* of a file without versions */
        (void)buf_add_char(&session->text, '\n');
        history_print_note(&session->text, ng_str_of("its content is not kept"));
        return COMMAND_OK;
    }
    (void)history_ask_args(&log->diff);
    log_ask_document(log, change);
    history_ask_text(&log->diff, "to", revision->text);
    int rc = history_ask(&log->diff, LOG_TOOL_DIFF, HISTORY_FAILURE_GIVEN, &answer);
    if (rc != COMMAND_OK && answer == NULL) {
        return rc;
    }
    (void)buf_add_char(&session->text, '\n');
    if (rc == COMMAND_OK) {
        history_print_diff(&session->text, session->out.style, answer);
    } else {
        history_print_note(&session->text, json_get_text(answer, "message"));
    }
    return COMMAND_OK;
}

static int log_add_change(struct history_session *session, struct log *log,
                          const struct ng_value *change)
{
    const struct command_line *line = session->line;
    struct history_style style = session->out.style;
    if (line_has(line, LINE_ONELINE)) {
        history_print_oneline(&session->text, style, change);
    } else {
        if (log->shown > 1) {
            (void)buf_add_char(&session->text, '\n');
        }
        history_print_change(&session->text, style, change);
    }
    if (line_has(line, LINE_STAT)) {
        if (!line_has(line, LINE_ONELINE)) {
            (void)buf_add_char(&session->text, '\n');
        }
        history_print_stat(&session->text, style, change);
    }
    return line_has(line, LINE_PATCH) ? log_add_diff(session, log, change) : COMMAND_OK;
}

/* *ret_more: the reader wants more. */
static int log_page(struct history_session *session, struct log *log,
                    const struct ng_value *answer, bool *ret_more)
{
    bool is_json = line_has(session->line, LINE_JSON);
    bool is_runs = line_has(session->line, LINE_RUNS);
    const struct ng_value *rows = json_get(answer, is_runs ? "runs" : "changes");
    int rc = COMMAND_OK;
    *ret_more = !is_json || history_session_put_json(session, answer);
    if (is_runs && !is_json) {
        history_print_runs(&session->text, session->out.style, rows);
        *ret_more = history_session_put(session);
    }
    for (const struct ng_value *change = json_first(rows);
         rc == COMMAND_OK && change != NULL && *ret_more; change = change->next) {
        log->left -= log->left > 0;
        log->shown++;
        if (!is_json && !is_runs) {
            rc = log_add_change(session, log, change);
            *ret_more = history_session_put(session);
        }
    }
    return rc;
}

/* ---- what is not shown ---- */

/* Has the named document any change? A page may be short: then it is not known. */
static bool log_was_there(struct history_session *session, const struct log *log)
{
    const struct ng_value *answer = NULL;
    struct ng_writer *writer = history_ask_args(&session->ask);
    history_ask_name(&session->ask, &log->name);
    if (log->name.space.data == NULL) {
        history_ask_text(&session->ask, "space", ng_str_of(session->line->find.space));
    }
    json_member_int(writer, "limit", 1);
    int rc = history_ask(&session->ask, LOG_TOOL, HISTORY_FAILURE_GIVEN, &answer);
    return rc != COMMAND_OK || json_first(json_get(answer, "changes")) != NULL ||
           json_get_text(answer, "cursor").len > 0;
}

static void log_tell_nothing(struct history_session *session, const struct log *log)
{
    const struct command_line *line = session->line;
    const struct history_name *name = &log->name;
    if (line->word_count == 0 || log_was_there(session, log)) {
        command_error("no %s fits", line_has(line, LINE_RUNS) ? "run" : "change");
    } else if (name->path.len > 0) {
        command_error("no change fits: no tool has changed %.*s", (int)name->path.len,
                      name->path.data);
    } else {
        command_error("no change fits: there never was a document \"%.*s\" in %.*s%s%.*s",
                      (int)name->id.len, name->id.data, (int)name->collection.len,
                      name->collection.data, text_if(name->space.len > 0, " of the space "),
                      (int)name->space.len, text_or(name->space.data, ""));
    }
}

/* On a terminal it is the last line, which a pager shows too. */
static void log_tell_more(struct history_session *session, const struct log *log)
{
    if (session->out.is_terminal) {
        (void)buf_printf(&session->text,
                         "(only the newest %" PRIu64 " are shown; -n N shows more)\n",
                         log->shown);
        (void)history_session_put(session);
    } else if (session->line->find.number == NULL) { /* else it is known */
        command_error("only the newest %" PRIu64 " are shown; -n N shows more", log->shown);
    }
}

/* Programs read it from the object. */
static void log_tell(struct history_session *session, const struct log *log)
{
    if (line_has(session->line, LINE_JSON) || session->out.state > HISTORY_OUT_PAGED) {
        return;
    }
    if (log->shown == 0) {
        log_tell_nothing(session, log);
    } else if (log->left == 0 && log->cursor.len > 0) {
        log_tell_more(session, log);
    }
}

static int log_run(struct history_session *session, void *user)
{
    struct log *log = user;
    const struct ng_value *answer = NULL;
    bool more = true;
    int rc = COMMAND_OK;
    if (log->left == 0) {
        log->left = session->out.is_terminal ? UINT64_MAX : LOG_DEFAULT;
    }
    history_ask_init(&log->diff, session->line, &session->attach);
    buf_init(&log->cursor, LOG_CURSOR_MAX);
    while (rc == COMMAND_OK && more && log->left > 0) {
        rc = log_ask(session, log, &answer);
        if (rc == COMMAND_OK) {
            rc = log_page(session, log, answer, &more);
        }
        struct ng_str cursor = json_get_text(answer, "cursor");
        buf_clear(&log->cursor);
        (void)buf_add_str(&log->cursor, cursor);
        more = more && cursor.len > 0;
    }
    if (rc == COMMAND_OK) {
        log_tell(session, log);
    }
    buf_done(&log->cursor);
    history_ask_done(&log->diff);
    return rc;
}

int history_command_log(struct command_line *line)
{
    struct log log = {.left = 0};
    int rc = log_check(line, &log);
    if (rc != COMMAND_OK) {
        return rc;
    }
    return history_session_run(line, log_run, &log);
}
