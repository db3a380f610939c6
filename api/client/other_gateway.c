/* SPDX-License-Identifier: MIT */
/* other_gateway.c - one request over TCP, to tell a gateway from other programs. */
#include "other_gateway.h"

#include "core/base/str.h"
#include "core/json/json.h"

#define ANSWER_MAX ((size_t)256 * 1024)
#define ERROR_SIZE 256

static int take(void *user, int status, const char *data, size_t len)
{
    (void)status;
    return buf_add(user, data, len);
}

/* Only a gateway answers so: with its keys, or with its error. */
static bool is_gateway(struct ng_str body, struct buf *hint)
{
    struct arena arena;
    const struct ng_value *value = NULL;
    arena_init(&arena, ANSWER_MAX * 4);
    bool is = json_parse(&arena, body, JSON_DEPTH_DEFAULT, &value, NULL) == NG_OK &&
              (json_is(json_get(value, "keys"), NG_TYPE_ARRAY) ||
               json_get_text(value, "code").data != NULL);
    struct ng_str said = is ? json_get_text(value, "hint") : STR_NONE;
    if (said.len > 0) {
        (void)buf_add_str(hint, said);
    }
    arena_done(&arena);
    return is;
}

bool other_gateway_answers(const struct client_api *client, struct ng_str address,
                           struct buf *hint)
{
    char error[ERROR_SIZE];
    int status = 0;
    struct buf where;
    struct buf body;
    buf_init(&where, ANSWER_MAX);
    buf_init(&body, ANSWER_MAX);
    (void)buf_add_str(&where, address);
    struct client_request request = {.address = buf_cstr(&where),
                                     .wait_ms = OTHER_GATEWAY_WAIT_MS,
                                     .method = "GET",
                                     .path = "/v1/keys",
                                     .headers = {"Accept: application/json"},
                                     .header_count = 1,
                                     .on_body = take,
                                     .user = &body};
    bool is = client->send(&request, &status, error, sizeof(error)) == CLIENT_OK &&
              is_gateway(buf_str(&body), hint);
    buf_done(&body);
    buf_done(&where);
    return is;
}
