/* SPDX-License-Identifier: MIT */
/* test_files.c - locks, and what plugins are promised: events, roots, folders, lists, undo.
 */
#include "test_files_rig.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/str.h"
#include "core/base/utf8.h"
#include "core/files/files_state.h"
#include "core/module/registry.h"

static int count_entry(void *user, const struct ng_file_entry *entry)
{
    (void)entry;
    ++*(size_t *)user;
    return 0;
}

/* ---- locks */

static void test_waits_for_other_processes(void **state)
{
    struct harness *harness = *state;
    char path[PATH_SIZE];
    int pipes[2];
    put(harness, "f", "a\n");
    (void)in_root(harness, path, "f");
    assert_int_equal(pipe(pipes), 0);
    pid_t pid = fork();
    if (pid == 0) {
        int fd = open(path, O_RDWR | O_CLOEXEC);
        bool held = fd >= 0 && flock(fd, LOCK_EX) == 0 && write(pipes[1], "x", 1) == 1;
        pause_us(200000);
        /* Saves in place, then lets go. */
        _exit(held && pwrite(fd, "b\n", 2, 0) == 2 ? 0 : 1);
    }
    char byte;
    assert_int_equal(read(pipes[0], &byte, 1), 1);
    edit_works(harness, APPEND, "f");
    int status = 1;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    has(harness, "f", "b\nx\n");
    (void)close(pipes[0]);
    (void)close(pipes[1]);
}

/* ---- what plugins are promised */

static void test_never_blocks_a_loop(void **state)
{
    struct harness *harness = *state;
    struct call *call = harness_new_call(harness);
    struct files *files = harness->gateway->files;
    struct ng_file file = {.size = sizeof(file)};
    struct ng_file_list list = {.size = sizeof(list)};
    struct ng_file_edit change = {.size = sizeof(change)};
    struct ng_file_transfer transfer = {.size = sizeof(transfer)};
    struct ng_file_undo undo = {.size = sizeof(undo)};
    struct ng_str path = ng_str_of("/x");
    call->may_block = false;
    assert_int_equal(files_stat(files, call, path, &file), NG_EWOULDBLOCK);
    assert_int_equal(files_read(files, call, path, 0, &file), NG_EWOULDBLOCK);
    assert_int_equal(files_stream(files, call, path, NULL, NULL, &file), NG_EWOULDBLOCK);
    assert_int_equal(files_list(files, call, &list, NULL, NULL), NG_EWOULDBLOCK);
    assert_int_equal(files_edit(files, call, &change), NG_EWOULDBLOCK);
    assert_int_equal(files_transfer(files, call, &transfer), NG_EWOULDBLOCK);
    assert_int_equal(files_undo(files, call, &undo), NG_EWOULDBLOCK);
    call_unref(call);
}

static void test_stat_and_read(void **state)
{
    struct harness *harness = *state;
    char path[PATH_SIZE];
    struct files *files = harness->gateway->files;
    struct call *call = harness_new_call(harness);
    struct ng_file file = {.size = sizeof(file)};
    call->may_block = true;
    put(harness, "f", "bytes");
    assert_int_equal(files_stat(files, call, in_root(harness, path, "f"), &file), NG_OK);
    assert_int_equal(file.type, NG_FILE_REGULAR);
    assert_int_equal(file.bytes, 5);
    assert_int_equal(file.mode, 0644);
    assert_true(str_is(file.space, "shared"));
    assert_true(str_is(file.real, path));
    assert_null(file.revision.data);
    assert_int_equal(files_read(files, call, ng_str_of(path), 5, &file), NG_OK);
    assert_true(str_is(file.data, "bytes"));
    /* The first 128 bits of SHA-256 of "bytes". */
    assert_true(str_is(file.revision, "277089d91c0bdf4f2e6862ba7e4a0760"));
    assert_int_equal(files_read(files, call, ng_str_of(path), 4, &file), NG_ETOOLARGE);
    assert_int_equal(files_stat(files, call, in_root(harness, path, "no/such"), &file), NG_OK);
    assert_int_equal(file.type, NG_FILE_NONE);
    assert_int_equal(files_read(files, call, ng_str_of(path), 4, &file), NG_ENOTFOUND);
    assert_int_equal(files_stat(files, call, in_root(harness, path, ""), &file), NG_OK);
    assert_int_equal(file.type, NG_FILE_DIRECTORY);
    assert_int_equal(files_stat(files, call, ng_str_of("/etc"), &file), NG_EOUTSIDE);
    assert_int_equal(files_stat(files, call, ng_str_of("etc"), &file), NG_EINVAL);
    call_unref(call);
}

