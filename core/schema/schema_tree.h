/* SPDX-License-Identifier: MIT */
/* schema_tree.h - a compiled schema and the state of one check. Private to schema*.c. */
#ifndef NOTEGATE_CORE_SCHEMA_TREE_H
#define NOTEGATE_CORE_SCHEMA_TREE_H

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "core/base/str.h"
#include "core/json/json_number.h"
#include "schema.h"

/* Schemas inside schemas while checking one value: a value of JSON_DEPTH_DEFAULT levels with
 * four schemas a level. More counts as endless recursion. A worker's stack must hold it. */
#define SCHEMA_DEPTH_MAX (4 * JSON_DEPTH_DEFAULT)
/* Schemas applied in one check, against exponential branching. */
#define SCHEMA_STEPS_MAX 50000000
/* Letters that may be wrong in a member's name for another to be meant. */
#define SCHEMA_NEAR 2
/* Backtracking steps of one pattern on one string, and its memory. */
#define SCHEMA_MATCH_LIMIT 1000000
#define SCHEMA_MATCH_KIB 8192
/* Budget of all patterns in one check, in characters read and items tried. Linear patterns need
 * no more than each character adds. */
#define SCHEMA_MATCH_WORK 10000000
#define SCHEMA_MATCH_WORK_PER_BYTE 8

/* X(keyword, word of the JSON text): the keywords that become rules. */
#define SCHEMA_RULE_MAP(X)                                                                     \
    X(TYPE, "type")                                                                            \
    X(ENUM, "enum")                                                                            \
    X(CONST, "const")                                                                          \
    X(MULTIPLE_OF, "multipleOf")                                                               \
    X(MAXIMUM, "maximum")                                                                      \
    X(EXCLUSIVE_MAXIMUM, "exclusiveMaximum")                                                   \
    X(MINIMUM, "minimum")                                                                      \
    X(EXCLUSIVE_MINIMUM, "exclusiveMinimum")                                                   \
    X(MAX_LENGTH, "maxLength")                                                                 \
    X(MIN_LENGTH, "minLength")                                                                 \
    X(PATTERN, "pattern")                                                                      \
    X(MAX_ITEMS, "maxItems")                                                                   \
    X(MIN_ITEMS, "minItems")                                                                   \
    X(UNIQUE_ITEMS, "uniqueItems")                                                             \
    X(CONTAINS, "contains")                                                                    \
    X(MAX_PROPERTIES, "maxProperties")                                                         \
    X(MIN_PROPERTIES, "minProperties")                                                         \
    X(REQUIRED, "required")                                                                    \
    X(DEPENDENT_REQUIRED, "dependentRequired")                                                 \
    X(REF, "$ref")                                                                             \
    X(ALL_OF, "allOf")                                                                         \
    X(ANY_OF, "anyOf")                                                                         \
    X(ONE_OF, "oneOf")                                                                         \
    X(NOT, "not")                                                                              \
    X(IF, "if")                                                                                \
    X(DEPENDENT_SCHEMAS, "dependentSchemas")                                                   \
    X(PREFIX_ITEMS, "prefixItems")                                                             \
    X(ITEMS, "items")                                                                          \
    X(PROPERTIES, "properties")                                                                \
    X(PATTERN_PROPERTIES, "patternProperties")                                                 \
    X(ADDITIONAL_PROPERTIES, "additionalProperties")                                           \
    X(PROPERTY_NAMES, "propertyNames")                                                         \
    X(UNEVALUATED_ITEMS, "unevaluatedItems")                                                   \
    X(UNEVALUATED_PROPERTIES, "unevaluatedProperties")

enum schema_keyword {
#define SCHEMA_RULE_ENUM(symbol, word) SCHEMA_##symbol,
    SCHEMA_RULE_MAP(SCHEMA_RULE_ENUM)
#undef SCHEMA_RULE_ENUM
        SCHEMA_KEYWORDS
};

