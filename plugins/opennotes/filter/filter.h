/* SPDX-License-Identifier: MIT */
/* filter.h - filter conditions ("data.status=open") as SQL over the tables of the index. */
#ifndef OPENNOTES_FILTER_H
#define OPENNOTES_FILTER_H

#include <sqlite3.h>

#include "text/text.h"

#define NOTES_FILTER_CONDITIONS_MAX 100 /* in one call */
#define NOTES_FILTER_LENGTH_MAX 4096    /* bytes of one condition */

struct notes_filter_value {
    struct notes_filter_value *next;
    struct ng_str text;
    bool is_number;
    double number;
};

/* In call memory. */
struct notes_filter {
    struct ng_str sql;   /* a condition on `n`, a row of notes; "1" where there is none. Its
                            parameters are '?' in the order of values */
    struct ng_str doubt; /* the same as `sql`, and NULL where it depends on front matter that
                            does not parse; {NULL, 0}: nothing in it depends on front matter */
    struct ng_str shown; /* for people: "data.tag = 'a' AND NOT path = 'x/' '*'" */
    struct notes_filter_value *values; /* NULL: none */
};

struct notes_filter_compiler;

/* Passes the conditions that a written one stands for to notes_filter_add(); one of them must
 * hold. None: as if the condition were not written. */
typedef int notes_filter_expand_fn(struct notes_filter_compiler *compiler, struct ng_str text,
                                   void *user);
int notes_filter_add(struct notes_filter_compiler *compiler, struct ng_str text);

/* The owner of filters whose conditions are expanded. */
struct notes_filter_owner {
    notes_filter_expand_fn *expand;
    /* Fails the call: a fault of the filters, and the list that has it or an empty text. */
    int (*fail)(void *user, const char *what, struct ng_str list);
    void *user;
};

/*
 * `filters`: {and?: [...], or?: [...], not?: [...]}; NULL: none. Every `and`, one of `or` and
 * none of `not` must hold. Each is FIELD OPERATOR VALUE:
 *   fields     data.KEY (dots go into nested maps; tag and tags mean both), path (= and != take
 *              a glob), title, links-to, linked-by (a note's path, name, title or alias)
 *   operators  = != < > <= >= ~ (contains, without regard to case)
 *   value      the rest; quotes around it may be left out
 * Lists match if an element does; != is the negation of =. Fails with `code` (NG_EINVAL for
 * the tool), naming the condition.
 */
int notes_filter_compile(struct ng_call *call, const struct ng_value *filters, int code,
                         struct notes_filter **ret_filter);
/* The same for filters whose conditions are expanded first. They come from no input schema:
 * other members are ignored. A condition of `and` may stand for as many conditions again. */
int notes_filter_expand(struct ng_call *call, const struct ng_value *filters, int code,
                        const struct notes_filter_owner *owner,
                        struct notes_filter **ret_filter);

/* The filter, in call memory, of the notes that `filter` leaves out although they may fit:
 * their front matter does not parse. NULL in *ret_filter: there are none. An
 * SQLite code. */
int notes_filter_left_out(struct ng_call *call, sqlite3 *db, const struct notes_filter *filter,
                          struct notes_filter **ret_filter);

/* Registers the SQL functions that filters use; call it before a statement with a filter is
 * prepared. */
int notes_filter_functions(sqlite3 *db);

/* Binds the values from parameter `first` on (1 is the first of the statement); *ret_next is
 * the parameter behind them. An SQLite code. */
int notes_filter_bind(const struct notes_filter *filter, sqlite3_stmt *statement, int first,
                      int *ret_next);

#endif
