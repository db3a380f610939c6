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
/* Templates that an error names, the bytes of a name, and of all of it. */
#define TEMPLATES_SHOWN 10
#define TEMPLATE_NAME_SHOWN 60
#define TEMPLATE_HINT_MAX 4096

/* ---- finding one */

static const struct ng_value *find_template(const struct notes_notebook *notebook,
                                            struct ng_call *call, struct ng_str name,
                                            struct ng_str *ret_nearest)
{
    const struct ng_host *host = call->host;
    const struct ng_value *all =
        notebook->config != NULL ? host->json_get(notebook->config, "templates") : NULL;
    size_t best = DISTANCE_MAX + 1;
    *ret_nearest = str_make(NULL, 0);
    for (const struct ng_value *item = host->json_first(all); item != NULL;
         item = host->json_next(item)) {
        struct ng_str key = host->json_key(item);
        if (str_equal(key, name)) {
            return item;
        }
        size_t distance = edit_distance(key, name, DISTANCE_MAX);
        if (distance < best) {
            best = distance;
            *ret_nearest = key;
        }
    }
    return NULL;
}

bool notes_template_known(const struct notes_notebook *notebook, struct ng_call *call,
                          struct ng_str name)
{
    struct ng_str nearest;
    return find_template(notebook, call, name, &nearest) != NULL;
}

/* The hint names the templates that there are. */
static int fail_template(const struct notes_notebook *notebook, struct ng_call *call,
                         struct ng_str name, struct ng_str nearest)
{
    const struct ng_host *host = call->host;
    const struct ng_value *all =
        notebook->config != NULL ? host->json_get(notebook->config, "templates") : NULL;
    size_t count = 0;
    const char *before = nearest.data != NULL ? " There are: " : ". There are: ";
    struct buf hint;
    (void)ng_fail(call, NOTES_ETEMPLATE, "Template not found: %.*s", (int)name.len, name.data);
    buf_init(&hint, TEMPLATE_HINT_MAX);
    if (nearest.data != NULL) {
        (void)buf_printf(&hint, "Did you mean '%.*s'?", (int)nearest.len, nearest.data);
    } else {
        (void)buf_add_c(&hint, "Check notebook .opennotes.json for templates");
    }
    for (const struct ng_value *item = host->json_first(all);
         item != NULL && count < TEMPLATES_SHOWN; item = host->json_next(item), count++) {
        struct ng_str key = utf8_cut(host->json_key(item), TEMPLATE_NAME_SHOWN);
        (void)buf_printf(&hint, "%s'%.*s'", count == 0 ? before : LIST_SEPARATOR, (int)key.len,
                         key.data);
    }
    if (host->json_count(all) > count) {
        (void)buf_printf(&hint, " and %zu more", host->json_count(all) - count);
    } else if (count == 0) {
        (void)buf_add_c(&hint, "; there are none");
    }
    host->hint_text(call, notes_buf_str(&hint));
    buf_done(&hint);
    return NOTES_ETEMPLATE;
}

/* The malloc'd bytes in call memory. */
static int keep(struct ng_call *call, struct ng_str bytes, struct ng_str *ret_text)
{
    *ret_text = notes_call_copy(call, bytes);
    free((void *)(uintptr_t)bytes.data); /* allocated here, though the view of it is const */
    return notes_memory(call, ret_text->data != NULL);
}

int notes_template_text(const struct notes_notebook *notebook, struct ng_call *call,
                        struct ng_str name, struct ng_str *ret_text)
{
    struct ng_str nearest;
    const struct ng_value *found = find_template(notebook, call, name, &nearest);
    if (found == NULL) {
        return fail_template(notebook, call, name, nearest);
    }
    struct ng_str text = call->host->json_text(found);
    if (call->host->json_type(found) != NG_TYPE_STRING) {
        return ng_fail(call, NOTES_ECONFIG,
                       "The template '%.*s' in .opennotes.json is not text: write the template "
                       "itself, or the path of a file in the notebook.",
                       (int)name.len, name.data);
    }
    bool path = str_ends(text, ".md") && memchr(text.data, '\n', text.len) == NULL &&
                str_find(text, ng_str_of("{{"), 0) == SIZE_MAX;
    *ret_text = text;
    if (!path) {
        return NG_OK;
    }
    struct ng_str file;
    struct ng_str bytes = str_make(NULL, 0);
    int rc = notes_index_path(call, text, &file);
    if (rc == NG_OK) {
        rc = notes_index_read(notebook->index, call, file, &bytes);
    }
    if (rc == NG_OK) {
        rc = keep(call, bytes, ret_text);
    }
    if (rc == NOTES_ENOTE) {
        (void)ng_fail(call, NOTES_ETEMPLATE,
                      "Template not found: %.*s is the file %.*s, which is not in the notebook",
                      (int)name.len, name.data, (int)text.len, text.data);
        return NOTES_ETEMPLATE;
    }
    return rc;
}

