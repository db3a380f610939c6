/* SPDX-License-Identifier: MIT */
/* files_path.c - resolves paths. The kernel resolves each part below an open root; links are
 * followed here, so that an absolute link to a place inside the roots is allowed. */
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/base/str.h"
#include "core/base/utf8.h"
#include "core/call/plugin.h"
#include "files_state.h"

#define FILES_ROOT_TRIES 8 /* while the folder of a root is being replaced */

struct walk {
    struct call *call;
    struct file_place *place;
    const struct file_root *root;
    int dir;            /* the present folder, O_PATH; owned */
    struct buf at;      /* its path below the root: "a/b" or "" */
    struct ng_str rest; /* the unresolved rest of the path */
    unsigned links;
    bool last_was_link;            /* the last part of the path is a link */
    bool any;                      /* without access checks */
    bool guarded;                  /* the caller has no access to some roots */
    const struct file_root *stale; /* out: a root whose folder was replaced */
};

static int open_beneath(int dir, const char *path, uint64_t flags, uint64_t resolve)
{
    struct open_how how = {
        .flags = flags | O_CLOEXEC,
        .resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS | resolve,
    };
    long fd;
    do {
        /* EAGAIN: a concurrent rename; the kernel could not verify the result. */
        fd = syscall(SYS_openat2, dir, path, &how, sizeof(how));
    } while (fd < 0 && (errno == EINTR || errno == EAGAIN));
    return (int)fd;
}

int files_open_beneath(int dir, const char *path, int flags)
{
    return open_beneath(dir, path, (uint64_t)(unsigned)flags, RESOLVE_NO_SYMLINKS);
}

/* True if `path` is the folder `prefix` or lies below it; *ret_rest: the part after it. */
static bool path_below(struct ng_str path, const char *prefix, struct ng_str *ret_rest)
{
    size_t len = strlen(prefix);
    if (len == 1) {
        len = 0; /* "/" contains every path */
    }
    if (path.len < len || memcmp(path.data, prefix, len) != 0 ||
        (path.len > len && path.data[len] != '/')) {
        return false;
    }
    *ret_rest = str_make(path.data + len, path.len - len);
    return true;
}

/* The innermost root that contains an absolute path, with or without access for the caller. */
static const struct file_root *root_of(const struct walk *walk, struct ng_str path,
                                       struct ng_str *ret_rest)
{
    const struct file_roots *roots = walk->place->roots;
    const struct file_root *best = NULL;
    for (size_t i = 0; i < roots->count; i++) {
        const struct file_root *root = &roots->items[i];
        struct ng_str rest;
        if (!walk->any && !files_root_counts(walk->call, root)) {
            continue;
        }
        if ((path_below(path, root->path, &rest) || path_below(path, root->real, &rest)) &&
            (best == NULL || rest.len < ret_rest->len)) {
            best = root;
            *ret_rest = rest;
        }
    }
    return best;
}

static int fail_outside(struct call *call, struct file_place *place)
{
    struct buf names;
    buf_init(&names, FILES_JSON_MAX);
    for (size_t i = 0; i < place->roots->count; i++) {
        const struct file_root *root = &place->roots->items[i];
        if (files_root_visible(call, root) && files_root_counts(call, root)) {
            (void)buf_printf(&names, "%s%s", names.len > 0 ? ", " : "", root->path);
        }
    }
    int rc = call_fail(call, NG_EOUTSIDE, "The path %.*s is outside the roots: %s.",
                       (int)place->path.len, place->path.data,
                       names.len > 0 ? buf_cstr(&names) : "this caller may use none");
    if (names.len > 0) {
        call->pub.host->hint(&call->pub, "Use a path below one of them: %s", buf_cstr(&names));
    }
    buf_done(&names);
    return rc;
}

static int fail_buffer(struct walk *walk, int rc)
{
    int error = rc == NG_ETOOLARGE ? ENAMETOOLONG : ENOMEM;
    return files_fail_os(walk->call, error, "open", walk->place->path);
}

static bool may_see(const struct walk *walk, const struct file_root *root)
{
    return walk->any ||
           (files_root_visible(walk->call, root) && files_root_counts(walk->call, root));
}

