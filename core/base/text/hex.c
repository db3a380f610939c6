/* SPDX-License-Identifier: MIT */
/* hex.c - bytes as hexadecimal digits and back. */
#include "hex.h"

void hex_write(const void *bytes, size_t len, char *out)
{
    static const char digits[] = "0123456789abcdef";
    const unsigned char *from = bytes;
    for (size_t i = 0; i < len; i++) {
        out[2 * i] = digits[from[i] >> 4];
        out[2 * i + 1] = digits[from[i] & 15];
    }
    out[2 * len] = '\0';
}

int hex_digit(char c)
{
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    if (c >= 'a' && c <= 'f') {
        return c - 'a' + 10;
    }
    if (c >= 'A' && c <= 'F') {
        return c - 'A' + 10;
    }
    return -1;
}

bool hex_read(struct ng_str digits, void *out)
{
    unsigned char *to = out;
    if (digits.len % 2 != 0) {
        return false;
    }
    for (size_t i = 0; i < digits.len; i += 2) {
        int high = hex_digit(digits.data[i]);
        int low = hex_digit(digits.data[i + 1]);
        if (high < 0 || low < 0) {
            return false;
        }
        to[i / 2] = (unsigned char)(high << 4 | low);
    }
    return true;
}
