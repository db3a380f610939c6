/* SPDX-License-Identifier: MIT */
/* render.c - renders outputs as text and images. */
#include "render.h"
#include "core/base/text/base64.h"
#include "core/base/utf8.h"

#include "core/base/minmax.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Width of the emulated terminal: overwriting reaches back this many characters. */
#define LINE_MAX_CHARACTERS ((size_t)1 << 20)

/* ---- terminal emulation ---- */

/* The end of the escape sequence whose ESC is at `at`. */
static size_t skip_escape(struct ng_str text, size_t at)
{
    at++;
    if (at >= text.len) {
        return at;
    }
    char kind = text.data[at++];
    if (kind == '[') { /* CSI: parameters, then one letter */
        while (at < text.len && (unsigned char)text.data[at] >= 0x20 &&
               (unsigned char)text.data[at] < 0x40) {
            at++;
        }
        if (at >= text.len) {
            return at;
        }
        return at + 1;
    }
    if (kind == ']' || kind == 'P' || kind == '_' ||
        kind == '^') { /* OSC and the like: up to BEL or ESC \ */
        while (at < text.len && text.data[at] != '\a') {
            if (text.data[at] == '\x1b') {
                if (at + 1 < text.len && text.data[at + 1] == '\\') {
                    return at + 2;
                }
                return at;
            }
            at++;
        }
        if (at >= text.len) {
            return at;
        }
        return at + 1;
    }
    while (kind >= 0x20 && kind < 0x30 && at < text.len) { /* intermediate bytes */
        kind = text.data[at++];
    }
    return at;
}

static size_t character_length(struct ng_str text, size_t at)
{
    size_t end = at + 1;
    while (end < text.len && !utf8_is_start(text.data[end])) {
        end++;
    }
    return end - at;
}

/* The characters of a line as spans of the text, while they can be overwritten. */
struct terminal_line {
    struct nb_text places; /* array of struct nb_span */
    size_t count, cursor;
};

static void put_character(struct terminal_line *line, struct nb_span character)
{
    if (line->cursor == line->count) {
        nb_add(&line->places, (const char *)&character, sizeof(character));
        if (!line->places.failed) {
            line->count += 1;
        }
    } else {
        memcpy(line->places.data + line->cursor * sizeof(character), &character,
               sizeof(character));
    }
    if (!line->places.failed) {
        line->cursor += 1;
    }
}

static void write_line(struct nb_text *out, struct ng_str text,
                       const struct terminal_line *line)
{
    for (size_t i = 0; i < line->count; i++) {
        struct nb_span character;
        memcpy(&character, line->places.data + i * sizeof(character), sizeof(character));
        nb_add(out, text.data + character.at, character.len);
    }
    out->failed |= line->places.failed;
}

/* Emulates the line at `at` and returns its end: \r moves to the start, \b one back. */
static size_t clean_line(struct nb_text *out, struct ng_str text, size_t at)
{
    struct terminal_line line = {.count = 0};
    while (at < text.len && text.data[at] != '\n' && !line.places.failed) {
        char c = text.data[at];
        if (c == '\x1b') {
            at = skip_escape(text, at);
            continue;
        }
        size_t len = character_length(text, at);
        if (c == '\r') {
            line.cursor = 0;
        } else if (c == '\b') {
            line.cursor -= line.cursor > 0;
        } else if ((unsigned char)c >= 0x20 || c == '\t') {
            if (line.cursor == LINE_MAX_CHARACTERS) { /* wraps to the next row */
                write_line(out, text, &line);
                line.count = line.cursor = line.places.len = 0;
            }
            put_character(&line, (struct nb_span){at, len});
        }
        at += len;
    }
    write_line(out, text, &line);
    nb_text_done(&line.places);
    return at;
}

/* The length of text without control sequences: most of it. */
static size_t plain_length(struct ng_str text, size_t at)
{
    size_t end = at;
    while (end < text.len && ((unsigned char)text.data[end] >= 0x20 || text.data[end] == '\n' ||
                              text.data[end] == '\t')) {
        end++;
    }
    return end - at;
}

void render_clean(struct nb_text *out, struct ng_str text)
{
    for (size_t at = 0; at < text.len && !out->failed;) {
        size_t len = plain_length(text, at);
        size_t end = at + len;
        while (end < text.len && end > at && text.data[end - 1] != '\n') {
            end--; /* restart at the beginning of the affected line */
        }
        nb_add(out, text.data + at, end - at);
        if (end < text.len) {
            at = clean_line(out, text, end);
        } else {
            at = end;
        }
    }
}

