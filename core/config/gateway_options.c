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
    TEXT("data_dir", NULL, NULL,
         "Folder of everything the gateway keeps; made with mode 0700."),
    PLAIN("roots", LIST, NULL,
          "Folders that file tools may use, each PATH or SPACE:/PATH (space `shared` where "
          "none is named). They must be there; only the default is made, with mode 0700."),
    TEXT("user", NULL, NULL,
         "User that `notegate serve` becomes when root starts it, before modules are "
         "loaded and the data directory is opened."),
    TEXT("documents", "sqlite", NULL,
         "Backend that keeps documents: sqlite, memory, or a module of that name."),
    TEXT("journal", "documents", NULL,
         "Where the journal is kept: documents (beside them) or redis."),
    RANGE("journal.keep", DURATION, "0", 0, 36500 * DAY,
          "Days, memories and references stay for so long; 0 keeps all for good."),
    PLAIN("journal.record_calls", BOOL, "false",
          "Whether every call becomes a memory entry of the journal."),
    RANGE("mcp.session_timeout", DURATION, "1h", SECOND, 30 * DAY,
          "An MCP session that is not used for so long ends."),
    TEXT("tls.certificate", NULL, NULL,
         "File with the certificate chain (PEM); with tls.key it turns on HTTPS."),
    TEXT("tls.key", NULL, NULL, "File with the private key of the certificate (PEM)."),
    PLAIN("plugins", LIST, NULL,
          "Plugins to load: names or paths of modules. None named: all that are installed "
          "but conformance. +NAME adds to that."),
    PLAIN("plugin_path", LIST, NULL,
          "Folders in which plugins are looked for; none: the installed one."),
    TEXT("auth", "auto", "auto on off",
         "Who needs a key. auto: while no key exists nobody on this machine who runs as "
         "the gateway's user, everyone once one does; on: everyone; off: nobody "
         "(loopback only)."),
    PLAIN("allowed_hosts", LIST, NULL,
          "Host names that requests may ask for, beside the listening address and "
          "localhost: a name, *.NAME for every name below it, an address, or a range of "
          "addresses as in 10.0.0.0/8."),
    PLAIN("allowed_origins", LIST, NULL,
          "Web origins that may send requests, beside the gateway's own; "
          "https://*.NAME is every name below it."),
    RANGE("shutdown_timeout", DURATION, "10s", 0, HOUR,
          "How long calls that are running may go on when the gateway stops."),
    TEXT("timezone", "UTC", NULL, "Time zone of daily lists, as in Europe/Berlin."),
    RANGE("history.keep", DURATION, "90d", 0, 36500 * DAY,
          "Every revision is kept for so long, then one a day; 0 keeps all for good."),
    RANGE("limits.body", SIZE, "4MiB", 1, 128 * MIB, "Largest body of a request."),
    RANGE("limits.depth", INT, "128", 1, 1000,
          "Deepest nesting of JSON; the outermost value is at 1."),
    RANGE("limits.connections", INT, "4096", 1, 1000000,
          "Open connections; further ones are closed at once. One agent has half of "
          "them; when nearly all are taken, waiting ones of the agent with the most are "
          "closed."),
    RANGE("limits.streams", INT, "2000", 0, 1000000,
          "Open event streams; further ones get 503."),
    RANGE("limits.stream_backlog", INT, "10000", 1, 10000000,
          "Events that a stream may be behind before it is closed."),
    RANGE("limits.queue", INT, "1024", 1, 1000000,
          "Calls waiting for a worker; further ones get 503."),
    RANGE("limits.workers", INT, NULL, 1, 1024,
          "Threads for work that may block: four times the cores where not set. One agent "
          "has at most half of them."),
    RANGE("limits.buffered", SIZE, "256MiB", 1, 1024 * GIB,
          "Memory for the bodies, files, results and subscriptions of all calls together; "
          "one agent has half of it for bodies, files and subscriptions."),
    RANGE("limits.call_timeout", DURATION, "120s", 1, DAY,
          "Longest a call may take; a tool with a timeout of its own keeps that."),
    RANGE("limits.result", SIZE, "8MiB", 1, 128 * MIB,
          "Largest result; larger images and files become resource links."),
    TEXT("log.level", "info", "error warning info debug",
         "Least important entries that are logged."),
    TEXT("log.format", NULL, "text json",
         "Form of the log on stderr: text on a terminal, else json, where not set."),
    PLAIN("log.access", BOOL, "false",
          "Whether each HTTP request becomes a line of the log (never its query)."),
    PLAIN("log.audit", BOOL, NULL,
          "Whether each call that changes something, tries to or is refused becomes a "
          "line of the log: who, from where, what, which document and revision, "
          "outcome. Where not set: once the gateway has a key."),
};

const size_t gateway_option_count = NG_COUNT(gateway_options);
