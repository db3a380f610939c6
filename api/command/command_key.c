/* SPDX-License-Identifier: MIT */
/* command_key.c - notegate key: adding, changing, listing and revoking keys, here or in the
 * running gateway. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/auth/key_ops.h"
#include "api/client/attach.h"
#include "api/client/command_wait.h"
#include "api/listen/http_listen.h"
#include "api/print/print_keys.h"
#include "commands.h"
#include "core/base/minmax.h"
#include "core/base/str.h"
#include "core/base/text/edit_distance.h"
#include "core/base/text_choice.h"
#include "core/config/config.h"
#include "core/dispatch/dispatch.h"

#define KEY_TEXT_BYTES ((size_t)1024 * 1024)
#define KEY_NEAR 3
#define KEY_PREFIX "ng_"
#define STATUS_BAD_REQUEST 400
#define STATUS_ERRORS 400

/* Memory for what a gateway tells of its keys, of which there may be KEYS_MAX. */
#define KEY_ARENA_MAX ((size_t)256 * 1024 * 1024)

struct key_command {
    struct command_line *line;
    struct attach attach;
    struct arena arena;
};

/* ---- one operation, here or at a running gateway ---- */

static int key_here(struct key_command *command, const struct key_job *wanted,
                    struct ng_str body, struct attach_answer *ret)
{
    struct command_wait wait;
    struct call *call = call_new(command->attach.gateway);
    memset(ret, 0, sizeof(*ret));
    buf_init(&ret->body, ATTACH_ANSWER_MAX);
    if (call == NULL) {
        command_error("out of memory");
        return NG_EINTERNAL;
    }
    /* The call's: one that ran into its deadline is answered before it comes back. */
    struct key_job *job = arena_zalloc(&call->arena, sizeof(*job));
    call->args_text = arena_copy(&call->arena, body);
    call->user = getuid();
    call->face = "cli";
    struct gateway *gateway = command->attach.gateway;
    gateway->is_public = http_listen_is_public(config_text(gateway->config, "listen"));
    if (job == NULL || call->args_text.data == NULL) {
        command_error("out of memory");
        call_unref(call);
        return NG_EINTERNAL;
    }
    *job = *wanted; /* its texts are the command's */
    command_wait_begin(&wait, call);
    command_wait_end(&wait, dispatch_step(call, key_ops_step, job));
    ret->status = call->final.status;
    if (call->final.rc == NG_OK) {
        ret->status = 200;
        (void)buf_add_str(&ret->body, call->final.text);
    } else {
        (void)call_print_error(call, &ret->body);
    }
    call_unref(call);
    if (ret->body.rc != NG_OK) {
        command_error("out of memory for the answer about the keys; the request may have been "
                      "carried out");
    }
    return ret->body.rc;
}

static int key_there(struct key_command *command, const struct key_job *job, struct ng_str body,
                     struct attach_answer *ret)
{
    static const char *const methods[] = {
        [KEY_OP_ADD] = "POST",  [KEY_OP_LIST] = "GET",      [KEY_OP_SHOW] = "GET",
        [KEY_OP_SET] = "PATCH", [KEY_OP_REVOKE] = "DELETE",
    };
    struct client_request request = {
        .method = methods[job->op],
        .path = job->all ? "/v1/keys?all=true" : "/v1/keys",
    };
    char path[128];
    if (job->op == KEY_OP_REVOKE || job->op == KEY_OP_SET) {
        (void)snprintf(path, sizeof(path), "/v1/keys/%.*s%s", (int)job->id.len, job->id.data,
                       text_if(job->force, "?force=true"));
        request.path = path;
    } else if (job->name.data != NULL) { /* as of an agent: nothing in it is to be escaped */
        (void)snprintf(path, sizeof(path), "/v1/keys?all=%s&name=%.*s",
                       job->all ? "true" : "false", (int)job->name.len, job->name.data);
        request.path = path;
    }
    if (job->op == KEY_OP_ADD || job->op == KEY_OP_SET) {
        request.headers[request.header_count++] = "Content-Type: application/json";
        request.body = body;
    }
    return attach_request(&command->attach, &request, ret);
}

/* COMMAND_OK: *ret is the answer, parsed into the command's arena, and its text. Otherwise the
 * failure is reported. */
