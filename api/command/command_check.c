/* SPDX-License-Identifier: MIT */
/* command_check.c - notegate check: a line for each part of a gateway, and whether it works. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api/check/check.h"
#include "api/client/trial.h"
#include "api/http/http_transport.h"
#include "api/listen/http_tls.h"
#include "command_user.h"
#include "commands.h"
#include "core/base/files/fd_io.h"
#include "core/base/str.h"
#include "core/base/text_choice.h"
#include "core/cluster/cluster.h"
#include "core/files/files.h"
#include "core/gateway/gateway_modules.h"
#include "core/gateway/gateway_open.h"
#include "core/journal/journal.h"
#include "core/json/json.h"
#include "core/keys/keys.h"
#include "core/module/loader.h"
#include "core/module/registry.h"
#include "core/store/disk.h"
#include "core/store/store.h"

#define CHECK_PATH_MAX 4096
#define CHECK_HELP_MAX ((size_t)4 * 1024 * 1024)
#define CHECK_OUT_MAX ((size_t)16 * 1024 * 1024)
/* A write of a few documents. */
#define CHECK_WRITE_BYTES ((size_t)64 * 1024)

/* ---- what needs no data directory ---- */

static void check_modules(struct check *check, struct gateway *gateway)
{
    for (size_t i = 0; i < gateway->module_count; i++) {
        const struct module *module = gateway->modules[i];
        switch (module->kind) {
        case NG_KIND_PLUGIN:
            check_line(check, true, "plugin", "%s %s, %zu tool%s, %s", module->desc.plugin.name,
                       module->desc.plugin.version, module->desc.plugin.tool_count,
                       plural(module->desc.plugin.tool_count), module->path);
            break;
        case NG_KIND_DOCUMENTS:
            check_line(check, true, "backend", "%s %s for documents, %s",
                       module->desc.documents.name, module->desc.documents.version,
                       module->path);
            break;
        case NG_KIND_JOURNAL:
            check_line(check, true, "backend", "%s %s for the journal, %s",
                       module->desc.journal.name, module->desc.journal.version, module->path);
            break;
        }
    }
    if (gateway->left_out.len > 0) {
        check_line(check, false, "plugin", "left out because they crashed the gateway: %.*s",
                   (int)gateway->left_out.len, gateway->left_out.data);
    }
}

static void check_files_limit(struct check *check, struct gateway *gateway)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0) {
        return;
    }
    bool ok = limit.rlim_max == RLIM_INFINITY || limit.rlim_max >= gateway->limits.connections;
    check_line(check, true, "open files", "at most %llu; limits.connections is %u%s",
               (unsigned long long)limit.rlim_max, gateway->limits.connections,
               text_if(!ok, ", so fewer connections will be taken"));
}

static void check_listen(struct check *check, struct gateway *gateway)
{
    struct buf text;
    buf_init(&text, CHECK_ERROR_MAX);
    int rc = http_server_check(gateway, &text);
    trial_tell(&text, text_or(gateway->data_dir, ""), text_or(check->attach.data_dir, ""));
    bool whole = text.rc != NG_EINTERNAL;
    check_line(check, rc == NG_OK && whole, "listen", "%s",
               whole ? buf_cstr(&text) : "out of memory for the report");
    buf_done(&text);
}

static void check_tls(struct check *check, struct gateway *gateway)
{
    struct http_tls *tls = NULL;
    struct buf text;
    struct buf warnings;
    if (!http_tls_wanted(gateway->config)) {
        return;
    }
    buf_init(&text, CHECK_ERROR_MAX);
    buf_init(&warnings, CHECK_ERROR_MAX);
    int rc = http_tls_new(gateway->config, &tls, &text);
    if (rc == NG_OK) {
        http_tls_describe(tls, gateway->config, &text, &warnings);
    }
    check_line(check, rc == NG_OK, "tls", "%s", buf_cstr(&text));
    const char *at = buf_cstr(&warnings);
    while (*at != '\0') {
        size_t len = strcspn(at, "\n");
        check_line(check, true, "tls", "warning: %.*s", (int)len, at);
        at += len + (at[len] == '\n');
    }
    http_tls_free(tls);
    buf_done(&text);
    buf_done(&warnings);
}

