/* SPDX-License-Identifier: MIT */
/* fuzz_config.c - configuration files: YAML, ${...}, and the values of every type. */
#include <stdio.h>
#include <stdlib.h>

#include "core/base/str.h"
#include "core/call/gateway.h"
#include "core/config/config.h"
#include "core/config/config_source.h"
#include "core/config/gateway_options.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Every type over every text: an accepted value must be in its range. */
static void fuzz_values(struct arena *arena, const struct config_raw *raw, struct buf *error)
{
    for (size_t i = 0; i < gateway_option_count; i++) {
        const struct ng_option *option = &gateway_options[i];
        struct config_value value;
        buf_clear(error);
        int rc = config_value_parse(arena, option->name, option, raw, &value, error);
        bool ranged = option->type == NG_OPTION_INT || option->type == NG_OPTION_SIZE ||
                      option->type == NG_OPTION_DURATION;
        if (rc == NG_OK && ranged &&
            (value.integer < option->min || value.integer > option->max)) {
            abort();
        }
        if (rc == NG_EINVAL && error->len == 0) {
            abort(); /* a refusal says why */
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char name[] = "NAME=value";
    static char *const variables[] = {name, NULL};
    struct ng_str text = str_make((const char *)data, size);
    struct config_sources sources;
    struct arena arena;
    struct buf error;
    if (size > 0 && memmem(data, size, "${file:", 7) != NULL) {
        return 0; /* the file system is not tested here */
    }
    arena_init(&arena, (size_t)64 * 1024 * 1024);
    buf_init(&error, 4096);
    if (config_source_init(&sources, &arena, variables, &error) != NG_OK) {
        abort();
    }
    sources.file = "fuzz.yaml";
    int rc = config_yaml_read(&sources, text, &error);
    if (rc != NG_OK && error.len == 0) {
        abort();
    }
    size_t tried = 0;
    for (const struct config_raw *raw = sources.first; raw != NULL && tried < 64;
         raw = raw->next, tried++) {
        fuzz_values(&arena, raw, &error);
    }
    buf_done(&error);
    arena_done(&arena);
    return 0;
}
