/* SPDX-License-Identifier: MIT */
/* audit_list.h - the entries of an audit log that a filter wants, also while a gateway writes.
 */
#ifndef NOTEGATE_API_AUDIT_LIST_H
#define NOTEGATE_API_AUDIT_LIST_H

#include "audit_filter.h"

#define AUDIT_LIST_DEFAULT 20
#define AUDIT_LIST_MAX 200
/* Entries that one page looks at. */
#define AUDIT_LIST_LOOKS ((uint64_t)50000)

/* NG_OK to go on. */
typedef int audit_list_fn(void *user, const struct audit_shown *shown);

struct audit_page {
    uint64_t before; /* in: only entries with numbers below; UINT64_MAX: all. out: where the
                        next page goes on; 0: there is none */
    uint64_t looks;  /* entries that it looks at, at most */
    size_t limit;
};

/* The newest first. NG_OK, fn's result; NG_ENOTFOUND: there is no log; else as
 * audit_reader_open(), with the sentence in error. */
int audit_list_page(const char *path, const struct audit_filter *filter,
                    struct audit_page *page, audit_list_fn *fn, void *user, struct buf *error);
/* All of them, the oldest first. As above. */
int audit_list_all(const char *path, const struct audit_filter *filter, audit_list_fn *fn,
                   void *user, struct buf *error);

#endif
