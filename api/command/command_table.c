/* SPDX-License-Identifier: MIT */
/* command_table.c - the commands: name, words, help. Parser, help and man page read it. */
#include "commands.h"

#define WORDS_MAX 100000

const struct command command_table[] = {
    {
        .name = "serve",
        .words = "",
        .summary = "Run the gateway",
        .details =
            "Prints `notegate VERSION listening on http://ADDR:PORT` on stdout as soon as it "
            "answers (https:// where tls.certificate and tls.key are set). `--listen "
            "127.0.0.1:0` picks a free port. The gateway also listens on "
            "notegate.sock in its data directory, for its owner and for the other commands.\n\n"
            "SIGTERM and SIGINT stop it: no new calls are taken, those running are finished "
            "(up "
            "to shutdown_timeout), everything is on disk, exit code 0. A second signal does "
            "not "
            "wait for calls. SIGHUP reads the configuration again, takes over what can be "
            "changed while running and reports what cannot.",
        .options = OPTION_CONFIG | OPTION_SERVE,
        .run = command_serve,
    },
    {
        .name = "mcp",
        .words = "",
        .summary = "Speak MCP on stdin and stdout",
        .details =
            "For clients that start their servers themselves. Nothing else is written to "
            "stdout. End of input ends it. Where a gateway serves the data directory, "
            "every message goes through that gateway.",
        .options = OPTION_CONFIG | OPTION_CALLER,
        .run = command_mcp,
    },
    {
        .name = "call",
        .words = "TOOL [KEY=VALUE... | JSON | -]",
        .summary = "Call one tool and print its result",
        .details =
            "Arguments are KEY=VALUE words, typed by the tool's schema (numbers and booleans "
            "as "
            "they are, arrays as JSON or by commas, strings as they are), one JSON object, or "
            "- "
            "to read a JSON object from stdin. With --json the answer is printed as the "
            "gateway's "
            "JSON, also where the tool failed. `notegate call TOOL --help` tells the "
            "arguments of a tool.\n\n"
            "A value is kept as it is, \\n in it too. Line breaks are given by the shell, "
            "newStr=$'one\\ntwo', or in JSON from stdin: notegate call TOOL - "
            "<arguments.json\n\n"
            "Exit codes: 0, 1 where the tool failed (message and hint on stderr), 2 where the "
            "command line makes no sense.",
        .options = OPTION_CONFIG | OPTION_CALLER | OPTION_JSON,
        .min_words = 1,
        .max_words = WORDS_MAX,
        .run = command_call,
    },
    {
        .name = "tools",
        .words = "[TOOL]",
        .summary = "List the tools, or tell the arguments of one",
        .details =
            "Lists what can be called now, as a gateway that serves this configuration lists "
            "it: without what a plugin has nothing to work on for, and without tools for an "
            "attached notebook while none is attached. Where this user has no data directory "
            "yet, or it cannot be opened, all that the modules have: nothing is made.\n\n"
            "On a terminal the tools are listed by plugin. Elsewhere, and with --format or "
            "--json, their definitions are printed in the format that MCP or a model vendor's "
            "API wants, ready to paste. With TOOL the arguments of that tool are told, with "
            "types and an example.",
        .options = OPTION_CONFIG | OPTION_FORMAT | OPTION_JSON,
        .max_words = 1,
        .run = command_tools,
    },
    {
        .name = "key",
        .words = "add NAME | list | revoke NAME|ID",
        .summary = "Add, list and revoke the keys that agents come with",
        .details =
            "`key add NAME` makes a key for the agent NAME, who may have several, and prints "
            "it "
            "alone on stdout; it is kept only as a hash and cannot be shown again. What it may "
            "do comes from the options. With the first key everyone needs one, except on the "
            "Unix socket.\n\n"
            "`key list` shows the keys in force, with --all also revoked and expired ones; "
            "when each was used last (to a minute), who made it, and its --note.\n\n"
            "`key revoke` ends one key by its id, or all of an agent by its name, at once. The "
            "last one in force only with --force: a gateway on a public address then shuts "
            "everybody out and does not start again, one on loopback is open to the gateway's "
            "own user again. A key that has expired still keeps it closed.\n\n"
            "Exit codes: 0, 1 where there is no such key or it is the last one, 2 where the "
            "command line makes no sense.",
        .options = OPTION_CONFIG | OPTION_KEY | OPTION_JSON,
        .min_words = 1,
        .max_words = 2,
        .run = command_key,
    },
    {
        .name = "check",
        .words = "",
        .summary = "Check configuration, modules, backends and permissions",
        .details =
            "One line each; exit code 1 if one of them fails. Nothing is changed, except "
            "that the data directory is made where it is missing.",
        .options = OPTION_CONFIG | OPTION_JSON | OPTION_HELP_CONFIG,
        .run = command_check,
    },
    {
        .name = "verify",
        .words = "",
        .summary = "Verify the integrity of the data",
        .details =
            "Computes every revision again and compares it, its events and its "
            "references. One line for each fault; exit code 1 if there is one. Prints the "
            "data directory that it read, and how much is in it. A directory without a "
            "store is refused.",
        .options = OPTION_CONFIG | OPTION_JSON,
        .run = command_verify,
        .needs_data = true,
    },
    {
        .name = "backup",
        .words = "FILE | -",
        .summary = "Write an online copy of all documents",
        .details =
            "One consistent state, taken while writes go on, in a format that every backend "
            "can restore: lines of JSON with hashes. It holds all documents with their "
            "history, their events and the journal where documents keep it; not a journal in "
            "redis. With --files it also holds the files below the configured roots, each as "
            "it is when it is read; links and plugins' own folders are left out.\n\n"
            "FILE appears whole or not at all, with mode 0600, and never in the place of a "
            "file that exists, unless --force is given. With - the archive goes to stdout, "
            "and what it holds is told on stderr; keep it only where the exit code is 0.\n\n"
            "Prints the data directory that it read, and how much is in it. A directory "
            "without a store is refused.",
        .options = OPTION_CONFIG | OPTION_BACKUP | OPTION_FORCE | OPTION_JSON,
        .min_words = 1,
        .max_words = 1,
        .run = command_backup,
        .needs_data = true,
    },
    {
        .name = "restore",
        .words = "FILE",
        .summary = "Fill an empty store from a backup",
        .details =
            "The whole file is verified (header, every line, hash and counts) before "
            "anything is kept. Refuses while a gateway serves the data directory and "
            "where the store is not empty.\n\n"
            "Files of a backup with --files go into the configured roots: the one of the "
            "same space and path, else the one of the same place among its space's. A "
            "file that is there with other content is never replaced: the restore is "
            "refused and names it.",
        .options = OPTION_CONFIG | OPTION_JSON,
        .min_words = 1,
        .max_words = 1,
        .run = command_restore,
    },
    {
        .name = "test-backend",
        .words = "MODULE [KEY=VALUE...]",
        .summary = "Run the contract suite on a documents backend",
        .details =
            "For authors of backends. MODULE is a path, or the name of an installed backend; "
            "KEY=VALUE words are its configuration. Each store is made in a new temporary "
            "folder, "
            "as data_dir; `{store}` in a value is what no other store of the run is called.\n\n"
            "One line for each case. Each runs in a process of its own, so one that crashes or "
            "hangs fails alone. Cases of optional members that the module does not offer are "
            "skipped, and name the member. Exit code 0 where none fails, else 1.",
        .min_words = 1,
        .max_words = 8,
        .run = command_test_backend,
    },
};
const size_t command_count = NG_COUNT(command_table);
