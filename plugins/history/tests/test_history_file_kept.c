/* SPDX-License-Identifier: MIT */
/* test_history_file_kept.c - which versions of files are kept, and what is told where one is
 * not. The tests move the clock. */
#include "test_history_rig.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "core/base/text/rfc3339.h"
#include "core/call/gateway.h"
#include "core/store/store.h"
#include "notegate/files.h"
#include "test_clock.h"

#define MINUTE_MS (INT64_C(60) * 1000)

/* ---- files ---- */

static void run_as(const char *agent, const char *run, const char *arguments)
{
    struct call *call = call_new(harness.gateway);
    assert_non_null(call);
    assert_int_equal(call_set_caller(call, ng_str_of(agent), ng_str_of(NULL), NG_ROLE_ADMIN,
                                     NG_MODE_AGENT, true),
                     NG_OK);
    call_set_run(call, ng_str_of(run));
    struct answer answer = harness_run(call, "fileEditor", arguments);
    if (answer.rc != NG_OK) {
        fail_msg("%s: %s", arguments, answer.message);
    }
    answer_free(&answer);
}

static void create(const char *name, const char *text)
{
    run_as("ada", NULL,
           args("{'command':'create','path':'%s/%s','file_text':'%s'}", root, name, text));
}

static void insert(const char *agent, const char *run, const char *name, const char *text)
{
    run_as(agent, run,
           args("{'command':'insert','path':'%s/%s','insert_line':0,'new_str':'%s'}", root,
                name, text));
}

/* A minute later. */
static void insert_next(const char *name, const char *text)
{
    test_clock_pass(MINUTE_MS);
    insert("ada", NULL, name, text);
}

/* Another program saves the file. */
static void save(const char *name, const char *text, int64_t modified_ms)
{
    char path[2 * ROOT_SIZE];
    const struct timespec time = {.tv_sec = modified_ms / 1000};
    const struct timespec times[2] = {time, time};
    (void)snprintf(path, sizeof(path), "%s/%s", root, name);
    FILE *file = fopen(path, "we");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
}

/* ---- answers ---- */

/* history_read: the content, or the code of the failure and its details. */
static const char *read_at(const char *name, const char *point)
{
    struct answer answer = harness_call(&harness, "history_read",
                                        args("{'path':'%s/%s','at':'%s'}", root, name, point));
    const char *text = answer.rc == NG_OK ? at(answer.text, "content")
                                          : args("%s %s", answer.code,
                                                 answer.details != NULL ? answer.details : "");
    answer_free(&answer);
    return text;
}

static const char *read_at_ms(const char *name, int64_t time_ms)
{
    char time[RFC3339_SIZE];
    rfc3339_write(time_ms, RFC3339_MS, time);
    return read_at(name, time);
}

/* The number of the newest change of the file. */
static int64_t newest_seq(const char *name)
{
    struct answer answer = go("history_log", args("{'path':'%s/%s'}", root, name));
    int64_t seq = int_at(answer.text, "changes.0.seq");
    answer_free(&answer);
    return seq;
}

/* ---- as-of reads ---- */

#define NOT_KEPT "NOT_KEPT {\"before\":1,\"after\":4}"

static void test_thinned(void **state)
{
    int64_t seqs[6] = {0};
    int64_t times[6] = {0};
    (void)state;
    test_clock_begin_day();
    create("f", "1");
    for (int number = 1; number <= 5; number++) {
        test_clock_pass(number == 5 ? 3 * TEST_CLOCK_DAY_MS : 0);
        if (number > 1) {
            create("beside", "x");
            run_as("ada", NULL, args("{'command':'delete','path':'%s/beside'}", root));
            insert_next("f", args("%d", number));
        }
        seqs[number] = newest_seq("f");
        times[number] = store_change_ms(harness.gateway->store);
    }
    thin();
    for (int number = 2; number <= 3; number++) {
        assert_string_equal(read_at("f", args("%d", number)), NOT_KEPT);
        assert_string_equal(read_at("f", args("#%" PRId64, seqs[number])), NOT_KEPT);
        assert_string_equal(read_at("f", args("#%" PRId64, seqs[number] + 3)), NOT_KEPT);
        assert_string_equal(read_at_ms("f", times[number] + 1), NOT_KEPT);
        assert_string_equal(read_at_ms("f", times[number] + MINUTE_MS / 2), NOT_KEPT);
    }
    assert_string_equal(read_at("f", args("#%" PRId64, seqs[1])), "1");
    assert_string_equal(read_at("f", args("#%" PRId64, seqs[1] + 3)), "1");
    assert_string_equal(read_at_ms("f", times[1] + MINUTE_MS / 2), "1");
    assert_string_equal(read_at("f", args("#%" PRId64, seqs[4])), "4\n3\n2\n1");
    assert_string_equal(read_at_ms("f", times[4] + MINUTE_MS), "4\n3\n2\n1");
    assert_string_equal(read_at_ms("f", times[5] + MINUTE_MS), "5\n4\n3\n2\n1");
    test_clock_reset();
}

