/* SPDX-License-Identifier: MIT */
/* test_arena.c - arenas: alignment, limits, reset; and the allocation hook. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "core/base/arena.h"
#include "core/base/str.h"

static void test_alignment_and_growth(void **state)
{
    (void)state;
    struct arena arena;
    arena_init(&arena, 0);
    unsigned char *before = NULL;
    for (size_t bytes = 0; bytes < 5000; bytes += 7) {
        unsigned char *memory = arena_alloc(&arena, bytes);
        assert_non_null(memory);
        assert_int_equal(0, (uintptr_t)memory % _Alignof(max_align_t));
        assert_ptr_not_equal(before, memory);
        memset(memory, 0xab, bytes);
        before = memory;
    }
    unsigned char *large = arena_zalloc(&arena, (size_t)3 * 1024 * 1024);
    assert_non_null(large);
    for (size_t i = 0; i < (size_t)3 * 1024 * 1024; i += 997) {
        assert_int_equal(0, large[i]);
    }
    assert_null(arena_alloc(&arena, SIZE_MAX));
    assert_null(arena_alloc(&arena, SIZE_MAX - 8));
    arena_done(&arena);
    assert_int_equal(0, arena.used);
    assert_non_null(arena_alloc(&arena, 1)); /* it can be used again */
    arena_done(&arena);
    arena_done(&arena);
}

static void test_limit(void **state)
{
    (void)state;
    struct arena arena;
    arena_init(&arena, 100);
    assert_non_null(arena_alloc(&arena, 64));
    assert_null(arena_alloc(&arena, 64));
    assert_non_null(arena_alloc(&arena, 32)); /* a smaller block still fits */
    assert_null(arena_alloc(&arena, 1));
    arena_reset(&arena);
    assert_non_null(arena_alloc(&arena, 96));
    assert_null(arena_alloc(&arena, SIZE_MAX / 2));
    arena_done(&arena);
}

static void test_reset(void **state)
{
    (void)state;
    struct arena arena;
    arena_init(&arena, 0);
    void *first = arena_alloc(&arena, 100);
    for (int i = 0; i < 100; i++) {
        assert_non_null(arena_alloc(&arena, 1000));
    }
    arena_reset(&arena);
    assert_int_equal(0, arena.used);
    alloc_fail_after(0); /* the block that was kept is enough */
    void *again = arena_alloc(&arena, 100);
    alloc_fail_after(-1);
    assert_ptr_equal(first, again);
    arena_done(&arena);
    arena_reset(&arena); /* an empty one too */
    assert_null(arena.blocks);
}

static void test_texts(void **state)
{
    (void)state;
    struct arena arena;
    arena_init(&arena, 0);
    struct ng_str copy = arena_copy(&arena, str_make("a\0b", 3));
    assert_int_equal(3, copy.len);
    assert_memory_equal("a\0b\0", copy.data, 4);
    assert_true(arena_copy(&arena, str_make(NULL, 0)).data == NULL);
    struct ng_str empty = arena_copy(&arena, str_make("x", 0));
    assert_non_null(empty.data);
    assert_int_equal(0, empty.len);
    struct ng_str text = arena_printf(&arena, "%s-%d", "n", 42);
    assert_true(str_is(text, "n-42"));
    assert_int_equal('\0', text.data[text.len]);
    arena_done(&arena);

    arena_init(&arena, 16);
    assert_null(arena_printf(&arena, "%040d", 1).data);
    assert_null(arena_copy(&arena, ng_str_of("longer than sixteen bytes")).data);
    arena_done(&arena);
}

static void test_hook(void **state)
{
    (void)state;
    struct arena arena;
    alloc_fail_after(1);
    void *first = alloc_bytes(8);
    void *second = alloc_zeroed(2, 8);
    void *third = alloc_resize(NULL, 8);
    alloc_fail_after(-1);
    assert_non_null(first);
    assert_null(second);
    assert_non_null(third); /* only once */
    free(first);
    free(third);

    arena_init(&arena, 0);
    alloc_fail_after(0);
    assert_null(arena_alloc(&arena, 8));
    alloc_fail_after(-1);
    assert_non_null(arena_alloc(&arena, 8));
    arena_done(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_alignment_and_growth),
        cmocka_unit_test(test_limit),
        cmocka_unit_test(test_reset),
        cmocka_unit_test(test_texts),
        cmocka_unit_test(test_hook),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
