/* SPDX-License-Identifier: MIT */
/* test_opennotes_note.c - a note from its bytes, and the texts below it: forms of Unicode,
 * slugs, globs, times, JSON. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "note/note.h"

static struct arena arena;

static void equal(struct ng_str text, const char *wanted)
{
    assert_int_equal(text.len, strlen(wanted));
    assert_memory_equal(text.data, wanted, text.len);
}

static int open_arena(void **state)
{
    (void)state;
    arena_init(&arena, 0);
    return setenv("TZ", "Europe/Berlin", 1);
}

static int close_arena(void **state)
{
    (void)state;
    arena_done(&arena);
    return 0;
}

static struct notes_note note_of(const char *text)
{
    struct notes_note note;
    assert_int_equal(notes_note_parse(&arena, ng_str_of(text), &note), NG_OK);
    return note;
}

static void parts(void **state)
{
    (void)state;
    struct notes_note note =
        note_of("\xef\xbb\xbf---\r\ntitle: ' T '\r\n---\r\nHello w\xc3\xb6rld - x\r\n");
    equal(note.title, "T");
    equal(note.body, "Hello w\xc3\xb6rld - x\r\n");
    assert_int_equal(note.body_line, 3);
    assert_int_equal(note.words, 3);
    assert_true(note.has_frontmatter);
    assert_null(note.frontmatter_error.data);
    note = note_of("---\ntitle: [a\n---\nbody\n");
    equal(note.body, "body\n");
    assert_null(note.title.data);
    assert_non_null(note.frontmatter_error.data);
    assert_int_equal(note.frontmatter->count, 0);
    note = note_of("a\xff"
                   "b\xe2\x82");
    equal(note.body, "a\xef\xbf\xbd"
                     "b\xef\xbf\xbd\xef\xbf\xbd");
    assert_int_equal(notes_note_parse(&arena, (struct ng_str){NULL, 0}, &note), NG_OK);
    assert_int_equal(note.body.len, 0);
    note = note_of("---\ntitle: 2026\n---\n");
    equal(note.title, "2026");
    note = note_of("---\ntitle: ''\n---\n");
    assert_null(note.title.data);
}

static void tags(void **state)
{
    static const char *const texts[] = {
        "---\ntags: [a, b/c, '#d', a]\ntag: e\n---\n",
        "---\ntag: 'a, b/c'\ntags:\n  - e\n  - d\n---\n",
        "---\ntag: [d, e]\ntags: a, b/c,\n---\n",
    };
    (void)state;
    for (size_t i = 0; i < NG_COUNT(texts); i++) {
        struct notes_note note = note_of(texts[i]);
        bool seen[4] = {false};
        assert_int_equal(note.tag_count, 4);
        for (size_t k = 0; k < 4; k++) {
            seen[0] = seen[0] || str_is(note.tags[k], "a");
            seen[1] = seen[1] || str_is(note.tags[k], "b/c");
            seen[2] = seen[2] || str_is(note.tags[k], "d");
            seen[3] = seen[3] || str_is(note.tags[k], "e");
        }
        assert_true(seen[0] && seen[1] && seen[2] && seen[3]);
    }
    assert_int_equal(note_of("---\ntags: []\n---\n").tag_count, 0);
    assert_int_equal(note_of("---\ntags:\ntag: {a: b}\n---\n").tag_count, 0);
    struct notes_note note = note_of("---\naliases: [One, Two]\n---\n");
    assert_int_equal(note.alias_count, 2);
    equal(note.aliases[1], "Two");
}

static void time_is(const char *text, const char *wanted)
{
    int64_t ms = 0;
    char out[RFC3339_SIZE];
    if (!notes_time_parse(ng_str_of(text), &ms)) {
        fail_msg("%s is no time", text);
    }
    rfc3339_write(ms, RFC3339_SECONDS, out);
    assert_string_equal(out, wanted);
}

static void times(void **state)
{
    static const char *const none[] = {
        "",           "2026",          "2026-02-29",
        "2026-13-01", "2026-01-01x",   "2026-01-01T25:00",
        "1.5",        "2026-01-01 10", "2026-01-01T10:00+25:00:00"};
    char out[RFC3339_SIZE];
    int64_t ms = 0;
    (void)state;
    tzset();
    time_is("2026-01-28T14:30:00Z", "2026-01-28T14:30:00Z");
    time_is("2026-01-28T14:30:00.250+10:30", "2026-01-28T04:00:00Z");
    time_is("2026-01-28 14:30:00 +0200", "2026-01-28T12:30:00Z");
    time_is("2026-01-28 14:30", "2026-01-28T13:30:00Z");
    time_is("2026-07-28", "2026-07-27T22:00:00Z");
    time_is("2024-02-29", "2024-02-28T23:00:00Z");
    time_is("1969-12-31T23:59:59Z", "1969-12-31T23:59:59Z");
    for (size_t i = 0; i < NG_COUNT(none); i++) {
        assert_false(notes_time_parse(ng_str_of(none[i]), &ms));
    }
    notes_time_write_local(1769610600000, out);
    assert_string_equal(out, "2026-01-28T15:30:00+01:00");
    rfc3339_write(INT64_MAX, RFC3339_SECONDS, out);
    notes_time_write_local(INT64_MIN, out);
    struct notes_note note = note_of("---\nmodified: nonsense\nupdated: 2026-01-02T00:00:00Z\n"
                                     "date: 2026-01-01T00:00:00Z\n---\n");
    assert_true(note.has_modified && note.has_created);
    assert_int_equal(note.modified_ms - note.created_ms, 86400000);
    assert_true(rfc3339_is_day(ng_str_of("2026-12-31")));
    assert_false(rfc3339_is_day(ng_str_of("2026-12-32")));
}

static void forms(void **state)
{
    (void)state;
    equal(notes_nfc(&arena, ng_str_of("Cafe\xcc\x81")), "Caf\xc3\xa9");
    equal(notes_fold(&arena, ng_str_of("STRASSE \xc3\x89t\xc3\xa9 ABC")),
          "strasse \xc3\xa9t\xc3\xa9 abc");
    equal(notes_fold(&arena, ng_str_of("Stra\xc3\x9f"
                                       "e")),
          "strasse");
    equal(notes_slug(&arena, ng_str_of("Caf\xc3\xa9 Notes")), "caf\xc3\xa9-notes");
    equal(notes_slug(&arena, ng_str_of("  R&D: Q1/Q2 - x_y!  ")), "r-d-q1-q2-x-y");
    equal(notes_slug(&arena, ng_str_of("\xe4\xbc\x9a\xe8\xad\xb0\xe3\x83\xa1\xe3\x83\xa2")),
          "\xe4\xbc\x9a\xe8\xad\xb0\xe3\x83\xa1\xe3\x83\xa2");
    equal(notes_slug(&arena, ng_str_of("\xf0\x9f\x8e\x89 !")), "");
    equal(notes_slug(&arena, ng_str_of("../../etc/passwd")), "etc-passwd");
    equal(notes_slug(
              &arena,
              ng_str_of(
                  "\xe0\xa4\xb9\xe0\xa4\xbf\xe0\xa4\xa8\xe0\xa5\x8d\xe0\xa4\xa6\xe0\xa5\x80")),
          "\xe0\xa4\xb9\xe0\xa4\xbf\xe0\xa4\xa8\xe0\xa5\x8d\xe0\xa4\xa6\xe0\xa5\x80");
    char lots[2000];
    memset(lots, 'a', sizeof(lots));
    lots[sizeof(lots) - 1] = '\0';
    assert_int_equal(notes_slug(&arena, ng_str_of(lots)).len, NOTES_SLUG_MAX);
    assert_int_equal(notes_words(ng_str_of("one, two - three\n\xe2\x80\x94 (four) _ 5")), 5);
    assert_int_equal(edit_distance(ng_str_of("kitten"), ng_str_of("sitting"), 3), 3);
    assert_int_equal(edit_distance(ng_str_of("kitten"), ng_str_of("sitting"), 2), SIZE_MAX);
}

static void globs(void **state)
{
    static const struct {
        const char *pattern, *path;
        bool match;
    } cases[] = {
        {"**/*.md", "a.md", true},
        {"**/*.md", "x/y/a.md", true},
        {"*.md", "x/a.md", false},
        {"*.md", "a.md", true},
        {"tasks/*.md", "tasks/a.md", true},
        {"tasks/*.md", "tasks/x/a.md", false},
        {"tasks/**", "tasks/x/a.md", true},
        {"tasks/**", "tasksx/a.md", false},
        {"**/x/**/b.md", "a/x/b.md", true},
        {"**/x/**/b.md", "a/x/y/z/b.md", true},
        {"**/x/b.md", "ax/b.md", false},
        {"a?c.md", "abc.md", true},
        {"a?c.md", "a/c.md", false},
        {"[a-c]*.md", "b1.md", true},
        {"[!a-c]*.md", "b1.md", false},
        {"a_b%.md", "a_b%.md", true},
        {"a_b.md", "axb.md", false},
        {"\\*.md", "*.md", true},
        {"\\*.md", "x.md", false},
        {"\xc3\xa9?.md", "\xc3\xa9\xc3\xa9.md", true},
        {"", "", true},
        {"", "a", false},
        {"**", "a/b", true},
        {"a**b", "a/x/b", true},
        {"[", "[", true},
        {"**/*.md", "a/B.MD", true},
        {"{a,b}.md", "b.md", true},
        {"{a,b}.md", "c.md", false},
        {"{projects,daily/{2025,2026}}/**/*.{md,markdown}", "daily/2026/x.MD", true},
        {"{projects,daily/{2025,2026}}/**/*.{md,markdown}", "daily/2024/x.md", false},
        {"x{,y}.md", "x.md", true},
        {"x{,y}.md", "xy.md", true},
        {"{a}.md", "{a}.md", true},
        {"\\{a,b}.md", "{a,b}.md", true},
        {"{a,b.md", "{a,b.md", true},
        {"*.md", ".MD", false},
        {"a.md", "a.MD", false},
        {"*x.md", "x.MD", false},
        {"*a*a*a*a*a*a*b", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", false},
        {"**/**/**/**/**/**/x", "a/a/a/a/a/a/a/a/a/a/a/a/a/a/a/y", false},
    };
    (void)state;
    assert_false(notes_glob_is_wide(ng_str_of("{a,b}{c,d}")));
    /* Too long to be expanded: it is wide, and matches nothing. */
    static char groups[30000];
    for (size_t i = 0; i + 5 <= sizeof(groups); i += 5) {
        memcpy(groups + i, "{a,b}", 5);
    }
    assert_true(notes_glob_is_wide(str_make(groups, sizeof(groups))));
    assert_false(notes_glob(str_make(groups, sizeof(groups)), ng_str_of("a")));
    assert_true(notes_glob_is_wide(ng_str_of("{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}")));
    for (size_t i = 0; i < NG_COUNT(cases); i++) {
        if (notes_glob(ng_str_of(cases[i].pattern), ng_str_of(cases[i].path)) !=
            cases[i].match) {
            fail_msg("%s and %s", cases[i].pattern, cases[i].path);
        }
    }
}

static void json(void **state)
{
    struct buf buf;
    (void)state;
    buf_init(&buf, 100);
    notes_json_begin(&buf, '{');
    notes_json_name_c(&buf, "a\"{");
    notes_json_begin(&buf, '[');
    notes_json_int(&buf, -1);
    notes_json_text(&buf, ng_str_of("x[\n\x01\xff"));
    notes_json_bool(&buf, true);
    notes_json_end(&buf, ']');
    notes_json_name_c(&buf, "b");
    notes_json_null(&buf);
    notes_json_end(&buf, '}');
    equal(notes_buf_str(&buf),
          "{\"a\\\"{\":[-1,\"x[\\n\\u0001\xef\xbf\xbd\",true],\"b\":null}");
    for (int i = 0; i < 100; i++) {
        buf_add_char(&buf, 'x');
    }
    assert_int_equal(buf.rc, NG_ETOOLARGE);
    buf_done(&buf);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts), cmocka_unit_test(tags),  cmocka_unit_test(times),
        cmocka_unit_test(forms), cmocka_unit_test(globs), cmocka_unit_test(json),
    };
    return cmocka_run_group_tests(tests, open_arena, close_arena);
}
