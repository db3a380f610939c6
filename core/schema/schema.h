/* SPDX-License-Identifier: MIT */
/*
 * schema.h - JSON Schema 2020-12: compile once, check many times from any thread.
 *
 * Everything of the core, applicator, unevaluated and validation vocabularies; `format` and
 * `content*` are annotations, as the draft's default is. Refused by name when compiling: remote
 * $ref, $dynamicRef, $vocabulary.
 */
#ifndef NOTEGATE_CORE_SCHEMA_H
#define NOTEGATE_CORE_SCHEMA_H

#include "core/json/json.h"

struct schema;

/* Violations reported at most. */
#define SCHEMA_VIOLATIONS_MAX 32

/* One thing that is wrong. Memory of the arena given to schema_check. */
struct violation {
    struct ng_str path; /* of the value in the input: JSON Pointer, "" = the whole */
    struct ng_str
        expected;      /* "an integer", "one of \"create\", \"list\"", "no member \"x\"" ... */
    struct ng_str got; /* "a string \"abc\"", long values cut; "nothing" where missing */
    struct ng_str keyword; /* "type", "required", ... */
};

struct violations {
    size_t count;
    struct violation items[SCHEMA_VIOLATIONS_MAX];
};

/* NG_OK and *ret (schema_free), or NG_EINVAL with a sentence in `error` that names the keyword
 * and place. */
int schema_compile(struct ng_str text, struct schema **ret, char *error, size_t error_size);
void schema_free(struct schema *schema);
/* NG_OK: valid. NG_EINVAL: violations filled, in the order of the schema. The arena is for
 * their texts. Recursion is bounded; a pattern that takes too many steps counts as a violation.
 */
int schema_check(const struct schema *schema, const struct ng_value *value, struct arena *arena,
                 struct violations *violations);
/* Limits of schema_fit(), and names that it takes out. */
struct schema_leniency {
    unsigned depth; /* of the whole value with what is decoded, as limits.depth; from 1 */
    /* Members that clients add to the outermost object, lent; they go where it refuses members
     * that it does not name, and names none of theirs. */
    const struct ng_str *ignored;
    size_t ignored_count;
};
/* For a value that schema_check() refused: takes out members that are null where their schema
 * refuses null and that are not required, and those to be ignored; decodes texts where the
 * schema admits no text: JSON of a list or object that then fits, a number, true, false. All
 * else stays as it is. True: the value has changed, and the text that it came as is not its
 * text any more; check it again. Memory of the arena. */
bool schema_fit(const struct schema *schema, struct ng_value *value, struct arena *arena,
                const struct schema_leniency *leniency);

#endif
