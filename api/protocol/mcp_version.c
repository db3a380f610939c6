/* SPDX-License-Identifier: MIT */
/* mcp_version.c - version, header and _meta decisions. A difference between headers and body is
 * refused: a proxy may have decided by the headers. */
#include "mcp_version.h"

#include <stdio.h>

#include "core/base/str.h"
#include "core/base/text/base64.h"
#include "core/base/text_choice.h"
#include "core/base/utf8.h"

static const char *const mcp_versions[] = {
    [MCP_VERSION_NONE] = "",         [MCP_2024_11_05] = "2024-11-05",
    [MCP_2025_03_26] = "2025-03-26", [MCP_2025_06_18] = "2025-06-18",
    [MCP_2025_11_25] = "2025-11-25", [MCP_2026_07_28] = "2026-07-28",
};

static const char *const mcp_log_levels[] = {
    [MCP_LOG_NONE] = "",
    [MCP_LOG_DEBUG] = "debug",
    [MCP_LOG_INFO] = "info",
    [MCP_LOG_NOTICE] = "notice",
    [MCP_LOG_WARNING] = "warning",
    [MCP_LOG_ERROR] = "error",
    [MCP_LOG_CRITICAL] = "critical",
    [MCP_LOG_ALERT] = "alert",
    [MCP_LOG_EMERGENCY] = "emergency",
};

/* Longest part of a client's text repeated in a message. */
#define MCP_QUOTE_MAX 64

const char *mcp_version_text(enum mcp_version version)
{
    return mcp_versions[version];
}

static size_t word_index(struct ng_str text, const char *const *words, size_t count)
{
    for (size_t i = 1; i < count; i++) {
        if (str_is(text, words[i])) {
            return i;
        }
    }
    return 0;
}

enum mcp_version mcp_version_parse(struct ng_str text)
{
    return (enum mcp_version)word_index(text, mcp_versions, NG_COUNT(mcp_versions));
}

enum mcp_log_level mcp_log_level_parse(struct ng_str text)
{
    return (enum mcp_log_level)word_index(text, mcp_log_levels, NG_COUNT(mcp_log_levels));
}

const char *mcp_log_level_text(enum mcp_log_level level)
{
    return mcp_log_levels[level];
}

void mcp_print_versions(struct buf *out)
{
    buf_add_char(out, '[');
    for (size_t i = NG_COUNT(mcp_versions) - 1; i > 0; i--) {
        buf_printf(out, "\"%s\"%s", mcp_versions[i], text_if(i > 1, ","));
    }
    buf_add_char(out, ']');
}

/* ---- header values ---- */

static bool base64_equal(struct ng_str coded, struct ng_str value)
{
    struct buf bytes;
    buf_init(&bytes, value.len);
    bool equal =
        base64_decode(&bytes, coded, BASE64_STANDARD) && str_equal(buf_str(&bytes), value);
    buf_done(&bytes);
    return equal;
}

static bool visible_ascii(struct ng_str text)
{
    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.data[i];
        if ((c < 0x20 && c != '\t') || c > 0x7e) {
            return false;
        }
    }
    return true;
}

bool mcp_header_equal(struct ng_str header, struct ng_str value)
{
    static const char prefix[] = "=?base64?";
    static const size_t prefix_len = sizeof(prefix) - 1;
    struct ng_str text = str_trim(header);
    if (!visible_ascii(text)) {
        return false;
    }
    if (text.len >= prefix_len + 2 && memcmp(text.data, prefix, prefix_len) == 0 &&
        memcmp(text.data + text.len - 2, "?=", 2) == 0) {
        return base64_equal(str_make(text.data + prefix_len, text.len - prefix_len - 2), value);
    }
    return str_equal(text, value);
}

bool mcp_header_equal_number(struct ng_str header, struct ng_str digits)
{
    struct arena arena;
    const struct ng_value *value = NULL;
    arena_init(&arena, 0);
    bool equal = json_parse(&arena, str_trim(header), 1, &value, NULL) == NG_OK &&
                 value->type == NG_TYPE_NUMBER &&
                 json_compare_numbers(value->text, digits) == 0;
    arena_done(&arena);
    return equal;
}

/* ---- decisions ---- */

static bool refuse(struct mcp_terms *terms, int code, int status, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

static bool refuse(struct mcp_terms *terms, int code, int status, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    (void)vsnprintf(terms->message, sizeof(terms->message), format, args);
    va_end(args);
    terms->code = code;
    terms->status = status;
    return false;
}

/* A client's text for a sentence: printable and short. */
struct quote {
    char text[MCP_QUOTE_MAX + 1];
};

static struct quote quoted(struct ng_str text)
{
    struct quote quote;
    size_t len = utf8_cut(text, MCP_QUOTE_MAX).len;
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)text.data[i];
        if (c < 0x20 || c > 0x7e) {
            quote.text[i] = '?';
        } else {
            quote.text[i] = text.data[i];
        }
    }
    quote.text[len] = '\0';
    return quote;
}

static bool refuse_version(struct mcp_terms *terms, struct ng_str requested)
{
    terms->says_supported = true;
    terms->requested = utf8_cut(requested, MCP_QUOTE_MAX);
    return refuse(terms, MCP_UNSUPPORTED_VERSION, 400,
                  "this gateway does not speak MCP version \"%s\" in this way; use "
                  "2026-07-28, or open one of 2025-11-25, 2025-06-18, 2025-03-26 and "
                  "2024-11-05 with `initialize`",
                  quoted(requested).text);
}

