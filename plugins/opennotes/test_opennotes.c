/* SPDX-License-Identifier: MIT */
/* test_opennotes.c - notebooks, the index and the tools that list and get, through the real
 * gateway. In arguments and texts '@' stands for the folder of the test. */
#include "harness.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define TEXT_MAX 65536

struct test {
    struct harness harness;
    char dir[300]; /* of everything: nb is the registered notebook */
    char set[700];
    const char *sets[4];
};

/* ---- helpers ---- */

static void expand(const struct test *test, const char *from, char *to, size_t size)
{
    size_t len = 0;
    to[0] = '\0';
    for (; *from != '\0'; from++) {
        if (*from == '@') {
            len += (size_t)snprintf(to + len, size - len, "%s", test->dir);
        } else {
            to[len++] = *from;
            to[len] = '\0';
        }
        assert_true(len + 1 < size);
    }
}

static void put_bytes(struct test *test, const char *path, const char *data, size_t len)
{
    char real[4096];
    expand(test, path, real, sizeof(real));
    for (char *at = real + 1; *at != '\0'; at++) {
        if (*at == '/') {
            *at = '\0';
            assert_true(mkdir(real, 0755) == 0 || errno == EEXIST);
            *at = '/';
        }
    }
    int fd = open(real, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, data, len), (ssize_t)len);
    assert_int_equal(close(fd), 0);
}

static void put(struct test *test, const char *path, const char *text)
{
    put_bytes(test, path, text, strlen(text));
}

static struct answer call(struct test *test, const char *tool, const char *args)
{
    char real[TEXT_MAX];
    char name[64];
    expand(test, args, real, sizeof(real));
    (void)snprintf(name, sizeof(name), "opennotes_%s", tool);
    return harness_call(&test->harness, name, real);
}

/* The answer holds this text. */
static void has(struct test *test, const char *tool, const char *args, const char *text)
{
    char wanted[TEXT_MAX];
    struct answer answer = call(test, tool, args);
    expand(test, text, wanted, sizeof(wanted));
    if (answer.rc != NG_OK) {
        fail_msg("%s %s failed: %s %s", tool, args, answer.code, answer.message);
    }
    if (strstr(answer.text, wanted) == NULL) {
        fail_msg("%s %s: no %s in %s", tool, args, wanted, answer.text);
    }
    answer_free(&answer);
}

static void has_not(struct test *test, const char *tool, const char *args, const char *text)
{
    struct answer answer = call(test, tool, args);
    assert_int_equal(answer.rc, NG_OK);
    if (strstr(answer.text, text) != NULL) {
        fail_msg("%s %s: %s in %s", tool, args, text, answer.text);
    }
    answer_free(&answer);
}

static void fails(struct test *test, const char *tool, const char *args, const char *code,
                  const char *hint)
{
    char wanted[TEXT_MAX];
    struct answer answer = call(test, tool, args);
    expand(test, hint, wanted, sizeof(wanted));
    if (strcmp(answer.code, code) != 0) {
        fail_msg("%s %s: %s %s %s, not %s", tool, args, answer.code, answer.message,
                 answer.text, code);
    }
    if (strstr(answer.hint, wanted) == NULL && strstr(answer.message, wanted) == NULL) {
        fail_msg("%s %s: no %s in %s / %s", tool, args, wanted, answer.message, answer.hint);
    }
    answer_free(&answer);
}

static void open_with(struct test *test, const char *set)
{
    char expanded[sizeof(test->set)];
    expand(test, set, expanded, sizeof(expanded));
    memcpy(test->set, expanded, sizeof(expanded));
    test->sets[0] = "documents=memory";
    test->sets[1] = test->set;
    test->sets[2] = NULL;
    harness_open(&test->harness, test->sets);
}

static int setup(void **state)
{
    struct test *test = calloc(1, sizeof(*test));
    assert_non_null(test);
    (void)snprintf(test->dir, sizeof(test->dir), "/tmp/opennotes-XXXXXX");
    assert_non_null(mkdtemp(test->dir));
    *state = test;
    return 0;
}

