/* SPDX-License-Identifier: MIT */
/* markdown_blocks.c - the blocks of a Markdown text. Lines are fed one by one to cmark-gfm, and
 * its tree is read before its inline phase. */
#include "markdown_blocks.h"

#include <cmark-gfm-core-extensions.h>
#include <cmark-gfm-extension_api.h>
#include <cmark-gfm.h>
#include <cmark-gfm/parser.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/array.h"
#include "markdown_memory.h"

#define LIST_DIGITS_MAX 9
#define ROWS_MAX ((size_t)1024 * 1024 * 1024)
#define CELLS_MAX 500 /* bars in a row of a table */

/* ---- the parser */

/* NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables) */
static pthread_once_t extensions_once = PTHREAD_ONCE_INIT;

static void register_extensions(void)
{
    cmark_gfm_core_extensions_ensure_registered();
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

static bool ends_mark(struct ng_str line, size_t at)
{
    return at == line.len || is_blank(line.data[at]) || line.data[at] == '\n' ||
           line.data[at] == '\r';
}

/* Skips the mark of a container at `at` (quote, item, footnote); `at`: there is none. */
static size_t skip_mark(struct ng_str line, size_t at)
{
    size_t digits = at;
    if (at == line.len) {
        return at;
    }
    if (line.data[at] == '>') {
        return at + 1;
    }
    if (memchr("-+*", line.data[at], 3) != NULL) {
        return at + ends_mark(line, at + 1);
    }
    if (line.data[at] == '[' && at + 1 < line.len && line.data[at + 1] == '^') {
        size_t end = str_find(line, str_make("]:", 2), at);
        if (end == SIZE_MAX) {
            return at;
        }
        return end + 2;
    }
    while (digits < line.len && digits - at < LIST_DIGITS_MAX && line.data[digits] >= '0' &&
           line.data[digits] <= '9') {
        digits++;
    }
    bool item = digits > at && digits < line.len &&
                (line.data[digits] == '.' || line.data[digits] == ')') &&
                ends_mark(line, digits + 1);
    if (!item) {
        return at;
    }
    return digits + 1;
}

/* Containers that a line may open; stops at one over the limit. */
static unsigned count_marks(struct ng_str line)
{
    unsigned count = 0;
    for (size_t at = 0; at < line.len && count <= NOTES_BLOCKS_DEPTH_MAX; count++) {
        while (at < line.len && is_blank(line.data[at])) {
            at++;
        }
        size_t next = skip_mark(line, at);
        if (next == at) {
            break;
        }
        at = next;
    }
    return count;
}

size_t notes_blocks_marks(struct ng_str row)
{
    size_t at = 0;
    size_t next = 0;
    do {
        at = next;
        while (at < row.len && is_blank(row.data[at])) {
            at++;
        }
        next = skip_mark(row, at);
    } while (next > at);
    return at;
}

static bool is_too_deep(const cmark_parser *parser)
{
    unsigned depth = 0;
    for (cmark_node *node = parser->current; node != NULL && depth <= NOTES_BLOCKS_DEPTH_MAX;
         node = cmark_node_parent(node)) {
        depth++;
    }
    return depth > NOTES_BLOCKS_DEPTH_MAX;
}

/* ---- lines */

static bool add_row(struct notes_lines *lines, size_t start, uint32_t line)
{
    size_t count = lines->count + 1;
    if (array_reserve((void **)&lines->starts, &lines->room, count, sizeof(uint32_t),
                      ROWS_MAX) != NG_OK) {
        return false;
    }
    if (lines->lines != NULL) {
        if (array_reserve((void **)&lines->lines, &lines->lines_room, count, sizeof(uint32_t),
                          ROWS_MAX) != NG_OK) {
            return false;
        }
        lines->lines[lines->count] = line;
    }
    lines->starts[lines->count++] = (uint32_t)start;
    return true;
}

/* After the first lone CR, rows and lines differ. */
static bool split_lines(struct notes_lines *lines)
{
    if (array_reserve((void **)&lines->lines, &lines->lines_room, lines->count,
                      sizeof(uint32_t), ROWS_MAX) != NG_OK) {
        return false;
    }
    for (size_t i = 0; i < lines->count; i++) {
        lines->lines[i] = (uint32_t)i + 1;
    }
    return true;
}

uint32_t notes_blocks_line(const struct notes_blocks *blocks, uint32_t row)
{
    const struct notes_lines *lines = &blocks->lines;
    if (row < 1 || lines->count == 0) {
        return 1;
    }
    size_t last = size_min(row, lines->count);
    if (lines->lines == NULL) {
        return (uint32_t)last;
    }
    return lines->lines[last - 1];
}

/* ---- reading */

struct feed {
    struct notes_blocks *blocks;
    cmark_parser *parser;
    size_t next_cr, next_lf; /* first one at or behind the row; text.len: none */
    uint32_t line;
    unsigned empty;  /* consecutive empty rows */
    struct buf calm; /* a row whose bars are replaced */
};

/* The end of the row that begins at `at`, behind its LF, CR or CRLF. */
static size_t row_end(struct feed *feed, size_t at)
{
    struct ng_str text = feed->blocks->text;
    if (feed->next_cr < at) {
        feed->next_cr = notes_find_char(text, at, '\r');
    }
    if (feed->next_lf < at) {
        feed->next_lf = notes_find_char(text, at, '\n');
    }
    if (feed->next_cr + 1 < feed->next_lf) {
        return feed->next_cr + 1; /* a CR alone */
    }
    return size_min(feed->next_lf + 1, text.len);
}

/* cmark-gfm takes quadratic time for the cells of a row: a row with too many bars is not
 * treated as a table. */
static struct ng_str calmed(struct feed *feed, struct ng_str row)
{
    size_t bars = 0;
    for (size_t at = notes_find_char(row, 0, '|'); at < row.len && bars <= CELLS_MAX; bars++) {
        at = notes_find_char(row, at + 1, '|');
    }
    if (bars <= CELLS_MAX) {
        return row;
    }
    buf_clear(&feed->calm);
    buf_add_str(&feed->calm, row);
    for (size_t i = 0; i < feed->calm.len; i++) {
        if (feed->calm.data[i] == '|') {
            feed->calm.data[i] = ' ';
        }
    }
    return notes_buf_str(&feed->calm);
}

/* An empty row visits all open containers; more than two in sequence change nothing. */
static bool is_idle(struct feed *feed, struct ng_str row)
{
    if (notes_trim(row).len > 0) {
        feed->empty = 0;
        return false;
    }
    return ++feed->empty > 2;
}

/* False: there is no memory. */
static bool feed_row(struct feed *feed, struct ng_str row)
{
    struct notes_blocks *blocks = feed->blocks;
    unsigned marks = count_marks(row);
    if (is_idle(feed, row)) {
        feed->parser->line_number++;
    } else if (marks > NOTES_BLOCKS_DEPTH_MAX || (marks > 0 && is_too_deep(feed->parser)) ||
               notes_blocks_memory_used() > NOTES_BLOCKS_BYTES_MAX) {
        blocks->whole = false;
    } else {
        row = calmed(feed, row);
        cmark_parser_feed(feed->parser, row.data, row.len);
    }
    return feed->calm.rc == NG_OK;
}

/* False: there is no memory. */
static bool feed_rows(struct feed *feed)
{
    struct notes_blocks *blocks = feed->blocks;
    struct ng_str text = blocks->text;
    for (size_t at = 0; at < text.len && blocks->whole;) {
        size_t end = row_end(feed, at);
        struct ng_str row = str_make(text.data + at, end - at);
        bool lone_cr = row.data[row.len - 1] == '\r';
        if (!add_row(&blocks->lines, at, feed->line) ||
            (lone_cr && blocks->lines.lines == NULL && !split_lines(&blocks->lines)) ||
            !feed_row(feed, row)) {
            return false;
        }
        feed->line += !lone_cr;
        at = end;
    }
    /* Ends the last line, and blocks that an empty line ends. */
    cmark_parser_feed(feed->parser, "\n\n", 2);
    return true;
}

static int run_parser(struct feed *feed)
{
    feed->parser = cmark_parser_new_with_mem(CMARK_OPT_FOOTNOTES, notes_blocks_memory_table());
    feed->blocks->parser = feed->parser;
    cmark_syntax_extension *table = cmark_find_syntax_extension("table");
    if (table != NULL) {
        (void)cmark_parser_attach_syntax_extension(feed->parser, table);
    }
    return feed_rows(feed) ? NG_OK : NG_EINTERNAL;
}

/* cmark-gfm has no error path for allocations: a longjmp returns here. */
static int run_guarded(struct feed *feed)
{
    jmp_buf out;
    if (setjmp(out) != 0) {
        feed->blocks->whole = false;
        feed->blocks->parser = NULL;
        return notes_blocks_memory_is_full(feed->blocks->memory) ? NG_OK : NG_EINTERNAL;
    }
    notes_blocks_memory_use(feed->blocks->memory, &out);
    return run_parser(feed);
}

int notes_blocks_read(struct ng_str text, struct notes_blocks *blocks)
{
    struct feed feed = {.blocks = blocks,
                        .line = 1,
                        .next_cr = notes_find_char(text, 0, '\r'),
                        .next_lf = notes_find_char(text, 0, '\n')};
    *blocks = (struct notes_blocks){.text = text, .whole = true};
    (void)pthread_once(&extensions_once, register_extensions);
    blocks->memory = notes_blocks_memory_new();
    if (blocks->memory == NULL) {
        return NG_EINTERNAL;
    }
    buf_init(&feed.calm, text.len + 1);
    int rc = NG_OK;
    if (text.len > 0) {
        rc = run_guarded(&feed);
    }
    notes_blocks_memory_use(NULL, NULL);
    buf_done(&feed.calm);
    const cmark_parser *parser = blocks->parser;
    if (rc == NG_OK && parser != NULL) {
        rc = notes_blocks_refs_read(parser->refmap, &blocks->refs);
    }
    return rc;
}

void notes_blocks_done(struct notes_blocks *blocks)
{
    notes_blocks_refs_free(blocks->refs);
    notes_blocks_memory_free(blocks->memory);
    free(blocks->lines.starts);
    free(blocks->lines.lines);
    *blocks = (struct notes_blocks){.whole = false};
}

/* ---- leaves */

struct leaf_sink {
    struct notes_blocks *blocks;
    int (*leaf)(void *user, const struct notes_leaf *leaf);
    void *user;
};

static struct ng_str content_of(cmark_node *node)
{
    const char *content = cmark_node_get_string_content(node);
    if (content == NULL) {
        content = "";
    }
    return ng_str_of(content);
}

static uint32_t count_rows(struct ng_str text)
{
    uint32_t rows = 0;
    for (size_t i = 0; i < text.len; i++) {
        bool crlf = text.data[i] == '\r' && i + 1 < text.len && text.data[i + 1] == '\n';
        rows += (text.data[i] == '\n' || text.data[i] == '\r') && !crlf;
    }
    bool open =
        text.len > 0 && text.data[text.len - 1] != '\n' && text.data[text.len - 1] != '\r';
    return rows + open;
}

static uint32_t row_of(int line)
{
    return (uint32_t)int_max(line, 1);
}

/* Definitions before the text are removed from it, so that rows are counted from the end. For
 * cmark-gfm, a setext heading ends one row too late. */
static void place_leaf(cmark_node *node, struct notes_leaf *leaf)
{
    uint32_t first = row_of(cmark_node_get_start_line(node));
    uint32_t end = row_of(cmark_node_get_end_line(node));
    uint32_t rows = count_rows(leaf->text);
    bool underlined = leaf->kind == NOTES_LEAF_HEADING && end > first;
    leaf->last_row = end - underlined;
    uint32_t text_end = end - (uint32_t)2 * underlined;
    leaf->row = first;
    if (rows > 0 && text_end >= rows) {
        leaf->row = text_end - rows + 1;
    }
}

static char task_mark(cmark_node *node, struct ng_str text)
{
    cmark_node *item = cmark_node_parent(node);
    bool begins =
        cmark_node_get_type(item) == CMARK_NODE_ITEM && cmark_node_first_child(item) == node &&
        text.len >= 4 && text.data[0] == '[' && text.data[2] == ']' &&
        memchr(" xX", text.data[1], 3) != NULL && memchr(" \t\r\n", text.data[3], 4) != NULL;
    if (!begins) {
        return '\0';
    }
    return text.data[1];
}

static bool is_nested(cmark_node *node)
{
    return cmark_node_get_type(cmark_node_parent(node)) != CMARK_NODE_DOCUMENT;
}

static uint32_t count_children(cmark_node *node)
{
    uint32_t count = 0;
    for (cmark_node *child = cmark_node_first_child(node); child != NULL;
         child = cmark_node_next(child)) {
        count++;
    }
    return count;
}

/* Rows of a table are consecutive; cmark-gfm's line of the header is not always right. */
static int emit_table(const struct leaf_sink *sink, cmark_node *table)
{
    const struct notes_lines *lines = &sink->blocks->lines;
    struct ng_str text = sink->blocks->text;
    uint32_t count = count_children(table);
    int rc = 0;
    uint32_t end = row_of(cmark_node_get_end_line(table));
    for (uint32_t i = 0; i < count && rc == 0; i++) {
        uint32_t behind = count - i - (i > 0);
        uint32_t row = u32_max(end, behind + 1) - behind;
        if (row > lines->count) {
            continue;
        }
        size_t at = lines->starts[row - 1];
        size_t stop = text.len;
        if (row < lines->count) {
            stop = lines->starts[row];
        }
        struct notes_leaf leaf = {.kind = NOTES_LEAF_ROW,
                                  .nested = is_nested(table),
                                  .row = row,
                                  .last_row = row,
                                  .text = str_make(text.data + at, stop - at)};
        rc = sink->leaf(sink->user, &leaf);
    }
    return rc;
}

/* The lines before a table's header became a paragraph without a position. */
static void place_before_table(cmark_node *node, struct notes_leaf *leaf)
{
    cmark_node *table = cmark_node_next(node);
    if (cmark_node_get_start_line(node) > 0 || table == NULL) {
        return;
    }
    uint32_t rows = count_children(table);
    uint32_t end = row_of(cmark_node_get_end_line(table));
    leaf->last_row = u32_max(end, rows + 2) - rows - 1;
    leaf->row =
        u32_max(leaf->last_row + 1, count_rows(leaf->text) + 1) - count_rows(leaf->text);
}

static int emit(const struct leaf_sink *sink, cmark_node *node)
{
    cmark_node_type type = cmark_node_get_type(node);
    struct notes_leaf leaf = {.kind = NOTES_LEAF_PARAGRAPH};
    if (cmark_gfm_extensions_get_table_columns(node) > 0) {
        return emit_table(sink, node);
    }
    if (type == CMARK_NODE_HEADING) {
        leaf.kind = NOTES_LEAF_HEADING;
        leaf.level = (unsigned)cmark_node_get_heading_level(node);
    } else if (type == CMARK_NODE_CODE_BLOCK) {
        leaf.kind = NOTES_LEAF_CODE;
    } else if (type == CMARK_NODE_HTML_BLOCK) {
        leaf.kind = NOTES_LEAF_HTML;
    } else if (type != CMARK_NODE_PARAGRAPH) {
        return 0;
    }
    leaf.nested = is_nested(node);
    if (leaf.kind != NOTES_LEAF_CODE && leaf.kind != NOTES_LEAF_HTML) {
        leaf.text = content_of(node);
    }
    place_leaf(node, &leaf);
    if (leaf.kind == NOTES_LEAF_PARAGRAPH) {
        place_before_table(node, &leaf);
        leaf.task = task_mark(node, leaf.text);
    }
    return sink->leaf(sink->user, &leaf);
}

static bool is_container(cmark_node *node)
{
    cmark_node_type type = cmark_node_get_type(node);
    return type == CMARK_NODE_DOCUMENT || type == CMARK_NODE_BLOCK_QUOTE ||
           type == CMARK_NODE_LIST || type == CMARK_NODE_ITEM ||
           type == CMARK_NODE_FOOTNOTE_DEFINITION;
}

int notes_blocks_each(struct notes_blocks *blocks,
                      int (*leaf)(void *user, const struct notes_leaf *leaf), void *user)
{
    const struct leaf_sink sink = {blocks, leaf, user};
    const cmark_parser *parser = blocks->parser;
    cmark_node *root = parser != NULL ? parser->root : NULL;
    cmark_node *node = root;
    while (node != NULL) {
        int rc = is_container(node) ? 0 : emit(&sink, node);
        if (rc != 0) {
            return rc;
        }
        cmark_node *next = is_container(node) ? cmark_node_first_child(node) : NULL;
        while (next == NULL && node != NULL && node != root) {
            next = cmark_node_next(node);
            node = next == NULL ? cmark_node_parent(node) : node;
        }
        node = next;
    }
    return 0;
}
