/* SPDX-License-Identifier: MIT */
/* create_template.c - templates: texts in .opennotes.json or files of the notebook, with
 * variables. */
#include <stdlib.h>
#include <string.h>

#include "create.h"
#include "index/index.h"
#include "notebook/notebook.h"
#include "text/codes.h"

#define DISTANCE_MAX 3
#define LIST_SEPARATOR ", "

/* ---- finding one */

static const struct ng_value *find_template(const struct on_notebook *notebook,
                                            struct ng_call *call, struct ng_str name,
                                            struct ng_str *ret_nearest)
{
    const struct ng_host *host = call->host;
    const struct ng_value *all =
        notebook->config != NULL ? host->json_get(notebook->config, "templates") : NULL;
    size_t best = DISTANCE_MAX + 1;
    *ret_nearest = on_str(NULL, 0);
    for (const struct ng_value *item = host->json_first(all); item != NULL;
         item = host->json_next(item)) {
        struct ng_str key = host->json_key(item);
        if (on_equal(key, name)) {
            return item;
        }
        size_t distance = on_distance(key, name, DISTANCE_MAX);
        if (distance < best) {
            best = distance;
            *ret_nearest = key;
        }
    }
    return NULL;
}

bool on_template_known(const struct on_notebook *notebook, struct ng_call *call,
                       struct ng_str name)
{
    struct ng_str nearest;
    return find_template(notebook, call, name, &nearest) != NULL;
}

static int fail_template(struct ng_call *call, struct ng_str name, struct ng_str nearest)
{
    (void)ng_fail(call, ON_ETEMPLATE, "Template not found: %.*s", (int)name.len, name.data);
    if (nearest.data != NULL) {
        call->host->hint(call, "Did you mean '%.*s'?", (int)nearest.len, nearest.data);
    } else {
        call->host->hint(call, "Check notebook .opennotes.json for templates");
    }
    return ON_ETEMPLATE;
}

/* The malloc'd bytes in call memory. */
static int keep(struct ng_call *call, struct ng_str bytes, struct ng_str *ret_text)
{
    char *copy = ng_alloc(call, bytes.len + 1);
    if (copy != NULL && bytes.len > 0) {
        memcpy(copy, bytes.data, bytes.len);
    }
    *ret_text = on_str(copy, copy != NULL ? bytes.len : 0);
    free((void *)(uintptr_t)bytes.data); /* ours, though the view of it is const */
    return copy != NULL ? NG_OK : on_fail_memory(call);
}

int on_template_text(const struct on_notebook *notebook, struct ng_call *call,
                     struct ng_str name, struct ng_str *ret_text)
{
    struct ng_str nearest;
    const struct ng_value *found = find_template(notebook, call, name, &nearest);
    if (found == NULL) {
        return fail_template(call, name, nearest);
    }
    struct ng_str text = call->host->json_text(found);
    if (call->host->json_type(found) != NG_TYPE_STRING) {
        return ng_fail(call, ON_ECONFIG,
                       "The template '%.*s' in .opennotes.json is no text: write the template "
                       "itself, or the path of a file in the notebook.",
                       (int)name.len, name.data);
    }
    bool path = on_ends(text, ".md") && memchr(text.data, '\n', text.len) == NULL &&
                on_find(text, ng_str_of("{{"), 0) == SIZE_MAX;
    *ret_text = text;
    if (!path) {
        return NG_OK;
    }
    struct ng_str file;
    struct ng_str bytes = on_str(NULL, 0);
    int rc = on_index_path(call, text, &file);
    if (rc == NG_OK) {
        rc = on_index_read(notebook->index, call, file, &bytes);
    }
    if (rc == NG_OK) {
        rc = keep(call, bytes, ret_text);
    }
    if (rc == ON_ENOTE) {
        (void)ng_fail(call, ON_ETEMPLATE,
                      "Template not found: %.*s is the file %.*s, which is not in the notebook",
                      (int)name.len, name.data, (int)text.len, text.data);
        return ON_ETEMPLATE;
    }
    return rc;
}

/* ---- filling one in */

static void set_text(struct on_value *value, struct ng_str text)
{
    *value = (struct on_value){.type = ON_STRING, .text = text};
}

