/* SPDX-License-Identifier: MIT */
/* opennotes.h - what all parts of the plugin share: its self, its error codes, its tools. The
 * parts have headers of their own: notebook.h, index.h, text.h, note.h, markdown.h, answer.h.
 */
#ifndef NOTEGATE_OPENNOTES_H
#define NOTEGATE_OPENNOTES_H

#include <notegate/plugin.h>

/* Codes of this plugin's own, in the order of its descriptor. Others are the core's:
 * INVALID_PARAMS is NG_EINVAL, PATH_TRAVERSAL is NG_ETRAVERSAL, QUERY_TIMEOUT is
 * NG_EQUERYTIMEOUT. */
#define ON_ENOTEBOOK (NG_EPLUGIN - 0)   /* NOTEBOOK_NOT_FOUND */
#define ON_ENOTE (NG_EPLUGIN - 1)       /* NOTE_NOT_FOUND */
#define ON_EVIEW (NG_EPLUGIN - 2)       /* VIEW_NOT_FOUND */
#define ON_ETEMPLATE (NG_EPLUGIN - 3)   /* TEMPLATE_NOT_FOUND */
#define ON_ESECTION (NG_EPLUGIN - 4)    /* SECTION_NOT_FOUND */
#define ON_ESQL (NG_EPLUGIN - 5)        /* INVALID_SQL */
#define ON_EEXISTS (NG_EPLUGIN - 6)     /* NOTE_EXISTS */
#define ON_EPATH (NG_EPLUGIN - 7)       /* NOTE_INVALID_PATH */
#define ON_ECONFIG (NG_EPLUGIN - 8)     /* NOTEBOOK_CONFIG_ERROR */
#define ON_EVIEWPARAMS (NG_EPLUGIN - 9) /* VIEW_INVALID_PARAMS */
#define ON_ENOTTEXT (NG_EPLUGIN - 10)   /* NOT_TEXT */

/* The collection of the events of notes that tools write (struct ng_file_edit). */
#define ON_COLLECTION "notes"

/* Members of the answers of list-like tools; see answer.h. */
#define ON_LIMIT_DEFAULT 50
#define ON_LIMIT_MAX 1000

struct on_notebooks;

/* The plugin's self: set in start() and constant until stop(). */
struct opennotes {
    const struct ng_host *host;
    char *folder;             /* of the indexes: data_dir/opennotes, absolute */
    uint64_t max_bytes;       /* opennotes.max_bytes; an answer may have 75 % of it */
    uint64_t max_lines;       /* opennotes.max_lines; likewise */
    int64_t query_timeout_ms; /* of one SQL statement */
    char *daily_path;         /* template of the path of daily notes */
    char *views;              /* opennotes.views: a JSON object, or NULL */
    struct on_notebooks *notebooks;
    struct on_sql_load *sql_load; /* sql.h */
};

/* "out of memory", as every part says it. */
int on_fail_memory(struct ng_call *call);

/* ---- tools: each in the file of its name, with its schema beside it. A new tool is declared
 * here and stands in the table in opennotes.c. */

#define ON_TOOL(name)                                                                          \
    extern const char on_##name##_params[], on_##name##_result[], on_##name##_summary[];       \
    int on_##name##_run(void *self, struct ng_call *call, struct ng_str args)

ON_TOOL(notebooks);
ON_TOOL(search);
ON_TOOL(list);
ON_TOOL(get);
ON_TOOL(create);
ON_TOOL(edit);
ON_TOOL(daily);
ON_TOOL(views);
ON_TOOL(links);
ON_TOOL(tags);

/* Pieces of schemas. */
#define ON_PARAM_NOTEBOOK                                                                      \
    "\"notebook\":{\"type\":\"string\",\"description\":\"Path to notebook. Omit to use "       \
    "current "                                                                                 \
    "context.\"}"
#define ON_PARAM_LIMIT                                                                         \
    "\"limit\":{\"type\":\"integer\",\"default\":50,\"minimum\":1,\"maximum\":1000,"           \
    "\"description\":\"Maximum results to return (default: 50)\"}"
#define ON_PARAM_OFFSET                                                                        \
    "\"offset\":{\"type\":\"integer\",\"default\":0,\"minimum\":0,\"maximum\":"                \
    "9007199254740991,"                                                                        \
    "\"description\":\"Offset for pagination (default: 0)\"}"

#define ON_SCHEMA_NOTEBOOK                                                                     \
    "{\"type\":\"object\",\"required\":[\"name\",\"path\"],\"properties\":{"                   \
    "\"name\":{\"type\":\"string\"},\"path\":{\"type\":\"string\"}}}"
#define ON_SCHEMA_SUMMARY                                                                      \
    "{\"type\":\"object\",\"required\":[\"path\"],\"properties\":{"                            \
    "\"path\":{\"type\":\"string\",\"description\":\"File path relative to notebook\"},"       \
    "\"title\":{\"type\":\"string\",\"description\":\"Note title from frontmatter\"},"         \
    "\"tags\":{\"type\":\"array\",\"items\":{\"type\":\"string\"}},"                           \
    "\"created\":{\"type\":\"string\",\"format\":\"date-time\"},"                              \
    "\"modified\":{\"type\":\"string\",\"format\":\"date-time\"},"                             \
    "\"frontmatterError\":{\"type\":\"string\"},\"truncated\":{\"type\":\"boolean\"}}}"
#define ON_SCHEMA_PAGINATION                                                                   \
    "{\"type\":\"object\",\"required\":[\"total\",\"returned\",\"page\",\"pageSize\","         \
    "\"hasMore\"],\"properties\":{"                                                            \
    "\"total\":{\"type\":\"integer\",\"description\":\"Total number of results\"},"            \
    "\"returned\":{\"type\":\"integer\",\"description\":\"Number returned in this "            \
    "response\"},"                                                                             \
    "\"page\":{\"type\":\"integer\",\"description\":\"Current page (1-indexed)\"},"            \
    "\"pageSize\":{\"type\":\"integer\",\"description\":\"Results per page\"},"                \
    "\"hasMore\":{\"type\":\"boolean\",\"description\":\"Whether more results exist\"},"       \
    "\"nextOffset\":{\"type\":\"integer\",\"description\":\"Offset for next page\"}}}"

#endif
