/* SPDX-License-Identifier: MIT */
/* gateway_options.c - the gateway's own configuration keys. Defaults that depend on the machine
 * are filled in by config_load(). */
#include "gateway_options.h"

#define KIB INT64_C(1024)
#define MIB (1024 * KIB)
#define GIB (1024 * MIB)
#define SECOND INT64_C(1000)
#define HOUR (3600 * SECOND)
#define DAY (24 * HOUR)

const struct ng_option gateway_options[] = {
    {
        .name = "listen",
        .fallback = "127.0.0.1:8420",
        .help = "Address and port to listen on; port 0 picks one, IPv6 as [::1]:8420.",
    },
    {
        .name = "data_dir",
        .help = "Folder of everything the gateway keeps; made with mode 0700.",
    },
    {
        .name = "roots",
        .type = NG_OPTION_LIST,
        .help =
            "Folders that file tools may use, each PATH or SPACE:/PATH (space `shared` where "
            "none is named). They must be there; only the default is made, with mode 0700.",
    },
    {
        .name = "user",
        .help = "User that `notegate serve` becomes when root starts it, before modules are "
                "loaded and the data directory is opened.",
    },
    {
        .name = "documents",
        .fallback = "sqlite",
        .help = "Backend that keeps documents: sqlite, memory, or a module of that name.",
    },
    {
        .name = "journal",
        .fallback = "documents",
        .help = "Where the journal is kept: documents (beside them) or redis.",
    },
    {
        .name = "journal.keep",
        .type = NG_OPTION_DURATION,
        .fallback = "0",
        .max = 36500 * DAY,
        .help = "Days, memories and references stay for so long; 0 keeps all for good.",
    },
    {
        .name = "journal.record_calls",
        .type = NG_OPTION_BOOL,
        .fallback = "false",
        .help = "Whether every call becomes a memory entry of the journal.",
    },
    {
        .name = "mcp.session_timeout",
        .type = NG_OPTION_DURATION,
        .fallback = "1h",
        .min = SECOND,
        .max = 30 * DAY,
        .help = "An MCP session that is not used for so long ends.",
    },
    {
        .name = "tls.certificate",
        .help = "File with the certificate chain (PEM); with tls.key it turns on HTTPS.",
    },
    {
        .name = "tls.key",
        .help = "File with the private key of the certificate (PEM).",
    },
    {
        .name = "plugins",
        .type = NG_OPTION_LIST,
        .help =
            "Plugins to load: names or paths of modules. None named: all that are installed "
            "but conformance. +NAME adds to that.",
    },
    {
        .name = "plugin_path",
        .type = NG_OPTION_LIST,
        .help = "Folders in which plugins are looked for; none: the installed one.",
    },
    {
        .name = "auth",
        .fallback = "auto",
        .choices = "auto on off",
        .help = "Who needs a key. auto: while no key exists nobody on this machine who runs as "
                "the gateway's user, everyone once one does; on: everyone; off: nobody "
                "(loopback only).",
    },
    {
        .name = "allowed_hosts",
        .type = NG_OPTION_LIST,
        .help = "Host names that requests may ask for, beside the listening address and "
                "localhost: a name, *.NAME for every name below it, an address, or a range of "
                "addresses as in 10.0.0.0/8.",
    },
    {
        .name = "allowed_origins",
        .type = NG_OPTION_LIST,
        .help = "Web origins that may send requests, beside the gateway's own; "
                "https://*.NAME is every name below it.",
    },
    {
        .name = "shutdown_timeout",
        .type = NG_OPTION_DURATION,
        .fallback = "10s",
        .max = HOUR,
        .help = "How long calls that are running may go on when the gateway stops.",
    },
    {
        .name = "timezone",
        .fallback = "UTC",
        .help = "Time zone of daily lists, as in Europe/Berlin.",
    },
    {
        .name = "history.keep",
        .type = NG_OPTION_DURATION,
        .fallback = "90d",
        .max = 36500 * DAY,
        .help = "Every revision is kept for so long, then one a day; 0 keeps all for good.",
    },
    {
        .name = "limits.body",
        .type = NG_OPTION_SIZE,
        .fallback = "4MiB",
        .min = 1,
        .max = 128 * MIB,
        .help = "Largest body of a request.",
    },
    {
        .name = "limits.depth",
        .type = NG_OPTION_INT,
        .fallback = "128",
        .min = 1,
        .max = 1000,
        .help = "Deepest nesting of JSON; the outermost value is at 1.",
    },
    {
        .name = "limits.connections",
        .type = NG_OPTION_INT,
        .fallback = "4096",
        .min = 1,
        .max = 1000000,
        .help = "Open connections; further ones are closed at once. One agent has half of "
                "them; when nearly all are taken, waiting ones of the agent with the most are "
                "closed.",
    },
    {
        .name = "limits.streams",
        .type = NG_OPTION_INT,
        .fallback = "2000",
        .max = 1000000,
        .help = "Open event streams; further ones get 503.",
    },
    {
        .name = "limits.stream_backlog",
        .type = NG_OPTION_INT,
        .fallback = "10000",
        .min = 1,
        .max = 10000000,
        .help = "Events that a stream may be behind before it is closed.",
    },
    {
        .name = "limits.queue",
        .type = NG_OPTION_INT,
        .fallback = "1024",
        .min = 1,
        .max = 1000000,
        .help = "Calls waiting for a worker; further ones get 503.",
    },
    {
        .name = "limits.workers",
        .type = NG_OPTION_INT,
        .min = 1,
        .max = 1024,
        .help =
            "Threads for work that may block: four times the cores where not set. One agent "
            "has at most half of them.",
    },
    {
        .name = "limits.buffered",
        .type = NG_OPTION_SIZE,
        .fallback = "256MiB",
        .min = 1,
        .max = 1024 * GIB,
        .help =
            "Memory for the bodies, files, results and subscriptions of all calls together; "
            "one agent has half of it for bodies, files and subscriptions.",
    },
    {
        .name = "limits.call_timeout",
        .type = NG_OPTION_DURATION,
        .fallback = "120s",
        .min = 1,
        .max = DAY,
        .help = "Longest a call may take; a tool with a timeout of its own keeps that.",
    },
    {
        .name = "limits.result",
        .type = NG_OPTION_SIZE,
        .fallback = "8MiB",
        .min = 1,
        .max = 128 * MIB,
        .help = "Largest result; larger images and files become resource links.",
    },
    {
        .name = "log.level",
        .fallback = "info",
        .choices = "error warning info debug",
        .help = "Least important entries that are logged.",
    },
    {
        .name = "log.format",
        .choices = "text json",
        .help = "Form of the log on stderr: text on a terminal, else json, where not set.",
    },
    {
        .name = "log.access",
        .type = NG_OPTION_BOOL,
        .fallback = "false",
        .help = "Whether each HTTP request becomes a line of the log (never its query).",
    },
    {
        .name = "log.audit",
        .type = NG_OPTION_BOOL,
        .help = "Whether each call that changes something, tries to or is refused becomes a "
                "line of the log: who, from where, what, which document and revision, "
                "outcome. Where not set: once the gateway has a key.",
    },
};

const size_t gateway_option_count = NG_COUNT(gateway_options);
