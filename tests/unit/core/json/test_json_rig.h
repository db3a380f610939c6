/* SPDX-License-Identifier: MIT */
/* test_json_rig.h - texts parsed for a case.
 */
#ifndef NOTEGATE_TEST_JSON_RIG_H
#define NOTEGATE_TEST_JSON_RIG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/json/json.h"

/* A text that must be JSON, as a value in the arena. */
const struct ng_value *parse(struct arena *arena, const char *text);
struct ng_str number(const char *digits);

#endif
