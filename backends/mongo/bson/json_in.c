/* SPDX-License-Identifier: MIT */
/* json_in.c - converts the JSON of an entry to BSON members. The core has validated the JSON. A
 * top-level member with a value that BSON cannot represent is left out; the caller then stores
 * the text as well. */
#include <yajl/yajl_parse.h>

#include "bson_members.h"
#include "core/base/text/rfc3339.h"

/* BSON is limited to 100 levels, including our own. */
#define LEVELS_MAX 80
/* Decimal digits that any int64_t holds. */
#define INTEGER_DIGITS 18

struct level {
    bson_t doc;
    bool array;
    uint32_t index; /* of the next item */
};

struct reader {
    struct level levels[LEVELS_MAX]; /* 0: the top-level member that is being read */
    size_t depth;                    /* of the JSON; all deeper than LEVELS_MAX is unfit */
    struct bytes key, number;
    bool in_metadata, in_history; /* the member */
    bool unfit; /* the member cannot be represented: what is read of it is thrown away */
    bool whole;
    bson_t *ret;
};

/* Rejects names with a special meaning for the server or for our paths. */
static bool fit_name(struct ng_str name, bool top)
{
    return name.len > 0 && name.data[0] != '$' && memchr(name.data, '.', name.len) == NULL &&
           memchr(name.data, '\0', name.len) == NULL &&
           !(top && str_in_words(name, "_id space outbox notegate content code json text"));
}

static bool is_date_name(const struct reader *in, struct ng_str name)
{
    return (in->in_metadata && in->depth == 2 && str_ends(name, "_at")) ||
           (in->in_history && in->depth == 3 && str_is(name, "timestamp"));
}

/* Exactly the form in which dates are printed. */
static bool date_parse(struct ng_str text, int64_t *ret_ms)
{
    struct rfc3339 time;
    char again[RFC3339_SIZE];
    if (!rfc3339_read(text, &time)) {
        return false;
    }
    *ret_ms = rfc3339_ms(&time);
    rfc3339_write(*ret_ms, RFC3339_MS, again);
    return str_is(text, again);
}

static struct level *level_now(struct reader *in)
{
    return &in->levels[size_min(in->depth, LEVELS_MAX) - 1];
}

/* A value has ended: perhaps the top-level member with it. */
static int value_ended(struct reader *in)
{
    bool good = true;
    if (in->depth == 1) {
        in->whole = in->whole && !in->unfit;
        good = in->unfit || bson_concat(in->ret, &in->levels[0].doc);
        bson_reinit(&in->levels[0].doc);
        in->unfit = false;
    }
    return good;
}

/* The name of the next value. */
static struct ng_str next_name(struct reader *in, char digits[16])
{
    struct level *level = level_now(in);
    struct ng_str name = bytes_str(&in->key);
    if (level->array) {
        name.len = bson_uint32_to_string(level->index++, &name.data, digits, 16);
    }
    return name;
}

static int add(struct reader *in, bson_value_t value)
{
    char digits[16];
    struct ng_str name = next_name(in, digits);
    int64_t ms = 0;
    if (value.value_type == BSON_TYPE_UTF8 && is_date_name(in, name) &&
        date_parse(str_of(value.value.v_utf8.str, value.value.v_utf8.len), &ms)) {
        value = (bson_value_t){.value_type = BSON_TYPE_DATE_TIME, .value.v_datetime = ms};
    }
    in->unfit =
        in->unfit || !bson_append_value(&level_now(in)->doc, name.data, (int)name.len, &value);
    return value_ended(in);
}

/* ---- events of the parser ---- */

static int on_key(void *user, const unsigned char *text, size_t len)
{
    struct reader *in = user;
    struct ng_str name = str_of((const char *)text, len);
    if (!fit_name(name, in->depth == 1)) {
        in->unfit = true;
        name.len = 0;
    }
    if (in->depth == 1) {
        in->in_metadata = str_is(name, "metadata");
        in->in_history = str_is(name, "history");
    }
    return bytes_set(&in->key, name) == NG_OK;
}

