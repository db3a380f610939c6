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

/* The rows of the table: a text (of these words, or NULL), a list or switch, and a number. */
#define TEXT(key, standard, words, text)                                                       \
    {                                                                                          \
        .name = key, .fallback = standard, .choices = words, .help = text                      \
    }
#define PLAIN(key, kind, standard, text)                                                       \
    {                                                                                          \
        .name = key, .type = NG_OPTION_##kind, .fallback = standard, .help = text              \
    }
#define RANGE(key, kind, standard, least, most, text)                                          \
    {                                                                                          \
        .name = key, .type = NG_OPTION_##kind, .fallback = standard, .min = least,             \
        .max = most, .help = text                                                              \
    }

const struct ng_option gateway_options[] = {
    TEXT("listen", "127.0.0.1:8420", NULL,
         "Address and port to listen on; port 0 picks one, IPv6 as [::1]:8420."),
    TEXT("data_dir", NULL, NULL, "Folder of all data of the gateway; created with mode 0700."),
    PLAIN("roots", LIST, NULL,
          "Folders that file tools may use, each PATH or SPACE:/PATH (default space: "
          "`shared`). They must exist; only the default folder is created, with mode 0700."),
    TEXT("user", NULL, NULL,
         "User that `notegate serve` becomes when root starts it, before modules are loaded "
         "and the data directory is opened."),
    TEXT("documents", "sqlite", NULL,
         "Backend of the documents: sqlite, memory, or the name of a module."),
    TEXT("journal", "documents", NULL,
         "Storage of the journal: documents (beside the documents) or redis."),
    RANGE("journal.keep", DURATION, "0", 0, 36500 * DAY,
          "How long days, memories and references are kept; 0 keeps all."),
    PLAIN("journal.record_calls", BOOL, "false",
          "true: every call becomes a memory entry of the journal."),
    RANGE("mcp.session_timeout", DURATION, "1h", SECOND, 30 * DAY,
          "Idle time after which an MCP session ends."),
    TEXT("cluster.advertise", NULL, NULL,
         "Address at which the other gateways of the same database reach this one, for example "
         "http://10.0.0.5:8420: they forward requests of its MCP sessions to it."),
    TEXT("cluster.authorities", NULL, NULL,
         "File with the certificates (PEM) that sign those of the other gateways, where they "
         "advertise https. Default: those of the system."),
    TEXT("tls.certificate", NULL, NULL,
         "File with the certificate chain (PEM); with tls.key it turns on HTTPS."),
    TEXT("tls.key", NULL, NULL, "File with the private key of the certificate (PEM)."),
    PLAIN("plugins", LIST, NULL,
          "Plugins to load: names or paths of modules. Default: all installed modules except "
          "conformance. +NAME adds a module to the default."),
    PLAIN("plugin_path", LIST, NULL,
          "Folders to search for plugins. Default: the installed folder."),
    PLAIN("tools.ignored_arguments", LIST,
          "toolCallId, sessionId, action, chatInput, task_progress",
          "Members that clients add to the arguments of every call: a tool that does not have "
          "them does not see them. Other unknown members are refused."),
    RANGE("tools.max_answer", SIZE, "64KiB", 4 * KIB, 128 * MIB,
          "Longest text of a tool's answer; longer ones are cut at a line, and lists get fewer "
          "items. Not for REST with ?raw=true, and not for resources."),
    TEXT("auth", "auto", "auto on off",
         "Callers that need a key. auto: all callers once a key exists; before that, callers "
         "on this machine that run as the gateway's user need none. on: all callers. off: no "
         "caller (loopback only)."),
    TEXT("audit", "auto", "auto on off",
         "The audit log, a signed log in the data directory that shows whether it was changed. "
         "auto: on while the gateway has keys."),
    PLAIN("audit.reads", BOOL, "false", "true: the audit log has calls that only read, too."),
    RANGE("audit.keep", DURATION, "365d", 0, 36500 * DAY,
          "How long entries of the audit log are kept; 0 keeps all."),
    RANGE("audit.max_size", SIZE, "4GiB", 0, 1024 * GIB,
          "Room for entries of the audit log: over that, the oldest go. 0: no limit."),
    PLAIN("allowed_hosts", LIST, NULL,
          "Host names that requests may use, besides the listening address and localhost: a "
          "name, *.NAME for every name below it, an address, or a range of addresses, for "
          "example 10.0.0.0/8."),
    PLAIN("allowed_origins", LIST, NULL,
          "Web origins that may send requests, besides the gateway's own; https://*.NAME is "
          "every name below it."),
    RANGE("shutdown_timeout", DURATION, "10s", 0, HOUR,
          "How long running calls may continue when the gateway stops."),
    RANGE("shutdown_delay", DURATION, "0s", 0, HOUR,
          "How long a stopping gateway still takes calls while /readyz is 503, so that a load "
          "balancer sends new ones to other gateways first."),
    TEXT("timezone", NULL, NULL,
         "Time zone of days and local times, for example Europe/Berlin. Default: that of the "
         "system (TZ)."),
    RANGE("history.keep", DURATION, "90d", 0, 36500 * DAY,
          "How long every revision is kept; after that one per day is kept. 0 keeps all."),
    PLAIN("history.files", BOOL, "true",
          "false: the contents of files are not kept, only who changed them and when."),
    RANGE("history.max_file", SIZE, "16MiB", 1, 64 * MIB,
          "Largest file whose contents are kept; with MongoDB at most 7 MiB."),
    RANGE("limits.body", SIZE, "4MiB", 1, 128 * MIB, "Largest body of a request."),
    RANGE("limits.depth", INT, "128", 1, 1000,
          "Deepest nesting of JSON; the outermost value has depth 1."),
    RANGE(
        "limits.connections", INT, "4096", 1, 1000000,
        "Open connections; further ones are closed at once. One agent may have half of them. "
        "When nearly all are in use, idle connections of the agent with the most are closed."),
    RANGE("limits.streams", INT, "2000", 0, 1000000,
          "Open event streams; further ones get 503."),
    RANGE("limits.stream_backlog", INT, "10000", 1, 10000000,
          "Events that a stream may fall behind before it is closed."),
    RANGE("limits.queue", INT, "1024", 1, 1000000,
          "Calls waiting for a worker; further ones get 503."),
    RANGE("limits.workers", INT, NULL, 1, 1024,
          "Threads for work that may block. Default: four times the cores. One agent may use "
          "half of them."),
    RANGE("limits.buffered", SIZE, "256MiB", 1, 1024 * GIB,
          "Memory for the bodies, files, results and subscriptions of all calls together; one "
          "agent may use half of it for bodies, files and subscriptions."),
    RANGE("limits.call_timeout", DURATION, "120s", 1, DAY,
          "Longest time of a call; a tool with its own timeout keeps that."),
    RANGE("limits.result", SIZE, "8MiB", 1, 128 * MIB,
          "Largest result; larger images and files become resource links."),
    TEXT("log.level", "info", "error warning info debug", "Lowest level that is logged."),
    TEXT("log.format", NULL, "text json",
         "Format of the log on stderr. Default: text on a terminal, otherwise json."),
    PLAIN("log.access", BOOL, "false",
          "true: the log has one line per HTTP request (without its query)."),
    TEXT("log.audit", NULL, "true false reads",
         "true: the log has one line per call that changes something, tries to, or is "
         "refused: caller, its address, action, documents and revisions, outcome. reads: also "
         "per call that only reads. Default: true once the gateway has a key."),
};

const size_t gateway_option_count = NG_COUNT(gateway_options);
