/* SPDX-License-Identifier: MIT */
/* entry_time.c - times in the answers and arguments of the tools. */
#include "core/base/text/rfc3339.h"
#include "entry.h"

struct ng_str entry_time(struct ng_call *call, int64_t ms)
{
    char text[RFC3339_SIZE];
    rfc3339_write(ms, RFC3339_MS, text);
    return call->host->format(call, "%s", text);
}

bool entry_time_read(struct ng_str text, int64_t *ret_ms)
{
    struct rfc3339 time;
    if (!rfc3339_read(text, &time)) {
        return false;
    }
    *ret_ms = rfc3339_local_ms(&time);
    return true;
}