static void remove_tree(const char *path)
{
    DIR *dir = opendir(path);
    struct stat found;
    if (dir == NULL) {
        return;
    }
    for (const struct dirent *entry = readdir(dir); entry != NULL; entry = readdir(dir)) {
        char below[4096];
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) {
            continue;
        }
        (void)snprintf(below, sizeof(below), "%s/%s", path, entry->d_name);
        if (lstat(below, &found) == 0 && S_ISDIR(found.st_mode)) {
            remove_tree(below);
        } else {
            (void)unlink(below);
        }
    }
    (void)closedir(dir);
    (void)rmdir(path);
}

static int teardown(void **state)
{
    struct test *test = *state;
    if (test->harness.gateway != NULL) {
        harness_close(&test->harness);
    }
    remove_tree(test->dir);
    free(test);
    return 0;
}

#define REGISTERED "opennotes.notebooks=@/nb"

/* ---- notebooks ---- */

static void no_notebook(void **state)
{
    struct test *test = *state;
    harness_open(&test->harness, NULL);
    fails(test, "list", "{}", "NOTEBOOK_NOT_FOUND", "opennotes.notebooks");
    fails(test, "list", "{\"notebook\":\"/no/such\"}", "NOTEBOOK_NOT_FOUND", "");
    fails(test, "get", "{\"path\":\"a.md\",\"notebook\":\"nothing\"}", "NOTEBOOK_NOT_FOUND",
          "");
    has(test, "notebooks", "{}", "{\"current\":null,\"notebooks\":[]}");
}

static void registered_ones(void **state)
{
    struct test *test = *state;
    put(test, "@/nb/a.md", "a");
    put(test, "@/other/.opennotes.json",
        "{\"name\":\"The other\",\"root\":\"notes\",\"x\":[1]}");
    put(test, "@/other/notes/o.md", "o");
    put(test, "@/other/outside.md", "not below root");
    open_with(test, "opennotes.notebooks=@/nb,@/missing,shared:@/other");
    has(test, "notebooks", "{}",
        "{\"current\":{\"name\":\"nb\",\"path\":\"@/nb\",\"source\":\"registered\","
        "\"noteCount\":1},\"notebooks\":[{\"name\":\"nb\",\"path\":\"@/nb\",\"source\":"
        "\"registered\",\"noteCount\":1},{\"name\":\"The other\",\"path\":\"@/other/notes\","
        "\"source\":\"registered\",\"noteCount\":1}]}");
    has(test, "list", "{}", "\"path\":\"a.md\"");
    /* By path of the notes, of the folder, of the file, by name. */
    static const char *const names[] = {"@/other/notes", "@/other", "@/other/",
                                        "@/other/.opennotes.json", "The other"};
    for (size_t i = 0; i < NG_COUNT(names); i++) {
        char args[512];
        (void)snprintf(args, sizeof(args), "{\"notebook\":\"%s\"}", names[i]);
        has(test, "list", args,
            "\"notebook\":{\"name\":\"The other\",\"path\":\"@/other/notes\"}");
        has(test, "list", args, "\"path\":\"o.md\"");
        has_not(test, "list", args, "outside");
    }
    fails(test, "list", "{\"notebook\":\"@/missing\"}", "NOTEBOOK_NOT_FOUND", "@/nb");
    fails(test, "list", "{\"notebook\":\"@\"}", "NOTEBOOK_NOT_FOUND", "@/nb");
    fails(test, "list", "{\"notebook\":\"../nb\"}", "NOTEBOOK_NOT_FOUND", "@/nb");
}

