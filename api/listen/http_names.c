/* SPDX-License-Identifier: MIT */
/* http_names.c - allowed_hosts and allowed_origins: what an entry means, and what matches it.
 */
#include "http_names.h"

#include <arpa/inet.h>

#include "core/base/str.h"
#include "core/base/utf8.h"
#include "http_check.h"

#define SHOWN_MAX 80
#define ADDRESS_BYTES 16
#define ADDRESS_TEXT_MAX 64

/* An address of IPv4 or IPv6. */
struct address {
    int family;
    unsigned bits; /* of the family: 32 or 128 */
    unsigned char bytes[ADDRESS_BYTES];
};

/* One entry of allowed_hosts. */
struct pattern {
    enum { PATTERN_NAME, PATTERN_BELOW, PATTERN_RANGE } kind;
    struct http_authority name; /* PATTERN_BELOW: without "*." */
    struct address network;
    unsigned prefix;
};

/* Is `name` "x.parent", at any depth? */
static bool is_below(struct ng_str name, struct ng_str parent)
{
    if (name.len < parent.len + 2) {
        return false;
    }
    size_t at = name.len - parent.len;
    return name.data[at - 1] == '.' && name.data[0] != '.' &&
           str_equal_fold(str_make(name.data + at, parent.len), parent);
}

static bool parse_address(struct ng_str text, struct address *ret)
{
    char copy[ADDRESS_TEXT_MAX];
    if (text.len == 0 || text.len >= sizeof(copy)) {
        return false;
    }
    memcpy(copy, text.data, text.len);
    copy[text.len] = '\0';
    memset(ret, 0, sizeof(*ret));
    ret->family = AF_INET;
    ret->bits = 32;
    if (memchr(copy, ':', text.len) != NULL) {
        ret->family = AF_INET6;
        ret->bits = 128;
    }
    return inet_pton(ret->family, copy, ret->bytes) == 1;
}

static unsigned address_bit(const struct address *address, unsigned bit)
{
    return (unsigned)address->bytes[bit / 8] >> (7 - bit % 8) & 1U;
}

static bool is_in_range(const struct address *address, const struct address *network,
                        unsigned prefix)
{
    if (address->family != network->family) {
        return false;
    }
    for (unsigned bit = 0; bit < prefix; bit++) {
        if (address_bit(address, bit) != address_bit(network, bit)) {
            return false;
        }
    }
    return true;
}

static bool parse_prefix(struct ng_str text, unsigned most, unsigned *ret)
{
    uint64_t value = 0;
    bool valid = text.len <= 3 && str_number(text, most, &value) &&
                 (text.len == 1 || text.data[0] != '0');
    *ret = (unsigned)value;
    return valid;
}

/* NULL, or why the entry is no pattern. */
static const char *parse_range(struct ng_str text, size_t slash, struct pattern *ret)
{
    struct ng_str network = str_make(text.data, slash);
    struct ng_str prefix = str_make(text.data + slash + 1, text.len - slash - 1);
    if (network.len > 2 && network.data[0] == '[' && network.data[network.len - 1] == ']') {
        network = str_make(network.data + 1, network.len - 2);
    }
    if (!parse_address(network, &ret->network)) {
        return "is not a range of addresses";
    }
    if (!parse_prefix(prefix, ret->network.bits, &ret->prefix)) {
        return "has no valid number of bits behind the /";
    }
    for (unsigned bit = ret->prefix; bit < ret->network.bits; bit++) {
        if (address_bit(&ret->network, bit) != 0) {
            return "has address bits behind its prefix, which must be 0";
        }
    }
    ret->kind = PATTERN_RANGE;
    return NULL;
}

/* "300.1.1.1": a name whose last label is a number is no name, and this is no address. */
static bool ends_in_number(struct ng_str host)
{
    size_t digits = 0;
    while (digits < host.len && host.data[host.len - 1 - digits] >= '0' &&
           host.data[host.len - 1 - digits] <= '9') {
        digits++;
    }
    return digits > 0 && (digits == host.len || host.data[host.len - 1 - digits] == '.');
}

static const char *parse_pattern(struct ng_str text, struct pattern *ret)
{
    const char *slash = NULL;
    if (text.len != 0) {
        slash = memchr(text.data, '/', text.len);
    }
    memset(ret, 0, sizeof(*ret));
    if (slash != NULL) {
        return parse_range(text, (size_t)(slash - text.data), ret);
    }
    if (text.len > 2 && memcmp(text.data, "*.", 2) == 0) {
        ret->kind = PATTERN_BELOW;
        text = str_make(text.data + 2, text.len - 2);
    } else if (parse_address(text, &ret->network)) {
        ret->kind = PATTERN_RANGE;
        ret->prefix = ret->network.bits;
        return NULL;
    }
    if (text.len > 0 && memchr(text.data, '*', text.len) != NULL) {
        return "has a * that is not the whole first label of a name";
    }
    if (!http_parse_authority(text, &ret->name) || ret->name.host.data[0] == '.' ||
        (ret->kind == PATTERN_BELOW && ret->name.bracketed) ||
        (!ret->name.bracketed && ends_in_number(ret->name.host) &&
         !parse_address(ret->name.host, &ret->network))) {
        return "is not a host name or address, with or without :PORT";
    }
    return NULL;
}

