/* SPDX-License-Identifier: MIT */
/* base64, hex, ids, SHA-256, FNV: bytes as text. */
#include <stdlib.h>
#include <string.h>

#include "core/base/hash.h"
#include "core/base/str.h"
#include "core/base/text/base64.h"
#include "core/base/text/hex.h"
#include "core/base/text/random.h"
#include "core/base/text/sha256.h"
#include "harness.h"

#define BYTES_MAX 100

static void encoded(const char *bytes, enum base64_alphabet alphabet, const char *wanted)
{
    struct buf out;
    buf_init(&out, BYTES_MAX);
    base64_encode(&out, ng_str_of(bytes), alphabet);
    assert_string_equal(buf_cstr(&out), wanted);
    struct buf back;
    buf_init(&back, strlen(bytes)); /* exactly the room that it needs */
    assert_true(base64_decode(&back, buf_str(&out), alphabet));
    assert_true(str_is(buf_str(&back), bytes));
    buf_done(&back);
    buf_done(&out);
}

static void test_base64_of_rfc_4648(void **state)
{
    (void)state;
    encoded("f", BASE64_STANDARD, "Zg==");
    encoded("fo", BASE64_STANDARD, "Zm8=");
    encoded("foo", BASE64_STANDARD, "Zm9v");
    encoded("foobar", BASE64_STANDARD, "Zm9vYmFy");
    encoded("f", BASE64_URL, "Zg");
    encoded("fo", BASE64_URL, "Zm8");
    encoded("\xfb\xff\xbf", BASE64_STANDARD, "+/+/");
    encoded("\xfb\xff\xbf", BASE64_URL, "-_-_");
}

static void test_base64_has_one_spelling(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        enum base64_alphabet alphabet;
    } bad[] = {
        {"Zg", BASE64_STANDARD},   {"Zg=", BASE64_STANDARD}, {"Zh==", BASE64_STANDARD},
        {"Zm9=", BASE64_STANDARD}, {"A", BASE64_URL},        {"Zg==", BASE64_URL},
        {"Zh", BASE64_URL},        {"+/+/", BASE64_URL},     {"-_-_", BASE64_STANDARD},
        {"Z g=", BASE64_STANDARD}, {"=", BASE64_URL},        {"====", BASE64_STANDARD},
    };
    for (size_t i = 0; i < NG_COUNT(bad); i++) {
        struct buf out;
        buf_init(&out, BYTES_MAX);
        assert_false(base64_decode(&out, ng_str_of(bad[i].text), bad[i].alphabet));
        assert_int_equal(out.len, 0);
        buf_done(&out);
    }
}

static void test_base64_of_other_programs(void **state)
{
    (void)state;
    struct buf out;
    buf_init(&out, BYTES_MAX);
    assert_true(base64_decode_loose(&out, ng_str_of("Zm9v\r\n YmFy-_+/Zg==\n")));
    assert_true(str_is(buf_str(&out), "foobar\xfb\xff\xbf"
                                      "f"));
    assert_false(base64_decode_loose(&out, ng_str_of("Zm9*")));
    buf_done(&out);
}

static void test_base64_stops_at_the_ceiling(void **state)
{
    (void)state;
    struct buf out;
    buf_init(&out, 4);
    base64_encode(&out, ng_str_of("four"), BASE64_STANDARD);
    assert_int_equal(out.rc, NG_ETOOLARGE);
    assert_int_equal(out.len, 0);
    buf_done(&out);
}

static void test_hex_there_and_back(void **state)
{
    (void)state;
    unsigned char bytes[256];
    unsigned char back[256];
    char text[2 * sizeof(bytes) + 1];
    for (size_t i = 0; i < sizeof(bytes); i++) {
        bytes[i] = (unsigned char)i;
    }
    hex_write(bytes, sizeof(bytes), text);
    assert_int_equal(strlen(text), 2 * sizeof(bytes));
    assert_true(hex_read(ng_str_of(text), back));
    assert_memory_equal(bytes, back, sizeof(bytes));
    assert_true(hex_read(ng_str_of("fFAa"), back));
    assert_int_equal(back[0], 0xff);
    assert_int_equal(back[1], 0xaa);
    assert_false(hex_read(ng_str_of("abc"), back));
    assert_false(hex_read(ng_str_of("0g"), back));
    assert_int_equal(hex_digit(':'), -1);
    assert_int_equal(hex_digit('`'), -1);
}

static void test_ids_differ_and_have_their_form(void **state)
{
    (void)state;
    static const unsigned char zeros[16] = {0};
    char uuid[UUID_SIZE];
    char first[33];
    char second[33];
    uuid_write(zeros, uuid);
    assert_string_equal(uuid, "00000000-0000-4000-8000-000000000000");
    assert_true(random_hex(16, first));
    assert_true(random_hex(16, second));
    assert_int_equal(strlen(first), 32);
    assert_string_not_equal(first, second);
    assert_false(random_hex(RANDOM_HEX_MAX + 1, first));
}

static void test_sha256_of_fips_180(void **state)
{
    (void)state;
    static const char wanted[] =
        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    char text[SHA256_HEX_SIZE];
    unsigned char raw[SHA256_BYTES];
    assert_int_equal(sha256_hex(ng_str_of("abc"), text), NG_OK);
    assert_string_equal(text, wanted);
    struct sha256 *hash = sha256_new();
    assert_non_null(hash);
    assert_int_equal(sha256_add(hash, ng_str_of("ab")), NG_OK);
    assert_int_equal(sha256_now(hash, raw), NG_OK);
    assert_int_equal(sha256_add(hash, str_make(NULL, 0)), NG_OK);
    assert_int_equal(sha256_add(hash, ng_str_of("c")), NG_OK);
    assert_int_equal(sha256_now(hash, raw), NG_OK);
    hex_write(raw, sizeof(raw), text);
    assert_string_equal(text, wanted);
    sha256_free(hash);
    const struct ng_str parts[] = {ng_str_of("a"), STR_NONE, ng_str_of("bc")};
    assert_int_equal(sha256_joined(parts, NG_COUNT(parts), raw), NG_OK);
    hex_write(raw, sizeof(raw), text);
    assert_string_equal(text, wanted);
}

/* The values are stored: they must never change. */
static void test_fnv_is_the_published_one(void **state)
{
    (void)state;
    assert_true(hash_fnv(HASH_FNV_BASIS, ng_str_of("")) == UINT64_C(0xcbf29ce484222325));
    assert_true(hash_fnv(HASH_FNV_BASIS, ng_str_of("a")) == UINT64_C(0xaf63dc4c8601ec8c));
    assert_true(hash_fnv(HASH_FNV_BASIS, ng_str_of("foobar")) == UINT64_C(0x85944171f73967e8));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_base64_of_rfc_4648),
        cmocka_unit_test(test_base64_has_one_spelling),
        cmocka_unit_test(test_base64_of_other_programs),
        cmocka_unit_test(test_base64_stops_at_the_ceiling),
        cmocka_unit_test(test_hex_there_and_back),
        cmocka_unit_test(test_ids_differ_and_have_their_form),
        cmocka_unit_test(test_sha256_of_fips_180),
        cmocka_unit_test(test_fnv_is_the_published_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
