/* SPDX-License-Identifier: MIT */
/* backend_fixture.h - one documents backend, loaded as the gateway does but without a gateway,
 * and short ways to use it. */
#ifndef NOTEGATE_TEST_BACKEND_FIXTURE_H
#define NOTEGATE_TEST_BACKEND_FIXTURE_H

/* cmocka wants these before it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/call/call.h"
#include "core/config/config.h"
#include "core/module/loader.h"

#define FIXTURE_ROWS_MAX 4096

/* A backend under test. `sets`: configuration lines, NULL at the end. */
struct fixture {
    const char *module_name; /* "sqlite" */
    const char *const *sets;
    struct module *module;
    const char *name;                 /* the backend's own, which its keys begin with */
    const struct ng_documents *inner; /* the module's own */
    const struct ng_documents *docs;  /* or a wrapper of it */
    struct config *config;
    void *db;
    struct call *call;
    char dir[256]; /* data_dir, removed by fixture_close */
};

/* Loads and opens with declared collections. "{store}" in a set becomes what no other store is
 * called. */
void fixture_open(struct fixture *fixture, const char *module_name, const char *const *sets);
/* Only loads; open() is the test's, with fixture_start(). */
void fixture_load(struct fixture *fixture, const char *module_name, const char *const *sets);
int fixture_start(struct fixture *fixture); /* returns what open() returned */
void fixture_declare(struct fixture *fixture);
void fixture_stop(struct fixture *fixture); /* close() of the backend */
void fixture_close(struct fixture *fixture);
/* A fresh call (the error text of the one before is gone). */
struct ng_call *fixture_call(struct fixture *fixture);
const char *fixture_error(struct fixture *fixture);

/* Collections that are declared: things (fields tag: TAG, n: NUMBER, s: STRING, title: TEXT;
 * text searched), quiet (QUIET), fleeting (NO_HISTORY). */
extern const struct ng_collection fixture_collections[3];

/* One change in a batch. The strings are lent until the commit is done. */
struct change {
    const char *collection; /* NULL: things */
    const char *space;      /* NULL: team */
    struct ng_str id;
    uint64_t base;
    bool only_condition, deleted;
    const char *json; /* NULL: {} */
    struct ng_str text;
    const char *before_json; /* of the base revision, for the splice; NULL: {} or none */
    struct ng_str before_text;
    const char *tags[4]; /* fields */
    bool has_n;
    double n;
    const char *s;
    const char *title;
    const char *agent;  /* NULL: tester */
    const char *action; /* NULL: what it does */
    const char *data;   /* of the event, or NULL */
    /* NULL: a run, a key, a request and lines, the run another one with each revision. */
    const struct ng_origin *origin;
    int64_t time_ms; /* 0: now */
    uint64_t seq;    /* out */
};

/* Commits and waits. error: NULL or 512 bytes. */
int fixture_commit(struct fixture *fixture, struct change *changes, size_t count,
                   const struct ng_answer *answer, char *error, size_t *failed_put);
/* Waits until what was committed has its sequence numbers: shared stores give them later. */
void fixture_settle(struct fixture *fixture, struct change *changes, size_t count);
/* A document with just a text, whose present text is `before`. */
int fixture_put(struct fixture *fixture, const char *id, uint64_t base, const char *before,
                const char *text);

/* Copies of rows. */
struct row {
    char *collection, *space, *id, *json, *text, *snippet, *author, *action;
    size_t id_len, text_len;
    uint64_t revision, seq, created_seq, text_size;
    int64_t updated_ms;
    bool deleted, has_text, has_json;
    double score;
};
struct rows {
    size_t count;
    size_t stop_after; /* 0: never */
    struct row *items;
};
int rows_add(void *user, const struct ng_doc *doc); /* ng_row_fn, user = struct rows */
void rows_done(struct rows *rows);

int fixture_get(struct fixture *fixture, const char *id, uint64_t revision, struct rows *rows);
/* Asserts that the newest is this. */
void expect_doc(struct fixture *fixture, const char *id, uint64_t revision, const char *text);
/* Skips the rest of a case that needs an optional member, by name. */
void fixture_needs(bool offered, const char *member);
/* Asserts that verify() finds nothing, where it is offered. */
void expect_clean(struct fixture *fixture);

#endif
