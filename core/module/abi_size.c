/* SPDX-License-Identifier: MIT */
/* abi_size.c - structs that are read by their size, as modules of other headers give them. */
#include "abi_size.h"

#include "core/base/minmax.h"
#include "core/base/str.h"
#include "registry.h"

/* No struct of the SDK will be as large: a size over it is none. */
#define ABI_SIZE_MAX ((size_t)64 * 1024)

/* last: the last member in ABI 1's first release. */
#define FORM(type, last)                                                                       \
    {                                                                                          \
#type, sizeof(struct type), NG_UP_TO(type, last)                                       \
    }

const struct abi_form abi_query = FORM(ng_query, want_total);
const struct abi_form abi_search = FORM(ng_search, snippet_chars);
const struct abi_form abi_range = FORM(ng_range, ascending);
const struct abi_form abi_trail = FORM(ng_trail, id_prefix);
const struct abi_form abi_as_of = FORM(ng_as_of, after);
const struct abi_form abi_change = FORM(ng_change, expected_revision);
const struct abi_form abi_file = FORM(ng_file, mode);
const struct abi_form abi_file_edit = FORM(ng_file_edit, exists_code);
const struct abi_form abi_file_list = FORM(ng_file_list, from);
const struct abi_form abi_file_transfer = FORM(ng_file_transfer, exists_code);
const struct abi_form abi_file_undo = FORM(ng_file_undo, no_history_code);
const struct abi_form abi_undo = FORM(ng_undo, expected_revision);
const struct abi_form abi_restore = FORM(ng_restore, user);
const struct abi_form abi_undo_work = FORM(ng_undo_work, user);
const struct abi_form abi_undo_done = FORM(ng_undo_done, conflicts);
const struct abi_form abi_entry = FORM(ng_entry, data);
const struct abi_form abi_recall = FORM(ng_recall, limit);
const struct abi_form abi_timeline = FORM(ng_timeline, limit);
const struct abi_form abi_find = FORM(ng_find, unknown_kind);
const struct abi_form abi_hit = FORM(ng_hit, exact);
const struct abi_form abi_doc = FORM(ng_doc, snippet);
const struct abi_form abi_event = FORM(ng_event, data);
const struct abi_form abi_answer = FORM(ng_answer, expires_ms);
const struct abi_form abi_record = FORM(ng_record, no_history);

bool abi_size_valid(size_t size, size_t least)
{
    return size >= least && size <= ABI_SIZE_MAX && size % sizeof(void *) == 0;
}

static size_t abi_size_of(const void *object)
{
    size_t size;
    memcpy(&size, object, sizeof(size));
    return size;
}

const struct ng_field *abi_field(const struct ng_collection *collection, size_t at)
{
    size_t step =
        collection->field_size != 0 ? collection->field_size : sizeof(struct ng_field);
    return (const struct ng_field *)(const void *)((const char *)collection->fields +
                                                   at * step);
}

int abi_check(struct call *call, const struct abi_form *form, const void *object)
{
    size_t size = abi_size_of(object);
    if (abi_size_valid(size, form->least)) {
        return NG_OK;
    }
    const struct plugin *plugin = call_plugin(call);
    size_t padded = (form->least + sizeof(void *) - 1) / sizeof(void *) * sizeof(void *);
    return call_fail(call, NG_EINTERNAL,
                     "plugin %s gave a struct %s whose `size` is %zu: it must be set to "
                     "sizeof(struct %s), at least %zu",
                     plugin != NULL ? plugin->desc.name : "(unknown)", form->name, size,
                     form->name, padded);
}

/* Sizes were checked. */
static void abi_copy(const struct abi_form *form, void *to, const void *from)
{
    size_t size = abi_size_of(from);
    memset(to, 0, form->size);
    memcpy(to, from, size_min(size, form->size));
    memcpy(to, &form->size, sizeof(form->size));
}

int abi_take(struct call *call, const struct abi_form *form, void *to, const void *from)
{
    int rc = abi_check(call, form, from);
    if (rc == NG_OK) {
        abi_copy(form, to, from);
    }
    return rc;
}

int abi_take_array(struct call *call, const struct abi_form *form, const void *items,
                   size_t count, const void **ret)
{
    *ret = items;
    if (count == 0 || abi_size_of(items) == form->size) {
        return NG_OK;
    }
    int rc = abi_check(call, form, items);
    if (rc != NG_OK) {
        return rc;
    }
    size_t step = abi_size_of(items);
    char *copies = arena_alloc(&call->arena, count * form->size);
    if (copies == NULL) {
        return call_no_memory(call);
    }
    for (size_t i = 0; i < count; i++) {
        const char *at = (const char *)items + i * step;
        size_t size = abi_size_of(at);
        if (size != step) {
            return call_fail(call, NG_EINTERNAL,
                             "the `size` of struct %s number %zu is %zu, and that of the first "
                             "is %zu: all are sizeof(struct %s)",
                             form->name, i, size, step, form->name);
        }
        abi_copy(form, copies + i * form->size, at);
    }
    *ret = copies;
    return NG_OK;
}

/* ---- what backends give ---- */

/* The object in today's size: itself where it has all of that. NULL: its size cannot be. */
static const void *abi_today(struct abi_given *given, const struct abi_form *form,
                             const void *object, void *copy)
{
    size_t size = abi_size_of(object);
    if (!abi_size_valid(size, form->least)) {
        if (given->wrong == NULL) {
            given->wrong = form;
        }
        return NULL;
    }
    if (size >= form->size) {
        return object;
    }
    abi_copy(form, copy, object);
    return copy;
}

#define GIVE(kind, type, form)                                                                 \
    int abi_give_##kind(void *user, const struct type *object)                                 \
    {                                                                                          \
        struct abi_given *given = user;                                                        \
        struct type copy;                                                                      \
        object = abi_today(given, &(form), object, &copy);                                     \
        if (object == NULL) {                                                                  \
            return 1;                                                                          \
        }                                                                                      \
        return given->to.kind(given->user, object);                                            \
    }

GIVE(row, ng_doc, abi_doc)
GIVE(event, ng_event, abi_event)
GIVE(entry, ng_entry, abi_entry)

int abi_give_record(void *user, const struct ng_record *record)
{
    struct abi_given *given = user;
    struct ng_record copy;
    struct ng_doc doc;
    struct ng_event event;
    struct ng_answer answer;
    if (!abi_size_valid(record->size, abi_record.least)) {
        given->wrong = &abi_record;
        return 1;
    }
    abi_copy(&abi_record, &copy, record);
    if (copy.doc != NULL) {
        copy.doc = abi_today(given, &abi_doc, copy.doc, &doc);
    }
    if (copy.event != NULL) {
        copy.event = abi_today(given, &abi_event, copy.event, &event);
    }
    if (copy.answer != NULL) {
        copy.answer = abi_today(given, &abi_answer, copy.answer, &answer);
    }
    if (given->wrong != NULL) {
        return 1;
    }
    return given->to.record(given->user, &copy);
}

int abi_given_end(struct call *call, const struct abi_given *given, int rc)
{
    if (given->wrong == NULL) {
        return rc;
    }
    return call_fail(call, NG_EINTERNAL,
                     "the backend %s gave a struct %s with an invalid size: it must be set to "
                     "sizeof(struct %s)",
                     given->backend, given->wrong->name, given->wrong->name);
}
