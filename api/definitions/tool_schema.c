/* SPDX-License-Identifier: MIT */
/* tool_schema.c - one table says what each vendor knows; the rest goes into descriptions. */
#include "tool_schema.h"

#include "core/base/str.h"
#include "core/base/text_choice.h"
#include "tool_schema_ref.h"

/* Bytes of notes behind one description. */
#define NOTES_MAX ((size_t)64 * 1024)
/* How deep targets of references are put in the place of references. */
#define INLINED_MAX 3
/* Anthropic's characters for the name of an argument: letters, digits, "_", "." and "-". */
#define KEY_MAX 64

#define O TOOL_SCHEMA_OPENAI
#define A TOOL_SCHEMA_ANTHROPIC
#define G TOOL_SCHEMA_GEMINI

enum keyword_kind {
    KIND_COPY,        /* the value as it is */
    KIND_SCHEMA,      /* one schema */
    KIND_SCHEMA_MAP,  /* an object of schemas */
    KIND_DEFINITIONS, /* the same, of those that references lead to */
    KIND_SCHEMA_LIST, /* an array of schemas */
    KIND_DROP,        /* says nothing to a model */
    KIND_OWN          /* has a case in lower_keyword() */
};

struct keyword {
    const char *name;
    enum keyword_kind kind;
    unsigned vendors; /* vendors that know the keyword */
    unsigned not_top; /* vendors that refuse it at the top level */
};

static const struct keyword keywords[] = {
    {"type", KIND_COPY, O | A | G, 0},
    {"title", KIND_COPY, O | A | G, 0},
    {"description", KIND_OWN, O | A | G, 0},
    {"properties", KIND_OWN, O | A | G, 0},
    {"required", KIND_OWN, O | A | G, 0},
    {"additionalProperties", KIND_SCHEMA, O | A | G, 0},
    {"items", KIND_SCHEMA, O | A | G, 0},
    {"enum", KIND_OWN, O | A | G, O | G},
    {"const", KIND_OWN, O | A | G, 0},
    {"anyOf", KIND_SCHEMA_LIST, O | A | G, O | A | G},
    {"oneOf", KIND_OWN, O | A | G, O | A | G},
    {"allOf", KIND_OWN, O | A | G, O | A | G},
    {"$ref", KIND_OWN, O | A | G, 0},
    {"$defs", KIND_DEFINITIONS, O | A | G, 0},
    {"definitions", KIND_DEFINITIONS, O | A | G, 0},
    {"$anchor", KIND_COPY, A | G, 0},
    {"format", KIND_COPY, O | A | G, 0},
    {"minimum", KIND_COPY, O | A | G, 0},
    {"maximum", KIND_COPY, O | A | G, 0},
    {"exclusiveMinimum", KIND_COPY, O | A, 0},
    {"exclusiveMaximum", KIND_COPY, O | A, 0},
    {"multipleOf", KIND_COPY, O | A, 0},
    {"minItems", KIND_COPY, O | A | G, 0},
    {"maxItems", KIND_COPY, O | A | G, 0},
    {"uniqueItems", KIND_COPY, O | A, 0},
    {"minLength", KIND_COPY, O | A, 0},
    {"maxLength", KIND_COPY, O | A, 0},
    {"pattern", KIND_COPY, O | A, 0},
    {"default", KIND_COPY, O | A, 0},
    {"examples", KIND_COPY, A, 0},
    {"prefixItems", KIND_OWN, O | A | G, 0},
    {"not", KIND_SCHEMA, A, 0},
    {"if", KIND_SCHEMA, A, 0},
    {"then", KIND_SCHEMA, A, 0},
    {"else", KIND_SCHEMA, A, 0},
    {"contains", KIND_SCHEMA, A, 0},
    {"minContains", KIND_COPY, A, 0},
    {"maxContains", KIND_COPY, A, 0},
    {"propertyNames", KIND_SCHEMA, A, 0},
    {"patternProperties", KIND_SCHEMA_MAP, A, 0},
    {"dependentSchemas", KIND_SCHEMA_MAP, A, 0},
    {"dependentRequired", KIND_COPY, A, 0},
    {"minProperties", KIND_COPY, A, 0},
    {"maxProperties", KIND_COPY, A, 0},
    {"unevaluatedItems", KIND_SCHEMA, A, 0},
    {"unevaluatedProperties", KIND_SCHEMA, A, 0},
    {"$schema", KIND_DROP, 0, 0},
    {"$id", KIND_DROP, 0, 0},
    {"$comment", KIND_DROP, 0, 0},
};

/* One tool's schema on its way to one vendor. */
struct job {
    struct ng_writer *writer;
    enum tool_schema_vendor vendor;
    const struct ng_value *root;
    int inlined; /* references on the way here whose targets stand in their place */
    bool oom;    /* a part was left out for want of memory */
};

