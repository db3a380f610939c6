/* SPDX-License-Identifier: MIT */
/* test_history_blame.c - history_blame: the revision of each line, compared with an oracle on
 * random histories; parts; refusals. */
#include "test_history_rig.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/buf.h"
#include "test_clock.h"

#define HISTORIES 200
#define REVISIONS_MAX 25
#define LINES_MAX 128
#define ANSWER_MAX ((size_t)1 << 20)

static const struct put n; /* the document "n" */

/* ---- the oracle ---- */

/* No two lines of a document are equal, and none moves: so a line is that of the revision
 * before exactly if it was there. Line 0 is the empty one behind a last line feed. */
struct text {
    unsigned lines[LINES_MAX];
    uint64_t revisions[LINES_MAX];
    size_t count;
    bool is_deleted;
};

struct history {
    char id[16];
    struct text texts[REVISIONS_MAX + 1]; /* [0]: before the first */
    uint64_t count;
    unsigned line; /* the last new one */
    unsigned *seed;
};

static void line_add(struct text *text, unsigned line, uint64_t revision)
{
    assert_true(text->count < LINES_MAX);
    text->lines[text->count] = line;
    text->revisions[text->count++] = revision;
}

/* The revision of a line in the text; 0: it is not there. */
static uint64_t line_revision(const struct text *text, unsigned line)
{
    for (size_t i = 0; i < text->count; i++) {
        if (text->lines[i] == line) {
            return text->revisions[i];
        }
    }
    return 0;
}

/* Lines of `from` stay, go, or get new ones before them. */
static void text_edit(struct history *history, const struct text *from, struct text *to)
{
    unsigned goes = rig_below(history->seed, 4);
    unsigned comes = rig_below(history->seed, 4);
    for (size_t i = 0; i <= from->count; i++) {
        for (unsigned more = rig_below(history->seed, 3);
             more > 0 && rig_below(history->seed, 8) < comes && to->count < LINES_MAX / 2;
             more--) {
            line_add(to, ++history->line, 0);
        }
        if (i < from->count && from->lines[i] != 0 && rig_below(history->seed, 12) >= goes) {
            line_add(to, from->lines[i], 0);
        }
    }
    if (to->count > 0 && rig_below(history->seed, 3) > 0) {
        line_add(to, 0, 0);
    }
}

static void text_print(const struct text *text, size_t from, size_t to, struct buf *out)
{
    for (size_t i = from; i < to; i++) {
        unsigned line = text->lines[i];
        if (line != 0) {
            (void)buf_printf(out, "line %u%s", line, line % 5 == 0 ? "\r" : "");
        }
        buf_add_c(out, i + 1 < to ? "\n" : "");
    }
}

/* The next revision: an edit, an earlier text again, or a deletion. */
static void history_step(struct history *history)
{
    const struct text *present = &history->texts[history->count];
    struct text *next = &history->texts[++history->count];
    unsigned how = rig_below(history->seed, 10);
    next->count = 0;
    next->is_deleted = how == 0 && history->count > 1 && !present->is_deleted;
    if (how == 1) {
        const struct text *old =
            &history->texts[rig_below(history->seed, (unsigned)history->count)];
        for (size_t i = 0; i < old->count; i++) {
            line_add(next, old->lines[i], 0);
        }
    } else if (!next->is_deleted) {
        text_edit(history, present, next);
    }
    for (size_t i = 0; i < next->count; i++) {
        uint64_t was = line_revision(present, next->lines[i]);
        next->revisions[i] = was != 0 ? was : history->count;
    }
    static const char *const agents[] = {"ada", "bob"};
    static const char *const runs[] = {NULL, "run-1", "run-2"};
    struct buf text;
    buf_init(&text, ANSWER_MAX);
    text_print(next, 0, next->count, &text);
    put(&(struct put){.id = history->id,
                      .bytes = str_make(buf_cstr(&text), text.len),
                      .deletes = next->is_deleted,
                      .agent = agents[rig_below(history->seed, 2)],
                      .run = runs[rig_below(history->seed, 3)]});
    buf_done(&text);
}

static size_t run_end(const struct text *text, size_t from, size_t to)
{
    size_t end = from + 1;
    while (end < to && text->revisions[end] == text->revisions[from]) {
        end++;
    }
    return end;
}

