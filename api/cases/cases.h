/* SPDX-License-Identifier: MIT */
/* cases.h - test cases of a plugin: calls of its tools, and the answers that are expected. */
#ifndef NOTEGATE_API_CASES_H
#define NOTEGATE_API_CASES_H

#include "core/call/gateway.h"

/* Limits of a file of cases. */
#define CASES_FILE_MAX ((size_t)4 * 1024 * 1024)
#define CASES_MAX 1000
#define CASES_NAME_MAX 200
/* Memory for its tree, and for the text of one answer. */
#define CASES_MEMORY_MAX ((size_t)256 * 1024 * 1024)

/* One call. Texts and values live as long as the arena of cases_read(). */
struct plugin_case {
    struct ng_str name;
    struct ng_str tool;
    struct ng_str args;         /* a JSON object */
    struct ng_str agent, space; /* or absent */
    enum ng_role role;
    enum ng_mode mode;
    const struct ng_value *expect; /* as it stands in the file */
    /* One of the three is there. */
    const struct ng_value *result; /* compared by cases_match() */
    const struct ng_value *text;   /* the whole text of the answer */
    const struct ng_value *error;  /* code of the failure */
    struct ng_str message;         /* a part of its message; absent: any message */
};

struct cases {
    const struct plugin_case *list;
    size_t count;
};

/* Reads and checks a file. NG_OK; or NG_EINVAL, NG_EINTERNAL (out of memory) after one sentence
 * in `error`, which names the file, and the number and member of a case. */
int cases_read(struct arena *arena, const char *path, struct cases *ret, struct buf *error);

/* Does the value have what is expected? An object may have further members; an array has the
 * expected elements, in their order; all other values are equal. */
bool cases_match(const struct ng_value *expected, const struct ng_value *value);

/* Calls the tool and waits for the answer, whose JSON is added to `actual`. NG_OK: it is the
 * expected one. NG_EFAILED: it is another one. NG_EINTERNAL: out of memory. */
int cases_run(struct gateway *gateway, const struct plugin_case *one, struct buf *actual);

#endif