struct lowering {
    struct job *job;
    struct ng_writer *writer;
    enum tool_schema_vendor vendor;
    bool top;
    struct buf notes; /* sentences added to the end of this schema's description */
};

static void lower(struct job *job, const struct ng_value *schema, bool top);

static const struct keyword *find_keyword(struct ng_str name)
{
    for (size_t i = 0; i < NG_COUNT(keywords); i++) {
        if (str_is(name, keywords[i].name)) {
            return &keywords[i];
        }
    }
    return NULL;
}

/* "minLength: 3" */
static void note(struct lowering *lowering, const struct ng_value *member)
{
    (void)buf_add_c(&lowering->notes, text_if(lowering->notes.len > 0, "; "));
    (void)buf_add_str(&lowering->notes, member->key);
    (void)buf_add_c(&lowering->notes, ": ");
    (void)json_print(&lowering->notes, member);
}

static void write_list(struct lowering *lowering, const char *name, const struct ng_value *list)
{
    json_name(lowering->writer, name);
    json_array(lowering->writer);
    for (const struct ng_value *item = list->first; item != NULL; item = item->next) {
        lower(lowering->job, item, false);
    }
    json_end(lowering->writer);
}

/* May an argument have this name? One bad one makes Anthropic refuse the whole request. */
static bool key_fits(const struct lowering *lowering, struct ng_str key)
{
    if (!lowering->top || lowering->vendor != TOOL_SCHEMA_ANTHROPIC) {
        return true;
    }
    bool fits = key.len > 0 && key.len <= KEY_MAX;
    for (size_t i = 0; i < key.len && fits; i++) {
        char c = key.data[i];
        fits = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
               c == '_' || c == '.' || c == '-';
    }
    return fits;
}

/* Members of `map`, but for those that `before` has. */
static void write_members(struct lowering *lowering, const struct ng_value *map,
                          const struct ng_value *before)
{
    for (const struct ng_value *item = map->first; item != NULL; item = item->next) {
        bool there = before != NULL && json_get_str(before, item->key) != NULL;
        if (key_fits(lowering, item->key) && !there) {
            json_name_str(lowering->writer, item->key);
            lower(lowering->job, item, false);
        }
    }
}

static void write_map(struct lowering *lowering, const char *name, const struct ng_value *map)
{
    json_name(lowering->writer, name);
    json_object(lowering->writer);
    write_members(lowering, map, NULL);
    json_end(lowering->writer);
}

/* Both have one name here: where a schema has both, the first one takes in the other. */
static void lower_definitions(struct lowering *lowering, const struct ng_value *schema,
                              const struct ng_value *member)
{
    const struct ng_value *newer = json_get(schema, "$defs");
    const struct ng_value *older = json_get(schema, "definitions");
    bool both =
        json_is(newer, NG_TYPE_OBJECT) && older != NULL && older->type == NG_TYPE_OBJECT;
    if (!both) {
        write_map(lowering, "$defs", member);
    } else if (member == newer) {
        json_name(lowering->writer, "$defs");
        json_object(lowering->writer);
        write_members(lowering, newer, NULL);
        write_members(lowering, older, newer);
        json_end(lowering->writer);
    }
}

/* Arguments with refused names are described in words: the model may still send them. */
static void lower_properties(struct lowering *lowering, const struct ng_value *map)
{
    write_map(lowering, "properties", map);
    for (const struct ng_value *item = map->first; item != NULL; item = item->next) {
        if (!key_fits(lowering, item->key)) {
            note(lowering, item);
        }
    }
}

static void lower_required(struct lowering *lowering, const struct ng_value *list)
{
    json_name(lowering->writer, "required");
    json_array(lowering->writer);
    for (const struct ng_value *item = list->first; item != NULL; item = item->next) {
        if (key_fits(lowering, item->text)) {
            json_copy(lowering->writer, item);
        } else {
            (void)buf_add_c(&lowering->notes, text_if(lowering->notes.len > 0, "; "));
            (void)buf_add_c(&lowering->notes, "required: ");
            (void)buf_add_json(&lowering->notes, item->text);
        }
    }
    json_end(lowering->writer);
}

/* Gemini's enums hold strings and numbers only. */
static bool enum_fits(const struct lowering *lowering, const struct ng_value *value)
{
    return lowering->vendor != TOOL_SCHEMA_GEMINI || value->type == NG_TYPE_STRING ||
           value->type == NG_TYPE_NUMBER;
}

