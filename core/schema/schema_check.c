/* SPDX-License-Identifier: MIT */
/* schema_check.c - applying a compiled schema to a value: the keywords that hold schemas, and
 * the members they evaluated. */
#include <stdlib.h>

#include "core/base/str.h"
#include "schema_tree.h"

static const struct ng_str described = {NULL, 0};

/* ---- marks ---- */

static bool marks_init(struct schema_checker *checker, struct schema_marks *marks, size_t count)
{
    size_t words = (count + 63) / 64;
    marks->count = count;
    marks->few = 0;
    marks->words = &marks->few;
    if (words > 1) {
        marks->words = arena_zalloc(checker->arena, words * sizeof(uint64_t));
    }
    if (marks->words == NULL) {
        checker->rc = NG_EINTERNAL;
    }
    return marks->words != NULL;
}

static void mark(struct schema_marks *marks, size_t index)
{
    if (marks != NULL) {
        marks->words[index / 64] |= UINT64_C(1) << (index % 64);
    }
}

static bool marked(const struct schema_marks *marks, size_t index)
{
    return (marks->words[index / 64] >> (index % 64) & 1) != 0;
}

static void marks_merge(struct schema_marks *into, const struct schema_marks *from)
{
    for (size_t i = 0; into != NULL && i < (into->count + 63) / 64; i++) {
        into->words[i] |= from->words[i];
    }
}

/* ---- helpers ---- */

/* After a failure: is nothing more to be written down? */
static bool ends(const struct schema_checker *checker, bool fits)
{
    return checker->rc != NG_OK || (!fits && !schema_records(checker));
}

static struct schema_place place_of_member(const struct schema_place *parent,
                                           const struct ng_value *member)
{
    struct schema_place place = {
        .parent = parent, .value = member, .step = SCHEMA_STEP_MEMBER, .name = member->key};
    return place;
}

static struct schema_place place_of_item(const struct schema_place *parent,
                                         const struct ng_value *item, size_t index)
{
    struct schema_place place = {
        .parent = parent, .value = item, .step = SCHEMA_STEP_ITEM, .index = index};
    return place;
}

/* A subschema that says false speaks for its keyword. */
static bool check_child(struct schema_checker *checker, const struct schema_node *node,
                        const struct schema_place *place, const char *keyword)
{
    if (node->value->type == NG_TYPE_FALSE) {
        return schema_fail_false(checker, place, keyword);
    }
    return schema_check_node(checker, node, place, NULL);
}

/* Does it fit? If so, adds the evaluated members to `marks`. Records no errors. */
static bool try_node(struct schema_checker *checker, const struct schema_node *node,
                     const struct schema_place *place, struct schema_marks *marks)
{
    struct schema_marks own;
    if (marks != NULL && !marks_init(checker, &own, marks->count)) {
        return false;
    }
    checker->silent++;
    bool fits = schema_check_node(checker, node, place, marks == NULL ? NULL : &own);
    checker->silent--;
    if (fits && marks != NULL) {
        marks_merge(marks, &own);
    }
    return fits;
}

/* ---- in place ---- */

static bool check_all_of(struct schema_checker *checker, const struct schema_rule *rule,
                         const struct schema_place *place, struct schema_marks *marks)
{
    bool fits = true;
    for (size_t i = 0; i < rule->count && !ends(checker, fits); i++) {
        fits = schema_check_node(checker, rule->entries[i].node, place, marks) && fits;
    }
    return fits;
}

static bool check_any_of(struct schema_checker *checker, const struct schema_rule *rule,
                         const struct schema_place *place, struct schema_marks *marks)
{
    bool fits = false;
    for (size_t i = 0; i < rule->count && !(fits && marks == NULL); i++) {
        fits = try_node(checker, rule->entries[i].node, place, marks) || fits;
    }
    return fits || schema_fail_branches(checker, rule, place, "anyOf");
}

static bool check_one_of(struct schema_checker *checker, const struct schema_rule *rule,
                         const struct schema_place *place, struct schema_marks *marks)
{
    size_t fitting = 0;
    for (size_t i = 0; i < rule->count; i++) {
        fitting += try_node(checker, rule->entries[i].node, place, marks);
    }
    if (fitting == 0) {
        return schema_fail_branches(checker, rule, place, "oneOf");
    }
    if (fitting == 1) {
        return true;
    }
    struct ng_str got = described;
    if (schema_records(checker)) {
        got = arena_printf(checker->arena, "a value that fits %zu of them", fitting);
    }
    return schema_fail(checker, place, "oneOf", got, "exactly one of the allowed forms");
}