/* A content that another program saved has no change of its own: it may have been there from
 * the version before on. */
static void test_thinned_and_found(void **state)
{
    (void)state;
    test_clock_begin_day();
    create("f", "1");
    int64_t start = store_change_ms(harness.gateway->store);
    test_clock_pass(MINUTE_MS);
    save("f", "2", start + MINUTE_MS);
    insert_next("f", "3");
    insert_next("f", "4");
    assert_string_equal(read_at_ms("f", start + MINUTE_MS * 3 / 2), "2");
    test_clock_pass(3 * TEST_CLOCK_DAY_MS);
    insert_next("f", "5");
    thin();
    assert_string_equal(read_at_ms("f", start + MINUTE_MS / 2), NOT_KEPT);
    assert_string_equal(read_at_ms("f", start + MINUTE_MS * 3 / 2), NOT_KEPT);
    assert_string_equal(read_at_ms("f", start + MINUTE_MS * 5 / 2), NOT_KEPT);
    assert_string_equal(read_at_ms("f", start + MINUTE_MS * 7 / 2), "4\n3\n2");
    test_clock_reset();
}

/* ---- moves and copies */

static void run_on(const char *command, const char *name, const char *to)
{
    run_as("ada", NULL,
           args("{'command':'%s','path':'%s/%s','destination':'%s/%s'}", command, root, name,
                root, to));
}

static void remove_file(const char *name)
{
    char path[2 * ROOT_SIZE];
    (void)snprintf(path, sizeof(path), "%s/%s", root, name);
    assert_int_equal(unlink(path), 0);
}

/* The versions of a file that can be read, of `count`: "1,3". */
static const char *kept_of(const char *name, int count)
{
    static char text[64];
    size_t len = 0;
    for (int number = 1; number <= count; number++) {
        if (strncmp(read_at(name, args("%d", number)), "NOT_KEPT", strlen("NOT_KEPT")) != 0) {
            len += (size_t)snprintf(text + len, sizeof(text) - len, "%s%d", len > 0 ? "," : "",
                                    number);
        }
    }
    return text;
}

static void insert_more(const char *name, int times)
{
    for (int i = 0; i < times; i++) {
        insert_next(name, "more");
    }
}

/* Both the version that a copy or a move came from, and the one that came with it, stay. */
static void test_thinned_between_paths(void **state)
{
    (void)state;
    test_clock_begin_day();
    create("f", "1");
    insert_more("f", 2);
    create("copy", "former");
    remove_file("copy");
    run_on("copy", "f", "copy"); /* 3, from f@3; 2 is the removal */
    insert_more("f", 2);
    insert_more("copy", 3);
    create("moved", "former");
    remove_file("moved");
    run_on("move", "f", "moved"); /* 2, from f@5 */
    create("f", "again");
    insert_more("f", 2);
    insert_more("moved", 3);
    test_clock_pass(3 * TEST_CLOCK_DAY_MS);
    insert_more("f", 1);
    insert_more("copy", 1);
    insert_more("moved", 1);
    thin();
    assert_string_equal(kept_of("f", 10), "1,3,5,9,10");
    assert_string_equal(kept_of("copy", 7), "1,3,6,7");
    assert_string_equal(kept_of("moved", 6), "1,2,5,6");
    struct answer answer = go("history_log", args("{'path':'%s/moved','limit':200}", root));
    assert_non_null(strstr(answer.text, args("moved from %s/f", root)));
    answer_free(&answer);
    test_clock_reset();
}

/* ---- contents over the limit */

#define LIMIT 64
#define LONG "a content of more bytes than the limit that the test sets, from bob"

