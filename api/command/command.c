/* SPDX-License-Identifier: MIT */
/* command.c - the option table and its parser, messages, the configuration of a command. */
#include "command.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/client/attach.h"
#include "command_options.h"
#include "core/base/log.h"
#include "core/base/minmax.h"
#include "core/base/str.h"
#include "core/base/text/edit_distance.h"
#include "core/base/text_choice.h"
#include "core/config/config.h"

/* Memory for what a command line adds up to. */
#define COMMAND_ARENA_MAX ((size_t)4 * 1024 * 1024)
/* A word this near to a known one is taken for a slip. */
#define COMMAND_NEAR 2

static bool command_add_set(struct command_line *line, const char *key, const char *value)
{
    if (line->set_count == COMMAND_SETS_MAX) {
        return false;
    }
    struct ng_str text = arena_printf(&line->arena, "%s%s%s", key, text_if(key[0], "="), value);
    if (text.data == NULL) {
        return false;
    }
    line->sets[line->set_count++] = text.data;
    return true;
}

static bool option_config(struct command_line *line, const char *value)
{
    line->config_file = value;
    return true;
}

static bool option_set(struct command_line *line, const char *value)
{
    return command_add_set(line, "", value);
}

static bool option_listen(struct command_line *line, const char *value)
{
    return command_add_set(line, "listen", value);
}

static bool option_data_dir(struct command_line *line, const char *value)
{
    return command_add_set(line, "data_dir", value);
}

static bool option_user(struct command_line *line, const char *value)
{
    return command_add_set(line, "user", value);
}

static bool option_root(struct command_line *line, const char *value)
{
    struct ng_str roots = arena_printf(&line->arena, "%s%s%s", text_or(line->roots, ""),
                                       text_if(line->roots, ","), value);
    line->roots = roots.data;
    return roots.data != NULL;
}

static bool option_agent(struct command_line *line, const char *value)
{
    line->agent = value;
    return true;
}

static bool option_space(struct command_line *line, const char *value)
{
    line->space = value;
    return true;
}

static bool option_mode(struct command_line *line, const char *value)
{
    line->mode = value;
    return true;
}

static bool option_key_space(struct command_line *line, const char *value)
{
    if (line->key_space_count == KEY_SPACES_MAX) {
        return false;
    }
    line->key_spaces[line->key_space_count++] = value;
    return true;
}

static bool option_key_tool(struct command_line *line, const char *value)
{
    if (line->key_tool_count == KEY_TOOLS_MAX) {
        return false;
    }
    line->key_tools[line->key_tool_count++] = value;
    return true;
}

static bool option_role(struct command_line *line, const char *value)
{
    line->role = value;
    return true;
}

static bool option_rate(struct command_line *line, const char *value)
{
    line->rate = value;
    return true;
}

static bool option_expires(struct command_line *line, const char *value)
{
    line->expires = value;
    return true;
}

static bool option_note(struct command_line *line, const char *value)
{
    line->note = value;
    return true;
}

static bool option_format(struct command_line *line, const char *value)
{
    line->format = value;
    return true;
}

static bool option_help_completion(struct command_line *line, const char *value)
{
    line->help_completion = value;
    return true;
}

