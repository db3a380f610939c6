/* SPDX-License-Identifier: MIT */
/* test_mcp_uri.c - URIs of resources, URI templates and cursors: bytes from outside. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "api/protocol/mcp_pages.h"
#include "api/protocol/mcp_uri.h"
#include "core/base/str.h"
#include "notegate/documents.h"

static struct arena arena;

static int set_up(void **state)
{
    (void)state;
    arena_init(&arena, 0);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    arena_done(&arena);
    return 0;
}

static int parse(const char *text, struct mcp_uri *uri)
{
    const char *why = NULL;
    memset(uri, 0, sizeof(*uri));
    int rc = mcp_uri_parse(&arena, ng_str_of(text), uri, &why);
    if (rc != NG_OK) {
        assert_non_null(why);
    }
    return rc;
}

static void uris_are_taken_apart(void **state)
{
    static const struct {
        const char *text, *space, *kind, *id;
        uint64_t revision;
    } cases[] = {
        {"notegate://~bob/notebook/plan", "~bob", "notebook", "plan", 0},
        {"NoteGate://shared/notebook/", "shared", "notebook", "", 0},
        {"notegate://%7Ebob/notebook/a%20b%2Fc", "~bob", "notebook", "a b/c", 0},
        {"notegate://shared/file//srv/a.txt", "shared", "file", "/srv/a.txt", 0},
        {"notegate://shared/file/%2Fsrv%2fa.txt", "shared", "file", "/srv/a.txt", 0},
        {"notegate://a%40b/notebook/x?revision=12", "a@b", "notebook", "x", 12},
        {"notegate://s/k/\xc3\xbc(1)!*'", "s", "k", "\xc3\xbc(1)!*'", 0},
        {"notegate://s/k/x%3Frevision%3D2", "s", "k", "x?revision=2", 0},
        {"notegate://s/k/x?revision=9007199254740992", "s", "k", "x", 9007199254740992},
    };
    (void)state;
    for (size_t i = 0; i < NG_COUNT(cases); i++) {
        struct mcp_uri uri;
        assert_int_equal(parse(cases[i].text, &uri), NG_OK);
        assert_true(str_is(uri.space, cases[i].space));
        assert_true(str_is(uri.kind, cases[i].kind));
        assert_true(str_is(uri.id, cases[i].id));
        assert_int_equal(uri.revision, cases[i].revision);
    }
}

static void broken_uris_are_refused(void **state)
{
    static const char *const cases[] = {
        "",
        "notegate:",
        "notegate://",
        "notegate://s",
        "notegate://s/k",
        "notegate:///k/id",
        "notegate://s//id",
        "other://s/k/id",
        "notegate://s/k/a b",
        "notegate://s/k/a\nb",
        "notegate://s/k/a\"b",
        "notegate://s/k/a#b",
        "notegate://s/k/%",
        "notegate://s/k/%4",
        "notegate://s/k/%zz",
        "notegate://s/k/%ff",
        "notegate://s/k/%C3",
        "notegate://s/k/\xff",
        "notegate://s/k/x?",
        "notegate://s/k/x?revision=",
        "notegate://s/k/x?revision=0",
        "notegate://s/k/x?revision=01",
        "notegate://s/k/x?revision=-1",
        "notegate://s/k/x?revision=1x",
        "notegate://s/k/x?revision=99999999999999999",
        "notegate://s/k/x?Revision=1",
        "notegate://s/k/x?revision=1&a=b",
        "notegate://s/k/x?revision=1?",
    };
    (void)state;
    for (size_t i = 0; i < NG_COUNT(cases); i++) {
        struct mcp_uri uri;
        if (parse(cases[i], &uri) != NG_EINVAL) {
            fail_msg("\"%s\" was taken", cases[i]);
        }
    }
}

static void nul_is_a_byte_of_an_id(void **state)
{
    struct mcp_uri uri;
    (void)state;
    assert_int_equal(parse("notegate://s/k/a%00b", &uri), NG_OK);
    assert_true(str_equal(uri.id, str_make("a\0b", 3)));
}

/* Any id comes back as it was, and has one spelling. */
static void printing_and_parsing_agree(void **state)
{
    char every[128];
    (void)state;
    for (size_t i = 0; i < sizeof(every); i++) {
        every[i] = (char)i;
    }
    struct ng_str ids[] = {
        str_make(every, sizeof(every)),
        ng_str_of(""),
        ng_str_of("\xe2\x82\xac/\xf0\x9f\x98\x80"),
        ng_str_of("100%"),
        ng_str_of("../.."),
    };
    for (size_t i = 0; i < NG_COUNT(ids); i++) {
        struct buf out;
        struct mcp_uri uri;
        const char *why = NULL;
        buf_init(&out, RESOURCE_URI_MAX);
        assert_int_equal(resource_uri_print(&out, ng_str_of("~b@c"), ng_str_of("note"), ids[i]),
                         NG_OK);
        assert_int_equal(mcp_uri_parse(&arena, buf_str(&out), &uri, &why), NG_OK);
        assert_true(str_is(uri.space, "~b@c"));
        assert_true(str_equal(uri.id, ids[i]));
        assert_null(memchr(out.data, ' ', out.len));
        buf_done(&out);
    }
}

