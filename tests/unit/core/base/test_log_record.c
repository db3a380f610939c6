/* SPDX-License-Identifier: MIT */
/* test_log_record.c - structured lines are whole JSON whatever is in them, and the queue writes
 * them all, or counts those it dropped. */
#include "test_log_rig.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/arena.h"
#include "core/base/log_queue.h"
#include "core/base/log_record.h"
#include "core/base/str.h"
#include "core/json/json.h"

#define THREADS 4
#define LINES 2000
#define LONG_TEXT 4000

/* The members of the one line that was written. */
static const struct ng_value *parse(struct arena *arena, const char *line)
{
    const struct ng_value *value = NULL;
    struct json_error error;
    struct ng_str text = ng_str_of(line);
    assert_true(text.len > 0 && text.data[text.len - 1] == '\n');
    assert_null(memchr(text.data, '\n', text.len - 1));
    assert_int_equal(json_parse(arena, text, 100, &value, &error), NG_OK);
    return value;
}

static void assert_member(const struct ng_value *value, const char *name, const char *text)
{
    const struct ng_value *member = json_get(value, name);
    assert_non_null(member);
    assert_int_equal(member->text.len, strlen(text));
    assert_memory_equal(member->text.data, text, member->text.len);
}

static void test_json(void **state)
{
    (void)state;
    struct log_record record;
    struct catcher catcher;
    struct arena arena;
    arena_init(&arena, 0);
    log_set_format(LOG_JSON);
    catch_begin(&catcher);
    log_record_begin(&record, LOG_AUDIT);
    log_record_text(&record, "agent", ng_str_of("a \"b\" \\ \n\x01 \xc3\xbc"));
    log_record_text(&record, "absent", str_make(NULL, 0));
    log_record_text(&record, "bad", ng_str_of("x\xff"));
    log_record_int(&record, "status", -7);
    log_record_ms(&record, "duration_ms", 1234567);
    log_record_list(&record, "changes");
    log_record_change(&record, ng_str_of("notebooks"), ng_str_of("a/\"b\""), 3);
    log_record_change(&record, ng_str_of("files"), ng_str_of("c"), UINT64_MAX);
    log_record_list_end(&record);
    log_record_text(&record, "last", ng_str_of("end"));
    log_record_end(&record, "%s", "did it");
    char *text = caught(&catcher);
    const struct ng_value *line = parse(&arena, text);
    assert_member(line, "where", "audit");
    assert_member(line, "message", "did it");
    assert_member(line, "agent", "a \"b\" \\ \n\x01 \xc3\xbc");
    assert_member(line, "bad", "x?");
    assert_member(line, "last", "end");
    assert_null(json_get(line, "absent"));
    assert_null(json_get(line, "cut"));
    assert_non_null(strstr(text, "\"status\":-7,\"duration_ms\":1.234,"));
    const struct ng_value *first = json_get(line, "changes")->first;
    assert_member(first, "id", "a/\"b\"");
    assert_non_null(strstr(text, "18446744073709551615"));
    free(text);
    arena_done(&arena);
}

static void test_text(void **state)
{
    (void)state;
    struct log_record record;
    struct catcher catcher;
    log_set_format(LOG_TEXT);
    catch_begin(&catcher);
    log_record_begin(&record, LOG_ACCESS);
    log_record_text(&record, "path", ng_str_of("/a"));
    log_record_text(&record, "name", ng_str_of("two words\n"));
    log_record_text(&record, "empty", ng_str_of(""));
    log_record_list(&record, "changes");
    log_record_change(&record, ng_str_of("files"), ng_str_of("c"), 2);
    log_record_change(&record, ng_str_of("files"), ng_str_of("d"), 9);
    log_record_list_end(&record);
    log_record_end(&record, "GET /a 200");
    char *text = caught(&catcher);
    assert_non_null(strstr(text, " info access: GET /a 200 path=/a name=\"two words\\u000a\" "
                                 "empty=\"\" changes=files:c@2,files:d@9\n"));
    free(text);
}

