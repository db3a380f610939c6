/* SPDX-License-Identifier: MIT */
/* schema_regex.c - the regular expressions of JSON Schema are ECMA-262's: each is translated to
 * PCRE2's dialect, and what ECMA-262 does not know is refused. */
#include <stdio.h>
#include <stdlib.h>

#include "core/base/arena.h"
#include "core/base/str.h"
#include "core/base/text/hex.h"
#include "schema_tree.h"

#define PATTERN_BYTES_MAX ((size_t)256 * 1024)

/* The characters of \s, and its complement, as the inside of a class. */
#define SPACES                                                                                 \
    "\\t\\n\\x{b}\\f\\r\\x{20}\\x{a0}\\x{1680}\\x{2000}-\\x{200a}\\x{2028}\\x{2029}\\x{202f}"  \
    "\\x{205f}\\x{3000}\\x{feff}"
#define NOT_SPACES                                                                             \
    "\\x{0}-\\x{8}\\x{e}-\\x{1f}\\x{21}-\\x{9f}\\x{a1}-\\x{167f}\\x{1681}-\\x{1fff}"           \
    "\\x{200b}-\\x{2027}\\x{202a}-\\x{202e}\\x{2030}-\\x{205e}\\x{2060}-\\x{2fff}"             \
    "\\x{3001}-\\x{d7ff}\\x{e000}-\\x{fefe}\\x{ff00}-\\x{10ffff}"

struct translation {
    const char *at;
    const char *end;
    struct buf *buf;
    bool in_class;
    bool quantified; /* the last thing was a quantifier */
    const char *fault;
};

static void fail(struct translation *t, const char *fault)
{
    if (t->fault == NULL) {
        t->fault = fault;
    }
    t->at = t->end;
}

static bool next_is(const struct translation *t, const char *text)
{
    size_t len = strlen(text);
    return (size_t)(t->end - t->at) >= len && memcmp(t->at, text, len) == 0;
}

/* `count` hex digits, or as many as there are up to '}' where count is 0. -1: malformed. */
static long read_hex(struct translation *t, int count)
{
    long value = 0;
    int digits = 0;
    while (t->at < t->end && hex_digit(*t->at) >= 0 && (count == 0 || digits < count)) {
        value = value * 16 + hex_digit(*t->at);
        if (value > 0x10ffff) {
            return -1;
        }
        t->at++;
        digits++;
    }
    if (digits == 0 || (count != 0 && digits != count)) {
        return -1;
    }
    return value;
}

static void add_code_point(struct translation *t, long value)
{
    if (value < 0 || value > 0x10ffff || (value >= 0xd800 && value <= 0xdfff)) {
        fail(t, "an escape that is no character");
        return;
    }
    buf_printf(t->buf, "\\x{%lx}", (unsigned long)value);
}

/* Behind \u: four digits, a pair of surrogates, or {digits}. */
static void translate_unicode(struct translation *t)
{
    if (next_is(t, "{")) {
        t->at++;
        long value = read_hex(t, 0);
        if (!next_is(t, "}")) {
            fail(t, "\\u{ without }");
            return;
        }
        t->at++;
        add_code_point(t, value);
        return;
    }
    long value = read_hex(t, 4);
    if (value >= 0xd800 && value <= 0xdbff && next_is(t, "\\u")) {
        t->at += 2;
        long low = read_hex(t, 4);
        if (low >= 0xdc00 && low <= 0xdfff) {
            value = 0x10000 + ((value - 0xd800) << 10) + (low - 0xdc00);
        } /* else it stays half of a pair, which is no character */
    }
    add_code_point(t, value);
}