static void templates_match(void **state)
{
    static const struct {
        const char *template, *uri;
        bool matches;
    } cases[] = {
        {"test://static", "test://static", true},
        {"test://static", "test://static/", false},
        {"test://template/{id}/data", "test://template/1/data", true},
        {"test://template/{id}/data", "test://template//data", false},
        {"test://template/{id}/data", "test://template/1/2/data", false},
        {"test://template/{id}/data", "test://template/1/data/", false},
        {"test://template/{id}/data", "test://template/1", false},
        {"a:{x}-{y}", "a:1-2", true},
        {"a:{x}-{y}", "a:1-2-3", true},
        {"a:{x}-{y}", "a:1-", false},
        {"a:{x}-{y}", "a:-2", false},
        {"a:{x}-{y}", "a:12", false},
        {"a:{x}{y}", "a:12", true},
        {"a:{x}{y}", "a:1", false},
        {"{x}", "anything", true},
        {"{x}", "", false},
        {"a:{x", "a:{x", true},
    };
    (void)state;
    for (size_t i = 0; i < NG_COUNT(cases); i++) {
        if (mcp_template_matches(ng_str_of(cases[i].template), ng_str_of(cases[i].uri)) !=
            cases[i].matches) {
            fail_msg("%s and %s", cases[i].template, cases[i].uri);
        }
    }
    assert_true(mcp_template_is_open(ng_str_of("a:{x}")));
    assert_false(mcp_template_is_open(ng_str_of("a:x")));
    assert_true(mcp_template_has(ng_str_of("a:{x}/{y}"), ng_str_of("y")));
    assert_false(mcp_template_has(ng_str_of("a:{x}/{y}"), ng_str_of("a:")));
}

static void cursors_come_back(void **state)
{
    const struct mcp_cursor cursors[] = {
        {ng_str_of("notebook"), ng_str_of("~bob"), ng_str_of("plan"), 200},
        {ng_str_of("a:{x}"), ng_str_of(""), str_make("a\0:,b", 5), 0},
        {ng_str_of("file"), ng_str_of("shared"), ng_str_of("/srv/\xc3\xbc"), 1},
    };
    (void)state;
    for (size_t i = 0; i < NG_COUNT(cursors); i++) {
        struct buf out;
        struct mcp_cursor cursor;
        buf_init(&out, MCP_CURSOR_MAX);
        assert_int_equal(mcp_cursor_print(&out, &cursors[i]), NG_OK);
        assert_int_equal(mcp_cursor_parse(&arena, buf_str(&out), &cursor), NG_OK);
        assert_true(str_equal(cursor.kind, cursors[i].kind));
        assert_true(str_equal(cursor.space, cursors[i].space));
        assert_true(str_equal(cursor.id, cursors[i].id));
        assert_int_equal(cursor.count, cursors[i].count);
        /* None of its beginnings is one, nor is it with a byte more or another one. */
        for (size_t len = 0; len < out.len; len++) {
            assert_int_equal(mcp_cursor_parse(&arena, str_make(out.data, len), &cursor),
                             NG_EINVAL);
        }
        buf_add_char(&out, 'A');
        assert_int_equal(mcp_cursor_parse(&arena, buf_str(&out), &cursor), NG_EINVAL);
        out.data[0] = '!';
        assert_int_equal(mcp_cursor_parse(&arena, buf_str(&out), &cursor), NG_EINVAL);
        buf_done(&out);
    }
}

static void the_longest_names_fit(void **state)
{
    struct buf out;
    struct mcp_uri uri;
    struct mcp_cursor cursor = {ng_str_of("k"), ng_str_of("s"), {NULL, 0}, 7};
    const char *why = NULL;
    char *id = arena_alloc(&arena, NG_ID_MAX);
    (void)state;
    memset(id, ' ', NG_ID_MAX);
    cursor.id = str_make(id, NG_ID_MAX);
    buf_init(&out, RESOURCE_URI_MAX);
    assert_int_equal(resource_uri_print(&out, ng_str_of("s"), ng_str_of("k"), cursor.id),
                     NG_OK);
    assert_int_equal(mcp_uri_parse(&arena, buf_str(&out), &uri, &why), NG_OK);
    buf_done(&out);
    buf_init(&out, MCP_CURSOR_MAX);
    assert_int_equal(mcp_cursor_print(&out, &cursor), NG_OK);
    assert_int_equal(mcp_cursor_parse(&arena, buf_str(&out), &cursor), NG_OK);
    assert_int_equal(cursor.id.len, NG_ID_MAX);
    buf_done(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(uris_are_taken_apart, set_up, tear_down),
        cmocka_unit_test_setup_teardown(broken_uris_are_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(nul_is_a_byte_of_an_id, set_up, tear_down),
        cmocka_unit_test_setup_teardown(printing_and_parsing_agree, set_up, tear_down),
        cmocka_unit_test_setup_teardown(templates_match, set_up, tear_down),
        cmocka_unit_test_setup_teardown(cursors_come_back, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_longest_names_fit, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
