/* SPDX-License-Identifier: MIT */
/* loader_check.c - the members that a descriptor and the items of its arrays must have, by
 * name.
 */
#include "loader_check.h"

#include "core/base/str.h"

#define LOADER_NAME_MAX 32

struct loader_member {
    const char *name;
    size_t at;
};

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

/* An array of a descriptor and what each item must have. Items begin with their name, where
 * they have one. */
struct loader_items {
    const char *what; /* "tool" */
    const void *items;
    size_t count, item_size;
    const struct loader_member *members;
    size_t member_count;
};

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

static int loader_check_whole(const void *desc, const struct loader_member *members,
                              size_t count, struct buf *error)
{
    const char *missing = loader_missing(desc, members, count);
    if (missing != NULL) {
        (void)buf_printf(error, "has no `%s` in its descriptor", missing);
        return NG_EINVAL;
    }
    return NG_OK;
}

static int loader_check_items(const struct loader_items *array, struct buf *error)
{
    for (size_t i = 0; i < array->count; i++) {
        const char *item = (const char *)array->items + i * array->item_size;
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

#define ITEMS(what, desc, array, count, members)                                               \
    {                                                                                          \
        what, (desc)->array, (desc)->count, sizeof(*(desc)->array), members, NG_COUNT(members) \
    }

static int loader_check_plugin(const struct ng_plugin *plugin, struct buf *error)
{
    const struct loader_items arrays[] = {
        ITEMS("tool", plugin, tools, tool_count, loader_tool_members),
        ITEMS("option", plugin, options, option_count, loader_option_members),
        ITEMS("code", plugin, codes, code_count, loader_code_members),
        ITEMS("collection", plugin, collections, collection_count, loader_collection_members),
        ITEMS("kind of resource", plugin, resources, resource_count, loader_resource_members),
        ITEMS("prompt", plugin, prompts, prompt_count, loader_prompt_members),
    };
    int rc = loader_check_whole(plugin, loader_plugin_members, NG_COUNT(loader_plugin_members),
                                error);
    for (size_t i = 0; i < NG_COUNT(arrays) && rc == NG_OK; i++) {
        rc = loader_check_items(&arrays[i], error);
    }
    if (rc != NG_OK) {
        return rc;
    }
    return loader_check_name(plugin->name, error);
}

static int loader_check_backend(const void *desc, const struct loader_member *members,
                                size_t count, const struct loader_items *options,
                                struct buf *error)
{
    const char *name;
    int rc = loader_check_whole(desc, members, count, error);
    if (rc == NG_OK) {
        rc = loader_check_items(options, error);
    }
    if (rc != NG_OK) {
        return rc;
    }
    memcpy(&name, (const char *)desc + members[0].at, sizeof(name));
    return loader_check_name(name, error);
}

static int loader_check_documents(const struct ng_documents *documents, struct buf *error)
{
    const struct loader_items options =
        ITEMS("option", documents, options, option_count, loader_option_members);
    return loader_check_backend(documents, loader_documents_members,
                                NG_COUNT(loader_documents_members), &options, error);
}

static int loader_check_journal(const struct ng_journal *journal, struct buf *error)
{
    const struct loader_items options =
        ITEMS("option", journal, options, option_count, loader_option_members);
    return loader_check_backend(journal, loader_journal_members,
                                NG_COUNT(loader_journal_members), &options, error);
}

int loader_check(const struct module *module, struct buf *error)
{
    switch (module->kind) {
    case NG_KIND_PLUGIN:
        return loader_check_plugin(&module->desc.plugin, error);
    case NG_KIND_DOCUMENTS:
        return loader_check_documents(&module->desc.documents, error);
    case NG_KIND_JOURNAL:
        return loader_check_journal(&module->desc.journal, error);
    }
    (void)buf_add_c(error, "is of an unknown kind");
    return NG_EINVAL;
}
