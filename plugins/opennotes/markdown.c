/* SPDX-License-Identifier: MIT */
/* markdown.c - reads a Markdown text through md4c, which gives no positions: texts it passes
 * point into the source, so each place is known from the texts around it. */
#include "markdown.h"

#include <md4c.h>
#include <stdlib.h>
#include <string.h>

#include "markdown_parts.h"

#define MARKDOWN_BYTES_MAX ((size_t)1024 * 1024 * 1024)
#define MARKDOWN_FLAGS (MD_FLAG_TABLES | MD_FLAG_STRIKETHROUGH | MD_FLAG_TASKLISTS)
/* Bytes of link targets that md4c may hand out per byte of text, and besides: a short
 * reference to a long target costs its length each time. */
#define WORK_PER_BYTE 16
#define WORK_MORE ((uint64_t)4 * 1024 * 1024)
/* What callbacks return to end the parsing: md4c drops positive codes. */
#define END_PARSING (-1)
#define LOOK_BACK_MAX 1024  /* blanks before a target that are looked at */
#define LOOK_AHEAD_MAX 4096 /* bytes that are searched for a link without a text */

#define NOWHERE SIZE_MAX

struct reader {
    struct ng_str text; /* the source as it is */
    const char *fed;    /* what md4c got: the same bytes, or a tamed copy */
    struct on_lines lines;
    struct on_slugs slugs;
    const struct on_markdown_events *events;
    void *user;
    struct on_markdown_stats stats;
    bool ended; /* with rc: of an event, or ours */
    int rc;
    uint64_t work;

    size_t last; /* the end of the last place in the source */
    unsigned images;
    unsigned code; /* 1: in a code span or block */

    struct on_buf heading;
    bool in_heading;
    size_t heading_at;     /* its first place; NOWHERE: none yet */
    uint32_t heading_line; /* of the last one */

    struct on_buf task;
    bool in_task;
    uint32_t task_line;
    bool task_done;

    struct on_buf link;
    struct on_buf target;
    bool in_link, link_reported;
    size_t link_at;     /* first place inside */
    size_t link_end;    /* end of the last place inside */
    size_t link_breaks; /* line ends before the first place */
    size_t link_href;   /* place of the target; NOWHERE: not in the source */
    bool link_auto;
    size_t inline_until; /* links of our own finding reach to here */
};

static int end_with(struct reader *reader, int rc)
{
    reader->ended = true;
    reader->rc = rc;
    return END_PARSING;
}

static size_t place_of(const struct reader *reader, const char *text)
{
    /* Compared as numbers: texts of md4c's own are other objects. */
    uintptr_t at = (uintptr_t)text;
    uintptr_t begin = (uintptr_t)reader->fed;
    return at >= begin && at < begin + reader->text.len ? (size_t)(at - begin) : NOWHERE;
}

static void note_place(struct reader *reader, size_t at, size_t len)
{
    if (at == NOWHERE) {
        return;
    }
    if (reader->in_heading && reader->heading_at == NOWHERE) {
        reader->heading_at = at;
    }
    if (reader->in_link && reader->link_at == NOWHERE) {
        reader->link_at = at;
    }
    if (reader->in_link) {
        reader->link_end = at + len;
    }
    if (at + len > reader->last) {
        reader->last = at + len;
    }
}

/* ---- what goes to the caller ---- */

static int report_link(struct reader *reader, const struct on_link *link)
{
    reader->stats.links++;
    if (reader->events == NULL || reader->events->link == NULL) {
        return 0;
    }
    int rc = reader->events->link(reader->user, link);
    return rc == 0 ? 0 : end_with(reader, rc);
}

