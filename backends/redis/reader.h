/* SPDX-License-Identifier: MIT */
/* reader.h - hiredis's reader of replies, which allocates no more than a reply may have. */
#ifndef NOTEGATE_REDIS_READER_H
#define NOTEGATE_REDIS_READER_H

#include <hiredis.h>
#include <stdbool.h>

/* Elements of one array: hiredis makes room for as many as are announced. */
#define READER_ELEMENTS_MAX (4 * 1024 * 1024)

/* Must not move while it is open. */
struct reader {
    redisReader *redis;
    redisReplyObjectFunctions functions;
    void *(*make_array)(const redisReadTask *task, int elements);
};

/* false: out of memory. */
bool reader_open(struct reader *reader);
void reader_close(struct reader *reader);

#endif
