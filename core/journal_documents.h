/* SPDX-License-Identifier: MIT */
/*
 * journal_documents.h - the journal kept in documents.
 *
 * One document per line of a day's list, per reference and per memory, all in quiet
 * collections. Each belongs to a generation of its space; the space's pointer document names
 * the one that is read. So a restore writes a new generation beside the present one and becomes
 * true in one step, by moving the pointer.
 */
#ifndef NOTEGATE_CORE_JOURNAL_DOCUMENTS_H
#define NOTEGATE_CORE_JOURNAL_DOCUMENTS_H

#include "notegate/journal.h"
#include "store.h"
#include "zone.h"

struct journal_documents;

/* Declares the collections. The store must outlive it; zone is lent for good. */
int journal_documents_open(struct call *call, struct store *store, const struct zone *zone,
                           struct journal_documents **ret);
void journal_documents_close(struct journal_documents *journal);
/* Its functions; the handle is the struct journal_documents. */
const struct ng_journal *journal_documents_vtable(void);

#endif