static int report_heading(struct reader *reader, unsigned level)
{
    struct ng_str text = on_trim(on_buf_str(&reader->heading));
    size_t at = reader->heading_at;
    if (at == NOWHERE) {
        at = on_lines_empty_heading(reader->text, reader->last, level);
        reader->last = at != NOWHERE ? at + (at < reader->text.len) : reader->last;
    }
    uint32_t line = on_lines_of(&reader->lines, at != NOWHERE ? at : reader->last);
    /* Headings come in order also where the place of an empty one was a guess. */
    line = line > reader->heading_line ? line : reader->heading_line;
    reader->heading_line = line;
    struct ng_str slug = on_slugs_make(&reader->slugs, text);
    if (reader->heading.rc == NG_EINTERNAL || slug.data == NULL) {
        return end_with(reader, NG_EINTERNAL);
    }
    reader->in_heading = false;
    reader->stats.headings++;
    if (reader->events == NULL || reader->events->heading == NULL) {
        return 0;
    }
    struct on_heading heading = {line, level, text, slug};
    int rc = reader->events->heading(reader->user, &heading);
    return rc == 0 ? 0 : end_with(reader, rc);
}

static int report_task(struct reader *reader)
{
    if (!reader->in_task) {
        return 0;
    }
    reader->in_task = false;
    if (reader->task.rc == NG_EINTERNAL) {
        return end_with(reader, NG_EINTERNAL);
    }
    if (reader->events == NULL || reader->events->task == NULL) {
        return 0;
    }
    struct on_task task = {reader->task_line, reader->task_done,
                           on_trim(on_buf_str(&reader->task))};
    int rc = reader->events->task(reader->user, &task);
    return rc == 0 ? 0 : end_with(reader, rc);
}

/* ---- blocks ---- */

static bool begins_list(MD_BLOCKTYPE type)
{
    return type == MD_BLOCK_UL || type == MD_BLOCK_OL;
}

static void enter_item(struct reader *reader, const MD_BLOCK_LI_DETAIL *item)
{
    if (item->is_task == 0) {
        return;
    }
    reader->in_task = true;
    reader->task_line = on_lines_of(&reader->lines, item->task_mark_offset);
    reader->task_done = item->task_mark != ' ';
    reader->stats.tasks++;
    on_buf_clear(&reader->task);
    note_place(reader, item->task_mark_offset, 1);
}

static int enter_block(MD_BLOCKTYPE type, void *detail, void *user)
{
    struct reader *reader = user;
    if (type == MD_BLOCK_H) {
        reader->in_heading = true;
        reader->heading_at = NOWHERE;
        on_buf_clear(&reader->heading);
    } else if (type == MD_BLOCK_CODE) {
        reader->code++;
        reader->stats.code_blocks++;
    } else if (begins_list(type)) {
        return report_task(reader);
    } else if (type == MD_BLOCK_LI) {
        int rc = report_task(reader);
        enter_item(reader, detail);
        return rc;
    }
    return 0;
}

static int leave_block(MD_BLOCKTYPE type, void *detail, void *user)
{
    struct reader *reader = user;
    if (type == MD_BLOCK_H) {
        int rc = report_heading(reader, ((const MD_BLOCK_H_DETAIL *)detail)->level);
        return rc;
    }
    if (type == MD_BLOCK_CODE) {
        reader->code--;
    } else if (type == MD_BLOCK_LI || type == MD_BLOCK_P) {
        return report_task(reader);
    }
    return 0;
}

/* ---- links of md4c ---- */

static bool add_work(struct reader *reader, uint64_t bytes)
{
    reader->work += bytes;
    return reader->work <= WORK_MORE + (uint64_t)WORK_PER_BYTE * reader->text.len;
}

static void read_attribute(struct on_buf *buf, const MD_ATTRIBUTE *attribute)
{
    on_buf_clear(buf);
    for (size_t i = 0; attribute->size > 0 && attribute->substr_offsets[i] < attribute->size;
         i++) {
        MD_OFFSET begin = attribute->substr_offsets[i];
        struct ng_str part =
            on_str(attribute->text + begin, attribute->substr_offsets[i + 1] - begin);
        if (attribute->substr_types[i] == MD_TEXT_ENTITY) {
            on_entity_add(buf, part);
        } else if (attribute->substr_types[i] == MD_TEXT_NULLCHAR) {
            on_buf_add_c(buf, "\xef\xbf\xbd");
        } else {
            on_buf_add(buf, part);
        }
    }
}

