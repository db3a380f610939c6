/* SPDX-License-Identifier: MIT */
/* fuzz_mongo_json.c - JSON objects as BSON and back: what comes back is JSON. (Where it is
 * another text, the backend keeps the text.) */
#include <stdlib.h>

#include "../../backends/mongo/document/document.h"
#include "../../backends/shared/words.h"
#include "core/json/json.h"

#define INPUT_BYTES_MAX 16384

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
    if (!holds) {
        abort();
    }
}

/* Out of BSON, with the members in the order of the text. False: BSON could not hold all. */
static bool round_trip(struct ng_str json, struct bytes *ret)
{
    bson_t names = BSON_INITIALIZER;
    bson_t bson = BSON_INITIALIZER;
    bson_iter_t iter;
    bool whole = false;
    uint32_t at = 0;
    must(json_members(json, &bson, &whole) == NG_OK);
    must(bson_validate(&bson, BSON_VALIDATE_UTF8 | BSON_VALIDATE_UTF8_ALLOW_NULL, NULL));
    must(bson_iter_init(&iter, &bson));
    while (bson_iter_next(&iter)) {
        char digits[16];
        const char *key = NULL;
        (void)bson_uint32_to_string(at++, &key, digits, sizeof(digits));
        must(BSON_APPEND_UTF8(&names, key, bson_iter_key(&iter)));
    }
    must(json_of(&bson, &names, ret) == NG_OK);
    bson_destroy(&names);
    bson_destroy(&bson);
    return whole;
}

static void try_json(struct ng_str text)
{
    struct arena arena;
    struct json_error error;
    const struct ng_value *value = NULL;
    arena_init(&arena, 0);
    /* The core hands over nothing else. */
    if (json_parse(&arena, text, JSON_DEPTH_DEFAULT, &value, &error) == NG_OK &&
        value->type == NG_TYPE_OBJECT) {
        struct bytes once = {0};
        (void)round_trip(text, &once);
        must(json_parse(&arena, bytes_str(&once), JSON_DEPTH_DEFAULT, &value, &error) == NG_OK);
        bytes_done(&once);
    }
    arena_done(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size > INPUT_BYTES_MAX) {
        return 0;
    }
    try_json((struct ng_str){(const char *)data, size});
    return 0;
}
