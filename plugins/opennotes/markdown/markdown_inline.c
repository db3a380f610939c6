/* SPDX-License-Identifier: MIT */
/* markdown_inline.c - extensions of CommonMark: wiki links, bare addresses, tags; and entities.
 */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "core/base/text/hex.h"
#include "markdown_parts.h"

#define ENTITY_MAX 40
#define TAG_MAX 500         /* bytes of an inline tag */
#define ENTITY_DIGITS_MAX 8 /* "&#x10FFFF;" and leading zeros */

/* ---- wiki links */

bool notes_wiki_at(struct ng_str text, size_t at, struct ng_str *ret_target,
                   struct ng_str *ret_text, size_t *ret_end)
{
    size_t begin = at + 2;
    size_t bar = SIZE_MAX;
    for (size_t i = begin; i + 1 < text.len && i - begin <= NOTES_WIKI_MAX; i++) {
        char c = text.data[i];
        if (c == '\n' || c == '\r' || c == '`' || (c == '[' && text.data[i + 1] == '[')) {
            return false;
        }
        if (c == '|' && bar == SIZE_MAX) {
            bar = i;
        }
        if (c == ']' && text.data[i + 1] == ']' && text.data[i - 1] != '\\') {
            size_t target_end = size_min(bar, i);
            /* In tables the bar is escaped. */
            if (bar < i && bar > begin && text.data[bar - 1] == '\\') {
                target_end--;
            }
            *ret_target = notes_trim(str_make(text.data + begin, target_end - begin));
            *ret_text = *ret_target;
            *ret_end = i + 2;
            if (bar < i) {
                struct ng_str label = notes_trim(str_make(text.data + bar + 1, i - bar - 1));
                if (label.len > 0) {
                    *ret_text = label;
                }
            }
            return ret_target->len > 0;
        }
    }
    return false;
}

bool notes_wiki_is_media(struct ng_str target)
{
    static const char *const endings[] = {"png",  "jpg",  "jpeg", "gif", "svg", "webp", "bmp",
                                          "avif", "mp3",  "wav",  "ogg", "m4a", "flac", "mp4",
                                          "mov",  "webm", "mkv",  "pdf", "tif", "tiff"};
    size_t part = notes_find_char(target, 0, '#');
    size_t dot = part;
    while (dot > 0 && target.data[dot - 1] != '.') {
        dot--;
    }
    for (size_t i = 0; dot > 0 && i < NG_COUNT(endings); i++) {
        if (part - dot == strlen(endings[i]) &&
            strncasecmp(target.data + dot, endings[i], part - dot) == 0) {
            return true;
        }
    }
    return false;
}

/* ---- bare addresses */

static bool is_end(char c)
{
    return (unsigned char)c <= ' ' || c == '<' || c == '>' || c == '"' || c == '`' ||
           c == '|' || c == 0x7f;
}

size_t notes_address_end(struct ng_str text, size_t at)
{
    size_t begin = at;
    if (text.len - at > 8 && strncasecmp(text.data + at, "https://", 8) == 0) {
        begin += 8;
    } else if (text.len - at > 7 && strncasecmp(text.data + at, "http://", 7) == 0) {
        begin += 7;
    } else {
        return at;
    }
    size_t end = begin;
    size_t open = 0;
    size_t closed = 0;
    while (end < text.len && !is_end(text.data[end]) && text.data[end] != '[' &&
           text.data[end] != ']') {
        open += text.data[end] == '(';
        closed += text.data[end] == ')';
        end++;
    }
    /* Punctuation at the end of a sentence is not part of the address, nor is a closing bracket
     * that was opened before it. */
    for (; end > begin; end--) {
        char c = text.data[end - 1];
        if (c == ')' && closed > open) {
            closed--;
        } else if (strchr("?!.,:;*_~'", c) == NULL || c == '\0') {
            break;
        }
    }
    if (end == begin) {
        return at;
    }
    return end;
}

/* ---- tags */

/* Letters, marks and digits of any alphabet, '_', '-', '/', and emoji. */
static bool is_tag_part(int32_t c)
{
    return c == '-' || c == '/' || notes_is_word(c) || c == 0x200d || c >= 0x1f000 ||
           (c >= 0x2600 && c <= 0x27bf);
}

size_t notes_inline_tag_end(struct ng_str text, size_t at)
{
    bool begins = at == 0 || memchr(" \t\r\n", text.data[at - 1], 4) != NULL;
    bool word = false;
    bool named = false; /* has a character other than digits */
    size_t end = at + 1;
    while (begins && end < text.len) {
        size_t next = end;
        int32_t c = notes_next(text, &next);
        if (!is_tag_part(c) || next - at > TAG_MAX) {
            break;
        }
        word = word || (c != '/' && c != '-');
        named = named || (c != '/' && !(c >= '0' && c <= '9'));
        end = next;
    }
    while (end > at && text.data[end - 1] == '/') {
        end--;
    }
    if (!word || !named) {
        return at;
    }
    return end;
}