static int enter_link(struct reader *reader, const MD_SPAN_A_DETAIL *detail)
{
    if (!add_work(reader, (uint64_t)detail->href.size + detail->title.size)) {
        return end_with(reader, NG_OK);
    }
    reader->in_link = true;
    reader->link_at = NOWHERE;
    reader->link_end = NOWHERE;
    reader->link_breaks = 0;
    reader->link_href = detail->href.size > 0 ? place_of(reader, detail->href.text) : NOWHERE;
    on_buf_clear(&reader->link);
    read_attribute(&reader->target, &detail->href);
    return 0;
}

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* Behind the text of a link: its closing marks, then "](" is an inline link. */
static bool closes_inline(const struct reader *reader, size_t at)
{
    const struct ng_str *text = &reader->text;
    while (at < text->len && strchr("*_~`)!> \t\r\n", text->data[at]) != NULL &&
           text->data[at] != 0) {
        at++;
    }
    /* The target of an image that ends the link's text: "![](a)". */
    while (at < text->len && text->data[at] != ']' && text->data[at] != '\n') {
        at++;
    }
    return at + 1 < text->len && text->data[at] == ']' && text->data[at + 1] == '(';
}

/* From the place of a target back to the "](" of an inline link; NOWHERE: a definition's. */
static size_t inline_bracket(const struct reader *reader, size_t href)
{
    const char *data = reader->text.data;
    size_t at = href;
    while (at > 0 && href - at < LOOK_BACK_MAX &&
           (is_space(data[at - 1]) || data[at - 1] == '<')) {
        at--;
    }
    return at >= 2 && data[at - 1] == '(' && data[at - 2] == ']' ? at - 2 : NOWHERE;
}

static enum on_link_kind kind_of(const struct reader *reader)
{
    struct ng_str text = on_buf_str(&reader->link);
    struct ng_str target = on_buf_str(&reader->target);
    size_t at = reader->link_at;
    bool mail = on_begins(target, "mailto:") && !on_begins(text, "mailto:");
    struct ng_str shown = mail ? on_str(target.data + 7, target.len - 7) : target;
    if (at != NOWHERE && at > 0 && reader->text.data[at - 1] == '<' && on_equal(shown, text)) {
        return ON_LINK_AUTO;
    }
    if (reader->link_href != NOWHERE) {
        return inline_bracket(reader, reader->link_href) != NOWHERE ? ON_LINK_INLINE
                                                                    : ON_LINK_REFERENCE;
    }
    return at == NOWHERE || closes_inline(reader, reader->link_end) ? ON_LINK_INLINE
                                                                    : ON_LINK_REFERENCE;
}

/* Where the link begins, and all that is known of it ends. */
static uint32_t link_line(struct reader *reader)
{
    if (reader->link_at != NOWHERE) {
        uint32_t line = on_lines_of(&reader->lines, reader->link_at);
        return line > reader->link_breaks ? line - (uint32_t)reader->link_breaks : 1;
    }
    size_t href = reader->link_href;
    size_t at =
        href != NOWHERE && href >= reader->last ? inline_bracket(reader, href) : NOWHERE;
    if (at == NOWHERE) {
        /* "[][ref]", "[]()": the next such brackets. */
        size_t end = reader->text.len - reader->last > LOOK_AHEAD_MAX
                         ? reader->last + LOOK_AHEAD_MAX
                         : reader->text.len;
        at = on_find(on_str(reader->text.data, end), on_str("[]", 2), reader->last);
    }
    if (at == NOWHERE) {
        return on_lines_of(&reader->lines, reader->last);
    }
    note_place(reader, at, 2);
    return on_lines_of(&reader->lines, at);
}

