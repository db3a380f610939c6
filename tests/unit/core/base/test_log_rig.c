/* SPDX-License-Identifier: MIT */
/* test_log_rig.c - shared code of test_log*.c; see the header. */
#include "test_log_rig.h"

#include <stdlib.h>
#include <unistd.h>

#define CAUGHT_MAX ((size_t)8 * 1024 * 1024)

void catch_begin(struct catcher *catcher)
{
    (void)fflush(stderr);
    catcher->file = tmpfile();
    assert_non_null(catcher->file);
    catcher->saved = dup(STDERR_FILENO);
    assert_true(catcher->saved >= 0);
    assert_true(dup2(fileno(catcher->file), STDERR_FILENO) >= 0);
}

char *caught(struct catcher *catcher)
{
    assert_true(dup2(catcher->saved, STDERR_FILENO) >= 0);
    (void)close(catcher->saved);
    rewind(catcher->file);
    char *text = malloc(CAUGHT_MAX);
    assert_non_null(text);
    size_t len = fread(text, 1, CAUGHT_MAX - 1, catcher->file);
    text[len] = '\0';
    (void)fclose(catcher->file);
    return text;
}
