/* SPDX-License-Identifier: MIT */
/* test_opennotes_move.c - the tools that move and delete: links follow, and come back. */
#include "test_notebook.h"

#define MOVE "opennotes_move"
#define DELETE "opennotes_delete"
#define EDIT "opennotes_edit"
#define LINKS "opennotes_links"

static int setup(void **state)
{
    struct fixture *fixture = calloc(1, sizeof(*fixture));
    assert_non_null(fixture);
    fixture_open(fixture);
    *state = fixture;
    return 0;
}

static int teardown(void **state)
{
    fixture_close(*state);
    free(*state);
    return 0;
}

static void answers(struct fixture *fixture, const char *tool, const char *args,
                    const char *wanted)
{
    char *text = fixture_call(fixture, tool, args);
    assert_string_equal(text, wanted);
    free(text);
}

static void starts(struct fixture *fixture, const char *tool, const char *args,
                   const char *wanted)
{
    char *text = fixture_call(fixture, tool, args);
    text[strnlen(wanted, strlen(text))] = '\0';
    assert_string_equal(text, wanted);
    free(text);
}

static void put_links(struct fixture *fixture)
{
    fixture_put(fixture, "plan.md", "# Plan\n[own](sub/b.md) ![p](img/p.png) [[plan#x]]\n");
    fixture_put(fixture, "img/p.png", "picture");
    fixture_put(fixture, "sub/b.md",
                "---\nup: \"[[plan]]\"\nalso: [[plan]]\n---\n"
                "[[plan]] [[Plan|a]] ![[plan#Plan]] [[plan^block]] [[missing]]\r\n"
                "[m](../plan.md#x 'T') [abs](</plan.md>) [r][] `[[plan]]`\n\n[r]: ../plan\n");
    fixture_put(fixture, "c.md", "no link here, [[nothing]] plan.md");
}

static void note_with_links(void **state)
{
    struct fixture *fixture = *state;
    put_links(fixture);
    fixture_serve(fixture, NULL);
    starts(fixture, MOVE, "{\"path\":\"plan.md\",\"to\":\"old/The plan (1).md\"}",
           "{\"path\":\"old/The plan (1).md\",\"links\":12,\"notes\":[\"sub/b.md\"],"
           "\"revision\":\"");
    fixture_has(fixture, "old/The plan (1).md",
                "# Plan\n[own](../sub/b.md) ![p](../img/p.png) [[The plan (1)#x]]\n");
    fixture_has(fixture, "sub/b.md",
                "---\nup: \"[[The plan (1)]]\"\nalso: [[The plan (1)]]\n---\n"
                "[[The plan (1)]] [[The plan (1)|a]] ![[The plan (1)#Plan]] "
                "[[The plan (1)^block]] [[missing]]\r\n"
                "[m](../old/The%20plan%20%281%29.md#x 'T') [abs](</old/The plan %281%29.md>) "
                "[r][] `[[plan]]`\n\n[r]: ../old/The%20plan%20%281%29\n");
    assert_false(fixture_exists(fixture, "plan.md"));
    fixture_has(fixture, "c.md", "no link here, [[nothing]] plan.md");
    /* The index knows it. */
    fixture_says(fixture, LINKS, "{\"path\":\"old/The plan (1).md\",\"kind\":\"incoming\"}",
                 (const char *const[]){"\"total\":9", NULL});
}

static void one_undo(void **state)
{
    struct fixture *fixture = *state;
    put_links(fixture);
    char *plan = fixture_get(fixture, "plan.md");
    char *other = fixture_get(fixture, "sub/b.md");
    fixture_serve(fixture, NULL);
    free(fixture_call(fixture, MOVE, "{\"path\":\"plan.md\",\"to\":\"x/y.md\"}"));
    fixture_says(fixture, EDIT, "{\"path\":\"x/y.md\",\"operation\":\"undo\"}",
                 (const char *const[]){"\"path\":\"plan.md\"", "\"undone\":\"move\"", NULL});
    fixture_has(fixture, "plan.md", plan);
    fixture_has(fixture, "sub/b.md", other);
    assert_false(fixture_exists(fixture, "x/y.md"));
    /* Of a folder. */
    free(fixture_call(fixture, MOVE, "{\"path\":\"sub\",\"to\":\"deep/er\"}"));
    fixture_has(fixture, "plan.md", "# Plan\n[own](deep/er/b.md) ![p](img/p.png) [[plan#x]]\n");
    fixture_says(fixture, EDIT, "{\"path\":\"deep/er\",\"operation\":\"undo\"}",
                 (const char *const[]){"\"path\":\"sub\"", "\"undone\":\"move\"", NULL});
    fixture_has(fixture, "plan.md", plan);
    fixture_has(fixture, "sub/b.md", other);
    free(plan);
    free(other);
}

