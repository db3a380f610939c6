/* SPDX-License-Identifier: MIT */
/*
 * attach.h - what a command works on: the gateway that serves the data directory, or one of its
 * own.
 */
#ifndef NOTEGATE_API_TARGET_H
#define NOTEGATE_API_TARGET_H

#include "api/command/command.h"
#include "client.h"

/* Bytes of an answer that a command keeps in memory. */
#define TARGET_ANSWER_MAX ((size_t)256 * 1024 * 1024)

struct target {
    struct config *config;   /* NULL where the gateway has it */
    struct gateway *gateway; /* this process' own, or NULL: */
    const struct client_api *client;
    void *client_module;
    char *data_dir;
    int dir_fd;            /* of the data directory, where its path is too long for a socket */
    char socket_path[108]; /* as sockaddr_un holds it */
};

/* An answer of a running gateway. */
struct target_answer {
    int status;
    struct buf body;
};

/*
 * Loads the configuration; finds the gateway that serves its data directory, else opens one,
 * waiting up to COMMAND_WAIT_MS for the directory. COMMAND_OK (target_done runs once, later),
 * or COMMAND_FAILED after a message.
 */
int target_open(struct command_line *line, struct target *ret);
/* The same without opening one of its own: *ret_running says whether a gateway answers. */
int target_find(struct command_line *line, struct target *ret, bool *ret_running);
/* Has a gateway of this very user kept its data there before? Then opening one makes nothing.
 */
bool target_is_own(const struct target *target);
/*
 * May this user open the data directory itself? What root makes in another user's directory
 * (lock, database) that user's gateway can never open again. COMMAND_OK, or COMMAND_FAILED
 * after a message. `serve` does not ask: in a container root serves what a host's user has
 * mounted.
 */
int target_check_owner(const struct target *target);
void target_done(struct target *target);

/* One request to the running gateway, the answer in memory. NG_OK, or NG_EUNAVAILABLE after a
 * message. target_answer_done() in either case. */
int target_request(struct target *target, struct client_request *request,
                   struct target_answer *ret);
void target_answer_done(struct target_answer *answer);
/* What a failed request says: "message" and "hint" of its JSON, on stderr. */
void target_print_error(const struct target_answer *answer);
/* Adds X-Notegate-... of the command line. Texts live in the line's arena. */
int target_caller_headers(struct command_line *line, struct client_request *request);
/* "ask", "edit", "agent"; NULL is agent. False: none of them. */
bool target_parse_mode(const char *text, enum ng_mode *ret);
/* Makes the command line's caller the caller of a call. NG_OK, or NG_EINVAL with the sentence
 * in the call's result. */
int target_set_caller(const struct command_line *line, struct call *call);

#endif
