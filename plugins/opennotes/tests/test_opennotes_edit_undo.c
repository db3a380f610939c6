/* SPDX-License-Identifier: MIT */
/* test_opennotes_edit_undo.c - the caller's own last change of a note is taken back, whichever
 * tool made it. */
#include "test_opennotes_edit_rig.h"

#define UNDO "{\"path\":\"n.md\",\"operation\":\"undo\"}"

/* The notebook and a folder beside it are roots, so that fileEditor reaches them. */
static int undo_setup(void **state)
{
    static char roots[600];
    char outside[300];
    struct fixture *fixture = calloc(1, sizeof(*fixture));
    assert_non_null(fixture);
    fixture_open(fixture);
    (void)snprintf(outside, sizeof(outside), "%s-outside", fixture->folder);
    assert_int_equal(mkdir(outside, 0755), 0);
    (void)snprintf(roots, sizeof(roots), "roots=%s,%s", fixture->folder, outside);
    fixture_serve(fixture, (const char *const[]){"plugins=opennotes,file_editor", roots, NULL});
    *state = fixture;
    return 0;
}

static int undo_teardown(void **state)
{
    const struct fixture *fixture = *state;
    char outside[300];
    (void)snprintf(outside, sizeof(outside), "%s-outside", fixture->folder);
    (void)nftw(outside, fixture_unlink, 16, FTW_DEPTH | FTW_PHYS);
    return edit_teardown(state);
}

static void works(struct fixture *fixture, const char *tool, const char *args)
{
    free(fixture_call(fixture, tool, args));
}

/* `args` with the notebook's folder for '@'. */
static void file_works(struct fixture *fixture, const char *args)
{
    char real[1000] = "";
    for (; *args != '\0'; args++) {
        char one[2] = {*args, '\0'};
        (void)strncat(real, *args == '@' ? fixture->folder : one,
                      sizeof(real) - strlen(real) - 1);
    }
    works(fixture, "fileEditor", real);
}

static void undone(struct fixture *fixture, const char *args, const char *const *wanted)
{
    fixture_says(fixture, EDIT, args, wanted);
}

/* Twice steps back twice; there is no redo. */
static void steps(void **state)
{
    struct fixture *fixture = *state;
    fixture_put(fixture, "n.md", "a\r\n");
    works(fixture, EDIT, "{\"path\":\"n.md\"," APPEND("b\\nc") "}");
    works(fixture, EDIT, "{\"path\":\"n.md\"," SET("{\"k\":1}") "}");
    works(fixture, EDIT, "{\"path\":\"n.md\"," REPLACE("b\\nc", "d") "}");
    undone(fixture, UNDO,
           (const char *const[]){"{\"path\":\"n.md\",\"revision\":\"",
                                 "\",\"added\":2,\"removed\":1,\"undone\":\"edit\"}", NULL});
    fixture_has(fixture, "n.md", "---\r\nk: 1\r\n---\r\na\r\nb\r\nc\r\n");
    undone(fixture, UNDO, (const char *const[]){"\"added\":0,\"removed\":3,", NULL});
    undone(fixture, UNDO, (const char *const[]){"\"added\":0,\"removed\":2,", NULL});
    fixture_has(fixture, "n.md", "a\r\n");
    struct answer answer = harness_call(&fixture->harness, EDIT, UNDO);
    assert_string_equal(answer.code, "NO_HISTORY");
    assert_int_equal(answer.status, 422);
    answer_free(&answer);
    fixture_fails(fixture, EDIT, "{\"path\":\"none.md\",\"operation\":\"undo\"}",
                  "NOTE_NOT_FOUND", "none.md");
}

