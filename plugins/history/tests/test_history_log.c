/* SPDX-License-Identifier: MIT */
/* test_history_log.c - history_log: rows, summaries, filters, pages, rights. The test moves the
 * clock. */
#include "test_history_rig.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "test_clock.h"

static const struct put n; /* the document "n" */

/* ---- rows ---- */

static void test_rows(void **state)
{
    (void)state;
    expect("history_log", "{}", "{\"unfinished\":[],\"changes\":[],\"has_more\":false}");
    put(&(struct put){.text = "one\ntwo\n", .run = "run-1"});
    put(&(struct put){.text = "one\n2\n", .agent = "bob", .tool = "notebook"});
    put(&(struct put){.deletes = true, .action = "removed"});
    expect("history_log", "{\"space\":\"shared\"}",
           args("{'unfinished':[],'changes':["
                "{%s,'action':'removed','space':'shared','collection':'notebooks','id':'n',"
                "'revision':3,'summary':'removed 3 lines','kept':true,'added':0,'removed':3},"
                "{%s,'action':'updated','space':'shared','collection':'notebooks','id':'n',"
                "'revision':2,'summary':'2','kept':true,'added':1,'removed':1},"
                "{%s,'action':'created','space':'shared','collection':'notebooks','id':'n',"
                "'revision':1,'summary':'one','kept':true,'added':3,'removed':0}],"
                "'has_more':false}",
                made(&n, 3), made(&n, 2), made(&n, 1)));
}

/* Of a call: with its request, and its key for admins. */
static void test_origins(void **state)
{
    static const struct ng_str team[] = {{"team", 4}};
    static const char *const create = "{\"mode\":\"create\",\"name\":\"n\",\"newStr\":\"one\"}";
    struct key keys[3];
    (void)state;
    struct call *call = call_with_key(&keys[0], NG_ROLE_WRITER, team, 1);
    call->caller.request_id = ng_str_of("request-1");
    call_set_run(call, ng_str_of("run-1"));
    struct answer answer = harness_run(call, "notebook", create);
    assert_int_equal(answer.rc, NG_OK);
    answer_free(&answer);
    answer = go("history_log", "{\"space\":\"team\"}");
    assert_string_equal(at(answer.text, "changes.0.agent"), "ada");
    assert_string_equal(at(answer.text, "changes.0.run"), "run-1");
    assert_string_equal(at(answer.text, "changes.0.tool"), "notebook");
    assert_string_equal(at(answer.text, "changes.0.request_id"), "request-1");
    assert_string_equal(at(answer.text, "changes.0.key"), "abcdefghijkl");
    answer_free(&answer);
    answer = harness_run(call_with_key(&keys[1], NG_ROLE_WRITER, team, 1), "history_log", "{}");
    assert_string_equal(at(answer.text, "changes.0.request_id"), "request-1");
    assert_string_equal(at(answer.text, "changes.0.key"), "none");
    answer_free(&answer);
}

static void test_event_data(void **state)
{
    (void)state;
    put(&(struct put){.event = "{\"undo\":\"undo-000000000001\",\"revision\":\"abc\"}"});
    put(&(struct put){.collection = "agent_memory", .event = "{\"summary\":\"\\n kept \"}"});
    put(&(struct put){.collection = "agent_memory", .event = "{\"title\":\"T\"}"});
    put(&(struct put){.collection = "agent_memory", .event = "{\"summary\":7}"});
    struct answer answer = go("history_log", "{\"space\":\"shared\"}");
    assert_string_equal(at(answer.text, "changes.3.undo"), "undo-000000000001");
    assert_string_equal(at(answer.text, "changes.3.hash"), "abc");
    assert_string_equal(at(answer.text, "changes.2.undo"), "none");
    assert_string_equal(at(answer.text, "changes.2.summary"), "kept");
    assert_string_equal(at(answer.text, "changes.2.kept"), "false"); /* no history */
    assert_string_equal(at(answer.text, "changes.1.summary"), "T");
    assert_string_equal(at(answer.text, "changes.0.summary"), "7");
    answer_free(&answer);
}

/* ---- summaries ---- */

static void expect_summary(const char *before, const char *after, const char *summary)
{
    put_text(before);
    put_text(after);
    struct answer answer = go("history_log", "{\"limit\":1,\"space\":\"shared\"}");
    assert_string_equal(at(answer.text, "changes.0.summary"), summary);
    answer_free(&answer);
}