/* Text from outside cannot look like a member or control a terminal. */
static void test_forged(void **state)
{
    static const struct {
        const char *value, *shown;
    } cases[] = {
        {"x@1 agent=root", "\"x@1 agent=root\""},
        {"x@1,files:b", "\"x@1,files:b\""},
        {"a\" b=\"c", "\"a\\\" b=\\\"c\""},
        {"\xc2\x80|\xc2\x9b"
         "31m|\xc2\x9f|\xc2\xa0",
         "\"\\u0080|\\u009b31m|\\u009f|\xc2\xa0\""},
        {"\xe2\x80\xa8|\xe2\x80\xa9|\xe2\x80\xae|\xe2\x80\xaf",
         "\"\\u2028|\\u2029|\\u202e|\xe2\x80\xaf\""},
        {"\xd8\x9c|\xe2\x80\x8e|\xe2\x80\x8f|\xe2\x81\xa6|\xe2\x81\xa9",
         "\"\\u061c|\\u200e|\\u200f|\\u2066|\\u2069\""},
        {"\xf0\x9f\x98\x80", "\"\xf0\x9f\x98\x80\""},
        {"\xc2\x9b\xff", "\"???\""},
        {"\x1b[2J", "\"\\u001b[2J\""},
        {"plain/path.txt@2", "plain/path.txt@2"},
    };
    (void)state;
    log_set_format(LOG_TEXT);
    for (size_t i = 0; i < NG_COUNT(cases); i++) {
        struct log_record record;
        struct catcher catcher;
        char shown[64];
        char wanted[256];
        bool is_item = strchr(cases[i].value, ',') == NULL;
        catch_begin(&catcher);
        log_record_shown(shown, sizeof(shown), ng_str_of(cases[i].value));
        log_record_begin(&record, LOG_AUDIT);
        log_record_text(&record, "name", ng_str_of(cases[i].value));
        log_record_list(&record, "changes");
        log_record_change(&record, ng_str_of("files"), ng_str_of(cases[i].value), 2);
        log_record_change(&record, ng_str_of("files"), ng_str_of("d"), 9);
        log_record_list_end(&record);
        log_record_end(&record, "did %s", shown);
        char *text = caught(&catcher);
        (void)snprintf(wanted, sizeof(wanted),
                       " audit: did %s name=%s changes=files:%s@2,files:d@9\n",
                       is_item ? cases[i].shown : cases[i].value,
                       is_item ? cases[i].shown : cases[i].value, cases[i].shown);
        if (strstr(text, wanted) == NULL) {
            fail_msg("%s\nis not in\n%s", wanted, text);
        }
        free(text);
    }
    /* The sentence of any line as well. */
    struct catcher catcher;
    catch_begin(&catcher);
    log_write(NG_LOG_INFO, "x", "a \xc2\x9b \xe2\x80\xae b");
    char *text = caught(&catcher);
    assert_non_null(strstr(text, "x: a \\u009b \\u202e b\n"));
    free(text);
    /* A member that does not fit is left out completely: no quote stays open. */
    char small[4];
    log_record_shown(small, sizeof(small), ng_str_of("a b"));
    assert_string_equal(small, "...");
}

/* However much is put in, in whatever form: the line stays whole and says that it was cut. */
static void test_too_much(void **state)
{
    (void)state;
    struct arena arena;
    char *longest = malloc(LONG_TEXT + 1);
    assert_non_null(longest);
    memset(longest, '\x02', LONG_TEXT);
    longest[LONG_TEXT] = '\0';
    arena_init(&arena, 0);
    log_set_format(LOG_JSON);
    for (int list = 0; list < 2; list++) {
        struct log_record record;
        struct catcher catcher;
        catch_begin(&catcher);
        log_record_begin(&record, LOG_AUDIT);
        log_record_text(&record, "first", ng_str_of("kept"));
        if (list != 0) {
            log_record_list(&record, "changes");
        }
        for (int i = 0; i < 200; i++) {
            if (list != 0) {
                log_record_change(&record, ng_str_of("notebooks"), ng_str_of(longest), 1);
            } else {
                log_record_text(&record, "more", ng_str_of(longest));
            }
        }
        if (list != 0) {
            log_record_list_end(&record);
            log_record_list(&record, "again");
            log_record_change(&record, ng_str_of("notebooks"), ng_str_of(longest), 1);
            log_record_list_end(&record);
        }
        log_record_end(&record, "%s", longest);
        char *text = caught(&catcher);
        assert_non_null(strstr(text, "\"cut\":true}\n"));
        assert_non_null(strstr(text, "\"first\":\"kept\""));
        if (list != 0) { /* one name per line: the parser refuses doubled members */
            assert_member(parse(&arena, text), "first", "kept");
        }
        free(text);
    }
    arena_done(&arena);
    free(longest);
}

