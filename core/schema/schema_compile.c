/* SPDX-License-Identifier: MIT */
/* schema_compile.c - from the JSON text of a schema to rules: each keyword is checked and taken
 * apart once. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/base/str.h"
#include "schema_tree.h"

#define SCHEMA_DRAFT "https://json-schema.org/draft/2020-12/schema"
#define REASON_MAX 160
#define PATH_MAX_BYTES 512

static const char *const schema_words[] = {
#define SCHEMA_RULE_WORD(symbol, word) word,
    SCHEMA_RULE_MAP(SCHEMA_RULE_WORD)
#undef SCHEMA_RULE_WORD
};

const char *schema_word(enum schema_keyword keyword)
{
    return schema_words[keyword];
}

int schema_no_memory(struct schema_compiler *compiler)
{
    (void)snprintf(compiler->error, compiler->error_size, "out of memory");
    return NG_EINTERNAL;
}

int schema_refuse(struct schema_compiler *compiler, const struct schema_place *place,
                  const char *keyword, const char *format, ...)
{
    struct buf path;
    char sentence[400];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(sentence, sizeof(sentence), format, args);
    va_end(args);
    buf_init(&path, PATH_MAX_BYTES);
    schema_print_path(&path, place);
    (void)snprintf(compiler->error, compiler->error_size, "\"%s\" at #%s %s", keyword,
                   buf_cstr(&path), sentence);
    buf_done(&path);
    return NG_EINVAL;
}

/* The compiler's position: the value of a keyword inside a node. */
struct site {
    struct schema_compiler *compiler;
    struct schema_node *node;
    const struct schema_place *schema_place; /* of the schema around the keyword */
    struct schema_place place;               /* of the keyword's value */
    struct schema_rule *rule;
    const char *word;
};

static int refuse(const struct site *site, const char *must)
{
    return schema_refuse(site->compiler, site->schema_place, site->word, "%s", must);
}

static int compile_types(struct site *site)
{
    static const struct {
        const char *word;
        unsigned types;
    } names[] = {
        {"null", SCHEMA_NULL},       {"boolean", SCHEMA_BOOLEAN},
        {"integer", SCHEMA_INTEGER}, {"number", SCHEMA_NUMBER | SCHEMA_INTEGER},
        {"string", SCHEMA_STRING},   {"array", SCHEMA_ARRAY},
        {"object", SCHEMA_OBJECT},
    };
    const struct ng_value *value = site->place.value;
    const struct ng_value *item = value;
    if (value->type == NG_TYPE_ARRAY) {
        item = value->first;
    }
    if (value->type == NG_TYPE_ARRAY && value->count == 0) {
        return refuse(site, "must name at least one type");
    }
    for (; item != NULL; item = value->type == NG_TYPE_ARRAY ? item->next : NULL) {
        unsigned types = 0;
        for (size_t i = 0; i < NG_COUNT(names); i++) {
            if (item->type == NG_TYPE_STRING && str_is(item->text, names[i].word)) {
                types = names[i].types;
            }
        }
        if (types == 0) {
            return refuse(site, "must be null, boolean, integer, number, string, array or "
                                "object, or a list of these");
        }
        site->rule->types |= types;
    }
    return NG_OK;
}

static int compile_count(struct site *site, const struct ng_value *value, uint64_t *ret)
{
    int64_t number = 0;
    if (!json_is_integer(value) || json_compare_numbers(value->text, ng_str_of("0")) < 0) {
        return refuse(site, "must be a whole number that is not negative");
    }
    *ret = UINT64_MAX; /* a number that does not fit exceeds every length */
    if (json_integer(value, &number) == NG_OK) {
        *ret = (uint64_t)number;
    }
    return NG_OK;
}

static int compile_number(struct site *site)
{
    const struct ng_value *value = site->place.value;
    if (value->type != NG_TYPE_NUMBER) {
        return refuse(site, "must be a number");
    }
    if (site->rule->keyword == SCHEMA_MULTIPLE_OF &&
        json_compare_numbers(value->text, ng_str_of("0")) <= 0) {
        return refuse(site, "must be more than 0");
    }
    return NG_OK;
}

