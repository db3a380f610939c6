/* SPDX-License-Identifier: MIT */
/* test_files_own.c - the gateway's own files are no root and cannot be reached; a root whose
 * folder is replaced is followed.
 */
#include "test_files_rig.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/base/str.h"
#include "core/call/plugin.h"
#include "core/files/files_state.h"

#define VIEW "\"command\":\"view\""
#define SPARE_MAX 12 /* descriptors */

/* ---- the moment before a save gets its name: this stands before libc's own */

static struct {
    atomic_bool armed;
    char root[PATH_SIZE], old[PATH_SIZE];
} swap;

#pragma GCC visibility push(default)
/* NOLINTBEGIN(readability-inconsistent-declaration-parameter-name): libc's are reserved */

int renameat2(int from_dir, const char *from, int to_dir, const char *to, unsigned int flags)
{
    size_t ending = strlen(FILES_TEMP_COMPLETE);
    bool saves =
        strlen(from) > ending && strcmp(from + strlen(from) - ending, FILES_TEMP_COMPLETE) == 0;
    if (saves && atomic_exchange(&swap.armed, false)) {
        (void)rename(swap.root, swap.old);
        (void)mkdir(swap.root, S_IRWXU);
    }
    return (int)syscall(SYS_renameat2, from_dir, from, to_dir, to, flags);
}

/* NOLINTEND(readability-inconsistent-declaration-parameter-name) */
#pragma GCC visibility pop

/* A path beside the data directory; what is there goes with a folder of its own. */
static struct ng_str beside(struct harness *harness, char *path, const char *name)
{
    (void)snprintf(path, PATH_SIZE, "%s%s", harness->dir, name);
    return ng_str_of(path);
}

static struct ng_str in_data(struct harness *harness, char *path, const char *name)
{
    (void)snprintf(path, PATH_SIZE, "%s/%s", harness->dir, name);
    return ng_str_of(path);
}

static void write_file(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    (void)close(fd);
}

static void refused(struct harness *harness, const struct files_own *own, const char *root,
                    const char *how, const char *other)
{
    struct call *call = harness_new_call(harness);
    struct ng_str text = ng_str_of(root);
    int rc = files_set_roots(harness->gateway->files, call, &text, 1, own);
    if (rc != NG_EINVAL || strstr(call->staged.message.data, how) == NULL ||
        strstr(call->staged.message.data, root) == NULL ||
        strstr(call->staged.message.data, other) == NULL) {
        fail_msg("%s: %d %.*s", root, rc, (int)call->staged.message.len,
                 call->staged.message.data);
    }
    call_unref(call);
}

static void taken(struct harness *harness, const struct files_own *own, const char *root)
{
    struct call *call = harness_new_call(harness);
    struct ng_str text = ng_str_of(root);
    if (files_set_roots(harness->gateway->files, call, &text, 1, own) != NG_OK) {
        fail_msg("%s: %.*s", root, (int)call->staged.message.len, call->staged.message.data);
    }
    call_unref(call);
}

static void test_roots_that_are_refused(void **state)
{
    struct harness *harness = *state;
    const char *data = harness->dir;
    char above[PATH_SIZE];
    char path[PATH_SIZE];
    char link[PATH_SIZE];
    char conf[PATH_SIZE];
    const struct files_own own = {.data_dir = data};
    (void)snprintf(above, sizeof(above), "%s", data);
    *strrchr(above, '/') = '\0';
    refused(harness, &own, data, " is the data directory ", data);
    refused(harness, &own, above, " holds the data directory ", data);
    refused(harness, &own, "/", " holds the data directory ", data);
    static const char *const within[] = {"sub", "sub/sub", "files", "files/sub"};
    for (size_t i = 0; i < NG_COUNT(within); i++) {
        bool own_place = i >= 2;
        const char *root = in_data(harness, path, within[i]).data;
        assert_true(mkdir(root, 0700) == 0 || errno == EEXIST);
        if (own_place) {
            taken(harness, &own, root);
        } else {
            refused(harness, &own, root, " lies in the data directory ", data);
        }
    }
    /* By another name. */
    (void)beside(harness, link, ".link");
    assert_int_equal(symlink(above, link), 0);
    refused(harness, &own, link, " holds the data directory ", data);
    assert_int_equal(unlink(link), 0);
    /* The configuration file and the key: where they are named, and where they lie. */
    (void)in_root(harness, path, "conf");
    assert_int_equal(mkdir(path, 0700), 0);
    (void)in_root(harness, conf, "conf/key.pem");
    write_file(conf, "key");
    (void)beside(harness, link, ".key");
    assert_int_equal(symlink(conf, link), 0);
    const struct files_own named = {.data_dir = data, .tls_key = ng_str_of(link)};
    refused(harness, &named, path, " holds the TLS key ", link);
    const struct files_own config = {.data_dir = data, .config_file = ng_str_of(conf)};
    refused(harness, &config, path, " holds the configuration file ", conf);
    refused(harness, &config, in_data(harness, path, "files").data,
            " holds the configuration file ", conf);
    (void)in_root(harness, path, "sub");
    taken(harness, &config, path);
    assert_int_equal(unlink(link), 0);
}

