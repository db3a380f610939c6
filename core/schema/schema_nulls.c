/* SPDX-License-Identifier: MIT */
/* schema_nulls.c - members that are null where the schema knows no null: they count as not
 * given, as many clients send null for each optional argument they have no value for. */
#include "core/base/str.h"
#include "schema_tree.h"

struct nulls {
    struct schema_checker checker;
    bool dropped;
};

static void drop_in(struct nulls *nulls, const struct schema_node *node, struct ng_value *value,
                    unsigned depth);

static bool takes(struct nulls *nulls, const struct schema_node *node,
                  const struct ng_value *value)
{
    struct schema_place place = {.value = value, .step = SCHEMA_STEP_ROOT};
    nulls->checker.silent++;
    bool fits = schema_check_node(&nulls->checker, node, &place, NULL);
    nulls->checker.silent--;
    return fits;
}

static bool is_required(const struct schema_node *node, struct ng_str name)
{
    const struct schema_rule *rule = node->by_keyword[SCHEMA_REQUIRED];
    return rule != NULL && json_has_text(rule->value, name);
}

static const struct schema_node *property_of(const struct schema_node *node, struct ng_str name)
{
    const struct schema_rule *rule = node->by_keyword[SCHEMA_PROPERTIES];
    const struct schema_entry *entry = NULL;
    if (rule != NULL) {
        entry = schema_find(rule, name);
    }
    if (entry == NULL) {
        return NULL;
    }
    return entry->node;
}

static void drop_members(struct nulls *nulls, const struct schema_node *node,
                         struct ng_value *object, unsigned depth)
{
    struct ng_value **at = &object->first;
    while (*at != NULL) {
        struct ng_value *member = *at;
        const struct schema_node *property = property_of(node, member->key);
        if (property == NULL) {
            at = &member->next;
        } else if (member->type == NG_TYPE_NULL && !is_required(node, member->key) &&
                   !takes(nulls, property, member)) {
            *at = member->next;
            object->count--;
            nulls->dropped = true;
        } else {
            drop_in(nulls, property, member, depth + 1);
            at = &member->next;
        }
    }
}

static void drop_items(struct nulls *nulls, const struct schema_node *node,
                       struct ng_value *array, unsigned depth)
{
    const struct schema_rule *prefix = node->by_keyword[SCHEMA_PREFIX_ITEMS];
    const struct schema_rule *items = node->by_keyword[SCHEMA_ITEMS];
    size_t index = 0;
    for (struct ng_value *item = array->first; item != NULL; item = item->next, index++) {
        if (prefix != NULL && index < prefix->count) {
            drop_in(nulls, prefix->entries[index].node, item, depth + 1);
        } else if (items != NULL) {
            drop_in(nulls, items->node, item, depth + 1);
        }
    }
}

/* Through $ref, allOf, anyOf and oneOf: a member goes where each schema that names it refuses
 * its null, as it could not be valid there. */
static void drop_in(struct nulls *nulls, const struct schema_node *node, struct ng_value *value,
                    unsigned depth)
{
    static const enum schema_keyword in_place[] = {SCHEMA_ALL_OF, SCHEMA_ANY_OF, SCHEMA_ONE_OF};
    bool had_dropped = nulls->dropped;
    if (depth >= SCHEMA_DEPTH_MAX || nulls->checker.rc != NG_OK ||
        (value->type != NG_TYPE_OBJECT && value->type != NG_TYPE_ARRAY)) {
        return;
    }
    nulls->dropped = false;
    if (node->by_keyword[SCHEMA_REF] != NULL) {
        drop_in(nulls, node->by_keyword[SCHEMA_REF]->node, value, depth + 1);
    }
    for (size_t i = 0; i < NG_COUNT(in_place); i++) {
        const struct schema_rule *rule = node->by_keyword[in_place[i]];
        for (size_t j = 0; rule != NULL && j < rule->count; j++) {
            drop_in(nulls, rule->entries[j].node, value, depth + 1);
        }
    }
    if (value->type == NG_TYPE_OBJECT) {
        drop_members(nulls, node, value, depth);
    } else {
        drop_items(nulls, node, value, depth);
    }
    if (nulls->dropped) { /* its text is that of before */
        value->text = str_make(NULL, 0);
        value->printed = false;
    }
    nulls->dropped = nulls->dropped || had_dropped;
}

/* Has it a null anywhere? Most have none. */
static bool has_null(const struct ng_value *value)
{
    for (const struct ng_value *child = value->first; child != NULL; child = child->next) {
        if (child->type == NG_TYPE_NULL || has_null(child)) {
            return true;
        }
    }
    return false;
}

bool schema_drop_nulls(const struct schema *schema, struct ng_value *value, struct arena *arena)
{
    struct violations none;
    struct nulls nulls = {.checker = {.schema = schema,
                                      .arena = arena,
                                      .violations = &none,
                                      .work_left = SCHEMA_MATCH_WORK}};
    none.count = 0;
    if (!has_null(value)) {
        return false;
    }
    drop_in(&nulls, schema->root, value, 0);
    pcre2_match_data_free(nulls.checker.match);
    pcre2_match_context_free(nulls.checker.context);
    return nulls.dropped;
}
