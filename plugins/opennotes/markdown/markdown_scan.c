/* SPDX-License-Identifier: MIT */
/* markdown_scan.c - reads the text of one block in one pass: code, HTML, links, tags, comments,
 * and the remaining plain text. */
#include <stdlib.h>
#include <string.h>

#include "core/base/array.h"
#include "markdown_memory.h"
#include "markdown_parts.h"

#define BRACKETS_MAX 1000 /* open brackets that can still become links */
#define LINKS_MAX 10000   /* found within open brackets */

void notes_scan_init(struct notes_scan *scan, const struct notes_blocks *blocks)
{
    *scan = (struct notes_scan){.blocks = blocks, .delimiters = {.newest = SIZE_MAX}};
    buf_init(&scan->plain, SIZE_MAX / 4);
}

void notes_scan_done(struct notes_scan *scan)
{
    buf_done(&scan->plain);
    free(scan->delimiters.items);
    free(scan->brackets);
    free(scan->links);
    *scan = (struct notes_scan){.blocks = NULL};
}

/* ---- plain text */

static bool is_kept(const struct notes_scan *scan)
{
    return scan->whole_text || scan->bracket_count > 0;
}

static void put(struct notes_scan *scan, struct ng_str text)
{
    if (is_kept(scan)) {
        buf_add_str(&scan->plain, text);
    }
}

static void put_source(struct notes_scan *scan, size_t end)
{
    put(scan, str_make(scan->text.data + scan->at, end - scan->at));
    scan->at = end;
}

void notes_scan_plain(const struct notes_scan *scan, size_t at, size_t end, bool images,
                      struct buf *out)
{
    struct ng_str plain = notes_buf_str(&scan->plain);
    unsigned depth = 0;
    size_t from = at;
    for (size_t i = at; i <= end && out->rc == NG_OK; i++) {
        char c = NOTES_MARK_GONE;
        if (i < end) {
            c = plain.data[i];
        }
        bool mark = c == NOTES_MARK_GONE || c == NOTES_MARK_IMAGE || c == NOTES_MARK_IMAGE_END;
        if (!mark) {
            continue;
        }
        if (depth == 0 || images) {
            struct ng_str part = str_make(plain.data + from, i - from);
            buf_add_str(out, utf8_cut(part, NOTES_MARKDOWN_TEXT_MAX - out->len));
        }
        depth += c == NOTES_MARK_IMAGE;
        depth -= c == NOTES_MARK_IMAGE_END;
        from = i + 1;
    }
}

/* ---- results */

/* Reports results that cannot be revoked any more. */
static void tell(struct notes_scan *scan)
{
    for (size_t i = 0; i < scan->link_count && scan->rc == NG_OK; i++) {
        scan->rc = scan->found(scan->user, &scan->links[i]);
    }
    scan->link_count = 0;
    if (!scan->whole_text) {
        buf_clear(&scan->plain);
        scan->delimiters.count = 0;
        scan->delimiters.newest = SIZE_MAX;
    }
}

static void tell_settled(struct notes_scan *scan)
{
    if (scan->link_count > LINKS_MAX) {
        scan->bracket_count = 0;
    }
    for (size_t i = 0; i < scan->bracket_count; i++) {
        if (scan->brackets[i].active) {
            return;
        }
    }
    scan->bracket_count = 0;
    tell(scan);
}

static void add_link(struct notes_scan *scan, struct notes_scan_link link)
{
    if (link.at < scan->hidden_to) {
        return;
    }
    if (array_reserve((void **)&scan->links, &scan->link_room, scan->link_count + 1,
                      sizeof(*scan->links), NOTES_ITEMS_MAX) != NG_OK) {
        scan->rc = NG_EINTERNAL;
        return;
    }
    scan->links[scan->link_count++] = link;
}

/* ---- code and HTML */

static size_t ticks_end(struct ng_str text, size_t at)
{
    while (at < text.len && text.data[at] == '`') {
        at++;
    }
    return at;
}

