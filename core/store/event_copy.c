/* SPDX-License-Identifier: MIT */
/* event_copy.c - an event with its texts in one piece of memory. */
#include "event_copy.h"

#include "core/base/str.h"

size_t event_texts(const struct ng_event *event)
{
    const struct ng_key *key = &event->key;
    const struct ng_origin *origin = &event->origin;
    return key->collection.len + key->space.len + key->id.len + event->agent.len +
           event->tool.len + event->action.len + event->data.len + origin->run_id.len +
           origin->key_id.len + origin->request_id.len;
}

void event_copy(const struct ng_event *from, char *texts, struct ng_event *to)
{
    char *at = texts;
    *to = *from;
    to->size = sizeof(*to);
    to->key.collection = str_move_in(&at, from->key.collection);
    to->key.space = str_move_in(&at, from->key.space);
    to->key.id = str_move_in(&at, from->key.id);
    to->agent = str_move_in(&at, from->agent);
    to->tool = str_move_in(&at, from->tool);
    to->action = str_move_in(&at, from->action);
    to->data = str_move_in(&at, from->data);
    to->origin.run_id = str_move_in(&at, from->origin.run_id);
    to->origin.key_id = str_move_in(&at, from->origin.key_id);
    to->origin.request_id = str_move_in(&at, from->origin.request_id);
}