/* A folder that a plugin serves is held to the same. */
static void test_folder_that_is_refused(void **state)
{
    struct harness *harness = *state;
    struct call *call = harness_new_call(harness);
    struct plugin owner = {.desc = {.name = "owner"}};
    char path[PATH_SIZE];
    call->plugin = &owner;
    call->may_block = true;
    assert_int_equal(files_add_folder(harness->gateway->files, call, ng_str_of(harness->dir)),
                     NG_EINVAL);
    assert_non_null(strstr(call->staged.message.data, " is the data directory "));
    (void)in_data(harness, path, "other");
    assert_int_equal(mkdir(path, 0700), 0);
    assert_int_equal(files_add_folder(harness->gateway->files, call, ng_str_of(path)),
                     NG_EINVAL);
    (void)in_data(harness, path, "owner");
    assert_int_equal(mkdir(path, 0700), 0);
    assert_int_equal(files_add_folder(harness->gateway->files, call, ng_str_of(path)), NG_OK);
    call_unref(call);
}

static int count_entry(void *user, const struct ng_file_entry *entry)
{
    (void)entry;
    ++*(size_t *)user;
    return 0;
}

static size_t entries(struct harness *harness)
{
    struct call *call = harness_new_call(harness);
    char path[PATH_SIZE];
    size_t count = 0;
    struct ng_file_list list = {
        .size = sizeof(list), .path = in_root(harness, path, ""), .depth = 3};
    call->may_block = true;
    assert_int_equal(files_list(harness->gateway->files, call, &list, count_entry, &count),
                     NG_OK);
    call_unref(call);
    return count;
}

static void closed(struct harness *harness, const char *name)
{
    char args[2 * PATH_SIZE];
    edit_fails(harness, VIEW, name, "PATH_OUTSIDE_ROOTS", "");
    edit_fails(harness, APPEND, name, "PATH_OUTSIDE_ROOTS", "");
    (void)snprintf(args, sizeof(args), "\"command\":\"move\",\"destination\":\"%s/files/out\"",
                   harness->dir);
    edit_fails(harness, args, name, "PATH_OUTSIDE_ROOTS", "");
}

static void test_links_and_hard_links(void **state)
{
    struct harness *harness = *state;
    char path[PATH_SIZE];
    char real[PATH_SIZE];
    (void)in_root(harness, path, "soft");
    assert_int_equal(symlink(harness->dir, path), 0);
    closed(harness, "soft/notegate.db");
    edit_fails(harness, CREATE, "soft/new", "PATH_OUTSIDE_ROOTS", "");
    size_t before = entries(harness);
    (void)in_data(harness, real, "notegate.db");
    (void)in_root(harness, path, "hard.bin");
    assert_int_equal(link(real, path), 0);
    closed(harness, "hard.bin");
    assert_int_equal(entries(harness), before);
    /* A file of several names that is none of the gateway's is a file as any other. */
    put(harness, "one", "a\n");
    (void)in_root(harness, real, "one");
    (void)in_root(harness, path, "two");
    assert_int_equal(link(real, path), 0);
    edit_works(harness, VIEW, "two");
    assert_int_equal(entries(harness), before + 2);
}

/* The key as it is by now counts, not as it was at the start. */
/* One that cannot be compared for want of descriptors is not called the gateway's own. */
static void test_hard_link_without_descriptors(void **state)
{
    struct harness *harness = *state;
    char path[PATH_SIZE];
    char second[PATH_SIZE];
    struct rlimit whole;
    size_t unknown = 0;
    put(harness, "f", "text");
    (void)in_root(harness, path, "f");
    (void)in_root(harness, second, "g");
    assert_int_equal(link(path, second), 0);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &whole), 0);
    for (rlim_t spare = 0; spare < SPARE_MAX; spare++) {
        int next = open("/dev/null", O_RDONLY | O_CLOEXEC);
        const struct rlimit few = {(rlim_t)next + spare, whole.rlim_max};
        assert_int_equal(close(next), 0);
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
        struct answer answer = edit(harness, VIEW, "f");
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &whole), 0);
        if (answer.rc != NG_OK) {
            assert_null(strstr(answer.message, "leads to the gateway's own files"));
            unknown += strstr(answer.message, "cannot be compared") != NULL;
        }
        answer_free(&answer);
    }
    assert_true(unknown > 0);
}

