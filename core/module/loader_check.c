/* SPDX-License-Identifier: MIT */
/* loader_check.c - the forms of descriptors: their arrays, and the members that they and the
 * items of their arrays must have. */
#include "loader_check.h"

#include "core/base/str.h"

#define LOADER_NAME_MAX 32

#define MEMBER(type, member)                                                                   \
    {                                                                                          \
#member, offsetof(struct type, member)                                                 \
    }

static const struct loader_member loader_plugin_members[] = {
    MEMBER(ng_plugin, name),
    MEMBER(ng_plugin, version),
};

static const struct loader_member loader_tool_members[] = {
    MEMBER(ng_tool, name),
    MEMBER(ng_tool, summary),
    MEMBER(ng_tool, params),
    MEMBER(ng_tool, run),
};

static const struct loader_member loader_option_members[] = {
    MEMBER(ng_option, name),
};

static const struct loader_member loader_code_members[] = {
    MEMBER(ng_code, name),
};

static const struct loader_member loader_collection_members[] = {
    MEMBER(ng_collection, name),
};

static const struct loader_member loader_resource_members[] = {
    MEMBER(ng_resources, read),
};

static const struct loader_member loader_prompt_members[] = {
    MEMBER(ng_prompt, name),
    MEMBER(ng_prompt, get),
};

static const struct loader_member loader_content_members[] = {
    MEMBER(ng_content_kind, ending),
};

static const struct loader_member loader_documents_members[] = {
    MEMBER(ng_documents, name),    MEMBER(ng_documents, version), MEMBER(ng_documents, open),
    MEMBER(ng_documents, close),   MEMBER(ng_documents, declare), MEMBER(ng_documents, commit),
    MEMBER(ng_documents, get),     MEMBER(ng_documents, query),   MEMBER(ng_documents, history),
    MEMBER(ng_documents, changes), MEMBER(ng_documents, answer),
};

static const struct loader_member loader_journal_members[] = {
    MEMBER(ng_journal, name),           MEMBER(ng_journal, version),
    MEMBER(ng_journal, open),           MEMBER(ng_journal, close),
    MEMBER(ng_journal, deliver),        MEMBER(ng_journal, timeline),
    MEMBER(ng_journal, recall),         MEMBER(ng_journal, summary),
    MEMBER(ng_journal, set_summary),    MEMBER(ng_journal, dump),
    MEMBER(ng_journal, restore),        MEMBER(ng_journal, checkpoint_put),
    MEMBER(ng_journal, checkpoint_get), MEMBER(ng_journal, checkpoint_list),
};

#define ARRAY(type, what, array, count, item, members)                                         \
    {                                                                                          \
        what, #array, #count, offsetof(struct type, array), offsetof(struct type, count),      \
            sizeof(struct item), members, NG_COUNT(members)                                    \
    }

static const struct loader_array loader_plugin_arrays[] = {
    ARRAY(ng_plugin, "tool", tools, tool_count, ng_tool, loader_tool_members),
    ARRAY(ng_plugin, "option", options, option_count, ng_option, loader_option_members),
    ARRAY(ng_plugin, "code", codes, code_count, ng_code, loader_code_members),
    ARRAY(ng_plugin, "collection", collections, collection_count, ng_collection,
          loader_collection_members),
    ARRAY(ng_plugin, "kind of resource", resources, resource_count, ng_resources,
          loader_resource_members),
    ARRAY(ng_plugin, "prompt", prompts, prompt_count, ng_prompt, loader_prompt_members),
    ARRAY(ng_plugin, "kind of contents", contents, content_count, ng_content_kind,
          loader_content_members),
};

static const struct loader_array loader_documents_arrays[] = {
    ARRAY(ng_documents, "option", options, option_count, ng_option, loader_option_members),
};

static const struct loader_array loader_journal_arrays[] = {
    ARRAY(ng_journal, "option", options, option_count, ng_option, loader_option_members),
};

#define FORM(name, folder, type, members, arrays)                                              \
    {                                                                                          \
        name, folder, sizeof(struct type), members, NG_COUNT(members), arrays,                 \
            NG_COUNT(arrays)                                                                   \
    }

const struct loader_form *loader_form_of(uint32_t kind)
{
    static const struct loader_form forms[] = {
        [NG_KIND_PLUGIN] =
            FORM("a plugin", "plugins", ng_plugin, loader_plugin_members, loader_plugin_arrays),
        [NG_KIND_DOCUMENTS] = FORM("a backend for documents", "backends", ng_documents,
                                   loader_documents_members, loader_documents_arrays),
        [NG_KIND_JOURNAL] = FORM("a backend for the journal", "backends", ng_journal,
                                 loader_journal_members, loader_journal_arrays),
    };
    if (kind >= NG_COUNT(forms) || forms[kind].name == NULL) {
        return NULL;
    }
    return &forms[kind];
}

/* The first member that is not there; NULL: all are. Pointers of both kinds are zeros where
 * absent. */
static const char *loader_missing(const void *object, const struct loader_member *members,
                                  size_t count)
{
    static const char absent[sizeof(void *)];
    for (size_t i = 0; i < count; i++) {
        if (memcmp((const char *)object + members[i].at, absent, sizeof(absent)) == 0) {
            return members[i].name;
        }
    }
    return NULL;
}

static int loader_check_items(const char *desc, const struct loader_array *array,
                              struct buf *error)
{
    const char *items;
    size_t count;
    memcpy(&items, desc + array->at, sizeof(items));
    memcpy(&count, desc + array->count_at, sizeof(count));
    for (size_t i = 0; i < count; i++) {
        const char *item = items + i * array->item_size;
        const char *missing = loader_missing(item, array->members, array->member_count);
        const char *name = NULL;
        if (missing == NULL) {
            continue;
        }
        (void)buf_printf(error, "has a %s (number %zu", array->what, i + 1);
        if (strcmp(array->members[0].name, "name") == 0) {
            memcpy(&name, item, sizeof(name));
        }
        if (name != NULL) {
            (void)buf_printf(error, ", `%s`", name);
        }
        (void)buf_printf(error, ") without `%s`", missing);
        return NG_EINVAL;
    }
    return NG_OK;
}

/* [a-z][a-z0-9_]{0,31}: it is also the prefix of configuration keys. */
static int loader_check_name(const char *name, struct buf *error)
{
    size_t len = strlen(name);
    if (len > 0 && len <= LOADER_NAME_MAX && name[0] >= 'a' && name[0] <= 'z' &&
        strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_") == len) {
        return NG_OK;
    }
    (void)buf_printf(error,
                     "has an invalid name, `%.64s`: a name has up to %d of a-z, 0-9 and _, and "
                     "begins with a letter",
                     name, LOADER_NAME_MAX);
    return NG_EINVAL;
}

int loader_check(const struct module *module, struct buf *error)
{
    const struct loader_form *form = loader_form_of(module->kind);
    const char *desc = (const char *)&module->desc;
    const char *name;
    const char *missing = loader_missing(desc, form->members, form->member_count);
    if (missing != NULL) {
        (void)buf_printf(error, "has no `%s` in its descriptor", missing);
        return NG_EINVAL;
    }
    for (size_t i = 0; i < form->array_count; i++) {
        int rc = loader_check_items(desc, &form->arrays[i], error);
        if (rc != NG_OK) {
            return rc;
        }
    }
    memcpy(&name, desc + form->members[0].at, sizeof(name));
    return loader_check_name(name, error);
}