static bool is_there(struct harness *harness, const char *name)
{
    char path[PATH_SIZE];
    return access(in_root(harness, path, name).data, F_OK) == 0;
}

/* Only those that are empty, up to the given one, and no root. */
static void test_dropped_folders(void **state)
{
    struct harness *harness = *state;
    struct files *files = harness->gateway->files;
    struct call *call = harness_new_call(harness);
    char path[PATH_SIZE];
    char top[PATH_SIZE];
    call->may_block = true;
    edit_works(harness, CREATE, "a/b/c/f");
    edit_works(harness, CREATE, "a/b/g");
    const struct ng_str gone = in_root(harness, path, "a/b/c/f");
    files_drop_folders(files, call, gone, in_root(harness, top, "a"));
    assert_true(is_there(harness, "a/b/c/f"));
    assert_int_equal(unlink(path), 0);
    files_drop_folders(files, call, gone, in_root(harness, top, "a/b/x"));
    assert_true(is_there(harness, "a/b/c")); /* not below it */
    files_drop_folders(files, call, gone, in_root(harness, top, "a"));
    assert_false(is_there(harness, "a/b/c"));
    assert_true(is_there(harness, "a/b/g"));
    files_drop_folders(files, call, gone, in_root(harness, top, "a"));
    assert_int_equal(unlink(in_root(harness, top, "a/b/g").data), 0);
    files_drop_folders(files, call, gone, in_root(harness, top, "a/b"));
    assert_false(is_there(harness, "a/b")); /* also behind one that is gone */
    assert_true(is_there(harness, "a"));
    files_drop_folders(files, call, gone, ng_str_of(harness->dir));
    assert_false(is_there(harness, "a"));
    assert_true(is_there(harness, ""));
    call_unref(call);
}

struct told {
    char text[4096];
    size_t len;
};

static int tell(void *user, const struct ng_event *event)
{
    struct told *told = user;
    const char *name = strrchr(event->key.id.data, '/');
    size_t len = event->key.id.len - (size_t)(name - event->key.id.data);
    if (str_is(event->key.collection, FILES_EVENTS)) {
        told->len += (size_t)snprintf(
            told->text + told->len, sizeof(told->text) - told->len, "%.*s %.*s%s\n", (int)len,
            name, (int)event->action.len, event->action.data,
            event->data.len > 0 && strstr(event->data.data, "\"revision\":\"") != NULL
                ? " with revision"
                : "");
    }
    return 0;
}

static void test_events(void **state)
{
    struct harness *harness = *state;
    struct told told = {.len = 0};
    char args[PATH_SIZE];
    struct call *call = harness_new_call(harness);
    call->may_block = true;
    edit_works(harness, CREATE, "f");
    edit_works(harness, APPEND, "f");
    (void)snprintf(args, sizeof(args), "\"command\":\"move\",\"destination\":\"%s/files/g\"",
                   harness->dir);
    edit_works(harness, args, "f");
    edit_works(harness, UNDO, "g");
    edit_works(harness, UNDO, "f");
    edit_works(harness, UNDO, "f");
    put(harness, "old", "x");
    edit_works(harness, APPEND, "old");
    put(harness, "other", "x"); /* it has not been reported yet */
    (void)snprintf(args, sizeof(args), "\"command\":\"move\",\"destination\":\"%s/files/to\"",
                   harness->dir);
    edit_works(harness, args, "other");
    assert_int_equal(store_changes(harness->gateway->store, call, 0, 1000, tell, &told), NG_OK);
    assert_string_equal(told.text, "/f created with revision\n"
                                   "/f updated with revision\n"
                                   "/g moved with revision\n/f deleted\n"
                                   "/f moved with revision\n/g deleted\n"
                                   "/f updated with revision\n"
                                   "/f deleted\n"
                                   "/old updated with revision\n"
                                   "/to moved with revision\n/other deleted\n");
    call_unref(call);
}

