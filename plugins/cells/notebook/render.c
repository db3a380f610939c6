/* SPDX-License-Identifier: MIT */
/* render.c - renders outputs as text and images. */
#include "render.h"
#include "core/base/text/base64.h"
#include "core/base/utf8.h"
#include "screen.h"

#include "core/base/minmax.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

/* ---- cutting of outputs ---- */

/* Of the room: the beginning, the end, one value or error, all of these together. */
#define CUT_EDGE_PART 4
#define CUT_KEPT_PART 4
#define CUT_ALL_KEPT_PART 2
/* Bytes of a note. */
#define CUT_NOTE_MAX ((size_t)140)

/* A text that is written in pieces. */
struct cut {
    struct nb_text *out;
    struct ng_str text;
    size_t characters; /* of the text */
    size_t at;         /* everything before is written or left out */
};

/* Goes on at `from`; what lies before is left out with a note. */
static void cut_skip(struct cut *cut, size_t from)
{
    if (from <= cut->at) {
        return;
    }
    struct ng_str gone = {cut->text.data + cut->at, from - cut->at};
    struct ng_str before = {cut->text.data, cut->at};
    nb_addf(cut->out,
            "\n[... %zu of %zu characters left out; getCellOutputs with offset %zu reads on "
            "...]\n",
            utf8_count(gone), cut->characters, utf8_count(before));
    cut->at = from;
}

static void cut_show(struct cut *cut, size_t from, size_t to)
{
    cut_skip(cut, from);
    if (to > cut->at) {
        nb_add(cut->out, cut->text.data + cut->at, to - cut->at);
        cut->at = to;
    }
}

/* The boundary of characters at or before a byte. */
static size_t cut_boundary(struct ng_str text, size_t at)
{
    return utf8_cut(text, at).len;
}

/* A value or an error; of a long one its beginning and its end. */
static void cut_show_kept(struct cut *cut, struct nb_span kept, size_t most)
{
    size_t end = kept.at + kept.len;
    if (kept.len <= most) {
        cut_show(cut, kept.at, end);
        return;
    }
    cut_show(cut, kept.at, cut_boundary(cut->text, kept.at + most / 2));
    cut_show(cut, cut_boundary(cut->text, end - most / 2), end);
}

void render_cut_outputs(struct nb_text *out, const struct rendered *rendered, size_t max)
{
    struct ng_str text = nb_text_str(&rendered->text);
    size_t edge = max / CUT_EDGE_PART;
    size_t one = max / CUT_KEPT_PART;
    size_t room = max / CUT_ALL_KEPT_PART;
    size_t shown = 0; /* of the last ones */
    size_t count = size_min(rendered->kept_count, RENDER_KEPT_MAX);
    if (text.len <= max) {
        nb_add_str(out, text);
        return;
    }
    struct cut cut = {out, text, utf8_count(text), 0};
    size_t head = cut_boundary(text, edge);
    size_t tail = cut_boundary(text, text.len - edge);
    while (shown < count) {
        struct nb_span kept =
            rendered->kept[(rendered->kept_count - 1 - shown) % RENDER_KEPT_MAX];
        size_t bytes = 0; /* beyond the beginning and the end */
        if (kept.at < tail && kept.at + kept.len > head) {
            bytes = size_min(kept.len, one) + CUT_NOTE_MAX;
        }
        if (bytes > room) {
            break;
        }
        room -= bytes;
        shown++;
    }
    cut_show(&cut, 0, cut_boundary(text, head + room / 2));
    while (shown > 0) {
        cut_show_kept(&cut, rendered->kept[(rendered->kept_count - shown) % RENDER_KEPT_MAX],
                      one);
        shown--;
    }
    cut_show(&cut, cut_boundary(text, tail - room / 2), text.len);
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

/* A value or an error: what was added since `from`. */
static void keep_piece(struct rendered *rendered, size_t from)
{
    if (rendered->text.len > from) {
        struct nb_span kept = {from, rendered->text.len - from};
        rendered->kept[rendered->kept_count++ % RENDER_KEPT_MAX] = kept;
    }
}

/* Frees `text`. */
static void add_cleaned(struct rendered *rendered, const char *prefix, struct nb_text *text)
{
    struct nb_text clean = {0};
    if (text->len > 0) {
        nb_add_word(&clean, prefix);
        screen_show(&clean, nb_text_str(text));
    }
    rendered->failed |= text->failed || clean.failed;
    add_piece(rendered, nb_text_str(&clean));
    nb_text_done(&clean);
    nb_text_done(text);
}

/* Streams in a row that have the same name: a file may have one for each write, where a program
 * wrote one text. */
struct stream_text {
    struct nb_text text;
    bool is_stderr;
};

static void flush_stream(struct rendered *rendered, struct stream_text *stream)
{
    add_cleaned(rendered, stream->is_stderr ? "[stderr] " : "", &stream->text);
}

static void render_stream(struct rendered *rendered, struct ng_str json, struct nb_span output,
                          struct stream_text *stream)
{
    bool is_stderr = nb_is_word(json, nb_member(json, output, "name"), "stderr");
    if (is_stderr != stream->is_stderr) {
        flush_stream(rendered, stream);
        stream->is_stderr = is_stderr;
    }
    (void)nb_decode_lines(&stream->text, json, nb_member(json, output, "text"));
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

static void render_unknown(struct rendered *rendered, struct ng_str json, struct nb_span type)
{
    struct nb_text note = {0};
    nb_add_word(&note, "[output of the unknown type ");
    nb_add_if(&note, type.len == 0, "null");
    nb_add_str(&note, nb_bytes(json, type));
    nb_add_word(&note, "]");
    add_piece(rendered, nb_text_str(&note));
    nb_text_done(&note);
}

void render_outputs(struct rendered *rendered, struct ng_str json, struct nb_span outputs,
                    bool html)
{
    struct nb_walk walk = nb_walk_into(json, outputs);
    struct nb_span output;
    struct stream_text stream = {.is_stderr = false};
    while (outputs.len > 0 && nb_walk_element(&walk, &output)) {
        struct nb_span type = nb_member(json, output, "output_type");
        rendered->outputs++;
        if (nb_is_word(json, type, "stream")) {
            render_stream(rendered, json, output, &stream);
            continue;
        }
        flush_stream(rendered, &stream);
        size_t from = rendered->text.len;
        if (nb_is_word(json, type, "error")) {
            render_error(rendered, json, output);
        } else if (nb_is_word(json, type, "display_data") ||
                   nb_is_word(json, type, "execute_result")) {
            render_display(rendered, json, output, html);
        } else {
            render_unknown(rendered, json, type);
        }
        keep_piece(rendered, from);
    }
    flush_stream(rendered, &stream);
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
