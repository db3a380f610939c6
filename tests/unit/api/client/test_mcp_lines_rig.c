/* SPDX-License-Identifier: MIT */
/* test_mcp_lines_rig.c - messages to `notegate mcp`, and the lines that it answers with. */
#include "test_mcp_lines_rig.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/str.h"

const char *expect_line(struct program *mcp, const char *part)
{
    const char *line;
    do {
        line = program_line(mcp);
    } while (strstr(line, part) == NULL);
    return line;
}

void expect_steps(struct program *mcp, const struct step *steps, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        program_send(mcp, steps[i].send);
        for (size_t j = 0; j < NG_COUNT(steps[i].parts) && steps[i].parts[j] != NULL; j++) {
            expect_line(mcp, steps[i].parts[j]);
        }
    }
}

void end_mcp(struct program *mcp)
{
    struct ended ended = program_end(mcp, 0);
    if (ended.code != 0) {
        fail_msg("it ended with %d: %s", ended.code, ended.err);
    }
    ended_free(&ended);
}

void expect_both_ways(const struct step *steps, size_t count)
{
    struct program gateway;
    struct program mcp;
    for (int round = 0; round < 2; round++) {
        if (round == 1) {
            program_serve(&gateway, "");
        }
        program_start(&mcp, "mcp --agent ada", NULL);
        expect_steps(&mcp, steps, count);
        end_mcp(&mcp);
        if (round == 1) {
            program_stop(&gateway);
        }
    }
}

/* The id of a request of the gateway, with its quotes. */
static void id_of(const char *line, char id[64])
{
    const char *at = strstr(line, "\"id\":");
    assert_non_null(at);
    (void)snprintf(id, 64, "%.*s", (int)strcspn(at + 5, ",}"), at + 5);
}

void answer_question(struct program *mcp, const char *method, const char *result)
{
    char id[64];
    char text[512];
    id_of(expect_line(mcp, method), id);
    (void)snprintf(text, sizeof(text), "{\"jsonrpc\":\"2.0\",\"id\":%s,%s}\n", id, result);
    program_send(mcp, text);
}

int set_up(void **state)
{
    (void)state;
    (void)program_home();
    /* A task of ten minutes is not waited for. */
    assert_int_equal(setenv("NOTEGATE_SHUTDOWN_TIMEOUT", "50ms", 1), 0);
    return setenv("NOTEGATE_PLUGINS", "notebook,conformance", 1);
}

int tear_down(void **state)
{
    (void)state;
    program_home_remove();
    return 0;
}
