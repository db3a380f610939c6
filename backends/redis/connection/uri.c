/* SPDX-License-Identifier: MIT */
/* uri.c - parses the URI of a Redis. */
#include "uri.h"
#include "core/base/str.h"
#include "core/base/text/hex.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define URI_PORT_DEFAULT "6379"
#define URI_PORT_SENTINEL "26379"
#define URI_PORT_LAST 65535
/* About the most databases that Redis can be configured for. */
#define URI_DATABASE_LAST 1000000

struct uri_parser {
    char *next; /* free memory for decoded texts */
    char *error;
};

static int uri_fail(const struct uri_parser *parser, const char *what)
{
    (void)snprintf(parser->error, REDIS_URI_ERROR_SIZE, "%s", what);
    return NG_EINVAL;
}

static struct ng_str uri_from(struct ng_str text, size_t at)
{
    return str_make(text.data + at, text.len - at);
}

static struct ng_str uri_until(struct ng_str text, const char *stops)
{
    struct ng_str part = {text.data, 0};
    while (part.len < text.len && strchr(stops, text.data[part.len]) == NULL) {
        part.len++;
    }
    return part;
}

/* Percent-decodes and adds a NUL. */
static int uri_decode(struct uri_parser *parser, struct ng_str text, const char **ret)
{
    char *out = parser->next;
    *ret = out;
    for (size_t i = 0; i < text.len; i++) {
        int byte = (unsigned char)text.data[i];
        if (byte == '%') {
            unsigned char decoded = 0;
            if (text.len - i <= 2 || !hex_read(str_make(text.data + i + 1, 2), &decoded)) {
                return uri_fail(parser, "it has a % without two hexadecimal digits after it");
            }
            byte = decoded;
            i += 2;
        }
        if (byte == 0) {
            return uri_fail(parser, "it has a NUL");
        }
        *out++ = (char)byte;
    }
    *out++ = '\0';
    parser->next = out;
    return NG_OK;
}

/* A decimal number up to `last`, or -1. */
static long uri_number(struct ng_str text, long last)
{
    long number = 0;
    for (size_t i = 0; i < text.len; i++) {
        if (text.data[i] < '0' || text.data[i] > '9') {
            return -1;
        }
        number = number * 10 + (text.data[i] - '0');
        if (number > last) {
            return -1;
        }
    }
    if (text.len == 0) {
        return -1;
    }
    return number;
}

static int uri_database(struct uri_parser *parser, struct ng_str text, struct redis_uri *uri)
{
    long number = uri_number(text, URI_DATABASE_LAST);
    if (number < 0) {
        return uri_fail(parser, "the database after the host is not a number (redis://host/0)");
    }
    uri->database = (int)number;
    return NG_OK;
}

/* Reads "user:password@" at the start and leaves the rest in *text. */
static int uri_credentials(struct uri_parser *parser, struct ng_str *text,
                           struct redis_uri *uri)
{
    struct ng_str authority = uri_until(*text, "/?#");
    size_t at = authority.len;
    while (at > 0 && authority.data[at - 1] != '@') {
        at--;
    }
    if (at == 0) {
        return NG_OK;
    }
    struct ng_str both = {authority.data, at - 1};
    struct ng_str user = uri_until(both, ":");
    if (user.len == both.len) {
        return uri_fail(parser,
                        "before the @ there is no password (redis://user:password@host, "
                        "or redis://:password@host)");
    }
    int rc = NG_OK;
    if (user.len != 0) {
        rc = uri_decode(parser, user, &uri->user);
    }
    if (rc == NG_OK) {
        rc = uri_decode(parser, uri_from(both, user.len + 1), &uri->password);
    }
    *text = uri_from(*text, at);
    return rc;
}

