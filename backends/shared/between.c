/* SPDX-License-Identifier: MIT */
/* between.c - the put of an imported revision. */
#include "bytes.h"
#include "core/base/merge/splice.h"

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
    ret->json_splice = splice_between(json_before, doc->json);
    ret->text_splice = splice_between(text_before, doc->text);
}
