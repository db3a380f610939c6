/* SPDX-License-Identifier: MIT */
/* test_opennotes_move_rig.c - shared code of test_opennotes_move*.c; see the header. */
#include "test_opennotes_move_rig.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/call/call.h"
#include "index/index.h"

#define LINES_MAX 12
#define UE_NFC "\xc3\x9c"
#define UE_NFD "U\xcc\x88"

void vault_setup(struct vault *vault)
{
    static const char *sets[] = {"documents=memory", NULL};
    memset(vault, 0, sizeof(*vault));
    harness_open(&vault->harness, sets);
}

void vault_teardown(struct vault *vault)
{
    harness_close(&vault->harness);
}

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st;
    (void)type;
    (void)ftw;
    return remove(path);
}

void vault_open(struct vault *vault)
{
    char folder[400];
    (void)snprintf(vault->root, sizeof(vault->root), "%s/files/v%u", vault->harness.dir,
                   vault->number++);
    assert_int_equal(mkdir(vault->root, 0755), 0);
    (void)snprintf(folder, sizeof(folder), "%s/index", vault->harness.dir);
    assert_true(mkdir(folder, 0755) == 0 || errno == EEXIST);
    vault->call = harness_new_call(&vault->harness);
    arena_init(&vault->arena, 0);
    assert_int_equal(notes_indexes_open(folder, &vault->indexes), NG_OK);
    assert_int_equal(
        notes_index_open(vault->indexes, &vault->call->pub, vault->root, &vault->index), NG_OK);
    vault->notebook = (struct notes_notebook){.path = ng_str_of(vault->root),
                                              .folder = ng_str_of(vault->root),
                                              .index = vault->index};
}

