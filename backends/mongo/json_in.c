/* SPDX-License-Identifier: MIT */
/* json_in.c - converts the JSON of an entry to BSON members. The core has validated the JSON,
 * so a value that BSON cannot represent is just left out; the caller then stores the text as
 * well. */
#include "core/base/text/hex.h"
#include "core/base/text/rfc3339.h"
#include "db.h"

#include <stdio.h>

/* BSON is limited to 100 levels, including our own. */
#define LEVELS_MAX 80

enum place { PLACE_TOP, PLACE_METADATA, PLACE_HISTORY, PLACE_HISTORY_ITEM, PLACE_OTHER };

struct reader {
    const char *at, *end;
    struct bytes key, text;
    unsigned level;
    bool memory;
};

static void skip_space(struct reader *in)
{
    while (in->at < in->end &&
           (*in->at == ' ' || *in->at == '\n' || *in->at == '\t' || *in->at == '\r')) {
        in->at++;
    }
}

static bool eat(struct reader *in, char c)
{
    skip_space(in);
    if (in->at >= in->end || *in->at != c) {
        return false;
    }
    in->at++;
    return true;
}

/* Exactly YYYY-MM-DDTHH:MM:SS.mmmZ, the form in which dates are printed. */
bool date_parse(struct ng_str text, int64_t *ret_ms)
{
    static const char form[] = "0000-00-00T00:00:00.000Z";
    int parts[7] = {0}; /* year, month, day, hour, minute, second, ms */
    size_t part = 0;
    if (text.len != sizeof(form) - 1) {
        return false;
    }
    for (size_t i = 0; i < text.len; i++) {
        bool digit = text.data[i] >= '0' && text.data[i] <= '9';
        if (digit != (form[i] == '0') || (!digit && text.data[i] != form[i])) {
            return false;
        }
        if (digit) {
            parts[part] = parts[part] * 10 + (text.data[i] - '0');
        } else {
            part++;
        }
    }
    if (parts[1] < 1 || parts[1] > 12 || parts[2] < 1 || parts[2] > 31 || parts[3] > 23 ||
        parts[4] > 59 || parts[5] > 59) {
        return false;
    }
    int64_t minutes = (rfc3339_days(parts[0], parts[1], parts[2]) * 24 + parts[3]) * 60;
    *ret_ms = (minutes + parts[4]) * 60000 + parts[5] * 1000 + parts[6];
    return true;
}

static bool hex4(const char *at, uint32_t *ret)
{
    *ret = 0;
    for (size_t i = 0; i < 4; i++) {
        int digit = hex_digit(at[i]);
        if (digit < 0) {
            return false;
        }
        *ret = *ret * 16 + (uint32_t)digit;
    }
    return true;
}

static bool read_escape(struct reader *in, struct bytes *text)
{
    static const char from[] = "\"\\/bfnrt";
    static const char to[] = "\"\\/\b\f\n\r\t";
    uint32_t c = 0;
    if (in->at >= in->end) {
        return false;
    }
    char letter = *in->at++;
    const char *found = NULL;
    if (letter != '\0') {
        found = strchr(from, letter);
    }
    if (found != NULL) {
        return bytes_add(text, to + (found - from), 1) == NG_OK;
    }
    if (letter != 'u' || in->end - in->at < 4 || !hex4(in->at, &c)) {
        return false;
    }
    in->at += 4;
    if (c >= 0xD800 && c < 0xDC00) {
        uint32_t low = 0;
        if (in->end - in->at < 6 || in->at[0] != '\\' || in->at[1] != 'u' ||
            !hex4(in->at + 2, &low)) {
            return false;
        }
        in->at += 6;
        c = 0x10000 + ((c - 0xD800) << 10) + (low - 0xDC00);
    }
    char out[UTF8_BYTES_MAX];
    return bytes_add(text, out, utf8_encode(c, out)) == NG_OK;
}

