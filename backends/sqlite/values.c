/* SPDX-License-Identifier: MIT */
/* values.c - the declared fields of a document as one blob: compared with the index of values,
 * and searched by conditions without an index. */
#include "db.h"

#include <math.h>

/* An entry: field (8 bytes), kind (1), length (8), bytes. Numbers are 8 bytes. Little-endian.
 */
#define ENTRY_HEAD 17

static void put_le(unsigned char *at, uint64_t number)
{
    for (unsigned i = 0; i < 8; i++) {
        at[i] = (unsigned char)(number >> (8 * i));
    }
}

static uint64_t get_le(const unsigned char *at)
{
    uint64_t number = 0;
    for (unsigned i = 0; i < 8; i++) {
        number |= (uint64_t)at[i] << (8 * i);
    }
    return number;
}

static int add_entry(struct bytes *out, const struct value *value)
{
    unsigned char head[ENTRY_HEAD];
    unsigned char number[8];
    struct ng_str body = value->bytes;
    if (value->kind == VALUE_NUMBER) {
        uint64_t bits;
        memcpy(&bits, &value->number, sizeof(bits));
        put_le(number, bits);
        body = str_of((const char *)number, sizeof(number));
    } else if (value->kind == VALUE_NULL) {
        body = str_of("", 0);
    }
    put_le(head, (uint64_t)value->field);
    head[8] = (unsigned char)value->kind;
    put_le(head + 9, body.len);
    int rc = bytes_add(out, head, sizeof(head));
    if (rc != NG_OK) {
        return rc;
    }
    return bytes_add(out, body.data, body.len);
}

static const struct db_field *field_of(const struct db_collection *collection,
                                       const struct ng_field_value *given)
{
    for (size_t i = 0; i < collection->field_count; i++) {
        const struct db_field *field = &collection->fields[i];
        if (field->use == given->use &&
            str_equal(str_of(field->name, field->name_len), given->name)) {
            return field;
        }
    }
    return NULL;
}

/* A sortable field has an index entry even if it is missing, so that a sorted list is
 * complete. */
static int add_missing(const struct db_collection *collection,
                       const struct ng_field_value *fields, size_t count, struct bytes *out)
{
    for (size_t i = 0; i < collection->field_count; i++) {
        const struct db_field *field = &collection->fields[i];
        bool found = field->use != NG_FIELD_NUMBER && field->use != NG_FIELD_STRING;
        for (size_t j = 0; !found && j < count; j++) {
            found = field_of(collection, &fields[j]) == field;
        }
        if (!found) {
            struct value none = {.field = field->id, .kind = VALUE_NULL};
            int rc = add_entry(out, &none);
            if (rc != NG_OK) {
                return rc;
            }
        }
    }
    return NG_OK;
}

int values_encode(const struct db_collection *collection, const struct ng_field_value *fields,
                  size_t count, bool deleted, struct bytes *out)
{
    out->len = 0;
    if (deleted) {
        return NG_OK; /* a tombstone is in no index */
    }
    for (size_t i = 0; i < count; i++) {
        const struct db_field *field = field_of(collection, &fields[i]);
        if (field == NULL) {
            return NG_EINVAL;
        }
        struct value value = {.field = field->id, .bytes = fields[i].text};
        value.kind = VALUE_BYTES;
        if (field->use == NG_FIELD_NUMBER) {
            value.kind = VALUE_NUMBER;
            /* -0 and 0 are the same value and get the same bytes */
            value.number = fields[i].number + 0.0;
        } else if (field->use == NG_FIELD_TEXT) {
            value.kind = VALUE_TEXT;
        }
        int rc = add_entry(out, &value);
        if (rc != NG_OK) {
            return rc;
        }
    }
    return add_missing(collection, fields, count, out);
}