static void test_hard_link_to_a_renewed_key(void **state)
{
    struct harness *harness = *state;
    char key[PATH_SIZE];
    char fresh[PATH_SIZE];
    char path[PATH_SIZE];
    (void)in_data(harness, key, "tls.key");
    (void)in_data(harness, fresh, "files/fresh");
    write_file(key, "old\n");
    const struct files_own own = {.data_dir = NULL, .tls_key = ng_str_of(key)};
    taken(harness, &own, in_root(harness, path, "").data);
    write_file(fresh, "renewed\n");
    assert_int_equal(rename(fresh, key), 0);
    (void)in_root(harness, path, "copy");
    assert_int_equal(link(key, path), 0);
    closed(harness, "copy");
}

static void test_bind_mounts(void **state)
{
    struct harness *harness = *state;
    char path[PATH_SIZE];
    char file[PATH_SIZE];
    char real[PATH_SIZE];
    (void)in_root(harness, path, "bind");
    assert_int_equal(mkdir(path, 0700), 0);
    if (mount(harness->dir, path, NULL, MS_BIND, NULL) != 0) {
        skip();
    }
    closed(harness, "bind/notegate.db");
    edit_fails(harness, VIEW, "bind", "PATH_OUTSIDE_ROOTS", "");
    edit_fails(harness, CREATE, "bind/new", "PATH_OUTSIDE_ROOTS", "");
    edit_fails(harness, CREATE, "bind/a/b/new", "PATH_OUTSIDE_ROOTS", "");
    assert_int_equal(entries(harness), 0);
    const struct files_own own = {.data_dir = harness->dir};
    refused(harness, &own, path, " is the data directory ", harness->dir);
    assert_int_equal(umount(path), 0);
    /* Its parent folders, including the root itself. */
    (void)snprintf(real, sizeof(real), "%s", harness->dir);
    char *slash = strrchr(real, '/');
    *slash = '\0';
    assert_int_equal(mount(real, path, NULL, MS_BIND, NULL), 0);
    (void)snprintf(file, sizeof(file), "bind/%s/notegate.db", slash + 1);
    closed(harness, file);
    assert_int_equal(umount(path), 0);
    /* A folder and a file of it. */
    (void)in_data(harness, real, "inner");
    assert_int_equal(mkdir(real, 0700), 0);
    assert_int_equal(mount(real, path, NULL, MS_BIND, NULL), 0);
    edit_fails(harness, CREATE, "bind/new", "PATH_OUTSIDE_ROOTS", "");
    refused(harness, &own, path, " lies in the data directory ", harness->dir);
    assert_int_equal(umount(path), 0);
    put(harness, "db", "");
    (void)in_root(harness, path, "db");
    (void)in_data(harness, real, "notegate.db");
    assert_int_equal(mount(real, path, NULL, MS_BIND, NULL), 0);
    closed(harness, "db");
    assert_int_equal(umount(path), 0);
    edit_works(harness, VIEW, "db");
}

/* ---- replaced */

static void test_root_that_is_replaced(void **state)
{
    struct harness *harness = *state;
    char root[PATH_SIZE];
    char old[PATH_SIZE];
    (void)in_data(harness, root, "files");
    (void)beside(harness, old, ".old");
    put(harness, "f", "old\n");
    edit_works(harness, VIEW, "f");
    assert_int_equal(rename(root, old), 0);
    edit_fails(harness, VIEW, "f", "BACKEND_UNAVAILABLE", "is not there any more");
    edit_fails(harness, CREATE, "g", "BACKEND_UNAVAILABLE", "is not there any more");
    assert_int_equal(access(root, F_OK), -1); /* nothing was made */
    assert_int_equal(mkdir(root, 0700), 0);
    put(harness, "f", "fresh\n");
    edit_works(harness, APPEND, "f");
    has(harness, "f", "fresh\nx\n");
    edit_works(harness, CREATE, "g");
    has(harness, "g", "new");
    edit_works(harness, UNDO, "f");
    has(harness, "f", "fresh\n");
    assert_int_equal(count_intents(harness), 0);
    /* And back: the same folder as before. */
    char aside[PATH_SIZE];
    (void)beside(harness, aside, ".aside");
    assert_int_equal(rename(root, aside), 0);
    assert_int_equal(rename(old, root), 0);
    edit_works(harness, APPEND, "f");
    has(harness, "f", "old\nx\n");
    assert_null(get(harness, "g"));
    char command[2 * PATH_SIZE];
    (void)snprintf(command, sizeof(command), "rm -rf '%s'", aside);
    assert_int_equal(system(command), 0); /* NOLINT(cert-env33-c): a test */
}

