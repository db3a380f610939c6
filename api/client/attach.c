/* SPDX-License-Identifier: MIT */
/* attach.c - finds the gateway that serves a data directory, or opens one. */
#include "attach.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "client_load.h"
#include "core/base/clock.h"
#include "core/base/files/run_as.h"
#include "core/base/files/trust.h"
#include "core/base/str.h"
#include "core/base/text_choice.h"
#include "core/config/config.h"
#include "core/dispatch/run_id.h"
#include "core/gateway/gateway_open.h"
#include "core/module/loader.h"
#include "core/store/store.h"
#include "other_gateway.h"

#define ATTACH_ERROR_MAX ((size_t)64 * 1024)
#define ATTACH_PATH_MAX 4096
#define ATTACH_NAME_MAX 64
/* As the backend calls it; a test compares. */
#define ATTACH_SQLITE_FILE "notegate.db"
/* At the end: for a call that was answered before its tool came back. */
#define ATTACH_DRAIN_MS 5000

/* ---- the client module ---- */

int attach_load_client(struct attach *attach)
{
    struct buf error;
    if (attach->client != NULL) {
        return NG_OK;
    }
    buf_init(&error, ATTACH_ERROR_MAX);
    int rc = client_load(&attach->client_module, &error);
    if (rc != NG_OK) {
        command_error("%s", buf_cstr(&error));
    }
    buf_done(&error);
    if (rc != NG_OK) {
        return rc;
    }
    const struct client_api *client = dlsym(attach->client_module, CLIENT_SYMBOL);
    if (client == NULL || client->version != CLIENT_API) {
        command_error(CLIENT_MODULE_NAME
                      " is not of this version of notegate; install both from one build");
        return NG_EUNAVAILABLE;
    }
    attach->client = client;
    return NG_OK;
}

/* ---- the socket ---- */

static int attach_name_socket(struct attach *attach)
{
    int len = snprintf(attach->socket_path, sizeof(attach->socket_path), "%s/%s",
                       attach->data_dir, NOTEGATE_SOCKET_NAME);
    if (len >= 0 && (size_t)len < sizeof(attach->socket_path)) {
        return NG_OK;
    }
    /* Too long for a socket address: by way of a descriptor of the folder. */
    attach->dir_fd = open(attach->data_dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (attach->dir_fd < 0) {
        return NG_ENOTFOUND;
    }
    (void)snprintf(attach->socket_path, sizeof(attach->socket_path), "/proc/self/fd/%d/%s",
                   attach->dir_fd, NOTEGATE_SOCKET_NAME);
    return NG_OK;
}

/* Does a process accept connections there? The socket that a killed gateway left does not. */
static bool attach_socket_answers(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct stat info;
    if (stat(path, &info) != 0 || !S_ISSOCK(info.st_mode)) {
        return false;
    }
    memcpy(address.sun_path, path, strlen(path) + 1);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) {
        return false;
    }
    bool answers =
        connect(fd, (const struct sockaddr *)(const void *)&address, sizeof(address)) == 0 ||
        errno == EAGAIN; /* many others wait for it */
    (void)close(fd);
    return answers;
}

static bool attach_is_served(struct attach *attach)
{
    if (attach->socket_path[0] == '\0' && attach_name_socket(attach) != NG_OK) {
        return false;
    }
    return attach_socket_answers(attach->socket_path);
}

static int attach_prepare(struct command_line *line, struct attach *ret)
{
    struct buf error;
    memset(ret, 0, sizeof(*ret));
    ret->dir_fd = -1;
    if (command_config(line, &ret->config) != COMMAND_OK) {
        return COMMAND_FAILED;
    }
    buf_init(&error, ATTACH_ERROR_MAX);
    ret->data_dir = gateway_data_dir(ret->config, false, &error);
    int rc = COMMAND_OK;
    if (ret->data_dir == NULL) {
        command_error("%s", buf_cstr(&error));
        attach_done(ret);
        rc = COMMAND_FAILED;
    }
    buf_done(&error);
    return rc;
}