static bool check_if(struct schema_checker *checker, const struct schema_rule *rule,
                     const struct schema_place *place, struct schema_marks *marks)
{
    const struct schema_node *branch = rule->else_node;
    if (try_node(checker, rule->node, place, marks)) {
        branch = rule->then_node;
    }
    return branch == NULL || schema_check_node(checker, branch, place, marks);
}

static bool check_dependent(struct schema_checker *checker, const struct schema_rule *rule,
                            const struct schema_place *place, struct schema_marks *marks)
{
    bool fits = true;
    for (size_t i = 0; i < rule->count && !ends(checker, fits); i++) {
        const struct schema_entry *entry = &rule->entries[i];
        if (json_get_str(place->value, entry->name) == NULL) {
            continue;
        }
        fits = schema_check_node(checker, entry->node, place, marks) && fits;
    }
    return fits;
}

/* ---- arrays ---- */

static bool check_prefix(struct schema_checker *checker, const struct schema_rule *rule,
                         const struct schema_place *place, struct schema_marks *marks)
{
    bool fits = true;
    size_t index = 0;
    for (const struct ng_value *item = place->value->first;
         item != NULL && index < rule->count && !ends(checker, fits); item = item->next) {
        struct schema_place at = place_of_item(place, item, index);
        fits = check_child(checker, rule->entries[index].node, &at, "prefixItems") && fits;
        mark(marks, index);
        index++;
    }
    return fits;
}

/* items: those behind the prefix; unevaluatedItems (`only` given): those not marked. */
static bool check_items(struct schema_checker *checker, const struct schema_rule *rule,
                        const struct schema_place *place, size_t from,
                        struct schema_marks *marks, const struct schema_marks *only)
{
    bool fits = true;
    size_t index = 0;
    for (const struct ng_value *item = place->value->first;
         item != NULL && !ends(checker, fits); item = item->next, index++) {
        if (index < from || (only != NULL && marked(only, index))) {
            continue;
        }
        struct schema_place at = place_of_item(place, item, index);
        fits = check_child(checker, rule->node, &at, schema_word(rule->keyword)) && fits;
        mark(marks, index);
    }
    return fits;
}

static bool check_contains(struct schema_checker *checker, const struct schema_rule *rule,
                           const struct schema_place *place, struct schema_marks *marks)
{
    uint64_t found = 0;
    size_t index = 0;
    for (const struct ng_value *item = place->value->first;
         item != NULL && checker->rc == NG_OK; item = item->next, index++) {
        struct schema_place at = place_of_item(place, item, index);
        if (try_node(checker, rule->node, &at, NULL)) {
            mark(marks, index);
            found++;
        }
    }
    if (found >= rule->least && found <= rule->most) {
        return true;
    }
    bool few = found < rule->least;
    uint64_t limit = rule->most;
    if (few) {
        limit = rule->least;
    }
    struct ng_str got = described;
    if (schema_records(checker)) {
        got = arena_printf(checker->arena, "%llu", (unsigned long long)found);
    }
    const char *word = "maxContains";
    if (few && rule->least > 1) {
        word = "minContains";
    } else if (few) {
        word = "contains";
    }
    return schema_fail(
        checker, place, word, got, "at %s %llu item%s of the kind that is looked for",
        few ? "least" : "most", (unsigned long long)limit, limit == 1 ? "" : "s");
}

/* ---- objects ---- */

const struct schema_entry *schema_find(const struct schema_rule *properties, struct ng_str name)
{
    const struct schema_entry wanted = {.name = name};
    return bsearch(&wanted, properties->entries, properties->count, sizeof(wanted),
                   schema_by_name);
}

static bool check_property(struct schema_checker *checker, const struct schema_entry *entry,
                           const struct schema_place *place, const struct ng_value *member)
{
    struct schema_place at = place_of_member(place, member);
    return check_child(checker, entry->node, &at, "properties");
}

static bool check_properties(struct schema_checker *checker, const struct schema_rule *rule,
                             const struct schema_place *place, struct schema_marks *marks)
{
    bool fits = true;
    size_t index = 0;
    /* By the members first, which is fast; only errors are then reported in the order of the
     * schema. */
    checker->silent++;
    for (const struct ng_value *member = place->value->first;
         member != NULL && fits && checker->rc == NG_OK; member = member->next, index++) {
        const struct schema_entry *entry = schema_find(rule, member->key);
        if (entry != NULL) {
            fits = check_property(checker, entry, place, member);
            mark(marks, index);
        }
    }
    checker->silent--;
    if (fits || !schema_records(checker)) {
        return fits;
    }
    for (const struct ng_value *name = rule->value->first;
         name != NULL && !ends(checker, false); name = name->next) {
        const struct ng_value *member = json_get_str(place->value, name->key);
        if (member != NULL) {
            (void)check_property(checker, schema_find(rule, name->key), place, member);
        }
    }
    return false;
}

