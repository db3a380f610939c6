/* SPDX-License-Identifier: MIT */
/* test_opennotes_move_rig.h - a folder of notes with an index, in which files are moved and
 * their links rewritten without a tool. */
#ifndef NOTEGATE_TEST_OPENNOTES_MOVE_RIG_H
#define NOTEGATE_TEST_OPENNOTES_MOVE_RIG_H

#include "harness.h"

#include "index/index_open.h"
#include "move/move_changes.h"

struct vault {
    struct harness harness;
    struct call *call;
    char root[300]; /* of the notes: a folder for each vault */
    unsigned number;
    struct notes_indexes *indexes;
    struct notes_index *index;
    struct notes_notebook notebook;
    struct arena arena;
};

void vault_setup(struct vault *vault);
void vault_teardown(struct vault *vault);
/* An empty folder, and its end. */
void vault_open(struct vault *vault);
void vault_close(struct vault *vault);

void vault_put(struct vault *vault, const char *path, struct ng_str bytes);
/* In the arena. */
struct ng_str vault_get(struct vault *vault, const char *path);
/* The index as the files are now: the connection of notebook.db. */
void vault_look(struct vault *vault);

/* Rewrites the links of all notes that the move changes, then renames `disk`, the name of
 * `from` on disk. NG_EINVAL: a link cannot be rewritten, nothing was changed. */
int vault_move(struct vault *vault, struct ng_str from, const char *disk, struct ng_str to,
               size_t *ret_links);

/* ---- random notebooks */

#define NOTES_MAX 14
#define FILES_MAX 4

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

uint64_t next_random(struct test_vault *test, uint64_t below);
struct ng_str random_path(struct test_vault *test, const char *ending);
bool is_taken(const struct test_vault *test, struct ng_str path);
const struct random_note *random_note(struct test_vault *test);
/* Notes and files with links of every form, by test->random. */
void make_vault(struct test_vault *test);

#endif
