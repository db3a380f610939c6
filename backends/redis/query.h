/* SPDX-License-Identifier: MIT */
/* query.h - a recall as a RediSearch query; nothing a caller writes is interpreted as
 * syntax. */
#ifndef NOTEGATE_REDIS_QUERY_H
#define NOTEGATE_REDIS_QUERY_H

#include <notegate/journal.h>

/* Words of one recall that are searched for. */
#define QUERY_WORDS_MAX 64

/* The output buffer. `full` is set when more than `size` bytes are written. */
struct query_out {
    char *data;
    size_t len, size;
    bool full;
};

/* Upper bound of the bytes that redis_query() writes. */
size_t redis_query_size(const struct ng_recall *recall);
/* NG_OK with the query; NG_ENOTFOUND if the text has no word that can be searched for. */
int redis_query(const struct ng_recall *recall, struct query_out *out);

/* The next word of `text` from *at on: letters, digits, _ and all non-ASCII characters. len 0
 * at the end. */
struct ng_str redis_word(struct ng_str text, size_t *at);

#endif
