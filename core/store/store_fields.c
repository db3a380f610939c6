/* SPDX-License-Identifier: MIT */
/* store_fields.c - the declared fields of a document, taken from its JSON for the backend's
 * indexes. */
#include "core/base/str.h"
#include "core/module/abi_size.h"
#include "store.h"

/* First room for the fields of one document. */
#define FIELDS_FIRST 8

struct field_list {
    struct arena *arena;
    struct ng_field_value *items;
    size_t count, cap;
    int rc;
};

static void field_add(struct field_list *list, const struct ng_field *field, struct ng_str text,
                      double number)
{
    if (list->count == list->cap) {
        size_t cap = list->cap == 0 ? FIELDS_FIRST : list->cap * 2;
        struct ng_field_value *items = arena_alloc(list->arena, cap * sizeof(*items));
        if (items == NULL) {
            list->rc = NG_EINTERNAL;
            return;
        }
        if (list->count > 0) {
            memcpy(items, list->items, list->count * sizeof(*items));
        }
        list->items = items;
        list->cap = cap;
    }
    struct ng_field_value *item = &list->items[list->count++];
    item->name = ng_str_of(field->name);
    item->use = field->use;
    item->text = text;
    item->number = number;
}

static const struct ng_value *field_find(const struct ng_value *body, const char *name)
{
    const struct ng_value *value = body;
    const char *at = name;
    while (value != NULL && *at != '\0') {
        size_t len = strcspn(at, ".");
        if (value->type == NG_TYPE_OBJECT) {
            value = json_get_str(value, str_make(at, len));
        } else {
            value = NULL;
        }
        at += len;
        at += *at == '.';
    }
    return value;
}

static void field_take(struct field_list *list, const struct ng_field *field,
                       const struct ng_value *value)
{
    if (field->use == NG_FIELD_NUMBER) {
        if (value->type == NG_TYPE_NUMBER) {
            field_add(list, field, str_make(NULL, 0), json_double(value));
        }
        return;
    }
    if (value->type == NG_TYPE_STRING) {
        field_add(list, field, value->text, 0);
        return;
    }
    if (value->type == NG_TYPE_ARRAY && field->use != NG_FIELD_STRING) {
        for (const struct ng_value *item = value->first; item != NULL; item = item->next) {
            if (item->type == NG_TYPE_STRING) {
                field_add(list, field, item->text, 0);
            }
        }
    }
}

int store_fields(struct arena *arena, const struct ng_collection *collection,
                 const struct ng_value *body, const struct ng_field_value **ret_fields,
                 size_t *ret_count)
{
    struct field_list list = {arena, NULL, 0, 0, NG_OK};
    for (size_t i = 0; i < collection->field_count; i++) {
        const struct ng_field *field = abi_field(collection, i);
        const struct ng_value *value = field_find(body, field->name);
        if (value != NULL) {
            field_take(&list, field, value);
        }
    }
    *ret_fields = list.items;
    *ret_count = list.count;
    return list.rc;
}
