/* SPDX-License-Identifier: MIT */
/* test_opennotes_frontmatter.c - front matter: the core types of YAML 1.2, its limits, and keys
 * that are set while all else stays byte for byte. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "note/frontmatter_check.h"

/* ---- parsing */

static char *parsed(const char *yaml, char *error, size_t size)
{
    struct arena arena;
    struct buf json;
    const struct notes_value *map = NULL;
    struct ng_str why = {NULL, 0};
    arena_init(&arena, 0);
    buf_init(&json, 1 << 24);
    int rc = notes_frontmatter_parse(&arena, ng_str_of(yaml), 2, &map, &why);
    (void)snprintf(error, size, "%.*s", (int)why.len, why.data != NULL ? why.data : "");
    if (rc == NG_OK) {
        notes_value_json(&json, map);
        buf_add_char(&json, '\0');
    }
    arena_done(&arena);
    return json.data;
}

static void gives(const char *yaml, const char *wanted)
{
    char error[512];
    char *json = parsed(yaml, error, sizeof(error));
    if (json == NULL) {
        fail_msg("%s: %s", yaml, error);
    }
    assert_string_equal(json, wanted);
    free(json);
}

static void refuses(const char *yaml, const char *part)
{
    char error[512];
    char *json = parsed(yaml, error, sizeof(error));
    if (json != NULL || strstr(error, part) == NULL) {
        fail_msg("%s gives %s, '%s' and not '%s'", yaml, json, error, part);
    }
    free(json);
}

static void core_types(void **state)
{
    (void)state;
    gives("", "{}");
    gives("# nothing\n", "{}");
    gives("~\n", "{}");
    gives("a: no\nb: yes\nc: on\nd: Off\n",
          "{\"a\":\"no\",\"b\":\"yes\",\"c\":\"on\",\"d\":\"Off\"}");
    gives("a: true\nb: False\nc: TRUE\nd: tRue\n",
          "{\"a\":true,\"b\":false,\"c\":true,\"d\":\"tRue\"}");
    gives("a: null\nb: ~\nc:\nd: Null\ne: nULL\n",
          "{\"a\":null,\"b\":null,\"c\":null,\"d\":null,\"e\":\"nULL\"}");
    gives("a: 012\nb: 0o14\nc: 0x1F\nd: -0\ne: +7\nf: 1_000\ng: 0b11\n",
          "{\"a\":12,\"b\":12,\"c\":31,\"d\":-0,\"e\":7,\"f\":\"1_000\",\"g\":\"0b11\"}");
    gives(
        "a: 1.50\nb: .5\nc: 1.\nd: 1e3\ne: -1.5E-3\nf: 1.2.3\ng: 12e\nh: .\n",
        "{\"a\":1.50,\"b\":0.5,\"c\":1.0,\"d\":1e3,\"e\":-1.5E-3,\"f\":\"1.2.3\",\"g\":\"12e\","
        "\"h\":\".\"}");
    gives("a: .inf\nb: -.inf\nc: .nan\n", "{\"a\":\".inf\",\"b\":\"-.inf\",\"c\":\".nan\"}");
    gives("a: 123456789012345678901234567890\nb: 0xFFFFFFFFFFFFFFFF\nc: 0x1FFFFFFFFFFFFFFFF\n",
          "{\"a\":123456789012345678901234567890,\"b\":18446744073709551615,"
          "\"c\":\"0x1FFFFFFFFFFFFFFFF\"}");
    gives("a: 2026-01-28\nb: 2026-01-28T10:00:00Z\nc: 12:30:45\n",
          "{\"a\":\"2026-01-28\",\"b\":\"2026-01-28T10:00:00Z\",\"c\":\"12:30:45\"}");
    gives("a: \"12\"\nb: '12'\nc: !!str 12\nd: !!int \"12\"\ne: ! 12\nf: !own 12\n",
          "{\"a\":\"12\",\"b\":\"12\",\"c\":\"12\",\"d\":12,\"e\":\"12\",\"f\":\"12\"}");
    gives("1: a\ntrue: b\n2026-01-01: c\n",
          "{\"1\":\"a\",\"true\":\"b\",\"2026-01-01\":\"c\"}");
}

