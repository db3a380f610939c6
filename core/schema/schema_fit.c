/* SPDX-License-Identifier: MIT */
/* schema_fit.c - values that a schema refuses only for how many clients write them: null for
 * what is not given, the text of a value for the value, members that a client adds. */
#include "core/base/str.h"
#include "schema_tree.h"

struct fit {
    struct schema_checker checker;
    const struct schema_leniency *leniency;
    unsigned level; /* of the value: the outermost is at 1 */
    bool changed;
};

static void fit_value(struct fit *fit, const struct schema_node *node, struct ng_value *value,
                      unsigned depth);

/* Schemas in place may refer to each other without end: then nothing more is made to fit, as
 * schema_check() ends. */
static bool may_go_on(struct fit *fit, unsigned depth)
{
    if (depth >= SCHEMA_DEPTH_MAX || ++fit->checker.steps > SCHEMA_STEPS_MAX) {
        fit->checker.rc = NG_EINVAL;
    }
    return fit->checker.rc == NG_OK;
}

static bool takes(struct fit *fit, const struct schema_node *node, const struct ng_value *value)
{
    struct schema_place place = {.value = value, .step = SCHEMA_STEP_ROOT};
    fit->checker.silent++;
    bool fits = schema_check_node(&fit->checker, node, &place, NULL);
    fit->checker.silent--;
    return fits;
}

/* ---- the text of a value ---- */

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* May a text be meant as a value of these types? White space is only around lists and objects.
 */
static bool may_be_text_of(struct ng_str text, unsigned types)
{
    if (text.len == 0) {
        return false;
    }
    if ((types & SCHEMA_BOOLEAN) != 0 && (str_is(text, "true") || str_is(text, "false"))) {
        return true;
    }
    if ((types & (SCHEMA_NUMBER | SCHEMA_INTEGER)) != 0 &&
        (text.data[0] == '-' || is_digit(text.data[0])) && is_digit(text.data[text.len - 1])) {
        return true;
    }
    return (types & (SCHEMA_ARRAY | SCHEMA_OBJECT)) != 0;
}

/* Puts another value in the place of one. */
static void replace(struct fit *fit, struct ng_value *value, const struct ng_value *by)
{
    value->type = by->type;
    value->count = by->count;
    value->first = by->first;
    value->text = by->text;
    value->printed = false;
    fit->changed = true;
}

static void decode(struct fit *fit, const struct schema_node *node, struct ng_value *value,
                   unsigned depth)
{
    unsigned types = schema_types_admitted(node);
    const struct ng_value *decoded = NULL;
    struct json_error error;
    if (fit->level > fit->leniency->depth || (types & SCHEMA_STRING) != 0 ||
        !may_be_text_of(value->text, types)) {
        return;
    }
    int rc = json_parse(fit->checker.arena, value->text, fit->leniency->depth + 1 - fit->level,
                        &decoded, &error);
    if (rc != NG_OK || (schema_types_of(decoded) & types) == 0) {
        return;
    }
    if (decoded->type == NG_TYPE_ARRAY || decoded->type == NG_TYPE_OBJECT) {
        /* The tree is this value's alone. */
        struct ng_value *own = (struct ng_value *)(uintptr_t)decoded;
        bool had_changed = fit->changed;
        fit_value(fit, node, own, depth + 1);
        fit->changed = had_changed;
        if (!takes(fit, node, own)) {
            return;
        }
        own->text = str_make(NULL, 0);
    }
    replace(fit, value, decoded);
}

/* ---- members and items ---- */

static bool is_required(const struct schema_node *node, struct ng_str name)
{
    const struct schema_rule *rule = node->by_keyword[SCHEMA_REQUIRED];
    return rule != NULL && json_has_text(rule->value, name);
}

/* The schema that a node has for a member by name or pattern; NULL: none. */
static const struct schema_node *named_node(struct fit *fit, const struct schema_node *node,
                                            const struct ng_value *member)
{
    const struct schema_rule *rule = node->by_keyword[SCHEMA_PROPERTIES];
    const struct schema_entry *entry = NULL;
    if (rule != NULL) {
        entry = schema_find(rule, member->key);
    }
    if (entry != NULL) {
        return entry->node;
    }
    rule = node->by_keyword[SCHEMA_PATTERN_PROPERTIES];
    struct schema_place place = {
        .value = member, .step = SCHEMA_STEP_MEMBER, .name = member->key};
    fit->checker.silent++;
    for (size_t i = 0; rule != NULL && i < rule->count && entry == NULL; i++) {
        if (schema_matches(&fit->checker, rule->entries[i].regex, member->key, &place,
                           rule->entries[i].name)) {
            entry = &rule->entries[i];
        }
    }
    fit->checker.silent--;
    return entry != NULL ? entry->node : NULL;
}

static bool is_false(const struct schema_rule *rule)
{
    return rule != NULL && rule->node->value->type == NG_TYPE_FALSE;
}