bool attach_has_file(const struct attach *attach, const char *name)
{
    char path[ATTACH_PATH_MAX];
    int len = snprintf(path, sizeof(path), "%s/%s", attach->data_dir, name);
    return len < 0 || (size_t)len >= sizeof(path) || access(path, F_OK) == 0 ||
           (errno != ENOENT && errno != ENOTDIR);
}

bool attach_is_new(const struct attach *attach)
{
    return str_is(config_text(attach->config, "documents"), "sqlite") &&
           !attach_has_file(attach, ATTACH_SQLITE_FILE) &&
           !attach_has_file(attach, NOTEGATE_LOCK_NAME);
}

/* For commands that need data: a mistyped name must not make an empty store, which would then
 * be verified and backed up. Of other backends, attach_is_empty() tells once they are open. */
bool attach_has_data(const struct attach *attach)
{
    if (str_is(config_text(attach->config, "documents"), "memory")) {
        return false;
    }
    return !str_is(config_text(attach->config, "documents"), "sqlite") ||
           attach_has_file(attach, ATTACH_SQLITE_FILE);
}

int attach_find(struct command_line *line, struct attach *ret, bool *ret_running)
{
    int rc = attach_prepare(line, ret);
    if (rc != COMMAND_OK) {
        return rc;
    }
    *ret_running = attach_is_served(ret);
    bool refused = *ret_running && attach_load_client(ret) != NG_OK;
    if (!*ret_running && !config_is_set(ret->config, "data_dir")) {
        enum other_gateway other = other_gateway_find(line, ret);
        *ret_running = other == OTHER_GATEWAY_KEYED;
        refused = other == OTHER_GATEWAY_REFUSED;
    }
    if (refused) {
        attach_done(ret);
        return COMMAND_FAILED;
    }
    return COMMAND_OK;
}

bool attach_is_own(const struct attach *attach)
{
    struct stat info;
    return stat(attach->data_dir, &info) == 0 && S_ISDIR(info.st_mode) &&
           info.st_uid == geteuid() && attach_has_file(attach, NOTEGATE_LOCK_NAME) &&
           (str_is(config_text(attach->config, "documents"), "memory") ||
            attach_has_data(attach));
}

static int attach_found(void *user, const struct ng_record *record)
{
    (void)record;
    *(bool *)user = true;
    return 1;
}

/* A store of many gateways may hold changes that have no sequence number yet. */
static bool attach_is_empty(struct gateway *gateway)
{
    void *db = NULL;
    bool found = false;
    const struct ng_documents *backend = store_backend(gateway->store, &db);
    if (str_is(config_text(gateway->config, "documents"), "sqlite") ||
        backend->last_seq == NULL || backend->last_seq(db) > 0) {
        return false;
    }
    struct call *call = call_new(gateway);
    int rc = NG_OK;
    if (call != NULL && backend->export_all != NULL) {
        rc = backend->export_all(db, &call->pub, attach_found, &found);
    }
    call_unref(call);
    return rc == NG_OK && !found;
}

static int attach_refuse_empty(struct attach *attach)
{
    struct stat info;
    const struct config *config = attach->config;
    if (attach->gateway != NULL) {
        config = attach->gateway->config;
    }
    struct ng_str documents = config_text(config, "documents");
    if (stat(attach->data_dir, &info) != 0 && errno == ENOENT) {
        command_error("the data directory %s does not exist; name the right one with "
                      "--data-dir, or `data_dir` in the configuration",
                      attach->data_dir);
    } else {
        command_error("there is no store (documents: %.*s) in the data directory %s, and no "
                      "gateway serves it; name the right one with --data-dir, or `data_dir` "
                      "in the configuration",
                      (int)documents.len, documents.data, attach->data_dir);
    }
    attach_done(attach);
    return COMMAND_FAILED;
}