/* ---- cutting ---- */

void render_cut(struct nb_text *out, struct ng_str text, size_t max)
{
    if (text.len <= max) {
        nb_add_str(out, text);
        return;
    }
    struct ng_str first = utf8_cut(text, max / 2);
    size_t tail = utf8_cut(text, text.len - (max - max / 2)).len;
    struct ng_str gone = {text.data + first.len, tail - first.len};
    nb_add_str(out, first);
    nb_addf(out,
            "\n[... %zu of %zu characters left out; getCellOutputs with offset %zu reads on "
            "...]\n",
            utf8_count(gone), utf8_count(text), utf8_count(first));
    nb_add(out, text.data + tail, text.len - tail);
}

void render_fence(struct nb_text *out, struct ng_str text)
{
    size_t longest = 2;
    size_t run = 0;
    for (size_t i = 0; i < text.len; i++) {
        if (text.data[i] == '`') {
            run = run + 1;
        } else {
            run = 0;
        }
        longest = size_max(run, longest);
    }
    for (size_t i = 0; i <= longest; i++) {
        nb_add(out, "`", 1);
    }
}

/* ---- outputs ---- */

static void add_piece(struct rendered *rendered, struct ng_str text)
{
    /* Exactly one blank line between outputs. */
    while (text.len > 0 && text.data[text.len - 1] == '\n') {
        text.len--;
    }
    if (text.len == 0) {
        return;
    }
    nb_add_if(&rendered->text, rendered->text.len > 0, "\n\n");
    nb_add_str(&rendered->text, text);
}

/* Frees `text`. */
static void add_cleaned(struct rendered *rendered, const char *prefix, struct nb_text *text)
{
    struct nb_text clean = {0};
    if (text->len > 0) {
        nb_add_word(&clean, prefix);
        render_clean(&clean, nb_text_str(text));
    }
    rendered->failed |= text->failed || clean.failed;
    add_piece(rendered, nb_text_str(&clean));
    nb_text_done(&clean);
    nb_text_done(text);
}

static void render_stream(struct rendered *rendered, struct ng_str json, struct nb_span output)
{
    struct nb_text text = {0};
    const char *prefix = "";
    if (nb_is_word(json, nb_member(json, output, "name"), "stderr")) {
        prefix = "[stderr] ";
    }
    (void)nb_decode_lines(&text, json, nb_member(json, output, "text"));
    add_cleaned(rendered, prefix, &text);
}

static void render_error(struct rendered *rendered, struct ng_str json, struct nb_span output)
{
    struct nb_text text = {0};
    rendered->has_error = true;
    (void)nb_decode_lines(&text, json, nb_member(json, output, "ename"));
    size_t named = text.len;
    nb_add_if(&text, named > 0, ": ");
    (void)nb_decode_lines(&text, json, nb_member(json, output, "evalue"));
    if (named > 0 && text.len == named + 2) {
        text.len = named; /* there is no evalue */
    }
    struct nb_span traceback = nb_member(json, output, "traceback");
    struct nb_walk walk = nb_walk_into(json, traceback);
    struct nb_span line;
    while (traceback.len > 0 && nb_walk_element(&walk, &line)) {
        nb_add_word(&text, "\n");
        (void)nb_decode_lines(&text, json, line);
    }
    add_cleaned(rendered, "", &text);
}

static bool render_image(struct rendered *rendered, struct ng_str json, struct nb_span bundle)
{
    static const char *const kinds[] = {"image/png", "image/jpeg", "image/gif", "image/webp"};
    for (size_t i = 0; i < NG_COUNT(kinds); i++) {
        struct nb_span value = nb_member(json, bundle, kinds[i]);
        struct nb_text text = {0};
        struct buf bytes;
        if (value.len == 0 || !nb_decode_lines(&text, json, value)) {
            continue;
        }
        buf_init(&bytes, SIZE_MAX / 2);
        bool good = base64_decode_loose(&bytes, nb_text_str(&text)) && bytes.len > 0;
        rendered->failed |= text.failed || bytes.rc != NG_OK;
        nb_text_done(&text);
        if (!good || rendered->image_count == RENDER_IMAGES_MAX) {
            const char *note = "[Image data unavailable]";
            if (good) {
                note = "[one more image, not shown]";
            }
            add_piece(rendered, ng_str_of(note));
            buf_done(&bytes);
            return true;
        }
        struct rendered_image *image = &rendered->images[rendered->image_count++];
        (void)snprintf(image->mime, sizeof(image->mime), "%s", kinds[i]);
        image->bytes = bytes;
        return true;
    }
    return false;
}

