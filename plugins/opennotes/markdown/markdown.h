/* SPDX-License-Identifier: MIT */
/* markdown.h - headings, links, tags and tasks of a Markdown text with their line numbers, and
 * counts. */
#ifndef OPENNOTES_MARKDOWN_H
#define OPENNOTES_MARKDOWN_H

#include "text/text.h"

/* Longest title of a wiki link, in bytes. */
#define NOTES_WIKI_MAX 1024
/* Longest reported text of a heading, link or task; the rest is cut. */
#define NOTES_MARKDOWN_TEXT_MAX ((size_t)64 * 1024)

enum notes_link_kind {
    NOTES_LINK_INLINE = 1,    /* [text](target) */
    NOTES_LINK_REFERENCE = 2, /* [text][ref], [ref][], [ref] with a definition */
    NOTES_LINK_WIKI = 3,      /* [[target|text]] */
    NOTES_LINK_AUTO = 4       /* <https://...> and bare web addresses */
};

/* Lines count from 1 in the text given, ended by LF. Texts are lent for the callback. */

struct notes_heading {
    uint32_t line;      /* of its first line */
    uint32_t last_line; /* its last line, including the underline of a setext heading */
    unsigned level;
    bool nested;        /* in a list item, a quote or a footnote */
    struct ng_str text; /* plain: without marks, images left out, links by their text */
    struct ng_str slug; /* as GitHub makes anchors; unique in the text: the second is `a-1` */
};

struct notes_link {
    uint32_t line; /* its first line */
    enum notes_link_kind kind;
    struct ng_str text;   /* plain; of a wiki link without alias the target as written */
    struct ng_str target; /* as written, escapes and entities resolved; percent-encoding and
                             anchor kept. Of a wiki link without the alias, `#part` kept */
    /* With `places`, the target as it is written: bytes [at, end) of the text given. SIZE_MAX:
     * unknown, or that of a reference, which is in its definition. */
    size_t at, end;
    struct ng_str label; /* of a reference, as written */
};

/* "[label]: target" of references. */
struct notes_definition {
    struct ng_str label;  /* as written */
    struct ng_str target; /* as written */
    size_t at;            /* of the target, in the text */
};

/* "#tag" in a text, after white space: letters, digits, '_', '-' and '/', not digits alone. */
struct notes_inline_tag {
    uint32_t line;
    struct ng_str name; /* without '#' */
};

struct notes_task {
    uint32_t line;
    bool done;
    struct ng_str text; /* plain, of its first paragraph */
};

/* Every member may be NULL. A result other than 0 ends the parsing, which returns it. Headings,
 * links, tags and tasks are each reported in the order of the text; links of a heading come
 * before it. */
struct notes_markdown_events {
    int (*heading)(void *user, const struct notes_heading *heading);
    int (*link)(void *user, const struct notes_link *link);
    int (*task)(void *user, const struct notes_task *task);
    int (*tag)(void *user, const struct notes_inline_tag *tag);
    /* Images, and embedded pictures; not in the order of the links. */
    int (*image)(void *user, const struct notes_link *image);
    bool places; /* the places of targets are wanted */
};

struct notes_markdown_stats {
    uint64_t words; /* as notes_words() */
    uint64_t chars; /* code points */
    uint64_t lines;
    uint64_t headings;
    uint64_t code_blocks;
    uint64_t links; /* of every kind */
    uint64_t tasks;
    bool whole; /* false: from some place on the nesting is too deep, or there are too many
                   blocks; nothing from there on is reported */
};

/*
 * Parses `text` (UTF-8; LF or CRLF) as GitHub's Markdown with wiki links, footnotes and tags.
 * Links and tags in code, HTML, image texts and comments (%%...%%) are none, images are no
 * links; an embedded note ![[note]] is a link, an embedded picture is none. events and
 * ret_stats may be NULL. Takes time in proportion to the text. NG_EINTERNAL: out of memory;
 * NG_ETOOLARGE: 1 GiB or more; else what an event returned.
 */
int notes_markdown_parse(struct ng_str text, const struct notes_markdown_events *events,
                         void *user, struct notes_markdown_stats *ret_stats);

/* Reports what may be definitions, in the order of the text: lines that are in no block, and
 * look like one. Of several for a label the first counts. Results as above. */
int notes_markdown_definitions(struct ng_str text,
                               int (*found)(void *user, const struct notes_definition *found),
                               void *user);
/* Labels of one reference become equal: white space, case. {NULL, 0}: out of memory. */
struct ng_str notes_markdown_label(struct arena *arena, struct ng_str label);
/* Appends a target as it is meant, with resolved escapes and entities, until `len` bytes of it
 * are there. Returns the bytes read. */
size_t notes_markdown_target(struct buf *buf, struct ng_str written, size_t len);

/* The plain text of a heading, cut to NOTES_MARKDOWN_TEXT_MAX. false: out of memory. */
bool notes_markdown_plain(struct ng_str text, struct buf *out);

/* "inline", "reference", "wiki", "auto". */
const char *notes_link_kind_name(enum notes_link_kind kind);

#endif
