/* SPDX-License-Identifier: MIT */
/* test_run_id.c - the run of a call: what counts of what was received, and its form. */
#include "core/dispatch/run_id.h"
#include "harness.h"

#include <stdio.h>

#include "core/base/str.h"
#include "core/base/utf8.h"
#include "core/call/key.h"

#define TRACE "0af7651916cd43dd8448eb211c80319c"
#define TRACEPARENT "00-" TRACE "-b7ad6b7169203331-01"
#define TEN "0123456789"
#define SIXTY_FOUR TEN TEN TEN TEN TEN TEN "0123"

static void test_what_counts(void **state)
{
    static const struct {
        const char *meta, *named, *traceparent, *session, *run;
    } cases[] = {
        {NULL, NULL, NULL, NULL, ""},
        {NULL, NULL, NULL, "", ""},
        {"meta", "named", TRACEPARENT, "mcp-1", "meta"},
        {"meta", NULL, NULL, NULL, "meta"},
        {NULL, "named", TRACEPARENT, "mcp-1", "named"},
        {NULL, "named", NULL, NULL, "named"},
        {NULL, NULL, TRACEPARENT, "mcp-1", TRACE},
        {NULL, NULL, TRACEPARENT "-more", NULL, TRACE},
        {NULL, NULL, NULL, "mcp-1", "mcp-1"},
    };
    (void)state;
    for (size_t i = 0; i < NG_COUNT(cases); i++) {
        const struct run_given given = {
            .meta = ng_str_of(cases[i].meta),
            .named = ng_str_of(cases[i].named),
            .traceparent = ng_str_of(cases[i].traceparent),
            .session = ng_str_of(cases[i].session),
        };
        struct ng_str run = run_id_choose(&given);
        if (!str_is(run, cases[i].run) || (run.len == 0 && run.data != NULL)) {
            fail_msg("case %zu: \"%.*s\"", i, (int)run.len, run.data);
        }
    }
}

static void test_the_form(void **state)
{
    static const char *const good[] = {"a",      "A-z_0.9:x", "undo",    SIXTY_FOUR, TRACE,
                                       "Undo-1", "redo-1",    "-undo-1", ":",        "mcp-1"};
    static const struct {
        const char *run, *says;
    } bad[] = {
        {"", "X is \"\"; it must have 1 to 64 of the characters A-Z a-z 0-9 . _ : -"},
        {"a b", "X is \"a b\"; it must have"},
        {"a/b", "X is \"a/b\"; it must have"},
        {"a@b", "X is \"a@b\"; it must have"},
        {"\xc3\xa4", "X is \"\xc3\xa4\"; it must have"},
        {SIXTY_FOUR "4", "X is \"" SIXTY_FOUR "4\"; it must have"},
        {SIXTY_FOUR SIXTY_FOUR, "X is \"" SIXTY_FOUR TEN "012345\"; it must have"},
        {"undo-", "X is \"undo-\"; runs that begin with undo- are made by an undo alone: give "
                  "another one, or none"},
        {"undo-0123456789ab", "X is \"undo-0123456789ab\"; runs that begin with undo-"},
    };
    char text[RUN_ID_TEXT_MAX];
    (void)state;
    for (size_t i = 0; i < NG_COUNT(good); i++) {
        assert_int_equal(run_id_check("X", ng_str_of(good[i]), text), NG_OK);
    }
    for (size_t i = 0; i < NG_COUNT(bad); i++) {
        assert_int_equal(run_id_check("X", ng_str_of(bad[i].run), text), NG_EINVAL);
        if (!str_starts(ng_str_of(text), ng_str_of(bad[i].says))) {
            fail_msg("%s", text);
        }
    }
    assert_int_equal(run_id_check("X", str_make("a\0b", 3), text), NG_EINVAL);
}

static void test_labels(void **state)
{
    char text[RUN_ID_TEXT_MAX];
    char label[RUN_ID_SESSION_SIZE];
    char other[RUN_ID_SESSION_SIZE];
    (void)state;
    run_id_of_session(ng_str_of("abc"), label); /* FIPS 180-2, appendix B.1 */
    assert_string_equal(label, "mcp-ba7816bf8f01cfea");
    assert_int_equal(run_id_check("X", ng_str_of(label), text), NG_OK);
    run_id_make(label);
    run_id_make(other);
    assert_int_equal(strlen(label), RUN_ID_SESSION_SIZE - 1);
    assert_true(str_begins(ng_str_of(label), "mcp-"));
    assert_string_not_equal(label, other);
}

/* A call has it in memory of its own, and so has one that takes it over. */
static void test_of_a_call(void **state)
{
    char given[CALL_RUN_MAX + 1] = SIXTY_FOUR;
    struct call *call = call_new(NULL);
    struct call *next = call_new(NULL);
    (void)state;
    if (call == NULL || next == NULL) {
        fail_msg("out of memory");
        return;
    }
    assert_null(call->caller.run_id.data);
    call_set_run(call, ng_str_of(given));
    memset(given, 'x', sizeof(given) - 1);
    assert_true(str_is(call->caller.run_id, SIXTY_FOUR));
    call_take_origin(next, call);
    call_set_run(call, STR_NONE);
    assert_null(call->caller.run_id.data);
    call_unref(call);
    char taken[CALL_RUN_MAX + 1];
    utf8_copy(taken, sizeof(taken), next->caller.run_id);
    assert_string_equal(taken, SIXTY_FOUR);
    assert_true(NG_HAS(&next->caller, client));
    call_unref(next);
}

/* A module reads the id of the key, which the call keeps. */
static void test_the_key(void **state)
{
    struct call *call = call_new(NULL);
    struct key key;
    (void)state;
    memset(&key, 0, sizeof(key));
    atomic_init(&key.refs, 1);
    lock_init(&key.lock, LOCK_KEY);
    (void)snprintf(key.id, sizeof(key.id), "abcdefghijkl");
    assert_non_null(call);
    assert_null(call->caller.key_id.data);
    call_take_key(call, &key);
    assert_true(str_is(call->pub.caller->key_id, "abcdefghijkl"));
    call_take_key(call, NULL);
    assert_null(call->caller.key_id.data);
    call_unref(call);
    lock_done(&key.lock);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_counts), cmocka_unit_test(test_the_form),
        cmocka_unit_test(test_labels),      cmocka_unit_test(test_of_a_call),
        cmocka_unit_test(test_the_key),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
