/* SPDX-License-Identifier: MIT */
/* command_completion.c - completion for bash and zsh, from the tables of commands and options.
 */
#include <stdio.h>
#include <string.h>

#include "command.h"
#include "command_options.h"
#include "core/base/str.h"
#include "core/base/text_choice.h"

/* The kind of an argument, by the word that stands for it in help. */
static const struct completion_words {
    const char *argument, *words;
} completion_words[] = {
    {"MODE", "ask edit agent"},
    {"ROLE", "reader writer admin"},
    {"auto|always|never", "auto always never"},
    {"FORMAT", "mcp openai openai-responses anthropic gemini"},
};

static bool completion_fits(const struct command *command, const struct option_row *row)
{
    return row->help != NULL && (row->group & (command->options | OPTION_ALWAYS)) != 0;
}

static bool is_files(const char *argument)
{
    return strcmp(argument, "FILE") == 0;
}

static bool is_folders(const char *argument)
{
    size_t len = strlen(argument);
    return len >= 3 && strcmp(argument + len - 3, "DIR") == 0;
}

static const char *words_of(const char *argument)
{
    for (size_t i = 0; i < NG_COUNT(completion_words); i++) {
        if (strcmp(argument, completion_words[i].argument) == 0) {
            return completion_words[i].words;
        }
    }
    return NULL;
}

/* "add NAME | list | ...": the words in small letters are what may be typed. */
static bool is_literal(struct ng_str word)
{
    for (size_t i = 0; i < word.len; i++) {
        if (word.data[i] < 'a' || word.data[i] > 'z') {
            return false;
        }
    }
    return word.len > 0;
}

static bool next_word(const char **rest, struct ng_str *ret)
{
    *rest += strspn(*rest, " |[]");
    ret->data = *rest;
    ret->len = strcspn(*rest, " |[]");
    *rest += ret->len;
    return ret->len > 0;
}

static bool takes_tool(const struct command *command)
{
    return strstr(command->words, "TOOL") != NULL ||
           (strcmp(command->name, "tools") == 0 && command->words[0] != '\0');
}

static bool takes_file(const struct command *command)
{
    return strstr(command->words, "FILE") != NULL || strstr(command->words, "MODULE") != NULL;
}

/* Literal words of a command, with a space between; how many. */
static size_t put_literals(const struct command *command, bool print)
{
    const char *rest = command->words;
    struct ng_str word;
    size_t count = 0;
    while (next_word(&rest, &word)) {
        if (is_literal(word)) {
            if (print) {
                printf("%s%.*s", text_if(count > 0, " "), (int)word.len, word.data);
            }
            count++;
        }
    }
    return count;
}

/* ---- bash ---- */

/* Options of one name may stand in the table for several commands. */
static bool is_first(size_t at)
{
    for (size_t i = 0; i < at; i++) {
        if (strcmp(option_table[i].name, option_table[at].name) == 0) {
            return false;
        }
    }
    return true;
}

/* "--config|-c" for each option whose argument is of this kind. */
static void bash_pattern(bool (*fits)(const char *argument), const char *then)
{
    size_t count = 0;
    for (size_t i = 0; i < option_count; i++) {
        const struct option_row *row = &option_table[i];
        if (row->help == NULL || row->argument == NULL || !fits(row->argument) ||
            !is_first(i)) {
            continue;
        }
        printf("%s--%s", count == 0 ? "    " : "|", row->name);
        if (row->letter != 0) {
            printf("|-%c", row->letter);
        }
        count++;
    }
    if (count > 0) {
        printf(")\n        %sreturn\n        ;;\n", then);
    }
}

static bool is_text(const char *argument)
{
    return !is_files(argument) && !is_folders(argument) && words_of(argument) == NULL;
}

static void bash_values(void)
{
    printf("    case $last in\n");
    bash_pattern(is_files, "COMPREPLY=($(compgen -f -- \"$word\"))\n        ");
    bash_pattern(is_folders, "COMPREPLY=($(compgen -d -- \"$word\"))\n        ");
    for (size_t i = 0; i < option_count; i++) {
        const struct option_row *row = &option_table[i];
        const char *words = NULL;
        if (row->argument != NULL) {
            words = words_of(row->argument);
        }
        if (words != NULL && row->help != NULL && is_first(i)) {
            printf("    --%s)\n        COMPREPLY=($(compgen -W \"%s\" -- \"$word\"))\n"
                   "        return\n        ;;\n",
                   row->name, words);
        }
    }
    bash_pattern(is_text, "");
    printf("    esac\n");
}

static void bash_command(const struct command *command)
{
    printf("    %s)\n        options=\"", command->name);
    size_t count = 0;
    for (size_t i = 0; i < option_count; i++) {
        if (completion_fits(command, &option_table[i])) {
            printf("%s--%s", count++ > 0 ? " " : "", option_table[i].name);
        }
    }
    printf("\"\n        words=\"");
    (void)put_literals(command, true);
    printf("\"\n");
    if (takes_tool(command)) {
        printf("        [[ $first -eq 1 && $word != -* ]] && words=$(__notegate_tools)\n");
    }
    if (takes_file(command)) {
        printf("        files=1\n");
    }
    printf("        ;;\n");
}

