/* SPDX-License-Identifier: MIT */
/* config_yaml.c - the configuration file: YAML to dotted keys and their values. The only user
 * of libyaml in the core. */
#include <stdio.h>
#include <yaml.h>

#include "config_source.h"
#include "core/base/str.h"
#include "core/base/text_choice.h"

/* Longest key with all its parts, in bytes. */
#define CONFIG_KEY_MAX 256

struct config_yaml {
    struct config_sources *sources;
    yaml_document_t *document;
    struct buf *error;
    size_t visited; /* members and elements: aliases may repeat them */
};

static int config_yaml_fail(struct config_yaml *yaml, size_t line, const char *text)
{
    (void)buf_printf(yaml->error, "%s:%zu: %s", yaml->sources->file, line, text);
    return NG_EINVAL;
}

static size_t config_yaml_line(const yaml_node_t *node)
{
    return node->start_mark.line + 1;
}

static struct ng_str config_yaml_text(const yaml_node_t *node)
{
    return str_make((const char *)node->data.scalar.value, node->data.scalar.length);
}

static bool config_yaml_is_null(const yaml_node_t *node)
{
    struct ng_str text = config_yaml_text(node);
    return node->type == YAML_SCALAR_NODE &&
           node->data.scalar.style == YAML_PLAIN_SCALAR_STYLE &&
           (text.len == 0 || str_is(text, "~") || str_is(text, "null"));
}

/* Bounds the work, however often aliases point at one thing. */
static int config_yaml_visit(struct config_yaml *yaml, size_t line)
{
    char why[32];
    if (++yaml->visited <= CONFIG_VALUES_MAX) {
        return NG_OK;
    }
    (void)snprintf(why, sizeof(why), "more than %d values", CONFIG_VALUES_MAX);
    return config_yaml_fail(yaml, line, why);
}

static int config_yaml_expand(struct config_yaml *yaml, const yaml_node_t *node, size_t line,
                              struct ng_str *ret)
{
    struct buf why;
    buf_init(&why, 1024);
    int rc = config_source_expand(yaml->sources, config_yaml_text(node), ret, &why);
    if (rc != NG_OK) {
        (void)config_yaml_fail(yaml, line, buf_cstr(&why));
    }
    buf_done(&why);
    return rc;
}

static int config_yaml_sequence(struct config_yaml *yaml, const yaml_node_t *node,
                                struct config_raw *raw)
{
    const yaml_node_item_t *first = node->data.sequence.items.start;
    size_t count = (size_t)(node->data.sequence.items.top - first);
    if (count > CONFIG_ITEMS_MAX) {
        return config_yaml_fail(yaml, raw->line, "the list is too long");
    }
    struct ng_str *items = arena_alloc(yaml->sources->arena, (count + 1) * sizeof(*items));
    struct ng_str *written = arena_alloc(yaml->sources->arena, (count + 1) * sizeof(*written));
    if (items == NULL || written == NULL) {
        return config_yaml_fail(yaml, raw->line, "out of memory");
    }
    for (size_t i = 0; i < count; i++) {
        const yaml_node_t *item = yaml_document_get_node(yaml->document, first[i]);
        if (item == NULL || item->type != YAML_SCALAR_NODE) {
            return config_yaml_fail(
                yaml, item == NULL ? raw->line : config_yaml_line(item),
                "the elements of a list are plain values (JSON is written in "
                "quotes)");
        }
        size_t line = config_yaml_line(item);
        if (config_yaml_visit(yaml, line) != NG_OK ||
            config_yaml_expand(yaml, item, line, &items[i]) != NG_OK) {
            return NG_EINVAL;
        }
        written[i] = arena_copy(yaml->sources->arena, config_yaml_text(item));
        if (written[i].data == NULL) {
            return config_yaml_fail(yaml, line, "out of memory");
        }
    }
    raw->is_list = true;
    raw->items = items;
    raw->written_items = written;
    raw->item_count = count;
    return NG_OK;
}