static void cut_f(void)
{
    run_as("ada", "cut",
           args("{'command':'str_replace','path':'%s/f','old_str':'%s','new_str':'bobs'}", root,
                LONG));
}

/* The run "cut" shortens a file that bob has made too large: bob's lines are not its own. */
static void test_after_a_gap(void **state)
{
    (void)state;
    atomic_store(&harness.gateway->limits.version, LIMIT);
    create("f", "one\\nend");
    int64_t made = newest_seq("f");
    insert("bob", "grow", "f", LONG);
    int64_t grown = newest_seq("f");
    assert_string_equal(read_at("f", "now"), "NOT_KEPT {\"before\":1}");
    assert_string_equal(read_at("f", args("#%" PRId64, made)), "one\nend");
    cut_f();
    assert_string_equal(read_at("f", "2"), "bobs\none\nend");
    assert_string_equal(read_at("f", "now"), "bobs\none\nend");
    assert_string_equal(read_at("f", args("#%" PRId64, grown)),
                        "NOT_KEPT {\"before\":1,\"after\":2}");
    struct answer answer = go("history_undo", "{\"run\":\"cut\"}");
    assert_string_equal(at(answer.text, "items.0.result"), "conflict");
    assert_string_equal(at(answer.text, "items.0.conflict.reason"), "not_kept");
    answer_free(&answer);
    answer = go("history_blame", args("{'path':'%s/f'}", root));
    assert_string_equal(at(answer.text, "exact"), "false");
    answer_free(&answer);
    answer = harness_call(&harness, "history_diff", args("{'path':'%s/f'}", root));
    assert_string_equal(answer.code, "NOT_KEPT");
    assert_string_equal(answer.details, "{\"before\":1,\"after\":2}");
    answer_free(&answer);
    answer = go("history_diff", args("{'path':'%s/f','from':'1'}", root));
    assert_string_equal(at(answer.text, "added"), "1");
    answer_free(&answer);
    answer = go("history_diff", "{\"run\":\"cut\"}");
    assert_string_equal(at(answer.text, "documents.0.kept"), "false");
    assert_string_equal(at(answer.text, "documents.0.diff"), "none");
    answer_free(&answer);
    insert("ada", "after", "f", "more");
    answer = go("history_blame", args("{'path':'%s/f'}", root));
    assert_string_equal(at(answer.text, "exact"), "false");
    answer_free(&answer);
    answer = go("history_undo", "{\"run\":\"after\",\"dry_run\":false}");
    assert_string_equal(at(answer.text, "items.0.result"), "undone");
    answer_free(&answer);
    run_as("ada", "last", args("{'command':'delete','path':'%s/f'}", root));
    answer = go("history_undo", "{\"run\":\"last\"}");
    assert_string_equal(at(answer.text, "items.0.result"), "undone");
    answer_free(&answer);
}

/* The first version, and a removal. */
static void test_at_the_ends_of_a_gap(void **state)
{
    (void)state;
    atomic_store(&harness.gateway->limits.version, LIMIT);
    save("f", LONG, clock_unix_ms());
    insert("bob", "grow", "f", "first");
    int64_t grown = newest_seq("f");
    cut_f();
    assert_string_equal(read_at("f", args("#%" PRId64, grown)), "NOT_KEPT {\"after\":1}");
    struct answer answer = go("history_undo", "{\"run\":\"cut\"}");
    assert_string_equal(at(answer.text, "items.0.conflict.reason"), "not_kept");
    answer_free(&answer);
    answer = harness_call(&harness, "history_diff", args("{'path':'%s/f'}", root));
    assert_string_equal(answer.code, "NOT_KEPT");
    assert_string_equal(answer.details, "{\"after\":1}");
    answer_free(&answer);
    insert("bob", "grow", "f", LONG);
    run_as("ada", "last", args("{'command':'delete','path':'%s/f'}", root));
    answer = go("history_undo", "{\"run\":\"last\"}");
    assert_string_equal(at(answer.text, "items.0.conflict.reason"), "not_kept");
    answer_free(&answer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_ROOTS(test_thinned),
        WITH_ROOTS(test_thinned_and_found),
        WITH_ROOTS(test_thinned_between_paths),
        WITH_ROOTS(test_after_a_gap),
        WITH_ROOTS(test_at_the_ends_of_a_gap),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
