/* SPDX-License-Identifier: MIT */
/* test_history_contents.c - files: notebooks of cells and notes with front matter, files that
 * were moved, versions that other programs saved. The test moves the clock. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "core/base/text/rfc3339.h"
#include "test_clock.h"
#include "test_history_rig.h"

#define CELL(id, source)                                                                       \
    "{\"cell_type\":\"code\",\"execution_count\":null,\"id\":\"" id                            \
    "\",\"metadata\":{},\"outputs\":[],\"source\":[" source "]}"
#define NOTEBOOK(cells)                                                                        \
    "{\"cells\":[" cells "],\"metadata\":{},\"nbformat\":4,\"nbformat_minor\":5}"

static int setup_with(const char *plugins)
{
    const char *const sets[] = {plugins, "documents=memory", NULL};
    harness_open(&harness, sets);
    return 0;
}

static int setup_files(void **state)
{
    (void)state;
    return setup_with("plugins=file_editor,cells,opennotes,history");
}

static int setup_without_cells(void **state)
{
    (void)state;
    return setup_with("plugins=file_editor,history");
}

#define WITH_FILES(test) cmocka_unit_test_setup_teardown(test, setup_files, teardown)
#define WITHOUT_CELLS(test) cmocka_unit_test_setup_teardown(test, setup_without_cells, teardown)

/* The whole path of a file in the root. One of a few static places. */
static const char *path(const char *name)
{
    return args("%s/files/%s", harness.dir, name);
}