static void print_row(const struct history *history, const struct text *text, size_t from,
                      size_t to, struct buf *out)
{
    struct buf lines;
    buf_init(&lines, ANSWER_MAX);
    text_print(text, from, to, &lines);
    (void)buf_printf(out, "{\"first\":%zu,\"last\":%zu,\"text\":", from + 1, to);
    buf_add_json(out, str_make(buf_cstr(&lines), lines.len));
    (void)buf_printf(out, ",\"revision\":%" PRIu64 ",%s}", text->revisions[from],
                     made(&(struct put){.id = history->id}, text->revisions[from]));
    buf_done(&lines);
}

/* The lines from `start` (0: the first), `most` of them, as they were at a revision. */
static void expect_blame(const struct history *history, uint64_t revision, size_t start,
                         size_t most)
{
    const struct text *text = &history->texts[revision];
    size_t end = text->count - start < most ? text->count : start + most;
    struct buf want;
    buf_init(&want, ANSWER_MAX);
    (void)buf_printf(&want,
                     "{\"collection\":\"notebooks\",\"id\":\"%s\","
                     "\"revision\":%" PRIu64 ",\"total_lines\":%zu,\"exact\":true,\"lines\":[",
                     history->id, revision, text->count);
    for (size_t from = start; from < end;) {
        size_t to = run_end(text, from, end);
        buf_add_c(&want, from > start ? "," : "");
        print_row(history, text, from, to, &want);
        from = to;
    }
    buf_add_c(&want, "]");
    if (end < text->count) {
        (void)buf_printf(&want, ",\"next_line\":%zu", end + 1);
    }
    buf_add_c(&want, ",\"space\":\"shared\"}");
    expect("history_blame",
           args("{'id':'%s','space':'shared','at':'%" PRIu64 "','start_line':%zu,"
                "'max_lines':%zu}",
                history->id, revision, start + 1, most),
           buf_cstr(&want));
    buf_done(&want);
}

static void test_random_histories(void **state)
{
    unsigned seed = rig_seed();
    (void)state;
    for (int i = 0; i < HISTORIES; i++) {
        static struct history history;
        memset(&history, 0, sizeof(history));
        history.seed = &seed;
        (void)snprintf(history.id, sizeof(history.id), "h%d", i);
        unsigned steps = 1 + rig_below(&seed, REVISIONS_MAX);
        for (unsigned step = 0; step < steps; step++) {
            history_step(&history);
        }
        for (int tries = 0; tries < 6; tries++) {
            uint64_t revision = history.count - (tries > 2 ? rig_below(&seed, steps) : 0);
            const struct text *text = &history.texts[revision];
            if (!text->is_deleted) {
                size_t start =
                    text->count > 0 && tries > 0 ? rig_below(&seed, (unsigned)text->count) : 0;
                expect_blame(&history, revision, start,
                             tries > 0 ? 1 + rig_below(&seed, 20) : LINES_MAX);
            }
        }
    }
}

/* ---- by hand ---- */

static void test_defaults(void **state)
{
    struct buf text;
    (void)state;
    buf_init(&text, ANSWER_MAX);
    for (int i = 1; i <= 300; i++) {
        (void)buf_printf(&text, "%d\n", i);
    }
    put_text(buf_cstr(&text));
    struct answer answer = go("history_blame", "{\"id\":\"n\",\"space\":\"shared\"}");
    assert_string_equal(at(answer.text, "lines.0.last"), "200");
    assert_string_equal(at(answer.text, "lines.1"), "none");
    assert_string_equal(at(answer.text, "total_lines"), "301");
    assert_string_equal(at(answer.text, "next_line"), "201");
    answer_free(&answer);
    buf_done(&text);
    put_text("");
    expect("history_blame", "{\"id\":\"n\",\"space\":\"shared\"}",
           "{\"collection\":\"notebooks\",\"id\":\"n\",\"revision\":2,"
           "\"total_lines\":0,\"exact\":true,\"lines\":[],\"space\":\"shared\"}");
    expect_failure("history_blame", "{\"id\":\"n\",\"space\":\"shared\",\"start_line\":2}",
                   "INVALID_INPUT", 400,
                   "there is no line 2 (`start_line`): the text has 0 lines", NULL);
    put_text("one\n");
    expect_failure("history_blame", "{\"id\":\"n\",\"space\":\"shared\",\"start_line\":3}",
                   "INVALID_INPUT", 400,
                   "there is no line 3 (`start_line`): the text has 2 lines", NULL);
}

