/* SPDX-License-Identifier: MIT */
/* test_opennotes_index.c - the index is true at every call: changes, damage, hostile notes,
 * many at once. */
#include "test_opennotes_rig.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- the index ---- */

static void sees_changes(void **state)
{
    struct test *test = *state;
    char from[400];
    char to[400];
    put(test, "@/nb/a.md", "---\ntitle: First\n---\n");
    open_with(test, REGISTERED);
    has(test, "list", "{}", "First");
    put(test, "@/nb/a.md", "---\ntitle: Other\n---\n");
    has(test, "list", "{}", "Other");
    put(test, "@/nb/new/folder/b.md", "b");
    has(test, "list", "{}", "new/folder/b.md");
    put(test, "@/nb/new/folder/c.md", "c");
    has(test, "list", "{}", "\"total\":3");
    expand(test, "@/nb/new", from, sizeof(from));
    expand(test, "@/nb/moved", to, sizeof(to));
    assert_int_equal(rename(from, to), 0);
    has(test, "list", "{}", "moved/folder/c.md");
    has_not(test, "list", "{}", "new/folder");
    put(test, "@/nb/moved/folder/c.md", "---\ntitle: In moved\n---\n");
    has(test, "list", "{}", "In moved");
    expand(test, "@/out", from, sizeof(from));
    assert_int_equal(rename(to, from), 0);
    has(test, "list", "{}", "\"total\":1");
    put(test, "@/out/folder/d.md", "out of the notebook");
    has(test, "list", "{}", "\"total\":1");
    expand(test, "@/nb/a.md", from, sizeof(from));
    assert_int_equal(unlink(from), 0);
    has(test, "list", "{}", "\"total\":0");
    /* While the gateway was down. */
    put(test, "@/nb/z.md", "---\ntitle: Before\n---\n");
    has(test, "list", "{}", "Before");
    harness_reopen(&test->harness);
    put(test, "@/nb/z.md", "---\ntitle: Behind\n---\n");
    has(test, "list", "{}", "Behind");
    harness_reopen(&test->harness);
    has(test, "list", "{}", "Behind");
}

/* BUSY: the work that an earlier call left in the background still has the former folder. */
static void wait_for_new_folder(struct test *test)
{
    bool busy = true;
    while (busy) {
        struct answer answer = call(test, "list", "{}");
        busy = strcmp(answer.code, "BUSY") == 0;
        answer_free(&answer);
    }
}

static void replaced_folder(void **state)
{
    struct test *test = *state;
    char from[400];
    char to[400];
    put(test, "@/nb/a.md", "a");
    put(test, "@/next/b.md", "b");
    open_with(test, REGISTERED);
    has(test, "list", "{}", "a.md");
    expand(test, "@/nb", from, sizeof(from));
    expand(test, "@/old", to, sizeof(to));
    assert_int_equal(rename(from, to), 0);
    fails(test, "list", "{}", "NOTEBOOK_NOT_FOUND", "");
    expand(test, "@/next", to, sizeof(to));
    assert_int_equal(rename(to, from), 0);
    wait_for_new_folder(test);
    has(test, "list", "{}", "\"path\":\"b.md\"");
    has(test, "list", "{}", "\"total\":1");
}

/* The gateway's own files are no notes under any name; a note of several names is one.
 */
static void hard_links(void **state)
{
    struct test *test = *state;
    char from[400];
    char to[400];
    put(test, "@/nb/a.md", "a");
    open_with(test, REGISTERED);
    expand(test, "@/nb/a.md", from, sizeof(from));
    expand(test, "@/nb/b.md", to, sizeof(to));
    assert_int_equal(link(from, to), 0);
    (void)snprintf(from, sizeof(from), "%s/notegate.lock", test->harness.dir);
    expand(test, "@/nb/secret.md", to, sizeof(to));
    assert_int_equal(link(from, to), 0);
    has(test, "list", "{}", "\"total\":2");
    has_not(test, "list", "{}", "secret");
    struct answer answer = call(test, "get", "{\"path\":\"secret.md\"}");
    assert_string_equal(answer.code, "NOTE_NOT_FOUND");
    answer_free(&answer);
    has_not(test, "search", "{\"query\":\"process\"}", "secret");
}