static void test_roots_of_other_spaces(void **state)
{
    struct harness *harness = *state;
    char path[PATH_SIZE];
    char secret[PATH_SIZE];
    char text[PATH_SIZE + 16];
    struct files *files = harness->gateway->files;
    struct call *call = harness_new_call(harness);
    const struct files_own own = {.data_dir = harness->dir};
    struct ng_file file = {.size = sizeof(file)};
    call->may_block = true;
    struct ng_str shared = in_root(harness, path, "");
    (void)in_root(harness, secret, "secret");
    (void)snprintf(text, sizeof(text), "team:%s", secret);
    /* A root that is named must be there. */
    struct ng_str missing[] = {shared, ng_str_of(text)};
    assert_int_equal(files_set_roots(files, call, missing, 2, &own), NG_ENOTFOUND);
    assert_int_equal(access(secret, F_OK), -1);
    call_reset_result(call);
    assert_int_equal(mkdir(secret, 0700), 0);
    struct ng_str roots[] = {shared, ng_str_of(text)};
    assert_int_equal(files_set_roots(files, call, roots, 2, &own), NG_OK);
    put(harness, "secret/f", "x");
    (void)in_root(harness, path, "link");
    assert_int_equal(symlink("secret/f", path), 0);
    (void)in_root(harness, secret, "secret/f");
    assert_int_equal(files_stat(files, call, ng_str_of(secret), &file), NG_OK);
    assert_true(str_is(file.space, "team"));
    const struct ng_str *seen = NULL;
    assert_int_equal(files_roots(files, call, &seen), 2);
    /* A caller of the space "shared" alone: not directly, not by a link, not in a listing. */
    call->caller.all_spaces = false;
    assert_int_equal(files_roots(files, call, &seen), 1);
    assert_int_equal(files_stat(files, call, ng_str_of(secret), &file), NG_EOUTSIDE);
    assert_int_equal(files_stat(files, call, ng_str_of(path), &file), NG_EOUTSIDE);
    /* Nor does what is refused tell what is there, or go through it. */
    static const char *const probes[] = {
        "secret/none",       "secret/f/x",      "secret/./f",         "./secret/none",
        "secret/none/../f",  "secret/f/../f",   "secret/../secret/f", "secret/f/../../link",
        "secret/none/../..", "./secret/a/../f", "./secret/f/../f",
    };
    for (size_t i = 0; i < NG_COUNT(probes); i++) {
        (void)in_root(harness, secret, probes[i]);
        assert_int_equal(files_stat(files, call, ng_str_of(secret), &file), NG_EOUTSIDE);
    }
    size_t count = 0;
    struct ng_file_list list = {.size = sizeof(list), .path = shared, .depth = 5};
    (void)in_root(harness, path, "");
    assert_int_equal(files_list(files, call, &list, count_entry, &count), NG_OK);
    assert_int_equal(count, 1); /* the link, shown and leading nowhere */
    /* An open root in a closed one is reached however it is written. */
    (void)snprintf(text, sizeof(text), "team:%s", path);
    char inner[PATH_SIZE];
    struct ng_str nested[] = {ng_str_of(text), in_root(harness, inner, "secret")};
    assert_int_equal(files_set_roots(files, call, nested, 2, &own), NG_OK);
    (void)in_root(harness, secret, "./secret/f");
    assert_int_equal(files_stat(files, call, ng_str_of(secret), &file), NG_OK);
    (void)in_root(harness, secret, "./none");
    assert_int_equal(files_stat(files, call, ng_str_of(secret), &file), NG_EOUTSIDE);
    call_unref(call);
}