static void check_configuration(struct check *check, const struct config *config)
{
    const char *file = config_file(config);
    const char *passed = config_passed_over(config);
    check_line(check, true, "configuration", "%s",
               text_or(file, "no file; defaults, environment and flags"));
    if (passed != NULL) {
        check_line(check, true, "configuration",
                   "warning: user %ld may not read %s, which is ignored", (long)geteuid(),
                   passed);
    }
}

/* Loads the configuration and all modules. False: nothing else can be checked. */
static bool check_describe(struct check *check)
{
    struct gateway *gateway = NULL;
    struct config *config = NULL;
    struct buf error;
    if (command_config(check->line, &config) != COMMAND_OK) {
        return false;
    }
    buf_init(&error, CHECK_ERROR_MAX);
    int rc = gateway_open(config, GATEWAY_DESCRIBE, 0, &gateway, &error);
    if (rc != NG_OK) {
        check_line(check, false, "configuration", "%s", buf_cstr(&error));
        config_free(config);
    } else {
        check_configuration(check, gateway->config);
        check_modules(check, gateway);
        check_tls(check, gateway);
        check_files_limit(check, gateway);
        check->described = gateway;
    }
    buf_done(&error);
    return rc == NG_OK;
}

static int check_help_config(struct command_line *line)
{
    struct gateway *gateway = NULL;
    struct config *config = NULL;
    struct buf text;
    struct buf error;
    if (command_config(line, &config) != COMMAND_OK) {
        return COMMAND_FAILED;
    }
    buf_init(&text, CHECK_HELP_MAX);
    buf_init(&error, CHECK_ERROR_MAX);
    int rc = gateway_open(config, GATEWAY_DESCRIBE, 0, &gateway, &error);
    if (rc != NG_OK) {
        command_error("%s", buf_cstr(&error));
        config_free(config);
    } else {
        /* Includes the backends that are not in use: a reader that chooses a backend needs its
         * keys. */
        rc = gateway_declare_unused(gateway, gateway->config, NG_KIND_DOCUMENTS, true, &error);
        if (rc == NG_OK) {
            rc =
                gateway_declare_unused(gateway, gateway->config, NG_KIND_JOURNAL, true, &error);
        }
        if (rc == NG_OK) {
            rc = config_help(gateway->config, &text);
        }
        if (error.len > 0) {
            command_error("%s", buf_cstr(&error));
        }
        (void)command_put(stdout, buf_str(&text));
    }
    gateway_close(gateway);
    buf_done(&text);
    buf_done(&error);
    return command_exit_code(rc);
}

/* ---- the data directory and what lies in it ---- */

/* made: the start makes it where it is missing. */
static void check_permissions(struct check *check, const char *what, const char *path,
                              bool made)
{
    struct stat info;
    if (stat(path, &info) != 0 && errno == ENOENT) {
        check_line(check, made, what,
                   made ? "%s does not exist yet"
                        : "%s does not exist: make the folder, or name another",
                   path);
    } else if (stat(path, &info) != 0) {
        check_line(check, false, what, "%s: %s", path, text_errno(errno));
    } else if (!S_ISDIR(info.st_mode)) {
        check_line(check, false, what, "%s is not a directory; choose another path", path);
    } else if (access(path, R_OK | W_OK | X_OK) != 0) {
        check_line(check, false, what,
                   "%s cannot be read and written by user %ld; change its owner or mode", path,
                   (long)geteuid());
    } else {
        check_line(check, true, what, "%s, mode %04o", path, (unsigned)(info.st_mode & 0777));
    }
}

/* The folder that a start makes the missing data directory in: the nearest one that is there.
 */
static void check_folder_above(const char *dir, char above[CHECK_PATH_MAX])
{
    int len = snprintf(above, CHECK_PATH_MAX, "%s", dir);
    while (len > 0 && access(above, F_OK) != 0 && errno == ENOENT) {
        while (len > 0 && above[--len] != '/') {
        }
        above[len] = '\0';
    }
    if (len == 0) {
        (void)snprintf(above, CHECK_PATH_MAX, "%s", dir[0] == '/' ? "/" : ".");
    }
}

