/* SPDX-License-Identifier: MIT */
/*
 * conflicts.c - indexes that are in the way of ours, as a name stands for one index, and a
 * collection has room for one text index. Those of older versions are dropped. That of another
 * program stays, and the operator is told how to drop it.
 */
#include "indexes.h"

/* The text index of versions before 0.2, over the texts themselves. */
#define FORMER_TEXT "words"

struct keys {
    bool text; /* one of them is of a text index */
    bool own;  /* one of them is a member that only the gateway stores */
};

static struct keys keys_of(const bson_t *index)
{
    struct keys ret = {false, false};
    bson_t keys;
    bson_iter_t iter;
    if (member_doc(index, "key", &keys) && bson_iter_init(&iter, &keys)) {
        while (bson_iter_next(&iter)) {
            ret.text = ret.text || str_is(iter_str(&iter), "text");
            ret.own = ret.own || str_begins(ng_str_of(bson_iter_key(&iter)), "notegate.");
        }
    }
    return ret;
}

static bool is_conflict(const struct fault *fault)
{
    return fault->answered &&
           (fault->code == SERVER_INDEX_OPTIONS || fault->code == SERVER_INDEX_KEYS ||
            fault->code == SERVER_CANNOT_CREATE_INDEX);
}

/* false: it is not in the way, or stays. */
static bool drop_one(struct mongo *db, const char *collection, const bson_t *index,
                     const bson_t *wanted, struct fault *fault)
{
    struct keys keys = keys_of(index);
    struct ng_str name = member_str(index, "name");
    bool same_name = str_equal(name, member_str(wanted, "name"));
    bool is_former = keys.text ? str_is(name, FORMER_TEXT) : keys.own && same_name;
    if (is_former) {
        return op_command(db, NULL, db->database,
                          bson_of("dropIndexes:t, index:s", collection, name), NULL, fault);
    }
    if (keys.text) {
        fault->code = FAULT_TEXT_INDEX;
        (void)fault_refuse(fault, NG_EUNAVAILABLE,
                           "its text index %.*s is not of notegate, and MongoDB has room for "
                           "one; until it is dropped, searches use a filter: "
                           "db.getSiblingDB(\"%s\").%s.dropIndex(\"%.*s\")",
                           str_clip(name, 100), name.data, db->database, collection,
                           str_clip(name, 100), name.data);
    }
    return false;
}

/* The indexes of the collection: at most 64, so they come in one batch. Points into the reply.
 */
static bool list_indexes(struct mongo *db, const char *collection, bson_t *ret_reply,
                         bson_t *ret_list)
{
    struct fault fault;
    return op_command(db, NULL, db->database, bson_of("listIndexes:t", collection), ret_reply,
                      &fault) &&
           member_doc(ret_reply, "cursor.firstBatch", ret_list);
}

bool conflict_clear(struct mongo *db, const char *collection, const bson_t *wanted,
                    struct fault *fault)
{
    bson_t reply, list, index;
    bson_iter_t iter;
    bool dropped = false;
    if (!is_conflict(fault)) {
        return false;
    }
    if (list_indexes(db, collection, &reply, &list) && bson_iter_init(&iter, &list)) {
        while (bson_iter_next(&iter) && iter_doc(&iter, &index)) {
            if (keys_of(&index).text == keys_of(wanted).text) {
                dropped = drop_one(db, collection, &index, wanted, fault) || dropped;
            }
        }
    }
    bson_destroy(&reply);
    return dropped;
}

/* ---- those that an administrator made ---- */

/* The same members in the same order, of all documents; the shell writes numbers as doubles. */
static bool same_keys(const bson_t *one, const bson_t *other)
{
    bson_t keys, others;
    bson_iter_t a, b;
    if (bson_has_field(one, "partialFilterExpression") || bson_has_field(one, "collation") ||
        !member_doc(one, "key", &keys) || !member_doc(other, "key", &others) ||
        bson_count_keys(&keys) != bson_count_keys(&others) || !bson_iter_init(&a, &keys) ||
        !bson_iter_init(&b, &others)) {
        return false;
    }
    while (bson_iter_next(&a) && bson_iter_next(&b)) {
        if (strcmp(bson_iter_key(&a), bson_iter_key(&b)) != 0 ||
            bson_iter_as_int64(&a) != bson_iter_as_int64(&b)) {
            return false;
        }
    }
    return member_bool(one, "unique") == member_bool(other, "unique");
}

/* The keys of a text index are not shown as they were given. */
static bool is_in(const bson_t *list, const bson_t *wanted)
{
    bson_iter_t iter;
    bson_t index;
    bool found = false;
    bool text = keys_of(wanted).text;
    if (bson_iter_init(&iter, list)) {
        while (!found && bson_iter_next(&iter) && iter_doc(&iter, &index)) {
            found = text ? str_equal(member_str(&index, "name"), member_str(wanted, "name"))
                         : same_keys(&index, wanted);
        }
    }
    return found;
}

bool indexes_are_there(struct mongo *db, const char *collection, const bson_t *wanted)
{
    bson_t reply, list, index;
    bson_iter_t iter;
    bool good = list_indexes(db, collection, &reply, &list) && bson_iter_init(&iter, wanted);
    while (good && bson_iter_next(&iter) && iter_doc(&iter, &index)) {
        good = is_in(&list, &index);
    }
    bson_destroy(&reply);
    return good;
}
