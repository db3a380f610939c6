/* SPDX-License-Identifier: MIT */
/* module_lint.c - the values of a module's descriptor: each is one that this gateway knows. The
 * JSON Schemas in it are module_schema.c's. */
#include "module_lint.h"

#include "abi_size.h"
#include "core/base/str.h"
#include "core/call/plugin.h"
#include "module_schema.h"

/* The newest value or all bits of each enum. A module that was made for a newer gateway may
 * have others; their meaning is unknown, so they are refused. */
#define LINT_EFFECTS ((unsigned long)NG_EFFECT_RUNS)
#define LINT_TOOL_FLAGS ((unsigned long)NG_TOOL_BY_SPACE * 2 - 1)
#define LINT_COLLECTION_FLAGS ((unsigned long)NG_COLLECTION_CONTENT * 2 - 1)
#define LINT_DOCUMENTS_FLAGS ((unsigned long)NG_DOCUMENTS_ONLY_DELETED * 2 - 1)
#define LINT_MODES                                                                             \
    ((unsigned long)(NG_IN_MODE(NG_MODE_ASK) | NG_IN_MODE(NG_MODE_EDIT) |                      \
                     NG_IN_MODE(NG_MODE_AGENT)))

/* One value: of `what` `name`, its member. */
struct lint {
    struct buf *error;
    const char *what; /* "a tool" */
    const char *name;
};

static int lint_refuse(const struct lint *lint, const char *member, const char *why)
{
    (void)buf_printf(lint->error, "has %s `%s` %s `%s`", lint->what, lint->name, why, member);
    return NG_EINVAL;
}

static int lint_value(const struct lint *lint, const char *member, unsigned long value,
                      unsigned long most)
{
    if (value <= most) {
        return NG_OK;
    }
    (void)buf_printf(lint->error,
                     "has %s `%s` whose `%s` is %lu: this gateway (notegate " NOTEGATE_VERSION
                     ") knows 0 to %lu",
                     lint->what, lint->name, member, value, most);
    return NG_EINVAL;
}

static int lint_bits(const struct lint *lint, const char *member, unsigned long value,
                     unsigned long known)
{
    if ((value & ~known) == 0) {
        return NG_OK;
    }
    (void)buf_printf(
        lint->error,
        "has %s `%s` whose `%s` has bits that this gateway (notegate " NOTEGATE_VERSION
        ") does not know: %lu",
        lint->what, lint->name, member, value & ~known);
    return NG_EINVAL;
}

static bool lint_is_blank(const char *text)
{
    return text == NULL || text[strspn(text, " \t\r\n")] == '\0';
}

/* ---- each kind of item ---- */

static int lint_tool(const struct ng_tool *tool, struct buf *error)
{
    const struct lint lint = {error, "a tool", tool->name};
    if (lint_is_blank(tool->summary)) {
        return lint_refuse(&lint, "summary", "with an empty");
    }
    int rc = lint_value(&lint, "effect", (unsigned long)tool->effect, LINT_EFFECTS);
    if (rc == NG_OK) {
        rc = lint_value(&lint, "space", (unsigned long)tool->space, NG_SPACE_SHARED);
    }
    if (rc == NG_OK) {
        rc = lint_bits(&lint, "flags", tool->flags, LINT_TOOL_FLAGS);
    }
    if (rc == NG_OK) {
        rc = module_schema(tool->name, "params", tool->params, error);
    }
    if (rc == NG_OK && tool->result != NULL) {
        rc = module_schema(tool->name, "result", tool->result, error);
    }
    return rc;
}

static int lint_option(const struct ng_option *option, struct buf *error)
{
    const struct lint lint = {error, "an option", option->name};
    return lint_value(&lint, "type", (unsigned long)option->type, NG_OPTION_NUMBER);
}

static int lint_options(const struct ng_option *options, size_t count, struct buf *error)
{
    int rc = NG_OK;
    for (size_t i = 0; i < count && rc == NG_OK; i++) {
        rc = lint_option(&options[i], error);
    }
    return rc;
}

static int lint_code(const struct ng_code *code, struct buf *error)
{
    if (code->status >= 400 && code->status <= 599) {
        return NG_OK;
    }
    (void)buf_printf(error, "has a code `%s` whose `status` is %d: it must be 400 to 599",
                     code->name, code->status);
    return NG_EINVAL;
}

static int lint_collection(const struct ng_collection *collection, struct buf *error)
{
    const struct lint lint = {error, "a collection", collection->name};
    int rc = lint_bits(&lint, "flags", collection->flags, LINT_COLLECTION_FLAGS);
    if (rc != NG_OK || collection->field_count == 0) {
        return rc;
    }
    if (collection->fields == NULL) {
        return lint_refuse(&lint, "fields", "with a field_count and no");
    }
    if (!abi_size_valid(collection->field_size, NG_UP_TO(ng_field, weight))) {
        (void)buf_printf(error,
                         "has a collection `%s` whose `field_size` is %zu: it must be set to "
                         "sizeof(struct ng_field), at least %zu",
                         collection->name, collection->field_size, NG_UP_TO(ng_field, weight));
        return NG_EINVAL;
    }
    for (size_t i = 0; i < collection->field_count; i++) {
        const struct ng_field *field = abi_field(collection, i);
        if (field->name == NULL || field->name[0] == '\0') {
            return lint_refuse(&lint, "fields", "with a field without a name in its");
        }
        if ((unsigned long)field->use - 1 >= NG_FIELD_TEXT) {
            const struct lint of_field = {error, "a field", field->name};
            if (lint_value(&of_field, "use", (unsigned long)field->use, NG_FIELD_TEXT) !=
                NG_OK) {
                return NG_EINVAL;
            }
            return lint_refuse(&of_field, "use", "without a");
        }
    }
    return NG_OK;
}

