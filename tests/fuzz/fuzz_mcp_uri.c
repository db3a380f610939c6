/* SPDX-License-Identifier: MIT */
/* fuzz_mcp_uri.c - texts as names of resources: a parsed name prints in one spelling with the
 * same meaning. Behind a newline: a template. */
#include <stdlib.h>
#include <string.h>

#include "api/protocol/mcp_uri.h"
#include "core/base/str.h"

#define INPUT_BYTES_MAX 16384

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
    if (!holds) {
        abort();
    }
}

static void go_round(struct arena *arena, const struct mcp_uri *uri)
{
    struct buf text;
    struct mcp_uri again;
    const char *why = NULL;
    buf_init(&text, RESOURCE_URI_MAX);
    must(resource_uri_print(&text, uri->space, uri->kind, uri->id) == NG_OK);
    must(mcp_uri_is_ours(buf_str(&text)));
    must(mcp_uri_parse(arena, buf_str(&text), &again, &why) == NG_OK);
    must(str_equal(again.space, uri->space) && str_equal(again.kind, uri->kind) &&
         str_equal(again.id, uri->id) && again.revision == 0);
    buf_done(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena arena;
    struct mcp_uri uri;
    const char *why = NULL;
    struct ng_str text = {(const char *)data, size};
    struct ng_str template = {NULL, 0};
    if (size > INPUT_BYTES_MAX) {
        return 0;
    }
    const char *end = size == 0 ? NULL : memchr(data, '\n', size);
    if (end != NULL) {
        text.len = (size_t)(end - text.data);
        template = str_make(end + 1, size - text.len - 1);
    }
    arena_init(&arena, 0);
    int rc = mcp_uri_parse(&arena, text, &uri, &why);
    must(rc == NG_OK || (rc == NG_EINVAL && why != NULL));
    if (rc == NG_OK) {
        must(mcp_uri_is_ours(text));
        go_round(&arena, &uri);
    }
    (void)mcp_template_is_open(template);
    (void)mcp_template_has(template, text);
    (void)mcp_template_matches(template, text);
    arena_done(&arena);
    return 0;
}
