/* SPDX-License-Identifier: MIT */
/* command_restore.c - notegate restore: an archive into an empty store, which is opened without
 * plugins, as they would write into it; or one document or file of it into any store. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api/client/attach.h"
#include "api/protocol/mcp_uri.h"
#include "commands.h"
#include "core/archive/archive.h"
#include "core/archive/files_pack.h"
#include "core/base/files/fd_io.h"
#include "core/base/str.h"
#include "core/base/text_choice.h"
#include "core/config/config.h"
#include "core/gateway/gateway_open.h"
#include "core/module/loader.h"
#include "core/module/registry.h"
#include "core/store/store.h"

#define RESTORE_ERROR_MAX ((size_t)64 * 1024)
#define RESTORE_CHUNK ((size_t)64 * 1024)

struct restore_job {
    struct command_line *line;
    struct attach attach;
    int fd;
    struct gateway *gateway; /* described only */
    const struct ng_documents *backend;
    void *db;
    struct archive_counts counts;
    const char *own_root; /* `files` in the data directory: made where it is missing */
    struct mcp_uri uri;   /* of --only */
    struct buf path;      /* of --only: where the file is; empty: it was a document */
    bool is_written;
};

static int restore_rewind(void *fd)
{
    if (lseek(*(const int *)fd, 0, SEEK_SET) == 0) {
        return NG_OK;
    }
    return NG_EFAILED;
}

/* Declared by a plugin that is loaded. */
static const struct ng_collection *restore_known(void *user, struct ng_str name)
{
    struct restore_job *job = user;
    struct plugin *const *plugins = NULL;
    size_t count = registry_plugins(job->gateway->registry, &plugins);
    for (size_t i = 0; i < count; i++) {
        const struct ng_plugin *desc = &plugins[i]->desc;
        for (size_t j = 0; j < desc->collection_count; j++) {
            if (str_is(name, desc->collections[j].name)) {
                return &desc->collections[j];
            }
        }
    }
    return NULL;
}

static int restore_add_folders(struct restore_job *job, const struct ng_plugin *plugin,
                               struct unpack *unpack)
{
    int rc = NG_OK;
    for (size_t i = 0; i < plugin->option_count && rc == NG_OK; i++) {
        const struct ng_str *items = NULL;
        size_t count = 0;
        struct ng_str key =
            arena_printf(&job->line->arena, "%s.%s", plugin->name, plugin->options[i].name);
        if (key.data != NULL && plugin->options[i].type == NG_OPTION_LIST) {
            count = config_list(job->gateway->config, key.data, &items);
        }
        for (size_t j = 0; j < count && rc == NG_OK; j++) {
            rc = unpack_add_folder(unpack, plugin->name, items[j]);
        }
    }
    return rc;
}

/* The configured roots and the lists of the plugins, which have their folders. */
static int restore_unpack(struct restore_job *job, struct unpack **ret, struct buf *error)
{
    const struct ng_str *roots = NULL;
    struct plugin *const *plugins = NULL;
    size_t count = config_list(job->gateway->config, "roots", &roots);
    int rc = unpack_new(roots, count, ng_str_of(job->own_root), ret, error);
    if (rc != NG_OK) {
        return rc;
    }
    count = registry_plugins(job->gateway->registry, &plugins);
    for (size_t i = 0; i < count && rc == NG_OK; i++) {
        rc = restore_add_folders(job, &plugins[i]->desc, *ret);
    }
    if (rc != NG_OK) {
        buf_add_c(error,
                  rc == NG_ETOOLARGE ? "too many folders are configured" : "out of memory");
    }
    return rc;
}

static void restore_fail(const struct restore_job *job, struct buf *error)
{
    command_error("nothing was restored from %s: %s", job->line->words[0], buf_cstr(error));
}

static int restore_into(struct restore_job *job, struct call *call)
{
    struct buf error;
    struct archive_origin into = {
        .backend = job->backend, .db = job->db, .collection = restore_known, .user = job};
    struct archive_source source = {fd_get, restore_rewind, &job->fd};
    buf_init(&error, RESTORE_ERROR_MAX);
    int rc = restore_unpack(job, &into.unpack, &error);
    if (rc == NG_OK) {
        rc = archive_restore(&into, call, &source, &job->counts, &error);
    }
    unpack_free(into.unpack);
    if (rc != NG_OK) {
        restore_fail(job, &error);
    }
    buf_done(&error);
    return rc;
}

