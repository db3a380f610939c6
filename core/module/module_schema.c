/* SPDX-License-Identifier: MIT */
/* module_schema.c - slips in a module's JSON Schemas: another type than object, which makes
 * clients refuse the whole list of tools, and keywords that are nearly one. */
#include "module_schema.h"

#include "core/base/arena.h"
#include "core/base/str.h"
#include "core/base/text/edit_distance.h"
#include "core/base/utf8.h"
#include "core/json/json.h"
#include "core/schema/schema_tree.h"

/* How far a misspelt keyword may be from the right one, in edits. */
#define NEAR_MOST 2
/* Shorter words are near too many others. */
#define NEAR_LEAST_BYTES 4
/* Objects of a schema, one in the other; deeper ones the parser refuses. */
#define WALK_DEPTH JSON_DEPTH_DEFAULT

/* Keywords without a rule: annotations and keywords that the compiler reads separately. */
static const char *const other_words[] = {
    "$schema",        "$id",
    "$anchor",        "$dynamicRef",
    "$dynamicAnchor", "$vocabulary",
    "$comment",       "$defs",
    "definitions",    "then",
    "else",           "title",
    "description",    "default",
    "deprecated",     "readOnly",
    "writeOnly",      "examples",
    "format",         "contentEncoding",
    "contentSchema",  "contentMediaType",
    "maxContains",    "minContains",
};

static const char *const rule_words[] = {
#define RULE_WORD(symbol, word) word,
    SCHEMA_RULE_MAP(RULE_WORD)
#undef RULE_WORD
};

#define WORD_COUNT (NG_COUNT(rule_words) + NG_COUNT(other_words))

/* The type of a keyword's value. */
enum holds {
    HOLDS_NO_SCHEMA,
    HOLDS_SCHEMA, /* or a list of them */
    HOLDS_NAMED   /* an object: name -> schema */
};

static enum holds holds_of(struct ng_str word)
{
    static const char one[] = "items prefixItems contains additionalProperties propertyNames "
                              "unevaluatedItems unevaluatedProperties allOf anyOf oneOf not if "
                              "then else contentSchema";
    static const char named[] =
        "properties patternProperties dependentSchemas $defs definitions";
    if (str_in_words(word, named)) {
        return HOLDS_NAMED;
    }
    if (str_in_words(word, one)) {
        return HOLDS_SCHEMA;
    }
    return HOLDS_NO_SCHEMA;
}

static const char *word_at(size_t at)
{
    return at < NG_COUNT(rule_words) ? rule_words[at] : other_words[at - NG_COUNT(rule_words)];
}

static bool is_word(struct ng_str word)
{
    for (size_t i = 0; i < WORD_COUNT; i++) {
        if (str_is(word, word_at(i))) {
            return true;
        }
    }
    return false;
}

/* The keyword that this word is nearly; NULL: it is one, or none of ours. */
static const char *nearly(struct ng_str word)
{
    const char *nearest = NULL;
    size_t best = NEAR_MOST + 1;
    bool extension = word.len > 1 && word.data[0] == 'x' && word.data[1] == '-';
    if (extension || word.len < NEAR_LEAST_BYTES || is_word(word)) {
        return NULL;
    }
    for (size_t i = 0; i < WORD_COUNT; i++) {
        size_t distance = edit_distance(word, ng_str_of(word_at(i)), NEAR_MOST);
        if (distance < best) {
            best = distance;
            nearest = word_at(i);
        }
    }
    return nearest;
}

struct walk {
    const char *owner, *member;
    struct buf *error;
};

static int walk_schema(const struct walk *walk, const struct ng_value *schema, unsigned depth);

/* A schema, or a list of schemas. */
static int walk_schemas(const struct walk *walk, const struct ng_value *value, unsigned depth)
{
    int rc = NG_OK;
    if (value->type != NG_TYPE_ARRAY) {
        return walk_schema(walk, value, depth);
    }
    for (const struct ng_value *item = value->first; item != NULL && rc == NG_OK;
         item = item->next) {
        rc = walk_schema(walk, item, depth);
    }
    return rc;
}

static int walk_named(const struct walk *walk, const struct ng_value *value, unsigned depth)
{
    int rc = NG_OK;
    for (const struct ng_value *item = value->type == NG_TYPE_OBJECT ? value->first : NULL;
         item != NULL && rc == NG_OK; item = item->next) {
        rc = walk_schema(walk, item, depth);
    }
    return rc;
}

static int walk_schema(const struct walk *walk, const struct ng_value *schema, unsigned depth)
{
    int rc = NG_OK;
    if (schema->type != NG_TYPE_OBJECT || depth > WALK_DEPTH) {
        return NG_OK;
    }
    for (const struct ng_value *item = schema->first; item != NULL && rc == NG_OK;
         item = item->next) {
        const char *meant = nearly(item->key);
        if (meant != NULL) {
            struct ng_str shown = utf8_cut(item->key, 60);
            (void)buf_printf(
                walk->error,
                "has `%s` with a keyword \"%.*s\" in its `%s` schema: did you mean "
                "\"%s\"?",
                walk->owner, (int)shown.len, shown.data, walk->member, meant);
            return NG_EINVAL;
        }
        enum holds holds = holds_of(item->key);
        if (holds == HOLDS_SCHEMA) {
            rc = walk_schemas(walk, item, depth + 1);
        } else if (holds == HOLDS_NAMED) {
            rc = walk_named(walk, item, depth + 1);
        } else {
            rc = NG_OK;
        }
    }
    return rc;
}

int module_schema(const char *owner, const char *member, const char *text, struct buf *error)
{
    const struct walk walk = {owner, member, error};
    const struct ng_value *tree = NULL;
    struct json_error json;
    struct arena arena;
    arena_init(&arena, 0);
    int rc = json_parse(&arena, ng_str_of(text), JSON_DEPTH_DEFAULT, &tree, &json);
    if (rc != NG_OK) {
        (void)buf_printf(error, "has `%s` whose `%s` schema is not JSON: %s", owner, member,
                         json.message);
    } else {
        const struct ng_value *type = json_get(tree, "type");
        rc = walk_schema(&walk, tree, 0);
        if (rc == NG_OK &&
            (type == NULL || type->type != NG_TYPE_STRING || !str_is(type->text, "object"))) {
            (void)buf_printf(error,
                             "has `%s` whose `%s` schema is not one of an object: it must say "
                             "\"type\": \"object\", or clients refuse the whole list of tools",
                             owner, member);
            rc = NG_EINVAL;
        }
    }
    arena_done(&arena);
    return rc;
}
