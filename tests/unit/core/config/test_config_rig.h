/* SPDX-License-Identifier: MIT */
/* test_config_rig.h - configurations from text, options and variables, and what they are
 * refused with. */
#ifndef NOTEGATE_TEST_CONFIG_RIG_H
#define NOTEGATE_TEST_CONFIG_RIG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/config/config.h"

#define FILE_NAME "test_config.yaml"

/* The folder of this test, left and removed at its end. */
extern char folder[];
int setup(void **state);
int teardown(void **state);
void write_file(const char *name, const char *text, size_t len);

/* Configuration of a test; sets and variables end in NULL. */
struct given {
    const char *file; /* its text, or NULL */
    const char *const *environ;
    const char *const *sets;
};

/* NG_OK, or a failure whose sentence is in `error`. */
int load(const struct given *given, struct config **ret, struct buf *error);
struct config *must_load(const struct given *given);
/* Fails with that sentence. */
void refused(const struct given *given, const char *message);
void refused_file(const char *file, const char *message);
void refused_set(const char *set, const char *message);

#endif
