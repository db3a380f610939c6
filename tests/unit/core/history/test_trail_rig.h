/* SPDX-License-Identifier: MIT */
/*
 * test_trail_rig.h - random changes, and the changes of all documents, newest first. The oracle
 * is the list of changes, oldest first, as it was read in one piece.
 */
#ifndef NOTEGATE_TEST_TRAIL_RIG_H
#define NOTEGATE_TEST_TRAIL_RIG_H

#include "core/history/trail.h"
#include "harness.h"
#include "notegate/backend.h"

#define GROUPS 160
#define ROWS_MAX 120000
#define NAME_MAX_BYTES 24
#define VALUES 3
#define DIMENSIONS 6

/* The dimensions of a filter, in the order of names_of(). */
extern const char *const values[DIMENSIONS][VALUES];

struct row {
    uint64_t seq;
    char id[NAME_MAX_BYTES];
    char names[DIMENSIONS][NAME_MAX_BYTES];
};

struct rows {
    struct row *rows;
    size_t count;
};

struct trail_rig {
    struct harness harness;
    struct rows all; /* oldest first */
    unsigned seed;
};

extern struct trail_rig rig;

unsigned below(unsigned limit);

/* ---- changes ---- */

/* Documents that one call changes. */
struct group {
    struct call *call;
    struct ng_change changes[NG_CHANGES_MAX];
    char ids[NG_CHANGES_MAX][NAME_MAX_BYTES];
    size_t count;
};

void group_new(struct group *group, const char *agent, const char *run, const char *tool);
struct ng_change *group_add(struct group *group, const char *space, const char *collection,
                            const char *beginning, unsigned number);
/* Commits, and ends the call. */
void group_write(struct group *group);

/* ---- the oracle and walks ---- */

struct walk {
    struct rows found; /* newest first */
    size_t most;       /* of one walk; 0: all */
    size_t page;
};

struct rows rows_new(void);
/* Reads all changes into rig.all. */
void read_all(void);
struct ng_trail trail_all(void);
struct ng_names *names_of(struct ng_trail *trail, size_t dimension);
/* The texts are those of the filter. */
void random_filter(struct ng_trail *trail, struct ng_str texts[DIMENSIONS][2]);
int walk_take(void *user, const struct ng_event *event);
/* One walk; where the next one goes on. */
uint64_t walk_by(struct call *call, const struct ng_trail *trail, struct walk *walk);
uint64_t walk_on(const struct ng_trail *trail, struct walk *walk);
void expect_rows(const struct ng_trail *trail, const struct rows *found);
/* Pages of so many changes (0: one walk) give what the oracle gives; how many walks. */
size_t expect_pages(const struct ng_trail *trail, size_t most);

int setup(void **state);
/* With a backend that has no trail(). */
int setup_without(void **state);
int teardown(void **state);

#endif
