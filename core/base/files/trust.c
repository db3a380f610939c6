/* SPDX-License-Identifier: MIT */
/* trust.c - write access to a file: owner and mode of the opened file and of its folder. */
#include "trust.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "core/base/minmax.h"
#include "core/base/str.h"
#include "core/base/text_choice.h"
#include "run_as.h"

#define TRUST_OVERFLOW_FILE "/proc/sys/kernel/overflowuid"
#define TRUST_OVERFLOW_DEFAULT 65534
#define TRUST_MAP_FILE "/proc/self/uid_map"
/* All users, as they are: inside, outside, count. */
#define TRUST_MAP_WHOLE 4294967295U
#define TRUST_TEXT_MAX 4096
#define TRUST_PASSWD_MAX 4096
#define TRUST_NAME_MAX 64
/* A path with each of its characters quoted, and the rest of a command. */
#define TRUST_COMMAND_MAX (PATH_MAX * 4 + 256)
#define TRUST_OTHERS ((mode_t)(S_IWGRP | S_IWOTH))

/* ---- users ---- */

/* The first bytes of a small file; "" where it cannot be read. */
static void trust_read(const char *path, char *text, size_t size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t len = fd < 0 ? 0 : read(fd, text, size - 1);
    text[i64_max(len, 0)] = '\0';
    if (fd >= 0) {
        (void)close(fd);
    }
}

bool trust_knows_user(uid_t uid)
{
    char text[256];
    unsigned inside = 1;
    unsigned outside = 1;
    unsigned count = 0;
    trust_read(TRUST_OVERFLOW_FILE, text, sizeof(text));
    unsigned long overflow = text[0] == '\0' ? TRUST_OVERFLOW_DEFAULT : strtoul(text, NULL, 10);
    if (uid != (uid_t)overflow) {
        return true;
    }
    trust_read(TRUST_MAP_FILE, text, sizeof(text));
    /* NOLINTNEXTLINE(cert-err34-c) */
    return sscanf(text, "%u %u %u", &inside, &outside, &count) == 3 && inside == 0 &&
           outside == 0 && count == TRUST_MAP_WHOLE;
}

void trust_user_name(uid_t uid, char *ret_name, size_t size)
{
    struct passwd entry;
    struct passwd *found = NULL;
    char text[TRUST_PASSWD_MAX];
    if (getpwuid_r(uid, &entry, text, sizeof(text), &found) == 0 && found != NULL) {
        (void)snprintf(ret_name, size, "%s", found->pw_name);
    } else {
        (void)snprintf(ret_name, size, "#%lu", (unsigned long)uid);
    }
}

static bool trust_owner(uid_t uid, enum trust trust)
{
    struct stat program;
    if (uid == 0 || (uid == geteuid() && trust_knows_user(uid))) {
        return true;
    }
    return trust == TRUST_PROGRAM && stat("/proc/self/exe", &program) == 0 &&
           program.st_uid == uid;
}

/* ---- sentences ---- */

int trust_add_word(struct buf *buf, const char *text)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "/._-+,:@%=";
    if (text[0] != '\0' && text[0] != '-' && text[strspn(text, plain)] == '\0') {
        return buf_add_c(buf, text);
    }
    (void)buf_add_char(buf, '\'');
    for (; *text != '\0'; text++) {
        if (*text == '\'') {
            (void)buf_add_c(buf, "'\\''");
        } else {
            (void)buf_add_char(buf, *text);
        }
    }
    return buf_add_char(buf, '\'');
}

static int trust_refuse_owner(const char *path, const struct stat *info, bool is_link,
                              struct buf *error)
{
    char owner[TRUST_NAME_MAX];
    char wanted[TRUST_NAME_MAX];
    struct buf command;
    trust_user_name(info->st_uid, owner, sizeof(owner));
    /* A name that no account has is given as a number, which chown takes without the sign. */
    trust_user_name(trust_knows_user(geteuid()) ? geteuid() : 0, wanted, sizeof(wanted));
    (void)buf_printf(error,
                     "%s belongs to user %s, which is neither root nor the user that runs "
                     "this; do ",
                     path, owner);
    buf_init(&command, TRUST_COMMAND_MAX);
    (void)buf_printf(&command, "chown %s%s ", text_if(is_link, "-h "),
                     wanted + (wanted[0] == '#'));
    (void)trust_add_word(&command, path);
    (void)run_as_add(error, 0, buf_cstr(&command));
    buf_done(&command);
    return NG_EFORBIDDEN;
}

