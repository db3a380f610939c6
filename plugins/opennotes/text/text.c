/* SPDX-License-Identifier: MIT */
/* text.c - strings, the arena and the growing buffer with JSON out. */
#include "text.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ARENA_BLOCK 16384
#define ARENA_ALIGN 16
#define BUF_FIRST 512
#define DISTANCE_BYTES_MAX 64

int notes_fail_memory(struct ng_call *call)
{
    return ng_fail(call, NG_EINTERNAL, "Out of memory.");
}

/* ---- strings */

bool notes_equal(struct ng_str a, struct ng_str b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.data, b.data, a.len) == 0);
}

bool notes_is(struct ng_str a, const char *text)
{
    return notes_equal(a, ng_str_of(text));
}

int notes_compare(struct ng_str a, struct ng_str b)
{
    size_t len = a.len < b.len ? a.len : b.len;
    int order = len == 0 ? 0 : memcmp(a.data, b.data, len);
    return order != 0 ? order : (a.len > b.len) - (a.len < b.len);
}

bool notes_begins(struct ng_str text, const char *beginning)
{
    size_t len = strlen(beginning);
    return text.len >= len && (len == 0 || memcmp(text.data, beginning, len) == 0);
}

bool notes_ends(struct ng_str text, const char *ending)
{
    size_t len = strlen(ending);
    return text.len >= len &&
           (len == 0 || memcmp(text.data + text.len - len, ending, len) == 0);
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

struct ng_str notes_trim(struct ng_str text)
{
    while (text.len > 0 && is_blank(text.data[0])) {
        text.data++;
        text.len--;
    }
    while (text.len > 0 && is_blank(text.data[text.len - 1])) {
        text.len--;
    }
    return text;
}

size_t notes_find(struct ng_str text, struct ng_str needle, size_t from)
{
    if (needle.len == 0 || from > text.len || text.len - from < needle.len) {
        return SIZE_MAX;
    }
    const char *at = memmem(text.data + from, text.len - from, needle.data, needle.len);
    return at == NULL ? SIZE_MAX : (size_t)(at - text.data);
}

size_t notes_distance(struct ng_str a, struct ng_str b, size_t most)
{
    size_t row[DISTANCE_BYTES_MAX + 1];
    if (a.len > DISTANCE_BYTES_MAX || b.len > DISTANCE_BYTES_MAX) {
        return SIZE_MAX;
    }
    for (size_t j = 0; j <= b.len; j++) {
        row[j] = j;
    }
    for (size_t i = 1; i <= a.len; i++) {
        size_t corner = row[0];
        row[0] = i;
        for (size_t j = 1; j <= b.len; j++) {
            size_t best = corner + (a.data[i - 1] != b.data[j - 1]);
            corner = row[j];
            best = row[j] + 1 < best ? row[j] + 1 : best;
            best = row[j - 1] + 1 < best ? row[j - 1] + 1 : best;
            row[j] = best;
        }
    }
    return row[b.len] > most ? SIZE_MAX : row[b.len];
}

/* ---- arena */

struct notes_block {
    struct notes_block *older;
    size_t used, size;
};

static size_t align(size_t bytes)
{
    return (bytes + ARENA_ALIGN - 1) / ARENA_ALIGN * ARENA_ALIGN;
}

#define BLOCK_HEAD ((sizeof(struct notes_block) + ARENA_ALIGN - 1) / ARENA_ALIGN * ARENA_ALIGN)

void notes_arena_init(struct notes_arena *arena, size_t max)
{
    *arena = (struct notes_arena){.max = max};
}

void notes_arena_done(struct notes_arena *arena)
{
    while (arena->blocks != NULL) {
        struct notes_block *older = arena->blocks->older;
        free(arena->blocks);
        arena->blocks = older;
    }
    arena->used = 0;
}

void notes_arena_reset(struct notes_arena *arena)
{
    struct notes_block *keep = arena->blocks;
    if (keep != NULL && keep->size == ARENA_BLOCK) {
        arena->blocks = keep->older;
        notes_arena_done(arena);
        keep->older = NULL;
        keep->used = BLOCK_HEAD;
        arena->blocks = keep;
    } else {
        notes_arena_done(arena);
    }
    arena->used = 0;
    arena->oom = false;
}

static struct notes_block *arena_grow(struct notes_arena *arena, size_t bytes)
{
    /* A large piece gets a block of its own behind the newest, which goes on being filled. */
    bool large = bytes > ARENA_BLOCK / 4;
    size_t size = large ? BLOCK_HEAD + bytes : ARENA_BLOCK;
    struct notes_block *block = malloc(size);
    if (block == NULL) {
        return NULL;
    }
    block->used = BLOCK_HEAD;
    block->size = size;
    if (large && arena->blocks != NULL) {
        block->older = arena->blocks->older;
        arena->blocks->older = block;
    } else {
        block->older = arena->blocks;
        arena->blocks = block;
    }
    return block;
}

void *notes_arena_alloc(struct notes_arena *arena, size_t bytes)
{
    if (bytes > SIZE_MAX / 2 ||
        (arena->max != 0 && (bytes > arena->max || arena->used > arena->max - bytes))) {
        return NULL;
    }
    size_t size = align(bytes == 0 ? 1 : bytes);
    struct notes_block *block = arena->blocks;
    if (block == NULL || block->size - block->used < size) {
        block = arena_grow(arena, size);
    }
    if (block == NULL) {
        arena->oom = true;
        return NULL;
    }
    char *memory = (char *)block + block->used;
    block->used += size;
    arena->used += size;
    memset(memory, 0, size);
    return memory;
}

struct ng_str notes_arena_copy(struct notes_arena *arena, struct ng_str text)
{
    if (text.data == NULL) {
        return text;
    }
    char *copy = text.len == SIZE_MAX ? NULL : notes_arena_alloc(arena, text.len + 1);
    if (copy == NULL) {
        return notes_str(NULL, 0);
    }
    if (text.len > 0) {
        memcpy(copy, text.data, text.len);
    }
    return notes_str(copy, text.len);
}

/* ---- buffer */

void notes_buf_init(struct notes_buf *buf, size_t max)
{
    *buf = (struct notes_buf){.max = max};
}

void notes_buf_done(struct notes_buf *buf)
{
    free(buf->data);
    *buf = (struct notes_buf){.max = buf->max};
}

void notes_buf_clear(struct notes_buf *buf)
{
    notes_buf_cut(buf, 0);
}

void notes_buf_cut(struct notes_buf *buf, size_t len)
{
    buf->len = len;
    buf->rc = NG_OK;
}

static bool buf_reserve(struct notes_buf *buf, size_t len)
{
    if (buf->rc != NG_OK) {
        return false;
    }
    if (len > buf->max || buf->len > buf->max - len) {
        buf->rc = NG_ETOOLARGE;
        return false;
    }
    if (buf->cap - buf->len >= len) {
        return true;
    }
    size_t cap = buf->cap == 0 ? BUF_FIRST : buf->cap;
    while (cap < buf->len + len) {
        cap = cap > SIZE_MAX / 2 ? buf->len + len : cap * 2;
    }
    char *data = realloc(buf->data, cap);
    if (data == NULL) {
        buf->rc = NG_EINTERNAL;
        buf->oom = true;
        return false;
    }
    buf->data = data;
    buf->cap = cap;
    return true;
}

void notes_buf_add(struct notes_buf *buf, struct ng_str text)
{
    if (text.len > 0 && buf_reserve(buf, text.len)) {
        memcpy(buf->data + buf->len, text.data, text.len);
        buf->len += text.len;
    }
}

void notes_buf_add_c(struct notes_buf *buf, const char *text)
{
    notes_buf_add(buf, ng_str_of(text));
}

void notes_buf_add_char(struct notes_buf *buf, char c)
{
    notes_buf_add(buf, notes_str(&c, 1));
}

void notes_buf_printf(struct notes_buf *buf, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int len = vsnprintf(NULL, 0, format, args);
    va_end(args);
    if (len < 0 || !buf_reserve(buf, (size_t)len + 1)) {
        buf->rc = buf->rc == NG_OK ? NG_EINTERNAL : buf->rc;
        return;
    }
    va_start(args, format);
    (void)vsnprintf(buf->data + buf->len, (size_t)len + 1, format, args);
    va_end(args);
    buf->len += (size_t)len;
}

/* ---- JSON */

/* A string ends in a quote, so one of these at the end is never a string's. */
static void json_comma(struct notes_buf *buf)
{
    char last = buf->len == 0 ? '[' : buf->data[buf->len - 1];
    if (last != '{' && last != '[' && last != ':' && last != ',') {
        notes_buf_add_char(buf, ',');
    }
}

void notes_json_begin(struct notes_buf *buf, char bracket)
{
    json_comma(buf);
    notes_buf_add_char(buf, bracket);
}

void notes_json_end(struct notes_buf *buf, char bracket)
{
    notes_buf_add_char(buf, bracket);
}

static void json_escape(struct notes_buf *buf, unsigned char c)
{
    static const char short_escapes[] = "\b\t\n\f\r\"\\";
    static const char letters[] = "btnfr\"\\";
    const char *at = c == '\0' ? NULL : strchr(short_escapes, c);
    if (at != NULL) {
        notes_buf_add_char(buf, '\\');
        notes_buf_add_char(buf, letters[at - short_escapes]);
    } else {
        notes_buf_printf(buf, "\\u%04x", c);
    }
}

/* Bytes at `at` that are one valid character, 0: none. */
static size_t utf8_length(struct ng_str text, size_t at)
{
    const unsigned char *p = (const unsigned char *)text.data + at;
    size_t left = text.len - at;
    size_t need = p[0] < 0x80                    ? 1
                  : p[0] >= 0xc2 && p[0] <= 0xdf ? 2
                  : (p[0] & 0xf0) == 0xe0        ? 3
                  : p[0] >= 0xf0 && p[0] <= 0xf4 ? 4
                                                 : 0;
    if (need == 0 || need > left) {
        return 0;
    }
    for (size_t i = 1; i < need; i++) {
        if ((p[i] & 0xc0) != 0x80) {
            return 0;
        }
    }
    bool bad = (p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xed && p[1] > 0x9f) ||
               (p[0] == 0xf0 && p[1] < 0x90) || (p[0] == 0xf4 && p[1] > 0x8f);
    return bad ? 0 : need;
}

void notes_json_text(struct notes_buf *buf, struct ng_str text)
{
    json_comma(buf);
    notes_buf_add_char(buf, '"');
    size_t done = 0;
    size_t at = 0;
    while (at < text.len) {
        unsigned char c = (unsigned char)text.data[at];
        bool plain = c >= 0x20 && c != '"' && c != '\\';
        size_t len = c < 0x80 ? 1 : utf8_length(text, at);
        if (plain && len > 0) {
            at += len;
            continue;
        }
        notes_buf_add(buf, notes_str(text.data + done, at - done));
        if (len == 0) {
            notes_buf_add_c(buf, "\xef\xbf\xbd");
        } else {
            json_escape(buf, c);
        }
        at++;
        done = at;
    }
    notes_buf_add(buf, notes_str(text.data + done, at - done));
    notes_buf_add_char(buf, '"');
}

void notes_json_name(struct notes_buf *buf, struct ng_str name)
{
    notes_json_text(buf, name);
    notes_buf_add_char(buf, ':');
}

void notes_json_name_c(struct notes_buf *buf, const char *name)
{
    notes_json_name(buf, ng_str_of(name));
}

void notes_json_int(struct notes_buf *buf, int64_t number)
{
    json_comma(buf);
    notes_buf_printf(buf, "%lld", (long long)number);
}

void notes_json_bool(struct notes_buf *buf, bool value)
{
    notes_json_raw(buf, ng_str_of(value ? "true" : "false"));
}

void notes_json_null(struct notes_buf *buf)
{
    notes_json_raw(buf, ng_str_of("null"));
}

void notes_json_raw(struct notes_buf *buf, struct ng_str json)
{
    json_comma(buf);
    notes_buf_add(buf, json);
}

/* ---- UTF-8 */

bool notes_utf8_valid(struct ng_str text)
{
    size_t at = 0;
    while (at < text.len) {
        size_t len = (unsigned char)text.data[at] < 0x80 ? 1 : utf8_length(text, at);
        if (len == 0) {
            return false;
        }
        at += len;
    }
    return true;
}

struct ng_str notes_utf8_clean(struct notes_arena *arena, struct ng_str text)
{
    if (notes_utf8_valid(text)) {
        return text.data != NULL ? text : ng_str_of("");
    }
    size_t len = 0;
    for (size_t at = 0, step = 0; at < text.len; at += step) {
        size_t valid = utf8_length(text, at);
        step = valid == 0 ? 1 : valid;
        len += valid == 0 ? 3 : valid;
    }
    char *clean = notes_arena_alloc(arena, len + 1);
    if (clean == NULL) {
        return notes_str(NULL, 0);
    }
    size_t out = 0;
    for (size_t at = 0, step = 0; at < text.len; at += step) {
        size_t valid = utf8_length(text, at);
        step = valid == 0 ? 1 : valid;
        memcpy(clean + out, valid == 0 ? "\xef\xbf\xbd" : text.data + at,
               valid == 0 ? 3 : valid);
        out += valid == 0 ? 3 : valid;
    }
    return notes_str(clean, len);
}

struct ng_str notes_utf8_cut(struct ng_str text, size_t bytes)
{
    if (text.len <= bytes) {
        return text;
    }
    while (bytes > 0 && ((unsigned char)text.data[bytes] & 0xc0) == 0x80) {
        bytes--;
    }
    return notes_str(text.data, bytes);
}

int32_t notes_utf8_next_wide(struct ng_str text, size_t *at)
{
    const unsigned char *p = (const unsigned char *)text.data + *at;
    size_t len = p[0] < 0x80 ? 1 : p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : 4;
    int32_t c = len == 1 ? p[0] : p[0] & (0x7f >> len);
    for (size_t i = 1; i < len && *at + i < text.len; i++) {
        c = c * 64 + (p[i] & 0x3f);
    }
    *at = *at + len > text.len ? text.len : *at + len;
    return c;
}

size_t notes_utf8_put(int32_t character, char *out)
{
    uint32_t c = (uint32_t)character;
    if (c < 0x80) {
        out[0] = (char)c;
        return 1;
    }
    size_t len = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    for (size_t i = len - 1; i > 0; i--) {
        out[i] = (char)(0x80 | (c & 0x3f));
        c >>= 6;
    }
    out[0] = (char)((len == 2 ? 0xc0u : len == 3 ? 0xe0u : 0xf0u) | c);
    return len;
}
