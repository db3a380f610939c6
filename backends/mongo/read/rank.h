/* SPDX-License-Identifier: MIT */
/* rank.h - the rank of a document in a search. */
#ifndef NOTEGATE_MONGO_RANK_H
#define NOTEGATE_MONGO_RANK_H

#include "../../shared/words.h"
#include "read.h"

/* Members of a document's terms, for one phrase. */
struct asked {
    struct ng_str word;
    struct ng_str stem; /* empty: the phrase matches as it is only */
    bool is_own_stem;   /* the stem, as a word, has no other stem */
};

struct ranking {
    const struct db_collection *collection;
    const struct wanted *wanted;
    struct asked asked[PHRASES_MAX];
    struct arena memory; /* of their names */
    bool by_terms;       /* each phrase is one word: the terms are enough */
    bool has_stars;
};

struct rank {
    double score; /* 0: none of the phrases occurs */
    size_t exact; /* phrases that match as they are */
};

/* false: no memory. */
bool ranking_begin(struct ranking *ranking, const struct db_collection *collection,
                   const struct wanted *wanted);
void ranking_end(struct ranking *ranking);
/* Adds to a projection what rank_by_terms() reads: of each document so much that its texts have
 * no part in it. Prefixes are counted by the server, if it can. */
void ranking_fields(const struct ranking *ranking, bson_t *fields);
/* false: the document has no terms of its revision. */
bool rank_by_terms(const struct ranking *ranking, const bson_t *doc, struct rank *ret);
struct rank rank_by_text(const struct ranking *ranking, const bson_t *doc);

/* The texts of field i of the collection or, below field_count, the text of the document: none
 * if it is not searched. Returns the weight. */
double searched_part(const struct db_collection *collection, size_t i, const bson_t *doc,
                     struct texts *ret);

#endif
