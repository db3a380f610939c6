/* SPDX-License-Identifier: MIT */
/* index_tokens.c - FTS5 tokenizers: the trigrams of a text (notes_grams) and its words
 * (notes_words), each once. The full-text tables keep no positions, and most of the work of
 * filling them is to look up tokens that they have already. */
#include "index_tokens.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/hash.h"
#include "text/text.h"

#define SLOTS_BITS 13
#define CODE_POINT_BITS 21
#define HASH_FACTOR UINT64_C(0x9e3779b97f4a7c15)

typedef int (*take_token)(void *context, int flags, const char *token, int len, int start,
                          int end);

/* Tokens seen in the present text: a cache, so that a token may rarely come twice. */
struct slot {
    uint64_t text; /* number of it */
    uint64_t gram; /* notes_grams: its three characters */
    struct ng_str word;
};

struct tokenizer {
    bool words;
    uint64_t text;
    struct slot slots[(size_t)1 << SLOTS_BITS];
};

static struct slot *slot_of(struct tokenizer *tokenizer, uint64_t hash)
{
    return &tokenizer->slots[(hash * HASH_FACTOR) >> (64 - SLOTS_BITS)];
}

static int cut_grams(struct tokenizer *tokenizer, struct ng_str text, void *context,
                     take_token take)
{
    const uint64_t mask = (UINT64_C(1) << (3 * CODE_POINT_BITS)) - 1;
    size_t starts[3] = {0};
    uint64_t gram = 0;
    size_t characters = 0;
    for (size_t next = 0; next < text.len;) {
        starts[0] = starts[1];
        starts[1] = starts[2];
        starts[2] = next;
        uint64_t c = (uint64_t)notes_next(text, &next);
        gram = (gram << CODE_POINT_BITS | c) & mask;
        if (++characters < 3) {
            continue;
        }
        struct slot *slot = slot_of(tokenizer, gram);
        if (slot->text == tokenizer->text && slot->gram == gram) {
            continue;
        }
        slot->text = tokenizer->text;
        slot->gram = gram;
        int rc = take(context, 0, text.data + starts[0], (int)(next - starts[0]),
                      (int)starts[0], (int)next);
        if (rc != SQLITE_OK) {
            return rc;
        }
    }
    return SQLITE_OK;
}

static int cut_words(struct tokenizer *tokenizer, struct ng_str text, void *context,
                     take_token take)
{
    struct ng_str word;
    size_t letters = 0;
    for (size_t at = 0; notes_word_next(text, &at, &word, &letters);) {
        struct slot *slot = slot_of(tokenizer, hash_fnv(HASH_FNV_BASIS, word));
        if (slot->text == tokenizer->text && str_equal(slot->word, word)) {
            continue;
        }
        slot->text = tokenizer->text;
        slot->word = word;
        int start = (int)(word.data - text.data);
        int rc = take(context, 0, word.data, (int)word.len, start, start + (int)word.len);
        if (rc != SQLITE_OK) {
            return rc;
        }
    }
    return SQLITE_OK;
}

/* ---- what FTS5 calls ---- */

static int create(void *user, const char **arguments, int count, Fts5Tokenizer **ret)
{
    struct tokenizer *tokenizer = calloc(1, sizeof(*tokenizer));
    (void)arguments;
    (void)count;
    if (tokenizer == NULL) {
        return SQLITE_NOMEM;
    }
    tokenizer->words = user != NULL;
    *ret = (Fts5Tokenizer *)tokenizer;
    return SQLITE_OK;
}

static void destroy(Fts5Tokenizer *tokenizer)
{
    free(tokenizer);
}

static int tokenize(Fts5Tokenizer *user, void *context, int flags, const char *data, int len,
                    take_token take)
{
    struct tokenizer *tokenizer = (struct tokenizer *)user;
    struct ng_str text = str_make(data, len > 0 ? (size_t)len : 0);
    (void)flags;
    tokenizer->text++;
    if (tokenizer->words) {
        return cut_words(tokenizer, text, context, take);
    }
    return cut_grams(tokenizer, text, context, take);
}

int notes_tokens_register(sqlite3 *db)
{
    static fts5_tokenizer functions = {create, destroy, tokenize};
    static char words_mark;
    fts5_api *api = NULL;
    sqlite3_stmt *statement = NULL;
    int rc = sqlite3_prepare_v2(db, "SELECT fts5(?1)", -1, &statement, NULL);
    if (rc == SQLITE_OK) {
        rc = sqlite3_bind_pointer(statement, 1, (void *)&api, "fts5_api_ptr", NULL);
    }
    if (rc == SQLITE_OK) {
        (void)sqlite3_step(statement);
    }
    (void)sqlite3_finalize(statement);
    if (rc == SQLITE_OK && api == NULL) {
        rc = SQLITE_ERROR;
    }
    if (rc != SQLITE_OK) {
        return rc;
    }
    rc = api->xCreateTokenizer(api, "on_grams", NULL, &functions, NULL);
    if (rc != SQLITE_OK) {
        return rc;
    }
    return api->xCreateTokenizer(api, "on_words", &words_mark, &functions, NULL);
}
