/* SPDX-License-Identifier: MIT */
/* journal_contract.h - requirements on every journal, in any storage. */
#ifndef NOTEGATE_TEST_JOURNAL_CONTRACT_H
#define NOTEGATE_TEST_JOURNAL_CONTRACT_H

#include "harness.h"

/* Runs the suite on gateways opened with this configuration ("key=value" lines, NULL at the
 * end). Returns the number of failed tests, as main() does. */
int journal_contract(const char *name, const char *const *sets);
/* The same for a journal on a server: `prepare` empties it before each test. */
int journal_contract_on(const char *name, const char *const *sets, void (*prepare)(void));

/* ---- helpers, also for tests of one journal ---- */

#define JOURNAL_COLLECTED_MAX 512

/* Rows as they came, in the memory of `call`. */
struct collected {
    struct call *call;
    struct ng_entry entries[JOURNAL_COLLECTED_MAX];
    size_t count;
};

/* An entry with texts lent; time_ms is a day in the past plus `seconds`. */
struct ng_entry journal_reference(const char *space, const char *event_id, const char *id,
                                  uint64_t version, int64_t seconds);
struct ng_entry journal_memory(const char *space, const char *event_id, const char *content,
                               int64_t seconds);
/* The day of those times. */
extern const char *const journal_day;

void journal_collect_timeline(struct harness *harness, const char *space, const char *date,
                              const char *agent, uint32_t limit, struct collected *ret);
void collected_done(struct collected *collected);
void assert_str(struct ng_str text, const char *want);

#endif