void vault_close(struct vault *vault)
{
    char folder[400];
    notes_index_end(vault->index, vault->notebook.db);
    notes_index_close(vault->indexes, vault->index);
    notes_indexes_close(vault->indexes);
    arena_done(&vault->arena);
    call_unref(vault->call);
    (void)nftw(vault->root, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
    (void)snprintf(folder, sizeof(folder), "%s/index", vault->harness.dir);
    (void)nftw(folder, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

static void make_parents(char *path, size_t root)
{
    for (char *at = path + root + 1; *at != '\0'; at++) {
        if (*at == '/') {
            *at = '\0';
            assert_true(mkdir(path, 0755) == 0 || errno == EEXIST);
            *at = '/';
        }
    }
}

void vault_put(struct vault *vault, const char *path, struct ng_str bytes)
{
    char real[4096];
    (void)snprintf(real, sizeof(real), "%s/%s", vault->root, path);
    make_parents(real, strlen(vault->root));
    int fd = open(real, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, bytes.data, bytes.len), (ssize_t)bytes.len);
    assert_int_equal(close(fd), 0);
}

struct ng_str vault_get(struct vault *vault, const char *path)
{
    char real[4096];
    struct stat st;
    (void)snprintf(real, sizeof(real), "%s/%s", vault->root, path);
    int fd = open(real, O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(fstat(fd, &st), 0);
    char *bytes = arena_zalloc(&vault->arena, (size_t)st.st_size + 1);
    assert_non_null(bytes);
    assert_int_equal(read(fd, bytes, (size_t)st.st_size), st.st_size);
    assert_int_equal(close(fd), 0);
    return str_make(bytes, (size_t)st.st_size);
}

void vault_look(struct vault *vault)
{
    notes_index_end(vault->index, vault->notebook.db);
    vault->notebook.db = NULL;
    assert_int_equal(notes_index_begin(vault->index, &vault->call->pub, &vault->notebook.db),
                     NG_OK);
}

int vault_move(struct vault *vault, struct ng_str from, const char *disk, struct ng_str to,
               size_t *ret_links)
{
    struct notes_facts facts = {.move = {.from = from, .to = to}};
    struct notes_changes_of_move changes;
    struct ng_call *call = &vault->call->pub;
    char old[4096];
    char now[4096];
    vault_look(vault);
    *ret_links = 0;
    assert_int_equal(notes_facts_begin(&facts, &vault->notebook, call, &vault->arena), NG_OK);
    assert_int_equal(notes_move_changes(&facts, &changes), NG_OK);
    assert_int_equal(notes_facts_keep(&facts), NG_OK);
    struct ng_str *made = arena_zalloc(&vault->arena, (changes.count + 1) * sizeof(*made));
    for (size_t i = 0; i < changes.count; i++) {
        struct notes_rewritten rewritten;
        struct ng_str bytes = vault_get(vault, changes.items[i].file.data);
        int rc = notes_link_rewrite(&vault->arena, &facts.move, changes.items[i].path, bytes,
                                    &rewritten);
        if (rc != NG_OK) {
            print_message("\n%s, line %zu: %.*s\n", changes.items[i].path.data, rewritten.line,
                          (int)rewritten.target.len, rewritten.target.data);
            notes_facts_done(&facts);
            return rc;
        }
        /* Notes that need no change are not among them. */
        assert_true(rewritten.links > 0);
        *ret_links += rewritten.links;
        made[i] = rewritten.bytes;
    }
    for (size_t i = 0; i < changes.count; i++) {
        vault_put(vault, changes.items[i].file.data, made[i]);
    }
    (void)snprintf(old, sizeof(old), "%s/%s", vault->root, disk);
    (void)snprintf(now, sizeof(now), "%s/%.*s", vault->root, (int)to.len, to.data);
    make_parents(now, strlen(vault->root));
    assert_int_equal(rename(old, now), 0);
    notes_facts_done(&facts);
    vault_look(vault);
    return NG_OK;
}

/* ---- random notebooks */

uint64_t next_random(struct test_vault *test, uint64_t below)
{
    test->random += UINT64_C(0x9e3779b97f4a7c15);
    uint64_t z = test->random;
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return (z ^ (z >> 31)) % below;
}

#define PICK(test, list) ((list)[next_random(test, NG_COUNT(list))])

static const char *const folders[] = {
    "",   "",   "a/",       "b/",   "a/c/",          "sp ace/",
    "A/", "x/", UE_NFD "/", "(1)/", "a/" UE_NFD "/", "b/a/"};
static const char *const names[] = {
    "n",    "n",    "N",         "note",   UE_NFC "n", UE_NFD "n", "sp ace",
    "a.b",  "p(1)", "br[ac]ket", "n.md",   "a%20b",    "a&b",      "it's",
    "x, y", "k: v", "long name", "and #1", "c^d",      "q?",       "\xe8\xa8\x88"};
static const char *const titles[] = {"n", "Title", "Other title", "note", "p(1)", "a/n"};

/* ---- notes */

static struct ng_str text_of(struct test_vault *test, const struct buf *buf)
{
    struct ng_str kept = arena_copy(&test->vault.arena, notes_buf_str(buf));
    assert_non_null(kept.data);
    return kept;
}

struct ng_str random_path(struct test_vault *test, const char *ending)
{
    struct ng_str path = arena_printf(&test->vault.arena, "%s%s%s", PICK(test, folders),
                                      PICK(test, names), ending);
    assert_non_null(path.data);
    return path;
}

bool is_taken(const struct test_vault *test, struct ng_str path)
{
    for (size_t i = 0; i < test->note_count; i++) {
        if (str_equal(test->notes[i].path, path)) {
            return true;
        }
    }
    return false;
}

static void add_note(struct test_vault *test)
{
    struct random_note note = {.disk = random_path(test, ".md")};
    note.path = notes_nfc(&test->vault.arena, note.disk);
    if (next_random(test, 3) == 0) {
        note.title = PICK(test, titles);
    }
    if (next_random(test, 4) == 0) {
        note.alias = PICK(test, titles);
    }
    if (!is_taken(test, note.path)) {
        test->notes[test->note_count++] = note;
    }
}

/* ---- links */

enum style { ENCODE_FEW, ENCODE_ALL, ANGLE };

static void put_encoded(struct buf *out, struct ng_str path, enum style style)
{
    for (size_t i = 0; i < path.len; i++) {
        unsigned char c = (unsigned char)path.data[i];
        bool few = strchr("%#?<>\\", c) != NULL || (style != ANGLE && strchr(" ()", c) != NULL);
        bool letter = (c | 32) >= 'a' && (c | 32) <= 'z';
        if (few || (style == ENCODE_ALL && !letter && c != '/' && c != '.')) {
            buf_printf(out, "%%%02x", c);
        } else {
            buf_add_char(out, (char)c);
        }
    }
}

/* "../" for each folder of the note. */
static void put_ups(struct buf *out, struct ng_str note)
{
    for (size_t i = 0; i < note.len; i++) {
        if (note.data[i] == '/') {
            buf_add_c(out, "../");
        }
    }
}

static void put_suffix(struct test_vault *test, struct buf *out)
{
    static const char *const suffixes[] = {"", "", "", "#head", "#^block", "#a%20b", "?q#x"};
    buf_add_c(out, PICK(test, suffixes));
}

/* A Markdown target that leads to the path. */
static void put_target(struct test_vault *test, struct buf *out, struct ng_str note,
                       struct ng_str path)
{
    enum style style = (enum style)next_random(test, 3);
    if (str_ends(path, ".md") && next_random(test, 4) == 0) {
        path.len -= 3;
    }
    notes_add_if(out, style == ANGLE, "<");
    if (next_random(test, 3) == 0) {
        buf_add_char(out, '/');
    } else {
        notes_add_if(out, next_random(test, 4) == 0, "./");
        put_ups(out, note);
    }
    put_encoded(out, path, style);
    put_suffix(test, out);
    notes_add_if(out, style == ANGLE, ">");
}

static void put_wiki_target(struct test_vault *test, struct buf *out,
                            const struct random_note *to)
{
    static const char *const suffixes[] = {"", "", "#Head ing", "#^block", "^block", " "};
    struct ng_str path = to->path;
    path.len -= next_random(test, 5) == 0 ? 0 : 3;
    size_t kind = next_random(test, 6);
    if (kind == 0 && to->title != NULL) {
        buf_add_c(out, to->title);
    } else if (kind == 1 && to->alias != NULL) {
        buf_add_c(out, to->alias);
    } else if (kind == 2) {
        buf_add_char(out, '/');
        buf_add_str(out, path);
    } else if (kind == 3) {
        buf_add_str(out, path);
    } else {
        buf_add_str(out, notes_file_name(path));
    }
    buf_add_c(out, PICK(test, suffixes));
}

static void put_wiki(struct test_vault *test, struct buf *out, const struct random_note *to)
{
    static const char *const labels[] = {"", "", "|label", "|a b"};
    notes_add_if(out, next_random(test, 4) == 0, "!");
    buf_add_c(out, "[[");
    put_wiki_target(test, out, to);
    buf_add_c(out, PICK(test, labels));
    buf_add_c(out, "]]");
}

static void put_inline(struct test_vault *test, struct buf *out, struct ng_str note,
                       struct ng_str path)
{
    static const char *const texts[] = {"[text](", "[*a* b](", "[`c`]("};
    static const char *const ends[] = {")", ")", " \"title\")", " 'a (b)')"};
    buf_add_c(out, PICK(test, texts));
    put_target(test, out, note, path);
    buf_add_c(out, PICK(test, ends));
}

static struct ng_str random_file(struct test_vault *test)
{
    if (test->file_count == 0) {
        return ng_str_of("none.png");
    }
    return test->files[next_random(test, test->file_count)];
}

const struct random_note *random_note(struct test_vault *test)
{
    return &test->notes[next_random(test, test->note_count)];
}

static void put_link(struct test_vault *test, struct buf *out, struct ng_str note)
{
    switch (next_random(test, 9)) {
    case 0:
    case 1:
    case 2:
        put_wiki(test, out, random_note(test));
        break;
    case 3:
    case 4:
    case 5:
        put_inline(test, out, note, random_note(test)->path);
        break;
    case 6:
        notes_add_if(out, next_random(test, 2) == 0, "!");
        put_inline(test, out, note, random_file(test));
        break;
    case 7:
        buf_add_c(out, "[[missing]] [no](../no/where.md) <https://example.org/n.md>");
        break;
    default:
        buf_add_c(out, "[![i](");
        put_target(test, out, note, random_file(test));
        buf_add_c(out, ")](");
        put_target(test, out, note, random_note(test)->path);
        buf_add_c(out, ")");
    }
}

static void put_line(struct test_vault *test, struct buf *out, struct ng_str note,
                     const char *newline)
{
    static const char *const begins[] = {"",       "- ",   "> ",     "# ",        "1. ",
                                         "- [ ] ", "> - ", "| a | ", "- a\n\n  ", "%% x %% "};
    unsigned number = (unsigned)next_random(test, 1000000);
    switch (next_random(test, 12)) {
    case 0:
        buf_printf(out, "`[[n]] [a](n.md)` x");
        break;
    case 1:
        buf_printf(out, "```%s[[n]]%s[r]: n.md%s```", newline, newline, newline);
        break;
    case 2:
        buf_printf(out, "%%%%%s[[n]]%s%%%%", newline, newline);
        break;
    case 3:
    case 4:
        buf_printf(out, "[r%u] and [t][R%u]%s%s[r%u]: ", number, number, newline, newline,
                   number);
        put_target(test, out, note, random_note(test)->path);
        notes_add_if(out, next_random(test, 2) == 0, " \"title\"");
        break;
    case 5:
        buf_printf(out, "<div>%s[[n]]%s</div>", newline, newline);
        break;
    default:
        buf_add_c(out, PICK(test, begins));
        buf_add_c(out, "word ");
        put_link(test, out, note);
        buf_add_c(out, " and ");
        put_link(test, out, note);
        notes_add_if(out, next_random(test, 5) == 0, " \xff bad");
        notes_add_if(out, next_random(test, 6) == 0, " ##");
    }
    buf_add_c(out, newline);
    notes_add_if(out, next_random(test, 3) > 0, newline);
}

static void put_properties(struct test_vault *test, struct buf *out,
                           const struct random_note *note, const char *newline)
{
    buf_printf(out, "---%s", newline);
    if (note->title != NULL) {
        buf_printf(out, "title: \"%s\"%s", note->title, newline);
    }
    if (note->alias != NULL) {
        buf_printf(out, "aliases: [\"%s\"]%s", note->alias, newline);
    }
    switch (next_random(test, 6)) {
    case 0:
        buf_add_c(out, "up: [[");
        put_wiki_target(test, out, random_note(test));
        buf_printf(out, "]]%s", newline);
        break;
    case 1:
        buf_add_c(out, "up: \"[[");
        put_wiki_target(test, out, random_note(test));
        buf_printf(out, "]] \\t \\\"x\\\"\"%s", newline);
        break;
    case 2:
        buf_printf(out, "list:%s  - see [a](", newline);
        put_target(test, out, note->path, random_note(test)->path);
        buf_printf(out, ")%s  - x%s", newline, newline);
        break;
    case 3:
        buf_printf(out, "text: |%s  [a](", newline);
        put_target(test, out, note->path, random_note(test)->path);
        buf_printf(out, ")%s  b%s", newline, newline);
        break;
    default:
        buf_printf(out, "other: 1%s", newline);
    }
    buf_printf(out, "---%s", newline);
}

static void put_note(struct test_vault *test, const struct random_note *note)
{
    struct buf out;
    const char *newline = next_random(test, 4) == 0 ? "\r\n" : "\n";
    size_t lines = next_random(test, LINES_MAX);
    buf_init(&out, 1048576);
    notes_add_if(&out, next_random(test, 8) == 0, "\xef\xbb\xbf");
    if (note->title != NULL || note->alias != NULL || next_random(test, 3) == 0) {
        put_properties(test, &out, note, newline);
    }
    for (size_t i = 0; i < lines; i++) {
        put_line(test, &out, note->path, newline);
    }
    if (out.len > 0 && next_random(test, 4) == 0) {
        out.len -= out.data[out.len - 1] == '\n';
    }
    assert_int_equal(out.rc, NG_OK);
    vault_put(&test->vault, note->disk.data, text_of(test, &out));
    buf_done(&out);
}

void make_vault(struct test_vault *test)
{
    size_t wanted = 2 + next_random(test, NOTES_MAX - 2);
    test->note_count = test->file_count = 0;
    for (size_t i = 0; i < wanted; i++) {
        add_note(test);
    }
    for (size_t i = 0; i < 2; i++) {
        struct ng_str file = random_path(test, next_random(test, 2) == 0 ? ".png" : ".pdf");
        if (notes_is_ascii(file)) {
            vault_put(&test->vault, file.data, ng_str_of("file"));
            test->files[test->file_count++] = file;
        }
    }
    for (size_t i = 0; i < test->note_count; i++) {
        put_note(test, &test->notes[i]);
    }
}
