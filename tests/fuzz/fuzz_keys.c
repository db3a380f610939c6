/* SPDX-License-Identifier: MIT */
/*
 * fuzz_keys.c - texts as bearer keys and as expiry dates: a key that was not made belongs to no
 * agent. As the document of a key: an accepted one is written and read as the same, and can be
 * shown. As a request for a key: granted rights are within its limits.
 */
#include <float.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/str.h"
#include "core/keys/keys.h"
#include "core/keys/keys_table.h"
#include "test_gateway.h"

#define INPUT_BYTES_MAX 4096
#define PRINTED_BYTES_MAX ((size_t)65536)
#define NOW_MS 1800000000000LL

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
    if (!holds) {
        abort();
    }
}

static void print_key(const struct key *key)
{
    struct arena arena;
    struct json_error error;
    const struct ng_value *value = NULL;
    struct ng_writer writer;
    struct buf out;
    arena_init(&arena, 0);
    buf_init(&out, PRINTED_BYTES_MAX);
    json_writer_init(&writer, &out);
    json_object(&writer);
    key_print(key, &writer);
    json_end(&writer);
    must(out.rc == NG_OK &&
         json_parse(&arena, buf_str(&out), JSON_DEPTH_DEFAULT, &value, &error) == NG_OK);
    arena_done(&arena);
    buf_done(&out);
}

static void try_document(struct ng_str text)
{
    struct ng_doc doc = {.size = sizeof(doc), .key = {.id = ng_str_of("0123456789ab")}};
    struct key *key = NULL;
    struct key *again = NULL;
    struct buf out;
    struct buf same;
    must(doc.key.id.len == KEY_ID_LEN);
    doc.json = text;
    if (key_read(&doc, &key) != NG_OK) {
        return;
    }
    buf_init(&out, PRINTED_BYTES_MAX);
    buf_init(&same, PRINTED_BYTES_MAX);
    must(key_write(key, &out) == NG_OK);
    doc.json = buf_str(&out);
    must(key_read(&doc, &again) == NG_OK && key_write(again, &same) == NG_OK);
    must(str_equal(buf_str(&out), buf_str(&same)));
    must(key->rate >= 0 && key->rate <= DBL_MAX);
    print_key(key);
    (void)key_live(key);
    key_unref(key);
    key_unref(again);
    buf_done(&out);
    buf_done(&same);
}

static void try_request(struct ng_str text)
{
    static struct gateway *gateway;
    struct key_spec spec;
    struct json_error error;
    const struct ng_value *value = NULL;
    if (gateway == NULL) {
        gateway = test_gateway_open(NULL);
        must(gateway != NULL);
    }
    struct call *call = call_new(gateway);
    must(call != NULL);
    if (json_parse(&call->arena, text, JSON_DEPTH_DEFAULT, &value, &error) == NG_OK) {
        int rc = keys_read_spec(call, value, &spec);
        must(rc == NG_OK || call->staged.message.len > 0);
        must(rc != NG_OK || (call_name_valid(spec.agent) && spec.space_count > 0 &&
                             spec.space_count <= KEY_SPACES_MAX + 2 &&
                             spec.tool_count <= KEY_TOOLS_MAX && spec.rate >= 0));
    }
    call_unref(call);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char made[KEY_TEXT_MAX];
    struct ng_str text = {(const char *)data, size};
    struct ng_str id = {NULL, 0};
    enum ng_role role;
    enum ng_mode mode;
    int64_t expires = 0;
    if (made[0] == '\0') {
        must(key_text_make(made) == NG_OK);
        must(key_text_parse(ng_str_of(made), &id) && id.len == KEY_ID_LEN);
    }
    if (size > INPUT_BYTES_MAX) {
        return 0;
    }
    if (key_text_parse(text, &id)) {
        must(id.len == KEY_ID_LEN && id.data > text.data);
        must(id.data + id.len < text.data + text.len && size < KEY_TEXT_MAX);
    }
    int rc = key_parse_expiry(text, NOW_MS, &expires);
    must(rc == NG_OK || rc == NG_EINVAL);
    if (rc == NG_OK) {
        char shown[KEY_TIME_SIZE];
        rfc3339_write(expires, RFC3339_SECONDS, shown);
        must(strlen(shown) < sizeof(shown));
    }
    (void)key_parse_role(text, &role);
    (void)key_parse_mode(text, &mode);
    try_document(text);
    try_request(text);
    return 0;
}
