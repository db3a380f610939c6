/* SPDX-License-Identifier: MIT */
/* schema_assert.c - the keywords that check one value alone. */
#include <inttypes.h>
#include <stdlib.h>

#include "core/base/minmax.h"
#include "core/base/str.h"
#include "core/base/utf8.h"
#include "schema_tree.h"

/* Up to this many items are compared pair by pair, more through their hashes. */
#define ITEMS_PAIRWISE 12
#define CHOICES_MAX 256

static const struct ng_str described = {NULL, 0};

unsigned schema_types_of(const struct ng_value *value)
{
    switch (value->type) {
    case NG_TYPE_NULL:
        return SCHEMA_NULL;
    case NG_TYPE_FALSE:
    case NG_TYPE_TRUE:
        return SCHEMA_BOOLEAN;
    case NG_TYPE_NUMBER:
        if (json_is_integer(value)) {
            return SCHEMA_INTEGER;
        }
        return SCHEMA_NUMBER;
    case NG_TYPE_STRING:
        return SCHEMA_STRING;
    case NG_TYPE_ARRAY:
        return SCHEMA_ARRAY;
    default:
        return SCHEMA_OBJECT;
    }
}

/* A list of one is easily given as its item: then it is shown as a list. */
static bool is_item_of(struct schema_checker *checker, const struct schema_node *node,
                       const struct ng_value *value)
{
    const struct schema_rule *items = node->by_keyword[SCHEMA_ITEMS];
    struct schema_place place = {.value = value, .step = SCHEMA_STEP_ROOT};
    if (items == NULL || value->type == NG_TYPE_NULL || value->type == NG_TYPE_ARRAY) {
        return false;
    }
    checker->silent++;
    bool fits = schema_check_node(checker, items->node, &place, NULL);
    checker->silent--;
    return fits;
}

static bool assert_type(struct schema_checker *checker, const struct schema_node *node,
                        const struct schema_rule *rule, const struct schema_place *place)
{
    if ((rule->types & schema_types_of(place->value)) != 0) {
        return true;
    }
    if (!schema_records(checker)) {
        return false;
    }
    struct ng_str text = schema_text_types(checker, rule->types);
    if ((rule->types & SCHEMA_ARRAY) != 0 && is_item_of(checker, node, place->value)) {
        struct ng_str item = schema_text_value(checker, place->value);
        return schema_fail(checker, place, "type", described, "%.*s ([%.*s])", (int)text.len,
                           text.data, (int)item.len, item.data);
    }
    return schema_fail(checker, place, "type", described, "%.*s", (int)text.len, text.data);
}

static bool assert_enum(struct schema_checker *checker, const struct schema_rule *rule,
                        const struct schema_place *place)
{
    const struct ng_value *values[CHOICES_MAX];
    size_t count = 0;
    for (const struct ng_value *item = rule->value->first; item != NULL; item = item->next) {
        if (json_equal(item, place->value)) {
            return true;
        }
        if (count < CHOICES_MAX) {
            values[count++] = item;
        }
    }
    if (!schema_records(checker)) {
        return false;
    }
    struct ng_str text = schema_text_choices(checker, values, count);
    return schema_fail(checker, place, "enum", described, "%.*s", (int)text.len, text.data);
}

static bool assert_const(struct schema_checker *checker, const struct schema_rule *rule,
                         const struct schema_place *place)
{
    if (json_equal(rule->value, place->value)) {
        return true;
    }
    if (!schema_records(checker)) {
        return false;
    }
    struct ng_str text = schema_text_value(checker, rule->value);
    return schema_fail(checker, place, "const", described, "exactly %.*s", (int)text.len,
                       text.data);
}

static bool assert_number(struct schema_checker *checker, const struct schema_rule *rule,
                          const struct schema_place *place)
{
    struct ng_str limit = rule->value->text;
    struct ng_str number = place->value->text;
    bool fits = true;
    const char *words = "";
    if (place->value->type != NG_TYPE_NUMBER) {
        return true;
    }
    switch (rule->keyword) {
    case SCHEMA_MULTIPLE_OF:
        fits = json_is_multiple(number, limit);
        words = "a multiple of";
        break;
    case SCHEMA_MAXIMUM:
        fits = json_compare_numbers(number, limit) <= 0;
        words = "at most";
        break;
    case SCHEMA_EXCLUSIVE_MAXIMUM:
        fits = json_compare_numbers(number, limit) < 0;
        words = "less than";
        break;
    case SCHEMA_MINIMUM:
        fits = json_compare_numbers(number, limit) >= 0;
        words = "at least";
        break;
    default:
        fits = json_compare_numbers(number, limit) > 0;
        words = "more than";
        break;
    }
    return fits || schema_fail(checker, place, schema_word(rule->keyword), described, "%s %.*s",
                               words, (int)limit.len, limit.data);
}