/* Does any schema in place name the member, or take others than those it names? */
static bool is_named(struct fit *fit, const struct schema_node *node,
                     const struct ng_value *member, unsigned depth)
{
    static const enum schema_keyword in_place[] = {SCHEMA_REF,    SCHEMA_ALL_OF,
                                                   SCHEMA_ANY_OF, SCHEMA_ONE_OF,
                                                   SCHEMA_IF,     SCHEMA_DEPENDENT_SCHEMAS};
    if (node == NULL || !may_go_on(fit, depth)) {
        return false;
    }
    const struct schema_rule *rest = node->by_keyword[SCHEMA_ADDITIONAL_PROPERTIES];
    bool named = named_node(fit, node, member) != NULL || (rest != NULL && !is_false(rest));
    for (size_t i = 0; i < NG_COUNT(in_place) && !named; i++) {
        const struct schema_rule *rule = node->by_keyword[in_place[i]];
        if (rule == NULL) {
            continue;
        }
        named = is_named(fit, rule->node, member, depth + 1) ||
                is_named(fit, rule->then_node, member, depth + 1) ||
                is_named(fit, rule->else_node, member, depth + 1);
        for (size_t j = 0; j < rule->count && !named; j++) {
            named = is_named(fit, rule->entries[j].node, member, depth + 1);
        }
    }
    return named;
}

/* The schema of a member: by its name, or that of all the others unless that is `false`. NULL:
 * none. */
static const struct schema_node *member_node(struct fit *fit, const struct schema_node *node,
                                             const struct ng_value *member)
{
    const struct schema_node *named = named_node(fit, node, member);
    const struct schema_rule *rest = node->by_keyword[SCHEMA_ADDITIONAL_PROPERTIES];
    if (rest == NULL) {
        rest = node->by_keyword[SCHEMA_UNEVALUATED_PROPERTIES];
    }
    if (named != NULL || rest == NULL || is_false(rest)) {
        return named;
    }
    bool is_left =
        rest->keyword == SCHEMA_ADDITIONAL_PROPERTIES || !is_named(fit, node, member, 0);
    return is_left ? rest->node : NULL;
}

static void drop(struct fit *fit, struct ng_value *object, struct ng_value **at)
{
    *at = (*at)->next;
    object->count--;
    fit->changed = true;
}

static void fit_members(struct fit *fit, const struct schema_node *node,
                        struct ng_value *object, unsigned depth)
{
    struct ng_value **at = &object->first;
    while (*at != NULL) {
        struct ng_value *member = *at;
        const struct schema_node *own = member_node(fit, node, member);
        if (own != NULL && member->type == NG_TYPE_NULL && !is_required(node, member->key) &&
            !takes(fit, own, member)) {
            drop(fit, object, at);
            continue;
        }
        if (own != NULL) {
            fit_value(fit, own, member, depth + 1);
        }
        at = &member->next;
    }
}

static void fit_items(struct fit *fit, const struct schema_node *node, struct ng_value *array,
                      unsigned depth)
{
    const struct schema_rule *prefix = node->by_keyword[SCHEMA_PREFIX_ITEMS];
    const struct schema_rule *items = node->by_keyword[SCHEMA_ITEMS];
    size_t index = 0;
    for (struct ng_value *item = array->first; item != NULL; item = item->next, index++) {
        if (prefix != NULL && index < prefix->count) {
            fit_value(fit, prefix->entries[index].node, item, depth + 1);
        } else if (items != NULL) {
            fit_value(fit, items->node, item, depth + 1);
        }
    }
}

/* anyOf, oneOf: where no branch takes the value, it becomes what the first one takes. */
static void fit_branches(struct fit *fit, const struct schema_rule *rule,
                         struct ng_value *value, unsigned depth)
{
    for (size_t i = 0; i < rule->count; i++) {
        if (takes(fit, rule->entries[i].node, value)) {
            return;
        }
    }
    for (size_t i = 0; i < rule->count; i++) {
        struct ng_value *copy = json_clone(fit->checker.arena, value);
        bool had_changed = fit->changed;
        if (copy == NULL) {
            fit->checker.rc = NG_EINTERNAL;
            return;
        }
        fit_value(fit, rule->entries[i].node, copy, depth + 1);
        fit->changed = had_changed;
        if (takes(fit, rule->entries[i].node, copy)) {
            replace(fit, value, copy);
            return;
        }
    }
}

/* The schemas that the value selects, with its members as they are by now. */
static void fit_conditions(struct fit *fit, const struct schema_node *node,
                           struct ng_value *value, unsigned depth)
{
    const struct schema_rule *rule = node->by_keyword[SCHEMA_IF];
    if (rule != NULL) {
        const struct schema_node *branch =
            takes(fit, rule->node, value) ? rule->then_node : rule->else_node;
        if (branch != NULL) {
            fit_value(fit, branch, value, depth + 1);
        }
    }
    rule = node->by_keyword[SCHEMA_DEPENDENT_SCHEMAS];
    for (size_t i = 0; rule != NULL && i < rule->count; i++) {
        if (json_get_str(value, rule->entries[i].name) != NULL) {
            fit_value(fit, rule->entries[i].node, value, depth + 1);
        }
    }
}

