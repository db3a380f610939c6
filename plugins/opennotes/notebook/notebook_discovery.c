/* SPDX-License-Identifier: MIT */
/* notebook_discovery.c - is there a notebook for a caller? Lists ask once for each tool, on any
 * thread: they get the result of the last scan, and a scan that is due runs on a worker. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/array.h"
#include "core/base/lock.h"
#include "notebook_state.h"

/* Longest scan in start(); later scans find the rest. */
#define DISCOVERY_START_MS 2000
/* Interval between scans: this, or a multiple of the last duration. */
#define DISCOVERY_PAUSE_MS 1000
#define DISCOVERY_PAUSE_FACTOR 20
/* Remembered roots; a gateway has at most 256 at a time. */
#define DISCOVERY_ROOTS_MAX 1024

struct known_root {
    char *root;  /* path in the gateway's configuration */
    char *found; /* folder of a notebook below it, or NULL */
};

struct notes_discovery {
    struct lock lock; /* guards the members below; not held during disk access */
    struct known_root *roots;
    size_t count, room;
    int64_t next_ms; /* time of the next scan */
    bool looking;
};

/* Under the lock. */
static struct known_root *discovery_find(struct notes_discovery *discovery, struct ng_str root)
{
    for (size_t i = 0; i < discovery->count; i++) {
        if (str_equal(ng_str_of(discovery->roots[i].root), root)) {
            return &discovery->roots[i];
        }
    }
    return NULL;
}

static bool discovery_has(struct notes_discovery *discovery, struct ng_call *call)
{
    const struct ng_str *roots = NULL;
    size_t count = call->host->file_roots(call, &roots);
    bool has = false;
    lock_take(&discovery->lock);
    for (size_t i = 0; i < count && !has; i++) {
        const struct known_root *root = discovery_find(discovery, roots[i]);
        has = root != NULL && root->found != NULL;
    }
    lock_release(&discovery->lock);
    return has;
}

/* Takes ownership of `found`. true: the result has changed. */
static bool discovery_set(struct notes_discovery *discovery, struct ng_str path, char *found)
{
    lock_take(&discovery->lock);
    struct known_root *root = discovery_find(discovery, path);
    bool had = root != NULL && root->found != NULL;
    /* Without memory it is as if the root had not been scanned. */
    if (root == NULL &&
        array_reserve((void **)&discovery->roots, &discovery->room, discovery->count + 1,
                      sizeof(*discovery->roots), DISCOVERY_ROOTS_MAX) == NG_OK) {
        char *copy = str_dup(path);
        if (copy != NULL) {
            root = &discovery->roots[discovery->count++];
            *root = (struct known_root){.root = copy};
        }
    }
    if (root != NULL) {
        free(root->found);
        root->found = found;
    } else {
        free(found);
        found = NULL;
    }
    lock_release(&discovery->lock);
    return had != (found != NULL);
}

/* Does the notebook found before still exist? In call memory; {NULL, 0}: no. */
static struct ng_str discovery_again(struct notes_discovery *discovery, struct ng_call *call,
                                     struct ng_str path)
{
    struct ng_str folder = {NULL, 0};
    struct stat config;
    lock_take(&discovery->lock);
    const struct known_root *root = discovery_find(discovery, path);
    if (root != NULL && root->found != NULL) {
        folder = notes_call_copy(call, ng_str_of(root->found));
    }
    lock_release(&discovery->lock);
    int fd = -1;
    if (folder.data != NULL) {
        fd = notes_tree_open_folder(folder.data);
    }
    bool is_there = fd >= 0 &&
                    fstatat(fd, NOTES_CONFIG_NAME, &config, AT_SYMLINK_NOFOLLOW) == 0 &&
                    S_ISREG(config.st_mode);
    if (fd >= 0) {
        (void)close(fd);
    }
    if (is_there) {
        return folder;
    }
    return str_make(NULL, 0);
}