static int compile_regex(const struct site *site, struct ng_str pattern, pcre2_code **ret)
{
    char reason[REASON_MAX];
    int rc = schema_regex_compile(site->compiler->schema, pattern, ret, reason, sizeof(reason));
    if (rc == NG_EINTERNAL) {
        return schema_no_memory(site->compiler);
    }
    if (rc != NG_OK) {
        return schema_refuse(site->compiler, site->schema_place, site->word,
                             "is not a regular expression: %s", reason);
    }
    return NG_OK;
}

static int compile_pattern(struct site *site)
{
    if (site->place.value->type != NG_TYPE_STRING) {
        return refuse(site, "must be a string");
    }
    return compile_regex(site, site->place.value->text, &site->rule->regex);
}

static bool is_name_list(const struct ng_value *value)
{
    bool fits = value->type == NG_TYPE_ARRAY;
    for (const struct ng_value *item = value->first; fits && item != NULL; item = item->next) {
        fits = item->type == NG_TYPE_STRING;
    }
    return fits;
}

static int compile_sub(const struct site *site, const struct ng_value *value,
                       struct schema_place *place, struct schema_node **ret)
{
    place->value = value;
    return schema_compile_node(site->compiler, place, site->node->resource, ret);
}

static int compile_single(struct site *site)
{
    return compile_sub(site, site->place.value, &site->place, &site->rule->node);
}

/* A sibling keyword that holds a schema, or NULL. */
static int compile_sibling(const struct site *site, const char *word, struct schema_node **ret)
{
    const struct ng_value *value = json_get(site->node->value, word);
    if (value == NULL) {
        return NG_OK;
    }
    struct schema_place place = {
        .parent = site->schema_place, .step = SCHEMA_STEP_MEMBER, .name = ng_str_of(word)};
    return compile_sub(site, value, &place, ret);
}

static int compile_if(struct site *site)
{
    int rc = compile_single(site);
    if (rc != NG_OK) {
        return rc;
    }
    rc = compile_sibling(site, "then", &site->rule->then_node);
    if (rc != NG_OK) {
        return rc;
    }
    return compile_sibling(site, "else", &site->rule->else_node);
}

static int compile_contains(struct site *site)
{
    const struct ng_value *least = json_get(site->node->value, "minContains");
    const struct ng_value *most = json_get(site->node->value, "maxContains");
    site->rule->least = 1;
    site->rule->most = UINT64_MAX;
    if (least != NULL && compile_count(site, least, &site->rule->least) != NG_OK) {
        return NG_EINVAL;
    }
    if (most != NULL && compile_count(site, most, &site->rule->most) != NG_OK) {
        return NG_EINVAL;
    }
    return compile_single(site);
}

static int compile_entry(struct site *site, const struct ng_value *value, size_t index,
                         struct schema_entry *entry)
{
    enum schema_keyword keyword = site->rule->keyword;
    bool is_list = site->place.value->type == NG_TYPE_ARRAY;
    struct schema_place place = {.parent = &site->place,
                                 .step = is_list ? SCHEMA_STEP_ITEM : SCHEMA_STEP_MEMBER,
                                 .name = value->key,
                                 .index = index};
    entry->name = value->key;
    if (keyword == SCHEMA_DEPENDENT_REQUIRED) {
        entry->names = value;
        if (is_name_list(value)) {
            return NG_OK;
        }
        return refuse(site, "must hold lists of names");
    }
    if (keyword == SCHEMA_PATTERN_PROPERTIES) {
        int rc = compile_regex(site, value->key, &entry->regex);
        if (rc != NG_OK) {
            return rc;
        }
    }
    return compile_sub(site, value, &place, &entry->node);
}

