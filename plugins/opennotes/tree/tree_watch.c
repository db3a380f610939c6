/* SPDX-License-Identifier: MIT */
/* tree_watch.c - inotify watches on the folders of a notebook: the notes changed since the last
 * call. */
#include "tree_watch.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "core/base/array.h"
#include "tree.h"

#define EVENTS_SIZE ((size_t)64 * 1024)
#define WATCHES_MAX ((size_t)16 * 1024 * 1024)
#define WATCHED                                                                                \
    (IN_MODIFY | IN_ATTRIB | IN_CLOSE_WRITE | IN_MOVED_FROM | IN_MOVED_TO | IN_CREATE |        \
     IN_DELETE | IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR | IN_EXCL_UNLINK)

/* Not in linux/magic.h. */
#define FS_CIFS 0xFF534D42U
#define FS_SMB2 0xFE534D42U
#define FS_LUSTRE 0x0BD00BD0U
#define FS_GPFS 0x47504653U

static bool is_remote(int root_fd)
{
    struct statfs fs;
    if (fstatfs(root_fd, &fs) != 0) {
        return true;
    }
    switch ((uint32_t)fs.f_type) {
    case NFS_SUPER_MAGIC:
    case SMB_SUPER_MAGIC:
    case V9FS_MAGIC:
    case FUSE_SUPER_MAGIC:
    case CEPH_SUPER_MAGIC:
    case AFS_SUPER_MAGIC:
    case AFS_FS_MAGIC:
    case CODA_SUPER_MAGIC:
    case FS_CIFS:
    case FS_SMB2:
    case FS_LUSTRE:
    case FS_GPFS:
        return true;
    default:
        return false;
    }
}

void notes_watch_open(struct notes_watch *watch, int root_fd)
{
    memset(watch, 0, sizeof(*watch));
    watch->fd = -1;
    if (is_remote(root_fd)) {
        return;
    }
    watch->fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    if (watch->fd < 0) {
        watch->error = errno;
    }
}

static void free_items(struct notes_watched *items, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        free(items[i].path);
    }
    free(items);
}

void notes_watch_drop(struct notes_watch *watch)
{
    free_items(watch->fresh, watch->fresh_count);
    watch->fresh = NULL;
    watch->fresh_count = 0;
    watch->fresh_cap = 0;
}

void notes_watch_close(struct notes_watch *watch)
{
    if (watch->fd >= 0) {
        (void)close(watch->fd);
    }
    watch->fd = -1;
    notes_watch_drop(watch);
    free_items(watch->items, watch->count);
    watch->items = NULL;
    watch->count = 0;
}

static void turn_off(struct notes_watch *watch, int error)
{
    notes_watch_close(watch);
    watch->error = error;
}

void notes_watch_folder(struct notes_watch *watch, int fd, struct ng_str path)
{
    char name[64];
    if (watch->fd < 0) {
        return;
    }
    /* By descriptor: the name might refer to another folder by now. */
    (void)snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
    int id = inotify_add_watch(watch->fd, name, WATCHED);
    if (id < 0) {
        turn_off(watch, errno);
        return;
    }
    char *copy = strndup(path.data, path.len);
    if (copy == NULL ||
        array_reserve((void **)&watch->fresh, &watch->fresh_cap, watch->fresh_count + 1,
                      sizeof(*watch->fresh), WATCHES_MAX) != NG_OK) {
        free(copy);
        turn_off(watch, ENOMEM);
        return;
    }
    watch->fresh[watch->fresh_count++] = (struct notes_watched){id, copy};
}

static int compare_ids(const void *a, const void *b)
{
    const struct notes_watched *first = a;
    const struct notes_watched *second = b;
    return (first->id > second->id) - (first->id < second->id);
}

static const struct notes_watched *find(const struct notes_watched *items, size_t count, int id)
{
    struct notes_watched wanted = {id, NULL};
    if (count <= 0) {
        return NULL;
    }
    return bsearch(&wanted, items, count, sizeof(*items), compare_ids);
}

