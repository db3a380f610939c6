/* SPDX-License-Identifier: MIT */
/* fields.c - reading and writing members of BSON. */
#include "bson_members.h"

void put_str(bson_t *bson, const char *key, struct ng_str text)
{
    const char *data = "";
    if (text.data != NULL) {
        data = text.data;
    }
    if (utf8_valid(text)) {
        (void)bson_append_utf8(bson, key, -1, data, (int)text.len);
    } else {
        (void)bson_append_binary(bson, key, -1, BSON_SUBTYPE_BINARY, (const uint8_t *)data,
                                 (uint32_t)text.len);
    }
}

void put_u64(bson_t *bson, const char *key, uint64_t number)
{
    (void)bson_append_int64(bson, key, -1, (int64_t)number);
}

void put_hash(bson_t *bson, const char *key, const unsigned char hash[HASH_BYTES])
{
    (void)bson_append_binary(bson, key, -1, BSON_SUBTYPE_BINARY, hash, HASH_BYTES);
}

bool member(const bson_t *doc, const char *path, bson_iter_t *ret)
{
    bson_iter_t iter;
    return bson_iter_init(&iter, doc) && bson_iter_find_descendant(&iter, path, ret);
}

struct ng_str iter_str(const bson_iter_t *iter)
{
    uint32_t len = 0;
    if (BSON_ITER_HOLDS_UTF8(iter)) {
        const char *text = bson_iter_utf8(iter, &len);
        return str_of(text, len);
    }
    if (BSON_ITER_HOLDS_BINARY(iter)) {
        const uint8_t *data = NULL;
        bson_subtype_t subtype;
        bson_iter_binary(iter, &subtype, &len, &data);
        return str_of((const char *)data, len);
    }
    return str_of(NULL, 0);
}

struct ng_str member_str(const bson_t *doc, const char *path)
{
    bson_iter_t iter;
    if (member(doc, path, &iter)) {
        return iter_str(&iter);
    }
    return str_of(NULL, 0);
}

int64_t member_i64(const bson_t *doc, const char *path)
{
    bson_iter_t iter;
    if (!member(doc, path, &iter)) {
        return 0;
    }
    if (BSON_ITER_HOLDS_DATE_TIME(&iter)) {
        return bson_iter_date_time(&iter);
    }
    return bson_iter_as_int64(&iter);
}

uint64_t member_u64(const bson_t *doc, const char *path)
{
    int64_t number = member_i64(doc, path);
    if (number <= 0) {
        return 0;
    }
    return (uint64_t)number;
}

bool member_bool(const bson_t *doc, const char *path)
{
    bson_iter_t iter;
    return member(doc, path, &iter) && bson_iter_as_bool(&iter);
}

bool iter_doc(const bson_iter_t *iter, bson_t *ret)
{
    const uint8_t *data = NULL;
    uint32_t len = 0;
    if (BSON_ITER_HOLDS_DOCUMENT(iter)) {
        bson_iter_document(iter, &len, &data);
    } else if (BSON_ITER_HOLDS_ARRAY(iter)) {
        bson_iter_array(iter, &len, &data);
    }
    return data != NULL && bson_init_static(ret, data, len);
}

bool member_doc(const bson_t *doc, const char *path, bson_t *ret)
{
    bson_iter_t iter;
    return member(doc, path, &iter) && iter_doc(&iter, ret);
}
