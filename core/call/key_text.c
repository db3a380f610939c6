/* SPDX-License-Identifier: MIT */
/* key_text.c - the text of a key: ng_, an id that may be shown, a secret of letters and
 * digits.
 */
#include "key.h"

#include <errno.h>
#include <sys/random.h>

#include "core/base/str.h"

static const char id_letters[] = "abcdefghijklmnopqrstuvwxyz234567";
static const char secret_letters[] =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

#define RANDOM_BYTES 128

/* `len` letters, each as likely as any other: bytes that would favour some are thrown away. */
static int letters_draw(const char *letters, size_t letter_count, char *out, size_t len)
{
    unsigned char bytes[RANDOM_BYTES];
    size_t limit = 256 - 256 % letter_count;
    size_t made = 0;
    while (made < len) {
        ssize_t got = getrandom(bytes, sizeof(bytes), 0);
        if (got < 0 && errno != EINTR) {
            return NG_EUNAVAILABLE;
        }
        for (ssize_t i = 0; i < got && made < len; i++) {
            if (bytes[i] < limit) {
                out[made++] = letters[bytes[i] % letter_count];
            }
        }
    }
    explicit_bzero(bytes, sizeof(bytes));
    return NG_OK;
}

int key_text_make(char ret_text[KEY_TEXT_MAX])
{
    size_t at = sizeof(KEY_PREFIX) - 1;
    memcpy(ret_text, KEY_PREFIX, at);
    int rc = letters_draw(id_letters, sizeof(id_letters) - 1, ret_text + at, KEY_ID_LEN);
    at += KEY_ID_LEN;
    ret_text[at++] = '_';
    if (rc == NG_OK) {
        rc = letters_draw(secret_letters, sizeof(secret_letters) - 1, ret_text + at,
                          KEY_SECRET_LEN);
    }
    ret_text[at + KEY_SECRET_LEN] = '\0';
    return rc;
}

/* By ranges: this is done for every request. */
static bool id_letters_are(const char *text, size_t len)
{
    bool good = true;
    for (size_t i = 0; i < len; i++) {
        char c = text[i];
        good = good && ((c >= 'a' && c <= 'z') || (c >= '2' && c <= '7'));
    }
    return good;
}

static bool secret_letters_are(const char *text, size_t len)
{
    bool good = true;
    for (size_t i = 0; i < len; i++) {
        char c = text[i];
        good = good &&
               ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9'));
    }
    return good;
}

bool key_text_parse(struct ng_str text, struct ng_str *ret_id)
{
    const size_t id_at = sizeof(KEY_PREFIX) - 1;
    const size_t secret_at = id_at + KEY_ID_LEN + 1;
    if (text.len != KEY_TEXT_LEN || memcmp(text.data, KEY_PREFIX, id_at) != 0 ||
        text.data[secret_at - 1] != '_' || !id_letters_are(text.data + id_at, KEY_ID_LEN) ||
        !secret_letters_are(text.data + secret_at, KEY_SECRET_LEN)) {
        return false;
    }
    *ret_id = str_make(text.data + id_at, KEY_ID_LEN);
    return true;
}
