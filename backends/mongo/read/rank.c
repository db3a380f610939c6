/* SPDX-License-Identifier: MIT */
/* rank.c - ranks a document for a search: by its terms, of which the server gives those that
 * are asked for, or by its texts. Both come to the same rank. */
#include "rank.h"

#include <stdio.h>

/* How fast further occurrences lose weight, and the length in words of an average text. */
#define RANK_SATURATION 1.2
#define RANK_USUAL_WORDS 120.0
/* The server looks at all words of a document for each prefix: with more of them, a search
 * ranks by the texts. */
#define RANK_STARS_MAX 8
/* The computed member for the prefix of a phrase. */
#define STAR_MEMBER "star"
#define STAR_MEMBER_MAX 16

/* Sums up the parts of one document. */
struct tally {
    struct found total[PHRASES_MAX];
    double weight;
};

static double part_score(double weight, size_t words, uint32_t hits)
{
    double length = 0.25 + 0.75 * (double)words / RANK_USUAL_WORDS;
    return weight * (double)hits / ((double)hits + RANK_SATURATION * length);
}

static void tally_part(struct tally *tally, size_t phrases, double weight, size_t words,
                       const struct found *hits)
{
    for (size_t i = 0; i < phrases; i++) {
        uint32_t both = hits[i].exact + hits[i].stems;
        tally->total[i].exact += hits[i].exact;
        tally->total[i].stems += hits[i].stems;
        if (both > 0) {
            tally->weight += part_score(weight, words, both);
        }
    }
}

static struct rank tally_rank(const struct tally *tally, size_t phrases)
{
    struct rank ret = {0};
    size_t found = 0;
    for (size_t i = 0; i < phrases; i++) {
        found += tally->total[i].exact + tally->total[i].stems > 0;
        ret.exact += tally->total[i].exact > 0;
    }
    ret.score = wanted_rank(phrases, found, ret.exact, tally->weight);
    return ret;
}

/* ---- by the texts ---- */

double searched_part(const struct db_collection *collection, size_t i, const bson_t *doc,
                     struct texts *ret)
{
    ret->count = 0;
    if (i < collection->field_count) {
        texts_add(ret, doc, &collection->fields[i]);
        return collection->fields[i].weight;
    }
    if ((collection->flags & NG_COLLECTION_TEXT_SEARCH) != 0) {
        ret->list[ret->count++].text = member_str(doc, collection->text_member);
    }
    return 1.0;
}

struct rank rank_by_text(const struct ranking *ranking, const bson_t *doc)
{
    const struct db_collection *collection = ranking->collection;
    struct tally tally = {.weight = 0};
    for (size_t i = 0; i <= collection->field_count; i++) {
        struct found hits[PHRASES_MAX] = {0};
        size_t words = 0;
        struct texts part;
        double weight = searched_part(collection, i, doc, &part);
        for (size_t j = 0; j < part.count; j++) {
            words += wanted_count(ranking->wanted, part.list[j].text, hits);
        }
        tally_part(&tally, ranking->wanted->count, weight, words, hits);
    }
    return tally_rank(&tally, ranking->wanted->count);
}

/* ---- by the terms ---- */

bool ranking_begin(struct ranking *ranking, const struct db_collection *collection,
                   const struct wanted *wanted)
{
    struct bytes name = {0};
    bool failed = false;
    size_t stars = 0;
    *ranking = (struct ranking){.collection = collection, .wanted = wanted};
    arena_init(&ranking->memory, 0);
    ranking->by_terms = true;
    for (size_t i = 0; i < wanted->count; i++) {
        const struct phrase *phrase = &wanted->phrases[i];
        struct asked *asked = &ranking->asked[i];
        char stem[WORD_BYTES_MAX];
        asked->word = arena_copy(&ranking->memory, term_name(phrase->words[0], &name));
        asked->stem = arena_copy(&ranking->memory, term_name(phrase->stem, &name));
        asked->is_own_stem = token_stem(phrase->stem, stem).len == 0;
        failed = failed || name.rc != NG_OK;
        stars += phrase->star;
        ranking->by_terms = ranking->by_terms && phrase->count == 1;
    }
    ranking->has_stars = stars > 0;
    ranking->by_terms = ranking->by_terms && stars <= RANK_STARS_MAX;
    bytes_done(&name);
    return !failed && !ranking->memory.failed;
}

void ranking_end(struct ranking *ranking)
{
    arena_done(&ranking->memory);
}

static void show_term(bson_t *fields, const char *list, struct ng_str name)
{
    struct bytes path = {0};
    bson_iter_t iter;
    (void)bytes_add_c(&path, TERMS_PARTS);
    (void)bytes_add_c(&path, list);
    if (bytes_add(&path, name.data, name.len) == NG_OK &&
        !bson_iter_init_find_w_len(&iter, fields, path.data, (int)path.len)) {
        (void)bson_append_int32(fields, path.data, (int)path.len, 1);
    }
    bytes_done(&path);
}

