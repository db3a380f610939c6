/* SPDX-License-Identifier: MIT */
/* fuzz_mcp_state.c - texts as sealed states: foreign states do not open, own ones open
 * unchanged, and one changed byte makes them invalid. Also ids of sessions and of events. */
#include <stdlib.h>
#include <string.h>

#include "api/protocol/mcp_state.h"
#include "api/session/mcp_session.h"
#include "api/session/mcp_stream.h"
#include "core/base/str.h"

#define INPUT_BYTES_MAX 8192
#define NOW_MS 1800000000000LL
#define SEALED_BYTES_MAX ((size_t)64 * 1024)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
    if (!holds) {
        abort();
    }
}

/* Seals the input, opens it, then opens it with one byte changed. */
static void go_round(const struct mcp_seal *seal, const struct mcp_binding *binding,
                     struct ng_str payload)
{
    struct buf sealed;
    struct arena arena;
    struct ng_str opened = {NULL, 0};
    const char *why = NULL;
    buf_init(&sealed, SEALED_BYTES_MAX);
    arena_init(&arena, 0);
    must(mcp_seal_close(seal, binding, NOW_MS, payload, &sealed) == NG_OK);
    must(mcp_seal_open(seal, binding, NOW_MS, buf_str(&sealed), &arena, &opened, &why) ==
         NG_OK);
    must(str_equal(opened, payload));
    must(mcp_seal_open(seal, binding, NOW_MS + MCP_SEAL_LIFE_MS + 1, buf_str(&sealed), &arena,
                       &opened, &why) == NG_EINVAL);
    size_t at = payload.len == 0 ? 0 : (unsigned char)payload.data[0] % sealed.len;
    sealed.data[at] = sealed.data[at] == 'A' ? 'B' : 'A';
    must(mcp_seal_open(seal, binding, NOW_MS, buf_str(&sealed), &arena, &opened, &why) ==
         NG_EINVAL);
    must(why != NULL);
    arena_done(&arena);
    buf_done(&sealed);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct mcp_seal *seal;
    static struct mcp_sessions *sessions;
    struct ng_str text = {(const char *)data, size};
    struct mcp_binding binding;
    struct arena arena;
    struct ng_str opened = {NULL, 0};
    const char *why = NULL;
    unsigned number = 0;
    uint64_t seq = 0;
    if (seal == NULL) {
        must(mcp_seal_new(NULL, &seal) == NG_OK && mcp_sessions_new(1000, &sessions) == NG_OK);
    }
    if (size > INPUT_BYTES_MAX) {
        return 0;
    }
    must(mcp_binding_make(&text, 1, &binding) == NG_OK);
    arena_init(&arena, 0);
    must(mcp_seal_open(seal, &binding, NOW_MS, text, &arena, &opened, &why) == NG_EINVAL);
    must(why != NULL);
    arena_done(&arena);
    go_round(seal, &binding, text);
    (void)mcp_stream_parse_id(text, &number, &seq);
    must(mcp_sessions_find(sessions, text, ng_str_of("fuzz")) == NULL);
    return 0;
}