static int restore_open(struct restore_job *job)
{
    const char *name = job->backend->name;
    struct call *call = call_new(job->gateway);
    if (call == NULL) {
        command_error("out of memory");
        return NG_EINTERNAL;
    }
    int rc = job->backend->open(&call->pub, config_view(job->gateway->config, name), &job->db);
    if (rc != NG_OK) {
        struct ng_str why = command_call_message(call);
        command_error("%.*s", (int)why.len, why.data);
    } else {
        rc = restore_into(job, call);
        job->backend->close(job->db);
    }
    call_unref(call);
    return rc;
}

static const struct ng_documents *restore_backend(const struct gateway *gateway)
{
    for (size_t i = 0; i < gateway->module_count; i++) {
        if (gateway->modules[i]->kind == NG_KIND_DOCUMENTS) {
            return &gateway->modules[i]->desc.documents;
        }
    }
    return NULL;
}

/* The data directory is this process' own from here on. */
static int restore_locked(struct restore_job *job)
{
    struct buf error;
    int lock_fd = -1;
    buf_init(&error, RESTORE_ERROR_MAX);
    char *dir = gateway_data_dir(job->gateway->config, true, &error);
    int rc = NG_EUNAVAILABLE;
    if (dir != NULL) {
        rc = gateway_lock_data_dir(dir, COMMAND_WAIT_MS, &lock_fd, &error);
    }
    if (rc != NG_OK) {
        command_error("%s", buf_cstr(&error));
    } else {
        struct ng_str own = arena_printf(&job->line->arena, "%s/files", dir);
        job->own_root = text_or(own.data, "");
        rc = restore_open(job);
        (void)close(lock_fd);
    }
    free(dir);
    buf_done(&error);
    return rc;
}

static int restore_check_documents(const struct restore_job *job)
{
    if (!str_is(config_text(job->gateway->config, "documents"), "memory")) {
        return NG_OK;
    }
    command_error("the backend keeps documents in memory: a restore would be lost at once; set "
                  "`documents`");
    return NG_EFAILED;
}

static int restore_run(struct restore_job *job)
{
    int rc = attach_describe(&job->attach, &job->gateway);
    if (rc == NG_OK) {
        job->backend = restore_backend(job->gateway);
        rc = restore_check_documents(job);
    }
    if (rc == NG_OK) {
        rc = restore_locked(job);
    }
    gateway_close(job->gateway);
    return rc;
}

/* ---- one document or file ---- */

static const struct ng_resources *restore_kind(const struct restore_job *job)
{
    struct plugin *const *plugins = NULL;
    struct buf kinds;
    size_t count = registry_plugins(job->gateway->registry, &plugins);
    buf_init(&kinds, RESTORE_ERROR_MAX);
    for (size_t i = 0; i < count; i++) {
        const struct ng_plugin *desc = &plugins[i]->desc;
        for (size_t j = 0; j < desc->resource_count; j++) {
            const char *kind = desc->resources[j].kind;
            if (kind != NULL && str_is(job->uri.kind, kind)) {
                buf_done(&kinds);
                return &desc->resources[j];
            }
            if (kind != NULL) {
                buf_printf(&kinds, "%s%s", text_if(kinds.len > 0, ", "), kind);
            }
        }
    }
    command_error("%s names no kind of document that the loaded plugins have (%s)",
                  job->line->only, buf_cstr(&kinds));
    buf_done(&kinds);
    return NULL;
}

/* The archive has neither a document nor a file of that name. */
static void restore_name_near(const struct restore_job *job, const struct archive_only *only,
                              struct buf *error)
{
    buf_printf(error, "it has no %s", job->line->only);
    if (only->near_id.len > 0) {
        buf_add_c(error, "; did you mean ");
        (void)resource_uri_print(error, buf_str(&only->near_space), job->uri.kind,
                                 buf_str(&only->near_id));
        buf_add_char(error, '?');
    } else if (only->unpack != NULL && !only->has_files) {
        buf_add_c(error, "; it has no files at all, as of a backup without --files");
    } else if (strcmp(job->line->words[0], "-") != 0) {
        buf_printf(error, "; to see what it has: grep -E '\"id\"|\"kind\":\"file\"' %s",
                   job->line->words[0]);
    }
}