/* ---- entities */

size_t notes_entity_end(struct ng_str text, size_t at)
{
    size_t end = at + 1;
    while (end < text.len && end - at < ENTITY_MAX && text.data[end] != ';') {
        char c = text.data[end];
        bool part = (c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'z') ||
                    (c == '#' && end == at + 1);
        if (!part) {
            return at;
        }
        end++;
    }
    if (end >= text.len || text.data[end] != ';' || end == at + 1) {
        return at;
    }
    return end + 1;
}

struct entity {
    const char *name;
    int32_t character;
};

/* Common entities; sorted by name. */
static const struct entity entities[] = {
    {"AMP", '&'},      {"Auml", 0xc4},    {"GT", '>'},        {"LT", '<'},
    {"Ouml", 0xd6},    {"QUOT", '"'},     {"Uuml", 0xdc},     {"aacute", 0xe1},
    {"agrave", 0xe0},  {"amp", '&'},      {"apos", '\''},     {"ast", '*'},
    {"auml", 0xe4},    {"bull", 0x2022},  {"ccedil", 0xe7},   {"cent", 0xa2},
    {"colon", ':'},    {"copy", 0xa9},    {"deg", 0xb0},      {"eacute", 0xe9},
    {"egrave", 0xe8},  {"emsp", 0x2003},  {"ensp", 0x2002},   {"euro", 0x20ac},
    {"excl", '!'},     {"frac12", 0xbd},  {"gt", '>'},        {"hellip", 0x2026},
    {"iacute", 0xed},  {"laquo", 0xab},   {"larr", 0x2190},   {"lbrack", '['},
    {"ldquo", 0x201c}, {"lowbar", '_'},   {"lpar", '('},      {"lsquo", 0x2018},
    {"lt", '<'},       {"mdash", 0x2014}, {"middot", 0xb7},   {"nbsp", 0xa0},
    {"ndash", 0x2013}, {"ntilde", 0xf1},  {"num", '#'},       {"oacute", 0xf3},
    {"ouml", 0xf6},    {"para", 0xb6},    {"percnt", '%'},    {"period", '.'},
    {"plus", '+'},     {"plusmn", 0xb1},  {"pound", 0xa3},    {"quot", '"'},
    {"raquo", 0xbb},   {"rarr", 0x2192},  {"rbrack", ']'},    {"rdquo", 0x201d},
    {"reg", 0xae},     {"rpar", ')'},     {"rsquo", 0x2019},  {"sect", 0xa7},
    {"sol", '/'},      {"szlig", 0xdf},   {"thinsp", 0x2009}, {"times", 0xd7},
    {"trade", 0x2122}, {"uacute", 0xfa},  {"uuml", 0xfc},     {"yen", 0xa5},
};

static int compare_entity(const void *key, const void *item)
{
    const struct ng_str *name = key;
    return str_compare(*name, ng_str_of(((const struct entity *)item)->name));
}

/* Of the digits in "&#...;"; -1: none. */
static int32_t number_of(struct ng_str digits)
{
    bool hex = digits.len > 0 && (digits.data[0] | 32) == 'x';
    int base = 10 + 6 * hex;
    uint32_t number = 0;
    if (digits.len == 0 || digits.len > ENTITY_DIGITS_MAX) {
        return -1;
    }
    for (size_t i = hex; i < digits.len; i++) {
        int digit = hex_digit(digits.data[i]);
        if (digit < 0 || digit >= base) {
            return -1;
        }
        number = number * (uint32_t)base + (uint32_t)digit;
    }
    if (number == 0 || number > 0x10ffff || (number >= 0xd800 && number <= 0xdfff)) {
        return 0xfffd;
    }
    return (int32_t)number;
}

void notes_entity_add(struct buf *buf, struct ng_str entity)
{
    int32_t character = -1;
    if (entity.len > 3 && entity.data[1] == '#') {
        character = number_of(str_make(entity.data + 2, entity.len - 3));
    } else if (entity.len > 2) {
        struct ng_str name = str_make(entity.data + 1, entity.len - 2);
        const struct entity *found =
            bsearch(&name, entities, NG_COUNT(entities), sizeof(entities[0]), compare_entity);
        if (found != NULL) {
            character = found->character;
        }
    }
    if (character < 0) {
        buf_add_str(buf, entity);
        return;
    }
    char out[4];
    buf_add_str(buf, str_make(out, utf8_encode((uint32_t)character, out)));
}
