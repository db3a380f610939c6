/* SPDX-License-Identifier: MIT */
/* link_target.c - the target of a link after a move, in the form of the old one. */
#include <stdio.h>
#include <string.h>

#include "core/base/text/hex.h"
#include "index/index_link.h"
#include "link_rewrite.h"
#include "tree/tree.h"

struct ng_str notes_move_path(struct arena *arena, const struct notes_link_move *move,
                              struct ng_str path)
{
    struct ng_str from = move->from;
    if (str_equal(path, from)) {
        return move->to;
    }
    bool below = path.len > from.len && str_starts(path, from) && path.data[from.len] == '/';
    if (!below) {
        return path;
    }
    return arena_printf(arena, "%.*s%.*s", (int)move->to.len, move->to.data,
                        (int)(path.len - from.len), path.data + from.len);
}

static struct ng_str folder_of(struct ng_str path)
{
    return str_make(path.data, path.len - notes_file_name(path).len);
}

/* "../b/c.md" for b/c.md from a note in the folder "a/". */
static struct ng_str relative_path(struct arena *arena, struct ng_str note, struct ng_str path)
{
    struct ng_str folder = folder_of(note);
    size_t same = 0;
    size_t ups = 0;
    for (size_t i = 0; i < folder.len && i < path.len && folder.data[i] == path.data[i]; i++) {
        if (folder.data[i] == '/') {
            same = i + 1;
        }
    }
    for (size_t i = same; i < folder.len; i++) {
        ups += folder.data[i] == '/';
    }
    size_t len = ups * 3 + (path.len - same);
    char *out = arena_zalloc(arena, len + 1);
    if (out == NULL) {
        return STR_NONE;
    }
    for (size_t i = 0; i < ups; i++) {
        memcpy(out + i * 3, "../", 3);
    }
    memcpy(out + ups * 3, path.data + same, path.len - same);
    return str_make(out, len);
}

/* ---- wiki links */

/* The path of "path#heading" or "path^block"; the target has no blanks around it. */
static struct ng_str wiki_path(struct ng_str target)
{
    struct ng_str part = str_make(target.data, notes_find_char(target, 0, '#'));
    part = notes_link_note(part);
    while (part.len > 0 && notes_is_space(part.data[part.len - 1])) {
        part.len--;
    }
    return part;
}

static bool is_relative(struct ng_str path)
{
    return path.len > 0 &&
           (path.data[0] == '/' || str_begins(path, "./") || str_begins(path, "../"));
}

/* [[folder/file.pdf]]: the path of a file from the notebook's root. Files without a folder are
 * found anywhere. */
static enum notes_link_change wiki_file(struct arena *arena, const struct notes_link_use *use,
                                        struct ng_str part, struct notes_link_target *ret)
{
    if (is_relative(part) || memchr(part.data, '/', part.len) == NULL) {
        return NOTES_LINK_STAYS;
    }
    struct ng_str path = notes_nfc(arena, part);
    if (path.data == NULL) {
        return NOTES_LINK_OOM;
    }
    if (!use->move->exists(use->move->user, path)) {
        return NOTES_LINK_STAYS;
    }
    struct ng_str to = notes_move_path(arena, use->move, path);
    if (to.data == NULL) {
        return NOTES_LINK_OOM;
    }
    *ret = (struct notes_link_target){.path = to, .replaced = part.len};
    return str_equal(to, path) ? NOTES_LINK_STAYS : NOTES_LINK_CHANGES;
}

static enum notes_link_change retarget_wiki(struct arena *arena,
                                            const struct notes_link_use *use,
                                            struct ng_str target, struct notes_link_target *ret)
{
    const struct notes_link_move *move = use->move;
    struct ng_str part = wiki_path(target);
    struct ng_str key = notes_link_key(arena, use->before, true, target);
    if (key.len == 0 || part.len == 0) {
        return arena->failed ? NOTES_LINK_OOM : NOTES_LINK_STAYS;
    }
    struct ng_str led = move->leads(move->user, NOTES_BEFORE, true, key);
    if (led.data == NULL) {
        return wiki_file(arena, use, part, ret);
    }
    struct ng_str wanted = notes_move_path(arena, move, led);
    key = notes_link_key(arena, use->after, true, target);
    if (arena->failed) {
        return NOTES_LINK_OOM;
    }
    if (str_equal(move->leads(move->user, NOTES_AFTER, true, key), wanted)) {
        return NOTES_LINK_STAYS;
    }
    struct ng_str path = move->shortest(move->user, wanted, notes_tree_is_note(part));
    *ret = (struct notes_link_target){.path = path, .replaced = part.len};
    return path.data == NULL ? NOTES_LINK_IMPOSSIBLE : NOTES_LINK_CHANGES;
}

/* ---- Markdown links */

