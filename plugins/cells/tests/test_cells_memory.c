/* SPDX-License-Identifier: MIT */
/* test_cells_memory.c - out of memory, at every allocation in turn: an index or an edit is
 * right, or says that it failed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "notebook/render.h"

#if defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define CAN_FAIL 1
#else
#define CAN_FAIL 0 /* a sanitizer has allocators of its own */
#endif

/* More than any case here makes. */
#define ALLOCATIONS 300

/* The allocation that fails, counted down; negative: none. `once`: those after it succeed. */
static long left = -1;
static bool once;

#if CAN_FAIL
static bool fails(void)
{
    if (left < 0) {
        return false;
    }
    left -= left > 0 ? 1 : 0;
    bool now = left == 0;
    left = now && once ? -1 : left;
    return now;
}

void *__libc_realloc(void *old, size_t size);
void *__libc_calloc(size_t count, size_t size);

void *realloc(void *old, size_t size)
{
    return fails() ? NULL : __libc_realloc(old, size);
}

void *calloc(size_t count, size_t size)
{
    return fails() ? NULL : __libc_calloc(count, size);
}
#endif

static const char file[] =
    "{\n \"cells\": [\n  {\n   \"cell_type\": \"code\",\n   \"execution_count\": 1,\n"
    "   \"id\": \"a\",\n   \"metadata\": {},\n   \"outputs\": [\n    {}\n   ],\n   \"source\": "
    "[\n"
    "    \"one\\n\",\n    \"two\"\n   ]\n  },\n  {\n   \"cell_type\": \"markdown\",\n   "
    "\"id\": "
    "\"b\",\n   \"metadata\": {},\n   \"source\": [\n    \"text\"\n   ]\n  }\n ],\n "
    "\"metadata\": "
    "{},\n \"nbformat\": 4,\n \"nbformat_minor\": 5\n}\n";

static void make_edits(struct nb_edit *edit, const struct nb *nb, int kind)
{
    const bool gone[2] = {true, false};
    switch (kind) {
    case 0:
        nb_set_source(edit, nb, 0, ng_str_of("one\nand\ntwo"));
        nb_set_outputs(edit, nb, 0, ng_str_of("[{\"a\":[\"\xc3\xa9\"]}]"), 7);
        break;
    case 1:
        nb_insert_cell(edit, nb, 2, NB_CODE, ng_str_of("new"), ng_str_of("x\ny"));
        nb_insert_cell(edit, nb, 0, NB_RAW, ng_str_of("raw"), ng_str_of("x"));
        break;
    case 2:
        nb_move_cell(edit, nb, 0, 1);
        break;
    case 3:
        nb_clear_outputs(edit, nb, 0);
        break;
    default:
        nb_delete_cells(edit, nb, gone);
        break;
    }
}

/* NULL data: it said that it failed. */
static struct nb_text edited(int kind)
{
    struct nb nb;
    struct nb_error error;
    struct nb_edit edit = {0};
    struct nb_text out = {0};
    if (nb_index(ng_str_of(file), &nb, &error) != NB_FINE) {
        assert_int_equal(error.fault, NB_NO_MEMORY);
        return out;
    }
    make_edits(&edit, &nb, kind);
    nb_apply(&out, nb.bytes, &edit);
    if (out.failed) {
        nb_text_done(&out);
    }
    nb_edit_done(&edit);
    nb_done(&nb);
    return out;
}

static void test_edits(void **state)
{
    once = *state != NULL;
    for (int kind = 0; kind < 5; kind++) {
        left = -1;
        struct nb_text want = edited(kind);
        assert_non_null(want.data);
        bool failed = true;
        for (long allowed = 1; allowed < ALLOCATIONS; allowed++) {
            left = CAN_FAIL ? allowed : -1;
            struct nb_text got = edited(kind);
            failed = got.data == NULL;
            left = -1;
            if (!failed) {
                assert_int_equal(got.len, want.len);
                assert_memory_equal(got.data, want.data, want.len);
            }
            nb_text_done(&got);
        }
        assert_false(failed);
        nb_text_done(&want);
    }
}

static void test_shown(void **state)
{
    once = *state != NULL;
    static const char outputs[] =
        "[{\"output_type\":\"stream\",\"name\":\"stderr\",\"text\":[\"10%\\r50%\\n\",\"x\"]},"
        "{\"output_type\":\"error\",\"ename\":\"E\",\"evalue\":\"v\",\"traceback\":[\"t\"]},"
        "{\"output_type\":\"display_data\",\"data\":{\"image/png\":\"aGFsbG8=\"}},"
        "{\"output_type\":\"display_data\",\"data\":{\"application/json\":{}}}]";
    struct nb_span whole = {0, sizeof(outputs) - 1};
    struct rendered *rendered = calloc(1, sizeof(*rendered));
    assert_non_null(rendered);
    bool failed = true;
    for (long allowed = 1; allowed < ALLOCATIONS; allowed++) {
        left = CAN_FAIL ? allowed : -1;
        render_outputs(rendered, ng_str_of(outputs), whole, false);
        left = -1;
        failed = rendered->failed;
        if (!failed) {
            nb_add(&rendered->text, "", 1);
            assert_string_equal(rendered->text.data,
                                "[stderr] 50%\nx\n\nE: v\nt\n\n[application/json] {}");
            assert_int_equal(rendered->image_count, 1);
            assert_memory_equal(rendered->images[0].bytes.data, "hallo", 5);
        }
        render_done(rendered);
    }
    assert_false(failed);
    free(rendered);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_edits),
        cmocka_unit_test(test_shown),
        cmocka_unit_test_prestate(test_edits, &once),
        cmocka_unit_test_prestate(test_shown, &once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