void notes_watch_commit(struct notes_watch *watch, bool linked)
{
    if (watch->fd < 0) {
        return;
    }
    if (watch->fresh_count > 1) {
        qsort(watch->fresh, watch->fresh_count, sizeof(*watch->fresh), compare_ids);
    }
    watch->linked = linked;
    watch->aliased = false;
    for (size_t i = 1; i < watch->fresh_count; i++) {
        watch->aliased = watch->aliased || watch->fresh[i].id == watch->fresh[i - 1].id;
    }
    /* Watches of folders that left the notebook but still exist elsewhere. */
    for (size_t i = 0; i < watch->count; i++) {
        if (find(watch->fresh, watch->fresh_count, watch->items[i].id) == NULL) {
            (void)inotify_rm_watch(watch->fd, watch->items[i].id);
        }
    }
    free_items(watch->items, watch->count);
    watch->items = watch->fresh;
    watch->count = watch->fresh_count;
    watch->fresh = NULL;
    watch->fresh_count = 0;
    watch->fresh_cap = 0;
}

/* May this name, which is not a note's, be a folder, or a link to one? */
static bool may_be_folder(const struct notes_watch *watch, int root_fd, const char *path,
                          uint32_t mask)
{
    struct stat entry;
    if ((mask & (IN_MOVED_FROM | IN_DELETE)) != 0) {
        return watch->linked; /* its type cannot be read any more */
    }
    return (mask & (IN_CREATE | IN_MOVED_TO)) != 0 &&
           fstatat(root_fd, path, &entry, AT_SYMLINK_NOFOLLOW) == 0 && !S_ISREG(entry.st_mode);
}

static enum notes_watch_news one_event(const struct notes_watch *watch, int root_fd,
                                       const struct inotify_event *event,
                                       int (*file)(void *user, struct ng_str path), void *user)
{
    char path[PATH_MAX + NAME_MAX + 2];
    if ((event->mask & IN_Q_OVERFLOW) != 0) {
        return NOTES_WATCH_ALL;
    }
    const struct notes_watched *item = find(watch->items, watch->count, event->wd);
    if (item == NULL || (event->mask & IN_IGNORED) != 0) {
        return NOTES_WATCH_NOTHING; /* of a folder that is not watched any more */
    }
    if ((event->mask & (IN_DELETE_SELF | IN_MOVE_SELF | IN_UNMOUNT)) != 0) {
        return NOTES_WATCH_ALL;
    }
    struct ng_str name = ng_str_of(event->len > 0 ? event->name : NULL);
    if (name.len == 0 || notes_tree_is_hidden(name)) {
        return NOTES_WATCH_NOTHING;
    }
    if (watch->aliased) {
        return NOTES_WATCH_ALL;
    }
    int len = snprintf(path, sizeof(path), "%s%s%s", item->path,
                       item->path[0] != '\0' ? "/" : "", event->name);
    if (len < 0 || (size_t)len >= sizeof(path)) {
        return NOTES_WATCH_ALL;
    }
    if ((event->mask & IN_ISDIR) != 0) {
        if ((event->mask & (IN_MODIFY | IN_CLOSE_WRITE)) != 0) {
            return NOTES_WATCH_NOTHING;
        }
        return NOTES_WATCH_ALL;
    }
    if (!notes_tree_is_note(name)) {
        if (may_be_folder(watch, root_fd, path, event->mask)) {
            return NOTES_WATCH_ALL;
        }
        return NOTES_WATCH_NOTHING;
    }
    if (file(user, str_make(path, (size_t)len)) == 0) {
        return NOTES_WATCH_FILES;
    }
    return NOTES_WATCH_ALL;
}

enum notes_watch_news notes_watch_drain(struct notes_watch *watch, int root_fd,
                                        int (*file)(void *user, struct ng_str path), void *user)
{
    enum notes_watch_news news = NOTES_WATCH_NOTHING;
    if (watch->fd < 0) {
        return NOTES_WATCH_ALL;
    }
    char *events = malloc(EVENTS_SIZE);
    if (events == NULL) {
        return NOTES_WATCH_ALL;
    }
    for (;;) {
        ssize_t len = read(watch->fd, events, EVENTS_SIZE);
        if (len < 0 && errno == EINTR) {
            continue;
        }
        if (len <= 0) {
            break;
        }
        for (ssize_t at = 0; at < len;) {
            const struct inotify_event *event = (const void *)(events + at);
            enum notes_watch_news one = one_event(watch, root_fd, event, file, user);
            if (one > news) {
                news = one;
            }
            at += (ssize_t)(sizeof(*event) + event->len);
        }
    }
    free(events);
    return news;
}
