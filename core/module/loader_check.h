/* SPDX-License-Identifier: MIT */
/* loader_check.h - checks a copied descriptor. */
#ifndef NOTEGATE_CORE_LOADER_CHECK_H
#define NOTEGATE_CORE_LOADER_CHECK_H

#include "loader.h"

/* A member that must be set. */
struct loader_member {
    const char *name;
    size_t at;
};

/* An array of a descriptor: its place, its count, and today's items, which begin with their
 * name, where they have one. */
struct loader_array {
    const char *what; /* "tool" */
    const char *name, *count_name;
    size_t at, count_at, item_size;
    const struct loader_member *members; /* of each item */
    size_t member_count;
};

/* The descriptor of one kind of modules. */
struct loader_form {
    const char *name; /* "a plugin" */
    const char *folder;
    size_t size;
    const struct loader_member *members; /* the first is the name */
    size_t member_count;
    const struct loader_array *arrays;
    size_t array_count;
};

/* NULL: an unknown kind. */
const struct loader_form *loader_form_of(uint32_t kind);
/* NG_EINVAL: `error` has the fault, a sentence that begins after the module's path ("has
 * no `name`"). */
int loader_check(const struct module *module, struct buf *error);

#endif
