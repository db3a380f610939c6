/* SPDX-License-Identifier: MIT */
/* entry_heading.c - headings of Markdown: ATX (# one) and setext (underlined), outside of
 * fenced blocks and front matter. */
#include <string.h>

#include "entry_text.h"

/* A line with more columns of indentation is code, not a heading or fence. */
#define HEADING_INDENT_MAX 3
#define HEADING_LEVEL_MAX 6
#define FENCE_MIN 3

/* The line that begins at `at`, without its line end; *ret_next: the start of the next line. */
static struct ng_str line_at(struct ng_str text, size_t at, size_t *ret_next)
{
    const char *end = memchr(text.data + at, '\n', text.len - at);
    size_t len;
    if (end == NULL) {
        len = text.len - at;
    } else {
        len = (size_t)(end - text.data) - at;
    }
    if (end == NULL) {
        *ret_next = text.len;
    } else {
        *ret_next = at + len + 1;
    }
    if (len > 0 && text.data[at + len - 1] == '\r') {
        len--;
    }
    struct ng_str line = {text.data + at, len};
    return line;
}

static bool is_blank_char(char c)
{
    return c == ' ' || c == '\t';
}

/* The line without its indentation; false: it is indented too far. */
static bool unindent(struct ng_str line, struct ng_str *ret)
{
    size_t spaces = 0;
    while (spaces < line.len && line.data[spaces] == ' ') {
        spaces++;
    }
    ret->data = line.data + spaces;
    ret->len = line.len - spaces;
    return spaces <= HEADING_INDENT_MAX && (ret->len == 0 || ret->data[0] != '\t');
}

static size_t run_of(struct ng_str line, char c)
{
    size_t count = 0;
    while (count < line.len && line.data[count] == c) {
        count++;
    }
    return count;
}

static bool all_blank(struct ng_str line)
{
    size_t i = 0;
    while (i < line.len && is_blank_char(line.data[i])) {
        i++;
    }
    return i == line.len;
}

static struct ng_str behind(struct ng_str line, size_t count)
{
    struct ng_str rest = {line.data + count, line.len - count};
    return rest;
}

/* Strips the marks at the end of "# Text #". */
static struct ng_str atx_text(struct ng_str line)
{
    struct ng_str text = entry_trim(line);
    size_t end = text.len;
    while (end > 0 && text.data[end - 1] == '#') {
        end--;
    }
    if (end == 0 || (end < text.len && is_blank_char(text.data[end - 1]))) {
        text.len = end;
        text = entry_trim(text);
    }
    return text;
}

static bool is_atx(struct ng_str line, struct entry_heading *ret)
{
    struct ng_str bare;
    if (!unindent(line, &bare)) {
        return false;
    }
    size_t marks = run_of(bare, '#');
    if (marks == 0 || marks > HEADING_LEVEL_MAX ||
        (marks < bare.len && !is_blank_char(bare.data[marks]))) {
        return false;
    }
    ret->level = (unsigned)marks;
    ret->underlined = false;
    ret->text = atx_text(behind(bare, marks));
    return true;
}

/* The level of a heading with this underline; 0: it is no underline. */
static unsigned underline(struct ng_str line)
{
    struct ng_str bare;
    if (!unindent(line, &bare) || bare.len == 0) {
        return 0;
    }
    size_t equals = run_of(bare, '=');
    size_t dashes = run_of(bare, '-');
    size_t marks = dashes;
    if (equals > 0) {
        marks = equals;
    }
    if (marks == 0 || !all_blank(behind(bare, marks))) {
        return 0;
    }
    if (equals > 0) {
        return 1;
    }
    return 2;
}

/* Enters or leaves a fenced block; true: the line belongs to one. */
static bool in_fence(struct entry_scan *scan, struct ng_str line)
{
    struct ng_str bare;
    bool shallow = unindent(line, &bare);
    if (scan->fence != '\0') {
        size_t marks = run_of(bare, scan->fence);
        if (shallow && marks >= scan->fence_len && all_blank(behind(bare, marks))) {
            scan->fence = '\0';
        }
        return true;
    }
    char mark = '\0';
    if (bare.len > 0) {
        mark = bare.data[0];
    }
    if (!shallow || (mark != '`' && mark != '~')) {
        return false;
    }
    size_t marks = run_of(bare, mark);
    struct ng_str info = behind(bare, marks);
    if (marks < FENCE_MIN ||
        (mark == '`' && info.len > 0 && memchr(info.data, '`', info.len) != NULL)) {
        return false;
    }
    scan->fence = mark;
    scan->fence_len = marks;
    return true;
}

/* Begins a quote or a list: a --- below it is a rule, not an underline. */
static bool is_container(struct ng_str line)
{
    struct ng_str bare;
    if (!unindent(line, &bare) || bare.len == 0) {
        return false;
    }
    if (bare.data[0] == '>') {
        return true;
    }
    size_t digits = 0;
    while (digits < bare.len && bare.data[digits] >= '0' && bare.data[digits] <= '9') {
        digits++;
    }
    char mark = '\0';
    if (digits < bare.len) {
        mark = bare.data[digits];
    }
    bool bullet = digits == 0 && (mark == '-' || mark == '*' || mark == '+');
    bool number = digits > 0 && (mark == '.' || mark == ')');
    return (bullet || number) &&
           (digits + 1 == bare.len || is_blank_char(bare.data[digits + 1]));
}