static bool check_patterns(struct schema_checker *checker, const struct schema_rule *rule,
                           const struct schema_place *place, struct schema_marks *marks)
{
    bool fits = true;
    for (size_t i = 0; i < rule->count && !ends(checker, fits); i++) {
        const struct schema_entry *entry = &rule->entries[i];
        size_t index = 0;
        for (const struct ng_value *member = place->value->first;
             member != NULL && !ends(checker, fits); member = member->next, index++) {
            struct schema_place at = place_of_member(place, member);
            if (!schema_matches(checker, entry->regex, member->key, &at, entry->name)) {
                continue;
            }
            fits = check_child(checker, entry->node, &at, "patternProperties") && fits;
            mark(marks, index);
        }
    }
    return fits;
}

static bool is_additional(struct schema_checker *checker, const struct schema_node *node,
                          const struct schema_place *place)
{
    const struct schema_rule *properties = node->by_keyword[SCHEMA_PROPERTIES];
    const struct schema_rule *patterns = node->by_keyword[SCHEMA_PATTERN_PROPERTIES];
    if (properties != NULL && schema_find(properties, place->name) != NULL) {
        return false;
    }
    for (size_t i = 0; patterns != NULL && i < patterns->count; i++) {
        const struct schema_entry *entry = &patterns->entries[i];
        if (schema_matches(checker, entry->regex, place->name, place, entry->name)) {
            return false;
        }
    }
    return checker->rc == NG_OK;
}

/* additionalProperties; unevaluatedProperties (`only` given): those not marked. */
static bool check_rest(struct schema_checker *checker, const struct schema_node *node,
                       const struct schema_rule *rule, const struct schema_place *place,
                       struct schema_marks *marks)
{
    bool fits = true;
    bool unevaluated = rule->keyword == SCHEMA_UNEVALUATED_PROPERTIES;
    size_t index = 0;
    for (const struct ng_value *member = place->value->first;
         member != NULL && !ends(checker, fits); member = member->next, index++) {
        struct schema_place at = place_of_member(place, member);
        bool mine = unevaluated && !marked(marks, index);
        if (!unevaluated) {
            mine = is_additional(checker, node, &at);
        }
        if (mine && rule->node->value->type == NG_TYPE_FALSE) {
            fits = schema_fail_unknown(checker, node, &at, schema_word(rule->keyword));
            mark(marks, index);
        } else if (mine) {
            fits = check_child(checker, rule->node, &at, schema_word(rule->keyword)) && fits;
            mark(marks, index);
        }
    }
    return fits;
}

static bool check_names(struct schema_checker *checker, const struct schema_rule *rule,
                        const struct schema_place *place)
{
    bool fits = true;
    for (const struct ng_value *member = place->value->first;
         member != NULL && !ends(checker, fits); member = member->next) {
        struct ng_value name = {.type = NG_TYPE_STRING, .text = member->key};
        struct schema_place at = {
            .parent = place, .value = &name, .step = SCHEMA_STEP_NAME, .name = member->key};
        fits = check_child(checker, rule->node, &at, "propertyNames") && fits;
    }
    return fits;
}

/* ---- rules ---- */

static bool check_on_array(struct schema_checker *checker, const struct schema_node *node,
                           const struct schema_rule *rule, const struct schema_place *place,
                           struct schema_marks *marks)
{
    const struct schema_rule *prefix = node->by_keyword[SCHEMA_PREFIX_ITEMS];
    if (place->value->type != NG_TYPE_ARRAY) {
        return true;
    }
    switch (rule->keyword) {
    case SCHEMA_PREFIX_ITEMS:
        return check_prefix(checker, rule, place, marks);
    case SCHEMA_ITEMS:
        return check_items(checker, rule, place, prefix == NULL ? 0 : prefix->count, marks,
                           NULL);
    case SCHEMA_CONTAINS:
        return check_contains(checker, rule, place, marks);
    default:
        return check_items(checker, rule, place, 0, marks, marks);
    }
}

static bool check_on_object(struct schema_checker *checker, const struct schema_node *node,
                            const struct schema_rule *rule, const struct schema_place *place,
                            struct schema_marks *marks)
{
    if (place->value->type != NG_TYPE_OBJECT) {
        return true;
    }
    switch (rule->keyword) {
    case SCHEMA_PROPERTIES:
        return check_properties(checker, rule, place, marks);
    case SCHEMA_PATTERN_PROPERTIES:
        return check_patterns(checker, rule, place, marks);
    case SCHEMA_PROPERTY_NAMES:
        return check_names(checker, rule, place);
    case SCHEMA_DEPENDENT_SCHEMAS:
        return check_dependent(checker, rule, place, marks);
    default:
        return check_rest(checker, node, rule, place, marks);
    }
}

