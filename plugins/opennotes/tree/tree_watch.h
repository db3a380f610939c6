/* SPDX-License-Identifier: MIT */
/* tree_watch.h - inotify events of the folders of a notebook. */
#ifndef NOTEGATE_OPENNOTES_TREE_WATCH_H
#define NOTEGATE_OPENNOTES_TREE_WATCH_H

#include "text/text.h"

struct notes_watched {
    int id;
    char *path; /* of the folder, relative */
};

struct notes_watch {
    int fd;                      /* -1: off, changes are found by walking */
    int error;                   /* errno that turned it off; 0: it was never on */
    struct notes_watched *items; /* by id */
    size_t count;
    struct notes_watched *fresh; /* those of the walk under way */
    size_t fresh_count, fresh_cap;
    bool linked;  /* some folders are reached through links */
    bool aliased; /* a folder is reachable under two paths */
};

enum notes_watch_news {
    NOTES_WATCH_NOTHING = 0,
    NOTES_WATCH_FILES = 1, /* the reported files */
    NOTES_WATCH_ALL = 2    /* anything may have changed: walk */
};

/* Off if the system has no watches left, and for remote file systems, which do not report
 * changes by other machines. */
void notes_watch_open(struct notes_watch *watch, int root_fd);
void notes_watch_close(struct notes_watch *watch);
/* For each folder of a walk, before it is read; then commit, or drop. */
void notes_watch_folder(struct notes_watch *watch, int fd, struct ng_str path);
void notes_watch_commit(struct notes_watch *watch, bool linked);
void notes_watch_drop(struct notes_watch *watch);
/* Reads all pending events. Calls file() with the relative path of each changed note. */
enum notes_watch_news notes_watch_drain(struct notes_watch *watch, int root_fd,
                                        int (*file)(void *user, struct ng_str path),
                                        void *user);

#endif
