/* SPDX-License-Identifier: MIT */
/* create_compose.c - composes a new note from data, content, template and group; earlier layers
 * win. */
#include <string.h>

#include "create.h"
#include "notebook/notebook.h"
#include "text/codes.h"

/* The layers of one note, parsed. */
struct layers {
    const struct notes_notebook *notebook;
    struct ng_call *call;
    struct arena *arena;
    const struct notes_new_note *note;
    struct notes_value *groups;
    struct ng_str template_name;
    const struct notes_value *template_frontmatter, *content_frontmatter;
    struct ng_str template_body, content_body;
};

int notes_data_check(struct ng_call *call, const struct ng_value *data)
{
    size_t count = data == NULL ? 0 : call->host->json_count(data);
    if (count > NOTES_DATA_MAX) {
        return ng_fail(call, NG_EINVAL, "`data` has %zu fields, at most %zu are taken.", count,
                       NOTES_DATA_MAX);
    }
    if (notes_value_is_deep(call, data, 0)) {
        return ng_fail(call, NG_EINVAL,
                       "`data`: values are nested too deeply; front matter takes %d levels, "
                       "`data` itself among them.",
                       NOTES_FRONTMATTER_DEPTH_MAX);
    }
    return NG_OK;
}

/* ---- groups of .opennotes.json */

static bool group_matches(struct layers *layers, const struct ng_value *group)
{
    const struct ng_host *host = layers->call->host;
    const struct ng_value *globs = host->json_get(group, "globs");
    if (host->json_type(globs) == NG_TYPE_STRING) {
        return notes_glob(notes_nfc(layers->arena, host->json_text(globs)), layers->note->path);
    }
    for (const struct ng_value *glob = host->json_first(globs); glob != NULL;
         glob = host->json_next(glob)) {
        if (notes_glob(notes_nfc(layers->arena, host->json_text(glob)), layers->note->path)) {
            return true;
        }
    }
    return false;
}