static void test_summaries(void **state)
{
    char line[600];
    char shown[600];
    (void)state;
    expect_summary("", "one", "one");
    expect_summary("one\n", "one\n\n  two\r\nthree\n", "two");
    expect_summary("one two", "one three", "one three"); /* the whole line */
    expect_summary("one\n", "one\n", "");
    expect_summary("one\n", "one\n\n\n", ""); /* blank lines only */
    expect_summary("one\ntwo\n", "one\n", "removed 1 line");
    expect_summary("one\ntwo\nthree\n", "one\n", "removed 2 lines");
    expect_summary("one\ntwo\nthree\n", "", "removed 4 lines");
    expect_summary("a\nb\nc\n", "a\nx\nc\n", "x");
    expect_summary("\xc3\xbc", "\xc3\xa4", "\xc3\xa4"); /* the same first byte */
    expect_summary("aXbc\n", "abc\n", "abc");
    expect_summary("one\nlong two\n", "one\ntwo\n", "two");
    expect_summary("one", "one\ntwo", "two"); /* not the line before */
    expect_summary("one", "one\n\ntwo", "two");
    expect_summary("two", "one\ntwo", "one");
    expect_summary("two", "\none\ntwo", "one");
    expect_summary("one\ntwo\nthree", "one\nthree", "removed 1 line");
    expect_summary("one\ntwo", "one", "removed 1 line");
    expect_summary("one\ntwo\n", "one\n\n", ""); /* as many as before */
    expect_summary("one", "one\n", "");
    expect_summary("one\ntwo\n", "one\none\ntwo\n", "one");
    for (size_t i = 0; i < 300; i += 2) {
        memcpy(line + i, "\xc3\xbc", 3);
    }
    memcpy(shown, line, 200);
    shown[200] = '\0';
    expect_summary("", line, shown); /* 100 characters */
}

#define PIECES_MAX 32
#define PIECE_SIZE 64

/* The lines of a text. */
struct pieces {
    char items[PIECES_MAX][PIECE_SIZE];
    size_t count;
};

static void split(const char *text, struct pieces *ret)
{
    ret->count = 0;
    while (*text != '\0' || (ret->count > 0 && text[-1] == '\n')) {
        size_t len = strcspn(text, "\n");
        assert_true(ret->count < PIECES_MAX && len < PIECE_SIZE);
        (void)snprintf(ret->items[ret->count++], PIECE_SIZE, "%.*s", (int)len, text);
        text += len;
        if (*text == '\0') {
            break;
        }
        text++;
    }
}

/* The first line that is not blank between the lines that both begin and end with, without its
 * CR. */
static const char *first_put_in(const struct pieces *old, struct pieces *new)
{
    size_t least = old->count < new->count ? old->count : new->count;
    size_t same = 0;
    size_t end = 0;
    while (same < least && strcmp(old->items[same], new->items[same]) == 0) {
        same++;
    }
    while (end < least - same &&
           strcmp(old->items[old->count - 1 - end], new->items[new->count - 1 - end]) == 0) {
        end++;
    }
    for (; same < new->count - end; same++) {
        char *line = new->items[same];
        size_t len = strlen(line);
        line[len - (len > 0 && line[len - 1] == '\r')] = '\0';
        if (*line != '\0') {
            return line;
        }
    }
    return NULL;
}

static void test_random_summaries(void **state)
{
    static struct pieces old, new;
    char before[2048];
    char after[2048] = "";
    unsigned seed = rig_seed();
    (void)state;
    put_text("");
    for (int i = 0; i < 500; i++) {
        (void)snprintf(before, sizeof(before), "%s", after);
        rig_text(&seed, 6, after, sizeof(after));
        put_text(after);
        split(before, &old);
        split(after, &new);
        const char *want = first_put_in(&old, &new);
        struct answer answer = go("history_log", "{\"limit\":1,\"space\":\"shared\"}");
        const char *found = at(answer.text, "changes.0.summary");
        if (want != NULL) {
            assert_string_equal(found, want);
        } else {
            assert_true(*found == '\0' || strncmp(found, "removed ", 8) == 0);
        }
        answer_free(&answer);
    }
}

static void test_not_kept(void **state)
{
    (void)state;
    test_clock_begin_day();
    put_text("one\n");
    put_text("one\ntwo\n");
    put_text("one\ntwo\nthree\n");
    test_clock_pass(3 * TEST_CLOCK_DAY_MS);
    put_text("last\n");
    thin();
    struct answer answer = go("history_log", "{\"space\":\"shared\"}");
    assert_string_equal(at(answer.text, "changes.0.summary"), "last");
    assert_string_equal(at(answer.text, "changes.1.kept"), "true");
    assert_string_equal(at(answer.text, "changes.1.summary"), ""); /* to what is not known */
    assert_string_equal(at(answer.text, "changes.1.added"), "1");
    assert_string_equal(at(answer.text, "changes.2.kept"), "false");
    assert_string_equal(at(answer.text, "changes.2.summary"), "");
    assert_string_equal(at(answer.text, "changes.2.added"), "1");
    assert_string_equal(at(answer.text, "changes.2.agent"), "ada"); /* stays for good */
    assert_string_equal(at(answer.text, "changes.3.kept"), "true");
    answer_free(&answer);
    test_clock_reset();
}