static void discovered_ones(void **state)
{
    struct test *test = *state;
    put(test, "@/root/one/.opennotes.json", "{\"name\":\"One\"}");
    put(test, "@/root/one/deep/x.md", "x");
    put(test, "@/root/plain/p.md", "p");
    put(test, "@/root/.hidden/.opennotes.json", "{}");
    open_with(test, "roots=@/root");
    /* The only one is the current one. */
    has(test, "notebooks", "{}",
        "\"current\":{\"name\":\"One\",\"path\":\"@/root/one\",\"source\":\"ancestor\"");
    has(test, "list", "{}", "deep/x.md");
    has(test, "list", "{\"notebook\":\"one\"}", "deep/x.md");
    has(test, "list", "{\"notebook\":\"@/root/plain\"}", "\"path\":\"p.md\"");
    has(test, "list", "{\"notebook\":\"plain\"}", "\"path\":\"p.md\"");
    /* A second one: now it must be said which. */
    put(test, "@/root/sub/two/.opennotes.json", "{\"root\":\".\"}");
    fails(test, "list", "{}", "NOTEBOOK_NOT_FOUND", "@/root/one, @/root/sub/two");
    has(test, "notebooks", "{}", "{\"current\":null,");
    has(test, "list", "{\"notebook\":\"@/root/sub/two\"}", "\"total\":0");
    fails(test, "list", "{\"notebook\":\"/etc\"}", "NOTEBOOK_NOT_FOUND", "");
}

static void bad_configurations(void **state)
{
    struct test *test = *state;
    static const char *const texts[] = {"{",
                                        "[]",
                                        "{\"root\":\"../out\"}",
                                        "{\"root\":\"/etc\"}",
                                        "{\"root\":3}",
                                        "{\"name\":[]}",
                                        "{\"root\":\"gone\"}",
                                        "{\"root\":\"link\"}",
                                        "\xff\xfe"};
    put(test, "@/nb/a.md", "a");
    char link[400];
    expand(test, "@/nb/link", link, sizeof(link));
    assert_int_equal(symlink("/etc", link), 0);
    open_with(test, REGISTERED);
    for (size_t i = 0; i < NG_COUNT(texts); i++) {
        put(test, "@/nb/.opennotes.json", texts[i]);
        fails(test, "list", "{}", "NOTEBOOK_CONFIG_ERROR", "");
        has(test, "notebooks", "{}", "\"name\":\"nb\"");
    }
    put(test, "@/nb/.opennotes.json", "\xEF\xBB\xBF{\"name\":\"With BOM\"}");
    has(test, "list", "{}", "With BOM");
    fails(test, "get", "{\"path\":\"gone\"}", "NOTE_NOT_FOUND", "");
}

/* ---- lists ---- */

