/* SPDX-License-Identifier: MIT */
/* text_form.c - normal forms of texts: NFC, case folding, slugs, words; and globs over paths.
 * The only user of libutf8proc here. */
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <utf8proc.h>

#include "core/base/minmax.h"
#include "core/base/text/stem.h"
#include "text.h"

bool notes_is_ascii(struct ng_str text)
{
    for (size_t i = 0; i < text.len; i++) {
        if ((unsigned char)text.data[i] >= 0x80) {
            return false;
        }
    }
    return true;
}

static struct ng_str map(struct arena *arena, struct ng_str text, unsigned options)
{
    utf8proc_uint8_t *out = NULL;
    utf8proc_ssize_t len =
        utf8proc_map((const utf8proc_uint8_t *)text.data, (utf8proc_ssize_t)text.len, &out,
                     (utf8proc_option_t)options);
    if (len < 0) {
        free(out);
        /* Text that is not valid UTF-8 stays as it is. */
        if (len != UTF8PROC_ERROR_NOMEM) {
            return text;
        }
        return str_make(NULL, 0);
    }
    struct ng_str copy = arena_copy(arena, str_make((const char *)out, (size_t)len));
    free(out);
    return copy;
}

struct ng_str notes_nfc(struct arena *arena, struct ng_str text)
{
    if (text.data == NULL || notes_is_ascii(text)) {
        return text;
    }
    return map(arena, text, UTF8PROC_STABLE | UTF8PROC_COMPOSE);
}

struct ng_str notes_fold(struct arena *arena, struct ng_str text)
{
    if (text.data == NULL) {
        return text;
    }
    if (!notes_is_ascii(text)) {
        return map(arena, text, UTF8PROC_STABLE | UTF8PROC_COMPOSE | UTF8PROC_CASEFOLD);
    }
    char *folded = arena_zalloc(arena, text.len + 1);
    for (size_t i = 0; folded != NULL && i < text.len; i++) {
        folded[i] = str_lower(text.data[i]);
    }
    return str_make(folded, folded != NULL ? text.len : 0);
}

bool notes_is_word(int32_t character)
{
    if (character < 0x80) {
        return notes_is_alpha((char)character) || notes_is_digit((char)character) ||
               character == '_';
    }
    utf8proc_category_t category = utf8proc_category(character);
    return (category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_NO);
}

static bool is_white(int32_t c)
{
    if (c < 0x80) {
        return notes_is_space((char)c);
    }
    utf8proc_category_t category = utf8proc_category(c);
    return category >= UTF8PROC_CATEGORY_ZS && category <= UTF8PROC_CATEGORY_ZP;
}

struct ng_str notes_slug(struct arena *arena, struct ng_str title)
{
    struct ng_str text = notes_nfc(arena, title);
    size_t size = 0;
    if (text.len <= SIZE_MAX / 4) {
        size = text.len * 2 + 4;
    }
    char *slug = text.data == NULL || size == 0 ? NULL : arena_zalloc(arena, size);
    size_t len = 0;
    bool dash = false;
    if (slug == NULL) {
        return str_make(NULL, 0);
    }
    for (size_t at = 0; at < text.len;) {
        int32_t c = notes_next(text, &at);
        if (!notes_is_word(c) || c == '_') {
            dash = len > 0;
            continue;
        }
        char bytes[4];
        size_t count = utf8_encode((uint32_t)utf8proc_tolower(c), bytes);
        if (len + count + dash > NOTES_SLUG_MAX) {
            break;
        }
        if (dash) {
            slug[len++] = '-';
            dash = false;
        }
        memcpy(slug + len, bytes, count);
        len += count;
    }
    return notes_nfc(arena, str_make(slug, len));
}

/* Characters of the words of the index: without '_', which joins words in names of programs. */
static bool is_word_part(int32_t c)
{
    if (c < 0x80) {
        return notes_is_digit((char)c) || notes_is_alpha((char)c);
    }
    switch (utf8proc_category(c)) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_NO:
    case UTF8PROC_CATEGORY_CO:
        return true;
    default:
        return false;
    }
}