static int restore_only_call(struct restore_job *job, const struct ng_resources *kind,
                             struct call *call, struct buf *error)
{
    struct archive_source source = {fd_get, restore_rewind, &job->fd};
    struct archive_only only = {.revision = job->uri.revision,
                                .uri = ng_str_of(job->line->only)};
    int rc = NG_OK;
    only.key = (struct ng_key){ng_str_of(kind->collection), job->uri.space, job->uri.id};
    buf_init(&only.near_space, RESTORE_ERROR_MAX);
    buf_init(&only.near_id, RESTORE_ERROR_MAX);
    if (str_begins(job->uri.id, "/")) {
        rc = restore_unpack(job, &only.unpack, error);
    }
    if (only.unpack != NULL) {
        unpack_only(only.unpack, job->uri.id);
    }
    if (rc == NG_OK) {
        rc = archive_restore_only(&only, call, &source, error);
    }
    if (rc == NG_ENOTFOUND) {
        restore_name_near(job, &only, error);
    }
    job->is_written = only.unpack == NULL || !unpack_found(only.unpack, &job->path) ||
                      unpack_made(only.unpack) > 0;
    unpack_free(only.unpack);
    buf_done(&only.near_space);
    buf_done(&only.near_id);
    return rc;
}

static int restore_only_kind(struct restore_job *job, const struct ng_resources *kind)
{
    struct buf error;
    struct call *call = call_new(job->gateway);
    if (call == NULL) {
        command_error("out of memory");
        return NG_EINTERNAL;
    }
    if (kind->collection == NULL) {
        command_error("%s cannot be restored alone, but with the whole backup: it is no "
                      "document of its own",
                      job->line->only);
        call_unref(call);
        return NG_EFAILED;
    }
    buf_init(&error, RESTORE_ERROR_MAX);
    call->pub.tool = ng_str_of("restore"); /* of the event */
    int rc = restore_only_call(job, kind, call, &error);
    if (rc != NG_OK) {
        restore_fail(job, &error);
    }
    buf_done(&error);
    call_unref(call);
    return rc;
}

/* In a whole gateway: plugins declare the collections and their folders. */
static int restore_only(struct restore_job *job)
{
    job->gateway = job->attach.gateway;
    job->own_root =
        text_or(arena_printf(&job->line->arena, "%s/files", job->gateway->data_dir).data, "");
    const struct ng_resources *kind = restore_kind(job);
    int rc = kind != NULL ? restore_check_documents(job) : NG_EFAILED;
    return rc != NG_OK ? rc : restore_only_kind(job, kind);
}

static int restore_parse_uri(struct restore_job *job)
{
    const char *why = "";
    struct command_line *line = job->line;
    if (mcp_uri_parse(&line->arena, ng_str_of(line->only), &job->uri, &why) == NG_OK) {
        return COMMAND_OK;
    }
    return command_usage(line, "--only %s is no URI of a resource: %s", line->only, why);
}

/* The gateway that serves the directory, by the name it signed its lock with. */
static void restore_refuse(const struct restore_job *job)
{
    struct buf error;
    int fd = -1;
    buf_init(&error, RESTORE_ERROR_MAX);
    if (gateway_lock_data_dir(job->attach.data_dir, 0, &fd, &error) == NG_OK) {
        (void)close(fd);
        buf_printf(&error, "a gateway was serving %s just now; try again",
                   job->attach.data_dir);
    }
    command_error("%s", buf_cstr(&error));
    buf_done(&error);
}

