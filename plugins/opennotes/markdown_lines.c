/* SPDX-License-Identifier: MIT */
/* markdown_lines.c - line numbers of places in a text, and taming of texts that would keep md4c
 * busy for ever. */
#include <stdlib.h>
#include <string.h>

#include "markdown_parts.h"

/* Lines times brackets of paragraphs that md4c may get: it takes about 0.1 ms for a million.
 * Paragraphs of people stay far below. */
#define TAME_WORK_MAX ((uint64_t)400 * 1000 * 1000)
/* The same where paragraphs end only for certain: long tables are quick, but what looks like
 * one need not be one. */
#define TAME_RUN_WORK_MAX ((uint64_t)10 * 1000 * 1000 * 1000)

int on_lines_init(struct on_lines *lines, struct ng_str text)
{
    size_t count = 1;
    for (size_t at = 0; at < text.len; at++) {
        const char *end = memchr(text.data + at, '\n', text.len - at);
        if (end == NULL) {
            break;
        }
        count++;
        at = (size_t)(end - text.data);
    }
    lines->starts = malloc(count * sizeof(*lines->starts));
    if (lines->starts == NULL) {
        return NG_EINTERNAL;
    }
    lines->count = 0;
    lines->starts[lines->count++] = 0;
    for (size_t at = 0; at < text.len && lines->count < count; at++) {
        const char *end = memchr(text.data + at, '\n', text.len - at);
        if (end == NULL) {
            break;
        }
        at = (size_t)(end - text.data);
        lines->starts[lines->count++] = (uint32_t)(at + 1);
    }
    return NG_OK;
}

void on_lines_done(struct on_lines *lines)
{
    free(lines->starts);
    lines->starts = NULL;
    lines->count = 0;
}

uint32_t on_lines_of(const struct on_lines *lines, size_t offset)
{
    size_t low = 0;
    size_t high = lines->count;
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (lines->starts[middle] <= offset) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return (uint32_t)(low + 1);
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

/* Behind block quotes, list marks and blanks at the beginning of a line. */
static size_t skip_containers(struct ng_str line)
{
    size_t at = 0;
    for (;;) {
        size_t digits = at;
        while (digits < line.len && line.data[digits] >= '0' && line.data[digits] <= '9') {
            digits++;
        }
        if (at < line.len && (is_blank(line.data[at]) || line.data[at] == '>')) {
            at++;
        } else if (at + 1 < line.len && strchr("-+*", line.data[at]) != NULL &&
                   is_blank(line.data[at + 1])) {
            at += 2;
        } else if (digits > at && digits + 1 < line.len &&
                   (line.data[digits] == '.' || line.data[digits] == ')') &&
                   is_blank(line.data[digits + 1])) {
            at = digits + 2;
        } else {
            return at;
        }
    }
}

/* md4c takes a lone CR for one, too. */
static bool is_line_end(char c)
{
    return c == '\n' || c == '\r';
}

/* "##", "## ##" */
static bool is_empty_heading(struct ng_str line, unsigned level)
{
    size_t at = skip_containers(line);
    size_t marks = at;
    while (marks < line.len && line.data[marks] == '#') {
        marks++;
    }
    if (marks - at != level || (marks < line.len && !is_blank(line.data[marks]))) {
        return false;
    }
    while (marks < line.len && is_blank(line.data[marks])) {
        marks++;
    }
    while (marks < line.len && line.data[marks] == '#') {
        marks++;
    }
    while (marks < line.len && is_blank(line.data[marks])) {
        marks++;
    }
    return marks == line.len;
}

size_t on_lines_empty_heading(struct ng_str text, size_t from, unsigned level)
{
    size_t begin = from;
    while (begin > 0 && !is_line_end(text.data[begin - 1])) {
        begin--;
    }
    while (begin < text.len) {
        size_t end = begin;
        while (end < text.len && !is_line_end(text.data[end])) {
            end++;
        }
        if (is_empty_heading(on_str(text.data + begin, end - begin), level)) {
            return end;
        }
        begin = end + 1;
    }
    return SIZE_MAX;
}

/* ---- taming */

/* Does a new block surely begin here, so that a paragraph before it is over? */
static bool begins_block(struct ng_str line)
{
    size_t at = skip_containers(line);
    if (at == line.len || line.data[at] == '#' || line.data[at] == '|') {
        return true;
    }
    for (size_t i = 0; i < at; i++) {
        if (!is_blank(line.data[i]) && line.data[i] != '>') {
            return true; /* a list mark */
        }
    }
    /* A definition; only the first of a paragraph, but blocks of them take linear time. */
    return line.data[at] == '[' && on_find(line, on_str("]:", 2), at) != SIZE_MAX;
}

/* Does one begin here whatever was before: an item, a heading, a blank line? */
static bool surely_begins_block(struct ng_str line)
{
    size_t at = 0;
    while (at < line.len && at < 3 && line.data[at] == ' ') {
        at++;
    }
    if (at + 2 < line.len && strchr("-+*", line.data[at]) != NULL &&
        is_blank(line.data[at + 1])) {
        return on_trim(on_str(line.data + at + 1, line.len - at - 1)).len > 0;
    }
    size_t marks = at;
    while (marks < line.len && line.data[marks] == '#') {
        marks++;
    }
    return on_trim(line).len == 0 ||
           (marks > at && marks - at <= 6 && marks < line.len && is_blank(line.data[marks]));
}

struct run {
    uint64_t lines, brackets;
    uint64_t work; /* lines times brackets of all runs so far */
};

/* Adds a line with so many brackets; how much the work is then. */
static uint64_t run_add(struct run *run, bool fresh, uint64_t brackets)
{
    if (fresh) {
        run->lines = 0;
        run->brackets = 0;
    }
    run->lines++;
    run->brackets += brackets;
    run->work += run->brackets + brackets * run->lines;
    return run->work;
}

static uint64_t count_brackets(struct ng_str line)
{
    uint64_t brackets = 0;
    for (size_t i = 0; i < line.len; i++) {
        brackets += line.data[i] == '[' || line.data[i] == ']';
    }
    return brackets;
}

static int blank_brackets(struct ng_str text, size_t at, size_t len, char **copy)
{
    if (*copy == NULL) {
        *copy = malloc(text.len);
        if (*copy == NULL) {
            return NG_EINTERNAL;
        }
        memcpy(*copy, text.data, text.len);
    }
    for (size_t i = at; i < at + len; i++) {
        if ((*copy)[i] == '[' || (*copy)[i] == ']') {
            (*copy)[i] = ' ';
        }
    }
    return NG_OK;
}

int on_markdown_tame(struct ng_str text, char **ret_copy)
{
    struct run paragraph = {0, 0, 0};
    struct run run = {0, 0, 0};
    char *copy = NULL;
    for (size_t at = 0; at < text.len;) {
        const char *lf = memchr(text.data + at, '\n', text.len - at);
        size_t end = lf != NULL ? (size_t)(lf - text.data) : text.len;
        struct ng_str line = on_str(text.data + at, end - at);
        uint64_t brackets = count_brackets(line);
        bool over = run_add(&paragraph, begins_block(line), brackets) > TAME_WORK_MAX;
        over = run_add(&run, surely_begins_block(line), brackets) > TAME_RUN_WORK_MAX || over;
        if (over && brackets > 0 && paragraph.lines + run.lines > 2) {
            if (blank_brackets(text, at, line.len, &copy) != NG_OK) {
                return NG_EINTERNAL;
            }
        }
        at = end + 1;
    }
    *ret_copy = copy;
    return NG_OK;
}
