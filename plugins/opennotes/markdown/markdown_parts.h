/* SPDX-License-Identifier: MIT */
/* markdown_parts.h - interfaces between the files that read one block: links and tags, plain
 * text, anchors, entities. */
#ifndef OPENNOTES_MARKDOWN_PARTS_H
#define OPENNOTES_MARKDOWN_PARTS_H

#include "markdown.h"
#include "markdown_blocks.h"

/* Limit on links or marks of one block; no text reaches it. */
#define NOTES_ITEMS_MAX ((size_t)1024 * 1024 * 1024)

/* ---- markdown_scan.c: the text of a paragraph, a heading or a cell */

/* Placeholders for removed marks in a plain text; valid UTF-8 has no such bytes. */
#define NOTES_MARK_GONE '\xff'
#define NOTES_MARK_IMAGE '\xfe' /* an image's text begins */
#define NOTES_MARK_IMAGE_END '\xfd'
#define NOTES_TICKS_MAX 80 /* longest run of backticks that can begin code */
#define NOTES_HTML_ENDS 4

/* A run of '*', '_' or '~' that may open or close emphasis. */
struct notes_delimiter {
    size_t at; /* in the plain text */
    size_t len;
    size_t older, newer; /* neighbours, SIZE_MAX: none */
    char c;
    bool opens, closes;
    size_t whole; /* len as written */
};

struct notes_delimiters {
    struct notes_delimiter *items;
    size_t count, room;
    size_t newest; /* SIZE_MAX: none */
};

struct notes_scan_link {
    enum notes_link_kind kind;
    size_t at;             /* in the text of the block */
    size_t text, text_end; /* in the plain text; of a wiki link or address see `own` */
    struct ng_str own;     /* its text where it has one of its own */
    struct ng_str target;  /* of an inline link as it is written */
    bool mail;             /* an address of mail, without "mailto:" */
    bool tag;              /* a tag, not a link; its name is `target` */
    bool image;            /* an image, not a link */
    struct ng_str label;   /* of a reference */
};

struct notes_bracket {
    size_t at;         /* in the text of the block */
    size_t plain;      /* in the plain text */
    size_t delimiters; /* the newest below it */
    size_t links;      /* found before it */
    bool image, active, holds_bracket;
};

struct notes_scan {
    struct ng_str text;
    size_t at;
    const struct notes_blocks *blocks;
    bool whole_text; /* the plain text of everything is needed, not only of links */
    bool images;     /* images are reported, too */
    int (*found)(void *user, const struct notes_scan_link *link);
    void *user;
    size_t hidden_to; /* links and tags that begin before it belong to a comment */
    /* Asked for a line at `at` that begins a comment "%%" which the text does not end: does a
     * later text end it? */
    bool (*hides)(void *user, size_t at);

    struct buf plain;
    struct notes_delimiters delimiters;
    struct notes_bracket *brackets;
    size_t bracket_count, bracket_room;
    struct notes_scan_link *links;
    size_t link_count, link_room;
    bool ticks_known;
    size_t last_ticks[NOTES_TICKS_MAX + 1]; /* start of the last run of so many backticks */
    bool no_end[NOTES_HTML_ENDS];           /* no such end is in the rest of the text */
    int rc;
};

void notes_scan_init(struct notes_scan *scan, const struct notes_blocks *blocks);
void notes_scan_done(struct notes_scan *scan);
/* Reads a text; reports links and tags in the order of the text. Returns the result of `found`,
 * or NG_EINTERNAL: out of memory. */
int notes_scan_text(struct notes_scan *scan, struct ng_str text);
/* The plain text from `at` to `end` without removed marks, cut to NOTES_MARKDOWN_TEXT_MAX.
 * Texts of images are included only if `images` is set. */
void notes_scan_plain(const struct notes_scan *scan, size_t at, size_t end, bool images,
                      struct buf *out);

/* ---- markdown_target.c: the part behind the text of a link */

/* "(target "title")" at text[at]: the target as written and the end behind ")". */
bool notes_target_at(struct ng_str text, size_t at, struct ng_str *ret_target, size_t *ret_end);
/* The target at text[at], as written: "<a b>" or "a"; the end behind it. */
bool notes_destination_at(struct ng_str text, size_t at, struct ng_str *ret_target,
                          size_t *ret_end);
/* "[label]" at text[at]. */
bool notes_label_at(struct ng_str text, size_t at, struct ng_str *ret_label, size_t *ret_end);
/* "<https://...>" or "<a@b>" at text[at]: the address between, and whether it is one of mail.
 */
bool notes_autolink_at(struct ng_str text, size_t at, struct ng_str *ret_address,
                       bool *ret_mail, size_t *ret_end);
/* An HTML tag at text[at] as "<a b='c'>" or "</a>"; its end, or `at`. */
size_t notes_html_end(struct ng_str text, size_t at);

/* ---- markdown_emphasis.c */

/* Adds a run at `at` of the plain text. False: no memory. */
bool notes_emphasis_add(struct notes_scan *scan, struct ng_str text, size_t begin, size_t end);
/* Pairs the runs above `bottom` and removes them. */
void notes_emphasis_pair(struct notes_scan *scan, size_t bottom);

/* ---- markdown_slug.c: anchors of headings, each once in a text */

/* {NULL, 0}: no memory. Lent until done. */
struct ng_str notes_slugs_make(struct notes_keys *slugs, struct ng_str heading);

/* ---- markdown_inline.c: extensions of CommonMark */

/* A wiki link at text[at], "[[": its target, its text and the end behind "]]". */
bool notes_wiki_at(struct ng_str text, size_t at, struct ng_str *ret_target,
                   struct ng_str *ret_text, size_t *ret_end);
/* Does an embedded target name a picture, sound, film or PDF? */
bool notes_wiki_is_media(struct ng_str target);
/* The end of a bare web address that begins at text[at]; `at`: there is none. */
size_t notes_address_end(struct ng_str text, size_t at);
/* The end of a tag that begins at text[at], '#'; `at`: there is none. */
size_t notes_inline_tag_end(struct ng_str text, size_t at);
/* Appends the character of an HTML entity ("&amp;", "&#65;"), or the entity itself if it is
 * unknown. */
void notes_entity_add(struct buf *buf, struct ng_str entity);
/* The end behind the ';' of a possible entity at text[at], '&'; `at`: there is none. */
size_t notes_entity_end(struct ng_str text, size_t at);

#endif
