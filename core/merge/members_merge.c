/* SPDX-License-Identifier: MIT */
/* members_merge.c - three-way merge of the members of a document that people write. */
#include "members_merge.h"

#include "core/base/merge/merge3.h"
#include "core/base/str.h"

static const struct ng_value *members_get(const struct ng_value *object, struct ng_str name)
{
    return json_is(object, NG_TYPE_OBJECT) ? json_get_str(object, name) : NULL;
}

static bool members_same(const struct ng_value *a, const struct ng_value *b)
{
    if (a == NULL || b == NULL) {
        return a == b;
    }
    return json_equal(a, b);
}

static enum merge3_value members_choose(const struct members_sides *member)
{
    if (members_same(member->before, member->base) ||
        members_same(member->present, member->before)) {
        return MERGE3_PRESENT;
    }
    return members_same(member->present, member->base) ? MERGE3_BEFORE : MERGE3_CONFLICT;
}

static struct members_sides members_named(const struct members_sides *sides, struct ng_str name)
{
    return (struct members_sides){
        .base = members_get(sides->base, name),
        .present = members_get(sides->present, name),
        .before = members_get(sides->before, name),
    };
}

static bool members_is_named(const struct ng_str *names, size_t count, struct ng_str name)
{
    for (size_t i = 0; i < count; i++) {
        if (str_equal(names[i], name)) {
            return true;
        }
    }
    return false;
}

/* Appends `name: JSON`, nothing of an absent member. */
static void members_side(struct buf *side, struct ng_str name, const struct ng_value *value)
{
    buf_init(side, MEMBERS_MERGE_MAX);
    if (value != NULL) {
        (void)buf_add_str(side, name);
        (void)buf_add_c(side, ": ");
        (void)json_print(side, value);
    }
}

static int members_conflict(struct ng_str name, const struct members_sides *member,
                            struct merge_conflict *conflict)
{
    struct buf present;
    struct buf before;
    members_side(&present, name, member->present);
    members_side(&before, name, member->before);
    merge_conflict_add(conflict, MERGE_MEMBER, 0, buf_str(&present), buf_str(&before));
    bool oom = present.rc == NG_EINTERNAL || before.rc == NG_EINTERNAL;
    buf_done(&present);
    buf_done(&before);
    return oom ? NG_EINTERNAL : conflict->sides.rc;
}

static void members_write(struct ng_writer *writer, struct ng_str name,
                          const struct ng_value *value)
{
    if (value != NULL) {
        json_name_str(writer, name);
        json_copy(writer, value);
    }
}

int members_merge(const struct members_sides *sides, const struct ng_str *names, size_t count,
                  struct merge_result *ret)
{
    struct ng_writer writer;
    int rc = NG_OK;
    buf_init(&ret->text, MEMBERS_MERGE_MAX);
    json_writer_init(&writer, &ret->text);
    json_object(&writer);
    for (const struct ng_value *at = json_first(sides->present); at != NULL; at = at->next) {
        if (!members_is_named(names, count, at->key)) {
            members_write(&writer, at->key, at);
            continue;
        }
        struct members_sides member = members_named(sides, at->key);
        bool undone = members_choose(&member) == MERGE3_BEFORE;
        members_write(&writer, at->key, undone ? member.before : member.present);
    }
    for (size_t i = 0; rc == NG_OK && i < count; i++) {
        if (members_is_named(names, i, names[i])) {
            continue;
        }
        struct members_sides member = members_named(sides, names[i]);
        enum merge3_value choice = members_choose(&member);
        if (choice == MERGE3_CONFLICT) {
            rc = members_conflict(names[i], &member, &ret->conflict);
        } else if (choice == MERGE3_BEFORE && member.present == NULL) {
            members_write(&writer, names[i], member.before);
        }
    }
    json_end(&writer);
    if (rc == NG_OK && ret->text.rc == NG_ETOOLARGE) {
        merge_conflict_set(&ret->conflict, MERGE_TOO_LARGE);
    }
    if (rc == NG_OK && ret->text.rc != NG_ETOOLARGE) {
        rc = ret->text.rc;
    }
    return rc;
}