/* The member of params that Mcp-Name repeats, or NULL. */
static const char *name_member(struct ng_str method)
{
    if (str_is(method, "tools/call") || str_is(method, "prompts/get")) {
        return "name";
    }
    if (str_is(method, "resources/read")) {
        return "uri";
    }
    bool is_task = str_is(method, "tasks/get") || str_is(method, "tasks/update") ||
                   str_is(method, "tasks/cancel");
    if (is_task) {
        return "taskId";
    }
    return NULL;
}

static bool check_name(const struct mcp_message *message, const struct mcp_headers *headers,
                       struct mcp_terms *terms)
{
    const char *member = name_member(message->method);
    const struct ng_value *name = member == NULL ? NULL : json_get(message->params, member);
    if (!json_is(name, NG_TYPE_STRING)) {
        return true; /* the method says what it misses */
    }
    if (headers->name.data == NULL) {
        return refuse(terms, MCP_HEADER_MISMATCH, 400,
                      "the header Mcp-Name is missing; it repeats `params.%s`", member);
    }
    if (!mcp_header_equal(headers->name, name->text)) {
        return refuse(terms, MCP_HEADER_MISMATCH, 400,
                      "the header Mcp-Name says \"%s\", `params.%s` says \"%s\"",
                      quoted(headers->name).text, member, quoted(name->text).text);
    }
    return true;
}

static bool check_headers(const struct mcp_message *message, const struct mcp_headers *headers,
                          struct mcp_terms *terms)
{
    if (message->kind != MCP_REQUEST) {
        return true; /* not defined for notifications */
    }
    if (headers->method.data == NULL) {
        return refuse(terms, MCP_HEADER_MISMATCH, 400,
                      "the header Mcp-Method is missing; it repeats `method`");
    }
    if (!str_equal(str_trim(headers->method), message->method)) {
        return refuse(terms, MCP_HEADER_MISMATCH, 400,
                      "the header Mcp-Method says \"%s\", `method` says \"%s\"",
                      quoted(headers->method).text, quoted(message->method).text);
    }
    return check_name(message, headers, terms);
}

static bool check_meta(const struct mcp_message *message, struct mcp_terms *terms)
{
    const struct ng_value *capabilities = json_get(message->meta, MCP_META_CAPABILITIES);
    if (message->kind != MCP_REQUEST) {
        return true;
    }
    if (!json_is(capabilities, NG_TYPE_OBJECT)) {
        return refuse(terms, MCP_INVALID_PARAMS, 400,
                      "`params._meta` must have \"" MCP_META_CAPABILITIES
                      "\", an object ({} for none)");
    }
    terms->capabilities = capabilities;
    if (json_get(message->meta, MCP_META_LOG_LEVEL) == NULL) {
        return true;
    }
    terms->log_level = mcp_log_level_parse(json_get_text(message->meta, MCP_META_LOG_LEVEL));
    if (terms->log_level == MCP_LOG_NONE) {
        return refuse(terms, MCP_INVALID_PARAMS, 400,
                      "\"" MCP_META_LOG_LEVEL "\" must be one of debug, info, notice, warning, "
                      "error, critical, alert, emergency");
    }
    return true;
}

/* A message that carries its version, or whose header names a version that wants that. */
static bool decide_stateless(const struct mcp_message *message,
                             const struct mcp_headers *headers, const struct ng_value *said,
                             struct mcp_terms *terms)
{
    terms->version = MCP_2026_07_28;
    if (!json_is(said, NG_TYPE_STRING)) {
        if (message->kind != MCP_REQUEST && said == NULL) {
            return true;
        }
        return refuse(terms, MCP_INVALID_PARAMS, 400,
                      "`params._meta` must have \"" MCP_META_VERSION "\", a string");
    }
    if (headers != NULL && headers->version.data == NULL) {
        return refuse(terms, MCP_HEADER_MISMATCH, 400,
                      "the header MCP-Protocol-Version is missing; it repeats \"%s\" of "
                      "`params._meta`",
                      quoted(said->text).text);
    }
    if (headers != NULL && !str_equal(str_trim(headers->version), said->text)) {
        return refuse(terms, MCP_HEADER_MISMATCH, 400,
                      "the header MCP-Protocol-Version says \"%s\", `params._meta` says \"%s\"",
                      quoted(headers->version).text, quoted(said->text).text);
    }
    if (!mcp_is_stateless(mcp_version_parse(said->text))) {
        return refuse_version(terms, said->text);
    }
    if (!check_meta(message, terms)) {
        return false;
    }
    return headers == NULL || check_headers(message, headers, terms);
}

bool mcp_version_decide(const struct mcp_message *message, const struct mcp_headers *headers,
                        enum mcp_version session, struct mcp_terms *ret)
{
    /* Not the sentence: it is long and rarely needed. */
    ret->version = MCP_VERSION_NONE;
    ret->capabilities = NULL;
    ret->log_level = MCP_LOG_NONE;
    ret->code = 0;
    ret->status = 200;
    ret->says_supported = false;
    ret->message[0] = '\0';
    const struct ng_value *said = json_get(message->meta, MCP_META_VERSION);
    struct ng_str header = {NULL, 0};
    if (headers != NULL && headers->version.data != NULL) {
        header = str_trim(headers->version);
    }
    enum mcp_version version = mcp_version_parse(header);
    if (said != NULL || mcp_is_stateless(version)) {
        return decide_stateless(message, headers, said, ret);
    }
    if (header.data != NULL && version == MCP_VERSION_NONE) {
        return refuse_version(ret, header);
    }
    if (session != MCP_VERSION_NONE) {
        ret->version = session;
    } else if (version != MCP_VERSION_NONE) {
        ret->version = version;
    } else {
        ret->version = MCP_VERSION_SILENT;
    }
    return true;
}
