/* SPDX-License-Identifier: MIT */
/* conformance_task.c - tools that run long, fail in every way, or ask in the middle: what tasks
 * are made of. */
#include "conformance.h"

#define TASK_FAIL_MS 1000
#define TASK_MS_PER_SECOND 1000.0

int conformance_greet(void *self, struct ng_call *call, struct ng_str args)
{
    (void)self;
    (void)args;
    struct ng_str pieces[] = {ng_str_of("Hello, "), ng_arg_text(call, "name"), ng_str_of("!")};
    return call->host->reply_parts(call, pieces, NG_COUNT(pieces));
}

static int task_computed(struct ng_call *call, struct conformance_wait *wait)
{
    struct ng_str label = ng_arg_text(call, "label");
    (void)wait;
    struct ng_str pieces[] = {ng_str_of("Computed "),
                              label.data != NULL ? label : ng_str_of("something"),
                              ng_str_of(" in "), call->host->json_text(ng_arg(call, "seconds")),
                              ng_str_of(" seconds")};
    return call->host->reply_parts(call, pieces, NG_COUNT(pieces));
}

int conformance_slow_compute(void *self, struct ng_call *call, struct ng_str args)
{
    double seconds = call->host->json_double(ng_arg(call, "seconds"));
    (void)args;
    if (seconds <= 0) {
        return task_computed(call, NULL);
    }
    return conformance_wait(self, call, (int64_t)(seconds * TASK_MS_PER_SECOND), task_computed);
}

static int task_failed(struct ng_call *call, struct conformance_wait *wait)
{
    (void)wait;
    return ng_fail(call, NG_EFAILED, "This job always fails");
}

int conformance_failing_job(void *self, struct ng_call *call, struct ng_str args)
{
    (void)args;
    return conformance_wait(self, call, TASK_FAIL_MS, task_failed);
}

int conformance_protocol_error(void *self, struct ng_call *call, struct ng_str args)
{
    (void)self;
    (void)args;
    return ng_fail(call, NG_EINTERNAL, "This job ends with a fault of the server");
}

int conformance_confirm_delete(void *self, struct ng_call *call, struct ng_str args)
{
    static const char request[] =
        "{\"message\":\"Really delete the file?\",\"requestedSchema\":{\"type\":\"object\","
        "\"properties\":{\"confirm\":{\"type\":\"boolean\"}},\"required\":[\"confirm\"]}}";
    const struct ng_host *host = call->host;
    const struct ng_value *content = NULL;
    (void)self;
    (void)args;
    int rc = conformance_ask_form(call, "confirm", request, &content);
    if (rc != NG_OK) {
        return rc;
    }
    bool yes = host->json_type(host->json_get(content, "confirm")) == NG_TYPE_TRUE;
    struct ng_str pieces[] = {ng_str_of(yes ? "Would have deleted " : "Kept "),
                              ng_arg_text(call, "filename")};
    return host->reply_parts(call, pieces, NG_COUNT(pieces));
}

int conformance_multi_input(void *self, struct ng_call *call, struct ng_str args)
{
    static const char name_request[] =
        "{\"message\":\"What is your name?\",\"requestedSchema\":{\"type\":\"object\","
        "\"properties\":{\"name\":{\"type\":\"string\"}},\"required\":[\"name\"]}}";
    static const char confirm_request[] =
        "{\"message\":\"Shall it go on?\",\"requestedSchema\":{\"type\":\"object\","
        "\"properties\":{\"confirm\":{\"type\":\"boolean\"}},\"required\":[\"confirm\"]}}";
    const struct ng_value *name = NULL;
    const struct ng_value *confirm = NULL;
    (void)self;
    (void)args;
    /* Both are asked before either is waited for. */
    int first = conformance_ask_form(call, "name", name_request, &name);
    int second = conformance_ask_form(call, "confirm", confirm_request, &confirm);
    /* A failure counts more than a question that is still open. */
    if (first != NG_OK && (first != NG_EINPUT || second == NG_OK)) {
        return first;
    }
    if (second != NG_OK) {
        return second;
    }
    struct ng_str text = call->host->json_text(call->host->json_get(name, "name"));
    struct ng_str pieces[] = {ng_str_of("Both answers came, from "),
                              text.data != NULL ? text : ng_str_of("someone")};
    return call->host->reply_parts(call, pieces, NG_COUNT(pieces));
}

int conformance_task_after_input(void *self, struct ng_call *call, struct ng_str args)
{
    static const char request[] =
        "{\"message\":\"What is your name?\",\"requestedSchema\":{\"type\":\"object\","
        "\"properties\":{\"name\":{\"type\":\"string\"}},\"required\":[\"name\"]}}";
    const struct ng_value *content = NULL;
    (void)self;
    (void)args;
    int rc = conformance_ask_form(call, "user_name", request, &content);
    if (rc != NG_OK) {
        return rc;
    }
    struct ng_str text = call->host->json_text(call->host->json_get(content, "name"));
    struct ng_str pieces[] = {ng_str_of("The task was done for "),
                              text.data != NULL ? text : ng_str_of("someone")};
    return call->host->reply_parts(call, pieces, NG_COUNT(pieces));
}
