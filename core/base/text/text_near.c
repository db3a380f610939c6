/* SPDX-License-Identifier: MIT */
/* text_near.c - the nearest place of a text that does not occur. Both texts are folded to code
 * points, white space between others to one blank, and searched as Knuth, Morris and Pratt do:
 * one pass, and memory for the text that is looked for. */
#include "core/base/text/text_near.h"

#include <stdio.h>
#include <stdlib.h>
#include <utf8proc.h>

#include "core/base/arena.h"
#include "core/base/str.h"
#include "core/base/utf8.h"

#define NEAR_FOLDED_MAX 18 /* code points of one character; utf8proc's own limit */
#define NEAR_NAME_SIZE 64  /* of a character in a note */

/* ---- folding */

static bool is_white(uint32_t c)
{
    utf8proc_category_t category = utf8proc_category((utf8proc_int32_t)c);
    return (c >= '\t' && c <= '\r') || c == 0x85 || category == UTF8PROC_CATEGORY_ZS ||
           category == UTF8PROC_CATEGORY_ZL || category == UTF8PROC_CATEGORY_ZP;
}

/* Quotes and dashes as ASCII has them, others unchanged. */
static uint32_t fold_mark(uint32_t c)
{
    switch (c) {
    case '`':
    case 0xb4:   /* acute accent */
    case 0x2bc:  /* modifier letter apostrophe */
    case 0x2018: /* single quotes, primes, single angle quotes */
    case 0x2019:
    case 0x201a:
    case 0x201b:
    case 0x2032:
    case 0x2039:
    case 0x203a:
        return '\'';
    case 0xab: /* angle quotes, double quotes, double primes */
    case 0xbb:
    case 0x201c:
    case 0x201d:
    case 0x201e:
    case 0x201f:
    case 0x2033:
        return '"';
    case 0x2212: /* minus */
        return '-';
    default:
        break;
    }
    bool is_dash = utf8proc_category((utf8proc_int32_t)c) == UTF8PROC_CATEGORY_PD;
    return is_dash ? '-' : c;
}

/* The folded character at *at, which moves behind it: 0 code points for an invisible one. White
 * space is one blank. */
static size_t fold_next(struct ng_str text, size_t *at, utf8proc_int32_t out[NEAR_FOLDED_MAX])
{
    uint32_t c = utf8_next(text, at);
    int boundary = 0;
    out[0] = ' ';
    if (c < 0x80 && str_is_alpha((char)c)) {
        out[0] = (unsigned char)str_lower((char)c);
        return 1;
    }
    if (is_white(c)) {
        return 1;
    }
    out[0] = (utf8proc_int32_t)fold_mark(c);
    if (out[0] < 0x80) {
        return 1;
    }
    utf8proc_ssize_t len = utf8proc_decompose_char(
        (utf8proc_int32_t)c, out, NEAR_FOLDED_MAX,
        UTF8PROC_DECOMPOSE | UTF8PROC_COMPAT | UTF8PROC_CASEFOLD | UTF8PROC_IGNORE, &boundary);
    return len > 0 && len <= NEAR_FOLDED_MAX ? (size_t)len : 0;
}

/* ---- the search */

struct near {
    struct ng_str text, wanted; /* as they came */
    struct ng_str core;         /* `wanted` without the white space around it */
    utf8proc_int32_t *folded;   /* `core` */
    size_t *border;             /* of each beginning of it: Knuth, Morris, Pratt */
    size_t *from;               /* ring: where the last `count` folded code points begin */
    size_t count;
    size_t at; /* the first place in `text` */
    size_t lines[TEXT_NEAR_PLACES_MAX];
    size_t places;
};

static struct ng_str near_core(struct ng_str wanted)
{
    size_t from = 0;
    size_t to = 0;
    bool seen = false;
    for (size_t at = 0; at < wanted.len;) {
        size_t here = at;
        if (!is_white(utf8_next(wanted, &at))) {
            from = seen ? from : here;
            to = at;
            seen = true;
        }
    }
    return str_make(wanted.data + from, to - from);
}

