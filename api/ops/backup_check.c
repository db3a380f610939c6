/* SPDX-License-Identifier: MIT */
/* backup_check.c - the archive comes through a pipe to a thread that reads it. */
#include "backup_check.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

static int check_get(void *user, char *to, size_t room, size_t *ret_len)
{
    const struct backup_check *check = user;
    ssize_t len;
    do {
        len = read(check->read_fd, to, room);
    } while (len < 0 && errno == EINTR);
    if (len > 0) {
        *ret_len = (size_t)len;
    } else {
        *ret_len = 0;
    }
    if (len < 0) {
        return NG_EFAILED;
    }
    return NG_OK;
}

static void *check_run(void *user)
{
    (void)pthread_setname_np(pthread_self(), "ng-backup-check");
    struct backup_check *check = user;
    check->rc = archive_read(check_get, check, NULL, &check->counts, &check->error);
    /* After a fault the rest is of no interest: the writer finds the pipe closed. */
    (void)close(check->read_fd);
    return NULL;
}

int backup_check_begin(struct backup_check *check)
{
    int pipe_fds[2];
    *check = (struct backup_check){.write_fd = -1, .read_fd = -1};
    if (pipe2(pipe_fds, O_CLOEXEC) != 0) {
        return NG_EFAILED;
    }
    check->read_fd = pipe_fds[0];
    check->write_fd = pipe_fds[1];
    buf_init(&check->error, BACKUP_CHECK_TEXT);
    int number = pthread_create(&check->thread, NULL, check_run, check);
    if (number != 0) {
        (void)close(check->read_fd);
        (void)close(check->write_fd);
        errno = number;
        return NG_EFAILED;
    }
    return NG_OK;
}

void backup_check_put(struct backup_check *check, struct ng_str bytes)
{
    while (bytes.len > 0) {
        ssize_t len = write(check->write_fd, bytes.data, bytes.len);
        if (len < 0 && errno == EINTR) {
            continue;
        }
        if (len <= 0) {
            return; /* EPIPE: it has found a fault, which it tells at the end */
        }
        bytes.data += len;
        bytes.len -= (size_t)len;
    }
}

int backup_check_end(struct backup_check *check)
{
    (void)close(check->write_fd);
    (void)pthread_join(check->thread, NULL);
    return check->rc;
}

void backup_check_done(struct backup_check *check)
{
    buf_done(&check->error);
}
