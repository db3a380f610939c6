/* SPDX-License-Identifier: MIT */
/*
 * attach.h - the gateway that a command works on: the one that serves the data directory, or
 * one of its own.
 */
#ifndef NOTEGATE_API_ATTACH_H
#define NOTEGATE_API_ATTACH_H

#include "client.h"
#include "command_line.h"

/* Bytes of an answer that a command keeps in memory. */
#define ATTACH_ANSWER_MAX ((size_t)256 * 1024 * 1024)

/* `mcp` waits longer than a gateway needs to end (shutdown_timeout) or to start: its client
 * does not start it again. */
#define ATTACH_MCP_WAIT_MS 30000
/* While waiting for a data directory: how often to look. */
#define ATTACH_POLL_MS 20

struct attach {
    struct config *config;   /* NULL where the gateway has it */
    struct gateway *gateway; /* this process' own, or NULL: */
    const struct client_api *client;
    void *client_module;
    char *data_dir;
    int dir_fd;            /* of the data directory, where its path is too long for a socket */
    char socket_path[108]; /* as sockaddr_un holds it */
    /* Of a gateway that is asked with the key in the environment, and the header with that;
     * NULL: the socket. Memory of the command line. */
    const char *address, *authorization;
};

/* An answer of a running gateway. */
struct attach_answer {
    int status;
    struct buf body;
};

/*
 * Loads the configuration; finds the gateway that serves its data directory, else opens one,
 * waiting up to COMMAND_WAIT_MS (`mcp`: ATTACH_MCP_WAIT_MS) for the directory. COMMAND_OK
 * (attach_done runs once, later), or COMMAND_FAILED after a message.
 */
int attach_open(struct command_line *line, struct attach *ret);
/* The same without opening one of its own: *ret_running says whether a gateway answers. */
int attach_find(struct command_line *line, struct attach *ret, bool *ret_running);
/* The part of attach_open() behind attach_find() that found none. */
int attach_open_found(struct command_line *line, struct attach *ret);
/* One try without waiting: NG_OK, and a gateway answers at the socket, or this process has
 * opened one. NG_EBUSY: another process has the directory, and does not answer (yet). Else
 * `error` says why not. After attach_find(). */
int attach_try(struct attach *attach, struct buf *error);
/* Would attach_open_found() make a store, where none has begun? After attach_find(). */
bool attach_is_new(const struct attach *attach);
/* Is a file of this name in the data directory? Also where that cannot be told. */
bool attach_has_file(const struct attach *attach, const char *name);
/* Is there a store? Where a backend keeps it elsewhere: true. */
bool attach_has_data(const struct attach *attach);
/* As attach_open, for a command that only looks and makes nothing: where the data directory
 * would have to be made, the gateway is only described. COMMAND_USAGE too: an
 * option that a running gateway would not follow. */
int attach_look(struct command_line *line, struct attach *ret);
/* Opens a gateway of the configuration with its plugins started, so that it answers as a
 * serving one. If it does not start, a message says why, and *ret is as of attach_describe().
 */
int attach_open_own(struct command_line *line, struct attach *attach, struct gateway **ret);
/* Opens what the configuration and the modules' descriptors tell, without any data: the
 * configuration passes to it. NG_OK, or the failure after a message. */
int attach_describe(struct attach *attach, struct gateway **ret);
/* Has a gateway of this very user kept its data there before? Then opening one makes nothing.
 */
bool attach_is_own(const struct attach *attach);
/*
 * May this user open the data directory itself? What root makes in another user's directory
 * (lock, database) that user's gateway can never open again. COMMAND_OK, or COMMAND_FAILED
 * after a message. `serve` does not ask: in a container root serves what a host's user has
 * mounted.
 */
int attach_check_owner(const struct attach *attach);
void attach_done(struct attach *attach);
/* A gateway serves: refuses options that only one of the command's own would follow.
 * COMMAND_OK; or COMMAND_USAGE after a message, and attach_done(). */
int attach_refuse_unused(const struct command_line *line, struct attach *attach);

/* Loads the client module once. NG_OK, or a failure after a message. */
int attach_load_client(struct attach *attach);
/* Sets the address of a request, and the key in it. */
void attach_direct(const struct attach *attach, struct client_request *request);
/* One request to the running gateway, whose answer of status 200 is added to `out`. NG_OK, or a
 * failure after a message. */
int attach_fetch(struct attach *attach, struct client_request *request, struct buf *out);
/* The same with any answer in memory. NG_OK, or NG_EUNAVAILABLE after a
 * message. attach_answer_done() in either case. */
int attach_request(struct attach *attach, struct client_request *request,
                   struct attach_answer *ret);
void attach_answer_done(struct attach_answer *answer);
/* Prints "message" and "hint" of the JSON of a failed request on stderr. */
void attach_print_error(const struct attach_answer *answer);
/* Adds X-Notegate-... of the command line. Texts live in the line's arena. */
int attach_caller_headers(struct command_line *line, struct client_request *request);
/* "ask", "edit", "agent"; NULL is agent. False: none of them. */
bool attach_parse_mode(const char *text, enum ng_mode *ret);
/* Makes the command line's caller the caller of a call. NG_OK, or NG_EINVAL with the sentence
 * in the call's result. */
int attach_set_caller(const struct command_line *line, struct call *call);

#endif