/* Continues at an absolute path, from the root that contains it. */
static int walk_from_root(struct walk *walk, struct ng_str path)
{
    struct ng_str rest = {NULL, 0};
    walk->root = root_of(walk, path, &rest);
    if (walk->root == NULL) {
        return fail_outside(walk->call, walk->place);
    }
    if (may_see(walk, walk->root) && !files_root_is_current(walk->root)) {
        walk->stale = walk->root;
        return NG_EUNAVAILABLE;
    }
    int dir = fcntl(walk->root->fd, F_DUPFD_CLOEXEC, 0);
    if (dir < 0) {
        return files_fail_os(walk->call, errno, "open", walk->place->path);
    }
    files_close_fd(&walk->dir);
    walk->dir = dir;
    buf_clear(&walk->at);
    walk->rest = rest;
    return NG_OK;
}

/* The next part of the path; empty at the end. */
static struct ng_str walk_part(struct walk *walk)
{
    struct ng_str rest = walk->rest;
    while (rest.len > 0 && rest.data[0] == '/') {
        rest = str_make(rest.data + 1, rest.len - 1);
    }
    struct ng_str part = {rest.data, 0};
    while (part.len < rest.len && part.data[part.len] != '/') {
        part.len++;
    }
    walk->rest = str_make(rest.data + part.len, rest.len - part.len);
    while (walk->rest.len > 0 && walk->rest.data[0] == '/') {
        walk->rest = str_make(walk->rest.data + 1, walk->rest.len - 1);
    }
    return part;
}

/* "..": the parent folder may be outside this root and inside another one. */
static int walk_up(struct walk *walk)
{
    struct arena *arena = &walk->call->arena;
    if (walk->at.len == 0) {
        struct ng_str real = ng_str_of(walk->root->real);
        while (real.len > 0 && real.data[real.len - 1] != '/') {
            real.len--;
        }
        struct ng_str path =
            arena_printf(arena, "%.*s/%.*s", (int)(real.len > 0 ? real.len - 1 : 0), real.data,
                         (int)walk->rest.len, walk->rest.data);
        if (path.data == NULL) {
            return call_no_memory(walk->call);
        }
        return walk_from_root(walk, path);
    }
    size_t len = walk->at.len;
    while (len > 0 && walk->at.data[len - 1] != '/') {
        len--;
    }
    walk->at.len = len - (len > 0);
    const char *path = ".";
    if (walk->at.len > 0) {
        path = buf_cstr(&walk->at);
    }
    int dir = files_open_beneath(walk->root->fd, path, O_PATH | O_DIRECTORY);
    if (dir < 0) {
        return files_fail_os(walk->call, errno, "open", walk->place->path);
    }
    (void)close(walk->dir);
    walk->dir = dir;
    return NG_OK;
}

static int walk_link(struct walk *walk, int fd, bool last)
{
    struct call *call = walk->call;
    if (++walk->links > NG_FILE_LINKS_MAX) {
        return files_fail_os(call, ELOOP, "open", walk->place->path);
    }
    char target[FILES_PATH_MAX];
    ssize_t len = readlinkat(fd, "", target, sizeof(target));
    if (len <= 0 || (size_t)len >= sizeof(target)) {
        return files_fail_os(call, len < 0 ? errno : ENAMETOOLONG, "follow", walk->place->path);
    }
    walk->last_was_link = walk->last_was_link || last;
    struct ng_str path = arena_printf(&call->arena, "%.*s/%.*s", (int)len, target,
                                      (int)walk->rest.len, walk->rest.data);
    if (path.data == NULL) {
        return call_no_memory(call);
    }
    if (path.len >= (size_t)2 * FILES_PATH_MAX) {
        return files_fail_os(call, ENAMETOOLONG, "follow", walk->place->path);
    }
    if (target[0] == '/') {
        return walk_from_root(walk, path);
    }
    walk->rest = path;
    return NG_OK;
}

/* The real path of `name` and of `deeper` below it, in the present folder. Parts may be empty.
 */
