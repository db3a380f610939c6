/* SPDX-License-Identifier: MIT */
/* between.c - the splice between two contents, and the put of an imported revision. */
#include "bytes.h"
#include "core/base/minmax.h"

void splice_between(struct ng_str before, struct ng_str after, struct ng_splice *ret)
{
    size_t most = size_min(before.len, after.len);
    size_t head = 0;
    while (head + 8 <= most && memcmp(before.data + head, after.data + head, 8) == 0) {
        head += 8;
    }
    while (head < most && before.data[head] == after.data[head]) {
        head++;
    }
    size_t tail = 0;
    while (tail < most - head &&
           before.data[before.len - tail - 1] == after.data[after.len - tail - 1]) {
        tail++;
    }
    ret->at = head;
    ret->removed = before.len - head - tail;
    ret->inserted =
        str_of(after.data != NULL ? after.data + head : "", after.len - head - tail);
}

void put_of_record(const struct ng_record *record, struct ng_str json_before,
                   struct ng_str text_before, struct ng_put *ret)
{
    const struct ng_doc *doc = record->doc;
    *ret = (struct ng_put){
        .size = sizeof(*ret),
        .key = doc->key,
        .base_revision = doc->revision - 1,
        .revision = doc->revision,
        .deleted = doc->deleted,
        .quiet = true, /* its event is a record of its own */
        .no_history = record->no_history,
        .json = doc->json,
        .text = doc->text,
        .fields = record->fields,
        .field_count = record->newest * record->field_count,
        .time_ms = doc->updated_ms,
        .created_ms = doc->created_ms,
        .created_seq = doc->created_seq,
        .agent = doc->author,
        .action = doc->action,
        .origin = doc->origin,
    };
    splice_between(json_before, doc->json, &ret->json_splice);
    splice_between(text_before, doc->text, &ret->text_splice);
}