/* Folds `core`. False: it is too long, or there is no memory. */
static bool near_fold(struct near *near)
{
    size_t room = size_min(near->core.len * NEAR_FOLDED_MAX, TEXT_NEAR_WANTED_MAX);
    bool white = false;
    near->folded = alloc_bytes(room * sizeof(near->folded[0]));
    near->border = alloc_zeroed(room, sizeof(near->border[0]));
    near->from = alloc_zeroed(room, sizeof(near->from[0]));
    if (near->folded == NULL || near->border == NULL || near->from == NULL) {
        return false;
    }
    for (size_t at = 0; at < near->core.len;) {
        utf8proc_int32_t out[NEAR_FOLDED_MAX];
        size_t len = fold_next(near->core, &at, out);
        bool again = white && len == 1 && out[0] == ' ';
        white = len > 0 ? len == 1 && out[0] == ' ' : white;
        len = again ? 0 : len;
        if (len > room - near->count) {
            return false;
        }
        memcpy(near->folded + near->count, out, len * sizeof(out[0]));
        near->count += len;
    }
    return near->count > 0;
}

static void near_borders(struct near *near)
{
    size_t k = 0;
    for (size_t i = 1; i < near->count; i++) {
        while (k > 0 && near->folded[i] != near->folded[k]) {
            k = near->border[k - 1];
        }
        k += near->folded[i] == near->folded[k];
        near->border[i] = k;
    }
}

static size_t line_of(struct ng_str text, size_t at)
{
    return 1 + str_count(str_make(text.data, at), '\n');
}

/* The code point before `at`; *ret: where it begins. */
static uint32_t before(struct ng_str text, size_t at, size_t *ret)
{
    do {
        at--;
    } while (at > 0 && !utf8_is_start(text.data[at]));
    *ret = at;
    return utf8_next(text, &at);
}

/* The core has been found. White space around the wanted text is white space there, too. */
static void near_found(struct near *near, size_t at, size_t end)
{
    size_t lead = (size_t)(near->core.data - near->wanted.data);
    bool trail = lead + near->core.len < near->wanted.len;
    size_t next = end;
    size_t previous = 0;
    if ((lead > 0 && at > 0 && !is_white(before(near->text, at, &previous))) ||
        (trail && end < near->text.len && !is_white(utf8_next(near->text, &next)))) {
        return;
    }
    if (near->places == 0) {
        near->at = at;
    }
    if (near->places < TEXT_NEAR_PLACES_MAX) {
        near->lines[near->places] = line_of(near->text, at);
    }
    near->places++;
}

static void near_search(struct near *near)
{
    size_t k = 0;    /* folded code points that fit */
    size_t seen = 0; /* folded code points of the text */
    bool white = false;
    for (size_t at = 0; at < near->text.len;) {
        utf8proc_int32_t out[NEAR_FOLDED_MAX];
        size_t here = at;
        size_t len = fold_next(near->text, &at, out);
        bool again = white && len == 1 && out[0] == ' ';
        white = len > 0 ? len == 1 && out[0] == ' ' : white;
        for (size_t i = 0; i < len && !again; i++) {
            near->from[seen++ % near->count] = here;
            while (k > 0 && out[i] != near->folded[k]) {
                k = near->border[k - 1];
            }
            k += out[i] == near->folded[k];
            if (k == near->count) {
                near_found(near, near->from[seen % near->count], at);
                k = 0;
            }
        }
    }
}

/* ---- the note */

#define NEAR_END UINT32_MAX /* in place of a code point */

struct near_difference {
    size_t at; /* in `text` */
    uint32_t there, wanted;
};

/* The last difference in the white space before the core. */
static bool differs_before(const struct near *near, struct near_difference *ret)
{
    size_t lead = (size_t)(near->core.data - near->wanted.data);
    size_t at = near->at;
    while (lead > 0) {
        ret->wanted = before(near->wanted, lead, &lead);
        ret->there = at > 0 ? before(near->text, at, &at) : NEAR_END;
        ret->at = at;
        if (ret->there != ret->wanted) {
            return true;
        }
    }
    return false;
}

/* The first difference from the core on. */
static bool differs_after(const struct near *near, struct near_difference *ret)
{
    size_t at = near->at;
    size_t wanted = (size_t)(near->core.data - near->wanted.data);
    while (wanted < near->wanted.len) {
        ret->at = at;
        ret->wanted = utf8_next(near->wanted, &wanted);
        ret->there = at < near->text.len ? utf8_next(near->text, &at) : NEAR_END;
        if (ret->there != ret->wanted) {
            return true;
        }
    }
    return false;
}

