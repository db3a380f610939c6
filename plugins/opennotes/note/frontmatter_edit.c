/* SPDX-License-Identifier: MIT */
/* frontmatter_edit.c - sets keys of front matter in place; all other bytes stay. The result is
 * parsed again, and refused if more than the wanted key has changed. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "note.h"

#define ERROR_BYTES_MAX 400
#define NAME_BYTES_SHOWN 60
/* Growth limit of one edited file. */
#define EDIT_ADDED_MAX 16777216

/* One key and its new value; NULL: remove it. */
struct frontmatter_edit {
    struct arena *arena;
    struct ng_str bytes;
    struct notes_frontmatter frontmatter;
    struct ng_str yaml;
    const struct notes_value *map;
    struct ng_str key;
    const struct notes_value *value;
    struct buf out;
    size_t copied; /* bytes of the file that were copied to `out` or skipped */
    struct notes_yaml write;
    struct ng_str *error;
};

static int refuse(struct frontmatter_edit *edit, const char *why)
{
    char text[ERROR_BYTES_MAX];
    struct ng_str key = utf8_cut(edit->key, NAME_BYTES_SHOWN);
    int len = snprintf(text, sizeof(text), "`%.*s` cannot be set in front matter: %s",
                       (int)key.len, key.data, why);
    *edit->error = arena_copy(edit->arena, str_make(text, (size_t)len));
    return edit->arena->failed ? NG_EINTERNAL : NG_EINVAL;
}

/* The offset of a character in the file. */
static size_t byte_of(const struct frontmatter_edit *edit, size_t character)
{
    size_t at = 0;
    while (character > 0 && at < edit->yaml.len) {
        (void)utf8_next(edit->yaml, &at);
        character--;
    }
    return edit->frontmatter.yaml + at;
}

static size_t line_start(const struct frontmatter_edit *edit, size_t at)
{
    while (at > edit->frontmatter.yaml && edit->bytes.data[at - 1] != '\n') {
        at--;
    }
    return at;
}

/* The start of the line behind the one that holds `at`. */
static size_t line_next(const struct frontmatter_edit *edit, size_t at)
{
    return notes_next_line(str_make(edit->bytes.data, edit->frontmatter.end), at);
}

/* The end of a line without its line end. */
static size_t before_newline(const struct frontmatter_edit *edit, size_t from, size_t at)
{
    at -= at > from && edit->bytes.data[at - 1] == '\n';
    at -= at > from && edit->bytes.data[at - 1] == '\r';
    return at;
}

static bool only_blanks(const struct frontmatter_edit *edit, size_t from, size_t to)
{
    for (size_t at = from; at < to; at++) {
        if (edit->bytes.data[at] != ' ') {
            return false;
        }
    }
    return true;
}

/* Replaces [from, to) of the file by the text that the caller writes next. Calls come in
 * ascending order. */
static void splice(struct frontmatter_edit *edit, size_t from, size_t to)
{
    buf_add_str(&edit->out, str_make(edit->bytes.data + edit->copied, from - edit->copied));
    edit->copied = to;
}

/* ---- members of a block map, the usual form of front matter */

/* The end of the last line of a member: without blank lines, and without comments except those
 * that are indented deeper than its key, which belong to its value. */
static size_t content_end(const struct frontmatter_edit *edit, const struct notes_value *member)
{
    size_t column = member->place.key_column;
    size_t limit = edit->frontmatter.end;
    if (member->next != NULL) {
        limit = line_start(edit, byte_of(edit, member->next->place.key_start));
    }
    size_t start = byte_of(edit, member->place.start);
    size_t end = line_next(edit, start);
    for (size_t at = end; at < limit;) {
        size_t next = line_next(edit, at);
        size_t text = at;
        while (text < next && edit->bytes.data[text] == ' ') {
            text++;
        }
        bool blank = text == next || memchr("\n\r\t", edit->bytes.data[text], 3) != NULL;
        if (!blank && (text - at > column || edit->bytes.data[text] != '#')) {
            end = next;
        }
        at = next;
    }
    return end;
}

static int set_scalar(struct frontmatter_edit *edit, const struct notes_value *old,
                      bool in_flow)
{
    size_t from = byte_of(edit, old->place.start);
    size_t to = byte_of(edit, old->place.end);
    bool nothing = from == to;
    if (nothing && (from == 0 || edit->bytes.data[from - 1] != ':')) {
        return refuse(edit, "it has no value and no `:`");
    }
    edit->write.quotes = old->place.style;
    splice(edit, from, to);
    notes_add_if(&edit->out, nothing, " ");
    notes_yaml_flow(&edit->write, edit->value, in_flow);
    return NG_OK;
}

