/* SPDX-License-Identifier: MIT */
/* markdown.h - what stands in a Markdown text: headings, links and tasks with their line
 * numbers, counts. The only user of md4c. */
#ifndef OPENNOTES_MARKDOWN_H
#define OPENNOTES_MARKDOWN_H

#include "text.h"

/* Longest title of a wiki link, in bytes. */
#define ON_WIKI_MAX 1024
/* Longest text of one heading, link or task that is told; the rest is left out. */
#define ON_MARKDOWN_TEXT_MAX ((size_t)64 * 1024)

enum on_link_kind {
    ON_LINK_INLINE = 1,    /* [text](target) */
    ON_LINK_REFERENCE = 2, /* [text][ref], [ref][], [ref] with a definition */
    ON_LINK_WIKI = 3,      /* [[target|text]] */
    ON_LINK_AUTO = 4       /* <https://...> and bare web addresses */
};

/* Lines count from 1 in the text given, ended by LF. Texts are lent for the callback. */

struct on_heading {
    uint32_t line; /* of its first line */
    unsigned level;
    struct ng_str text; /* plain: without marks, images left out */
    struct ng_str slug; /* as GitHub makes anchors; unique in the text: the second is `a-1` */
};

struct on_link {
    uint32_t line; /* where it begins */
    enum on_link_kind kind;
    struct ng_str text;   /* plain; of a wiki link without alias the target as written */
    struct ng_str target; /* as written, escapes and entities resolved; percent-encoding and
                             anchor kept. Of a wiki link without the alias, `#part` kept */
};

struct on_task {
    uint32_t line;
    bool done;
    struct ng_str text; /* plain, of its first paragraph */
};

/* Every member may be NULL. Not 0 ends the parsing, which returns it. Headings, links and tasks
 * each come in the order of the text; links of a heading may come before or after it. */
struct on_markdown_events {
    int (*heading)(void *user, const struct on_heading *heading);
    int (*link)(void *user, const struct on_link *link);
    int (*task)(void *user, const struct on_task *task);
};

struct on_markdown_stats {
    uint64_t words; /* as on_words() */
    uint64_t chars; /* code points */
    uint64_t lines;
    uint64_t headings;
    uint64_t code_blocks;
    uint64_t links; /* of every kind */
    uint64_t tasks;
};

/*
 * Parses `text` (UTF-8; LF or CRLF) as GitHub's Markdown with wiki links. Links in code, HTML
 * and image texts are none, images are no links; an embedded note ![[note]] is a link, an
 * embedded picture is none. events and ret_stats may be NULL. Takes time in proportion to the
 * text. NG_EINTERNAL: out of memory; NG_ETOOLARGE: over 1 GiB; else what an event returned.
 */
int on_markdown_parse(struct ng_str text, const struct on_markdown_events *events, void *user,
                      struct on_markdown_stats *ret_stats);

/* "inline", "reference", "wiki", "auto". */
const char *on_link_kind_name(enum on_link_kind kind);

#endif