/* Changes the one index file as requested. */
static void with_index(struct test *test, const char *bytes)
{
    char folder[400];
    char path[800];
    (void)snprintf(folder, sizeof(folder), "%s/opennotes", test->harness.dir);
    DIR *dir = opendir(folder);
    size_t found = 0;
    assert_non_null(dir);
    for (const struct dirent *entry = readdir(dir); entry != NULL; entry = readdir(dir)) {
        const char *dot = strrchr(entry->d_name, '.');
        (void)snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
        if (dot == NULL || strcmp(dot, ".db") != 0) {
            continue;
        }
        found++;
        if (bytes == NULL) {
            assert_int_equal(unlink(path), 0);
            continue;
        }
        int fd = open(path, O_RDWR | O_CLOEXEC);
        assert_true(fd >= 0);
        for (off_t at = 0; at < 1 << 20; at += 64) {
            if (lseek(fd, at, SEEK_SET) >= lseek(fd, 0, SEEK_END)) {
                break;
            }
            assert_true(pwrite(fd, bytes, strlen(bytes), at) > 0);
        }
        assert_int_equal(close(fd), 0);
    }
    (void)closedir(dir);
    assert_int_equal(found, 1);
}

static void damaged_index(void **state)
{
    struct test *test = *state;
    put(test, "@/nb/a.md", "---\ntitle: Still here\n---\nSome text.\n");
    open_with(test, REGISTERED);
    has(test, "list", "{}", "Still here");
    with_index(test, NULL); /* removed while it is open */
    has(test, "list", "{}", "Still here");
    with_index(test, NULL);
    harness_reopen(&test->harness);
    has(test, "list", "{}", "Still here");
    harness_reopen(&test->harness);
    has(test, "list", "{}", "Still here");
    /* Gateways that stop leave the whole database in its file. */
    harness_close(&test->harness);
    open_with(test, REGISTERED);
    has(test, "list", "{}", "Still here");
    with_index(test, "garbage all over the file");
    harness_reopen(&test->harness);
    has(test, "list", "{}", "Still here");
    has(test, "list", "{}", "\"total\":1");
}

struct snapshot {
    char text[TEXT_MAX];
    size_t len;
};

static void take_snapshot(const char *path, struct snapshot *snapshot)
{
    struct stat found;
    DIR *dir = opendir(path);
    assert_non_null(dir);
    for (const struct dirent *entry = readdir(dir); entry != NULL; entry = readdir(dir)) {
        char below[4096];
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) {
            continue;
        }
        (void)snprintf(below, sizeof(below), "%s/%s", path, entry->d_name);
        assert_int_equal(lstat(below, &found), 0);
        snapshot->len += (size_t)snprintf(
            snapshot->text + snapshot->len, sizeof(snapshot->text) - snapshot->len,
            "%s %lld %lld.%09ld %lld.%09ld %lld.%09ld\n", below, (long long)found.st_size,
            (long long)found.st_atim.tv_sec, found.st_atim.tv_nsec,
            (long long)found.st_mtim.tv_sec, found.st_mtim.tv_nsec,
            (long long)found.st_ctim.tv_sec, found.st_ctim.tv_nsec);
        assert_true(snapshot->len < sizeof(snapshot->text));
        if (S_ISDIR(found.st_mode)) {
            take_snapshot(below, snapshot);
        }
    }
    (void)closedir(dir);
}

/* Not a byte, not a time, not a file; access times too, which relatime would set now. */
static void reading_changes_nothing(void **state)
{
    struct test *test = *state;
    static struct snapshot before;
    static struct snapshot after;
    struct timespec old[2] = {{.tv_sec = 1000}, {.tv_sec = 2000}};
    char path[400];
    put(test, "@/nb/.opennotes.json", "{\"root\":\"notes\",\"templates\":{},\"x\":1}");
    put(test, "@/nb/notes/a.md", "# a");
    put(test, "@/nb/notes/sub/b.md", "# b");
    static const char *const files[] = {"@/nb/.opennotes.json", "@/nb/notes/a.md",
                                        "@/nb/notes/sub/b.md"};
    for (size_t i = 0; i < NG_COUNT(files); i++) {
        expand(test, files[i], path, sizeof(path));
        assert_int_equal(utimensat(AT_FDCWD, path, old, 0), 0);
    }
    expand(test, "@/nb", path, sizeof(path));
    take_snapshot(path, &before); /* sets the folders' access times, which is why it is first */
    before.len = 0;
    take_snapshot(path, &before);
    open_with(test, REGISTERED);
    has(test, "notebooks", "{}", "\"noteCount\":2");
    has(test, "list", "{}", "sub/b.md");
    has(test, "get", "{\"path\":\"a.md\"}", "# a");
    has(test, "get", "{\"path\":\"a.md\",\"raw\":true}", "# a");
    fails(test, "get", "{\"path\":\"none.md\"}", "NOTE_NOT_FOUND", "");
    harness_reopen(&test->harness);
    has(test, "list", "{}", "sub/b.md");
    take_snapshot(path, &after);
    assert_string_equal(before.text, after.text);
}

/* ---- broken and hostile notes ---- */

