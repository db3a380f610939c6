/* SPDX-License-Identifier: MIT */
/*
 * text_words.c - the members of a document by which searches need not read its texts:
 *
 * notegate.words, the distinct words and stems, each between blanks: the server narrows down by
 * it. notegate.terms, how often each of them occurs in each searched part: the rank is made of
 * it. An older version of the gateway changes a document without its terms, so these name the
 * revision that they are of.
 */
#include "../../shared/words.h"
#include "core/base/hash_table.h"
#include "document.h"

/* Bytes of the words of one document; of a text with more, the first distinct ones count. */
#define WORDS_BYTES_MAX ((size_t)1024 * 1024)

struct word {
    struct hash_link link;
    struct ng_str text;
    struct word *stem; /* or itself; NULL: not known yet */
    struct word *next; /* of the part */
    bool in_part;
    int32_t exact, forms; /* in the part: its occurrences; those of the words with this stem */
};

struct word_set {
    struct hash_table table;
    struct arena memory;
    struct bytes list, name;
    struct word *part, **part_end; /* the words of the part, as they came */
    int64_t tokens;                /* of the part */
    bool failed;                   /* no memory */
};

static bool is_word(const struct hash_link *link, const void *key)
{
    const struct word *word = HASH_ITEM(link, const struct word, link);
    return str_equal(word->text, *(const struct ng_str *)key);
}

/* *ret NULL: there is no room for another word. */
static int take_word(struct word_set *set, struct ng_str text, struct word **ret)
{
    uint64_t hash = str_hash(text);
    struct hash_link *link = hash_table_find(&set->table, hash, is_word, &text);
    *ret = NULL;
    if (link != NULL) {
        *ret = HASH_ITEM(link, struct word, link);
        return NG_OK;
    }
    if (set->list.len > WORDS_BYTES_MAX) {
        return NG_OK;
    }
    struct word *word = arena_alloc(&set->memory, sizeof(*word));
    struct ng_str copy = arena_copy(&set->memory, text);
    if (word == NULL || copy.data == NULL) {
        return NG_EINTERNAL;
    }
    *word = (struct word){.text = copy};
    *ret = word;
    (void)bytes_add(&set->list, copy.data, copy.len);
    (void)bytes_add(&set->list, " ", 1);
    return hash_table_add(&set->table, &word->link, hash);
}

static int take_stem(struct word_set *set, struct word *word)
{
    char buf[WORD_BYTES_MAX];
    struct ng_str stem = token_stem(word->text, buf);
    if (stem.len == 0) {
        word->stem = word;
        return NG_OK;
    }
    return take_word(set, stem, &word->stem);
}

static void note_word(struct word_set *set, struct word *word)
{
    if (!word->in_part) {
        word->in_part = true;
        word->next = NULL;
        word->exact = 0;
        word->forms = 0;
        *set->part_end = word;
        set->part_end = &word->next;
    }
}

static int add_token(void *user, const struct token *token)
{
    struct word_set *set = user;
    struct word *word = NULL;
    int rc = NG_OK;
    set->tokens++;
    if (token->text.len > 0) {
        rc = take_word(set, token->text, &word);
    }
    if (rc != NG_OK || word == NULL) {
        return rc;
    }
    if (word->stem == NULL) {
        rc = take_stem(set, word);
    }
    note_word(set, word);
    word->exact++;
    if (word->stem != NULL) {
        note_word(set, word->stem);
        word->stem->forms++;
    }
    return rc;
}

struct ng_str term_name(struct ng_str word, struct bytes *ret)
{
    (void)bytes_set(ret, word);
    for (size_t i = 0; i < ret->len; i++) {
        if (ret->data[i] == '.' || ret->data[i] == '$') {
            ret->data[i] = '_';
        }
    }
    return bytes_str(ret);
}

static void add_count(bson_t *counts, struct word_set *set, const struct word *word,
                      int32_t count)
{
    struct ng_str name = term_name(word->text, &set->name);
    if (count > 0 && set->name.rc == NG_OK) {
        (void)bson_append_int32(counts, name.data, (int)name.len, count);
    }
    set->failed = set->failed || set->name.rc != NG_OK;
}