bool values_next(struct ng_str blob, size_t *at, struct value *ret)
{
    if (*at >= blob.len) {
        return false;
    }
    const unsigned char *entry = (const unsigned char *)blob.data + *at;
    size_t left = blob.len - *at;
    if (left < ENTRY_HEAD || get_le(entry + 9) > left - ENTRY_HEAD || entry[8] > VALUE_TEXT) {
        *at = SIZE_MAX;
        return false;
    }
    size_t len = (size_t)get_le(entry + 9);
    memset(ret, 0, sizeof(*ret));
    ret->field = (int64_t)get_le(entry);
    ret->bytes = str_of((const char *)entry + ENTRY_HEAD, len);
    ret->kind = entry[8];
    if (ret->kind == VALUE_NUMBER && len == 8) {
        uint64_t bits = get_le(entry + ENTRY_HEAD);
        memcpy(&ret->number, &bits, sizeof(bits));
    }
    *at += ENTRY_HEAD + len;
    return true;
}

void value_bind(sqlite3_stmt *stmt, int index, const struct value *value)
{
    switch (value->kind) {
    case VALUE_NUMBER:
        (void)sqlite3_bind_double(stmt, index, value->number);
        break;
    case VALUE_NULL:
        /* Sorts below every JSON number. A primary key cannot hold NULL. */
        (void)sqlite3_bind_double(stmt, index, -HUGE_VAL);
        break;
    default:
        (void)bind_blob(stmt, index, value->bytes);
    }
}

static struct ng_str argument(sqlite3_value *value)
{
    const void *data = sqlite3_value_blob(value);
    int len = sqlite3_value_bytes(value);
    return str_of(data != NULL ? data : "", len > 0 ? (size_t)len : 0);
}

/* ng_field(fields, field): the value, or NULL. */
static void sql_field(sqlite3_context *context, int count, sqlite3_value **args)
{
    (void)count;
    struct ng_str blob = argument(args[0]);
    int64_t wanted = sqlite3_value_int64(args[1]);
    struct value value;
    size_t at = 0;
    while (values_next(blob, &at, &value)) {
        if (value.field != wanted) {
            continue;
        }
        if (value.kind == VALUE_NUMBER) {
            sqlite3_result_double(context, value.number);
        } else if (value.kind != VALUE_NULL) {
            sqlite3_result_blob64(context, value.bytes.data, value.bytes.len, SQLITE_TRANSIENT);
        }
        return;
    }
}

/* ng_has(fields, field, value): does the field have this value? */
static void sql_has(sqlite3_context *context, int count, sqlite3_value **args)
{
    (void)count;
    struct ng_str blob = argument(args[0]);
    int64_t field = sqlite3_value_int64(args[1]);
    bool number = sqlite3_value_type(args[2]) == SQLITE_FLOAT;
    double wanted_number = 0.0;
    struct ng_str wanted = str_of("", 0);
    if (number) {
        wanted_number = sqlite3_value_double(args[2]);
    } else {
        wanted = argument(args[2]);
    }
    struct value value;
    size_t at = 0;
    while (values_next(blob, &at, &value)) {
        if (value.field != field) {
            continue;
        }
        bool same;
        if (number) {
            same = value.kind == VALUE_NUMBER && value.number >= wanted_number &&
                   value.number <= wanted_number;
        } else {
            same = value.kind == VALUE_BYTES && str_equal(value.bytes, wanted);
        }
        if (same) {
            sqlite3_result_int(context, 1);
            return;
        }
    }
    sqlite3_result_int(context, 0);
}

int values_functions(sqlite3 *sql)
{
    int flags = SQLITE_UTF8 | SQLITE_DETERMINISTIC;
    int rc = sqlite3_create_function(sql, "ng_field", 2, flags, NULL, sql_field, NULL, NULL);
    if (rc == SQLITE_OK) {
        rc = sqlite3_create_function(sql, "ng_has", 3, flags, NULL, sql_has, NULL, NULL);
    }
    return rc;
}