const struct option_row option_table[] = {
    {"agent", 0, "NAME", OPTION_CALLER, false, 0, option_agent,
     "name of the calling agent (default: local)"},
    {"space", 0, "NAME", OPTION_CALLER, false, 0, option_space,
     "the space to work in (default: that of the tool: the agent's own, or shared)"},
    {"mode", 0, "MODE", OPTION_CALLER, false, 0, option_mode,
     "mode of the call: ask, edit or agent (default: agent)"},
    {"space", 0, "NAME", OPTION_KEY, false, 0, option_key_space,
     "a space the key may use (repeatable; default: the agent's own, ~NAME, and shared)"},
    {"role", 0, "ROLE", OPTION_KEY, false, 0, option_role,
     "reader, writer or admin (default: writer)"},
    {"mode", 0, "MODE", OPTION_KEY, false, 0, option_mode,
     "the highest mode: ask, edit or agent (default: agent)"},
    {"run", 0, NULL, OPTION_KEY, false, LINE_RUN, NULL,
     "the key may run code: cells run with all rights of the gateway's user"},
    {"tool", 0, "TOOL", OPTION_KEY, false, 0, option_key_tool,
     "a tool the key may use (repeatable; default: all)"},
    {"rate", 0, "N/s", OPTION_KEY, false, 0, option_rate,
     "calls a second, in bursts of twice that; also N/min (default: no limit)"},
    {"expires", 0, "WHEN", OPTION_KEY, false, 0, option_expires,
     "30d or 12h from now, 2027-01-31 (its last day, UTC) or 2027-01-31T12:00:00Z "
     "(default: never)"},
    {"note", 0, "TEXT", OPTION_KEY, false, 0, option_note,
     "purpose of the key: one line, shown by `key list`"},
    {"all", 0, NULL, OPTION_KEY, false, LINE_ALL, NULL, "list also revoked and expired keys"},
    {"force", 0, NULL, OPTION_KEY, false, LINE_FORCE, NULL,
     "revoke also the last key in force"},
    {"json", 0, NULL, OPTION_JSON, false, LINE_JSON, NULL, "answer in JSON, for scripts"},
    {"format", 0, "FORMAT", OPTION_FORMAT, false, 0, option_format,
     "mcp, openai, openai-responses, anthropic or gemini (default: mcp)"},
    {"help-config", 0, NULL, OPTION_HELP_CONFIG, false, LINE_HELP_CONFIG, NULL,
     "print every configuration key with its type, default, present value and help"},
    {"files", 0, NULL, OPTION_BACKUP, false, LINE_FILES, NULL,
     "also back up the files of the roots"},
    {"force", 0, NULL, OPTION_FORCE, false, LINE_FORCE, NULL, "overwrite an existing file"},
    {"user", 0, "NAME", OPTION_SERVE, false, 0, option_user,
     "if started as root: the user to become before anything is opened"},
    {"config", 'c', "FILE", OPTION_CONFIG, false, 0, option_config, "the configuration file"},
    {"set", 's', "KEY=VALUE", OPTION_CONFIG, false, 0, option_set,
     "set a configuration key, lists by commas (repeatable)"},
    {"listen", 'l', "ADDR:PORT", OPTION_CONFIG, false, 0, option_listen,
     "address and port to listen on; port 0 picks a free port"},
    {"data-dir", 'd', "DIR", OPTION_CONFIG, false, 0, option_data_dir, "folder of the data"},
    {"root", 'r', "[SPACE:]DIR", OPTION_CONFIG, false, 0, option_root,
     "a folder that file tools may use (repeatable)"},
    {"help", 'h', NULL, OPTION_ALWAYS, false, LINE_HELP, NULL, "print this help"},
    {"version", 'V', NULL, OPTION_ALWAYS, false, LINE_VERSION, NULL, "print the version"},
    {"help-man", 0, NULL, OPTION_ALWAYS, true, LINE_HELP_MAN, NULL,
     "print the man page's source"},
    {"help-completion", 0, "SHELL", OPTION_ALWAYS, true, 0, option_help_completion,
     "print the completion for bash or zsh"},
};
const size_t option_count = NG_COUNT(option_table);

/* ---- messages ---- */

/* ---- parsing ---- */

static bool option_fits(const struct command_line *line, const struct option_row *row)
{
    unsigned groups = OPTION_CONFIG;
    if (line->command != NULL) {
        groups = line->command->options;
    }
    return (row->group & (groups | OPTION_ALWAYS)) != 0;
}

/* Of those of one name the one that the command takes. */
static const struct option_row *option_find(const struct command_line *line, struct ng_str name)
{
    const struct option_row *found = NULL;
    for (size_t i = 0; i < option_count; i++) {
        if (str_is(name, option_table[i].name) &&
            (found == NULL || option_fits(line, &option_table[i]))) {
            found = &option_table[i];
        }
    }
    return found;
}

static const struct option_row *option_find_letter(char letter)
{
    for (size_t i = 0; i < option_count; i++) {
        if (option_table[i].letter == letter) {
            return &option_table[i];
        }
    }
    return NULL;
}

/* How many letters of a word may be wrong for another to be meant: with too many, "--port"
 * would mean "--root". */