/* The old value is a block list or map on its own lines. */
static int set_block(struct frontmatter_edit *edit, const struct notes_value *old)
{
    size_t start = byte_of(edit, old->place.start);
    size_t first = line_start(edit, start);
    size_t end = content_end(edit, old);
    if (old->place.line == old->place.key_line || !only_blanks(edit, first, start)) {
        /* An anchor or a tag follows the key. */
        splice(edit, start, before_newline(edit, start, end));
        notes_yaml_flow(&edit->write, edit->value, false);
        return NG_OK;
    }
    if (notes_value_is_block(edit->value)) {
        splice(edit, first, end);
        notes_yaml_block(&edit->write, edit->value, start - first, false);
        return NG_OK;
    }
    size_t colon = byte_of(edit, old->place.key_end);
    while (colon < first && edit->bytes.data[colon] == ' ') {
        colon++;
    }
    if (colon >= first || edit->bytes.data[colon] != ':') {
        return refuse(edit, "it is written as an explicit key (`? key`)");
    }
    splice(edit, colon + 1, colon + 1);
    buf_add_char(&edit->out, ' ');
    notes_yaml_flow(&edit->write, edit->value, false);
    splice(edit, first, end);
    return NG_OK;
}

static int set_in_block(struct frontmatter_edit *edit, const struct notes_value *old)
{
    if (old == NULL) {
        size_t column = 0;
        if (edit->map->first != NULL) {
            column = edit->map->first->place.key_column;
        }
        splice(edit, edit->frontmatter.end, edit->frontmatter.end);
        notes_yaml_member(&edit->write, edit->key, edit->value, column, false);
        return NG_OK;
    }
    size_t key = byte_of(edit, old->place.key_start);
    if (!only_blanks(edit, line_start(edit, key), key)) {
        return refuse(edit, "it is written as an explicit key (`? key`)");
    }
    if (edit->value == NULL) {
        splice(edit, line_start(edit, key), content_end(edit, old));
        return NG_OK;
    }
    if (old->place.style == NOTES_STYLE_BLOCK) {
        return set_block(edit, old);
    }
    if (old->place.style == NOTES_STYLE_BLOCK_TEXT) {
        size_t start = byte_of(edit, old->place.start);
        splice(edit, start, before_newline(edit, start, content_end(edit, old)));
        notes_yaml_flow(&edit->write, edit->value, false);
        return NG_OK;
    }
    return set_scalar(edit, old, false);
}

/* ---- members of {a: 1, b: 2} */

static const struct notes_value *member_before(const struct notes_value *map,
                                               const struct notes_value *member)
{
    const struct notes_value *before = NULL;
    for (const struct notes_value *item = map->first; item != member; item = item->next) {
        before = item;
    }
    return before;
}

static int set_in_flow(struct frontmatter_edit *edit, const struct notes_value *old)
{
    const struct notes_value *before = member_before(edit->map, old);
    if (old == NULL) {
        size_t at = byte_of(edit, edit->map->place.end) - 1;
        if (before != NULL) {
            at = byte_of(edit, before->place.end);
        }
        splice(edit, at, at);
        notes_add_if(&edit->out, before != NULL, ", ");
        notes_yaml_key(&edit->write, edit->key, true);
        buf_add_c(&edit->out, ": ");
        notes_yaml_flow(&edit->write, edit->value, true);
        return NG_OK;
    }
    if (edit->value != NULL) {
        return set_scalar(edit, old, true);
    }
    size_t from = byte_of(edit, old->place.key_start);
    size_t to = byte_of(edit, old->place.end);
    if (old->next != NULL) {
        to = byte_of(edit, old->next->place.key_start);
    } else if (before != NULL) {
        from = byte_of(edit, before->place.end);
    }
    splice(edit, from, to);
    return NG_OK;
}

/* ---- */

static void add_frontmatter(struct frontmatter_edit *edit)
{
    splice(edit, edit->frontmatter.bom, edit->frontmatter.bom);
    buf_add_c(&edit->out, "---");
    buf_add_c(&edit->out, edit->write.newline);
    notes_yaml_member(&edit->write, edit->key, edit->value, 0, false);
    buf_add_c(&edit->out, "---");
    buf_add_c(&edit->out, edit->write.newline);
}

/* The expected map: the old one with the change. NULL: out of memory. */
static struct notes_value *wanted_map(const struct frontmatter_edit *edit)
{
    struct notes_value *map = arena_zalloc(edit->arena, sizeof(*map));
    if (map == NULL) {
        return NULL;
    }
    map->type = NOTES_MAP;
    struct notes_value **link = &map->first;
    for (const struct notes_value *item = edit->map->first; item != NULL; item = item->next) {
        if (edit->value == NULL && str_equal(item->key, edit->key)) {
            continue;
        }
        *link = arena_zalloc(edit->arena, sizeof(**link));
        if (*link == NULL) {
            return NULL;
        }
        **link = *item;
        (*link)->next = NULL;
        link = &(*link)->next;
        map->count++;
    }
    if (edit->value != NULL && !notes_value_put(edit->arena, map, edit->key, edit->value)) {
        return NULL;
    }
    return map;
}

/* Remaining members must keep their order. */
static bool same_order(const struct notes_value *a, const struct notes_value *b)
{
    const struct notes_value *other = b->first;
    for (const struct notes_value *item = a->first; item != NULL; item = item->next) {
        if (other == NULL || !str_equal(item->key, other->key)) {
            return false;
        }
        other = other->next;
    }
    return true;
}

