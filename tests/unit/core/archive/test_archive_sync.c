/* SPDX-License-Identifier: MIT */
/* test_archive_sync.c - restored files are on the disk before the documents that tell of them.
 */
#include "harness.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/archive/archive.h"
#include "core/archive/files_pack.h"
#include "core/base/str.h"

#define TEXT_MAX ((size_t)1024 * 1024)

/* As the disk sees it. */
static struct {
    unsigned count;
    dev_t device;
    bool fails;
    bool file_was_there;
    char file[512];
} synced;

int syncfs(int fd) // NOLINT: in the place of libc's
{
    struct stat info;
    assert_int_equal(fstat(fd, &info), 0);
    synced.count++;
    synced.device = info.st_dev;
    synced.file_was_there = access(synced.file, F_OK) == 0;
    if (synced.fails) {
        errno = EIO;
        return -1;
    }
    return (int)syscall(SYS_syncfs, fd);
}

/* ---- a store that notes the end ---- */

struct store_end {
    bool ended, kept;
    unsigned synced_before;
};

static int none_export(void *db, struct ng_call *call, ng_record_fn *fn, void *user)
{
    (void)db;
    (void)call;
    (void)fn;
    (void)user;
    return NG_OK;
}

static int none_begin(void *db, struct ng_call *call)
{
    (void)db;
    (void)call;
    return NG_OK;
}

static int none_record(void *db, struct ng_call *call, const struct ng_record *record)
{
    (void)db;
    (void)call;
    (void)record;
    return NG_OK;
}

static int none_end(void *db, struct ng_call *call, bool keep)
{
    struct store_end *end = db;
    (void)call;
    end->ended = true;
    end->kept = keep;
    end->synced_before = synced.count;
    return NG_OK;
}

static const struct ng_documents none = {
    .name = "none",
    .version = "1",
    .export_all = none_export,
    .import_begin = none_begin,
    .import_record = none_record,
    .import_end = none_end,
};

/* ---- an archive in memory ---- */

struct text {
    struct buf buf;
    size_t at;
};

static int text_put(void *user, struct ng_str bytes)
{
    struct text *text = user;
    return buf_add_str(&text->buf, bytes);
}

static int text_get(void *user, char *to, size_t room, size_t *ret_len)
{
    struct text *text = user;
    size_t len = text->buf.len - text->at < room ? text->buf.len - text->at : room;
    memcpy(to, buf_cstr(&text->buf) + text->at, len);
    text->at += len;
    *ret_len = len;
    return NG_OK;
}

static int text_rewind(void *user)
{
    struct text *text = user;
    text->at = 0;
    return NG_OK;
}

static int restore(struct harness *harness, struct text *text, const char *root,
                   struct store_end *end, struct buf *error)
{
    const struct ng_str roots[] = {ng_str_of(root)};
    struct unpack *unpack = NULL;
    struct archive_counts counts;
    const struct archive_source source = {.get = text_get, .rewind = text_rewind, .user = text};
    memset(end, 0, sizeof(*end));
    text->at = 0;
    assert_int_equal(unpack_new(roots, 1, roots[0], &unpack, error), NG_OK);
    struct archive_origin into = {.backend = &none, .db = end, .unpack = unpack};
    struct call *call = harness_new_call(harness);
    int rc = archive_restore(&into, call, &source, &counts, error);
    call_unref(call);
    unpack_free(unpack);
    return rc;
}

static void test_files_are_synced_first(void **state)
{
    const char *sets[] = {"plugins=file_editor", NULL};
    struct harness harness;
    struct text text = {.at = 0};
    struct archive_counts counts;
    struct store_end end;
    struct buf error;
    struct stat info;
    char root[300];
    char args[600];
    (void)state;
    harness_open(&harness, sets);
    (void)snprintf(args, sizeof(args),
                   "{\"command\":\"create\",\"path\":\"%s/files/a/b.txt\",\"file_text\":\"b\"}",
                   harness.dir);
    struct answer answer = harness_call(&harness, "fileEditor", args);
    assert_int_equal(answer.rc, NG_OK);
    answer_free(&answer);
    buf_init(&text.buf, TEXT_MAX);
    buf_init(&error, TEXT_MAX);
    struct archive_origin from = {.backend = &none, .files = harness.gateway->files};
    struct call *call = harness_new_call(&harness);
    assert_int_equal(archive_write(&from, call, 0, text_put, &text, &counts), NG_OK);
    call_unref(call);

    (void)snprintf(root, sizeof(root), "%s/restored", harness.dir);
    (void)snprintf(synced.file, sizeof(synced.file), "%s/a/b.txt", root);
    assert_int_equal(restore(&harness, &text, root, &end, &error), NG_OK);
    assert_true(end.kept);
    assert_int_equal(end.synced_before, 1);
    assert_true(synced.file_was_there);
    assert_int_equal(stat(root, &info), 0);
    assert_true(synced.device == info.st_dev);

    /* Once more, where all of it was made before: the restore before may have got no further.
     */
    assert_int_equal(restore(&harness, &text, root, &end, &error), NG_OK);
    assert_int_equal(end.synced_before, 2);

    synced.fails = true;
    assert_int_equal(restore(&harness, &text, root, &end, &error), NG_EFAILED);
    assert_non_null(strstr(buf_cstr(&error), "cannot be synced to the disk"));
    assert_true(end.ended);
    assert_false(end.kept);
    buf_done(&error);
    buf_done(&text.buf);
    harness_close(&harness);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_files_are_synced_first),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
