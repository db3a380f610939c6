/* SPDX-License-Identifier: MIT */
/* hex.h - bytes as hexadecimal digits and back. */
#ifndef NOTEGATE_CORE_HEX_H
#define NOTEGATE_CORE_HEX_H

#include "notegate/abi.h"

/* Writes 2 * len lower-case digits and a NUL. */
void hex_write(const void *bytes, size_t len, char *out);
/* 0 to 15, of lower or upper case; -1: not a hexadecimal digit. */
int hex_digit(char c);
/* Fills out (digits.len / 2 bytes). false: an odd count, or a character that is no digit. */
bool hex_read(struct ng_str digits, void *out);

#endif
