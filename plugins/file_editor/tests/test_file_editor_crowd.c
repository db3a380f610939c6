/* SPDX-License-Identifier: MIT */
/* test_file_editor_crowd.c - many at once: callers, and other programs that save.
 */
#include "test_file_editor_rig.h"

#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define WRITERS 8
#define EDITS 20
#define OUTSIDE_SAVES 25

struct writer {
    struct test *test;
    int number;
    int failed;
};

static void *write_lines(void *user)
{
    struct writer *writer = user;
    char args[TEXT_MAX];
    char real[TEXT_MAX];
    for (int i = 0; i < EDITS; i++) {
        (void)snprintf(args, sizeof(args), INSERT("@/f", 0, "writer %d edit %d."),
                       writer->number, i);
        expand(writer->test, args, real, sizeof(real));
        struct answer answer = harness_call(&writer->test->harness, "fileEditor", real);
        writer->failed += answer.rc != NG_OK;
        answer_free(&answer);
    }
    return NULL;
}

static char *slurp(struct test *test, const char *path)
{
    char real[TEXT_MAX];
    char *text = calloc(1, 1 << 20);
    expand(test, path, real, sizeof(real));
    int fd = open(real, O_RDONLY | O_CLOEXEC);
    assert_non_null(text);
    assert_true(fd >= 0);
    assert_true(read(fd, text, (1 << 20) - 1) >= 0);
    (void)close(fd);
    return text;
}

static void run_writers(struct test *test)
{
    pthread_t threads[WRITERS];
    struct writer writers[WRITERS];
    for (int i = 0; i < WRITERS; i++) {
        writers[i] = (struct writer){.test = test, .number = i};
        assert_int_equal(pthread_create(&threads[i], NULL, write_lines, &writers[i]), 0);
    }
    for (int i = 0; i < WRITERS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_int_equal(writers[i].failed, 0);
    }
    char *text = slurp(test, "@/f");
    for (int i = 0; i < WRITERS * EDITS; i++) {
        char line[64];
        (void)snprintf(line, sizeof(line), "writer %d edit %d.\n", i / EDITS, i % EDITS);
        assert_non_null(strstr(text, line));
    }
    free(text);
}

static void test_all_edits_survive(void **state)
{
    struct test *test = *state;
    put(test, "@/f", "\n");
    run_writers(test);
}

static void *create_one(void *user)
{
    struct writer *writer = user;
    struct answer answer =
        call(writer->test, "{\"command\":\"create\",\"path\":\"@/one\",\"file_text\":\"x\"}");
    writer->failed = strcmp(answer.code, "FILE_EXISTS") == 0 ? 1 : answer.rc == NG_OK ? 0 : 2;
    answer_free(&answer);
    return NULL;
}

static void test_one_creates(void **state)
{
    struct test *test = *state;
    pthread_t threads[WRITERS];
    struct writer writers[WRITERS];
    int made = 0;
    for (int i = 0; i < WRITERS; i++) {
        writers[i] = (struct writer){.test = test};
        assert_int_equal(pthread_create(&threads[i], NULL, create_one, &writers[i]), 0);
    }
    for (int i = 0; i < WRITERS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_int_not_equal(writers[i].failed, 2);
        made += writers[i].failed == 0;
    }
    assert_int_equal(made, 1);
}

static void *move_to_and_fro(void *user)
{
    struct writer *writer = user;
    for (int i = 0; i < EDITS; i++) {
        bool there = (i + writer->number) % 2 == 0;
        struct answer answer = call(writer->test, there ? TRANSFER("move", "@/a", "@/b")
                                                        : TRANSFER("move", "@/b", "@/a"));
        bool expected = answer.rc == NG_OK || strcmp(answer.code, "NOT_FOUND") == 0 ||
                        strcmp(answer.code, "FILE_EXISTS") == 0;
        writer->failed += !expected;
        answer_free(&answer);
    }
    return NULL;
}

static void test_moves_to_and_fro(void **state)
{
    struct test *test = *state;
    pthread_t threads[WRITERS];
    struct writer writers[WRITERS];
    put(test, "@/a", "x");
    for (int i = 0; i < WRITERS; i++) {
        writers[i] = (struct writer){.test = test, .number = i};
        assert_int_equal(pthread_create(&threads[i], NULL, move_to_and_fro, &writers[i]), 0);
    }
    for (int i = 0; i < WRITERS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_int_equal(writers[i].failed, 0);
    }
    assert_true(exists(test, "@/a") != exists(test, "@/b"));
}

/* Another program that saves by rename, one number after the other, each at a `turn`. */
struct outsider {
    struct test *test;
    sem_t turn, saved;
    int saves;
};

static void *save_outside(void *user)
{
    struct outsider *outsider = user;
    char real[TEXT_MAX];
    char temp[TEXT_MAX];
    expand(outsider->test, "@/g", real, sizeof(real));
    expand(outsider->test, "@/outside", temp, sizeof(temp));
    for (int i = 0; i < OUTSIDE_SAVES; i++) {
        assert_int_equal(sem_wait(&outsider->turn), 0);
        FILE *file = fopen(temp, "w");
        assert_non_null(file);
        (void)fprintf(file, "save %d\n", i);
        assert_int_equal(fclose(file), 0);
        assert_int_equal(rename(temp, real), 0);
        outsider->saves = i;
        assert_int_equal(sem_post(&outsider->saved), 0);
    }
    return NULL;
}

static void test_another_program_saves(void **state)
{
    struct test *test = *state;
    struct outsider outsider = {.test = test};
    pthread_t thread;
    put(test, "@/g", "save -1\n");
    assert_int_equal(sem_init(&outsider.turn, 0, 0), 0);
    assert_int_equal(sem_init(&outsider.saved, 0, 0), 0);
    assert_int_equal(pthread_create(&thread, NULL, save_outside, &outsider), 0);
    for (int i = 0; i < 2 * OUTSIDE_SAVES; i++) {
        /* Every other edit has the other program beside it; the next one finds its save. */
        bool beside = i % 2 == 0;
        assert_int_equal(beside ? sem_post(&outsider.turn) : sem_wait(&outsider.saved), 0);
        struct answer answer = call(test, INSERT("@/g", 1, "ours"));
        assert_true(answer.rc == NG_OK || (beside && strcmp(answer.code, "CONFLICT") == 0));
        assert_true(answer.rc != NG_OK || strstr(answer.text, "     1  save ") != NULL);
        answer_free(&answer);
    }
    assert_int_equal(pthread_join(thread, NULL), 0);
    (void)sem_destroy(&outsider.turn);
    (void)sem_destroy(&outsider.saved);
    /* The other program's last save is in the file, whatever we did meanwhile. */
    char *text = slurp(test, "@/g");
    char last[64];
    (void)snprintf(last, sizeof(last), "save %d\n", outsider.saves);
    assert_int_equal(strncmp(text, last, strlen(last)), 0);
    free(text);
    char command[TEXT_MAX + 64];
    expand(test, "test -z \"$(find @ -name '.notegate-*')\"", command, sizeof(command));
    assert_int_equal(system(command), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_all_edits_survive, setup, teardown),
        cmocka_unit_test_setup_teardown(test_one_creates, setup, teardown),
        cmocka_unit_test_setup_teardown(test_moves_to_and_fro, setup, teardown),
        cmocka_unit_test_setup_teardown(test_another_program_saves, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
