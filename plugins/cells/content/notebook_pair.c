/* SPDX-License-Identifier: MIT */
/* notebook_pair.c - which cells of three notebooks are the same cell: by their ids, else by
 * their sources and places. */
#include "notebook_pair.h"

#include "core/base/arena.h"
#include "core/base/merge/merge3.h"
#include "core/base/merge/merge_hunks.h"
#include "core/base/str.h"

/* Bytes of a line for a cell, and of an id that is made: a letter or digit, and digits. */
#define PAIR_LINE ((size_t)8)

/* ---- comparison of cells as lines ---- */

/* Cells are compared by it. */
struct pair_content {
    struct hash_link link;
    struct ng_str source;
    enum nb_type type;
    size_t uses; /* in both notebooks */
};

struct pair_contents {
    struct hash_table table;
    struct pair_content *items;
    size_t count;
};

static bool pair_is_content(const struct hash_link *link, const void *key)
{
    const struct pair_content *content = HASH_ITEM(link, const struct pair_content, link);
    const struct pair_content *wanted = key;
    return content->type == wanted->type && str_equal(content->source, wanted->source);
}

/* Adds the number of the content of each cell to the text, as a line. */
static int pair_add_lines(struct pair_contents *contents, const struct notebook *notebook,
                          struct buf *text)
{
    int rc = NG_OK;
    for (size_t i = 0; rc == NG_OK && i < notebook->nb.cell_count; i++) {
        struct pair_content *next = &contents->items[contents->count];
        *next = (struct pair_content){.source = notebook_view_source(&notebook->view, i),
                                      .type = notebook->nb.cells[i].type};
        uint64_t hash = str_hash(next->source) ^ (uint64_t)next->type;
        struct hash_link *link = hash_table_find(&contents->table, hash, pair_is_content, next);
        if (link == NULL) {
            rc = hash_table_add(&contents->table, &next->link, hash);
            link = &next->link;
            contents->count++;
        }
        struct pair_content *content = HASH_ITEM(link, struct pair_content, link);
        content->uses++;
        (void)buf_printf(text, "%07zu\n", (size_t)(content - contents->items));
    }
    return rc == NG_OK ? text->rc : rc;
}

static bool pair_is_single(const struct pair_contents *contents, struct ng_str text, size_t at)
{
    size_t number = 0;
    for (size_t i = 0; i + 1 < PAIR_LINE; i++) {
        number = number * 10 + (size_t)(text.data[at + i] - '0');
    }
    return contents->items[number].uses == 1;
}

/* Do the cells that differ have no equal one? */
static bool pair_stretch_is_clear(const struct pair_contents *contents,
                                  const struct merge_hunks *hunks,
                                  const struct merge_hunk *hunk)
{
    size_t removed = hunk->base_end - hunk->base;
    size_t added = hunk->side_end - hunk->side;
    bool clear = removed == added || removed == 0 || added == 0;
    for (size_t at = hunk->base; clear && at < hunk->base_end; at += PAIR_LINE) {
        clear = pair_is_single(contents, hunks->base, at);
    }
    for (size_t at = hunk->side; clear && at < hunk->side_end; at += PAIR_LINE) {
        clear = pair_is_single(contents, hunks->side, at);
    }
    return clear;
}

/* From hunks to the cell of base that each cell of the side is. */
static int pair_follow(const struct pair_contents *contents, const struct merge_hunks *hunks,
                       size_t *base_of)
{
    size_t base = 0;
    size_t side = 0;
    for (size_t i = 0; i < hunks->count; i++) {
        const struct merge_hunk *hunk = &hunks->items[i];
        if (!pair_stretch_is_clear(contents, hunks, hunk)) {
            return NG_EINVAL;
        }
        while (side < hunk->side / PAIR_LINE) {
            base_of[side++] = base++;
        }
        bool replaced = hunk->base_end > hunk->base;
        while (side < hunk->side_end / PAIR_LINE) {
            base_of[side++] = replaced ? base++ : NOTEBOOK_NO_CELL;
        }
        base = hunk->base_end / PAIR_LINE;
    }
    while (side < hunks->side.len / PAIR_LINE) {
        base_of[side++] = base++;
    }
    return NG_OK;
}

/* *ret_base_of: for each cell of the side the index of the cell of base that it is, or
 * NOTEBOOK_NO_CELL; to be freed in any case. NG_EINVAL: ambiguous. */
static int pair_compare(const struct notebook *base, const struct notebook *side,
                        size_t **ret_base_of)
{
    size_t count = base->nb.cell_count + side->nb.cell_count;
    struct pair_contents contents = {.items = alloc_zeroed(count + 1, sizeof(*contents.items))};
    struct merge_hunks hunks = {.count = 0};
    struct buf texts[2];
    int64_t steps = MERGE3_STEPS_MAX;
    int rc = NG_EINTERNAL;
    buf_init(&texts[0], (count + 1) * PAIR_LINE);
    buf_init(&texts[1], (count + 1) * PAIR_LINE);
    *ret_base_of = alloc_zeroed(side->nb.cell_count + 1, sizeof(**ret_base_of));
    if (contents.items != NULL && *ret_base_of != NULL) {
        rc = pair_add_lines(&contents, base, &texts[0]);
    }
    if (rc == NG_OK) {
        rc = pair_add_lines(&contents, side, &texts[1]);
    }
    if (rc == NG_OK) {
        rc = merge_hunks_find(buf_str(&texts[0]), buf_str(&texts[1]), &steps, &hunks);
    }
    if (rc == NG_OK) {
        rc = hunks.coarse ? NG_EINVAL : pair_follow(&contents, &hunks, *ret_base_of);
    }
    merge_hunks_done(&hunks);
    buf_done(&texts[0]);
    buf_done(&texts[1]);
    hash_table_done(&contents.table);
    free(contents.items);
    return rc;
}

