/* SPDX-License-Identifier: MIT */
/* command_table.c - the commands: name, words, help. Parser, help and man page read it. */
#include "api/audit/audit_command.h"
#include "api/history/history_command.h"
#include "commands.h"

#define WORDS_MAX 100000
#define HISTORY_OPTIONS (OPTION_CONFIG | OPTION_HISTORY | OPTION_JSON)
#define HISTORY_NAMES                                                                          \
    "T is the name of a notebook, SPACE/COLLECTION/ID (everything behind the second / is the " \
    "ID), the path of a file (it begins with /, ./ or ../), or a URI "                         \
    "notegate://SPACE/KIND/ID."
#define HISTORY_POINTS                                                                         \
    "P is a revision (7), a change (#1234: just after it), a time (2026-01-28T14:30:00Z), a "  \
    "day (its beginning), how long ago (30m, 2h, 7d), or now. What is behind the last @ is P " \
    "if it has one of these forms, else it belongs to T; with --at, each @ belongs to T."

const struct command command_table[] = {
    {
        .name = "serve",
        .words = "",
        .summary = "Run the gateway",
        .details =
            "Prints `notegate VERSION listening on http://ADDR:PORT` on stdout as soon as it "
            "answers (https:// where tls.certificate and tls.key are set). `--listen "
            "127.0.0.1:0` picks a free port. The gateway also listens on notegate.sock in its "
            "data directory, for its owner and for the other commands.\n\nSIGTERM and SIGINT "
            "stop it: /readyz is 503 and calls are still taken for shutdown_delay, then it "
            "refuses new calls, finishes running calls (up to shutdown_timeout), syncs all "
            "data to the disk and ends with exit code 0. A second signal does not wait. SIGHUP "
            "reloads the configuration: values that can change while it runs take effect, and "
            "the others are reported.",
        .options = OPTION_CONFIG | OPTION_SERVE,
        .run = command_serve,
    },
    {
        .name = "mcp",
        .words = "",
        .summary = "Speak MCP on stdin and stdout",
        .details =
            "For clients that start their servers themselves. Nothing else is written "
            "to stdout. The end of input ends it. If a gateway serves the data "
            "directory, every message goes through that gateway. Otherwise this process is "
            "the gateway, and other commands on this data directory go through it; when it "
            "ends, another mcp takes its place.",
        .options = OPTION_CONFIG | OPTION_CALLER | OPTION_WORK,
        .run = command_mcp,
    },
    {
        .name = "call",
        .words = "TOOL [KEY=VALUE... | JSON | -]",
        .summary = "Call one tool and print its result",
        .details =
            "Arguments are KEY=VALUE words, typed by the tool's schema (numbers and booleans "
            "as they are, arrays as JSON or by commas, strings as they are), one JSON object, "
            "or - to read a JSON object from stdin. With --json the answer is printed as the "
            "gateway's JSON, also if the tool failed. `notegate call TOOL --help` shows the "
            "arguments of a tool.\n\nA value is taken literally, including \\n. For line "
            "breaks use the shell, newStr=$'one\\ntwo', or JSON from stdin: notegate call TOOL "
            "- <arguments.json\n\nExit codes: 0; 1 if the tool failed (message and hint on "
            "stderr); 2 if the command line is wrong.",
        .options = OPTION_CONFIG | OPTION_CALLER | OPTION_WORK | OPTION_JSON,
        .min_words = 1,
        .max_words = WORDS_MAX,
        .run = command_call,
    },
    {
        .name = "tools",
        .words = "[TOOL]",
        .summary = "List the tools, or show the arguments of one",
        .details = "Lists the tools that can be called now, as a gateway with this "
                   "configuration lists them: without tools of plugins that are not set up, "
                   "and without tools for an attached notebook while none is attached. If this "
                   "user has no store yet, tries it with a temporary one in memory, and makes "
                   "none. If such a gateway does not start, says so and lists all tools of the "
                   "modules.\n\nOn a terminal the tools are listed by "
                   "plugin. Elsewhere, and with --format or --json, their definitions are "
                   "printed in the format of MCP or of a model vendor's API, ready to paste. "
                   "With TOOL, shows the arguments of that tool, with types and an example.",
        .options = OPTION_CONFIG | OPTION_FORMAT | OPTION_JSON,
        .max_words = 1,
        .run = command_tools,
    },
    {
        .name = "whoami",
        .words = "",
        .summary = "Print the facts about the caller",
        .details = "Prints the answer of GET /v1/me as JSON: agent, role, mode, the right to "
                   "run code, spaces with the default, file roots, folders of notes, version, "
                   "and the kinds of resources. If this user has no data directory yet, or it "
                   "cannot be opened, tells what the configuration says, without folders of "
                   "notes, and creates nothing.",
        .options = OPTION_CONFIG | OPTION_CALLER,
        .run = command_whoami,
    },
    {
        .name = "log",
        .words = "[T]",
        .summary = "Show who changed what, the newest change first",
        .details =
            "Shows the changes of all documents that the caller may see, or those of T: agent, "
            "time, run, tool and the first line that was put in. On a terminal it shows all, "
            "through a pager, and fetches them as they are read; elsewhere 20, or -n "
            "N.\n\n" HISTORY_NAMES " A name alone means the notebooks of that name in all "
            "spaces.\n\nWith --runs the newest runs, which --agent, --run, --collection, "
            "--space, --since and --until select.\n\nThe pager is $NOTEGATE_PAGER, $PAGER or "
            "less. With --json each page is the object of the tool history_log, on a line.\n\n"
            "Exit codes: 0; 1 if the gateway refused it; 2 if the command line is wrong.",
        .options = HISTORY_OPTIONS | OPTION_FILTER | OPTION_LOG | OPTION_STAT,
        .max_words = 1,
        .run = history_command_log,
        .needs_data = true,
    },
    {
        .name = "show",
        .words = "T[@P]",
        .summary = "Show a document as it was at a point",
        .details = "Prints the content on stdout. On a terminal, a header says who made this "
                   "revision, when and in which run; control characters are shown as "
                   "\\u001b.\n\n" HISTORY_NAMES " " HISTORY_POINTS
                   "\n\nWith --json each part of the document is the object of the tool "
                   "history_read, on a line. Exit codes: 0; 1 if there is no such document at "
                   "this point; 2 if the command line is wrong.",
        .options = HISTORY_OPTIONS | OPTION_AT,
        .min_words = 1,
        .max_words = 1,
        .run = history_command_show,
        .needs_data = true,
    },
    {
        .name = "diff",
        .words = "[T[@A[..B]]]",
        .summary = "Compare a document at two points, or documents before and after changes",
        .details =
            "T alone shows what the newest revision changed, T@A what changed from A until "
            "now, T@A..B from A to B, and T@..B what the revision B changed.\n\nWith --run, "
            "--agent, or --space without T: each document that the selected changes changed "
            "(of them T, if it is there), from before the first to after the last of these "
            "changes. The other options select fewer changes. Other changes "
            "between them are part of the comparison, and a line tells how many there "
            "are.\n\n" HISTORY_NAMES " A and B are points as P here: " HISTORY_POINTS
            "\n\nExit codes: 0; 1 if there is no such document at a point, or no such run; 2 "
            "if the command line is wrong.",
        .options = HISTORY_OPTIONS | OPTION_AT | OPTION_FILTER | OPTION_STAT,
        .max_words = 1,
        .run = history_command_diff,
        .needs_data = true,
    },
    {
        .name = "blame",
        .words = "T[@P]",
        .summary = "Show who wrote each line of a document",
        .details =
            "Prints before each line the revision that put it in, the agent, the run, the "
            "tool, the time (UTC) and the number of the line.\n\n" HISTORY_NAMES
            " " HISTORY_POINTS
            "\n\nA line whose revision was thinned out (history.keep) has the next one "
            "that is kept. With --json each part is the object of the tool history_blame, "
            "on a line. Exit codes: 0; 1 if there is no such document at this point; 2 if "
            "the command line is wrong.",
        .options = HISTORY_OPTIONS | OPTION_AT | OPTION_LINES,
        .min_words = 1,
        .max_words = 1,
        .run = history_command_blame,
        .needs_data = true,
    },
    {
        .name = "undo",
        .words = "--run ID | --agent NAME --since WHEN | --change SEQ... | --continue ID | "
                 "--list",
        .summary = "Take back the changes of a run, or of an agent, in all documents",
        .details =
            "Takes back the selected changes, and keeps what others changed since. Where both "
            "changed the same lines, the document is a conflict and stays as it is. The other "
            "options select fewer changes. Changes of other agents need the role admin.\n\n"
            "First a preview: a line for each document, up to 200, conflicts first, with what "
            "is there now and what was there before the changes; then the question. What "
            "changes between the preview and the answer is not taken back. Where it cannot "
            "ask, it needs --yes, or --dry-run for the preview alone. With --json it prints "
            "the object of the tool history_undo.\n\nAn undo is a run of its own, undo-..., "
            "which `notegate undo --run` takes back. --continue does the rest of one that was "
            "cut off.\n\nExit codes: 0; 1 if there are conflicts, or the gateway refused it; "
            "2 if the command line is wrong.",
        .options = HISTORY_OPTIONS | OPTION_FILTER | OPTION_UNDO,
        .max_words = WORDS_MAX,
        .run = history_command_undo,
        .needs_data = true,
    },
    {
        .name = "key",
        .words = "add NAME | set ID | pause ID | resume ID | list | revoke NAME|ID",
        .summary = "Add, change, list and revoke the keys of agents",
        .details =
            "`key add NAME` makes a key for the agent NAME and prints it alone on stdout. Only "
            "its hash is stored, so it cannot be shown again. An agent may have several keys. "
            "The options set the rights of the key. Once a first key exists, every caller "
            "needs one, except on the Unix socket.\n\n`key set` changes what its options name, "
            "and nothing else. An empty value sets the default of a new key: `--expires ''` is "
            "never, `--rate ''` no limit, `--no-tool ''` no tool. ID may be the name of an "
            "agent "
            "that has one key.\n\n`key pause` refuses a key and ends its sessions and streams "
            "until `key resume`. All changes hold within a second, in every gateway on the "
            "same "
            "database.\n\n`key list` shows the active and the paused keys, with --all also "
            "revoked and expired ones: the time of last use (to a minute), the creator, and "
            "the "
            "--note.\n\n`key revoke` revokes one key by its id, or all keys "
            "of an agent by its name, at once. The last active key is revoked only with "
            "--force: then a gateway on a public address refuses all callers and does not "
            "start again, and a gateway on loopback is open to its own user again. An expired "
            "or paused key still keeps it closed.\n\nExit codes: 0; 1 if there is no such key "
            "or "
            "it is the last one; 2 if the command line is wrong, or `key set` names no change.",
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
            "Prints one line per check; exit code 1 if one of them fails. Makes no "
            "store: without one a start is tried with a temporary data directory. Beside "
            "a running gateway, prints one `difference` line for each key whose value "
            "in that gateway differs from the one that this command read, with both "
            "sources; they are no failure.",
        .options = OPTION_CONFIG | OPTION_JSON | OPTION_HELP_CONFIG,
        .run = command_check,
    },
    {
        .name = "verify",
        .words = "",
        .summary = "Verify the integrity of the data",
        .details =
            "Computes every revision again and compares it, its events and its references. "
            "Prints one line per fault; exit code 1 if there is one. Prints the data directory "
            "that it read and the amount of data in it. Refuses a directory without a store.",
        .options = OPTION_CONFIG | OPTION_JSON,
        .run = command_verify,
        .needs_data = true,
    },
    {
        .name = "audit",
        .words = "list | export | verify | redact NAME",
        .summary = "Read, verify, export and redact the audit log",
        .details =
            "The log is in the folder audit of the data directory; it is read there, also "
            "while a gateway writes it.\n\n`audit list` shows the newest entries that the "
            "options name, the newest first. `audit export` prints all of them as lines of "
            "JSON, the oldest first.\n\n`audit verify` computes every hash again, up to the "
            "signature of the checkpoint, and names the first bad entry. With --checkpoint it "
            "also checks that the log extends that checkpoint: only this detects a log that "
            "was rewritten with the key.\n\n`audit redact NAME` removes what tells an "
            "agent, address, client, space or id from the log for good; NAME may also be the "
            "~ name that entries have for it. Entries and proofs do not change, and the "
            "redaction is an entry.\n\nExit codes: 0; 1 if the log is not whole, or there is "
            "none; 2 if the command line is wrong.",
        .options = OPTION_CONFIG | OPTION_AUDIT | OPTION_JSON,
        .min_words = 1,
        .max_words = 2,
        .run = audit_command,
    },
    {
        .name = "backup",
        .words = "FILE | -",
        .summary = "Write an online copy of all documents",
        .details = "One consistent state, taken while writes continue, in a format that every "
                   "backend can restore: lines of JSON with hashes. It holds all documents "
                   "with their history, their events and the journal if documents store it; "
                   "not a journal in redis. With --files it also holds the files below the "
                   "configured roots and the registered folders of notes, each in its state at "
                   "the time of the read; links are left out. Without --files one line names "
                   "the folders that are left out.\n\nFILE appears complete or not at all, "
                   "with mode 0600, and does not replace an existing file without --force. "
                   "With - the archive goes to stdout and the summary to stderr; keep the "
                   "archive only if the exit code is 0.\n\nPrints the data directory that it "
                   "read and the amount of data in it. Refuses a directory without a store.",
        .options = OPTION_CONFIG | OPTION_BACKUP | OPTION_FORCE | OPTION_JSON,
        .min_words = 1,
        .max_words = 1,
        .run = command_backup,
        .needs_data = true,
    },
    {
        .name = "restore",
        .words = "FILE | -",
        .summary = "Fill an empty store from a backup, or restore one document or file",

        .details =
            "The whole file is verified (header, every line, hash and counts) before "
            "anything is stored. Refuses while a gateway serves the data directory and "
            "if the store is not empty.\n\nFiles of a backup with --files go into the "
            "configured roots: the root of the same space and path, otherwise the root "
            "at the same position in its space. Registered folders of notes go into those "
            "of `opennotes.notebooks` in the same way. An existing file with other content is "
            "never replaced: the restore is refused and names it.\n\nWith --only the store "
            "may have data. URI is that of `resources/list`: notegate://SPACE/KIND/ID, where "
            "the ID of a file or a note is its path. A document comes back as one new "
            "revision with the newest content of the backup (?revision=N: an earlier one); its "
            "other revisions stay in the backup. What exists is not replaced: the restore is "
            "refused.\n\nWith - the archive comes from stdin, and is in a temporary file "
            "(TMPDIR, else /tmp) until it is restored.",
        .options = OPTION_CONFIG | OPTION_JSON | OPTION_RESTORE,
        .min_words = 1,
        .max_words = 1,
        .run = command_restore,
    },
    {
        .name = "test-backend",
        .words = "MODULE [KEY=VALUE...]",
        .summary = "Run the contract suite on a documents backend",
        .details = "For authors of backends. MODULE is a path, or the name of an installed "
                   "backend; KEY=VALUE words are its configuration. Each store gets a new "
                   "temporary folder as data_dir; `{store}` in a value becomes a name that is "
                   "unique in the run.\n\nPrints one line per case. Each case runs in its own "
                   "process, so a case that crashes or hangs fails alone. Cases of optional "
                   "members that the module does not offer are skipped, and name the member. "
                   "Exit code 0 if no case fails, otherwise 1.",
        .min_words = 1,
        .max_words = 8,
        .run = command_test_backend,
    },
    {
        .name = "test-plugin",
        .words = "MODULE CASES.json",
        .summary = "Call the tools of a plugin and compare the answers",
        .details =
            "For authors of plugins. MODULE is a path, or the name of an installed plugin. It "
            "runs alone in a private gateway with a temporary data directory, which is removed "
            "at the end. No configuration file and no NOTEGATE_ variable is read; --set sets "
            "options of the plugin, and --set plugins=NAME loads another plugin too.\n\n"
            "CASES.json is an array of cases, which are called in order, in one store. A case "
            "has the members name, tool and expect, and may have args, agent, space, role and "
            "mode. \"expect\" has one of: result, the answer as JSON (objects may have further "
            "members); text, the whole text; error, the code of the failure, and with it "
            "message, a part of its message.\n\nPrints `ok NAME` for each case, or `FAILED "
            "NAME` with the expected and the actual answer, and a count as the last line. Exit "
            "codes: 0 if all cases passed; 1 if a case failed or the module cannot be loaded; "
            "2 if the command line or CASES.json is wrong.",
        .options = OPTION_SET,
        .min_words = 2,
        .max_words = 2,
        .run = command_test_plugin,
    },
};
const size_t command_count = NG_COUNT(command_table);
