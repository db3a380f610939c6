/* SPDX-License-Identifier: MIT */
/* history_filter.c - the filter that a call names. */
#include "core/base/str.h"
#include "history.h"

/* A text, or a list of texts, as the schema has it. */
static int filter_names(struct ng_call *call, const char *name, struct ng_names *ret)
{
    const struct ng_host *host = call->host;
    const struct ng_value *value = ng_arg(call, name);
    size_t count = host->json_type(value) == NG_TYPE_ARRAY ? host->json_count(value) : 1;
    if (value == NULL) {
        return NG_OK;
    }
    if (count > HISTORY_NAMES_MAX) {
        return ng_fail(call, NG_EINVAL, "`%s` has %zu texts, at most %d are taken", name, count,
                       HISTORY_NAMES_MAX);
    }
    struct ng_str *items = ng_alloc(call, (count + 1) * sizeof(*items));
    if (items == NULL) {
        return history_no_memory(call);
    }
    items[0] = host->json_text(value);
    size_t taken = host->json_type(value) != NG_TYPE_ARRAY;
    for (const struct ng_value *item = host->json_first(value); item != NULL && taken < count;
         item = host->json_next(item)) {
        items[taken++] = host->json_text(item);
    }
    *ret = (struct ng_names){items, taken};
    return NG_OK;
}

/* A final "*" means a beginning, unless a backslash is before it. */
static int filter_id(struct ng_call *call, struct ng_trail *ret)
{
    struct ng_str id = ng_arg_text(call, "id");
    if (str_ends(id, "\\*")) {
        ret->id = call->host->format(call, "%.*s*", (int)id.len - 2, id.data);
        return ret->id.data == NULL ? history_no_memory(call) : NG_OK;
    }
    ret->id_prefix = str_ends(id, "*");
    ret->id = str_make(id.data, id.len - ret->id_prefix);
    return NG_OK;
}

static int filter_space(struct ng_call *call, struct ng_trail *ret)
{
    const struct ng_caller *caller = call->caller;
    if (caller->space_named && !ng_has_arg(call, "space")) {
        ret->spaces = (struct ng_names){&caller->space, 1};
        return NG_OK;
    }
    return filter_names(call, "space", &ret->spaces);
}

static int filter_point(struct ng_call *call, const char *name, uint64_t *ret)
{
    struct ng_str point = ng_arg_text(call, name);
    return point.data == NULL ? NG_OK : call->host->point_seq(call, name, point, ret);
}

int history_filter(struct ng_call *call, struct ng_trail *ret)
{
    *ret = (struct ng_trail){.size = sizeof(*ret), .until = UINT64_MAX};
    const struct {
        const char *name;
        struct ng_names *names;
    } lists[] = {
        {"agent", &ret->agents},
        {"run", &ret->runs},
        {"tool", &ret->tools},
        {"action", &ret->actions},
        {"collection", &ret->collections},
    };
    struct ng_str path = ng_arg_text(call, "path");
    int rc = path.data != NULL ? history_file_filter(call, path, ret) : filter_id(call, ret);
    for (size_t i = 0; i < NG_COUNT(lists) && rc == NG_OK; i++) {
        rc = filter_names(call, lists[i].name, lists[i].names);
    }
    if (rc == NG_OK && path.data == NULL) {
        rc = filter_space(call, ret);
    }
    if (rc == NG_OK) {
        rc = filter_point(call, "since", &ret->since);
    }
    if (rc == NG_OK) {
        rc = filter_point(call, "until", &ret->until);
    }
    return rc;
}