static int key_do(struct key_command *command, const struct key_job *job, struct ng_str body,
                  const struct ng_value **ret, struct ng_str *ret_text)
{
    struct attach_answer answer;
    struct arena *arena = &command->arena;
    int rc;
    if (command->attach.gateway != NULL) {
        rc = key_here(command, job, body, &answer);
    } else {
        rc = key_there(command, job, body, &answer);
    }
    int exit = COMMAND_FAILED;
    if (rc == NG_OK && answer.status >= STATUS_ERRORS) {
        attach_print_error(&answer);
        if (answer.status == STATUS_BAD_REQUEST) {
            exit = COMMAND_USAGE;
        }
    } else if (rc == NG_OK) {
        *ret_text = arena_copy(arena, buf_str(&answer.body));
        if (ret_text->data != NULL &&
            json_parse(arena, *ret_text, JSON_DEPTH_DEFAULT, ret, NULL) == NG_OK) {
            exit = COMMAND_OK;
        } else {
            command_error("%s", arena->oom ? "out of memory for the answer about the keys; the "
                                             "request may have been carried out"
                                           : "the answer about the keys cannot be read");
        }
    }
    attach_answer_done(&answer);
    return exit;
}

/* ---- add ---- */

/* An empty value means null, the default of a new key, where `resets` says so. */
static void key_name_list(struct ng_writer *writer, const char *name, const char *const *items,
                          size_t count, bool resets)
{
    if (count == 0) {
        return;
    }
    json_name(writer, name);
    if (resets && count == 1 && items[0][0] == '\0') {
        json_null(writer);
        return;
    }
    json_array(writer);
    for (size_t i = 0; i < count; i++) {
        json_cstring(writer, items[i]);
    }
    json_end(writer);
}

static void key_name_text(struct ng_writer *writer, const char *name, const char *text,
                          bool resets)
{
    if (text != NULL && resets && text[0] == '\0') {
        json_name(writer, name);
        json_null(writer);
    } else if (text != NULL) {
        json_member_cstring(writer, name, text);
    }
}

static void key_name_flag(struct ng_writer *writer, const char *name,
                          const struct command_line *line, unsigned on, unsigned off)
{
    if (line_has(line, on | off)) {
        json_member_bool(writer, name, line_has(line, on));
    }
}

/* The members that options of the command line name. agent: of a new key; NULL: a change. */
static int key_body(const struct command_line *line, const char *agent, struct buf *out)
{
    struct ng_writer writer;
    bool resets = agent == NULL;
    json_writer_init(&writer, out);
    json_object(&writer);
    key_name_text(&writer, "agent", agent, resets);
    key_name_text(&writer, "role", line->role, resets);
    key_name_text(&writer, "mode", line->mode, resets);
    key_name_flag(&writer, "run", line, LINE_RUN, LINE_NO_RUN);
    key_name_flag(&writer, "restore", line, LINE_RESTORE, LINE_NO_RESTORE);
    key_name_list(&writer, "spaces", line->key_spaces, line->key_space_count, resets);
    key_name_list(&writer, "tools", line->key_tools, line->key_tool_count, resets);
    key_name_list(&writer, "no_tools", line->key_no_tools, line->key_no_tool_count, resets);
    key_name_text(&writer, "rate", line->rate, resets);
    key_name_text(&writer, "expires", line->expires, resets);
    key_name_text(&writer, "note", line->note, resets);
    json_end(&writer);
    return out->rc;
}

/* An unused space may be a typing error. */
static void key_show_new_spaces(const struct ng_value *key)
{
    const struct ng_value *spaces = json_get(key, "new_spaces");
    for (const struct ng_value *one = json_first(spaces); one != NULL; one = one->next) {
        (void)fprintf(stderr, "space `%.*s` is new: no documents, no other key\n",
                      (int)one->text.len, one->text.data);
    }
}

/* Prints the line with the key, which nothing can print again. */
static int key_show_new(const struct ng_value *key, struct ng_str line)
{
    struct ng_str id = json_get_text(key, "id");
    if (command_put_line(stdout, line) != NG_OK || command_flush(stdout) != NG_OK) {
        command_error("the key could not be printed; revoke it (%.*s) and add another",
                      (int)id.len, id.data);
        return COMMAND_FAILED;
    }
    return COMMAND_OK;
}

static int key_print_json(struct ng_str text)
{
    if (command_put_line(stdout, text) != NG_OK) {
        return COMMAND_FAILED;
    }
    return command_exit_code(command_flush(stdout));
}