/* Skips front matter: from a first line --- to the next such line. */
static void skip_front_matter(struct entry_scan *scan)
{
    size_t next = 0;
    scan->begun = true;
    if (scan->text.len == 0) {
        return;
    }
    struct ng_str line = line_at(scan->text, 0, &next);
    if (line.len != 3 || memcmp(line.data, "---", 3) != 0) {
        return;
    }
    while (next < scan->text.len) {
        line = line_at(scan->text, next, &next);
        if (line.len == 3 && memcmp(line.data, "---", 3) == 0) {
            scan->at = next;
            return;
        }
    }
}

/* Updates the paragraph that an underline may make a heading. */
static void note_paragraph(struct entry_scan *scan, struct ng_str line, size_t at)
{
    struct ng_str bare;
    bool shallow = unindent(line, &bare);
    if (all_blank(line) || is_container(line)) {
        scan->in_paragraph = false;
    } else if (!scan->in_paragraph && shallow) {
        scan->in_paragraph = true;
        scan->paragraph = at;
    }
}

bool entry_next_heading(struct entry_scan *scan, struct entry_heading *ret)
{
    if (!scan->begun) {
        skip_front_matter(scan);
    }
    while (scan->at < scan->text.len) {
        size_t at = scan->at;
        struct ng_str line = line_at(scan->text, at, &scan->at);
        if (in_fence(scan, line)) {
            scan->in_paragraph = false;
            continue;
        }
        ret->body = scan->at;
        ret->at = at;
        if (is_atx(line, ret)) {
            scan->in_paragraph = false;
            return true;
        }
        unsigned level = 0;
        if (scan->in_paragraph) {
            level = underline(line);
        }
        if (level > 0) {
            struct ng_str text = {scan->text.data + scan->paragraph, at - scan->paragraph};
            ret->text = entry_trim(text);
            ret->level = level;
            ret->underlined = true;
            ret->at = scan->paragraph;
            scan->in_paragraph = false;
            return true;
        }
        note_paragraph(scan, line, at);
    }
    return false;
}

/* Reads the text of a heading. */
struct reader {
    struct ng_str text;
    size_t at;
    size_t plain_until; /* there is no line end in the white space up to here */
};

/* The next character; white space around a line end is one space. Each run of white space is
 * scanned once, so the time is linear. */
static char next_char(struct reader *reader)
{
    const struct ng_str text = reader->text;
    size_t end = reader->at;
    bool line_end = false;
    while (
        reader->at >= reader->plain_until && end < text.len &&
        (is_blank_char(text.data[end]) || text.data[end] == '\r' || text.data[end] == '\n')) {
        line_end = line_end || text.data[end] == '\n';
        end++;
    }
    if (line_end) {
        reader->at = end;
        return ' ';
    }
    if (end > reader->plain_until) {
        reader->plain_until = end;
    }
    return text.data[reader->at++];
}

static bool same_text(struct ng_str a, struct ng_str b)
{
    struct reader left = {.text = a};
    struct reader right = {.text = b};
    while (left.at < a.len && right.at < b.len) {
        if (next_char(&left) != next_char(&right)) {
            return false;
        }
    }
    return left.at == a.len && right.at == b.len;
}

struct ng_str entry_heading_text(struct ng_call *call, const struct entry_heading *heading)
{
    struct ng_str text = heading->text;
    if (text.len == 0 || memchr(text.data, '\n', text.len) == NULL) {
        return text;
    }
    char *line = ng_alloc(call, text.len);
    if (line == NULL) {
        return text; /* the call has failed */
    }
    struct reader reader = {.text = text};
    struct ng_str ret = {line, 0};
    while (reader.at < text.len) {
        line[ret.len++] = next_char(&reader);
    }
    return ret;
}

static bool find_named(struct ng_str text, struct ng_str name, struct entry_section *ret)
{
    struct entry_scan scan = {.text = text};
    struct entry_heading heading;
    bool found = false;
    bool ended = false;
    while (entry_next_heading(&scan, &heading)) {
        if (found && !ended && heading.level <= ret->heading.level) {
            ret->end = heading.at;
            ret->next_underlined = heading.underlined;
            ended = true;
        }
        if (found) {
            if (ret->again == SIZE_MAX && same_text(heading.text, name)) {
                ret->again = heading.at;
            }
            if (ended && ret->again != SIZE_MAX) {
                return true;
            }
            continue;
        }
        if (!same_text(heading.text, name)) {
            continue;
        }
        found = true;
        ret->heading = heading;
        ret->end = text.len;
        ret->next_underlined = false;
        ret->again = SIZE_MAX;
    }
    return found;
}

bool entry_find_section(struct ng_str text, struct ng_str name, struct entry_section *ret)
{
    struct ng_str plain = entry_trim(name);
    if (find_named(text, plain, ret)) {
        return true;
    }
    /* Strip the marks: models copy them. */
    size_t marks = run_of(plain, '#');
    return marks > 0 && marks < plain.len &&
           find_named(text, entry_trim(behind(plain, marks)), ret);
}

bool entry_may_head(struct ng_str lines)
{
    size_t at = 0;
    while (at < lines.len) {
        struct ng_str line = line_at(lines, at, &at);
        struct ng_str bare;
        if (unindent(line, &bare) && bare.len > 0 &&
            (bare.data[0] == '#' || underline(line) > 0)) {
            return true;
        }
    }
    return false;
}