static void sorting_and_patterns(void **state)
{
    struct test *test = *state;
    put(test, "@/nb/a.md",
        "---\ntitle: Zebra\ncreated: 2020-01-03\nmodified: 2021-01-01\n---\n");
    put(test, "@/nb/t/b.md", "---\ntitle: apple\ndate: 2020-01-01\nupdated: 2021-01-03\n---\n");
    put(test, "@/nb/t/u/c.md", "---\ncreated_at: 2020-01-02\nupdated_at: 2021-01-02\n---\n");
    put(test, "@/nb/t/no.txt", "x");
    open_with(test, REGISTERED);
    static const struct {
        const char *args, *first, *second, *third;
    } orders[] = {
        {"{}", "t/b", "t/u/c", "a"},
        {"{\"sortBy\":\"modified\",\"sortOrder\":\"asc\"}", "a", "t/u/c", "t/b"},
        {"{\"sortBy\":\"created\"}", "a", "t/u/c", "t/b"},
        {"{\"sortBy\":\"path\"}", "a", "t/b", "t/u/c"},
        {"{\"sortBy\":\"path\",\"sortOrder\":\"desc\"}", "t/u/c", "t/b", "a"},
        {"{\"sortBy\":\"title\"}", "t/b", "a", "t/u/c"},
        {"{\"sortBy\":\"title\",\"sortOrder\":\"desc\"}", "a", "t/b", "t/u/c"},
    };
    for (size_t i = 0; i < NG_COUNT(orders); i++) {
        char paths[3][64];
        const char *wanted[3] = {orders[i].first, orders[i].second, orders[i].third};
        const char *at[3];
        struct answer answer = call(test, "list", orders[i].args);
        for (size_t p = 0; p < 3; p++) {
            (void)snprintf(paths[p], sizeof(paths[p]), "\"path\":\"%s.md\"", wanted[p]);
            at[p] = strstr(answer.text, paths[p]);
            assert_non_null(at[p]);
        }
        assert_true(at[0] < at[1] && at[1] < at[2]);
        answer_free(&answer);
    }
    has(test, "list", "{\"pattern\":\"*.md\"}", "\"total\":1,");
    has(test, "list", "{\"pattern\":\"t/*.md\"}", "\"total\":1,");
    has(test, "list", "{\"pattern\":\"t/**\"}", "\"total\":2,");
    has(test, "list", "{\"pattern\":\"**/*.md\"}", "\"total\":3,");
    has(test, "list", "{\"pattern\":\"**/c.md\"}", "\"path\":\"t/u/c.md\"");
    has(test, "list", "{\"pattern\":\"nothing*\"}", "{\"notebook\":");
    has(test, "list", "{\"limit\":2}", "\"hasMore\":true,\"nextOffset\":2}");
    has(test, "list", "{\"limit\":2,\"offset\":2}",
        "\"page\":2,\"pageSize\":2,\"hasMore\":false}");
    has(test, "list", "{\"offset\":9}", "\"total\":3,\"returned\":0");
    fails(test, "list", "{\"limit\":0}", "INVALID_PARAMS", "");
    fails(test, "list", "{\"sortBy\":\"size\"}", "INVALID_PARAMS", "");
    fails(test, "list", "{\"limt\":1}", "INVALID_PARAMS", "");
}

/* ---- one note ---- */

static void getting(void **state)
{
    struct test *test = *state;
    put(test, "@/nb/a.md",
        "---\r\ntitle: T\r\ntag: one\r\ntags: [two, one]\r\nnested: {deep: [1, "
        "null]}\r\n---\r\n"
        "# One\r\n\r\ntext\r\n\r\n## Two\r\n\r\nmore\r\n\r\n# Three\r\nend");
    open_with(test, REGISTERED);
    has(test, "get", "{\"path\":\"a.md\"}",
        "\"frontmatter\":{\"title\":\"T\",\"tag\":\"one\",\"tags\":[\"two\",\"one\"],"
        "\"nested\":{\"deep\":[1,null]}},\"content\":\"# One\\r\\n");
    has(test, "get", "{\"path\":\"./a.md\"}", "\"lines\":10,\"wordCount\":6");
    has(test, "get", "{\"path\":\"a.md\",\"raw\":true}", "\"content\":\"---\\r\\ntitle: T");
    has_not(test, "get", "{\"path\":\"a.md\",\"includeContent\":false}", "\"content\"");
    has(test, "get", "{\"path\":\"a.md\",\"section\":\"two\"}",
        "\"content\":\"## Two\\r\\n\\r\\nmore\\r\\n\\r\\n\",\"startLine\":5,\"truncated\"");
    has(test, "get", "{\"path\":\"a.md\",\"section\":\"# One\"}",
        "more\\r\\n\\r\\n\",\"truncated");
    has(test, "get", "{\"path\":\"a.md\",\"startLine\":3,\"maxLines\":2}",
        "\"content\":\"text\\r\\n\\r\\n\",\"startLine\":3,\"nextLine\":5");
    has(test, "get", "{\"path\":\"a.md\",\"startLine\":10,\"maxLines\":2}",
        "\"content\":\"end\",\"startLine\":10,\"truncated\":false");
    has(test, "get", "{\"path\":\"a.md\",\"startLine\":10,\"startByte\":1}",
        "\"content\":\"nd\"");
    fails(test, "get", "{\"path\":\"a.md\",\"startLine\":11}", "INVALID_PARAMS", "1 to 10");
    fails(test, "get", "{\"path\":\"a.md\",\"section\":\"Four\"}", "SECTION_NOT_FOUND", "a.md");
    fails(test, "get", "{\"path\":\"b.md\"}", "NOTE_NOT_FOUND", "a.md");
    fails(test, "get", "{\"path\":\"\"}", "NOTE_NOT_FOUND", "");
    static const char *const tricks[] = {"../a.md", "/etc/passwd", "x/../../a.md",
                                         "..",      "a.md\\u0000", "@/nb/a.md"};
    for (size_t i = 0; i < NG_COUNT(tricks); i++) {
        char args[512];
        (void)snprintf(args, sizeof(args), "{\"path\":\"%s\"}", tricks[i]);
        fails(test, "get", args, "PATH_TRAVERSAL", "relative");
    }
    struct answer answer = call(test, "get", "{\"path\":\"a.md\"}");
    assert_int_equal(strlen(answer.revision_text), 32);
    assert_non_null(strstr(answer.text, answer.revision_text));
    answer_free(&answer);
}