static int key_fetch(struct key_command *command, bool all, struct ng_str name,
                     const struct ng_value **ret, struct ng_str *ret_text)
{
    struct key_job job = {.op = KEY_OP_LIST, .all = all, .name = name};
    const struct ng_value *answer = NULL;
    int rc = key_do(command, &job, ng_str_of(""), &answer, ret_text);
    *ret = json_get(answer, "keys");
    if (rc == COMMAND_OK && (*ret == NULL || (*ret)->type != NG_TYPE_ARRAY)) {
        command_error("the list of keys cannot be read");
        rc = COMMAND_FAILED;
    }
    return rc;
}

/* Tells a person what else the new key changes: the first one closes the gateway, and an agent
 * may have a forgotten one. */
static void key_show_effect(struct key_command *command, const struct ng_value *key)
{
    const struct ng_value *list = NULL;
    struct ng_str agent = json_get_text(key, "agent");
    struct ng_str text;
    size_t same = 0;
    if (line_has(command->line, LINE_JSON) ||
        key_fetch(command, true, STR_NONE, &list, &text) != COMMAND_OK) {
        return;
    }
    for (const struct ng_value *one = list->first; one != NULL; one = one->next) {
        same += str_equal(json_get_text(one, "agent"), agent) &&
                str_is(json_get_text(one, "state"), "live");
    }
    if (list->count == 1) {
        (void)fputs("This is the first key: unless `auth` is off, every call over HTTP needs a "
                    "key from now on.\n",
                    stderr);
    } else if (same > 1) {
        (void)fprintf(stderr, "%.*s has %zu keys now; `notegate key list` shows them.\n",
                      (int)agent.len, agent.data, same);
    }
}

static int key_add(struct key_command *command)
{
    struct key_job job = {.op = KEY_OP_ADD};
    struct buf body;
    const struct ng_value *key = NULL;
    struct ng_str text;
    buf_init(&body, KEY_TEXT_BYTES);
    int rc = COMMAND_FAILED;
    if (key_body(command->line, command->line->words[1], &body) != NG_OK) {
        command_error("the key's description is too long");
    } else {
        rc = key_do(command, &job, buf_str(&body), &key, &text);
    }
    if (rc == COMMAND_OK) {
        key_show_new_spaces(key);
        if (!line_has(command->line, LINE_JSON)) {
            print_new_key(key); /* on stderr: stdout is the key alone, for scripts */
            text = json_get_text(key, "key");
        }
        rc = key_show_new(key, text);
        key_show_effect(command, key);
    }
    buf_done(&body);
    return rc;
}

/* ---- list ---- */

static int key_list(struct key_command *command)
{
    const struct ng_value *list = NULL;
    struct ng_str text;
    int rc = key_fetch(command, line_has(command->line, LINE_ALL), STR_NONE, &list, &text);
    if (rc != COMMAND_OK) {
        return rc;
    }
    if (line_has(command->line, LINE_JSON)) {
        return key_print_json(text);
    }
    print_key_table(list);
    return command_exit_code(command_flush(stdout));
}

/* ---- revoke ---- */

/* The live ones with this id, or of this agent. */
static size_t key_match(const struct ng_value *list, struct ng_str name,
                        const struct ng_value **ret, size_t most)
{
    size_t count = 0;
    for (const struct ng_value *key = list->first; key != NULL; key = key->next) {
        if (str_equal(json_get_text(key, "id"), name)) {
            ret[0] = key;
            return 1;
        }
    }
    for (const struct ng_value *key = list->first; key != NULL && count < most;
         key = key->next) {
        if (str_equal(json_get_text(key, "agent"), name) &&
            !str_is(json_get_text(key, "state"), "revoked")) {
            ret[count++] = key;
        }
    }
    return count;
}

static void key_unknown(const struct ng_value *list, struct ng_str name)
{
    struct ng_str near = {NULL, 0};
    size_t least = KEY_NEAR + 1;
    bool known = false;
    for (const struct ng_value *key = list->first; key != NULL; key = key->next) {
        struct ng_str texts[2] = {json_get_text(key, "agent"), json_get_text(key, "id")};
        known = known || str_equal(texts[0], name);
        for (size_t i = 0; i < NG_COUNT(texts); i++) {
            size_t distance = edit_distance(name, texts[i], KEY_NEAR);
            if (distance < least && distance <= name.len / 3) {
                least = distance;
                near = texts[i];
            }
        }
    }
    if (known) {
        command_error("every key of %.*s is revoked already", (int)name.len, name.data);
    } else if (near.data != NULL) {
        command_error("no key has the agent or id \"%.*s\"; did you mean \"%.*s\"?",
                      (int)name.len, name.data, (int)near.len, near.data);
    } else {
        command_error("no key has the agent or id \"%.*s\"; `notegate key list` shows the keys",
                      (int)name.len, name.data);
    }
}

