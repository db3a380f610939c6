/* SPDX-License-Identifier: MIT */
/* hello - greets, counts greetings by name, and refuses names that are too long: a whole plugin
 * outside the tree, with a tool, an option, a code of its own and a collection. */
#define NG_ABI 1
#include <notegate/plugin.h>

#include <stdlib.h>

#define HELLO_COLLECTION "hello_greeted"
#define HELLO_NAME_MAX 40

/* Numbers of our own codes: the place in hello_codes. */
#define HELLO_ETOOLONG (NG_EPLUGIN - 0)

struct hello {
    struct ng_str greeting; /* lives as long as the configuration */
};

/* One greeting, in call memory: the change may run again after the tool returned. */
struct hello_greeting {
    struct ng_str greeting;
    struct ng_str name;
};

static int hello_start(struct ng_call *call, const struct ng_conf *conf, void **ret_self)
{
    struct hello *self = malloc(sizeof(*self));
    if (self == NULL) {
        return ng_fail(call, NG_EINTERNAL, "out of memory");
    }
    self->greeting = call->host->conf_text(conf, "greeting");
    *ret_self = self;
    return NG_OK;
}

static void hello_stop(void *self)
{
    free(self);
}

static int hello_change(struct ng_call *call, const struct ng_doc *present,
                        struct ng_draft *next, void *user)
{
    const struct ng_host *host = call->host;
    const struct hello_greeting *greeting = user;
    int64_t times = 0;
    if (present->revision > 0 && !present->deleted) {
        (void)host->json_integer(host->json_get(present->body, "times"), &times);
    }
    times++;
    struct ng_str json = host->format(call, "{\"times\":%lld}", (long long)times);
    if (json.data == NULL) {
        return ng_fail(call, NG_EINTERNAL, "out of memory");
    }
    int rc = host->draft_json(next, json);
    if (rc != NG_OK) {
        return rc;
    }
    return ng_reply(call, host->format(call, "%.*s, %.*s! (%lld)", (int)greeting->greeting.len,
                                       greeting->greeting.data, (int)greeting->name.len,
                                       greeting->name.data, (long long)times));
}

static int hello_run(void *self, struct ng_call *call, struct ng_str args)
{
    (void)args;
    const struct hello *hello = self;
    struct hello_greeting *greeting = ng_alloc(call, sizeof(*greeting));
    if (greeting == NULL) {
        return ng_fail(call, NG_EINTERNAL, "out of memory");
    }
    greeting->greeting = hello->greeting;
    greeting->name = ng_arg_text(call, "name");
    if (greeting->name.len > HELLO_NAME_MAX) {
        (void)ng_fail(call, HELLO_ETOOLONG, "`name` has %zu bytes, at most %d are allowed",
                      greeting->name.len, HELLO_NAME_MAX);
        call->host->hint(call, "Greet by the first name.");
        return HELLO_ETOOLONG;
    }
    struct ng_change change = {
        .size = sizeof(change),
        .key = {ng_str_of(HELLO_COLLECTION), call->caller->space, greeting->name},
        .fn = hello_change,
        .user = greeting,
    };
    return ng_change_one(call, &change);
}

static const struct ng_tool hello_tools[] = {
    {
        .name = "hello",
        .title = "Hello",
        .summary = "Greets a name and tells how often it was greeted.",
        .params = "{\"type\":\"object\",\"additionalProperties\":false,\"required\":[\"name\"],"
                  "\"properties\":{\"name\":{\"type\":\"string\",\"minLength\":1}}}",
        .run = hello_run,
        .flags = NG_TOOL_MEMORY,
    },
};

static const struct ng_option hello_options[] = {
    {.name = "greeting", .fallback = "Hello", .help = "The word before the name."},
};

static const struct ng_code hello_codes[] = {
    {"HELLO_TOO_LONG", 422, "the name is too long to be greeted"},
};

static const struct ng_collection hello_collections[] = {
    {.name = HELLO_COLLECTION, .field_size = sizeof(struct ng_field)},
};

static const struct ng_plugin hello = {
    .name = "hello",
    .version = "1.0.0",
    .threads = NG_THREADS_PARALLEL,
    .tools = hello_tools,
    .tool_count = NG_COUNT(hello_tools),
    .start = hello_start,
    .stop = hello_stop,
    .options = hello_options,
    .option_count = NG_COUNT(hello_options),
    .codes = hello_codes,
    .code_count = NG_COUNT(hello_codes),
    .collections = hello_collections,
    .collection_count = NG_COUNT(hello_collections),
};

NG_EXPORT_PLUGIN(hello);
