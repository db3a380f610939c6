/* SPDX-License-Identifier: MIT */
/* schema_report.c - the message about a violation: its path, the expected value, the actual
 * value. */
#include <stdarg.h>
#include <stdio.h>

#include "core/base/minmax.h"
#include "core/base/str.h"
#include "core/base/text/edit_distance.h"
#include "core/base/text_choice.h"
#include "core/base/utf8.h"
#include "schema_tree.h"

#define SHOWN_BYTES 60    /* of a string or a value */
#define SENTENCE_MAX 2048 /* of "expected" and "got" */
#define PATH_MAX_BYTES 1024
#define PATH_SHOWN_BYTES 200
#define CHOICES_SHOWN 24
#define REF_HOPS_MAX 16

static const struct {
    unsigned type;
    const char *words;
} type_words[] = {
    {SCHEMA_STRING, "a string"},   {SCHEMA_NUMBER, "a number"}, {SCHEMA_INTEGER, "an integer"},
    {SCHEMA_BOOLEAN, "a boolean"}, {SCHEMA_ARRAY, "an array"},  {SCHEMA_OBJECT, "an object"},
    {SCHEMA_NULL, "null"},
};

static unsigned types_of_all(const struct ng_value *values)
{
    unsigned types = 0;
    for (const struct ng_value *item = values->first; item != NULL; item = item->next) {
        types |= schema_types_of(item);
    }
    return types;
}

static unsigned types_admitted(const struct schema_node *node, unsigned hops);

/* Of allOf: those that every branch admits; of anyOf and oneOf: those that one does. */
static unsigned types_of_branches(const struct schema_rule *rule, unsigned hops)
{
    bool all = rule->keyword == SCHEMA_ALL_OF;
    unsigned types = all ? SCHEMA_ANY : 0;
    for (size_t i = 0; i < rule->count; i++) {
        unsigned own = types_admitted(rule->entries[i].node, hops + 1);
        types = all ? types & own : types | own;
    }
    return types;
}

static unsigned types_admitted(const struct schema_node *node, unsigned hops)
{
    unsigned types = node->value->type == NG_TYPE_FALSE ? 0 : SCHEMA_ANY;
    if (hops >= REF_HOPS_MAX) {
        return types;
    }
    for (const struct schema_rule *rule = node->rules; rule != NULL; rule = rule->next) {
        switch (rule->keyword) {
        case SCHEMA_TYPE:
            types &= rule->types;
            break;
        case SCHEMA_CONST:
            types &= schema_types_of(rule->value);
            break;
        case SCHEMA_ENUM:
            types &= types_of_all(rule->value);
            break;
        case SCHEMA_REF:
            types &= types_admitted(rule->node, hops + 1);
            break;
        case SCHEMA_ALL_OF:
        case SCHEMA_ANY_OF:
        case SCHEMA_ONE_OF:
            types &= types_of_branches(rule, hops);
            break;
        default:
            break;
        }
    }
    return types;
}

unsigned schema_types_admitted(const struct schema_node *node)
{
    return types_admitted(node, 0);
}

static void print_token(struct buf *buf, struct ng_str name)
{
    for (size_t i = 0; i < name.len; i++) {
        char c = name.data[i];
        if (c == '~' || c == '/') {
            buf_add_c(buf, c == '~' ? "~0" : "~1");
        } else {
            buf_add_char(buf, c);
        }
    }
}

void schema_print_path(struct buf *buf, const struct schema_place *place)
{
    /* From the outside in: the chain runs the other way, and is short (JSON_DEPTH_DEFAULT). */
    const struct schema_place *chain[JSON_DEPTH_DEFAULT * 2];
    size_t count = 0;
    for (; place != NULL && count < NG_COUNT(chain); place = place->parent) {
        chain[count++] = place;
    }
    while (count > 0) {
        const struct schema_place *step = chain[--count];
        if (step->step == SCHEMA_STEP_ITEM) {
            buf_printf(buf, "/%zu", step->index);
        } else if (step->step != SCHEMA_STEP_ROOT) {
            buf_add_char(buf, '/');
            print_token(buf, step->name);
        }
    }
}