/* The short name PCRE2 knows a general category by, or NULL. */
static const char *category_of(struct ng_str name)
{
    static const char *const names[][2] = {
        {"Cased_Letter", "L&"},
        {"Close_Punctuation", "Pe"},
        {"Connector_Punctuation", "Pc"},
        {"Control", "Cc"},
        {"cntrl", "Cc"},
        {"Currency_Symbol", "Sc"},
        {"Dash_Punctuation", "Pd"},
        {"Decimal_Number", "Nd"},
        {"digit", "Nd"},
        {"Enclosing_Mark", "Me"},
        {"Final_Punctuation", "Pf"},
        {"Format", "Cf"},
        {"Initial_Punctuation", "Pi"},
        {"LC", "L&"},
        {"Letter", "L"},
        {"Letter_Number", "Nl"},
        {"Line_Separator", "Zl"},
        {"Lowercase_Letter", "Ll"},
        {"Mark", "M"},
        {"Combining_Mark", "M"},
        {"Math_Symbol", "Sm"},
        {"Modifier_Letter", "Lm"},
        {"Modifier_Symbol", "Sk"},
        {"Nonspacing_Mark", "Mn"},
        {"Number", "N"},
        {"Open_Punctuation", "Ps"},
        {"Other", "C"},
        {"Other_Letter", "Lo"},
        {"Other_Number", "No"},
        {"Other_Punctuation", "Po"},
        {"Other_Symbol", "So"},
        {"Paragraph_Separator", "Zp"},
        {"Private_Use", "Co"},
        {"Punctuation", "P"},
        {"punct", "P"},
        {"Separator", "Z"},
        {"Space_Separator", "Zs"},
        {"Spacing_Mark", "Mc"},
        {"Surrogate", "Cs"},
        {"Symbol", "S"},
        {"Titlecase_Letter", "Lt"},
        {"Unassigned", "Cn"},
        {"Uppercase_Letter", "Lu"},
    };
    for (size_t i = 0; i < NG_COUNT(names); i++) {
        if (str_is(name, names[i][0])) {
            return names[i][1];
        }
    }
    return NULL;
}

static void add_property(struct translation *t, char letter, const char *kind,
                         struct ng_str name)
{
    const char *category = category_of(name);
    if (category != NULL && kind[0] == '\0') {
        name = ng_str_of(category);
    }
    buf_printf(t->buf, "\\%c{%s%.*s}", letter, kind, (int)name.len, name.data);
}

/* Behind \p or \P: {Name} or {Key=Value}. */
static void translate_property(struct translation *t, char letter)
{
    static const struct {
        const char *key;
        const char *kind;
    } keys[] = {
        {"General_Category", ""}, {"gc", ""},
        {"Script", "sc:"},        {"sc", "sc:"},
        {"scx", "scx:"},          {"Script_Extensions", "scx:"},
    };
    const char *close = memchr(t->at, '}', (size_t)(t->end - t->at));
    if (!next_is(t, "{") || close == NULL) {
        fail(t, "\\p without {name}");
        return;
    }
    struct ng_str name = str_make(t->at + 1, (size_t)(close - t->at) - 1);
    t->at = close + 1;
    for (size_t i = 0; i < name.len; i++) {
        char c = name.data[i];
        bool allowed = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
                       (c >= 'A' && c <= 'Z') || c == '_' || c == '=';
        if (!allowed) {
            fail(t, "a property name with other signs than letters, digits, _ and =");
            return;
        }
    }
    const char *equals = memchr(name.data, '=', name.len);
    if (equals == NULL) {
        add_property(t, letter, "", name);
        return;
    }
    struct ng_str key = str_make(name.data, (size_t)(equals - name.data));
    struct ng_str value = str_make(equals + 1, name.len - key.len - 1);
    for (size_t i = 0; i < NG_COUNT(keys); i++) {
        if (str_is(key, keys[i].key)) {
            add_property(t, letter, keys[i].kind, value);
            return;
        }
    }
    fail(t, "a property that is not General_Category, Script or Script_Extensions");
}

static void add_class(struct translation *t, const char *inside)
{
    buf_printf(t->buf, t->in_class ? "%s" : "[%s]", inside);
}

