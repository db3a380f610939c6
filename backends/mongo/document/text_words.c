/* SPDX-License-Identifier: MIT */
/* text_words.c - notegate.words: the distinct words and stems of a document's searchable texts,
 * each between blanks, by which the server narrows a search down. */
#include "../../shared/words.h"
#include "core/base/hash_table.h"
#include "document.h"

/* Bytes of the words of one document; of a text with more, the first distinct ones count. */
#define WORDS_BYTES_MAX ((size_t)1024 * 1024)

struct word {
    struct hash_link link;
    struct ng_str text;
};

struct word_set {
    struct hash_table table;
    struct arena memory;
    struct bytes list;
};

static bool is_word(const struct hash_link *link, const void *key)
{
    const struct word *word = HASH_ITEM(link, const struct word, link);
    return str_equal(word->text, *(const struct ng_str *)key);
}

static int add_word(struct word_set *set, struct ng_str text)
{
    uint64_t hash = str_hash(text);
    if (text.len == 0 || hash_table_find(&set->table, hash, is_word, &text) != NULL) {
        return NG_OK;
    }
    struct word *word = arena_alloc(&set->memory, sizeof(*word));
    struct ng_str copy = arena_copy(&set->memory, text);
    if (word == NULL || copy.data == NULL) {
        return NG_EINTERNAL;
    }
    word->text = copy;
    (void)bytes_add(&set->list, copy.data, copy.len);
    (void)bytes_add(&set->list, " ", 1);
    return hash_table_add(&set->table, &word->link, hash);
}

static int add_token(void *user, const struct token *token)
{
    struct word_set *set = user;
    char stem[WORD_BYTES_MAX];
    int rc = add_word(set, token->text);
    if (rc == NG_OK) {
        rc = add_word(set, token_stem(token->text, stem));
    }
    if (rc == NG_OK && set->list.len > WORDS_BYTES_MAX) {
        rc = NG_ETOOLARGE; /* enough */
    }
    return rc;
}

int words_append(bson_t *own, const char *name, const struct db_collection *collection,
                 struct ng_str text, const struct ng_field_value *fields, size_t field_count)
{
    struct word_set set = {.list = {0}};
    arena_init(&set.memory, 0);
    int rc = bytes_add(&set.list, " ", 1);
    if (rc == NG_OK && (collection->flags & NG_COLLECTION_TEXT_SEARCH) != 0) {
        rc = tokens_each(text, add_token, &set);
    }
    for (size_t i = 0; i < field_count && rc == NG_OK; i++) {
        if (fields[i].use == NG_FIELD_TEXT) {
            rc = tokens_each(fields[i].text, add_token, &set);
        }
    }
    put_str(own, name, bytes_str(&set.list));
    int failed = set.list.rc;
    hash_table_done(&set.table);
    arena_done(&set.memory);
    bytes_done(&set.list);
    if (failed != NG_OK) {
        return failed;
    }
    if (rc == NG_ETOOLARGE) {
        return NG_OK;
    }
    return rc;
}

/* ---- documents that were stored before there was such a list ---- */

struct fill {
    struct mongo *db;
    const struct db_collection *collection;
};

/* Conditional on the revision: a change meanwhile has written the list itself. */
static int fill_doc(void *user, const bson_t *doc, struct fault *fault)
{
    struct fill *fill = user;
    struct mongo *db = fill->db;
    const struct db_collection *collection = fill->collection;
    bson_t set = BSON_INITIALIZER;
    struct texts texts;
    texts_of(doc, collection, &texts);
    int rc = words_append(&set, "notegate.words", collection,
                          member_str(doc, collection->text_member), texts.list, texts.count);
    if (rc == NG_OK) {
        (void)op_update(db, NULL, collection->name, name_filter(doc, true),
                        bson_of("$set:D", &set), NULL, fault);
        rc = fault->rc;
    }
    bson_destroy(&set);
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
                        .filter = bson_of("notegate.words:N"),
                        .each = fill_doc,
                        .user = &fill};
    int rc = walk_documents(&walk, &fault);
    return rc == NG_OK && !atomic_load(&db->closing);
}
