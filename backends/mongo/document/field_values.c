/* SPDX-License-Identifier: MIT */
/* field_values.c - values of declared fields in documents. Entries have them in their own
 * members, of the same names; other documents below notegate.fields, with each dot of a name as
 * '/'. */
#include "document.h"

static const char *key_of(const struct db_field *field)
{
    return field->path + sizeof(FIELDS_BELOW) - 1;
}

/* The values of a tag as an array. */
static void add_tag(bson_t *fields, const struct db_field *field, const struct ng_put *put)
{
    bson_t list = BSON_INITIALIZER;
    uint32_t at = 0;
    for (size_t i = 0; i < put->field_count; i++) {
        if (put->fields[i].use == field->use &&
            str_equal(put->fields[i].name, ng_str_of(field->name))) {
            bson_item(&list, at++, put->fields[i].text);
        }
    }
    if (at > 0) {
        bson_add(fields, "%:A", key_of(field), &list);
    }
    bson_destroy(&list);
}

static void add_field(bson_t *fields, const struct db_field *field, const struct ng_put *put)
{
    for (size_t i = 0; i < put->field_count; i++) {
        const struct ng_field_value *value = &put->fields[i];
        if (value->use != field->use || !str_equal(value->name, ng_str_of(field->name))) {
            continue;
        }
        if (field->use == NG_FIELD_NUMBER) {
            BSON_APPEND_DOUBLE(fields, key_of(field), value->number);
        } else {
            put_str(fields, key_of(field), value->text);
        }
        return;
    }
}

void fields_append(bson_t *own, const struct db_collection *collection,
                   const struct ng_put *put, size_t field_count)
{
    bson_t fields = BSON_INITIALIZER;
    for (size_t i = 0; i < collection->field_count && field_count > 0; i++) {
        const struct db_field *field = &collection->fields[i];
        if (field->use == NG_FIELD_TAG) {
            add_tag(&fields, field, put);
        } else {
            add_field(&fields, field, put);
        }
    }
    bson_add(own, "fields:D", &fields);
    bson_destroy(&fields);
}

/* ---- of a stored document ---- */

static void add_text(const bson_iter_t *from, const struct db_field *field, struct texts *ret)
{
    if (BSON_ITER_HOLDS_UTF8(from) && ret->count < TEXTS_MAX) {
        ret->list[ret->count++] = (struct ng_field_value){
            .name = ng_str_of(field->name), .use = NG_FIELD_TEXT, .text = iter_str(from)};
    }
}

/* As the core takes them from the JSON. */
void texts_add(struct texts *texts, const bson_t *doc, const struct db_field *field)
{
    bson_iter_t iter, items;
    if (field->use != NG_FIELD_TEXT || !member(doc, field->path, &iter)) {
        return;
    }
    if (!BSON_ITER_HOLDS_ARRAY(&iter)) {
        add_text(&iter, field, texts);
    } else if (bson_iter_recurse(&iter, &items)) {
        while (bson_iter_next(&items)) {
            add_text(&items, field, texts);
        }
    }
}

void texts_of(const bson_t *doc, const struct db_collection *collection, struct texts *ret)
{
    ret->count = 0;
    for (size_t i = 0; i < collection->field_count; i++) {
        texts_add(ret, doc, &collection->fields[i]);
    }
}
