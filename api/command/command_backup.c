/* SPDX-License-Identifier: MIT */
/* command_backup.c - notegate backup: an archive that appears whole or not at all. */
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api/client/attach.h"
#include "api/ops/backup_check.h"
#include "commands.h"
#include "core/archive/archive_tally.h"
#include "core/base/files/fd_io.h"
#include "core/base/files/private_file.h"
#include "core/base/str.h"
#include "core/base/text_choice.h"

#define BACKUP_ERROR_MAX ((size_t)64 * 1024)

struct backup {
    struct command_line *line;
    struct attach attach;
    const char *path;
    bool to_stdout;                /* FILE is `-` */
    struct private_file temporary; /* else */
    struct backup_check check;     /* of what went to stdout */
    int failed_errno;              /* of writing */
    struct buf refusal;            /* the refusal of the running gateway */
    struct archive_counts counts;
    struct archive_tally tally;
    char data_dir[PATH_MAX]; /* the copied files */
};

static int backup_put(void *user, struct ng_str bytes)
{
    struct backup *backup = user;
    int fd = backup->temporary.fd;
    if (backup->to_stdout) {
        fd = STDOUT_FILENO;
        backup_check_put(&backup->check, bytes);
    }
    if (fd_put(fd, bytes) != NG_OK) {
        backup->failed_errno = errno;
        return NG_EFULL;
    }
    return NG_OK;
}

static int backup_take(void *user, int status, const char *data, size_t len)
{
    struct backup *backup = user;
    struct ng_str bytes = {data, len};
    if (status == 200) {
        return backup_put(backup, bytes);
    }
    return buf_add_str(&backup->refusal, bytes);
}

static int backup_here(struct backup *backup)
{
    struct call *call = call_new(backup->attach.gateway);
    if (call == NULL) {
        command_error("out of memory");
        return NG_EINTERNAL;
    }
    int rc = archive_write_store(call, line_has(backup->line, LINE_FILES), backup_put, backup,
                                 &backup->counts);
    if (rc != NG_OK && backup->failed_errno == 0) {
        struct ng_str why = command_call_message(call);
        command_error("%.*s", (int)why.len, why.data);
    }
    call_unref(call);
    return rc;
}

static int backup_there(struct backup *backup)
{
    char error[512];
    int status = 0;
    struct client_request request = {
        .method = "POST",
        .path = line_has(backup->line, LINE_FILES) ? "/v1/admin/backup?files=true"
                                                   : "/v1/admin/backup",
        .body = {"", 0},
        .on_body = backup_take,
        .user = backup,
    };
    attach_direct(&backup->attach, &request);
    enum client_outcome outcome =
        backup->attach.client->send(&request, &status, error, sizeof(error));
    if (backup->failed_errno != 0) {
        return NG_EFULL;
    }
    if (outcome != CLIENT_OK) {
        command_error("%s", error);
        return NG_EUNAVAILABLE;
    }
    if (status != 200) {
        struct attach_answer answer = {status, backup->refusal};
        attach_print_error(&answer);
        return NG_EFAILED;
    }
    return NG_OK;
}

static int backup_refuse(const char *where, struct buf *error)
{
    command_error("the backup in %s is incomplete: %s", where,
                  error->len > 0 ? buf_cstr(error) : "it cannot be read");
    return NG_EFAILED;
}

/* Reads the written backup: one that cannot be restored is useless. */
static int backup_read_back(struct backup *backup)
{
    struct buf error;
    buf_init(&error, BACKUP_ERROR_MAX);
    const struct archive_sink sink = archive_tally_sink(&backup->tally);
    int rc = NG_EFAILED;
    if (lseek(backup->temporary.fd, 0, SEEK_SET) == 0) {
        rc = archive_read(fd_get, &backup->temporary.fd, &sink, &backup->counts, &error);
    }
    if (rc != NG_OK) {
        rc = backup_refuse(backup->temporary.path, &error);
    }
    buf_done(&error);
    return rc;
}

/* The name is on disk as well. */
static void backup_sync_folder(const char *path)
{
    char copy[PRIVATE_PATH_MAX];
    (void)snprintf(copy, sizeof(copy), "%s", path);
    int fd = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0) {
        (void)fsync(fd);
        (void)close(fd);
    }
}

static int backup_name(struct backup *backup)
{
    if (fsync(backup->temporary.fd) != 0) {
        command_error("%s cannot be written: %s", backup->temporary.path, text_errno(errno));
        return NG_EFAILED;
    }
    int rc;
    if (line_has(backup->line, LINE_FORCE)) {
        rc = rename(backup->temporary.path, backup->path);
    } else {
        rc = renameat2(AT_FDCWD, backup->temporary.path, AT_FDCWD, backup->path,
                       RENAME_NOREPLACE);
    }
    if (rc != 0 && errno == EINVAL && !line_has(backup->line, LINE_FORCE)) {
        /* A file system without RENAME_NOREPLACE: a second name never replaces one either. */
        rc = link(backup->temporary.path, backup->path);
        if (rc == 0) {
            (void)unlink(backup->temporary.path);
        }
    }
    if (rc != 0) {
        command_error("the finished backup cannot be renamed to %s: %s", backup->path,
                      text_errno(errno));
        return NG_EFAILED;
    }
    backup_sync_folder(backup->path);
    return NG_OK;
}

