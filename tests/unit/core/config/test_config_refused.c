/* SPDX-License-Identifier: MIT */
/* test_config_refused.c - refused configurations with their messages, and memory that runs out.
 */
#include "test_config_rig.h"

#include <string.h>

#include "core/base/arena.h"

static void refused_variable(const char *variable, const char *message)
{
    refused(&(struct given){.environ = (const char *const[]){variable, NULL}}, message);
}

static void test_unknown(void **state)
{
    (void)state;
    refused_file("limits:\n  bdy: 1\n",
                 FILE_NAME ":2: unknown key `limits.bdy`; the nearest is `limits.body`");
    refused_file("\nbody: 1\n",
                 FILE_NAME ":2: unknown key `body`; the nearest is `limits.body`");
    refused_file("lisen: x\n", FILE_NAME ":1: unknown key `lisen`; the nearest is `listen`");
    refused_file("mod.tmeout: 1s\n",
                 FILE_NAME ":1: unknown key `mod.tmeout`; the nearest is `mod.timeout`");
    refused_file("completely_else: x\n",
                 FILE_NAME ":1: unknown key `completely_else`; `notegate check --help-config` "
                           "lists all");
    refused_file("listen: {a: b}\n",
                 FILE_NAME ":1: unknown key `listen.a`; the nearest is `listen`");
    refused_file("nothing:\n", FILE_NAME ":1: unknown key `nothing`; `notegate check "
                                         "--help-config` lists all");
    refused_set("limits.bodi=1", "flag limits.bodi: unknown key `limits.bodi`; the nearest is "
                                 "`limits.body`");
    refused_variable(
        "NOTEGATE_LIMITS_BODI=1",
        "environment NOTEGATE_LIMITS_BODI: unknown key `NOTEGATE_LIMITS_BODI`; the "
        "nearest is `NOTEGATE_LIMITS_BODY`");
    refused_variable("NOTEGATE_=1", "environment NOTEGATE_: unknown key `NOTEGATE_`; "
                                    "`notegate check --help-config` lists all");
    refused_set("timezone", "flag timezone: write it as key=value");
    refused_set("=x", "flag =x: write it as key=value");
}

static void test_bad_values(void **state)
{
    (void)state;
    refused_file("limits.body: big\n",
                 FILE_NAME ":1: `limits.body` is `big`, not a size: write it as 4MiB, 4MB or "
                           "4096");
    refused_variable(
        "NOTEGATE_LIMITS_BODY=-1",
        "environment NOTEGATE_LIMITS_BODY: `limits.body` is `-1`, not a size: write "
        "it as 4MiB, 4MB or 4096");
    refused_set("history.keep=3", "flag history.keep: `history.keep` is `3`, not a duration: "
                                  "write it as 500ms, 30s, 5min, 1h or 30d");
    refused_set("limits.depth=1.5",
                "flag limits.depth: `limits.depth` is `1.5`, not a whole number");
    refused_set("limits.depth=0",
                "flag limits.depth: `limits.depth` is `0`, it must be from 1 to 1000");
    refused_set("limits.body=1GiB",
                "flag limits.body: `limits.body` is `1GiB`, it must be from 1 to 128MiB");
    refused_set("mod.timeout=99ms",
                "flag mod.timeout: `mod.timeout` is `99ms`, it must be from 100ms to 1min");
    refused_set("mod.any=-1", "flag mod.any: `mod.any` is `-1`, it must not be negative");
    refused_set("mod.ratio=nan", "flag mod.ratio: `mod.ratio` is `nan`, not a number");
    refused_set("mod.ratio=1e999", "flag mod.ratio: `mod.ratio` is `1e999`, not a number");
    refused_set("mod.ratio=1-", "flag mod.ratio: `mod.ratio` is `1-`, not a number");
    refused_set("mod.on=maybe", "flag mod.on: `mod.on` is `maybe`, neither true nor false");
    refused_set("auth=maybe", "flag auth: `auth` is `maybe`, it must be one of: auto on off");
    refused_set("mod.kind=", "flag mod.kind: `mod.kind` is ``, it must be one of: big small");
    refused_set("roots=a,,b", "flag roots: `roots` is `a,,b`, a list with an empty element, or "
                              "with too many: write it as a,b,c");
    refused_file("roots: [a, '']\n",
                 FILE_NAME ":1: `roots` is a list with an empty element, or with too many: "
                           "write it as a,b,c");
    refused_file("listen: [a]\n", FILE_NAME ":1: `listen` takes one value (text), not a list");
    /* A value that a stronger one replaces is still looked at. */
    refused(
        &(struct given){.file = "auth: x\n", .sets = (const char *const[]){"auth=on", NULL}},
        FILE_NAME ":1: `auth` is `x`, it must be one of: auto on off");
    refused_set(
        "auth=aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
        "aaaaaaaaaaaaaaaaaaaaaaaa",
        "flag auth: `auth` is `aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
        "aaaaaaaaaaaaaaaaaaaaa...`, it must be one of: auto on off");
}

