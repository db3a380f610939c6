/* SPDX-License-Identifier: MIT */
/* test_notebook_rig.c - shared code of test_notebook*.c; see the header.
 */
#include "test_notebook_rig.h"

#include <stdio.h>
#include <stdlib.h>

static const char *const plain_sets[] = {"plugins=notebook", "documents=sqlite", NULL};

int setup(void **state)
{
    struct harness *harness = calloc(1, sizeof(*harness));
    assert_non_null(harness);
    harness_open(harness, plain_sets);
    *state = harness;
    return 0;
}

int teardown(void **state)
{
    harness_close(*state);
    free(*state);
    return 0;
}

void expect(struct harness *harness, const char *args, const char *text)
{
    expect_text(harness, "notebook", args, text);
}

void expect_fail(struct harness *harness, const char *args, const char *code,
                 const char *message)
{
    expect_error(harness, "notebook", args, code, message);
}

static void add_member(struct buf *args, const char *name, struct ng_str value)
{
    buf_printf(args, ",\"%s\":", name);
    buf_add_json(args, value);
}

struct answer call_bytes(struct harness *harness, const char *mode, struct ng_str name,
                         const char *member, struct ng_str value)
{
    struct buf args;
    buf_init(&args, (size_t)16 * 1024 * 1024);
    buf_printf(&args, "{\"mode\":\"%s\"", mode);
    add_member(&args, "name", name);
    if (member != NULL) {
        add_member(&args, member, value);
    }
    buf_add_char(&args, '}');
    struct answer answer = harness_call(harness, "notebook", buf_cstr(&args));
    buf_done(&args);
    return answer;
}

void expect_range(struct harness *harness, const char *name, const char *range,
                  const char *text)
{
    char args[256];
    (void)snprintf(args, sizeof(args), "{\"mode\":\"read\",\"name\":\"%s\",\"readRange\":%s}",
                   name, range);
    expect(harness, args, text);
}
