/* SPDX-License-Identifier: MIT */
/* fuzz_mcp_headers.c - lines that are headers, and behind an empty one the message they came
 * with: one answer for both, whatever they say. */
#include <stdlib.h>
#include <string.h>

#include "api/protocol/mcp_version.h"
#include "core/base/str.h"

#define INPUT_BYTES_MAX 16384

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
    if (!holds) {
        abort();
    }
}

static struct ng_str take_line(struct ng_str *rest)
{
    const char *end = rest->len == 0 ? NULL : memchr(rest->data, '\n', rest->len);
    size_t len = end == NULL ? rest->len : (size_t)(end - rest->data);
    struct ng_str line = {rest->len == 0 ? NULL : rest->data, len};
    size_t skip = end == NULL ? len : len + 1;
    rest->data += skip;
    rest->len -= skip;
    return line;
}

static void decide(const struct mcp_message *message, const struct mcp_headers *headers)
{
    for (int session = MCP_VERSION_NONE; session <= MCP_2025_11_25; session++) {
        struct mcp_terms terms;
        bool fits = mcp_version_decide(message, headers, (enum mcp_version)session, &terms);
        must(fits == (terms.code == 0));
        must(!fits || terms.version != MCP_VERSION_NONE);
        must(fits || (terms.status >= 200 && terms.status < 600 && terms.message[0] != '\0'));
        must(!fits || !mcp_is_stateless(terms.version) || message->kind != MCP_REQUEST ||
             terms.capabilities != NULL);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena arena;
    struct json_error error;
    const struct ng_value *value = NULL;
    struct mcp_message message;
    const char *why = NULL;
    struct ng_str rest = {(const char *)data, size};
    if (size > INPUT_BYTES_MAX) {
        return 0;
    }
    struct mcp_headers headers = {.version = take_line(&rest)};
    headers.method = take_line(&rest);
    headers.name = take_line(&rest);
    (void)mcp_header_equal(headers.name, headers.method);
    (void)mcp_header_equal_number(headers.name, headers.method);
    arena_init(&arena, 0);
    if (json_parse(&arena, rest, JSON_DEPTH_DEFAULT, &value, &error) == NG_OK &&
        mcp_message_read(value, &message, &why) == NG_OK) {
        decide(&message, &headers);
        decide(&message, NULL);
    }
    arena_done(&arena);
    return 0;
}
