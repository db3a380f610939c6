/* SPDX-License-Identifier: MIT */
/* command_user.c - gives up root's rights before anything of the gateway is opened. */
#include "command_user.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api/client/command_line.h"
#include "core/base/str.h"
#include "core/base/text_choice.h"

#define USER_PASSWD_MAX 16384
/* Of the folders above the data directory: its user must be able to pass. */
#define USER_PARENT_MODE 0755

/* The data directory for its user, where it is not there. */
static int user_make_data_dir(const char *data_dir, const struct passwd *user)
{
    int fd = -1;
    int rc = -1;
    char *path = strdup(data_dir);
    mode_t mask = umask(S_IWGRP | S_IWOTH);
    if (path == NULL) {
        goto out;
    }
    for (size_t len = strlen(path); len > 1 && path[len - 1] == '/'; len--) {
        path[len - 1] = '\0';
    }
    for (char *at = path; (at = strchr(at + 1, '/')) != NULL; *at = '/') {
        *at = '\0';
        if (mkdir(path, USER_PARENT_MODE) != 0 && errno != EEXIST) {
            goto out;
        }
    }
    if (mkdir(data_dir, S_IRWXU) == 0) {
        fd = open(data_dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (fd >= 0) {
            rc = fchown(fd, user->pw_uid, user->pw_gid);
        }
    } else if (errno == EEXIST) {
        rc = 0; /* a directory that exists keeps its owner */
    }
out:
    (void)umask(mask);
    if (rc != 0) {
        command_error("the data directory %s cannot be made for user %s: %s", data_dir,
                      user->pw_name, text_errno(errno));
    }
    if (fd >= 0) {
        (void)close(fd);
    }
    free(path);
    if (rc != 0) {
        return COMMAND_FAILED;
    }
    return COMMAND_OK;
}

/* Root's own settings would lead the user's programs to root's files. */
static bool user_set_environment(const struct passwd *user)
{
    static const char *const roots[] = {"XDG_CONFIG_HOME", "XDG_DATA_HOME",   "XDG_STATE_HOME",
                                        "XDG_CACHE_HOME",  "XDG_RUNTIME_DIR", "MAIL"};
    for (size_t i = 0; i < NG_COUNT(roots); i++) {
        (void)unsetenv(roots[i]);
    }
    return setenv("HOME", user->pw_dir, 1) == 0 && setenv("USER", user->pw_name, 1) == 0 &&
           setenv("LOGNAME", user->pw_name, 1) == 0 && setenv("SHELL", user->pw_shell, 1) == 0;
}

static int user_switch(const struct passwd *user)
{
    if (!user_set_environment(user) || initgroups(user->pw_name, user->pw_gid) != 0 ||
        setresgid(user->pw_gid, user->pw_gid, user->pw_gid) != 0 ||
        setresuid(user->pw_uid, user->pw_uid, user->pw_uid) != 0 ||
        prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) {
        command_error("cannot become user %s: %s", user->pw_name, text_errno(errno));
        return COMMAND_FAILED;
    }
    if (setuid(0) == 0 || geteuid() != user->pw_uid || getegid() != user->pw_gid) {
        command_error("the rights of root could not be dropped for user %s", user->pw_name);
        return COMMAND_FAILED;
    }
    return COMMAND_OK;
}

bool command_user_is_known(const char *name)
{
    struct passwd entry;
    struct passwd *user = NULL;
    char text[USER_PASSWD_MAX];
    return getpwnam_r(name, &entry, text, sizeof(text), &user) == 0 && user != NULL;
}

int command_user_become(const struct config *config, const char *data_dir, bool *ret_dropped)
{
    struct ng_str name = config_text(config, "user");
    struct passwd entry;
    struct passwd *user = NULL;
    char text[USER_PASSWD_MAX];
    *ret_dropped = false;
    if (name.len == 0) {
        return COMMAND_OK;
    }
    int code = getpwnam_r(name.data, &entry, text, sizeof(text), &user);
    if (user == NULL) {
        command_error("user is \"%s\": %s%s", name.data,
                      code == 0 ? "there is no such user; make it with `adduser --system "
                                  "--group --home /var/lib/notegate --no-create-home "
                                : text_errno(code),
                      text_if(code == 0, "NAME`, or name another"));
        return COMMAND_FAILED;
    }
    if (user->pw_uid == geteuid()) {
        return COMMAND_OK;
    }
    if (geteuid() != 0) {
        command_error("user is \"%s\": only root can become another user; start this as root, "
                      "or as that user",
                      name.data);
        return COMMAND_FAILED;
    }
    int rc = user_make_data_dir(data_dir, user);
    if (rc == COMMAND_OK) {
        rc = user_switch(user);
    }
    *ret_dropped = rc == COMMAND_OK;
    return rc;
}
