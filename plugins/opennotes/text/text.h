/* SPDX-License-Identifier: MIT */
/* text.h - what everything of opennotes stands on: an arena, a growing buffer that also writes
 * JSON, UTF-8, names in one form, globs, times. */
#ifndef OPENNOTES_TEXT_H
#define OPENNOTES_TEXT_H

#include <notegate/plugin.h>

static inline struct ng_str notes_str(const char *data, size_t len)
{
    struct ng_str str = {data, len};
    return str;
}

bool notes_equal(struct ng_str a, struct ng_str b);
bool notes_is(struct ng_str a, const char *text);
/* <0, 0, >0 by bytes. */
int notes_compare(struct ng_str a, struct ng_str b);
bool notes_begins(struct ng_str text, const char *beginning);
bool notes_ends(struct ng_str text, const char *ending);
/* Without blanks, tabs and line ends around it. */
struct ng_str notes_trim(struct ng_str text);
/* Where the needle occurs at or behind `from`; SIZE_MAX: nowhere. An empty one is nowhere. */
size_t notes_find(struct ng_str text, struct ng_str needle, size_t from);
/* How far two names are apart in edits, by bytes, at most 64 long; SIZE_MAX when over `most`.
 */
size_t notes_distance(struct ng_str a, struct ng_str b, size_t most);

/* Fails with NG_EINTERNAL and "Out of memory.". */
int notes_fail_memory(struct ng_call *call);

/* ---- arena: memory that is freed all at once, of one thread at a time */

struct notes_block;

struct notes_arena {
    struct notes_block *blocks; /* newest first */
    size_t used;                /* bytes handed out */
    size_t max;                 /* most that may be handed out; 0: no limit */
    bool oom;                   /* there was no memory for something that was asked of it */
};

void notes_arena_init(struct notes_arena *arena, size_t max);
void notes_arena_done(struct notes_arena *arena);
/* Forgets everything but keeps one block for the next user. */
void notes_arena_reset(struct notes_arena *arena);
/* Aligned for any type, zeroed. NULL: out of memory, or over max. */
void *notes_arena_alloc(struct notes_arena *arena, size_t bytes);
/* A copy with a NUL behind it (not counted). {NULL, 0}: no memory; an absent str stays absent.
 */
struct ng_str notes_arena_copy(struct notes_arena *arena, struct ng_str text);

/* ---- buffer: born with its maximum; an error sticks, look at rc at the end */

struct notes_buf {
    char *data;
    size_t len;
    size_t cap;
    size_t max;
    int rc;   /* NG_OK, NG_ETOOLARGE (over max), NG_EINTERNAL (no memory); then nothing is added
               */
    bool oom; /* there was no memory for it, before it was cleared perhaps */
};