/* The path, after the move, of the note or file that the key led to before. */
static struct ng_str wanted_path(struct arena *arena, const struct notes_link_use *use,
                                 struct ng_str key, bool *ret_note)
{
    const struct notes_link_move *move = use->move;
    struct ng_str led = move->leads(move->user, NOTES_BEFORE, false, key);
    *ret_note = led.data != NULL;
    if (*ret_note) {
        return notes_move_path(arena, move, led);
    }
    bool concerned = !str_equal(use->before, use->after) ||
                     !str_equal(notes_move_path(arena, move, key), key);
    if (!concerned || !move->exists(move->user, key)) {
        return STR_NONE;
    }
    return notes_move_path(arena, move, key);
}

/* The path that a link to the note `wanted` writes: without its ending, if the old one is. */
static struct ng_str without_ending(struct ng_str wanted, struct ng_str old)
{
    struct ng_str stem = str_make(wanted.data, wanted.len - 3 * notes_tree_is_note(wanted));
    bool plain = !notes_tree_is_note(old) && stem.len < wanted.len &&
                 !notes_tree_is_note(stem) && notes_file_name(stem).len > 0;
    return plain ? stem : wanted;
}

static struct ng_str form_path(struct arena *arena, const struct notes_link_use *use,
                               struct ng_str old, struct ng_str path)
{
    const char *before = "";
    const char *behind = "";
    if (old.len > 0 && old.data[0] == '/') {
        before = "/";
    } else {
        path = relative_path(arena, use->after, path);
        bool dot = str_begins(old, "./") && !str_begins(path, "../");
        before = dot || notes_link_is_address(path) || path.len == 0 ? "./" : "";
    }
    if (str_ends(old, "/") && !str_ends(path, "/")) {
        behind = "/";
    }
    return arena_printf(arena, "%s%.*s%s", before, (int)path.len, path.data, behind);
}

static enum notes_link_change retarget_path(struct arena *arena,
                                            const struct notes_link_use *use,
                                            struct ng_str target, struct notes_link_target *ret)
{
    const struct notes_link_move *move = use->move;
    struct ng_str key = notes_link_key(arena, use->before, false, target);
    bool note = false;
    if (key.len == 0) {
        return arena->failed ? NOTES_LINK_OOM : NOTES_LINK_STAYS;
    }
    struct ng_str wanted = wanted_path(arena, use, key, &note);
    struct ng_str key_after = notes_link_key(arena, use->after, false, target);
    if (arena->failed) {
        return NOTES_LINK_OOM;
    }
    struct ng_str leads = key_after;
    if (note) {
        leads = move->leads(move->user, NOTES_AFTER, false, key_after);
    }
    if (wanted.data == NULL || str_equal(leads, wanted)) {
        return NOTES_LINK_STAYS;
    }
    struct ng_str part = str_make(target.data, size_min(notes_find_char(target, 0, '#'),
                                                        notes_find_char(target, 0, '?')));
    struct ng_str old = notes_link_decoded(arena, part);
    ret->replaced = part.len;
    ret->key = note ? without_ending(wanted, old) : wanted;
    ret->path = form_path(arena, use, old, ret->key);
    return arena->failed ? NOTES_LINK_OOM : NOTES_LINK_CHANGES;
}

enum notes_link_change notes_link_retarget(struct arena *arena,
                                           const struct notes_link_use *use, bool wiki,
                                           struct ng_str target, struct notes_link_target *ret)
{
    *ret = (struct notes_link_target){.replaced = 0};
    if (wiki) {
        return retarget_wiki(arena, use, target, ret);
    }
    return retarget_path(arena, use, target, ret);
}

/* ---- writing */

/* Has the old target a character as "%XX"? `from`: the lowest one that counts. */
static bool encodes(struct ng_str written, unsigned char from, unsigned char to)
{
    for (size_t i = 0; i + 2 < written.len; i++) {
        unsigned char byte = 0;
        if (written.data[i] == '%' && hex_read(str_make(written.data + i + 1, 2), &byte) &&
            byte >= from && byte <= to) {
            return true;
        }
    }
    return false;
}

static void write_encoded(struct buf *out, struct ng_str path, struct ng_str written,
                          bool angle)
{
    bool high = encodes(written, 0x80, 0xff);
    bool blanks = angle && !encodes(written, ' ', ' ');
    for (size_t i = 0; i < path.len; i++) {
        unsigned char c = (unsigned char)path.data[i];
        bool inner = c == ' ' && blanks && i > 0 && i + 1 < path.len;
        bool plain = c > ' ' && c != 0x7f && strchr("%#?\\<>`|()&\"", c) == NULL;
        if (inner || (plain && (c < 0x80 || !high))) {
            buf_add_char(out, (char)c);
        } else {
            buf_printf(out, "%%%02X", c);
        }
    }
}

void notes_link_write(struct buf *out, const struct notes_link_target *target, bool wiki,
                      struct ng_str written, bool angle)
{
    size_t kept = target->replaced;
    if (wiki) {
        buf_add_str(out, target->path);
    } else {
        struct buf meant;
        buf_init(&meant, written.len + 64);
        kept = notes_markdown_target(&meant, written, target->replaced);
        if (meant.rc != NG_OK) {
            out->rc = meant.rc;
        }
        buf_done(&meant);
        write_encoded(out, target->path, written, angle);
    }
    buf_add_str(out, str_make(written.data + kept, written.len - kept));
}
