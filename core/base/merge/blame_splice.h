/* SPDX-License-Identifier: MIT */
/* blame_splice.h - splices of a text in chunks: in the one form that two texts have, and
 * checked for UTF-8. */
#ifndef NOTEGATE_CORE_BLAME_SPLICE_H
#define NOTEGATE_CORE_BLAME_SPLICE_H

#include "chunks.h"
#include "notegate/backend.h"

/* The bytes of a text before `end`, in chunks that may have more. */
struct blame_bytes {
    const struct chunks *chunks;
    uint64_t end;
};

/*
 * Makes the splice that of splice_between(): it begins at the first byte that differs, which is
 * the last possible one, and ends at the last. It fits the text. *ret_owned: what `inserted`
 * points into then, to be freed, or NULL. NG_OK or NG_EINTERNAL (out of memory).
 */
int blame_splice_narrow(const struct blame_bytes *text, struct ng_splice *splice,
                        char **ret_owned);

/* The text is UTF-8, and the splice fits it. NG_OK: so is the next one. NG_EINVAL: it is not.
 * NG_EINTERNAL: out of memory. It looks at the splice alone. */
int blame_splice_utf8(const struct blame_bytes *text, const struct ng_splice *splice);

#endif
