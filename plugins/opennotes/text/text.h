/* SPDX-License-Identifier: MIT */
/* text.h - texts of notes: core/base, JSON without a writer, Unicode forms, words, globs, times
 * of the gateway's zone (`timezone`, else TZ). */
#ifndef OPENNOTES_TEXT_H
#define OPENNOTES_TEXT_H

#include <notegate/plugin.h>

#include "core/base/arena.h"
#include "core/base/buf.h"
#include "core/base/hash_table.h"
#include "core/base/minmax.h"
#include "core/base/str.h"
#include "core/base/text/edit_distance.h"
#include "core/base/text/rfc3339.h"
#include "core/base/utf8.h"

/* Limits of an answer. */
struct notes_budget {
    size_t max_bytes; /* opennotes.max_bytes */
    size_t max_lines; /* opennotes.max_lines */
};

/* Sets the failure "Out of memory.". */
void notes_set_no_memory(struct ng_call *call);
/* Fails with NG_EINTERNAL and that. Inline: an analyzer sees that it never is success. */
static inline int notes_fail_memory(struct ng_call *call)
{
    notes_set_no_memory(call);
    return NG_EINTERNAL;
}
/* NG_OK if `ok`, else notes_fail_memory(). */
static inline int notes_memory(struct ng_call *call, bool ok)
{
    if (ok) {
        return NG_OK;
    }
    return notes_fail_memory(call);
}

/* Without blanks, tabs and line ends around it. */
struct ng_str notes_trim(struct ng_str text);

/* The same text; "" for an absent one. */
static inline struct ng_str notes_present(struct ng_str text)
{
    if (text.data == NULL) {
        return str_make("", 0);
    }
    return text;
}

/* The content of a buffer; an empty one is "" and not absent. */
static inline struct ng_str notes_buf_str(const struct buf *buf)
{
    return notes_present(buf_str(buf));
}

/* Adds the text if `when`. */
static inline void notes_add_if(struct buf *buf, bool when, const char *text)
{
    if (when) {
        buf_add_c(buf, text);
    }
}

/* A copy with a NUL behind it, in call memory. {NULL, 0}: out of memory. */
struct ng_str notes_call_copy(struct ng_call *call, struct ng_str text);

/* By bytes, for qsort() and bsearch() over texts. */
int notes_compare(const void *a, const void *b);

/* Room for one more item in an array in the arena. false: out of memory. */
bool notes_grow(struct arena *arena, void **items, size_t count, size_t *room, size_t bytes);

/* ---- texts in a hash table */

struct notes_key {
    struct hash_link link;
    struct ng_str text; /* its owner's */
    struct ng_str value;
    uint64_t number;
};

/* Begins zeroed. */
struct notes_keys {
    struct arena arena; /* of the keys, and of the owner */
    struct hash_table table;
};

void notes_keys_done(struct notes_keys *keys);
/* NULL: there is none. */
struct notes_key *notes_keys_find(const struct notes_keys *keys, struct ng_str text);
/* Adds a text that is not in it. NULL: out of memory. */
struct notes_key *notes_keys_add(struct notes_keys *keys, struct ng_str text);

/* ---- ASCII */

static inline bool notes_is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static inline bool notes_is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static inline bool notes_is_alpha(char c)
{
    return (c | 32) >= 'a' && (c | 32) <= 'z';
}

/* A text in ASCII has one form in Unicode. */
bool notes_is_ascii(struct ng_str text);

/* Adds the text between two quotes; a quote inside it is doubled. */
void notes_add_quoted(struct buf *buf, struct ng_str text, char quote);

/* The last part of a path. */
struct ng_str notes_file_name(struct ng_str path);
/* The part of a path below a folder; {NULL, 0}: it is elsewhere. */
struct ng_str notes_path_below(struct ng_str path, struct ng_str folder);
/* The path without "./" at its beginning. */
struct ng_str notes_without_dot(struct ng_str path);
/* The place of `c` at or behind `from`; text.len: there is none. */
size_t notes_find_char(struct ng_str text, size_t from, char c);
/* The line at `at` without its LF; *ret_next: the beginning of the next one. */
struct ng_str notes_line(struct ng_str text, size_t at, size_t *ret_next);
/* The beginning of the line behind the one of `from`; text.len: there is none. */
size_t notes_next_line(struct ng_str text, size_t from);

/* JSON into a buffer. Commas are added automatically. Bytes of `text` that are not valid UTF-8
 * become U+FFFD. */
