/* SPDX-License-Identifier: MIT */
/* fuzz_json.c - any bytes as JSON: accepted text prints to an equal value, an error has a
 * position inside the text. */
#include <stdlib.h>

#include "core/base/str.h"
#include "core/base/utf8.h"
#include "core/json/json_number.h"

#define ARENA_BYTES_MAX ((size_t)64 * 1024 * 1024)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
    if (!holds) {
        abort();
    }
}

static void check_numbers(const struct ng_value *value)
{
    int64_t integer = 0;
    if (value->type == NG_TYPE_NUMBER) {
        must(json_compare_numbers(value->text, value->text) == 0);
        must(json_integer(value, &integer) != NG_OK || json_is_integer(value));
        (void)json_double(value);
        (void)json_is_multiple(value->text, value->text);
    }
    for (const struct ng_value *child = value->first; child != NULL; child = child->next) {
        check_numbers(child);
    }
}

static void check_value(struct arena *arena, const struct ng_value *value)
{
    struct buf printed;
    const struct ng_value *again = NULL;
    buf_init(&printed, ARENA_BYTES_MAX);
    must(json_print(&printed, value) == NG_OK);
    must(json_parse(arena, buf_str(&printed), JSON_DEPTH_DEFAULT, &again, NULL) == NG_OK);
    must(json_equal(value, again) && json_hash(value) == json_hash(again));
    check_numbers(value);
    buf_done(&printed);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena arena;
    struct json_error error;
    const struct ng_value *value = NULL;
    arena_init(&arena, ARENA_BYTES_MAX);
    struct ng_str text = str_make((const char *)data, size);
    int rc = json_parse(&arena, text, JSON_DEPTH_DEFAULT, &value, &error);
    if (rc == NG_OK) {
        must(utf8_valid(text));
        check_value(&arena, value);
    } else if (rc == NG_EJSON) {
        must(error.offset <= size && error.line >= 1 && error.column >= 1);
        must(error.message[0] != '\0');
    } else {
        must(rc == NG_EINTERNAL);
    }
    arena_done(&arena);
    return 0;
}
