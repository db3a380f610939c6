/* SPDX-License-Identifier: MIT */
/* create_compose.c - what a new note is made of: data, content, template and group, the first
 * of them before the others. */
#include <string.h>

#include "create.h"
#include "notebook/notebook.h"
#include "text/codes.h"

/* The layers of one note, parsed. */
struct layers {
    const struct on_notebook *notebook;
    struct ng_call *call;
    struct on_arena *arena;
    const struct on_new_note *note;
    struct on_value *groups;
    struct ng_str template_name;
    const struct on_value *template_front, *content_front;
    struct ng_str template_body, content_body;
};

/* ---- groups of .opennotes.json */

static bool group_matches(struct layers *layers, const struct ng_value *group)
{
    const struct ng_host *host = layers->call->host;
    const struct ng_value *globs = host->json_get(group, "globs");
    if (host->json_type(globs) == NG_TYPE_STRING) {
        return on_glob(on_nfc(layers->arena, host->json_text(globs)), layers->note->path);
    }
    for (const struct ng_value *glob = host->json_first(globs); glob != NULL;
         glob = host->json_next(glob)) {
        struct ng_str pattern = on_nfc(layers->arena, host->json_text(glob));
        if (pattern.data != NULL && on_glob(pattern, layers->note->path)) {
            return true;
        }
    }
    return false;
}

/* Where several groups match, the first of them says it. */
static int read_groups(struct layers *layers)
{
    const struct ng_host *host = layers->call->host;
    const struct ng_value *config = layers->notebook->config;
    const struct ng_value *groups = config != NULL ? host->json_get(config, "groups") : NULL;
    layers->groups = on_arena_alloc(layers->arena, sizeof(*layers->groups));
    if (layers->groups == NULL) {
        return on_fail_memory(layers->call);
    }
    layers->groups->type = ON_MAP;
    for (const struct ng_value *group = host->json_first(groups); group != NULL;
         group = host->json_next(group)) {
        if (!group_matches(layers, group)) {
            continue;
        }
        const struct ng_value *metadata = host->json_get(group, "metadata");
        struct on_value *map = host->json_type(metadata) == NG_TYPE_OBJECT
                                   ? on_value_from(layers->arena, layers->call, metadata)
                                   : layers->groups;
        layers->groups =
            map != NULL ? on_value_merge(layers->arena, layers->groups, map) : NULL;
        if (layers->groups == NULL) {
            return on_fail_memory(layers->call);
        }
        struct ng_str name = host->json_text(host->json_get(group, "template"));
        if (layers->template_name.data == NULL && name.len > 0) {
            layers->template_name = name;
        }
    }
    return NG_OK;
}

/* ---- template and content */

/* Splits a text into its front matter and the rest. */
static int split_front(struct layers *layers, struct ng_str text, const struct on_value **ret,
                       struct ng_str *ret_body, struct ng_str *ret_error)
{
    struct on_front front;
    on_front_find(text, &front);
    *ret_body = on_str(text.data + front.body, text.len - front.body);
    struct ng_str yaml = on_str(text.data + front.yaml, front.end - front.yaml);
    int rc = on_front_parse(layers->arena, yaml, 2, ret, ret_error);
    if (rc == NG_OK && front.there && (*ret)->first == NULL && on_trim(yaml).len > 0) {
        /* Nothing but comments: headings between two rules, and no front matter. */
        *ret_body = on_str(text.data + front.bom, text.len - front.bom);
    }
    return rc == NG_EINTERNAL ? on_fail_memory(layers->call) : rc;
}

static int read_template(struct layers *layers, const struct on_vars *vars)
{
    struct ng_str text = on_str("", 0);
    struct ng_str error = on_str(NULL, 0);
    struct ng_str name = layers->template_name;
    int rc = NG_OK;
    if (name.data != NULL) {
        rc = on_template_text(layers->notebook, layers->call, name, &text);
    }
    if (rc != NG_OK) {
        return rc;
    }
    struct on_buf filled;
    on_buf_init(&filled, ON_COMPOSE_MAX);
    text = on_utf8_clean(layers->arena, text);
    if (text.data != NULL) {
        on_template_fill(&filled, text, vars);
        text = filled.rc == NG_OK ? on_arena_copy(layers->arena, on_buf_str(&filled))
                                  : on_str(NULL, 0);
    }
    on_buf_done(&filled);
    if (text.data == NULL) {
        return on_fail_memory(layers->call);
    }
    rc = split_front(layers, text, &layers->template_front, &layers->template_body, &error);
    if (rc == NG_EINVAL) {
        return ng_fail(layers->call, ON_ECONFIG,
                       "The front matter of the template '%.*s' does not parse: %.*s",
                       (int)name.len, name.data, (int)error.len, error.data);
    }
    return rc;
}

static int read_content(struct layers *layers)
{
    struct ng_str error = on_str(NULL, 0);
    struct ng_str content = layers->note->content;
    int rc = split_front(layers, content.data != NULL ? content : on_str("", 0),
                         &layers->content_front, &layers->content_body, &error);
    if (rc == NG_EINVAL) {
        (void)ng_fail(layers->call, NG_EINVAL,
                      "`content` begins with front matter that does not parse: %.*s",
                      (int)error.len, error.data);
        layers->call->host->hint(layers->call,
                                 "Give front matter as `data`, or correct the YAML between the "
                                 "two lines of `---`.");
    }
    return rc;
}

