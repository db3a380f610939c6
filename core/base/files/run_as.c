/* SPDX-License-Identifier: MIT */
/* run_as.c - shell commands that run a program as another user. */
#include "run_as.h"

#include <fcntl.h>
#include <limits.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/str.h"
#include "core/base/text_choice.h"
#include "trust.h"

#define SUDO "/usr/bin/sudo"
#define PROGRAM "notegate"
/* The copy that packaging/run makes of a program in a folder that is closed to its user. */
#define PROGRAM_COPY "/opt/notegate/bin/" PROGRAM
#define PASSWD_MAX 4096
#define NAME_MAX_BYTES 64
/* Bytes of a command line that is shown. */
#define COMMAND_LINE_MAX 4096

static bool has_sudo(void)
{
    return access(SUDO, X_OK) == 0;
}

int run_as_add(struct buf *out, uid_t user, const char *command)
{
    char name[NAME_MAX_BYTES];
    bool by_root = geteuid() == 0;
    bool sudo = (!by_root || getenv("SUDO_USER") != NULL) && has_sudo();
    if (user == geteuid()) {
        return buf_printf(out, "`%s`", command);
    }
    trust_user_name(user, name, sizeof(name));
    (void)buf_add_c(out, sudo ? "`sudo " : "`");
    if (user != 0) {
        (void)buf_add_c(out, sudo ? "-u " : "runuser -u ");
        (void)trust_add_word(out, name);
        (void)buf_add_c(out, sudo ? " " : " -- ");
    }
    return buf_printf(out, "%s`%s", command,
                      text_if(!by_root, sudo ? " as an administrator" : " as root"));
}

/* A user with a shell. */
static bool logs_in(uid_t user)
{
    struct passwd entry;
    struct passwd *found = NULL;
    char text[PASSWD_MAX];
    if (user == 0 || getpwuid_r(user, &entry, text, sizeof(text), &found) != 0 ||
        found == NULL) {
        return false;
    }
    const char *name = strrchr(found->pw_shell, '/');
    return name == NULL || (strcmp(name, "/nologin") != 0 && strcmp(name, "/false") != 0);
}

int run_as_add_whom(struct buf *out, uid_t user, const char *command)
{
    char name[NAME_MAX_BYTES];
    if (logs_in(user)) {
        trust_user_name(user, name, sizeof(name));
        return buf_printf(out, "user %s with `%s`", name, command);
    }
    return has_sudo() ? buf_printf(out, "an administrator with `sudo %s`", command)
                      : buf_printf(out, "root with `%s`", command);
}

/* May that user pass the folders above? Only root can ask for others. */
static bool can_reach(const char *path, uid_t user)
{
    uid_t own = (uid_t)setfsuid(user);
    int fd = open(path, O_PATH | O_CLOEXEC);
    (void)setfsuid(own);
    if (fd < 0) {
        return false;
    }
    (void)close(fd);
    return true;
}

/* Is it this program, and on the path of that user? A link may lead into a closed home. */
static bool is_found(const char *path, uid_t user)
{
    struct stat found;
    struct stat own;
    return stat(path, &found) == 0 && stat("/proc/self/exe", &own) == 0 &&
           found.st_dev == own.st_dev && found.st_ino == own.st_ino && can_reach(path, user);
}

int run_as_add_program(struct buf *out, uid_t user)
{
    char path[PATH_MAX];
    if (is_found("/usr/bin/" PROGRAM, user) || is_found("/usr/local/bin/" PROGRAM, user)) {
        return buf_add_c(out, PROGRAM);
    }
    ssize_t len = readlink("/proc/self/exe", path, sizeof(path) - 1);
    if (len <= 0) {
        return buf_add_c(out, PROGRAM);
    }
    path[len] = '\0';
    bool copy = !can_reach(path, user) && can_reach(PROGRAM_COPY, user);
    return trust_add_word(out, copy ? PROGRAM_COPY : path);
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
    (void)run_as_add_program(&command, user);
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