static bool is_visible(uint32_t c)
{
    switch (utf8proc_category((utf8proc_int32_t)c)) {
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CN:
    case UTF8PROC_CATEGORY_CO:
    case UTF8PROC_CATEGORY_CS:
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_ME:
        return false;
    default:
        return !is_white(c);
    }
}

static void name_character(uint32_t c, char name[NEAR_NAME_SIZE])
{
    static const struct {
        uint32_t code;
        const char *name;
    } known[] = {
        {'\t', "a tab"},  {'\n', "a line feed"},      {'\r', "a carriage return"},
        {' ', "a space"}, {0xa0, "a no-break space"}, {0x200b, "a zero-width space"},
    };
    char bytes[UTF8_BYTES_MAX];
    const char *found = NULL;
    if (c == NEAR_END) {
        (void)snprintf(name, NEAR_NAME_SIZE, "nothing more");
        return;
    }
    for (size_t i = 0; i < NG_COUNT(known); i++) {
        found = known[i].code == c ? known[i].name : found;
    }
    if (found != NULL) {
        (void)snprintf(name, NEAR_NAME_SIZE, "%s (U+%04X)", found, (unsigned)c);
    } else if (is_visible(c)) {
        int len = (int)utf8_encode(c, bytes);
        (void)snprintf(name, NEAR_NAME_SIZE, "%.*s (U+%04X)", len, bytes, (unsigned)c);
    } else {
        (void)snprintf(name, NEAR_NAME_SIZE, "U+%04X", (unsigned)c);
    }
}

/* The line without its end. */
static struct ng_str line_at(struct ng_str text, size_t at)
{
    size_t from = at;
    while (from > 0 && text.data[from - 1] != '\n') {
        from--;
    }
    const char *end = NULL;
    if (at < text.len) {
        end = memchr(text.data + at, '\n', text.len - at);
    }
    size_t to = end != NULL ? (size_t)(end - text.data) : text.len;
    to -= to > from && text.data[to - 1] == '\r';
    return str_make(text.data + from, to - from);
}

/* "3 places nearly fit, in lines 1, 4 and 9. ", or "". */
static int note_places(const struct near *near, char *note, size_t size)
{
    if (near->places < 2) {
        note[0] = '\0';
        return 0;
    }
    int len = snprintf(note, size, "%zu places nearly fit, in lines", near->places);
    for (size_t i = 0; i < size_min(near->places, TEXT_NEAR_PLACES_MAX); i++) {
        len += snprintf(note + len, size - (size_t)len, "%s %zu", i > 0 ? "," : "",
                        near->lines[i]);
    }
    return len + snprintf(note + len, size - (size_t)len, "%s. ",
                          near->places > TEXT_NEAR_PLACES_MAX ? " and more" : "");
}

static bool near_note(const struct near *near, const char *name, char *note)
{
    struct near_difference difference;
    char there[NEAR_NAME_SIZE];
    char wanted[NEAR_NAME_SIZE];
    if (near->places == 0 ||
        (!differs_before(near, &difference) && !differs_after(near, &difference))) {
        return false;
    }
    struct ng_str line = line_at(near->text, difference.at);
    bool shown = line.len > 0 && line.len <= TEXT_NEAR_LINE_MAX;
    name_character(difference.there, there);
    name_character(difference.wanted, wanted);
    int len = note_places(near, note, TEXT_NEAR_NOTE_SIZE);
    (void)snprintf(note + len, TEXT_NEAR_NOTE_SIZE - (size_t)len,
                   "Line %zu has %s where %s has %s%s%.*s%s",
                   line_of(near->text, difference.at), there, name, wanted,
                   shown ? ". The line is: " : "", shown ? (int)line.len : 0, line.data,
                   shown ? "" : ".");
    return true;
}

bool text_near(struct ng_str text, struct ng_str wanted, const char *name,
               char note[TEXT_NEAR_NOTE_SIZE])
{
    struct near near = {.text = text, .wanted = wanted, .core = near_core(wanted)};
    bool found = false;
    note[0] = '\0';
    if (text.len > 0 && near.core.len > 0 &&
        near.core.len / UTF8_BYTES_MAX <= TEXT_NEAR_WANTED_MAX && near_fold(&near)) {
        near_borders(&near);
        near_search(&near);
        found = near_note(&near, name, note);
    }
    free(near.folded);
    free(near.border);
    free(near.from);
    return found;
}
