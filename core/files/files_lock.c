/* SPDX-License-Identifier: MIT */
/* files_lock.c - one change of a file at a time: a wait queue of calls inside the process,
 * flock() between processes that share the disk. */
#include <errno.h>
#include <stdlib.h>
#include <sys/file.h>
#include <time.h>

#include "core/base/lock.h"
#include "core/base/str.h"
#include "files_state.h"

struct file_lock {
    struct file_lock *next;
    struct file_waiter *first, **last;
    size_t waiting;
    size_t len;
    char name[];
};

#define FLOCK_PAUSE_NS 2000000 /* between two attempts */

static struct file_lock **lock_find(struct files *files, struct ng_str real)
{
    struct file_lock **at = &files->locks[str_hash(real) % FILES_LOCK_BUCKETS];
    while (*at != NULL && !str_equal(str_make((*at)->name, (*at)->len), real)) {
        at = &(*at)->next;
    }
    return at;
}

/* Takes a free lock. NULL: out of memory. */
static struct file_lock *lock_add(struct file_lock **at, struct ng_str real)
{
    struct file_lock *lock = alloc_bytes(sizeof(*lock) + real.len);
    if (lock != NULL) {
        lock->next = NULL;
        lock->first = NULL;
        lock->last = &lock->first;
        lock->waiting = 0;
        lock->len = real.len;
        memcpy(lock->name, real.data, real.len);
        *at = lock;
    }
    return lock;
}

int files_lock(struct files *files, struct ng_str real, struct file_waiter *waiter)
{
    int rc = NG_OK;
    lock_take(&files->locks_lock);
    struct file_lock **at = lock_find(files, real);
    if (*at == NULL) {
        rc = lock_add(at, real) != NULL ? NG_OK : NG_EINTERNAL;
    } else if ((*at)->waiting >= FILES_WAITERS_MAX) {
        rc = NG_EBUSY;
    } else {
        waiter->next = NULL;
        *(*at)->last = waiter;
        (*at)->last = &waiter->next;
        (*at)->waiting++;
        rc = FILES_WAITING;
    }
    lock_release(&files->locks_lock);
    return rc;
}

bool files_try_lock(struct files *files, struct ng_str real)
{
    lock_take(&files->locks_lock);
    struct file_lock **at = lock_find(files, real);
    bool held = *at == NULL && lock_add(at, real) != NULL;
    lock_release(&files->locks_lock);
    return held;
}

void files_unlock(struct files *files, struct ng_str real)
{
    struct file_waiter *next = NULL;
    lock_take(&files->locks_lock);
    struct file_lock **at = lock_find(files, real);
    struct file_lock *lock = *at;
    if (lock != NULL && lock->first != NULL) {
        /* Hand the lock to the first waiter without releasing it. */
        next = lock->first;
        lock->first = next->next;
        if (lock->first == NULL) {
            lock->last = &lock->first;
        }
        lock->waiting--;
    } else if (lock != NULL) {
        *at = lock->next;
        free(lock);
    }
    lock_release(&files->locks_lock);
    if (next != NULL) {
        pool_resume(next->pool, next->task);
    }
}

int files_flock(struct call *call, struct ng_str path, int fd)
{
    int64_t waited_ns = 0;
    while (flock(fd, LOCK_EX | LOCK_NB) != 0) {
        if (errno == EINTR) {
            continue;
        }
        if (errno != EWOULDBLOCK) {
            /* A file system without locks belongs to one gateway: its wait queue is enough. */
            if (errno == ENOLCK || errno == ENOSYS || errno == EOPNOTSUPP || errno == EINVAL) {
                return NG_OK;
            }
            return files_fail_os(call, errno, "lock", path);
        }
        int rc = files_check_cancelled(call);
        if (rc != NG_OK) {
            return rc;
        }
        if (waited_ns >= (int64_t)FILES_LOCK_WAIT_MS * 1000000) {
            return call_fail(call, NG_EBUSY,
                             "Another program keeps %.*s locked. Try again when it is done.",
                             (int)path.len, path.data);
        }
        struct timespec pause = {0, FLOCK_PAUSE_NS};
        (void)nanosleep(&pause, NULL);
        waited_ns += FLOCK_PAUSE_NS;
    }
    return NG_OK;
}
