/* SPDX-License-Identifier: MIT */
/* query.c - writes RediSearch queries. */
#include "query.h"

#include "core/base/str.h"
#include "core/base/utf8.h"

/* Bytes of a word; RediSearch cuts longer ones. */
#define QUERY_WORD_MAX 100
/* Bytes of a prefix; shorter ones find nothing (MINPREFIX). */
#define QUERY_PREFIX_MIN 2

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

int redis_word_add(struct buf *out, struct ng_str word)
{
    word = utf8_cut(word, QUERY_WORD_MAX);
    for (size_t i = 0; i < word.len; i++) {
        unsigned char c = (unsigned char)word.data[i];
        bool plain = c >= 0x80 || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z');
        /* Folding may make signs of a character: they are syntax. */
        (void)buf_add_char(out, plain ? (char)c : '_');
    }
    return out->rc;
}

/* One phrase: a word or its stem, words that follow each other, or all of them where the last
 * is a prefix. Hits are compared with the phrase again. */
static void query_phrase(const struct phrase *phrase, struct buf *out)
{
    bool quoted = phrase->count > 1 && !phrase->star;
    if (quoted) {
        buf_add_char(out, '"');
    } else if (phrase->count > 1) {
        buf_add_char(out, '(');
    }
    for (size_t i = 0; i < phrase->count; i++) {
        buf_add_c(out, i == 0 ? "" : " ");
        (void)redis_word_add(out, phrase->words[i]);
    }
    if (phrase->star) {
        buf_add_char(out, '*');
    }
    if (quoted) {
        buf_add_char(out, '"');
    } else if (phrase->count > 1) {
        buf_add_char(out, ')');
    } else if (phrase->stem.len > 0 && !str_equal(phrase->stem, phrase->words[0])) {
        buf_add_char(out, '|');
        (void)redis_word_add(out, phrase->stem);
    }
}

bool redis_query_can(const struct wanted *wanted)
{
    for (size_t i = 0; i < wanted->count; i++) {
        const struct phrase *phrase = &wanted->phrases[i];
        if (phrase->star && phrase->words[phrase->count - 1].len < QUERY_PREFIX_MIN) {
            return false;
        }
    }
    return true;
}

/* Matches any of the phrases. Hashes that another program writes have no words of ours until
 * they are given some, but their content. */
static int query_text(const struct wanted *wanted, struct buf *out)
{
    for (size_t i = 0; i < wanted->count; i++) {
        buf_add_c(out, i == 0 ? "@words|content:(" : "|");
        query_phrase(&wanted->phrases[i], out);
    }
    if (wanted->count == 0) {
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

int redis_query(const struct ng_recall *recall, const struct wanted *wanted, struct buf *out)
{
    bool any_tag = false;
    for (size_t i = 0; i < recall->tag_count; i++) {
        any_tag = any_tag || recall->tags[i].len > 0;
    }
    if (recall->text.len > 0 && query_text(wanted, out) != NG_OK) {
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
    if (recall->memories) {
        /* A query must not begin with a negation. */
        buf_add_c(out, out->len == 0 ? "* " : "");
        buf_add_c(out, "-(@source:{" REFERENCE_SOURCE "} @score:[" REFERENCE_SCORE
                       " " REFERENCE_SCORE "]) ");
    }
    if (out->len == 0) {
        buf_add_c(out, "*");
    }
    return out->rc;
}
