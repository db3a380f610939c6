/* SPDX-License-Identifier: MIT */
/* other_gateway.c - one request over TCP, to tell a gateway from other programs. */
#include "other_gateway.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/str.h"
#include "core/base/text_choice.h"
#include "core/config/config.h"

#define ANSWER_MAX ((size_t)256 * 1024)
#define ERROR_SIZE 256
#define STATUS_OK 200

/* An answer of a gateway; else `is` is false. */
struct other_answer {
    bool is;
    int status;
    struct ng_str message, hint; /* absent: none; memory of the command line */
};

static int take(void *user, int status, const char *data, size_t len)
{
    (void)status;
    return buf_add(user, data, len);
}

/* Only a gateway answers so: with its keys, with facts about the caller, or with its error. */
static void read_answer(struct arena *arena, struct ng_str body, struct other_answer *ret)
{
    const struct ng_value *value = NULL;
    if (json_parse(arena, body, JSON_DEPTH_DEFAULT, &value, NULL) != NG_OK) {
        return;
    }
    ret->is = json_is(json_get(value, "keys"), NG_TYPE_ARRAY) ||
              json_get_text(value, "default_space").data != NULL ||
              json_get_text(value, "code").data != NULL;
    ret->message = json_get_text(value, "message");
    ret->hint = json_get_text(value, "hint");
}

static struct other_answer ask(struct command_line *line, const struct attach *attach)
{
    char error[ERROR_SIZE];
    struct other_answer answer = {.is = false};
    struct buf body;
    struct client_request request = {.wait_ms = OTHER_GATEWAY_WAIT_MS,
                                     .method = "GET",
                                     .path = "/v1/keys",
                                     .headers = {"Accept: application/json"},
                                     .header_count = 1,
                                     .on_body = take,
                                     .user = &body};
    attach_direct(attach, &request);
    if (attach->authorization != NULL) {
        request.path = "/v1/me";
    }
    buf_init(&body, ANSWER_MAX);
    if (attach->client->send(&request, &answer.status, error, sizeof(error)) == CLIENT_OK) {
        read_answer(&line->arena, arena_copy(&line->arena, buf_str(&body)), &answer);
    }
    buf_done(&body);
    return answer;
}

/* A command that can do its work over HTTP, as any caller. */
static bool takes_key(const char *name)
{
    return str_in_words(ng_str_of(name), "call key mcp tools whoami");
}

/* Why the command must not run on its own data directory. NULL: it may. */
static const char *why_refused(const struct attach *attach, const char *name)
{
    if (strcmp(name, "key") == 0) {
        return ", and it has keys of its own";
    }
    if (strcmp(name, "whoami") == 0) {
        return ", so it knows nothing of this caller";
    }
    bool makes = strcmp(name, "call") == 0 || strcmp(name, "mcp") == 0;
    return makes && !attach_has_data(attach) ? ", where there is no store yet" : NULL;
}

static enum other_gateway tell(const struct attach *attach, const char *name,
                               const struct other_answer *answer)
{
    const char *why = why_refused(attach, name);
    command_error("another gateway answers at %s, and its data directory is not %s%s%s%.*s%s",
                  attach->address, attach->data_dir,
                  text_or(why, ", which this command works on"),
                  text_if(answer->hint.len > 0, ". That gateway says: "), (int)answer->hint.len,
                  text_or(answer->hint.data, ""),
                  text_if(takes_key(name), "; with a key of that gateway in " OTHER_GATEWAY_KEY
                                           ", this command works on it"));
    return why != NULL ? OTHER_GATEWAY_REFUSED : OTHER_GATEWAY_NONE;
}

enum other_gateway other_gateway_find(struct command_line *line, struct attach *attach)
{
    const char *name = line->command->name;
    const char *key = getenv(OTHER_GATEWAY_KEY);
    struct ng_str listen = config_text(attach->config, "listen");
    enum other_gateway found = OTHER_GATEWAY_NONE;
    attach->address = arena_copy(&line->arena, listen).data;
    if (key != NULL && key[0] != '\0' && takes_key(name)) {
        attach->authorization =
            arena_printf(&line->arena, "Authorization: Bearer %s", key).data;
    }
    if (attach->address == NULL || attach_load_client(attach) != NG_OK) {
        attach->address = NULL;
        attach->authorization = NULL;
        return OTHER_GATEWAY_NONE;
    }
    struct other_answer answer = ask(line, attach);
    if (answer.is && attach->authorization != NULL) {
        if (answer.status == STATUS_OK) {
            return OTHER_GATEWAY_KEYED;
        }
        command_error("the gateway at %s does not take the key in " OTHER_GATEWAY_KEY
                      ": %.*s%s%.*s",
                      attach->address, (int)answer.message.len,
                      text_or(answer.message.data, ""), text_if(answer.hint.len > 0, ". "),
                      (int)answer.hint.len, text_or(answer.hint.data, ""));
        found = OTHER_GATEWAY_REFUSED;
    } else if (answer.is) {
        found = tell(attach, name, &answer);
    }
    attach->address = NULL;
    attach->authorization = NULL;
    return found;
}