/* ---- filters ---- */

/* The ids of all pages, joined by blanks; how many pages. */
static int ids_of(const char *more, char *out, size_t size)
{
    char cursor[64] = "";
    size_t len = 0;
    int pages = 0;
    out[0] = '\0';
    for (bool on = true; on; pages++) {
        struct answer answer = go("history_log", args("{'limit':200%s%s}", more, cursor));
        for (int i = 0; strcmp(at(answer.text, args("changes.%d", i)), "none") != 0; i++) {
            len += (size_t)snprintf(out + len, size - len, "%s%s", len > 0 ? " " : "",
                                    at(answer.text, args("changes.%d.id", i)));
            assert_true(len < size);
        }
        on = strcmp(at(answer.text, "has_more"), "true") == 0;
        assert_true(on == (strcmp(at(answer.text, "cursor"), "none") != 0));
        (void)snprintf(cursor, sizeof(cursor), ",\"cursor\":\"%s\"", at(answer.text, "cursor"));
        answer_free(&answer);
    }
    return pages;
}

static void expect_ids(const char *more, const char *ids)
{
    char found[1024];
    assert_int_equal(ids_of(more, found, sizeof(found)), 1);
    assert_string_equal(found, ids);
}

static void test_filters(void **state)
{
    (void)state;
    put(&(struct put){.id = "a/1", .agent = "ada", .run = "run-1"});
    put(&(struct put){.id = "a/2", .agent = "bob", .run = "run-2", .tool = "sync"});
    put(&(struct put){.id = "b*", .agent = "eve", .collection = "pages"});
    put(&(struct put){.id = "b*c", .agent = "bob", .action = "moved"});
    put(&(struct put){.id = "d\\", .space = "team"});
    static const char *const rows[][2] = {
        {",'agent':'bob'", "b*c a/2"},
        {",'agent':['bob','eve']", "b*c b* a/2"},
        {",'agent':[]", "b*c b* a/2 a/1"},
        {",'agent':''", ""},
        {",'run':'run-1'", "a/1"},
        {",'run':''", "b*c b*"},
        {",'run':['run-2','run-1']", "a/2 a/1"},
        {",'tool':'sync'", "a/2"},
        {",'action':'moved'", "b*c"},
        {",'action':['moved','created']", "b*c b* a/2 a/1"},
        {",'collection':'pages'", "b*"},
        {",'collection':['pages','unheard_of']", "b*"},
        {",'space':'team'", "d\\"},
        {",'space':'unheard_of'", ""},
        {",'id':'a/1'", "a/1"},
        {",'id':'a/'", ""},
        {",'id':'a/*'", "a/2 a/1"},
        {",'id':'*'", "b*c b* a/2 a/1"},
        {",'id':'b\\\\*'", "b*"},
        {",'id':'b**'", "b*c b*"},
        {",'id':'b*'", "b*c b*"},
        {",'id':''", ""},
        {",'agent':'bob','id':'a*','tool':'sync'", "a/2"},
        {",'agent':'bob','tool':'import','run':'run-2'", ""},
    };
    for (size_t i = 0; i < NG_COUNT(rows); i++) {
        expect_ids(rows[i][0], rows[i][1]);
    }
    struct answer answer = harness_call_as(&harness, NULL, "team", "history_log", "{}");
    assert_string_equal(at(answer.text, "changes.0.id"), "d\\"); /* the space of the call */
    assert_string_equal(at(answer.text, "changes.1"), "none");
    answer_free(&answer);
}