/* A folder takes all its files along; links to them follow, also those of pictures. */
static void folder(void **state)
{
    struct fixture *fixture = *state;
    fixture_put(fixture, "a/n.md", "[near](m.md) [out](../top.md) ![p](p.png) [[top]]\n");
    fixture_put(fixture, "a/m.md", "[[a/n]]\n");
    fixture_put(fixture, "a/p.png", "picture");
    fixture_put(fixture, "top.md",
                "![p](a/p.png) ![[a/p.png]] [n](a/n.md) [[a/m]] [[n]] [f](a/)\n");
    fixture_serve(fixture, NULL);
    answers(fixture, MOVE, "{\"path\":\"a/\",\"to\":\"b/c\"}",
            "{\"path\":\"b/c\",\"links\":7,\"notes\":[\"top.md\"]}");
    fixture_has(fixture, "b/c/n.md", "[near](m.md) [out](../../top.md) ![p](p.png) [[top]]\n");
    fixture_has(fixture, "b/c/m.md", "[[n]]\n");
    fixture_has(fixture, "top.md",
                "![p](b/c/p.png) ![[b/c/p.png]] [n](b/c/n.md) [[m]] [[n]] [f](b/c/)\n");
    assert_true(fixture_exists(fixture, "b/c/p.png"));
    fixture_fails(fixture, MOVE, "{\"path\":\"b\",\"to\":\"b/c/d\"}", "NOTE_INVALID_PATH",
                  "into itself");
}

/* A link of another note that the new name would take over keeps its note. */
static void taken_over(void **state)
{
    struct fixture *fixture = *state;
    fixture_put(fixture, "x/long.md", "---\ntitle: Topic\n---\n");
    fixture_put(fixture, "y/name.md", "n\n");
    fixture_put(fixture, "z.md", "[[Topic]] [[name]]\n");
    fixture_put(fixture, "old.md", "o\n");
    fixture_serve(fixture, NULL);
    starts(fixture, MOVE, "{\"path\":\"old.md\",\"to\":\"Topic.md\"}",
           "{\"path\":\"Topic.md\",\"links\":1,\"notes\":[\"z.md\"]");
    fixture_has(fixture, "z.md", "[[long]] [[name]]\n");
    starts(fixture, MOVE, "{\"path\":\"Topic.md\",\"to\":\"name.md\"}",
           "{\"path\":\"name.md\",\"links\":1,\"notes\":[\"z.md\"]");
    fixture_has(fixture, "z.md", "[[long]] [[y/name]]\n");
    /* By its title, which stays. */
    fixture_put(fixture, "z.md", "[[Topic]]\n");
    starts(fixture, MOVE, "{\"path\":\"x/long.md\",\"to\":\"short.md\"}",
           "{\"path\":\"short.md\",\"links\":0,\"notes\":[]");
    fixture_has(fixture, "z.md", "[[Topic]]\n");
}

static void refusals(void **state)
{
    struct fixture *fixture = *state;
    put_links(fixture);
    fixture_serve(fixture, NULL);
    fixture_fails(fixture, MOVE, "{\"path\":\"plan.md\",\"to\":\"c.md\"}", "NOTE_EXISTS",
                  "c.md");
    fixture_fails(fixture, MOVE, "{\"path\":\"plan.md\",\"to\":\"plan.md\"}", "NOTE_EXISTS",
                  "");
    fixture_fails(fixture, MOVE, "{\"path\":\"plan.md\",\"to\":\"sub\"}", "NOTE_INVALID_PATH",
                  "'.md'");
    fixture_fails(fixture, MOVE, "{\"path\":\"plan.md\",\"to\":\"../x.md\"}", "PATH_TRAVERSAL",
                  "");
    fixture_fails(fixture, MOVE, "{\"path\":\"plan.md\",\"to\":\".x/a.md\"}",
                  "NOTE_INVALID_PATH", "dot");
    fixture_fails(fixture, MOVE, "{\"path\":\"none.md\",\"to\":\"x.md\"}", "NOTE_NOT_FOUND",
                  "");
    fixture_fails(fixture, MOVE, "{\"path\":\"none\",\"to\":\"x\"}", "NOTE_NOT_FOUND", ".md");
    fixture_fails(fixture, MOVE, "{\"path\":\"\",\"to\":\"x\"}", "NOTE_INVALID_PATH", "whole");
    fixture_fails(fixture, MOVE, "{\"path\":\".opennotes.json\",\"to\":\"x\"}",
                  "NOTE_NOT_FOUND", "");
    /* No wiki link can name it. */
    fixture_fails(fixture, MOVE, "{\"path\":\"plan.md\",\"to\":\"plan #2.md\"}", "TOOL_FAILED",
                  "cannot name notes with");
    assert_true(fixture_exists(fixture, "plan.md"));
    fixture_fails(fixture, DELETE, "{\"path\":\"none.md\"}", "NOTE_NOT_FOUND", "");
    fixture_fails(fixture, DELETE, "{\"path\":\".trash\"}", "NOTE_NOT_FOUND", "");
}

