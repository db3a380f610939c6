/* SPDX-License-Identifier: MIT */
/* command_args.c - the types that a schema allows for a value, and a word written as one of
 * them. */
#include "command_args.h"

#include <string.h>

#include "core/base/str.h"
#include "core/base/utf8.h"

/* $ref, anyOf and their like inside one another, at most. */
#define ARGS_DEPTH_MAX 8
/* Memory to check one JSON value. */
#define ARGS_VALUE_MAX ((size_t)64 * 1024 * 1024)

enum args_type {
    ARGS_STRING = 1 << 0,
    ARGS_INTEGER = 1 << 1,
    ARGS_NUMBER = 1 << 2,
    ARGS_BOOLEAN = 1 << 3,
    ARGS_ARRAY = 1 << 4,
    ARGS_OBJECT = 1 << 5,
    ARGS_NULL = 1 << 6
};

struct args {
    const struct ng_value *schema; /* the whole, for $ref */
    struct buf *out;
    struct buf *error;
};

static unsigned args_type_named(struct ng_str name)
{
    static const struct {
        const char *name;
        unsigned type;
    } types[] = {
        {"string", ARGS_STRING},   {"integer", ARGS_INTEGER}, {"number", ARGS_NUMBER},
        {"boolean", ARGS_BOOLEAN}, {"array", ARGS_ARRAY},     {"object", ARGS_OBJECT},
        {"null", ARGS_NULL},
    };
    for (size_t i = 0; i < NG_COUNT(types); i++) {
        if (str_is(name, types[i].name)) {
            return types[i].type;
        }
    }
    return 0;
}

static unsigned args_type_of_value(const struct ng_value *value)
{
    switch (value->type) {
    case NG_TYPE_STRING:
        return ARGS_STRING;
    case NG_TYPE_NUMBER:
        return ARGS_NUMBER;
    case NG_TYPE_TRUE:
    case NG_TYPE_FALSE:
        return ARGS_BOOLEAN;
    case NG_TYPE_ARRAY:
        return ARGS_ARRAY;
    case NG_TYPE_OBJECT:
        return ARGS_OBJECT;
    case NG_TYPE_NULL:
        return ARGS_NULL;
    case NG_TYPE_ABSENT:
        break;
    }
    return 0;
}

/* "#/$defs/name": a place in the same schema. */
static const struct ng_value *args_resolve(const struct args *args, const struct ng_value *ref)
{
    struct ng_str path = ref->text;
    const struct ng_value *at = args->schema;
    if (path.len < 2 || memcmp(path.data, "#/", 2) != 0) {
        return NULL;
    }
    size_t i = 2;
    while (at != NULL && i <= path.len) {
        const char *slash = memchr(path.data + i, '/', path.len - i);
        size_t end = path.len;
        if (slash != NULL) {
            end = (size_t)(slash - path.data);
        }
        at = json_get_str(at, str_make(path.data + i, end - i));
        i = end + 1;
    }
    return at;
}

/* The types a schema lets through; 0: it does not say. *ret_items: the schema of an array's
 * elements. */
static unsigned args_types(const struct args *args, const struct ng_value *schema,
                           const struct ng_value **ret_items, unsigned depth)
{
    static const char *const choices[] = {"anyOf", "oneOf"};
    unsigned types = 0;
    if (!json_is(schema, NG_TYPE_OBJECT) || depth == ARGS_DEPTH_MAX) {
        return 0;
    }
    const struct ng_value *ref = json_get(schema, "$ref");
    if (ref != NULL) {
        return args_types(args, args_resolve(args, ref), ret_items, depth + 1);
    }
    const struct ng_value *items = json_get(schema, "items");
    if (items != NULL) {
        *ret_items = items;
    }
    const struct ng_value *type = json_get(schema, "type");
    if (json_is(type, NG_TYPE_STRING)) {
        return args_type_named(type->text);
    }
    for (const struct ng_value *one = json_first(type); one != NULL; one = one->next) {
        types |= args_type_named(one->text);
    }
    for (size_t i = 0; i < NG_COUNT(choices) && types == 0; i++) {
        const struct ng_value *list = json_get(schema, choices[i]);
        for (const struct ng_value *one = json_first(list); one != NULL; one = one->next) {
            types |= args_types(args, one, ret_items, depth + 1);
        }
    }
    const struct ng_value *words = NULL;
    if (types == 0) {
        words = json_get(schema, "enum");
    }
    for (const struct ng_value *one = json_first(words); one != NULL; one = one->next) {
        types |= args_type_of_value(one);
    }
    const struct ng_value *constant = NULL;
    if (types == 0) {
        constant = json_get(schema, "const");
    }
    if (constant == NULL) {
        return types;
    }
    return args_type_of_value(constant);
}

/* The types a word could be as JSON; 0: it is not JSON. */
static unsigned args_parse(struct ng_str text, struct json_error *error)
{
    struct arena arena;
    const struct ng_value *value = NULL;
    unsigned types = 0;
    arena_init(&arena, ARGS_VALUE_MAX);
    if (json_parse(&arena, text, JSON_DEPTH_DEFAULT, &value, error) == NG_OK) {
        types = args_type_of_value(value);
        if (types == ARGS_NUMBER && json_is_integer(value)) {
            types |= ARGS_INTEGER;
        }
    }
    arena_done(&arena);
    return types;
}

