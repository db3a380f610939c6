/* SPDX-License-Identifier: MIT */
/* index_tokens.h - the tokenizers of the full-text tables: `notes_grams` and `notes_words`. */
#ifndef NOTEGATE_OPENNOTES_INDEX_TOKENS_H
#define NOTEGATE_OPENNOTES_INDEX_TOKENS_H

#include <sqlite3.h>

/* Registers them; every connection to an index needs them. An SQLite code. */
int notes_tokens_register(sqlite3 *db);

#endif