/* Looking makes nothing, so the folder above tells whether a start can make it. */
static void check_missing_data_dir(struct check *check, const char *dir)
{
    char above[CHECK_PATH_MAX];
    check_folder_above(dir, above);
    bool can = access(above, W_OK | X_OK) == 0;
    check_line(check, can, "data directory",
               can ? "%s does not exist yet"
                   : "%s cannot be made by user %ld; choose another with --data-dir",
               dir, (long)geteuid());
}

/* Other users must not read what agents keep. Of a gateway that serves it, only the mode
 * counts: root may ask, too. */
static void check_data_dir(struct check *check)
{
    struct stat info;
    struct buf error;
    const char *dir = check->attach.data_dir;
    bool there = stat(dir, &info) == 0;
    bool others = there && info.st_uid != geteuid();
    buf_init(&error, CHECK_ERROR_MAX);
    if (others && check->running && (info.st_mode & 0077) == 0) {
        check_line(check, true, "data directory", "%s, mode %04o", dir,
                   (unsigned)(info.st_mode & 0777));
    } else if (gateway_check_data_dir(dir, &error) != NG_OK) {
        check_line(check, false, "data directory", "%s", buf_cstr(&error));
    } else if (there) {
        check_line(check, true, "data directory", "%s, mode %04o", dir,
                   (unsigned)(info.st_mode & 0777));
    } else {
        check_missing_data_dir(check, dir);
    }
    buf_done(&error);
}

static void check_runners(struct check *check, struct gateway *gateway, struct call *call)
{
    struct buf text;
    buf_init(&text, CHECK_ERROR_MAX);
    if (keys_run_matters(gateway)) {
        int rc = keys_runners(gateway->keys, call, &text);
        check_line(check, rc == NG_OK, "run code", "%s",
                   rc == NG_OK ? buf_cstr(&text) : "out of memory for the keys");
    }
    buf_done(&text);
}

