/* SPDX-License-Identifier: MIT */
/* command_line.h - a parsed command line, its configuration, and the messages of commands. */
#ifndef NOTEGATE_API_COMMAND_LINE_H
#define NOTEGATE_API_COMMAND_LINE_H

#include <stdio.h>

#include "core/call/gateway.h"
#include "core/keys/keys.h"

/* Exit codes of the process. */
enum command_exit {
    COMMAND_OK = 0,
    COMMAND_FAILED = 1, /* the request could not be carried out */
    COMMAND_USAGE = 2   /* the command line makes no sense */
};

static inline int command_exit_code(int rc)
{
    return rc == NG_OK ? COMMAND_OK : COMMAND_FAILED;
}

/* How long a command waits for a data directory that another command holds. */
#define COMMAND_WAIT_MS 5000
/* --set, --root and their like in one command line. */
#define COMMAND_SETS_MAX 256

enum command_option {
    OPTION_CONFIG = 1 << 0, /* --config, --set and the named configuration flags */
    OPTION_CALLER = 1 << 1, /* --agent, --space, --mode */
    OPTION_JSON = 1 << 2,
    OPTION_FORMAT = 1 << 3,
    OPTION_HELP_CONFIG = 1 << 4,
    OPTION_FORCE = 1 << 5,
    OPTION_ALWAYS = 1 << 6,   /* --help, --version */
    OPTION_KEY = 1 << 7,      /* the properties of a key */
    OPTION_SERVE = 1 << 8,    /* --user */
    OPTION_BACKUP = 1 << 9,   /* the contents of a backup */
    OPTION_SET = 1 << 10,     /* --set alone */
    OPTION_RESTORE = 1 << 11, /* the part of a backup to restore */
    OPTION_WORK = 1 << 12,    /* --run: the work that calls belong to */
    OPTION_AUDIT = 1 << 13,   /* which entries of the audit log, and how */
    OPTION_HISTORY = 1 << 14, /* the history: its caller, colours, pager */
    OPTION_LOG = 1 << 15,     /* how changes of the history are listed */
    OPTION_AT = 1 << 16,      /* --at, and --space of a bare name */
    OPTION_LINES = 1 << 17,   /* --lines */
    OPTION_FILTER = 1 << 18,  /* which changes of the history */
    OPTION_UNDO = 1 << 19,    /* undo: further changes, and how they are taken back */
    OPTION_STAT = 1 << 20,    /* --stat */
};

/* Options without a value, or-ed. */
enum line_flag {
    LINE_RUN = 1 << 0,        /* of a key: it may run code */
    LINE_ALL = 1 << 1,        /* keys: also those that have ended */
    LINE_NEEDS_DATA = 1 << 2, /* as of the command, by its words */
    LINE_FILES = 1 << 3,      /* backup: those of roots and folders of notes as well */
    LINE_JSON = 1 << 4,
    LINE_HELP_CONFIG = 1 << 5,
    LINE_FORCE = 1 << 6,
    LINE_HELP = 1 << 7,
    LINE_VERSION = 1 << 8,
    LINE_HELP_MAN = 1 << 9,
    LINE_RESTORE = 1 << 10,    /* of a key: it may take back the work of others */
    LINE_NO_RUN = 1 << 11,     /* takes LINE_RUN back */
    LINE_NO_RESTORE = 1 << 12, /* takes LINE_RESTORE back */
    LINE_OCSF = 1 << 13,       /* audit: events of OCSF */
    LINE_ONELINE = 1 << 14,    /* log: a line for each change */
    LINE_STAT = 1 << 15,       /* log, diff: their numbers of lines */
    LINE_PATCH = 1 << 16,      /* log: comparisons */
    LINE_NO_PAGER = 1 << 17,
    LINE_RUNS = 1 << 18,    /* log: runs */
    LINE_YES = 1 << 19,     /* undo: without a question */
    LINE_DRY_RUN = 1 << 20, /* undo: only the preview */
    LINE_LIST = 1 << 21     /* undo: those that were cut off */
};

struct command;

/* A parsed command line. Texts are those of argv or of the arena. */
struct command_line {
    const struct command *command; /* NULL: none was named */
    struct arena arena;
    const char *config_file;
    const char *sets[COMMAND_SETS_MAX];
    size_t set_count;
    const char *roots; /* the value of `roots` that --root has made so far */
    const char *agent, *space, *mode, *run_id;
    const char *role, *rate, *expires, *note; /* of a key, with --mode */
    const char *key_spaces[KEY_SPACES_MAX];
    size_t key_space_count;
    const char *key_tools[KEY_TOOLS_MAX];
    size_t key_tool_count;
    const char *key_no_tools[KEY_TOOLS_MAX];
    size_t key_no_tool_count;
    const char *format;
    /* Of `audit`, and of the commands of the history. */
    struct {
        const char *run, *tool, *collection, *id, *path, *outcome, *since, *until, *number,
            *checkpoint;
        const char *agent, *space, *action, *at, *lines, *color;
        const char *changes; /* undo: numbers with commas between */
        const char *again;   /* undo: the one to continue */
    } find;
    const char *only;            /* restore: the URI of one entry, note or file; or NULL */
    unsigned flags;              /* enum line_flag */
    const char *help_completion; /* the shell, or NULL */
    const char **words;          /* arguments that are neither command nor option */
    size_t word_count;
};

static inline bool line_has(const struct command_line *line, unsigned flags)
{
    return (line->flags & flags) != 0;
}

struct command {
    const char *name;
    const char *words;   /* "TOOL [KEY=VALUE... | JSON | -]", "" = none */
    const char *summary; /* one line */
    const char *details; /* paragraphs, separated by empty lines */
    unsigned options;    /* enum command_option */
    size_t min_words, max_words;
    int (*run)(struct command_line *line); /* enum command_exit */
    bool needs_data;                       /* makes no sense where no data directory is */
};

/* "notegate: ..." on stderr, in one piece. */
void command_error(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* The same for a command line that makes no sense, and where help is; COMMAND_USAGE. */
int command_usage(const struct command_line *line, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* An option that selects: its value, NULL if it is not given. */
struct command_filter {
    const char *name, *value;
    bool is_list; /* by commas */
};

/* COMMAND_OK, or COMMAND_USAGE after a message: one is given and empty, as a variable that is
 * not set leaves it. It would select everything. */
int command_check_filters(const struct command_line *line, const struct command_filter *filters,
                          size_t count);
/* May colours be used on this stream? */
bool command_colours(FILE *stream);
/* Writes everything and reports a failure (a full disk, a closed pipe). NG_OK or NG_EFAILED. */
int command_put(FILE *stream, struct ng_str text);
/* The same with a line feed. */
int command_put_line(FILE *stream, struct ng_str text);
int command_flush(FILE *stream);
/* Flushes stdout at the end of a command: its exit code, or COMMAND_FAILED after a message. */
int command_end_output(int code);

/* The message of a failed call, or of a failed step with it. */
struct ng_str command_call_message(const struct call *call);

/* The configuration of the command line, the environment and the file. COMMAND_OK or
 * COMMAND_FAILED after a message. */
int command_config(struct command_line *line, struct config **ret);

#endif