static void test_points(void **state)
{
    const struct put second = {.id = "b"};
    (void)state;
    put(&(struct put){.id = "a"});
    test_clock_pass(TEST_CLOCK_HOUR_MS);
    put(&(struct put){.id = "b"});
    test_clock_pass(TEST_CLOCK_HOUR_MS);
    put(&(struct put){.id = "c"});
    unsigned long long seq = seq_of(&second, 1);
    expect_ids(args(",'space':'shared','since':'#%llu'", seq), "c");   /* after it */
    expect_ids(args(",'space':'shared','until':'#%llu'", seq), "b a"); /* up to it */
    expect_ids(args(",'space':'shared','since':'#%llu','until':'#%llu'", seq - 1, seq), "b");
    expect_ids(args(",'space':'shared','since':'#%llu','until':'#%llu'", seq, seq - 1), "");
    expect_ids(args(",'space':'shared','since':'%s'", time_of(&second, 1)), "c");
    expect_ids(args(",'space':'shared','until':'%s'", time_of(&second, 1)), "b a");
    expect_ids(",'space':'shared','since':'90min'", "c b");
    expect_ids(",'space':'shared','until':'90min'", "a");
    expect_ids(",'space':'shared','since':'now'", "");
    expect_ids(",'space':'shared','until':'1970-01-01'", "");
    static const char *const names[] = {"since", "until"};
    static const char *const points[] = {"7", "", "x"};
    for (size_t i = 0; i < NG_COUNT(names) * NG_COUNT(points); i++) {
        const char *name = names[i % 2];
        const char *point = points[i / 2];
        expect_failure("history_log", args("{'%s':'%s'}", name, point), "INVALID_INPUT", 400,
                       args("`%s` is \"%s\", it must be #SEQ (the number of a change), a time "
                            "such as 2026-01-28T14:30:00Z, a day such as 2026-01-28, an age "
                            "such as 30m, 2h or 7d, or now",
                            name, point),
                       NULL);
    }
    test_clock_reset();
}

/* ---- pages ---- */

static void test_pages(void **state)
{
    (void)state;
    for (int i = 0; i < 45; i++) {
        put_text(args("%d", i));
    }
    char cursor[64] = "";
    int rows = 45;
    for (int page = 0; page < 3; page++) { /* of 20, the default */
        struct answer answer = go("history_log", args("{'space':'shared'%s}", cursor));
        int i = 0;
        for (; strcmp(at(answer.text, args("changes.%d", i)), "none") != 0; i++) {
            assert_int_equal(int_at(answer.text, args("changes.%d.revision", i)), rows--);
        }
        assert_int_equal(i, page < 2 ? 20 : 5);
        assert_string_equal(at(answer.text, "has_more"), page < 2 ? "true" : "false");
        (void)snprintf(cursor, sizeof(cursor), ",'cursor':'%s'", at(answer.text, "cursor"));
        answer_free(&answer);
    }
    static const char *const cursors[] = {"", "x", "0", "-1", "1.5", "99999999999999999999"};
    for (size_t i = 0; i < NG_COUNT(cursors); i++) {
        expect_failure("history_log", args("{'cursor':'%s'}", cursors[i]), "INVALID_INPUT", 400,
                       "`cursor` is not of an answer; leave it out to start again", NULL);
    }
    static const char *const limits[] = {"0", "201", "-1", "1.5"};
    for (size_t i = 0; i < NG_COUNT(limits); i++) {
        struct answer answer =
            harness_call(&harness, "history_log", args("{'limit':%s}", limits[i]));
        assert_string_equal(answer.code, "INVALID_INPUT");
        answer_free(&answer);
    }
}

/* Answers that are full before the limit is: each change once. */
static void test_pages_of_small_answers(void **state)
{
    static char found[1 << 16];
    static char want[1 << 16];
    char id[400];
    size_t len = 0;
    (void)state;
    memset(id, '"', sizeof(id));
    for (int i = 0; i < 60; i++) {
        (void)snprintf(id + i * 5, sizeof(id) - (size_t)i * 5, "%d", i);
        put(&(struct put){.id = id, .text = id, .run = "run-1"});
        memmove(want + strlen(id) + (i > 0), want, len);
        memcpy(want, id, strlen(id));
        want[strlen(id)] = i > 0 ? ' ' : '\0';
        len += strlen(id) + (i > 0);
        want[len] = '\0';
        id[strlen(id)] = '"';
    }
    assert_true(ids_of("", found, sizeof(found)) > 5);
    assert_string_equal(found, want);
}

static void test_an_id_that_is_too_long(void **state)
{
    static char id[5000];
    (void)state;
    memset(id, 'x', sizeof(id) - 1);
    put(&(struct put){.id = "a"});
    put(&(struct put){.id = id});
    put(&(struct put){.id = "y"});
    const struct put long_one = {.id = id};
    unsigned long long seq = seq_of(&long_one, 1);
    struct answer answer = go("history_log", "{\"space\":\"shared\"}");
    assert_string_equal(at(answer.text, "changes.0.id"), "y");
    assert_string_equal(at(answer.text, "changes.1"), "none");
    assert_int_equal(int_at(answer.text, "cursor"), seq);
    answer_free(&answer);
    expect_failure("history_log", args("{'space':'shared','cursor':'%llu'}", seq), "TOO_LARGE",
                   413,
                   args("change #%llu alone is longer than an answer (tools.max_answer); go on "
                        "with `until` '#%llu'",
                        seq, seq - 1),
                   NULL);
    expect_ids(args(",'space':'shared','until':'#%llu'", seq - 1), "a");
}