static int compile_entries(struct site *site)
{
    const struct ng_value *value = site->place.value;
    struct schema_rule *rule = site->rule;
    rule->entries =
        arena_zalloc(site->compiler->arena, (size_t)value->count * sizeof(struct schema_entry));
    if (rule->entries == NULL) {
        return schema_no_memory(site->compiler);
    }
    for (const struct ng_value *item = value->first; item != NULL; item = item->next) {
        int rc = compile_entry(site, item, rule->count, &rule->entries[rule->count]);
        if (rc != NG_OK) {
            return rc;
        }
        rule->count++;
    }
    if (rule->keyword == SCHEMA_PROPERTIES) {
        qsort(rule->entries, rule->count, sizeof(struct schema_entry), schema_by_name);
    }
    return NG_OK;
}

static int compile_object(struct site *site)
{
    if (site->place.value->type == NG_TYPE_OBJECT) {
        return compile_entries(site);
    }
    return refuse(site, "must be an object");
}

static int compile_list(struct site *site)
{
    const struct ng_value *value = site->place.value;
    if (value->type != NG_TYPE_ARRAY || value->count == 0) {
        return refuse(site, "must be a list of at least one schema");
    }
    return compile_entries(site);
}

static int compile_ref(struct site *site)
{
    struct buf path;
    if (site->place.value->type != NG_TYPE_STRING) {
        return refuse(site, "must be a string");
    }
    struct schema_pending *pending = arena_alloc(site->compiler->arena, sizeof(*pending));
    if (pending == NULL) {
        return schema_no_memory(site->compiler);
    }
    pending->next = site->compiler->pending;
    pending->rule = site->rule;
    pending->resource = site->node->resource;
    buf_init(&path, PATH_MAX_BYTES);
    schema_print_path(&path, site->schema_place);
    pending->path = arena_copy(site->compiler->arena, ng_str_of(buf_cstr(&path)));
    buf_done(&path);
    if (pending->path.data == NULL) {
        return schema_no_memory(site->compiler);
    }
    site->compiler->pending = pending;
    return NG_OK;
}

static int compile_rule(struct site *site)
{
    const struct ng_value *value = site->place.value;
    switch (site->rule->keyword) {
    case SCHEMA_TYPE:
        return compile_types(site);
    case SCHEMA_ENUM:
        if (value->type == NG_TYPE_ARRAY) {
            return NG_OK;
        }
        return refuse(site, "must be a list");
    case SCHEMA_CONST:
        return NG_OK;
    case SCHEMA_MULTIPLE_OF:
    case SCHEMA_MAXIMUM:
    case SCHEMA_EXCLUSIVE_MAXIMUM:
    case SCHEMA_MINIMUM:
    case SCHEMA_EXCLUSIVE_MINIMUM:
        return compile_number(site);
    case SCHEMA_MAX_LENGTH:
    case SCHEMA_MAX_ITEMS:
    case SCHEMA_MAX_PROPERTIES:
        return compile_count(site, value, &site->rule->most);
    case SCHEMA_MIN_LENGTH:
    case SCHEMA_MIN_ITEMS:
    case SCHEMA_MIN_PROPERTIES:
        return compile_count(site, value, &site->rule->least);
    case SCHEMA_PATTERN:
        return compile_pattern(site);
    case SCHEMA_UNIQUE_ITEMS:
        if (value->type == NG_TYPE_TRUE || value->type == NG_TYPE_FALSE) {
            return NG_OK;
        }
        return refuse(site, "must be true or false");
    case SCHEMA_CONTAINS:
        return compile_contains(site);
    case SCHEMA_REQUIRED:
        if (is_name_list(value)) {
            return NG_OK;
        }
        return refuse(site, "must be a list of names");
    case SCHEMA_REF:
        return compile_ref(site);
    case SCHEMA_ALL_OF:
    case SCHEMA_ANY_OF:
    case SCHEMA_ONE_OF:
    case SCHEMA_PREFIX_ITEMS:
        return compile_list(site);
    case SCHEMA_DEPENDENT_REQUIRED:
    case SCHEMA_DEPENDENT_SCHEMAS:
    case SCHEMA_PROPERTIES:
    case SCHEMA_PATTERN_PROPERTIES:
        return compile_object(site);
    case SCHEMA_IF:
        return compile_if(site);
    default:
        return compile_single(site);
    }
}

