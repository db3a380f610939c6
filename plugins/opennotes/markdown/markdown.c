/* SPDX-License-Identifier: MIT */
/* markdown.c - reads a Markdown text: blocks by markdown_blocks.c, their texts by
 * markdown_scan.c; reports headings, links, tags and tasks in the order of the text. */
#include "markdown.h"

#include <stdlib.h>
#include <string.h>

#include "markdown_parts.h"

#define MARKDOWN_BYTES_MAX ((size_t)1024 * 1024 * 1024 - 1)
/* Limit on the target bytes that references may produce, per byte of text and in addition: a
 * short reference to a long target costs its length each time. References over the limit are
 * not reported. */
#define WORK_PER_BYTE 16
#define WORK_MORE ((uint64_t)4 * 1024 * 1024)

struct reader {
    struct ng_str text;
    struct notes_blocks blocks;
    struct notes_scan scan;
    struct notes_keys slugs;
    const struct notes_markdown_events *events;
    void *user;
    struct notes_markdown_stats stats;
    uint64_t work;

    const struct notes_leaf *leaf;
    size_t row_at;             /* an offset in the leaf's text */
    uint32_t row;              /* and its row */
    size_t row_begin, row_end; /* of the row of the leaf's text that was placed last, */
    size_t row_place;          /* and its place in the text */
    size_t comments;           /* no "%%" in the text from here on + 1; 0: unknown */
    size_t hidden;             /* end of a comment that spans blocks */

    struct buf plain; /* of a heading or task */
    struct buf link;
    struct buf target;
};

/* ---- places ---- */

/* The line of an offset in the leaf's text; offsets are mostly ascending. */
static uint32_t line_at(struct reader *reader, size_t at)
{
    struct ng_str text = reader->leaf->text;
    if (at < reader->row_at) {
        reader->row_at = 0;
        reader->row = reader->leaf->row;
    }
    for (size_t i = reader->row_at; i < at; i++) {
        bool crlf = text.data[i] == '\r' && i + 1 < text.len && text.data[i + 1] == '\n';
        reader->row += (text.data[i] == '\n' || text.data[i] == '\r') && !crlf;
    }
    reader->row_at = at;
    return notes_blocks_line(&reader->blocks, reader->row);
}

static size_t row_start(const struct reader *reader, uint32_t row)
{
    const struct notes_lines *lines = &reader->blocks.lines;
    return row <= lines->count ? lines->starts[row - 1] : reader->text.len;
}

static bool ends_row(char c)
{
    return c == '\n' || c == '\r';
}

static struct ng_str without_end(struct ng_str row)
{
    while (row.len > 0 && notes_is_space(row.data[row.len - 1])) {
        row.len--;
    }
    return row;
}

static bool ends_with(struct ng_str text, struct ng_str end)
{
    return text.len >= end.len &&
           memcmp(text.data + text.len - end.len, end.data, end.len) == 0;
}

/* Finds the leaf's row that holds `at`: a row of the leaf is the end of its row in the text; of
 * a heading that marks end, it is within. */
static void place_row(struct reader *reader, size_t at)
{
    struct ng_str text = reader->leaf->text;
    size_t begin = at;
    size_t end = at;
    (void)line_at(reader, at);
    while (begin > 0 && !ends_row(text.data[begin - 1])) {
        begin--;
    }
    while (end < text.len && !ends_row(text.data[end])) {
        end++;
    }
    struct ng_str own = without_end(str_make(text.data + begin, end - begin));
    size_t from = row_start(reader, reader->row);
    struct ng_str row = without_end(
        str_make(reader->text.data + from, row_start(reader, reader->row + 1) - from));
    size_t found = ends_with(row, own) ? row.len - own.len : str_find(row, own, 0);
    reader->row_begin = begin;
    reader->row_end = end + 1;
    reader->row_place = found == SIZE_MAX ? SIZE_MAX : from + found;
}