static void nesting(void **state)
{
    (void)state;
    gives("a:\n  b:\n    - c: [1, {d: e}]\n    - |\n      f\n      # g\n",
          "{\"a\":{\"b\":[{\"c\":[1,{\"d\":\"e\"}]},\"f\\n# g\\n\"]}}");
    gives("a: &x [1, 2]\nb: *x\nc:\n  <<: *x\n",
          "{\"a\":[1,2],\"b\":[1,2],\"c\":{\"<<\":[1,2]}}");
    gives("&k key: v\nother: *k\n", "{\"key\":\"v\",\"other\":\"key\"}");
    gives("a: >-\n  one\n  two\nb: 'it''s'\nc: \"\\u00e9\\n\"\n",
          "{\"a\":\"one two\",\"b\":\"it's\",\"c\":\"\xc3\xa9\\n\"}");
    gives("{a: 1, b: [c, d]}\n", "{\"a\":1,\"b\":[\"c\",\"d\"]}");
    gives("a: 1\r\nb:\r\n  - x\r\n", "{\"a\":1,\"b\":[\"x\"]}");
}

static void faults(void **state)
{
    (void)state;
    refuses("a: [1\n", "line 3");
    refuses("a: 1\nb: 2\na: 3\n", "line 4: this key occurs twice: `a`");
    refuses("x:\n  a: 1\n  a: 3\n", "occurs twice");
    refuses("just text\n", "lines of `key: value`");
    refuses("- a\n- b\n", "lines of `key: value`");
    refuses("[a]: b\n", "a key is not text");
    refuses("a: *none\n", "there is no anchor `none`");
    refuses("a: &x [*x]\n", "inside of its own anchor");
    refuses("a: 1\n--- x\n", "");
    refuses("a: \x01\n", "control characters");
    refuses("{{title}}: x\n", "");
}

static void limits(void **state)
{
    struct buf yaml;
    char error[512];
    (void)state;
    buf_init(&yaml, 1 << 24);
    /* Nine aliases of nine aliases of ... */
    buf_add_c(&yaml, "a: &a [x, x, x, x, x, x, x, x, x]\n");
    for (int c = 'b'; c <= 'j'; c++) {
        buf_printf(&yaml, "%c: &%c [*%c, *%c, *%c, *%c, *%c, *%c, *%c, *%c, *%c]\n", c, c,
                   c - 1, c - 1, c - 1, c - 1, c - 1, c - 1, c - 1, c - 1, c - 1);
    }
    buf_add_char(&yaml, '\0');
    refuses(yaml.data, "too many values");
    buf_clear(&yaml);
    for (int i = 0; i < 200; i++) {
        buf_add_c(&yaml, i == 0 ? "a: [" : "[");
    }
    buf_add_char(&yaml, '\0');
    refuses(yaml.data, "nested too deeply");
    buf_clear(&yaml);
    buf_add_c(&yaml, "a: &a \"");
    for (int i = 0; i < 100000; i++) {
        buf_add_char(&yaml, 'x');
    }
    buf_add_c(&yaml, "\"\nb: [*a");
    for (int i = 0; i < 100; i++) {
        buf_add_c(&yaml, ", *a");
    }
    buf_add_c(&yaml, "]\n");
    buf_add_char(&yaml, '\0');
    refuses(yaml.data, "too large");
    buf_clear(&yaml);
    while (yaml.len <= NOTES_FRONTMATTER_BYTES_MAX) {
        buf_add_c(&yaml, "# comment\n");
    }
    buf_add_char(&yaml, '\0');
    char *json = parsed(yaml.data, error, sizeof(error));
    assert_null(json);
    assert_non_null(strstr(error, "1 MiB"));
    buf_done(&yaml);
}