static int64_t number_of(const char *text, const char *name)
{
    char member[64];
    (void)snprintf(member, sizeof(member), "\"%s\":", name);
    const char *at = strstr(text, member);
    return at != NULL ? strtoll(at + strlen(member), NULL, 10) : 0;
}

/* Reads a note part by part and compares what comes with what is there. Lines are of letters
 * and umlauts, which JSON does not escape. */
static void read_on(struct test *test, const char *path, const char *whole)
{
    size_t at = 0;
    int64_t line = 1;
    int64_t byte = 0;
    for (int parts = 0; line > 0; parts++) {
        char args[512];
        (void)snprintf(args, sizeof(args),
                       "{\"path\":\"%s\",\"startLine\":%lld,\"startByte\":%lld}", path,
                       (long long)line, (long long)byte);
        struct answer answer = call(test, "get", args);
        assert_int_equal(answer.rc, NG_OK);
        assert_true(answer.text_len <= 38400 + 200);
        const char *content = strstr(answer.text, "\"content\":\"");
        assert_non_null(content);
        for (content += strlen("\"content\":\""); *content != '"'; content++) {
            char c = *content;
            if (c == '\\') {
                assert_int_equal(*++content, 'n');
                c = '\n';
            }
            assert_int_equal(c, whole[at]);
            at++;
        }
        line = number_of(answer.text, "nextLine");
        byte = number_of(answer.text, "nextByte");
        assert_int_equal(strstr(answer.text, "\"truncated\":true") != NULL, line > 0);
        answer_free(&answer);
        assert_true(parts < 1000);
    }
    assert_int_equal(at, strlen(whole));
}

static void large_notes(void **state)
{
    struct test *test = *state;
    size_t size = (size_t)300 * 1024;
    char *text = malloc(size + 8);
    size_t len = 0;
    assert_non_null(text);
    while (len < size) {
        /* Lines of many lengths, one of them over the budget by itself. */
        bool umlaut = len % 7 == 0;
        bool end = len % 97 == 0 && (len < 50000 || len > 150000);
        memcpy(text + len, umlaut ? "\xC3\xA4" : end ? "\n" : "x", umlaut ? 2 : 1);
        len += umlaut ? 2 : 1;
    }
    text[len] = '\0';
    put_bytes(test, "@/nb/big.md", text, len);
    memset(text, '\n', 5000);
    text[5000] = '\0';
    put_bytes(test, "@/nb/lines.md", text, 5000);
    open_with(test, REGISTERED);
    text[0] = '\0';
    has(test, "list", "{}", "\"total\":2");
    memset(text, '\n', 5000);
    read_on(test, "lines.md", text);
    len = 0;
    while (len < size) {
        bool umlaut = len % 7 == 0;
        bool end = len % 97 == 0 && (len < 50000 || len > 150000);
        memcpy(text + len, umlaut ? "\xC3\xA4" : end ? "\n" : "x", umlaut ? 2 : 1);
        len += umlaut ? 2 : 1;
    }
    text[len] = '\0';
    read_on(test, "big.md", text);
    free(text);
}

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
    has(test, "list", "{}", "\"path\":\"b.md\"");
    has(test, "list", "{}", "\"total\":1");
}