static int compile_defs(struct site *site)
{
    const struct ng_value *value = site->place.value;
    if (value->type != NG_TYPE_OBJECT) {
        return refuse(site, "must be an object");
    }
    for (const struct ng_value *item = value->first; item != NULL; item = item->next) {
        struct schema_place place = {
            .parent = &site->place, .step = SCHEMA_STEP_MEMBER, .name = item->key};
        struct schema_node *node = NULL;
        int rc = compile_sub(site, item, &place, &node);
        if (rc != NG_OK) {
            return rc;
        }
    }
    return NG_OK;
}

static int compile_anchor(struct site *site)
{
    if (site->place.value->type != NG_TYPE_STRING) {
        return refuse(site, "must be a string");
    }
    struct schema_anchor *anchor = arena_alloc(site->compiler->arena, sizeof(*anchor));
    if (anchor == NULL) {
        return schema_no_memory(site->compiler);
    }
    anchor->next = site->compiler->anchors;
    anchor->resource = site->node->resource;
    anchor->name = site->place.value->text;
    anchor->node = site->node;
    site->compiler->anchors = anchor;
    return NG_OK;
}

/* then and else without if are ignored, as in the draft, but may hold $id and $ref targets. */
static int compile_lone_branch(struct site *site)
{
    struct schema_node *node = NULL;
    if (json_get(site->node->value, "if") != NULL) {
        return NG_OK;
    }
    return compile_sub(site, site->place.value, &site->place, &node);
}

static int compile_refused(struct site *site)
{
    return refuse(site, "is not supported");
}

static int compile_draft(struct site *site)
{
    struct ng_str text = site->place.value->text;
    if (text.len > 0 && text.data[text.len - 1] == '#') {
        text.len--;
    }
    if (str_is(text, SCHEMA_DRAFT)) {
        return NG_OK;
    }
    return refuse(site, "must be " SCHEMA_DRAFT);
}

/* Keywords that make no rule. All others are annotations. */
static int compile_other(struct site *site)
{
    static const struct {
        const char *word;
        int (*compile)(struct site *site);
    } others[] = {
        {"$dynamicRef", compile_refused}, {"$vocabulary", compile_refused},
        {"$schema", compile_draft},       {"$defs", compile_defs},
        {"$anchor", compile_anchor},      {"$dynamicAnchor", compile_anchor},
        {"then", compile_lone_branch},    {"else", compile_lone_branch},
    };
    for (size_t i = 0; i < NG_COUNT(others); i++) {
        if (str_is(site->place.name, others[i].word)) {
            site->word = others[i].word;
            return others[i].compile(site);
        }
    }
    return NG_OK;
}

static int compile_keyword(struct site *site, struct schema_rule ***tail,
                           struct schema_rule ***late)
{
    struct schema_compiler *compiler = site->compiler;
    size_t keyword = 0;
    while (keyword < SCHEMA_KEYWORDS && !str_is(site->place.name, schema_words[keyword])) {
        keyword++;
    }
    if (keyword == SCHEMA_KEYWORDS) {
        return compile_other(site);
    }
    site->word = schema_words[keyword];
    site->rule = arena_zalloc(compiler->arena, sizeof(*site->rule));
    if (site->rule == NULL) {
        return schema_no_memory(compiler);
    }
    site->rule->keyword = (enum schema_keyword)keyword;
    site->rule->value = site->place.value;
    site->node->by_keyword[keyword] = site->rule;
    bool unevaluated =
        keyword == SCHEMA_UNEVALUATED_ITEMS || keyword == SCHEMA_UNEVALUATED_PROPERTIES;
    site->node->unevaluated = site->node->unevaluated || unevaluated;
    struct schema_rule ***list = tail;
    if (unevaluated) {
        list = late;
    }
    **list = site->rule;
    *list = &site->rule->next;
    return compile_rule(site);
}