/* ---- where it is */

static void place(const char *text, bool there, const char *yaml, const char *body)
{
    struct notes_frontmatter frontmatter;
    struct ng_str bytes = ng_str_of(text);
    notes_frontmatter_find(bytes, &frontmatter);
    assert_int_equal(frontmatter.there, there);
    assert_int_equal(frontmatter.end - frontmatter.yaml, strlen(yaml));
    assert_memory_equal(text + frontmatter.yaml, yaml, strlen(yaml));
    assert_string_equal(text + frontmatter.body, body);
}

static void places(void **state)
{
    (void)state;
    place("---\na: 1\n---\nbody", true, "a: 1\n", "body");
    place("---\r\na: 1\r\n---\r\nbody", true, "a: 1\r\n", "body");
    place("\xef\xbb\xbf---\na: 1\n...\nbody", true, "a: 1\n", "body");
    place("--- \t\na: 1\n---", true, "a: 1\n", "");
    place("---\n---\n", true, "", "");
    place("---\na: 1\nbody", false, "", "---\na: 1\nbody");
    place("\n---\na: 1\n---\n", false, "", "\n---\na: 1\n---\n");
    place("----\na: 1\n---\n", false, "", "----\na: 1\n---\n");
    place("\xef\xbb\xbfplain", false, "", "plain");
    place("---", false, "", "---");
    place("", false, "", "");
}

/* ---- setting keys */

/* The file with `json`'s members set, which is itself YAML; free it. NULL: refused. */
static char *set_in(const char *file, const char *set, char *error, size_t size)
{
    struct arena arena;
    const struct notes_value *map = NULL;
    struct ng_str why = {NULL, 0};
    struct ng_str made = {NULL, 0};
    arena_init(&arena, 0);
    assert_int_equal(notes_frontmatter_parse(&arena, ng_str_of(set), 1, &map, &why), NG_OK);
    int rc = notes_frontmatter_set(&arena, ng_str_of(file), map, &made, &why);
    (void)snprintf(error, size, "%.*s", (int)why.len, why.data != NULL ? why.data : "");
    char *text = rc == NG_OK ? strndup(made.data, made.len) : NULL;
    arena_done(&arena);
    return text;
}

static void sets(const char *file, const char *set, const char *wanted)
{
    char error[512];
    char *text = set_in(file, set, error, sizeof(error));
    if (text == NULL) {
        fail_msg("%s with %s: %s", file, set, error);
    }
    assert_string_equal(text, wanted);
    free(text);
}

static void refuses_set(const char *file, const char *set, const char *part)
{
    char error[512];
    char *text = set_in(file, set, error, sizeof(error));
    if (text != NULL || strstr(error, part) == NULL) {
        fail_msg("%s with %s gives %s, '%s'", file, set, text, error);
    }
    free(text);
}

#define FULL                                                                                   \
    "---\n# head\ntitle: \"A b\"   # keep\ntags:\n  - one   # c1\n  - two\n\n# about status\n" \
    "status: todo\nempty:\ndesc: |\n  text\n  # not a comment\n\n  more\n\nlast: [a, b] # "    \
    "flow\n"                                                                                   \
    "# end\n---\nBody\n---\nmore\n"