/* ---- rights ---- */

static void test_rights(void **state)
{
    static const struct ng_str team[] = {{"team", 4}};
    static const struct ng_str notebook[] = {{"notebook", 8}, {"history_log", 11}};
    struct key keys[3];
    (void)state;
    put(&(struct put){.id = "a", .space = "team"});
    put(&(struct put){.id = "b", .space = "team", .collection = "pages"});
    put(&(struct put){.id = "c"});
    struct answer answer =
        harness_run(call_with_key(&keys[0], NG_ROLE_READER, team, 1), "history_log", "{}");
    assert_string_equal(at(answer.text, "changes.0.id"), "b");
    assert_string_equal(at(answer.text, "changes.1.id"), "a");
    assert_string_equal(at(answer.text, "changes.2"), "none");
    answer_free(&answer);
    answer = harness_run(call_with_key(&keys[1], NG_ROLE_READER, team, 1), "history_log",
                         "{\"space\":\"shared\"}");
    assert_string_equal(answer.code, "FORBIDDEN");
    assert_int_equal(answer.status, 403);
    assert_string_equal(answer.message,
                        "the caller's key does not allow the space \"shared\"; it allows team");
    answer_free(&answer);
    struct call *call = call_with_key(&keys[2], NG_ROLE_READER, team, 1);
    keys[2].tools = notebook;
    keys[2].tool_count = NG_COUNT(notebook);
    answer = harness_run(call, "history_log", "{}");
    assert_string_equal(at(answer.text, "changes.0.id"), "a");
    assert_string_equal(at(answer.text, "changes.1"), "none");
    answer_free(&answer);
}

/* Of each run the changes in the range, with their times also in another space; and the undos
 * that were cut off. */
static void test_runs(void **state)
{
    struct put one = {.space = "team"};
    (void)state;
    put(&(struct put){.collection = "history_undos",
                      .id = "undo-aaaaaaaaaaaa",
                      .json = "{\"agent\":\"ada\"}"});
    for (int i = 0; i < 6; i++) {
        one.run = i % 2 == 0 ? "a" : "b";
        one.agent = i < 3 ? "ada" : "bob";
        put(&one);
    }
    struct answer answer =
        go("history_log",
           args("{'by':'run','space':'team','since':'#%llu','until':'#%llu'}",
                (unsigned long long)seq_of(&one, 2), (unsigned long long)seq_of(&one, 5)));
    assert_string_equal(at(answer.text, "unfinished.0"), "undo-aaaaaaaaaaaa");
    assert_string_equal(at(answer.text, "runs.0.run"), "a");
    assert_string_not_equal(at(answer.text, "runs.0.agents.1"), "none");
    assert_string_equal(at(answer.text, "runs.0.agents.2"), "none");
    assert_int_equal(int_at(answer.text, "runs.0.changes"), 2);
    assert_int_equal(int_at(answer.text, "runs.0.first_seq"), seq_of(&one, 3));
    assert_int_equal(int_at(answer.text, "runs.0.last_seq"), seq_of(&one, 5));
    assert_string_equal(at(answer.text, "runs.0.from"), time_of(&one, 3));
    assert_string_equal(at(answer.text, "runs.0.to"), time_of(&one, 5));
    assert_string_equal(at(answer.text, "runs.1.run"), "b");
    assert_int_equal(int_at(answer.text, "runs.1.changes"), 1);
    assert_string_equal(at(answer.text, "runs.1.from"), time_of(&one, 4));
    assert_string_equal(at(answer.text, "runs.2"), "none");
    answer_free(&answer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH(test_rows),
        WITH(test_origins),
        WITH_SQLITE(test_event_data),
        WITH(test_summaries),
        WITH(test_random_summaries),
        WITH_SQLITE(test_not_kept),
        WITH(test_filters),
        WITH(test_points),
        WITH(test_pages),
        WITH_SMALL(test_pages_of_small_answers),
        WITH_SMALL(test_an_id_that_is_too_long),
        WITH(test_rights),
        WITH(test_runs),
        WITH_SQLITE(test_runs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