/* Finds the last run of each length in one pass, instead of one pass for each run. */
static void know_ticks(struct notes_scan *scan)
{
    memset(scan->last_ticks, 0, sizeof(scan->last_ticks));
    scan->ticks_known = true;
    for (size_t at = notes_find_char(scan->text, 0, '`'); at < scan->text.len;
         at = notes_find_char(scan->text, at, '`')) {
        size_t end = ticks_end(scan->text, at);
        if (end - at <= NOTES_TICKS_MAX) {
            scan->last_ticks[end - at] = at;
        }
        at = end;
    }
}

/* Line ends in code become blanks; one blank on each side belongs to the marks. */
static void put_code(struct notes_scan *scan, struct ng_str code)
{
    bool blank = notes_trim(code).len == 0;
    if (!blank && code.len > 2 && memchr(" \n", code.data[0], 2) != NULL &&
        memchr(" \n", code.data[code.len - 1], 2) != NULL) {
        code = str_make(code.data + 1, code.len - 2);
    }
    for (size_t at = 0; at < code.len && is_kept(scan);) {
        size_t end = notes_find_char(code, at, '\n');
        put(scan, str_make(code.data + at, end - at));
        put(scan, str_make(" ", end < code.len));
        at = end + 1;
    }
}

static void read_code(struct notes_scan *scan)
{
    size_t begin = ticks_end(scan->text, scan->at);
    size_t count = begin - scan->at;
    if (!scan->ticks_known) {
        know_ticks(scan);
    }
    bool closed = count <= NOTES_TICKS_MAX && scan->last_ticks[count] >= begin;
    for (size_t at = begin; closed;) {
        at = notes_find_char(scan->text, at, '`');
        size_t end = ticks_end(scan->text, at);
        if (end - at == count) {
            put_code(scan, str_make(scan->text.data + begin, at - begin));
            scan->at = end;
            return;
        }
        at = end;
    }
    put_source(scan, begin);
}

/* Comments and other constructs that begin with "<!" or "<?"; the end, or `at`. */
static size_t special_end(struct notes_scan *scan, size_t at)
{
    static const struct {
        const char *begin, *end;
    } kinds[NOTES_HTML_ENDS] = {
        {"<!--", "-->"}, {"<?", "?>"}, {"<![CDATA[", "]]>"}, {"<!", ">"}};
    struct ng_str rest = str_make(scan->text.data + at, scan->text.len - at);
    for (size_t i = 0; i < NG_COUNT(kinds); i++) {
        size_t len = strlen(kinds[i].begin);
        if (!str_begins(rest, kinds[i].begin)) {
            continue;
        }
        bool letter =
            rest.len > len && (rest.data[len] | 32) >= 'a' && (rest.data[len] | 32) <= 'z';
        if (scan->no_end[i] || (i == 3 && !letter)) {
            return at;
        }
        /* "<!-->" is a whole comment. */
        size_t end = str_find(rest, ng_str_of(kinds[i].end), len - (size_t)2 * (i == 0));
        scan->no_end[i] = end == SIZE_MAX;
        if (end == SIZE_MAX) {
            return at;
        }
        return at + end + strlen(kinds[i].end);
    }
    return at;
}

static void read_angle(struct notes_scan *scan)
{
    struct ng_str address;
    bool mail = false;
    size_t end = 0;
    if (notes_autolink_at(scan->text, scan->at, &address, &mail, &end)) {
        size_t plain = scan->plain.len;
        put(scan, address);
        struct notes_scan_link link = {.kind = NOTES_LINK_AUTO,
                                       .at = scan->at,
                                       .text = plain,
                                       .text_end = scan->plain.len,
                                       .own = address,
                                       .target = address};
        link.mail = mail;
        add_link(scan, link);
        scan->at = end;
        return;
    }
    end = special_end(scan, scan->at);
    if (end == scan->at) {
        end = notes_html_end(scan->text, scan->at);
    }
    if (end > scan->at) {
        scan->at = end;
    } else {
        put_source(scan, scan->at + 1);
    }
}

