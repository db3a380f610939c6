/* SPDX-License-Identifier: MIT */
/* test_opennotes_answer.c - answers keep within their budget, and paging visits every item
 * once, whatever its size. */
#include "harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "answer/answer.h"
#include "core/call/call.h"

#define ITEMS 40

static struct harness harness;

static int setup(void **state)
{
    (void)state;
    harness_open(&harness, (const char *const[]){"plugins=opennotes", NULL});
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    harness_close(&harness);
    return 0;
}

/* Sizes of the text of item i: small ones, and some over the budget. */
static size_t size_of(size_t i)
{
    return i % 7 == 3 ? 5000 : i % 5 == 0 ? 900 : i * 10;
}

/* One page from `offset`; the JSON as it is before it is replied, and where the next begins. */
static struct buf page(size_t offset, const struct notes_budget *budget, char fill,
                       struct notes_answer *answer)
{
    struct call *call = harness_new_call(&harness);
    notes_answer_begin(answer, &call->pub, budget, 10, (int64_t)offset);
    notes_json_name_c(&answer->json, "head");
    notes_json_text(&answer->json, ng_str_of("x"));
    notes_answer_list(answer, "items");
    for (size_t i = offset; i < ITEMS && notes_answer_more(answer); i++) {
        char text[8192];
        memset(text, fill, sizeof(text));
        struct buf *item = notes_answer_item(answer);
        notes_json_begin(item, '{');
        notes_json_name_c(item, "id");
        notes_json_int(item, (int64_t)i);
        notes_json_name_c(item, "text");
        notes_json_text(item, str_make(text, size_of(i)));
        notes_json_end(item, '}');
        (void)notes_answer_add(answer);
    }
    notes_answer_list_end(answer);
    struct buf json;
    buf_init(&json, 1 << 20);
    buf_add_str(&json, notes_buf_str(&answer->json));
    assert_int_equal(notes_answer_end(answer, ITEMS), NG_OK);
    call_unref(call);
    return json;
}

static void visits_all(const struct notes_budget *budget, char fill)
{
    size_t offset = 0;
    size_t pages = 0;
    bool cut = false;
    while (offset < ITEMS) {
        struct notes_answer answer;
        struct buf json = page(offset, budget, fill, &answer);
        /* Room for the pagination was kept. */
        assert_true(json.len + 200 <= budget->max_bytes * NOTES_ANSWER_PERCENT / 100);
        assert_true(answer.returned >= 1 && answer.returned <= 10);
        size_t lines = 0;
        struct ng_str text = notes_buf_str(&json);
        for (size_t at = str_find(text, ng_str_of("\\n"), 0); at != SIZE_MAX;
             at = str_find(text, ng_str_of("\\n"), at + 2)) {
            lines++;
        }
        assert_true(lines <= budget->max_lines * NOTES_ANSWER_PERCENT / 100);
        cut = cut || str_find(text, ng_str_of("\"truncated\":true"), 0) != SIZE_MAX;
        for (size_t i = offset; i < offset + (size_t)answer.returned; i++) {
            char id[32];
            (void)snprintf(id, sizeof(id), "{\"id\":%zu,", i);
            assert_true(str_find(text, ng_str_of(id), 0) != SIZE_MAX);
        }
        offset += (size_t)answer.returned;
        pages++;
        buf_done(&json);
    }
    assert_int_equal(offset, ITEMS);
    assert_true(cut);
    assert_true(pages >= 4);
}

static void paging(void **state)
{
    const struct notes_budget bytes = {4096, 100000};
    const struct notes_budget lines = {1 << 20, 40};
    (void)state;
    visits_all(&bytes, 'a');
    visits_all(&bytes, '\n');
    visits_all(&bytes, '"');
    visits_all(&lines, '\n');
}

static void cutting(void **state)
{
    (void)state;
    struct ng_str text = ng_str_of("a\xc3\xa9\n\"\x01z");
    assert_int_equal(notes_json_cut(text, 1000, 10).len, text.len);
    assert_int_equal(notes_json_cut(text, 4, 10).len, 1); /* never half a character */
    assert_int_equal(notes_json_cut(text, 5, 10).len, 3);
    assert_int_equal(notes_json_cut(text, 1000, 0).len, 3);
    assert_int_equal(notes_json_cut(text, 0, 10).len, 0);
}

/* Many members, deep lists, long names: still one item, and valid. */
static void odd_items(void **state)
{
    static const char *const items[] = {"list", "names", "deep"};
    const struct notes_budget budget = {2048, 100};
    (void)state;
    for (size_t kind = 0; kind < NG_COUNT(items); kind++) {
        struct notes_answer answer;
        struct call *call = harness_new_call(&harness);
        notes_answer_begin(&answer, &call->pub, &budget, 5, 0);
        notes_answer_list(&answer, "items");
        struct buf *item = notes_answer_item(&answer);
        notes_json_begin(item, '{');
        for (int i = 0; i < 3000; i++) {
            char name[32];
            (void)snprintf(name, sizeof(name), "member %d", i);
            if (kind == 1) {
                notes_json_name_c(item, name);
                notes_json_int(item, i);
            } else if (i == 0) {
                notes_json_name_c(item, items[kind]);
                notes_json_begin(item, '[');
            }
            if (kind == 0) {
                notes_json_text(item, ng_str_of(name));
            } else if (kind == 2 && i < 20) {
                notes_json_begin(item, '[');
                notes_json_text(item,
                                ng_str_of("0123456789012345678901234567890123456789012345678"
                                          "0123456789012345678901234567890123456789012345678"));
            }
        }
        for (int i = 0; kind == 2 && i < 20; i++) {
            notes_json_end(item, ']');
        }
        if (kind != 1) {
            notes_json_end(item, ']');
        }
        notes_json_end(item, '}');
        assert_true(notes_answer_add(&answer));
        notes_answer_list_end(&answer);
        assert_true(answer.json.len <= 1536);
        assert_true(str_find(notes_buf_str(&answer.json), ng_str_of("\"truncated\":true"), 0) !=
                    SIZE_MAX);
        assert_int_equal(notes_answer_end(&answer, 1), NG_OK);
        call_unref(call);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(paging),
        cmocka_unit_test(cutting),
        cmocka_unit_test(odd_items),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