void notes_buf_init(struct notes_buf *buf, size_t max);
void notes_buf_done(struct notes_buf *buf);
void notes_buf_clear(struct notes_buf *buf);
/* Back to a length it had, an error taken back too: what came behind it did not fit. */
void notes_buf_cut(struct notes_buf *buf, size_t len);
void notes_buf_add(struct notes_buf *buf, struct ng_str text);
void notes_buf_add_c(struct notes_buf *buf, const char *text);
void notes_buf_add_char(struct notes_buf *buf, char c);
void notes_buf_printf(struct notes_buf *buf, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static inline struct ng_str notes_buf_str(const struct notes_buf *buf)
{
    return notes_str(buf->data != NULL ? buf->data : "", buf->len);
}

/* JSON into a buffer. Commas come by themselves. `text` need not be valid UTF-8: other bytes
 * become U+FFFD. */
void notes_json_begin(struct notes_buf *buf, char bracket); /* '{' or '[' */
void notes_json_end(struct notes_buf *buf, char bracket);   /* '}' or ']' */
void notes_json_name(struct notes_buf *buf, struct ng_str name);
void notes_json_name_c(struct notes_buf *buf, const char *name);
void notes_json_text(struct notes_buf *buf, struct ng_str text);
void notes_json_int(struct notes_buf *buf, int64_t number);
void notes_json_bool(struct notes_buf *buf, bool value);
void notes_json_null(struct notes_buf *buf);
void notes_json_raw(struct notes_buf *buf,
                    struct ng_str json); /* one value, written as it is */

/* ---- UTF-8 */

bool notes_utf8_valid(struct ng_str text);
/* The same text where it is valid, else a copy in which each bad byte is U+FFFD. NUL stays. */
struct ng_str notes_utf8_clean(struct notes_arena *arena, struct ng_str text);
/* The longest beginning of valid text with at most `bytes` bytes that ends between characters.
 */
struct ng_str notes_utf8_cut(struct ng_str text, size_t bytes);
/* The character at *at of valid text, and *at behind it. */
int32_t notes_utf8_next_wide(struct ng_str text, size_t *at);
static inline int32_t notes_utf8_next(struct ng_str text, size_t *at)
{
    unsigned char first = (unsigned char)text.data[*at];
    if (first < 0x80) {
        (*at)++;
        return first;
    }
    return notes_utf8_next_wide(text, at);
}
/* Writes a character, at most 4 bytes; how many. */
size_t notes_utf8_put(int32_t character, char *out);

/* Names and texts in one form, of valid UTF-8. {NULL, 0}: no memory. */
struct ng_str notes_nfc(struct notes_arena *arena, struct ng_str text);
/* Case folded and NFC: equal where texts differ in case only. */
struct ng_str notes_fold(struct notes_arena *arena, struct ng_str text);
/* File name of a title: NFC, lower case; letters, marks and digits of any alphabet stay, all
 * else becomes one dash. May come out empty. At most NOTES_SLUG_MAX bytes. */
#define NOTES_SLUG_MAX 200
struct ng_str notes_slug(struct notes_arena *arena, struct ng_str title);
/* Does the text of letters, marks, digits and '_' go on here? */
bool notes_is_word(int32_t character);
/* The next word as the index takes them: a run of letters, marks and digits, from *at on; *at
 * is then behind it. False: there is none. */
bool notes_word_next(struct ng_str text, size_t *at, struct ng_str *ret_word,
                     size_t *ret_letters);
/* For tables in memory; where somebody might look for equal ones, with a secret seed. */
uint64_t notes_hash(struct ng_str text, uint64_t seed);
/* Words of a text: what stands between white space and holds a letter or digit. */
size_t notes_words(struct ng_str text);

/* Does a whole path match? '*' and '?' stop at '/', '**' crosses it (and "**" + "/" may be
 * nothing), [a-z] and [!a-z] are sets, '\' takes the special meaning away; a last "*.md" also
 * means *.MD; {a,b} stands for each of its parts. By characters; give both in NFC. */
bool notes_glob(struct ng_str pattern, struct ng_str path);
/* Does it stand for more than NOTES_GLOB_WAYS_MAX patterns? What is beyond matches nothing. */
#define NOTES_GLOB_WAYS_MAX 256
/* Bytes of a pattern; a longer one matches nothing and is wide. */
#define NOTES_GLOB_BYTES_MAX ((size_t)4096)
bool notes_glob_is_wide(struct ng_str pattern);

/* Does it begin at the root of the system, or go above its own with ".."? */
bool notes_glob_leaves(struct ng_str pattern);

/* ---- times */

/* "2026-01-28T14:30:00Z" and NUL. */
#define NOTES_TIME_SIZE 96
void notes_time_write(int64_t time_ms, char out[NOTES_TIME_SIZE]);
/* The same in the system's zone: "2026-01-28T15:30:00+01:00". */
void notes_time_write_local(int64_t time_ms, char out[NOTES_TIME_SIZE]);
/* A day, with a time of day or without ('T' or a blank between), a zone or without (then the
 * system's). False: it is none. */
bool notes_time_parse(struct ng_str text, int64_t *ret_ms);
/* "2026-01-28" and NUL, of the system's zone. */
#define NOTES_DAY_SIZE 16
void notes_day_write(int64_t time_ms, char out[NOTES_DAY_SIZE]);
/* Is it YYYY-MM-DD and a day that exists? */
bool notes_day_valid(struct ng_str day);

#endif
