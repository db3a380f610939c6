/* SPDX-License-Identifier: MIT */
/* frontmatter.c - locates front matter in a file. */
#include "note.h"

#include <string.h>

#define BOM "\xef\xbb\xbf"

/* The fence with nothing but blanks behind it. */
static bool is_fence(struct ng_str line, const char *fence)
{
    if (!str_begins(line, fence)) {
        return false;
    }
    for (size_t i = strlen(fence); i < line.len; i++) {
        if (line.data[i] != ' ' && line.data[i] != '\t' &&
            !(line.data[i] == '\r' && i + 1 == line.len)) {
            return false;
        }
    }
    return true;
}

void notes_frontmatter_find(struct ng_str bytes, struct notes_frontmatter *frontmatter)
{
    size_t bom = str_begins(bytes, BOM) * strlen(BOM);
    *frontmatter = (struct notes_frontmatter){.bom = bom, .body = bom, .yaml = bom, .end = bom};
    size_t next = bom;
    struct ng_str line = notes_line(bytes, bom, &next);
    bool ended = next > bom + line.len;
    frontmatter->crlf = ended && str_ends(line, "\r");
    if (!is_fence(line, "---") || !ended) {
        return;
    }
    size_t yaml = next;
    size_t lines = 1;
    while (next < bytes.len) {
        size_t at = next;
        line = notes_line(bytes, at, &next);
        lines++;
        if (is_fence(line, "---") || is_fence(line, "...")) {
            frontmatter->there = true;
            frontmatter->yaml = yaml;
            frontmatter->end = at;
            frontmatter->body = next;
            frontmatter->lines = lines;
            return;
        }
    }
}
