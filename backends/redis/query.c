/* SPDX-License-Identifier: MIT */
/* query.c - writes RediSearch queries. */
#include "query.h"

#include <string.h>

#include "../shared/words.h"

static bool query_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           ((unsigned char)c & 0x80) != 0;
}

/* Escapes every ASCII character except letters and digits with a backslash: it is query syntax,
 * or might be in a later version. Control characters cannot be escaped. */
static void out_escaped(struct buf *out, struct ng_str text)
{
    for (size_t i = 0; i < text.len; i++) {
        char c = text.data[i];
        if ((unsigned char)c < ' ' || c == 0x7f) {
            c = ' ';
        }
        if (!query_letter(c)) {
            buf_add_c(out, "\\");
        }
        buf_add_char(out, c);
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

/* Matches any of the words. Common words count only if there are no others. */
static int query_text(struct ng_str text, struct buf *out)
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
            buf_add_c(out, words++ == 0 ? "@content:(" : "|");
            out_escaped(out, word);
        }
    }
    if (words == 0) {
        return NG_ENOTFOUND;
    }
    buf_add_c(out, ") ");
    return NG_OK;
}

static void query_tags(const struct ng_recall *recall, const char *field, struct buf *out)
{
    bool first = true;
    for (size_t i = 0; i < recall->tag_count; i++) {
        if (recall->tags[i].len > 0) {
            buf_add_c(out, first ? field : "|");
            out_escaped(out, recall->tags[i]);
            first = false;
        }
    }
    buf_add_c(out, first ? "" : "}");
}

int redis_query(const struct ng_recall *recall, struct buf *out)
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
        buf_add_c(out, "@source:{");
        out_escaped(out, recall->source);
        buf_add_c(out, "} ");
    }
    if (any_tag) {
        buf_add_c(out, "(");
        query_tags(recall, "@tags:{", out);
        buf_add_c(out, " | ");
        query_tags(recall, "@entry_tags:{", out);
        buf_add_c(out, ") ");
    }
    if (recall->since_ms != 0) {
        buf_printf(out, "@time:[%lld +inf] ", (long long)recall->since_ms);
    }
    if (recall->min_score > 0) {
        buf_printf(out, "@score:[%.15g +inf] ", recall->min_score);
    }
    if (out->len == 0) {
        buf_add_c(out, "*");
    }
    return out->rc;
}
