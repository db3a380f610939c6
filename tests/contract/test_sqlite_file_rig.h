/* SPDX-License-Identifier: MIT */
/* test_sqlite_file_rig.h - the sqlite backend on a file that the case may reach behind its
 * back. */
#ifndef NOTEGATE_TEST_SQLITE_FILE_RIG_H
#define NOTEGATE_TEST_SQLITE_FILE_RIG_H

#include "backend_fixture.h"

int setup(void **state);
int teardown(void **state);
void start(struct fixture *f);
/* open() must refuse with this in its sentence, which also names the file or folder. */
void expect_refused(struct fixture *f, const char *words);

#define TEST(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

#endif
