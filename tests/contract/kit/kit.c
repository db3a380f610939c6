/* SPDX-License-Identifier: MIT */
/* kit.c - the program notegate-contract: the documents suite on a module of another author.
 * Each case runs in a process of its own, so that one that crashes or hangs is a line and no
 * end. */
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "documents_contract.h"

/* Longest a case may take, in seconds. */
#define KIT_CASE_SECONDS 120
/* Exit status of the process of a case. */
#define KIT_FAILED 1
#define KIT_SKIPPED 77

struct kit_counts {
    unsigned held, skipped, failed;
};

static const char *kit_file(const char *file)
{
    const char *slash = strrchr(file, '/');
    return slash != NULL ? slash + 1 : file;
}

void kit_fail(const char *file, int line, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    (void)fprintf(stderr, "    %s:%d: ", kit_file(file), line);
    (void)vfprintf(stderr, format, args);
    (void)fputc('\n', stderr);
    va_end(args);
    _exit(KIT_FAILED);
}

void kit_skip(void)
{
    _exit(KIT_SKIPPED);
}

void kit_print(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    (void)fputs("    ", stderr);
    (void)vfprintf(stderr, format, args);
    va_end(args);
}

void kit_equal(const char *file, int line, uintmax_t a, uintmax_t b)
{
    if (a != b) {
        kit_fail(file, line, "%jd is not %jd", (intmax_t)a, (intmax_t)b);
    }
}

void kit_text(const char *file, int line, const char *a, const char *b)
{
    if (strcmp(a, b) != 0) {
        kit_fail(file, line, "\"%.200s\" is not \"%.200s\"", a, b);
    }
}

void kit_bytes(const char *file, int line, const void *a, const void *b, size_t size)
{
    if (memcmp(a, b, size) != 0) {
        kit_fail(file, line, "%zu bytes are not equal", size);
    }
}

static void kit_case(const struct CMUnitTest *test)
{
    void *state = test->initial_state;
    (void)alarm(KIT_CASE_SECONDS);
    if (test->setup_func != NULL && test->setup_func(&state) != 0) {
        _exit(KIT_FAILED);
    }
    test->test_func(&state);
    if (test->teardown_func != NULL && test->teardown_func(&state) != 0) {
        _exit(KIT_FAILED);
    }
    _exit(0);
}

/* Runs one case; its line. */
static void kit_one(const char *group, const struct CMUnitTest *test, struct kit_counts *counts)
{
    int status = 0;
    (void)fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        kit_case(test);
    }
    if (child < 0 || waitpid(child, &status, 0) != child) {
        (void)fprintf(stderr, "notegate-contract: no process could be started for a case\n");
        exit(2);
    }
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
        counts->held++;
        printf("ok       %s: %s\n", group, test->name);
    } else if (WIFEXITED(status) && WEXITSTATUS(status) == KIT_SKIPPED) {
        counts->skipped++;
        printf("skipped  %s: %s\n", group, test->name);
    } else {
        counts->failed++;
        printf("FAILED   %s: %s", group, test->name);
        if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM) {
            printf(" (it had not ended after %d s)", KIT_CASE_SECONDS);
        } else if (WIFSIGNALED(status)) {
            printf(" (%s)", strsignal(WTERMSIG(status)));
        } else if (WEXITSTATUS(status) != KIT_FAILED) {
            printf(" (the module ended the process with %d)", WEXITSTATUS(status));
        }
        printf("\n");
    }
}

static struct kit_counts kit_counted;

int kit_run(const char *group, const struct CMUnitTest *tests, size_t count)
{
    unsigned failed = kit_counted.failed;
    for (size_t i = 0; i < count; i++) {
        kit_one(group, &tests[i], &kit_counted);
    }
    return (int)(kit_counted.failed - failed);
}

static int kit_remove(const char *path, const struct stat *status, int type, struct FTW *at)
{
    (void)status;
    (void)type;
    (void)at;
    return remove(path);
}

/* The stores of all cases lie in one folder: a case that fails leaves its own behind. */
static bool kit_folder(char *folder, size_t size)
{
    const char *tmp = getenv("TMPDIR");
    (void)snprintf(folder, size, "%s/notegate-contract-XXXXXX", tmp != NULL ? tmp : "/tmp");
    return mkdtemp(folder) != NULL && setenv("TMPDIR", folder, 1) == 0;
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        (void)fprintf(stderr, "usage: notegate-contract MODULE [KEY=VALUE...]\n");
        return 2;
    }
    char folder[256];
    const char *const *sets = (const char *const *)(argv + 2); /* ends in NULL */
    if (!kit_folder(folder, sizeof(folder))) {
        (void)fprintf(stderr, "notegate-contract: no temporary folder could be made\n");
        return 2;
    }
    int failed = documents_contract(argv[1], sets);
    (void)nftw(folder, kit_remove, 16, FTW_DEPTH | FTW_PHYS);
    printf("%u cases hold, %u are skipped (optional members), %u fail\n", kit_counted.held,
           kit_counted.skipped, kit_counted.failed);
    return failed == 0 ? 0 : 1;
}
