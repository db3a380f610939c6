/* SPDX-License-Identifier: MIT */
/* history_undo.c - notegate undo: shows what would be taken back, asks, and takes it back. */
#include <inttypes.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "core/base/str.h"
#include "core/base/text/rfc3339.h"
#include "core/base/text_choice.h"
#include "core/history/point.h"
#include "history_command.h"
#include "history_filter.h"
#include "history_print_undo.h"
#include "history_session.h"
#include "history_undo_place.h"

#define UNDO_TOOL "history_undo"
#define UNDO_LOG_TOOL "history_log"
/* Bytes of an answer to the question. */
#define UNDO_REPLY_MAX 16

/* The steps of a command that asks; one that does not has the first or the last. */
enum undo_step { UNDO_PREVIEW, UNDO_CONFIRMED, UNDO_UNASKED };

struct undo_work {
    enum undo_step step;
    int64_t upto; /* of the preview; 0: none */
    int64_t undone, conflicts;
};

/* ---- words and options ---- */

/* The next of the numbers in "12,#13"; false: there are no more. */
static bool undo_next(struct ng_str *rest, struct ng_str *ret)
{
    if (rest->data == NULL) {
        return false;
    }
    const char *comma = rest->len > 0 ? memchr(rest->data, ',', rest->len) : NULL;
    *ret = *rest;
    *rest = STR_NONE;
    if (comma != NULL) {
        size_t len = (size_t)(comma - ret->data);
        *rest = str_make(comma + 1, ret->len - len - 1);
        ret->len = len;
    }
    return true;
}

static bool undo_number(struct ng_str text, uint64_t *ret)
{
    if (str_begins(text, "#")) {
        text = str_make(text.data + 1, text.len - 1);
    }
    return str_number(text, INT64_MAX, ret) && *ret > 0;
}

/* --change 12 13: the words are further numbers. */
static int undo_check_changes(struct command_line *line)
{
    for (size_t i = 0; i < line->word_count && line->find.changes != NULL; i++) {
        struct ng_str both =
            arena_printf(&line->arena, "%s,%s", line->find.changes, line->words[i]);
        if (both.data == NULL) {
            return command_usage(line, "too many numbers behind --change");
        }
        line->find.changes = both.data;
    }
    struct ng_str rest = ng_str_of(line->find.changes);
    struct ng_str text;
    while (undo_next(&rest, &text)) {
        uint64_t number = 0;
        if (!undo_number(text, &number)) {
            return command_usage(line,
                                 "--change has \"%.*s\", it must be the number of a change, as "
                                 "`notegate log` shows it",
                                 (int)text.len, text.data);
        }
    }
    return COMMAND_OK;
}

static int undo_check_which(const struct command_line *line)
{
    bool selects =
        history_filter_given(line) || line->find.changes != NULL || line->find.space != NULL;
    if (line_has(line, LINE_LIST)) {
        return selects || line->find.again != NULL || line_has(line, LINE_YES | LINE_DRY_RUN)
                   ? command_usage(line, "--list stands alone")
                   : COMMAND_OK;
    }
    if (line->find.again != NULL) {
        return selects ? command_usage(line, "--continue does the rest of what was selected "
                                             "before: leave out the other options")
                       : COMMAND_OK;
    }
    if (line->find.run == NULL && line->find.changes == NULL &&
        (line->find.agent == NULL || line->find.since == NULL)) {
        return command_usage(line, "which changes? Name --run ID, --agent NAME with --since "
                                   "WHEN, or --change SEQ");
    }
    return COMMAND_OK;
}

static bool undo_asks(const struct command_line *line)
{
    return !line_has(line, LINE_YES | LINE_DRY_RUN | LINE_LIST);
}

