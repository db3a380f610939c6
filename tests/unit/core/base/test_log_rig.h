/* SPDX-License-Identifier: MIT */
/* test_log_rig.h - captures stderr in a file. */
#ifndef NOTEGATE_TEST_LOG_RIG_H
#define NOTEGATE_TEST_LOG_RIG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>

/* stderr goes to a file without a name until caught() gives what was written. */
struct catcher {
    FILE *file;
    int saved;
};

void catch_begin(struct catcher *catcher);
char *caught(struct catcher *catcher); /* free() it */

#endif