static bool check_rule(struct schema_checker *checker, const struct schema_node *node,
                       const struct schema_rule *rule, const struct schema_place *place,
                       struct schema_marks *marks)
{
    switch (rule->keyword) {
    case SCHEMA_REF:
        return schema_check_node(checker, rule->node, place, marks);
    case SCHEMA_ALL_OF:
        return check_all_of(checker, rule, place, marks);
    case SCHEMA_ANY_OF:
        return check_any_of(checker, rule, place, marks);
    case SCHEMA_ONE_OF:
        return check_one_of(checker, rule, place, marks);
    case SCHEMA_NOT:
        return !try_node(checker, rule->node, place, NULL) ||
               schema_fail(checker, place, "not", described,
                           "anything but the form that is ruled out");
    case SCHEMA_IF:
        return check_if(checker, rule, place, marks);
    case SCHEMA_PREFIX_ITEMS:
    case SCHEMA_ITEMS:
    case SCHEMA_CONTAINS:
    case SCHEMA_UNEVALUATED_ITEMS:
        return check_on_array(checker, node, rule, place, marks);
    case SCHEMA_PROPERTIES:
    case SCHEMA_PATTERN_PROPERTIES:
    case SCHEMA_ADDITIONAL_PROPERTIES:
    case SCHEMA_PROPERTY_NAMES:
    case SCHEMA_DEPENDENT_SCHEMAS:
    case SCHEMA_UNEVALUATED_PROPERTIES:
        return check_on_object(checker, node, rule, place, marks);
    default:
        return schema_assert(checker, node, rule, place);
    }
}

static bool check_rules(struct schema_checker *checker, const struct schema_node *node,
                        const struct schema_place *place, struct schema_marks *marks)
{
    bool fits = true;
    for (const struct schema_rule *rule = node->rules; rule != NULL && !ends(checker, fits);
         rule = rule->next) {
        /* Members that a failed rule did not evaluate are not reported as unknown. */
        if (!fits && (rule->keyword == SCHEMA_UNEVALUATED_ITEMS ||
                      rule->keyword == SCHEMA_UNEVALUATED_PROPERTIES)) {
            break;
        }
        fits = check_rule(checker, node, rule, place, marks) && fits;
    }
    return fits && checker->rc == NG_OK;
}

bool schema_check_node(struct schema_checker *checker, const struct schema_node *node,
                       const struct schema_place *place, struct schema_marks *marks)
{
    struct schema_marks own;
    if (checker->rc != NG_OK || node->value->type == NG_TYPE_TRUE) {
        return checker->rc == NG_OK;
    }
    if (node->value->type == NG_TYPE_FALSE) {
        return schema_fail_false(checker, place, "false");
    }
    if (checker->depth >= SCHEMA_DEPTH_MAX) {
        return schema_abort(checker, place, "$ref", "a schema that does not refer to itself",
                            "a schema that goes on without end");
    }
    if (++checker->steps > SCHEMA_STEPS_MAX) {
        return schema_abort(checker, place, "", "a value that can be checked in time",
                            "a value that takes too many steps");
    }
    checker->depth++;
    struct schema_marks *used = marks;
    bool fits = true;
    /* It sees what its own keywords evaluate, and not what those around it do. */
    if (node->unevaluated) {
        used = &own;
        fits = marks_init(checker, &own, place->value->count);
    }
    fits = fits && check_rules(checker, node, place, used);
    if (fits && node->unevaluated) {
        marks_merge(marks, &own);
    }
    checker->depth--;
    return fits;
}

int schema_check(const struct schema *schema, const struct ng_value *value, struct arena *arena,
                 struct violations *violations)
{
    struct schema_checker checker = {.schema = schema,
                                     .arena = arena,
                                     .violations = violations,
                                     .work_left = SCHEMA_MATCH_WORK};
    struct schema_place place = {.value = value, .step = SCHEMA_STEP_ROOT};
    violations->count = 0;
    bool fits = schema_check_node(&checker, schema->root, &place, NULL);
    pcre2_match_data_free(checker.match);
    pcre2_match_context_free(checker.context);
    if (checker.rc == NG_EINTERNAL) {
        return NG_EINTERNAL;
    }
    if (fits) {
        return NG_OK;
    }
    return NG_EINVAL;
}
