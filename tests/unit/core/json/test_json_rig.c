/* SPDX-License-Identifier: MIT */
/* test_json_rig.c - shared code of test_json*.c; see the header.
 */
#include "test_json_rig.h"

#include "core/base/str.h"

const struct ng_value *parse(struct arena *arena, const char *text)
{
    const struct ng_value *value = NULL;
    struct json_error error;
    if (json_parse(arena, ng_str_of(text), JSON_DEPTH_DEFAULT, &value, &error) != NG_OK) {
        fail_msg("%s: %s", text, error.message);
    }
    return value;
}

struct ng_str number(const char *digits)
{
    return ng_str_of(digits);
}
