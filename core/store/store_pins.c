/* SPDX-License-Identifier: MIT */
/* store_pins.c - pins: revisions that the upkeep does not thin out. Documents of a collection
 * name them, by hashes in their texts. */
#include <endian.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/array.h"
#include "core/base/hash.h"
#include "core/base/str.h"
#include "core/base/text/hex.h"
#include "store.h"

/* Most pins of a collection. */
#define PINS_MAX ((size_t)16 * 1024 * 1024)

/* The length follows each text. These hashes are stored, so the function must never change. A
 * collision pins one revision too many. */
static uint64_t pin_mix(uint64_t hash, struct ng_str text)
{
    hash = hash_fnv(hash, text);
    for (size_t i = 0; i < sizeof(uint32_t); i++) {
        hash = hash_fnv_byte(hash, (unsigned char)(text.len >> (8 * i) & 0xff));
    }
    return hash;
}

static uint64_t pin_hash(const struct ng_key *key, uint64_t revision)
{
    uint64_t hash = pin_mix(HASH_FNV_BASIS, key->collection);
    hash = pin_mix(pin_mix(hash, key->space), key->id);
    return hash_fnv_u64(hash, revision);
}

void store_pin_write(const struct ng_key *key, uint64_t revision, char *ret)
{
    uint64_t hash = htobe64(pin_hash(key, revision));
    hex_write(&hash, sizeof(hash), ret);
}

struct pin_list {
    struct store_pins pins;
    size_t room;
    uint64_t last_seq;
    uint32_t rows;
    int rc;
};

static int list_row(void *user, const struct ng_doc *row)
{
    struct pin_list *list = user;
    struct store_pins *pins = &list->pins;
    size_t count = pins->count + row->text.len / STORE_PIN_CHARS;
    list->rows++;
    list->last_seq = row->created_seq;
    list->rc =
        array_reserve((void **)&pins->list, &list->room, count, sizeof(*pins->list), PINS_MAX);
    for (size_t at = 0; list->rc == NG_OK && at + STORE_PIN_CHARS <= row->text.len;
         at += STORE_PIN_CHARS) {
        uint64_t hash = 0;
        (void)hex_read(str_make(row->text.data + at, STORE_PIN_CHARS), &hash);
        pins->list[pins->count++] = be64toh(hash);
    }
    return list->rc != NG_OK;
}

static int pin_compare(const void *one, const void *other)
{
    uint64_t a = *(const uint64_t *)one;
    uint64_t b = *(const uint64_t *)other;
    return (a > b) - (a < b);
}

int store_pins_load(struct store *store, struct call *call, const struct store_pins_in *in,
                    struct store_pins *inout)
{
    struct pin_list list = {.rc = NG_OK};
    struct ng_term after = {.field = ng_str_of("created_seq"), .op = NG_TERM_GT};
    const struct ng_query query = {
        .size = sizeof(query),
        .collection = ng_str_of(in->collection),
        .space = ng_str_of(in->space),
        .terms = &after,
        .term_count = 1,
        .sort = ng_str_of("created_seq"),
        .limit = in->page,
        .with_text = true,
    };
    int rc = NG_OK;
    do {
        list.rows = 0;
        after.number = (double)list.last_seq;
        rc = store_query(store, call, &query, list_row, &list, NULL);
        if (rc == NG_OK && list.rc != NG_OK) {
            rc = call_fail(call, list.rc, "the pins in %s do not fit into memory",
                           in->collection);
        }
    } while (rc == NG_OK && list.rows == in->page);
    if (rc != NG_OK) {
        store_pins_done(&list.pins);
        return rc;
    }
    if (list.pins.count > 0) {
        qsort(list.pins.list, list.pins.count, sizeof(*list.pins.list), pin_compare);
    }
    store_pins_done(inout);
    *inout = list.pins;
    return NG_OK;
}

bool store_pins_have(const struct store_pins *pins, const struct ng_key *key, uint64_t revision)
{
    uint64_t hash = pin_hash(key, revision);
    return pins->count > 0 &&
           bsearch(&hash, pins->list, pins->count, sizeof(hash), pin_compare) != NULL;
}

void store_pins_done(struct store_pins *pins)
{
    free(pins->list);
    *pins = (struct store_pins){NULL, 0};
}
