/* SPDX-License-Identifier: MIT */
/*
 * abi_size.h - structs that are read by their size (see abi.h), as modules give them: made with
 * headers that are older or newer than this gateway's.
 */
#ifndef NOTEGATE_CORE_ABI_SIZE_H
#define NOTEGATE_CORE_ABI_SIZE_H

#include "core/base/buf.h"
#include "core/call/call.h"
#include "notegate/backend.h"
#include "notegate/journal.h"

/* A struct of the SDK that begins with its `size`. */
struct abi_form {
    const char *name; /* "ng_query" */
    size_t size;      /* today's */
    size_t least;     /* size in the first release of ABI 1 */
};

extern const struct abi_form abi_query;
extern const struct abi_form abi_search;
extern const struct abi_form abi_range;
extern const struct abi_form abi_trail;
extern const struct abi_form abi_as_of;
extern const struct abi_form abi_change;
extern const struct abi_form abi_file;
extern const struct abi_form abi_file_edit;
extern const struct abi_form abi_file_list;
extern const struct abi_form abi_file_transfer;
extern const struct abi_form abi_file_undo;
extern const struct abi_form abi_undo;
extern const struct abi_form abi_restore;
extern const struct abi_form abi_undo_work;
extern const struct abi_form abi_undo_done;
extern const struct abi_form abi_entry;
extern const struct abi_form abi_recall;
extern const struct abi_form abi_timeline;
extern const struct abi_form abi_find;
extern const struct abi_form abi_hit;
extern const struct abi_form abi_doc;
extern const struct abi_form abi_event;
extern const struct abi_form abi_answer;
extern const struct abi_form abi_record;

/* The step of an array of a descriptor, or the size of an object: can it be? */
bool abi_size_valid(size_t size, size_t least);

/* A declared field of a collection. */
const struct ng_field *abi_field(const struct ng_collection *collection, size_t at);

/* NG_OK: the size that *object says can be that of its form. Else NG_EINTERNAL, and the call
 * says which struct of which tool it was. */
int abi_check(struct call *call, const struct abi_form *form, const void *object);
/* Copies a plugin's struct into today's size: *to is filled as far as *from goes, the rest is
 * zeros. */
int abi_take(struct call *call, const struct abi_form *form, void *to, const void *from);
/* *ret: an array of `count` structs, all of one size, in today's size: itself, or in memory of
 * the call. */
int abi_take_array(struct call *call, const struct abi_form *form, const void *items,
                   size_t count, const void **ret);

/* Converts structs of a backend to today's size before a callback of the core. */
struct abi_given {
    const char *backend; /* its name */
    union {
        ng_row_fn *row;
        ng_event_fn *event;
        ng_entry_row_fn *entry;
        ng_record_fn *record;
    } to;
    void *user;
    const struct abi_form *wrong; /* out: of the first that said no size that can be */
};

int abi_give_row(void *user, const struct ng_doc *object);
int abi_give_event(void *user, const struct ng_event *object);
int abi_give_entry(void *user, const struct ng_entry *object);
int abi_give_record(void *user, const struct ng_record *record);
/* rc of the backend's function, or NG_EINTERNAL where it gave something wrong. */
int abi_given_end(struct call *call, const struct abi_given *given, int rc);

#endif