/* ---- putting it together */

static bool has_created(const struct on_value *map)
{
    return on_value_get(map, ng_str_of("created")) != NULL ||
           on_value_get(map, ng_str_of("created_at")) != NULL ||
           on_value_get(map, ng_str_of("date")) != NULL;
}

static bool put_text(struct on_arena *arena, struct on_value *map, const char *key,
                     struct ng_str text)
{
    struct on_value value = {.type = ON_STRING, .text = on_arena_copy(arena, text)};
    return value.text.data != NULL && on_value_put(arena, map, ng_str_of(key), &value);
}

/* Title and time first, then what the layers say. NULL: no memory. */
static const struct on_value *merge_layers(const struct layers *layers,
                                           struct ng_str *ret_title)
{
    struct on_arena *arena = layers->arena;
    char now[ON_TIME_SIZE];
    struct on_value *map = on_value_merge(arena, layers->note->data, layers->content_front);
    map = map != NULL ? on_value_merge(arena, map, layers->template_front) : NULL;
    map = map != NULL ? on_value_merge(arena, map, layers->groups) : NULL;
    struct on_value *first = on_arena_alloc(arena, sizeof(*first));
    if (map == NULL || first == NULL) {
        return NULL;
    }
    first->type = ON_MAP;
    /* The argument is the title, unless `data` has one as well. */
    const struct on_value *title = on_value_get(layers->note->data, ng_str_of("title"));
    bool given = title != NULL && title->type == ON_STRING && on_trim(title->text).len > 0;
    *ret_title = given ? title->text : layers->note->title;
    on_time_write_local(layers->note->now_ms, now);
    bool ok = put_text(arena, first, "title", *ret_title) &&
              (has_created(map) || put_text(arena, first, "created", ng_str_of(now)));
    return ok ? on_value_merge(arena, first, map) : NULL;
}

static void end_line(struct on_buf *out)
{
    if (out->len > 0 && out->data[out->len - 1] != '\n') {
        on_buf_add_char(out, '\n');
    }
}

static void write_note(struct on_buf *out, const struct layers *layers,
                       const struct on_value *front, struct ng_str title)
{
    struct on_yaml yaml = {.out = out, .newline = "\n"};
    on_buf_add_c(out, "---\n");
    on_yaml_block(&yaml, front, 0);
    on_buf_add_c(out, "---\n");
    on_buf_add(out, layers->template_body);
    end_line(out);
    on_buf_add(out, layers->content_body);
    end_line(out);
    if (layers->template_name.data == NULL && layers->note->content.data == NULL) {
        on_buf_add_c(out, "# ");
        on_buf_add(out, title);
        on_buf_add_char(out, '\n');
    }
}

/* What was written says the same when it is read. */
static int check_note(struct layers *layers, const struct on_value *front, struct ng_str bytes)
{
    struct ng_str error = on_str(NULL, 0);
    const struct on_value *back = NULL;
    struct on_front place;
    on_front_find(bytes, &place);
    int rc =
        on_front_parse(layers->arena, on_str(bytes.data + place.yaml, place.end - place.yaml),
                       2, &back, &error);
    if (rc == NG_EINTERNAL) {
        return on_fail_memory(layers->call);
    }
    if (rc != NG_OK || !on_value_equal(front, back)) {
        return ng_fail(layers->call, NG_EINVAL,
                       "`data` cannot be written as front matter: %.*s", (int)error.len,
                       error.data != NULL ? error.data : "");
    }
    return NG_OK;
}

int on_compose(const struct on_notebook *notebook, struct ng_call *call, struct on_arena *arena,
               const struct on_new_note *note, struct ng_str *ret_bytes,
               struct ng_str *ret_title)
{
    struct layers layers = {
        .notebook = notebook,
        .call = call,
        .arena = arena,
        .note = note,
        .template_name = note->template_name,
    };
    struct on_vars vars = {
        .title = note->title,
        .slug = on_slug(arena, note->title),
        .now_ms = note->day_ms,
        .data = note->data,
    };
    int rc = read_groups(&layers);
    rc = rc == NG_OK ? read_template(&layers, &vars) : rc;
    rc = rc == NG_OK ? read_content(&layers) : rc;
    if (rc != NG_OK) {
        return rc;
    }
    const struct on_value *front = merge_layers(&layers, ret_title);
    if (front == NULL) {
        return on_fail_memory(call);
    }
    struct on_buf out;
    on_buf_init(&out, ON_COMPOSE_MAX);
    write_note(&out, &layers, front, *ret_title);
    char *bytes = out.rc == NG_OK ? ng_alloc(call, out.len + 1) : NULL;
    if (bytes != NULL) {
        memcpy(bytes, out.data, out.len);
        *ret_bytes = on_str(bytes, out.len);
        rc = check_note(&layers, front, *ret_bytes);
    } else {
        rc = on_fail_memory(call);
    }
    on_buf_done(&out);
    return rc;
}