static int on_string(void *user, const unsigned char *text, size_t len)
{
    bson_value_t value = {.value_type = BSON_TYPE_UTF8};
    value.value.v_utf8.str = (char *)(uintptr_t)text; /* only read */
    value.value.v_utf8.len = (uint32_t)len;
    return add(user, value);
}

/* Integers that fit are stored as integers, everything else as doubles. */
static int on_number(void *user, const char *text, size_t len)
{
    struct reader *in = user;
    bson_value_t value = {.value_type = BSON_TYPE_INT64};
    if (bytes_set(&in->number, str_of(text, len)) != NG_OK ||
        bytes_add(&in->number, "", 1) != NG_OK) {
        return 0;
    }
    if (len <= INTEGER_DIGITS && strpbrk(in->number.data, ".eE") == NULL) {
        value.value.v_int64 = strtoll(in->number.data, NULL, 10);
    } else {
        value.value_type = BSON_TYPE_DOUBLE;
        value.value.v_double = strtod(in->number.data, NULL);
    }
    return add(in, value);
}

static int on_boolean(void *user, int value)
{
    return add(user, (bson_value_t){.value_type = BSON_TYPE_BOOL, .value.v_bool = value != 0});
}

static int on_null(void *user)
{
    return add(user, (bson_value_t){.value_type = BSON_TYPE_NULL});
}

static int begin(struct reader *in, bool array)
{
    if (in->depth > 0 && in->depth < LEVELS_MAX) {
        char digits[16];
        struct ng_str name = next_name(in, digits);
        bson_t *parent = &level_now(in)->doc;
        struct level *child = &in->levels[in->depth];
        *child = (struct level){.array = array};
        if (array) {
            (void)bson_append_array_begin(parent, name.data, (int)name.len, &child->doc);
        } else {
            (void)bson_append_document_begin(parent, name.data, (int)name.len, &child->doc);
        }
    }
    in->unfit = in->unfit || in->depth == LEVELS_MAX;
    in->depth++;
    return 1;
}

static int on_map(void *user)
{
    return begin(user, false);
}

static int on_array(void *user)
{
    return begin(user, true);
}

static int on_end(void *user)
{
    struct reader *in = user;
    in->depth--;
    if (in->depth == 0) {
        return 1;
    }
    if (in->depth < LEVELS_MAX) {
        /* Of an array just the same. */
        (void)bson_append_document_end(&level_now(in)->doc, &in->levels[in->depth].doc);
    }
    return value_ended(in);
}

/* ---- memory for yajl, which does not check what its allocator returns ---- */

/* As all else of the driver's: without memory it ends the process. */
static void *yajl_new(void *user, size_t bytes)
{
    (void)user;
    return bson_malloc(bytes);
}

static void *yajl_resize(void *user, void *memory, size_t bytes)
{
    (void)user;
    return bson_realloc(memory, bytes);
}

static void yajl_done(void *user, void *memory)
{
    (void)user;
    bson_free(memory);
}

int json_members(struct ng_str json, bson_t *ret, bool *ret_whole)
{
    static const yajl_callbacks callbacks = {
        .yajl_null = on_null,
        .yajl_boolean = on_boolean,
        .yajl_number = on_number,
        .yajl_string = on_string,
        .yajl_start_map = on_map,
        .yajl_map_key = on_key,
        .yajl_end_map = on_end,
        .yajl_start_array = on_array,
        .yajl_end_array = on_end,
    };
    struct reader in = {.whole = true, .ret = ret};
    bson_init(&in.levels[0].doc);
    yajl_alloc_funcs memory = {yajl_new, yajl_resize, yajl_done, NULL};
    yajl_handle parser = yajl_alloc(&callbacks, &memory, &in);
    bool good =
        parser != NULL &&
        yajl_parse(parser, (const unsigned char *)json.data, json.len) == yajl_status_ok &&
        yajl_complete_parse(parser) == yajl_status_ok;
    if (parser != NULL) {
        yajl_free(parser);
    }
    bson_destroy(&in.levels[0].doc);
    bytes_done(&in.key);
    bytes_done(&in.number);
    *ret_whole = in.whole;
    return good ? NG_OK : NG_EINVAL;
}