static int compile_keywords(struct schema_compiler *compiler, struct schema_node *node,
                            const struct schema_place *place)
{
    struct schema_rule *last = NULL;
    struct schema_rule **tail = &node->rules;
    struct schema_rule **late = &last;
    for (const struct ng_value *member = node->value->first; member != NULL;
         member = member->next) {
        struct site site = {.compiler = compiler,
                            .node = node,
                            .schema_place = place,
                            .place = {.parent = place,
                                      .value = member,
                                      .step = SCHEMA_STEP_MEMBER,
                                      .name = member->key}};
        int rc = compile_keyword(&site, &tail, &late);
        if (rc != NG_OK) {
            return rc;
        }
    }
    *tail = last;
    return NG_OK;
}

int schema_compile_node(struct schema_compiler *compiler, const struct schema_place *place,
                        struct schema_resource *resource, struct schema_node **ret)
{
    const struct ng_value *value = place->value;
    if (value->type != NG_TYPE_OBJECT && value->type != NG_TYPE_TRUE &&
        value->type != NG_TYPE_FALSE) {
        return schema_refuse(compiler, place, "schema", "must be an object, true or false");
    }
    struct schema_node *node = arena_zalloc(compiler->arena, sizeof(*node));
    if (node == NULL) {
        return schema_no_memory(compiler);
    }
    const struct ng_value *id = json_get(value, "$id");
    if (id != NULL) {
        if (id->type != NG_TYPE_STRING || memchr(id->text.data, '#', id->text.len) != NULL) {
            return schema_refuse(compiler, place, "$id", "must be a URI without a fragment");
        }
        int rc = schema_add_resource(compiler, resource->uri, id->text, value, &resource);
        if (rc != NG_OK) {
            return rc;
        }
    }
    node->value = value;
    node->resource = resource;
    node->next = compiler->schema->nodes;
    compiler->schema->nodes = node;
    *ret = node;
    return compile_keywords(compiler, node, place);
}

static int compile_text(struct schema_compiler *compiler, struct ng_str text)
{
    struct schema *schema = compiler->schema;
    struct json_error fault;
    const struct ng_value *value = NULL;
    struct schema_resource *resource = NULL;
    if (schema_regex_init(schema) != NG_OK) {
        return schema_no_memory(compiler);
    }
    int rc = json_parse(compiler->arena, text, JSON_DEPTH_DEFAULT, &value, &fault);
    if (rc != NG_OK) {
        (void)snprintf(compiler->error, compiler->error_size,
                       "the schema is not JSON: %s (line %zu, column %zu)", fault.message,
                       fault.line, fault.column);
        if (rc != NG_EINTERNAL) {
            return NG_EINVAL;
        }
        return schema_no_memory(compiler);
    }
    rc = schema_add_resource(compiler, ng_str_of(""), ng_str_of(""), value, &resource);
    if (rc == NG_OK) {
        struct schema_place place = {.value = value, .step = SCHEMA_STEP_ROOT};
        rc = schema_compile_node(compiler, &place, resource, &schema->root);
    }
    if (rc != NG_OK) {
        return rc;
    }
    return schema_resolve(compiler);
}

/* NOLINTNEXTLINE(readability-non-const-parameter) */
int schema_compile(struct ng_str text, struct schema **ret, char *error, size_t error_size)
{
    char unused[1];
    struct schema *schema = alloc_zeroed(1, sizeof(*schema));
    struct schema_compiler compiler = {
        .schema = schema,
        .arena = schema == NULL ? NULL : &schema->arena,
        .error = error_size == 0 ? unused : error,
        .error_size = error_size == 0 ? sizeof(unused) : error_size,
    };
    compiler.error[0] = '\0';
    if (schema == NULL) {
        return schema_no_memory(&compiler);
    }
    arena_init(&schema->arena, 0);
    int rc = compile_text(&compiler, text);
    if (rc != NG_OK) {
        schema_free(schema);
        return rc;
    }
    *ret = schema;
    return NG_OK;
}

void schema_free(struct schema *schema)
{
    if (schema == NULL) {
        return;
    }
    schema_regex_done(schema);
    arena_done(&schema->arena);
    free(schema);
}