/* ---- brackets */

static void push_bracket(struct notes_scan *scan, bool image)
{
    if (scan->bracket_count > 0) {
        scan->brackets[scan->bracket_count - 1].holds_bracket = true;
    }
    if (scan->bracket_count == BRACKETS_MAX) {
        scan->bracket_count = 0;
    }
    if (array_reserve((void **)&scan->brackets, &scan->bracket_room, scan->bracket_count + 1,
                      sizeof(*scan->brackets), BRACKETS_MAX) != NG_OK) {
        scan->rc = NG_EINTERNAL;
        return;
    }
    scan->brackets[scan->bracket_count++] =
        (struct notes_bracket){.at = scan->at,
                               .plain = scan->plain.len,
                               .delimiters = scan->delimiters.newest,
                               .links = scan->link_count,
                               .image = image,
                               .active = true};
    put_source(scan, scan->at + 1 + image);
}

/* The kind, target and end of a bracket that closes here; 0: it is text. */
static enum notes_link_kind resolve(struct notes_scan *scan,
                                    const struct notes_bracket *bracket,
                                    struct notes_scan_link *link, size_t *ret_end)
{
    struct ng_str text = scan->text;
    size_t begin = bracket->at + 1 + bracket->image;
    struct ng_str second;
    if (notes_target_at(text, scan->at + 1, &link->target, ret_end)) {
        return NOTES_LINK_INLINE;
    }
    link->label = str_make(text.data + begin, scan->at - begin);
    *ret_end = scan->at + 1;
    if (notes_label_at(text, scan->at + 1, &second, ret_end) && second.len > 0) {
        link->label = second;
    } else if (bracket->holds_bracket) {
        return 0;
    }
    if (!notes_blocks_refs_find(scan->blocks->refs, link->label, &link->target)) {
        return 0;
    }
    return NOTES_LINK_REFERENCE;
}

/* Forgets the links behind the first `count`: they are in the text of a link or an image. The
 * images in a link's text stay. */
static void drop_inner(struct notes_scan *scan, size_t count, bool in_image)
{
    size_t kept = size_min(count, scan->link_count);
    for (size_t i = kept; i < scan->link_count && !in_image; i++) {
        if (scan->links[i].image) {
            scan->links[kept++] = scan->links[i];
        }
    }
    scan->link_count = kept;
}

static void close_bracket(struct notes_scan *scan)
{
    struct notes_scan_link link = {.image = false};
    size_t end = 0;
    if (scan->bracket_count == 0) {
        put_source(scan, scan->at + 1);
        return;
    }
    const struct notes_bracket bracket = scan->brackets[--scan->bracket_count];
    if (bracket.active) {
        link.kind = resolve(scan, &bracket, &link, &end);
    }
    if (link.kind == 0) {
        scan->bracket_count++; /* keeps the plain text while the bracket is added */
        put_source(scan, scan->at + 1);
        scan->bracket_count--;
        tell_settled(scan);
        return;
    }
    notes_emphasis_pair(scan, bracket.delimiters);
    drop_inner(scan, bracket.links, bracket.image);
    if (scan->plain.rc != NG_OK) {
        scan->rc = NG_EINTERNAL;
        return;
    }
    scan->plain.data[bracket.plain] = bracket.image ? NOTES_MARK_IMAGE : NOTES_MARK_GONE;
    if (bracket.image) {
        scan->plain.data[bracket.plain + 1] = NOTES_MARK_GONE;
        buf_add_char(&scan->plain, NOTES_MARK_IMAGE_END);
    }
    link.at = bracket.at;
    link.text = bracket.plain + 1;
    link.text_end = scan->plain.len;
    link.image = bracket.image;
    if (!bracket.image || scan->images) {
        add_link(scan, link);
    }
    if (!bracket.image) {
        for (size_t i = 0; i < scan->bracket_count; i++) {
            scan->brackets[i].active = scan->brackets[i].active && scan->brackets[i].image;
        }
    }
    scan->at = end;
    tell_settled(scan);
}