/* A plugin's folder is a root for that plugin's calls alone; its space closes it to all. */
static void test_folders_of_a_plugin(void **state)
{
    struct harness *harness = *state;
    char path[PATH_SIZE];
    char notes[PATH_SIZE];
    char inner[PATH_SIZE];
    char text[PATH_SIZE + 16];
    struct files *files = harness->gateway->files;
    struct call *mine = harness_new_call(harness);
    struct call *other = harness_new_call(harness);
    struct plugin owner = {.desc = {.name = "owner"}};
    struct ng_file file = {.size = sizeof(file)};
    const struct ng_str *seen = NULL;
    mine->plugin = &owner;
    mine->may_block = true;
    other->may_block = true;
    const struct files_own own = {.data_dir = harness->dir};
    (void)snprintf(notes, sizeof(notes), "%s/owner", harness->dir); /* a folder of its own */
    assert_int_equal(files_add_folder(files, mine, ng_str_of(notes)), NG_ENOTFOUND);
    assert_int_equal(access(notes, F_OK), -1);
    assert_int_equal(files_stat(files, mine, ng_str_of(notes), &file), NG_EOUTSIDE);
    assert_int_equal(mkdir(notes, 0700), 0);
    assert_int_equal(files_add_folder(files, mine, ng_str_of(notes)), NG_OK);
    assert_int_equal(files_stat(files, mine, ng_str_of(notes), &file), NG_OK);
    assert_true(str_is(file.space, "shared"));
    assert_int_equal(files_stat(files, other, ng_str_of(notes), &file), NG_EOUTSIDE);
    assert_int_equal(files_roots(files, mine, &seen), 1);
    /* Inside a root: that plugin's own, and for others a part of the root as before. */
    (void)in_root(harness, inner, "inner");
    assert_int_equal(mkdir(inner, 0700), 0);
    put(harness, "inner/f", "x");
    (void)snprintf(text, sizeof(text), "team:%s", inner);
    assert_int_equal(files_add_folder(files, mine, ng_str_of(text)), NG_OK);
    (void)in_root(harness, path, "inner/f");
    assert_int_equal(files_stat(files, mine, ng_str_of(path), &file), NG_OK);
    assert_true(str_is(file.space, "team"));
    assert_int_equal(files_stat(files, other, ng_str_of(path), &file), NG_OK);
    assert_true(str_is(file.space, "shared"));
    /* A caller that may not see the space does not get there, whichever plugin it uses. */
    mine->caller.all_spaces = false;
    other->caller.all_spaces = false;
    assert_int_equal(files_stat(files, mine, ng_str_of(path), &file), NG_EOUTSIDE);
    assert_int_equal(files_stat(files, other, ng_str_of(path), &file), NG_EOUTSIDE);
    assert_int_equal(files_stat(files, mine, ng_str_of(notes), &file), NG_OK);
    /* A reload keeps them. */
    struct ng_str root = in_root(harness, path, "");
    assert_int_equal(files_set_roots(files, other, &root, 1, &own), NG_OK);
    assert_int_equal(files_stat(files, mine, ng_str_of(notes), &file), NG_OK);
    assert_int_equal(files_stat(files, other, ng_str_of(notes), &file), NG_EOUTSIDE);
    call_unref(mine);
    call_unref(other);
}

struct sorted {
    char text[256];
};

static int tell_sorted(void *user, const struct ng_file_entry *entry)
{
    struct sorted *sorted = user;
    size_t len = strlen(sorted->text);
    (void)snprintf(sorted->text + len, sizeof(sorted->text) - len, "%.*s ",
                   (int)entry->name.len, entry->name.data);
    return 0;
}

/* A large folder is listed in the order of its names, some at a time. */
static void test_sorted_lists(void **state)
{
    static const struct {
        const char *from;
        uint32_t max;
        int rc;
        const char *told;
    } lists[] = {
        {NULL, 3, NG_ETOOLARGE, "B a a.b "},
        {"a", 3, NG_ETOOLARGE, "a a.b ab "},
        {"a.", 2, NG_ETOOLARGE, "a.b ab "},
        {"b", 9, NG_OK, "b c d "},
        {"c", 2, NG_OK, "c d "},
        {"dd", 1, NG_OK, ""},
    };
    static const char *const names[] = {"c", "a.b", "d", "ab", "B", "b", "a", ".hidden"};
    struct harness *harness = *state;
    char path[PATH_SIZE];
    struct call *call = harness_new_call(harness);
    call->may_block = true;
    for (size_t i = 0; i < NG_COUNT(names); i++) {
        put(harness, names[i], "x");
    }
    for (size_t i = 0; i < NG_COUNT(lists); i++) {
        struct sorted sorted = {""};
        struct ng_file_list list = {.size = sizeof(list),
                                    .path = in_root(harness, path, ""),
                                    .depth = 5,
                                    .max_entries = lists[i].max,
                                    .sorted = true};
        list.from.data = lists[i].from;
        list.from.len = lists[i].from == NULL ? 0 : strlen(lists[i].from);
        assert_int_equal(files_list(harness->gateway->files, call, &list, tell_sorted, &sorted),
                         lists[i].rc);
        assert_string_equal(sorted.text, lists[i].told);
    }
    call_unref(call);
}