/* If several groups match, the first one wins. */
static int read_groups(struct layers *layers)
{
    const struct ng_host *host = layers->call->host;
    const struct ng_value *config = layers->notebook->config;
    const struct ng_value *groups = host->json_get(config, "groups");
    layers->groups = arena_zalloc(layers->arena, sizeof(*layers->groups));
    if (layers->groups == NULL) {
        return notes_fail_memory(layers->call);
    }
    layers->groups->type = NOTES_MAP;
    for (const struct ng_value *group = host->json_first(groups); group != NULL;
         group = host->json_next(group)) {
        if (!group_matches(layers, group)) {
            continue;
        }
        const struct ng_value *metadata = host->json_get(group, "metadata");
        if (host->json_type(metadata) == NG_TYPE_OBJECT) {
            if (notes_value_is_deep(layers->call, metadata, 0)) {
                return ng_fail(layers->call, NOTES_ECONFIG,
                               "The `metadata` of a group: values are nested too deeply.");
            }
            layers->groups =
                notes_value_merge(layers->arena, layers->groups,
                                  notes_value_from(layers->arena, layers->call, metadata, 0));
        }
        if (layers->groups == NULL) {
            return notes_fail_memory(layers->call);
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
static int split_frontmatter(struct layers *layers, struct ng_str text,
                             const struct notes_value **ret, struct ng_str *ret_body,
                             struct ng_str *ret_error)
{
    struct notes_frontmatter frontmatter;
    notes_frontmatter_find(text, &frontmatter);
    *ret_body = str_make(text.data + frontmatter.body, text.len - frontmatter.body);
    struct ng_str yaml =
        str_make(text.data + frontmatter.yaml, frontmatter.end - frontmatter.yaml);
    int rc = notes_frontmatter_parse(layers->arena, yaml, 2, ret, ret_error);
    if (rc == NG_OK && frontmatter.there && (*ret)->first == NULL && notes_trim(yaml).len > 0) {
        /* Only comments: headings between two rules, not front matter. */
        *ret_body = str_make(text.data + frontmatter.bom, text.len - frontmatter.bom);
    }
    if (rc == NG_EINTERNAL) {
        return notes_fail_memory(layers->call);
    }
    return rc;
}

static int read_template(struct layers *layers, const struct notes_vars *vars)
{
    struct ng_str text = str_make("", 0);
    struct ng_str error = str_make(NULL, 0);
    struct ng_str name = layers->template_name;
    int rc = NG_OK;
    if (name.data != NULL) {
        rc = notes_template_text(layers->notebook, layers->call, name, &text);
    }
    if (rc != NG_OK) {
        return rc;
    }
    struct buf filled;
    buf_init(&filled, NOTES_COMPOSE_MAX);
    notes_template_fill(&filled, notes_utf8_clean(layers->arena, text), vars);
    text = arena_copy(layers->arena, notes_buf_str(&filled));
    rc = filled.rc;
    buf_done(&filled);
    if (rc != NG_OK || layers->arena->failed) {
        return notes_fail_memory(layers->call);
    }
    rc = split_frontmatter(layers, text, &layers->template_frontmatter, &layers->template_body,
                           &error);
    if (rc == NG_EINVAL) {
        return ng_fail(layers->call, NOTES_ECONFIG,
                       "The front matter of the template '%.*s' does not parse: %.*s",
                       (int)name.len, name.data, (int)error.len, error.data);
    }
    return rc;
}

static int read_content(struct layers *layers)
{
    struct ng_str error = str_make(NULL, 0);
    struct ng_str content = layers->note->content;
    if (content.data == NULL) {
        content = str_make("", 0);
    }
    int rc = split_frontmatter(layers, content, &layers->content_frontmatter,
                               &layers->content_body, &error);
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

/* ---- composition */

static bool has_created(const struct notes_value *map)
{
    return notes_value_get(map, ng_str_of("created")) != NULL ||
           notes_value_get(map, ng_str_of("created_at")) != NULL ||
           notes_value_get(map, ng_str_of("date")) != NULL;
}

static void put_text(struct arena *arena, struct notes_value *map, const char *key,
                     struct ng_str text)
{
    struct notes_value value = {.type = NOTES_STRING, .text = arena_copy(arena, text)};
    (void)notes_value_put(arena, map, ng_str_of(key), &value);
}

/* Title and time first, then the layers. NULL: out of memory. */
static const struct notes_value *merge_layers(const struct layers *layers,
                                              struct ng_str *ret_title)
{
    struct arena *arena = layers->arena;
    char now[RFC3339_SIZE];
    struct notes_value *map =
        notes_value_merge(arena, layers->note->data, layers->content_frontmatter);
    map = notes_value_merge(arena, map, layers->template_frontmatter);
    map = notes_value_merge(arena, map, layers->groups);
    struct notes_value *first = arena_zalloc(arena, sizeof(*first));
    if (map == NULL || first == NULL) {
        return NULL;
    }
    first->type = NOTES_MAP;
    /* The argument is the title, unless `data` has one. */
    const struct notes_value *title = notes_value_get(layers->note->data, ng_str_of("title"));
    *ret_title = layers->note->title;
    if (title != NULL && title->type == NOTES_STRING && notes_trim(title->text).len > 0) {
        *ret_title = title->text;
    }
    put_text(arena, first, "title", *ret_title);
    if (!has_created(map)) {
        notes_time_write_local(layers->note->now_ms, now);
        put_text(arena, first, "created", ng_str_of(now));
    }
    map = notes_value_merge(arena, first, map);
    if (arena->failed) {
        return NULL;
    }
    return map;
}

static void end_line(struct buf *out)
{
    if (out->len > 0 && out->data[out->len - 1] != '\n') {
        buf_add_char(out, '\n');
    }
}

static void write_note(struct buf *out, const struct layers *layers,
                       const struct notes_value *frontmatter, struct ng_str title)
{
    struct notes_yaml yaml = {.out = out, .newline = "\n"};
    buf_add_c(out, "---\n");
    notes_yaml_block(&yaml, frontmatter, 0, false);
    buf_add_c(out, "---\n");
    buf_add_str(out, layers->template_body);
    end_line(out);
    buf_add_str(out, layers->content_body);
    end_line(out);
    if (layers->template_name.data == NULL && layers->note->content.data == NULL) {
        buf_add_c(out, "# ");
        buf_add_str(out, title);
        buf_add_char(out, '\n');
    }
}

/* Parses the written note again: it must have the same front matter. */
static int check_note(struct layers *layers, const struct notes_value *frontmatter,
                      struct ng_str bytes)
{
    struct ng_str error = str_make(NULL, 0);
    const struct notes_value *back = NULL;
    struct notes_frontmatter place;
    notes_frontmatter_find(bytes, &place);
    int rc = notes_frontmatter_parse(layers->arena,
                                     str_make(bytes.data + place.yaml, place.end - place.yaml),
                                     2, &back, &error);
    if (rc == NG_EINTERNAL) {
        return notes_fail_memory(layers->call);
    }
    if (rc != NG_OK || !notes_value_equal(frontmatter, back)) {
        return ng_fail(layers->call, NG_EINVAL,
                       "`data` cannot be written as front matter: %.*s", (int)error.len,
                       error.data);
    }
    return NG_OK;
}

int notes_compose(const struct notes_notebook *notebook, struct ng_call *call,
                  struct arena *arena, const struct notes_new_note *note,
                  struct ng_str *ret_bytes, struct ng_str *ret_title)
{
    struct layers layers = {
        .notebook = notebook,
        .call = call,
        .arena = arena,
        .note = note,
        .template_name = note->template_name,
    };
    struct notes_vars vars = {
        .title = note->title,
        .slug = notes_slug(arena, note->title),
        .now_ms = note->day_ms,
        .data = note->data,
    };
    int rc = read_groups(&layers);
    if (rc == NG_OK) {
        rc = read_template(&layers, &vars);
    }
    if (rc == NG_OK) {
        rc = read_content(&layers);
    }
    if (rc != NG_OK) {
        return rc;
    }
    const struct notes_value *frontmatter = merge_layers(&layers, ret_title);
    if (frontmatter == NULL) {
        return notes_fail_memory(call);
    }
    struct buf out;
    buf_init(&out, NOTES_COMPOSE_MAX);
    write_note(&out, &layers, frontmatter, *ret_title);
    *ret_bytes = notes_call_copy(call, notes_buf_str(&out));
    if (ret_bytes->data != NULL && out.rc == NG_OK) {
        rc = check_note(&layers, frontmatter, *ret_bytes);
    } else {
        rc = notes_fail_memory(call);
    }
    buf_done(&out);
    return rc;
}