static struct ng_str walk_real(struct walk *walk, struct ng_str name, struct ng_str deeper)
{
    const struct ng_str parts[] = {buf_str(&walk->at), name, deeper};
    struct arena *arena = &walk->call->arena;
    struct ng_str real = ng_str_of(walk->root->real);
    if (str_is(real, "/")) {
        real.len = 0;
    }
    for (size_t i = 0; i < NG_COUNT(parts) && real.data != NULL; i++) {
        if (parts[i].len > 0) {
            real = arena_printf(arena, "%.*s/%.*s", (int)real.len, real.data, (int)parts[i].len,
                                parts[i].data);
        }
    }
    if (real.data == NULL) {
        return real;
    }
    return arena_copy(arena, real.len > 0 ? real : ng_str_of("/"));
}

/* The path is resolved to `name` in walk->dir. `deeper`: parts below a missing folder. */
static int walk_end(struct walk *walk, struct ng_str name, struct ng_str deeper)
{
    struct file_place *place = walk->place;
    struct arena *arena = &walk->call->arena;
    struct ng_str real = walk_real(walk, name, deeper);
    if (deeper.len > 0) {
        size_t cut = deeper.len;
        while (cut > 0 && deeper.data[cut - 1] != '/') {
            cut--;
        }
        struct ng_str leaf = {deeper.data + cut, deeper.len - cut};
        if (cut > 1) {
            place->missing = arena_printf(arena, "%.*s/%.*s", (int)name.len, name.data,
                                          (int)(cut - 1), deeper.data);
        } else {
            place->missing = arena_copy(arena, name);
        }
        name = leaf;
    }
    place->name = arena_copy(arena, name.len > 0 ? name : ng_str_of("."));
    place->real = real;
    if (real.data == NULL || place->name.data == NULL) {
        return call_no_memory(walk->call);
    }
    struct ng_str rest;
    place->root = root_of(walk, real, &rest);
    if (place->root == NULL || !may_see(walk, place->root)) {
        return fail_outside(walk->call, place);
    }
    place->dir = walk->dir;
    walk->dir = -1;
    place->dangling = !place->exists && walk->last_was_link;
    return NG_OK;
}

/* `part` does not exist. The rest must be plain names. */
static int walk_missing(struct walk *walk, struct ng_str part)
{
    struct buf deeper;
    buf_init(&deeper, (size_t)2 * FILES_PATH_MAX);
    int rc = NG_OK;
    while (walk->rest.len > 0 && rc == NG_OK) {
        struct ng_str next = walk_part(walk);
        if (next.len == 0 || str_is(next, ".")) {
            continue;
        }
        if (str_is(next, "..")) {
            rc = files_fail_missing(walk->call, walk->place->path);
            break;
        }
        if (deeper.len > 0) {
            (void)buf_add_char(&deeper, '/');
        }
        (void)buf_add_str(&deeper, next);
    }
    if (rc == NG_OK && deeper.rc != NG_OK) {
        rc = fail_buffer(walk, deeper.rc);
    }
    if (rc == NG_OK) {
        rc = walk_end(walk, part, buf_str(&deeper));
    }
    buf_done(&deeper);
    return rc;
}

/* Ends the walk before it reads a part inside a root without access: any further result
 * would reveal what exists there. Folders on the path to an accessible root are allowed. */
static int walk_guard(struct walk *walk, struct ng_str part)
{
    const struct file_roots *roots = walk->place->roots;
    struct ng_str rest;
    if (!walk->guarded) {
        return NG_OK;
    }
    struct ng_str real = walk_real(walk, part, str_make(NULL, 0));
    if (real.data == NULL) {
        return call_no_memory(walk->call);
    }
    const struct file_root *root = root_of(walk, real, &rest);
    bool open = root != NULL && may_see(walk, root);
    for (size_t i = 0; i < roots->count && !open; i++) {
        open = may_see(walk, &roots->items[i]) &&
               path_below(ng_str_of(roots->items[i].real), real.data, &rest);
    }
    return open ? NG_OK : fail_outside(walk->call, walk->place);
}

