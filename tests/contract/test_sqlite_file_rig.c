/* SPDX-License-Identifier: MIT */
/* test_sqlite_file_rig.c - shared code of test_sqlite_file*.c; see the header.
 */
#include "test_sqlite_file_rig.h"

#include <stdlib.h>
#include <string.h>

int setup(void **state)
{
    struct fixture *fixture = calloc(1, sizeof(*fixture));
    assert_non_null(fixture);
    fixture_load(fixture, "sqlite", NULL);
    *state = fixture;
    return 0;
}

int teardown(void **state)
{
    fixture_close(*state);
    free(*state);
    return 0;
}

void start(struct fixture *f)
{
    if (fixture_start(f) != NG_OK) {
        fail_msg("the store did not open: %s", fixture_error(f));
    }
    fixture_declare(f);
}

void expect_refused(struct fixture *f, const char *words)
{
    assert_int_equal(fixture_start(f), NG_EUNAVAILABLE);
    if (strstr(fixture_error(f), words) == NULL || strstr(fixture_error(f), f->dir) == NULL) {
        fail_msg("the message does not say it: %s", fixture_error(f));
    }
}