static struct ng_str take_text(struct schema_checker *checker, struct buf *buf)
{
    struct ng_str text =
        arena_copy(checker->arena, buf->len == 0 ? ng_str_of("") : buf_str(buf));
    if (text.data == NULL || buf->rc == NG_EINTERNAL) {
        checker->rc = NG_EINTERNAL;
    }
    buf_done(buf);
    return text;
}

/* As JSON, cut where long. */
static void print_shown(struct buf *buf, const struct ng_value *value)
{
    struct buf whole;
    if (value->type == NG_TYPE_STRING) {
        struct ng_str cut = utf8_cut(value->text, SHOWN_BYTES);
        buf_add_json(buf, cut);
        if (cut.len < value->text.len) {
            buf_add_c(buf, "...");
        }
        return;
    }
    buf_init(&whole, SHOWN_BYTES * 8);
    whole.oom = buf->oom;
    (void)json_print(&whole, value);
    struct ng_str cut = utf8_cut(buf_str(&whole), SHOWN_BYTES);
    buf_add_str(buf, cut);
    buf_add_c(buf, cut.len < whole.len || whole.rc == NG_ETOOLARGE ? "..." : "");
    buf_done(&whole);
}

static void print_got(struct buf *buf, const struct schema_place *place)
{
    const struct ng_value *value = place->value;
    if (place->step == SCHEMA_STEP_NAME) {
        buf_add_c(buf, "the name ");
        print_shown(buf, value);
        return;
    }
    switch (value->type) {
    case NG_TYPE_NUMBER:
        buf_add_c(buf, "the number ");
        print_shown(buf, value);
        break;
    case NG_TYPE_STRING:
        buf_add_c(buf, "a string ");
        print_shown(buf, value);
        break;
    case NG_TYPE_ARRAY:
        buf_printf(buf, "an array of %u item%s", value->count, plural(value->count));
        break;
    case NG_TYPE_OBJECT:
        buf_printf(buf, "an object of %u member%s", value->count, plural(value->count));
        break;
    default:
        print_shown(buf, value);
        break;
    }
}

struct ng_str schema_text_value(struct schema_checker *checker, const struct ng_value *value)
{
    struct buf buf;
    buf_init(&buf, SENTENCE_MAX);
    buf.oom = &checker->arena->oom;
    print_shown(&buf, value);
    return take_text(checker, &buf);
}

struct ng_str schema_text_types(struct schema_checker *checker, unsigned types)
{
    struct buf buf;
    unsigned left = types;
    buf_init(&buf, SENTENCE_MAX);
    buf.oom = &checker->arena->oom;
    if ((types & SCHEMA_NUMBER) != 0) {
        left &= ~(unsigned)SCHEMA_INTEGER; /* a number may be one */
    }
    for (size_t i = 0; i < NG_COUNT(type_words); i++) {
        if ((left & type_words[i].type) == 0) {
            continue;
        }
        left &= ~type_words[i].type;
        if (buf.len > 0) {
            buf_add_c(&buf, left == 0 ? " or " : ", ");
        }
        buf_add_c(&buf, type_words[i].words);
    }
    return take_text(checker, &buf);
}

struct ng_str schema_text_choices(struct schema_checker *checker,
                                  const struct ng_value *const *values, size_t count)
{
    struct buf buf;
    buf_init(&buf, (size_t)CHOICES_SHOWN * SENTENCE_MAX);
    buf.oom = &checker->arena->oom;
    static const char *const intros[] = {"nothing", "exactly ", "one of "};
    buf_add_c(&buf, intros[size_min(count, 2)]);
    for (size_t i = 0; i < count && i < CHOICES_SHOWN; i++) {
        if (i > 0) {
            buf_add_c(&buf, ", ");
        }
        print_shown(&buf, values[i]);
    }
    if (count > CHOICES_SHOWN) {
        buf_printf(&buf, " and %zu more", count - CHOICES_SHOWN);
    }
    return take_text(checker, &buf);
}

bool schema_records(const struct schema_checker *checker)
{
    return checker->silent == 0 && checker->rc == NG_OK &&
           checker->violations->count < SCHEMA_VIOLATIONS_MAX;
}

