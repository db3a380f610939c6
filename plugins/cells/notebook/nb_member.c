/* SPDX-License-Identifier: MIT */
/* nb_member.c - members of an object added and removed, as splices. */
#include "nb_edit.h"

void nb_add_member(struct nb_edit *edit, const struct nb *nb, struct nb_span object,
                   struct nb_span after, struct ng_str name, struct ng_str json, unsigned depth)
{
    const struct nb_span none = {0, 0};
    struct nb_span first = {0, 0};
    struct nb_span value;
    size_t at = nb_end(after);
    if (after.len == 0) {
        struct nb_walk walk = nb_walk_into(nb->bytes, object);
        (void)nb_walk_member(&walk, &first, &value);
        at = first.at;
    }
    struct nb_text *out = nb_edit_add(edit, at, 0);
    if (after.len > 0) {
        nb_add_separator(out, nb, none, none, depth);
    }
    nb_add_str(out, name);
    nb_add_word(out, ":");
    nb_add_if(out, nb->style.space_colon, " ");
    nb_format(out, &nb->style, json, depth);
    if (after.len == 0) {
        nb_add_separator(out, nb, none, none, depth);
    }
}

/* A run of removed members goes with the separator before it; the first one with that behind
 * it. */
void nb_remove_members(struct nb_edit *edit, const struct nb *nb, struct nb_span object,
                       const bool *gone)
{
    struct nb_walk walk = nb_walk_into(nb->bytes, object);
    struct nb_span name;
    struct nb_span value;
    size_t kept_end = 0; /* of the value before the run; 0: there is none */
    size_t from = 0;     /* of the run; 0: there is none */
    size_t to = 0;
    for (size_t i = 0; nb_walk_member(&walk, &name, &value); i++) {
        if (gone[i]) {
            if (from == 0) {
                from = kept_end > 0 ? kept_end : name.at;
            }
            to = nb_end(value);
            continue;
        }
        if (from > 0) {
            (void)nb_edit_add(edit, from, (kept_end > 0 ? to : name.at) - from);
        }
        from = 0;
        kept_end = nb_end(value);
    }
    if (from > 0 && kept_end > 0) {
        (void)nb_edit_add(edit, from, to - from);
    }
}
