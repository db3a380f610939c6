/* SPDX-License-Identifier: MIT */
/* command_verify.c - notegate verify: the integrity of the data, here or in the running
 * gateway.
 */
#include "api/client/attach.h"
#include "api/ops/verify.h"
#include "commands.h"
#include "core/base/str.h"
#include "core/base/text_choice.h"

static int verify_here(struct attach *attach, struct buf *out)
{
    struct call *call = call_new(attach->gateway);
    if (call == NULL) {
        command_error("out of memory");
        return NG_EINTERNAL;
    }
    int rc = verify_print(attach->gateway, call, out);
    if (rc != NG_OK || out->rc != NG_OK) {
        struct ng_str why = command_call_message(call);
        command_error("the data could not be verified: %.*s", (int)why.len, why.data);
        rc = NG_EFAILED;
    }
    call_unref(call);
    return rc;
}

static int64_t verify_number(const struct ng_value *value, const char *name)
{
    int64_t number = 0;
    const struct ng_value *found = json_get(value, name);
    if (found != NULL && json_integer(found, &number) == NG_OK) {
        return number;
    }
    return 0;
}

/* "/var/lib/notegate (sqlite): 2 documents, ..." */
static void verify_show_store(const struct ng_value *value)
{
    const struct ng_value *dir = json_get(value, "data_dir");
    const struct ng_value *backend = json_get(value, "backend");
    if (dir == NULL || backend == NULL) {
        return; /* a gateway of before */
    }
    printf("%.*s (%.*s)", (int)dir->text.len, dir->text.data, (int)backend->text.len,
           backend->text.data);
    if (json_get(value, "documents") != NULL) {
        printf(": %lld documents, %lld revisions, %lld events",
               (long long)verify_number(value, "documents"),
               (long long)verify_number(value, "revisions"),
               (long long)verify_number(value, "events"));
    }
    printf("\n");
}

/* The report for people: a line for each fault. */
static int verify_show(const struct command_line *line, const struct buf *report)
{
    struct arena arena;
    const struct ng_value *value = NULL;
    int64_t count = -1;
    int64_t shown = 0;
    arena_init(&arena, ATTACH_ANSWER_MAX);
    if (json_parse(&arena, buf_str(report), JSON_DEPTH_DEFAULT, &value, NULL) != NG_OK ||
        json_get(value, "count") == NULL ||
        json_integer(json_get(value, "count"), &count) != NG_OK) {
        command_error(arena.oom ? "out of memory for the report of the gateway"
                                : "the report of the gateway cannot be read");
    } else if (line_has(line, LINE_JSON)) {
        (void)command_put_line(stdout, buf_str(report));
    } else {
        const struct ng_value *faults = json_get(value, "faults");
        for (const struct ng_value *one = json_first(faults); one != NULL; one = one->next) {
            printf("%.*s\n", (int)one->text.len, one->text.data);
            shown++;
        }
        if (count > shown) {
            printf("... and %lld more\n", (long long)(count - shown));
        }
        verify_show_store(value);
        if (count == 0) {
            printf("everything is in order\n");
        } else {
            printf("%lld fault%s\n", (long long)count, plural((size_t)count));
        }
    }
    arena_done(&arena);
    if (count == 0) {
        return COMMAND_OK;
    }
    return COMMAND_FAILED;
}

int command_verify(struct command_line *line)
{
    struct attach attach;
    struct buf report;
    int rc = attach_open(line, &attach);
    if (rc != COMMAND_OK) {
        return rc;
    }
    buf_init(&report, ATTACH_ANSWER_MAX);
    struct client_request request = {
        .method = "POST", .path = "/v1/admin/verify", .body = {"", 0}};
    if (attach.gateway != NULL) {
        rc = command_exit_code(verify_here(&attach, &report));
    } else {
        rc = command_exit_code(attach_fetch(&attach, &request, &report));
    }
    if (rc == COMMAND_OK) {
        rc = verify_show(line, &report);
    }
    buf_done(&report);
    attach_done(&attach);
    return rc;
}
