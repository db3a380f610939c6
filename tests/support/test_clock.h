/* SPDX-License-Identifier: MIT */
/* test_clock.h - a program whose clocks a test moves: the time and the uptime, for the gateway
 * and its modules. CMakeLists.txt names the programs. Monotonic clocks stay as they are. */
#ifndef NOTEGATE_TEST_CLOCK_H
#define NOTEGATE_TEST_CLOCK_H

#include <stdint.h>

#define TEST_CLOCK_HOUR_MS (INT64_C(60) * 60 * 1000)
#define TEST_CLOCK_DAY_MS (24 * TEST_CLOCK_HOUR_MS)

/* The clocks are so far ahead of the system's; 0: no longer. */
void test_clock_ahead(int64_t time_ms, int64_t uptime_ms);
/* So much time goes by. */
void test_clock_pass(int64_t ms);
/* A day (UTC) begins: what a test does next happens on that day. */
void test_clock_begin_day(void);

#endif