/* Ends the part. A stem that occurs only as it is has the count of that word. */
static void add_part(struct word_set *set, bson_t *parts, const char *of)
{
    char digits[16];
    const char *key = NULL;
    bson_t part, counts;
    (void)bson_uint32_to_string(bson_count_keys(parts), &key, digits, sizeof(digits));
    BSON_APPEND_DOCUMENT_BEGIN(parts, key, &part);
    bson_add(&part, "of:t, n:l", of, set->tokens);
    BSON_APPEND_DOCUMENT_BEGIN(&part, "words", &counts);
    for (const struct word *word = set->part; word != NULL; word = word->next) {
        add_count(&counts, set, word, word->exact);
    }
    (void)bson_append_document_end(&part, &counts);
    BSON_APPEND_DOCUMENT_BEGIN(&part, "stems", &counts);
    for (struct word *word = set->part; word != NULL; word = word->next) {
        if (word->stem != word || word->forms != word->exact) {
            add_count(&counts, set, word, word->forms);
        }
        word->in_part = false;
    }
    (void)bson_append_document_end(&part, &counts);
    (void)bson_append_document_end(parts, &part);
}

/* The parts have the order in which a rank adds them up. */
static int add_texts(struct word_set *set, bson_t *parts,
                     const struct db_collection *collection, struct ng_str text,
                     const struct ng_field_value *fields, size_t field_count)
{
    int rc = NG_OK;
    for (size_t i = 0; i <= collection->field_count && rc == NG_OK; i++) {
        const char *of = TERMS_OF_TEXT;
        set->part = NULL;
        set->part_end = &set->part;
        set->tokens = 0;
        if (i < collection->field_count) {
            of = collection->fields[i].name;
            for (size_t j = 0; j < field_count && rc == NG_OK; j++) {
                if (fields[j].use == NG_FIELD_TEXT && str_is(fields[j].name, of)) {
                    rc = tokens_each(fields[j].text, add_token, set);
                }
            }
        } else if ((collection->flags & NG_COLLECTION_TEXT_SEARCH) != 0) {
            rc = tokens_each(text, add_token, set);
        }
        if (set->tokens > 0) {
            add_part(set, parts, of);
        }
    }
    return rc;
}

int words_append(bson_t *own, const struct db_collection *collection, uint64_t revision,
                 struct ng_str text, const struct ng_field_value *fields, size_t field_count)
{
    struct word_set set = {.list = {0}};
    bson_t parts = BSON_INITIALIZER;
    arena_init(&set.memory, 0);
    int rc = bytes_add(&set.list, " ", 1);
    if (rc == NG_OK) {
        rc = add_texts(&set, &parts, collection, text, fields, field_count);
    }
    bson_add(own, "words:s, terms:{revision:u, parts:A}", bytes_str(&set.list), revision,
             &parts);
    rc = int_min(rc, set.list.rc); /* NG_OK is the greatest */
    if (set.failed) {
        rc = NG_EINTERNAL;
    }
    bson_destroy(&parts);
    hash_table_done(&set.table);
    arena_done(&set.memory);
    bytes_done(&set.list);
    bytes_done(&set.name);
    return rc;
}

/* ---- documents that an older version has stored ---- */

struct fill {
    struct mongo *db;
    const struct db_collection *collection;
};

/* Conditional on the revision: a change meanwhile has written them itself. There may be no room
 * in the document: then it is ranked by its text. */
static int fill_doc(void *user, const bson_t *doc, struct fault *fault)
{
    struct fill *fill = user;
    struct mongo *db = fill->db;
    const struct db_collection *collection = fill->collection;
    bson_t own = BSON_INITIALIZER;
    bson_t set = BSON_INITIALIZER;
    bson_iter_t words;
    struct texts texts;
    texts_of(doc, collection, &texts);
    int rc = words_append(&own, collection, member_u64(doc, "notegate.revision"),
                          member_str(doc, collection->text_member), texts.list, texts.count);
    own_append(&set, &own);
    if (rc == NG_OK) {
        (void)op_update(db, NULL, collection->name, name_filter(doc, true),
                        bson_of("$set:D", &set), NULL, fault);
        rc = fault->rc;
    }
    bson_destroy(&own);
    bson_destroy(&set);
    if (rc == NG_ETOOLARGE && member(doc, WORDS, &words)) {
        memset(fault, 0, sizeof(*fault));
        rc = NG_OK;
    }
    if (rc == NG_OK) {
        return atomic_load(&db->closing);
    }
    return rc;
}

bool words_fill(struct mongo *db, const struct db_collection *collection)
{
    struct fault fault;
    struct fill fill = {.db = db, .collection = collection};
    struct walk walk = {.db = db,
                        .collection = collection->name,
                        .filter = bson_of("$or:[{%:N}, {%:N}, {$expr:{$ne:[t,t]}}]", WORDS,
                                          TERMS, "$" TERMS_REVISION, "$notegate.revision"),
                        .each = fill_doc,
                        .user = &fill};
    int rc = walk_documents(&walk, &fault);
    return rc == NG_OK && !atomic_load(&db->closing);
}
