/* SPDX-License-Identifier: MIT */
/* key_spaces.c - which spaces that a key is given are new. */
#include "key_spaces.h"

#include "core/base/str.h"
#include "core/call/gateway.h"
#include "core/files/files.h"
#include "core/keys/keys.h"
#include "core/store/store.h"

static int space_row(void *user, const struct ng_doc *row)
{
    bool *found = user;
    (void)row;
    *found = true;
    return 1;
}

static int space_find_document(struct call *call, struct ng_str space, bool *ret_found)
{
    struct store *store = call->gateway->store;
    const struct ng_collection *one = NULL;
    for (size_t i = 0; !*ret_found && (one = store_collection_at(store, i)) != NULL; i++) {
        struct ng_query query = {
            .size = sizeof(query),
            .collection = ng_str_of(one->name),
            .space = space,
            .limit = 1,
        };
        int rc = store_query(store, call, &query, space_row, ret_found, NULL);
        if (rc != NG_OK) {
            return rc;
        }
    }
    return NG_OK;
}

static bool space_of_key(struct key *const *keys, size_t count, struct ng_str space)
{
    for (size_t i = 0; i < count; i++) {
        if (key_live(keys[i]) && key_has_space(keys[i], space)) {
            return true;
        }
    }
    return false;
}

int key_spaces_new(struct call *call, const struct key_spec *spec, const struct ng_str **ret,
                   size_t *ret_count)
{
    struct key **keys = NULL;
    size_t key_count = 0;
    size_t count = 0;
    int rc = keys_list(call->gateway->keys, call, &keys, &key_count);
    if (rc != NG_OK) {
        return rc;
    }
    struct ng_str *found = arena_alloc(&call->arena, (spec->space_count + 1) * sizeof(*found));
    if (found == NULL) {
        return call_no_memory(call);
    }
    for (size_t i = 0; i < spec->space_count; i++) {
        struct ng_str space = spec->spaces[i];
        bool own = space.data[0] == '~' &&
                   str_equal(str_make(space.data + 1, space.len - 1), spec->agent);
        bool used = own || str_is(space, "shared") || space_of_key(keys, key_count, space) ||
                    files_has_space(call->gateway->files, space);
        if (!used) {
            rc = space_find_document(call, space, &used);
        }
        if (rc != NG_OK) {
            return rc;
        }
        if (!used) {
            found[count++] = space;
        }
    }
    *ret = found;
    *ret_count = count;
    return NG_OK;
}