static size_t command_near(struct ng_str word)
{
    size_t third = 1;
    if (word.len >= 3) {
        third = word.len / 3;
    }
    return size_min(third, COMMAND_NEAR);
}

static int option_port(const struct command_line *line, const char *option)
{
    return command_usage(line, "unknown option \"%s\"; use --listen 127.0.0.1:PORT", option);
}

static int option_unknown(const struct command_line *line, struct ng_str name)
{
    if (str_is(name, "port")) {
        return option_port(line, "--port");
    }
    const struct option_row *best = NULL;
    size_t near = command_near(name);
    size_t best_distance = near + 1;
    for (size_t i = 0; i < option_count; i++) {
        const struct option_row *row = &option_table[i];
        size_t distance = edit_distance(name, ng_str_of(row->name), near);
        if (distance < best_distance && !row->hidden && option_fits(line, row)) {
            best = row;
            best_distance = distance;
        }
    }
    if (best != NULL) {
        return command_usage(line, "unknown option \"--%.*s\"; did you mean \"--%s\"?",
                             (int)name.len, name.data, best->name);
    }
    return command_usage(line, "unknown option \"--%.*s\"", (int)name.len, name.data);
}

static const struct command *command_find(struct ng_str name)
{
    for (size_t i = 0; i < command_count; i++) {
        if (str_is(name, command_table[i].name)) {
            return &command_table[i];
        }
    }
    return NULL;
}

static int command_unknown(const struct command_line *line, const char *name)
{
    const struct command *best = NULL;
    if (strcmp(name, "status") == 0) {
        return command_usage(line, "unknown command \"status\"; `notegate check` checks the "
                                   "configuration and data, GET /readyz a running gateway");
    }
    size_t near = command_near(ng_str_of(name));
    size_t best_distance = near + 1;
    for (size_t i = 0; i < command_count; i++) {
        size_t distance =
            edit_distance(ng_str_of(name), ng_str_of(command_table[i].name), near);
        if (distance < best_distance) {
            best = &command_table[i];
            best_distance = distance;
        }
    }
    if (best != NULL) {
        return command_usage(line, "unknown command \"%s\"; did you mean \"%s\"?", name,
                             best->name);
    }
    return command_usage(line, "unknown command \"%s\"", name);
}

/* The option's value: behind its '=', or the next argument. */
static int option_take(struct command_line *line, const struct option_row *row,
                       const char *attached, char **next, bool *ret_used_next)
{
    const char *value = attached;
    *ret_used_next = false;
    if (row->argument == NULL && attached != NULL) {
        return command_usage(line, "--%s takes no value, but \"%s\" was given", row->name,
                             attached);
    }
    if (row->argument != NULL && attached == NULL) {
        value = *next;
        *ret_used_next = true;
        if (value == NULL) {
            return command_usage(line, "--%s needs a value: --%s %s", row->name, row->name,
                                 row->argument);
        }
    }
    if (!option_fits(line, row)) {
        return command_usage(line, "\"%s\" does not take --%s",
                             line->command == NULL ? "notegate" : line->command->name,
                             row->name);
    }
    line->flags |= row->flag;
    if (row->set != NULL && !row->set(line, value)) {
        return command_usage(line, "too many options, or too long ones, at --%s", row->name);
    }
    return COMMAND_OK;
}

static int option_parse(struct command_line *line, const char *word, char **next,
                        bool *ret_used_next)
{
    if (word[1] != '-') {
        const struct option_row *row = option_find_letter(word[1]);
        *ret_used_next = false;
        if (row == NULL && word[1] == 'p') {
            return option_port(line, "-p");
        }
        if (row == NULL) {
            return command_usage(line, "unknown option \"-%c\"", word[1]);
        }
        return option_take(line, row, word[2] == '\0' ? NULL : word + 2, next, ret_used_next);
    }
    const char *equals = strchr(word, '=');
    size_t len;
    if (equals == NULL) {
        len = strlen(word + 2);
    } else {
        len = (size_t)(equals - word - 2);
    }
    struct ng_str name = {word + 2, len};
    const struct option_row *row = option_find(line, name);
    *ret_used_next = false;
    if (row == NULL) {
        return option_unknown(line, name);
    }
    return option_take(line, row, equals == NULL ? NULL : equals + 1, next, ret_used_next);
}

