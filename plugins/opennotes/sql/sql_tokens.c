/* SPDX-License-Identifier: MIT */
/* sql_tokens.c - tokenizes a statement for checks before it is prepared. */
#include <string.h>
#include <strings.h>

#include "core/base/minmax.h"
#include "sql_parts.h"

#define EXPRESSIONS_MAX 64 /* common table expressions that are weighed */
#define COLUMNS_MAX 1000   /* tokens in the brackets behind the name of one */
#define WEIGHT_MAX UINT64_C(1000000)

static bool is_name(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           c == '_' || c == '$' || (unsigned char)c >= 0x80;
}

static size_t skip_blanks(struct ng_str sql, size_t at)
{
    while (at < sql.len) {
        if (strchr(" \t\n\r\f", sql.data[at]) != NULL && sql.data[at] != '\0') {
            at++;
        } else if (sql.data[at] == '-' && at + 1 < sql.len && sql.data[at + 1] == '-') {
            while (at < sql.len && sql.data[at] != '\n') {
                at++;
            }
        } else if (sql.data[at] == '/' && at + 1 < sql.len && sql.data[at + 1] == '*') {
            size_t end = str_find(sql, str_make("*/", 2), at + 2);
            at = end == SIZE_MAX ? sql.len : end + 2;
        } else {
            break;
        }
    }
    return at;
}

/* The end of the quoted text that begins at `at`; doubled quotes are part of it. */
static size_t quoted_end(struct ng_str sql, size_t at, char quote)
{
    for (at++; at < sql.len; at++) {
        if (sql.data[at] == quote) {
            if (quote == ']' || at + 1 >= sql.len || sql.data[at + 1] != quote) {
                return at + 1;
            }
            at++;
        }
    }
    return sql.len;
}

struct notes_token notes_token_next(struct ng_str sql, size_t *at)
{
    size_t begin = skip_blanks(sql, *at);
    size_t end = begin + 1;
    enum notes_token_kind kind = NOTES_TOKEN_MARK;
    if (begin >= sql.len) {
        *at = sql.len;
        return (struct notes_token){NOTES_TOKEN_END, str_make(sql.data + sql.len, 0)};
    }
    char c = sql.data[begin];
    if (c == '\'') {
        kind = NOTES_TOKEN_STRING;
        end = quoted_end(sql, begin, c);
    } else if (c == '"' || c == '`') {
        kind = NOTES_TOKEN_QUOTED;
        end = quoted_end(sql, begin, c);
    } else if (c == '[') {
        kind = NOTES_TOKEN_BRACKET;
        end = quoted_end(sql, begin, ']');
    } else if (is_name(c)) {
        kind = c >= '0' && c <= '9' ? NOTES_TOKEN_NUMBER : NOTES_TOKEN_WORD;
        while (end < sql.len && is_name(sql.data[end])) {
            end++;
        }
    } else if (c == ':' && end < sql.len && sql.data[end] == ':') {
        end++;
    }
    *at = end;
    return (struct notes_token){kind, str_make(sql.data + begin, end - begin)};
}

bool notes_token_is(const struct notes_token *token, const char *word)
{
    return token->text.len == strlen(word) &&
           strncasecmp(token->text.data, word, token->text.len) == 0;
}

/* ---- weighing ----
 *
 * Before it runs a statement, SQLite copies each common table expression to every place that
 * uses it, and each expression with an alias to every place in its SELECT that uses that. Both
 * can need more memory than is available, while no check of the deadline runs. */

struct expression {
    struct ng_str name; /* without quotes */
    uint64_t weight;    /* tokens, with those of the expressions in it */
    size_t depth;       /* of brackets; 0: it is complete */
};

struct expressions {
    struct expression list[EXPRESSIONS_MAX];
    size_t count;
    size_t open;                   /* index + 1 of the innermost that is being read; 0: none */
    size_t outer[EXPRESSIONS_MAX]; /* enclosing brackets of each */
};