static void other_tools(void **state)
{
    struct fixture *fixture = *state;
    fixture_put(fixture, "n.md", "one\ntwo\n");
    file_works(fixture, "{\"command\":\"str_replace\",\"path\":\"@/n.md\",\"old_str\":\"two\","
                        "\"new_str\":\"2\"}");
    undone(fixture, UNDO, (const char *const[]){"\"undone\":\"edit\"", NULL});
    fixture_has(fixture, "n.md", "one\ntwo\n");
    works(fixture, EDIT, "{\"path\":\"n.md\"," APPEND("three") "}");
    file_works(fixture, "{\"command\":\"undo_edit\",\"path\":\"@/n.md\"}");
    fixture_has(fixture, "n.md", "one\ntwo\n");
    works(fixture, "opennotes_daily", "{\"date\":\"2026-03-04\",\"content\":\"- a\"}");
    works(fixture, "opennotes_daily",
          "{\"date\":\"2026-03-04\",\"content\":\"- b\",\"section\":\"Log\"}");
    undone(fixture, "{\"path\":\"daily/2026-03-04.md\",\"operation\":\"undo\"}",
           (const char *const[]){"\"added\":0,\"removed\":3,\"undone\":\"edit\"}", NULL});
}

static void creation(void **state)
{
    struct fixture *fixture = *state;
    works(fixture, "opennotes_create",
          "{\"title\":\"New\",\"path\":\"sub/new.md\",\"content\":\"x\"}");
    works(fixture, EDIT, "{\"path\":\"sub/new.md\"," APPEND("y") "}");
    undone(fixture, "{\"path\":\"sub/new.md\",\"operation\":\"undo\"}",
           (const char *const[]){"\"revision\"", "\"undone\":\"edit\"", NULL});
    char *text = fixture_get(fixture, "sub/new.md");
    int lines = 0;
    char said[200];
    for (const char *at = text; (at = strchr(at, '\n')) != NULL; at++) {
        lines++;
    }
    free(text);
    (void)snprintf(said, sizeof(said),
                   "{\"path\":\"sub/new.md\",\"added\":0,\"removed\":%d,\"undone\":"
                   "\"creation\",\"deleted\":true}",
                   lines);
    undone(fixture, "{\"path\":\"sub/new.md\",\"operation\":\"undo\"}",
           (const char *const[]){said, NULL});
    assert_false(fixture_exists(fixture, "sub/new.md"));
    fixture_fails(fixture, "opennotes_get", "{\"path\":\"sub/new.md\"}", "NOTE_NOT_FOUND", "");
    fixture_fails(fixture, EDIT, "{\"path\":\"sub/new.md\",\"operation\":\"undo\"}",
                  "NOTE_NOT_FOUND", "");
}

static void move(void **state)
{
    struct fixture *fixture = *state;
    fixture_put(fixture, "sub/caf\xc3\xa9.md", "one\n");
    file_works(fixture, "{\"command\":\"move\",\"path\":\"@/sub/caf\xc3\xa9.md\","
                        "\"destination\":\"@/n.md\"}");
    undone(fixture, UNDO,
           (const char *const[]){"{\"path\":\"sub/caf\xc3\xa9.md\",\"revision\":\"",
                                 "\",\"added\":0,\"removed\":0,\"undone\":\"move\"}", NULL});
    assert_false(fixture_exists(fixture, "n.md"));
    fixture_has(fixture, "sub/caf\xc3\xa9.md", "one\n");
    fixture_says(fixture, "opennotes_get", "{\"path\":\"sub/caf\xc3\xa9.md\"}",
                 (const char *const[]){"one", NULL});
}

/* This tool moves nothing out of the notebook. */
static void move_from_outside(void **state)
{
    struct fixture *fixture = *state;
    file_works(fixture,
               "{\"command\":\"create\",\"path\":\"@-outside/x.md\",\"file_text\":\"x\"}");
    file_works(fixture, "{\"command\":\"move\",\"path\":\"@-outside/x.md\","
                        "\"destination\":\"@/n.md\"}");
    fixture_fails(fixture, EDIT, UNDO, "TOOL_FAILED",
                  "moved here from outside of the notebook");
    fixture_has(fixture, "n.md", "x");
    file_works(fixture, "{\"command\":\"undo_edit\",\"path\":\"@/n.md\"}");
    assert_false(fixture_exists(fixture, "n.md"));
}