/* A root that is named by a link is where the link leads by now. */
static void test_root_whose_link_is_turned(void **state)
{
    struct harness *harness = *state;
    struct call *call = harness_new_call(harness);
    const struct files_own own = {.data_dir = harness->dir};
    struct ng_file file = {.size = sizeof(file)};
    char link[PATH_SIZE];
    char path[PATH_SIZE];
    char named[PATH_SIZE + 8];
    call->may_block = true;
    (void)in_root(harness, path, "v1");
    assert_int_equal(mkdir(path, 0700), 0);
    (void)in_data(harness, link, "current");
    assert_int_equal(symlink(path, link), 0);
    taken(harness, &own, link);
    (void)in_root(harness, path, "v2");
    assert_int_equal(mkdir(path, 0700), 0);
    put(harness, "v2/f", "x");
    (void)snprintf(named, sizeof(named), "%s/f", link);
    assert_int_equal(files_stat(harness->gateway->files, call, ng_str_of(named), &file), NG_OK);
    assert_int_equal(file.type, NG_FILE_NONE);
    assert_int_equal(unlink(link), 0);
    assert_int_equal(symlink(path, link), 0);
    assert_int_equal(files_stat(harness->gateway->files, call, ng_str_of(named), &file), NG_OK);
    assert_int_equal(file.type, NG_FILE_REGULAR);
    (void)in_root(harness, path, "v2/f");
    assert_string_equal(file.real.data, path);
    call_unref(call);
}

static void test_root_that_is_mounted_over(void **state)
{
    struct harness *harness = *state;
    char root[PATH_SIZE];
    (void)in_data(harness, root, "files");
    put(harness, "below", "x\n");
    if (mount("none", root, "tmpfs", 0, "size=1m") != 0) {
        skip();
    }
    edit_fails(harness, VIEW, "below", "NOT_FOUND", "does not exist");
    edit_works(harness, CREATE, "above");
    has(harness, "above", "new");
    assert_int_equal(umount2(root, MNT_DETACH), 0); /* its roots are open */
    edit_works(harness, VIEW, "below");
    edit_fails(harness, VIEW, "above", "NOT_FOUND", "does not exist");
}

/* A write into the old folder is not acknowledged, but repeated. */
static void test_root_that_is_replaced_in_a_save(void **state)
{
    struct harness *harness = *state;
    char path[PATH_SIZE];
    put(harness, "f", "a\n");
    (void)in_data(harness, swap.root, "files");
    (void)in_data(harness, swap.old, "files.old");
    atomic_store(&swap.armed, true);
    edit_works(harness, CREATE, "new");
    assert_false(atomic_load(&swap.armed));
    has(harness, "new", "new");
    assert_int_equal(count_intents(harness), 0);
    put(harness, "g", "a\n");
    (void)in_data(harness, swap.old, "files.older");
    atomic_store(&swap.armed, true);
    edit_fails(harness, APPEND, "g", "NOT_FOUND", "does not exist");
    assert_false(atomic_load(&swap.armed));
    assert_null(get(harness, "g"));
    assert_int_equal(count_intents(harness), 0);
    assert_int_equal(count_temps(harness), 0);
    (void)in_data(harness, path, "files.old/f");
    assert_int_equal(access(path, F_OK), 0);
}

#define SWAPS 40
#define SAVERS 4

struct swapping {
    struct harness *harness;
    atomic_uint begun, done; /* swaps of the folder */
    atomic_uint saver;
    atomic_bool lost;
    char folder[PATH_SIZE];
};

static void folder_of(const struct swapping *swapping, unsigned number, char *path)
{
    (void)snprintf(path, PATH_SIZE, "%s/swap/%u", swapping->harness->dir, number);
}

