/* SPDX-License-Identifier: MIT */
/* query.h - a recall as a RediSearch query; nothing a caller writes is interpreted as
 * syntax. */
#ifndef NOTEGATE_REDIS_QUERY_H
#define NOTEGATE_REDIS_QUERY_H

#include <notegate/journal.h>

#include "core/base/buf.h"

#include "../shared/words.h"

/* Bytes of a query. */
#define QUERY_BYTES_MAX ((size_t)16 * 1024 * 1024)

/* Source and score in the hash of a reference, the same for all. A recall of memories leaves
 * out entries that have both. */
#define REFERENCE_SOURCE "notebook"
#define REFERENCE_SCORE "0.8"

/* wanted: of the text of the recall. NG_OK with the query; NG_ENOTFOUND if the text has no word
 * that can be searched for; else out->rc. */
int redis_query(const struct ng_recall *recall, const struct wanted *wanted, struct buf *out);
/* False: RediSearch cannot search for one of the phrases. */
bool redis_query_can(const struct wanted *wanted);
/* Adds a folded word as index and query have it, without signs. */
int redis_word_add(struct buf *out, struct ng_str word);

#endif
