/* SPDX-License-Identifier: MIT */
/* test_history_print_undo.c - answers of history_undo as text for people. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "api/history/history_print_undo.h"

#define TEXT_MAX ((size_t)65536)
#define ITEM(id, result, rest)                                                                 \
    "{\"space\":\"s\",\"collection\":\"pages\",\"id\":\"" id "\",\"revisions\":[1],"           \
    "\"result\":\"" result "\"" rest "}"
#define PREVIEW                                                                                            \
    "{\"dry_run\":true,\"upto\":9,\"agents\":[\"ada\",\"b\\nb\"],\"total\":300,\"undone\":1,"              \
    "\"unchanged\":1,\"conflicts\":1,\"unfinished\":[],\"items\":[" ITEM(                                  \
        "a\\nb", "conflict",                                                                               \
        ",\"conflict\":{\"reason\":\"overlap\",\"at\":[{\"line\":3,\"present\":\"x\\ny\\u001b"             \
        "\",\"before\":\"\"},{\"present\":\"t\",\"before\":\"u\"}]}") "," ITEM("i", "undone",              \
                                                                               ",\"added\":2,"             \
                                                                               "\"removed\":"              \
                                                                               "10") "," ITEM("j",         \
                                                                                              "unchanged", \
                                                                                              "") "]}"
#define ROWS                                                                                   \
    "conflict   s/pages/a\\u000ab  overlap: the same lines have changed since\n    line 3\n"   \
    "      now:    x\n              y\\u001b\n      before: (nothing)\n"                       \
    "      now:    t\n      before: u\n"
#define DONE                                                                                   \
    "{\"undo\":\"undo-1\",\"dry_run\":false,\"agents\":[],\"total\":1,\"undone\":1,"           \
    "\"unchanged\":0,\"conflicts\":0,\"items\":[" ITEM("i", "undone",                          \
                                                       ",\"added\":0,\"removed\":1") "]}"

static const struct history_style plain = {.is_coloured = false};
static const struct history_style shown = {.is_escaped = true};
static const struct history_style coloured = {.is_coloured = true, .is_escaped = true};

static void expect_placed(struct history_style style, enum history_undo_rows rows,
                          const struct history_places *places, const char *json,
                          const char *wanted)
{
    struct arena arena;
    struct buf out;
    const struct ng_value *value = NULL;
    arena_init(&arena, TEXT_MAX);
    buf_init(&out, TEXT_MAX);
    assert_int_equal(json_parse(&arena, ng_str_of(json), JSON_DEPTH_DEFAULT, &value, NULL),
                     NG_OK);
    history_print_undo(&out, style, value, rows, places);
    assert_int_equal(out.rc, NG_OK);
    assert_string_equal(buf_cstr(&out), wanted);
    buf_done(&out);
    arena_done(&arena);
}

static void expect_print(struct history_style style, enum history_undo_rows rows,
                         const char *json, const char *wanted)
{
    const struct history_places none = {NULL, NULL};
    expect_placed(style, rows, &none, json, wanted);
}

static void place(void *user, const struct ng_value *item, struct buf *out)
{
    (void)buf_printf(out, " (%s of %.*s)", (const char *)user,
                     (int)json_get_text(item, "id").len, json_get_text(item, "id").data);
}

static void previews(void **state)
{
    (void)state;
    expect_print(shown, HISTORY_UNDO_ALL, PREVIEW,
                 ROWS "undo       s/pages/i         +2 -10\nunchanged  s/pages/j\n"
                      "... and 297 more\n300 documents changed by ada, b\\u000ab: 1 to take "
                      "back, 1 unchanged, 1 conflict\n");
    expect_print(shown, HISTORY_UNDO_CONFLICTS, PREVIEW,
                 ROWS "300 documents changed by ada, b\\u000ab: 1 to take back, 1 unchanged, "
                      "1 conflict\n");
    expect_print(plain, HISTORY_UNDO_ALL, "{\"dry_run\":true,\"items\":[]}",
                 "0 documents: 0 to take back, 0 unchanged, 0 conflicts\n");
}

static void undos(void **state)
{
    (void)state;
    expect_print(plain, HISTORY_UNDO_ALL, DONE,
                 "undone     s/pages/i  +0 -1\n1 document: 1 taken back, 0 unchanged, 0 "
                 "conflicts\nrun undo-1; `notegate undo --run undo-1` takes this back\n");
    expect_print(coloured, HISTORY_UNDO_ALL,
                 "{\"total\":1,\"items\":[" ITEM("i", "conflict",
                                                 ",\"conflict\":{\"reason\":\"n\\new\"}") "]}",
                 "\033[31mconflict \033[m  s/pages/i  n\\u000aew\n1 document: 0 taken back, 0 "
                 "unchanged, 0 conflicts\n");
}

static void left(void **state)
{
    struct arena arena;
    struct buf out;
    const struct ng_value *value = NULL;
    (void)state;
    arena_init(&arena, TEXT_MAX);
    buf_init(&out, TEXT_MAX);
    assert_int_equal(json_parse(&arena, ng_str_of(PREVIEW), JSON_DEPTH_DEFAULT, &value, NULL),
                     NG_OK);
    history_print_undo_left(&out, value);
    assert_string_equal(buf_cstr(&out), "  left: 300 documents changed by ada, b\\u000ab: 1 to "
                                        "take back, 1 unchanged, 1 conflict");
    buf_done(&out);
    arena_done(&arena);
}

static void placed(void **state)
{
    char user[] = "place";
    const struct history_places places = {place, user};
    (void)state;
    expect_placed(plain, HISTORY_UNDO_ALL, &places, DONE,
                  "undone     s/pages/i  +0 -1 (place of i)\n1 document: 1 taken back, 0 "
                  "unchanged, 0 conflicts\nrun undo-1; `notegate undo --run undo-1` takes this "
                  "back\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(previews),
        cmocka_unit_test(undos),
        cmocka_unit_test(left),
        cmocka_unit_test(placed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
