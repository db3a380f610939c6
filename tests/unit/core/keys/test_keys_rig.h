/* SPDX-License-Identifier: MIT */
/* test_keys_rig.h - keys made from text, and looks at a table of them.
 */
#ifndef NOTEGATE_TEST_KEYS_RIG_H
#define NOTEGATE_TEST_KEYS_RIG_H

#include "harness.h"

#include "core/keys/keys.h"

#define SECOND_NS INT64_C(1000000000)
/* The hash of a key, as its document has it. */
#define HEX "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"

extern const char *const plain[];
/* A key of this agent with the rights of a writer. */
struct key_spec spec_of(const char *agent);

#endif