/* A line whose revision is thinned out is the next one's. */
static void test_thinned(void **state)
{
    (void)state;
    test_clock_begin_day();
    put_text("one");
    put_text("one\ntwo");
    put_text("one\ntwo\nthree");
    test_clock_pass(3 * TEST_CLOCK_DAY_MS);
    put_text("one\ntwo\nthree\nfour");
    expect("history_blame",
           "{\"id\":\"n\",\"space\":\"shared\",\"start_line\":2,"
           "\"max_lines\":1}",
           args("{'collection':'notebooks','id':'n','revision':4,"
                "'total_lines':4,'exact':true,'lines':[{'first':2,'last':2,'text':'two',"
                "'revision':2,%s}],'next_line':3,'space':'shared'}",
                made(&n, 2)));
    thin();
    expect("history_blame", "{\"id\":\"n\",\"space\":\"shared\"}",
           args("{'collection':'notebooks','id':'n','revision':4,"
                "'total_lines':4,'exact':false,'lines':["
                "{'first':1,'last':1,'text':'one','revision':1,%s},"
                "{'first':2,'last':3,'text':'two\\nthree','revision':3,%s},"
                "{'first':4,'last':4,'text':'four','revision':4,%s}],'space':'shared'}",
                made(&n, 1), made(&n, 3), made(&n, 4)));
    test_clock_reset();
}

/* ---- small answers ---- */

/* The rows of all parts put together are the text; how many parts. */
static int expect_whole(const char *text)
{
    int64_t line = 1;
    size_t len = 0;
    int parts = 0;
    while (line > 0) {
        struct answer answer =
            go("history_blame", args("{'id':'n','space':'shared','start_line':%lld,"
                                     "'max_lines':100000}",
                                     (long long)line));
        for (int i = 0; strcmp(at(answer.text, args("lines.%d", i)), "none") != 0; i++) {
            const char *part = at(answer.text, args("lines.%d.text", i));
            assert_int_equal(int_at(answer.text, args("lines.%d.first", i)), line);
            assert_true(len == 0 || text[len++] == '\n');
            assert_memory_equal(part, text + len, strlen(part));
            len += strlen(part);
            line = int_at(answer.text, args("lines.%d.last", i)) + 1;
        }
        bool on = strcmp(at(answer.text, "next_line"), "none") != 0;
        assert_true(!on || int_at(answer.text, "next_line") == line);
        line = on ? line : 0;
        parts++;
        answer_free(&answer);
    }
    assert_int_equal(len, strlen(text));
    return parts;
}

static void test_parts_of_one_revision(void **state)
{
    static const char *const lines[] = {"line\n", "\n", "\n\n\x01\x01\x01\n", "\"quoted\"\n",
                                        "\xf0\x9f\x98\x80\n"};
    static char text[20000];
    (void)state;
    for (size_t i = 0; i < NG_COUNT(lines); i++) {
        size_t len = 0;
        while (len + 16 < sizeof(text)) {
            len += (size_t)snprintf(text + len, sizeof(text) - len, "%s", lines[i]);
        }
        put(&(struct put){.deletes = i > 0});
        put_text(text);
        assert_true(expect_whole(text) > 4);
    }
}

/* Each line of its own revision, with the longest names. */
static void test_parts_of_many_revisions(void **state)
{
    static char name[65];
    char text[2000] = "";
    (void)state;
    memset(name, 'n', sizeof(name) - 1);
    for (int i = 0; i < 60; i++) {
        (void)snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%*d",
                       i > 0 ? "\n" : "", 1 + i % 23, i);
        put(&(struct put){.text = text, .agent = name, .run = name, .tool = name + 2});
    }
    assert_true(expect_whole(text) > 4);
}

