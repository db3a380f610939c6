/* SPDX-License-Identifier: MIT */
/* history_put.c - members that several answers have. */
#include <string.h>

#include "core/base/str.h"
#include "core/base/text/rfc3339.h"
#include "history.h"

void history_put_time(struct ng_writer *writer, const char *name, int64_t time_ms)
{
    char text[RFC3339_SIZE];
    rfc3339_write(time_ms, RFC3339_MS, text);
    json_member_cstring(writer, name, text);
}

void history_put_key(struct ng_writer *writer, const struct ng_key *key)
{
    json_member_string(writer, "collection", key->collection);
    json_member_string(writer, "id", key->id);
}

void history_put_change(struct ng_writer *writer, const struct history_change *change)
{
    json_member_int(writer, "seq", (int64_t)change->seq);
    history_put_time(writer, "time", change->time_ms);
    if (change->agent.len > 0) {
        json_member_string(writer, "agent", change->agent);
    }
    if (change->run.len > 0) {
        json_member_string(writer, "run", change->run);
    }
    json_member_string(writer, "tool", str_or(change->tool, ng_str_of("")));
}