/* A caller takes back its own changes only. */
static void of_another(void **state)
{
    struct fixture *fixture = *state;
    fixture_put(fixture, "n.md", "a\n");
    works(fixture, EDIT, "{\"path\":\"n.md\"," APPEND("b") "}");
    struct answer answer = harness_call_as(&fixture->harness, "ada", NULL, EDIT,
                                           "{\"path\":\"n.md\"," APPEND("c") "}");
    assert_int_equal(answer.rc, NG_OK);
    answer_free(&answer);
    answer = harness_call(&fixture->harness, EDIT, UNDO);
    assert_string_equal(answer.code, "CONFLICT");
    assert_int_equal(answer.status, 409);
    assert_non_null(strstr(answer.message, "is not yours: the agent ada made it at 20"));
    assert_non_null(strstr(answer.details, "\"changed_by\":\"ada\",\"timestamp\":\"20"));
    answer_free(&answer);
    fixture_has(fixture, "n.md", "a\nb\nc\n");
    answer = harness_call_as(&fixture->harness, "ada", NULL, EDIT, UNDO);
    assert_int_equal(answer.rc, NG_OK);
    answer_free(&answer);
    undone(fixture, UNDO, (const char *const[]){"\"removed\":1", NULL});
    fixture_has(fixture, "n.md", "a\n");
}

static void changed_outside(void **state)
{
    struct fixture *fixture = *state;
    fixture_put(fixture, "n.md", "a\n");
    works(fixture, EDIT, "{\"path\":\"n.md\"," APPEND("b") "}");
    fixture_put(fixture, "n.md", "from outside\n");
    fixture_fails(fixture, EDIT, UNDO, "CONFLICT", "Another program changed the file");
    fixture_has(fixture, "n.md", "from outside\n");
    /* Back at what the edit left, it can be undone. */
    fixture_put(fixture, "n.md", "a\nb\n");
    fixture_fails(fixture, EDIT,
                  "{\"path\":\"n.md\",\"operation\":\"undo\",\"expectedRevision\":"
                  "\"00000000000000000000000000000000\"}",
                  "CONFLICT", "another revision");
    undone(fixture, UNDO, (const char *const[]){"\"undone\":\"edit\"", NULL});
    fixture_has(fixture, "n.md", "a\n");
}

static void after_restart(void **state)
{
    struct fixture *fixture = *state;
    fixture_put(fixture, "n.md", "a\n");
    works(fixture, EDIT, "{\"path\":\"n.md\"," APPEND("b") "}");
    works(fixture, EDIT, "{\"path\":\"n.md\"," APPEND("c") "}");
    harness_reopen(&fixture->harness);
    undone(fixture, UNDO, (const char *const[]){"\"undone\":\"edit\"", NULL});
    harness_reopen(&fixture->harness);
    undone(fixture, UNDO, (const char *const[]){"\"undone\":\"edit\"", NULL});
    fixture_has(fixture, "n.md", "a\n");
    fixture_fails(fixture, EDIT, UNDO, "NO_HISTORY", "n.md");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(steps, undo_setup, undo_teardown),
        cmocka_unit_test_setup_teardown(other_tools, undo_setup, undo_teardown),
        cmocka_unit_test_setup_teardown(creation, undo_setup, undo_teardown),
        cmocka_unit_test_setup_teardown(move, undo_setup, undo_teardown),
        cmocka_unit_test_setup_teardown(move_from_outside, undo_setup, undo_teardown),
        cmocka_unit_test_setup_teardown(of_another, undo_setup, undo_teardown),
        cmocka_unit_test_setup_teardown(changed_outside, undo_setup, undo_teardown),
        cmocka_unit_test_setup_teardown(after_restart, undo_setup, undo_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
