/* SPDX-License-Identifier: MIT */
/* audit_read.h - the entries of an audit log by their numbers, also while a gateway writes it.
 */
#ifndef NOTEGATE_CORE_AUDIT_READ_H
#define NOTEGATE_CORE_AUDIT_READ_H

#include "core/base/buf.h"

/* A gateway that goes on writing: the reader begins anew, so often at most. */
#define AUDIT_READ_TRIES 16

struct audit_reader;

/* Opens the log in a folder as it is now: what is added later is not seen. NG_OK; NG_ENOTFOUND:
 * there is none; NG_EFAILED: it is damaged; NG_EUNAVAILABLE, NG_EINTERNAL. The sentence is in
 * error, but for NG_ENOTFOUND. */
int audit_reader_open(const char *path, struct audit_reader **ret, struct buf *error);
/* NULL is a no-op. */
void audit_reader_close(struct audit_reader *reader);

/* Entries that were ever added: they have the numbers below this. */
uint64_t audit_reader_size(const struct audit_reader *reader);

/* The first of them that was not pruned. */
uint64_t audit_reader_first(const struct audit_reader *reader);

/* One entry; its text is lent until the next call. As above; NG_ENOTFOUND: no such number. */
int audit_reader_get(struct audit_reader *reader, uint64_t number, struct ng_str *ret,
                     struct buf *error);

#endif
