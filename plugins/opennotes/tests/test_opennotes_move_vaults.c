/* SPDX-License-Identifier: MIT */
/* test_opennotes_move_vaults.c - random notebooks in which a note or folder is moved: every
 * link that led somewhere leads there afterwards, and every other byte is unchanged.
 * NOTES_MOVE_VAULTS=COUNT makes more of them, NOTES_MOVE_SEED=SEED those of a failure. */
#include "test_opennotes_move_rig.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "index/link_sql.h"
#include "move/link_gather.h"

#define VAULTS 300
#define NOTES_MAX 14
#define FILES_MAX 4
#define LINES_MAX 12
#define UE_NFC "\xc3\x9c"
#define UE_NFD "U\xcc\x88"

struct random_note {
    struct ng_str disk, path;  /* on disk, and in NFC */
    const char *title, *alias; /* NULL: none */
};

struct test_vault {
    struct vault vault;
    uint64_t random;
    struct random_note notes[NOTES_MAX];
    size_t note_count;
    struct ng_str files[FILES_MAX];
    size_t file_count;
};

static uint64_t next_random(struct test_vault *test, uint64_t below)
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

static struct ng_str random_path(struct test_vault *test, const char *ending)
{
    struct ng_str path = arena_printf(&test->vault.arena, "%s%s%s", PICK(test, folders),
                                      PICK(test, names), ending);
    assert_non_null(path.data);
    return path;
}

static bool is_taken(const struct test_vault *test, struct ng_str path)
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

static const struct random_note *random_note(struct test_vault *test)
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

static void make_vault(struct test_vault *test)
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

/* ---- what the links lead to */

struct link {
    struct ng_str note, kind, target, led, key;
};

struct links {
    struct link *items;
    size_t count, room;
};

static void add_rows(struct test_vault *test, struct links *links, const char *sql,
                     struct ng_str note)
{
    struct arena *arena = &test->vault.arena;
    sqlite3_stmt *rows = NULL;
    assert_int_equal(sqlite3_prepare_v2(test->vault.notebook.db, sql, -1, &rows, NULL),
                     SQLITE_OK);
    (void)notes_bind_text(rows, 1, note);
    while (sqlite3_step(rows) == SQLITE_ROW) {
        struct link link = {.note = note,
                            .kind = arena_copy(arena, notes_column_text(rows, 0)),
                            .target = arena_copy(arena, notes_column_text(rows, 1)),
                            .led = arena_copy(arena, notes_column_text(rows, 2)),
                            .key = arena_copy(arena, notes_column_text(rows, 3))};
        assert_true(notes_grow(arena, (void **)&links->items, links->count, &links->room,
                               sizeof(link)));
        links->items[links->count++] = link;
    }
    assert_int_equal(sqlite3_finalize(rows), SQLITE_OK);
}

/* By the paths of the notes before the move. */
static void read_links(struct test_vault *test, const struct notes_link_move *move,
                       struct links *links)
{
    static const char sql[] = "SELECT l.kind, l.target, " NOTES_LINK_TARGET(
        "m.path") ", l.key FROM links l WHERE l.note = (SELECT id FROM notes WHERE path = ?1)"
                  " ORDER BY l.rowid";
    static const char images[] =
        "SELECT l.kind, l.target, NULL, l.key FROM images l"
        " WHERE l.note = (SELECT id FROM notes WHERE path = ?1) ORDER BY l.rowid";
    memset(links, 0, sizeof(*links));
    for (size_t i = 0; i < test->note_count; i++) {
        struct ng_str path = notes_move_path(&test->vault.arena, move, test->notes[i].path);
        add_rows(test, links, sql, path);
        add_rows(test, links, images, path);
    }
}

static bool is_file(const struct test_vault *test, struct ng_str path)
{
    for (size_t i = 0; i < test->file_count; i++) {
        if (str_equal(test->files[i], path)) {
            return true;
        }
    }
    return false;
}

static void show(const char *what, struct ng_str text)
{
    print_message("%s%.*s\n", what, (int)text.len, text.data);
}