/* Between least and most of something that comes in units. */
static bool assert_count(struct schema_checker *checker, const struct schema_rule *rule,
                         const struct schema_place *place, uint64_t count, const char *unit)
{
    bool is_most = rule->keyword == SCHEMA_MAX_LENGTH || rule->keyword == SCHEMA_MAX_ITEMS ||
                   rule->keyword == SCHEMA_MAX_PROPERTIES;
    uint64_t limit = rule->least;
    if (is_most) {
        limit = rule->most;
    }
    struct ng_str got = described;
    if (is_most ? count <= limit : count >= limit) {
        return true;
    }
    const char *what = "an object";
    if (place->value->type == NG_TYPE_STRING) {
        what = "a string";
    } else if (place->value->type == NG_TYPE_ARRAY) {
        what = "an array";
    }
    if (place->value->type == NG_TYPE_STRING && place->step != SCHEMA_STEP_NAME &&
        schema_records(checker)) {
        got = arena_printf(checker->arena, "a string of %" PRIu64 " character%s", count,
                           count == 1 ? "" : "s");
    }
    return schema_fail(checker, place, schema_word(rule->keyword), got,
                       "%s of at %s %" PRIu64 " %s%s", what, is_most ? "most" : "least", limit,
                       unit, limit == 1 ? "" : "s");
}

/* Called before each item of a pattern. The match limit counts only backtracking and starts
 * again at each place a match may start, so that walking over a long text from each of its
 * characters would go unnoticed. */
static int count_work(pcre2_callout_block *block, void *context)
{
    struct schema_checker *checker = context;
    size_t at = block->current_position;
    size_t walked = size_max(at, checker->work_at) - size_min(at, checker->work_at);
    checker->work_left -= (int64_t)walked + 1;
    checker->work_at = at;
    if (checker->work_left < 0) {
        return PCRE2_ERROR_MATCHLIMIT;
    }
    return 0;
}

static bool prepare_match(struct schema_checker *checker)
{
    if (checker->match != NULL) {
        return true;
    }
    pcre2_match_data *match = pcre2_match_data_create(1, checker->schema->memory);
    checker->context = pcre2_match_context_copy(checker->schema->limits);
    if (match == NULL || checker->context == NULL) {
        pcre2_match_data_free(match);
        checker->rc = NG_EINTERNAL;
        return false;
    }
    (void)pcre2_set_callout(checker->context, count_work, checker);
    checker->match = match;
    return true;
}

bool schema_matches(struct schema_checker *checker, const pcre2_code *regex, struct ng_str text,
                    const struct schema_place *place, struct ng_str pattern)
{
    if (checker->rc != NG_OK || !prepare_match(checker)) {
        return false;
    }
    checker->work_left += (int64_t)text.len * SCHEMA_MATCH_WORK_PER_BYTE;
    checker->work_at = 0;
    int found = pcre2_match(regex, (PCRE2_SPTR)text.data, text.len, 0, PCRE2_NO_UTF_CHECK,
                            checker->match, checker->context);
    if (found >= 0) {
        return true;
    }
    if (found == PCRE2_ERROR_NOMEMORY) {
        checker->rc = NG_EINTERNAL;
    } else if (found != PCRE2_ERROR_NOMATCH) {
        struct ng_str said =
            arena_printf(checker->arena, "a string that the pattern %.*s decides on quickly",
                         (int)pattern.len, pattern.data);
        (void)schema_abort(checker, place, "pattern",
                           said.data == NULL ? "a simpler string" : said.data,
                           "a string that takes too many steps");
    }
    return false;
}

static bool assert_pattern(struct schema_checker *checker, const struct schema_rule *rule,
                           const struct schema_place *place)
{
    if (schema_matches(checker, rule->regex, place->value->text, place, rule->value->text)) {
        return true;
    }
    return schema_fail(checker, place, "pattern", described,
                       "a string that matches the pattern %.*s", (int)rule->value->text.len,
                       rule->value->text.data);
}

struct item {
    uint64_t hash;
    size_t index;
    const struct ng_value *value;
};

static int by_hash(const void *a, const void *b)
{
    const struct item *left = a;
    const struct item *right = b;
    if (left->hash != right->hash) {
        return (left->hash > right->hash) - (left->hash < right->hash);
    }
    return (left->index > right->index) - (left->index < right->index);
}

/* Two equal items; false: there are none. Without memory checker->rc says so. */
static bool find_equal(struct schema_checker *checker, const struct ng_value *array,
                       size_t *ret_first, size_t *ret_second)
{
    size_t count = 0;
    bool found = false;
    struct item *items = alloc_zeroed(array->count, sizeof(*items));
    if (items == NULL) {
        checker->rc = NG_EINTERNAL;
        return false;
    }
    for (const struct ng_value *value = array->first; value != NULL; value = value->next) {
        items[count] = (struct item){json_hash(value), count, value};
        count++;
    }
    qsort(items, count, sizeof(*items), by_hash);
    for (size_t i = 0; i < count && !found; i++) {
        for (size_t j = i + 1; j < count && items[j].hash == items[i].hash && !found; j++) {
            found = json_equal(items[i].value, items[j].value);
            *ret_first = items[i].index;
            *ret_second = items[j].index;
        }
    }
    free(items);
    return found;
}