static int leave_link(struct reader *reader)
{
    reader->in_link = false;
    if (reader->link.rc == NG_EINTERNAL || reader->target.rc == NG_EINTERNAL) {
        return end_with(reader, NG_EINTERNAL);
    }
    bool within_own = reader->link_at != NOWHERE && reader->link_at < reader->inline_until;
    if (reader->images > 0 || within_own || reader->target.rc != NG_OK) {
        return 0;
    }
    struct on_link link = {
        .line = link_line(reader),
        .kind = kind_of(reader),
        .text = on_trim(on_buf_str(&reader->link)),
        .target = on_buf_str(&reader->target),
    };
    return report_link(reader, &link);
}

/* ---- spans ---- */

static int enter_span(MD_SPANTYPE type, void *detail, void *user)
{
    struct reader *reader = user;
    if (type == MD_SPAN_A) {
        return enter_link(reader, detail);
    }
    if (type == MD_SPAN_IMG) {
        const MD_SPAN_IMG_DETAIL *image = detail;
        reader->images++;
        if (!add_work(reader, (uint64_t)image->src.size + image->title.size)) {
            return end_with(reader, NG_OK);
        }
    } else if (type == MD_SPAN_CODE) {
        reader->code++;
    }
    return 0;
}

static int leave_span(MD_SPANTYPE type, void *detail, void *user)
{
    struct reader *reader = user;
    if (type == MD_SPAN_A) {
        return leave_link(reader);
    }
    if (type == MD_SPAN_IMG) {
        const MD_SPAN_IMG_DETAIL *image = detail;
        reader->images--;
        size_t at = image->src.size > 0 ? place_of(reader, image->src.text) : NOWHERE;
        if (at != NOWHERE && at >= reader->last && inline_bracket(reader, at) != NOWHERE) {
            note_place(reader, at, image->src.size);
        }
    } else if (type == MD_SPAN_CODE) {
        reader->code--;
    }
    return 0;
}

/* ---- texts ---- */

/* Wiki links and bare addresses that begin in the source between `at` and `end`. */
static int find_own_links(struct reader *reader, size_t at, size_t end)
{
    struct ng_str text = reader->text;
    for (; at < end; at++) {
        char c = text.data[at];
        struct on_link link = {.line = 0};
        size_t link_end = at;
        if (at < reader->inline_until || (c != '[' && c != 'h' && c != 'H')) {
            continue;
        }
        if (c == '[') {
            bool opens = at + 2 < text.len && text.data[at + 1] == '[' &&
                         text.data[at + 2] != '[' && reader->fed[at] == '[' &&
                         !on_is_escaped(text, at);
            if (!opens || !on_wiki_at(text, at, &link.target, &link.text, &link_end)) {
                continue;
            }
            bool embedded = at > 0 && text.data[at - 1] == '!';
            if (embedded && on_wiki_is_media(link.target)) {
                reader->inline_until = link_end;
                continue;
            }
            link.kind = ON_LINK_WIKI;
        } else {
            bool goes_on = at > 0 && (unsigned char)text.data[at - 1] < 0x80 &&
                           on_is_word(text.data[at - 1]);
            link_end = goes_on ? at : on_address_end(text, at);
            if (link_end == at) {
                continue;
            }
            link.kind = ON_LINK_AUTO;
            link.target = on_str(text.data + at, link_end - at);
            link.text = link.target;
        }
        link.line = on_lines_of(&reader->lines, at);
        reader->inline_until = link_end;
        int rc = report_link(reader, &link);
        if (rc != 0) {
            return rc;
        }
    }
    return 0;
}

static void add_text(struct reader *reader, MD_TEXTTYPE type, struct ng_str text)
{
    struct on_buf *bufs[] = {reader->in_heading && reader->images == 0 ? &reader->heading
                                                                       : NULL,
                             reader->in_task && reader->images == 0 ? &reader->task : NULL,
                             reader->in_link ? &reader->link : NULL};
    for (size_t i = 0; i < NG_COUNT(bufs); i++) {
        if (bufs[i] == NULL) {
            continue;
        }
        if (type == MD_TEXT_ENTITY) {
            on_entity_add(bufs[i], text);
        } else if (type == MD_TEXT_BR || type == MD_TEXT_SOFTBR) {
            on_buf_add_char(bufs[i], ' ');
        } else if (type == MD_TEXT_NULLCHAR) {
            on_buf_add_c(bufs[i], "\xef\xbf\xbd");
        } else if (type != MD_TEXT_HTML) {
            on_buf_add(bufs[i], text);
        }
    }
}