static void translate_letter_escape(struct translation *t, char c)
{
    switch (c) {
    case 's':
        add_class(t, SPACES);
        break;
    case 'S':
        add_class(t, NOT_SPACES);
        break;
    case 'v':
        buf_add_c(t->buf, "\\x{b}");
        break;
    case '0':
        buf_add_c(t->buf, "\\x{0}");
        break;
    case 'x':
        add_code_point(t, read_hex(t, 2));
        break;
    case 'u':
        translate_unicode(t);
        break;
    case 'p':
    case 'P':
        translate_property(t, c);
        break;
    case 'c':
        if (t->at >= t->end || !((*t->at | 0x20) >= 'a' && (*t->at | 0x20) <= 'z')) {
            fail(t, "\\c without a letter");
            return;
        }
        add_code_point(t, *t->at & 0x1f);
        t->at++;
        break;
    default: /* the same in both */
        buf_add_char(t->buf, '\\');
        buf_add_char(t->buf, c);
        break;
    }
}

static void translate_escape(struct translation *t)
{
    t->at++;
    if (t->at >= t->end) {
        fail(t, "a \\ at the end");
        return;
    }
    char c = *t->at++;
    bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    const char *known = "dDwWsSbBtnvfrcxupPk";
    if (t->in_class) {
        known = "dDwWsSbtnvfrcxupP";
    }
    if (letter && strchr(known, c) == NULL) {
        fail(t, "an escape that ECMA-262 does not know");
        return;
    }
    if ((unsigned char)c >= 0x80) {
        buf_add_char(t->buf, c); /* the rest of the character follows as it is */
        return;
    }
    if (c == '0' && t->at < t->end && *t->at >= '0' && *t->at <= '9') {
        fail(t, "an octal escape");
        return;
    }
    translate_letter_escape(t, c);
}

/* Behind "(": of PCRE2's many groups only those of ECMA-262. */
static void translate_group(struct translation *t)
{
    static const char *const known[] = {"?:", "?=", "?!", "?<=", "?<!"};
    buf_add_char(t->buf, '(');
    if (next_is(t, "*")) {
        fail(t, "nothing to repeat");
    }
    if (!next_is(t, "?")) {
        return;
    }
    for (size_t i = 0; i < NG_COUNT(known); i++) {
        if (next_is(t, known[i])) {
            buf_add_c(t->buf, known[i]);
            t->at += strlen(known[i]);
            return;
        }
    }
    if (!next_is(t, "?<")) {
        fail(t, "a group that ECMA-262 does not know");
        return;
    }
    buf_add_c(t->buf, "?<");
    t->at += 2;
}

static void translate_in_class(struct translation *t)
{
    char c = *t->at;
    if (c == '\\') {
        translate_escape(t);
        return;
    }
    t->at++;
    if (c == ']') {
        t->in_class = false;
    } else if (c == '[') {
        buf_add_char(t->buf, '\\'); /* PCRE2 would see [:alpha:] */
    }
    buf_add_char(t->buf, c);
}

static void translate_quantifier(struct translation *t, char c)
{
    if (t->quantified && c != '?') {
        fail(t, "nothing to repeat");
        return;
    }
    t->quantified = !t->quantified; /* a lazy one is complete */
    if (!t->quantified && next_is(t, "+")) {
        fail(t, "nothing to repeat");
        return;
    }
    buf_add_char(t->buf, c);
}

static void translate_plain(struct translation *t)
{
    char c = *t->at++;
    if (c == '*' || c == '+' || c == '?') {
        translate_quantifier(t, c);
        return;
    }
    t->quantified = c == '}';
    switch (c) {
    case '[':
        t->in_class = true;
        buf_add_char(t->buf, c);
        if (next_is(t, "^")) {
            buf_add_char(t->buf, *t->at++);
        }
        break;
    case '(':
        translate_group(t);
        break;
    case '.':
        buf_add_c(t->buf, "[^\\n\\r\\x{2028}\\x{2029}]");
        break;
    default:
        buf_add_char(t->buf, c);
        break;
    }
}

