/* SPDX-License-Identifier: MIT */
/* tokens.c - the tokens of the full-text index: words as shared/words.c cuts them, each with
 * its stem; the rank of hits and their places. */
#include "places.h"

#include <math.h>

#include "core/base/minmax.h"

#define TOKENIZER "notegate"
/* Separates the words of a phrase in a match; marks a stem. Neither is part of a word. */
#define WORD_BORDER '\x1f'
#define STEM_MARK '\x1e'
/* In a pattern: the phrase as it was asked for, or as a prefix, and other forms, which count
 * less. */
#define FORM_EXACT 'E'
#define FORM_PREFIX 'P'
#define FORM_OTHER '.'
#define FORM_IGNORED '-'

/* ---- cutting ---- */

typedef int tokenizer_fn(void *user, int flags, const char *token, int len, int from, int to);

struct token_sink {
    tokenizer_fn *fn;
    void *user;
    struct marks *marks; /* NULL: not wanted */
    int rc;
};

static int sink_token(void *user, const struct token *token)
{
    struct token_sink *sink = user;
    char marked[WORD_BYTES_MAX + 1];
    struct ng_str stem = token_stem(token->text, marked + 1);
    int from = (int)token->from;
    int to = (int)token->to;
    sink->rc = marks_token(sink->marks, token->from);
    if (sink->rc == SQLITE_OK) {
        sink->rc = sink->fn(sink->user, 0, token->text.data, (int)token->text.len, from, to);
    }
    if (sink->rc == SQLITE_OK && stem.len > 0) {
        marked[0] = STEM_MARK;
        sink->rc =
            sink->fn(sink->user, FTS5_TOKEN_COLOCATED, marked, (int)stem.len + 1, from, to);
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
    struct conn *conn = (struct conn *)(void *)self;
    struct token_sink sink = {fn, user, conn->marks, SQLITE_OK};
    if ((flags & FTS5_TOKENIZE_QUERY) != 0) {
        return cut_match(text, len, fn, user);
    }
    marks_column(sink.marks);
    int rc = tokens_each(str_of(text, (size_t)int_max(len, 0)), sink_token, &sink);
    if (rc == 0 || sink.rc != SQLITE_OK) {
        return sink.rc;
    }
    return SQLITE_NOMEM;
}

static int tokenizer_create(void *user, const char **args, int count, Fts5Tokenizer **ret)
{
    (void)args;
    (void)count;
    *ret = user; /* the connection */
    return SQLITE_OK;
}

static void tokenizer_delete(Fts5Tokenizer *self)
{
    (void)self;
}

/* ---- the rank ---- */

/* The constants of BM25, as FTS5 sets them. */
#define BM25_K1 1.2
#define BM25_B 0.75
/* The limit for counting the documents of a phrase; beyond it the number is estimated. */
#define RANK_COUNT_MAX 2000
#define RANK_COLUMNS_MAX 32
/* Of a prefix, whose documents FTS5 cannot count in part. */
#define RANK_PREFIX_RARITY 1.0

/* The part of the rank that all rows of one search share. */
struct rank {
    double average; /* tokens of a document */
    size_t count;
    double rarity[]; /* of each phrase */
};

struct rank_count {
    int64_t rows, last; /* the last one, by rowid */
};

static int count_row(const Fts5ExtensionApi *api, Fts5Context *row, void *user)
{
    struct rank_count *count = user;
    count->rows++;
    count->last = api->xRowid(row);
    if (count->rows < RANK_COUNT_MAX) {
        return SQLITE_OK;
    }
    return SQLITE_DONE;
}

/* Of a phrase among `rows` documents up to rowid `newest`: what is common to all says little.
 */
static int rarity_of(const Fts5ExtensionApi *api, Fts5Context *row, int phrase, double rows,
                     double newest, double *ret)
{
    struct rank_count count = {0};
    int rc = api->xQueryPhrase(row, phrase, &count, count_row);
    double with = (double)count.rows;
    if (count.rows == RANK_COUNT_MAX && (double)count.last < newest) {
        with *= newest / (double)count.last; /* as many among the newer ones */
    }
    double rarity = 0;
    if (with < rows) {
        rarity = log((rows - with + 0.5) / (with + 0.5));
    }
    *ret = fmax(rarity, 1e-6);
    return rc;
}

static int rank_new(const Fts5ExtensionApi *api, Fts5Context *row, const char *pattern,
                    size_t phrases, double newest, struct rank **ret)
{
    sqlite3_int64 rows = 0;
    sqlite3_int64 tokens = 0;
    struct rank *rank = calloc(1, sizeof(*rank) + phrases * sizeof(double));
    if (rank == NULL) {
        return SQLITE_NOMEM;
    }
    int rc = api->xRowCount(row, &rows);
    if (rc == SQLITE_OK) {
        rc = api->xColumnTotalSize(row, -1, &tokens);
    }
    rank->count = phrases;
    rank->average = 1;
    if (rows > 0 && tokens > 0) {
        rank->average = (double)tokens / (double)rows;
    }
    for (size_t i = 0; i < phrases && rc == SQLITE_OK; i++) {
        rank->rarity[i] = RANK_PREFIX_RARITY;
        if (pattern[i] == FORM_EXACT || pattern[i] == FORM_OTHER) {
            rc = rarity_of(api, row, (int)i, (double)rows, newest, &rank->rarity[i]);
        }
    }
    if (rc == SQLITE_OK) {
        rc = api->xSetAuxdata(row, rank, free); /* frees it if it fails */
        *ret = rank;
    } else {
        free(rank);
    }
    return rc;
}

/* The counts of one row. */
struct rank_row {
    double weights[RANK_COLUMNS_MAX];
    int columns;
    size_t wanted, found, exact;
    double weight;
    struct place place;
    bool place_exact;
};

/* The text comes before the fields, then what is exact, then what is first. */
static void add_place(struct rank_row *row, bool exact, int column, int token)
{
    struct place *best = &row->place;
    bool better = column > best->column;
    if (column == best->column) {
        better = exact != row->place_exact ? exact : token < best->token;
    }
    if (better) {
        *best = (struct place){column, token};
        row->place_exact = exact;
    }
}

/* Adds the places of a phrase in the row; *ret is their weighted number. */
static int add_places(const Fts5ExtensionApi *api, Fts5Context *context, int phrase, bool exact,
                      struct rank_row *row, double *ret)
{
    Fts5PhraseIter at;
    int column = -1;
    int offset = -1;
    int last = -1;
    int rc = api->xPhraseFirst(context, phrase, &at, &column, &offset);
    *ret = 0;
    while (rc == SQLITE_OK && column >= 0) {
        *ret += column < row->columns ? row->weights[column] : 1;
        if (column != last) {
            last = column;
            add_place(row, exact, column, offset + api->xPhraseSize(context, phrase) - 1);
        }
        api->xPhraseNext(context, &at, &column, &offset);
    }
    return rc;
}

static int rank_phrases(const Fts5ExtensionApi *api, Fts5Context *row, const struct rank *rank,
                        const char *pattern, struct rank_row *ret)
{
    int tokens = 0;
    bool counted = false; /* of the current phrase */
    int rc = api->xColumnSize(row, -1, &tokens);
    double length = BM25_K1 * (1 - BM25_B + BM25_B * (double)tokens / rank->average);
    for (size_t i = 0; i < rank->count && rc == SQLITE_OK; i++) {
        double places = 0;
        if (pattern[i] == FORM_IGNORED) {
            continue;
        }
        bool exact = pattern[i] != FORM_OTHER;
        rc = add_places(api, row, (int)i, exact, ret, &places);
        if (exact) {
            ret->wanted++;
            counted = false;
        }
        if (places > 0 && !counted) {
            ret->found++;
            ret->exact += exact;
            counted = true;
        }
        ret->weight += rank->rarity[i] * places * (BM25_K1 + 1) / (places + length);
    }
    return rc;
}

/* ng_rank(table, pattern, newest rowid, weight of each column...): struct ranked of a row. */
static void rank_row(const Fts5ExtensionApi *api, Fts5Context *row, sqlite3_context *result,
                     int count, sqlite3_value **args)
{
    const char *pattern = NULL;
    int phrases = api->xPhraseCount(row);
    struct rank_row found = {.columns = int_min(count - 2, RANK_COLUMNS_MAX),
                             .place = {.column = -1}};
    if (count > 1) {
        pattern = (const char *)sqlite3_value_text(args[0]);
    }
    if (pattern == NULL || sqlite3_value_bytes(args[0]) != phrases) {
        sqlite3_result_error(result, "the pattern does not fit the match", -1);
        return;
    }
    for (int i = 0; i < found.columns; i++) {
        found.weights[i] = sqlite3_value_double(args[i + 2]);
    }
    struct rank *rank = api->xGetAuxdata(row, 0);
    int rc = SQLITE_OK;
    if (rank == NULL) {
        rc = rank_new(api, row, pattern, (size_t)phrases, sqlite3_value_double(args[1]), &rank);
    }
    if (rc == SQLITE_OK) {
        rc = rank_phrases(api, row, rank, pattern, &found);
    }
    if (rc != SQLITE_OK) {
        sqlite3_result_error_code(result, rc);
        return;
    }
    struct ranked ranked = {
        .score = wanted_rank(found.wanted, found.found, found.exact, found.weight),
        .exact = found.exact,
        .place = found.place};
    sqlite3_result_blob(result, &ranked, sizeof(ranked), SQLITE_TRANSIENT);
}

int tokens_register(struct conn *conn)
{
    sqlite3 *sql = conn->sql;
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
    rc = api->xCreateTokenizer(api, TOKENIZER, conn, &tokenizer, NULL);
    if (rc != SQLITE_OK) {
        return rc;
    }
    return api->xCreateFunction(api, "ng_rank", NULL, rank_row, NULL);
}

/* ---- the match ---- */

static void add_form(struct match *match, bool first, char form, const char *mark,
                     struct ng_str words, bool star)
{
    (void)bytes_add_c(&match->text, first ? "\"" : " OR \"");
    (void)bytes_add_c(&match->text, mark);
    for (size_t i = 0; i < words.len; i++) {
        (void)bytes_add(&match->text, words.data[i] == '"' ? "\"\"" : &words.data[i],
                        words.data[i] == '"' ? 2 : 1);
    }
    (void)bytes_add_c(&match->text, star ? "\"*" : "\"");
    (void)bytes_add(&match->pattern, &form, 1);
}

/* ignored: its forms do not count for the rank. */
static int add_phrase(struct match *match, const struct phrase *phrase, bool ignored)
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
    char exact = FORM_EXACT;
    char other = FORM_OTHER;
    if (phrase->star) {
        exact = FORM_PREFIX;
    }
    if (ignored) {
        exact = FORM_IGNORED;
        other = FORM_IGNORED;
    }
    add_form(match, true, exact, "", all, phrase->star);
    if (stem.len > 0) {
        add_form(match, false, other, mark, stem, false);
        /* A word that equals its stem has no token for the stem. */
        if (!str_equal(stem, all)) {
            add_form(match, false, other, "", stem, false);
        }
    }
    int rc = words.rc;
    bytes_done(&words);
    return rc;
}

