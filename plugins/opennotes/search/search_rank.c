/* SPDX-License-Identifier: MIT */
/* search_rank.c - the page of a search whose notes are on the board: ranks by marks, the order
 * of the board within a rank. Only the notes of the page are read. */
#include <string.h>

#include "search.h"

#define RANKS ((size_t)256) /* the values of uint8_t */
#define SCORES 6            /* of one word, and the mark 0 */
_Static_assert(NOTES_FUZZY_WORDS_MAX *SCORES < RANKS, "ranks of similar words");
_Static_assert(NOTES_FUZZY_WORDS_MAX + NOTES_MARK_BODY < RANKS, "ranks of texts");

/* Ids of the page. */
struct page {
    uint32_t *notes;
    size_t count;
    size_t total;
};

static int make_page(struct notes_search *search, struct page *page)
{
    const struct notes_answer *answer = &search->answer;
    if (answer->offset >= (int64_t)page->total) {
        return SQLITE_OK;
    }
    page->count = page->total - (size_t)answer->offset;
    if ((int64_t)page->count > answer->limit) {
        page->count = (size_t)answer->limit;
    }
    page->notes = arena_zalloc(search->arena, page->count * sizeof(*page->notes) + 1);
    return page->notes != NULL ? SQLITE_OK : SQLITE_NOMEM;
}

/* Ranks: by id, 0 is no hit, the lowest comes first. A walk in the order of the board ends
 * with the last note of the page. */
static int find_page(struct notes_search *search, const uint8_t *ranks, struct page *page)
{
    const struct notes_board *board = search->board;
    size_t counts[RANKS] = {0};
    size_t at[RANKS] = {0}; /* of the next note of a rank */
    for (size_t i = 0; i < board->count; i++) {
        counts[ranks[board->order[i]]]++;
    }
    for (size_t rank = 1; rank < RANKS; rank++) {
        at[rank] = page->total;
        page->total += counts[rank];
    }
    int rc = make_page(search, page);
    size_t first = (size_t)search->answer.offset;
    size_t left = page->count;
    for (size_t i = 0; i < board->count && left > 0 && rc == SQLITE_OK; i++) {
        uint8_t rank = ranks[board->order[i]];
        if (rank == 0) {
            continue;
        }
        size_t place = at[rank]++;
        if (place >= first && place - first < page->count) {
            page->notes[place - first] = board->order[i];
            left--;
        }
    }
    return rc;
}

static int take_page(struct notes_search *search, const uint8_t *ranks)
{
    struct notes_answer *answer = &search->answer;
    struct page page = {.notes = NULL};
    int rc = find_page(search, ranks, &page);
    answer->rows = answer->offset;
    for (size_t i = 0; i < page.count && rc == SQLITE_OK && notes_answer_more(answer); i++) {
        rc = notes_search_take(search, page.notes[i]);
    }
    answer->rows = (int64_t)page.total;
    return rc;
}

/* ---- ranks ---- */

static int get_needles(struct notes_search *search, enum notes_needle_kind kind)
{
    int rc = SQLITE_OK;
    for (size_t i = 0; i < search->word_count && rc == SQLITE_OK; i++) {
        rc = notes_needle_get(search, kind, search->words[i], &search->needles[i]);
    }
    return rc;
}

/* By id, zeroed. */
static uint8_t *make_ranks(struct notes_search *search)
{
    return arena_zalloc(search->arena, search->board->size + 1);
}

/* Every word adds its score. */
static void add_scores(uint8_t *ranks, const uint8_t *marks, size_t size, bool first)
{
    for (size_t id = 0; id < size; id++) {
        bool both = marks[id] > 0 && (first || ranks[id] > 0);
        ranks[id] = both ? (uint8_t)(ranks[id] + marks[id]) : 0;
    }
}

int notes_rank_similar(struct notes_search *search)
{
    uint8_t *ranks = make_ranks(search);
    int rc = ranks != NULL ? get_needles(search, NOTES_NEEDLE_WORD) : SQLITE_NOMEM;
    for (size_t i = 0; i < search->word_count && rc == SQLITE_OK; i++) {
        add_scores(ranks, search->needles[i]->marks, search->board->size, i == 0);
    }
    if (rc == SQLITE_OK) {
        rc = take_page(search, ranks);
    }
    return rc;
}

_Static_assert(NOTES_FUZZY_WORDS_MAX <= 16, "a bit of uint16_t for each word");

static void add_marks(const struct notes_search *search, const struct notes_needle *needle,
                      size_t word, uint16_t *has)
{
    for (size_t id = 0; id < search->board->size; id++) {
        has[id] = (uint16_t)(has[id] | (needle->marks[id] > 0) << word);
    }
}

/* The needle of a stem may take the place of one that is in use: their marks are added first.
 */
static int add_forms(struct notes_search *search, uint16_t *has)
{
    struct notes_needle *needle = NULL;
    char stem[NOTES_STEM_BYTES_MAX];
    int rc = SQLITE_OK;
    for (size_t i = 0; i < search->word_count && rc == SQLITE_OK; i++) {
        if (search->forms[i].count == 0) {
            continue;
        }
        rc = notes_needle_get(search, NOTES_NEEDLE_STEM, notes_stem(search->written[i], stem),
                              &needle);
        if (rc == SQLITE_OK) {
            add_marks(search, needle, i, has);
        }
    }
    return rc;
}

/* Notes with the whole query by its mark, then those with most of the words. */
static int rank_words(struct notes_search *search, const struct notes_needle *whole,
                      uint8_t *ranks)
{
    size_t size = search->board->size;
    size_t last = NOTES_MARK_BODY + 1 + search->word_count;
    uint16_t *has = arena_zalloc(search->arena, size * sizeof(*has) + 1);
    if (has == NULL) {
        return SQLITE_NOMEM;
    }
    memcpy(ranks, whole->marks, size);
    for (size_t i = 0; i < search->word_count; i++) {
        add_marks(search, search->needles[i], i, has);
    }
    int rc = add_forms(search, has);
    for (size_t id = 0; id < size; id++) {
        if (ranks[id] == 0 && has[id] != 0) {
            ranks[id] = (uint8_t)(last - (size_t)__builtin_popcount(has[id]));
        }
    }
    return rc;
}

int notes_rank_words(struct notes_search *search)
{
    struct notes_needle *whole = NULL;
    uint8_t *ranks = make_ranks(search);
    enum notes_needle_kind kind =
        search->word_count > 1 ? NOTES_NEEDLE_WHOLE : NOTES_NEEDLE_TEXT;
    int rc = ranks != NULL ? get_needles(search, NOTES_NEEDLE_TEXT) : SQLITE_NOMEM;
    if (rc == SQLITE_OK) {
        rc = notes_needle_get(search, kind, search->folded, &whole);
    }
    if (rc == SQLITE_OK) {
        rc = rank_words(search, whole, ranks);
    }
    if (rc == SQLITE_OK) {
        rc = take_page(search, ranks);
    }
    return rc;
}

int notes_rank_text(struct notes_search *search)
{
    struct notes_needle *needle = NULL;
    int rc = notes_needle_get(search, NOTES_NEEDLE_TEXT, search->folded, &needle);
    if (rc == SQLITE_OK) {
        rc = take_page(search, needle->marks);
    }
    return rc;
}

int notes_rank_all(struct notes_search *search)
{
    uint8_t *ranks = make_ranks(search);
    if (ranks == NULL) {
        return SQLITE_NOMEM;
    }
    memset(ranks, NOTES_MARK_TITLE, search->board->size);
    return take_page(search, ranks);
}
