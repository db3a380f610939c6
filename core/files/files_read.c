/* SPDX-License-Identifier: MIT */
/* files_read.c - reads whole files and streams, and computes hashes, which are revisions. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "core/base/str.h"
#include "core/base/text/hex.h"
#include "core/base/text/sha256.h"
#include "core/call/plugin.h"
#include "files_state.h"

#define FILES_COMPARED 65536 /* bytes of one comparison, on the stack */

/* The first 128 bits of SHA-256. "" if libcrypto is out of memory: no file has this hash. */
void files_hash(struct ng_str data, char hash[FILES_HASH_SIZE])
{
    unsigned char digest[SHA256_BYTES];
    hash[0] = '\0';
    if (sha256_digest(data, digest) == NG_OK) {
        hex_write(digest, (FILES_HASH_SIZE - 1) / 2, hash);
    }
}

bool files_cancelled(struct call *call)
{
    return call->pub.host->cancelled(&call->pub);
}

int files_check_cancelled(struct call *call)
{
    if (!files_cancelled(call)) {
        return NG_OK;
    }
    if (call->pub.host->remaining_ms(&call->pub) <= 0) {
        return call_fail(call, NG_ETIMEOUT,
                         "The call's time was up before the file was changed; nothing was "
                         "written. Try again.");
    }
    return call_fail(call, NG_ECANCELLED, "The call was cancelled; nothing was written.");
}

/* Passes the whole file to `chunk`, one block at a time. */
static int read_blocks(struct call *call, struct ng_str path, int fd, ng_chunk_fn *chunk,
                       void *user)
{
    char *block = alloc_bytes(FILES_BLOCK);
    if (block == NULL) {
        return call_no_memory(call);
    }
    off_t at = 0;
    int rc = NG_OK;
    bool going = true;
    while (going) {
        ssize_t got = pread(fd, block, FILES_BLOCK, at);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got < 0) {
            rc = files_fail_os(call, errno, "read", path);
        } else if (got > 0) {
            at += got;
            going = chunk(user, str_make(block, (size_t)got)) == 0;
        }
        if (rc == NG_OK && going && got > 0) {
            rc = files_check_cancelled(call);
        }
        going = going && got > 0 && rc == NG_OK;
    }
    free(block);
    return rc;
}

struct hashing {
    struct sha256 *hash;
    ng_chunk_fn *chunk;
    void *user;
    uint64_t bytes;
    bool stopped;
};

static int hashing_chunk(void *user, struct ng_str chunk)
{
    struct hashing *hashing = user;
    hashing->bytes += chunk.len;
    if (sha256_add(hashing->hash, chunk) != NG_OK) {
        hashing->stopped = true;
    } else if (hashing->chunk != NULL) {
        hashing->stopped = hashing->chunk(hashing->user, chunk) != 0;
    }
    return hashing->stopped;
}

/* Runs `hashing` over the file. `hash` is "" if the reader stopped before the end. */
static int hash_stream(struct call *call, struct ng_str path, int fd, struct hashing *hashing,
                       char hash[FILES_HASH_SIZE])
{
    unsigned char digest[SHA256_BYTES];
    hash[0] = '\0';
    hashing->hash = sha256_new();
    if (hashing->hash == NULL) {
        return call_no_memory(call);
    }
    int rc = read_blocks(call, path, fd, hashing_chunk, hashing);
    if (rc == NG_OK && !hashing->stopped && sha256_now(hashing->hash, digest) == NG_OK) {
        hex_write(digest, (FILES_HASH_SIZE - 1) / 2, hash);
    }
    sha256_free(hashing->hash);
    return rc;
}

int files_hash_fd(struct call *call, struct ng_str path, int fd, char hash[FILES_HASH_SIZE])
{
    struct hashing hashing = {0};
    int rc = hash_stream(call, path, fd, &hashing, hash);
    if (rc == NG_OK && hash[0] == '\0') {
        return call_no_memory(call);
    }
    return rc;
}

