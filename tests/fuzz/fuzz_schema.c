/* SPDX-License-Identifier: MIT */
/* fuzz_schema.c - a schema, a NUL, a value: compiling, checking and fitting end, and say
 * something where they fail. */
#include <stdlib.h>
#include <string.h>

#include "core/base/str.h"
#include "core/base/utf8.h"
#include "core/schema/schema.h"

#define ARENA_BYTES_MAX ((size_t)64 * 1024 * 1024)
#define INPUT_BYTES_MAX 2048 /* longer ones only find that exponential schemas are slow */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
    if (!holds) {
        abort();
    }
}

/* What is fitted is still JSON of the depth that is allowed. */
static void fit(const struct schema *schema, const struct ng_value *value, struct arena *arena)
{
    static const struct ng_str ignored[] = {{"sessionId", 9}, {"a", 1}};
    static const struct schema_leniency leniency = {
        .depth = JSON_DEPTH_DEFAULT, .ignored = ignored, .ignored_count = NG_COUNT(ignored)};
    struct violations violations;
    struct buf out;
    const struct ng_value *again = NULL;
    (void)schema_fit(schema, (struct ng_value *)(uintptr_t)value, arena, &leniency);
    int rc = schema_check(schema, value, arena, &violations);
    must(rc == NG_OK || rc == NG_EINVAL || rc == NG_EINTERNAL);
    buf_init(&out, ARENA_BYTES_MAX);
    must(json_print(&out, value) == NG_OK);
    must(arena->oom ||
         json_parse(arena, buf_str(&out), JSON_DEPTH_DEFAULT, &again, NULL) == NG_OK);
    buf_done(&out);
}

static void check(const struct schema *schema, struct ng_str text)
{
    struct arena arena;
    struct violations violations;
    const struct ng_value *value = NULL;
    arena_init(&arena, ARENA_BYTES_MAX);
    if (json_parse(&arena, text, JSON_DEPTH_DEFAULT, &value, NULL) == NG_OK) {
        int rc = schema_check(schema, value, &arena, &violations);
        must(rc == NG_OK || rc == NG_EINVAL || rc == NG_EINTERNAL);
        must(rc != NG_EINVAL || violations.count > 0);
        for (size_t i = 0; rc == NG_EINVAL && i < violations.count; i++) {
            must(violations.items[i].expected.len > 0 && violations.items[i].got.len > 0);
            must(utf8_valid(violations.items[i].got));
            must(utf8_valid(violations.items[i].expected));
        }
        if (rc == NG_EINVAL) {
            fit(schema, value, &arena);
        }
    }
    arena_done(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char error[300];
    struct schema *schema = NULL;
    const uint8_t *nul = size == 0 ? NULL : memchr(data, 0, size);
    size_t schema_size = nul == NULL ? size : (size_t)(nul - data);
    if (size > INPUT_BYTES_MAX) {
        return 0;
    }
    int rc = schema_compile(str_make((const char *)data, schema_size), &schema, error,
                            sizeof(error));
    must(rc == NG_OK || (error[0] != '\0' && schema == NULL));
    if (rc == NG_OK && nul != NULL) {
        check(schema, str_make((const char *)nul + 1, size - schema_size - 1));
    }
    schema_free(schema);
    return 0;
}
