/* SPDX-License-Identifier: MIT */
/* files_path.c - where a path leads: the kernel resolves below a held root, links are followed
 * by hand, so that an absolute one that stays inside is told from an escape. */
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/base/str.h"
#include "core/base/utf8.h"
#include "files_state.h"

#define FILES_ROOT_TRIES 8 /* while the folder of a root is replaced by another */

/* A path being followed. */
struct walk {
    struct call *call;
    struct file_place *place;
    const struct file_root *root;
    int dir;            /* folder reached, O_PATH; ours */
    struct buf at;      /* and its path below the root: "a/b" or "" */
    struct ng_str rest; /* still to go */
    unsigned links;
    bool last_was_link;            /* the last part given is a link: its target decides */
    bool any;                      /* whoever is calling */
    bool guarded;                  /* there are roots that this caller may not see */
    const struct file_root *stale; /* its folder is another by now */
};

static int open_beneath(int dir, const char *path, uint64_t flags, uint64_t resolve)
{
    struct open_how how = {
        .flags = flags | O_CLOEXEC,
        .resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS | resolve,
    };
    long fd;
    do {
        /* EAGAIN: something was renamed meanwhile and the kernel cannot be sure. */
        fd = syscall(SYS_openat2, dir, path, &how, sizeof(how));
    } while (fd < 0 && (errno == EINTR || errno == EAGAIN));
    return (int)fd;
}

int files_open_beneath(int dir, const char *path, int flags)
{
    return open_beneath(dir, path, (uint64_t)(unsigned)flags, RESOLVE_NO_SYMLINKS);
}

/* What is behind `prefix` in `path` where it is that folder or below it. */
static bool path_below(struct ng_str path, const char *prefix, struct ng_str *ret_rest)
{
    size_t len = strlen(prefix);
    if (len == 1) {
        len = 0; /* "/": everything is below it */
    }
    if (path.len < len || memcmp(path.data, prefix, len) != 0 ||
        (path.len > len && path.data[len] != '/')) {
        return false;
    }
    *ret_rest = str_make(path.data + len, path.len - len);
    return true;
}

/* The innermost root an absolute path is in, whoever may see it. */
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
                       names.len > 0 ? buf_cstr(&names) : "none is open to this caller");
    if (names.len > 0) {
        call->pub.host->hint(&call->pub, "Use a path below one of them: %s", buf_cstr(&names));
    }
    buf_done(&names);
    return rc;
}

static int fail_memory(struct call *call)
{
    return call_fail(call, NG_EINTERNAL, "Out of memory while following a path.");
}

static bool may_see(const struct walk *walk, const struct file_root *root)
{
    return walk->any ||
           (files_root_visible(walk->call, root) && files_root_counts(walk->call, root));
}

/* Goes on at an absolute path: the root it is in and what is left of it. */
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
    if (walk->dir >= 0) {
        (void)close(walk->dir);
    }
    walk->dir = dir;
    buf_clear(&walk->at);
    walk->rest = rest;
    return NG_OK;
}

/* The next part; empty at the end. */
static struct ng_str walk_part(struct walk *walk)
{
    struct ng_str rest = walk->rest;
    while (rest.len > 0 && rest.data[0] == '/') {
        rest = str_make(rest.data + 1, rest.len - 1);
    }
    const char *slash = NULL;
    if (rest.len > 0) {
        slash = memchr(rest.data, '/', rest.len);
    }
    struct ng_str part = {rest.data, slash != NULL ? (size_t)(slash - rest.data) : rest.len};
    walk->rest = str_make(rest.data + part.len, rest.len - part.len);
    while (walk->rest.len > 0 && walk->rest.data[0] == '/') {
        walk->rest = str_make(walk->rest.data + 1, walk->rest.len - 1);
    }
    return part;
}

/* "..": to the folder above, which may be outside this root and inside another. */
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
            return fail_memory(walk->call);
        }
        return walk_from_root(walk, path);
    }
    size_t len = walk->at.len;
    while (len > 0 && walk->at.data[len - 1] != '/') {
        len--;
    }
    if (len > 0) {
        walk->at.len = len - 1;
    } else {
        walk->at.len = 0;
    }
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
        return fail_memory(call);
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

/* The place is reached (or known to be missing) with `name` in walk->dir. `deeper`: parts below
 * a folder that is not there. */
static int walk_end(struct walk *walk, struct ng_str name, struct ng_str deeper)
{
    struct file_place *place = walk->place;
    struct arena *arena = &walk->call->arena;
    bool top = strcmp(walk->root->real, "/") == 0;
    struct ng_str real = arena_printf(
        arena, "%s%s%.*s%s%.*s%s%.*s", top ? "" : walk->root->real, walk->at.len > 0 ? "/" : "",
        (int)walk->at.len, walk->at.len > 0 ? walk->at.data : "", name.len > 0 ? "/" : "",
        (int)name.len, name.len > 0 ? name.data : "", deeper.len > 0 ? "/" : "",
        (int)deeper.len, deeper.len > 0 ? deeper.data : "");
    if (top && real.len == 0) {
        real = arena_copy(arena, ng_str_of("/"));
    }
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
        return fail_memory(walk->call);
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

/* `part` is not there. What is behind it is plain names, or it is nowhere. */
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
        (void)buf_printf(&deeper, "%s%.*s", deeper.len > 0 ? "/" : "", (int)next.len,
                         next.data);
    }
    if (rc == NG_OK && deeper.rc != NG_OK) {
        rc = files_fail_os(walk->call, deeper.rc == NG_ETOOLARGE ? ENAMETOOLONG : ENOMEM,
                           "open", walk->place->path);
    }
    if (rc == NG_OK) {
        rc = walk_end(walk, part, buf_str(&deeper));
    }
    buf_done(&deeper);
    return rc;
}