int attach_check_owner(const struct attach *attach)
{
    struct stat info;
    struct buf again;
    char owner[ATTACH_NAME_MAX];
    if (stat(attach->data_dir, &info) != 0) {
        if (errno != EACCES) {
            return COMMAND_OK;
        }
        command_error("the data directory %s cannot be looked at: a folder above it is closed "
                      "to this user; run this as its owner, or choose another with --data-dir",
                      attach->data_dir);
        return COMMAND_FAILED;
    }
    if (info.st_uid == geteuid()) {
        return COMMAND_OK;
    }
    trust_user_name(info.st_uid, owner, sizeof(owner));
    buf_init(&again, ATTACH_ERROR_MAX);
    (void)run_as_add_again(&again, info.st_uid);
    bool enters = access(attach->data_dir, X_OK) == 0;
    command_error("the data directory %s belongs to user %s%s; run this as that user: %s",
                  attach->data_dir, owner,
                  enters ? " and no gateway serves it" : ", and only that user may enter it",
                  buf_cstr(&again));
    buf_done(&again);
    return COMMAND_FAILED;
}

/* Keys that the command itself follows: the place of the gateway, its own log. */
static bool attach_uses(const struct attach *attach, struct ng_str key)
{
    return str_is(key, attach->address != NULL ? "listen" : "data_dir") ||
           str_starts(key, ng_str_of("log."));
}

int attach_refuse_unused(const struct command_line *line, struct attach *attach)
{
    struct buf keys;
    buf_init(&keys, ATTACH_ERROR_MAX);
    for (size_t i = 0; i < line->set_count; i++) {
        struct ng_str key = str_make(line->sets[i], strcspn(line->sets[i], "="));
        if (!attach_uses(attach, key)) {
            buf_printf(&keys, "%s%.*s", text_if(keys.len > 0, ", "), (int)key.len, key.data);
        }
    }
    int rc = COMMAND_OK;
    if (keys.len > 0) {
        rc = command_usage(line,
                           "a gateway serves %s and has its own configuration, so this command "
                           "cannot set: %s. Leave that out, or name another data directory "
                           "with --data-dir",
                           text_or(attach->address, attach->data_dir), buf_cstr(&keys));
        attach_done(attach);
    }
    buf_done(&keys);
    return rc;
}

/* Asked before modules are loaded, as that may be often. */
static bool attach_is_held(const struct attach *attach, struct buf *error)
{
    int fd = -1;
    int rc = NG_OK;
    if (attach_has_file(attach, NOTEGATE_LOCK_NAME)) {
        rc = gateway_lock_data_dir(attach->data_dir, 0, &fd, error);
    }
    if (rc == NG_EBUSY) {
        return true;
    }
    if (fd >= 0) {
        (void)close(fd);
    }
    buf_clear(error);
    return false;
}

int attach_try(struct attach *attach, struct buf *error)
{
    if (attach_is_served(attach)) {
        return attach_load_client(attach);
    }
    if (attach_is_held(attach, error)) {
        return NG_EBUSY;
    }
    int rc = gateway_open(attach->config, GATEWAY_FULL, 0, &attach->gateway, error);
    if (rc == NG_OK) {
        attach->config = NULL;
    }
    return rc;
}

/* `mcp` has blocked the signals that end it. */
static bool attach_is_stopped(void)
{
    sigset_t signals;
    return sigpending(&signals) == 0 &&
           (sigismember(&signals, SIGTERM) == 1 || sigismember(&signals, SIGINT) == 1 ||
            sigismember(&signals, SIGHUP) == 1);
}

