/* SPDX-License-Identifier: MIT */
/* keys_table.h - what the files of the keys share, and their tests. */
#ifndef NOTEGATE_CORE_KEYS_TABLE_H
#define NOTEGATE_CORE_KEYS_TABLE_H

#include "keys.h"

/* Longest wait that a caller over its rate is told. */
#define KEY_RETRY_MAX_S 3600

bool key_live_at(const struct key *key, int64_t now_ms);
/* A full bucket. */
void key_fill(struct key *key, int64_t now_ns);
/* key_take() at a time of CLOCK_MONOTONIC. */
bool key_take_at(struct key *key, int64_t now_ns, int *ret_retry_s);

#endif