/* A list or an object is meant: what is then no JSON is no word either. */
static bool args_is_container(struct ng_str text)
{
    return text.len > 0 && (text.data[0] == '[' || text.data[0] == '{');
}

static const char *args_type_words(unsigned types)
{
    if ((types & ARGS_INTEGER) != 0) {
        return "an integer";
    }
    if ((types & ARGS_NUMBER) != 0) {
        return "a number";
    }
    if ((types & ARGS_BOOLEAN) != 0) {
        return "true or false";
    }
    if ((types & ARGS_ARRAY) != 0) {
        return "a JSON array, or words separated by commas";
    }
    if ((types & ARGS_OBJECT) != 0) {
        return "a JSON object";
    }
    return "null";
}

static int args_scalar(struct args *args, struct ng_str key, struct ng_str value,
                       unsigned types);

/* "a,b" as an array; an element is typed as the schema's items are. */
static int args_commas(struct args *args, struct ng_str key, struct ng_str value,
                       const struct ng_value *items)
{
    const struct ng_value *nested = NULL;
    unsigned types = args_types(args, items, &nested, 0);
    size_t at = 0;
    int rc = NG_OK;
    buf_add_char(args->out, '[');
    while (rc == NG_OK && value.len > 0 && at <= value.len) {
        const char *comma = memchr(value.data + at, ',', value.len - at);
        size_t end = value.len;
        if (comma != NULL) {
            end = (size_t)(comma - value.data);
        }
        if (at > 0) {
            buf_add_char(args->out, ',');
        }
        rc = args_scalar(args, key, str_make(value.data + at, end - at),
                         types == 0 ? (unsigned)ARGS_STRING : types);
        at = end + 1;
    }
    buf_add_char(args->out, ']');
    return rc;
}

static int args_scalar(struct args *args, struct ng_str key, struct ng_str value,
                       unsigned types)
{
    struct json_error json;
    unsigned parsed = 0;
    if (types != ARGS_STRING) {
        parsed = args_parse(value, &json);
    }
    /* Without a type in the schema, the look of the word decides. */
    unsigned wanted = types & ~(unsigned)ARGS_STRING;
    if (types == 0) {
        wanted = ~(unsigned)ARGS_STRING;
    }
    if ((parsed & wanted) != 0) {
        return buf_add_str(args->out, value);
    }
    if (types == 0 || (types & ARGS_STRING) != 0) {
        return buf_add_json(args->out, value);
    }
    buf_printf(args->error, "\"%.*s\" is %s; \"%.*s\" is not", (int)key.len, key.data,
               args_type_words(types), (int)value.len, value.data);
    if (parsed == 0 && args_is_container(value)) {
        buf_printf(args->error, ": line %zu, column %zu: %s", json.line, json.column,
                   json.message);
    }
    return NG_EINVAL;
}

static int args_value(struct args *args, struct ng_str key, struct ng_str value)
{
    const struct ng_value *properties = json_get(args->schema, "properties");
    const struct ng_value *schema = NULL;
    if (properties != NULL) {
        schema = json_get_str(properties, key);
    }
    const struct ng_value *items = NULL;
    unsigned types = args_types(args, schema, &items, 0);
    if (schema == NULL) {
        /* The tool will say that it does not know the key; a number must not become text for
         * one that takes any. */
        types = 0;
    }
    bool is_array = (types & ARGS_ARRAY) != 0 && (types & ARGS_STRING) == 0;
    unsigned parsed = is_array ? args_parse(value, NULL) : 0;
    if (is_array && (parsed & types) == 0 && (parsed != 0 || !args_is_container(value))) {
        return args_commas(args, key, value, items);
    }
    return args_scalar(args, key, value, types);
}

static bool args_is_repeated(const char *const *words, size_t index, size_t key_len)
{
    for (size_t i = 0; i < index; i++) {
        if (strncmp(words[i], words[index], key_len + 1) == 0) {
            return true;
        }
    }
    return false;
}

int command_args_build(const struct ng_value *schema, const char *const *words, size_t count,
                       struct buf *out, struct buf *error)
{
    struct args args = {schema, out, error};
    int rc = NG_OK;
    buf_add_char(out, '{');
    for (size_t i = 0; i < count && rc == NG_OK; i++) {
        const char *equals = strchr(words[i], '=');
        struct ng_str word = ng_str_of(words[i]);
        if (equals == NULL || equals == words[i]) {
            buf_printf(error, "\"%s\" is neither KEY=VALUE nor a JSON object", words[i]);
            return NG_EINVAL;
        }
        if (!utf8_valid(word)) {
            buf_printf(error, "argument %zu is not UTF-8", i + 1);
            return NG_EINVAL;
        }
        struct ng_str key = str_make(words[i], (size_t)(equals - words[i]));
        if (args_is_repeated(words, i, key.len)) {
            buf_printf(error, "\"%.*s\" is given twice", (int)key.len, key.data);
            return NG_EINVAL;
        }
        if (i > 0) {
            buf_add_char(out, ',');
        }
        buf_add_json(out, key);
        buf_add_char(out, ':');
        rc = args_value(&args, key, str_make(equals + 1, word.len - key.len - 1));
    }
    buf_add_char(out, '}');
    if (rc != NG_OK) {
        return rc;
    }
    return out->rc;
}