int attach_open_found(struct command_line *line, struct attach *ret)
{
    struct buf error;
    bool is_mcp = strcmp(line->command->name, "mcp") == 0;
    int64_t until =
        clock_monotonic_ns() / 1000000 + (is_mcp ? ATTACH_MCP_WAIT_MS : COMMAND_WAIT_MS);
    bool needs_data = line->command->needs_data || line_has(line, LINE_NEEDS_DATA);
    int rc = attach_check_owner(ret);
    if (rc != COMMAND_OK) {
        attach_done(ret);
        return rc;
    }
    if (needs_data && !attach_has_data(ret)) {
        return attach_refuse_empty(ret);
    }
    buf_init(&error, ATTACH_ERROR_MAX);
    /* The holder of the directory may be a gateway that is starting. */
    while ((rc = attach_try(ret, &error)) == NG_EBUSY &&
           clock_monotonic_ns() / 1000000 < until && !attach_is_stopped()) {
        const struct timespec pause = {0, ATTACH_POLL_MS * 1000000L};
        (void)nanosleep(&pause, NULL);
        buf_clear(&error);
    }
    if (rc == NG_OK && ret->gateway == NULL) {
        buf_done(&error);
        return attach_refuse_unused(line, ret);
    }
    if (rc != NG_OK) {
        if (error.len > 0) {
            command_error("%s", buf_cstr(&error));
        }
        attach_done(ret);
    }
    buf_done(&error);
    if (rc == NG_OK && needs_data && ret->gateway != NULL && attach_is_empty(ret->gateway)) {
        return attach_refuse_empty(ret);
    }
    return command_exit_code(rc);
}

int attach_open(struct command_line *line, struct attach *ret)
{
    bool running = false;
    int rc = attach_find(line, ret, &running);
    if (rc != COMMAND_OK) {
        return rc;
    }
    return running ? attach_refuse_unused(line, ret) : attach_open_found(line, ret);
}

void attach_done(struct attach *attach)
{
    if (attach->gateway != NULL) {
        (void)gateway_drain(attach->gateway, ATTACH_DRAIN_MS);
    }
    gateway_close(attach->gateway);
    config_free(attach->config);
    free(attach->data_dir);
    if (attach->dir_fd >= 0) {
        (void)close(attach->dir_fd);
    }
    /* The module stays loaded: libcurl keeps state that outlives its use. */
    attach->gateway = NULL;
    attach->config = NULL;
    attach->data_dir = NULL;
    attach->dir_fd = -1;
}

int attach_describe(struct attach *attach, struct gateway **ret)
{
    struct buf error;
    buf_init(&error, ATTACH_ERROR_MAX);
    int rc = gateway_open(attach->config, GATEWAY_DESCRIBE, 0, ret, &error);
    if (rc == NG_OK) {
        attach->config = NULL;
    } else {
        command_error("%s", buf_cstr(&error));
    }
    buf_done(&error);
    return rc;
}

int attach_open_own(struct command_line *line, struct attach *attach, struct gateway **ret)
{
    struct buf error;
    buf_init(&error, ATTACH_ERROR_MAX);
    int rc = gateway_open(attach->config, GATEWAY_FULL, COMMAND_WAIT_MS, ret, &error);
    if (rc != NG_OK) {
        command_error("a gateway of this configuration does not start; its modules alone are "
                      "asked: %s",
                      buf_cstr(&error));
    }
    buf_done(&error);
    if (rc == NG_OK) {
        attach->config = NULL;
        return rc;
    }
    config_free(attach->config); /* it knows the modules' keys by now */
    attach->config = NULL;
    if (command_config(line, &attach->config) != COMMAND_OK) {
        return rc;
    }
    return attach_describe(attach, ret);
}

int attach_look(struct command_line *line, struct attach *ret)
{
    bool running = false;
    int rc = attach_find(line, ret, &running);
    if (rc != COMMAND_OK) {
        return rc;
    }
    if (running) {
        return attach_refuse_unused(line, ret);
    }
    if (attach_check_owner(ret) != COMMAND_OK) {
        attach_done(ret);
        return COMMAND_FAILED;
    }
    rc = attach_is_own(ret) ? attach_open_own(line, ret, &ret->gateway)
                            : attach_describe(ret, &ret->gateway);
    if (rc != NG_OK) {
        attach_done(ret);
    }
    return command_exit_code(rc);
}

/* ---- requests ---- */

void attach_direct(const struct attach *attach, struct client_request *request)
{
    request->address = attach->address;
    request->socket_path = attach->address == NULL ? attach->socket_path : NULL;
    if (attach->authorization != NULL) {
        request->headers[request->header_count++] = attach->authorization;
    }
}

static int attach_keep_body(void *user, int status, const char *data, size_t len)
{
    struct attach_answer *answer = user;
    (void)status;
    return buf_add(&answer->body, data, len);
}