static bool pattern_matches(const struct pattern *pattern, const struct http_authority *asked)
{
    if (pattern->kind == PATTERN_RANGE) {
        struct address address;
        return parse_address(asked->host, &address) &&
               is_in_range(&address, &pattern->network, pattern->prefix);
    }
    if (pattern->name.port != 0 && pattern->name.port != asked->port) {
        return false;
    }
    if (pattern->kind == PATTERN_BELOW) {
        return is_below(asked->host, pattern->name.host);
    }
    return str_equal_fold(asked->host, pattern->name.host);
}

static bool is_local_name(struct ng_str host)
{
    return str_equal_fold(host, ng_str_of("localhost")) || str_is(host, "127.0.0.1") ||
           str_is(host, "::1");
}

bool http_host_allowed(const struct http_names *names, struct ng_str host, struct ng_str local)
{
    struct http_authority asked;
    if (!http_parse_authority(host, &asked)) {
        return false;
    }
    if (is_local_name(asked.host) || str_equal_fold(asked.host, names->listen_host) ||
        (local.len > 0 && str_equal_fold(asked.host, local))) {
        return true;
    }
    for (size_t i = 0; i < names->host_count; i++) {
        struct pattern pattern;
        if (parse_pattern(names->hosts[i], &pattern) == NULL &&
            pattern_matches(&pattern, &asked)) {
            return true;
        }
    }
    return false;
}

/* ---- origins ---- */

struct origin {
    struct ng_str scheme;
    bool below; /* "*." stood before the name */
    struct http_authority name;
};

static bool parse_origin(struct ng_str text, struct origin *ret)
{
    const char *end = NULL;
    if (text.len != 0) {
        end = memmem(text.data, text.len, "://", 3);
    }
    memset(ret, 0, sizeof(*ret));
    if (end == NULL || end == text.data) {
        return false;
    }
    ret->scheme = str_make(text.data, (size_t)(end - text.data));
    struct ng_str rest = str_make(end + 3, text.len - ret->scheme.len - 3);
    ret->below = rest.len > 2 && memcmp(rest.data, "*.", 2) == 0;
    if (ret->below) {
        rest = str_make(rest.data + 2, rest.len - 2);
    }
    return http_is_token(ret->scheme) &&
           memchr(ret->scheme.data, '*', ret->scheme.len) == NULL &&
           http_parse_authority(rest, &ret->name) && !(ret->below && ret->name.bracketed);
}

static bool origin_matches(struct ng_str allowed, struct ng_str origin)
{
    struct origin from;
    struct origin pattern;
    if (str_equal_fold(origin, allowed)) {
        return true;
    }
    return memmem(allowed.data, allowed.len, "://*.", 5) != NULL &&
           parse_origin(allowed, &pattern) && pattern.below && parse_origin(origin, &from) &&
           !from.below && str_equal_fold(pattern.scheme, from.scheme) &&
           pattern.name.port == from.name.port && is_below(from.name.host, pattern.name.host);
}

bool http_origin_allowed(const struct http_names *names, struct ng_str origin,
                         struct ng_str host)
{
    struct origin from;
    for (size_t i = 0; i < names->origin_count; i++) {
        if (origin_matches(names->origins[i], origin)) {
            return true;
        }
    }
    if (!parse_origin(origin, &from) || from.below ||
        (!str_equal_fold(from.scheme, ng_str_of("http")) &&
         !str_equal_fold(from.scheme, ng_str_of("https")))) {
        return false;
    }
    /* A page the gateway itself served, by whatever name and port it was reached. */
    size_t before = from.scheme.len + 3;
    if (str_equal_fold(str_make(origin.data + before, origin.len - before), host)) {
        return true;
    }
    return from.name.port == names->listen_port &&
           (is_local_name(from.name.host) ||
            str_equal_fold(from.name.host, names->listen_host));
}

/* ---- the configuration ---- */

static const char *host_fault(struct ng_str text)
{
    struct pattern pattern;
    return parse_pattern(text, &pattern);
}

static const char *origin_fault(struct ng_str text)
{
    struct origin origin;
    if (str_is(text, "null") || parse_origin(text, &origin)) {
        return NULL;
    }
    return "is not an origin of web pages: an origin has a scheme, a name and no path";
}

static int check_list(const struct config *config, const char *key,
                      const char *(*fault)(struct ng_str text), const char *forms,
                      struct buf *error)
{
    const struct ng_str *items = NULL;
    size_t count = config_list(config, key, &items);
    for (size_t i = 0; i < count; i++) {
        const char *why = fault(items[i]);
        if (why != NULL) {
            config_where(config, key, error);
            (void)buf_printf(error, "%s has \"%.*s\", which %s; an entry is %s", key,
                             (int)utf8_cut(items[i], SHOWN_MAX).len, items[i].data, why, forms);
            return NG_EINVAL;
        }
    }
    return NG_OK;
}

int http_names_check(const struct config *config, struct buf *error)
{
    int rc = check_list(config, "allowed_hosts", host_fault,
                        "a name (notes.example.com), every name below one (*.example.com), an "
                        "address, or a range of addresses (10.0.0.0/8)",
                        error);
    if (rc != NG_OK) {
        return rc;
    }
    return check_list(config, "allowed_origins", origin_fault,
                      "https://notes.example.com, every name below one "
                      "(https://*.example.com), or null",
                      error);
}
