/* SPDX-License-Identifier: MIT */
/* view_find.c - finds views: a notebook's own override those of the configuration, which
 * override the built-in ones. */
#include <string.h>

#include "core/base/minmax.h"
#include "text/codes.h"
#include "view.h"

#define DISTANCE_MAX 3

static const char builtin_json[] =
    "{\"today\":{\"description\":\"Notes created or modified today, newest first\"},"
    "\"recent\":{\"description\":\"The 20 notes that were modified last\"},"
    "\"kanban\":{\"description\":\"Notes by status, in the order given, then by priority\","
    "\"parameters\":[{\"name\":\"status\",\"type\":\"list\",\"required\":false,"
    "\"default\":\"backlog,todo,in-progress,reviewing,testing,deploying,done\","
    "\"description\":\"Statuses, separated by commas\"}]},"
    "\"untagged\":{\"description\":\"Notes without any tag\"},"
    "\"orphans\":{\"description\":\"Notes that no other note links to\","
    "\"parameters\":[{\"name\":\"definition\",\"type\":\"string\",\"required\":false,"
    "\"default\":\"no-incoming\",\"description\":\"no-incoming, no-links (and none of its own) "
    "or isolated (and no tags)\"}]},"
    "\"broken-links\":{\"description\":\"Links that lead to no note and no file\"}}";

/* The views of one origin: an object by name, or NULL. */
static int views_of(struct notes_view *view, enum notes_view_origin origin,
                    const struct ng_value **ret_views)
{
    const struct ng_host *host = view->call->host;
    *ret_views = NULL;
    if (origin == NOTES_VIEW_BUILTIN) {
        return host->json_parse(view->call, ng_str_of(builtin_json), ret_views);
    }
    if (origin == NOTES_VIEW_GLOBAL) {
        if (view->notebook->self->views == NULL) {
            return NG_OK;
        }
        return host->json_parse(view->call, ng_str_of(view->notebook->self->views), ret_views);
    }
    const struct ng_value *config = view->notebook->config;
    const struct ng_value *views = config != NULL ? host->json_get(config, "views") : NULL;
    *ret_views = host->json_type(views) == NG_TYPE_OBJECT ? views : NULL;
    return NG_OK;
}

static const struct ng_value *member_of(const struct ng_host *host,
                                        const struct ng_value *views, struct ng_str name)
{
    for (const struct ng_value *item = host->json_first(views); item != NULL;
         item = host->json_next(item)) {
        if (str_equal(host->json_key(item), name)) {
            return item;
        }
    }
    return NULL;
}

static int fail_unknown(struct notes_view *view)
{
    const struct ng_host *host = view->call->host;
    struct ng_str nearest = str_make(NULL, 0);
    size_t best = DISTANCE_MAX + 1;
    for (int origin = NOTES_VIEW_NOTEBOOK; origin >= NOTES_VIEW_BUILTIN; origin--) {
        const struct ng_value *views = NULL;
        (void)views_of(view, (enum notes_view_origin)origin, &views);
        for (const struct ng_value *item = host->json_first(views); item != NULL;
             item = host->json_next(item)) {
            size_t distance = edit_distance(host->json_key(item), view->name, DISTANCE_MAX);
            if (distance < best) {
                nearest = host->json_key(item);
            }
            best = size_min(distance, best);
        }
    }
    struct ng_str shown = utf8_cut(view->name, 100);
    (void)ng_fail(view->call, NOTES_EVIEW, "View not found: %.*s", (int)shown.len, shown.data);
    if (nearest.data != NULL) {
        host->hint(view->call, "Did you mean '%.*s'? Call without `view` to list all views.",
                   (int)nearest.len, nearest.data);
    } else {
        host->hint(view->call, "Call without `view` to list all views.");
    }
    return NOTES_EVIEW;
}

