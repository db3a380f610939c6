/* SPDX-License-Identifier: MIT */
/* filter_left_out.c - the filter of the notes that a filter leaves out because their front
 * matter does not parse. */
#include "filter.h"

#include "index/index.h"

/* Copies the values to the end. */
static bool add_values(struct ng_call *call, const struct notes_filter *from,
                       struct notes_filter *to)
{
    struct notes_filter_value **next = &to->values;
    while (*next != NULL) {
        next = &(*next)->next;
    }
    for (const struct notes_filter_value *value = from->values; value != NULL;
         value = value->next) {
        *next = ng_alloc(call, sizeof(**next));
        if (*next == NULL) {
            return false;
        }
        **next = *value;
        (*next)->next = NULL;
        next = &(*next)->next;
    }
    return true;
}

int notes_filter_left_out(struct ng_call *call, sqlite3 *db, const struct notes_filter *filter,
                          struct notes_filter **ret_filter)
{
    bool broken = false;
    int rc = SQLITE_OK;
    *ret_filter = NULL;
    if (filter->doubt.data != NULL) {
        rc = notes_index_has_broken(db, &broken);
    }
    if (rc != SQLITE_OK || !broken) {
        return rc;
    }
    struct notes_filter *left = ng_alloc(call, sizeof(*left));
    if (left == NULL) {
        return SQLITE_NOMEM;
    }
    struct ng_str doubt = filter->doubt;
    struct ng_str sql = filter->sql;
    *left = (struct notes_filter){.shown = filter->shown};
    left->sql = call->host->format(
        call, "(n.front_error IS NOT NULL AND (%.*s) IS NULL AND NOT ifnull((%.*s),0))",
        (int)doubt.len, doubt.data, (int)sql.len, sql.data);
    bool added = true;
    for (int times = 0; times < 2 && added; times++) {
        added = add_values(call, filter, left);
    }
    *ret_filter = left;
    return added && left->sql.data != NULL ? SQLITE_OK : SQLITE_NOMEM;
}