static bool read_string(struct reader *in, struct bytes *text)
{
    text->len = 0;
    if (!eat(in, '"')) {
        return false;
    }
    while (in->at < in->end && *in->at != '"') {
        const char *from = in->at;
        while (in->at < in->end && *in->at != '"' && *in->at != '\\') {
            in->at++;
        }
        if (bytes_add(text, from, (size_t)(in->at - from)) != NG_OK) {
            return false;
        }
        if (in->at < in->end && *in->at == '\\') {
            in->at++;
            if (!read_escape(in, text)) {
                return false;
            }
        }
    }
    return eat(in, '"');
}

/* Integers that fit are stored as integers, everything else as doubles. */
static bool read_number(struct reader *in, bson_t *out, const char *key, int key_len)
{
    char digits[64];
    size_t len = 0;
    bool integer = true;
    while (in->at < in->end && strchr("+-.0123456789eE", *in->at) != NULL && *in->at != '\0') {
        integer = integer && *in->at != '.' && *in->at != 'e' && *in->at != 'E';
        if (len + 1 >= sizeof(digits)) {
            return false;
        }
        digits[len++] = *in->at++;
    }
    digits[len] = '\0';
    if (len == 0) {
        return false;
    }
    if (integer && len <= 18) {
        return bson_append_int64(out, key, key_len, strtoll(digits, NULL, 10));
    }
    return bson_append_double(out, key, key_len, strtod(digits, NULL));
}

static bool read_value(struct reader *in, bson_t *out, const char *key, int key_len,
                       enum place place);

/* Rejects names with a special meaning for the server or for our paths. */
static bool fit_name(struct ng_str name, enum place place)
{
    static const char *const ours[] = {"_id",     "space", "outbox", "notegate",
                                       "content", "code",  "json",   "text"};
    if (name.len == 0 || name.data[0] == '$' || memchr(name.data, '.', name.len) != NULL ||
        memchr(name.data, '\0', name.len) != NULL) {
        return false;
    }
    for (size_t i = 0; i < NG_COUNT(ours) && place == PLACE_TOP; i++) {
        if (str_equal(name, ng_str_of(ours[i]))) {
            return false;
        }
    }
    return true;
}

static enum place place_below(enum place place, struct ng_str name)
{
    if (place == PLACE_TOP && str_equal(name, ng_str_of("metadata"))) {
        return PLACE_METADATA;
    }
    if (place == PLACE_TOP && str_equal(name, ng_str_of("history"))) {
        return PLACE_HISTORY;
    }
    return PLACE_OTHER;
}

static bool is_date_name(enum place place, struct ng_str name)
{
    return (place == PLACE_METADATA && name.len > 3 &&
            memcmp(name.data + name.len - 3, "_at", 3) == 0) ||
           (place == PLACE_HISTORY_ITEM && str_equal(name, ng_str_of("timestamp")));
}

static bool read_member(struct reader *in, bson_t *out, enum place place)
{
    int64_t ms = 0;
    if (!read_string(in, &in->key) || !eat(in, ':')) {
        return false;
    }
    struct ng_str name = bytes_str(&in->key);
    if (!fit_name(name, place)) {
        return false;
    }
    char *copy = str_dup(name);
    if (copy == NULL) {
        return false;
    }
    name.data = copy;
    skip_space(in);
    bool good;
    if (is_date_name(place, name) && in->at < in->end && *in->at == '"') {
        good = read_string(in, &in->text);
        if (good && date_parse(bytes_str(&in->text), &ms)) {
            good = bson_append_date_time(out, copy, (int)name.len, ms);
        } else if (good) {
            good = bson_append_utf8(out, copy, (int)name.len, bytes_str(&in->text).data,
                                    (int)in->text.len);
        }
    } else {
        good = read_value(in, out, copy, (int)name.len, place_below(place, name));
    }
    free(copy);
    return good;
}

static bool read_object(struct reader *in, bson_t *out, enum place place)
{
    if (!eat(in, '{')) {
        return false;
    }
    if (eat(in, '}')) {
        return true;
    }
    do {
        if (!read_member(in, out, place)) {
            return false;
        }
    } while (eat(in, ','));
    return eat(in, '}');
}

