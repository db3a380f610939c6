/* SPDX-License-Identifier: MIT */
/* command_whoami.c - notegate whoami: the facts about the caller, as the running gateway or one
 * of this process' own tells them. */
#include "api/auth/whoami.h"
#include "api/client/attach.h"
#include "commands.h"

#define WHOAMI_BYTES_MAX ((size_t)64 * 1024 * 1024)

static int whoami_there(struct command_line *line, struct attach *attach, struct buf *out)
{
    struct client_request request = {.method = "GET", .path = "/v1/me"};
    int rc = attach_caller_headers(line, &request);
    if (rc != NG_OK) {
        return rc;
    }
    return attach_fetch(attach, &request, out);
}

static int whoami_here(const struct command_line *line, struct attach *attach, struct buf *out)
{
    struct call *call = call_new(attach->gateway);
    int rc = NG_EINTERNAL;
    if (call != NULL) {
        rc = attach_set_caller(line, call);
    }
    if (rc == NG_OK) {
        rc = whoami_print(call, out);
    }
    if (rc != NG_OK) { /* the names were checked with the command line */
        command_error("out of memory");
    }
    call_unref(call);
    return rc;
}

int command_whoami(struct command_line *line)
{
    struct attach attach;
    struct buf out;
    int exit = attach_look(line, &attach);
    if (exit != COMMAND_OK) {
        return exit;
    }
    buf_init(&out, WHOAMI_BYTES_MAX);
    int rc;
    if (attach.gateway != NULL) {
        rc = whoami_here(line, &attach, &out);
    } else {
        rc = whoami_there(line, &attach, &out);
    }
    if (rc == NG_OK) {
        rc = command_put_line(stdout, buf_str(&out));
    }
    buf_done(&out);
    attach_done(&attach);
    return command_exit_code(rc);
}