static void test_bad_files(void **state)
{
    (void)state;
    refused_file("a: b: c\n", FILE_NAME ":1: not YAML: mapping values are not allowed in this "
                                        "context");
    refused_file(
        "auth: on\nlisten: [a\n", FILE_NAME
        ":3: not YAML: while parsing a flow sequence, did not find expected ',' or ']'");
    refused_file("listen: *none\n", FILE_NAME ":1: not YAML: found undefined alias");
    refused_file("listen: \"\xff\"\n",
                 FILE_NAME ": not YAML: invalid leading UTF-8 octet at byte 9");
    refused_file("- a\n- b\n",
                 FILE_NAME ":1: the file must hold keys, as in `listen: 127.0.0.1:8420`");
    refused_file("listen: a\n---\nlisten: b\n",
                 FILE_NAME ":3: a second document; the configuration is one");
    refused_file("auth: on\nlisten: a\n\nlisten: b\n",
                 FILE_NAME ":4: `listen` is set twice; line 2 sets it too");
    refused_file("limits:\n  body: 1\nlimits.body: 2\n",
                 FILE_NAME ":3: `limits.body` is set twice; line 2 sets it too");
    refused_file("limits:\n  body: 1\nlimits:\n  depth: 2\n",
                 FILE_NAME ":3: `limits` is set twice; line 1 sets it too");
    refused_file("? [a]\n: b\n", FILE_NAME ":1: a key must be plain text");
    refused_file("'': b\n", FILE_NAME ":1: a key is empty or holds a NUL");
    refused_file("listen: \"a\\0b\"\n", FILE_NAME ":1: the value holds a NUL");
    refused_file("roots: [[a]]\n", FILE_NAME
                 ":1: the elements of a list are plain values (JSON is written in quotes)");
    refused_file("a: &x {listen: b}\n<<: *x\n",
                 FILE_NAME ":2: `<<` (merging) is not read here: write the keys out");
    refused_file("a: &a\n  b: *a\n", FILE_NAME ":1: nested too deep");
    refused_file(
        "a: {a: {a: {a: {a: {a: {a: {a: {a: {a: {a: {a: {a: {a: {a: {a: {a: 1}}}}}}}}}}"
        "}}}}}}\n",
        FILE_NAME ":1: nested too deep");
}

static void test_bounds(void **state)
{
    (void)state;
    struct buf text;
    buf_init(&text, 4 * 1024 * 1024);
    for (int i = 0; i < 4097; i++) {
        (void)buf_printf(&text, "k%d: 1\n", i);
    }
    refused_file(buf_cstr(&text), FILE_NAME ":4097: more than 4096 values");
    /* Aliases of aliases: the work is bounded, not only the text. */
    buf_clear(&text);
    (void)buf_add_c(&text, "a0: &a0 {x: 1, y: 1}\n");
    for (int i = 1; i < 14; i++) {
        (void)buf_printf(&text, "a%d: &a%d {x: *a%d, y: *a%d}\n", i, i, i - 1, i - 1);
    }
    refused_file(buf_cstr(&text), FILE_NAME ":1: more than 4096 values");
    buf_clear(&text);
    while (text.len <= 1024 * 1024) {
        (void)buf_add_c(&text, "# a comment that is long\n");
    }
    refused_file(buf_cstr(&text), FILE_NAME ": the file is larger than 1048576 bytes");
    buf_clear(&text);
    for (int i = 0; i < 300; i++) {
        (void)buf_add_char(&text, 'k');
    }
    (void)buf_add_c(&text, ": 1\n");
    refused_file(buf_cstr(&text), FILE_NAME ":1: the key is too long");
    buf_clear(&text);
    (void)buf_add_c(&text, "roots=a");
    for (int i = 0; i < 4096; i++) {
        (void)buf_add_c(&text, ",a");
    }
    struct config *config = NULL;
    struct buf error;
    buf_init(&error, 4096);
    const char *const sets[] = {buf_cstr(&text), NULL};
    assert_int_equal(load(&(struct given){.sets = sets}, &config, &error), NG_EINVAL);
    assert_non_null(strstr(buf_cstr(&error), "with too many"));
    buf_done(&error);
    buf_done(&text);
}

/* ---- out of memory ---- */

/* For every failed allocation: an error, no leak, no crash. */
static void test_no_memory(void **state)
{
    (void)state;
    const char *const variables[] = {"NOTEGATE_AUTH=on", "X=y", NULL};
    const char *const sets[] = {"plugins=a,+b", "plugins=c", NULL};
    const struct given given = {"timezone: ${X}\nroots: [a]\n", variables, sets};
    int failed = 0;
    int rc = NG_EINVAL;
    for (long i = 0; rc != NG_OK; i++) {
        struct config *config = NULL;
        struct buf error;
        buf_init(&error, 4096);
        (void)buf_reserve(&error, 2048);
        write_file(FILE_NAME, given.file, strlen(given.file));
        alloc_fail_after(i);
        rc = load(&given, &config, &error);
        alloc_fail_after(-1);
        buf_done(&error);
        if (rc == NG_OK) {
            config_free(config);
        }
        failed++;
        assert_true(failed < 10000);
    }
    assert_true(failed > 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_unknown),   cmocka_unit_test(test_bad_values),
        cmocka_unit_test(test_bad_files), cmocka_unit_test(test_bounds),
        cmocka_unit_test(test_no_memory),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