static void restore_report_only(struct restore_job *job)
{
    struct buf text;
    struct ng_str uri = ng_str_of(job->line->only);
    buf_init(&text, RESTORE_ERROR_MAX);
    if (line_has(job->line, LINE_JSON)) {
        buf_add_c(&text, "{\"uri\":");
        buf_add_json(&text, uri);
        if (job->path.len > 0) {
            buf_add_c(&text, ",\"path\":");
            buf_add_json(&text, buf_str(&job->path));
        }
        buf_printf(&text, ",\"written\":%s}\n", job->is_written ? "true" : "false");
    } else if (job->path.len == 0) {
        buf_printf(&text, "restored %.*s\n", (int)uri.len, uri.data);
    } else {
        buf_printf(&text, "%s %s\n", job->is_written ? "restored" : "already as in the backup:",
                   buf_cstr(&job->path));
    }
    (void)command_put(stdout, buf_str(&text));
    buf_done(&text);
}

static void restore_report(const struct restore_job *job)
{
    const struct archive_counts *counts = &job->counts;
    printf(line_has(job->line, LINE_JSON)
               ? "{\"documents\":%llu,\"revisions\":%llu,\"events\":%llu,\"files\":%llu}\n"
               : "restored %llu documents, %llu revisions, %llu events, %llu files\n",
           (unsigned long long)counts->documents, (unsigned long long)counts->revisions,
           (unsigned long long)counts->events, (unsigned long long)counts->files);
}

/* The standard input as a file, as an archive is read twice: checked, then restored. -1: told.
 */
static int restore_from_stdin(void)
{
    char chunk[RESTORE_CHUNK];
    size_t len = 1;
    int in = STDIN_FILENO;
    const char *folder = text_or(getenv("TMPDIR"), "/tmp");
    int fd = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, S_IRUSR | S_IWUSR);
    int rc = fd < 0 ? NG_EUNAVAILABLE : NG_OK;
    while (rc == NG_OK && len > 0) {
        rc = fd_get(&in, chunk, sizeof(chunk), &len);
        if (rc == NG_OK) {
            rc = fd_put(fd, str_make(chunk, len));
        }
    }
    if (rc == NG_OK && restore_rewind(&fd) == NG_OK) {
        return fd;
    }
    command_error("the standard input cannot be kept in %s while it is checked: %s; name "
                  "another folder in TMPDIR",
                  folder, text_errno(errno));
    if (fd >= 0) {
        (void)close(fd);
    }
    return -1;
}

/* -1: told. */
static int restore_open_archive(const char *name)
{
    if (strcmp(name, "-") == 0) {
        return restore_from_stdin();
    }
    int fd = open(name, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        command_error("%s cannot be read: %s", name, text_errno(errno));
    }
    return fd;
}

static int restore_whole(struct restore_job *job)
{
    bool running = false;
    int rc = attach_find(job->line, &job->attach, &running);
    if (rc != COMMAND_OK) {
        return rc;
    }
    if (running) {
        restore_refuse(job);
        rc = COMMAND_FAILED;
    } else if (attach_check_owner(&job->attach) != COMMAND_OK) {
        rc = COMMAND_FAILED;
    } else {
        rc = command_exit_code(restore_run(job));
    }
    attach_done(&job->attach);
    if (rc == COMMAND_OK) {
        restore_report(job);
    }
    return rc;
}

static int restore_part(struct restore_job *job)
{
    int rc = attach_open(job->line, &job->attach);
    if (rc != COMMAND_OK) {
        return rc;
    }
    buf_init(&job->path, RESTORE_ERROR_MAX);
    if (job->attach.gateway == NULL) {
        restore_refuse(job);
        rc = COMMAND_FAILED;
    } else {
        rc = command_exit_code(restore_only(job));
    }
    attach_done(&job->attach);
    if (rc == COMMAND_OK) {
        restore_report_only(job);
    }
    buf_done(&job->path);
    return rc;
}

int command_restore(struct command_line *line)
{
    struct restore_job job = {.line = line};
    int rc = line->only != NULL ? restore_parse_uri(&job) : COMMAND_OK;
    if (rc != COMMAND_OK) {
        return rc;
    }
    job.fd = restore_open_archive(line->words[0]);
    if (job.fd < 0) {
        return COMMAND_FAILED;
    }
    rc = line->only != NULL ? restore_part(&job) : restore_whole(&job);
    (void)close(job.fd);
    return rc;
}