static const char *const hostile_links[][2] = {
    {"@/nb/loop", "."},
    {"@/nb/self.md", "self.md"},
    {"@/nb/dangling.md", "none"},
    {"@/nb/out.md", "@/secret.md"},
    {"@/nb/rel-out.md", "../secret.md"},
    {"@/nb/outdir", "/etc"},
    {"@/nb/in.md", "empty.md"},
    {"@/nb/abs-in.md", "@/nb/bom.md"},
    {"@/nb/linked", "folder.md"},
    {"@/nb/device.md", "/dev/zero"},
};

static void put_hostile(struct test *test)
{
    char path[400];
    char to[400];
    static const char nul[] = "# has\0nul\nfindme";
    put(test, "@/nb/empty.md", "");
    put(test, "@/nb/bad-front.md", "---\ntitle: [unclosed\n---\nbody\n");
    put(test, "@/nb/open-front.md", "---\ntitle: never closed\n");
    put(test, "@/nb/bytes.md", "\xff\xfe broken \xc3( utf-8 \xed\xa0\x80");
    put_bytes(test, "@/nb/nul.md", nul, sizeof(nul) - 1);
    put(test, "@/nb/bom.md", "\xEF\xBB\xBF---\r\ntitle: Bom\r\n---\r\nx");
    put(test, "@/nb/UPPER.MD", "x");
    put(test, "@/nb/new\nline.md", "x");
    put(test, "@/nb/quote\"'back\\slash.md", "x");
    put(test,
        "@/nb/e\xCC\x81"
        "f.md",
        "decomposed");                                      /* NFD */
    put(test, "@/nb/twin-\xC3\xA9.md", "composed twin");    /* NFC */
    put(test, "@/nb/twin-e\xCC\x81.md", "decomposed twin"); /* NFD */
    put(test, "@/nb/bad-\xff-name.md", "x");
    put(test, "@/nb/.hidden.md", "hidden");
    put(test, "@/nb/.git/x.md", "hidden");
    put(test, "@/nb/folder.md/in.md", "in a folder with the name of a note");
    put(test, "@/secret.md", "secret");
    expand(test, "@/nb/fifo.md", path, sizeof(path));
    assert_int_equal(mkfifo(path, 0644), 0);
    for (size_t i = 0; i < NG_COUNT(hostile_links); i++) {
        expand(test, hostile_links[i][0], path, sizeof(path));
        expand(test, hostile_links[i][1], to, sizeof(to));
        assert_int_equal(symlink(to, path), 0);
    }
}

static const char *const listed[] = {"empty.md",
                                     "open-front.md",
                                     "bytes.md",
                                     "nul.md",
                                     "UPPER.MD",
                                     "new\\nline.md",
                                     "quote\\\"'back\\\\slash.md",
                                     ("\xC3\xA9"
                                      "f.md"),
                                     "twin-\xC3\xA9.md",
                                     "folder.md/in.md",
                                     "linked/in.md",
                                     "in.md",
                                     "abs-in.md",
                                     "bom.md",
                                     "bad-front.md"};

static const char *const not_listed[] = {"secret", "hidden", "fifo",   "self.md", "dangling",
                                         "loop/",  "out.md", "device", "passwd"};

static void hostile_notes(void **state)
{
    struct test *test = *state;
    put_hostile(test);
    open_with(test, REGISTERED);
    has(test, "list", "{\"limit\":1000}", "\"total\":17,\"returned\":17");
    for (size_t i = 0; i < NG_COUNT(listed); i++) {
        char args[512];
        (void)snprintf(args, sizeof(args), "\"path\":\"%s\"", listed[i]);
        has(test, "list", "{\"limit\":1000}", args);
        (void)snprintf(args, sizeof(args), "{\"path\":\"%s\"}", listed[i]);
        has(test, "get", args, "\"content\":");
    }
    for (size_t i = 0; i < NG_COUNT(not_listed); i++) {
        has_not(test, "list", "{\"limit\":1000}", not_listed[i]);
    }
    has(test, "list", "{}", "\"frontmatterError\":\"");
    has(test, "get", "{\"path\":\"bad-front.md\"}", "\"content\":\"body\\n\"");
    has(test, "get", "{\"path\":\"bad-front.md\"}", "\"frontmatterError\":\"");
    has(test, "get", "{\"path\":\"e\\u0301f.md\"}", "decomposed");
    has(test, "get", "{\"path\":\"\\u00e9f.md\"}", "decomposed");
    has(test, "get", "{\"path\":\"abs-in.md\"}", "\"title\":\"Bom\"");
    fails(test, "get", "{\"path\":\"out.md\"}", "NOTE_NOT_FOUND", "");
    fails(test, "get", "{\"path\":\"outdir/passwd\"}", "NOTE_NOT_FOUND", "");
    /* The target of a link changes with the link. */
    put(test, "@/nb/empty.md", "---\ntitle: Filled\n---\n");
    has(test, "get", "{\"path\":\"in.md\"}", "Filled");
    has(test, "list", "{\"pattern\":\"in.md\"}", "Filled");
    put(test, "@/nb/folder.md/in.md", "---\ntitle: Inner\n---\n");
    has(test, "list", "{\"pattern\":\"linked/*\"}", "Inner");
}