static void check_link(struct test_vault *test, const struct notes_link_move *move,
                       const struct link *before, const struct link *after)
{
    struct arena *arena = &test->vault.arena;
    bool wiki = str_is(before->kind, "wiki");
    bool right = str_equal(before->kind, after->kind);
    if (before->led.data != NULL) {
        right = right && str_equal(after->led, notes_move_path(arena, move, before->led));
    } else if (!wiki && is_file(test, before->key)) {
        right = right && str_equal(after->key, notes_move_path(arena, move, before->key));
    } else {
        right = right && str_equal(after->target, before->target);
    }
    if (!right) {
        show("in the note: ", before->note);
        show("target before: ", before->target);
        show("target after: ", after->target);
        show("led to: ", before->led);
        show("leads to: ", after->led);
        fail();
    }
}

/* The bytes outside of targets, and outside of properties with links. */
static struct ng_str other_bytes(struct test_vault *test, struct ng_str bytes)
{
    struct arena *arena = &test->vault.arena;
    struct notes_gather gather;
    struct ng_str text = notes_utf8_clean(arena, bytes);
    assert_int_equal(notes_gather_links(arena, text, &gather), NG_OK);
    char *marks = arena_zalloc(arena, text.len + 1);
    char *out = arena_zalloc(arena, text.len + 1);
    size_t len = 0;
    for (size_t i = 0; i < gather.count; i++) {
        const struct notes_gathered *link = &gather.links[i];
        struct ng_str written =
            link->reference ? notes_gather_definition(&gather, link) : STR_NONE;
        if (written.data != NULL) {
            memset(marks + (written.data - text.data), 1, written.len);
        } else if (!link->property && link->at != SIZE_MAX) {
            memset(marks + link->at, 1, link->end - link->at);
        }
    }
    for (size_t i = 0; i < gather.value_count; i++) {
        memset(marks + gather.values[i].at, 1, gather.values[i].end - gather.values[i].at);
    }
    for (size_t i = 0; i < text.len; i++) {
        if (marks[i] == 0) {
            out[len++] = text.data[i];
        }
    }
    return str_make(out, len);
}

/* ---- */

struct random_move {
    struct ng_str from, disk, to;
};

/* The folder of a note, as a path without the slash. */
static struct ng_str folder_of(struct ng_str path)
{
    size_t len = path.len - notes_file_name(path).len;
    return str_make(path.data, len > 0 ? len - 1 : 0);
}

static bool is_free(struct test_vault *test, struct ng_str path)
{
    char real[4096];
    struct stat st;
    (void)snprintf(real, sizeof(real), "%s/%.*s", test->vault.root, (int)path.len, path.data);
    return lstat(real, &st) != 0 && !is_taken(test, path);
}

static bool pick_move(struct test_vault *test, struct random_move *ret)
{
    struct arena *arena = &test->vault.arena;
    const struct random_note *note = random_note(test);
    bool folder = next_random(test, 3) == 0 && folder_of(note->disk).len > 0;
    *ret = (struct random_move){.from = note->path, .disk = note->disk};
    ret->to = notes_nfc(arena, random_path(test, folder ? "" : ".md"));
    if (folder) {
        ret->disk = arena_copy(arena, folder_of(note->disk));
        ret->from = notes_nfc(arena, ret->disk);
    }
    if (next_random(test, 4) == 0) { /* only another case */
        char *other = arena_zalloc(arena, ret->from.len + 1);
        memcpy(other, ret->from.data, ret->from.len);
        size_t at = ret->from.len - notes_file_name(ret->from).len;
        other[at] = (char)(notes_is_alpha(other[at]) ? other[at] ^ 32 : other[at]);
        ret->to = str_make(other, ret->from.len);
    }
    bool inside = str_starts(ret->to, ret->from) && ret->to.data[ret->from.len] == '/';
    return !(folder && inside) && !str_equal(ret->from, ret->to) && is_free(test, ret->to);
}

/* Names that no wiki link can name: a move may be refused. */
static bool is_odd(const struct test_vault *test, struct ng_str to)
{
    bool odd = strpbrk(to.data, "#[^") != NULL;
    for (size_t i = 0; i < test->note_count; i++) {
        odd = odd || strpbrk(test->notes[i].path.data, "#[^") != NULL;
    }
    return odd;
}

