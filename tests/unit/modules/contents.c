/* SPDX-License-Identifier: MIT */
/* contents.c - a plugin with kinds of contents,
 * as if compiled with headers in which these have grown. */
#include "record.h"

struct new_kind {
    struct ng_content_kind kind;
    const char *more[3];
};

static int test_check(void *self, struct ng_call *call, const struct ng_sides *sides,
                      struct ng_str merged, bool *ret_good)
{
    (void)self;
    (void)call;
    (void)sides;
    *ret_good = merged.len > 0;
    return NG_OK;
}

static const struct new_kind kinds[] = {
    {{.ending = ".one"}, {"a", "b", "c"}},
    {{.ending = ".two", .check = test_check}, {"d", "e", "f"}},
};

static const struct ng_plugin contents = {
    .name = "contents",
    .version = "1",
    .contents = &kinds[0].kind,
    .content_count = NG_COUNT(kinds),
};

TEST_NOTE(1, NG_KIND_PLUGIN);
extern __attribute__((visibility("default"))) const struct ng_module ng_module;
const struct ng_module ng_module = {
    .abi = 1,
    .kind = NG_KIND_PLUGIN,
    .struct_size = sizeof(contents),
    .item_sizes = {[6] = sizeof(struct new_kind)},
    .desc = &contents,
};
