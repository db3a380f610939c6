/* SPDX-License-Identifier: MIT */
/* find_words.c - looks for the words of a query in a folded copy of a text. Folding keeps the
 * lines, so the number of a line leads back to the text. */
#include "find_words.h"

#include <string.h>

#include "core/base/minmax.h"
#include "core/base/str.h"
#include "core/base/utf8.h"

/* Bytes of an excerpt before its word. */
#define FIND_BEFORE 70

static bool is_blank(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

/* ---- the query ---- */

static void words_add(struct find_words *words, struct ng_str word)
{
    while (word.len > 0 && word.data[0] == '"') {
        word = str_make(word.data + 1, word.len - 1);
    }
    while (word.len > 0 && strchr("\"*", word.data[word.len - 1]) != NULL) {
        word.len--;
    }
    if (word.len > 0 && words->count < FIND_WORDS_MAX) {
        words->words[words->count++] = word;
    }
}

int find_words_open(struct find_words *words, struct ng_str query)
{
    *words = (struct find_words){.count = 0};
    buf_init(&words->query, FIND_QUERY_MAX);
    buf_init(&words->text, FIND_TEXT_MAX);
    int rc = utf8_fold(&words->query, query);
    if (rc != NG_OK) {
        return rc;
    }
    struct ng_str folded = buf_str(&words->query);
    size_t from = 0;
    for (size_t i = 0; i <= folded.len; i++) {
        if (i == folded.len || is_blank(folded.data[i])) {
            words_add(words, str_make(folded.data + from, i - from));
            from = i + 1;
        }
    }
    return NG_OK;
}

void find_words_done(struct find_words *words)
{
    buf_done(&words->query);
    buf_done(&words->text);
}

/* ---- a text ---- */

static struct ng_str line_at(struct ng_str text, size_t at)
{
    const char *end = memchr(text.data + at, '\n', text.len - at);
    return str_make(text.data + at,
                    end != NULL ? (size_t)(end - text.data) - at : text.len - at);
}

/* How many of the words are in the line, and where the first one is. */
static size_t line_count(const struct find_words *words, struct ng_str line, size_t *ret_at)
{
    size_t count = 0;
    *ret_at = SIZE_MAX;
    for (size_t i = 0; i < words->count; i++) {
        size_t at = str_find(line, words->words[i], 0);
        count += at != SIZE_MAX;
        *ret_at = size_min(*ret_at, at);
    }
    return count;
}

/* At most FIND_EXCERPT_MAX bytes of the line around its byte `at`. */
static struct ng_str line_excerpt(struct ng_str line, size_t at)
{
    line.len -= line.len > 0 && line.data[line.len - 1] == '\r';
    at = size_min(at, line.len);
    size_t from = 0;
    if (line.len > FIND_EXCERPT_MAX) {
        from = utf8_cut(line, at - size_min(at, FIND_BEFORE)).len;
    }
    struct ng_str rest = str_make(line.data + from, line.len - from);
    return str_trim(utf8_cut(rest, FIND_EXCERPT_MAX));
}

/* The line with this number. */
static struct ng_str line_number(struct ng_str text, uint64_t number)
{
    size_t at = 0;
    for (uint64_t i = 1; i < number && at < text.len; i++) {
        at += line_at(text, at).len + 1;
    }
    return at < text.len ? line_at(text, at) : str_make(text.data, 0);
}

/* The first line of the folded text with the most words. */
static void find_line(const struct find_words *words, struct ng_str text,
                      struct find_place *ret)
{
    struct ng_str folded = buf_str(&words->text);
    size_t most = 0;
    size_t place = 0;
    uint64_t line = 1;
    *ret = (struct find_place){.line = 0};
    for (size_t at = 0; at < folded.len && most < words->count; line++) {
        struct ng_str here = line_at(folded, at);
        size_t first = 0;
        size_t count = line_count(words, here, &first);
        if (count > most) {
            most = count;
            place = first;
            ret->line = line;
        }
        at += here.len + 1;
    }
    if (ret->line > 0) {
        ret->excerpt = line_excerpt(line_number(text, ret->line), place);
    }
}

static int fold_text(struct find_words *words, struct ng_str text)
{
    buf_clear(&words->text);
    return utf8_fold(&words->text, text);
}

int find_words_all(struct find_words *words, struct ng_str text, bool *ret_found,
                   struct find_place *ret_place)
{
    *ret_found = false;
    int rc = words->count > 0 ? fold_text(words, text) : NG_OK;
    if (rc != NG_OK || words->count == 0) {
        return rc;
    }
    for (size_t i = 0; i < words->count; i++) {
        if (str_find(buf_str(&words->text), words->words[i], 0) == SIZE_MAX) {
            return NG_OK;
        }
    }
    *ret_found = true;
    if (ret_place != NULL) {
        find_line(words, text, ret_place);
    }
    return NG_OK;
}

int find_words_place(struct find_words *words, struct ng_str text, struct find_place *ret_place)
{
    *ret_place = (struct find_place){.line = 0};
    int rc = words->count > 0 ? fold_text(words, text) : NG_OK;
    if (rc == NG_OK && words->count > 0) {
        find_line(words, text, ret_place);
    }
    return rc;
}