static void add_violation(struct schema_checker *checker, const struct schema_place *place,
                          const char *keyword, struct ng_str expected, struct ng_str got)
{
    struct buf path;
    struct violation *violation = &checker->violations->items[checker->violations->count];
    buf_init(&path, PATH_MAX_BYTES);
    path.oom = &checker->arena->oom;
    schema_print_path(&path, place);
    struct ng_str shown = utf8_cut(buf_str(&path), PATH_SHOWN_BYTES);
    if (shown.len < path.len) {
        buf_cut(&path, shown.len);
        buf_add_c(&path, "...");
    }
    violation->path = take_text(checker, &path);
    violation->expected = expected;
    violation->got = got;
    violation->keyword = ng_str_of(keyword);
    if (checker->rc == NG_OK) {
        checker->violations->count++;
    }
}

bool schema_fail(struct schema_checker *checker, const struct schema_place *place,
                 const char *keyword, struct ng_str got, const char *format, ...)
{
    struct buf buf;
    va_list args;
    if (!schema_records(checker)) {
        return false;
    }
    buf_init(&buf, (size_t)CHOICES_SHOWN * SENTENCE_MAX);
    buf.oom = &checker->arena->oom;
    va_start(args, format);
    (void)buf_vprintf(&buf, format, args);
    va_end(args);
    struct ng_str expected = take_text(checker, &buf);
    if (got.data == NULL) {
        buf_init(&buf, SENTENCE_MAX);
        buf.oom = &checker->arena->oom;
        print_got(&buf, place);
        got = take_text(checker, &buf);
    }
    add_violation(checker, place, keyword, expected, got);
    return false;
}

bool schema_abort(struct schema_checker *checker, const struct schema_place *place,
                  const char *keyword, const char *expected, const char *got)
{
    if (checker->rc != NG_OK) {
        return false;
    }
    if (checker->violations->count == SCHEMA_VIOLATIONS_MAX) {
        checker->violations->count--;
    }
    add_violation(checker, place, keyword, ng_str_of(expected), ng_str_of(got));
    if (checker->rc == NG_OK) {
        checker->rc = NG_EINVAL;
    }
    return false;
}

bool schema_fail_false(struct schema_checker *checker, const struct schema_place *place,
                       const char *keyword)
{
    struct ng_str none = {NULL, 0};
    if (!schema_records(checker)) {
        return false;
    }
    if (place->step == SCHEMA_STEP_MEMBER) {
        struct ng_value name = {.type = NG_TYPE_STRING, .text = place->name};
        struct ng_str shown = schema_text_value(checker, &name);
        return schema_fail(checker, place, keyword, none, "no member %.*s", (int)shown.len,
                           shown.data);
    }
    const char *got = "no value at all";
    if (place->step == SCHEMA_STEP_ITEM) {
        got = "no item here";
    } else if (place->step == SCHEMA_STEP_NAME) {
        got = "no member of this name";
    }
    return schema_fail(checker, place, keyword, none, "%s", got);
}

bool schema_fail_unknown(struct schema_checker *checker, const struct schema_node *node,
                         const struct schema_place *place, const char *keyword)
{
    const struct schema_rule *properties = node->by_keyword[SCHEMA_PROPERTIES];
    struct ng_str none = {NULL, 0};
    struct ng_str near = none;
    /* Of a very short name everything is near. */
    size_t spare = 0;
    if (place->name.len >= 2) {
        spare = place->name.len - 2;
    }
    size_t most = size_min(spare, SCHEMA_NEAR);
    if (!schema_records(checker)) {
        return false;
    }
    for (size_t i = 0; properties != NULL && i < properties->count; i++) {
        size_t distance = edit_distance(place->name, properties->entries[i].name, most);
        if (distance <= most) {
            near = properties->entries[i].name;
            most = distance - (distance > 0);
        }
    }
    if (near.data == NULL) {
        return schema_fail_false(checker, place, keyword);
    }
    struct ng_value name = {.type = NG_TYPE_STRING, .text = place->name};
    struct ng_value known = {.type = NG_TYPE_STRING, .text = near};
    struct ng_str shown = schema_text_value(checker, &name);
    struct ng_str nearest = schema_text_value(checker, &known);
    return schema_fail(checker, place, keyword, none, "no member %.*s (the nearest is %.*s)",
                       (int)shown.len, shown.data, (int)nearest.len, nearest.data);
}