/* Checked here so that the message names the option, whether a running gateway serves the call
 * or this process does. */
static int command_check_caller(const struct command_line *line)
{
    static const char names[] = "1 to 64 of the characters A-Z a-z 0-9 . _ @ -";
    enum ng_mode mode;
    if (line->agent != NULL && !call_name_valid(ng_str_of(line->agent))) {
        return command_usage(line, "--agent is \"%s\", it must be %s", line->agent, names);
    }
    /* ~NAME is an agent's own. */
    if (line->space != NULL &&
        !call_name_valid(ng_str_of(line->space + (line->space[0] == '~')))) {
        return command_usage(line, "--space is \"%s\", it must be %s", line->space, names);
    }
    if (!attach_parse_mode(line->mode, &mode)) {
        return command_usage(line, "--mode is \"%s\", it must be ask, edit or agent",
                             line->mode);
    }
    return COMMAND_OK;
}

static int command_check_words(const struct command_line *line)
{
    const struct command *command = line->command;
    if (line_has(line, LINE_HELP | LINE_VERSION | LINE_HELP_MAN) ||
        line->help_completion != NULL) {
        return COMMAND_OK;
    }
    if (command == NULL) {
        return command_usage(line,
                             "no command; one of serve, mcp, call, tools, key, check, verify, "
                             "backup, restore is needed");
    }
    if (line->word_count < command->min_words) {
        return command_usage(line, "\"%s\" needs %s", command->name, command->words);
    }
    if (line->word_count > command->max_words) {
        return command_usage(line, "unexpected argument \"%s\" for \"%s\"",
                             line->words[command->max_words], command->name);
    }
    return command_check_caller(line);
}

/* The first word that is no option is the command; options of one command only come behind
 * it. */
static int command_parse_words(int argc, char **argv, struct command_line *line)
{
    bool only_words = false;
    for (int i = 1; i < argc; i++) {
        const char *word = argv[i];
        bool used_next = false;
        int rc = COMMAND_OK;
        if (!only_words && strcmp(word, "--") == 0) {
            only_words = true;
        } else if (!only_words && word[0] == '-' && word[1] != '\0') {
            rc = option_parse(line, word, &argv[i + 1], &used_next);
        } else if (line->command == NULL && strcmp(word, "help") == 0) {
            line->flags |= LINE_HELP; /* the next word is the command */
        } else if (line->command == NULL && strcmp(word, "version") == 0) {
            line->flags |= LINE_VERSION;
        } else if (line->command == NULL) {
            line->command = command_find(ng_str_of(word));
            if (line->command == NULL) {
                rc = command_unknown(line, word);
            } else {
                rc = COMMAND_OK;
            }
        } else {
            line->words[line->word_count++] = word;
        }
        if (rc != COMMAND_OK) {
            return rc;
        }
        i += used_next;
    }
    return COMMAND_OK;
}

int command_parse(int argc, char **argv, struct command_line *ret)
{
    memset(ret, 0, sizeof(*ret));
    arena_init(&ret->arena, COMMAND_ARENA_MAX);
    size_t count = 1;
    if (argc >= 1) {
        count = (size_t)argc;
    }
    ret->words = arena_zalloc(&ret->arena, count * sizeof(*ret->words));
    int rc = COMMAND_OK;
    if (ret->words == NULL) {
        command_error("the command line is too long");
        rc = COMMAND_USAGE;
    }
    if (rc == COMMAND_OK) {
        rc = command_parse_words(argc, argv, ret);
    }
    if (rc == COMMAND_OK && ret->roots != NULL && !command_add_set(ret, "roots", ret->roots)) {
        rc = command_usage(ret, "too many options, or too long ones, at --root");
    }
    if (rc == COMMAND_OK) {
        rc = command_check_words(ret);
    }
    if (rc != COMMAND_OK && ret->arena.oom) {
        command_error("out of memory; the command line is correct");
        rc = COMMAND_FAILED;
    }
    return rc;
}

void command_line_done(struct command_line *line)
{
    arena_done(&line->arena);
}
