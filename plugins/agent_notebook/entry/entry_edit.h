/* SPDX-License-Identifier: MIT */
/* entry_edit.h - the next text of an entry: replaced, appended to, edited, or one section of it
 * replaced or appended to. */
#ifndef NOTEGATE_AGENT_NOTEBOOK_ENTRY_EDIT_H
#define NOTEGATE_AGENT_NOTEBOOK_ENTRY_EDIT_H

#include "entry.h"

/* Limit of edits in one call. */
#define ENTRY_EDITS_MAX 100

enum entry_edit_kind {
    ENTRY_KEEP,
    ENTRY_REPLACE,
    ENTRY_APPEND,
    ENTRY_EDITS,
    ENTRY_SECTION,
    ENTRY_SECTION_APPEND
};

/* The kind of change that the arguments ask for. More than one is INVALID_INPUT. */
int entry_edit_kind(struct ng_call *call, enum entry_edit_kind *ret);
/* Makes draft->text and gives it to the store; sets draft->words and same_headings. `present`
 * is the present text. */
int entry_edit(struct ng_call *call, enum entry_edit_kind kind, struct ng_str present,
               struct entry_draft *draft, struct ng_draft *next);

#endif
