/* SPDX-License-Identifier: MIT */
/* print_keys.h - keys as text for a person at the command line. */
#ifndef NOTEGATE_API_PRINT_KEYS_H
#define NOTEGATE_API_PRINT_KEYS_H

#include "api/client/command_line.h"

/* The rights of a key that was made, on stderr: its text goes to stdout. key: as of POST
 * /v1/keys. */
void print_new_key(const struct ng_value *key);
/* list: the keys as of GET /v1/keys. */
void print_key_table(const struct ng_value *list);

#endif
