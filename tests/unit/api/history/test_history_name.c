/* SPDX-License-Identifier: MIT */
/* test_history_name.c - documents, points, ranges and lines as words name them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "api/history/history_name.h"
#include "core/base/str.h"

#define NONE NULL

struct name_case {
    const char *word;
    enum history_points points;
    const char *space, *collection, *id, *point; /* id NONE: it names no document */
};

static void expect_text(const char *word, const char *what, struct ng_str text,
                        const char *wanted)
{
    bool same = wanted == NULL ? text.data == NULL : text.data != NULL && str_is(text, wanted);
    if (!same) {
        fail_msg("%s: %s is \"%.*s\"", word, what, (int)text.len, text.data);
    }
}

static void names(void **state)
{
    static const struct name_case cases[] = {
        {"todo", HISTORY_POINT_ONE, NONE, "notebooks", "todo", NONE},
        {"a/b", HISTORY_POINT_ONE, NONE, "notebooks", "a/b", NONE},
        {"~ada/notebooks/todo", HISTORY_POINT_ONE, "~ada", "notebooks", "todo", NONE},
        {"s/pages/a/b@c", HISTORY_POINT_ONE, "s", "pages", "a/b@c", NONE},
        {"todo@7", HISTORY_POINT_ONE, NONE, "notebooks", "todo", "7"},
        {"todo@#12", HISTORY_POINT_ONE, NONE, "notebooks", "todo", "#12"},
        {"todo@now", HISTORY_POINT_ONE, NONE, "notebooks", "todo", "now"},
        {"todo@2h", HISTORY_POINT_ONE, NONE, "notebooks", "todo", "2h"},
        {"todo@2026-01-28", HISTORY_POINT_ONE, NONE, "notebooks", "todo", "2026-01-28"},
        {"s/pages/a@1@2", HISTORY_POINT_ONE, "s", "pages", "a@1", "2"},
        {"ada@example.org", HISTORY_POINT_ONE, NONE, "notebooks", "ada@example.org", NONE},
        {"ada@7x", HISTORY_POINT_ONE, NONE, "notebooks", "ada@7x", NONE},
        {"ada@", HISTORY_POINT_ONE, NONE, "notebooks", "ada@", NONE},
        {"a@1..2", HISTORY_POINT_ONE, NONE, "notebooks", "a@1..2", NONE},
        {"a@7", HISTORY_POINT_NONE, NONE, "notebooks", "a@7", NONE},
        {".a/b", HISTORY_POINT_ONE, NONE, "notebooks", ".a/b", NONE},
        {"..", HISTORY_POINT_ONE, NONE, "notebooks", "..", NONE},
        {"a@1..2", HISTORY_POINT_RANGE, NONE, "notebooks", "a", "1..2"},
        {"a@..2", HISTORY_POINT_RANGE, NONE, "notebooks", "a", "..2"},
        {"a@7d..", HISTORY_POINT_RANGE, NONE, "notebooks", "a", "7d.."},
        {"a@..", HISTORY_POINT_RANGE, NONE, "notebooks", "a@..", NONE},
        {"a@1..x", HISTORY_POINT_RANGE, NONE, "notebooks", "a@1..x", NONE},
        {"notegate://shared/notebook/a%20b", HISTORY_POINT_ONE, "shared", "notebooks", "a b",
         NONE},
        {"notegate://~ada/pages/a%2Fb%407@3", HISTORY_POINT_ONE, "~ada", "pages", "a/b@7", "3"},
        {"notegate://shared/notebook/a%0Ab", HISTORY_POINT_ONE, "shared", "notebooks", "a\nb",
         NONE},
        {"notegate://shared/notebook/a%zz", HISTORY_POINT_ONE, NONE, NONE, NONE, NONE},
        {"notegate://shared", HISTORY_POINT_ONE, NONE, NONE, NONE, NONE},
        {"notegate://shared/file/a.txt", HISTORY_POINT_ONE, NONE, NONE, NONE, NONE},
        {"notegate://shared/file/", HISTORY_POINT_ONE, NONE, NONE, NONE, NONE},
        {"notegate://shared/cell/%2Fsrv%2Fa.ipynb", HISTORY_POINT_ONE, NONE, NONE, NONE, NONE},
        {"notegate://shared/notebook/a?revision=2", HISTORY_POINT_ONE, NONE, NONE, NONE, NONE},
        {"", HISTORY_POINT_ONE, NONE, NONE, NONE, NONE},
        {"@7", HISTORY_POINT_ONE, NONE, NONE, NONE, NONE},
        {"s//a", HISTORY_POINT_ONE, NONE, NONE, NONE, NONE},
        {"s/pages/", HISTORY_POINT_ONE, NONE, NONE, NONE, NONE},
    };
    (void)state;
    for (size_t i = 0; i < NG_COUNT(cases); i++) {
        const struct name_case *one = &cases[i];
        struct history_name name;
        struct arena arena;
        const char *why = NULL;
        arena_init(&arena, 65536);
        int rc = history_name_parse(&arena, ng_str_of(one->word), one->points, &name, &why);
        if (rc != (one->id != NONE ? NG_OK : NG_EINVAL)) {
            fail_msg("%s: %d", one->word, rc);
        }
        if (rc == NG_OK) {
            expect_text(one->word, "space", name.space, one->space);
            expect_text(one->word, "collection", name.collection, one->collection);
            expect_text(one->word, "id", name.id, one->id);
            expect_text(one->word, "point", name.point, one->point);
            expect_text(one->word, "path", name.path, NONE);
        } else {
            assert_non_null(why);
        }
        arena_done(&arena);
    }
}