/* Reads one parameter: db, sentinel_user or sentinel_password. */
static int uri_parameter(struct uri_parser *parser, struct ng_str text, struct redis_uri *uri)
{
    struct ng_str name = uri_until(text, "=");
    struct ng_str value = {NULL, 0};
    if (name.len < text.len) {
        value = uri_from(text, name.len + 1);
    }
    if (value.data != NULL && str_is(name, "db")) {
        return uri_database(parser, value, uri);
    }
    if (value.data != NULL && uri->master != NULL && str_is(name, "sentinel_user")) {
        return uri_decode(parser, value, &uri->sentinel_user);
    }
    if (value.data != NULL && uri->master != NULL && str_is(name, "sentinel_password")) {
        return uri_decode(parser, value, &uri->sentinel_password);
    }
    return uri_fail(parser, "after the ? only db=N is allowed, and with +sentinel also "
                            "sentinel_user and sentinel_password");
}

static int uri_query(struct uri_parser *parser, struct ng_str text, struct redis_uri *uri)
{
    int rc = NG_OK;
    if (text.len > 0 && text.data[0] != '?') {
        return uri_fail(parser, "it has text after the database that is no ?db=N");
    }
    for (size_t at = 1; rc == NG_OK && at < text.len;) {
        struct ng_str one = uri_until(uri_from(text, at), "&");
        rc = uri_parameter(parser, one, uri);
        at += one.len + 1;
    }
    if (rc == NG_OK && uri->sentinel_user != NULL && uri->sentinel_password == NULL) {
        rc = uri_fail(parser, "sentinel_user is given without sentinel_password");
    }
    return rc;
}

/* Reads "host[:port]" at the start of *text and leaves the rest. */
static int uri_node(struct uri_parser *parser, struct ng_str *text, struct redis_uri *uri)
{
    struct ng_str host = uri_until(*text, ",:/?#");
    struct ng_str rest = uri_from(*text, host.len);
    const char *decoded = NULL;
    if (uri->node_count == REDIS_NODES_MAX) {
        return uri_fail(parser, "it names more than 16 hosts");
    }
    if (text->len > 0 && text->data[0] == '[') {
        host = uri_until(uri_from(*text, 1), "]");
        if (host.len + 1 == text->len) {
            return uri_fail(parser, "the [ before the host has no ]");
        }
        rest = uri_from(*text, host.len + 2);
    }
    int rc = uri_decode(parser, host, &decoded);
    if (rc == NG_OK && (host.len == 0 || host.len >= REDIS_HOST_SIZE)) {
        rc = uri_fail(parser, "it names no host (redis://host:6379)");
    }
    if (rc != NG_OK) {
        return rc;
    }
    struct redis_place *node = &uri->nodes[uri->node_count++];
    (void)snprintf(node->host, sizeof(node->host), "%s", decoded);
    (void)snprintf(node->port, sizeof(node->port), "%s",
                   uri->master == NULL ? URI_PORT_DEFAULT : URI_PORT_SENTINEL);
    if (rest.len > 0 && rest.data[0] == ':') {
        struct ng_str port = uri_until(uri_from(rest, 1), ",/?#");
        long number = uri_number(port, URI_PORT_LAST);
        if (number < 1) {
            return uri_fail(parser, "the port is not a number from 1 to 65535");
        }
        (void)snprintf(node->port, sizeof(node->port), "%ld", number);
        rest = uri_from(rest, port.len + 1);
    }
    *text = rest;
    return NG_OK;
}

/* Reads "/master" at the start of *text and leaves the rest. */
static int uri_master(struct uri_parser *parser, struct ng_str *text, struct redis_uri *uri)
{
    struct ng_str name = {NULL, 0};
    if (text->len > 0 && text->data[0] == '/') {
        name = uri_until(uri_from(*text, 1), "/?#");
    }
    if (name.len == 0) {
        return uri_fail(parser, "after the Sentinels it does not name the master "
                                "(redis+sentinel://host1,host2,host3/mymaster/0)");
    }
    *text = uri_from(*text, name.len + 1);
    return uri_decode(parser, name, &uri->master);
}