static int key_revoke_all(struct key_command *command, const struct ng_value **found,
                          size_t count)
{
    struct buf answers;
    int rc = COMMAND_OK;
    buf_init(&answers, ATTACH_ANSWER_MAX);
    (void)buf_add_c(&answers, "{\"revoked\":[");
    for (size_t i = 0; i < count && rc == COMMAND_OK; i++) {
        struct key_job job = {.op = KEY_OP_REVOKE,
                              .id = json_get_text(found[i], "id"),
                              .force = line_has(command->line, LINE_FORCE)};
        struct ng_str agent = json_get_text(found[i], "agent");
        const struct ng_value *key = NULL;
        struct ng_str text = {NULL, 0};
        rc = key_do(command, &job, ng_str_of(""), &key, &text);
        if (rc == COMMAND_OK && !line_has(command->line, LINE_JSON)) {
            printf("revoked %.*s of %.*s\n", (int)job.id.len, job.id.data, (int)agent.len,
                   agent.data);
        }
        (void)buf_add_c(&answers, text_if(i != 0, ","));
        (void)buf_add_str(&answers, text);
    }
    (void)buf_add_c(&answers, "]}");
    if (rc == COMMAND_OK && line_has(command->line, LINE_JSON)) {
        rc = key_print_json(buf_str(&answers));
    } else if (rc == COMMAND_OK) {
        printf("%zu key%s revoked\n", count, plural(count));
        rc = command_exit_code(command_flush(stdout));
    }
    buf_done(&answers);
    return rc;
}

/* The whole text of a key is accepted for its id: "ng_ID_SECRET" means ID. */
static struct ng_str key_named(const char *word)
{
    struct ng_str name = ng_str_of(word);
    const size_t end = sizeof(KEY_PREFIX) - 1 + KEY_ID_LEN;
    if (name.len > end && memcmp(word, KEY_PREFIX, sizeof(KEY_PREFIX) - 1) == 0 &&
        word[end] == '_') {
        return str_make(word + end - KEY_ID_LEN, KEY_ID_LEN);
    }
    return name;
}

/* The keys that the command names, of which there is one at least. */
static int key_find(struct key_command *command, const struct ng_value ***ret,
                    size_t *ret_count)
{
    const struct ng_value *list = NULL;
    struct ng_str text;
    struct ng_str name = key_named(command->line->words[1]);
    bool valid = call_name_valid(name); /* else no key has it */
    int rc = key_fetch(command, true, valid ? name : STR_NONE, &list, &text);
    if (rc != COMMAND_OK) {
        return rc;
    }
    size_t most = list->count + (size_t)1;
    const struct ng_value **found =
        arena_alloc(&command->arena, most * sizeof(struct ng_value *));
    if (found == NULL) {
        command_error("out of memory");
        return COMMAND_FAILED;
    }
    size_t count = key_match(list, name, found, most);
    if (count == 0) {
        /* The nearest name is among the others. */
        if (list->count == 0 && valid) {
            rc = key_fetch(command, true, STR_NONE, &list, &text);
        }
        if (rc == COMMAND_OK) {
            key_unknown(list, name);
        }
        return COMMAND_FAILED;
    }
    *ret = found;
    *ret_count = count;
    return COMMAND_OK;
}

static int key_revoke(struct key_command *command)
{
    const struct ng_value **found = NULL;
    size_t count = 0;
    int rc = key_find(command, &found, &count);
    return rc == COMMAND_OK ? key_revoke_all(command, found, count) : rc;
}

/* ---- set, pause, resume ---- */

/* done: the past tense in the message, "paused". */
static int key_change(struct key_command *command, struct ng_str body, const char *done)
{
    const struct ng_value **found = NULL;
    const struct ng_value *key = NULL;
    struct ng_str text;
    size_t count = 0;
    int rc = key_find(command, &found, &count);
    if (rc != COMMAND_OK) {
        return rc;
    }
    struct ng_str agent = json_get_text(found[0], "agent");
    struct key_job job = {.op = KEY_OP_SET, .id = json_get_text(found[0], "id")};
    if (count > 1) {
        command_error("%.*s has %zu keys; name one by its id: `notegate key list` shows them",
                      (int)agent.len, agent.data, count);
        return COMMAND_FAILED;
    }
    rc = key_do(command, &job, body, &key, &text);
    if (rc != COMMAND_OK) {
        return rc;
    }
    key_show_new_spaces(key);
    if (line_has(command->line, LINE_JSON)) {
        return key_print_json(text);
    }
    printf("%s %.*s of %.*s\n", done, (int)job.id.len, job.id.data, (int)agent.len, agent.data);
    return command_exit_code(command_flush(stdout));
}

