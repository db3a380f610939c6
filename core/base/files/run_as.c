/* SPDX-License-Identifier: MIT */
/* run_as.c - shell commands that run a program as another user. */
#include "run_as.h"

#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/str.h"
#include "trust.h"

#define SUDO "/usr/bin/sudo"
#define PROGRAM "notegate"
#define NAME_MAX_BYTES 64
/* Bytes of a command line that is shown. */
#define COMMAND_LINE_MAX 4096

static int add_as(struct buf *out, uid_t user, const char *command, bool by_root)
{
    char name[NAME_MAX_BYTES];
    bool sudo = !by_root && access(SUDO, X_OK) == 0;
    trust_user_name(user, name, sizeof(name));
    (void)buf_add_char(out, '`');
    if (sudo || user != 0) { /* root runs its own commands as they are */
        (void)buf_add_c(out, sudo ? "sudo -u " : "runuser -u ");
        (void)trust_add_word(out, name);
        (void)buf_add_c(out, sudo ? " " : " -- ");
    }
    (void)buf_add_c(out, command);
    (void)buf_add_c(out, sudo || by_root ? "`" : "` as root");
    return out->rc;
}

int run_as_add(struct buf *out, uid_t user, const char *command)
{
    if (user == geteuid()) {
        return buf_printf(out, "`%s`", command);
    }
    return add_as(out, user, command, geteuid() == 0);
}

int run_as_add_for_others(struct buf *out, uid_t user, const char *command)
{
    return add_as(out, user, command, false);
}

static bool is_this_program(const char *path)
{
    struct stat found;
    struct stat own;
    return stat(path, &found) == 0 && stat("/proc/self/exe", &own) == 0 &&
           found.st_dev == own.st_dev && found.st_ino == own.st_ino;
}

int run_as_add_program(struct buf *out)
{
    char path[PATH_MAX];
    if (is_this_program("/usr/bin/" PROGRAM) || is_this_program("/usr/local/bin/" PROGRAM)) {
        return buf_add_c(out, PROGRAM);
    }
    ssize_t len = readlink("/proc/self/exe", path, sizeof(path) - 1);
    if (len <= 0) {
        return buf_add_c(out, PROGRAM);
    }
    path[len] = '\0';
    return trust_add_word(out, path);
}

int run_as_add_again(struct buf *out, uid_t user)
{
    char line[COMMAND_LINE_MAX + 1];
    struct buf command;
    int fd = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
    ssize_t len = fd < 0 ? -1 : read(fd, line, COMMAND_LINE_MAX);
    if (fd >= 0) {
        (void)close(fd);
    }
    line[len > 0 ? len : 0] = '\0';
    buf_init(&command, COMMAND_LINE_MAX * 8);
    (void)run_as_add_program(&command);
    /* Behind its first word: the program as this shell found it. */
    for (ssize_t at = (ssize_t)strlen(line) + 1; at < len;
         at += (ssize_t)strlen(line + at) + 1) {
        const char *word = line + at;
        (void)buf_add_char(&command, ' ');
        for (; *word == '-' && word[1] != '\0'; word++) {
            (void)buf_add_char(&command, '-'); /* of an option */
        }
        (void)trust_add_word(&command, word);
    }
    int rc = run_as_add(out, user, buf_cstr(&command));
    buf_done(&command);
    return rc;
}