int files_hash_at(struct call *call, int dir, const char *name, char hash[FILES_HASH_SIZE])
{
    hash[0] = '\0';
    struct ng_str path = ng_str_of(name);
    int fd = files_open_beneath(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
    if (fd < 0) {
        return errno == ENOENT ? NG_OK : files_fail_os(call, errno, "read", path);
    }
    struct stat st;
    int rc = NG_OK;
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) {
        rc = call_fail(call, NG_EFAILED, "%s is not a regular file.", name);
    } else {
        rc = files_hash_fd(call, path, fd, hash);
    }
    (void)close(fd);
    return rc;
}

int files_open_regular(struct call *call, struct file_place *place, bool write, int *ret_fd)
{
    if (files_place_type(place) != NG_FILE_REGULAR) {
        return files_fail_type(call, place);
    }
    int access = O_RDONLY;
    const char *doing = "read";
    if (write) {
        access = O_RDWR;
        doing = "edit";
    }
    /* O_NONBLOCK: it may be a FIFO by now. */
    int fd = files_open_beneath(place->dir, place->name.data,
                                access | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
    if (fd < 0 && errno == ENOENT) {
        place->exists = false;
        return files_fail_missing(call, place->path);
    }
    if (fd < 0) {
        return files_fail_os(call, errno, doing, place->path);
    }
    int rc = NG_OK;
    if (fstat(fd, &place->st) != 0) {
        rc = files_fail_os(call, errno, "read", place->path);
    } else if (!S_ISREG(place->st.st_mode)) {
        rc = files_fail_type(call, place);
    } else {
        /* Another file may have taken the name since the path was resolved. */
        enum file_hole_kind hole =
            files_find_hole(place->roots->holes, call_plugin(call), fd, "", &place->st);
        rc = hole != FILE_HOLE_NONE ? files_fail_hole(call, place->path, hole) : NG_OK;
    }
    if (rc != NG_OK) {
        files_close_fd(&fd);
    }
    *ret_fd = fd;
    return rc;
}

int files_fill(struct call *call, struct ng_str path, int fd, char *data, size_t room,
               size_t *ret_len)
{
    size_t len = 0;
    while (len < room) { /* ignores bytes that are appended meanwhile */
        ssize_t got = pread(fd, data + len, room - len, (off_t)len);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got < 0) {
            return files_fail_os(call, errno, "read", path);
        }
        if (got == 0) {
            break;
        }
        len += (size_t)got;
    }
    *ret_len = len;
    return NG_OK;
}

/* Compares without allocating: the check of a save must not fail for lack of memory. */
bool files_has_content(int fd, struct ng_str expected)
{
    char block[FILES_COMPARED];
    size_t at = 0;
    ssize_t got = 1;
    while (got != 0) {
        got = pread(fd, block, sizeof(block), (off_t)at);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got < 0 || (size_t)got > expected.len - at ||
            memcmp(block, expected.data + at, (size_t)got) != 0) {
            return false;
        }
        at += (size_t)got;
    }
    return at == expected.len;
}

int files_load(struct call *call, struct ng_str path, int fd, uint64_t max_bytes,
               struct ng_str *ret_data)
{
    struct stat st;
    if (fstat(fd, &st) != 0) {
        return files_fail_os(call, errno, "read", path);
    }
    size_t room = (size_t)st.st_size;
    if (max_bytes > 0 && (uint64_t)room > max_bytes) {
        return files_fail_size(call, (uint64_t)room, max_bytes);
    }
    char *data = NULL;
    if (room < CALL_MEMORY_MAX) {
        int rc = call_count_bytes(call, room);
        if (rc != NG_OK) {
            return rc;
        }
        data = arena_alloc(&call->arena, room + 1);
    }
    if (data == NULL) {
        return call_fail(call, NG_ETOOLARGE,
                         "The file %.*s (%zu bytes) is too large to be read whole.",
                         (int)path.len, path.data, room);
    }
    size_t len = 0;
    int rc = files_fill(call, path, fd, data, room, &len);
    if (rc != NG_OK) {
        return rc;
    }
    data[len] = '\0';
    *ret_data = str_make(data, len);
    return NG_OK;
}