/* What a name stands for. False: nothing. `scratch` holds texts that are made for it. */
static bool lookup(const struct on_vars *vars, struct ng_str name, char scratch[ON_TIME_SIZE],
                   struct on_value *ret_value)
{
    const struct on_value *field = on_value_get(vars->data, name);
    if (field != NULL) {
        *ret_value = *field;
        return true;
    }
    on_time_write_local(vars->now_ms, scratch);
    if (on_is(name, "title")) {
        set_text(ret_value, vars->title);
    } else if (on_is(name, "slug")) {
        set_text(ret_value, vars->slug);
    } else if (on_is(name, "date")) {
        set_text(ret_value, on_str(scratch, 10));
    } else if (on_is(name, "time")) {
        set_text(ret_value, on_str(scratch + 11, 5));
    } else if (on_is(name, "year")) {
        set_text(ret_value, on_str(scratch, 4));
    } else if (on_is(name, "month")) {
        set_text(ret_value, on_str(scratch + 5, 2));
    } else if (on_is(name, "day")) {
        set_text(ret_value, on_str(scratch + 8, 2));
    } else {
        return false;
    }
    return true;
}

static void write_plain(struct on_buf *out, const struct on_value *value)
{
    if (value->type == ON_LIST) {
        for (const struct on_value *item = value->first; item != NULL; item = item->next) {
            on_buf_add_c(out, item != value->first ? LIST_SEPARATOR : "");
            write_plain(out, item);
        }
    } else if (value->type == ON_STRING) {
        on_buf_add(out, value->text);
    } else if (value->type != ON_NULL) {
        struct on_yaml yaml = {.out = out, .newline = "\n"};
        on_yaml_flow(&yaml, value, false);
    }
}

struct spot {
    char before, after; /* next to it on its line, blanks left out; '\n': the line's end */
    bool tight_before, tight_after;
};

static struct spot look_around(struct ng_str text, size_t from, size_t to)
{
    struct spot spot = {'\n', '\n', true, true};
    while (from > 0 && text.data[from - 1] == ' ') {
        from--;
        spot.tight_before = false;
    }
    while (to < text.len && text.data[to] == ' ') {
        to++;
        spot.tight_after = false;
    }
    spot.before = from > 0 ? text.data[from - 1] : '\n';
    spot.after = to < text.len && text.data[to] != '\r' ? text.data[to] : '\n';
    return spot;
}

/* In front matter a value must stay one value, whatever is in it. */
static void write_front(struct on_buf *out, struct spot spot, const struct on_value *value)
{
    struct on_yaml yaml = {.out = out, .newline = "\n"};
    bool in_flow = spot.before == '[' || spot.before == ',' || spot.after == ',' ||
                   spot.after == ']' || spot.after == '}';
    bool begins = ((spot.before == ':' || spot.before == '-') && !spot.tight_before) ||
                  spot.before == '[' || spot.before == ',';
    bool ends = spot.after == '\n' || spot.after == ',' || spot.after == ']' ||
                spot.after == '}' || (spot.after == '#' && !spot.tight_after);
    if (begins && ends) {
        on_yaml_flow(&yaml, value, in_flow);
        return;
    }
    struct on_buf plain;
    on_buf_init(&plain, out->max);
    write_plain(&plain, value);
    struct ng_str text = on_buf_str(&plain);
    if (spot.before == '"' && spot.tight_before) {
        /* As a JSON string, without its quotes. */
        struct on_buf quoted;
        on_buf_init(&quoted, out->max);
        on_json_text(&quoted, text);
        struct ng_str inner = on_buf_str(&quoted);
        on_buf_add(out, on_str(inner.data + 1, inner.len >= 2 ? inner.len - 2 : 0));
        on_buf_done(&quoted);
    } else {
        on_buf_add(out, text);
    }
    on_buf_done(&plain);
}

void on_template_fill(struct on_buf *out, struct ng_str text, const struct on_vars *vars)
{
    struct on_front front;
    on_front_find(text, &front);
    size_t copied = 0;
    for (size_t at = on_find(text, ng_str_of("{{"), 0); at != SIZE_MAX;) {
        size_t close = on_find(text, ng_str_of("}}"), at + 2);
        if (close == SIZE_MAX) {
            break;
        }
        char scratch[ON_TIME_SIZE];
        struct on_value value;
        struct ng_str name = on_trim(on_str(text.data + at + 2, close - at - 2));
        if (lookup(vars, name, scratch, &value)) {
            on_buf_add(out, on_str(text.data + copied, at - copied));
            copied = close + 2;
            if (front.there && at < front.end) {
                write_front(out, look_around(text, at, copied), &value);
            } else {
                write_plain(out, &value);
            }
            at = on_find(text, ng_str_of("{{"), copied);
        } else {
            at = on_find(text, ng_str_of("{{"), at + 2);
        }
    }
    on_buf_add(out, on_str(text.data + copied, text.len - copied));
}
