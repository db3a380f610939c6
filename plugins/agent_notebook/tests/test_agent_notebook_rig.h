/* SPDX-License-Identifier: MIT */
/* test_agent_notebook_rig.h - a gateway with the agents' notebook, and entries made in it.
 */
#ifndef NOTEGATE_TEST_AGENT_NOTEBOOK_RIG_H
#define NOTEGATE_TEST_AGENT_NOTEBOOK_RIG_H

#include "harness.h"

#include "core/call/call.h"

int open_with(void **state, const char *const *sets);
int setup(void **state);
int setup_sqlite(void **state);
int teardown(void **state);
/* The value at a path as "metadata.tags.0" in a JSON text: a string bare, else as JSON; "none":
 * there is none. In one of a few static places. */
const char *at(const char *json, const char *path);
/* A call that works; and two that fail with that code and status. */
struct answer go(void *state, const char *tool, const char *args);
struct answer fails(void *state, const char *tool, const char *args, const char *code,
                    int status);
void fails_only(void *state, const char *tool, const char *args, const char *code, int status);

struct entry {
    char id[64];
    char collection[32];
};

/* Makes an entry from the members behind collection. */
struct entry make(void *state, const char *collection, const char *members);
/* The arguments of a call about an entry; `more` begins with a comma, or is "". */
const char *about(const struct entry *entry, const char *more);
void update(void *state, const struct entry *entry, const char *more);
/* Reads and compares one member. */
void expect_member(void *state, const struct entry *entry, const char *more, const char *path,
                   const char *want);
void expect_content(void *state, const struct entry *entry, const char *want);
/* The titles of a list, joined by blanks, and how many there are in all. */
void expect_list(void *state, const char *tool, const char *args, const char *titles,
                 const char *total);

#define WITH(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
#define WITH_SQLITE(test) cmocka_unit_test_setup_teardown(test, setup_sqlite, teardown)

#endif
