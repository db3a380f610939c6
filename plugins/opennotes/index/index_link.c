/* SPDX-License-Identifier: MIT */
/* index_link.c - resolves link targets to keys, and extracts the line around a link. */
#include <string.h>

#include "core/base/text/hex.h"
#include "index_state.h"

/* "https:", "mailto:", or "//host": the target is outside of every notebook. */
bool notes_link_is_address(struct ng_str target)
{
    if (str_begins(target, "//")) {
        return true;
    }
    for (size_t i = 0; i < target.len; i++) {
        char c = target.data[i];
        bool later = (c >= '0' && c <= '9') || c == '+' || c == '.' || c == '-';
        if (c == ':') {
            return i > 1; /* one letter is a Windows drive, not a scheme */
        }
        if (!notes_is_alpha(c) && !(later && i > 0)) {
            return false;
        }
    }
    return false;
}

static struct ng_str before(struct ng_str text, char c)
{
    text.len = notes_find_char(text, 0, c);
    return text;
}

struct ng_str notes_link_decoded(struct arena *arena, struct ng_str target)
{
    char *out = arena_zalloc(arena, target.len + 1);
    size_t len = 0;
    if (out == NULL) {
        return str_make(NULL, 0);
    }
    for (size_t i = 0; i < target.len; i++) {
        out[len] = target.data[i];
        if (target.data[i] == '%' && i + 2 < target.len &&
            hex_read(str_make(target.data + i + 1, 2), out + len)) {
            i += 2;
        }
        len++;
    }
    return str_make(out, len);
}

/* Appends one part of a path; `..` removes the last part, and has no effect at the root. */
static size_t add_part(char *out, size_t len, struct ng_str part)
{
    struct ng_str last = notes_file_name(str_make(out, len));
    if (part.len == 0 || str_is(part, ".")) {
        return len;
    }
    if (str_is(part, "..") && len > 0 && !str_is(last, "..")) {
        return size_max(len - last.len, 1) - 1;
    }
    if (len > 0) {
        out[len++] = '/';
    }
    memcpy(out + len, part.data, part.len);
    return len + part.len;
}

static struct ng_str resolved(struct arena *arena, struct ng_str note_path,
                              struct ng_str target)
{
    size_t folder = note_path.len - notes_file_name(note_path).len;
    char *out = arena_zalloc(arena, folder + target.len + 2);
    size_t len = 0;
    if (out == NULL) {
        return str_make(NULL, 0);
    }
    if (target.len > 0 && target.data[0] != '/' && folder > 0) {
        memcpy(out, note_path.data, folder - 1);
        len = folder - 1;
    }
    for (size_t at = 0; at < target.len;) {
        struct ng_str part = before(str_make(target.data + at, target.len - at), '/');
        len = add_part(out, len, part);
        at += part.len + 1;
    }
    if (len == 0) {
        return str_make(NULL, 0);
    }
    return str_make(out, len);
}

/* Removes the block of a "note^block": letters, digits and '-'. */
struct ng_str notes_link_note(struct ng_str target)
{
    size_t at = target.len;
    while (at > 0 && (notes_is_alpha(target.data[at - 1]) || target.data[at - 1] == '-' ||
                      (target.data[at - 1] >= '0' && target.data[at - 1] <= '9'))) {
        at--;
    }
    bool block = at > 0 && at < target.len && target.data[at - 1] == '^';
    if (block) {
        target.len = at - 1;
    }
    return target;
}

static struct ng_str wiki_key(struct arena *arena, struct ng_str note_path,
                              struct ng_str target)
{
    target = notes_trim(notes_link_note(before(target, '#')));
    if (notes_tree_is_note(target)) {
        target.len -= 3;
        target = notes_link_note(target); /* as in notes_link_names() */
    }
    if (target.len > 0 &&
        (target.data[0] == '/' || str_begins(target, "./") || str_begins(target, "../"))) {
        target = resolved(arena, note_path, target);
    }
    if (target.len == 0) {
        return str_make(NULL, 0);
    }
    return notes_fold(arena, target);
}

struct ng_str notes_link_key(struct arena *arena, struct ng_str note_path, bool wiki,
                             struct ng_str target)
{
    target = notes_trim(target);
    if (notes_link_is_address(target)) {
        return str_make(NULL, 0);
    }
    if (wiki) {
        return wiki_key(arena, note_path, target);
    }
    target = before(before(target, '#'), '?');
    if (target.len == 0) {
        return str_make(NULL, 0);
    }
    struct ng_str key = resolved(arena, note_path, notes_link_decoded(arena, target));
    if (key.data == NULL) {
        return key;
    }
    key = notes_utf8_clean(arena, key);
    return notes_nfc(arena, key);
}

int notes_link_names(struct arena *arena, struct ng_str path, notes_name_fn *put, void *user)
{
    struct ng_str stem = path;
    if (notes_tree_is_note(path)) {
        stem.len -= 3;
    }
    struct ng_str folded = notes_fold(arena, notes_link_note(stem));
    int rc = put(user, path, "path");
    if (rc == NG_OK && stem.len < path.len) {
        rc = put(user, stem, "path");
    }
    if (rc == NG_OK) {
        rc = put(user, folded, "wikipath");
    }
    for (size_t i = 0; i < folded.len && rc == NG_OK; i++) {
        if (folded.data[i] == '/') {
            struct ng_str rest = str_make(folded.data + i + 1, folded.len - i - 1);
            bool last = notes_find_char(rest, 0, '/') == rest.len;
            rc = put(user, rest, last ? "file" : "suffix");
        }
    }
    if (rc == NG_OK && (folded.len == 0 || memchr(folded.data, '/', folded.len) == NULL)) {
        rc = put(user, folded, "file");
    }
    return rc;
}

struct ng_str notes_link_context(struct ng_str body, size_t *line_start, size_t *line_number,
                                 size_t line, struct ng_str needle)
{
    if (line < *line_number) {
        *line_start = 0;
        *line_number = 1;
    }
    while (*line_number < line) {
        struct ng_str skipped =
            before(str_make(body.data + *line_start, body.len - *line_start), '\n');
        if (*line_start + skipped.len >= body.len) {
            break;
        }
        *line_start += skipped.len + 1;
        (*line_number)++;
    }
    struct ng_str text =
        notes_trim(before(str_make(body.data + *line_start, body.len - *line_start), '\n'));
    if (text.len <= NOTES_CONTEXT_MAX) {
        return text;
    }
    size_t at = str_find(text, needle, 0);
    size_t from = 0;
    if (at != SIZE_MAX && at > NOTES_CONTEXT_MAX / 3) {
        from = utf8_cut(text, at - NOTES_CONTEXT_MAX / 3).len;
    }
    return notes_trim(utf8_cut(str_make(text.data + from, text.len - from), NOTES_CONTEXT_MAX));
}