bool notes_word_next(struct ng_str text, size_t *at, struct ng_str *ret_word,
                     size_t *ret_letters)
{
    size_t begin = *at;
    size_t letters = 0;
    while (*at < text.len) {
        size_t here = *at;
        if (is_word_part(notes_next(text, at))) {
            if (letters++ == 0) {
                begin = here;
            }
        } else if (letters > 0) {
            *ret_word = str_make(text.data + begin, here - begin);
            *ret_letters = letters;
            return true;
        }
    }
    *ret_word = str_make(text.data + begin, *at - begin);
    *ret_letters = letters;
    return letters > 0;
}

struct ng_str notes_stem(struct ng_str word, char out[NOTES_STEM_BYTES_MAX])
{
    if (word.len == 0 || word.len > NOTES_STEM_BYTES_MAX) {
        return word;
    }
    memcpy(out, word.data, word.len);
    return str_make(out, word_stem(out, word.len));
}

size_t notes_words(struct ng_str text)
{
    size_t words = 0;
    bool counted = false;
    for (size_t at = 0; at < text.len;) {
        int32_t c = notes_next(text, &at);
        if (is_white(c)) {
            counted = false;
        } else if (!counted && notes_is_word(c) && c != '_') {
            counted = true;
            words++;
        }
    }
    return words;
}

/* ---- globs */

struct glob {
    struct ng_str pattern, path;
};

/* The set at pattern[*p], which is '['; *p moves behind it. false: it is not a set, and '['
 * matches itself. */
static bool set_match(struct ng_str pattern, size_t *p, int32_t c, bool *ret_in)
{
    size_t at = *p + 1;
    bool inverted = at < pattern.len && (pattern.data[at] == '!' || pattern.data[at] == '^');
    bool in = false;
    at += inverted;
    for (size_t first = at; at < pattern.len;) {
        if (pattern.data[at] == ']' && at > first) {
            *p = at + 1;
            *ret_in = in != inverted && c != '/';
            return true;
        }
        int32_t low = notes_next(pattern, &at);
        int32_t high = low;
        if (at + 1 < pattern.len && pattern.data[at] == '-' && pattern.data[at + 1] != ']') {
            at++;
            high = notes_next(pattern, &at);
        }
        in = in || (c >= low && c <= high);
    }
    return false;
}

/* Matches one character of the pattern other than a star against one of the path; both advance.
 */
static bool glob_step(const struct glob *glob, size_t *p, size_t *at)
{
    struct ng_str pattern = glob->pattern;
    if (*p >= pattern.len || *at >= glob->path.len) {
        return false;
    }
    int32_t c = notes_next(glob->path, at);
    bool in = false;
    if (pattern.data[*p] == '?') {
        (*p)++;
        return c != '/';
    }
    if (pattern.data[*p] == '[' && set_match(pattern, p, c, &in)) {
        return in;
    }
    if (pattern.data[*p] == '\\' && *p + 1 < pattern.len) {
        (*p)++;
    }
    return notes_next(pattern, p) == c;
}

/* Two places to backtrack to, the last '*' and the last '**', are enough: the part before a
 * later '**' has matched at the earliest place. */
static bool glob_match(struct ng_str pattern, struct ng_str path)
{
    const struct glob glob = {pattern, path};
    size_t p = 0;
    size_t at = 0;
    size_t star = SIZE_MAX, star_at = 0;
    size_t deep = SIZE_MAX, deep_at = 0;
    bool folders = false; /* the '**' is "**" + "/" at the start of a name */
    for (;;) {
        if (p == pattern.len && at == path.len) {
            return true;
        }
        if (p + 1 < pattern.len && pattern.data[p] == '*' && pattern.data[p + 1] == '*') {
            bool begins = p == 0 || pattern.data[p - 1] == '/';
            p += 2;
            folders = begins && p < pattern.len && pattern.data[p] == '/';
            p += folders;
            deep = p;
            deep_at = at;
            star = SIZE_MAX;
            continue;
        }
        if (p < pattern.len && pattern.data[p] == '*') {
            star = ++p;
            star_at = at;
            continue;
        }
        if (glob_step(&glob, &p, &at)) {
            continue;
        }
        if (star != SIZE_MAX && star_at < path.len && path.data[star_at] != '/') {
            (void)notes_next(path, &star_at);
            at = star_at;
            p = star;
            continue;
        }
        if (deep == SIZE_MAX || deep_at >= path.len) {
            return false;
        }
        do {
            (void)notes_next(path, &deep_at);
        } while (folders && deep_at < path.len && path.data[deep_at - 1] != '/');
        if (folders && deep_at >= path.len) {
            return false;
        }
        star = SIZE_MAX;
        at = deep_at;
        p = deep;
    }
}