/* ---- many at once ---- */

#define THREADS 8
#define ROUNDS 20

struct worker {
    struct test *test;
    int number;
};

static void *run_worker(void *user)
{
    struct worker *worker = user;
    for (int round = 0; round < ROUNDS; round++) {
        char path[64];
        char text[128];
        char args[128];
        (void)snprintf(path, sizeof(path), "@/nb/w%d/n%d.md", worker->number, round);
        (void)snprintf(text, sizeof(text), "---\ntitle: W%dR%d\n---\n", worker->number, round);
        put(worker->test, path, text);
        (void)snprintf(args, sizeof(args), "{\"path\":\"w%d/n%d.md\"}", worker->number, round);
        (void)snprintf(text, sizeof(text), "\"title\":\"W%dR%d\"", worker->number, round);
        has(worker->test, "get", args, text);
        (void)snprintf(args, sizeof(args), "{\"pattern\":\"w%d/*\",\"limit\":1}",
                       worker->number);
        (void)snprintf(text, sizeof(text), "\"total\":%d,", round + 1);
        has(worker->test, "list", args, text);
    }
    return NULL;
}

/* Each sees its own writes, whichever call refreshes. */
static void many_at_once(void **state)
{
    struct test *test = *state;
    pthread_t threads[THREADS];
    struct worker workers[THREADS];
    put(test, "@/nb/a.md", "a");
    open_with(test, REGISTERED);
    for (int i = 0; i < THREADS; i++) {
        workers[i] = (struct worker){test, i};
        assert_int_equal(pthread_create(&threads[i], NULL, run_worker, &workers[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    }
    char wanted[64];
    (void)snprintf(wanted, sizeof(wanted), "\"total\":%d,", THREADS * ROUNDS + 1);
    has(test, "list", "{\"limit\":1}", wanted);
}

static void paging_visits_all_once(void **state)
{
    struct test *test = *state;
    static char title[60000];
    char path[64];
    bool seen[200] = {false};
    memset(title, 't', sizeof(title) - 1);
    for (int i = 0; i < 200; i++) {
        static char text[sizeof(title) + 64];
        /* One of them is larger than an answer may be. */
        (void)snprintf(text, sizeof(text), "---\ntitle: %.*s\n---\n", i == 77 ? 59000 : i * 10,
                       title);
        (void)snprintf(path, sizeof(path), "@/nb/n%d.md", i);
        put(test, path, text);
    }
    open_with(test, REGISTERED);
    int64_t offset = 0;
    size_t count = 0;
    bool more = true;
    while (more) {
        char args[128];
        (void)snprintf(args, sizeof(args), "{\"limit\":70,\"offset\":%lld,\"sortBy\":\"path\"}",
                       (long long)offset);
        struct answer answer = call(test, "list", args);
        assert_int_equal(answer.rc, NG_OK);
        assert_true(answer.text_len <= 38400 + 300);
        assert_int_equal(number_of(answer.text, "total"), 200);
        for (const char *at = strstr(answer.text, "\"path\":\"n"); at != NULL;
             at = strstr(at + 1, "\"path\":\"n")) {
            long number = strtol(at + strlen("\"path\":\"n"), NULL, 10);
            if (strncmp(at, "\"path\":\"nb", 10) == 0) {
                continue;
            }
            assert_true(number >= 0 && number < 200 && !seen[number]);
            seen[number] = true;
            count++;
        }
        more = strstr(answer.text, "\"hasMore\":true") != NULL;
        assert_true(!more || number_of(answer.text, "nextOffset") > offset);
        offset = number_of(answer.text, "nextOffset");
        answer_free(&answer);
    }
    assert_int_equal(count, 200);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(sees_changes, setup, teardown),
        cmocka_unit_test_setup_teardown(replaced_folder, setup, teardown),
        cmocka_unit_test_setup_teardown(hard_links, setup, teardown),
        cmocka_unit_test_setup_teardown(damaged_index, setup, teardown),
        cmocka_unit_test_setup_teardown(reading_changes_nothing, setup, teardown),
        cmocka_unit_test_setup_teardown(hostile_notes, setup, teardown),
        cmocka_unit_test_setup_teardown(many_at_once, setup, teardown),
        cmocka_unit_test_setup_teardown(paging_visits_all_once, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