void notes_json_begin(struct buf *buf, char bracket); /* '{' or '[' */
void notes_json_end(struct buf *buf, char bracket);   /* '}' or ']' */
void notes_json_name(struct buf *buf, struct ng_str name);
void notes_json_name_c(struct buf *buf, const char *name);
void notes_json_text(struct buf *buf, struct ng_str text);
void notes_json_int(struct buf *buf, int64_t number);
void notes_json_bool(struct buf *buf, bool value);
void notes_json_null(struct buf *buf);
void notes_json_raw(struct buf *buf, struct ng_str json); /* one value, written as it is */
/* A member of an object: its name and its value. */
void notes_json_member(struct buf *buf, const char *name, struct ng_str text);
void notes_json_member_int(struct buf *buf, const char *name, int64_t number);
void notes_json_member_bool(struct buf *buf, const char *name, bool value);
void notes_json_member_begin(struct buf *buf, const char *name, char bracket);
void notes_json_member_time(struct buf *buf, const char *name, int64_t time_ms); /* in UTC */

/* ---- UTF-8 */

/* The same text if it is valid UTF-8, else a copy in which each bad byte is U+FFFD. NUL stays.
 * {NULL, 0}: out of memory. */
struct ng_str notes_utf8_clean(struct arena *arena, struct ng_str text);
/* utf8_next() with a fast path for ASCII; the type is that of libutf8proc. */
static inline int32_t notes_next(struct ng_str text, size_t *at)
{
    unsigned char first = (unsigned char)text.data[*at];
    if (first < 0x80) {
        (*at)++;
        return first;
    }
    return (int32_t)utf8_next(text, at);
}

/* The character that ends before `at`; '\n' at the beginning. */
int32_t notes_char_before(struct ng_str text, size_t at);

/* Normalizes valid UTF-8. {NULL, 0}: out of memory. */
struct ng_str notes_nfc(struct arena *arena, struct ng_str text);
/* Case folded and NFC: equal for texts that differ in case only. */
struct ng_str notes_fold(struct arena *arena, struct ng_str text);
/* File name of a title: NFC, lower case; letters, marks and digits of any alphabet stay, other
 * runs become one dash. May be empty. At most NOTES_SLUG_MAX bytes. */
#define NOTES_SLUG_MAX 200
struct ng_str notes_slug(struct arena *arena, struct ng_str title);
/* Is it a letter, a mark, a digit or '_'? */
bool notes_is_word(int32_t character);
/* The next word as the index splits words: a run of letters, marks and digits, from *at on; *at
 * moves behind it. false: there is none. */
bool notes_word_next(struct ng_str text, size_t *at, struct ng_str *ret_word,
                     size_t *ret_letters);
/* The stem of a folded word, in `out` or the word itself: equal for the forms of an English
 * word. */
#define NOTES_STEM_BYTES_MAX ((size_t)256)
struct ng_str notes_stem(struct ng_str word, char out[NOTES_STEM_BYTES_MAX]);
/* Number of words: runs without white space that contain a letter or digit. */
size_t notes_words(struct ng_str text);

/* Does a whole path match? '*' and '?' stop at '/', '**' crosses it (and "**" + "/" may be
 * empty), [a-z] and [!a-z] are sets, '\' escapes; a last "*.md" also matches *.MD; {a,b} are
 * alternatives. By characters; pass both in NFC. */
bool notes_glob(struct ng_str pattern, struct ng_str path);
/* Does the pattern expand to more than NOTES_GLOB_WAYS_MAX patterns? Alternatives beyond match
 * nothing. */
#define NOTES_GLOB_WAYS_MAX 256
/* Bytes of a pattern; a longer one matches nothing and is wide. */
#define NOTES_GLOB_BYTES_MAX ((size_t)4096)
bool notes_glob_is_wide(struct ng_str pattern);

/* Is the pattern absolute, or does it leave the root with ".."? */
bool notes_glob_leaves(struct ng_str pattern);

/* ---- times */

/* A time in the gateway's zone: "2026-01-28T15:30:00+01:00". */
void notes_time_write_local(int64_t time_ms, char out[RFC3339_SIZE]);
/* A day, with or without a time of day ('T' or a blank between), with or without a zone (then
 * the gateway's). false: the text is neither. */
bool notes_time_parse(struct ng_str text, int64_t *ret_ms);
/* "2026-01-28" and NUL, of the gateway's zone. */
void notes_day_write(int64_t time_ms, char out[RFC3339_DAY_SIZE]);
/* A number that differs for zones with different offsets. */
uint64_t notes_time_zone(void);

#endif
