/* SPDX-License-Identifier: MIT */
/* journal_entry.h - entries of the journal: made from events, written as JSON, read from it. */
#ifndef NOTEGATE_CORE_JOURNAL_ENTRY_H
#define NOTEGATE_CORE_JOURNAL_ENTRY_H

#include "core/call/call.h"
#include "notegate/journal.h"

/* Tags of one entry; further ones are left out. */
#define JOURNAL_TAGS_MAX 64

/* Writes the entry's members (but not its content) into an open object. */
void journal_entry_write(struct ng_writer *writer, const struct ng_entry *entry);
/* The entry of such an object; texts are lent from it, tags and data lie in the arena.
 * NG_EINVAL: it is not one. */
int journal_entry_read(struct arena *arena, const struct ng_value *body, struct ng_str space,
                       struct ng_entry *ret);
/* The entry that an event stands for (see journal.h). Texts are copied into the arena. */
int journal_entry_of_event(struct arena *arena, const struct ng_event *event,
                           struct ng_entry *ret);
/* A reference only moves forward: is `entry` later than (version, seq)? */
bool journal_entry_later(const struct ng_entry *entry, uint64_t version, uint64_t seq);
/* At most `characters` characters of valid UTF-8. */
struct ng_str journal_cut(struct ng_str text, size_t characters);

#endif
