/* SPDX-License-Identifier: MIT */
/* str.c - helpers over struct ng_str. */
#include "str.h"

#define STR_DISTANCE_MAX 64

/* Length of the valid character at `at`, 0 if it is not one. Table 3-7 of the Unicode standard.
 */
static size_t str_utf8_step(const unsigned char *at, size_t left)
{
    unsigned char c = at[0];
    if (c < 0x80) {
        return 1;
    }
    size_t len = c >= 0xf0 ? 4 : c >= 0xe0 ? 3 : 2;
    if (c < 0xc2 || c > 0xf4 || len > left) {
        return 0;
    }
    unsigned char low = c == 0xe0 ? 0xa0 : c == 0xf0 ? 0x90 : 0x80;
    unsigned char high = c == 0xed ? 0x9f : c == 0xf4 ? 0x8f : 0xbf;
    if (at[1] < low || at[1] > high) {
        return 0;
    }
    for (size_t i = 2; i < len; i++) {
        if ((at[i] & 0xc0) != 0x80) {
            return 0;
        }
    }
    return len;
}

bool str_utf8_valid(struct ng_str text)
{
    const unsigned char *at = (const unsigned char *)text.data;
    size_t i = 0;
    while (i < text.len) {
        uint64_t word;
        if (text.len - i >= sizeof(word)) {
            memcpy(&word, at + i, sizeof(word));
            if ((word & UINT64_C(0x8080808080808080)) == 0) {
                i += sizeof(word);
                continue;
            }
        }
        size_t step = str_utf8_step(at + i, text.len - i);
        if (step == 0) {
            return false;
        }
        i += step;
    }
    return true;
}

size_t str_utf8_count(struct ng_str text)
{
    size_t count = 0;
    for (size_t i = 0; i < text.len; i++) {
        count += ((unsigned char)text.data[i] & 0xc0) != 0x80;
    }
    return count;
}

struct ng_str str_utf8_cut(struct ng_str text, size_t bytes)
{
    if (text.len <= bytes) {
        return text;
    }
    while (bytes > 0 && ((unsigned char)text.data[bytes] & 0xc0) == 0x80) {
        bytes--;
    }
    return str_make(text.data, bytes);
}

struct ng_str str_trim(struct ng_str text)
{
    while (text.len > 0 && (text.data[0] == ' ' || text.data[0] == '\t')) {
        text.data++;
        text.len--;
    }
    while (text.len > 0 &&
           (text.data[text.len - 1] == ' ' || text.data[text.len - 1] == '\t')) {
        text.len--;
    }
    return text;
}

int str_compare(struct ng_str a, struct ng_str b)
{
    size_t len = a.len < b.len ? a.len : b.len;
    int order = len == 0 ? 0 : memcmp(a.data, b.data, len);
    return order != 0 ? order : (a.len > b.len) - (a.len < b.len);
}

static uint64_t str_mix(uint64_t hash, uint64_t word)
{
    hash ^= word * UINT64_C(0x9e3779b97f4a7c15);
    hash = (hash << 27) | (hash >> 37);
    return hash * UINT64_C(0xbf58476d1ce4e5b9);
}

uint64_t str_hash(struct ng_str text)
{
    /* Seeded by where the program was mapped, so that callers cannot aim at one bucket. */
    uint64_t hash = (uint64_t)(uintptr_t)&str_mix ^ (text.len * UINT64_C(0x94d049bb133111eb));
    const char *at = text.data;
    size_t left = text.len;
    while (left > 0) {
        uint64_t word = 0;
        size_t len = left < sizeof(word) ? left : sizeof(word);
        memcpy(&word, at, len);
        hash = str_mix(hash, word);
        at += len;
        left -= len;
    }
    return hash ^ (hash >> 31);
}

bool str_in_words(struct ng_str word, const char *words)
{
    if (words == NULL || word.len == 0) {
        return false;
    }
    const char *at = words;
    while (*at != '\0') {
        size_t len = strcspn(at, " ");
        if (len == word.len && memcmp(at, word.data, len) == 0) {
            return true;
        }
        at += len;
        at += strspn(at, " ");
    }
    return false;
}

static char str_lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c + 32) : c;
}

static bool str_same_letter(char a, char b)
{
    return str_lower(a) == str_lower(b);
}

size_t str_distance(struct ng_str a, struct ng_str b, size_t most)
{
    size_t rows[3][STR_DISTANCE_MAX + 1]; /* of the last three letters of `a` */
    if (a.len > STR_DISTANCE_MAX || b.len > STR_DISTANCE_MAX) {
        return SIZE_MAX;
    }
    for (size_t j = 0; j <= b.len; j++) {
        rows[0][j] = j;
    }
    for (size_t i = 1; i <= a.len; i++) {
        const size_t *above = rows[(i - 1) % 3];
        size_t *row = rows[i % 3];
        row[0] = i;
        for (size_t j = 1; j <= b.len; j++) {
            size_t best =
                above[j - 1] + (str_same_letter(a.data[i - 1], b.data[j - 1]) ? 0 : 1);
            best = above[j] + 1 < best ? above[j] + 1 : best;
            best = row[j - 1] + 1 < best ? row[j - 1] + 1 : best;
            if (i > 1 && j > 1 && str_same_letter(a.data[i - 1], b.data[j - 2]) &&
                str_same_letter(a.data[i - 2], b.data[j - 1])) {
                size_t swapped = rows[(i - 2) % 3][j - 2] + 1;
                best = swapped < best ? swapped : best;
            }
            row[j] = best;
        }
    }
    size_t distance = rows[a.len % 3][b.len];
    return distance <= most ? distance : SIZE_MAX;
}