/* ---- {a,b} */

struct group {
    size_t open, close; /* of the braces */
};

/* The first pair of braces with a comma; braces without one are characters. */
static bool find_group(struct ng_str pattern, struct group *ret)
{
    for (size_t open = 0; open < pattern.len; open++) {
        size_t depth = 0;
        bool comma = false;
        if (pattern.data[open] == '\\') {
            open++;
            continue;
        }
        for (size_t i = open; pattern.data[open] == '{' && i < pattern.len; i++) {
            char c = pattern.data[i];
            i += c == '\\';
            depth += c == '{';
            comma = comma || (c == ',' && depth == 1);
            if (c == '}' && --depth == 0) {
                *ret = (struct group){open, i};
                break;
            }
        }
        if (comma && depth == 0 && ret->open == open) {
            return true;
        }
    }
    return false;
}

/* The end of the alternative that begins at `from`. */
static size_t end_of_way(struct ng_str pattern, size_t from, size_t close)
{
    size_t depth = 0;
    size_t i = from;
    for (; i < close && (depth > 0 || pattern.data[i] != ','); i++) {
        char c = pattern.data[i];
        i += c == '\\';
        depth += c == '{';
        depth -= c == '}' && depth > 0;
    }
    return size_min(i, close);
}

static bool match_one(struct ng_str pattern, struct ng_str path)
{
    /* A name in .MD is a note too, and "*.md" matches all notes. */
    if (str_ends(pattern, "*.md") && path.len > 3 &&
        strncasecmp(path.data + path.len - 3, ".md", 3) == 0) {
        pattern.len -= 3;
        path.len -= 3;
    }
    return glob_match(pattern, path);
}

/* Tries the alternatives of a pattern until one matches or the limit is reached. */
static bool match_ways(struct ng_str pattern, struct ng_str path, size_t *ways)
{
    struct group group = {SIZE_MAX, 0};
    bool match = false;
    if (*ways > NOTES_GLOB_WAYS_MAX) {
        return false;
    }
    if (!find_group(pattern, &group)) {
        (*ways)++;
        return match_one(pattern, path);
    }
    for (size_t from = group.open + 1; !match && from <= group.close;) {
        size_t end = end_of_way(pattern, from, group.close);
        struct buf way;
        buf_init(&way, pattern.len + 1);
        buf_add_str(&way, str_make(pattern.data, group.open));
        buf_add_str(&way, str_make(pattern.data + from, end - from));
        buf_add_str(&way,
                    str_make(pattern.data + group.close + 1, pattern.len - group.close - 1));
        match = way.rc == NG_OK && match_ways(notes_buf_str(&way), path, ways);
        buf_done(&way);
        from = end + 1;
    }
    return match;
}

bool notes_glob(struct ng_str pattern, struct ng_str path)
{
    size_t ways = 0;
    return pattern.len <= NOTES_GLOB_BYTES_MAX && match_ways(pattern, path, &ways);
}

bool notes_glob_is_wide(struct ng_str pattern)
{
    size_t ways = 0;
    return pattern.len > NOTES_GLOB_BYTES_MAX ||
           (!match_ways(pattern, str_make("", 0), &ways) && ways > NOTES_GLOB_WAYS_MAX);
}

bool notes_glob_leaves(struct ng_str pattern)
{
    for (size_t at = 0; at + 1 < pattern.len; at++) {
        if (pattern.data[at] == '.' && pattern.data[at + 1] == '.' &&
            (at == 0 || pattern.data[at - 1] == '/') &&
            (at + 2 == pattern.len || pattern.data[at + 2] == '/')) {
            return true;
        }
    }
    return str_begins(pattern, "/");
}
