/* SPDX-License-Identifier: MIT */
/* move_source.c - finds what is moved, by its path. */
#include "move_source.h"

#include <string.h>

#include "index/index.h"
#include "text/codes.h"
#include "write/create.h"

#define TRASH_DEPTH_MAX 64
/* Bytes of a trashed note that are read for its title and aliases. */
#define TRASHED_MAX ((uint64_t)64 * 1024 * 1024)
#define TITLE_RANK 2 /* NOTES_LINK_RANK */
#define ALIAS_RANK 3

static int fail_missing(struct ng_call *call, struct ng_str path)
{
    (void)ng_fail(call, NOTES_ENOTE, "No note or folder: %.*s", (int)path.len, path.data);
    call->host->hint(call, "The path of a note ends in .md; opennotes_list has them all.");
    return NOTES_ENOTE;
}

/* Is a part of the path hidden? Deleted notes are in a hidden folder. */
static bool is_hidden(struct ng_str path)
{
    for (size_t at = 0; at < path.len;) {
        size_t end = notes_find_char(path, at, '/');
        if (notes_tree_is_hidden(str_make(path.data + at, end - at))) {
            return true;
        }
        at = end + 1;
    }
    return false;
}

static int find_place(struct notes_notebook *notebook, struct ng_call *call,
                      struct notes_move_source *source)
{
    enum ng_file_type type = NG_FILE_NONE;
    int rc = notes_write_at(notebook, call, source->path, &source->absolute, &type);
    if (rc != NG_OK) {
        return rc;
    }
    source->folder = type == NG_FILE_DIRECTORY;
    bool note = type == NG_FILE_REGULAR && notes_tree_is_note(source->path);
    return source->folder || note ? NG_OK : fail_missing(call, source->path);
}

int notes_source_find(struct notes_notebook *notebook, struct ng_call *call,
                      struct ng_str given, struct notes_move_source *ret)
{
    struct notes_location at;
    *ret = (struct notes_move_source){.folder = false};
    int rc = notes_index_path(call, given, &ret->path);
    if (rc != NG_OK) {
        return rc;
    }
    struct ng_str below = notes_path_below(ret->path, ng_str_of(NOTES_TRASH));
    ret->trashed = below.len > 0;
    if (ret->path.len == 0) {
        return ng_fail(call, NOTES_EPATH,
                       "`path` names the whole notebook; name a note or a folder in it.");
    }
    if (is_hidden(ret->trashed ? below : ret->path)) {
        return fail_missing(call, ret->path);
    }
    rc = notes_notebook_begin(notebook, call);
    if (rc != NG_OK || ret->trashed || !notes_tree_is_note(ret->path)) {
        return rc == NG_OK ? find_place(notebook, call, ret) : rc;
    }
    rc = notes_index_find(notebook->index, call, notebook->db, ret->path, &at);
    return rc == NG_OK ? notes_write_place(notebook, call, at.file, &ret->absolute) : rc;
}

/* ---- notes that are in no index */

static int add_names(struct notes_facts *facts, struct ng_str absolute, struct ng_str to)
{
    struct ng_call *call = facts->call;
    struct ng_file file = {.size = sizeof(file)};
    struct notes_note note;
    int rc = call->host->file_read(call, absolute, TRASHED_MAX, &file);
    if (rc == NG_OK &&
        notes_note_parse_frontmatter(facts->arena, notes_present(file.data), &note) != NG_OK) {
        rc = notes_fail_memory(call);
    }
    if (rc == NG_OK && note.title.len > 0) {
        rc = notes_facts_name(facts, to, note.title, TITLE_RANK);
    }
    for (size_t i = 0; rc == NG_OK && i < note.alias_count; i++) {
        rc = notes_facts_name(facts, to, note.aliases[i], ALIAS_RANK);
    }
    return rc;
}

struct trashed {
    struct notes_facts *facts;
    const struct notes_move_source *source;
    struct ng_str *names;
    size_t count, room;
    bool failed;
};

static int take_entry(void *user, const struct ng_file_entry *entry)
{
    struct trashed *trashed = user;
    struct arena *arena = trashed->facts->arena;
    if (entry->type != NG_FILE_REGULAR || !notes_tree_is_note(entry->name)) {
        return 0;
    }
    trashed->failed = !notes_grow(arena, (void **)&trashed->names, trashed->count,
                                  &trashed->room, sizeof(*trashed->names));
    if (!trashed->failed) {
        trashed->names[trashed->count++] = arena_copy(arena, entry->name);
    }
    return trashed->failed;
}

static int add_trashed(struct notes_facts *facts, const struct notes_move_source *source,
                       struct ng_str name)
{
    struct arena *arena = facts->arena;
    const struct ng_str to = facts->move.to;
    struct ng_str path = notes_nfc(
        arena, notes_utf8_clean(arena, arena_printf(arena, "%.*s/%.*s", (int)to.len, to.data,
                                                    (int)name.len, name.data)));
    struct ng_str absolute = arena_printf(arena, "%.*s/%.*s", (int)source->absolute.len,
                                          source->absolute.data, (int)name.len, name.data);
    if (arena->failed) {
        return notes_fail_memory(facts->call);
    }
    int rc = notes_facts_add(facts, 0, source->path, path);
    return rc == NG_OK ? add_names(facts, absolute, path) : rc;
}

int notes_source_add_trashed(struct notes_facts *facts, const struct notes_move_source *source)
{
    struct ng_call *call = facts->call;
    struct trashed trashed = {.facts = facts, .source = source};
    const struct ng_file_list list = {
        .size = sizeof(list), .path = source->absolute, .depth = TRASH_DEPTH_MAX};
    if (!source->folder) {
        int rc = notes_facts_add(facts, 0, source->path, facts->move.to);
        return rc == NG_OK ? add_names(facts, source->absolute, facts->move.to) : rc;
    }
    int rc = call->host->file_list(call, &list, take_entry, &trashed);
    if (trashed.failed) {
        return notes_fail_memory(call);
    }
    for (size_t i = 0; rc == NG_OK && i < trashed.count; i++) {
        rc = add_trashed(facts, source, trashed.names[i]);
    }
    return rc;
}
