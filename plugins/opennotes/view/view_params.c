/* SPDX-License-Identifier: MIT */
/* view_params.c - the parameters of a view: declaration, values of the call, types. */
#include <string.h>

#include "text/codes.h"
#include "view.h"

bool notes_view_next(struct ng_str *rest, struct ng_str *ret_item)
{
    while (rest->len > 0) {
        size_t len = notes_find_char(*rest, 0, ',');
        *ret_item = notes_trim(str_make(rest->data, len));
        len = size_min(len + 1, rest->len);
        *rest = str_make(rest->data + len, rest->len - len);
        if (ret_item->len > 0) {
            return true;
        }
    }
    return false;
}

struct ng_str notes_view_param(const struct notes_view *view, const char *name)
{
    for (size_t i = 0; i < view->count; i++) {
        if (str_is(view->names[i], name)) {
            return view->values[i];
        }
    }
    return str_make(NULL, 0);
}

static int fail_param(struct notes_view *view, struct ng_str name, const char *what)
{
    struct ng_call *call = view->call;
    struct buf list;
    buf_init(&list, 4096);
    for (size_t i = 0; i < view->count; i++) {
        buf_printf(&list, "%s'%.*s' (%.*s)", i > 0 ? ", " : "", (int)view->names[i].len,
                   view->names[i].data, (int)view->types[i].len, view->types[i].data);
    }
    (void)ng_fail(call, NOTES_EVIEWPARAMS, "The view '%.*s': parameter '%.*s' %s",
                  (int)view->name.len, view->name.data, (int)utf8_cut(name, 100).len, name.data,
                  what);
    if (view->count == 0) {
        call->host->hint(call, "The view has no parameters.");
    } else {
        call->host->hint(call, "The view has the parameters %.*s.", (int)list.len, list.data);
    }
    buf_done(&list);
    return NOTES_EVIEWPARAMS;
}

static bool is_number(struct ng_str text)
{
    struct arena arena;
    struct ng_str ignored;
    arena_init(&arena, 0);
    bool number = notes_scalar_type(&arena, text, &ignored) == NOTES_NUMBER;
    arena_done(&arena);
    return number;
}

/* The fault of a value; NULL: it is valid. */
static const char *value_fault(struct ng_str type, struct ng_str value)
{
    struct ng_str rest = value;
    struct ng_str item;
    if (value.len > NOTES_VIEW_VALUE_MAX) {
        return "is longer than 1000 bytes.";
    }
    if (str_is(type, "date") && !rfc3339_is_day(value)) {
        return "is a day: write it as YYYY-MM-DD.";
    }
    if (str_is(type, "bool") && !str_is(value, "true") && !str_is(value, "false")) {
        return "is 'true' or 'false'.";
    }
    if (str_is(type, "number") && !is_number(value)) {
        return "is a number.";
    }
    if (str_is(type, "list") && !notes_view_next(&rest, &item)) {
        return "is an empty list: give its values, separated by commas.";
    }
    return NULL;
}

/* One declared parameter: {name, type, required, default, description}. */
static int declare(struct notes_view *view, const struct ng_value *parameter)
{
    static const char *const types[] = {"string", "list", "date", "bool", "number"};
    const struct ng_host *host = view->call->host;
    struct ng_str name = host->json_text(host->json_get(parameter, "name"));
    struct ng_str type = host->json_text(host->json_get(parameter, "type"));
    struct ng_str fallback = host->json_text(host->json_get(parameter, "default"));
    bool known = type.data == NULL;
    for (size_t i = 0; i < NG_COUNT(types); i++) {
        known = known || str_is(type, types[i]);
    }
    if (name.len == 0 || !known || view->count == NOTES_VIEW_PARAMS_MAX) {
        return notes_view_fail(
            view,
            "its `parameters` are at most 20 of {name, type: string, list, date, "
            "bool or number, required, default}",
            name);
    }
    view->names[view->count] = name;
    if (type.data != NULL) {
        view->types[view->count] = type;
    } else {
        view->types[view->count] = ng_str_of("string");
    }
    view->values[view->count] = str_make(NULL, 0);
    int rc = NG_OK;
    if (fallback.data != NULL) {
        rc = notes_view_expand(view, fallback, NOTES_VARS_TIMES, &view->values[view->count]);
    }
    view->count++;
    return rc;
}

static int take_given(struct notes_view *view, const struct ng_value *given)
{
    const struct ng_host *host = view->call->host;
    for (const struct ng_value *item = host->json_first(given); item != NULL;
         item = host->json_next(item)) {
        struct ng_str key = host->json_key(item);
        struct ng_str value = host->json_text(item);
        size_t i = 0;
        while (i < view->count && !str_equal(view->names[i], key)) {
            i++;
        }
        if (i == view->count) {
            return fail_param(view, key, "is not one of its parameters.");
        }
        const char *fault = value_fault(view->types[i], value);
        if (fault != NULL) {
            return fail_param(view, key, fault);
        }
        view->values[i] = value;
    }
    return NG_OK;
}

int notes_view_read_params(struct notes_view *view)
{
    const struct ng_host *host = view->call->host;
    const struct ng_value *declared = host->json_get(view->definition, "parameters");
    int rc = NG_OK;
    for (const struct ng_value *item = host->json_first(declared); rc == NG_OK && item != NULL;
         item = host->json_next(item)) {
        rc = declare(view, item);
    }
    if (rc == NG_OK) {
        rc = take_given(view, ng_arg(view->call, "params"));
    }
    size_t i = 0;
    for (const struct ng_value *item = host->json_first(declared); rc == NG_OK && item != NULL;
         item = host->json_next(item), i++) {
        if (view->values[i].data == NULL &&
            host->json_type(host->json_get(item, "required")) == NG_TYPE_TRUE) {
            rc = fail_param(view, view->names[i], "is required.");
        }
    }
    return rc;
}
