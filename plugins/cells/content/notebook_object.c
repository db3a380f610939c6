/* SPDX-License-Identifier: MIT */
/* notebook_object.c - three-way merge of an object of a notebook, member by member. */
#include "notebook_object.h"

#include "core/base/str.h"
#include "core/base/utf8.h"

static const struct nb_span *object_find(const struct notebook_members *members,
                                         struct ng_str name)
{
    for (size_t i = 0; i < members->count; i++) {
        if (str_equal(members->names[i], name)) {
            return &members->values[i];
        }
    }
    return NULL;
}

bool notebook_members_read(struct ng_str bytes, struct nb_span object,
                           struct notebook_members *ret)
{
    struct nb_walk walk = nb_walk_into(bytes, object);
    struct nb_span name;
    struct nb_span value;
    ret->count = 0;
    while (nb_walk_member(&walk, &name, &value)) {
        struct ng_str text = nb_bytes(bytes, name);
        if (ret->count == NOTEBOOK_MEMBERS_MAX || object_find(ret, text) != NULL ||
            memchr(text.data, '\\', text.len) != NULL) {
            return false;
        }
        ret->names[ret->count] = text;
        ret->values[ret->count++] = value;
    }
    return true;
}

struct ng_str notebook_members_get(struct ng_str bytes, const struct notebook_members *members,
                                   struct ng_str name)
{
    const struct nb_span *value = object_find(members, name);
    return value == NULL ? STR_NONE : nb_bytes(bytes, *value);
}

void notebook_object_values(const struct notebook_object *object, struct ng_str name,
                            struct ng_str ret[NOTEBOOK_SIDES])
{
    for (int side = 0; side < NOTEBOOK_SIDES; side++) {
        ret[side] = notebook_members_get(object->merge->sides[side].nb.bytes,
                                         &object->members[side], name);
    }
}

/* `"name": value`, nothing of an absent member. */
static struct nb_text object_side(struct ng_str name, struct ng_str value)
{
    struct nb_text text = {0};
    if (value.len > 0) {
        nb_add_str(&text, utf8_cut(name, MERGE_SIDE_MAX));
        nb_add_word(&text, ": ");
        nb_add_str(&text, utf8_cut(value, MERGE_SIDE_MAX));
    }
    return text;
}

static void object_conflict(const struct notebook_object *object, struct ng_str name,
                            const struct ng_str values[NOTEBOOK_SIDES])
{
    struct nb_text present = object_side(name, values[NOTEBOOK_PRESENT]);
    struct nb_text before = object_side(name, values[NOTEBOOK_BEFORE]);
    object->merge->failed |= present.failed || before.failed;
    merge_conflict_add(object->merge->conflict, object->reason, object->line,
                       nb_text_str(&present), nb_text_str(&before));
    nb_text_done(&present);
    nb_text_done(&before);
}

/* The value that becomes of the member; a conflict is told, and keeps present's. */
static enum merge3_value object_choose(const struct notebook_object *object, struct ng_str name,
                                       struct ng_str ret_values[NOTEBOOK_SIDES])
{
    enum merge3_value choice = MERGE3_PRESENT;
    notebook_object_values(object, name, ret_values);
    if (!object->chosen(object, name, &choice)) {
        choice = notebook_value_choose(ret_values, &object->merge->failed);
    }
    if (choice == MERGE3_CONFLICT) {
        object_conflict(object, name, ret_values);
        choice = MERGE3_PRESENT;
    }
    return choice;
}

/* Adds members that present lacks behind those that precede them in before. */
static void object_add(const struct notebook_object *object, const bool *gone)
{
    struct notebook_merge *merge = object->merge;
    const struct notebook_members *present = &object->members[NOTEBOOK_PRESENT];
    const struct notebook_members *before = &object->members[NOTEBOOK_BEFORE];
    struct nb_span last = {0, 0};
    struct ng_str values[NOTEBOOK_SIDES];
    for (size_t i = 0; i < before->count; i++) {
        const struct nb_span *there = object_find(present, before->names[i]);
        if (there != NULL) {
            last = gone[there - present->values] ? last : *there;
        } else if (object_choose(object, before->names[i], values) == MERGE3_BEFORE) {
            nb_add_member(&merge->edit, &merge->sides[NOTEBOOK_PRESENT].nb, object->present,
                          last, before->names[i], values[NOTEBOOK_BEFORE], object->depth);
        }
    }
}

void notebook_object_merge(const struct notebook_object *object)
{
    struct notebook_merge *merge = object->merge;
    const struct nb *nb = &merge->sides[NOTEBOOK_PRESENT].nb;
    const struct notebook_members *present = &object->members[NOTEBOOK_PRESENT];
    bool gone[NOTEBOOK_MEMBERS_MAX] = {false};
    struct ng_str values[NOTEBOOK_SIDES];
    for (size_t i = 0; i < present->count; i++) {
        if (object_choose(object, present->names[i], values) == MERGE3_PRESENT) {
            continue;
        }
        gone[i] = values[NOTEBOOK_BEFORE].len == 0;
        if (!gone[i]) {
            nb_replace_value(&merge->edit, nb, present->values[i], values[NOTEBOOK_BEFORE],
                             object->depth);
        }
    }
    object_add(object, gone);
    nb_remove_members(&merge->edit, nb, object->present, gone);
}
