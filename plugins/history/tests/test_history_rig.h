/* SPDX-License-Identifier: MIT */
/* test_history_rig.h - a gateway with notebooks, pages and their history; changes whose agent,
 * run and text a test chooses. */
#ifndef NOTEGATE_TEST_HISTORY_RIG_H
#define NOTEGATE_TEST_HISTORY_RIG_H

#include "harness.h"

#include "core/base/arena.h"
#include "core/base/str.h"
#include "core/call/call.h"
#include "core/call/key.h"

/* The gateway of the case, in memory, with answers of any size or of 4 KiB. */
extern struct harness harness;
int setup(void **state);
int setup_small(void **state);
int setup_sqlite(void **state);
int setup_linked(void **state);
int teardown(void **state);
/* With the file editor, and roots of the spaces shared and team. */
#define ROOT_SIZE 512
extern char root[ROOT_SIZE], team_root[ROOT_SIZE];
int setup_roots(void **state);
int setup_linked_roots(void **state);
int teardown_roots(void **state);
#define WITH_ROOTS(test) cmocka_unit_test_setup_teardown(test, setup_roots, teardown_roots)
/* Adds the plugin that the program is linked with to a gateway without it. */
void link_history(void);
#define WITH(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
#define WITH_SMALL(test) cmocka_unit_test_setup_teardown(test, setup_small, teardown)
#define WITH_SQLITE(test) cmocka_unit_test_setup_teardown(test, setup_sqlite, teardown)
#define WITH_LINKED(test) cmocka_unit_test_setup_teardown(test, setup_linked, teardown)
/* tools.max_answer of setup_small(). */
#define SMALL_ANSWER ((size_t)4096)

/* ---- changes ---- */

/* A change of one document; what is NULL is the default: notebooks, shared, "n", the empty
 * text, "{}", agent "ada", tool "import". */
struct put {
    const char *collection, *space, *id, *text, *json, *agent, *run, *tool, *action, *event;
    struct ng_str bytes; /* instead of `text` */
    bool deletes;
};

void put(const struct put *put);
void put_text(const char *text);
/* Removes the revisions that are older than a day, but for the first and the last of a day. */
void thin(void);

/* A revision as it is stored: `"seq":7,"time":"...","agent":"ada","run":"r","tool":"import"`,
 * its number and its time. One of a few static places. */
const char *made(const struct put *put, uint64_t revision);
uint64_t seq_of(const struct put *put, uint64_t revision);
const char *time_of(const struct put *put, uint64_t revision);

/* ---- calls ---- */

/* The value at a path as "lines.0.text" in a JSON text: a string bare, else as JSON; "none":
 * there is none. One of a few static places. */
const char *at(const char *json, const char *path);
int64_t int_at(const char *json, const char *path);
/* A JSON text as printf makes it, in one of a few static places. ' stands for ". */
const char *args(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* A call that works. */
struct answer go(const char *tool, const char *arguments);
/* The whole answer. */
void expect(const char *tool, const char *arguments, const char *text);
/* A call that fails; details NULL: none. */
void expect_failure(const char *tool, const char *arguments, const char *code, int status,
                    const char *message, const char *details);
/* Each allocation of the call fails in turn: then the answer is the one without failures, or
 * says that there is no memory. WITH_LINKED() only. */
void expect_all_or_no_memory(const char *tool, const char *arguments);

/* A caller with a key, which lives as long as the case. */
struct call *call_with_key(struct key *key, enum ng_role role, const struct ng_str *spaces,
                           size_t count);

/* ---- random texts ---- */

/* Printed, so that a failure can be repeated: NOTEGATE_TEST_SEED, or 1. */
unsigned rig_seed(void);
unsigned rig_below(unsigned *seed, unsigned limit);
/* Up to `lines` lines with and without CR, empty ones, with or without a last LF. */
void rig_text(unsigned *seed, unsigned lines, char *text, size_t size);

#endif