static void set_scalars(void **state)
{
    (void)state;
    sets("---\na: 1 # x\nb:   two\n---\n", "{a: 2}", "---\na: 2 # x\nb:   two\n---\n");
    sets("---\na: \"x\"\n---\n", "{a: yes}", "---\na: \"yes\"\n---\n");
    sets("---\na: 'x'\n---\n", "{a: it's}", "---\na: 'it''s'\n---\n");
    sets("---\na: x\n---\n", "{a: \"no\"}", "---\na: \"no\"\n---\n");
    sets("---\na: x\n---\n", "{a: \"l1\\nl2: #\"}", "---\na: \"l1\\nl2: #\"\n---\n");
    sets("---\na: x\n---\n", "{a: \"12\"}", "---\na: \"12\"\n---\n");
    sets("---\na: x\n---\n", "{a: 1.50}", "---\na: 1.50\n---\n");
    sets("---\na:\nb: 1\n---\n", "{a: x}", "---\na: x\nb: 1\n---\n");
    sets("---\na: # why\nb: 1\n---\n", "{a: x}", "---\na: x # why\nb: 1\n---\n");
    sets("---\na: one\n  two\nb: 1\n---\n", "{a: x}", "---\na: x\nb: 1\n---\n");
    sets("---\na: 012\n---\n", "{a: 12}",
         "---\na: 012\n---\n"); /* the same value: the same bytes */
    sets("---\n\xc3\xa9: x\nb: \xe6\x97\xa5\nc: 1\n---\n", "{c: 2}",
         "---\n\xc3\xa9: x\nb: \xe6\x97\xa5\nc: 2\n---\n");
    sets("---\na: &x 1\nb: 2\n---\n", "{a: 3}", "---\na: 3\nb: 2\n---\n");
    sets("---\na : 1\n---\n", "{a: 2}", "---\na : 2\n---\n");
    sets("---\n\"q k\": 1\n---\n", "{q k: 2}", "---\n\"q k\": 2\n---\n");
}

static void set_blocks(void **state)
{
    (void)state;
    sets("---\nt:\n- a\n- b\n# c\nn: 1\n---\n", "{t: [x]}", "---\nt:\n- x\n# c\nn: 1\n---\n");
    sets("---\nt:\n    - a\nn: 1\n---\n", "{t: [x, {k: 1}]}",
         "---\nt:\n    - x\n    - k: 1\nn: 1\n---\n");
    sets("---\nt:\n  - a\n  - b\nn: 1\n---\n", "{t: one}", "---\nt: one\nn: 1\n---\n");
    sets("---\nt:\n  - a\n  - b\nn: 1\n---\n", "{t: []}", "---\nt: []\nn: 1\n---\n");
    sets("---\nt: [a, b] # c\nn: 1\n---\n", "{t: [x, \"a,b\"]}",
         "---\nt: [x, \"a,b\"] # c\nn: 1\n---\n");
    sets("---\nt: [a,\n  b]\nn: 1\n---\n", "{t: [x]}", "---\nt: [x]\nn: 1\n---\n");
    sets("---\nm:\n  k: 1\n  l: 2\nn: 1\n---\n", "{m: {z: [1]}}",
         "---\nm:\n  z:\n    - 1\nn: 1\n---\n");
    sets("---\nd: |\n  one\n  # two\n\nn: 1\n---\n", "{d: x}", "---\nd: x\n\nn: 1\n---\n");
    sets("---\nd: >-\n  one\n---\n", "{d: \"a: b\"}", "---\nd: \"a: b\"\n---\n");
    sets(FULL, "{status: done}",
         "---\n# head\ntitle: \"A b\"   # keep\ntags:\n  - one   # c1\n  - two\n\n# about "
         "status\n"
         "status: done\nempty:\ndesc: |\n  text\n  # not a comment\n\n  more\n\nlast: [a, b] # "
         "flow\n"
         "# end\n---\nBody\n---\nmore\n");
    sets(FULL, "{desc: null, tags: null, last: [c], new: 1}",
         "---\n# head\ntitle: \"A b\"   # keep\n\n# about status\n"
         "status: todo\nempty:\n\nlast: [c] # flow\n"
         "# end\nnew: 1\n---\nBody\n---\nmore\n");
}