static void *write_lines(void *user)
{
    const int *number = user;
    for (int i = 0; i < LINES; i++) {
        log_write(NG_LOG_INFO, "test", "thread %d line %d.", *number, i);
    }
    return NULL;
}

static size_t count(const char *text, const char *part)
{
    size_t found = 0;
    for (const char *at = text; (at = strstr(at, part)) != NULL; at++) {
        found++;
    }
    return found;
}

static void test_queue_writes_everything_in_order(void **state)
{
    (void)state;
    struct catcher catcher;
    pthread_t threads[THREADS];
    int numbers[THREADS];
    uint64_t before = log_queue_dropped();
    log_set_format(LOG_TEXT);
    catch_begin(&catcher);
    assert_int_equal(log_queue_start(), NG_OK);
    assert_int_not_equal(log_queue_start(), NG_OK);
    for (int i = 0; i < THREADS; i++) {
        numbers[i] = i;
        assert_int_equal(pthread_create(&threads[i], NULL, write_lines, &numbers[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        (void)pthread_join(threads[i], NULL);
    }
    log_queue_flush(10000);
    log_queue_stop();
    log_queue_stop();
    log_write(NG_LOG_INFO, "test", "by itself again");
    char *text = caught(&catcher);
    assert_int_equal(count(text, "\n") - 1 + (log_queue_dropped() - before), THREADS * LINES);
    assert_non_null(strstr(text, "by itself again\n"));
    for (int i = 0; i < THREADS; i++) {
        char part[64];
        const char *at = text;
        long last = -1;
        (void)snprintf(part, sizeof(part), "thread %d line ", i);
        while ((at = strstr(at, part)) != NULL) {
            at += strlen(part);
            long number = strtol(at, NULL, 10);
            assert_true(number > last);
            last = number;
        }
    }
    free(text);
}

/* A pipe without a reader: logging continues, the rest is counted; then it is read after all.
 */
static void test_queue_with_a_full_pipe(void **state)
{
    (void)state;
    int ends[2];
    char part[4096];
    int saved = dup(STDERR_FILENO);
    uint64_t before = log_queue_dropped();
    assert_int_equal(pipe(ends), 0);
    assert_true(dup2(ends[1], STDERR_FILENO) >= 0);
    (void)close(ends[1]);
    assert_int_equal(log_queue_start(), NG_OK);
    size_t sent = 0;
    while (log_queue_dropped() == before) {
        log_kind_write(LOG_ACCESS, "test", ng_str_of("values"), false);
        sent++;
    }
    /* The access log is full, what else is told is not. */
    before++;
    log_write(NG_LOG_ERROR, "test", "an error");
    log_kind_write(LOG_AUDIT, "test", ng_str_of("values"), false);
    sent += 2;
    assert_int_equal(log_queue_dropped(), before);
    before--;
    while (log_queue_dropped() == before + 1) {
        log_write(NG_LOG_INFO, "test", "%0900d.", (int)sent++);
    }
    assert_true(sent > LOG_QUEUE_BYTES / 1024);
    size_t lines = 0;
    assert_int_equal(fcntl(ends[0], F_SETFL, O_NONBLOCK), 0);
    while (lines < sent - (log_queue_dropped() - before)) {
        ssize_t got = read(ends[0], part, sizeof(part));
        for (ssize_t i = 0; i < got; i++) {
            lines += part[i] == '\n';
        }
    }
    log_queue_stop();
    /* A reader that is gone for good costs the lines, not the process. */
    assert_int_equal(log_queue_start(), NG_OK);
    (void)close(ends[0]);
    before = log_queue_dropped();
    log_write(NG_LOG_INFO, "test", "nobody is there");
    log_queue_flush(10000);
    assert_int_equal(log_queue_dropped() - before, 1);
    log_queue_stop();
    assert_true(dup2(saved, STDERR_FILENO) >= 0);
    (void)close(saved);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_json),
        cmocka_unit_test(test_text),
        cmocka_unit_test(test_forged),
        cmocka_unit_test(test_too_much),
        cmocka_unit_test(test_queue_writes_everything_in_order),
        cmocka_unit_test(test_queue_with_a_full_pipe),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