static int config_yaml_twice(struct config_yaml *yaml, size_t line, struct ng_str key,
                             size_t other)
{
    (void)buf_printf(yaml->error, "%s:%zu: `%.*s` is set twice; line %zu sets it too",
                     yaml->sources->file, line, (int)key.len, key.data, other);
    return NG_EINVAL;
}

static int config_yaml_add(struct config_yaml *yaml, const yaml_node_t *node, struct ng_str key,
                           size_t line)
{
    struct config_sources *sources = yaml->sources;
    for (const struct config_raw *other = sources->first; other != NULL; other = other->next) {
        if (other->source == CONFIG_FILE && str_equal(other->name, key)) {
            return config_yaml_twice(yaml, line, key, other->line);
        }
    }
    struct config_raw *raw = config_source_add(sources, CONFIG_FILE, key, yaml->error);
    if (raw == NULL) {
        return NG_EINVAL;
    }
    raw->line = line;
    if (node->type == YAML_SEQUENCE_NODE) {
        return config_yaml_sequence(yaml, node, raw);
    }
    raw->is_null = config_yaml_is_null(node);
    raw->written = arena_copy(sources->arena, config_yaml_text(node));
    if (raw->written.data == NULL) {
        return config_yaml_fail(yaml, line, "out of memory");
    }
    return config_yaml_expand(yaml, node, line, &raw->text);
}

/* The same member of one mapping twice, also where both hold mappings. */
static int config_yaml_doubled(struct config_yaml *yaml, const yaml_node_t *node,
                               const yaml_node_pair_t *pair, const yaml_node_t *key)
{
    const yaml_node_pair_t *other = node->data.mapping.pairs.start;
    for (; other < pair; other++) {
        const yaml_node_t *name = yaml_document_get_node(yaml->document, other->key);
        if (name != NULL && name->type == YAML_SCALAR_NODE &&
            str_equal(config_yaml_text(name), config_yaml_text(key))) {
            return config_yaml_twice(yaml, config_yaml_line(key), config_yaml_text(key),
                                     config_yaml_line(name));
        }
    }
    return NG_OK;
}

static int config_yaml_mapping(struct config_yaml *yaml, const yaml_node_t *node,
                               struct ng_str prefix, unsigned depth);

static int config_yaml_member(struct config_yaml *yaml, const yaml_node_t *key,
                              const yaml_node_t *value, struct ng_str prefix, unsigned depth)
{
    size_t line = config_yaml_line(key);
    struct ng_str name = config_yaml_text(key);
    char whole[CONFIG_KEY_MAX];
    if (name.len == 0 || memchr(name.data, '\0', name.len) != NULL) {
        return config_yaml_fail(yaml, line, "a key is empty or holds a NUL");
    }
    if (str_is(name, "<<")) {
        return config_yaml_fail(yaml, line,
                                "`<<` (merging) is not read here: write the keys out");
    }
    int len = snprintf(whole, sizeof(whole), "%.*s%s%.*s", (int)prefix.len, prefix.data,
                       text_if(prefix.len > 0, "."), (int)name.len, name.data);
    if (len < 0 || (size_t)len >= sizeof(whole)) {
        return config_yaml_fail(yaml, line, "the key is too long");
    }
    if (value->type == YAML_MAPPING_NODE) {
        return config_yaml_mapping(yaml, value, str_make(whole, (size_t)len), depth + 1);
    }
    return config_yaml_add(yaml, value, str_make(whole, (size_t)len), line);
}