/* All phrases, each in brackets, with this word of FTS5 between them. */
static int add_phrases(struct match *match, const struct wanted *wanted, const char *between)
{
    int rc = NG_OK;
    for (size_t i = 0; i < wanted->count && rc == NG_OK; i++) {
        (void)bytes_add_c(&match->text, i > 0 ? between : "");
        (void)bytes_add_c(&match->text, "(");
        rc = add_phrase(match, &wanted->phrases[i], false);
        (void)bytes_add_c(&match->text, ")");
    }
    return rc;
}

int match_make(const struct wanted *wanted, size_t phrase, struct match *ret)
{
    int rc = NG_OK;
    if (phrase < wanted->count) {
        (void)bytes_add_c(&ret->text, "(");
        rc = add_phrase(ret, &wanted->phrases[phrase], true);
        (void)bytes_add_c(&ret->text, ") AND (");
    }
    if (rc == NG_OK) {
        rc = add_phrases(ret, wanted, phrase == MATCH_ALL ? " AND " : " OR ");
    }
    if (phrase < wanted->count) {
        (void)bytes_add_c(&ret->text, ")");
    }
    if (rc != NG_OK) {
        return rc;
    }
    return int_min(ret->text.rc, ret->pattern.rc); /* NG_OK is the greatest */
}

void match_done(struct match *match)
{
    bytes_done(&match->text);
    bytes_done(&match->pattern);
}