static void fit_container(struct fit *fit, const struct schema_node *node,
                          struct ng_value *value, unsigned depth)
{
    static const enum schema_keyword branches[] = {SCHEMA_ANY_OF, SCHEMA_ONE_OF};
    const struct schema_rule *all = node->by_keyword[SCHEMA_ALL_OF];
    if (node->by_keyword[SCHEMA_REF] != NULL) {
        fit_value(fit, node->by_keyword[SCHEMA_REF]->node, value, depth + 1);
    }
    for (size_t i = 0; all != NULL && i < all->count; i++) {
        fit_value(fit, all->entries[i].node, value, depth + 1);
    }
    fit->level++;
    if (value->type == NG_TYPE_OBJECT) {
        fit_members(fit, node, value, depth);
    } else {
        fit_items(fit, node, value, depth);
    }
    fit->level--;
    fit_conditions(fit, node, value, depth);
    for (size_t i = 0; i < NG_COUNT(branches); i++) {
        if (node->by_keyword[branches[i]] != NULL) {
            fit_branches(fit, node->by_keyword[branches[i]], value, depth);
        }
    }
}

static void fit_value(struct fit *fit, const struct schema_node *node, struct ng_value *value,
                      unsigned depth)
{
    bool had_changed = fit->changed;
    if (!may_go_on(fit, depth)) {
        return;
    }
    if (value->type == NG_TYPE_STRING) {
        if (!takes(fit, node, value)) {
            decode(fit, node, value, depth);
        }
    } else if (value->type == NG_TYPE_OBJECT || value->type == NG_TYPE_ARRAY) {
        fit->changed = false;
        fit_container(fit, node, value, depth);
        if (fit->changed) { /* its text is that of before */
            value->text = str_make(NULL, 0);
            value->printed = false;
        }
        fit->changed = fit->changed || had_changed;
    }
}

/* ---- members that clients add ---- */

/* Does it refuse members that it does not name? */
static bool is_closed(struct fit *fit, const struct schema_node *node, unsigned depth)
{
    static const enum schema_keyword in_place[] = {SCHEMA_REF, SCHEMA_ALL_OF, SCHEMA_ANY_OF,
                                                   SCHEMA_ONE_OF};
    if (node == NULL || !may_go_on(fit, depth)) {
        return false;
    }
    bool closed = is_false(node->by_keyword[SCHEMA_ADDITIONAL_PROPERTIES]) ||
                  is_false(node->by_keyword[SCHEMA_UNEVALUATED_PROPERTIES]);
    for (size_t i = 0; i < NG_COUNT(in_place) && !closed; i++) {
        const struct schema_rule *rule = node->by_keyword[in_place[i]];
        bool any = false;
        bool all = true;
        for (size_t j = 0; rule != NULL && j < rule->count; j++) {
            bool branch = is_closed(fit, rule->entries[j].node, depth + 1);
            any = any || branch;
            all = all && branch;
        }
        if (rule != NULL) {
            closed = is_closed(fit, rule->node, depth + 1) ||
                     (any && (all || in_place[i] == SCHEMA_ALL_OF));
        }
    }
    return closed;
}

static void drop_ignored(struct fit *fit, const struct schema_node *node,
                         struct ng_value *object)
{
    struct ng_value **at = &object->first;
    if (!is_closed(fit, node, 0)) {
        return; /* it takes members of any name */
    }
    while (*at != NULL) {
        bool ignored = false;
        for (size_t i = 0; i < fit->leniency->ignored_count && !ignored; i++) {
            ignored = str_equal(fit->leniency->ignored[i], (*at)->key);
        }
        if (ignored && !is_named(fit, node, *at, 0) && fit->checker.rc == NG_OK) {
            drop(fit, object, at);
        } else {
            at = &(*at)->next;
        }
    }
}

bool schema_fit(const struct schema *schema, struct ng_value *value, struct arena *arena,
                const struct schema_leniency *leniency)
{
    struct violations none;
    struct fit fit = {.checker = {.schema = schema,
                                  .arena = arena,
                                  .violations = &none,
                                  .work_left = SCHEMA_MATCH_WORK},
                      .leniency = leniency,
                      .level = 1};
    none.count = 0;
    if (value->type == NG_TYPE_OBJECT) {
        drop_ignored(&fit, schema->root, value);
    }
    fit_value(&fit, schema->root, value, 0);
    if (fit.changed) {
        value->text = str_make(NULL, 0);
        value->printed = false;
    }
    pcre2_match_data_free(fit.checker.match);
    pcre2_match_context_free(fit.checker.context);
    return fit.changed;
}