/* A repr such as "<IPython.core.display.Markdown object>" carries no information. */
static bool is_object_repr(struct ng_str json, struct nb_span value)
{
    struct nb_text text = {0};
    static const char end[] = " object>";
    size_t len = sizeof(end) - 1;
    bool nothing = nb_decode_lines(&text, json, value) && text.len > len + 1 &&
                   text.data[0] == '<' && memchr(text.data, '\n', text.len) == NULL &&
                   memcmp(text.data + text.len - len, end, len) == 0;
    nb_text_done(&text);
    return nothing;
}

/* Renders the best text representation; JSON and unknown types unchanged. */
static void render_text(struct rendered *rendered, struct ng_str json, struct nb_span bundle,
                        bool html)
{
    /* The plain text of a drawing is only its repr. */
    enum { KINDS = 7 };
    static const char *const plain_first[KINDS] = {"image/svg+xml", "text/plain",
                                                   "text/markdown", "text/latex",
                                                   "text/html",     "application/javascript"};
    static const char *const object_first[KINDS] = {
        "image/svg+xml", "text/markdown",          "text/latex", "application/json",
        "text/html",     "application/javascript", "text/plain"};
    static const char *const html_first[KINDS] = {"text/html",     "text/markdown",
                                                  "text/plain",    "text/latex",
                                                  "image/svg+xml", "application/javascript"};
    const char *const *kinds = plain_first;
    if (html) {
        kinds = html_first;
    } else if (is_object_repr(json, nb_member(json, bundle, "text/plain"))) {
        kinds = object_first;
    }
    for (size_t i = 0; i < KINDS && kinds[i] != NULL; i++) {
        struct nb_span value = nb_member(json, bundle, kinds[i]);
        struct nb_text text = {0};
        if (strcmp(kinds[i], "application/json") == 0) {
            nb_add_str(&text, nb_bytes(json, value));
        } else {
            (void)nb_decode_lines(&text, json, value);
        }
        if (text.len > 0) {
            add_cleaned(rendered, "", &text);
            return;
        }
        nb_text_done(&text);
    }
    struct nb_walk walk = nb_walk_into(json, bundle);
    struct nb_span name;
    struct nb_span value;
    if (nb_walk_member(&walk, &name, &value)) {
        struct nb_text text = {0};
        nb_add_word(&text, "[");
        nb_decode(&text, json, name);
        nb_add_word(&text, "] ");
        if (!nb_decode_lines(&text, json, value)) {
            nb_add_str(&text, nb_bytes(json, value));
        }
        add_cleaned(rendered, "", &text);
    }
}

static void render_display(struct rendered *rendered, struct ng_str json, struct nb_span output,
                           bool html)
{
    struct nb_span bundle = nb_member(json, output, "data");
    bool wants_html = html && nb_member(json, bundle, "text/html").len > 0;
    if (bundle.len == 0 || json.data[bundle.at] != '{') {
        return;
    }
    if (wants_html || !render_image(rendered, json, bundle)) {
        render_text(rendered, json, bundle, html);
    }
}

void render_outputs(struct rendered *rendered, struct ng_str json, struct nb_span outputs,
                    bool html)
{
    struct nb_walk walk = nb_walk_into(json, outputs);
    struct nb_span output;
    while (outputs.len > 0 && nb_walk_element(&walk, &output)) {
        struct nb_span type = nb_member(json, output, "output_type");
        rendered->outputs++;
        if (nb_is_word(json, type, "stream")) {
            render_stream(rendered, json, output);
        } else if (nb_is_word(json, type, "error")) {
            render_error(rendered, json, output);
        } else if (nb_is_word(json, type, "display_data") ||
                   nb_is_word(json, type, "execute_result")) {
            render_display(rendered, json, output, html);
        } else {
            struct nb_text note = {0};
            nb_add_word(&note, "[output of the unknown type ");
            nb_add_if(&note, type.len == 0, "null");
            nb_add_str(&note, nb_bytes(json, type));
            nb_add_word(&note, "]");
            add_piece(rendered, nb_text_str(&note));
            nb_text_done(&note);
        }
    }
    rendered->failed |= rendered->text.failed;
}

void render_done(struct rendered *rendered)
{
    nb_text_done(&rendered->text);
    for (size_t i = 0; i < rendered->image_count; i++) {
        buf_done(&rendered->images[i].bytes);
    }
    memset(rendered, 0, sizeof(*rendered));
}
