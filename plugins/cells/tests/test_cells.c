/* SPDX-License-Identifier: MIT */
/* test_cells.c - the tools of the cells plugin in a whole gateway: attaching, reading, editing.
 */
#include "harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const sets[] = {"plugins=cells", NULL};

static const char notebook[] =
    "{\n \"cells\": [\n  {\n   \"cell_type\": \"code\",\n   \"execution_count\": null,\n"
    "   \"id\": \"first\",\n   \"metadata\": {},\n   \"outputs\": [],\n   \"source\": [\n"
    "    \"a = 1\\n\",\n    \"a\"\n   ]\n  }\n ],\n \"metadata\": {},\n \"nbformat\": 4,\n"
    " \"nbformat_minor\": 5\n}\n";

static int setup(void **state)
{
    struct harness *harness = calloc(1, sizeof(*harness));
    assert_non_null(harness);
    harness_open(harness, sets);
    char path[4096];
    (void)snprintf(path, sizeof(path), "%s/files/n.ipynb", harness->dir);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(notebook, file) >= 0);
    assert_int_equal(fclose(file), 0);
    *state = harness;
    return 0;
}

static int teardown(void **state)
{
    harness_close(*state);
    free(*state);
    return 0;
}

static void expect(struct harness *harness, const char *tool, const char *args,
                   const char *part)
{
    struct answer answer = harness_call(harness, tool, args);
    const char *said = answer.rc == NG_OK ? answer.text : answer.message;
    assert_non_null(said);
    assert_non_null(strstr(said, part));
    answer_free(&answer);
}

static void test_attach_and_edit(void **state)
{
    struct harness *harness = *state;
    expect(harness, "getNotebookCells", "{}", "No active notebook found");
    expect(harness, "attachNotebook", "{\"notebook\":\"n.ipynb\"}",
           "with 1 cell(s); it is active");
    expect(harness, "GetNotebookCells", "{}", "ID: first");
    expect(harness, "addNotebookCell",
           "{\"type\":\"Markdown\",\"index\":-1,\"content\":\"# hi\"}",
           "Successfully added markdown cell at index 1");
    expect(harness, "updateNotebookCell", "{\"cellId\":\"first\",\"content\":\"a = 2\\na\"}",
           "Successfully updated cell first");
    expect(harness, "getNotebookCells", "{\"cellIds\":[\"first\"]}", "a = 2\na\n```");
    expect(harness, "deleteNotebookCells", "{\"cellIds\":[\"none\",\"index:9\"]}",
           "Cell not found: none, index:9");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_attach_and_edit, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