/* Resolves one part. *ret_done: the path is resolved. */
static int walk_step(struct walk *walk, struct ng_str part, bool *ret_done)
{
    struct call *call = walk->call;
    struct file_place *place = walk->place;
    struct ng_str name = arena_copy(&call->arena, part);
    if (name.data == NULL) {
        return call_no_memory(call);
    }
    int rc = walk_guard(walk, part);
    if (rc != NG_OK) {
        return rc;
    }
    bool last = walk->rest.len == 0;
    int fd = open_beneath(walk->dir, name.data, O_PATH | O_NOFOLLOW, 0);
    if (fd < 0 && errno == ENOENT) {
        *ret_done = true;
        return walk_missing(walk, name);
    }
    struct stat st;
    if (fd < 0 || fstat(fd, &st) != 0) {
        files_close_fd(&fd);
        return files_fail_os(call, errno, "open", place->path);
    }
    enum file_hole_kind hole =
        files_find_hole(place->roots->holes, call_plugin(call), fd, "", &st);
    if (hole != FILE_HOLE_NONE) {
        rc = files_fail_hole(call, place->path, hole);
    } else if (S_ISLNK(st.st_mode)) {
        rc = walk_link(walk, fd, last);
    } else if (last || !S_ISDIR(st.st_mode)) {
        *ret_done = true;
        place->exists = last;
        place->below_file = !last;
        place->st = st;
        rc = last ? walk_end(walk, name, str_make(NULL, 0)) : walk_missing(walk, name);
    } else {
        (void)close(walk->dir);
        walk->dir = fd;
        fd = -1;
        if (walk->at.len > 0) {
            (void)buf_add_char(&walk->at, '/');
        }
        rc = buf_add_str(&walk->at, name);
        if (rc != NG_OK) {
            rc = fail_buffer(walk, rc);
        }
    }
    files_close_fd(&fd);
    return rc;
}

static int walk_run(struct walk *walk)
{
    bool done = false;
    int rc = NG_OK;
    while (rc == NG_OK && !done) {
        struct ng_str part = walk_part(walk);
        if (part.len == 0) {
            /* The present folder itself: a root, or the target of a link or "..". */
            done = true;
            walk->place->exists = fstat(walk->dir, &walk->place->st) == 0;
            rc = walk_end(walk, str_make(NULL, 0), str_make(NULL, 0));
        } else if (str_is(part, "..")) {
            rc = walk_up(walk);
        } else if (!str_is(part, ".")) {
            rc = walk_step(walk, part, &done);
        }
    }
    return rc;
}

/* *ret_stale: a root to reopen; the call has no message yet. */
static int resolve_once(struct files *files, struct call *call, bool any,
                        struct file_place *ret, const struct file_root **ret_stale)
{
    struct ng_str path = ret->path;
    memset(ret, 0, sizeof(*ret));
    ret->dir = -1;
    ret->path = path;
    ret->roots = files_roots_ref(files);
    struct walk walk = {.call = call, .place = ret, .dir = -1, .any = any};
    for (size_t i = 0; i < ret->roots->count && !walk.guarded; i++) {
        walk.guarded = !any && !files_root_visible(call, &ret->roots->items[i]);
    }
    buf_init(&walk.at, (size_t)2 * FILES_PATH_MAX);
    walk.at.oom = &call->arena.oom;
    int rc = walk_from_root(&walk, path);
    if (rc == NG_OK) {
        rc = walk_run(&walk);
    }
    files_close_fd(&walk.dir);
    buf_done(&walk.at);
    *ret_stale = walk.stale;
    return rc;
}