static int uri_hosts(struct uri_parser *parser, struct ng_str text, struct redis_uri *uri)
{
    int rc = uri_node(parser, &text, uri);
    while (rc == NG_OK && text.len > 0 && text.data[0] == ',') {
        text = uri_from(text, 1);
        rc = uri_node(parser, &text, uri);
    }
    if (rc == NG_OK && uri->master != NULL) {
        rc = uri_master(parser, &text, uri);
    }
    if (rc == NG_OK && text.len > 0 && text.data[0] == '/') {
        struct ng_str database = uri_until(uri_from(text, 1), "?#");
        if (database.len > 0) {
            rc = uri_database(parser, database, uri);
        }
        text = uri_from(text, database.len + 1);
    }
    if (rc != NG_OK) {
        return rc;
    }
    return uri_query(parser, text, uri);
}

static int uri_path(struct uri_parser *parser, struct ng_str text, struct redis_uri *uri)
{
    struct ng_str path = uri_until(text, "?");
    if (path.len < 2 || path.data[0] != '/') {
        return uri_fail(parser, "it names no path of a socket (unix:///run/redis.sock)");
    }
    int rc = uri_decode(parser, path, &uri->path);
    if (rc != NG_OK) {
        return rc;
    }
    return uri_query(parser, uri_from(text, path.len), uri);
}

/* NOLINTNEXTLINE(readability-non-const-parameter) */
int redis_uri_parse(struct ng_str text, struct redis_uri *ret, char error[REDIS_URI_ERROR_SIZE])
{
    struct redis_uri uri = {0};
    struct uri_parser parser = {NULL, error};
    bool local = str_begins(text, "unix://");
    bool sentinel =
        str_begins(text, "redis+sentinel://") || str_begins(text, "rediss+sentinel://");
    uri.tls = str_begins(text, "rediss");
    if (!local && !sentinel && !str_begins(text, "rediss://") &&
        !str_begins(text, "redis://")) {
        return uri_fail(&parser, "it begins with none of redis://, rediss://, unix://, "
                                 "redis+sentinel://, rediss+sentinel://");
    }
    if (sentinel) {
        uri.master = "";
    }
    if (text.len > REDIS_URI_MAX) {
        return uri_fail(&parser, "it is too long");
    }
    /* The decoded texts stand apart in the source, each is no longer there, and its NUL takes
     * the place of a separator. */
    uri.memory = malloc(text.len + 8);
    if (uri.memory == NULL) {
        (void)uri_fail(&parser, "there is no memory for it");
        return NG_EINTERNAL;
    }
    parser.next = uri.memory;
    struct ng_str rest = uri_from(text, str_find(text, ng_str_of("://"), 0) + 3);
    int rc = uri_credentials(&parser, &rest, &uri);
    if (rc == NG_OK) {
        if (local) {
            rc = uri_path(&parser, rest, &uri);
        } else {
            rc = uri_hosts(&parser, rest, &uri);
        }
    }
    if (rc != NG_OK) {
        redis_uri_free(&uri);
        return rc;
    }
    *ret = uri;
    return NG_OK;
}

void redis_uri_free(struct redis_uri *uri)
{
    free(uri->memory);
    uri->memory = NULL;
}

bool redis_place_parse(struct ng_str text, struct redis_place *ret)
{
    size_t host = text.len;
    while (host > 0 && text.data[host - 1] != ':') {
        host--;
    }
    if (host == 0 || host > REDIS_HOST_SIZE) {
        return false;
    }
    long port = uri_number(uri_from(text, host), URI_PORT_LAST);
    if (port < 1) {
        return false;
    }
    memcpy(ret->host, text.data, host - 1);
    ret->host[host - 1] = '\0';
    (void)snprintf(ret->port, sizeof(ret->port), "%ld", port);
    return true;
}

bool redis_place_is(const struct redis_place *left, const struct redis_place *right)
{
    return strcmp(left->host, right->host) == 0 && strcmp(left->port, right->port) == 0;
}