/* Makes of the one index file what is asked for. */
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

static void hostile_notes(void **state)
{
    struct test *test = *state;
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
    static const char *const links[][2] = {
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
    for (size_t i = 0; i < NG_COUNT(links); i++) {
        expand(test, links[i][0], path, sizeof(path));
        expand(test, links[i][1], to, sizeof(to));
        assert_int_equal(symlink(to, path), 0);
    }
    open_with(test, REGISTERED);
    has(test, "list", "{\"limit\":1000}", "\"total\":17,\"returned\":17");
    static const char *const there[] = {"empty.md",
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
    for (size_t i = 0; i < NG_COUNT(there); i++) {
        char args[512];
        (void)snprintf(args, sizeof(args), "\"path\":\"%s\"", there[i]);
        has(test, "list", "{\"limit\":1000}", args);
        (void)snprintf(args, sizeof(args), "{\"path\":\"%s\"}", there[i]);
        has(test, "get", args, "\"content\":");
    }
    static const char *const not_there[] = {"secret", "hidden", "fifo",   "self.md", "dangling",
                                            "loop/",  "out.md", "device", "passwd"};
    for (size_t i = 0; i < NG_COUNT(not_there); i++) {
        has_not(test, "list", "{\"limit\":1000}", not_there[i]);
    }
    has(test, "list", "{}", "\"frontmatterError\":\"");
    has(test, "get", "{\"path\":\"bad-front.md\"}", "\"content\":\"body\\n\"");
    has(test, "get", "{\"path\":\"bad-front.md\"}", "\"frontmatterError\":\"");
    has(test, "get", "{\"path\":\"e\\u0301f.md\"}", "decomposed");
    has(test, "get", "{\"path\":\"\\u00e9f.md\"}", "decomposed");
    has(test, "get", "{\"path\":\"abs-in.md\"}", "\"title\":\"Bom\"");
    fails(test, "get", "{\"path\":\"out.md\"}", "NOTE_NOT_FOUND", "");
    fails(test, "get", "{\"path\":\"outdir/passwd\"}", "NOTE_NOT_FOUND", "");
    /* What a link inside leads to changes with it. */
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

/* Each sees what it wrote, whoever refreshes. */
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
        cmocka_unit_test_setup_teardown(no_notebook, setup, teardown),
        cmocka_unit_test_setup_teardown(registered_ones, setup, teardown),
        cmocka_unit_test_setup_teardown(discovered_ones, setup, teardown),
        cmocka_unit_test_setup_teardown(bad_configurations, setup, teardown),
        cmocka_unit_test_setup_teardown(sorting_and_patterns, setup, teardown),
        cmocka_unit_test_setup_teardown(getting, setup, teardown),
        cmocka_unit_test_setup_teardown(large_notes, setup, teardown),
        cmocka_unit_test_setup_teardown(sees_changes, setup, teardown),
        cmocka_unit_test_setup_teardown(replaced_folder, setup, teardown),
        cmocka_unit_test_setup_teardown(damaged_index, setup, teardown),
        cmocka_unit_test_setup_teardown(reading_changes_nothing, setup, teardown),
        cmocka_unit_test_setup_teardown(hostile_notes, setup, teardown),
        cmocka_unit_test_setup_teardown(many_at_once, setup, teardown),
        cmocka_unit_test_setup_teardown(paging_visits_all_once, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
