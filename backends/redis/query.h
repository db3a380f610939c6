/* SPDX-License-Identifier: MIT */
/* query.h - a recall as a RediSearch query; nothing a caller writes is interpreted as
 * syntax. */
#ifndef NOTEGATE_REDIS_QUERY_H
#define NOTEGATE_REDIS_QUERY_H

#include <notegate/journal.h>

#include "core/base/buf.h"

/* Words of one recall that are searched for. */
#define QUERY_WORDS_MAX 64
/* Bytes of a query. */
#define QUERY_BYTES_MAX ((size_t)16 * 1024 * 1024)

/* NG_OK with the query; NG_ENOTFOUND if the text has no word that can be searched for; else
 * out->rc. */
int redis_query(const struct ng_recall *recall, struct buf *out);

/* The next word of `text` from *at on: letters, digits, _ and all non-ASCII characters. len 0
 * at the end. */
struct ng_str redis_word(struct ng_str text, size_t *at);

#endif
