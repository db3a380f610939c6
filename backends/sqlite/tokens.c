/* SPDX-License-Identifier: MIT */
/* tokens.c - the tokens of the full-text index: words as shared/words.c cuts them, each with
 * its stem, and the rank of hits. */
#include "db.h"

#define TOKENIZER "notegate"
/* Separates the words of a phrase in a match; marks a stem. Neither is part of a word. */
#define WORD_BORDER '\x1f'
#define STEM_MARK '\x1e'
/* In a pattern: the phrase as it was asked for, and other forms, which count less. */
#define FORM_EXACT 'E'
#define FORM_OTHER '.'

/* ---- cutting ---- */

typedef int tokenizer_fn(void *user, int flags, const char *token, int len, int from, int to);

struct token_sink {
    tokenizer_fn *fn;
    void *user;
    int rc;
};

static int sink_token(void *user, const struct token *token)
{
    struct token_sink *sink = user;
    char stem[WORD_BYTES_MAX + 1];
    int from = (int)token->from;
    int to = (int)token->to;
    sink->rc = sink->fn(sink->user, 0, token->text.data, (int)token->text.len, from, to);
    if (sink->rc == SQLITE_OK && token->stem.len > 0 && token->stem.len < sizeof(stem)) {
        stem[0] = STEM_MARK;
        memcpy(stem + 1, token->stem.data, token->stem.len);
        sink->rc = sink->fn(sink->user, FTS5_TOKEN_COLOCATED, stem, (int)token->stem.len + 1,
                            from, to);
    }
    if (sink->rc == SQLITE_OK) {
        return 0;
    }
    return 1;
}

/* The words of a match are folded already. */
static int cut_match(const char *text, int len, tokenizer_fn *fn, void *user)
{
    int rc = SQLITE_OK;
    for (int at = 0; at < len && rc == SQLITE_OK;) {
        int from = at;
        while (at < len && text[at] != WORD_BORDER) {
            at++;
        }
        if (at > from) {
            rc = fn(user, 0, text + from, at - from, from, at);
        } else {
            rc = SQLITE_OK;
        }
        at++;
    }
    return rc;
}

static int tokenizer_cut(Fts5Tokenizer *self, void *user, int flags, const char *text, int len,
                         tokenizer_fn *fn)
{
    (void)self;
    struct token_sink sink = {fn, user, SQLITE_OK};
    if ((flags & FTS5_TOKENIZE_QUERY) != 0) {
        return cut_match(text, len, fn, user);
    }
    int rc = tokens_each(str_of(text, len > 0 ? (size_t)len : 0), sink_token, &sink);
    if (rc == 0 || sink.rc != SQLITE_OK) {
        return sink.rc;
    }
    return SQLITE_NOMEM;
}

static int tokenizer_create(void *user, const char **args, int count, Fts5Tokenizer **ret)
{
    (void)args;
    (void)count;
    *ret = user; /* it has no state: any address will do */
    return SQLITE_OK;
}

static void tokenizer_delete(Fts5Tokenizer *self)
{
    (void)self;
}

/* ---- the rank ---- */

/* ng_rank(table, pattern, weight): wanted_rank() of a row. */
static void rank_row(const Fts5ExtensionApi *api, Fts5Context *row, sqlite3_context *result,
                     int count, sqlite3_value **args)
{
    const char *pattern = NULL;
    if (count == 2) {
        pattern = (const char *)sqlite3_value_text(args[0]);
    }
    int phrases = 0;
    if (pattern != NULL) {
        phrases = sqlite3_value_bytes(args[0]);
    }
    size_t wanted = 0;
    size_t found = 0;
    size_t exact = 0;
    bool counted = false; /* of the current phrase */
    if (phrases != api->xPhraseCount(row)) {
        sqlite3_result_error(result, "the pattern does not fit the match", -1);
        return;
    }
    for (int i = 0; i < phrases; i++) {
        Fts5PhraseIter at;
        int column = -1;
        int offset = -1;
        int rc = api->xPhraseFirst(row, i, &at, &column, &offset);
        if (rc != SQLITE_OK) {
            sqlite3_result_error_code(result, rc);
            return;
        }
        if (pattern[i] == FORM_EXACT) {
            wanted++;
            counted = false;
        }
        if (column >= 0 && !counted) {
            found++;
            exact += pattern[i] == FORM_EXACT;
            counted = true;
        }
    }
    sqlite3_result_double(result,
                          wanted_rank(wanted, found, exact, sqlite3_value_double(args[1])));
}

int tokens_register(sqlite3 *sql)
{
    static fts5_tokenizer tokenizer = {tokenizer_create, tokenizer_delete, tokenizer_cut};
    sqlite3_stmt *stmt = NULL;
    fts5_api *api = NULL;
    int rc = sqlite3_prepare_v2(sql, "SELECT fts5(?1)", -1, &stmt, NULL);
    if (rc != SQLITE_OK) {
        return rc;
    }
    (void)sqlite3_bind_pointer(stmt, 1, &api, "fts5_api_ptr", NULL);
    (void)sqlite3_step(stmt);
    rc = sqlite3_finalize(stmt);
    if (rc != SQLITE_OK || api == NULL) {
        if (rc != SQLITE_OK) {
            return rc;
        }
        return SQLITE_ERROR;
    }
    rc = api->xCreateTokenizer(api, TOKENIZER, sql, &tokenizer, NULL);
    if (rc != SQLITE_OK) {
        return rc;
    }
    return api->xCreateFunction(api, "ng_rank", NULL, rank_row, NULL);
}

/* ---- the match ---- */

static void add_form(struct bytes *match, struct bytes *pattern, char form, const char *mark,
                     struct ng_str words, bool star)
{
    (void)bytes_add_c(match, match->len > 0 ? " OR \"" : "\"");
    (void)bytes_add_c(match, mark);
    for (size_t i = 0; i < words.len; i++) {
        (void)bytes_add(match, words.data[i] == '"' ? "\"\"" : &words.data[i],
                        words.data[i] == '"' ? 2 : 1);
    }
    (void)bytes_add_c(match, star ? "\"*" : "\"");
    (void)bytes_add(pattern, &form, 1);
}

static int add_phrase(struct bytes *match, struct bytes *pattern, const struct phrase *phrase)
{
    const char mark[] = {STEM_MARK, '\0'};
    const char border = WORD_BORDER;
    struct bytes words = {0};
    for (size_t i = 0; i < phrase->count; i++) {
        (void)bytes_add(&words, &border, i > 0);
        (void)bytes_add(&words, phrase->words[i].data, phrase->words[i].len);
    }
    struct ng_str all = bytes_str(&words);
    struct ng_str stem = phrase->stem;
    add_form(match, pattern, FORM_EXACT, "", all, phrase->star);
    if (stem.len > 0) {
        add_form(match, pattern, FORM_OTHER, mark, stem, false);
        /* A word that equals its stem has no token for the stem. */
        if (!str_equal(stem, all)) {
            add_form(match, pattern, FORM_OTHER, "", stem, false);
        }
    }
    int rc = words.rc;
    bytes_done(&words);
    return rc;
}

int match_make(const struct wanted *wanted, struct bytes *ret_match, struct bytes *ret_pattern)
{
    int rc = NG_OK;
    for (size_t i = 0; i < wanted->count && rc == NG_OK; i++) {
        rc = add_phrase(ret_match, ret_pattern, &wanted->phrases[i]);
    }
    if (ret_match->rc != NG_OK) {
        return ret_match->rc;
    }
    if (ret_pattern->rc != NG_OK) {
        return ret_pattern->rc;
    }
    return rc;
}