static void lower_enum(struct lowering *lowering, const struct ng_value *member)
{
    bool fits = true;
    for (const struct ng_value *item = member->first; item != NULL; item = item->next) {
        fits = fits && enum_fits(lowering, item);
    }
    if (!fits) {
        note(lowering, member);
        return;
    }
    json_name(lowering->writer, "enum");
    json_copy(lowering->writer, member);
}

static void lower_const(struct lowering *lowering, const struct ng_value *schema,
                        const struct ng_value *member)
{
    if (lowering->vendor == TOOL_SCHEMA_ANTHROPIC) {
        json_name(lowering->writer, "const");
        json_copy(lowering->writer, member);
    } else if (lowering->top || !enum_fits(lowering, member) ||
               json_get(schema, "enum") != NULL) {
        note(lowering, member);
    } else {
        json_name(lowering->writer, "enum");
        json_array(lowering->writer);
        json_copy(lowering->writer, member);
        json_end(lowering->writer);
    }
}

/* Has it an anyOf, or something that becomes one? */
static bool has_any_of(const struct job *job, const struct ng_value *schema)
{
    return json_get(schema, "anyOf") != NULL ||
           (job->vendor != TOOL_SCHEMA_ANTHROPIC &&
            (json_get(schema, "oneOf") != NULL || json_get(schema, "allOf") != NULL));
}

/* Anchors, identifiers and pointers to other places than the definitions are not supported by
 * every vendor: the reference is written as "#/$defs/NAME", or replaced by its target. */
static void lower_ref(struct lowering *lowering, const struct ng_value *schema,
                      const struct ng_value *member)
{
    struct job *job = lowering->job;
    const struct ng_value *target = NULL;
    struct buf pointer;
    buf_init(&pointer, TOOL_SCHEMA_REF_MAX);
    pointer.oom = &job->oom;
    bool found = tool_schema_ref_find(job->root, member->text, &pointer, &target);
    if (found && pointer.len > 0) {
        json_member_string(job->writer, "$ref", buf_str(&pointer));
    } else if (found && job->inlined < INLINED_MAX && !has_any_of(job, schema)) {
        job->inlined++;
        json_name(job->writer, "anyOf");
        json_array(job->writer);
        lower(job, target, false);
        json_end(job->writer);
        job->inlined--;
    } else {
        note(lowering, member);
    }
    buf_done(&pointer);
}

/* A tuple becomes an array of any of its items where the vendor has no tuples. */
static void lower_tuple(struct lowering *lowering, const struct ng_value *member)
{
    if (lowering->vendor != TOOL_SCHEMA_OPENAI) {
        write_list(lowering, "prefixItems", member);
        return;
    }
    note(lowering, member);
    json_name(lowering->writer, "items");
    json_object(lowering->writer);
    write_list(lowering, "anyOf", member);
    json_end(lowering->writer);
}

static void lower_all_of(struct lowering *lowering, const struct ng_value *schema,
                         const struct ng_value *member)
{
    bool taken = json_get(schema, "anyOf") != NULL || json_get(schema, "oneOf") != NULL;
    if (lowering->vendor == TOOL_SCHEMA_ANTHROPIC) {
        write_list(lowering, "allOf", member);
    } else if (member->count == 1 && !taken) {
        write_list(lowering, "anyOf", member); /* of one it says the same */
    } else {
        note(lowering, member);
    }
}

static void lower_own(struct lowering *lowering, const struct ng_value *schema,
                      const struct ng_value *member)
{
    if (str_is(member->key, "enum")) {
        lower_enum(lowering, member);
    } else if (str_is(member->key, "const")) {
        lower_const(lowering, schema, member);
    } else if (str_is(member->key, "$ref")) {
        lower_ref(lowering, schema, member);
    } else if (str_is(member->key, "properties")) {
        lower_properties(lowering, member);
    } else if (str_is(member->key, "required")) {
        lower_required(lowering, member);
    } else if (str_is(member->key, "prefixItems")) {
        lower_tuple(lowering, member);
    } else if (str_is(member->key, "allOf")) {
        lower_all_of(lowering, schema, member);
    } else if (str_is(member->key, "oneOf")) {
        bool taken = json_get(schema, "anyOf") != NULL;
        if (lowering->vendor == TOOL_SCHEMA_ANTHROPIC) {
            write_list(lowering, "oneOf", member);
        } else if (taken) {
            note(lowering, member);
        } else {
            write_list(lowering, "anyOf", member);
        }
    }
    /* The description comes last, with the notes. */
}

/* A map that is none, a list that is none: nothing that could be gone through. */
static bool has_form(const struct keyword *keyword, const struct ng_value *member)
{
    bool map = keyword->kind == KIND_SCHEMA_MAP || keyword->kind == KIND_DEFINITIONS ||
               str_is(member->key, "properties");
    bool list = keyword->kind == KIND_SCHEMA_LIST || str_is(member->key, "required") ||
                str_is(member->key, "enum") || str_is(member->key, "allOf") ||
                str_is(member->key, "oneOf") || str_is(member->key, "prefixItems");
    return (!map || member->type == NG_TYPE_OBJECT) && (!list || member->type == NG_TYPE_ARRAY);
}