static void star_member(size_t phrase, char ret[STAR_MEMBER_MAX])
{
    (void)snprintf(ret, STAR_MEMBER_MAX, STAR_MEMBER "%zu", phrase);
}

/* In each part, how many words begin with the prefix. */
static void show_star(bson_t *fields, size_t phrase, struct ng_str prefix)
{
    char name[STAR_MEMBER_MAX];
    star_member(phrase, name);
    bson_t *words = bson_of("$filter:{input:{$objectToArray:t}, as:t, "
                            "cond:{$eq:[{$indexOfBytes:[t, s, 0, i]}, 0]}}",
                            "$$part.words", "word", "$$word.k", prefix, (int)prefix.len);
    bson_add(fields, "%:{$map:{input:t, as:t, in:{$sum:{$map:{input:D, as:t, in:t}}}}}", name,
             "$" TERMS_PARTS, "part", words, "word", "$$word.v");
    bson_destroy(words);
}

void ranking_fields(const struct ranking *ranking, bson_t *fields)
{
    bson_add(fields, "%:1, %:1, %:1, %:1", REVISION, TERMS_REVISION, TERMS_PARTS ".of",
             TERMS_PARTS ".n");
    for (size_t i = 0; i < ranking->wanted->count; i++) {
        const struct asked *asked = &ranking->asked[i];
        if (ranking->wanted->phrases[i].star) {
            show_star(fields, i, asked->word);
            continue;
        }
        show_term(fields, ".words.", asked->word);
        if (asked->stem.len > 0) {
            show_term(fields, ".words.", asked->stem);
            show_term(fields, ".stems.", asked->stem);
        }
    }
}

/* false: there is none. */
static bool count_of(const bson_t *part, const char *list, struct ng_str name, uint32_t *ret)
{
    bson_t counts;
    bson_iter_t iter;
    *ret = 0;
    if (name.len == 0 || !member_doc(part, list, &counts) ||
        !bson_iter_init_find_w_len(&iter, &counts, name.data, (int)name.len)) {
        return false;
    }
    *ret = (uint32_t)bson_iter_as_int64(&iter);
    return true;
}

/* Words that are the stem, or have it. A stem without a count of its own is a word. */
static uint32_t forms_of(const bson_t *part, const struct asked *asked)
{
    uint32_t forms = 0;
    uint32_t as_word = 0;
    bool has_forms = count_of(part, "stems", asked->stem, &forms);
    (void)count_of(part, "words", asked->stem, &as_word);
    if (!has_forms || !asked->is_own_stem) {
        forms += as_word;
    }
    return forms;
}

/* *ret_weight: of the part; false: it is not searched any more. */
static bool part_weight(const struct db_collection *collection, struct ng_str of,
                        double *ret_weight)
{
    *ret_weight = 1.0;
    if (of.len == 0) {
        return (collection->flags & NG_COLLECTION_TEXT_SEARCH) != 0;
    }
    for (size_t i = 0; i < collection->field_count; i++) {
        const struct db_field *field = &collection->fields[i];
        if (field->use == NG_FIELD_TEXT && str_is(of, field->name)) {
            *ret_weight = field->weight;
            return true;
        }
    }
    return false;
}

static void count_terms(const struct ranking *ranking, const bson_t *doc, const char *index,
                        const bson_t *part, struct found *hits)
{
    for (size_t i = 0; i < ranking->wanted->count; i++) {
        const struct asked *asked = &ranking->asked[i];
        if (ranking->wanted->phrases[i].star) {
            char path[2 * STAR_MEMBER_MAX];
            star_member(i, path);
            size_t len = strlen(path);
            (void)snprintf(path + len, sizeof(path) - len, ".%s", index);
            hits[i].exact = (uint32_t)member_u64(doc, path);
            continue;
        }
        (void)count_of(part, "words", asked->word, &hits[i].exact);
        if (asked->stem.len > 0) {
            hits[i].stems = u32_max(forms_of(part, asked), hits[i].exact) - hits[i].exact;
        }
    }
}

bool rank_by_terms(const struct ranking *ranking, const bson_t *doc, struct rank *ret)
{
    struct tally tally = {.weight = 0};
    uint64_t revision = member_u64(doc, REVISION);
    bson_t parts, part;
    bson_iter_t iter, words;
    if (revision == 0 || revision != member_u64(doc, TERMS_REVISION) ||
        !member_doc(doc, TERMS_PARTS, &parts) || !bson_iter_init(&iter, &parts)) {
        return false;
    }
    while (bson_iter_next(&iter)) {
        struct found hits[PHRASES_MAX] = {0};
        double weight = 0;
        if (!iter_doc(&iter, &part) || !bson_iter_init_find(&words, &part, "n")) {
            return false;
        }
        if (part_weight(ranking->collection, member_str(&part, "of"), &weight)) {
            count_terms(ranking, doc, bson_iter_key(&iter), &part, hits);
            tally_part(&tally, ranking->wanted->count, weight,
                       (size_t)bson_iter_as_int64(&words), hits);
        }
    }
    *ret = tally_rank(&tally, ranking->wanted->count);
    return true;
}
