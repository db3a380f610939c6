/* SPDX-License-Identifier: MIT */
/* test_file_editor_crowd.c - many at once: callers, and other programs that save.
 */
#include "test_file_editor_rig.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include <unistd.h>

#define WRITERS 8
#define EDITS 20

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

/* ---- another program, which saves by rename at chosen moments of an edit ---- */

#define MOMENTS_CHOSEN 8
#define MOMENTS_MIN 4 /* of an edit during which nothing is saved */

static struct {
    atomic_bool watches; /* the rest is set while it does not */
    char path[TEXT_MAX], beside[TEXT_MAX];
    uint64_t saves_at; /* a bit for each moment, in their order; the 65th is the first again */
    unsigned moments, saves, failed;
} outsider;

static void outsider_save(void)
{
    FILE *file = fopen(outsider.beside, "w");
    if (file == NULL) {
        outsider.failed++;
        return;
    }
    (void)fprintf(file, "save %u\n", ++outsider.saves);
    if (fclose(file) != 0 || rename(outsider.beside, outsider.path) != 0) {
        outsider.failed++;
    }
}

static bool outsider_saves_at(unsigned moment)
{
    return (outsider.saves_at >> moment % 64 & 1) != 0;
}

static void moment_of_edit(void)
{
    if (atomic_load(&outsider.watches) && outsider_saves_at(outsider.moments++)) {
        outsider_save();
    }
}

/* These stand before libc's own. A try to edit locks the file that it has opened, then the one
 * that it writes, exchanges the two, and exchanges them back if that moved out another file. */

#pragma GCC visibility push(default)

int flock(int fd, int operation)
{
    moment_of_edit();
    return (int)syscall(SYS_flock, fd, operation);
}

int renameat2(int from_dir, const char *from, int to_dir, const char *to, unsigned int flags)
{
    moment_of_edit();
    int rc = (int)syscall(SYS_renameat2, from_dir, from, to_dir, to, flags);
    int error = errno;
    moment_of_edit();
    errno = error;
    return rc;
}

#pragma GCC visibility pop

static void outsider_begin(struct test *test)
{
    expand(test, "@/g", outsider.path, sizeof(outsider.path));
    expand(test, "@/outside", outsider.beside, sizeof(outsider.beside));
    outsider.saves = outsider.failed = 0;
}

static struct answer edit_while_saved(struct test *test, uint64_t saves_at)
{
    outsider_save(); /* also removes what the edit before this one has inserted */
    outsider.saves_at = saves_at;
    outsider.moments = 0;
    atomic_store(&outsider.watches, true);
    struct answer answer = call(test, INSERT("@/g", 1, "ours"));
    atomic_store(&outsider.watches, false);
    assert_int_equal(outsider.failed, 0);
    return answer;
}

/* The other program's last save is in the file, whatever we did meanwhile. */
static void expect_last_save(struct test *test, const char *edit)
{
    char text[64];
    (void)snprintf(text, sizeof(text), "save %u\n%s", outsider.saves, edit);
    has(test, "@/g", text);
}

static void expect_no_temps(struct test *test)
{
    char command[TEXT_MAX + 64];
    expand(test, "test -z \"$(find @ -name '.notegate-*')\"", command, sizeof(command));
    assert_int_equal(system(command), 0);
}

/* At every choice of the first moments: the edit is made on the last save before its own. */
static void test_another_program_saves(void **state)
{
    struct test *test = *state;
    outsider_begin(test);
    for (uint64_t saves_at = 0; saves_at < UINT64_C(1) << MOMENTS_CHOSEN; saves_at++) {
        char first[64];
        struct answer answer = edit_while_saved(test, saves_at);
        assert_int_equal(answer.rc, NG_OK);
        assert_true(outsider.moments >= MOMENTS_MIN);
        bool saved_on_top = outsider_saves_at(outsider.moments - 1);
        (void)snprintf(first, sizeof(first), "     1  save %u\n",
                       outsider.saves - (saved_on_top ? 1 : 0));
        assert_non_null(strstr(answer.text, first));
        answer_free(&answer);
        expect_last_save(test, saved_on_top ? "" : "ours\n");
    }
    expect_no_temps(test);
}

/* At every moment, or at each one between opening the file and the exchange. */
static void test_another_program_never_pauses(void **state)
{
    static const uint64_t always[] = {UINT64_MAX, UINT64_C(0xaaaaaaaaaaaaaaaa)};
    struct test *test = *state;
    for (size_t i = 0; i < NG_COUNT(always); i++) {
        outsider_begin(test);
        struct answer answer = edit_while_saved(test, always[i]);
        assert_string_equal(answer.code, "CONFLICT");
        assert_non_null(strstr(answer.message, "Another program keeps changing the file"));
        answer_free(&answer);
        assert_true(outsider.saves > 60);
        expect_last_save(test, "");
    }
    expect_no_temps(test);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_all_edits_survive, setup, teardown),
        cmocka_unit_test_setup_teardown(test_one_creates, setup, teardown),
        cmocka_unit_test_setup_teardown(test_moves_to_and_fro, setup, teardown),
        cmocka_unit_test_setup_teardown(test_another_program_saves, setup, teardown),
        cmocka_unit_test_setup_teardown(test_another_program_never_pauses, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
