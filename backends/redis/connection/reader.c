/* SPDX-License-Identifier: MIT */
/* reader.c - limits the sizes a reply may announce. */
#include "reader.h"

#include <stddef.h>

static void *reader_array(const redisReadTask *task, int elements)
{
    struct reader *reader = task->privdata;
    if (elements > READER_ELEMENTS_MAX) {
        return NULL;
    }
    return reader->make_array(task, elements);
}

bool reader_open(struct reader *reader)
{
    reader->redis = redisReaderCreate();
    if (reader->redis == NULL) {
        return false;
    }
    reader->functions = *reader->redis->fn;
    reader->make_array = reader->functions.createArray;
    reader->functions.createArray = reader_array;
    reader->redis->fn = &reader->functions;
    reader->redis->privdata = reader;
    return true;
}

void reader_close(struct reader *reader)
{
    if (reader->redis != NULL) {
        redisReaderFree(reader->redis);
        reader->redis = NULL;
    }
}