/* Sets of types, for `type` and its messages. */
enum schema_types {
    SCHEMA_NULL = 1,
    SCHEMA_BOOLEAN = 2,
    SCHEMA_INTEGER = 4,
    SCHEMA_NUMBER = 8,
    SCHEMA_STRING = 16,
    SCHEMA_ARRAY = 32,
    SCHEMA_OBJECT = 64,
    SCHEMA_ANY = 127
};

/* A base URI and the schema it names. */
struct schema_resource {
    struct schema_resource *next;
    struct ng_str uri; /* without fragment; "" where the schema has no $id */
    const struct ng_value *root;
};

/* A named or listed subschema, pattern or list of names. */
struct schema_entry {
    struct ng_str name;
    struct schema_node *node;
    pcre2_code *regex;            /* owned by the schema */
    const struct ng_value *names; /* dependentRequired */
};

struct schema_rule {
    enum schema_keyword keyword;
    struct schema_rule *next;
    const struct ng_value *value;  /* as in the text */
    uint64_t least, most;          /* counts; contains: both */
    unsigned types;                /* enum schema_types */
    struct schema_node *node;      /* the one subschema */
    struct schema_node *then_node; /* if */
    struct schema_node *else_node;
    struct schema_entry *entries; /* properties: sorted by name, else as in the text */
    size_t count;
    pcre2_code *regex; /* pattern */
};

/* A schema or subschema. Never changes once compiled. */
struct schema_node {
    struct schema_node *next; /* all nodes of the schema */
    const struct ng_value *value;
    struct schema_resource *resource;
    struct schema_rule *rules; /* as in the text, unevaluated* last */
    /* Read by other rules: */
    struct schema_rule *by_keyword[SCHEMA_KEYWORDS];
    bool unevaluated; /* has a rule that needs the members that others evaluated */
};

struct schema_regex {
    struct schema_regex *next;
    pcre2_code *code;
};

struct schema {
    struct arena arena;
    struct schema_node *root;
    struct schema_node *nodes;
    struct schema_regex *regexes;
    pcre2_general_context *memory;
    pcre2_match_context *limits;
};

/* A position in a schema or a value: a chain on the stack, printed only for messages. */
enum schema_step { SCHEMA_STEP_ROOT, SCHEMA_STEP_MEMBER, SCHEMA_STEP_ITEM, SCHEMA_STEP_NAME };

struct schema_place {
    const struct schema_place *parent;
    const struct ng_value *value;
    enum schema_step step;
    struct ng_str name; /* MEMBER, NAME */
    size_t index;       /* ITEM */
};

void schema_print_path(struct buf *buf, const struct schema_place *place);

/* ---- compiling: schema_compile.c, schema_refs.c, schema_regex.c ---- */

struct schema_anchor {
    struct schema_anchor *next;
    const struct schema_resource *resource;
    struct ng_str name;
    struct schema_node *node;
};

struct schema_pending {
    struct schema_pending *next;
    struct schema_rule *rule; /* a $ref */
    struct schema_resource *resource;
    struct ng_str path; /* of the schema around it, for messages */
};

struct schema_compiler {
    struct schema *schema;
    struct arena *arena;
    struct schema_resource *resources;
    struct schema_anchor *anchors;
    struct schema_pending *pending;
    char *error;
    size_t error_size;
};

int schema_compile_node(struct schema_compiler *compiler, const struct schema_place *place,
                        struct schema_resource *resource, struct schema_node **ret);
