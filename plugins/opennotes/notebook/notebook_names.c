/* SPDX-License-Identifier: MIT */
/* notebook_names.c - the registered notebooks by name, from memory: their configuration is on
 * disk, and the facts about a caller must not wait for a disk. */
#include <stdlib.h>

#include "notebook_state.h"

/* Replaces *inout by a copy, unless it is the same. Without memory it stays. */
static void names_set(char **inout, struct ng_str text)
{
    if (*inout != NULL && str_equal(ng_str_of(*inout), text)) {
        return;
    }
    char *copy = str_dup(text);
    if (copy != NULL) {
        free(*inout);
        *inout = copy;
    }
}

void notes_names_keep(struct notes_notebooks *notebooks, struct ng_str path,
                      const struct notes_notebook *notebook)
{
    lock_take(&notebooks->names_lock);
    for (size_t i = 0; i < notebooks->count; i++) {
        struct notes_registered *item = &notebooks->items[i];
        if (str_equal(ng_str_of(item->path), path)) {
            names_set(&item->name, notebook->name);
            names_set(&item->notes, notebook->path);
        }
    }
    lock_release(&notebooks->names_lock);
}

int notes_names_list(void *self, struct ng_call *call, struct ng_listing *listing)
{
    const struct opennotes *opennotes = self;
    struct notes_notebooks *notebooks = opennotes->notebooks;
    for (size_t i = 0; i < notebooks->count; i++) {
        const struct notes_registered *item = &notebooks->items[i];
        struct ng_str name = {NULL, 0};
        struct ng_str path = {NULL, 0};
        lock_take(&notebooks->names_lock);
        bool known = item->name != NULL && item->notes != NULL;
        if (known) {
            name = notes_call_copy(call, ng_str_of(item->name));
            path = notes_call_copy(call, ng_str_of(item->notes));
        }
        lock_release(&notebooks->names_lock);
        int rc = NG_OK;
        if (known && (name.data == NULL || path.data == NULL)) {
            rc = notes_fail_memory(call);
        } else if (known) {
            rc = call->host->list_add(listing, path, name, ng_str_of(item->space), NULL,
                                      UINT64_MAX, 0);
        }
        if (rc != NG_OK) {
            return rc;
        }
    }
    return NG_OK;
}