int schema_regex_translate(struct ng_str pattern, struct buf *buf, char *reason,
                           size_t reason_size)
{
    struct translation t = {.at = pattern.data, .end = pattern.data + pattern.len, .buf = buf};
    while (t.at < t.end) {
        if (t.in_class) {
            translate_in_class(&t);
        } else if (*t.at == '\\') {
            t.quantified = false;
            translate_escape(&t);
        } else {
            translate_plain(&t);
        }
    }
    if (t.fault != NULL) {
        (void)snprintf(reason, reason_size, "%s", t.fault);
        return NG_EINVAL;
    }
    if (buf->rc == NG_ETOOLARGE) {
        (void)snprintf(reason, reason_size, "it is too long");
        return NG_EINVAL;
    }
    return buf->rc;
}

static int keep(struct schema *schema, pcre2_code *code)
{
    struct schema_regex *regex = arena_alloc(&schema->arena, sizeof(*regex));
    if (regex == NULL) {
        pcre2_code_free(code);
        return NG_EINTERNAL;
    }
    regex->code = code;
    regex->next = schema->regexes;
    schema->regexes = regex;
    return NG_OK;
}

int schema_regex_compile(struct schema *schema, struct ng_str pattern, pcre2_code **ret,
                         char *reason, size_t reason_size)
{
    struct buf buf;
    int error = 0;
    PCRE2_SIZE offset = 0;
    buf_init(&buf, PATTERN_BYTES_MAX);
    int rc = schema_regex_translate(pattern, &buf, reason, reason_size);
    if (rc != NG_OK) {
        buf_done(&buf);
        return rc;
    }
    pcre2_compile_context *context = pcre2_compile_context_create(schema->memory);
    if (context == NULL) {
        buf_done(&buf);
        return NG_EINTERNAL;
    }
    uint32_t options = PCRE2_UTF | PCRE2_DOLLAR_ENDONLY | PCRE2_ALLOW_EMPTY_CLASS |
                       PCRE2_MATCH_UNSET_BACKREF | PCRE2_NEVER_BACKSLASH_C |
                       PCRE2_AUTO_CALLOUT; /* for the bound on work */
    pcre2_code *code =
        pcre2_compile((PCRE2_SPTR)buf_cstr(&buf), buf.len, options, &error, &offset, context);
    pcre2_compile_context_free(context);
    buf_done(&buf);
    if (code == NULL && error == PCRE2_ERROR_HEAP_FAILED) {
        return NG_EINTERNAL;
    }
    if (code == NULL) {
        (void)pcre2_get_error_message(error, (PCRE2_UCHAR *)reason, reason_size);
        return NG_EINVAL;
    }
    *ret = code;
    return keep(schema, code);
}

/* ---- memory and limits of one schema ---- */

static void *regex_malloc(PCRE2_SIZE bytes, void *context)
{
    (void)context;
    return alloc_bytes(bytes);
}

static void regex_free(void *memory, void *context)
{
    (void)context;
    free(memory);
}

int schema_regex_init(struct schema *schema)
{
    schema->memory = pcre2_general_context_create(regex_malloc, regex_free, NULL);
    if (schema->memory == NULL) {
        return NG_EINTERNAL;
    }
    schema->limits = pcre2_match_context_create(schema->memory);
    if (schema->limits == NULL) {
        return NG_EINTERNAL;
    }
    (void)pcre2_set_match_limit(schema->limits, SCHEMA_MATCH_LIMIT);
    (void)pcre2_set_heap_limit(schema->limits, SCHEMA_MATCH_KIB);
    return NG_OK;
}

void schema_regex_done(struct schema *schema)
{
    for (struct schema_regex *regex = schema->regexes; regex != NULL; regex = regex->next) {
        pcre2_code_free(regex->code);
    }
    pcre2_match_context_free(schema->limits);
    pcre2_general_context_free(schema->memory);
}
