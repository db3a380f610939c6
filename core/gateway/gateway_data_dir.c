/* SPDX-License-Identifier: MIT */
/* gateway_data_dir.c - the data directory: its path, its permissions, and the lock of its
 * owner. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "core/base/files/fd_io.h"
#include "core/base/files/run_as.h"
#include "core/base/files/trust.h"
#include "core/base/log.h"
#include "core/base/minmax.h"
#include "core/base/str.h"
#include "core/config/config.h"
#include "gateway_open.h"

#define GATEWAY_LOCK_STEP_MS 20
#define GATEWAY_ERRNO_TEXT 128

/* ---- the data directory ---- */

char *gateway_data_dir(const struct config *config, bool make, struct buf *error)
{
    char reason[GATEWAY_ERRNO_TEXT];
    struct ng_str path = config_text(config, "data_dir");
    char *dir = alloc_zeroed(1, path.len + 1);
    if (dir == NULL) {
        buf_add_c(error, "out of memory");
        return NULL;
    }
    memcpy(dir, path.data, path.len);
    /* Missing parents too: ~/.local/share may not exist yet. */
    for (size_t i = 1; make && i <= path.len; i++) {
        if (dir[i] != '/' && dir[i] != '\0') {
            continue;
        }
        char kept = dir[i];
        dir[i] = '\0';
        int rc = mkdir(dir, 0700);
        int number = errno;
        dir[i] = kept;
        if (rc != 0 && number != EEXIST && !(number == EROFS && kept != '\0')) {
            buf_printf(
                error,
                "the data directory %s cannot be made: %s; choose another with --data-dir", dir,
                strerror_r(number, reason, sizeof(reason)));
            free(dir);
            return NULL;
        }
    }
    return dir;
}

/* The end of a sentence with a command on the data directory. */
static int refuse_data_dir(const char *data_dir, struct buf *error)
{
    trust_add_word(error, data_dir);
    buf_add_char(error, '`');
    return NG_EFORBIDDEN;
}

bool gateway_make_private(const char *data_dir)
{
    struct stat info;
    return stat(data_dir, &info) == 0 && S_ISDIR(info.st_mode) && info.st_uid == geteuid() &&
           (info.st_mode & (S_IRWXG | S_IRWXO)) != 0 &&
           fd_is_empty_folder(AT_FDCWD, data_dir) == 1 && chmod(data_dir, S_IRWXU) == 0;
}

int gateway_check_data_dir(const char *data_dir, struct buf *error)
{
    char reason[GATEWAY_ERRNO_TEXT];
    char owner[GATEWAY_ERRNO_TEXT];
    struct stat info;
    if (stat(data_dir, &info) != 0) {
        if (errno == ENOENT) {
            return NG_OK;
        }
        buf_printf(error, "%s: %s", data_dir, strerror_r(errno, reason, sizeof(reason)));
        return NG_EUNAVAILABLE;
    }
    if (!S_ISDIR(info.st_mode)) {
        buf_printf(error, "%s is no directory; choose another path", data_dir);
        return NG_EUNAVAILABLE;
    }
    if (info.st_uid != geteuid()) {
        trust_user_name(info.st_uid, owner, sizeof(owner));
        buf_printf(error, "%s belongs to user %s; run this as that user: ", data_dir, owner);
        (void)run_as_add_again(error, info.st_uid);
        buf_add_c(error, ", or choose another with --data-dir");
        return NG_EFORBIDDEN;
    }
    if ((info.st_mode & (S_IRWXG | S_IRWXO)) != 0) {
        buf_printf(error, "%s has mode %04o: other users can get in; do `chmod 700 ", data_dir,
                   (unsigned)(info.st_mode & 0777));
        return refuse_data_dir(data_dir, error);
    }
    if (access(data_dir, R_OK | W_OK | X_OK) != 0) {
        buf_printf(error, "%s cannot be read and written by its user; do `chmod 700 ",
                   data_dir);
        return refuse_data_dir(data_dir, error);
    }
    return NG_OK;
}

/* The process that holds the lock: lock_sign() wrote it into the file. */
static void lock_owner(int fd, char *owner, size_t size)
{
    ssize_t len = pread(fd, owner, size - 1, 0);
    owner[i64_max(len, 0)] = '\0';
    owner[strcspn(owner, "\n")] = '\0';
}

static void lock_sign(int fd)
{
    char line[64];
    int len = snprintf(line, sizeof(line), "process %ld\n", (long)getpid());
    if (ftruncate(fd, 0) != 0 || pwrite(fd, line, (size_t)len, 0) != len) {
        log_write(NG_LOG_DEBUG, "gateway", "the lock file could not be signed");
    }
}

int gateway_lock_data_dir(const char *data_dir, int64_t wait_ms, int *ret_fd, struct buf *error)
{
    char reason[GATEWAY_ERRNO_TEXT];
    char owner[128];
    struct buf path;
    buf_init(&path, 65536);
    buf_printf(&path, "%s/%s", data_dir, NOTEGATE_LOCK_NAME);
    int fd = open(buf_cstr(&path), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0) {
        buf_printf(error, "the lock file %s cannot be opened: %s", buf_cstr(&path),
                   strerror_r(errno, reason, sizeof(reason)));
        buf_done(&path);
        return NG_EUNAVAILABLE;
    }
    buf_done(&path);
    int64_t until = clock_monotonic_ns() + wait_ms * 1000000;
    while (flock(fd, LOCK_EX | LOCK_NB) != 0) {
        if (clock_monotonic_ns() >= until) {
            lock_owner(fd, owner, sizeof(owner));
            buf_printf(error,
                       "the data directory %s is in use by %s; stop it, or choose another with "
                       "--data-dir",
                       data_dir, owner[0] != '\0' ? owner : "another process");
            close(fd);
            return NG_EBUSY;
        }
        struct timespec step = {0, (long)GATEWAY_LOCK_STEP_MS * 1000000};
        (void)nanosleep(&step, NULL);
    }
    lock_sign(fd);
    *ret_fd = fd;
    return NG_OK;
}