/* ---- ids ---- */

static bool pair_have_ids(const struct notebook sides[NOTEBOOK_SIDES])
{
    for (int side = 0; side < NOTEBOOK_SIDES; side++) {
        for (size_t i = 0; i < sides[side].nb.cell_count; i++) {
            if (!sides[side].nb.cells[i].id_unique) {
                return false;
            }
        }
    }
    return true;
}

static void pair_take_ids(const struct nb *nb, struct ng_str *ids)
{
    for (size_t i = 0; i < nb->cell_count; i++) {
        ids[i] = str_make(nb->bytes.data + nb->cells[i].id.at + 1, nb->cells[i].id.len - 2);
    }
}

/* Ids of cells without one: those of base are numbered, a side's own have a letter of it. */
static int pair_make_ids(const struct notebook sides[NOTEBOOK_SIDES],
                         struct notebook_pairs *ret)
{
    static const char letters[] = "bpq";
    size_t *base_of[NOTEBOOK_SIDES] = {NULL};
    size_t total = 0;
    int rc = NG_OK;
    for (int side = 0; side < NOTEBOOK_SIDES; side++) {
        total += sides[side].nb.cell_count;
        if (rc == NG_OK && side != NOTEBOOK_BASE) {
            rc = pair_compare(&sides[NOTEBOOK_BASE], &sides[side], &base_of[side]);
        }
    }
    buf_init(&ret->made, (total + 1) * PAIR_LINE);
    if (rc == NG_OK && buf_reserve(&ret->made, total * PAIR_LINE) == NULL) {
        rc = NG_EINTERNAL;
    }
    for (int side = 0; rc == NG_OK && side < NOTEBOOK_SIDES; side++) {
        for (size_t i = 0; i < sides[side].nb.cell_count; i++) {
            size_t same = side == NOTEBOOK_BASE ? NOTEBOOK_NO_CELL : base_of[side][i];
            ret->ids[side][i] = str_make(ret->made.data + ret->made.len, PAIR_LINE);
            if (same != NOTEBOOK_NO_CELL) {
                ret->ids[side][i] = ret->ids[NOTEBOOK_BASE][same];
            } else {
                rc = buf_printf(&ret->made, "%c%07zu", letters[side], i);
            }
        }
    }
    for (int side = 0; side < NOTEBOOK_SIDES; side++) {
        free(base_of[side]);
    }
    return rc;
}

static bool pair_is_id(const struct hash_link *link, const void *key)
{
    const struct ng_str *id = key;
    return str_equal(HASH_ITEM(link, const struct notebook_pair, link)->id, *id);
}

static int pair_add(struct notebook_pairs *pairs, enum notebook_side side, size_t cell)
{
    struct ng_str id = pairs->ids[side][cell];
    uint64_t hash = str_hash(id);
    struct hash_link *link = hash_table_find(&pairs->table, hash, pair_is_id, &id);
    int rc = NG_OK;
    if (link == NULL) {
        struct notebook_pair *pair = &pairs->items[pairs->count++];
        *pair = (struct notebook_pair){
            .id = id, .at = {NOTEBOOK_NO_CELL, NOTEBOOK_NO_CELL, NOTEBOOK_NO_CELL}};
        link = &pair->link;
        rc = hash_table_add(&pairs->table, link, hash);
    }
    HASH_ITEM(link, struct notebook_pair, link)->at[side] = cell;
    return rc;
}

int notebook_pairs_find(const struct notebook sides[NOTEBOOK_SIDES], struct notebook_pairs *ret)
{
    size_t total = 0;
    bool oom = false;
    *ret = (struct notebook_pairs){.by_id = pair_have_ids(sides)};
    for (int side = 0; side < NOTEBOOK_SIDES; side++) {
        size_t count = sides[side].nb.cell_count;
        total += count;
        ret->ids[side] = alloc_zeroed(count + 1, sizeof(*ret->ids[side]));
        oom = oom || ret->ids[side] == NULL;
    }
    ret->items = alloc_zeroed(total + 1, sizeof(*ret->items));
    if (oom || ret->items == NULL) {
        return NG_EINTERNAL;
    }
    for (int side = 0; ret->by_id && side < NOTEBOOK_SIDES; side++) {
        pair_take_ids(&sides[side].nb, ret->ids[side]);
    }
    int rc = ret->by_id ? NG_OK : pair_make_ids(sides, ret);
    for (int side = 0; side < NOTEBOOK_SIDES; side++) {
        for (size_t i = 0; rc == NG_OK && i < sides[side].nb.cell_count; i++) {
            rc = pair_add(ret, (enum notebook_side)side, i);
        }
    }
    return rc;
}

const struct notebook_pair *notebook_pairs_get(const struct notebook_pairs *pairs,
                                               struct ng_str id)
{
    struct hash_link *link = hash_table_find(&pairs->table, str_hash(id), pair_is_id, &id);
    return link == NULL ? NULL : HASH_ITEM(link, const struct notebook_pair, link);
}

void notebook_pairs_done(struct notebook_pairs *pairs)
{
    for (int side = 0; side < NOTEBOOK_SIDES; side++) {
        free(pairs->ids[side]);
    }
    hash_table_done(&pairs->table);
    buf_done(&pairs->made);
    free(pairs->items);
    *pairs = (struct notebook_pairs){.count = 0};
}
