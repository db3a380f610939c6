/* SPDX-License-Identifier: MIT */
/* http_check.c - request target and headers: what may be read in two ways is refused. */
#include "http_check.h"

#include <stdarg.h>
#include <stdio.h>

#include "core/base/str.h"
#include "core/base/text/hex.h"
#include "core/base/utf8.h"

/* Characters of a value that go into a message at most. */
#define SHOWN_MAX 40
/* Digits of a traceparent's ids. */
#define TRACE_ID_LEN 32
#define PARENT_ID_LEN 16

static int fault_set(struct http_fault *fault, int rc, bool fatal, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

static int fault_set(struct http_fault *fault, int rc, bool fatal, const char *format, ...)
{
    va_list args;
    fault->rc = rc;
    fault->fatal = fatal;
    va_start(args, format);
    (void)vsnprintf(fault->text, sizeof(fault->text), format, args);
    va_end(args);
    return rc;
}

/* The first byte that is no token character of RFC 9110; name.len: there is none. The dash
 * comes first because names are full of it. */
static size_t token_end(struct ng_str name)
{
    size_t at = 0;
    while (at < name.len) {
        char c = name.data[at];
        if (!str_is_alpha(c) && c != '-' && !str_is_digit(c) &&
            (c == '\0' || strchr("!#$%&'*+.^_`|~", c) == NULL)) {
            break;
        }
        at++;
    }
    return at;
}

bool http_is_token(struct ng_str name)
{
    return name.len > 0 && token_end(name) == name.len;
}

static const struct {
    const char *name;
    unsigned method;
} methods[] = {
    {"POST", HTTP_POST},       {"GET", HTTP_GET},     {"HEAD", HTTP_HEAD},
    {"PUT", HTTP_PUT},         {"PATCH", HTTP_PATCH}, {"DELETE", HTTP_DELETE},
    {"OPTIONS", HTTP_OPTIONS},
};

unsigned http_check_method(const char *method)
{
    for (size_t i = 0; i < NG_COUNT(methods); i++) {
        if (strcmp(method, methods[i].name) == 0) {
            return methods[i].method;
        }
    }
    return 0;
}

const char *http_method_name(unsigned method)
{
    for (size_t i = 0; i < NG_COUNT(methods); i++) {
        if (methods[i].method == method) {
            return methods[i].name;
        }
    }
    return "?";
}

/* ---- the target ---- */

int http_decode(struct ng_str text, char *out, size_t *ret_len)
{
    size_t len = 0;
    for (size_t i = 0; i < text.len; i++) {
        char c = text.data[i];
        if (c == '%') {
            if (text.len - i < 3) {
                return NG_EINVAL;
            }
            int high = hex_digit(text.data[i + 1]);
            int low = hex_digit(text.data[i + 2]);
            if (high < 0 || low < 0) {
                return NG_EINVAL;
            }
            c = (char)(high * 16 + low);
            i += 2;
        }
        if (str_is_control(c)) {
            return NG_EINVAL;
        }
        out[len++] = c;
    }
    if (!utf8_valid(str_make(out, len))) {
        return NG_EINVAL;
    }
    *ret_len = len;
    return NG_OK;
}

/* In two, as a slash in the last segment that was sent as %2F divides nothing. */
static int decode_path(struct http_target *target, struct ng_str raw, size_t *ret_len)
{
    const char *slash = memrchr(raw.data, '/', raw.len);
    size_t folder = (size_t)(slash - raw.data) + 1;
    size_t rest = 0;
    int rc = http_decode(str_make(raw.data, folder), target->memory, &target->last);
    if (rc == NG_OK) {
        rc = http_decode(str_make(raw.data + folder, raw.len - folder),
                         target->memory + target->last, &rest);
    }
    *ret_len = target->last + rest;
    return rc;
}

int http_check_target(const char *raw, struct http_target *ret, struct http_fault *fault)
{
    size_t len = strlen(raw);
    ret->path = ng_str_of("");
    ret->query = STR_NONE;
    ret->last = 0;
    ret->has_slash = false;
    if (len > HTTP_TARGET_MAX) {
        return fault_set(fault, NG_ETOOLARGE, false,
                         "The request target has %zu bytes, at most %d are taken", len,
                         HTTP_TARGET_MAX);
    }
    if (strcmp(raw, "*") == 0) {
        ret->path = ng_str_of("*");
        return NG_OK;
    }
    if (raw[0] != '/') {
        return fault_set(fault, NG_EINVAL, true,
                         "The request target must be a path that begins with /");
    }
    for (size_t i = 0; i < len; i++) {
        if (str_is_control(raw[i]) || raw[i] == ' ' || raw[i] == '#') {
            return fault_set(fault, NG_EINVAL, true,
                             "The request target has the byte 0x%02x at offset %zu, which must "
                             "be percent-encoded",
                             (unsigned)(unsigned char)raw[i], i);
        }
    }
    const char *mark = memchr(raw, '?', len);
    size_t path_len = len;
    if (mark != NULL) {
        path_len = (size_t)(mark - raw);
    }
    size_t decoded = 0;
    ret->has_slash = path_len > 1 && raw[path_len - 1] == '/';
    if (decode_path(ret, str_make(raw, path_len - ret->has_slash), &decoded) != NG_OK) {
        return fault_set(fault, NG_EINVAL, false,
                         "The path has a percent escape that is not two hexadecimal digits, or "
                         "that stands for a control character or for bytes that are not UTF-8");
    }
    ret->path = str_make(ret->memory, decoded);
    if (mark != NULL) {
        size_t query_len = len - path_len - 1;
        size_t count = 1;
        for (size_t i = 0; i < query_len; i++) {
            count += mark[1 + i] == '&';
        }
        if (count > HTTP_PARAMETERS_MAX) {
            return fault_set(fault, NG_ETOOLARGE, false,
                             "The query has %zu parameters, at most %d are taken", count,
                             HTTP_PARAMETERS_MAX);
        }
        memcpy(ret->memory + decoded, mark + 1, query_len);
        ret->query = str_make(ret->memory + decoded, query_len);
    }
    return NG_OK;
}

bool http_query_next(struct ng_str *query, struct ng_str *ret_name, struct ng_str *ret_value)
{
    while (query->len > 0) {
        const char *end = memchr(query->data, '&', query->len);
        struct ng_str part =
            str_make(query->data, end == NULL ? query->len : (size_t)(end - query->data));
        size_t used = part.len + (end == NULL ? 0 : 1);
        query->data += used;
        query->len -= used;
        if (part.len == 0) {
            continue;
        }
        const char *equals = memchr(part.data, '=', part.len);
        size_t name_len = part.len;
        if (equals != NULL) {
            name_len = (size_t)(equals - part.data);
        }
        *ret_name = str_make(part.data, name_len);
        if (equals == NULL) {
            *ret_value = str_make(part.data + part.len, 0);
        } else {
            *ret_value = str_make(equals + 1, part.len - name_len - 1);
        }
        return true;
    }
    return false;
}

/* ---- headers ---- */

enum header_flags {
    HEADER_ONCE = 1, /* a second one is refused */
    HEADER_FATAL = 2 /* ... and the framing is in doubt */
};

struct header {
    const char *name; /* in lower case */
    unsigned char len;
    unsigned char flags;
    unsigned short offset;
};

#define HEADER(text, member, flags)                                                            \
    {                                                                                          \
        text, sizeof(text) - 1, flags, offsetof(struct http_headers, member)                   \
    }

static const struct header known[] = {
    HEADER("host", host, HEADER_ONCE | HEADER_FATAL),
    HEADER("accept", accept, 0),
    HEADER("expect", expect, HEADER_ONCE),
    HEADER("origin", origin, HEADER_ONCE),
    HEADER("mcp-name", mcp_name, HEADER_ONCE),
    HEADER("mcp-method", mcp_method, HEADER_ONCE),
    HEADER("user-agent", user_agent, 0),
    HEADER("traceparent", traceparent, 0),
    HEADER("content-type", content_type, HEADER_ONCE),
    HEADER("x-request-id", request_id, 0),
    HEADER("authorization", authorization, HEADER_ONCE),
    HEADER("if-none-match", if_none_match, 0),
    HEADER("last-event-id", last_event_id, HEADER_ONCE),
    HEADER("content-length", content_length, HEADER_ONCE | HEADER_FATAL),
    HEADER("mcp-session-id", mcp_session, HEADER_ONCE),
    HEADER("x-notegate-run", run, HEADER_ONCE),
    HEADER("idempotency-key", idempotency_key, HEADER_ONCE),
    HEADER("x-notegate-mode", mode, HEADER_ONCE),
    HEADER("x-notegate-space", space, HEADER_ONCE),
    HEADER("x-notegate-agent", agent, HEADER_ONCE),
    HEADER("transfer-encoding", transfer_encoding, HEADER_ONCE | HEADER_FATAL),
    HEADER("mcp-protocol-version", mcp_version, HEADER_ONCE),
    HEADER("x-notegate-process-run", process_run, HEADER_ONCE),
    HEADER("access-control-request-method", preflight_method, HEADER_ONCE),
    HEADER("access-control-request-headers", preflight_headers, HEADER_ONCE),
};

static int header_chars(struct ng_str name, struct ng_str value, struct http_fault *fault)
{
    size_t end = token_end(name);
    if (end < name.len) {
        return fault_set(fault, NG_EINVAL, true, "The name of header %.*s has the byte 0x%02x",
                         name.len > SHOWN_MAX ? SHOWN_MAX : (int)name.len, name.data,
                         (unsigned)(unsigned char)name.data[end]);
    }
    for (size_t i = 0; i < value.len; i++) {
        if (str_is_control(value.data[i]) && value.data[i] != '\t') {
            return fault_set(fault, NG_EINVAL, true,
                             "The value of header %.*s has the byte 0x%02x",
                             name.len > SHOWN_MAX ? SHOWN_MAX : (int)name.len, name.data,
                             (unsigned)(unsigned char)value.data[i]);
        }
    }
    return NG_OK;
}

/* Stores a known header's value in its member. */
static int header_take(struct http_headers *headers, const struct header *header,
                       struct ng_str value, struct http_fault *fault)
{
    char *member = (char *)headers + header->offset;
    struct ng_str *slot = (struct ng_str *)(void *)member;
    if (slot->data == NULL) {
        *slot = value;
        return NG_OK;
    }
    if ((header->flags & HEADER_ONCE) != 0) {
        return fault_set(fault, NG_EINVAL, (header->flags & HEADER_FATAL) != 0,
                         "The request has the header %s twice; send it once", header->name);
    }
    return NG_OK;
}

/* Headers that only a proxy, a load balancer or a content network adds, in lower case; with an
 * ellipsis: all that begin so. */
static const char *const proxy_headers[] = {
    "via",
    "forwarded",
    "forwarded-for",
    "x-forwarded...",
    "x-original-...",
    "x-envoy-...",
    "x-real-ip",
    "x-client-ip",
    "x-cluster-client-ip",
    "x-proxyuser-ip",
    "x-remote-addr",
    "x-remote-ip",
    "x-azure-clientip",
    "x-azure-socketip",
    "x-appengine-user-ip",
    "client-ip",
    "proxy-client-ip",
    "wl-proxy-client-ip",
    "true-client-ip",
    "fastly-client-ip",
    "fly-client-ip",
    "cf-connecting-ip",
    "cf-connecting-ipv6",
    "cf-ray",
    "cdn-loop",
};

/* The name of a header that only a proxy adds, or the beginning of its name and "...". NULL: it
 * is none of them. */
static const char *proxy_header(struct ng_str name)
{
    for (size_t i = 0; i < NG_COUNT(proxy_headers); i++) {
        const char *header = proxy_headers[i];
        if (name.len == 0 || (name.data[0] | 0x20) != header[0]) {
            continue; /* nearly always */
        }
        size_t len = strlen(header);
        bool is_prefix = header[len - 1] == '.';
        if (is_prefix) {
            len -= strlen("...");
        }
        if ((name.len == len || (is_prefix && name.len > len)) &&
            strncasecmp(name.data, header, len) == 0) {
            return header;
        }
    }
    return NULL;
}

int http_check_header(struct http_headers *headers, struct ng_str name, struct ng_str value,
                      struct http_fault *fault)
{
    if (++headers->count > HTTP_HEADERS_MAX) {
        return fault_set(fault, NG_ETOOLARGE, true, "The request has more than %d headers",
                         HTTP_HEADERS_MAX);
    }
    int rc = header_chars(name, value, fault);
    if (rc != NG_OK) {
        return rc;
    }
    for (size_t i = 0; i < NG_COUNT(known); i++) {
        const struct header *header = &known[i];
        if (str_equal_fold(name, str_make(header->name, header->len))) {
            return header_take(headers, header, value, fault);
        }
    }
    const char *proxy = proxy_header(name);
    if (proxy != NULL) {
        headers->proxied = proxy;
    }
    return NG_OK;
}

static int check_idempotency_key(struct ng_str key, struct http_fault *fault)
{
    if (key.data == NULL) {
        return NG_OK;
    }
    if (key.len == 0 || key.len > HTTP_IDEMPOTENCY_KEY_MAX) {
        return fault_set(fault, NG_EINVAL, false,
                         "Idempotency-Key has %zu bytes, it must have 1 to %d", key.len,
                         HTTP_IDEMPOTENCY_KEY_MAX);
    }
    for (size_t i = 0; i < key.len; i++) {
        if (key.data[i] < ' ' || key.data[i] > '~') {
            return fault_set(fault, NG_EINVAL, false,
                             "Idempotency-Key has characters that are not printable ASCII; use "
                             "a UUID, for example");
        }
    }
    return NG_OK;
}

int http_check_headers(struct http_headers *headers, struct http_fault *fault)
{
    if (headers->host.data == NULL || headers->host.len == 0) {
        return fault_set(fault, NG_EINVAL, true, "The request has no Host header");
    }
    if (headers->transfer_encoding.data != NULL) {
        if (!str_equal_fold(headers->transfer_encoding, ng_str_of("chunked"))) {
            return fault_set(fault, NG_EINVAL, true,
                             "Transfer-Encoding may only be \"chunked\"");
        }
        if (headers->content_length.data != NULL) {
            return fault_set(
                fault, NG_EINVAL, true,
                "The request has both Content-Length and Transfer-Encoding; send one");
        }
        headers->chunked = true;
    }
    if (headers->content_length.data != NULL) {
        if (!str_number(headers->content_length, UINT64_MAX, &headers->body_length)) {
            return fault_set(fault, NG_EINVAL, true,
                             "Content-Length must be a number of bytes in plain digits");
        }
        headers->has_length = true;
    }
    return check_idempotency_key(headers->idempotency_key, fault);
}

/* ---- values ---- */

/* The piece up to `separator`, trimmed; `text` goes on behind it. */
static struct ng_str cut(struct ng_str *text, char separator)
{
    const char *at = NULL;
    if (text->len != 0) {
        at = memchr(text->data, separator, text->len);
    }
    struct ng_str piece =
        str_make(text->data, at == NULL ? text->len : (size_t)(at - text->data));
    size_t used = piece.len + (at == NULL ? 0 : 1);
    text->data += used;
    text->len -= used;
    return str_trim(piece);
}

bool http_is_json(struct ng_str content_type)
{
    struct ng_str rest = content_type;
    struct ng_str type = cut(&rest, ';');
    struct ng_str application = ng_str_of("application/");
    if (!str_equal_fold(type, ng_str_of("application/json"))) {
        bool plus = type.len > application.len + 5 &&
                    str_equal_fold(str_make(type.data, application.len), application) &&
                    str_equal_fold(str_make(type.data + type.len - 5, 5), ng_str_of("+json"));
        if (!plus) {
            return false;
        }
    }
    while (rest.len > 0) {
        struct ng_str value = cut(&rest, ';');
        struct ng_str name = cut(&value, '=');
        value = str_trim(value);
        if (value.len >= 2 && value.data[0] == '"' && value.data[value.len - 1] == '"') {
            value = str_make(value.data + 1, value.len - 2);
        }
        if (str_equal_fold(name, ng_str_of("charset")) &&
            !str_equal_fold(value, ng_str_of("utf-8")) &&
            !str_equal_fold(value, ng_str_of("utf8"))) {
            return false;
        }
    }
    return true;
}

bool http_request_id_valid(struct ng_str id)
{
    if (id.len == 0 || id.len > HTTP_REQUEST_ID_MAX) {
        return false;
    }
    for (size_t i = 0; i < id.len; i++) {
        char c = id.data[i];
        if (!str_is_alpha(c) && !str_is_digit(c) && strchr("._:@/+=-", c) == NULL) {
            return false;
        }
    }
    return true;
}

bool http_traceparent_valid(struct ng_str text)
{
    static const size_t dashes[] = {2, 35, 52};
    static const size_t length = 55; /* 00-<32>-<16>-<2> */
    static const char zeros[] = "00000000000000000000000000000000";
    if (text.len < length || text.len > 4 * length ||
        (text.len > length && text.data[length] != '-')) {
        return false;
    }
    for (size_t i = 0; i < length; i++) {
        bool dash = i == dashes[0] || i == dashes[1] || i == dashes[2];
        char c = text.data[i];
        if (dash ? c != '-' : hex_digit(c) < 0 || (c >= 'A' && c <= 'F')) {
            return false;
        }
    }
    /* An id of zeros is none. */
    return memcmp(text.data, "ff", 2) != 0 &&
           memcmp(text.data + dashes[0] + 1, zeros, TRACE_ID_LEN) != 0 &&
           memcmp(text.data + dashes[1] + 1, zeros, PARENT_ID_LEN) != 0;
}

bool http_etag_matches(struct ng_str list, struct ng_str etag)
{
    while (list.len > 0) {
        struct ng_str item = cut(&list, ',');
        if (item.len > 2 && item.data[0] == 'W' && item.data[1] == '/') {
            item = str_make(item.data + 2, item.len - 2);
        }
        if (str_is(item, "*") || str_equal(item, etag)) {
            return true;
        }
    }
    return false;
}

/* ---- authorities ---- */

bool http_parse_authority(struct ng_str text, struct http_authority *ret)
{
    memset(ret, 0, sizeof(*ret));
    if (text.len == 0 || text.len > HTTP_HOST_MAX) {
        return false;
    }
    struct ng_str rest;
    if (text.data[0] == '[') {
        const char *end = memchr(text.data, ']', text.len);
        if (end == NULL) {
            return false;
        }
        ret->bracketed = true;
        ret->host = str_make(text.data + 1, (size_t)(end - text.data) - 1);
        rest = str_make(end + 1, text.len - (size_t)(end - text.data) - 1);
    } else {
        const char *colon = memchr(text.data, ':', text.len);
        size_t len = text.len;
        if (colon != NULL) {
            len = (size_t)(colon - text.data);
        }
        ret->host = str_make(text.data, len);
        rest = str_make(text.data + len, text.len - len);
    }
    for (size_t i = 0; i < ret->host.len; i++) {
        char c = ret->host.data[i];
        if (!str_is_alpha(c) && !str_is_digit(c) &&
            strchr(ret->bracketed ? ":.%" : ".-_", c) == NULL) {
            return false;
        }
    }
    if (rest.len == 0) {
        return ret->host.len > 0;
    }
    uint64_t port = 0;
    if (rest.data[0] != ':' || rest.len > 6 ||
        !str_number(str_make(rest.data + 1, rest.len - 1), 65535, &port) || port == 0) {
        return false;
    }
    ret->port = (unsigned)port;
    return ret->host.len > 0;
}
