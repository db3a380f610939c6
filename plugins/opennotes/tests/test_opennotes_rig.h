/* SPDX-License-Identifier: MIT */
/* test_opennotes_rig.h - a folder with notebooks and a gateway that serves them. In
 * arguments and texts '@' stands for the folder. */
#ifndef NOTEGATE_TEST_OPENNOTES_RIG_H
#define NOTEGATE_TEST_OPENNOTES_RIG_H

#include "harness.h"

#define TEXT_MAX 65536

struct test {
    struct harness harness;
    char dir[300]; /* of everything: nb is the registered notebook */
    char set[700];
    const char *sets[4];
};

void expand(const struct test *test, const char *from, char *to, size_t size);
void put_bytes(struct test *test, const char *path, const char *data, size_t len);
void put(struct test *test, const char *path, const char *text);
struct answer call(struct test *test, const char *tool, const char *args);
/* The answer holds this text. */
void has(struct test *test, const char *tool, const char *args, const char *text);
void has_not(struct test *test, const char *tool, const char *args, const char *text);
void fails(struct test *test, const char *tool, const char *args, const char *code,
           const char *hint);
void open_with(struct test *test, const char *set);
int setup(void **state);
int teardown(void **state);

#define REGISTERED "opennotes.notebooks=@/nb"

int64_t number_of(const char *text, const char *name);

#endif
