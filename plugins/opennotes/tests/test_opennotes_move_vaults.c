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

#define VAULTS 200
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
        links -= !str_equal(before.items[i].target, after.items[i].target);
    }
    assert_int_equal(links, 0); /* no link is rewritten without need */
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