static void print_bash(void)
{
    printf(
        "# SPDX-License-Identifier: MIT\n"
        "# bash completion for notegate, printed by `notegate --help-completion bash`.\n"
        "# shellcheck shell=bash disable=SC2207\n\n"
        "__notegate_tools() {\n"
        "    \"${COMP_WORDS[0]}\" tools --format openai 2>/dev/null | grep -o "
        "'\"function\":{\"name\":\"[^\"]*\"' |\n"
        "        cut -d '\"' -f 6\n}\n\n"
        "_notegate() {\n"
        "    local word=${COMP_WORDS[COMP_CWORD]} last=${COMP_WORDS[COMP_CWORD - 1]} command= "
        "options= words= files= first=0 i\n"
        "    local commands=\"");
    for (size_t i = 0; i < command_count; i++) {
        printf("%s%s", text_if(i > 0, " "), command_table[i].name);
    }
    printf("\"\n    COMPREPLY=()\n"
           "    for ((i = 1; i < COMP_CWORD; i++)); do\n"
           "        if [[ \" $commands \" == *\" ${COMP_WORDS[i]} \"* ]]; then\n"
           "            command=${COMP_WORDS[i]}\n"
           "            first=$((COMP_CWORD - i))\n"
           "            break\n        fi\n    done\n");
    bash_values();
    printf("    case $command in\n");
    for (size_t i = 0; i < command_count; i++) {
        bash_command(&command_table[i]);
    }
    printf("    *)\n        options=\"--help --version\"\n        words=$commands\n        ;;\n"
           "    esac\n"
           "    if [[ $word == -* ]]; then\n"
           "        COMPREPLY=($(compgen -W \"$options\" -- \"$word\"))\n"
           "    elif [[ -n $files ]]; then\n"
           "        COMPREPLY=($(compgen -f -- \"$word\"))\n"
           "    elif [[ -z $command || $first -eq 1 ]]; then\n"
           "        COMPREPLY=($(compgen -W \"$words\" -- \"$word\"))\n"
           "    fi\n}\n\ncomplete -o filenames -F _notegate notegate\n");
}

/* ---- zsh ---- */

/* Within single quotes, and without what would end it there: `ends`. */
static void zsh_text(const char *text, const char *ends)
{
    for (; *text != '\0'; text++) {
        if (*text == '\'') {
            printf("'\\''");
        } else if (*text == '\\' || strchr(ends, *text) != NULL) {
            printf("\\%c", *text);
        } else {
            putchar(*text);
        }
    }
}

static void zsh_argument(const char *argument)
{
    const char *words = words_of(argument);
    printf(":");
    zsh_text(argument, ":");
    if (is_files(argument)) {
        printf(":_files");
    } else if (is_folders(argument)) {
        printf(":_files -/");
    } else if (words != NULL) {
        printf(":(%s)", words);
    } else {
        printf(": ");
    }
}

static void zsh_option(const struct option_row *row)
{
    printf(" \\\n            '*");
    if (row->letter != 0) {
        printf("'{-%c,--%s}'[", row->letter, row->name);
    } else {
        printf("--%s[", row->name);
    }
    zsh_text(row->help, "[]");
    printf("]");
    if (row->argument != NULL) {
        zsh_argument(row->argument);
    }
    printf("'");
}

static void zsh_command(const struct command *command)
{
    printf("    %s)\n        _arguments -s", command->name);
    for (size_t i = 0; i < option_count; i++) {
        if (completion_fits(command, &option_table[i])) {
            zsh_option(&option_table[i]);
        }
    }
    if (put_literals(command, false) > 0) {
        printf(" \\\n            '1:what:(");
        (void)put_literals(command, true);
        printf(")'");
    }
    if (takes_tool(command)) {
        printf(" \\\n            '1:tool:{compadd -- ${(f)\"$(__notegate_tools)\"}}'");
    }
    if (takes_file(command)) {
        printf(" \\\n            '1:file:_files'");
    }
    printf("\n        ;;\n");
}

static void print_zsh(void)
{
    printf("#compdef notegate\n# SPDX-License-Identifier: MIT\n"
           "# zsh completion for notegate, printed by `notegate --help-completion zsh`.\n\n"
           "__notegate_tools() {\n"
           "    notegate tools --format openai 2>/dev/null | grep -o "
           "'\"function\":{\"name\":\"[^\"]*\"' | cut -d '\"' -f 6\n}\n\n"
           "_notegate() {\n    local -a commands\n    commands=(\n");
    for (size_t i = 0; i < command_count; i++) {
        printf("        '%s:", command_table[i].name);
        zsh_text(command_table[i].summary, "");
        printf("'\n");
    }
    printf(
        "    )\n    if ((CURRENT == 2)); then\n        _describe command commands\n"
        "        return\n    fi\n    shift words\n    ((CURRENT--))\n    case $words[1] in\n");
    for (size_t i = 0; i < command_count; i++) {
        zsh_command(&command_table[i]);
    }
    printf("    esac\n}\n\n_notegate \"$@\"\n");
}

int command_print_completion(const char *shell)
{
    if (strcmp(shell, "bash") == 0) {
        print_bash();
    } else if (strcmp(shell, "zsh") == 0) {
        print_zsh();
    } else {
        command_error("no completion for the shell \"%s\"; there is one for bash and zsh",
                      shell);
        return COMMAND_USAGE;
    }
    return COMMAND_OK;
}
