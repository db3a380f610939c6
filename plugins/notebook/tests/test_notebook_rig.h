/* SPDX-License-Identifier: MIT */
/* test_notebook_rig.h - a gateway with the notebook, and what its tools are expected to
 * answer. */
#ifndef NOTEGATE_TEST_NOTEBOOK_RIG_H
#define NOTEGATE_TEST_NOTEBOOK_RIG_H

#include "harness.h"

int setup(void **state);
int teardown(void **state);
void expect(struct harness *harness, const char *args, const char *text);
void expect_fail(struct harness *harness, const char *args, const char *code,
                 const char *message);
/* A call whose name and texts are bytes, not JSON. */
struct answer call_bytes(struct harness *harness, const char *mode, struct ng_str name,
                         const char *member, struct ng_str value);
void expect_range(struct harness *harness, const char *name, const char *range,
                  const char *text);

#define TEST(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

#endif
