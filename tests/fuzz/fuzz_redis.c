/* SPDX-License-Identifier: MIT */
/*
 * fuzz_redis.c - the first byte says what the rest is: a URI of a Redis, the text, source and
 * tags of a recall (NUL between them), or what a server sends.
 *
 * A URI is refused or gives texts that end; a query closes all it opens, whatever is in it; a
 * reply is read or refused.
 */
#include <stdlib.h>
#include <string.h>

#include "../../backends/redis/connection/reader.c"
#include "../../backends/redis/connection/uri.c"
#include "../../backends/redis/query.c"

#define INPUT_BYTES_MAX 4096
#define TAGS_MAX 4
#define REPLY_PIECE 7

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
    if (!holds) {
        abort();
    }
}

static void try_uri(struct ng_str text)
{
    struct redis_uri uri;
    char error[REDIS_URI_ERROR_SIZE] = "";
    if (redis_uri_parse(text, &uri, error) != NG_OK) {
        must(strlen(error) > 0);
        return;
    }
    must((uri.node_count > 0) != (uri.path != NULL));
    must(uri.node_count <= REDIS_NODES_MAX);
    must(uri.user == NULL || uri.password != NULL);
    must(uri.sentinel_user == NULL || uri.sentinel_password != NULL);
    must(uri.master == NULL || uri.master[0] != '\0');
    size_t len = (uri.path == NULL ? 0 : strlen(uri.path)) +
                 (uri.password == NULL ? 0 : strlen(uri.password)) +
                 (uri.user == NULL ? 0 : strlen(uri.user));
    for (size_t i = 0; i < uri.node_count; i++) {
        must(uri.nodes[i].host[0] != '\0' && strtol(uri.nodes[i].port, NULL, 10) >= 1);
        len += strlen(uri.nodes[i].host);
    }
    must(len < text.len);
    redis_uri_free(&uri);
}

/* The signs of the query language that are no part of a word stand only where the writer put
 * them: brackets pair, and there are never more of them than its form has. */
static void try_query(struct ng_str text)
{
    struct ng_str parts[TAGS_MAX + 2] = {{NULL, 0}};
    size_t count = 0;
    for (size_t from = 0; from <= text.len && count < TAGS_MAX + 2; count++) {
        const char *end =
            from < text.len ? memchr(text.data + from, '\0', text.len - from) : NULL;
        size_t len = end == NULL ? text.len - from : (size_t)(end - text.data) - from;
        parts[count] = (struct ng_str){text.data + from, len};
        from += len + 1;
    }
    struct ng_recall recall = {
        .size = sizeof(recall),
        .text = parts[0],
        .source = parts[1],
        .tags = parts + 2,
        .tag_count = count > 2 ? count - 2 : 0,
    };
    struct buf out;
    struct wanted wanted = {0};
    buf_init(&out, QUERY_BYTES_MAX);
    must(wanted_parse(NULL, recall.text, &wanted) == NG_OK);
    int rc = redis_query(&recall, &wanted, &out);
    must(rc == NG_OK || rc == NG_ENOTFOUND);
    must(out.rc == NG_OK);
    size_t braces = 0;
    size_t depth = 0;
    size_t quotes = 0;
    for (size_t i = 0; rc == NG_OK && i < out.len; i++) {
        char c = out.data[i];
        if (c == '\\') {
            must(++i < out.len);
        } else if (c == '{' || c == '(') {
            braces++;
            depth++;
        } else if (c == '}' || c == ')') {
            must(depth-- > 0);
        } else {
            must((unsigned char)c >= ' ' && strchr("'-~$%;[]!<>", c) == NULL);
            quotes += c == '"';
        }
    }
    must(depth == 0 && quotes % 2 == 0 && braces <= 5 + wanted.count);
    wanted_done(&wanted);
    buf_done(&out);
}

/* The address in a redirection of a cluster. */
static void try_place(struct ng_str text)
{
    struct redis_place place;
    if (redis_place_parse(text, &place)) {
        must(strlen(place.host) < sizeof(place.host) && strtol(place.port, NULL, 10) >= 1);
    }
}

/* In pieces, as it comes from a socket. */
static void try_reply(struct ng_str text)
{
    struct reader reader;
    void *reply = NULL;
    size_t at = 0;
    if (!reader_open(&reader)) {
        return;
    }
    while (at < text.len) {
        size_t len = text.len - at < REPLY_PIECE ? text.len - at : REPLY_PIECE;
        if (redisReaderFeed(reader.redis, text.data + at, len) != REDIS_OK) {
            break;
        }
        at += len;
        int rc = REDIS_OK;
        while ((rc = redisReaderGetReply(reader.redis, &reply)) == REDIS_OK && reply != NULL) {
            freeReplyObject(reply);
            reply = NULL;
        }
        if (rc != REDIS_OK) {
            break;
        }
    }
    reader_close(&reader);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0 || size > INPUT_BYTES_MAX) {
        return 0;
    }
    struct ng_str rest = {(const char *)data + 1, size - 1};
    switch (data[0]) {
    case 'u':
        try_uri(rest);
        break;
    case 'q':
        try_query(rest);
        break;
    case 'p':
        try_place(rest);
        break;
    case 'r':
        try_reply(rest);
        break;
    default:
        break;
    }
    return 0;
}