static void test_lines_that_are_too_long(void **state)
{
    static char text[3 * SMALL_ANSWER];
    static const char *const arguments = "{\"id\":\"n\",\"space\":\"shared\"}";
    (void)state;
    memset(text, 'x', sizeof(text) - 1);
    put_text(text);
    expect_failure("history_blame", arguments, "TOO_LARGE", 413,
                   "line 1 alone is longer than an answer (tools.max_answer)", NULL);
    for (int feeds = 1; feeds < 4; feeds++) {
        text[feeds - 1] = '\n';
        put(&(struct put){.deletes = true});
        put_text(text); /* empty lines, then the long one */
        struct answer answer = go("history_blame", arguments);
        assert_int_equal(int_at(answer.text, "lines.0.last"), feeds);
        assert_string_equal(at(answer.text, "lines.1"), "none");
        assert_int_equal(int_at(answer.text, "next_line"), feeds + 1);
        answer_free(&answer);
        expect_failure(
            "history_blame", args("{'id':'n','space':'shared','start_line':%d}", feeds + 1),
            "TOO_LARGE", 413,
            args("line %d alone is longer than an answer (tools.max_answer)", feeds + 1), NULL);
    }
}

/* Around the longest line that fits an answer, with the longest names. */
static void test_lines_that_just_fit(void **state)
{
    static char text[SMALL_ANSWER];
    static char name[65];
    int fitted = 0;
    (void)state;
    memset(name, 'n', sizeof(name) - 1);
    memset(text, 'x', sizeof(text));
    for (size_t len = SMALL_ANSWER - 1200; len < SMALL_ANSWER; len += 3) {
        put(&(struct put){
            .bytes = str_make(text, len), .agent = name, .run = name, .tool = name + 2});
        struct answer answer =
            harness_call(&harness, "history_blame", "{\"id\":\"n\",\"space\":\"shared\"}");
        fitted += answer.rc == NG_OK;
        assert_string_equal(answer.message,
                            answer.rc == NG_OK
                                ? ""
                                : "line 1 alone is longer than an answer (tools.max_answer)");
        answer_free(&answer);
    }
    assert_true(fitted > 50 && fitted < 350);
}

/* ---- large texts ---- */

static void test_large_texts(void **state)
{
    size_t most = (size_t)4 * 1024 * 1024;
    char *text = malloc(most + 2);
    (void)state;
    assert_non_null(text);
    memset(text, 'x', most + 1);
    for (size_t i = 1000; i < most; i += 1000) {
        text[i] = '\n';
    }
    put(&(struct put){.bytes = str_make(text, most)});
    struct answer answer =
        go("history_blame", "{\"id\":\"n\",\"space\":\"shared\",\"max_lines\":1}");
    assert_string_equal(at(answer.text, "total_lines"), "4195");
    answer_free(&answer);
    put(&(struct put){.bytes = str_make(text, most + 1)});
    expect_failure("history_blame", "{\"id\":\"n\",\"space\":\"shared\"}", "TOO_LARGE", 413,
                   "the text has 4194305 bytes, more than 4194304 are not traced", NULL);
    put_text("xyz");
    expect_failure("history_blame", "{\"id\":\"n\",\"space\":\"shared\"}", "TOO_LARGE", 413,
                   "an earlier text has more than 4194304 bytes", NULL);
    free(text);
}

static void test_not_utf8(void **state)
{
    (void)state;
    put_text("one\n\xff\n");
    expect_failure("history_blame", "{\"id\":\"n\",\"space\":\"shared\"}", "INVALID_INPUT", 400,
                   "the content is not UTF-8, so it has no lines", NULL);
    put_text("one\n"); /* what was no text is an empty one */
    struct answer answer = go("history_blame", "{\"id\":\"n\",\"space\":\"shared\"}");
    assert_string_equal(at(answer.text, "lines.0.revision"), "2");
    answer_free(&answer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH(test_random_histories),
        WITH(test_defaults),
        WITH_SQLITE(test_thinned),
        WITH_SMALL(test_parts_of_one_revision),
        WITH_SMALL(test_parts_of_many_revisions),
        WITH_SMALL(test_lines_that_are_too_long),
        WITH_SMALL(test_lines_that_just_fit),
        WITH(test_large_texts),
        WITH(test_not_utf8),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