/* ---- expansion */

/* The value of a name. false: there is none. `scratch` holds generated texts. */
static bool lookup(const struct notes_vars *vars, struct ng_str name,
                   char scratch[RFC3339_SIZE], struct notes_value *ret_value)
{
    const struct notes_value *field = notes_value_get(vars->data, name);
    if (field != NULL) {
        *ret_value = *field;
        return true;
    }
    static const struct {
        const char *name;
        size_t at, len; /* in a time of RFC 3339 */
    } times[] = {
        {"date", 0, 10}, {"time", 11, 5}, {"year", 0, 4}, {"month", 5, 2}, {"day", 8, 2},
    };
    struct ng_str text = {NULL, 0};
    notes_time_write_local(vars->now_ms, scratch);
    for (size_t i = 0; i < NG_COUNT(times); i++) {
        if (str_is(name, times[i].name)) {
            text = str_make(scratch + times[i].at, times[i].len);
        }
    }
    if (str_is(name, "title")) {
        text = vars->title;
    } else if (str_is(name, "slug")) {
        text = vars->slug;
    }
    *ret_value = (struct notes_value){.type = NOTES_STRING, .text = text};
    return text.data != NULL;
}

static void write_plain(struct buf *out, const struct notes_value *value)
{
    if (value->type == NOTES_LIST) {
        for (const struct notes_value *item = value->first; item != NULL; item = item->next) {
            notes_add_if(out, item != value->first, LIST_SEPARATOR);
            write_plain(out, item);
        }
    } else if (value->type == NOTES_STRING) {
        buf_add_str(out, value->text);
    } else if (value->type != NOTES_NULL) {
        struct notes_yaml yaml = {.out = out, .newline = "\n"};
        notes_yaml_flow(&yaml, value, false);
    }
}

struct spot {
    char before, after; /* next characters on the line, without blanks; '\n': the line's end */
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
    if (from > 0) {
        spot.before = text.data[from - 1];
    }
    if (to < text.len && text.data[to] != '\r') {
        spot.after = text.data[to];
    }
    return spot;
}

/* In front matter a value must stay one value, for any content. */
static void write_frontmatter(struct buf *out, struct spot spot,
                              const struct notes_value *value)
{
    struct notes_yaml yaml = {.out = out, .newline = "\n"};
    bool in_flow = spot.before == '[' || spot.before == ',' || spot.after == ',' ||
                   spot.after == ']' || spot.after == '}';
    bool begins = ((spot.before == ':' || spot.before == '-') && !spot.tight_before) ||
                  spot.before == '[' || spot.before == ',';
    bool ends = spot.after == '\n' || spot.after == ',' || spot.after == ']' ||
                spot.after == '}' || (spot.after == '#' && !spot.tight_after);
    if (begins && ends) {
        notes_yaml_flow(&yaml, value, in_flow);
        return;
    }
    struct buf plain;
    buf_init(&plain, out->max);
    write_plain(&plain, value);
    struct ng_str text = notes_buf_str(&plain);
    if (spot.before == '"' && spot.tight_before) {
        /* As a JSON string, without its quotes. */
        struct buf quoted;
        buf_init(&quoted, out->max);
        notes_json_text(&quoted, text);
        if (quoted.rc == NG_OK) {
            buf_add_str(out, str_make(quoted.data + 1, quoted.len - 2));
        }
        buf_done(&quoted);
    } else {
        buf_add_str(out, text);
    }
    buf_done(&plain);
}

void notes_template_fill(struct buf *out, struct ng_str text, const struct notes_vars *vars)
{
    struct notes_frontmatter frontmatter;
    notes_frontmatter_find(text, &frontmatter);
    size_t copied = 0;
    for (size_t at = str_find(text, ng_str_of("{{"), 0); at != SIZE_MAX;) {
        size_t close = str_find(text, ng_str_of("}}"), at + 2);
        if (close == SIZE_MAX) {
            break;
        }
        char scratch[RFC3339_SIZE];
        struct notes_value value;
        struct ng_str name = notes_trim(str_make(text.data + at + 2, close - at - 2));
        if (lookup(vars, name, scratch, &value)) {
            buf_add_str(out, str_make(text.data + copied, at - copied));
            copied = close + 2;
            if (frontmatter.there && at < frontmatter.end) {
                write_frontmatter(out, look_around(text, at, copied), &value);
            } else {
                write_plain(out, &value);
            }
            at = str_find(text, ng_str_of("{{"), copied);
        } else {
            at = str_find(text, ng_str_of("{{"), at + 2);
        }
    }
    buf_add_str(out, str_make(text.data + copied, text.len - copied));
}