/* The place in the whole text of a part of the leaf's text. SIZE_MAX: not found. */
static size_t place_of(struct reader *reader, struct ng_str part)
{
    size_t at = (size_t)(part.data - reader->leaf->text.data);
    if (reader->leaf->kind == NOTES_LEAF_ROW) {
        return (size_t)(part.data - reader->text.data);
    }
    if (at < reader->row_begin || at >= reader->row_end) {
        place_row(reader, at);
    }
    if (reader->row_place == SIZE_MAX) {
        return SIZE_MAX;
    }
    size_t place = reader->row_place + (at - reader->row_begin);
    bool same = place + part.len <= reader->text.len &&
                memcmp(reader->text.data + place, part.data, part.len) == 0;
    return same ? place : SIZE_MAX;
}

/* ---- comments that span blocks ---- */

/* A comment that this leaf does not end extends to the next "%%" of the text. */
static bool begin_comment(void *user, size_t at)
{
    struct reader *reader = user;
    size_t behind = row_start(reader, reader->leaf->last_row + 1);
    (void)at;
    if (reader->comments != 0 && reader->comments <= behind + 1) {
        return false;
    }
    size_t end = str_find(reader->text, str_make("%%", 2), behind);
    if (end == SIZE_MAX) {
        reader->comments = behind + 1;
        return false;
    }
    reader->hidden = end;
    return true;
}

/* Bytes at the beginning of the leaf's text that belong to an earlier comment. */
static size_t hidden_part(struct reader *reader)
{
    const struct notes_leaf *leaf = reader->leaf;
    size_t end = reader->hidden;
    if (end == 0 || end < row_start(reader, leaf->row)) {
        reader->hidden = 0;
        return 0;
    }
    if (end >= row_start(reader, leaf->last_row + 1)) {
        return SIZE_MAX;
    }
    reader->hidden = 0;
    size_t found = str_find(leaf->text, str_make("%%", 2), 0);
    if (found == SIZE_MAX) {
        return 0;
    }
    return found + 2;
}

/* ---- reports ---- */

static int report_tag(struct reader *reader, const struct notes_scan_link *found)
{
    if (reader->events == NULL || reader->events->tag == NULL) {
        return 0;
    }
    struct notes_inline_tag tag = {line_at(reader, found->at), found->target};
    return reader->events->tag(reader->user, &tag);
}

static bool is_over_work(struct reader *reader, uint64_t bytes)
{
    reader->work += bytes;
    return reader->work > WORK_MORE + (uint64_t)WORK_PER_BYTE * reader->text.len;
}

static int report_link(void *user, const struct notes_scan_link *found)
{
    struct reader *reader = user;
    struct notes_link link = {.kind = found->kind,
                              .target = found->target,
                              .text = found->own,
                              .label = found->label,
                              .at = SIZE_MAX,
                              .end = SIZE_MAX};
    int (*report)(void *user, const struct notes_link *link) = NULL;
    if (found->tag) {
        return report_tag(reader, found);
    }
    if (found->kind == NOTES_LINK_REFERENCE && is_over_work(reader, found->target.len)) {
        return 0;
    }
    reader->stats.links += !found->image;
    if (reader->events != NULL) {
        report = found->image ? reader->events->image : reader->events->link;
    }
    if (report == NULL) {
        return 0;
    }
    buf_clear(&reader->link);
    buf_clear(&reader->target);
    if (found->kind == NOTES_LINK_INLINE) {
        (void)notes_markdown_target(&reader->target, found->target, SIZE_MAX);
        link.target = notes_buf_str(&reader->target);
    } else if (found->mail) {
        buf_add_c(&reader->target, "mailto:");
        buf_add_str(&reader->target, found->target);
        link.target = notes_buf_str(&reader->target);
    }
    if (found->own.data == NULL) {
        notes_scan_plain(&reader->scan, found->text, found->text_end, true, &reader->link);
        link.text = notes_trim(notes_buf_str(&reader->link));
    }
    if (reader->link.rc == NG_EINTERNAL || reader->target.rc == NG_EINTERNAL) {
        return NG_EINTERNAL;
    }
    link.target = utf8_cut(link.target, NOTES_MARKDOWN_TEXT_MAX);
    link.text = utf8_cut(link.text, NOTES_MARKDOWN_TEXT_MAX);
    link.line = line_at(reader, found->at);
    bool written = found->kind == NOTES_LINK_INLINE || found->kind == NOTES_LINK_WIKI;
    if (written && reader->events->places && found->target.len > 0) {
        link.at = place_of(reader, found->target);
        link.end = link.at == SIZE_MAX ? SIZE_MAX : link.at + found->target.len;
    }
    return report(reader->user, &link);
}

