/* SPDX-License-Identifier: MIT */
/* openapi_schema.c - one tool's schema taken apart into components, its references rewritten.
 */
#include "openapi_schema.h"

#include "api/definitions/tool_schema_ref.h"
#include "core/base/str.h"
#include "core/base/text_choice.h"

/* How deep targets of references are put in the place of references. */
#define INLINED_MAX 3

enum place {
    PLACE_COPY,   /* a value */
    PLACE_SCHEMA, /* a schema */
    PLACE_MAP,    /* an object of schemas */
    PLACE_LIST,   /* an array of schemas */
    PLACE_REF,
    PLACE_DROP /* means something only in a document of its own */
};

static const struct {
    const char *name;
    enum place place;
} places[] = {
    {"properties", PLACE_MAP},
    {"patternProperties", PLACE_MAP},
    {"dependentSchemas", PLACE_MAP},
    {"$defs", PLACE_MAP},
    {"definitions", PLACE_MAP},
    {"anyOf", PLACE_LIST},
    {"oneOf", PLACE_LIST},
    {"allOf", PLACE_LIST},
    {"prefixItems", PLACE_LIST},
    {"items", PLACE_SCHEMA},
    {"additionalProperties", PLACE_SCHEMA},
    {"contains", PLACE_SCHEMA},
    {"propertyNames", PLACE_SCHEMA},
    {"unevaluatedItems", PLACE_SCHEMA},
    {"unevaluatedProperties", PLACE_SCHEMA},
    {"not", PLACE_SCHEMA},
    {"if", PLACE_SCHEMA},
    {"then", PLACE_SCHEMA},
    {"else", PLACE_SCHEMA},
    {"$ref", PLACE_REF},
    {"$id", PLACE_DROP},
    {"$schema", PLACE_DROP},
    {"$anchor", PLACE_DROP},
    {"$comment", PLACE_DROP},
};

struct job {
    struct buf *out;
    const struct ng_value *root;
    const char *tool, *part;
    int inlined; /* references on the way here whose targets stand in their place */
};

static void print_schema(struct job *job, const struct ng_value *schema);

static enum place place_of(struct ng_str key)
{
    for (size_t i = 0; i < NG_COUNT(places); i++) {
        if (str_is(key, places[i].name)) {
            return places[i].place;
        }
    }
    return PLACE_COPY;
}

/* "notebook_arguments", "notebook_arguments_NAME": only what a component's name may hold. */
static void print_name(struct job *job, struct ng_str definition)
{
    (void)buf_printf(job->out, "%s_%s", job->tool, job->part);
    if (definition.data == NULL) {
        return;
    }
    (void)buf_add_char(job->out, '_');
    for (size_t i = 0; i < definition.len; i++) {
        char c = definition.data[i];
        bool fits = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                    (c >= '0' && c <= '9') || c == '.' || c == '-' || c == '_';
        if (fits) {
            (void)buf_add_char(job->out, c);
        } else {
            (void)buf_printf(job->out, "-%02x", (unsigned)(unsigned char)c);
        }
    }
}

static void print_map(struct job *job, const struct ng_value *map)
{
    (void)buf_add_char(job->out, '{');
    for (const struct ng_value *one = map->first; one != NULL; one = one->next) {
        (void)buf_add_c(job->out, text_if(one != map->first, ","));
        (void)buf_add_json(job->out, one->key);
        (void)buf_add_char(job->out, ':');
        print_schema(job, one);
    }
    (void)buf_add_char(job->out, '}');
}

static void print_list(struct job *job, const struct ng_value *list)
{
    (void)buf_add_char(job->out, '[');
    for (const struct ng_value *one = list->first; one != NULL; one = one->next) {
        (void)buf_add_c(job->out, text_if(one != list->first, ","));
        print_schema(job, one);
    }
    (void)buf_add_char(job->out, ']');
}

/* The name of the definition whose schema this is, or absent. */
static struct ng_str definition_of(struct job *job, const struct ng_value *target)
{
    static const char *const maps[] = {"$defs", "definitions"};
    for (size_t i = 0; i < NG_COUNT(maps); i++) {
        const struct ng_value *map = json_get(job->root, maps[i]);
        const struct ng_value *one = json_first(map);
        for (; one != NULL; one = one->next) {
            if (one == target) {
                return one->key;
            }
        }
    }
    return str_make(NULL, 0);
}

/* A reference to a definition leads to its component; what another place means is put where the
 * reference stood, to a depth. */
