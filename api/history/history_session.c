/* SPDX-License-Identifier: MIT */
/* history_session.c - opens and closes the session of a command of the history. */
#include "history_session.h"

#define SESSION_TEXT_MAX (2 * ATTACH_ANSWER_MAX)

int history_session_run(struct command_line *line,
                        int (*run)(struct history_session *session, void *user), void *user)
{
    struct history_session session = {.line = line};
    int rc = history_out_begin(line, &session.out);
    if (rc == COMMAND_OK) {
        rc = attach_open(line, &session.attach);
    }
    if (rc != COMMAND_OK) {
        return rc;
    }
    history_ask_init(&session.ask, line, &session.attach);
    buf_init(&session.text, SESSION_TEXT_MAX);
    rc = run(&session, user);
    buf_done(&session.text);
    history_ask_done(&session.ask);
    /* Before the reader has read all: others may open the data directory. */
    attach_done(&session.attach);
    return history_out_end(&session.out, rc);
}

bool history_session_put(struct history_session *session)
{
    return history_out_put(&session->out, &session->text);
}

bool history_session_put_json(struct history_session *session, const struct ng_value *object)
{
    (void)json_print(&session->text, object);
    (void)buf_add_char(&session->text, '\n');
    return history_session_put(session);
}
