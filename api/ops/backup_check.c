/* SPDX-License-Identifier: MIT */
/* backup_check.c - the archive comes through a pipe to a thread that reads it. */
#include "backup_check.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "core/base/files/fd_io.h"

static void *check_run(void *user)
{
    (void)pthread_setname_np(pthread_self(), "ng-backup-check");
    struct backup_check *check = user;
    check->rc =
        archive_read(fd_get, &check->read_fd, &check->sink, &check->counts, &check->error);
    /* After a fault the rest is of no interest: the writer finds the pipe closed. */
    (void)close(check->read_fd);
    return NULL;
}

int backup_check_begin(struct backup_check *check, struct archive_sink sink)
{
    int pipe_fds[2];
    *check = (struct backup_check){.write_fd = -1, .read_fd = -1, .sink = sink};
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
    (void)fd_put(check->write_fd,
                 bytes); /* EPIPE: it has found a fault, which it tells later */
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
