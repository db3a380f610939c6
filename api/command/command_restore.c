/* SPDX-License-Identifier: MIT */
/* command_restore.c - notegate restore: an archive into an empty store. The store is opened
 * without plugins, which would write into it. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api/client/attach.h"
#include "commands.h"
#include "core/archive/archive.h"
#include "core/base/files/fd_io.h"
#include "core/base/str.h"
#include "core/base/text_choice.h"
#include "core/config/config.h"
#include "core/files/files_pack.h"
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

static int restore_into(struct restore_job *job, struct call *call)
{
    struct buf error;
    struct archive_origin into = {
        .backend = job->backend, .db = job->db, .collection = restore_known, .user = job};
    struct archive_source source = {fd_get, restore_rewind, &job->fd};
    const struct ng_str *roots = NULL;
    size_t count = config_list(job->gateway->config, "roots", &roots);
    buf_init(&error, RESTORE_ERROR_MAX);
    int rc = unpack_new(roots, count, ng_str_of(job->own_root), &into.unpack, &error);
    if (rc == NG_OK) {
        rc = archive_restore(&into, call, &source, &job->counts, &error);
    }
    unpack_free(into.unpack);
    if (rc != NG_OK) {
        command_error("nothing was restored from %s: %s", job->line->words[0],
                      buf_cstr(&error));
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

static int restore_run(struct restore_job *job)
{
    int rc = attach_describe(&job->attach, &job->gateway);
    if (rc == NG_OK) {
        job->backend = restore_backend(job->gateway);
        if (str_is(config_text(job->gateway->config, "documents"), "memory")) {
            command_error("the backend keeps documents in memory: a restore would be lost at "
                          "once; set `documents`");
            rc = NG_EFAILED;
        } else {
            rc = restore_locked(job);
        }
    }
    gateway_close(job->gateway);
    return rc;
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

int command_restore(struct command_line *line)
{
    struct restore_job job = {.line = line};
    bool running = false;
    job.fd = restore_open_archive(line->words[0]);
    if (job.fd < 0) {
        return COMMAND_FAILED;
    }
    int rc = attach_find(line, &job.attach, &running);
    if (rc == COMMAND_OK) {
        if (running) {
            restore_refuse(&job);
            rc = COMMAND_FAILED;
        } else if (attach_check_owner(&job.attach) != COMMAND_OK) {
            rc = COMMAND_FAILED;
        } else {
            rc = command_exit_code(restore_run(&job));
        }
        attach_done(&job.attach);
    }
    if (rc == COMMAND_OK) {
        restore_report(&job);
    }
    (void)close(job.fd);
    return rc;
}