static int undo_check(struct command_line *line)
{
    int rc = history_filter_check(line);
    if (rc == COMMAND_OK && line->word_count > 0 && line->find.changes == NULL) {
        rc = command_usage(line, "unexpected argument \"%s\" for \"undo\"", line->words[0]);
    }
    if (rc == COMMAND_OK) {
        rc = undo_check_changes(line);
    }
    if (rc == COMMAND_OK) {
        rc = undo_check_which(line);
    }
    if (rc == COMMAND_OK && line_has(line, LINE_YES) && line_has(line, LINE_DRY_RUN)) {
        rc = command_usage(line, "--dry-run only shows what --yes would do: leave out one");
    }
    if (rc == COMMAND_OK && undo_asks(line) && line_has(line, LINE_JSON)) {
        rc = command_usage(line, "--json does not ask: it needs --yes, or --dry-run for a "
                                 "preview");
    }
    if (rc == COMMAND_OK && undo_asks(line) &&
        (isatty(STDIN_FILENO) != 1 || isatty(STDOUT_FILENO) != 1)) {
        rc = command_usage(line, "there is no terminal to ask on: it needs --yes, or --dry-run "
                                 "for a preview");
    }
    return rc;
}

/* An age, or now, is another time at the second call: it becomes a time. All other points have
 * a hyphen or a number sign in them. */
static int undo_fix_point(struct command_line *line, const char **point)
{
    struct point parsed;
    char time[RFC3339_SIZE];
    struct ng_str text = ng_str_of(*point);
    if (text.data == NULL || str_count(text, '-') > 0 ||
        !point_parse(text, clock_unix_ms(), &parsed) || parsed.kind != POINT_TIME) {
        return COMMAND_OK;
    }
    rfc3339_write(parsed.time_ms, RFC3339_MS, time);
    *point = arena_printf(&line->arena, "%s", time).data;
    if (*point == NULL) {
        command_error("out of memory");
        return COMMAND_FAILED;
    }
    return COMMAND_OK;
}

/* ---- one call ---- */

static void undo_add_changes(struct ng_writer *writer, const char *changes)
{
    struct ng_str rest = ng_str_of(changes);
    struct ng_str text;
    json_name(writer, "changes");
    json_array(writer);
    while (undo_next(&rest, &text)) {
        uint64_t number = 0;
        (void)undo_number(text, &number);
        json_int(writer, (int64_t)number);
    }
    json_end(writer);
}

static int undo_ask(struct history_session *session, const struct undo_work *work,
                    const struct ng_value **ret)
{
    const struct command_line *line = session->line;
    const struct history_name all = {.space = STR_NONE};
    struct ng_writer *writer = history_ask_args(&session->ask);
    bool is_dry = work->step == UNDO_PREVIEW || line_has(line, LINE_DRY_RUN);
    if (line->find.again != NULL) {
        history_ask_text(&session->ask, "continue", ng_str_of(line->find.again));
    } else {
        history_filter_add(&session->ask, &all);
    }
    if (line->find.changes != NULL) {
        undo_add_changes(writer, line->find.changes);
    }
    if (work->upto > 0) {
        json_member_int(writer, "upto", work->upto);
    }
    json_member_bool(writer, "dry_run", is_dry);
    return history_ask(&session->ask, UNDO_TOOL, HISTORY_FAILURE_PRINTED, ret);
}

static int undo_run(struct history_session *session, void *user)
{
    struct undo_work *work = user;
    const struct ng_value *answer = NULL;
    int rc = undo_ask(session, work, &answer);
    if (rc != COMMAND_OK) {
        return rc;
    }
    if (line_has(session->line, LINE_JSON)) {
        (void)history_session_put_json(session, answer);
    } else {
        struct history_ask ask; /* the answer of the other one is printed */
        const struct history_places places = {history_undo_place, &ask};
        history_ask_init(&ask, session->line, &session->attach);
        history_print_undo(
            &session->text, session->out.style, answer,
            work->step == UNDO_CONFIRMED ? HISTORY_UNDO_CONFLICTS : HISTORY_UNDO_ALL, &places);
        history_ask_done(&ask);
        (void)history_session_put(session);
    }
    work->upto = json_get_integer(answer, "upto");
    work->undone = json_get_integer(answer, "undone");
    work->conflicts = json_get_integer(answer, "conflicts");
    return COMMAND_OK;
}

/* ---- the unfinished ones ---- */

/* How much is left of it, and whose changes. Where that cannot be told it is the name alone. */
static void undo_list_one(struct history_session *session, struct ng_str run)
{
    const struct ng_value *answer = NULL;
    (void)history_ask_args(&session->ask); /* a preview, as long as nothing else is said */
    history_ask_text(&session->ask, "continue", run);
    history_print_word(&session->text, run);
    if (history_ask(&session->ask, UNDO_TOOL, HISTORY_FAILURE_GIVEN, &answer) == COMMAND_OK) {
        history_print_undo_left(&session->text, answer);
    }
    (void)buf_add_char(&session->text, '\n');
}

