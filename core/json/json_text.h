/* SPDX-License-Identifier: MIT */
/* json_text.h - escapes of lone surrogates. JSON's grammar allows them, and serializers write
 * them for texts that were cut; UTF-8 has no such characters. */
#ifndef NOTEGATE_CORE_JSON_TEXT_H
#define NOTEGATE_CORE_JSON_TEXT_H

#include <stddef.h>

/* Bytes of a \u escape. */
#define JSON_ESCAPE_LEN ((size_t)6)

/* The offset of the first escape of half a surrogate pair, or `end`. */
size_t json_find_lone_surrogate(const char *text, size_t at, size_t end);
/* Makes them escapes of U+FFFD, in place. */
void json_replace_lone_surrogates(char *text, size_t len);

#endif