static void deleted_and_back(void **state)
{
    struct fixture *fixture = *state;
    put_links(fixture);
    fixture_serve(fixture, NULL);
    answers(fixture, DELETE, "{\"path\":\"plan.md\"}",
            "{\"trash\":\".trash/plan.md\",\"broken_links\":9}");
    assert_true(fixture_exists(fixture, ".trash/plan.md"));
    fixture_says(fixture, "opennotes_list", "{}", (const char *const[]){"\"total\":2", NULL});
    fixture_says(fixture, "opennotes_search", "{\"query\":\"own\"}",
                 (const char *const[]){"\"total\":0", NULL});
    fixture_fails(fixture, "opennotes_get", "{\"path\":\".trash/plan.md\"}", "NOTE_NOT_FOUND",
                  "");
    fixture_fails(fixture, DELETE, "{\"path\":\".trash/plan.md\"}", "NOTE_INVALID_PATH",
                  "already");
    /* A second one of this path. */
    fixture_put(fixture, "plan.md", "second\n");
    answers(fixture, DELETE, "{\"path\":\"plan.md\"}",
            "{\"trash\":\".trash/plan 2.md\",\"broken_links\":9}");
    starts(fixture, MOVE, "{\"path\":\".trash/plan.md\",\"to\":\"plan.md\"}",
           "{\"path\":\"plan.md\",\"links\":0,\"notes\":[],\"revision\":");
    fixture_says(fixture, LINKS, "{\"path\":\"plan.md\",\"kind\":\"incoming\"}",
                 (const char *const[]){"\"total\":9", NULL});
    /* The deletion of the other one is undone. */
    fixture_fails(fixture, EDIT, "{\"path\":\".trash/plan 2.md\",\"operation\":\"undo\"}",
                  "CONFLICT", "");
    free(fixture_call(fixture, MOVE, "{\"path\":\"plan.md\",\"to\":\"free.md\"}"));
    fixture_says(fixture, EDIT, "{\"path\":\".trash/plan 2.md\",\"operation\":\"undo\"}",
                 (const char *const[]){"\"path\":\"plan.md\"", "\"undone\":\"move\"", NULL});
    fixture_has(fixture, "plan.md", "second\n");
}

/* A name that may be on disk in another Unicode form is looked for there. AddressSanitizer
 * tells of a connection of the index that is not given back. */
static void name_in_unicode(void **state)
{
    struct fixture *fixture = *state;
    fixture_put(fixture, "größe/maß.md", "text\n");
    fixture_serve(fixture, NULL);
    answers(fixture, DELETE, "{\"path\":\"größe\"}",
            "{\"trash\":\".trash/größe\",\"broken_links\":0}");
    answers(fixture, MOVE, "{\"path\":\".trash/größe\",\"to\":\"größer\"}",
            "{\"path\":\"größer\",\"links\":0,\"notes\":[]}");
    assert_true(fixture_exists(fixture, "größer/maß.md"));
}

static void deleted_folder(void **state)
{
    struct fixture *fixture = *state;
    put_links(fixture);
    fixture_put(fixture, "sub/pic.png", "picture");
    fixture_serve(fixture, NULL);
    answers(fixture, DELETE, "{\"path\":\"sub\"}",
            "{\"trash\":\".trash/sub\",\"broken_links\":1}");
    assert_true(fixture_exists(fixture, ".trash/sub/pic.png"));
    answers(fixture, MOVE, "{\"path\":\".trash/sub\",\"to\":\"sub\"}",
            "{\"path\":\"sub\",\"links\":0,\"notes\":[]}");
    assert_true(fixture_exists(fixture, "sub/pic.png"));
    fixture_says(fixture, LINKS, "{\"path\":\"sub/b.md\",\"kind\":\"incoming\"}",
                 (const char *const[]){"\"total\":1", NULL});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(note_with_links, setup, teardown),
        cmocka_unit_test_setup_teardown(one_undo, setup, teardown),
        cmocka_unit_test_setup_teardown(folder, setup, teardown),
        cmocka_unit_test_setup_teardown(taken_over, setup, teardown),
        cmocka_unit_test_setup_teardown(refusals, setup, teardown),
        cmocka_unit_test_setup_teardown(deleted_and_back, setup, teardown),
        cmocka_unit_test_setup_teardown(name_in_unicode, setup, teardown),
        cmocka_unit_test_setup_teardown(deleted_folder, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