/* Another program saves the file. modified_ms 0: now. */
static void save(const char *name, const char *text, int64_t modified_ms)
{
    FILE *file = fopen(path(name), "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
    if (modified_ms != 0) {
        const struct timespec time = {modified_ms / 1000, modified_ms % 1000 * 1000000};
        const struct timespec times[2] = {time, time};
        assert_int_equal(utimensat(AT_FDCWD, path(name), times, 0), 0);
    }
}

/* A call of fileEditor, which works, in a run with the name of the agent. rest: further
 * arguments, ' for ". */
static void edit(const char *agent, const char *command, const char *name, const char *rest)
{
    struct call *call = harness_new_call(&harness);
    call->caller.agent = ng_str_of(agent);
    call_set_run(call, ng_str_of(agent));
    const char *arguments = args("{'command':'%s','path':'%s',%s}", command, path(name), rest);
    struct answer answer = harness_run(call, "fileEditor", arguments);
    if (answer.rc != NG_OK) {
        fail_msg("%s: %s %s", arguments, answer.code, answer.message);
    }
    answer_free(&answer);
}

static void replace(const char *agent, const char *name, const char *old, const char *new)
{
    edit(agent, "str_replace", name, args("'old_str':'%s','new_str':'%s'", old, new));
}

static void move(const char *agent, const char *from, const char *to)
{
    edit(agent, "move", from, args("'destination':'%s'", path(to)));
}

/* A call that works. One of a few static places. */
static const char *ask(const char *tool, const char *name, const char *more)
{
    static char places[4][1 << 15];
    static unsigned next;
    char *place = places[next++ % NG_COUNT(places)];
    struct answer answer = go(tool, args("{'path':'%s'%s}", path(name), more));
    assert_true(answer.text_len < sizeof(places[0]));
    memcpy(place, answer.text, answer.text_len + 1);
    answer_free(&answer);
    return place;
}

/* ---- notebooks of cells ---- */

static const char notebook[] =
    NOTEBOOK(CELL("a1", "\"x = 1\\n\",\"y = 2\"") "," CELL("b2", "\"z = 3\""));

static void test_view(void **state)
{
    (void)state;
    save("n.ipynb", notebook, 0);
    replace("ada", "n.ipynb", "y = 2", "y = 9");
    replace("bob", "n.ipynb", "z = 3", "z = 4");
    const char *diff = ask("history_diff", "n.ipynb", "");
    assert_string_equal(at(diff, "added"), "1");
    assert_string_equal(at(diff, "removed"), "1");
    assert_non_null(strstr(at(diff, "diff"), "\n # %% [code] b2\n-z = 3\n+z = 4\n"));
    const char *blame = ask("history_blame", "n.ipynb", "");
    assert_string_equal(at(blame, "total_lines"), "7");
    assert_string_equal(at(blame, "exact"), "true");
    assert_string_equal(at(blame, "lines.0.text"), "# %% [code] a1\nx = 1");
    assert_string_equal(at(blame, "lines.0.revision"), "1");
    assert_string_equal(at(blame, "lines.1.text"), "y = 9");
    assert_string_equal(at(blame, "lines.1.agent"), "ada");
    assert_string_equal(at(blame, "lines.2.text"), "\n# %% [code] b2");
    assert_string_equal(at(blame, "lines.3.text"), "z = 4");
    assert_string_equal(at(blame, "lines.3.revision"), "3");
    assert_string_equal(at(blame, "lines.3.agent"), "bob");
    /* history_read gives the content, and not its view. */
    assert_non_null(strstr(at(ask("history_read", "n.ipynb", ""), "content"), "\"cells\""));
}

static void test_view_of_selected_changes(void **state)
{
    (void)state;
    save("n.ipynb", notebook, 0);
    replace("ada", "n.ipynb", "y = 2", "y = 9");
    struct answer answer = go("history_diff", "{\"agent\":\"ada\"}");
    assert_non_null(strstr(at(answer.text, "documents.0.diff"), "\n x = 1\n-y = 2\n+y = 9\n"));
    answer_free(&answer);
}

/* One that is no notebook counts by its bytes. */
static void test_view_of_a_broken_notebook(void **state)
{
    (void)state;
    save("n.ipynb", "not yet\n", 0);
    replace("ada", "n.ipynb", "not yet", "no more");
    assert_non_null(
        strstr(at(ask("history_diff", "n.ipynb", ""), "diff"), "\n-not yet\n+no more\n"));
    assert_string_equal(at(ask("history_blame", "n.ipynb", ""), "lines.0.text"), "no more");
    save("n.ipynb", notebook, 0);
    replace("ada", "n.ipynb", "y = 2", "y = 9");
    const char *blame = ask("history_blame", "n.ipynb", "");
    assert_string_equal(at(blame, "lines.0.revision"), "3");
    assert_string_equal(at(blame, "lines.1.text"), "y = 9");
    assert_string_equal(at(blame, "lines.1.revision"), "4");
}

static void test_without_the_plugin(void **state)
{
    (void)state;
    save("n.ipynb", notebook, 0);
    replace("ada", "n.ipynb", "y = 2", "y = 9");
    assert_non_null(strstr(at(ask("history_diff", "n.ipynb", ""), "diff"), "+{\"cells\""));
    assert_string_equal(at(ask("history_blame", "n.ipynb", ""), "total_lines"), "1");
}

/* ---- undo ---- */

/* The bytes on the disk. */
static const char *content(const char *name)
{
    static char text[1 << 13];
    FILE *file = fopen(path(name), "r");
    assert_non_null(file);
    size_t len = fread(text, 1, sizeof(text) - 1, file);
    text[len] = '\0';
    assert_int_equal(fclose(file), 0);
    return text;
}

/* Takes back ada's changes of one file. The result, or the reason of the conflict. */
static const char *undo_ada(void)
{
    struct answer answer = go("history_undo", "{\"run\":\"ada\",\"dry_run\":false}");
    const char *reason = at(answer.text, "items.0.conflict.reason");
    if (strcmp(reason, "none") == 0) {
        reason = at(answer.text, "items.0.result");
    }
    assert_string_equal(at(answer.text, "total"), "1");
    answer_free(&answer);
    return reason;
}

static void test_undo_by_cells(void **state)
{
    (void)state;
    save("n.ipynb", notebook, 0);
    replace("ada", "n.ipynb", "y = 2", "y = 9");
    replace("bob", "n.ipynb", "z = 3", "z = 4");
    assert_string_equal(undo_ada(), "undone");
    assert_string_equal(
        content("n.ipynb"),
        NOTEBOOK(CELL("a1", "\"x = 1\\n\",\"y = 2\"") "," CELL("b2", "\"z = 4\"")));
}

static void test_undo_of_the_same_cell(void **state)
{
    (void)state;
    save("n.ipynb", notebook, 0);
    replace("ada", "n.ipynb", "y = 2", "y = 9");
    replace("bob", "n.ipynb", "y = 9", "y = 10");
    assert_string_equal(undo_ada(), "overlap");
    assert_non_null(strstr(content("n.ipynb"), "y = 10"));
}

static void test_undo_without_the_plugin(void **state)
{
    (void)state;
    save("n.ipynb", notebook, 0);
    replace("ada", "n.ipynb", "y = 2", "y = 9");
    replace("bob", "n.ipynb", "z = 3", "z = 4");
    assert_string_equal(undo_ada(), "not_text");
}

/* A key would be there twice. */
static void make_two_keys(const char *name)
{
    save(name, "---\ntitle: Plan\nstatus: old\n---\nText\n", 0);
    replace("ada", name, "status: old\\n", "");
    replace("bob", name, "title", "status: new\\ntitle");
}

static void test_undo_checks_front_matter(void **state)
{
    (void)state;
    make_two_keys("note.md");
    assert_string_equal(undo_ada(), "invalid_merge");
    assert_string_equal(content("note.md"), "---\nstatus: new\ntitle: Plan\n---\nText\n");
}

static void test_undo_of_a_text_with_dashes(void **state)
{
    (void)state;
    make_two_keys("note.txt");
    assert_string_equal(undo_ada(), "undone");
    assert_string_equal(content("note.txt"),
                        "---\nstatus: new\ntitle: Plan\nstatus: old\n---\nText\n");
}

/* ---- moves ---- */

/* a, then b, then in/c; each agent has changed a line. */
static void make_moved(void)
{
    edit("ada", "create", "a", "'file_text':'one\\ntwo\\nthree\\n'");
    replace("bob", "a", "two", "TWO");
    move("carol", "a", "b");
    replace("dan", "b", "three", "THREE");
    move("carol", "b", "in/c");
    edit("eve", "insert", "in/c", "'insert_line':0,'new_str':'zero'");
}

static void expect_line(const char *blame, size_t row, const char *text, const char *from,
                        const char *agent)
{
    assert_string_equal(at(blame, args("lines.%zu.text", row)), text);
    assert_string_equal(at(blame, args("lines.%zu.agent", row)), agent);
    assert_string_equal(at(blame, args("lines.%zu.path", row)),
                        from != NULL ? path(from) : "none");
}

static void test_blame_of_a_moved_file(void **state)
{
    (void)state;
    make_moved();
    const char *blame = ask("history_blame", "in/c", "");
    assert_string_equal(at(blame, "exact"), "true");
    expect_line(blame, 0, "zero", NULL, "eve");
    expect_line(blame, 1, "one", "a", "ada");
    expect_line(blame, 2, "TWO", "a", "bob");
    assert_string_equal(at(blame, "lines.2.revision"), "2");
    expect_line(blame, 3, "THREE", "b", "dan");
    assert_string_equal(at(blame, "lines.3.revision"), "2");
    expect_line(blame, 4, "", "a", "ada");
    /* At a version before the move. */
    blame = ask("history_blame", "a", ",'at':'2'");
    expect_line(blame, 1, "TWO", NULL, "bob");
}

static void test_diff_of_a_move(void **state)
{
    (void)state;
    make_moved();
    const char *diff = ask("history_diff", "b", ",'to':'1'");
    assert_string_equal(at(diff, "diff"), "");
    assert_string_equal(at(diff, "from"), "2");
    assert_string_equal(at(diff, "from_path"), path("a"));
    diff = ask("history_diff", "b", ",'to':'2'");
    assert_string_equal(at(diff, "from_path"), "none");
    assert_non_null(strstr(at(diff, "diff"), "\n-three\n+THREE\n"));
}

/* The agents of the changes in the log, as one text. */
static const char *agents_of(const char *log)
{
    const char *text = "";
    for (size_t i = 0; strcmp(at(log, args("changes.%zu", i)), "none") != 0; i++) {
        text = args("%s %s", text, at(log, args("changes.%zu.agent", i)));
    }
    return text;
}

static void test_log_of_a_moved_file(void **state)
{
    (void)state;
    make_moved();
    edit("fay", "create", "a", "'file_text':'another file\\n'");
    const char *log = ask("history_log", "in/c", "");
    assert_string_equal(agents_of(log), " eve carol dan carol bob ada");
    assert_string_equal(at(log, "has_more"), "false");
    assert_string_equal(at(log, "changes.0.id"), path("in/c"));
    assert_string_equal(at(log, "changes.2.id"), path("b"));
    assert_string_equal(at(log, "changes.5.id"), path("a"));
    /* The same page by page. */
    const char *cursor = "none";
    const char *all = "";
    for (int i = 0; i < 6; i++) {
        const char *more = strcmp(cursor, "none") != 0
                               ? args(",'limit':1,'cursor':'%s'", cursor)
                               : ",'limit':1";
        log = ask("history_log", "in/c", more);
        all = args("%s%s", all, agents_of(log));
        cursor = at(log, "cursor");
    }
    assert_string_equal(all, " eve carol dan carol bob ada");
    assert_string_equal(at(log, "has_more"), "false");
    assert_string_equal(agents_of(ask("history_log", "in/c", ",'agent':'bob'")), " bob");
    assert_string_equal(agents_of(ask("history_log", "a", ",'limit':1")), " fay");
}

/* There and back again: the versions at the first path are two stretches. */
static void test_moved_back(void **state)
{
    (void)state;
    edit("ada", "create", "a", "'file_text':'one\\ntwo\\n'");
    move("bob", "a", "b");
    replace("carol", "b", "two", "TWO");
    move("dan", "b", "a");
    const char *blame = ask("history_blame", "a", "");
    expect_line(blame, 0, "one", "a", "ada");
    expect_line(blame, 1, "TWO", "b", "carol");
    assert_string_equal(agents_of(ask("history_log", "a", "")), " dan carol bob ada");
}

/* Of more moves than are followed the rest is one change. */
static void test_many_moves(void **state)
{
    (void)state;
    edit("ada", "create", "f0", "'file_text':'one\\n'");
    for (int i = 0; i < 20; i++) {
        const char *from = args("f%d", i);
        move(args("m%d", i + 1), from, args("f%d", i + 1));
    }
    const char *blame = ask("history_blame", "f20", "");
    assert_string_equal(at(blame, "exact"), "false");
    expect_line(blame, 0, "one\n", "f4", "m4");
    const char *log = ask("history_log", "f20", ",'limit':200");
    assert_string_equal(at(log, "changes.16.agent"), "m4");
    assert_string_equal(at(log, "changes.17"), "none");
}

/* ---- saved by other programs ---- */

static const char *content_at(const char *name, int64_t time_ms)
{
    char time[RFC3339_SIZE];
    rfc3339_write(time_ms, RFC3339_MS, time);
    return at(ask("history_read", name, args(",'at':'%s'", time)), "content");
}

static void test_found_versions(void **state)
{
    (void)state;
    struct timespec real;
    assert_int_equal(clock_gettime(CLOCK_REALTIME, &real), 0);
    int64_t now = (int64_t)real.tv_sec * 1000;
    save("f", "one\n", now - 2 * TEST_CLOCK_HOUR_MS);
    replace("ada", "f", "one", "two");
    save("f", "three\n", now + TEST_CLOCK_HOUR_MS);
    test_clock_pass(2 * TEST_CLOCK_HOUR_MS);
    replace("ada", "f", "three", "four");
    assert_string_equal(content_at("f", now - TEST_CLOCK_HOUR_MS), "one\n");
    assert_string_equal(content_at("f", now + TEST_CLOCK_HOUR_MS / 2), "two\n");
    assert_string_equal(content_at("f", now + TEST_CLOCK_HOUR_MS), "three\n");
    assert_string_equal(content_at("f", now + TEST_CLOCK_HOUR_MS * 3 / 2), "three\n");
    assert_string_equal(content_at("f", now + 3 * TEST_CLOCK_HOUR_MS), "four\n");
    struct answer answer = harness_call(&harness, "history_read",
                                        args("{'path':'%s','at':'2000-01-01'}", path("f")));
    assert_string_equal(answer.code, "NOT_FOUND");
    answer_free(&answer);
    test_clock_reset();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_FILES(test_view),
        WITH_FILES(test_view_of_selected_changes),
        WITH_FILES(test_view_of_a_broken_notebook),
        WITHOUT_CELLS(test_without_the_plugin),
        WITH_FILES(test_undo_by_cells),
        WITH_FILES(test_undo_of_the_same_cell),
        WITHOUT_CELLS(test_undo_without_the_plugin),
        WITH_FILES(test_undo_checks_front_matter),
        WITH_FILES(test_undo_of_a_text_with_dashes),
        WITH_FILES(test_blame_of_a_moved_file),
        WITH_FILES(test_diff_of_a_move),
        WITH_FILES(test_log_of_a_moved_file),
        WITH_FILES(test_moved_back),
        WITH_FILES(test_many_moves),
        WITH_FILES(test_found_versions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
