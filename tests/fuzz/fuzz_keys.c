/* SPDX-License-Identifier: MIT */
/* fuzz_keys.c - texts as bearer keys and as expiry dates: a key that was not made is of nobody.
 */
#include <stdlib.h>
#include <string.h>

#include "keys_table.h"
#include "str.h"

#define INPUT_BYTES_MAX 4096
#define NOW_MS 1800000000000LL

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
    if (!holds) {
        abort();
    }
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
    int rc = keys_parse_expiry(text, NOW_MS, &expires);
    must(rc == NG_OK || rc == NG_EINVAL);
    if (rc == NG_OK) {
        char shown[KEY_TIME_SIZE];
        keys_print_time(expires, shown);
        must(strlen(shown) < sizeof(shown));
    }
    (void)key_parse_role(text, &role);
    (void)key_parse_mode(text, &mode);
    return 0;
}
