/* SPDX-License-Identifier: MIT */
/* history_changes.c - notegate diff of selected changes: each document that they changed. Pages
 * are fetched as they are read. */
#include "history_changes.h"

#include "core/base/str.h"
#include "history_filter.h"
#include "history_session.h"

#define CHANGES_CURSOR_MAX ((size_t)1024)

struct changes {
    struct history_name name; /* id absent: of all documents */
    struct buf cursor;
    bool has_printed;
};

bool history_changes_selected(const struct command_line *line)
{
    return line->word_count == 0 || history_filter_given(line);
}

/* A word that ends in a point means it: an id that ends so can be named by --id. */
static int changes_check_name(struct command_line *line, struct changes *changes)
{
    const char *why = "";
    struct history_name name;
    int rc = history_name_parse(&line->arena, ng_str_of(line->words[0]), HISTORY_POINT_RANGE,
                                &name, &why);
    if (rc == NG_OK && name.point.data != NULL) {
        return command_usage(line,
                             "\"%s\" names a point, but --run and such select changes: leave "
                             "out \"@%s\"",
                             line->words[0], name.point.data);
    }
    return history_filter_name(line, &changes->name);
}

static int changes_check(struct command_line *line, struct changes *changes)
{
    int rc = history_filter_check(line);
    if (rc == COMMAND_OK && line->find.run == NULL && line->find.agent == NULL &&
        line->find.space == NULL) {
        rc = command_usage(line, "\"diff\" needs a document T, or one of --run, --agent and "
                                 "--space");
    }
    if (rc == COMMAND_OK && line->find.at != NULL) {
        rc = command_usage(line, "--at is of one document; changes are selected by --since and "
                                 "--until");
    }
    if (rc == COMMAND_OK && line->word_count > 0) {
        rc = changes_check_name(line, changes);
    }
    return rc;
}

static void changes_add(struct history_session *session, struct changes *changes,
                        const struct ng_value *row)
{
    if (line_has(session->line, LINE_STAT)) {
        history_print_changed_stat(&session->text, session->out.style, row);
        return;
    }
    if (changes->has_printed) {
        (void)buf_add_char(&session->text, '\n');
    }
    history_print_changed(&session->text, session->out.style, row);
    changes->has_printed = true;
}

/* False: the reader wants no more. */
static bool changes_page(struct history_session *session, struct changes *changes,
                         const struct ng_value *answer)
{
    if (line_has(session->line, LINE_JSON)) {
        return history_session_put_json(session, answer);
    }
    bool more = true;
    for (const struct ng_value *row = json_first(json_get(answer, "documents"));
         row != NULL && more; row = row->next) {
        changes_add(session, changes, row);
        more = history_session_put(session);
    }
    return more;
}

static int changes_run(struct history_session *session, void *user)
{
    struct changes *changes = user;
    bool more = true;
    int rc = COMMAND_OK;
    buf_init(&changes->cursor, CHANGES_CURSOR_MAX);
    while (rc == COMMAND_OK && more) {
        const struct ng_value *answer = NULL;
        (void)history_ask_args(&session->ask);
        history_filter_add(&session->ask, &changes->name);
        if (changes->cursor.len > 0) {
            history_ask_text(&session->ask, "cursor", buf_str(&changes->cursor));
        }
        rc = history_ask(&session->ask, "history_diff", HISTORY_FAILURE_PRINTED, &answer);
        if (rc == COMMAND_OK) {
            more = changes_page(session, changes, answer);
        }
        struct ng_str cursor = json_get_text(answer, "cursor");
        buf_clear(&changes->cursor);
        (void)buf_add_str(&changes->cursor, cursor);
        more = more && cursor.len > 0;
    }
    buf_done(&changes->cursor);
    return rc;
}

int history_changes_diff(struct command_line *line)
{
    struct changes changes = {.name.space = STR_NONE};
    int rc = changes_check(line, &changes);
    if (rc != COMMAND_OK) {
        return rc;
    }
    return history_session_run(line, changes_run, &changes);
}
