/* SPDX-License-Identifier: MIT */
/*
 * audit_docs.h - which changes of documents have entries, by document and revision: for stores
 * that number their changes after the calls have ended, so that entries lack the numbers.
 *
 * An entry that does not tell the id (a redacted name), the revision (the first key) or the
 * space for sure (several documents may be of several spaces) counts for the first change that
 * fits. Each document of an entry counts once.
 */
#ifndef NOTEGATE_CORE_AUDIT_DOCS_H
#define NOTEGATE_CORE_AUDIT_DOCS_H

#include "core/base/buf.h"
#include "notegate/documents.h"

/* Documents that are held in memory: 384 MiB of them. */
#define AUDIT_DOCS_MAX ((size_t)16 * 1024 * 1024)

struct audit_docs;

/* Those of the entries from this one on, in the log of a folder. NG_OK, or as
 * audit_reader_get(); NG_ETOOLARGE: more than AUDIT_DOCS_MAX. The sentence is in error. */
int audit_docs_read(const char *path, uint64_t from, struct audit_docs **ret,
                    struct buf *error);
/* Has this revision of the document an entry? If so, that one counts for no other change. */
bool audit_docs_take(struct audit_docs *docs, const struct ng_key *key, uint64_t revision);
/* NULL is a no-op. */
void audit_docs_free(struct audit_docs *docs);

#endif
