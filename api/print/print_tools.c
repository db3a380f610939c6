/* SPDX-License-Identifier: MIT */
/* print_tools.c - the list of tools by plugin, and one tool with its arguments. */
#include "print_tools.h"

#include <string.h>

#include "core/base/str.h"
#include "core/base/text_choice.h"

/* Columns of the names in a list. */
#define TOOL_NAME_WIDTH 22
/* Arguments of an example beyond the required ones. */
#define TOOL_EXAMPLE_OPTIONAL 1

static void put(struct ng_str text)
{
    (void)command_put(stdout, text);
}

static struct ng_str first_sentence(struct ng_str text)
{
    for (size_t i = 0; i < text.len; i++) {
        bool ends = text.data[i] == '.' && (i + 1 == text.len || text.data[i + 1] == ' ');
        if (text.data[i] == '\n' || ends) {
            return str_make(text.data, i);
        }
    }
    return text;
}

static const char *plugin_of(const struct registry *registry, struct ng_str name)
{
    const struct tool *tool = registry_find(registry, name);
    if (tool == NULL) {
        return "other modules";
    }
    return tool->plugin->desc.name;
}

void print_tool_list(const struct ng_value *list, const struct registry *registry)
{
    const struct ng_value *tools = json_get(list, "tools");
    const char *last = "";
    for (const struct ng_value *tool = json_first(tools); tool != NULL; tool = tool->next) {
        struct ng_str name = json_get(tool, "name")->text;
        struct ng_str about = first_sentence(json_get(tool, "description")->text);
        const char *plugin = plugin_of(registry, name);
        if (strcmp(plugin, last) != 0) {
            printf("%s%s:\n", text_if(last[0] != '\0', "\n"), plugin);
            last = plugin;
        }
        printf("  %-*.*s ", TOOL_NAME_WIDTH, (int)name.len, name.data);
        put(about);
        printf("\n");
    }
    printf("\nnotegate tools NAME shows the arguments of one; --format mcp prints the "
           "definitions.\n");
}

/* ---- one tool ---- */

/* "string", "integer or string", "list of string". */
static void print_type(const struct ng_value *schema, unsigned depth)
{
    const struct ng_value *type = json_get(schema, "type");
    const struct ng_value *any = json_get(schema, "anyOf");
    const struct ng_value *items = json_get(schema, "items");
    if (type != NULL && str_is(type->text, "array")) {
        printf("list");
        if (json_is(items, NG_TYPE_OBJECT) && depth < 2) {
            printf(" of ");
            print_type(items, depth + 1);
        }
    } else if (json_is(type, NG_TYPE_STRING)) {
        put(type->text);
    } else if (any != NULL && depth < 2) {
        for (const struct ng_value *one = any->first; one != NULL; one = one->next) {
            print_type(one, depth + 1);
            printf("%s", text_if(one->next != NULL, " or "));
        }
    } else {
        printf("any");
    }
}

static void print_argument(const struct ng_value *schema, const struct ng_value *member)
{
    const struct ng_value *choices = json_get(member, "enum");
    const struct ng_value *about = json_get(member, "description");
    printf("  ");
    put(member->key);
    printf(" (");
    print_type(member, 0);
    printf("%s)",
           text_if(json_has_text(json_get(schema, "required"), member->key), ", required"));
    const char *between = ": one of ";
    for (const struct ng_value *one = json_first(choices); one != NULL; one = one->next) {
        printf("%s", between);
        put(one->text);
        between = ", ";
    }
    printf("\n");
    if (about != NULL) {
        printf("      ");
        put(about->text);
        printf("\n");
    }
}

static void print_example_value(const struct ng_value *member)
{
    const struct ng_value *choices = json_get(member, "enum");
    const struct ng_value *items = json_get(member, "items");
    struct ng_str name = json_get_text(member, "type");
    if (choices != NULL && choices->first != NULL) {
        put(choices->first->text);
    } else if (str_is(name, "integer") || str_is(name, "number")) {
        printf("1");
    } else if (str_is(name, "boolean")) {
        printf("true");
    } else if (str_is(name, "object")) {
        printf("'{}'");
    } else if (str_is(name, "array")) {
        const struct ng_value *of = json_get(items, "type");
        printf("%s", of != NULL && !str_is(of->text, "string") ? "'[]'" : "one,two");
    } else {
        printf("TEXT");
    }
}

static void print_example(struct ng_str name, const struct ng_value *schema)
{
    const struct ng_value *members = json_get(schema, "properties");
    unsigned optional = 0;
    printf("\nExample:\n  notegate call ");
    put(name);
    for (const struct ng_value *one = json_first(members); one != NULL; one = one->next) {
        if (!json_has_text(json_get(schema, "required"), one->key)) {
            const struct ng_value *type = json_get(one, "type");
            bool simple = type != NULL && str_is(type->text, "string");
            if (!simple || optional == TOOL_EXAMPLE_OPTIONAL) {
                continue;
            }
            optional++;
        }
        printf(" ");
        put(one->key);
        printf("=");
        print_example_value(one);
    }
    printf("\n");
}

void print_tool(const struct ng_value *tool)
{
    const struct ng_value *schema = json_get(tool, "inputSchema");
    const struct ng_value *members = json_get(schema, "properties");
    struct ng_str name = json_get(tool, "name")->text;
    printf("Usage: notegate call ");
    put(name);
    printf(" [KEY=VALUE... | JSON | -]\n\n");
    put(json_get(tool, "description")->text);
    printf("\n\n");
    puts(json_first(members) == NULL ? "It takes no arguments." : "Arguments:");
    for (const struct ng_value *one = json_first(members); one != NULL; one = one->next) {
        print_argument(schema, one);
    }
    print_example(name, schema);
}