/* The names, by commas, of the line's arena: an answer lasts until the next call. */
static struct ng_str undo_list_names(struct command_line *line, const struct ng_value *list)
{
    struct ng_str names = STR_NONE;
    for (const struct ng_value *one = json_first(list); one != NULL; one = one->next) {
        names =
            arena_printf(&line->arena, "%.*s%s%.*s", (int)names.len, text_or(names.data, ""),
                         text_if(names.len > 0, ","), (int)one->text.len, one->text.data);
    }
    return names;
}

static int undo_list(struct history_session *session, void *user)
{
    const struct ng_value *answer = NULL;
    (void)user;
    json_member_int(history_ask_args(&session->ask), "limit", 1);
    int rc = history_ask(&session->ask, UNDO_LOG_TOOL, HISTORY_FAILURE_PRINTED, &answer);
    if (rc != COMMAND_OK) {
        return rc;
    }
    const struct ng_value *list = json_get(answer, "unfinished");
    bool is_json = line_has(session->line, LINE_JSON);
    if (is_json) {
        (void)buf_add_c(&session->text, "{\"unfinished\":");
        (void)(list != NULL ? json_print(&session->text, list)
                            : buf_add_c(&session->text, "[]"));
        (void)buf_add_c(&session->text, "}\n");
    }
    struct ng_str names = is_json ? STR_NONE : undo_list_names(session->line, list);
    struct ng_str run;
    while (undo_next(&names, &run)) {
        undo_list_one(session, run);
    }
    (void)history_session_put(session);
    return COMMAND_OK;
}

/* ---- the whole ---- */

/* No is the answer of an empty line, and of the end of the input. */
static bool undo_is_confirmed(const struct undo_work *work)
{
    char reply[UNDO_REPLY_MAX] = "";
    if (work->undone > 0) {
        (void)printf("Take back %" PRId64 " document%s? [y/N] ", work->undone,
                     plural((size_t)work->undone));
    } else {
        (void)printf("Nothing is left to take back. End this undo? [y/N] ");
    }
    (void)command_flush(stdout);
    if (fgets(reply, sizeof(reply), stdin) == NULL) {
        (void)printf("\n");
        return false;
    }
    struct ng_str word = str_trim(ng_str_of(reply));
    if (str_ends(word, "\n")) {
        word = str_trim(str_make(word.data, word.len - 1));
    }
    return str_in_words(word, "y Y yes Yes YES");
}

static int undo_code(int rc, const struct undo_work *work)
{
    return rc == COMMAND_OK && work->conflicts > 0 ? COMMAND_FAILED : rc;
}

static int undo_with_question(struct command_line *line)
{
    struct undo_work work = {.step = UNDO_PREVIEW};
    int rc = history_session_run(line, undo_run, &work);
    bool has_work = work.undone > 0 || line->find.again != NULL;
    if (rc != COMMAND_OK || !has_work) {
        return undo_code(rc, &work);
    }
    if (!undo_is_confirmed(&work)) {
        (void)printf("Nothing was taken back\n");
        return undo_code(rc, &work);
    }
    work.step = UNDO_CONFIRMED;
    work.conflicts = 0;
    rc = history_session_run(line, undo_run, &work);
    return undo_code(rc, &work);
}

int history_command_undo(struct command_line *line)
{
    struct undo_work work = {.step = UNDO_UNASKED};
    int rc = undo_check(line);
    if (rc == COMMAND_OK && undo_asks(line)) {
        rc = undo_fix_point(line, &line->find.since);
    }
    if (rc == COMMAND_OK && undo_asks(line)) {
        rc = undo_fix_point(line, &line->find.until);
    }
    if (rc != COMMAND_OK) {
        return rc;
    }
    if (line_has(line, LINE_LIST)) {
        return history_session_run(line, undo_list, NULL);
    }
    if (undo_asks(line)) {
        return undo_with_question(line);
    }
    rc = history_session_run(line, undo_run, &work);
    return undo_code(rc, &work);
}