static int backup_open_file(struct backup *backup)
{
    if (!line_has(backup->line, LINE_FORCE) && access(backup->path, F_OK) == 0) {
        command_error("%s exists; choose another name, or write over it with --force",
                      backup->path);
        return NG_EFAILED;
    }
    int rc = private_file_make(backup->path, &backup->temporary);
    if (rc == NG_EBUSY) {
        command_error("%s is being written by another process", backup->temporary.path);
    } else if (rc != NG_OK) {
        command_error("%s cannot be created: %s", backup->temporary.path, text_errno(errno));
    }
    return rc;
}

static int backup_copy(struct backup *backup)
{
    int rc;
    if (backup->attach.gateway != NULL) {
        rc = backup_here(backup);
    } else {
        rc = backup_there(backup);
    }
    if (rc != NG_OK && backup->failed_errno != 0) {
        command_error("%s cannot be written: %s",
                      backup->to_stdout ? "the standard output" : backup->temporary.path,
                      text_errno(backup->failed_errno));
    }
    return rc;
}

static int backup_to_file(struct backup *backup)
{
    int rc = backup_copy(backup);
    if (rc == NG_OK) {
        rc = backup_read_back(backup);
    }
    if (rc == NG_OK) {
        rc = backup_name(backup);
    }
    return rc;
}

static int backup_to_stdout(struct backup *backup)
{
    if (backup_check_begin(&backup->check, archive_tally_sink(&backup->tally)) != NG_OK) {
        command_error("the backup cannot be started: %s", text_errno(errno));
        return NG_EFAILED;
    }
    int rc = backup_copy(backup);
    int checked = backup_check_end(&backup->check);
    if (rc == NG_OK && checked != NG_OK) {
        rc = backup_refuse("the standard output", &backup->check.error);
    }
    backup->counts = backup->check.counts;
    backup_check_done(&backup->check);
    return rc;
}

static void backup_json_roots(struct buf *text, const char *name,
                              const struct tally_item *roots, bool counted)
{
    buf_printf(text, ",\"%s\":[", name);
    for (const struct tally_item *root = roots; root != NULL; root = root->next) {
        buf_printf(text, "%s{\"path\":", text_if(root != roots, ","));
        buf_add_json(text, root->name);
        buf_add_c(text, ",\"space\":");
        buf_add_json(text, root->space);
        if (root->plugin.len > 0) {
            buf_add_c(text, ",\"plugin\":");
            buf_add_json(text, root->plugin);
        }
        if (counted) {
            buf_printf(text, ",\"files\":%llu", (unsigned long long)root->count);
        }
        buf_add_char(text, '}');
    }
    buf_add_char(text, ']');
}

static void backup_json_tally(const struct backup *backup, struct buf *text)
{
    const struct archive_tally *tally = &backup->tally;
    buf_printf(text, ",\"deleted\":%llu,\"by_kind\":{", (unsigned long long)tally->deleted);
    for (const struct tally_item *kind = tally->collections; kind != NULL; kind = kind->next) {
        buf_add_c(text, text_if(kind != tally->collections, ","));
        buf_add_json(text, kind->name);
        buf_printf(text, ":%llu", (unsigned long long)kind->count);
    }
    buf_add_char(text, '}');
    if (line_has(backup->line, LINE_FILES)) {
        backup_json_roots(text, "by_folder", tally->roots, true);
    } else {
        backup_json_roots(text, "without", tally->left_out, false);
    }
}

static void backup_report_json(const struct backup *backup, struct buf *text)
{
    const struct archive_counts *counts = &backup->counts;
    const struct {
        const char *name;
        uint64_t number;
    } numbers[] = {
        {"documents", counts->documents}, {"revisions", counts->revisions},
        {"events", counts->events},       {"answers", counts->answers},
        {"bytes", counts->bytes},         {"files", counts->files},
        {"left_out", counts->left_out},   {"changed", counts->changed},
    };
    size_t shown = NG_COUNT(numbers) - (line_has(backup->line, LINE_FILES) ? 0 : 3);
    buf_add_c(text, "{\"file\":");
    buf_add_json(text, ng_str_of(backup->path));
    buf_add_c(text, ",\"data_dir\":");
    buf_add_json(text, ng_str_of(backup->data_dir));
    for (size_t i = 0; i < shown; i++) {
        buf_printf(text, ",\"%s\":%llu", numbers[i].name,
                   (unsigned long long)numbers[i].number);
    }
    backup_json_tally(backup, text);
    buf_add_c(text, "}\n");
}