int attach_request(struct attach *attach, struct client_request *request,
                   struct attach_answer *ret)
{
    char error[512];
    memset(ret, 0, sizeof(*ret));
    buf_init(&ret->body, ATTACH_ANSWER_MAX);
    attach_direct(attach, request);
    request->on_body = attach_keep_body;
    request->user = ret;
    enum client_outcome outcome =
        attach->client->send(request, &ret->status, error, sizeof(error));
    if (ret->body.rc != NG_OK) {
        command_error("%s", ret->body.rc == NG_EINTERNAL
                                ? "out of memory for the gateway's answer; the request may "
                                  "have been carried out"
                                : "the gateway's answer is too large for this command");
        return NG_EUNAVAILABLE;
    }
    if (outcome != CLIENT_OK) {
        command_error("%s", error);
        return NG_EUNAVAILABLE;
    }
    return NG_OK;
}

int attach_fetch(struct attach *attach, struct client_request *request, struct buf *out)
{
    struct attach_answer answer;
    int rc = attach_request(attach, request, &answer);
    if (rc == NG_OK && answer.status != 200) {
        attach_print_error(&answer);
        rc = NG_EFAILED;
    } else if (rc == NG_OK) {
        rc = buf_add_str(out, buf_str(&answer.body));
        if (rc != NG_OK) {
            command_error("out of memory for the answer of the gateway");
        }
    }
    attach_answer_done(&answer);
    return rc;
}

void attach_answer_done(struct attach_answer *answer)
{
    buf_done(&answer->body);
}

void attach_print_error(const struct attach_answer *answer)
{
    struct arena arena;
    const struct ng_value *value = NULL;
    arena_init(&arena, ATTACH_ANSWER_MAX);
    (void)json_parse(&arena, buf_str(&answer->body), JSON_DEPTH_DEFAULT, &value, NULL);
    struct ng_str message = json_get_text(value, "message");
    struct ng_str hint = json_get_text(value, "hint");
    if (message.data == NULL) {
        command_error("the gateway answered with status %d", answer->status);
    } else {
        command_error("%.*s", (int)message.len, message.data);
        if (hint.data != NULL) {
            (void)fprintf(stderr, "%.*s\n", (int)hint.len, hint.data);
        }
    }
    arena_done(&arena);
}

int attach_caller_headers(struct command_line *line, struct client_request *request)
{
    const struct {
        const char *name, *value;
    } callers[] = {
        {"X-Notegate-Agent", line->agent},
        {"X-Notegate-Space", line->space},
        {"X-Notegate-Mode", line->mode},
        {RUN_ID_HEADER, line->run_id},
    };
    for (size_t i = 0; i < NG_COUNT(callers); i++) {
        if (callers[i].value == NULL) {
            continue;
        }
        struct ng_str text =
            arena_printf(&line->arena, "%s: %s", callers[i].name, callers[i].value);
        if (text.data == NULL || memchr(text.data, '\n', text.len) != NULL ||
            memchr(text.data, '\r', text.len) != NULL) {
            command_error("--agent, --space, --mode and --run must be one short line each");
            return NG_EINVAL;
        }
        request->headers[request->header_count++] = text.data;
    }
    return NG_OK;
}

bool attach_parse_mode(const char *text, enum ng_mode *ret)
{
    *ret = NG_MODE_AGENT;
    return text == NULL || key_parse_mode(ng_str_of(text), ret);
}

int attach_set_caller(const struct command_line *line, struct call *call)
{
    enum ng_mode mode;
    if (!attach_parse_mode(line->mode, &mode)) {
        return call_fail(call, NG_EINVAL, "the mode \"%s\" is none of ask, edit and agent",
                         line->mode);
    }
    call->face = "cli";
    call->caller.all_spaces = true; /* the owner, as on the Unix socket */
    call->caller.client = ng_str_of(CLIENT_NAME);
    call_set_run(call, ng_str_of(line->run_id));
    return call_set_caller(call, ng_str_of(text_or(line->agent, "local")),
                           ng_str_of(line->space), NG_ROLE_ADMIN, mode, true);
}
