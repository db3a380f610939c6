/* SPDX-License-Identifier: MIT */
/* test_notebook.h - a folder of notes and a gateway that serves it, for the tests of the tools.
 */
#ifndef OPENNOTES_TEST_NOTEBOOK_H
#define OPENNOTES_TEST_NOTEBOOK_H

#include "harness.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FIXTURE_SETS 8

struct fixture {
    struct harness harness;
    char folder[200]; /* the notebook */
    char set[300];
    const char *sets[FIXTURE_SETS];
};

/* A notebook; files are put into it before fixture_serve(). */
static inline void fixture_open(struct fixture *fixture)
{
    memset(fixture, 0, sizeof(*fixture));
    (void)snprintf(fixture->folder, sizeof(fixture->folder), "%s/notegate-notes-XXXXXX",
                   harness_tmp());
    assert_non_null(mkdtemp(fixture->folder));
    assert_int_equal(chmod(fixture->folder, 0755), 0);
}

/* `more`: further settings, at most four, NULL at the end; or NULL. */
static inline void fixture_serve(struct fixture *fixture, const char *const *more)
{
    size_t count = 0;
    (void)snprintf(fixture->set, sizeof(fixture->set), "opennotes.notebooks=%s",
                   fixture->folder);
    fixture->sets[count++] = "plugins=opennotes";
    fixture->sets[count++] = fixture->set;
    for (; more != NULL && *more != NULL; more++) {
        assert_true(count + 1 < FIXTURE_SETS);
        fixture->sets[count++] = *more;
    }
    harness_open(&fixture->harness, fixture->sets);
}

static inline int fixture_unlink(const char *path, const struct stat *st, int type,
                                 struct FTW *ftw)
{
    (void)st;
    (void)type;
    (void)ftw;
    (void)remove(path);
    return 0;
}

static inline void fixture_close(struct fixture *fixture)
{
    harness_close(&fixture->harness);
    (void)nftw(fixture->folder, fixture_unlink, 16, FTW_DEPTH | FTW_PHYS);
}

static inline void fixture_path(const struct fixture *fixture, const char *name, char *out,
                                size_t size)
{
    assert_true((size_t)snprintf(out, size, "%s/%s", fixture->folder, name) < size);
}

static inline void fixture_put_bytes(const struct fixture *fixture, const char *name,
                                     const char *bytes, size_t len)
{
    char path[512];
    fixture_path(fixture, name, path, sizeof(path));
    for (char *slash = strchr(path + strlen(fixture->folder) + 1, '/'); slash != NULL;
         slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        assert_true(mkdir(path, 0755) == 0 || errno == EEXIST);
        *slash = '/';
    }
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, bytes, len), (ssize_t)len);
    assert_int_equal(close(fd), 0);
}

static inline void fixture_put(const struct fixture *fixture, const char *name,
                               const char *text)
{
    fixture_put_bytes(fixture, name, text, strlen(text));
}

/* The whole file, NUL-terminated; free it. NULL: there is none. */
static inline char *fixture_get(const struct fixture *fixture, const char *name)
{
    char path[512];
    struct stat st;
    fixture_path(fixture, name, path, sizeof(path));
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return NULL;
    }
    assert_int_equal(fstat(fd, &st), 0);
    char *text = calloc(1, (size_t)st.st_size + 1);
    assert_non_null(text);
    assert_int_equal(read(fd, text, (size_t)st.st_size), st.st_size);
    assert_int_equal(close(fd), 0);
    return text;
}

static inline void fixture_has(const struct fixture *fixture, const char *name,
                               const char *wanted)
{
    char *text = fixture_get(fixture, name);
    assert_non_null(text);
    assert_string_equal(text, wanted);
    free(text);
}

static inline bool fixture_exists(const struct fixture *fixture, const char *name)
{
    char path[512];
    struct stat st;
    fixture_path(fixture, name, path, sizeof(path));
    return lstat(path, &st) == 0;
}

/* The answer of a call that must work; free it. */
static inline char *fixture_call(struct fixture *fixture, const char *tool, const char *args)
{
    struct answer answer = harness_call(&fixture->harness, tool, args);
    if (answer.rc != NG_OK) {
        fail_msg("%s %s failed: %s %s %s", tool, args, answer.code, answer.message,
                 answer.hint);
    }
    char *text = strdup(answer.text);
    assert_non_null(text);
    answer_free(&answer);
    return text;
}

/* A call that must work, and whose answer holds each of the texts, NULL at the end. */
static inline void fixture_says(struct fixture *fixture, const char *tool, const char *args,
                                const char *const *wanted)
{
    char *text = fixture_call(fixture, tool, args);
    for (; *wanted != NULL; wanted++) {
        if (strstr(text, *wanted) == NULL) {
            fail_msg("%s %s answers %s, without %s", tool, args, text, *wanted);
        }
    }
    free(text);
}

/* A call that must fail with the code; its message and hint together hold `part`. */
static inline void fixture_fails(struct fixture *fixture, const char *tool, const char *args,
                                 const char *code, const char *part)
{
    struct answer answer = harness_call(&fixture->harness, tool, args);
    char said[4096];
    (void)snprintf(said, sizeof(said), "%s %s", answer.message, answer.hint);
    if (strcmp(answer.code, code) != 0 || strstr(said, part) == NULL) {
        fail_msg("%s %s gives %s: %s, and not %s with %s", tool, args, answer.code, said, code,
                 part);
    }
    answer_free(&answer);
}

#endif
