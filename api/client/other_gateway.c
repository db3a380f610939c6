/* SPDX-License-Identifier: MIT */
/* other_gateway.c - asks for a gateway at the configured address, and reads no other program's
 * answer as one. */
#include "other_gateway.h"

#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/base/files/run_as.h"
#include "core/base/str.h"
#include "core/base/text_choice.h"
#include "core/config/config.h"

#define ANSWER_MAX ((size_t)256 * 1024)
#define ERROR_SIZE 256
#define STATUS_OK 200
#define PASSWD_MAX 4096
/* The user of the package's service. */
#define SERVICE_USER "notegate"

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

/* With the key in `attach`, if there is one. */
static struct other_answer ask(struct command_line *line, const struct attach *attach,
                               const char *path)
{
    char error[ERROR_SIZE];
    struct other_answer answer = {.is = false};
    struct buf body;
    struct client_request request = {.wait_ms = OTHER_GATEWAY_WAIT_MS,
                                     .method = "GET",
                                     .path = path,
                                     .headers = {"Accept: application/json"},
                                     .header_count = 1,
                                     .on_body = take,
                                     .user = &body};
    attach_direct(attach, &request);
    buf_init(&body, ANSWER_MAX);
    if (attach->client->send(&request, &answer.status, error, sizeof(error)) == CLIENT_OK) {
        read_answer(&line->arena, arena_copy(&line->arena, buf_str(&body)), &answer);
    } else {
        answer.message = arena_copy(&line->arena, ng_str_of(error));
    }
    buf_done(&body);
    return answer;
}

/* Does a gateway answer at the configured address? Without a key: other programs get none.
 * True: `attach` has the address. */
static bool meet(struct command_line *line, struct attach *attach, struct other_answer *ret)
{
    attach->address = arena_copy(&line->arena, config_text(attach->config, "listen")).data;
    if (attach->address == NULL || attach_load_client(attach) != NG_OK) {
        attach->address = NULL;
        return false;
    }
    *ret = ask(line, attach, "/v1/keys");
    return ret->is;
}

/* Can the command do its work over HTTP, as any caller? */
static bool takes_key(const struct command_line *line)
{
    return str_in_words(ng_str_of(line->command->name), "call key mcp tools whoami");
}

static enum other_gateway with_key(struct command_line *line, struct attach *attach)
{
    const char *key = getenv(OTHER_GATEWAY_KEY);
    struct other_answer answer;
    if (key == NULL || key[0] == '\0' || !takes_key(line) || !meet(line, attach, &answer)) {
        attach->address = NULL;
        return OTHER_GATEWAY_NONE;
    }
    attach->authorization = arena_printf(&line->arena, "Authorization: Bearer %s", key).data;
    if (attach->authorization != NULL) {
        answer = ask(line, attach, "/v1/me");
        if (answer.is && answer.status == STATUS_OK) {
            return OTHER_GATEWAY_KEYED;
        }
    }
    command_error("the gateway at %s, asked with the key in " OTHER_GATEWAY_KEY ": %.*s%s%.*s",
                  attach->address, (int)answer.message.len, text_or(answer.message.data, ""),
                  text_if(answer.hint.len > 0, ". "), (int)answer.hint.len,
                  text_or(answer.hint.data, ""));
    attach->address = NULL;
    attach->authorization = NULL;
    return OTHER_GATEWAY_REFUSED;
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

static enum other_gateway without_key(struct command_line *line, struct attach *attach)
{
    struct other_answer answer;
    enum other_gateway found = OTHER_GATEWAY_NONE;
    if (meet(line, attach, &answer)) {
        const char *why = why_refused(attach, line->command->name);
        bool is_owners = answer.status == STATUS_OK; /* of this user, and without keys */
        bool keyed = !is_owners && takes_key(line) && !attach_has_data(attach);
        command_error(
            "another gateway answers at %s, and its data directory is not %s%s%s%.*s%s%s",
            attach->address, attach->data_dir, text_or(why, ", which this command works on"),
            text_if(answer.hint.len > 0, ". That gateway says: "), (int)answer.hint.len,
            text_or(answer.hint.data, ""),
            text_if(keyed, "; with a key of that gateway in " OTHER_GATEWAY_KEY
                           ", this command works on it"),
            text_if(is_owners, "; with that gateway's --data-dir, this command works on it"));
        found = why != NULL ? OTHER_GATEWAY_REFUSED : OTHER_GATEWAY_NONE;
    }
    attach->address = NULL;
    return found;
}

/*
 * The machine's gateway is configured in a file that this user may not read. A command then
 * does not begin a store of the user's own, which would pass for the machine's: `serve` does,
 * or a data directory that is named.
 */
static bool passes_over(const struct command_line *line, const struct attach *attach)
{
    const char *passed = config_passed_over(attach->config);
    if (passed == NULL || attach_has_file(attach, NOTEGATE_LOCK_NAME)) {
        return false;
    }
    struct buf again;
    struct stat info;
    struct passwd entry;
    struct passwd *service = NULL;
    char text[PASSWD_MAX];
    uid_t user = stat(passed, &info) == 0 ? info.st_uid : 0;
    if (getpwnam_r(SERVICE_USER, &entry, text, sizeof(text), &service) == 0 &&
        service != NULL) {
        user = service->pw_uid;
    }
    buf_init(&again, ANSWER_MAX);
    (void)run_as_add_again(&again, user);
    command_error(
        "this machine's gateway is configured in %s, which this user may not read; "
        "run this as its user: %s, %sor name a data directory of your own with "
        "--data-dir, or a configuration with --config",
        passed, buf_cstr(&again),
        text_if(takes_key(line), "or with a key of that gateway in " OTHER_GATEWAY_KEY ", "));
    buf_done(&again);
    return true;
}

enum other_gateway other_gateway_find(struct command_line *line, struct attach *attach)
{
    enum other_gateway found = OTHER_GATEWAY_NONE;
    if (!attach_has_data(attach)) {
        found = with_key(line, attach);
    }
    if (found != OTHER_GATEWAY_NONE) {
        return found;
    }
    return passes_over(line, attach) ? OTHER_GATEWAY_REFUSED : without_key(line, attach);
}
