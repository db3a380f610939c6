/* SPDX-License-Identifier: MIT */
/*
 * whoami.h - the caller's own facts: rights, spaces, roots, folders of notes. Nothing of a
 * space, root or plugin that the caller may not use is part of them.
 *
 * Both functions answer from memory, on any thread that has the call to itself: of a transport,
 * before or after its run, or of a command. They leave the call as it was.
 */
#ifndef NOTEGATE_API_WHOAMI_H
#define NOTEGATE_API_WHOAMI_H

#include "core/call/call.h"

/* Bytes of the facts as text. */
#define WHOAMI_TEXT_MAX 800

/* Adds one JSON object: the answer of GET /v1/me. NG_EINTERNAL: out of memory. */
int whoami_print(struct call *call, struct buf *out);
/* Adds an empty line and the facts as plain text for a model, at most WHOAMI_TEXT_MAX bytes: a
 * list that does not fit ends after a whole item, with the count of the rest. NG_EINTERNAL: out
 * of memory. */
int whoami_print_text(struct call *call, struct buf *out);

#endif
