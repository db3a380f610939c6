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
        .help = "Folder of all data of the gateway; created with mode 0700.",
    },
    {
        .name = "roots",
        .type = NG_OPTION_LIST,
        .help =
            "Folders that file tools may use, each PATH or SPACE:/PATH (default space: "
            "`shared`). They must exist; only the default folder is created, with mode 0700.",
    },
    {
        .name = "user",
        .help = "User that `notegate serve` becomes when root starts it, before modules are "
                "loaded and the data directory is opened.",
    },
    {
        .name = "documents",
        .fallback = "sqlite",
        .help = "Backend of the documents: sqlite, memory, or the name of a module.",
    },
    {
        .name = "journal",
        .fallback = "documents",
        .help = "Storage of the journal: documents (beside the documents) or redis.",
    },
    {
        .name = "journal.keep",
        .type = NG_OPTION_DURATION,
        .fallback = "0",
        .max = 36500 * DAY,
        .help = "How long days, memories and references are kept; 0 keeps all.",
    },
    {
        .name = "journal.record_calls",
        .type = NG_OPTION_BOOL,
        .fallback = "false",
        .help = "true: every call becomes a memory entry of the journal.",
    },
    {
        .name = "mcp.session_timeout",
        .type = NG_OPTION_DURATION,
        .fallback = "1h",
        .min = SECOND,
        .max = 30 * DAY,
        .help = "Idle time after which an MCP session ends.",
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
        .help = "Plugins to load: names or paths of modules. Default: all installed modules "
                "except conformance. +NAME adds a module to the default.",
    },
    {
        .name = "plugin_path",
        .type = NG_OPTION_LIST,
        .help = "Folders to search for plugins. Default: the installed folder.",
    },
    {
        .name = "auth",
        .fallback = "auto",
        .choices = "auto on off",
        .help = "Callers that need a key. auto: all callers once a key exists; before that, "
                "callers on this machine that run as the gateway's user need none. on: all "
                "callers. off: no caller (loopback only).",
    },
    {
        .name = "allowed_hosts",
        .type = NG_OPTION_LIST,
        .help = "Host names that requests may use, besides the listening address and "
                "localhost: a name, *.NAME for every name below it, an address, or a range of "
                "addresses, for example 10.0.0.0/8.",
    },
    {
        .name = "allowed_origins",
        .type = NG_OPTION_LIST,
        .help = "Web origins that may send requests, besides the gateway's own; https://*.NAME "
                "is every name below it.",
    },
    {
        .name = "shutdown_timeout",
        .type = NG_OPTION_DURATION,
        .fallback = "10s",
        .max = HOUR,
        .help = "How long running calls may continue when the gateway stops.",
    },
    {
        .name = "timezone",
        .fallback = "UTC",
        .help = "Time zone of daily lists, for example Europe/Berlin.",
    },
    {
        .name = "history.keep",
        .type = NG_OPTION_DURATION,
        .fallback = "90d",
        .max = 36500 * DAY,
        .help = "How long every revision is kept; after that one per day is kept. 0 keeps all.",
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
        .help = "Deepest nesting of JSON; the outermost value has depth 1.",
    },
    {
        .name = "limits.connections",
        .type = NG_OPTION_INT,
        .fallback = "4096",
        .min = 1,
        .max = 1000000,
        .help = "Open connections; further ones are closed at once. One agent may have half of "
                "them. When nearly all are in use, idle connections of the agent with the most "
                "are closed.",
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
        .help = "Events that a stream may fall behind before it is closed.",
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
        .help = "Threads for work that may block. Default: four times the cores. One agent may "
                "use half of them.",
    },
    {
        .name = "limits.buffered",
        .type = NG_OPTION_SIZE,
        .fallback = "256MiB",
        .min = 1,
        .max = 1024 * GIB,
        .help = "Memory for the bodies, files, results and subscriptions of all calls "
                "together; one agent may use half of it for bodies, files and subscriptions.",
    },
    {
        .name = "limits.call_timeout",
        .type = NG_OPTION_DURATION,
        .fallback = "120s",
        .min = 1,
        .max = DAY,
        .help = "Longest time of a call; a tool with its own timeout keeps that.",
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
        .help = "Lowest level that is logged.",
    },
    {
        .name = "log.format",
        .choices = "text json",
        .help = "Format of the log on stderr. Default: text on a terminal, otherwise json.",
    },
    {
        .name = "log.access",
        .type = NG_OPTION_BOOL,
        .fallback = "false",
        .help = "true: the log has one line per HTTP request (without its query).",
    },
    {
        .name = "log.audit",
        .type = NG_OPTION_BOOL,
        .help = "true: the log has one line per call that changes something, tries to, or is "
                "refused: caller, its address, action, documents and revisions, outcome. "
                "Default: true once the gateway has a key.",
    },
};

const size_t gateway_option_count = NG_COUNT(gateway_options);