/* Scans the caller's roots. true: a result has changed. */
static bool discovery_look(struct notes_discovery *discovery, struct ng_call *call,
                           int64_t until_ms)
{
    const struct ng_str *roots = NULL;
    size_t count = call->host->file_roots(call, &roots);
    int64_t began_ms = call->host->now_ms();
    bool changed = false;
    for (size_t i = 0; i < count; i++) {
        struct notes_folders found = {.count = 0};
        struct ng_str folder = discovery_again(discovery, call, roots[i]);
        if (folder.data == NULL) {
            if (notes_find_first(call, roots[i], until_ms, &found) != NG_OK) {
                continue; /* not known */
            }
            if (found.count > 0) {
                folder = found.items[0];
            }
        }
        char *copy = NULL;
        if (folder.data != NULL) {
            copy = str_dup(folder);
        }
        if (copy != NULL || folder.data == NULL) {
            changed = discovery_set(discovery, roots[i], copy) || changed;
        }
    }
    int64_t now_ms = call->host->now_ms();
    int64_t took_ms = 0;
    if (now_ms > began_ms) {
        took_ms = now_ms - began_ms;
    }
    lock_take(&discovery->lock);
    discovery->next_ms = now_ms + DISCOVERY_PAUSE_MS + took_ms * DISCOVERY_PAUSE_FACTOR;
    discovery->looking = false;
    lock_release(&discovery->lock);
    return changed;
}

/* Is a scan due, and none under way? Then the caller must run it. */
static bool discovery_is_due(struct notes_discovery *discovery, struct ng_call *call)
{
    int64_t now_ms = call->host->now_ms();
    lock_take(&discovery->lock);
    /* A clock that was set back does not delay scans. */
    bool due = !discovery->looking && (now_ms >= discovery->next_ms ||
                                       discovery->next_ms - now_ms > (int64_t)3600 * 1000);
    discovery->looking = discovery->looking || due;
    lock_release(&discovery->lock);
    return due;
}

struct notes_discovery *notes_discovery_open(struct ng_call *call)
{
    struct notes_discovery *discovery = calloc(1, sizeof(*discovery));
    if (discovery == NULL) {
        return NULL;
    }
    lock_init(&discovery->lock, LOCK_NOTES_DISCOVERY);
    (void)discovery_look(discovery, call, call->host->now_ms() + DISCOVERY_START_MS);
    return discovery;
}

void notes_discovery_close(struct notes_discovery *discovery)
{
    if (discovery == NULL) {
        return;
    }
    for (size_t i = 0; i < discovery->count; i++) {
        free(discovery->roots[i].root);
        free(discovery->roots[i].found);
    }
    free(discovery->roots);
    lock_done(&discovery->lock);
    free(discovery);
}

static int discovery_step(struct ng_call *call, void *user)
{
    if (discovery_look(user, call, 0)) {
        call->host->lists_changed(call->host, NG_LIST_TOOLS | NG_LIST_RESOURCES);
    }
    return NG_OK;
}

/* A call finds a new notebook before the next scan does. */
static bool call_finds(struct notes_discovery *discovery, struct ng_call *call)
{
    if (ng_has_arg(call, "notebook")) {
        return true; /* any folder of the roots can be named */
    }
    if (!call->host->may_block(call)) {
        return false;
    }
    (void)discovery_step(call, discovery);
    return discovery_has(discovery, call);
}

bool notes_configured(void *user, struct ng_call *call)
{
    const struct opennotes *self = user;
    const struct notes_notebooks *notebooks = self->notebooks;
    for (size_t i = 0; i < notebooks->count; i++) {
        if (notes_may_see(call, ng_str_of(notebooks->items[i].space))) {
            return true;
        }
    }
    struct notes_discovery *discovery = notebooks->discovery;
    bool is_call = call->tool.len > 0;
    bool has = discovery_has(discovery, call);
    if (!is_call && discovery_is_due(discovery, call) &&
        call->host->background(call, discovery_step, discovery) != NG_OK) {
        lock_take(&discovery->lock);
        discovery->looking = false;
        lock_release(&discovery->lock);
    }
    has = has || (is_call && call_finds(discovery, call));
    if (is_call && !has) {
        call->host->hint(call, "Set `opennotes.notebooks` in the gateway's configuration to a "
                               "folder of Markdown notes, or put " NOTES_CONFIG_NAME
                               " into one below its roots");
        (void)ng_fail(call, NG_ENOTCONFIGURED,
                      "No notebook of Markdown notes is registered, and none was found below "
                      "the gateway's roots");
    }
    return has;
}
