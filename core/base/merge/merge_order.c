/* SPDX-License-Identifier: MIT */
/* merge_order.c - three-way merge of ordered lists of unique ids. Each id gets a number, and
 * the lists are merged as texts with a number in each line. */
#include "merge_order.h"

#include "core/base/arena.h"
#include "core/base/buf.h"
#include "core/base/minmax.h"
#include "core/base/str.h"
#include "merge3.h"

#include <stdlib.h>

#define ORDER_LISTS 3
#define ORDER_LINE_MAX                                                                         \
    8 /* digits of a number below ORDER_LISTS * MERGE_ORDER_MAX, and the line end */

_Static_assert(MERGE_ORDER_MAX *ORDER_LINE_MAX <= MERGE3_TEXT_MAX, "a list fits into a text");

enum order_list { ORDER_BASE, ORDER_PRESENT, ORDER_BEFORE };

/* An id at its place in a list. */
struct order_place {
    struct ng_str id;
    enum order_list list;
    size_t index;
};

/* A distinct id. */
struct order_id {
    struct ng_str id;
    bool in[ORDER_LISTS];
    bool merged; /* it is in the result */
};

struct order_work {
    const struct merge_list *lists[ORDER_LISTS];
    uint32_t *numbers[ORDER_LISTS]; /* of each id of a list, in its order */
    struct order_id *ids;           /* by number */
    size_t id_count;
    size_t wanted; /* how many the result must have */
};

static int order_compare(const void *a, const void *b)
{
    const struct order_place *one = a;
    const struct order_place *other = b;
    return str_compare(one->id, other->id);
}

static bool order_is_wanted(const struct order_id *id)
{
    return (id->in[ORDER_PRESENT] && id->in[ORDER_BEFORE]) ||
           (!id->in[ORDER_BASE] && (id->in[ORDER_PRESENT] || id->in[ORDER_BEFORE]));
}

/* Numbers the ids of all lists by their bytes. */
static int order_number(struct order_work *work, struct order_place *places, size_t count)
{
    qsort(places, count, sizeof(*places), order_compare);
    for (size_t i = 0; i < count; i++) {
        const struct order_place *place = &places[i];
        if (i == 0 || !str_equal(place->id, places[i - 1].id)) {
            work->ids[work->id_count++] = (struct order_id){.id = place->id};
        }
        struct order_id *id = &work->ids[work->id_count - 1];
        if (id->in[place->list]) {
            return NG_EINVAL;
        }
        id->in[place->list] = true;
        work->numbers[place->list][place->index] = (uint32_t)(work->id_count - 1);
    }
    for (size_t i = 0; i < work->id_count; i++) {
        work->wanted += order_is_wanted(&work->ids[i]);
    }
    return NG_OK;
}

static int order_prepare(struct order_work *work)
{
    size_t count = 0;
    for (int list = 0; list < ORDER_LISTS; list++) {
        if (work->lists[list]->count > MERGE_ORDER_MAX) {
            return NG_ETOOLARGE;
        }
        count += work->lists[list]->count;
    }
    struct order_place *places = alloc_bytes((count + 1) * sizeof(*places));
    work->ids = alloc_zeroed(count + 1, sizeof(*work->ids));
    bool oom = places == NULL || work->ids == NULL;
    size_t at = 0;
    for (int list = 0; !oom && list < ORDER_LISTS; list++) {
        const struct merge_list *from = work->lists[list];
        work->numbers[list] = alloc_zeroed(from->count + 1, sizeof(*work->numbers[list]));
        oom = work->numbers[list] == NULL;
        for (size_t i = 0; i < from->count; i++) {
            places[at++] = (struct order_place){from->ids[i], (enum order_list)list, i};
        }
    }
    int rc = oom ? NG_EINTERNAL : order_number(work, places, count);
    free(places);
    return rc;
}

enum order_of { ORDER_OF_ALL, ORDER_OF_WANTED };

/* A list as a text: the numbers of all its ids, or of those that the result has. */
static int order_text(const struct order_work *work, enum order_list list, enum order_of of,
                      struct buf *text)
{
    buf_init(text, MERGE3_TEXT_MAX);
    for (size_t i = 0; i < work->lists[list]->count; i++) {
        uint32_t number = work->numbers[list][i];
        if (of == ORDER_OF_ALL || order_is_wanted(&work->ids[number])) {
            (void)buf_add_number(text, number);
            (void)buf_add_char(text, '\n');
        }
    }
    return text->rc;
}

/* Reads the merged text: the result has each id that it must have once. */
static void order_read(struct order_work *work, struct ng_str text, struct merge_order *ret)
{
    size_t at = 0;
    bool twice = false;
    ret->count = 0;
    for (size_t i = 0; i < work->id_count; i++) {
        work->ids[i].merged = false;
    }
    while (at < text.len) {
        size_t number = 0;
        while (at < text.len && text.data[at] != '\n') {
            number = number * 10 + (size_t)(text.data[at++] - '0');
        }
        at++;
        struct order_id *id = &work->ids[number];
        if (order_is_wanted(id)) {
            twice = twice || id->merged;
            if (!id->merged) {
                ret->ids[ret->count++] = id->id;
            }
            id->merged = true;
        }
    }
    ret->conflict = twice || ret->count != work->wanted;
}

static int order_try(struct order_work *work, enum order_of of, struct merge_order *ret)
{
    struct buf texts[ORDER_LISTS];
    struct merge3 merge = {0};
    int rc = NG_OK;
    for (int list = 0; list < ORDER_LISTS; list++) {
        int made = order_text(work, (enum order_list)list, of, &texts[list]);
        rc = rc == NG_OK ? made : rc;
    }
    if (rc == NG_OK) {
        rc = merge3_texts(buf_str(&texts[ORDER_BASE]), buf_str(&texts[ORDER_PRESENT]),
                          buf_str(&texts[ORDER_BEFORE]), &merge);
        ret->conflict = true;
        if (rc == NG_OK && merge.conflict_count == 0) {
            order_read(work, buf_str(&merge.text), ret);
        }
        merge3_done(&merge);
    }
    for (int list = 0; list < ORDER_LISTS; list++) {
        buf_done(&texts[list]);
    }
    return rc;
}

int merge_order(const struct merge_list *base, const struct merge_list *present,
                const struct merge_list *before, struct merge_order *ret)
{
    struct order_work work = {.lists = {base, present, before}};
    *ret = (struct merge_order){0};
    int rc = order_prepare(&work);
    if (rc == NG_OK) {
        ret->ids = alloc_bytes((work.wanted + 1) * sizeof(*ret->ids));
        rc = ret->ids == NULL ? NG_EINTERNAL : order_try(&work, ORDER_OF_ALL, ret);
    }
    if (rc == NG_OK && ret->conflict) {
        rc = order_try(&work, ORDER_OF_WANTED, ret);
    }
    if (ret->conflict) {
        ret->count = 0;
    }
    for (int list = 0; list < ORDER_LISTS; list++) {
        free(work.numbers[list]);
    }
    free(work.ids);
    return rc;
}

void merge_order_done(struct merge_order *order)
{
    free(order->ids);
    *order = (struct merge_order){0};
}