static bool lint_knows_collection(const struct ng_plugin *plugin, const char *name)
{
    bool knows = strcmp(name, FILES_EVENTS) == 0 || str_in_words(ng_str_of(name), plugin->uses);
    for (size_t i = 0; i < plugin->collection_count && !knows; i++) {
        knows = strcmp(plugin->collections[i].name, name) == 0;
    }
    return knows;
}

static int lint_resource(const struct ng_plugin *plugin, size_t at, struct buf *error)
{
    const struct ng_resources *resource = &plugin->resources[at];
    const char *name = resource->kind != NULL ? resource->kind : resource->uri_template;
    if (lint_is_blank(name)) {
        (void)buf_printf(error,
                         "has a kind of resource (number %zu) with neither `kind` nor "
                         "`uri_template`: one of them must be set",
                         at + 1);
        return NG_EINVAL;
    }
    if (resource->collection != NULL && !lint_knows_collection(plugin, resource->collection)) {
        (void)buf_printf(error,
                         "has a kind of resource `%s` of the collection `%s`, which the plugin "
                         "neither declares nor names in `uses`",
                         name, resource->collection);
        return NG_EINVAL;
    }
    for (size_t i = 0; resource->kind != NULL && i < at; i++) {
        const char *other = plugin->resources[i].kind;
        if (other != NULL && strcmp(other, resource->kind) == 0) {
            (void)buf_printf(error, "has two kinds of resource called `%s`", other);
            return NG_EINVAL;
        }
    }
    return NG_OK;
}

static int lint_prompt(const struct ng_prompt *prompt, struct buf *error)
{
    const struct lint lint = {error, "a prompt", prompt->name};
    int rc = lint_bits(&lint, "modes", prompt->modes, LINT_MODES);
    if (rc == NG_OK) {
        rc = lint_value(&lint, "space", (unsigned long)prompt->space, NG_SPACE_SHARED);
    }
    if (rc == NG_OK && prompt->params != NULL) {
        rc = module_schema(prompt->name, "params", prompt->params, error);
    }
    return rc;
}

static int lint_content(const struct ng_content_kind *content, struct buf *error)
{
    if (content->ending[0] == '.' && content->ending[1] != '\0') {
        return NG_OK;
    }
    (void)buf_printf(
        error,
        "has a kind of contents whose `ending` is \"%s\": it must begin with a dot, "
        "as \".ipynb\" does",
        content->ending);
    return NG_EINVAL;
}

/* ---- whole modules ---- */

static int lint_plugin(const struct ng_plugin *plugin, struct buf *error)
{
    if ((unsigned long)plugin->threads > NG_THREADS_PARALLEL) {
        (void)buf_printf(error,
                         "has `threads` %lu: this gateway (notegate " NOTEGATE_VERSION
                         ") knows 0 to %d",
                         (unsigned long)plugin->threads, NG_THREADS_PARALLEL);
        return NG_EINVAL;
    }
    int rc = lint_options(plugin->options, plugin->option_count, error);
    for (size_t i = 0; i < plugin->tool_count && rc == NG_OK; i++) {
        rc = lint_tool(&plugin->tools[i], error);
    }
    for (size_t i = 0; i < plugin->code_count && rc == NG_OK; i++) {
        rc = lint_code(&plugin->codes[i], error);
    }
    for (size_t i = 0; i < plugin->collection_count && rc == NG_OK; i++) {
        rc = lint_collection(&plugin->collections[i], error);
    }
    for (size_t i = 0; i < plugin->resource_count && rc == NG_OK; i++) {
        rc = lint_resource(plugin, i, error);
    }
    for (size_t i = 0; i < plugin->prompt_count && rc == NG_OK; i++) {
        rc = lint_prompt(&plugin->prompts[i], error);
    }
    for (size_t i = 0; i < plugin->content_count && rc == NG_OK; i++) {
        rc = lint_content(&plugin->contents[i], error);
    }
    return rc;
}

int module_lint(const struct module *module, struct buf *error)
{
    const struct ng_documents *documents = &module->desc.documents;
    switch (module->kind) {
    case NG_KIND_PLUGIN:
        return lint_plugin(&module->desc.plugin, error);
    case NG_KIND_DOCUMENTS: {
        const struct lint lint = {error, "a backend", documents->name};
        int rc = lint_bits(&lint, "flags", documents->flags, LINT_DOCUMENTS_FLAGS);
        if (rc != NG_OK) {
            return rc;
        }
        return lint_options(documents->options, documents->option_count, error);
    }
    case NG_KIND_JOURNAL:
        return lint_options(module->desc.journal.options, module->desc.journal.option_count,
                            error);
    }
    return NG_OK;
}