static void backup_name_root(struct buf *text, const struct tally_item *root)
{
    if (root->plugin.len > 0) {
        buf_printf(text, "the %.*s folder ", (int)root->plugin.len, root->plugin.data);
    }
    buf_add_str(text, root->name);
}

/* One line each: documents by kind, files by folder, folders that were left out. */
static void backup_text_tally(const struct archive_tally *tally, struct buf *text)
{
    const char *before = "documents: ";
    for (const struct tally_item *kind = tally->collections; kind != NULL; kind = kind->next) {
        buf_printf(text, "%s%llu %.*s", before, (unsigned long long)kind->count,
                   (int)kind->name.len, kind->name.data);
        before = ", ";
    }
    if (tally->deleted > 0) {
        buf_printf(text, "%s%llu deleted", before, (unsigned long long)tally->deleted);
        before = ", ";
    }
    buf_add_c(text, text_if(strcmp(before, ", ") == 0, "\n"));
    for (const struct tally_item *root = tally->roots; root != NULL; root = root->next) {
        buf_printf(text, "%s%llu of ", text_if(root == tally->roots, "files: "),
                   (unsigned long long)root->count);
        backup_name_root(text, root);
        buf_add_c(text, root->next != NULL ? ", " : "\n");
    }
    for (const struct tally_item *root = tally->left_out; root != NULL; root = root->next) {
        buf_add_c(text, root == tally->left_out ? "left out: the files of " : ", ");
        backup_name_root(text, root);
        buf_add_c(text, text_if(root->next == NULL, "; --files takes them along\n"));
    }
}

static void backup_report_text(const struct backup *backup, struct buf *text)
{
    const struct archive_counts *counts = &backup->counts;
    buf_printf(text, "%s: %llu documents, %llu revisions, %llu events, ", backup->path,
               (unsigned long long)counts->documents, (unsigned long long)counts->revisions,
               (unsigned long long)counts->events);
    if (line_has(backup->line, LINE_FILES)) {
        buf_printf(text, "%llu files, ", (unsigned long long)counts->files);
    }
    buf_printf(text, "%llu bytes, of %s\n", (unsigned long long)counts->bytes,
               backup->data_dir);
    backup_text_tally(&backup->tally, text);
    if (counts->left_out > 0) {
        buf_printf(text,
                   "%llu links, devices or unreadable files were left out: the lines with "
                   "\"kind\":\"left_out\" name them\n",
                   (unsigned long long)counts->left_out);
    }
    if (counts->changed > 0) {
        buf_printf(text, "%llu files were changed by other programs while they were read\n",
                   (unsigned long long)counts->changed);
    }
}

/* On stderr where stdout has the archive. */
static void backup_report(const struct backup *backup)
{
    struct buf text;
    buf_init(&text, BACKUP_ERROR_MAX);
    if (line_has(backup->line, LINE_JSON)) {
        backup_report_json(backup, &text);
    } else {
        backup_report_text(backup, &text);
    }
    (void)command_put(backup->to_stdout ? stderr : stdout, buf_str(&text));
    buf_done(&text);
}

static int backup_begin(struct backup *backup)
{
    if (!backup->to_stdout) {
        return backup_open_file(backup);
    }
    if (isatty(STDOUT_FILENO) == 1) {
        command_error(
            "the standard output is a terminal; send it to another program, or to a file with "
            "`notegate backup FILE`");
        return NG_EFAILED;
    }
    return NG_OK;
}

int command_backup(struct command_line *line)
{
    struct backup backup = {.line = line,
                            .path = line->words[0],
                            .to_stdout = strcmp(line->words[0], "-") == 0,
                            .temporary = {.fd = -1}};
    /* Before anything is opened: a name that cannot be is not worth waiting for. */
    if (backup_begin(&backup) != NG_OK) {
        return COMMAND_FAILED;
    }
    buf_init(&backup.refusal, BACKUP_ERROR_MAX);
    archive_tally_init(&backup.tally);
    int rc = attach_open(line, &backup.attach);
    if (rc == COMMAND_OK) {
        if (realpath(backup.attach.data_dir, backup.data_dir) == NULL) {
            backup.data_dir[0] = '\0';
        }
        rc = command_exit_code(backup.to_stdout ? backup_to_stdout(&backup)
                                                : backup_to_file(&backup));
        attach_done(&backup.attach);
    }
    if (rc == COMMAND_OK) {
        backup_report(&backup);
    } else if (!backup.to_stdout) {
        (void)unlink(backup.temporary.path);
    }
    archive_tally_done(&backup.tally);
    buf_done(&backup.refusal);
    if (!backup.to_stdout) {
        (void)close(backup.temporary.fd);
    }
    return rc;
}
