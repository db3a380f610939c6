/* SPDX-License-Identifier: MIT */
/* command_text.c - help texts and the man page, printed from the tables of commands and
 * options. */
#include <string.h>

#include "command_options.h"
#include "core/base/text_choice.h"

/* The column at which the help of options begins. */
#define HELP_COLUMN 26
/* Columns of running text. */
#define HELP_WIDTH 92

static const char command_about[] =
    "notegate is a tool gateway for AI agents: it gives them shared, durable notebooks and "
    "file tools over REST and MCP. A write that was acknowledged is never lost.";

static const char command_sources[] =
    "Configuration comes from a YAML file (--config, else notegate/notegate.yaml in "
    "$XDG_CONFIG_HOME or ~/.config, else /etc/notegate/notegate.yaml), from the environment "
    "(NOTEGATE_ and the key in capitals, _ for .) and from flags; a flag overrides the "
    "environment, which overrides the file. `notegate check --help-config` lists every key.";

static const char command_directory[] =
    "One process owns a data directory at a time. If a gateway serves it, call, tools, log, "
    "show, diff, blame, undo, mcp, key, verify and backup talk to that gateway through its "
    "Unix socket; restore and a second serve refuse. If another command holds it, a command "
    "waits up to 5 seconds (mcp: 30).";

static const char command_exits[] = "0: success. 1: the command failed (a tool failed, a check "
                                    "found a fault). 2: the command line is wrong.";

/* One paragraph, its lines broken at spaces. The cursor stands at the indent already. */
static void help_paragraph(const char *text, size_t len, unsigned indent)
{
    size_t column = indent;
    size_t at = 0;
    while (at < len) {
        size_t word = 0;
        while (at + word < len && text[at + word] != ' ') {
            word++;
        }
        if (column > indent && column + 1 + word > HELP_WIDTH) {
            printf("\n%*s", (int)indent, "");
            column = indent;
        }
        if (column > indent) {
            putchar(' ');
            column++;
        }
        printf("%.*s", (int)word, text + at);
        column += word;
        at += word;
        while (at < len && text[at] == ' ') {
            at++;
        }
    }
    putchar('\n');
}

/* The next paragraph of a text; *text moves behind it. Absent: no more. */
static struct ng_str next_paragraph(const char **text)
{
    const char *end = strstr(*text, "\n\n");
    struct ng_str paragraph = ng_str_of(*text);
    if (end != NULL) {
        paragraph.len = (size_t)(end - *text);
    }
    *text += paragraph.len;
    *text += strspn(*text, "\n");
    return paragraph;
}

static void help_paragraphs(const char *text)
{
    while (*text != '\0') {
        struct ng_str paragraph = next_paragraph(&text);
        help_paragraph(paragraph.data, paragraph.len, 0);
        putchar('\n');
    }
}

static void help_option(const struct option_row *row)
{
    char label[64];
    int len = snprintf(label, sizeof(label), "  %c%c%s --%s%s%s", row->letter ? '-' : ' ',
                       row->letter ? row->letter : ' ', row->letter ? "," : " ", row->name,
                       text_if(row->argument, " "), text_or(row->argument, ""));
    size_t used = 0;
    if (len >= 0) {
        used = (size_t)len;
    }
    if (used + 2 > HELP_COLUMN) {
        printf("%s\n%*s", label, HELP_COLUMN, "");
    } else {
        printf("%s%*s", label, (int)(HELP_COLUMN - used), "");
    }
    help_paragraph(row->help, strlen(row->help), HELP_COLUMN);
}

static void help_options(unsigned options)
{
    printf("Options:\n");
    for (size_t i = 0; i < option_count; i++) {
        if ((option_table[i].group & (options | OPTION_ALWAYS)) != 0 &&
            option_table[i].help != NULL) {
            help_option(&option_table[i]);
        }
    }
}

static void help_whole(void)
{
    printf("Usage: notegate COMMAND [OPTIONS]\n\n");
    help_paragraphs(command_about);
    printf("Commands:\n");
    for (size_t i = 0; i < command_count; i++) {
        printf("  %-10s %s\n", command_table[i].name, command_table[i].summary);
    }
    putchar('\n');
    help_options(OPTION_CONFIG);
    putchar('\n');
    help_paragraphs(command_sources);
    help_paragraphs(command_directory);
    printf("Exit codes:\n  ");
    help_paragraph(command_exits, strlen(command_exits), 2);
    putchar('\n');
    printf("notegate COMMAND --help shows the help of one command.\n");
}

void command_print_help(const struct command *command)
{
    if (command == NULL) {
        help_whole();
        return;
    }
    printf("Usage: notegate %s [OPTIONS]%s%s\n\n%s.\n\n", command->name,
           text_if(command->words[0], " "), command->words, command->summary);
    help_paragraphs(command->details);
    help_options(command->options);
}

/* Text as troff wants it: hyphens that are meant, no line that begins with a control
 * character. */
static void man_text(const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        char c = text[i];
        bool begins = i == 0 || text[i - 1] == '\n';
        if (c == '\\') {
            printf("\\e");
        } else if (c == '-') {
            printf("\\-");
        } else {
            printf("%s%c", text_if(begins && (c == '.' || c == '\''), "\\&"), c);
        }
    }
}

static void man_paragraphs(const char *text)
{
    while (*text != '\0') {
        struct ng_str paragraph = next_paragraph(&text);
        printf(".PP\n");
        man_text(paragraph.data, paragraph.len);
        putchar('\n');
    }
}

static void man_options(unsigned groups)
{
    for (size_t i = 0; i < option_count; i++) {
        const struct option_row *row = &option_table[i];
        if ((row->group & groups) == 0 || row->help == NULL) {
            continue;
        }
        printf(".TP\n\\fB");
        if (row->letter) {
            printf("\\-%c\\fR, \\fB", row->letter);
        }
        printf("\\-\\-");
        man_text(row->name, strlen(row->name));
        printf("\\fR");
        if (row->argument) {
            printf(" \\fI%s\\fR", row->argument);
        }
        putchar('\n');
        man_text(row->help, strlen(row->help));
        putchar('\n');
    }
}

static void man_command(const struct command *command)
{
    printf(".SS notegate %s %s\n", command->name, command->words);
    man_text(command->summary, strlen(command->summary));
    printf(".\n");
    man_paragraphs(command->details);
    man_options(command->options & ~(unsigned)OPTION_CONFIG);
}

void command_print_man(void)
{
    printf(".TH NOTEGATE 1 \"\" \"notegate\" \"User Commands\"\n.SH NAME\n"
           "notegate \\- a self\\-hosted tool gateway for AI agents\n.SH SYNOPSIS\n"
           ".B notegate\n.I COMMAND\n[\\fIOPTIONS\\fR]\n.SH DESCRIPTION\n");
    man_text(command_about, strlen(command_about));
    putchar('\n');
    man_paragraphs(command_sources);
    man_paragraphs(command_directory);
    printf(".SH COMMANDS\n");
    for (size_t i = 0; i < command_count; i++) {
        man_command(&command_table[i]);
    }
    printf(".SH OPTIONS\nEvery command takes these.\n");
    man_options(OPTION_CONFIG | OPTION_ALWAYS);
    printf(".SH EXIT STATUS\n");
    man_text(command_exits, strlen(command_exits));
    printf(
        "\n.SH FILES\n.TP\n.I notegate.yaml\nThe configuration, in ~/.config/notegate or in "
        "/etc/notegate.\n.TP\n.I notegate.sock\nThe Unix socket of a serving gateway, in its "
        "data directory; its callers are the owner.\n");
}