/* Can a file be written there? The answer of the system decides, not modes and quotas. */
static int try_to_write(const char *dir)
{
    char block[CHECK_WRITE_BYTES];
    int fd = open(dir, O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
    if (fd < 0) {
        if (errno == EOPNOTSUPP || errno == EISDIR) {
            return 0;
        }
        return errno;
    }
    memset(block, 0, sizeof(block));
    int number = 0;
    if (fd_put(fd, str_make(block, sizeof(block))) != NG_OK || fsync(fd) != 0) {
        number = errno;
    }
    (void)close(fd);
    return number;
}

static void check_space(struct check *check)
{
    const char *dir = check->attach.data_dir;
    struct disk_room room;
    struct buf text;
    buf_init(&text, CHECK_ERROR_MAX);
    int number = try_to_write(dir);
    if (number == ENOENT) {
        return; /* it is made at the start */
    }
    if (number != 0) {
        check_line(check, false, "space", "nothing can be written in %s: %s", dir,
                   text_errno(number));
        return;
    }
    (void)buf_add_c(&text, "the free space is unknown");
    if (disk_ask(dir, &room)) {
        buf_clear(&text);
        disk_describe(&room, &text);
    }
    check_line(check, true, "space", "%s%s where %s is",
               text_if(disk_is_low(&room), "warning: the disk is nearly full: "),
               buf_cstr(&text), dir);
    buf_done(&text);
}

/* Values that a start refuses. A start cannot be tried while a gateway serves the data. */
static void check_values(struct check *check, const struct config *config)
{
    struct ng_str user = config_text(config, "user");
    struct buf error;
    buf_init(&error, CHECK_ERROR_MAX);
    if (journal_check_zone(config, &error) != NG_OK) {
        check_line(check, false, "timezone", "%s", buf_cstr(&error));
    }
    buf_clear(&error);
    if (cluster_check_advertise(config, &error) != NG_OK) {
        check_line(check, false, "cluster", "%s", buf_cstr(&error));
    }
    if (user.len > 0 && !command_user_is_known(user.data)) {
        check_line(check, false, "user",
                   "there is no user \"%s\"; make it with `adduser --system --group --home "
                   "/var/lib/notegate --no-create-home NAME`, or name another",
                   user.data);
    }
    buf_done(&error);
}

/* Is it apart from the gateway's own files? Missing folders are reported below.
 */
static bool check_root(struct check *check, struct gateway *gateway, struct ng_str root)
{
    bool is_made = access(check->attach.data_dir, F_OK) == 0;
    const struct files_own own = {
        .data_dir = is_made ? check->attach.data_dir : NULL,
        .config_file = ng_str_of(config_file(gateway->config)),
        .tls_key = config_text(gateway->config, "tls.key"),
    };
    struct call *call = call_new(gateway);
    int rc = NG_EINTERNAL;
    if (call != NULL) {
        rc = files_try_root(call, root, &own);
    }
    if (rc == NG_EINVAL) {
        struct ng_str text = command_call_message(call);
        check_line(check, false, "root", "%.*s", (int)text.len, text.data);
    }
    call_unref(call);
    return rc != NG_EINVAL;
}

/* Of a data directory that is not made yet, which no file service can compare. */
static bool check_root_holds(struct check *check, const char *root)
{
    const char *dir = check->attach.data_dir;
    char above[CHECK_PATH_MAX];
    if (access(dir, F_OK) == 0) {
        return false;
    }
    check_folder_above(dir, above);
    char *outer = realpath(root, NULL);
    char *inner = realpath(above, NULL);
    size_t len = outer != NULL ? strlen(outer) : 0;
    bool holds = inner != NULL && len > 0 && strncmp(inner, outer, len) == 0 &&
                 (len == 1 || inner[len] == '/' || inner[len] == '\0');
    free(outer);
    free(inner);
    if (holds) {
        check_line(check, false, "root",
                   "The root %s holds the data directory %s. Choose a separate folder, or move "
                   "the data directory.",
                   root, dir);
    }
    return holds;
}

/* All of them, whatever space they belong to: so not by way of the file service. */
static void check_roots(struct check *check, struct gateway *gateway)
{
    const struct ng_str *roots = NULL;
    size_t count = config_list(gateway->config, "roots", &roots);
    bool named = config_is_set(gateway->config, "roots");
    for (size_t i = 0; i < count; i++) {
        struct buf path;
        if (!check_root(check, gateway, roots[i])) {
            continue;
        }
        const char *slash = memchr(roots[i].data, '/', roots[i].len);
        /* SPACE:/PATH; a relative path has slashes, too. */
        bool spaced = slash != NULL && slash > roots[i].data && slash[-1] == ':';
        size_t skip = 0;
        if (spaced) {
            skip = (size_t)(slash - roots[i].data);
        }
        buf_init(&path, CHECK_ERROR_MAX);
        if (buf_add(&path, roots[i].data + skip, roots[i].len - skip) != NG_OK) {
            check_line(check, false, "root", "out of memory for its path");
        } else if (!check_root_holds(check, buf_cstr(&path))) {
            check_permissions(check, "root", buf_cstr(&path), !named);
        }
        buf_done(&path);
    }
}

/* A journal beside the documents: where it is away a gateway starts all the same. */
static void check_health_line(struct check *check, const char *what, int rc,
                              const struct call *call, const char *good)
{
    struct ng_str text = ng_str_of(good);
    if (rc != NG_OK) {
        text = command_call_message(call);
    }
    check_line(check, rc == NG_OK, what, "%.*s", (int)text.len, text.data);
}

static void check_journal(struct check *check, struct gateway *gateway, struct call *call)
{
    if (gateway->journal == NULL ||
        str_is(config_text(gateway->config, "journal"), "documents")) {
        return;
    }
    void *handle = NULL;
    call_reset_result(call);
    int rc = journal_vtable(gateway->journal, &handle)->health(handle, &call->pub);
    check_health_line(check, "journal", rc, call, "answers");
}

static void check_take_advice(void *user, const char *text)
{
    check_line(user, true, "documents", "advice: %s", text);
}

static void check_health(struct check *check, struct gateway *gateway, struct call *call)
{
    struct plugin *const *plugins = NULL;
    size_t count = registry_plugins(gateway->registry, &plugins);
    int rc = store_health(gateway->store, call);
    if (rc == NG_OK) {
        call_reset_result(call);
        rc = store_advise(gateway->store, call, check_take_advice, check);
    }
    /* Advice waits for the background work of a start, which decides about the health. */
    if (rc == NG_OK) {
        call_reset_result(call);
        rc = store_health(gateway->store, call);
    }
    check_health_line(check, "documents", rc, call, "answers");
    check_journal(check, gateway, call);
    for (size_t i = 0; i < count; i++) {
        if (plugins[i]->desc.health == NULL) {
            continue;
        }
        call_reset_result(call);
        rc = plugins[i]->desc.health(plugins[i]->self, &call->pub);
        check_health_line(check, plugins[i]->desc.name, rc, call, "ready");
    }
}

/* With the store of the data directory, or in a trial. */
static void check_open(struct check *check, bool is_trial)
{
    struct gateway *gateway = NULL;
    struct buf error;
    buf_init(&error, CHECK_ERROR_MAX);
    int rc =
        gateway_open(check->attach.config, GATEWAY_FULL, COMMAND_WAIT_MS, &gateway, &error);
    if (rc != NG_OK) {
        check_line(check, false, "gateway", "%s", buf_cstr(&error));
    } else {
        check->attach.config = NULL;
        check_line(check, true, "gateway", "it starts%s",
                   text_if(is_trial, ", tried with an empty data directory, which is gone"));
        check_listen(check, gateway); /* a public address needs a key */
        check_line(check, true, "keys", "%zu in force", keys_count(gateway->keys));
        struct call *call = call_new(gateway);
        if (call != NULL) {
            check_runners(check, gateway, call);
            call_reset_result(call);
            check_health(check, gateway, call);
        } else {
            check_line(check, false, "documents", "out of memory for asking them");
        }
        call_unref(call);
        if (!is_trial && !config_is_set(gateway->config, "roots")) {
            check_roots(check, gateway); /* the default was just made */
        }
    }
    gateway_close(gateway);
    buf_done(&error);
}

static int check_end(struct check *check)
{
    if (line_has(check->line, LINE_JSON)) {
        json_end(&check->writer);
        json_member_bool(&check->writer, "ok", !check->failed);
        json_end(&check->writer);
        (void)command_put_line(stdout, buf_str(&check->out));
    }
    return check->failed ? COMMAND_FAILED : COMMAND_OK;
}

/* The child of a trial: the rest of the report, and its end. */
static int check_trial(void *user, const char *dir)
{
    struct check *check = user;
    config_free(check->attach.config);
    check->attach.config = NULL;
    if (trial_config(check->line, dir, false, &check->attach.config) != COMMAND_OK) {
        return COMMAND_FAILED;
    }
    check_open(check, true);
    return check_end(check);
}

/* True: the gateway could start, and a start is to be tried. */
static bool check_parts(struct check *check)
{
    if (!check_describe(check)) {
        check->failed = true;
        return false;
    }
    if (attach_find(check->line, &check->attach, &check->running) != COMMAND_OK) {
        check->failed = true;
        return false;
    }
    check_data_dir(check);
    check_space(check);
    if (!check->running) {
        (void)attach_check_owner(&check->attach); /* tells how it is run as the right user */
    }
    if (check->running || config_is_set(check->described->config, "roots") ||
        !attach_is_own(&check->attach)) {
        check_roots(check, check->described);
    }
    check_values(check, check->described->config);
    bool opens = !check->running && !check->failed;
    if (!opens) {
        check_listen(check, check->described);
    }
    if (check->running) {
        check_running(check);
        check_line(check, true, "start",
                   "not tried, because a running gateway holds the data directory: databases "
                   "and views of another configuration are checked when it starts");
        if (keys_run_matters(check->described)) {
            check_running_runners(check);
        }
    }
    return opens;
}

int command_check(struct command_line *line)
{
    if (line_has(line, LINE_HELP_CONFIG)) {
        return check_help_config(line);
    }
    struct check check = {
        .line = line, .colours = command_colours(stdout), .attach = {.dir_fd = -1}};
    int rc = COMMAND_OK;
    buf_init(&check.out, CHECK_OUT_MAX);
    json_writer_init(&check.writer, &check.out);
    if (line_has(line, LINE_JSON)) {
        json_object(&check.writer);
        json_name(&check.writer, "checks");
        json_array(&check.writer);
    }
    bool opens = check_parts(&check);
    gateway_close(check.described);
    if (opens && !attach_is_own(&check.attach)) {
        rc = trial_run("notegate-check", check_trial, &check);
    } else {
        if (opens) {
            check_open(&check, false);
        }
        rc = check_end(&check);
    }
    attach_done(&check.attach);
    buf_done(&check.out);
    return rc;
}