/* "KEYWORD at #/place: sentence"; returns NG_EINVAL. */
int schema_refuse(struct schema_compiler *compiler, const struct schema_place *place,
                  const char *keyword, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
int schema_no_memory(struct schema_compiler *compiler);
/* Makes the resource of a $id. */
int schema_add_resource(struct schema_compiler *compiler, struct ng_str base, struct ng_str id,
                        const struct ng_value *root, struct schema_resource **ret);
/* Finds the target of every $ref, compiling what lies below unknown keywords. */
int schema_resolve(struct schema_compiler *compiler);
/* The memory context and match limits of the regular expressions. NG_EINTERNAL: no memory. */
int schema_regex_init(struct schema *schema);
void schema_regex_done(struct schema *schema);
/* An ECMA-262 pattern. The code is owned by the schema. NG_EINVAL: *ret_reason says why. */
int schema_regex_compile(struct schema *schema, struct ng_str pattern, pcre2_code **ret,
                         char *reason, size_t reason_size);
/* The pattern in PCRE2's words. */
int schema_regex_translate(struct ng_str pattern, struct buf *buf, char *reason,
                           size_t reason_size);

/* ---- checking: schema_check.c, schema_assert.c, schema_report.c ---- */

/* Which members or items of one value were evaluated, for unevaluated*. */
struct schema_marks {
    size_t count;
    uint64_t *words;
    uint64_t few; /* words points here where 64 bits are enough */
};

struct schema_checker {
    const struct schema *schema;
    struct arena *arena;
    struct violations *violations;
    pcre2_match_data *match; /* these two are made when the first pattern is met */
    pcre2_match_context *context;
    int64_t work_left; /* of SCHEMA_MATCH_WORK */
    size_t work_at;    /* position of the pattern at its last item */
    unsigned silent;   /* > 0: only the answer counts */
    unsigned depth;
    uint64_t steps;
    int rc; /* not NG_OK: the check ends */
};

bool schema_check_node(struct schema_checker *checker, const struct schema_node *node,
                       const struct schema_place *place, struct schema_marks *marks);
/* A keyword that checks the value alone. */
bool schema_assert(struct schema_checker *checker, const struct schema_node *node,
                   const struct schema_rule *rule, const struct schema_place *place);
bool schema_matches(struct schema_checker *checker, const pcre2_code *regex, struct ng_str text,
                    const struct schema_place *place, struct ng_str pattern);
unsigned schema_types_of(const struct ng_value *value);
/* Order of entries, for qsort() and bsearch(). */
static inline int schema_by_name(const void *a, const void *b)
{
    const struct schema_entry *left = a;
    const struct schema_entry *right = b;
    return str_compare(left->name, right->name);
}
/* The types a schema admits as far as type, const, enum, $ref, allOf, anyOf and oneOf tell. */
unsigned schema_types_admitted(const struct schema_node *node);
const struct schema_entry *schema_find(const struct schema_rule *properties,
                                       struct ng_str name);

/* Is the next violation written down? If not, the first failure decides. */
bool schema_records(const struct schema_checker *checker);
/* Adds a violation where one is recorded; false. `got` absent: the value is described. */
bool schema_fail(struct schema_checker *checker, const struct schema_place *place,
                 const char *keyword, struct ng_str got, const char *format, ...)
    __attribute__((format(printf, 5, 6)));
/* The check cannot go on. */
bool schema_abort(struct schema_checker *checker, const struct schema_place *place,
                  const char *keyword, const char *expected, const char *got);
bool schema_fail_false(struct schema_checker *checker, const struct schema_place *place,
                       const char *keyword);
/* A member that `node` does not know: names the nearest that it does. */
bool schema_fail_unknown(struct schema_checker *checker, const struct schema_node *node,
                         const struct schema_place *place, const char *keyword);
bool schema_fail_missing(struct schema_checker *checker, const struct schema_node *node,
                         const struct schema_place *place, const char *keyword,
                         struct ng_str name, struct ng_str because);
/* Texts in the checker's arena, or absent when it is full. */
struct ng_str schema_text_types(struct schema_checker *checker, unsigned types);
struct ng_str schema_text_choices(struct schema_checker *checker,
                                  const struct ng_value *const *values, size_t count);
struct ng_str schema_text_value(struct schema_checker *checker, const struct ng_value *value);
/* anyOf, oneOf without a branch that fits. */
bool schema_fail_branches(struct schema_checker *checker, const struct schema_rule *rule,
                          const struct schema_place *place, const char *keyword);
const char *schema_word(enum schema_keyword keyword);

#endif
