/* SPDX-License-Identifier: MIT */
/* fuzz_opennotes_front.c - YAML to set, a NUL, a note: any bytes are a note, its front matter
 * is JSON, and a key is either set and all else is as it was, or refused. */
#include <stdlib.h>
#include <string.h>

#include "core/json/json.h"

#include "../../plugins/opennotes/note/note.h"

#define JSON_BYTES_MAX 67108864
#define DEPTH_MAX 200

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
    if (!holds) {
        abort();
    }
}

static void check_json(const struct notes_value *value)
{
    struct buf json;
    buf_init(&json, JSON_BYTES_MAX);
    notes_value_json(&json, value);
    must(json.rc == NG_OK);
    struct arena arena;
    const struct ng_value *parsed = NULL;
    struct json_error error;
    arena_init(&arena, 0);
    must(json_parse(&arena, notes_buf_str(&json), DEPTH_MAX, &parsed, &error) == NG_OK);
    arena_done(&arena);
    buf_done(&json);
}

static void check_note(struct arena *arena, struct ng_str bytes)
{
    struct notes_note note;
    must(notes_note_parse(arena, bytes, &note) == NG_OK);
    must(utf8_valid(note.body));
    must(note.place.body <= bytes.len && note.place.end <= note.place.body);
    must(note.frontmatter != NULL && note.frontmatter->type == NOTES_MAP);
    for (size_t i = 0; i < note.tag_count; i++) {
        must(note.tags[i].len > 0 && utf8_valid(note.tags[i]));
    }
    check_json(note.frontmatter);
}

/* Written as YAML and read again it is the same. */
static void check_written(struct arena *arena, const struct notes_value *map)
{
    struct buf out;
    struct notes_yaml yaml = {.out = &out, .newline = "\n"};
    struct ng_str error;
    const struct notes_value *back = NULL;
    buf_init(&out, JSON_BYTES_MAX);
    notes_yaml_block(&yaml, map, 0, false);
    /* Some keys are longer than YAML has them without a '?'. */
    if (out.len < NOTES_FRONTMATTER_BYTES_MAX &&
        notes_frontmatter_parse(arena, notes_buf_str(&out), 1, &back, &error) == NG_OK) {
        must(notes_value_equal(map, back));
    }
    buf_done(&out);
}

static void check_set(struct arena *arena, struct ng_str bytes, const struct notes_value *set)
{
    struct ng_str made = {NULL, 0};
    struct ng_str error = {NULL, 0};
    struct notes_note before;
    struct notes_note after;
    int rc = notes_frontmatter_set(arena, bytes, set, &made, &error);
    must(rc == NG_OK || (rc == NG_EINVAL && error.len > 0));
    if (rc != NG_OK) {
        return;
    }
    must(notes_note_parse(arena, bytes, &before) == NG_OK);
    must(notes_note_parse(arena, made, &after) == NG_OK);
    must(str_equal(before.body, after.body));
    for (const struct notes_value *item = set->first; item != NULL; item = item->next) {
        const struct notes_value *now = notes_value_get(after.frontmatter, item->key);
        must(item->type == NOTES_NULL ? now == NULL || before.frontmatter_error.data != NULL
                                      : notes_value_equal(item, now));
    }
    for (const struct notes_value *item = before.frontmatter->first; item != NULL;
         item = item->next) {
        must(notes_value_get(set, item->key) != NULL ||
             notes_value_equal(item, notes_value_get(after.frontmatter, item->key)));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena arena;
    struct ng_str all = str_make((const char *)data, size);
    const char *nul = size > 0 ? memchr(data, '\0', size) : NULL;
    size_t len = nul != NULL ? (size_t)(nul - all.data) : size;
    struct ng_str bytes = nul != NULL ? str_make(nul + 1, size - len - 1) : all;
    const struct notes_value *set = NULL;
    struct ng_str error;
    arena_init(&arena, 0);
    check_note(&arena, bytes);
    struct ng_str yaml = notes_utf8_clean(&arena, str_make(all.data, len));
    if (notes_frontmatter_parse(&arena, yaml, 1, &set, &error) == NG_OK) {
        check_json(set);
        check_written(&arena, set);
        check_set(&arena, bytes, set);
    }
    arena_done(&arena);
    return 0;
}
