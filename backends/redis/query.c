/* SPDX-License-Identifier: MIT */
/* query.c - writes RediSearch queries. */
#include "query.h"

#include <stdio.h>
#include <string.h>

#include "../shared/words.h"

#define QUERY_FIXED 256

static void out_add(struct query_out *out, const char *data, size_t len)
{
    if (out->full || len > out->size - out->len) {
        out->full = true;
        return;
    }
    memcpy(out->data + out->len, data, len);
    out->len += len;
}

static void out_text(struct query_out *out, const char *text)
{
    out_add(out, text, strlen(text));
}

static bool query_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           ((unsigned char)c & 0x80) != 0;
}

/* Escapes every ASCII character except letters and digits with a backslash: it is query syntax,
 * or might be in a later version. Control characters cannot be escaped. */
static void out_escaped(struct query_out *out, struct ng_str text)
{
    for (size_t i = 0; i < text.len; i++) {
        char c = text.data[i];
        if ((unsigned char)c < ' ' || c == 0x7f) {
            c = ' ';
        }
        if (!query_letter(c)) {
            out_text(out, "\\");
        }
        out_add(out, &c, 1);
    }
}

struct ng_str redis_word(struct ng_str text, size_t *at)
{
    while (*at < text.len && !query_letter(text.data[*at]) && text.data[*at] != '_') {
        (*at)++;
    }
    struct ng_str word = {text.data == NULL ? NULL : text.data + *at, 0};
    while (*at < text.len && (query_letter(text.data[*at]) || text.data[*at] == '_')) {
        (*at)++;
        word.len++;
    }
    return word;
}

size_t redis_query_size(const struct ng_recall *recall)
{
    size_t size = QUERY_FIXED + 2 * recall->source.len + 3 * recall->text.len;
    for (size_t i = 0; i < recall->tag_count; i++) {
        size += 4 * (recall->tags[i].len + 2);
    }
    return size;
}

/* Matches any of the words. Common words count only if there are no others. */
static int query_text(struct ng_str text, struct query_out *out)
{
    size_t at = 0;
    size_t words = 0;
    bool strong = false;
    for (struct ng_str word = redis_word(text, &at); word.len > 0 && !strong;) {
        strong = !word_is_common(word);
        word = redis_word(text, &at);
    }
    at = 0;
    while (words < QUERY_WORDS_MAX) {
        struct ng_str word = redis_word(text, &at);
        if (word.len == 0) {
            break;
        }
        if (!strong || !word_is_common(word)) {
            out_text(out, words++ == 0 ? "@content:(" : "|");
            out_escaped(out, word);
        }
    }
    if (words == 0) {
        return NG_ENOTFOUND;
    }
    out_text(out, ") ");
    return NG_OK;
}

static void query_tags(const struct ng_recall *recall, const char *field, struct query_out *out)
{
    bool first = true;
    for (size_t i = 0; i < recall->tag_count; i++) {
        if (recall->tags[i].len > 0) {
            out_text(out, first ? field : "|");
            out_escaped(out, recall->tags[i]);
            first = false;
        }
    }
    out_text(out, first ? "" : "}");
}

int redis_query(const struct ng_recall *recall, struct query_out *out)
{
    bool any_tag = false;
    for (size_t i = 0; i < recall->tag_count; i++) {
        any_tag = any_tag || recall->tags[i].len > 0;
    }
    if (recall->text.len > 0 && query_text(recall->text, out) != NG_OK) {
        return NG_ENOTFOUND;
    }
    if (recall->tag_count > 0 && !any_tag) {
        return NG_ENOTFOUND; /* no tag lacks letters */
    }
    if (recall->source.len > 0) {
        out_text(out, "@source:{");
        out_escaped(out, recall->source);
        out_text(out, "} ");
    }
    if (any_tag) {
        out_text(out, "(");
        query_tags(recall, "@tags:{", out);
        out_text(out, " | ");
        query_tags(recall, "@entry_tags:{", out);
        out_text(out, ") ");
    }
    if (recall->since_ms != 0) {
        char since[64];
        (void)snprintf(since, sizeof(since), "@time:[%lld +inf] ", (long long)recall->since_ms);
        out_text(out, since);
    }
    if (recall->min_score > 0) {
        char least[64];
        (void)snprintf(least, sizeof(least), "@score:[%.15g +inf] ", recall->min_score);
        out_text(out, least);
    }
    if (out->len == 0) {
        out_text(out, "*");
    }
    if (out->full) {
        return NG_EINTERNAL;
    }
    return NG_OK;
}