int notes_view_find(struct notes_view *view)
{
    const struct ng_host *host = view->call->host;
    for (int origin = NOTES_VIEW_NOTEBOOK; origin >= NOTES_VIEW_BUILTIN; origin--) {
        const struct ng_value *views = NULL;
        int rc = views_of(view, (enum notes_view_origin)origin, &views);
        if (rc != NG_OK) {
            return rc;
        }
        view->definition = member_of(host, views, view->name);
        view->origin = (enum notes_view_origin)origin;
        if (view->definition != NULL) {
            if (host->json_type(view->definition) == NG_TYPE_OBJECT) {
                return NG_OK;
            }
            return notes_view_fail(view, "its definition is not an object", str_make(NULL, 0));
        }
    }
    return fail_unknown(view);
}

/* ---- listing */

static void write_parameters(struct buf *item, const struct ng_host *host,
                             const struct ng_value *parameters)
{
    static const char *const texts[] = {"default", "description"};
    notes_json_member_begin(item, "parameters", '[');
    for (const struct ng_value *parameter = host->json_first(parameters); parameter != NULL;
         parameter = host->json_next(parameter)) {
        struct ng_str type = host->json_text(host->json_get(parameter, "type"));
        notes_json_begin(item, '{');
        notes_json_member(item, "name", host->json_text(host->json_get(parameter, "name")));
        notes_json_member(item, "type", type.data != NULL ? type : ng_str_of("string"));
        notes_json_member_bool(item, "required",
                               host->json_type(host->json_get(parameter, "required")) ==
                                   NG_TYPE_TRUE);
        for (size_t i = 0; i < NG_COUNT(texts); i++) {
            struct ng_str text = host->json_text(host->json_get(parameter, texts[i]));
            if (text.data != NULL) {
                notes_json_member(item, texts[i], text);
            }
        }
        notes_json_end(item, '}');
    }
    notes_json_end(item, ']');
}

static void add_definition(struct notes_view *view, struct ng_str name,
                           enum notes_view_origin origin, const struct ng_value *definition)
{
    static const char *const origins[] = {"built-in", "global", "notebook"};
    const struct ng_host *host = view->call->host;
    if (!notes_answer_row(view->answer)) {
        return;
    }
    struct buf *item = notes_answer_item(view->answer);
    struct ng_str description = host->json_text(host->json_get(definition, "description"));
    const struct ng_value *parameters = host->json_get(definition, "parameters");
    notes_json_begin(item, '{');
    notes_json_member(item, "name", name);
    notes_json_member(item, "origin", ng_str_of(origins[origin]));
    if (description.data != NULL) {
        notes_json_member(item, "description", description);
    }
    if (host->json_type(parameters) == NG_TYPE_ARRAY) {
        write_parameters(item, host, parameters);
    }
    notes_json_end(item, '}');
    (void)notes_answer_add(view->answer);
}

/* Each name once, with the definition that a call would use. */
int notes_view_list(struct notes_view *view)
{
    const struct ng_host *host = view->call->host;
    const struct ng_value *views[NOTES_VIEW_NOTEBOOK + 1] = {NULL};
    for (int origin = NOTES_VIEW_BUILTIN; origin <= NOTES_VIEW_NOTEBOOK; origin++) {
        int rc = views_of(view, (enum notes_view_origin)origin, &views[origin]);
        if (rc != NG_OK) {
            return rc;
        }
    }
    for (int origin = NOTES_VIEW_BUILTIN; origin <= NOTES_VIEW_NOTEBOOK; origin++) {
        for (const struct ng_value *item = host->json_first(views[origin]); item != NULL;
             item = host->json_next(item)) {
            struct ng_str name = host->json_key(item);
            bool seen = false;
            for (int lower = NOTES_VIEW_BUILTIN; lower < origin; lower++) {
                seen = seen || member_of(host, views[lower], name) != NULL;
            }
            int best = NOTES_VIEW_NOTEBOOK;
            while (member_of(host, views[best], name) == NULL) {
                best--;
            }
            if (!seen) {
                add_definition(view, name, (enum notes_view_origin)best,
                               member_of(host, views[best], name));
            }
        }
    }
    return NG_OK;
}