static int read_text(MD_TEXTTYPE type, const MD_CHAR *data, MD_SIZE size, void *user)
{
    struct reader *reader = user;
    size_t at = size > 0 ? place_of(reader, data) : NOWHERE;
    struct ng_str text = on_str(at != NOWHERE ? reader->text.data + at : data, size);
    if ((type == MD_TEXT_BR || type == MD_TEXT_SOFTBR) && reader->in_link &&
        reader->link_at == NOWHERE) {
        reader->link_breaks++;
    }
    if (type != MD_TEXT_BR && type != MD_TEXT_SOFTBR) {
        note_place(reader, at, size);
    }
    add_text(reader, type, text);
    bool plain = type == MD_TEXT_NORMAL && at != NOWHERE && reader->code == 0 &&
                 reader->images == 0 && !reader->in_link;
    return plain ? find_own_links(reader, at, at + size) : 0;
}

/* ---- */

static void count_text(struct ng_str text, struct on_markdown_stats *stats)
{
    stats->words = on_words(text);
    stats->lines = text.len > 0 && text.data[text.len - 1] != '\n' ? 1 : 0;
    for (size_t i = 0; i < text.len; i++) {
        stats->chars += ((unsigned char)text.data[i] & 0xc0) != 0x80;
        stats->lines += text.data[i] == '\n';
    }
}

static int run_parser(struct reader *reader)
{
    const MD_PARSER parser = {
        .flags = MARKDOWN_FLAGS,
        .enter_block = enter_block,
        .leave_block = leave_block,
        .enter_span = enter_span,
        .leave_span = leave_span,
        .text = read_text,
    };
    int rc = md_parse(reader->fed, (MD_SIZE)reader->text.len, &parser, reader);
    return reader->ended ? reader->rc : rc == 0 ? NG_OK : NG_EINTERNAL;
}

int on_markdown_parse(struct ng_str text, const struct on_markdown_events *events, void *user,
                      struct on_markdown_stats *ret_stats)
{
    struct reader reader = {.text = text, .fed = text.data, .events = events, .user = user};
    char *tamed = NULL;
    if (text.len > MARKDOWN_BYTES_MAX) {
        return NG_ETOOLARGE;
    }
    struct on_buf *bufs[] = {&reader.heading, &reader.task, &reader.link, &reader.target};
    for (size_t i = 0; i < NG_COUNT(bufs); i++) {
        on_buf_init(bufs[i], ON_MARKDOWN_TEXT_MAX);
    }
    on_slugs_init(&reader.slugs);
    int rc = on_lines_init(&reader.lines, text);
    if (rc == NG_OK) {
        rc = on_markdown_tame(text, &tamed);
    }
    if (rc == NG_OK && text.len > 0) {
        reader.fed = tamed != NULL ? tamed : text.data;
        rc = run_parser(&reader);
    }
    if (rc == NG_OK && ret_stats != NULL) {
        *ret_stats = reader.stats;
        count_text(text, ret_stats);
    }
    on_lines_done(&reader.lines);
    on_slugs_done(&reader.slugs);
    for (size_t i = 0; i < NG_COUNT(bufs); i++) {
        rc = rc == NG_OK && bufs[i]->starved ? NG_EINTERNAL : rc;
        on_buf_done(bufs[i]);
    }
    free(tamed);
    return rc;
}

const char *on_link_kind_name(enum on_link_kind kind)
{
    static const char *const names[] = {"", "inline", "reference", "wiki", "auto"};
    return names[kind];
}