/* A walk: what is told of it, with the bytes of the files that are wanted. */
struct walked {
    char text[512];
    const char *stop; /* the entry at which it ends */
};

static int walked_entry(void *user, const struct ng_file_entry *entry)
{
    struct walked *walked = user;
    size_t len = strlen(walked->text);
    (void)snprintf(walked->text + len, sizeof(walked->text) - len, "%s%.*s%s",
                   len > 0 ? " " : "", (int)entry->name.len, entry->name.data,
                   entry->link ? "@" : "");
    if (walked->stop != NULL && str_is(entry->name, walked->stop)) {
        return 1;
    }
    return str_ends(entry->name, "no") ? 0 : NG_ENTRY_INTO;
}

static int walked_content(void *user, struct ng_str chunk)
{
    struct walked *walked = user;
    size_t len = strlen(walked->text);
    (void)snprintf(walked->text + len, sizeof(walked->text) - len, "=%.*s", (int)chunk.len,
                   chunk.data);
    return str_is(chunk, "stop");
}

static void test_walks(void **state)
{
    static const struct {
        const char *path;
        uint32_t depth;
        const char *stop, *told;
    } walks[] = {
        {"", 9, NULL, ".h=5= a-=1= a.no a a/.i=6= a/b=2= a/c=stop a/d a/d/e=3= ab=4= l@ no"},
        {"", 1, NULL, ".h=5= a-=1= a.no a ab=4= l@ no"},
        {"", 2, "a/c", ".h=5= a-=1= a.no a a/.i=6= a/b=2= a/c"},
        {"a/d", 9, NULL, "e=3="},
        {"a/d/e", 9, NULL, "=3="},
        {"l", 9, NULL, ".i=6= b=2= c=stop d d/e=3="},
    };
    static const char *const files[][2] = {{"a-", "1"},   {"a/b", "2"},    {"a/d/e", "3"},
                                           {"ab", "4"},   {".h", "5"},     {"a/.i", "6"},
                                           {"a.no", "7"}, {"a/c", "stop"}, {"no/x", "8"}};
    static const char *const folders[] = {"a", "a/d", "no"};
    struct harness *harness = *state;
    char path[PATH_SIZE];
    char target[PATH_SIZE];
    struct call *call = harness_new_call(harness);
    call->may_block = true;
    for (size_t i = 0; i < NG_COUNT(folders); i++) {
        (void)in_root(harness, path, folders[i]);
        assert_int_equal(mkdir(path, 0700), 0);
    }
    for (size_t i = 0; i < NG_COUNT(files); i++) {
        put(harness, files[i][0], files[i][1]);
    }
    (void)in_root(harness, path, "l");
    (void)in_root(harness, target, "a");
    assert_int_equal(symlink(target, path), 0);
    for (size_t i = 0; i < NG_COUNT(walks); i++) {
        struct walked walked = {.stop = walks[i].stop};
        struct ng_file_list list = {.size = sizeof(list),
                                    .path = in_root(harness, path, walks[i].path),
                                    .depth = walks[i].depth,
                                    .content = walked_content};
        assert_int_equal(
            files_list(harness->gateway->files, call, &list, walked_entry, &walked), NG_OK);
        assert_string_equal(walked.text, walks[i].told);
    }
    /* The limit is for the entries of one folder with those around it. */
    struct walked walked = {.stop = NULL};
    struct ng_file_list list = {.size = sizeof(list),
                                .path = in_root(harness, path, ""),
                                .depth = 9,
                                .max_entries = 7,
                                .content = walked_content};
    assert_int_equal(files_list(harness->gateway->files, call, &list, walked_entry, &walked),
                     NG_ETOOLARGE);
    assert_string_equal(walked.text, ".h=5= a-=1= a.no a");
    call_unref(call);
}