static int report_heading(struct reader *reader)
{
    const struct notes_leaf *leaf = reader->leaf;
    struct ng_str text = notes_trim(notes_buf_str(&reader->plain));
    struct ng_str slug = notes_slugs_make(&reader->slugs, text);
    if (slug.data == NULL) {
        return NG_EINTERNAL;
    }
    reader->stats.headings++;
    if (reader->events == NULL || reader->events->heading == NULL) {
        return 0;
    }
    struct notes_heading heading = {.line = notes_blocks_line(&reader->blocks, leaf->row),
                                    .last_line =
                                        notes_blocks_line(&reader->blocks, leaf->last_row),
                                    .level = leaf->level,
                                    .nested = leaf->nested,
                                    .text = text,
                                    .slug = slug};
    return reader->events->heading(reader->user, &heading);
}

static int report_task(struct reader *reader)
{
    const struct notes_leaf *leaf = reader->leaf;
    struct ng_str text = notes_trim(notes_buf_str(&reader->plain));
    reader->stats.tasks++;
    if (reader->events == NULL || reader->events->task == NULL) {
        return 0;
    }
    struct notes_task task = {notes_blocks_line(&reader->blocks, leaf->row), leaf->task != ' ',
                              text};
    return reader->events->task(reader->user, &task);
}

/* ---- leaves ---- */

static int scan_text(struct reader *reader, struct ng_str text)
{
    bool wanted = reader->leaf->kind == NOTES_LEAF_HEADING || reader->leaf->task != '\0';
    reader->scan.whole_text = wanted;
    int rc = notes_scan_text(&reader->scan, text);
    buf_clear(&reader->plain);
    if (rc == NG_OK && wanted) {
        notes_scan_plain(&reader->scan, 0, reader->scan.plain.len, false, &reader->plain);
        rc = reader->plain.rc == NG_EINTERNAL ? NG_EINTERNAL : NG_OK;
    }
    return rc;
}

/* The end of the cell that begins at `at`: a bar that is neither escaped nor part of a wiki
 * link. */
static size_t cell_end(struct ng_str row, size_t at)
{
    while (at < row.len && row.data[at] != '|') {
        struct ng_str target;
        struct ng_str text;
        size_t end = 0;
        bool wiki = row.data[at] == '[' && at + 2 < row.len && row.data[at + 1] == '[' &&
                    row.data[at + 2] != '[' && notes_wiki_at(row, at, &target, &text, &end);
        if (!wiki) {
            end = at + 1 + (row.data[at] == '\\');
        }
        at = end;
    }
    return size_min(at, row.len);
}

static int scan_row(struct reader *reader, const struct notes_leaf *leaf)
{
    struct notes_leaf cell = *leaf;
    int rc = 0;
    reader->leaf = &cell;
    for (size_t at = 0; at < leaf->text.len && rc == 0;) {
        size_t end = cell_end(leaf->text, at);
        cell.text = str_make(leaf->text.data + at, end - at);
        reader->row_at = 0;
        reader->row = leaf->row;
        rc = scan_text(reader, cell.text);
        at = end + 1;
    }
    return rc;
}