static void print_ref(struct job *job, struct ng_str ref)
{
    struct buf pointer;
    bool oom = false;
    const struct ng_value *target = NULL;
    buf_init(&pointer, TOOL_SCHEMA_REF_MAX);
    pointer.oom = &oom;
    if (!tool_schema_ref_find(job->root, ref, &pointer, &target)) {
        (void)buf_add_c(job->out, "\"$comment\":");
        (void)buf_add_json(job->out, ref);
    } else if (pointer.len > 0) {
        (void)buf_add_c(job->out, "\"$ref\":\"#/components/schemas/");
        print_name(job, definition_of(job, target));
        (void)buf_add_char(job->out, '"');
    } else if (job->inlined >= INLINED_MAX) {
        (void)buf_add_c(job->out, "\"$comment\":");
        (void)buf_add_json(job->out, ref);
    } else {
        job->inlined++;
        (void)buf_add_c(job->out, "\"allOf\":[");
        print_schema(job, target);
        (void)buf_add_char(job->out, ']');
        job->inlined--;
    }
    buf_done(&pointer);
    if (oom && job->out->rc == NG_OK) {
        job->out->rc = NG_EINTERNAL;
    }
}

static void print_member(struct job *job, const struct ng_value *member)
{
    enum place place = place_of(member->key);
    if (place == PLACE_REF && member->type == NG_TYPE_STRING) {
        print_ref(job, member->text);
        return;
    }
    (void)buf_add_json(job->out, member->key);
    (void)buf_add_char(job->out, ':');
    if (place == PLACE_MAP && member->type == NG_TYPE_OBJECT) {
        print_map(job, member);
    } else if (place == PLACE_LIST && member->type == NG_TYPE_ARRAY) {
        print_list(job, member);
    } else if (place == PLACE_SCHEMA && (member->type == NG_TYPE_OBJECT ||
                                         !str_is(member->key, "additionalProperties"))) {
        print_schema(job, member);
    } else {
        (void)json_print(job->out, member);
    }
}

/* A generator needs the members of the whole. Other conditions are separate. */
static bool stands_apart(struct ng_str key)
{
    static const char *const keys[] = {"anyOf", "oneOf", "allOf", "not", "if", "then", "else"};
    for (size_t i = 0; i < NG_COUNT(keys); i++) {
        if (str_is(key, keys[i])) {
            return true;
        }
    }
    return false;
}

static bool is_whole(struct job *job, const struct ng_value *schema)
{
    return schema == job->root && json_get(schema, "properties") != NULL;
}

/* An extension: OpenAPI reserves names with x- for private use. */
static void print_apart(struct job *job, const struct ng_value *schema, const char *comma)
{
    const char *next = "";
    for (const struct ng_value *member = schema->first; member != NULL; member = member->next) {
        if (!stands_apart(member->key)) {
            continue;
        }
        if (*next == '\0') {
            (void)buf_printf(job->out, "%s\"x-also\":{", comma);
        }
        (void)buf_add_c(job->out, next);
        print_member(job, member);
        next = ",";
    }
    (void)buf_add_c(job->out, text_if(*next != '\0', "}"));
}

static struct ng_str text_of_type(const struct ng_value *schema)
{
    const struct ng_value *type = json_get(schema, "type");
    if (type == NULL || type->type != NG_TYPE_STRING) {
        return ng_str_of("");
    }
    return type->text;
}

static void print_schema(struct job *job, const struct ng_value *schema)
{
    const char *comma = "";
    if (schema->type != NG_TYPE_OBJECT) { /* true or false, which generators do not take */
        (void)buf_add_c(job->out, schema->type == NG_TYPE_TRUE ? "{}" : "{\"not\":{}}");
        return;
    }
    bool whole = is_whole(job, schema);
    (void)buf_add_char(job->out, '{');
    for (const struct ng_value *member = schema->first; member != NULL; member = member->next) {
        bool hoisted = schema == job->root &&
                       (str_is(member->key, "$defs") || str_is(member->key, "definitions"));
        if (hoisted || place_of(member->key) == PLACE_DROP ||
            (whole && stands_apart(member->key))) {
            continue;
        }
        (void)buf_add_c(job->out, comma);
        print_member(job, member);
        comma = ",";
    }
    if (str_is(text_of_type(schema), "array") && json_get(schema, "items") == NULL &&
        json_get(schema, "prefixItems") == NULL) {
        (void)buf_printf(job->out, "%s\"items\":{}", comma); /* generators want to know */
    }
    if (whole) {
        print_apart(job, schema, comma);
    }
    (void)buf_add_char(job->out, '}');
}

static void print_component(struct job *job, const struct ng_value *schema,
                            struct ng_str definition)
{
    (void)buf_add_c(job->out, ",\"");
    print_name(job, definition);
    (void)buf_add_c(job->out, "\":");
    print_schema(job, schema);
}

void openapi_schema_print(struct buf *out, const struct ng_value *schema, const char *tool,
                          const char *part)
{
    static const char *const maps[] = {"$defs", "definitions"};
    struct job job = {.out = out, .root = schema, .tool = tool, .part = part};
    print_component(&job, schema, str_make(NULL, 0));
    for (size_t i = 0; i < NG_COUNT(maps); i++) {
        const struct ng_value *map = json_get(schema, maps[i]);
        const struct ng_value *one = json_first(map);
        for (; one != NULL; one = one->next) {
            print_component(&job, one, one->key);
        }
    }
}
