/* SPDX-License-Identifier: MIT */
/* journal_parts.h - shared by the parts of the journals' suite. */
#ifndef NOTEGATE_TEST_JOURNAL_PARTS_H
#define NOTEGATE_TEST_JOURNAL_PARTS_H

#include "core/journal/journal.h"
#include "journal_contract.h"

struct suite {
    struct harness harness;
    const struct ng_journal *journal;
    void *db;
};

struct suite_start {
    const char *const *sets;
    void (*prepare)(void);
};

int suite_setup(void **state); /* the initial state is a suite_start */
int suite_teardown(void **state);
/* The journal of the gateway, also after it was opened again. */
void suite_find(struct suite *suite);
int suite_deliver(struct suite *suite, const struct ng_entry *entries, size_t count);
void suite_recall(struct suite *suite, struct ng_recall *recall, struct collected *collected);

/* One case; `start` is the suite_start of where it stands. */
#define CONTRACT(function)                                                                     \
    {                                                                                          \
#function, function, suite_setup, suite_teardown, start                                \
    }

int journal_upkeep_contract(const char *name, struct suite_start *start);
int journal_aside_contract(const char *name, struct suite_start *start);

#endif