static void set_new(void **state)
{
    (void)state;
    sets("body\n", "{a: 1}", "---\na: 1\n---\nbody\n");
    sets("", "{a: [x, z]}", "---\na:\n  - x\n  - z\n---\n");
    sets("\xef\xbb\xbf"
         "body\r\n",
         "{a: 1}", "\xef\xbb\xbf---\r\na: 1\r\n---\r\nbody\r\n");
    sets("---\r\na: 1\r\n---\r\nx\r\n", "{b: [c]}",
         "---\r\na: 1\r\nb:\r\n  - c\r\n---\r\nx\r\n");
    sets("---\r\na: 1 # c\r\nl:\r\n  - x\r\nz: 1\r\n---\r\n", "{a: 2, l: [k]}",
         "---\r\na: 2 # c\r\nl:\r\n  - k\r\nz: 1\r\n---\r\n");
    sets("---\n---\nx", "{a: 1}", "---\na: 1\n---\nx");
    sets("---\n# only\n---\n", "{a: 1}", "---\n# only\na: 1\n---\n");
    sets("---\na: 1\n...\nx", "{b: 1}", "---\na: 1\nb: 1\n...\nx");
    sets("---\n  a: 1\n---\n", "{b: 1}", "---\n  a: 1\n  b: 1\n---\n");
    sets("---\nd: |+\n  x\n\n---\n", "{b: 1}", "---\nd: |+\n  x\n\nb: 1\n---\n");
    sets("---\n{a: 1, b: [x]}\n---\n", "{a: 2, c: \"x,y\", b: null}",
         "---\n{a: 2, c: \"x,y\"}\n---\n");
    sets("---\n{}\n---\n", "{a: 1}", "---\n{a: 1}\n---\n");
    sets("---\n{a: 1}\n---\n", "{a: null}", "---\n{}\n---\n");
    sets("body", "{a: null}", "body");
    sets("---\na: 1\n---\n", "{b: null}", "---\na: 1\n---\n");
    sets("---\nx\n", "{a: 1}", "---\na: 1\n---\n---\nx\n"); /* a rule, and no front matter */
}

static void set_refused(void **state)
{
    (void)state;
    refuses_set("---\na: [1\n---\n", "{b: 1}", "does not parse");
    refuses_set("---\na: &x [1]\nb: *x\n---\n", "{a: 2}", "does not parse");
    refuses_set("---\n? a\n: 1\n---\n", "{a: 2}", "");
    refuses_set("---\na: \xff\n---\n", "{b: 2}", "not valid UTF-8");
    refuses_set("---\na: 1\na: 2\n---\n", "{b: 2}", "occurs twice");
    refuses_set("---\n- a\n---\n", "{b: 2}", "key: value");
}

/* ---- after a merge */

static void test_merged(void **state)
{
#define GOOD "---\na: 1\n---\n"
#define BROKEN "---\na: [1\n---\n"
    static const struct {
        const char *present, *before, *merged;
        bool good;
    } rows[] = {
        {GOOD "x", GOOD "y", GOOD "z", true},
        {GOOD, GOOD, BROKEN, false},
        {GOOD, GOOD, "---\na: 1\na: 2\n---\n", false}, /* both sides added it */
        {GOOD, GOOD, "text", false},
        {GOOD, "text", "text", true},
        {"text", GOOD, GOOD, true},
        {"text", GOOD, BROKEN, false},
        {"text", "text", BROKEN, false},
        {"", "", "", true},
        {BROKEN, GOOD, BROKEN, true},
        {GOOD, BROKEN, "text", true},
    };
    (void)state;
    for (size_t i = 0; i < NG_COUNT(rows); i++) {
        bool good = !rows[i].good;
        assert_int_equal(notes_frontmatter_check(ng_str_of(rows[i].present),
                                                 ng_str_of(rows[i].before),
                                                 ng_str_of(rows[i].merged), &good),
                         NG_OK);
        assert_int_equal(good, rows[i].good);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_merged), cmocka_unit_test(core_types), cmocka_unit_test(nesting),
        cmocka_unit_test(faults),      cmocka_unit_test(limits),     cmocka_unit_test(places),
        cmocka_unit_test(set_scalars), cmocka_unit_test(set_blocks), cmocka_unit_test(set_new),
        cmocka_unit_test(set_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
