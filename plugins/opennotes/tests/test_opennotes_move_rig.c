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