static int trust_refuse_mode(const char *path, const struct stat *info, struct buf *error)
{
    struct buf command;
    (void)buf_printf(error, "%s can be written by others (mode %04o); do ", path,
                     (unsigned)(info->st_mode & 07777));
    buf_init(&command, TRUST_COMMAND_MAX);
    (void)buf_add_c(&command, "chmod go-w ");
    (void)trust_add_word(&command, path);
    (void)run_as_add(error, geteuid() == info->st_uid ? geteuid() : 0, buf_cstr(&command));
    buf_done(&command);
    return NG_EFORBIDDEN;
}

/* ---- files and folders ---- */

static int trust_unseen(const char *path, struct buf *error)
{
    (void)buf_printf(error, "%s cannot be checked: %s", path, text_errno(errno));
    return NG_EUNAVAILABLE;
}

/* Is it writable for others? Nothing is on a disk that is mounted for reading, as orchestrators
 * mount configuration. */
static bool trust_is_open(const char *path, const struct stat *info)
{
    struct statvfs disk;
    return (info->st_mode & TRUST_OTHERS) != 0 &&
           (statvfs(path, &disk) != 0 || (disk.f_flag & ST_RDONLY) == 0);
}

/* In a sticky folder only the owner of an entry can replace it, or the folder's. */
static int trust_check_folder(const char *file, enum trust trust, struct buf *error)
{
    char folder[TRUST_TEXT_MAX];
    struct stat info;
    const char *slash = strrchr(file, '/');
    int len;
    if (slash == NULL) {
        len = snprintf(folder, sizeof(folder), ".");
    } else if (slash == file) {
        len = snprintf(folder, sizeof(folder), "/");
    } else {
        len = snprintf(folder, sizeof(folder), "%.*s", (int)(slash - file), file);
    }
    if (len < 0 || (size_t)len >= sizeof(folder)) {
        errno = ENAMETOOLONG;
        return trust_unseen(file, error);
    }
    if (stat(folder, &info) != 0) {
        return trust_unseen(folder, error);
    }
    if (!trust_owner(info.st_uid, trust)) {
        return trust_refuse_owner(folder, &info, false, error);
    }
    if ((info.st_mode & S_ISVTX) == 0 && trust_is_open(folder, &info)) {
        return trust_refuse_mode(folder, &info, error);
    }
    return NG_OK;
}

/* The path of the opened file itself, whatever links lead there; false: it has none. */
static bool trust_real(int fd, const char *path, char ret_real[TRUST_TEXT_MAX])
{
    char name[32];
    char text[PATH_MAX];
    (void)snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
    ssize_t len = readlink(name, ret_real, TRUST_TEXT_MAX - 1);
    if (len > 0 && ret_real[0] == '/') {
        ret_real[len] = '\0';
        return true;
    }
    bool found = realpath(path, text) != NULL;
    if (found) {
        (void)snprintf(ret_real, TRUST_TEXT_MAX, "%s", text);
    }
    return found;
}

int trust_check(int fd, const char *path, enum trust trust, struct buf *error)
{
    struct stat info;
    struct stat named;
    char real[TRUST_TEXT_MAX];
    if (fstat(fd, &info) != 0) {
        return trust_unseen(path, error);
    }
    if (!trust_owner(info.st_uid, trust)) {
        return trust_refuse_owner(path, &info, false, error);
    }
    if (!S_ISREG(info.st_mode)) {
        return NG_OK; /* a pipe or a terminal: of the shell that started this */
    }
    if (trust_is_open(path, &info)) {
        return trust_refuse_mode(path, &info, error);
    }
    if (lstat(path, &named) != 0) {
        return trust_unseen(path, error);
    }
    if (!trust_owner(named.st_uid, trust)) {
        return trust_refuse_owner(path, &named, true, error);
    }
    int rc = trust_check_folder(path, trust, error);
    if (rc == NG_OK && trust_real(fd, path, real) && strcmp(real, path) != 0) {
        rc = trust_check_folder(real, trust, error);
    }
    return rc;
}

int trust_check_path(const char *path, enum trust trust, struct buf *error)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0) {
        return NG_ENOTFOUND;
    }
    int rc = trust_check(fd, path, trust, error);
    (void)close(fd);
    return rc;
}