/* A wiki link whose "[[" is at `at`; `embedded`: behind '!'. */
static bool read_wiki(struct notes_scan *scan, size_t at, bool embedded)
{
    struct notes_scan_link link = {.kind = NOTES_LINK_WIKI, .at = at};
    struct ng_str text = scan->text;
    size_t end = 0;
    bool opens = at + 2 < text.len && text.data[at] == '[' && text.data[at + 1] == '[' &&
                 text.data[at + 2] != '[';
    if (!opens || !notes_wiki_at(text, at, &link.target, &link.own, &end)) {
        return false;
    }
    link.image = embedded && notes_wiki_is_media(link.target);
    if (link.image && scan->images) {
        add_link(scan, link);
    } else if (!link.image) {
        link.text = scan->plain.len;
        put(scan, link.own);
        link.text_end = scan->plain.len;
        add_link(scan, link);
    }
    scan->at = end;
    return true;
}

static void read_bracket(struct notes_scan *scan)
{
    if (!read_wiki(scan, scan->at, false)) {
        push_bracket(scan, false);
    }
}

static void read_bang(struct notes_scan *scan)
{
    bool opens = scan->at + 1 < scan->text.len && scan->text.data[scan->at + 1] == '[';
    if (!opens) {
        put_source(scan, scan->at + 1);
    } else if (!read_wiki(scan, scan->at + 1, true)) {
        push_bracket(scan, true);
    }
}

/* ---- the rest */

static void read_address(struct notes_scan *scan)
{
    size_t at = scan->at;
    bool goes_on = at > 0 && (unsigned char)scan->text.data[at - 1] < 0x80 &&
                   notes_is_word(scan->text.data[at - 1]);
    size_t end = notes_address_end(scan->text, at);
    if (goes_on || end == at) {
        put_source(scan, at + 1);
        return;
    }
    struct notes_scan_link link = {.kind = NOTES_LINK_AUTO, .at = at, .text = scan->plain.len};
    link.own = link.target = str_make(scan->text.data + at, end - at);
    put_source(scan, end);
    link.text_end = scan->plain.len;
    add_link(scan, link);
}

static void read_tag(struct notes_scan *scan)
{
    size_t end = notes_inline_tag_end(scan->text, scan->at);
    if (end == scan->at) {
        put_source(scan, scan->at + 1);
        return;
    }
    struct notes_scan_link link = {.at = scan->at, .tag = true};
    link.target = str_make(scan->text.data + scan->at + 1, end - scan->at - 1);
    put_source(scan, end);
    add_link(scan, link);
}

static bool begins_line(struct ng_str text, size_t at)
{
    while (at > 0 && (text.data[at - 1] == ' ' || text.data[at - 1] == '\t')) {
        at--;
    }
    return at == 0 || text.data[at - 1] == '\n' || text.data[at - 1] == '\r';
}

static void read_comment(struct notes_scan *scan)
{
    size_t at = scan->at;
    if (at + 1 >= scan->text.len || scan->text.data[at + 1] != '%') {
        put_source(scan, at + 1);
        return;
    }
    size_t end = str_find(scan->text, str_make("%%", 2), at + 2);
    if (end != SIZE_MAX) {
        scan->at = end + 2;
        return;
    }
    if (begins_line(scan->text, at) && scan->hides != NULL && scan->hides(scan->user, at)) {
        scan->hidden_to = SIZE_MAX;
    }
    put_source(scan, at + 2);
}

