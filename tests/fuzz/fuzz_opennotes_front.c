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

static void check_json(const struct on_value *value)
{
    struct on_buf json;
    on_buf_init(&json, JSON_BYTES_MAX);
    on_value_json(&json, value);
    must(json.rc == NG_OK);
    struct arena arena;
    const struct ng_value *parsed = NULL;
    struct json_error error;
    arena_init(&arena, 0);
    must(json_parse(&arena, on_buf_str(&json), DEPTH_MAX, &parsed, &error) == NG_OK);
    arena_done(&arena);
    on_buf_done(&json);
}

static void check_note(struct on_arena *arena, struct ng_str bytes)
{
    struct on_note note;
    must(on_note_parse(arena, bytes, &note) == NG_OK);
    must(on_utf8_valid(note.body));
    must(note.place.body <= bytes.len && note.place.end <= note.place.body);
    must(note.front != NULL && note.front->type == ON_MAP);
    for (size_t i = 0; i < note.tag_count; i++) {
        must(note.tags[i].len > 0 && on_utf8_valid(note.tags[i]));
    }
    check_json(note.front);
}

/* Written as YAML and read again it is the same. */
static void check_written(struct on_arena *arena, const struct on_value *map)
{
    struct on_buf out;
    struct on_yaml yaml = {.out = &out, .newline = "\n"};
    struct ng_str error;
    const struct on_value *back = NULL;
    on_buf_init(&out, JSON_BYTES_MAX);
    on_yaml_block(&yaml, map, 0);
    /* Some keys are longer than YAML has them without a '?'. */
    if (out.len < ON_FRONT_BYTES_MAX &&
        on_front_parse(arena, on_buf_str(&out), 1, &back, &error) == NG_OK) {
        must(on_value_equal(map, back));
    }
    on_buf_done(&out);
}

static void check_set(struct on_arena *arena, struct ng_str bytes, const struct on_value *set)
{
    struct ng_str made = {NULL, 0};
    struct ng_str error = {NULL, 0};
    struct on_note before;
    struct on_note after;
    int rc = on_front_set(arena, bytes, set, &made, &error);
    must(rc == NG_OK || (rc == NG_EINVAL && error.len > 0));
    if (rc != NG_OK) {
        return;
    }
    must(on_note_parse(arena, bytes, &before) == NG_OK);
    must(on_note_parse(arena, made, &after) == NG_OK);
    must(on_equal(before.body, after.body));
    for (const struct on_value *item = set->first; item != NULL; item = item->next) {
        const struct on_value *now = on_value_get(after.front, item->key);
        must(item->type == ON_NULL ? now == NULL || before.front_error.data != NULL
                                   : on_value_equal(item, now));
    }
    for (const struct on_value *item = before.front->first; item != NULL; item = item->next) {
        must(on_value_get(set, item->key) != NULL ||
             on_value_equal(item, on_value_get(after.front, item->key)));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct on_arena arena;
    struct ng_str all = on_str((const char *)data, size);
    const char *nul = size > 0 ? memchr(data, '\0', size) : NULL;
    size_t len = nul != NULL ? (size_t)(nul - all.data) : size;
    struct ng_str bytes = nul != NULL ? on_str(nul + 1, size - len - 1) : all;
    const struct on_value *set = NULL;
    struct ng_str error;
    on_arena_init(&arena, 0);
    check_note(&arena, bytes);
    struct ng_str yaml = on_utf8_clean(&arena, on_str(all.data, len));
    if (on_front_parse(&arena, yaml, 1, &set, &error) == NG_OK) {
        check_json(set);
        check_written(&arena, set);
        check_set(&arena, bytes, set);
    }
    on_arena_done(&arena);
    return 0;
}