/* The name in a token; {NULL, 0}: it is not a name. */
static struct ng_str name_of(const struct notes_token *token)
{
    switch (token->kind) {
    case NOTES_TOKEN_WORD:
        return token->text;
    case NOTES_TOKEN_QUOTED:
    case NOTES_TOKEN_BRACKET:
    case NOTES_TOKEN_STRING: /* SQLite takes these for names too */
        if (token->text.len < 2) {
            return token->text;
        }
        return str_make(token->text.data + 1, token->text.len - 2);
    default:
        return str_make(NULL, 0);
    }
}

/* The heaviest complete expression of a name: which one is in scope is not known here. */
static uint64_t weight_of(const struct expressions *all, struct ng_str name)
{
    uint64_t weight = 0;
    for (size_t i = 0; i < all->count && name.data != NULL; i++) {
        const struct expression *one = &all->list[i];
        if (one->depth == 0 && one->weight > weight && one->name.len == name.len &&
            strncasecmp(one->name.data, name.data, name.len) == 0) {
            weight = one->weight;
        }
    }
    return weight;
}

/* Behind a name: "AS (", "AS MATERIALIZED (", "(columns) AS (" make it a definition. *at moves
 * behind the last bracket. */
static bool is_definition(struct ng_str sql, size_t *at)
{
    size_t look = *at;
    struct notes_token token = notes_token_next(sql, &look);
    if (notes_token_is(&token, "(")) {
        for (size_t i = 0; i < COLUMNS_MAX && !notes_token_is(&token, ")"); i++) {
            token = notes_token_next(sql, &look);
        }
        token = notes_token_next(sql, &look);
    }
    if (!notes_token_is(&token, "AS")) {
        return false;
    }
    token = notes_token_next(sql, &look);
    while (notes_token_is(&token, "NOT") || notes_token_is(&token, "MATERIALIZED")) {
        token = notes_token_next(sql, &look);
    }
    *at = look;
    return notes_token_is(&token, "(");
}

/* Is the name that ends at `at` followed by a dot, so that it only qualifies a column? */
static bool is_qualifier(struct ng_str sql, size_t at)
{
    struct notes_token token = notes_token_next(sql, &at);
    return notes_token_is(&token, ".");
}

static bool open_expression(struct expressions *all, struct ng_str name, size_t depth)
{
    if (all->count == EXPRESSIONS_MAX) {
        return false;
    }
    all->outer[all->count] = all->open;
    all->list[all->count] = (struct expression){name, 0, depth};
    all->open = ++all->count;
    return true;
}

static void close_expression(struct expressions *all, size_t depth)
{
    if (all->open > 0 && all->list[all->open - 1].depth == depth) {
        all->list[all->open - 1].depth = 0;
        all->open = all->outer[all->open - 1];
    }
}

uint64_t notes_sql_weight(struct ng_str sql)
{
    struct expressions all = {.count = 0};
    uint64_t tokens = 0;
    uint64_t names = 1;
    uint64_t most = 0;
    size_t depth = 0;
    for (size_t at = 0;;) {
        struct notes_token token = notes_token_next(sql, &at);
        if (token.kind == NOTES_TOKEN_END || most > WEIGHT_MAX) {
            return (most + 1) * names;
        }
        uint64_t *sum = all.open > 0 ? &all.list[all.open - 1].weight : &tokens;
        struct ng_str name = name_of(&token);
        size_t behind = at;
        *sum += 1;
        if (notes_token_is(&token, "(")) {
            depth++;
        } else if (notes_token_is(&token, ")") && depth > 0) {
            close_expression(&all, depth--);
        } else if (name.data != NULL) {
            names += token.kind != NOTES_TOKEN_STRING;
            if (is_definition(sql, &behind)) {
                if (!open_expression(&all, name, depth + 1)) {
                    return UINT64_MAX;
                }
                depth++;
                at = behind;
            } else if (!is_qualifier(sql, at)) {
                *sum += weight_of(&all, name);
            }
        }
        most = u64_max(*sum, most);
    }
}
