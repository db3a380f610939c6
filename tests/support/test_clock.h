/* SPDX-License-Identifier: MIT */
/* test_clock.h - the clocks that the gateway and its modules read in this program. A program
 * that calls one of these functions has a clock_gettime() of its own, which adds to the
 * system's clock. Timed waits are the kernel's and stay as they are. Thread-safe. */
#ifndef NOTEGATE_TEST_CLOCK_H
#define NOTEGATE_TEST_CLOCK_H

#include <stdint.h>
#include <time.h>

#define HOUR_MS (INT64_C(60) * 60 * 1000)
#define DAY_MS (24 * HOUR_MS)

/* From now on this clock is `ms` ahead of the system's; 0: as the system's. */
void test_clock_set_ahead(clockid_t id, int64_t ms);
/* From now on this clock stands still, and from that reading on it is `ms` later: what ends at
 * a deadline ends at a known step, on any machine. 0: it goes on. */
void test_clock_jump_at(clockid_t id, unsigned reading, int64_t ms);
/* How often it was read since. */
unsigned test_clock_readings(clockid_t id);
/* So much time passes: by the time of day and by the uptime. */
void test_clock_pass(int64_t ms);
/* Time passes until noon (UTC): a test that is about one day does not run over midnight. */
void test_clock_pass_to_noon(void);

#endif
