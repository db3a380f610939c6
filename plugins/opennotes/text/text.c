/* SPDX-License-Identifier: MIT */
/* text.c - JSON into a buffer, and string helpers beyond core/base. */
#include "text.h"

#define GROW_FIRST ((size_t)16)

void notes_set_no_memory(struct ng_call *call)
{
    (void)ng_fail(call, NG_EINTERNAL, "Out of memory.");
}

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

struct ng_str notes_trim(struct ng_str text)
{
    while (text.len > 0 && is_space(text.data[0])) {
        text.data++;
        text.len--;
    }
    while (text.len > 0 && is_space(text.data[text.len - 1])) {
        text.len--;
    }
    return text;
}

struct ng_str notes_file_name(struct ng_str path)
{
    size_t begin = path.len;
    while (begin > 0 && path.data[begin - 1] != '/') {
        begin--;
    }
    return str_make(path.data + begin, path.len - begin);
}

struct ng_str notes_path_below(struct ng_str path, struct ng_str folder)
{
    folder.len -= str_is(folder, "/");
    size_t len = folder.len;
    if (path.len > len + 1 && memcmp(path.data, folder.data, len) == 0 &&
        path.data[len] == '/') {
        return str_make(path.data + len + 1, path.len - len - 1);
    }
    return str_make(NULL, 0);
}

struct ng_str notes_without_dot(struct ng_str path)
{
    while (str_begins(path, "./")) {
        path = str_make(path.data + 2, path.len - 2);
    }
    return path;
}

size_t notes_find_char(struct ng_str text, size_t from, char c)
{
    if (from >= text.len) {
        return text.len;
    }
    const char *at = memchr(text.data + from, c, text.len - from);
    if (at == NULL) {
        return text.len;
    }
    return (size_t)(at - text.data);
}

struct ng_str notes_line(struct ng_str text, size_t at, size_t *ret_next)
{
    size_t stop = notes_find_char(text, at, '\n');
    *ret_next = size_min(stop + 1, text.len);
    return str_make(text.data + at, stop - at);
}

struct ng_str notes_call_copy(struct ng_call *call, struct ng_str text)
{
    char *copy = ng_alloc(call, text.len + 1);
    if (copy == NULL) {
        return str_make(NULL, 0);
    }
    if (text.len > 0) {
        memcpy(copy, text.data, text.len);
    }
    copy[text.len] = '\0';
    return str_make(copy, text.len);
}

bool notes_grow(struct arena *arena, void **items, size_t count, size_t *room, size_t bytes)
{
    if (count < *room) {
        return true;
    }
    size_t more = size_max(2 * count, GROW_FIRST);
    void *copy = arena_zalloc(arena, more * bytes);
    if (copy != NULL && count > 0) {
        memcpy(copy, *items, count * bytes);
    }
    *items = copy;
    *room = more;
    return copy != NULL;
}

int notes_compare(const void *a, const void *b)
{
    return str_compare(*(const struct ng_str *)a, *(const struct ng_str *)b);
}

size_t notes_next_line(struct ng_str text, size_t from)
{
    return size_min(notes_find_char(text, from, '\n') + 1, text.len);
}

void notes_add_quoted(struct buf *buf, struct ng_str text, char quote)
{
    buf_add_char(buf, quote);
    for (size_t i = 0; i < text.len; i++) {
        if (text.data[i] == quote) {
            buf_add_char(buf, quote);
        }
        buf_add_char(buf, text.data[i]);
    }
    buf_add_char(buf, quote);
}

struct ng_str notes_utf8_clean(struct arena *arena, struct ng_str text)
{
    if (utf8_valid(text)) {
        return notes_present(text);
    }
    char scratch[UTF8_BYTES_MAX];
    size_t need = 1;
    for (size_t at = 0; at < text.len;) {
        need += utf8_encode(utf8_next(text, &at), scratch);
    }
    char *clean = arena_zalloc(arena, need);
    if (clean == NULL) {
        return str_make(NULL, 0);
    }
    size_t len = 0;
    for (size_t at = 0; at < text.len;) {
        len += utf8_encode(utf8_next(text, &at), clean + len);
    }
    return str_make(clean, len);
}