static void read_escape(struct notes_scan *scan)
{
    char next = '\0';
    if (scan->at + 1 < scan->text.len) {
        next = scan->text.data[scan->at + 1];
    }
    bool punct = next != '\0' && (unsigned char)next < 0x7f && next > ' ' &&
                 (next == '_' || !notes_is_word(next));
    if (!punct) {
        bool breaks = next == '\n' || next == '\r';
        scan->at += breaks;
        put_source(scan, scan->at + !breaks);
        return;
    }
    scan->at++;
    put_source(scan, scan->at + 1);
}

static void read_line_end(struct notes_scan *scan)
{
    /* Keeps blanks at the end of a link's text. */
    size_t least = 0;
    if (scan->link_count > 0) {
        least = scan->links[scan->link_count - 1].text_end;
    }
    while (scan->plain.rc == NG_OK && scan->plain.len > least &&
           scan->plain.data[scan->plain.len - 1] == ' ') {
        scan->plain.len--;
    }
    while (scan->at < scan->text.len &&
           memchr(" \t\r\n", scan->text.data[scan->at], 4) != NULL) {
        scan->at++;
    }
    put(scan, str_make(" ", 1));
}

static void read_run(struct notes_scan *scan)
{
    size_t end = scan->at;
    char c = scan->text.data[scan->at];
    while (end < scan->text.len && scan->text.data[end] == c) {
        end++;
    }
    if (is_kept(scan) && !notes_emphasis_add(scan, scan->text, scan->at, end)) {
        scan->rc = NG_EINTERNAL;
    }
    put_source(scan, end);
}

static void read_entity(struct notes_scan *scan)
{
    size_t end = notes_entity_end(scan->text, scan->at);
    if (end > scan->at && is_kept(scan)) {
        notes_entity_add(&scan->plain, str_make(scan->text.data + scan->at, end - scan->at));
        scan->at = end;
    } else {
        put_source(scan, size_max(end, scan->at + 1));
    }
}

static void read_plain(struct notes_scan *scan)
{
    static const char special[] = "\\`<[]!&*_~\n\rhH#%";
    size_t end = scan->at + 1;
    while (end < scan->text.len &&
           memchr(special, scan->text.data[end], sizeof(special) - 1) == NULL) {
        end++;
    }
    put_source(scan, end);
}

static void step(struct notes_scan *scan)
{
    switch (scan->text.data[scan->at]) {
    case '\\':
        read_escape(scan);
        break;
    case '`':
        read_code(scan);
        break;
    case '<':
        read_angle(scan);
        break;
    case '[':
        read_bracket(scan);
        break;
    case '!':
        read_bang(scan);
        break;
    case ']':
        close_bracket(scan);
        break;
    case '&':
        read_entity(scan);
        break;
    case '*':
    case '_':
    case '~':
        read_run(scan);
        break;
    case '\n':
    case '\r':
        read_line_end(scan);
        break;
    case 'h':
    case 'H':
        read_address(scan);
        break;
    case '#':
        read_tag(scan);
        break;
    case '%':
        read_comment(scan);
        break;
    default:
        read_plain(scan);
    }
}

int notes_scan_text(struct notes_scan *scan, struct ng_str text)
{
    scan->text = text;
    scan->at = 0;
    scan->rc = NG_OK;
    scan->ticks_known = false;
    scan->bracket_count = scan->link_count = 0;
    scan->delimiters.count = 0;
    scan->delimiters.newest = SIZE_MAX;
    memset(scan->no_end, 0, sizeof(scan->no_end));
    buf_clear(&scan->plain);
    while (scan->at < text.len && scan->rc == NG_OK) {
        step(scan);
        if (scan->bracket_count == 0 && scan->link_count > 0) {
            tell(scan);
        }
        if (scan->rc == NG_OK && scan->plain.rc != NG_OK) {
            scan->rc = NG_EINTERNAL;
        }
    }
    scan->bracket_count = 0;
    if (scan->rc == NG_OK) {
        tell(scan);
    }
    if (scan->rc == NG_OK && scan->whole_text) {
        notes_emphasis_pair(scan, SIZE_MAX);
    }
    return scan->rc;
}