static bool read_array(struct reader *in, bson_t *out, enum place place)
{
    char digits[16];
    uint32_t at = 0;
    if (!eat(in, '[')) {
        return false;
    }
    if (eat(in, ']')) {
        return true;
    }
    do {
        const char *key = NULL;
        size_t len = bson_uint32_to_string(at++, &key, digits, sizeof(digits));
        enum place item = PLACE_OTHER;
        if (place == PLACE_HISTORY) {
            item = PLACE_HISTORY_ITEM;
        }
        if (!read_value(in, out, key, (int)len, item)) {
            return false;
        }
    } while (eat(in, ','));
    return eat(in, ']');
}

static bool read_container(struct reader *in, bson_t *out, const char *key, int key_len,
                           enum place place)
{
    bson_t child;
    bool array = *in->at == '[';
    if (in->level >= LEVELS_MAX) {
        return false;
    }
    if (!(array ? bson_append_array_begin(out, key, key_len, &child)
                : bson_append_document_begin(out, key, key_len, &child))) {
        return false;
    }
    in->level++;
    bool good;
    if (array) {
        good = read_array(in, &child, place);
    } else {
        good = read_object(in, &child, place);
    }
    in->level--;
    bool ended;
    if (array) {
        ended = bson_append_array_end(out, &child);
    } else {
        ended = bson_append_document_end(out, &child);
    }
    return good && ended;
}

static bool read_word(struct reader *in, const char *word)
{
    size_t len = strlen(word);
    if ((size_t)(in->end - in->at) < len || memcmp(in->at, word, len) != 0) {
        return false;
    }
    in->at += len;
    return true;
}

static bool read_value(struct reader *in, bson_t *out, const char *key, int key_len,
                       enum place place)
{
    skip_space(in);
    if (in->at >= in->end) {
        return false;
    }
    switch (*in->at) {
    case '{':
    case '[':
        return read_container(in, out, key, key_len, place);
    case '"':
        return read_string(in, &in->text) &&
               bson_append_utf8(out, key, key_len, bytes_str(&in->text).data,
                                (int)in->text.len);
    case 't':
        return read_word(in, "true") && bson_append_bool(out, key, key_len, true);
    case 'f':
        return read_word(in, "false") && bson_append_bool(out, key, key_len, false);
    case 'n':
        return read_word(in, "null") && bson_append_null(out, key, key_len);
    default:
        return read_number(in, out, key, key_len);
    }
}

/* Skips a value. */
static void skip_value(struct reader *in)
{
    unsigned depth = 0;
    bool quoted = false;
    while (in->at < in->end) {
        char c = *in->at;
        if (quoted) {
            in->at += c == '\\' && in->end - in->at > 1;
            quoted = c != '"';
        } else if (depth == 0 && (c == ',' || c == '}' || c == ']')) {
            return;
        } else if (c == '"') {
            quoted = true;
        } else if (c == '{' || c == '[') {
            depth++;
        } else if (c == '}' || c == ']') {
            depth--;
        }
        in->at++;
    }
}

/* Converts one top-level member in a document of its own first, so that none is stored
 * partly. */
static int take_member(struct reader *in, bson_t *ret, bool *ret_whole)
{
    const char *from = in->at;
    bson_t one = BSON_INITIALIZER;
    int rc = NG_OK;
    if (read_member(in, &one, PLACE_TOP)) {
        if (bson_concat(ret, &one)) {
            rc = NG_OK;
        } else {
            rc = NG_ETOOLARGE;
        }
    } else {
        *ret_whole = false;
        in->at = from;
        in->level = 0;
        if (!read_string(in, &in->key) || !eat(in, ':')) {
            rc = NG_EINVAL;
        }
        skip_value(in);
    }
    bson_destroy(&one);
    return rc;
}

int json_members(struct ng_str json, bson_t *ret, bool *ret_whole)
{
    struct reader in = {.at = json.data, .end = json.data + json.len};
    int rc = NG_OK;
    *ret_whole = true;
    if (!eat(&in, '{')) {
        return NG_EINVAL;
    }
    if (!eat(&in, '}')) {
        do {
            rc = take_member(&in, ret, ret_whole);
        } while (rc == NG_OK && eat(&in, ','));
        if (rc == NG_OK && !eat(&in, '}')) {
            rc = NG_EINVAL;
        }
    }
    bytes_done(&in.key);
    bytes_done(&in.text);
    return rc;
}
