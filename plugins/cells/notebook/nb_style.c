/* SPDX-License-Identifier: MIT */
/* nb_style.c - detects the layout of a file and writes JSON in that layout. */
#include "nb.h"

#include <string.h>

/* Default: Jupyter's own layout. */
static const struct nb_style jupyter = {.indent = " ", .newline = "\n", .space_colon = true};

/* The value behind this name. Usually it is the list of cells, whose end the index has. */
static struct nb_span value_of(const struct nb *nb, struct nb_walk *walk, struct nb_span name)
{
    struct nb_span value = {0, 0};
    size_t at = name.at + name.len;
    while (strchr(" \t\r\n:", nb->bytes.data[at]) != NULL) {
        at++;
    }
    if (at == nb->cells_array.at) {
        return nb->cells_array;
    }
    walk->at = at;
    (void)nb_walk_element(walk, &value);
    return value;
}

/* Takes the layout of the top object: the bytes between its bracket and its first member. */
static void detect_layout(struct nb *nb)
{
    struct nb_style *style = &nb->style;
    struct nb_walk walk = nb_walk_into(nb->bytes, nb->top);
    struct nb_span name;
    const char *data = nb->bytes.data;
    if (!nb_walk_element(&walk, &name)) {
        return;
    }
    struct nb_span value = value_of(nb, &walk, name);
    size_t start = nb->top.at + 1;
    const char *line = memchr(data + start, '\n', name.at - start);
    style->flat = line == NULL;
    style->space_colon = data[value.at - 1] == ' ';
    style->space_comma =
        value.at + value.len + 1 < nb->bytes.len && data[value.at + value.len + 1] == ' ';
    style->indent[0] = '\0';
    if (line == NULL) {
        return;
    }
    size_t after = (size_t)(line - data);
    if (after > start && data[after - 1] == '\r') {
        memcpy(style->newline, "\r\n", 3);
    }
    size_t len = name.at - after - 1;
    if (len <= NB_INDENT_MAX && memchr(data + after + 1, '\n', len) == NULL) {
        memcpy(style->indent, data + after + 1, len);
        style->indent[len] = '\0';
    }
}

static bool is_half(struct ng_str bytes, size_t at, char first, char last)
{
    return at + 3 < bytes.len && bytes.data[at] == '\\' && bytes.data[at + 1] == 'u' &&
           (bytes.data[at + 2] | 0x20) == 'd' && (bytes.data[at + 3] | 0x20) >= first &&
           (bytes.data[at + 3] | 0x20) <= last;
}

/* Is the escape at `at` written by ASCII-only writers alone? All writers escape control
 * characters as \u00XX, and a lone surrogate has no other form. */
static bool is_ascii_only_escape(struct ng_str bytes, size_t at)
{
    if (at + 5 >= bytes.len || bytes.data[at + 1] != 'u') {
        return false;
    }
    if (is_half(bytes, at, 'c', 'f')) {
        return false;
    }
    if (is_half(bytes, at, '8', '9') || is_half(bytes, at, 'a', 'b')) {
        return is_half(bytes, at + 6, 'c', 'f');
    }
    return bytes.data[at + 2] != '0' || bytes.data[at + 3] != '0' || bytes.data[at + 4] >= '8';
}

/* A byte order mark (before `start`) does not count. */
static bool has_beyond_ascii(struct ng_str bytes, size_t start)
{
    static const uint64_t high = 0x8080808080808080u;
    uint64_t word;
    size_t at = start;
    for (; at + sizeof(word) <= bytes.len; at += sizeof(word)) {
        memcpy(&word, bytes.data + at, sizeof(word));
        if ((word & high) != 0) {
            return true;
        }
    }
    while (at < bytes.len && (unsigned char)bytes.data[at] < 0x80) {
        at++;
    }
    return at < bytes.len;
}

/* Are all non-ASCII characters escaped, with at least one of them present? */
static bool detect_ascii(struct ng_str bytes, size_t start)
{
    bool escaped = false;
    size_t at = 0;
    while (!escaped && at < bytes.len) {
        const char *next = memchr(bytes.data + at, '\\', bytes.len - at);
        if (next == NULL) {
            break;
        }
        at = (size_t)(next - bytes.data);
        escaped = is_ascii_only_escape(bytes, at);
        at += 2;
    }
    return escaped && !has_beyond_ascii(bytes, start);
}