static bool find_equal_pairwise(const struct ng_value *array, size_t *ret_first,
                                size_t *ret_second)
{
    *ret_second = 0;
    for (const struct ng_value *b = array->first; b != NULL; b = b->next) {
        *ret_first = 0;
        for (const struct ng_value *a = array->first; a != b; a = a->next) {
            if (json_equal(a, b)) {
                return true;
            }
            (*ret_first)++;
        }
        (*ret_second)++;
    }
    return false;
}

static bool assert_unique(struct schema_checker *checker, const struct schema_rule *rule,
                          const struct schema_place *place)
{
    size_t first = 0;
    size_t second = 0;
    if (rule->value->type != NG_TYPE_TRUE) {
        return true;
    }
    bool equal;
    if (place->value->count <= ITEMS_PAIRWISE) {
        equal = find_equal_pairwise(place->value, &first, &second);
    } else {
        equal = find_equal(checker, place->value, &first, &second);
    }
    if (!equal) {
        return checker->rc == NG_OK;
    }
    struct ng_str got = described;
    if (schema_records(checker)) {
        got = arena_printf(checker->arena, "equal items at %zu and %zu", first, second);
    }
    return schema_fail(checker, place, "uniqueItems", got, "items that all differ");
}

static bool assert_required(struct schema_checker *checker, const struct schema_node *node,
                            const struct schema_place *place, const struct ng_value *names,
                            struct ng_str because)
{
    bool fits = true;
    const char *keyword = "dependentRequired";
    if (because.data == NULL) {
        keyword = "required";
    }
    for (const struct ng_value *name = names->first; name != NULL; name = name->next) {
        if (json_get_str(place->value, name->text) != NULL) {
            continue;
        }
        fits = schema_fail_missing(checker, node, place, keyword, name->text, because);
        if (!schema_records(checker)) {
            break;
        }
    }
    return fits;
}

static bool assert_dependent(struct schema_checker *checker, const struct schema_node *node,
                             const struct schema_rule *rule, const struct schema_place *place)
{
    bool fits = true;
    for (size_t i = 0; i < rule->count; i++) {
        const struct schema_entry *entry = &rule->entries[i];
        if (json_get_str(place->value, entry->name) == NULL) {
            continue;
        }
        fits = assert_required(checker, node, place, entry->names, entry->name) && fits;
        if (!fits && !schema_records(checker)) {
            return false;
        }
    }
    return fits;
}

static bool assert_on_object(struct schema_checker *checker, const struct schema_node *node,
                             const struct schema_rule *rule, const struct schema_place *place)
{
    if (place->value->type != NG_TYPE_OBJECT) {
        return true;
    }
    switch (rule->keyword) {
    case SCHEMA_REQUIRED:
        return assert_required(checker, node, place, rule->value, described);
    case SCHEMA_DEPENDENT_REQUIRED:
        return assert_dependent(checker, node, rule, place);
    default:
        return assert_count(checker, rule, place, place->value->count, "member");
    }
}

bool schema_assert(struct schema_checker *checker, const struct schema_node *node,
                   const struct schema_rule *rule, const struct schema_place *place)
{
    enum ng_type type = place->value->type;
    switch (rule->keyword) {
    case SCHEMA_TYPE:
        return assert_type(checker, node, rule, place);
    case SCHEMA_ENUM:
        return assert_enum(checker, rule, place);
    case SCHEMA_CONST:
        return assert_const(checker, rule, place);
    case SCHEMA_MAX_LENGTH:
    case SCHEMA_MIN_LENGTH:
        return type != NG_TYPE_STRING ||
               assert_count(checker, rule, place, utf8_count(place->value->text), "character");
    case SCHEMA_PATTERN:
        return type != NG_TYPE_STRING || assert_pattern(checker, rule, place);
    case SCHEMA_MAX_ITEMS:
    case SCHEMA_MIN_ITEMS:
        return type != NG_TYPE_ARRAY ||
               assert_count(checker, rule, place, place->value->count, "item");
    case SCHEMA_UNIQUE_ITEMS:
        return type != NG_TYPE_ARRAY || assert_unique(checker, rule, place);
    case SCHEMA_MAX_PROPERTIES:
    case SCHEMA_MIN_PROPERTIES:
    case SCHEMA_REQUIRED:
    case SCHEMA_DEPENDENT_REQUIRED:
        return assert_on_object(checker, node, rule, place);
    default:
        return assert_number(checker, rule, place);
    }
}
