/* SPDX-License-Identifier: MIT */
/* note.c - a note from its bytes: the fields of its front matter, and its body. */
#include "note.h"

#include <string.h>
#include <strings.h>

/* Tags and aliases a note may have. */
#define NOTE_NAMES_MAX NOTES_TAGS_MAX
#define EPOCH_DIGITS 10    /* of a time in seconds */
#define EPOCH_MS_DIGITS 13 /* of one in milliseconds */

/* ---- lists of names: a text, a list of texts, or a comma list */

struct names {
    struct arena *arena;
    struct ng_str *items;
    size_t count, room;
    bool tags; /* remove a leading '#' and duplicates */
};

static void names_add(struct names *names, struct ng_str name)
{
    name = notes_trim(name);
    if (names->tags && name.len > 0 && name.data[0] == '#') {
        name = str_make(name.data + 1, name.len - 1);
    }
    if (name.len == 0 || names->count == NOTE_NAMES_MAX) {
        return;
    }
    for (size_t i = 0; i < names->count; i++) {
        if (str_equal(names->items[i], name)) {
            return;
        }
    }
    if (!notes_grow(names->arena, (void **)&names->items, names->count, &names->room,
                    sizeof(*names->items))) {
        names->count = names->room = 0;
        return;
    }
    names->items[names->count++] = name;
}

static void names_add_commas(struct names *names, struct ng_str text)
{
    while (text.len > 0) {
        size_t len = notes_find_char(text, 0, ',');
        names_add(names, str_make(text.data, len));
        len = size_min(len + 1, text.len);
        text = str_make(text.data + len, text.len - len);
    }
}

/* The text as written: a title `09` is "09", though the number is 9. */
static struct ng_str scalar_text(const struct notes_value *value)
{
    switch (value->type) {
    case NOTES_NUMBER:
    case NOTES_FALSE:
    case NOTES_TRUE:
        if (value->written.data != NULL) {
            return value->written;
        }
        return value->text;
    case NOTES_STRING:
        return value->text;
    default:
        return str_make(NULL, 0);
    }
}

static void names_add_value(struct names *names, const struct notes_value *value)
{
    if (value->type != NOTES_LIST) {
        names_add_commas(names, scalar_text(value));
        return;
    }
    for (const struct notes_value *item = value->first; item != NULL; item = item->next) {
        names_add(names, scalar_text(item));
    }
}

/* Of the members with this key in any case. */
static void names_add_members(struct names *names, const struct notes_value *frontmatter,
                              const char *key)
{
    for (const struct notes_value *member = frontmatter->first; member != NULL;
         member = member->next) {
        if (str_equal_fold(member->key, ng_str_of(key))) {
            names_add_value(names, member);
        }
    }
}

/* ---- times */

/* Milliseconds since 1970 in 12 or 13 digits, or seconds in 10. */
static bool epoch_time(struct ng_str digits, int64_t *ret_ms)
{
    int64_t number = 0;
    if (digits.len != EPOCH_DIGITS && digits.len != EPOCH_MS_DIGITS &&
        digits.len != EPOCH_MS_DIGITS - 1) {
        return false;
    }
    for (size_t i = 0; i < digits.len; i++) {
        if (digits.data[i] < '0' || digits.data[i] > '9') {
            return false;
        }
        number = number * 10 + (digits.data[i] - '0');
    }
    if (digits.len == EPOCH_DIGITS) {
        number *= 1000;
    }
    *ret_ms = number;
    return true;
}

static bool is_time(const struct notes_value *value, int64_t *ret_ms)
{
    return value != NULL &&
           ((value->type == NOTES_STRING && notes_time_parse(value->text, ret_ms)) ||
            (value->type == NOTES_NUMBER && epoch_time(value->text, ret_ms)));
}

static bool find_time(const struct notes_value *frontmatter, const char *const *keys,
                      size_t count, int64_t *ret_ms)
{
    for (size_t i = 0; i < count; i++) {
        const struct notes_value *value = notes_value_get(frontmatter, ng_str_of(keys[i]));
        if (is_time(value, ret_ms)) {
            return true;
        }
    }
    return false;
}

/* ---- */

static int read_frontmatter(struct arena *arena, struct ng_str bytes, struct notes_note *note)
{
    static const char *const created[] = {"created", "created_at", "date"};
    static const char *const modified[] = {"modified", "updated", "updated_at"};
    const struct notes_frontmatter *place = &note->place;
    note->yaml =
        notes_utf8_clean(arena, str_make(bytes.data + place->yaml, place->end - place->yaml));
    int rc = notes_frontmatter_parse(arena, note->yaml, 1 + place->there, &note->frontmatter,
                                     &note->frontmatter_error);
    if (rc == NG_EINVAL) {
        struct ng_str ignored;
        rc = notes_frontmatter_parse(arena, ng_str_of(""), 1, &note->frontmatter, &ignored);
    }
    if (rc != NG_OK) {
        return NG_EINTERNAL;
    }
    const struct notes_value *title = notes_value_get(note->frontmatter, ng_str_of("title"));
    if (title != NULL && notes_trim(scalar_text(title)).len > 0) {
        note->title = notes_trim(scalar_text(title));
    }
    struct names tags = {.arena = arena, .tags = true};
    struct names aliases = {.arena = arena};
    names_add_members(&tags, note->frontmatter, "tag");
    names_add_members(&tags, note->frontmatter, "tags");
    names_add_members(&aliases, note->frontmatter, "alias");
    names_add_members(&aliases, note->frontmatter, "aliases");
    note->tags = tags.items;
    note->tag_count = tags.count;
    note->aliases = aliases.items;
    note->alias_count = aliases.count;
    note->has_created =
        find_time(note->frontmatter, created, NG_COUNT(created), &note->created_ms);
    note->has_modified =
        find_time(note->frontmatter, modified, NG_COUNT(modified), &note->modified_ms);
    return arena->failed ? NG_EINTERNAL : NG_OK;
}

int notes_note_parse_frontmatter(struct arena *arena, struct ng_str bytes,
                                 struct notes_note *ret_note)
{
    *ret_note = (struct notes_note){.words = 0};
    notes_frontmatter_find(bytes, &ret_note->place);
    ret_note->has_frontmatter = ret_note->place.there;
    ret_note->body_line = ret_note->place.lines;
    return read_frontmatter(arena, bytes, ret_note);
}

int notes_note_parse(struct arena *arena, struct ng_str bytes, struct notes_note *ret_note)
{
    int rc = notes_note_parse_frontmatter(arena, bytes, ret_note);
    size_t at = ret_note->place.body;
    ret_note->body = notes_utf8_clean(arena, str_make(bytes.data + at, bytes.len - at));
    if (ret_note->body.data == NULL) {
        return NG_EINTERNAL;
    }
    ret_note->words = notes_words(ret_note->body);
    return rc;
}

struct ng_str notes_note_title(const struct notes_note *note, struct ng_str path)
{
    if (note->title.len > 0) {
        return note->title;
    }
    struct ng_str name = notes_file_name(path);
    if (name.len > 3 && strncasecmp(name.data + name.len - 3, ".md", 3) == 0) {
        name.len -= 3;
    }
    return name;
}