int32_t notes_char_before(struct ng_str text, size_t at)
{
    if (at == 0) {
        return '\n';
    }
    at = utf8_cut(text, at - 1).len;
    return notes_next(text, &at);
}

/* ---- texts in a hash table */

void notes_keys_done(struct notes_keys *keys)
{
    hash_table_done(&keys->table);
    arena_done(&keys->arena);
}

static bool is_key(const struct hash_link *link, const void *text)
{
    return str_equal(HASH_ITEM(link, struct notes_key, link)->text,
                     *(const struct ng_str *)text);
}

struct notes_key *notes_keys_find(const struct notes_keys *keys, struct ng_str text)
{
    struct hash_link *link = hash_table_find(&keys->table, str_hash(text), is_key, &text);
    if (link == NULL) {
        return NULL;
    }
    return HASH_ITEM(link, struct notes_key, link);
}

struct notes_key *notes_keys_add(struct notes_keys *keys, struct ng_str text)
{
    struct notes_key *key = arena_zalloc(&keys->arena, sizeof(*key));
    if (key == NULL || hash_table_add(&keys->table, &key->link, str_hash(text)) != NG_OK) {
        return NULL;
    }
    key->text = text;
    return key;
}

/* ---- JSON */

/* A string ends in a quote, so none of these as the last byte belongs to a string. */
static void json_comma(struct buf *buf)
{
    char last = '[';
    if (buf->len != 0) {
        last = buf->data[buf->len - 1];
    }
    if (last != '{' && last != '[' && last != ':' && last != ',') {
        buf_add_char(buf, ',');
    }
}

void notes_json_begin(struct buf *buf, char bracket)
{
    json_comma(buf);
    buf_add_char(buf, bracket);
}

void notes_json_end(struct buf *buf, char bracket)
{
    buf_add_char(buf, bracket);
}

void notes_json_text(struct buf *buf, struct ng_str text)
{
    json_comma(buf);
    buf_add_json(buf, text);
}

void notes_json_name(struct buf *buf, struct ng_str name)
{
    notes_json_text(buf, name);
    buf_add_char(buf, ':');
}

void notes_json_name_c(struct buf *buf, const char *name)
{
    notes_json_name(buf, ng_str_of(name));
}

void notes_json_int(struct buf *buf, int64_t number)
{
    json_comma(buf);
    buf_printf(buf, "%lld", (long long)number);
}

void notes_json_bool(struct buf *buf, bool value)
{
    notes_json_raw(buf, ng_str_of(value ? "true" : "false"));
}

void notes_json_null(struct buf *buf)
{
    notes_json_raw(buf, ng_str_of("null"));
}

void notes_json_raw(struct buf *buf, struct ng_str json)
{
    json_comma(buf);
    buf_add_str(buf, json);
}

void notes_json_member(struct buf *buf, const char *name, struct ng_str text)
{
    notes_json_name_c(buf, name);
    notes_json_text(buf, text);
}

void notes_json_member_int(struct buf *buf, const char *name, int64_t number)
{
    notes_json_name_c(buf, name);
    notes_json_int(buf, number);
}

void notes_json_member_bool(struct buf *buf, const char *name, bool value)
{
    notes_json_name_c(buf, name);
    notes_json_bool(buf, value);
}

void notes_json_member_begin(struct buf *buf, const char *name, char bracket)
{
    notes_json_name_c(buf, name);
    notes_json_begin(buf, bracket);
}

void notes_json_member_time(struct buf *buf, const char *name, int64_t time_ms)
{
    char text[RFC3339_SIZE];
    rfc3339_write(time_ms, RFC3339_SECONDS, text);
    notes_json_member(buf, name, ng_str_of(text));
}
