/* SPDX-License-Identifier: MIT */
/* event_copy.h - an event with its texts in one piece of memory: for events that outlive the
 * callback that they were lent to. */
#ifndef NOTEGATE_CORE_EVENT_COPY_H
#define NOTEGATE_CORE_EVENT_COPY_H

#include "notegate/documents.h"

/* Bytes of its texts; each is bounded by the store. */
size_t event_texts(const struct ng_event *event);
/* `texts` has room for event_texts(). */
void event_copy(const struct ng_event *from, char *texts, struct ng_event *to);

#endif