bool schema_fail_missing(struct schema_checker *checker, const struct schema_node *node,
                         const struct schema_place *place, const char *keyword,
                         struct ng_str name, struct ng_str because)
{
    struct schema_place missing = {.parent = place, .step = SCHEMA_STEP_MEMBER, .name = name};
    const struct schema_rule *properties = node->by_keyword[SCHEMA_PROPERTIES];
    const struct schema_entry *entry = NULL;
    if (properties != NULL) {
        entry = schema_find(properties, name);
    }
    struct ng_str expected = ng_str_of("a value");
    struct ng_str reason = ng_str_of("");
    if (!schema_records(checker)) {
        return false;
    }
    unsigned types = SCHEMA_ANY;
    const struct schema_rule *choices = NULL;
    if (entry != NULL) {
        types = schema_types_admitted(entry->node);
        choices = entry->node->by_keyword[SCHEMA_ENUM];
    }
    if (choices != NULL && choices->value->count <= CHOICES_SHOWN) {
        const struct ng_value *values[CHOICES_SHOWN];
        size_t count = 0;
        for (const struct ng_value *item = choices->value->first; item != NULL;
             item = item->next) {
            values[count++] = item;
        }
        expected = schema_text_choices(checker, values, count);
    } else if (types != SCHEMA_ANY) {
        expected = schema_text_types(checker, types);
    }
    if (because.data != NULL) {
        struct ng_value cause = {.type = NG_TYPE_STRING, .text = because};
        reason = schema_text_value(checker, &cause);
    }
    return schema_fail(checker, &missing, keyword, ng_str_of("nothing"), "%.*s%s%.*s",
                       (int)expected.len, expected.data,
                       because.data != NULL ? ", since there is " : "", (int)reason.len,
                       reason.data);
}

/* All branches are single values: their choices. */
static bool fail_consts(struct schema_checker *checker, const struct schema_rule *rule,
                        const struct schema_place *place, const char *keyword, bool *ret_done)
{
    const struct ng_value *values[CHOICES_SHOWN];
    struct ng_str none = {NULL, 0};
    *ret_done = rule->count <= CHOICES_SHOWN;
    for (size_t i = 0; i < rule->count && *ret_done; i++) {
        const struct schema_rule *branch = rule->entries[i].node->by_keyword[SCHEMA_CONST];
        *ret_done = branch != NULL;
        if (branch != NULL) {
            values[i] = branch->value;
        }
    }
    if (!*ret_done) {
        return false;
    }
    struct ng_str text = schema_text_choices(checker, values, rule->count);
    return schema_fail(checker, place, keyword, none, "%.*s", (int)text.len, text.data);
}

bool schema_fail_branches(struct schema_checker *checker, const struct schema_rule *rule,
                          const struct schema_place *place, const char *keyword)
{
    struct ng_str none = {NULL, 0};
    bool done = false;
    if (!schema_records(checker)) {
        return false;
    }
    (void)fail_consts(checker, rule, place, keyword, &done);
    if (done) {
        return false;
    }
    unsigned mine = schema_types_of(place->value);
    unsigned all = 0;
    size_t admitting = 0;
    const struct schema_node *only = NULL;
    for (size_t i = 0; i < rule->count; i++) {
        unsigned types = schema_types_admitted(rule->entries[i].node);
        bool admits = (types & mine) != 0;
        all |= types;
        if (admits) {
            only = rule->entries[i].node;
        }
        admitting += admits;
    }
    if (admitting == 0) {
        struct ng_str text = schema_text_types(checker, all);
        return schema_fail(checker, place, keyword, none, "%.*s", (int)text.len, text.data);
    }
    /* The type selects one branch: its errors are the errors. */
    if (admitting == 1 && schema_types_admitted(only) != SCHEMA_ANY) {
        return schema_check_node(checker, only, place, NULL) && false;
    }
    return schema_fail(checker, place, keyword, none, "one of the allowed forms");
}