static void paths(void **state)
{
    static const struct path_case {
        const char *word;
        enum history_points points;
        const char *path, *point;
    } cases[] = {
        {"/srv/notes/a.md", HISTORY_POINT_ONE, "/srv/notes/a.md", NONE},
        {"/a", HISTORY_POINT_NONE, "/a", NONE},
        {"./a", HISTORY_POINT_ONE, "./a", NONE},
        {"../a@7", HISTORY_POINT_ONE, "../a", "7"},
        {"../a@7", HISTORY_POINT_NONE, "../a@7", NONE},
        {"/a@2h", HISTORY_POINT_ONE, "/a", "2h"},
        {"/a@1..2", HISTORY_POINT_RANGE, "/a", "1..2"},
        {"/a@1..2", HISTORY_POINT_ONE, "/a@1..2", NONE},
        {"/notes@home/a", HISTORY_POINT_ONE, "/notes@home/a", NONE},
        {"/shared/notebooks/todo", HISTORY_POINT_ONE, "/shared/notebooks/todo", NONE},
        {"//a", HISTORY_POINT_ONE, "//a", NONE},
        {"/", HISTORY_POINT_ONE, "/", NONE},
        {"notegate://shared/file/%2Fsrv%2Fa%20b.txt", HISTORY_POINT_ONE, "/srv/a b.txt", NONE},
        {"notegate://shared/file//srv/a.txt@7", HISTORY_POINT_ONE, "/srv/a.txt", "7"},
        {"notegate://~ada/note/%2Fnotes%2Fa.md@1..2", HISTORY_POINT_RANGE, "/notes/a.md",
         "1..2"},
        {"notegate://shared/cell/%2Fsrv%2Fa%23b.ipynb%23c1", HISTORY_POINT_NONE,
         "/srv/a#b.ipynb", NONE},
    };
    (void)state;
    for (size_t i = 0; i < NG_COUNT(cases); i++) {
        const struct path_case *one = &cases[i];
        struct history_name name;
        struct arena arena;
        const char *why = NULL;
        arena_init(&arena, 65536);
        if (history_name_parse(&arena, ng_str_of(one->word), one->points, &name, &why) !=
            NG_OK) {
            fail_msg("%s: %s", one->word, why);
        }
        expect_text(one->word, "path", name.path, one->path);
        expect_text(one->word, "point", name.point, one->point);
        expect_text(one->word, "space", name.space, NONE);
        expect_text(one->word, "collection", name.collection, NONE);
        expect_text(one->word, "id", name.id, NONE);
        arena_done(&arena);
    }
}

static void ranges(void **state)
{
    static const struct {
        const char *text;
        bool good;
        const char *from, *to;
    } cases[] = {
        {"7", true, "7", NONE},
        {"1..now", true, "1", "now"},
        {"..2026-01-28T14:30:00Z", true, NONE, "2026-01-28T14:30:00Z"},
        {"7d..", true, "7d", NONE},
        {"", false, NONE, NONE},
        {"..", false, NONE, NONE},
        {"1...2", false, NONE, NONE},
        {"1..2..3", false, NONE, NONE},
        {"yesterday", false, NONE, NONE},
    };
    (void)state;
    for (size_t i = 0; i < NG_COUNT(cases); i++) {
        struct history_range range;
        if (history_range_parse(ng_str_of(cases[i].text), &range) != cases[i].good) {
            fail_msg("%s", cases[i].text);
        }
        if (cases[i].good) {
            expect_text(cases[i].text, "from", range.from, cases[i].from);
            expect_text(cases[i].text, "to", range.to, cases[i].to);
        }
    }
}

static void lines(void **state)
{
    static const struct {
        const char *text;
        bool good;
        uint64_t first, last;
    } cases[] = {
        {"3,9", true, 3, 9},    {"3", true, 3, 0},
        {"3,", true, 3, 0},     {",9", true, 1, 9},
        {"3,3", true, 3, 3},    {"", false, 0, 0},
        {",", false, 0, 0},     {"0,2", false, 0, 0},
        {"2,0", false, 0, 0},   {"9,3", false, 0, 0},
        {"a,b", false, 0, 0},   {"-1,2", false, 0, 0},
        {"1,2,3", false, 0, 0}, {"99999999999", false, 0, 0},
    };
    (void)state;
    for (size_t i = 0; i < NG_COUNT(cases); i++) {
        uint64_t first = 0;
        uint64_t last = 0;
        bool good = history_lines_parse(ng_str_of(cases[i].text), &first, &last);
        if (good != cases[i].good ||
            (good && (first != cases[i].first || last != cases[i].last))) {
            fail_msg("%s: %d", cases[i].text, good);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names),
        cmocka_unit_test(paths),
        cmocka_unit_test(ranges),
        cmocka_unit_test(lines),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
