/* SPDX-License-Identifier: MIT */
/* test_clock.h - a program whose clocks a test moves, for the gateway and its modules.
 * CMakeLists.txt names the programs: each has a clock_gettime() of its own, which adds to the
 * system's clocks. Timed waits are the kernel's and stay as they are. Thread-safe. */
#ifndef NOTEGATE_TEST_CLOCK_H
#define NOTEGATE_TEST_CLOCK_H

#include <stdint.h>
#include <time.h>

#define TEST_CLOCK_HOUR_MS (INT64_C(60) * 60 * 1000)
#define TEST_CLOCK_DAY_MS (24 * TEST_CLOCK_HOUR_MS)

/* From now on this clock is so far ahead of the system's. */
void test_clock_set_ahead(clockid_t id, int64_t ms);
/* So much time passes, by the time of day and by the uptime. */
void test_clock_pass(int64_t ms);
/* A day (UTC) begins: what a test does next happens on that day. */
void test_clock_begin_day(void);
/* From now on this clock stands still, and from that reading on it is `ms` later: what ends at
 * a deadline ends at a known step, on any machine. 0: it goes on. */
void test_clock_jump_at(clockid_t id, unsigned reading, int64_t ms);
/* How often it was read since. */
unsigned test_clock_readings(clockid_t id);
/* All clocks are the system's again. */
void test_clock_reset(void);

#endif
