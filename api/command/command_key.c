/* SPDX-License-Identifier: MIT */
/* command_key.c - notegate key: adding, listing and revoking keys, here or in the running
 * gateway. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/auth/key_ops.h"
#include "api/client/attach.h"
#include "api/client/command_wait.h"
#include "api/listen/http_listen.h"
#include "commands.h"
#include "core/base/minmax.h"
#include "core/base/str.h"
#include "core/base/text/edit_distance.h"
#include "core/base/text_choice.h"
#include "core/config/config.h"
#include "core/dispatch/dispatch.h"

#define KEY_TEXT_BYTES ((size_t)1024 * 1024)
#define KEY_COLUMNS 14
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
        [KEY_OP_ADD] = "POST",
        [KEY_OP_LIST] = "GET",
        [KEY_OP_SHOW] = "GET",
        [KEY_OP_REVOKE] = "DELETE",
    };
    struct client_request request = {
        .method = methods[job->op],
        .path = job->all ? "/v1/keys?all=true" : "/v1/keys",
    };
    char path[128];
    if (job->op == KEY_OP_REVOKE) {
        (void)snprintf(path, sizeof(path), "/v1/keys/%.*s%s", (int)job->id.len, job->id.data,
                       text_if(job->force, "?force=true"));
        request.path = path;
    } else if (job->name.data != NULL) { /* as of an agent: nothing in it is to be escaped */
        (void)snprintf(path, sizeof(path), "/v1/keys?all=%s&name=%.*s",
                       job->all ? "true" : "false", (int)job->name.len, job->name.data);
        request.path = path;
    }
    if (job->op == KEY_OP_ADD) {
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

static void key_name_list(struct ng_writer *writer, const char *name, const char *const *items,
                          size_t count)
{
    if (count == 0) {
        return;
    }
    json_name(writer, name);
    json_array(writer);
    for (size_t i = 0; i < count; i++) {
        json_cstring(writer, items[i]);
    }
    json_end(writer);
}

static void key_name_text(struct ng_writer *writer, const char *name, const char *text)
{
    if (text != NULL) {
        json_member_cstring(writer, name, text);
    }
}

static int key_add_body(const struct command_line *line, struct buf *out)
{
    struct ng_writer writer;
    json_writer_init(&writer, out);
    json_object(&writer);
    key_name_text(&writer, "agent", line->words[1]);
    key_name_text(&writer, "role", line->role);
    key_name_text(&writer, "mode", line->mode);
    if (line_has(line, LINE_RUN)) {
        json_member_bool(&writer, "run", true);
    }
    key_name_list(&writer, "spaces", line->key_spaces, line->key_space_count);
    key_name_list(&writer, "tools", line->key_tools, line->key_tool_count);
    key_name_text(&writer, "rate", line->rate);
    key_name_text(&writer, "expires", line->expires);
    key_name_text(&writer, "note", line->note);
    json_end(&writer);
    return out->rc;
}

static void key_join(const struct ng_value *array, const char *none, const char *between,
                     struct buf *out)
{
    if (array == NULL || array->count == 0) {
        (void)buf_add_c(out, none);
        return;
    }
    for (const struct ng_value *item = array->first; item != NULL; item = item->next) {
        (void)buf_add_str(out, item->text);
        (void)buf_add_c(out, item->next == NULL ? "" : between);
    }
}

/* Absent in the answer of an earlier gateway, where every key did. */
static bool key_runs(const struct ng_value *key)
{
    const struct ng_value *run = json_get(key, "run");
    return run == NULL || run->type == NG_TYPE_TRUE;
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

/* The key alone on stdout, for scripts; what a person wants to know on stderr. */
static int key_show_new(const struct ng_value *key)
{
    struct buf about;
    struct ng_str id = json_get_text(key, "id");
    struct ng_str agent = json_get_text(key, "agent");
    struct ng_str role = json_get_text(key, "role");
    struct ng_str mode = json_get_text(key, "mode");
    struct ng_str expires = json_get_text(key, "expires");
    buf_init(&about, KEY_TEXT_BYTES);
    (void)buf_printf(&about, "Key %.*s for %.*s: role %.*s, mode %.*s, spaces ", (int)id.len,
                     id.data, (int)agent.len, agent.data, (int)role.len, role.data,
                     (int)mode.len, mode.data);
    key_join(json_get(key, "spaces"), "none", ", ", &about);
    (void)buf_add_c(&about, ", tools ");
    key_join(json_get(key, "tools"), "all", ", ", &about);
    const struct ng_value *rate = json_get(key, "rate");
    if (rate != NULL) {
        (void)buf_printf(&about, ", rate %.*s/s", (int)rate->text.len, rate->text.data);
    }
    (void)buf_printf(
        &about,
        ", expires %.*s, %s run code.\nSend it as `Authorization: Bearer KEY`. It is shown "
        "only this once:\n",
        expires.len == 0 ? 5 : (int)expires.len, expires.len == 0 ? "never" : expires.data,
        key_runs(key) ? "may" : "may not");
    (void)command_put(stderr, buf_str(&about));
    (void)fflush(stderr);
    buf_done(&about);
    if (command_put_line(stdout, json_get_text(key, "key")) != NG_OK ||
        command_flush(stdout) != NG_OK) {
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

static int key_add(struct key_command *command)
{
    struct key_job job = {.op = KEY_OP_ADD};
    struct buf body;
    const struct ng_value *key = NULL;
    struct ng_str text;
    buf_init(&body, KEY_TEXT_BYTES);
    int rc = COMMAND_FAILED;
    if (key_add_body(command->line, &body) != NG_OK) {
        command_error("the key's description is too long");
    } else {
        rc = key_do(command, &job, buf_str(&body), &key, &text);
    }
    if (rc == COMMAND_OK) {
        key_show_new_spaces(key);
        if (line_has(command->line, LINE_JSON)) {
            rc = key_print_json(text);
        } else {
            rc = key_show_new(key);
        }
    }
    buf_done(&body);
    return rc;
}

/* ---- list ---- */

static const struct {
    const char *title, *name, *absent;
} key_columns[KEY_COLUMNS] = {
    {"ID", "id", "-"},
    {"AGENT", "agent", "-"},
    {"ROLE", "role", "-"},
    {"MODE", "mode", "-"},
    {"RUN", "run", "-"},
    {"SPACES", "spaces", "-"},
    {"TOOLS", "tools", "all"},
    {"RATE", "rate", "-"},
    {"EXPIRES", "expires", "never"},
    {"STATE", "state", "-"},
    {"CREATED", "created", "-"},
    {"LAST USED", "last_used", "never"},
    {"MADE BY", "made_by", "-"},
    {"NOTE", "note", "-"},
};

static void key_cell(const struct ng_value *key, size_t column, struct buf *out)
{
    const char *name = key_columns[column].name;
    const struct ng_value *value = json_get(key, name);
    buf_clear(out);
    if (json_is(value, NG_TYPE_ARRAY)) {
        key_join(value, "", ",", out);
    } else if (strcmp(name, "run") == 0) {
        (void)buf_add_c(out, key_runs(key) ? "yes" : "no");
    } else if (value != NULL && strcmp(name, "rate") == 0) {
        double rate = json_double(value);
        (void)buf_printf(out, "%g/%s", rate < 1 ? rate * 60 : rate, rate < 1 ? "min" : "s");
    } else if (value != NULL) {
        (void)buf_add_str(out, value->text);
    } else {
        (void)buf_add_c(out, key_columns[column].absent);
    }
}

static void key_print_row(const struct ng_value *key, const size_t widths[KEY_COLUMNS],
                          struct buf *cell)
{
    for (size_t i = 0; i < KEY_COLUMNS; i++) {
        if (key == NULL) {
            buf_clear(cell);
            (void)buf_add_c(cell, key_columns[i].title);
        } else {
            key_cell(key, i, cell);
        }
        int pad = i + 1 < KEY_COLUMNS ? (int)(widths[i] - cell->len) + 2 : 0;
        printf("%s%*s", buf_cstr(cell), pad, "");
    }
    printf("\n");
}

static void key_print_table(const struct ng_value *list)
{
    size_t widths[KEY_COLUMNS];
    struct buf cell;
    buf_init(&cell, KEY_TEXT_BYTES);
    for (size_t i = 0; i < KEY_COLUMNS; i++) {
        widths[i] = strlen(key_columns[i].title);
        for (const struct ng_value *key = list->first; key != NULL; key = key->next) {
            key_cell(key, i, &cell);
            widths[i] = size_max(cell.len, widths[i]);
        }
    }
    key_print_row(NULL, widths, &cell);
    for (const struct ng_value *key = list->first; key != NULL; key = key->next) {
        key_print_row(key, widths, &cell);
    }
    buf_done(&cell);
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
    key_print_table(list);
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

static int key_revoke(struct key_command *command)
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
    return key_revoke_all(command, found, count);
}

/* ---- the command ---- */

static const struct key_verb {
    const char *name;
    const char *words;
    size_t word_count; /* behind it */
    bool adds;
    int (*run)(struct key_command *command);
} key_verbs[] = {
    {"add", "add NAME", 1, true, key_add},
    {"list", "list", 0, false, key_list},
    {"revoke", "revoke NAME|ID", 1, false, key_revoke},
};

static int key_check(const struct command_line *line, const struct key_verb *verb)
{
    if (line->word_count < 1 + verb->word_count) {
        return command_usage(line, "\"key %s\" needs a name: notegate key %s", verb->name,
                             verb->words);
    }
    if (line->word_count > 1 + verb->word_count) {
        return command_usage(line, "unexpected argument \"%s\" for \"key %s\"",
                             line->words[1 + verb->word_count], verb->name);
    }
    bool describes = line->role != NULL || line->mode != NULL || line->key_space_count > 0 ||
                     line->key_tool_count > 0 || line->rate != NULL || line->expires != NULL ||
                     line_has(line, LINE_RUN) || line->note != NULL;
    if (describes && !verb->adds) {
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
        return command_usage(line, "\"key\" does not know \"%s\"; it takes add, list or revoke",
                             line->words[0]);
    }
    int rc = key_check(line, verb);
    if (rc == COMMAND_OK) {
        if (!verb->adds) {
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