void files_inode(const struct stat *st, char inode[FILES_INODE_SIZE])
{
    (void)snprintf(inode, FILES_INODE_SIZE, "inode/%llx/%llx", (unsigned long long)st->st_dev,
                   (unsigned long long)st->st_ino);
}

/* Inode numbers are reused, but any change of a file or its inode updates the ctime. */
void files_mark(const struct stat *st, char mark[FILES_MARK_SIZE])
{
    (void)snprintf(mark, FILES_MARK_SIZE, "%llu.%lld.%ld", (unsigned long long)st->st_ino,
                   (long long)st->st_ctim.tv_sec, (long)st->st_ctim.tv_nsec);
}

void files_describe(const struct file_place *place, struct ng_file *ret)
{
    memset(ret, 0, sizeof(*ret));
    ret->size = sizeof(*ret);
    ret->type = files_place_type(place);
    ret->path = place->path;
    ret->real = place->real;
    ret->space = ng_str_of(place->root != NULL ? place->root->space : NULL);
    if (place->exists) {
        ret->bytes = (uint64_t)place->st.st_size;
        ret->modified_ms = (int64_t)place->st.st_mtim.tv_sec * 1000 +
                           (int64_t)place->st.st_mtim.tv_nsec / 1000000;
        ret->mode = (uint32_t)place->st.st_mode & 07777U;
    }
}

/* Resolves the path, opens the file unless ret_fd is NULL, and describes it. */
static int read_begin(struct files *files, struct call *call, struct ng_str path, int *ret_fd,
                      struct ng_file *ret)
{
    if (!call->may_block) {
        return NG_EWOULDBLOCK;
    }
    struct file_place place;
    struct ng_file file;
    int rc = files_resolve(files, call, path, &place);
    if (rc == NG_OK && ret_fd != NULL) {
        rc = files_open_regular(call, &place, false, ret_fd);
    }
    if (rc == NG_OK) {
        files_describe(&place, &file);
        /* A copy: the roots may be freed before the call ends. */
        file.space = arena_copy(&call->arena, file.space);
        rc = file.space.data != NULL ? NG_OK : call_no_memory(call);
    }
    if (rc == NG_OK) {
        *ret = file;
    }
    files_place_done(&place);
    return rc;
}

int files_stat(struct files *files, struct call *call, struct ng_str path,
               struct ng_file *ret_file)
{
    return read_begin(files, call, path, NULL, ret_file);
}

static int set_revision(struct call *call, const char *hash, struct ng_file *file)
{
    if (hash[0] == '\0') {
        return NG_OK;
    }
    file->revision = arena_copy(&call->arena, ng_str_of(hash));
    if (file->revision.data == NULL) {
        return call_no_memory(call);
    }
    return NG_OK;
}

int files_read(struct files *files, struct call *call, struct ng_str path, uint64_t max_bytes,
               struct ng_file *ret_file)
{
    int fd = -1;
    struct ng_file file;
    char hash[FILES_HASH_SIZE];
    int rc = read_begin(files, call, path, &fd, &file);
    if (rc == NG_OK) {
        const struct files_load load = {path, fd, max_bytes, NULL};
        rc = files_load_hashed(files, call, &load, &file.data, hash);
    }
    if (rc == NG_OK) {
        file.bytes = file.data.len;
        rc = set_revision(call, hash, &file);
    }
    if (rc == NG_OK) {
        *ret_file = file;
    }
    files_close_fd(&fd);
    return rc;
}

int files_stream(struct files *files, struct call *call, struct ng_str path, ng_chunk_fn *chunk,
                 void *user, struct ng_file *ret_file)
{
    int fd = -1;
    struct ng_file file;
    struct hashing hashing = {.chunk = chunk, .user = user};
    char hash[FILES_HASH_SIZE];
    int rc = read_begin(files, call, path, &fd, &file);
    if (rc == NG_OK) {
        rc = hash_stream(call, path, fd, &hashing, hash);
    }
    if (rc == NG_OK && !hashing.stopped) {
        file.bytes = hashing.bytes;
    }
    if (rc == NG_OK) {
        rc = set_revision(call, hash, &file);
    }
    if (rc == NG_OK) {
        *ret_file = file;
    }
    files_close_fd(&fd);
    return rc;
}