static int verify(struct frontmatter_edit *edit, struct ng_str made)
{
    struct notes_frontmatter frontmatter;
    const struct notes_value *map = NULL;
    struct ng_str error = str_make(NULL, 0);
    notes_frontmatter_find(made, &frontmatter);
    struct ng_str rest = str_make(edit->bytes.data + edit->frontmatter.body,
                                  edit->bytes.len - edit->frontmatter.body);
    if (!frontmatter.there ||
        !str_equal(str_make(made.data + frontmatter.body, made.len - frontmatter.body), rest)) {
        return refuse(
            edit,
            "its layout cannot be changed safely; replace_frontmatter replaces all of it");
    }
    struct ng_str yaml =
        str_make(made.data + frontmatter.yaml, frontmatter.end - frontmatter.yaml);
    int rc = notes_frontmatter_parse(edit->arena, yaml, 2, &map, &error);
    if (rc == NG_EINVAL) {
        char why[ERROR_BYTES_MAX];
        (void)snprintf(why, sizeof(why), "the result does not parse (%.*s)",
                       (int)utf8_cut(error, ERROR_BYTES_MAX / 2).len, error.data);
        return refuse(edit, why);
    }
    if (rc != NG_OK) {
        return rc;
    }
    const struct notes_value *wanted = wanted_map(edit);
    if (wanted == NULL) {
        return NG_EINTERNAL;
    }
    if (!notes_value_equal(wanted, map) || !same_order(wanted, map)) {
        return refuse(
            edit,
            "its layout cannot be changed safely; replace_frontmatter replaces all of it");
    }
    return NG_OK;
}

/* Reads the present front matter. */
static int open_edit(struct frontmatter_edit *edit)
{
    struct ng_str error = str_make(NULL, 0);
    notes_frontmatter_find(edit->bytes, &edit->frontmatter);
    edit->yaml = str_make(edit->bytes.data + edit->frontmatter.yaml,
                          edit->frontmatter.end - edit->frontmatter.yaml);
    edit->write.newline = edit->frontmatter.crlf ? "\r\n" : "\n";
    edit->write.out = &edit->out;
    if (!utf8_valid(edit->yaml)) {
        return refuse(edit, "it is not valid UTF-8");
    }
    int rc = notes_frontmatter_parse(edit->arena, edit->yaml, 2, &edit->map, &error);
    if (rc == NG_EINVAL) {
        char why[ERROR_BYTES_MAX];
        (void)snprintf(
            why, sizeof(why),
            "it does not parse (%.*s); replace_frontmatter replaces it, or its broken line",
            (int)utf8_cut(error, ERROR_BYTES_MAX / 2).len, error.data);
        return refuse(edit, why);
    }
    return rc;
}

static int set_one(struct frontmatter_edit *edit, struct ng_str *ret_bytes)
{
    int rc = open_edit(edit);
    if (rc != NG_OK) {
        return rc;
    }
    const struct notes_value *old = notes_value_get(edit->map, edit->key);
    if (old != NULL) {
        edit->key = old->key; /* `Tags` where `tags` is set */
    }
    *ret_bytes = edit->bytes;
    if (notes_value_equal(old, edit->value)) {
        return NG_OK;
    }
    if (!edit->frontmatter.there) {
        add_frontmatter(edit);
    } else if (edit->map->place.style == NOTES_STYLE_FLOW) {
        rc = set_in_flow(edit, old);
    } else {
        rc = set_in_block(edit, old);
    }
    splice(edit, edit->bytes.len, edit->bytes.len);
    if (rc != NG_OK) {
        return rc;
    }
    if (edit->out.rc == NG_ETOOLARGE) {
        return refuse(edit, "it is too large");
    }
    *ret_bytes = arena_copy(edit->arena, notes_buf_str(&edit->out));
    if (edit->out.rc != NG_OK || ret_bytes->data == NULL) {
        return NG_EINTERNAL;
    }
    return verify(edit, *ret_bytes);
}

int notes_frontmatter_set(struct arena *arena, struct ng_str bytes,
                          const struct notes_value *set, struct ng_str *ret_bytes,
                          struct ng_str *ret_error)
{
    int rc = NG_OK;
    *ret_error = str_make(NULL, 0);
    if (bytes.data == NULL) {
        bytes = str_make("", 0);
    }
    struct ng_str made = bytes;
    for (const struct notes_value *item = set->first; rc == NG_OK && item != NULL;
         item = item->next) {
        struct frontmatter_edit edit = {
            .arena = arena,
            .bytes = made,
            .key = item->key,
            .value = item->type == NOTES_NULL ? NULL : item,
            .error = ret_error,
        };
        buf_init(&edit.out, made.len + EDIT_ADDED_MAX);
        rc = set_one(&edit, &made);
        buf_done(&edit.out);
    }
    if (rc == NG_OK) {
        *ret_bytes = made;
    }
    return rc;
}
