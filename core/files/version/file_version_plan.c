/* SPDX-License-Identifier: MIT */
/* file_version_plan.c - the versions that a change of a file adds: what it found, what it left
 * and what it saved. */
#include <errno.h>
#include <unistd.h>

#include "core/base/str.h"
#include "core/base/text/hex.h"
#include "core/base/text/sha256.h"
#include "core/call/gateway.h"
#include "file_version.h"

/* Another program may write the file: it is read to its end, but not beyond this. */
static int load_fill(struct call *call, int fd, char *to, size_t room, size_t *ret_len)
{
    size_t got = 1;
    off_t at = 0;
    *ret_len = 0;
    while (got > 0 && *ret_len < room) {
        ssize_t n = pread(fd, to + *ret_len, room - *ret_len, at);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n < 0) {
            char reason[128];
            return call_fail(call, NG_EFAILED, "The file could not be read for its history: %s",
                             strerror_r(errno, reason, sizeof(reason)));
        }
        got = (size_t)n;
        at += n;
        *ret_len += got;
    }
    return NG_OK;
}

static bool load_is(struct ng_str content, const char *hash)
{
    unsigned char digest[SHA256_BYTES];
    char now[FILE_VERSION_HASH];
    if (sha256_digest(content, digest) != NG_OK) {
        return false;
    }
    hex_write(digest, (FILE_VERSION_HASH - 1) / 2, now);
    return strcmp(now, hash) == 0;
}

/* The content of the open file; none where it is too large, or another one by now. */
static int load_content(struct call *call, const struct file_version_change *change,
                        const char *hash, struct ng_str *ret)
{
    struct stat st;
    size_t room = file_version_room(call);
    size_t len = 0;
    *ret = STR_NONE;
    if (change->fd < 0 || fstat(change->fd, &st) != 0 || (size_t)st.st_size > room) {
        return NG_OK;
    }
    room = (size_t)st.st_size;
    struct result kept = call->staged;
    int rc = call_count_bytes(call, room);
    if (rc == NG_ETOOLARGE) {
        call->staged = kept;
        return NG_OK;
    }
    char *data = rc == NG_OK ? arena_alloc(&call->arena, room + 1) : NULL;
    if (rc != NG_OK || data == NULL) {
        return rc != NG_OK ? rc : call_fail(call, NG_EINTERNAL, "out of memory for a version");
    }
    rc = load_fill(call, change->fd, data, room, &len);
    if (rc == NG_OK && load_is(str_make(data, len), hash)) {
        *ret = str_make(data, len);
    }
    return rc;
}

static void plan_set(const struct file_version_change *change, const char *hash,
                     struct ng_str content, struct file_version *ret)
{
    *ret = (struct file_version){
        .space = change->space,
        .real = change->real,
        .op = change->op,
        .collection = change->collection,
        .content = content,
        .mode = change->st != NULL ? (uint32_t)change->st->st_mode & 07777U : 0,
        .is_done = change->is_done,
    };
    memcpy(ret->hash, hash, strnlen(hash, FILE_VERSION_HASH - 1));
}

static int plan_content(struct call *call, const struct file_version_change *change,
                        const char *hash, struct ng_str *ret)
{
    if (change->content.data == NULL) {
        return load_content(call, change, hash, ret);
    }
    *ret = change->content.len <= file_version_room(call) ? change->content : STR_NONE;
    return NG_OK;
}

/* The newest version is the committed one; file_version_found_fn() looks again. */
int file_versions_find(struct store *store, struct call *call,
                       const struct file_version_change *change, struct file_versions *ret)
{
    struct file_version newest;
    struct ng_str content = STR_NONE;
    memset(ret, 0, sizeof(*ret));
    if (file_version_room(call) == 0) {
        return NG_OK;
    }
    int rc = file_version_newest(store, call, change->space, change->real, &newest);
    if (rc != NG_OK || strcmp(newest.hash, change->before) == 0) {
        return rc;
    }
    if (change->before[0] != '\0') {
        rc = plan_content(call, change, change->before, &content);
    }
    plan_set(change, change->before, content, &ret->found);
    ret->found.op = STR_NONE; /* not made by the change */
    if (change->st != NULL) {
        ret->found.modified_ms =
            (int64_t)change->st->st_mtim.tv_sec * 1000 + change->st->st_mtim.tv_nsec / 1000000;
    }
    return rc;
}

/* The old path and the new one know of each other, except in different spaces. */
static void plan_move(const struct file_version_change *change,
                      const struct file_version *newest, struct file_versions *ret)
{
    plan_set(change, "", STR_NONE, &ret->left);
    ret->left.before = change->before[0] != '\0' ? change->before : NULL;
    if (str_equal(change->space, change->to_space)) {
        ret->left.other = change->to;
    }
    if (ret->saved.real.data == NULL) {
        return; /* no content is known */
    }
    ret->saved.space = change->to_space;
    ret->saved.real = change->to;
    ret->saved.moves_gap =
        change->before[0] != '\0' && strcmp(newest->hash, change->before) != 0;
    if (str_equal(change->space, change->to_space)) {
        ret->saved.other = change->real;
        ret->saved.other_version = newest->number;
    }
}

/* The content is that of a version, if it has not changed. */
static int plan_from(struct store *store, struct call *call,
                     const struct file_version_change *change, struct file_versions *ret)
{
    struct file_version source;
    bool moves = change->to.len > 0;
    struct ng_str content = STR_NONE;
    int rc = file_version_newest(store, call, moves ? change->space : change->copied_space,
                                 moves ? change->real : change->copied, &source);
    bool same = rc == NG_OK && strcmp(source.hash, change->after) == 0;
    if (same) {
        content = source.content;
    } else if (rc == NG_OK) {
        rc = plan_content(call, change, change->after, &content);
    }
    if (rc != NG_OK) {
        return rc;
    }
    plan_set(change, change->after, content, &ret->saved);
    if (moves) {
        plan_move(change, &source, ret);
    } else if (str_equal(change->space, change->copied_space)) {
        ret->saved.other = change->copied;
        ret->saved.other_version = same ? source.number : 0;
    }
    return NG_OK;
}

int file_versions_save(struct store *store, struct call *call,
                       const struct file_version_change *change, struct file_versions *ret)
{
    struct ng_str content = STR_NONE;
    int rc = NG_OK;
    if (file_version_room(call) == 0) {
        return NG_OK;
    }
    if (change->to.len > 0 || change->copied.len > 0) {
        return plan_from(store, call, change, ret);
    }
    if (change->after[0] != '\0') {
        rc = plan_content(call, change, change->after, &content);
    }
    if (rc == NG_OK) {
        plan_set(change, change->after, content, &ret->saved);
        ret->saved.before = change->before;
    }
    return rc;
}

int file_versions_carry(struct store *store, struct call *call,
                        const struct file_version_change *change, size_t *inout_room,
                        struct file_versions *ret)
{
    struct file_version newest = {.number = 0};
    int rc = NG_OK;
    if (file_version_room(call) == 0) {
        return NG_OK;
    }
    if (*inout_room > 0) {
        rc = file_version_newest(store, call, change->space, change->real, &newest);
    }
    if (rc != NG_OK) {
        return rc;
    }
    *inout_room -= size_min(*inout_room, newest.content.len);
    if (newest.content.data != NULL) {
        plan_set(change, newest.hash, newest.content, &ret->saved);
        ret->saved.mode = newest.mode;
    }
    plan_move(change, &newest, ret);
    return NG_OK;
}
