/* SPDX-License-Identifier: MIT */
/* query.h - a recall as a query of RediSearch; nothing a caller writes is syntax in it. */
#ifndef NOTEGATE_REDIS_QUERY_H
#define NOTEGATE_REDIS_QUERY_H

#include <notegate/journal.h>

/* Words of one recall that are looked for. */
#define QUERY_WORDS_MAX 64

/* Where it is written. More than `size` bytes: `full`. */
struct query_out {
    char *data;
    size_t len, size;
    bool full;
};

/* Bytes that are surely enough for redis_query(). */
size_t redis_query_size(const struct ng_recall *recall);
/* NG_OK with the query; NG_ENOTFOUND: the text has no word that could be found. */
int redis_query(const struct ng_recall *recall, struct query_out *out);

/* The next word of `text` from *at on: letters, digits, _ and all that is not ASCII; len 0:
 * there is none. */
struct ng_str redis_word(struct ng_str text, size_t *at);

#endif
