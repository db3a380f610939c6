/* SPDX-License-Identifier: MIT */
/* cases_run.c - calls the tool of a case and compares its answer. */
#include "api/base/content.h"
#include "api/client/command_wait.h"
#include "cases.h"
#include "core/base/str.h"
#include "core/dispatch/dispatch.h"

#define CASES_AGENT "local"

/* The JSON of a text answer counts too: many tools answer with the JSON of a document. */
static bool cases_result_fits(const struct plugin_case *one, const struct result *result)
{
    struct arena arena;
    const struct ng_value *value = NULL;
    arena_init(&arena, CASES_MEMORY_MAX);
    bool fits = json_parse(&arena, result->text, JSON_DEPTH_DEFAULT, &value, NULL) == NG_OK &&
                cases_match(one->result, value);
    arena_done(&arena);
    return fits;
}

static bool cases_fits(const struct plugin_case *one, const struct result *result)
{
    if (one->error != NULL) {
        return result->rc != NG_OK && str_is(one->error->text, result->code) &&
               (one->message.len == 0 ||
                str_find(result->message, one->message, 0) != SIZE_MAX);
    }
    if (result->rc != NG_OK) {
        return false;
    }
    return one->text != NULL ? str_equal(one->text->text, result->text)
                             : cases_result_fits(one, result);
}

static int cases_call(struct call *call, const struct plugin_case *one)
{
    struct command_wait wait;
    call->tool_name = one->tool;
    call->args_text = one->args;
    call->caller.all_spaces = one->role == NG_ROLE_ADMIN;
    int rc = call_set_caller(call, str_or(one->agent, ng_str_of(CASES_AGENT)), one->space,
                             one->role, one->mode, true);
    if (rc == NG_OK) {
        command_wait_begin(&wait, call);
        command_wait_end(&wait, dispatch(call));
    }
    return rc;
}

int cases_run(struct gateway *gateway, const struct plugin_case *one, struct buf *actual)
{
    struct call *call = call_new(gateway);
    /* The names of the caller were checked when they were read. */
    if (call == NULL || cases_call(call, one) != NG_OK) {
        call_unref(call);
        return NG_EINTERNAL;
    }
    if (call->final.rc == NG_OK) {
        content_print_result(actual, &call->final);
    } else {
        (void)call_print_error(call, actual);
    }
    int rc = cases_fits(one, &call->final) ? NG_OK : NG_EFAILED;
    call_unref(call);
    return actual->rc == NG_OK ? rc : NG_EINTERNAL;
}