/* A root that is named through a link is known by both names. */
static void test_root_behind_a_link(void **state)
{
    struct harness *harness = *state;
    char link[PATH_SIZE];
    char path[PATH_SIZE];
    char through[PATH_SIZE + 8];
    struct files *files = harness->gateway->files;
    struct call *call = harness_new_call(harness);
    const struct files_own own = {.data_dir = harness->dir};
    struct ng_file file = {.size = sizeof(file)};
    call->may_block = true;
    (void)snprintf(link, sizeof(link), "%s/link", harness->dir);
    (void)in_root(harness, path, "");
    assert_int_equal(symlink(path, link), 0);
    put(harness, "f", "x");
    struct ng_str root = ng_str_of(link);
    assert_int_equal(files_set_roots(files, call, &root, 1, &own), NG_OK);
    (void)snprintf(through, sizeof(through), "%s/f", link);
    assert_int_equal(files_stat(files, call, ng_str_of(through), &file), NG_OK);
    assert_true(str_is(file.real, in_root(harness, path, "f").data));
    assert_int_equal(files_stat(files, call, ng_str_of(path), &file), NG_OK);
    assert_int_equal(file.type, NG_FILE_REGULAR);
    call_unref(call);
}

static void test_undo_splices(void **state)
{
    struct harness *harness = *state;
    struct call *call = harness_new_call(harness);
    static const struct ng_str texts[] = {
        {"", 0},           {"a", 1},           {"aa", 2},         {"\xc3\xa9", 2},
        {"\xc3\xa8", 2},   {"\xe9", 1},        {"\xff\xfe\0", 3}, {"a\xc3\xa9z", 4},
        {"a\xc3\xa8z", 4}, {"aaaaaaaaaa", 10}, {"a\0b", 3},       {"\xa9\xc3\xa9", 3},
    };
    for (size_t i = 0; i < NG_COUNT(texts); i++) {
        for (size_t j = 0; j < NG_COUNT(texts); j++) {
            struct file_undo undo = {.kind = NG_UNDO_EDIT};
            struct ng_str back;
            assert_int_equal(files_undo_make(call, texts[i], texts[j], &undo), NG_OK);
            assert_true(utf8_valid(undo.inserted));
            assert_int_equal(files_undo_apply(call, &undo, texts[j], &back), NG_OK);
            assert_true(str_equal(back, texts[i]));
        }
    }
    call_unref(call);
}

static void test_history_is_bounded(void **state)
{
    (void)state;
    static const char ops[] = "abcdefghijklmnop";
    struct file_history history = {.count = 0};
    for (size_t i = 0; i < 13; i++) {
        struct file_undo undo = {.op = {ops + i, 1}};
        files_history_push(&history, &undo);
    }
    assert_int_equal(history.count, NG_FILE_UNDO_MAX);
    assert_true(str_is(history.items[0].op, "d"));
    assert_true(str_is(history.items[NG_FILE_UNDO_MAX - 1].op, "m"));
    /* By bytes too: the oldest fall out; one that alone is too large leaves nothing. */
    struct file_undo large = {.op = {ops, 1}, .inserted = {ops, FILES_UNDO_BYTES_MAX / 2}};
    files_history_push(&history, &large);
    files_history_push(&history, &large);
    files_history_push(&history, &large);
    assert_int_equal(history.count, 2);
    large.inserted.len = FILES_UNDO_BYTES_MAX + 1;
    files_history_push(&history, &large);
    assert_int_equal(history.count, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_waits_for_other_processes, setup, teardown),
        cmocka_unit_test_setup_teardown(test_never_blocks_a_loop, setup, teardown),
        cmocka_unit_test_setup_teardown(test_stat_and_read, setup, teardown),
        cmocka_unit_test_setup_teardown(test_dropped_folders, setup, teardown),
        cmocka_unit_test_setup_teardown(test_events, setup, teardown),
        cmocka_unit_test_setup_teardown(test_roots_of_other_spaces, setup, teardown),
        cmocka_unit_test_setup_teardown(test_folders_of_a_plugin, setup, teardown),
        cmocka_unit_test_setup_teardown(test_sorted_lists, setup, teardown),
        cmocka_unit_test_setup_teardown(test_walks, setup, teardown),
        cmocka_unit_test_setup_teardown(test_root_behind_a_link, setup, teardown),
        cmocka_unit_test_setup_teardown(test_undo_splices, setup, teardown),
        cmocka_unit_test(test_history_is_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