static int config_yaml_mapping(struct config_yaml *yaml, const yaml_node_t *node,
                               struct ng_str prefix, unsigned depth)
{
    if (depth > CONFIG_DEPTH_MAX) {
        return config_yaml_fail(yaml, config_yaml_line(node), "nested too deep");
    }
    const yaml_node_pair_t *pair = node->data.mapping.pairs.start;
    for (; pair < node->data.mapping.pairs.top; pair++) {
        const yaml_node_t *key = yaml_document_get_node(yaml->document, pair->key);
        const yaml_node_t *value = yaml_document_get_node(yaml->document, pair->value);
        if (key == NULL || value == NULL || key->type != YAML_SCALAR_NODE) {
            return config_yaml_fail(yaml, config_yaml_line(key == NULL ? node : key),
                                    "a key must be plain text");
        }
        if (config_yaml_visit(yaml, config_yaml_line(key)) != NG_OK ||
            config_yaml_doubled(yaml, node, pair, key) != NG_OK ||
            config_yaml_member(yaml, key, value, prefix, depth) != NG_OK) {
            return NG_EINVAL;
        }
    }
    return NG_OK;
}

static int config_yaml_broken(const struct config_sources *sources, const yaml_parser_t *parser,
                              struct buf *error)
{
    size_t line = parser->problem_mark.line + 1;
    const char *problem = "out of memory";
    if (parser->problem != NULL) {
        problem = parser->problem;
    }
    if (parser->error == YAML_READER_ERROR) {
        /* The reader knows the byte only. */
        (void)buf_printf(error, "%s: not YAML: %s at byte %zu", sources->file, problem,
                         parser->problem_offset);
        return NG_EINVAL;
    }
    (void)buf_printf(error, "%s:%zu: not YAML: ", sources->file, line);
    if (parser->context != NULL) {
        (void)buf_printf(error, "%s, ", parser->context);
    }
    (void)buf_add_c(error, problem);
    return NG_EINVAL;
}

/* Nothing may follow the first document. */
static int config_yaml_end(struct config_sources *sources, yaml_parser_t *parser,
                           struct buf *error)
{
    yaml_document_t more;
    if (yaml_parser_load(parser, &more) == 0) {
        return config_yaml_broken(sources, parser, error);
    }
    const yaml_node_t *root = yaml_document_get_root_node(&more);
    int rc = NG_OK;
    if (root != NULL) {
        (void)buf_printf(error, "%s:%zu: a second document; the configuration is one",
                         sources->file, config_yaml_line(root));
        rc = NG_EINVAL;
    }
    yaml_document_delete(&more);
    return rc;
}

static int config_yaml_document(struct config_sources *sources, yaml_document_t *document,
                                struct buf *error)
{
    struct config_yaml yaml = {.sources = sources, .document = document, .error = error};
    const yaml_node_t *root = yaml_document_get_root_node(document);
    if (root == NULL || config_yaml_is_null(root)) {
        return NG_OK; /* an empty file */
    }
    if (root->type != YAML_MAPPING_NODE) {
        return config_yaml_fail(&yaml, config_yaml_line(root),
                                "the file must hold keys, as in `listen: 127.0.0.1:8420`");
    }
    return config_yaml_mapping(&yaml, root, str_make("", 0), 1);
}

int config_yaml_read(struct config_sources *sources, struct ng_str text, struct buf *error)
{
    yaml_parser_t parser;
    yaml_document_t document;
    if (yaml_parser_initialize(&parser) == 0) {
        (void)buf_printf(error, "%s: out of memory", sources->file);
        return NG_EINTERNAL;
    }
    yaml_parser_set_input_string(
        &parser, (const unsigned char *)(text.len > 0 ? text.data : ""), text.len);
    int rc;
    if (yaml_parser_load(&parser, &document) == 0) {
        rc = config_yaml_broken(sources, &parser, error);
    } else {
        bool empty = yaml_document_get_root_node(&document) == NULL;
        rc = config_yaml_document(sources, &document, error);
        yaml_document_delete(&document);
        if (rc == NG_OK && !empty) {
            rc = config_yaml_end(sources, &parser, error);
        }
    }
    yaml_parser_delete(&parser);
    return rc;
}