static int resolve(struct files *files, struct call *call, struct ng_str path, bool any,
                   struct file_place *ret)
{
    const struct file_root *stale = NULL;
    memset(ret, 0, sizeof(*ret));
    ret->dir = -1;
    ret->path = path;
    if (path.len == 0 || path.data[0] != '/' || memchr(path.data, '\0', path.len) != NULL) {
        return call_fail(call, NG_EINVAL,
                         "The path %.*s is not an absolute path, it should start with `/` and "
                         "hold no NUL.",
                         (int)path.len, path.len > 0 ? path.data : "");
    }
    if (path.len >= FILES_PATH_MAX) {
        return files_fail_os(call, ENAMETOOLONG, "open", utf8_cut(path, 200));
    }
    int rc = resolve_once(files, call, any, ret, &stale);
    for (unsigned tries = 0; stale != NULL && tries < FILES_ROOT_TRIES; tries++) {
        rc = files_roots_reopen(files, call, ret->roots, stale);
        files_place_done(ret);
        stale = NULL;
        if (rc == NG_OK) {
            rc = resolve_once(files, call, any, ret, &stale);
        }
    }
    if (stale != NULL) {
        rc = call_fail(call, NG_EUNAVAILABLE,
                       "The root %s is replaced repeatedly. Try again later.", stale->path);
    }
    if (rc != NG_OK) {
        files_place_done(ret);
    }
    return rc;
}

int files_resolve(struct files *files, struct call *call, struct ng_str path,
                  struct file_place *ret)
{
    return resolve(files, call, path, false, ret);
}

int files_resolve_any(struct files *files, struct call *call, struct ng_str path,
                      struct file_place *ret)
{
    return resolve(files, call, path, true, ret);
}

void files_place_done(struct file_place *place)
{
    if (place->roots == NULL) {
        return; /* never resolved, or done already */
    }
    files_close_fd(&place->dir);
    files_roots_unref(place->roots);
    place->roots = NULL;
}

enum ng_file_type files_place_type(const struct file_place *place)
{
    if (!place->exists) {
        return NG_FILE_NONE;
    }
    if (S_ISREG(place->st.st_mode)) {
        return NG_FILE_REGULAR;
    }
    if (S_ISDIR(place->st.st_mode)) {
        return NG_FILE_DIRECTORY;
    }
    return NG_FILE_OTHER;
}

int files_sync_folder(int dir, int file)
{
    int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) {
        /* A folder with write but without read permission: sync the whole file system. */
        if (file < 0) {
            return -1;
        }
        return syncfs(file);
    }
    int rc = fsync(fd);
    files_close_fd(&fd);
    return rc == 0 || errno == EINVAL ? 0 : -1; /* EINVAL: this file system has no fsync */
}

DIR *files_open_stream(int fd)
{
    DIR *stream = NULL;
    if (fd >= 0) {
        stream = fdopendir(fd);
    }
    if (stream == NULL) {
        files_close_fd(&fd);
    }
    return stream;
}

static int make_one_parent(struct call *call, struct file_place *place, const char *name)
{
    /* Sync an existing folder, too: its creator may not have done so yet. */
    if ((mkdirat(place->dir, name, S_IRWXU | S_IRWXG | S_IRWXO) != 0 && errno != EEXIST) ||
        files_sync_folder(place->dir, -1) != 0) {
        return files_fail_os(call, errno, "make the folder for", place->path);
    }
    struct stat st;
    int dir = files_open_beneath(place->dir, name, O_PATH | O_DIRECTORY);
    if (dir < 0 || fstat(dir, &st) != 0) {
        files_close_fd(&dir);
        return files_fail_os(call, errno, "make the folder for", place->path);
    }
    enum file_hole_kind hole =
        files_find_hole(place->roots->holes, call_plugin(call), dir, "", &st);
    if (hole != FILE_HOLE_NONE) {
        (void)close(dir);
        return files_fail_hole(call, place->path, hole);
    }
    (void)close(place->dir);
    place->dir = dir;
    return NG_OK;
}

int files_make_parents(struct call *call, struct file_place *place)
{
    struct ng_str rest = place->missing;
    int rc = NG_OK;
    while (rest.len > 0 && rc == NG_OK) {
        const char *slash = memchr(rest.data, '/', rest.len);
        size_t len = rest.len;
        if (slash != NULL) {
            len = (size_t)(slash - rest.data);
        }
        struct ng_str name = arena_copy(&call->arena, str_make(rest.data, len));
        if (name.data == NULL) {
            rc = call_no_memory(call);
        } else {
            rc = make_one_parent(call, place, name.data);
        }
        size_t skip = len + (slash != NULL);
        rest = str_make(rest.data + skip, rest.len - skip);
        if (rc == NG_OK) {
            place->missing = rest;
        }
    }
    return rc;
}
