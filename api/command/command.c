/* SPDX-License-Identifier: MIT */
/* command.c - the option table and its parser, messages, the configuration of a command. */
#include "command.h"

#include <stddef.h>
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
#include "core/dispatch/run_id.h"

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

static bool option_root(struct command_line *line, const char *value)
{
    struct ng_str roots = arena_printf(&line->arena, "%s%s%s", text_or(line->roots, ""),
                                       text_if(line->roots, ","), value);
    line->roots = roots.data;
    return roots.data != NULL;
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

static bool option_key_no_tool(struct command_line *line, const char *value)
{
    if (line->key_no_tool_count == KEY_TOOLS_MAX) {
        return false;
    }
    line->key_no_tools[line->key_no_tool_count++] = value;
    return true;
}

static bool option_change(struct command_line *line, const char *value)
{
    struct ng_str changes =
        arena_printf(&line->arena, "%s%s%s", text_or(line->find.changes, ""),
                     text_if(line->find.changes, ","), value);
    line->find.changes = changes.data;
    return changes.data != NULL;
}

#define MEMBER(name) offsetof(struct command_line, name)

const struct option_row option_table[] = {
    {"agent", 0, "NAME", OPTION_CALLER, 0, MEMBER(agent), NULL, NULL,
     "name of the calling agent (default: local)"},
    {"space", 0, "NAME", OPTION_CALLER, 0, MEMBER(space), NULL, NULL,
     "the space to work in (default: that of the tool: the agent's own, or shared)"},
    {"mode", 0, "MODE", OPTION_CALLER, 0, MEMBER(mode), NULL, NULL,
     "mode of the call: ask, edit or agent (default: agent)"},
    {"run", 0, "ID", OPTION_WORK, 0, MEMBER(run_id), NULL, NULL,
     "the run that the calls belong to: a label of one piece of work"},
    {"space", 0, "NAME", OPTION_KEY, 0, 0, NULL, option_key_space,
     "a space the key may use; a call that names none works in the first (repeatable; default: "
     "the agent's own, ~NAME, and shared)"},
    {"role", 0, "ROLE", OPTION_KEY, 0, MEMBER(role), NULL, NULL,
     "reader, writer or admin (default: writer)"},
    {"mode", 0, "MODE", OPTION_KEY, 0, MEMBER(mode), NULL, NULL,
     "the highest mode: ask, edit or agent (default: agent)"},
    {"run", 0, NULL, OPTION_KEY, LINE_RUN, 0, NULL, NULL,
     "the key may run code: cells run with all rights of the gateway's user"},
    {"no-run", 0, NULL, OPTION_KEY, LINE_NO_RUN, 0, NULL, NULL,
     "`key set`: the key may not run code any more"},
    {"restore", 0, NULL, OPTION_KEY, LINE_RESTORE, 0, NULL, NULL,
     "the key may restore checkpoints and delete those of other agents, as an admin may"},
    {"no-restore", 0, NULL, OPTION_KEY, LINE_NO_RESTORE, 0, NULL, NULL,
     "`key set`: the key may not do that any more"},
    {"tool", 0, "TOOL", OPTION_KEY, 0, 0, NULL, option_key_tool,
     "a tool the key may use, or a glob like notebook_* (repeatable; default: all)"},
    {"no-tool", 0, "TOOL", OPTION_KEY, 0, 0, NULL, option_key_no_tool,
     "a tool or glob that the key may not use, whatever --tool says (repeatable)"},
    {"rate", 0, "N/s", OPTION_KEY, 0, MEMBER(rate), NULL, NULL,
     "calls a second, in bursts of twice that; also N/min (default: no limit)"},
    {"expires", 0, "WHEN", OPTION_KEY, 0, MEMBER(expires), NULL, NULL,
     "30d or 12h from now, 2027-01-31 (its last day, UTC) or 2027-01-31T12:00:00Z "
     "(default: never)"},
    {"note", 0, "TEXT", OPTION_KEY, 0, MEMBER(note), NULL, NULL,
     "purpose of the key: one line of up to 200 characters, shown by `key list`"},
    {"all", 0, NULL, OPTION_KEY, LINE_ALL, 0, NULL, NULL, "list also revoked and expired keys"},
    {"force", 0, NULL, OPTION_KEY, LINE_FORCE, 0, NULL, NULL,
     "revoke also the last key in force"},
    {"agent", 0, "NAME", OPTION_AUDIT, 0, MEMBER(find.agent), NULL, NULL,
     "entries of this agent; several by commas, as of all but ids and paths"},
    {"space", 0, "NAME", OPTION_AUDIT, 0, MEMBER(find.space), NULL, NULL,
     "entries of this space"},
    {"run", 0, "ID", OPTION_AUDIT, 0, MEMBER(find.run), NULL, NULL, "entries of this run"},
    {"tool", 0, "TOOL", OPTION_AUDIT, 0, MEMBER(find.tool), NULL, NULL, "entries of this tool"},
    {"action", 0, "ACTION", OPTION_AUDIT, 0, MEMBER(find.action), NULL, NULL,
     "entries with a change of this kind: created, updated, deleted and such"},
    {"collection", 0, "NAME", OPTION_AUDIT, 0, MEMBER(find.collection), NULL, NULL,
     "entries with a document of this collection"},
    {"id", 0, "ID", OPTION_AUDIT, 0, MEMBER(find.id), NULL, NULL,
     "entries with this document; a final * is any end, \\* the character itself"},
    {"path", 0, "PATH", OPTION_AUDIT, 0, MEMBER(find.path), NULL, NULL,
     "entries with this file; a final * as of an id"},
    {"outcome", 0, "CODE", OPTION_AUDIT, 0, MEMBER(find.outcome), NULL, NULL,
     "entries with this outcome: ok, recovered, or an error code"},
    {"since", 0, "WHEN", OPTION_AUDIT, 0, MEMBER(find.since), NULL, NULL,
     "entries after this point: #1234 (a change), a time, a day, 30m, 2h or 7d ago"},
    {"until", 0, "WHEN", OPTION_AUDIT, 0, MEMBER(find.until), NULL, NULL,
     "entries up to this point"},
    {"number", 'n', "N", OPTION_AUDIT, 0, MEMBER(find.number), NULL, NULL,
     "`audit list`: so many entries at most (default: 20)"},
    {"ocsf", 0, NULL, OPTION_AUDIT, LINE_OCSF, 0, NULL, NULL,
     "as events of OCSF 1.8.0 (API Activity, class 6003)"},
    {"checkpoint", 0, "FILE", OPTION_AUDIT, 0, MEMBER(find.checkpoint), NULL, NULL,
     "`audit verify`: a checkpoint that was kept elsewhere; - is stdin"},
    {"agent", 0, "NAME", OPTION_FILTER, 0, MEMBER(find.agent), NULL, NULL,
     "changes by this agent; several by commas, as for the next four options"},
    {"run", 0, "ID", OPTION_FILTER, 0, MEMBER(find.run), NULL, NULL, "changes in this run"},
    {"tool", 0, "TOOL", OPTION_FILTER, 0, MEMBER(find.tool), NULL, NULL,
     "changes with this tool"},
    {"action", 0, "ACTION", OPTION_FILTER, 0, MEMBER(find.action), NULL, NULL,
     "changes of this kind: created, updated, deleted and such"},
    {"collection", 0, "NAME", OPTION_FILTER, 0, MEMBER(find.collection), NULL, NULL,
     "changes of documents of this collection"},
    {"space", 0, "NAME", OPTION_LOG, 0, MEMBER(find.space), NULL, NULL,
     "changes in this space"},
    {"id", 0, "ID", OPTION_FILTER, 0, MEMBER(find.id), NULL, NULL,
     "changes of this document; a final * is any end, \\* the character itself"},
    {"since", 0, "WHEN", OPTION_FILTER, 0, MEMBER(find.since), NULL, NULL,
     "changes after this point: #1234, a time, a day, 30m, 2h or 7d ago"},
    {"until", 0, "WHEN", OPTION_FILTER, 0, MEMBER(find.until), NULL, NULL,
     "changes up to this point"},
    {"number", 'n', "N", OPTION_LOG, 0, MEMBER(find.number), NULL, NULL,
     "so many changes or runs at most (default: all on a terminal, else 20)"},
    {"runs", 0, NULL, OPTION_LOG, LINE_RUNS, 0, NULL, NULL,
     "a line for each run: its agents, the number of its changes, their first and last time"},
    {"oneline", 0, NULL, OPTION_LOG, LINE_ONELINE, 0, NULL, NULL, "a line for each change"},
    {"stat", 0, NULL, OPTION_STAT, LINE_STAT, 0, NULL, NULL,
     "how many lines each change, or each comparison, added and removed"},
    {"patch", 'p', NULL, OPTION_LOG, LINE_PATCH, 0, NULL, NULL, "the lines that it changed"},
    {"at", 0, "POINT", OPTION_AT, 0, MEMBER(find.at), NULL, NULL,
     "the point, instead of behind an @; then each @ belongs to the document"},
    {"space", 0, "NAME", OPTION_AT, 0, MEMBER(find.space), NULL, NULL,
     "the space of a notebook that is named alone (default: the caller's), or of the changes"},
    {"lines", 'L', "A,B", OPTION_LINES, 0, MEMBER(find.lines), NULL, NULL,
     "only the lines A to B; A is from there on, ,B is up to there"},
    {"space", 0, "NAME", OPTION_UNDO, 0, MEMBER(find.space), NULL, NULL,
     "changes in this space"},
    {"change", 0, "SEQ", OPTION_UNDO, 0, 0, NULL, option_change,
     "the change with this number, as `log` shows it; further numbers may follow (repeatable)"},
    {"continue", 0, "ID", OPTION_UNDO, 0, MEMBER(find.again), NULL, NULL,
     "do the rest of an undo that was cut off"},
    {"list", 0, NULL, OPTION_UNDO, LINE_LIST, 0, NULL, NULL,
     "list the undos that were cut off"},
    {"dry-run", 0, NULL, OPTION_UNDO, LINE_DRY_RUN, 0, NULL, NULL,
     "only show what would be taken back"},
    {"yes", 'y', NULL, OPTION_UNDO, LINE_YES, 0, NULL, NULL, "take it back without a question"},
    {"as", 0, "NAME", OPTION_HISTORY, 0, MEMBER(agent), NULL, NULL,
     "name of the calling agent (default: local)"},
    {"color", 0, "auto|always|never", OPTION_HISTORY, 0, MEMBER(find.color), NULL, NULL,
     "colours (default: auto, on a terminal without NO_COLOR)"},
    {"no-pager", 0, NULL, OPTION_HISTORY, LINE_NO_PAGER, 0, NULL, NULL,
     "print on the terminal without a pager"},
    {"json", 0, NULL, OPTION_JSON, LINE_JSON, 0, NULL, NULL, "answer in JSON, for scripts"},
    {"format", 0, "FORMAT", OPTION_FORMAT, 0, MEMBER(format), NULL, NULL,
     "mcp, openai, openai-responses, anthropic or gemini (default: mcp)"},
    {"help-config", 0, NULL, OPTION_HELP_CONFIG, LINE_HELP_CONFIG, 0, NULL, NULL,
     "print every configuration key with its type, default, present value and help"},
    {"files", 0, NULL, OPTION_BACKUP, LINE_FILES, 0, NULL, NULL,
     "also back up the files of the roots and of folders of notes"},
    {"only", 0, "URI", OPTION_RESTORE, 0, MEMBER(only), NULL, NULL,
     "restore only this entry, notebook, note or file, into a store that may have others"},
    {"force", 0, NULL, OPTION_FORCE, LINE_FORCE, 0, NULL, NULL, "overwrite an existing file"},
    {"user", 0, "NAME", OPTION_SERVE, 0, 0, "user", NULL,
     "if started as root: the user to become before anything is opened"},
    {"config", 'c', "FILE", OPTION_CONFIG, 0, MEMBER(config_file), NULL, NULL,
     "the configuration file"},
    {"set", 's', "KEY=VALUE", OPTION_CONFIG | OPTION_SET, 0, 0, "", NULL,
     "set a configuration key, lists by commas (repeatable)"},
    {"listen", 'l', "ADDR:PORT", OPTION_CONFIG, 0, 0, "listen", NULL,
     "address and port to listen on; port 0 picks a free port"},
    {"data-dir", 'd', "DIR", OPTION_CONFIG, 0, 0, "data_dir", NULL, "folder of the data"},
    {"root", 'r', "[SPACE:]DIR", OPTION_CONFIG, 0, 0, NULL, option_root,
     "a folder that file tools may use (repeatable)"},
    {"help", 'h', NULL, OPTION_ALWAYS, LINE_HELP, 0, NULL, NULL, "print this help"},
    {"version", 'V', NULL, OPTION_ALWAYS, LINE_VERSION, 0, NULL, NULL, "print the version"},
    {"help-man", 0, NULL, OPTION_ALWAYS, LINE_HELP_MAN, 0, NULL, NULL, NULL},
    {"help-completion", 0, "SHELL", OPTION_ALWAYS, 0, MEMBER(help_completion), NULL, NULL,
     NULL},
};
const size_t option_count = NG_COUNT(option_table);

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

static const struct option_row *option_find_letter(const struct command_line *line, char letter)
{
    const struct option_row *found = NULL;
    for (size_t i = 0; i < option_count; i++) {
        if (option_table[i].letter == letter &&
            (found == NULL || option_fits(line, &option_table[i]))) {
            found = &option_table[i];
        }
    }
    return found;
}

/* How many letters of a word may be wrong for another to be meant: with too many, "--port"
 * would mean "--root". */
static size_t command_near(struct ng_str word)
{
    return size_min(size_max(word.len / 3, 1), COMMAND_NEAR);
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
        if (distance < best_distance && row->help != NULL && option_fits(line, row)) {
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
    if (strcmp(name, "history") == 0) {
        return command_usage(line, "unknown command \"history\"; `notegate log` lists changes");
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
    if (row->member != 0) {
        memcpy((char *)line + row->member, &value, sizeof(value));
    }
    if ((row->key != NULL && !command_add_set(line, row->key, value)) ||
        (row->add != NULL && !row->add(line, value))) {
        return command_usage(line, "too many options, or too long ones, at --%s", row->name);
    }
    return COMMAND_OK;
}

static int option_parse(struct command_line *line, const char *word, char **next,
                        bool *ret_used_next)
{
    if (word[1] != '-') {
        const struct option_row *row = option_find_letter(line, word[1]);
        *ret_used_next = false;
        if (word[1] == 'p' && !option_fits(line, row)) {
            return option_port(line, "-p");
        }
        if (row == NULL) {
            return command_usage(line, "unknown option \"-%c\"", word[1]);
        }
        return option_take(line, row, word[2] == '\0' ? NULL : word + 2, next, ret_used_next);
    }
    const char *equals = strchr(word, '=');
    struct ng_str name = {word + 2, strcspn(word + 2, "=")};
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
    char text[RUN_ID_TEXT_MAX];
    enum ng_mode mode;
    if (line->agent != NULL && !call_name_valid(ng_str_of(line->agent))) {
        bool is_as = line->command != NULL && (line->command->options & OPTION_HISTORY) != 0;
        return command_usage(line, "--%s is \"%s\", it must be %s", is_as ? "as" : "agent",
                             line->agent, names);
    }
    /* ~NAME is an agent's own. */
    if (line->space != NULL &&
        !call_name_valid(ng_str_of(line->space + (line->space[0] == '~')))) {
        return command_usage(line, "--space is \"%s\", it must be %s", line->space, names);
    }
    if (line->run_id != NULL && run_id_check("--run", ng_str_of(line->run_id), text) != NG_OK) {
        return command_usage(line, "%s", text);
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
                             "no command; one of serve, mcp, call, tools, log, show, diff, "
                             "blame, undo, key, check, verify, audit, backup, restore is "
                             "needed");
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
    ret->words = arena_zalloc(&ret->arena, (size_t)(argc + 1) * sizeof(*ret->words));
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