static bool has_tuple(const struct ng_value *schema)
{
    return json_get(schema, "prefixItems") != NULL;
}

static void lower_keyword(struct lowering *lowering, const struct ng_value *schema,
                          const struct ng_value *member)
{
    const struct keyword *keyword = find_keyword(member->key);
    enum tool_schema_vendor vendor = lowering->vendor;
    if (keyword != NULL && keyword->kind == KIND_DROP) {
        return;
    }
    if (keyword == NULL || (keyword->vendors & vendor) == 0 ||
        (lowering->top && (keyword->not_top & vendor) != 0) || !has_form(keyword, member)) {
        note(lowering, member);
        return;
    }
    switch (keyword->kind) {
    case KIND_COPY:
        json_name(lowering->writer, keyword->name);
        json_copy(lowering->writer, member);
        break;
    case KIND_SCHEMA:
        if (str_is(member->key, "items") && vendor == TOOL_SCHEMA_OPENAI && has_tuple(schema)) {
            note(lowering, member);
            break;
        }
        json_name(lowering->writer, keyword->name);
        if (member->type == NG_TYPE_TRUE || member->type == NG_TYPE_FALSE) {
            json_bool(lowering->writer, member->type == NG_TYPE_TRUE);
        } else {
            lower(lowering->job, member, false);
        }
        break;
    case KIND_SCHEMA_MAP:
        write_map(lowering, keyword->name, member);
        break;
    case KIND_DEFINITIONS:
        lower_definitions(lowering, schema, member);
        break;
    case KIND_SCHEMA_LIST:
        write_list(lowering, keyword->name, member);
        break;
    case KIND_OWN:
        lower_own(lowering, schema, member);
        break;
    case KIND_DROP:
        break;
    }
}

/* The description, and what could not be said otherwise. */
static void write_description(struct lowering *lowering, const struct ng_value *schema)
{
    struct ng_str text = json_get_text(schema, "description");
    if (text.len == 0 && lowering->notes.len == 0) {
        return;
    }
    struct buf whole;
    buf_init(&whole, text.len + NOTES_MAX + 8);
    whole.oom = &lowering->job->oom;
    (void)buf_add_str(&whole, text);
    if (lowering->notes.len > 0) {
        (void)buf_add_c(&whole, text.len > 0 ? " (" : "(");
        (void)buf_add_str(&whole, buf_str(&lowering->notes));
        (void)buf_add_char(&whole, ')');
    }
    json_member_string(lowering->writer, "description", buf_str(&whole));
    buf_done(&whole);
}

/* OpenAI and Gemini want to know what an array holds. */
static void add_items(struct lowering *lowering, const struct ng_value *schema)
{
    const struct ng_value *type = json_get(schema, "type");
    bool array = type != NULL && str_is(type->text, "array");
    if (array && lowering->vendor != TOOL_SCHEMA_ANTHROPIC &&
        json_get(schema, "items") == NULL && !has_tuple(schema)) {
        json_name(lowering->writer, "items");
        json_object(lowering->writer);
        json_end(lowering->writer);
    }
}

static void lower(struct job *job, const struct ng_value *schema, bool top)
{
    struct lowering lowering = {
        .job = job, .writer = job->writer, .vendor = job->vendor, .top = top};
    json_object(job->writer);
    if (schema->type !=
        NG_TYPE_OBJECT) { /* true: anything; false does not occur in arguments */
        json_end(job->writer);
        return;
    }
    buf_init(&lowering.notes, NOTES_MAX);
    lowering.notes.oom = &job->oom;
    const struct ng_value *ref = json_get(schema, "$ref");
    if (ref != NULL && job->vendor == TOOL_SCHEMA_GEMINI && !top) {
        lower_ref(&lowering, schema, ref); /* Gemini takes nothing beside a reference */
    } else {
        for (const struct ng_value *member = schema->first; member != NULL;
             member = member->next) {
            lower_keyword(&lowering, schema, member);
        }
        add_items(&lowering, schema);
        write_description(&lowering, schema);
    }
    json_end(job->writer);
    buf_done(&lowering.notes);
}

void tool_schema_write(struct ng_writer *writer, const struct ng_value *schema,
                       enum tool_schema_vendor vendor)
{
    struct job job = {.writer = writer, .vendor = vendor, .root = schema};
    lower(&job, schema, true);
    if (job.oom && writer->buf->rc == NG_OK) {
        writer->buf->rc = NG_EINTERNAL;
    }
}