void nb_detect_style(struct nb *nb)
{
    size_t strings = 0;
    size_t arrays = 0;
    size_t empty = 0; /* strings, if nothing else decides */
    nb->style = jupyter;
    detect_layout(nb);
    nb->style.ascii = detect_ascii(nb->bytes, nb->top.at);
    for (size_t i = 0; i < nb->cell_count; i++) {
        struct nb_span source = nb->cells[i].source;
        if (source.len > 2) {
            strings += nb->bytes.data[source.at] == '"';
            arrays += nb->bytes.data[source.at] == '[';
        } else if (source.len > 0) {
            empty += nb->bytes.data[source.at] == '"';
        }
    }
    nb->style.one_string = strings > arrays || (strings + arrays == 0 && empty > 0);
}

/* ---- writing ---- */

void nb_add_break(struct nb_text *out, const struct nb_style *style, unsigned depth)
{
    if (style->flat) {
        return;
    }
    nb_add_word(out, style->newline);
    for (unsigned i = 0; i < depth; i++) {
        nb_add_word(out, style->indent);
    }
}

static void add_string(struct nb_text *out, const struct nb_style *style, struct ng_str bytes,
                       struct nb_span string)
{
    size_t end = string.at + string.len;
    size_t at = string.at;
    while (style->ascii && at < end) {
        size_t plain = at;
        while (at < end && (unsigned char)bytes.data[at] < 0x80) {
            at++;
        }
        nb_add(out, bytes.data + plain, at - plain);
        size_t beyond = at;
        while (at < end && (unsigned char)bytes.data[at] >= 0x80) {
            at++;
        }
        if (at > beyond) {
            struct nb_text quoted = {0};
            struct ng_str piece = {bytes.data + beyond, at - beyond};
            nb_encode(&quoted, piece, true);
            out->failed |= quoted.failed;
            if (quoted.len > 2) {
                nb_add(out, quoted.data + 1, quoted.len - 2);
            }
            nb_text_done(&quoted);
        }
    }
    nb_add(out, bytes.data + at, end - at);
}

static void format_value(struct nb_text *out, const struct nb_style *style, struct ng_str bytes,
                         struct nb_span value, unsigned depth);

static void format_container(struct nb_text *out, const struct nb_style *style,
                             struct ng_str bytes, struct nb_span value, unsigned depth)
{
    bool object = bytes.data[value.at] == '{';
    struct nb_walk walk = nb_walk_into(bytes, value);
    struct nb_span name = {0, 0};
    struct nb_span inner;
    size_t count = 0;
    nb_add(out, bytes.data + value.at, 1);
    while ((object && nb_walk_member(&walk, &name, &inner)) ||
           (!object && nb_walk_element(&walk, &inner))) {
        if (count++ > 0) {
            nb_add_word(out, ",");
            nb_add_if(out, style->flat && style->space_comma, " ");
        }
        nb_add_break(out, style, depth + 1);
        if (object) {
            add_string(out, style, bytes, name);
            nb_add_word(out, ":");
            nb_add_if(out, style->space_colon, " ");
        }
        format_value(out, style, bytes, inner, depth + 1);
    }
    if (count > 0) {
        nb_add_break(out, style, depth);
    }
    nb_add(out, bytes.data + value.at + value.len - 1, 1);
}

static void format_value(struct nb_text *out, const struct nb_style *style, struct ng_str bytes,
                         struct nb_span value, unsigned depth)
{
    char first = '\0';
    if (value.len > 0) {
        first = bytes.data[value.at];
    }
    if ((first == '{' || first == '[') && depth < 2 * NB_DEPTH_MAX) {
        format_container(out, style, bytes, value, depth);
    } else if (first == '"') {
        add_string(out, style, bytes, value);
    } else {
        nb_add(out, bytes.data + value.at, value.len);
    }
}

void nb_format(struct nb_text *out, const struct nb_style *style, struct ng_str json,
               unsigned depth)
{
    struct nb_span whole = {0, json.len};
    while (whole.len > 0 && strchr(" \t\r\n", json.data[whole.at]) != NULL) {
        whole.at++;
        whole.len--;
    }
    while (whole.len > 0 && strchr(" \t\r\n", json.data[whole.at + whole.len - 1]) != NULL) {
        whole.len--;
    }
    format_value(out, style, json, whole, depth);
}