/* Are there notes that differ in case only, or whose names end in blocks? */
static bool is_ambiguous(struct test_vault *test, const struct notes_link_move *move)
{
    struct arena *arena = &test->vault.arena;
    struct ng_str keys[NOTES_MAX];
    for (size_t i = 0; i < test->note_count; i++) {
        struct ng_str path = notes_move_path(arena, move, test->notes[i].path);
        keys[i] = notes_link_key(arena, path, true, path);
        for (size_t k = 0; k < i; k++) {
            if (str_equal(keys[i], keys[k])) {
                return true;
            }
        }
    }
    return false;
}

static void check_bytes(struct test_vault *test, const struct notes_link_move *move,
                        const struct ng_str *before)
{
    for (size_t i = 0; i < test->note_count; i++) {
        struct ng_str disk = test->notes[i].disk;
        bool moved = !str_equal(notes_move_path(&test->vault.arena, move, test->notes[i].path),
                                test->notes[i].path);
        struct ng_str path = disk;
        if (moved) {
            size_t behind = disk.len;
            size_t slashes = 0;
            for (size_t k = 0; k < move->from.len; k++) {
                slashes += move->from.data[k] == '/';
            }
            for (size_t k = 0; k < disk.len && behind == disk.len; k++) {
                if (disk.data[k] == '/' && slashes-- == 0) {
                    behind = k;
                }
            }
            path = arena_printf(&test->vault.arena, "%.*s%.*s", (int)move->to.len,
                                move->to.data, (int)(disk.len - behind), disk.data + behind);
        }
        struct ng_str now = other_bytes(test, vault_get(&test->vault, path.data));
        if (!str_equal(now, before[i])) {
            show("bytes before: ", before[i]);
            show("bytes after: ", now);
            fail();
        }
    }
}

/* false: there was nothing to move. */
static bool move_once(struct test_vault *test, size_t *refused, size_t *rewritten)
{
    static const struct notes_link_move none = {.from = {"", 0}, .to = {"", 0}};
    struct random_move picked;
    struct links before;
    struct links after;
    struct ng_str bytes[NOTES_MAX];
    size_t links = 0;
    if (!pick_move(test, &picked)) {
        return false;
    }
    vault_look(&test->vault);
    read_links(test, &none, &before);
    for (size_t i = 0; i < test->note_count; i++) {
        bytes[i] = other_bytes(test, vault_get(&test->vault, test->notes[i].disk.data));
    }
    const struct notes_link_move move = {.from = picked.from, .to = picked.to};
    int rc = vault_move(&test->vault, picked.from, picked.disk.data, picked.to, &links);
    if (rc != NG_OK) {
        assert_int_equal(rc, NG_EINVAL);
        if (!is_odd(test, picked.to) && !is_ambiguous(test, &move)) {
            show("refused: ", picked.from);
            show("to: ", picked.to);
            fail();
        }
        (*refused)++;
        return true;
    }
    *rewritten += links;
    read_links(test, &move, &after);
    assert_int_equal(after.count, before.count);
    for (size_t i = 0; i < before.count; i++) {
        check_link(test, &move, &before.items[i], &after.items[i]);
    }
    check_bytes(test, &move, bytes);
    return true;
}

static uint64_t number_from(const char *name, uint64_t fallback)
{
    const char *text = getenv(name);
    return text != NULL ? strtoull(text, NULL, 10) : fallback;
}

static void random_vaults(void **state)
{
    static struct test_vault test;
    size_t refused = 0;
    size_t rewritten = 0;
    size_t moved = 0;
    uint64_t seed = number_from("NOTES_MOVE_SEED", 1);
    uint64_t count = number_from("NOTES_MOVE_VAULTS", VAULTS);
    (void)state;
    vault_setup(&test.vault);
    for (uint64_t i = 0; i < count; i++) {
        print_message("\rNOTES_MOVE_SEED=%llu ", (unsigned long long)(seed + i));
        test.random = (seed + i) * 1000003;
        vault_open(&test.vault);
        make_vault(&test);
        moved += move_once(&test, &refused, &rewritten);
        vault_close(&test.vault);
    }
    print_message("\n%zu moves, %zu refused, %zu links rewritten\n", moved, refused, rewritten);
    vault_teardown(&test.vault);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(random_vaults)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