/* In the folder that is the root just now, or in one that was. */
static bool is_in(const struct swapping *swapping, unsigned from, unsigned to, const char *name)
{
    char folder[PATH_SIZE];
    char path[PATH_SIZE + 80];
    (void)snprintf(path, sizeof(path), "%s/%s", swapping->folder, name);
    bool found = access(path, F_OK) == 0;
    for (unsigned number = from; number <= to && !found; number++) {
        folder_of(swapping, number, folder);
        (void)snprintf(path, sizeof(path), "%s/%s", folder, name);
        found = access(path, F_OK) == 0;
    }
    return found;
}

/* Each file that was acknowledged lies in a folder that was the root while it was saved. */
static void *save_files(void *user)
{
    struct swapping *swapping = user;
    unsigned saver = atomic_fetch_add(&swapping->saver, 1);
    for (unsigned i = 0; atomic_load(&swapping->done) < SWAPS; i++) {
        char name[64];
        (void)snprintf(name, sizeof(name), "f%u-%u", saver, i);
        unsigned from = atomic_load(&swapping->done);
        struct answer answer = edit(swapping->harness, CREATE, name);
        unsigned to = atomic_load(&swapping->begun);
        /* Twice: the folder may get its number between the looks. */
        bool found = answer.rc != NG_OK || is_in(swapping, from, to, name) ||
                     is_in(swapping, from, to, name);
        if (!found) {
            atomic_store(&swapping->lost, true);
        }
        answer_free(&answer);
    }
    return NULL;
}

static void test_saves_while_a_root_is_replaced(void **state)
{
    struct harness *harness = *state;
    struct swapping swapping = {.harness = harness};
    pthread_t threads[SAVERS];
    char old[PATH_SIZE];
    (void)in_data(harness, old, "swap");
    assert_int_equal(mkdir(old, 0700), 0);
    (void)in_data(harness, swapping.folder, "files");
    for (size_t i = 0; i < SAVERS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, save_files, &swapping), 0);
    }
    for (unsigned number = 0; number < SWAPS; number++) {
        pause_us(3000);
        folder_of(&swapping, number, old);
        atomic_store(&swapping.begun, number + 1);
        assert_int_equal(rename(swapping.folder, old), 0);
        assert_int_equal(mkdir(swapping.folder, 0700), 0);
        atomic_store(&swapping.done, number + 1);
    }
    for (size_t i = 0; i < SAVERS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    }
    assert_false(atomic_load(&swapping.lost));
    assert_int_equal(count_intents(harness), 0);
}

/* A folder that becomes a root only now is looked at as at the start. */
static void test_replaced_by_what_is_closed(void **state)
{
    struct harness *harness = *state;
    char link[PATH_SIZE];
    char path[PATH_SIZE];
    const struct files_own own = {.data_dir = harness->dir};
    struct call *call = harness_new_call(harness);
    struct ng_file file = {.size = sizeof(file)};
    call->may_block = true;
    (void)in_data(harness, link, "current");
    assert_int_equal(symlink(in_data(harness, path, "files").data, link), 0);
    taken(harness, &own, link);
    assert_int_equal(unlink(link), 0);
    assert_int_equal(symlink(harness->dir, link), 0);
    (void)in_data(harness, path, "current/notegate.db");
    assert_int_equal(files_stat(harness->gateway->files, call, ng_str_of(path), &file),
                     NG_EINVAL);
    assert_non_null(strstr(call->staged.message.data, " is the data directory "));
    call_unref(call);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_roots_that_are_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(test_folder_that_is_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(test_links_and_hard_links, setup, teardown),
        cmocka_unit_test_setup_teardown(test_hard_link_without_descriptors, setup, teardown),
        cmocka_unit_test_setup_teardown(test_hard_link_to_a_renewed_key, setup, teardown),
        cmocka_unit_test_setup_teardown(test_bind_mounts, setup, teardown),
        cmocka_unit_test_setup_teardown(test_root_that_is_replaced, setup, teardown),
        cmocka_unit_test_setup_teardown(test_root_whose_link_is_turned, setup, teardown),
        cmocka_unit_test_setup_teardown(test_root_that_is_mounted_over, setup, teardown),
        cmocka_unit_test_setup_teardown(test_replaced_by_what_is_closed, setup, teardown),
        cmocka_unit_test_setup_teardown(test_root_that_is_replaced_in_a_save, setup, teardown),
        cmocka_unit_test_setup_teardown(test_saves_while_a_root_is_replaced, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
