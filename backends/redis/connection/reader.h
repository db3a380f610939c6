/* SPDX-License-Identifier: MIT */
/* reader.h - the reply reader of hiredis with limits on its memory. */
#ifndef NOTEGATE_REDIS_READER_H
#define NOTEGATE_REDIS_READER_H

#include <hiredis.h>
#include <stdbool.h>

/* Elements of one array: hiredis allocates as many as the reply announces. */
#define READER_ELEMENTS_MAX (4 * 1024 * 1024)

/* Must not be moved while it is open. */
struct reader {
    redisReader *redis;
    redisReplyObjectFunctions functions;
    void *(*make_array)(const redisReadTask *task, int elements);
};

/* false: out of memory. */
bool reader_open(struct reader *reader);
void reader_close(struct reader *reader);

#endif
