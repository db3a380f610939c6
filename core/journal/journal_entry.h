/* SPDX-License-Identifier: MIT */
/* journal_entry.h - makes entries of the journal from events; writes and reads them as JSON. */
#ifndef NOTEGATE_CORE_JOURNAL_ENTRY_H
#define NOTEGATE_CORE_JOURNAL_ENTRY_H

#include "core/call/call.h"
#include "notegate/journal.h"

/* Most tags of one entry; further ones are dropped. */
#define JOURNAL_TAGS_MAX 64

/* Writes the members of the entry, except its content, into an open object. */
void journal_entry_write(struct ng_writer *writer, const struct ng_entry *entry);
/* Reads such an object. Texts are borrowed from it; tags and data are in the arena. NG_EINVAL:
 * it is no entry. */
int journal_entry_read(struct arena *arena, const struct ng_value *body, struct ng_str space,
                       struct ng_entry *ret);
/* Copies texts into the arena; absent ones stay absent. False: out of memory. */
bool journal_copy_texts(struct arena *arena, struct ng_str *const *texts, size_t count);
/* The id of the entry of an event that names none. {NULL, 0}: out of memory. */
struct ng_str journal_event_id(struct arena *arena, const struct ng_event *event);
/* Makes the entry of an event (see journal.h). Texts are copied into the arena, which keeps
 * nothing else. Data that do not parse, or are too long for an entry, are left out.
 * NG_EINTERNAL: out of memory. */
int journal_entry_of_event(struct arena *arena, const struct ng_event *event,
                           struct ng_entry *ret);
/* True if `entry` is later than (version, seq): a reference only moves forward. */
bool journal_entry_later(const struct ng_entry *entry, uint64_t version, uint64_t seq);

#endif
