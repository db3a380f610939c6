/* SPDX-License-Identifier: MIT */
/* test_log.c - lines of the log, caught in a file. */
#include "test_log_rig.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/arena.h"
#include "core/base/log.h"

#define THREADS 4
#define LINES 500

static int reset(void **state)
{
    (void)state;
    log_set_level(NG_LOG_INFO);
    log_set_format(LOG_TEXT);
    return 0;
}

/* The line behind its time ("2026-01-02T03:04:05.678Z "). */
static const char *after_time(const char *line)
{
    int year;
    int millis;
    assert_int_equal(sscanf(line, "%4d-%*2d-%*2dT%*2d:%*2d:%*2d.%3dZ", &year, &millis), 2);
    assert_true(year >= 2024);
    return line + strlen("2026-01-02T03:04:05.678Z ");
}

static void test_text(void **state)
{
    (void)state;
    struct catcher catcher;
    catch_begin(&catcher);
    log_write(NG_LOG_WARNING, "store", "disk is %d%% full\nand \"more\"\t\x01", 97);
    log_fields(NG_LOG_ERROR, "http", "bad", "\"agent\":\"a\"");
    char *text = caught(&catcher);
    char *second = strchr(text, '\n');
    assert_non_null(second);
    *second++ = '\0';
    assert_string_equal(after_time(text),
                        "warning store: disk is 97% full\\nand \"more\"\\t\\u0001");
    assert_string_equal(after_time(second), "error http: bad {\"agent\":\"a\"}\n");
    free(text);
}

static void test_json(void **state)
{
    (void)state;
    struct catcher catcher;
    log_set_format(LOG_JSON);
    catch_begin(&catcher);
    log_write(NG_LOG_INFO, "st\"ore", "a \"b\" \\ c\n");
    log_fields(NG_LOG_INFO, "x", "m", "\"n\":1");
    char *text = caught(&catcher);
    const char *rest = strstr(text, "\"level\"");
    assert_non_null(rest);
    assert_memory_equal(text, "{\"time\":\"20", 11);
    const char *want =
        "\"level\":\"info\",\"where\":\"st\\\"ore\",\"message\":\"a \\\"b\\\" \\\\ c\\n\"}\n";
    assert_memory_equal(rest, want, strlen(want));
    assert_non_null(strstr(text, "\"message\":\"m\",\"n\":1}\n"));
    free(text);
}

static void test_levels(void **state)
{
    (void)state;
    struct catcher catcher;
    catch_begin(&catcher);
    log_write(NG_LOG_DEBUG, "x", "hidden");
    log_set_level(NG_LOG_ERROR);
    log_write(NG_LOG_WARNING, "x", "hidden");
    log_fields(NG_LOG_INFO, "x", "hidden", NULL);
    assert_false(log_enabled(NG_LOG_WARNING));
    assert_true(log_enabled(NG_LOG_ERROR));
    log_set_level(NG_LOG_DEBUG);
    log_write(NG_LOG_DEBUG, "x", "shown");
    char *text = caught(&catcher);
    assert_null(strstr(text, "hidden"));
    assert_non_null(strstr(text, "debug x: shown\n"));
    free(text);
}

static void test_long_and_bad(void **state)
{
    (void)state;
    struct catcher catcher;
    char *longer = malloc(100001);
    assert_non_null(longer);
    memset(longer, '"', 100000);
    longer[100000] = '\0';
    log_set_format(LOG_JSON);
    catch_begin(&catcher);
    log_write(NG_LOG_INFO, "x", "%s", longer);
    log_fields(NG_LOG_INFO, "x", "m", longer);
    log_write(NG_LOG_INFO, "x", "bad \xff byte");
    memset(longer, 1, 100000);       /* six bytes each, escaped: longer than a line */
    for (size_t i = 0; i < 6; i++) { /* the last of them ends at any of their bytes */
        log_fields(NG_LOG_INFO, &"xxxxxx"[i], longer, "\"a\":1");
    }
    /* Logging needs no memory of its own. */
    alloc_fail_after(0);
    log_write(NG_LOG_INFO, "x", "last");
    alloc_fail_after(-1);
    char *text = caught(&catcher);
    /* Every line is whole, whatever was cut. */
    int lines = 0;
    char *rest = NULL;
    for (char *line = strtok_r(text, "\n", &rest); line != NULL;
         line = strtok_r(NULL, "\n", &rest)) {
        assert_int_equal(line[0], '{');
        assert_int_equal(line[strlen(line) - 1], '}');
        assert_true(lines < 3 || lines > 8 || strstr(line, "\\u0001\",\"cut\":true}") != NULL);
        assert_true(strlen(line) < 20000);
        assert_true(lines != 1 || strstr(line, "\"message\":\"m\",\"cut\":true}") != NULL);
        assert_true(lines != 2 || strstr(line, "bad ? byte") != NULL);
        lines++;
    }
    assert_int_equal(lines, 10);
    free(text);
    free(longer);
}

static void test_errno_stays(void **state)
{
    (void)state;
    struct catcher catcher;
    catch_begin(&catcher);
    errno = EBADMSG;
    log_write(NG_LOG_INFO, "x", "y");
    int after = errno;
    free(caught(&catcher));
    assert_int_equal(after, EBADMSG);
}

static void *write_lines(void *arg)
{
    (void)arg;
    for (int i = 0; i < LINES; i++) {
        log_write(NG_LOG_INFO, "thread", "%0200d", i);
    }
    return NULL;
}

static void test_threads(void **state)
{
    (void)state;
    struct catcher catcher;
    pthread_t threads[THREADS];
    catch_begin(&catcher);
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, write_lines, NULL), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    }
    char *text = caught(&catcher);
    int lines = 0;
    char *rest = NULL;
    for (char *line = strtok_r(text, "\n", &rest); line != NULL;
         line = strtok_r(NULL, "\n", &rest)) {
        assert_int_equal(strlen(after_time(line)), strlen("info thread: ") + 200);
        lines++;
    }
    assert_int_equal(lines, THREADS * LINES);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_text, reset),
        cmocka_unit_test_setup(test_json, reset),
        cmocka_unit_test_setup(test_levels, reset),
        cmocka_unit_test_setup(test_long_and_bad, reset),
        cmocka_unit_test_setup(test_errno_stays, reset),
        cmocka_unit_test_setup(test_threads, reset),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