static int read_leaf(void *user, const struct notes_leaf *leaf)
{
    struct reader *reader = user;
    if (leaf->kind == NOTES_LEAF_CODE || leaf->kind == NOTES_LEAF_HTML) {
        reader->stats.code_blocks += leaf->kind == NOTES_LEAF_CODE;
        return 0;
    }
    reader->leaf = leaf;
    reader->row_at = 0;
    reader->row_begin = reader->row_end = 0;
    reader->row = leaf->row;
    reader->scan.hidden_to = hidden_part(reader);
    if (leaf->kind == NOTES_LEAF_ROW) {
        if (reader->scan.hidden_to > 0) {
            reader->scan.hidden_to = SIZE_MAX;
        }
        return scan_row(reader, leaf);
    }
    struct notes_leaf part = *leaf;
    if (leaf->task != '\0') {
        part.text = str_make(leaf->text.data + 3, leaf->text.len - 3);
        reader->leaf = &part;
    }
    int rc = scan_text(reader, part.text);
    if (rc == 0 && leaf->task != '\0') {
        rc = report_task(reader);
    } else if (rc == 0 && leaf->kind == NOTES_LEAF_HEADING) {
        rc = report_heading(reader);
    }
    return rc;
}

/* ---- */

static void count_text(struct ng_str text, struct notes_markdown_stats *stats)
{
    stats->words = notes_words(text);
    stats->lines = text.len > 0 && text.data[text.len - 1] != '\n';
    for (size_t i = 0; i < text.len; i++) {
        stats->chars += utf8_is_start(text.data[i]);
        stats->lines += text.data[i] == '\n';
    }
}

static void reader_init(struct reader *reader)
{
    buf_init(&reader->plain, NOTES_MARKDOWN_TEXT_MAX);
    buf_init(&reader->link, NOTES_MARKDOWN_TEXT_MAX);
    buf_init(&reader->target, reader->text.len + 64);
    notes_scan_init(&reader->scan, &reader->blocks);
    reader->scan.found = report_link;
    reader->scan.images = reader->events != NULL && reader->events->image != NULL;
    reader->scan.hides = begin_comment;
    reader->scan.user = reader;
}

static void reader_done(struct reader *reader)
{
    notes_scan_done(&reader->scan);
    notes_keys_done(&reader->slugs);
    buf_done(&reader->plain);
    buf_done(&reader->link);
    buf_done(&reader->target);
    notes_blocks_done(&reader->blocks);
}

int notes_markdown_parse(struct ng_str text, const struct notes_markdown_events *events,
                         void *user, struct notes_markdown_stats *ret_stats)
{
    struct reader reader = {.text = text, .events = events, .user = user};
    if (text.len > MARKDOWN_BYTES_MAX) {
        return NG_ETOOLARGE;
    }
    reader_init(&reader);
    int rc = notes_blocks_read(text, &reader.blocks);
    if (rc == NG_OK) {
        rc = notes_blocks_each(&reader.blocks, read_leaf, &reader);
    }
    if (rc == NG_OK && ret_stats != NULL) {
        reader.stats.whole = reader.blocks.whole;
        *ret_stats = reader.stats;
        count_text(text, ret_stats);
    }
    reader_done(&reader);
    return rc;
}

static int ignore_link(void *user, const struct notes_scan_link *link)
{
    (void)user;
    (void)link;
    return 0;
}

bool notes_markdown_plain(struct ng_str text, struct buf *out)
{
    struct notes_blocks none = {.whole = true};
    struct notes_scan scan;
    notes_scan_init(&scan, &none);
    scan.whole_text = true;
    scan.found = ignore_link;
    int rc = notes_scan_text(&scan, text);
    if (rc == NG_OK) {
        notes_scan_plain(&scan, 0, scan.plain.len, false, out);
    }
    notes_scan_done(&scan);
    return rc == NG_OK && out->rc == NG_OK;
}

const char *notes_link_kind_name(enum notes_link_kind kind)
{
    static const char *const names[] = {"", "inline", "reference", "wiki", "auto"};
    return names[kind];
}