/* Is the part in a root that the caller may not see? Then it is not looked at: whether the walk
 * goes on there, and how it fails, would tell what is there. Ways to a root that it may see are
 * open. NG_OK, or the walk ends. */
static int walk_guard(struct walk *walk, struct ng_str part)
{
    const struct file_roots *roots = walk->place->roots;
    bool top = strcmp(walk->root->real, "/") == 0;
    struct ng_str rest;
    if (!walk->guarded) {
        return NG_OK;
    }
    struct ng_str real =
        arena_printf(&walk->call->arena, "%s%s%.*s/%.*s", top ? "" : walk->root->real,
                     walk->at.len > 0 ? "/" : "", (int)walk->at.len,
                     walk->at.len > 0 ? walk->at.data : "", (int)part.len, part.data);
    if (real.data == NULL) {
        return fail_memory(walk->call);
    }
    const struct file_root *root = root_of(walk, real, &rest);
    bool open = root != NULL && may_see(walk, root);
    for (size_t i = 0; i < roots->count && !open; i++) {
        open = may_see(walk, &roots->items[i]) &&
               path_below(ng_str_of(roots->items[i].real), real.data, &rest);
    }
    if (open) {
        return NG_OK;
    }
    return fail_outside(walk->call, walk->place);
}

/* One part. *ret_done: the place is known. */
static int walk_step(struct walk *walk, struct ng_str part, bool *ret_done)
{
    struct call *call = walk->call;
    struct file_place *place = walk->place;
    struct ng_str name = arena_copy(&call->arena, part);
    if (name.data == NULL) {
        return fail_memory(call);
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
        int error = errno;
        if (fd >= 0) {
            (void)close(fd);
        }
        return files_fail_os(call, error, "open", place->path);
    }
    if (files_is_hole(place->roots->holes, call_plugin(call), fd, "", &st)) {
        rc = files_fail_hole(call, place->path);
    } else if (S_ISLNK(st.st_mode)) {
        rc = walk_link(walk, fd, last);
    } else if (last || !S_ISDIR(st.st_mode)) {
        *ret_done = true;
        place->exists = last;
        place->below_file = !last;
        place->st = st;
        if (last) {
            rc = walk_end(walk, name, str_make(NULL, 0));
        } else {
            rc = walk_missing(walk, name);
        }
    } else {
        (void)close(walk->dir);
        walk->dir = fd;
        fd = -1;
        rc = buf_printf(&walk->at, "%s%.*s", walk->at.len > 0 ? "/" : "", (int)name.len,
                        name.data);
        if (rc != NG_OK) {
            rc = files_fail_os(call, rc == NG_ETOOLARGE ? ENAMETOOLONG : ENOMEM, "open",
                               place->path);
        }
    }
    if (fd >= 0) {
        (void)close(fd);
    }
    return rc;
}

static int walk_run(struct walk *walk)
{
    bool done = false;
    int rc = NG_OK;
    while (rc == NG_OK && !done) {
        struct ng_str part = walk_part(walk);
        if (part.len == 0) {
            /* The folder reached is the place: a root, or what a link or ".." led to. */
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

/* *ret_stale: nothing is said yet. */
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
    if (walk.dir >= 0) {
        (void)close(walk.dir);
    }
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
        rc = files_roots_again(files, call, ret->roots, stale);
        files_place_done(ret);
        stale = NULL;
        if (rc == NG_OK) {
            rc = resolve_once(files, call, any, ret, &stale);
        }
    }
    if (stale != NULL) {
        rc = call_fail(call, NG_EUNAVAILABLE,
                       "The root %s is replaced again and again. Try again when that is over.",
                       stale->path);
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
        return; /* never resolved, or done already: dir may be 0 */
    }
    if (place->dir >= 0) {
        (void)close(place->dir);
    }
    place->dir = -1;
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
        /* A folder that may be written but not read: the whole disk then. */
        if (file < 0) {
            return -1;
        }
        return syncfs(file);
    }
    int rc = fsync(fd);
    int error = errno;
    (void)close(fd);
    errno = error;
    /* EINVAL: it has no such thing */
    if (rc == 0 || error == EINVAL) {
        return 0;
    }
    return -1;
}

static int make_one_parent(struct call *call, struct file_place *place, const char *name)
{
    /* Also where it is there by now: who made it may not have come to its sync. */
    if ((mkdirat(place->dir, name, S_IRWXU | S_IRWXG | S_IRWXO) != 0 && errno != EEXIST) ||
        files_sync_folder(place->dir, -1) != 0) {
        return files_fail_os(call, errno, "make the folder for", place->path);
    }
    struct stat st;
    int dir = files_open_beneath(place->dir, name, O_PATH | O_DIRECTORY);
    if (dir < 0 || fstat(dir, &st) != 0) {
        int error = errno;
        if (dir >= 0) {
            (void)close(dir);
        }
        return files_fail_os(call, error, "make the folder for", place->path);
    }
    if (files_is_hole(place->roots->holes, call_plugin(call), dir, "", &st)) {
        (void)close(dir);
        return files_fail_hole(call, place->path);
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
            rc = fail_memory(call);
        } else {
            rc = make_one_parent(call, place, name.data);
        }
        size_t skip = len;
        if (slash != NULL) {
            skip = len + 1;
        }
        rest = str_make(rest.data + skip, rest.len - skip);
        if (rc == NG_OK) {
            place->missing = rest;
        }
    }
    return rc;
}
