/* SPDX-License-Identifier: MIT */
/* fuzz_http_check.c - request targets, headers, Host and Origin from any bytes: no crash, and
 * what passes keeps its promises. */
#include <stdlib.h>

#include "api/listen/http_check.h"
#include "api/listen/http_names.h"
#include "core/base/str.h"
#include "core/base/utf8.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool promise)
{
    if (!promise) {
        abort();
    }
}

static void fuzz_target(const char *text)
{
    static struct http_target target;
    struct http_fault fault = {0};
    if (http_check_target(text, &target, &fault) != NG_OK) {
        check(fault.rc != NG_OK && fault.text[0] != '\0');
        return;
    }
    check(utf8_valid(target.path));
    check(target.path.len == 0 || memchr(target.path.data, '\0', target.path.len) == NULL);
    struct ng_str query = target.query;
    struct ng_str name;
    struct ng_str value;
    while (http_query_next(&query, &name, &value)) {
        check(name.len + value.len <= target.query.len);
    }
}

static void fuzz_headers(struct ng_str text)
{
    struct http_headers headers = {0};
    struct http_fault fault = {0};
    while (text.len > 0) {
        const char *end = memchr(text.data, '\n', text.len);
        struct ng_str line =
            str_make(text.data, end == NULL ? text.len : (size_t)(end - text.data));
        const char *colon = line.len == 0 ? NULL : memchr(line.data, ':', line.len);
        size_t used = line.len + (end != NULL);
        text = str_make(text.data + used, text.len - used);
        if (colon == NULL) {
            continue;
        }
        size_t name = (size_t)(colon - line.data);
        if (http_check_header(&headers, str_make(line.data, name),
                              str_make(colon + 1, line.len - name - 1), &fault) != NG_OK) {
            return;
        }
    }
    if (http_check_headers(&headers, &fault) == NG_OK) {
        check(headers.host.len > 0);
        check(!(headers.has_length && headers.chunked));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct http_names names = {.listen_port = 8420};
    struct ng_str text = str_make((const char *)data, size);
    struct http_authority authority;
    char *copy = malloc(size + 1);
    if (copy == NULL) {
        return 0;
    }
    if (size > 0) {
        memcpy(copy, data, size);
    }
    copy[size] = '\0';
    fuzz_target(copy);
    fuzz_headers(text);
    (void)http_is_json(text);
    (void)http_traceparent_valid(text);
    (void)http_etag_matches(text, ng_str_of("\"a\""));
    check(!http_request_id_valid(text) || size <= HTTP_REQUEST_ID_MAX);
    if (http_parse_authority(text, &authority)) {
        check(authority.host.len > 0 && authority.port <= 65535);
    }
    struct http_names patterns = {
        .hosts = &text, .host_count = 1, .origins = &text, .origin_count = 1};
    (void)http_host_allowed(&patterns, ng_str_of("a.example"), ng_str_of(""));
    (void)http_host_allowed(&patterns, ng_str_of("[fd00::1]:8420"), ng_str_of(""));
    (void)http_origin_allowed(&patterns, ng_str_of("https://a.example"), ng_str_of("a"));
    (void)http_host_allowed(&names, text, ng_str_of(""));
    (void)http_origin_allowed(&names, text, ng_str_of("localhost:8420"));
    free(copy);
    return 0;
}
