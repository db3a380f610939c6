/* SPDX-License-Identifier: MIT */
/* line_ends.h - line ends of a text that is edited. It keeps its own, line by line; callers
 * write LF. A caller's text with CR means exact bytes. The caller gives the room for results.
 */
#ifndef NOTEGATE_CORE_LINE_ENDS_H
#define NOTEGATE_CORE_LINE_ENDS_H

#include "notegate/abi.h"

bool line_ends_has_crlf(struct ng_str text);
/* True if the line at `at` ends in CRLF. A last line without an end follows the one before it.
 */
bool line_ends_is_crlf(struct ng_str text, size_t at);

/* Must `needle` be searched in a copy of `text` with LF for CRLF? It has several lines without
 * CR, and the text has CRLF. */
bool line_ends_differ(struct ng_str text, struct ng_str needle);
/* Writes `text` with LF for CRLF. out: room for text.len. Returns the length. */
size_t line_ends_to_lf(struct ng_str text, char *out);
/* The offset in `text` for an offset in the result of line_ends_to_lf(). */
size_t line_ends_from_lf(struct ng_str text, size_t at);

/* Writes `text` with the line ends of `like`, line by line. Further lines follow the last line
 * of `like`, or `crlf` if it has no lines. out: room for text.len and its number of lines.
 * Returns the length. */
size_t line_ends_follow(struct ng_str text, struct ng_str like, bool crlf, char *out);

#endif