static int key_set(struct key_command *command)
{
    struct buf body;
    int rc = COMMAND_FAILED;
    buf_init(&body, KEY_TEXT_BYTES);
    if (key_body(command->line, NULL, &body) != NG_OK) {
        command_error("the change is too long");
    } else {
        rc = key_change(command, buf_str(&body), "changed");
    }
    buf_done(&body);
    return rc;
}

static int key_pause(struct key_command *command)
{
    return key_change(command, ng_str_of("{\"paused\":true}"), "paused");
}

static int key_resume(struct key_command *command)
{
    return key_change(command, ng_str_of("{\"paused\":false}"), "resumed");
}

/* ---- the command ---- */

static const struct key_verb {
    const char *name;
    const char *words;
    size_t word_count; /* behind it */
    bool describes;    /* takes options that describe a key */
    int (*run)(struct key_command *command);
} key_verbs[] = {
    {"add", "add NAME", 1, true, key_add},
    {"set", "set ID OPTION...", 1, true, key_set},
    {"pause", "pause ID", 1, false, key_pause},
    {"resume", "resume ID", 1, false, key_resume},
    {"list", "list", 0, false, key_list},
    {"revoke", "revoke NAME|ID", 1, false, key_revoke},
};

static int key_check(const struct command_line *line, const struct key_verb *verb)
{
    if (line->word_count < 1 + verb->word_count) {
        return command_usage(line, "\"key %s\" needs a name: `notegate key %s`", verb->name,
                             verb->words);
    }
    if (line->word_count > 1 + verb->word_count) {
        return command_usage(line, "unexpected argument \"%s\" for \"key %s\"",
                             line->words[1 + verb->word_count], verb->name);
    }
    bool describes = line->role != NULL || line->mode != NULL || line->key_space_count > 0 ||
                     line->key_tool_count > 0 || line->key_no_tool_count > 0 ||
                     line->rate != NULL || line->expires != NULL || line->note != NULL ||
                     line_has(line, LINE_RUN | LINE_NO_RUN | LINE_RESTORE | LINE_NO_RESTORE);
    if (line_has(line, LINE_RUN) && line_has(line, LINE_NO_RUN)) {
        return command_usage(line, "--run and --no-run contradict each other");
    }
    if (line_has(line, LINE_RESTORE) && line_has(line, LINE_NO_RESTORE)) {
        return command_usage(line, "--restore and --no-restore contradict each other");
    }
    if (!describes && verb->run == key_set) {
        return command_usage(line, "\"key set\" needs an option that says what changes, for "
                                   "example --mode edit");
    }
    if (describes && !verb->describes) {
        return command_usage(line, "\"key %s\" takes no options that describe a key",
                             verb->name);
    }
    if (line_has(line, LINE_ALL) && strcmp(verb->name, "list") != 0) {
        return command_usage(line, "--all belongs to \"key list\"");
    }
    if (line_has(line, LINE_FORCE) && strcmp(verb->name, "revoke") != 0) {
        return command_usage(line, "--force belongs to \"key revoke\"");
    }
    return COMMAND_OK;
}

int command_key(struct command_line *line)
{
    struct key_command command = {.line = line};
    const struct key_verb *verb = NULL;
    for (size_t i = 0; i < NG_COUNT(key_verbs); i++) {
        if (strcmp(line->words[0], key_verbs[i].name) == 0) {
            verb = &key_verbs[i];
        }
    }
    if (verb == NULL) {
        return command_usage(line,
                             "\"key\" does not know \"%s\"; it takes add, set, "
                             "pause, resume, list or revoke",
                             line->words[0]);
    }
    int rc = key_check(line, verb);
    if (rc == COMMAND_OK) {
        if (verb->run != key_add) {
            line->flags |= LINE_NEEDS_DATA;
        }
        rc = attach_open(line, &command.attach);
    }
    if (rc == COMMAND_OK) {
        arena_init(&command.arena, KEY_ARENA_MAX);
        rc = verb->run(&command);
        arena_done(&command.arena);
        attach_done(&command.attach);
    }
    return rc;
}
