/* SPDX-License-Identifier: MIT */
/*
 * fuzz_redis_replies.c - a byte that picks a function of the journal, then what the server
 * sends: each function ends with a result or an error message, and its output is complete.
 *
 * Everything of the backend is here but sockets: the socket is simulated below. For a restore
 * the dump comes first, up to a NUL.
 */
#include <stdlib.h>
#include <string.h>

#include "../../backends/redis/redis.c"
#include "plain_call.h"

#define INPUT_BYTES_MAX 16384
#define PIECE_BYTES 61
#define SIGN_IN "+PONG\r\n"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
    if (!holds) {
        abort();
    }
}

static struct ng_str after(struct ng_str text, size_t len)
{
    struct ng_str rest = {text.data + len, text.len - len};
    return rest;
}

/* ---- the connection: the rest of the input, and a clock that moves when it is read ---- */

static struct ng_str incoming;
static bool signing_in;
static int64_t now_ns;

int64_t socket_now_ns(void)
{
    now_ns += 1000;
    return now_ns;
}

enum socket_result socket_open(struct redis_socket *sock, const char *path,
                               const struct redis_place *place, SSL_CTX *tls,
                               const struct socket_limit *limit)
{
    (void)path;
    (void)place;
    (void)tls;
    (void)limit;
    memset(sock, 0, sizeof(*sock));
    signing_in = true;
    return SOCKET_OK;
}

void socket_close(struct redis_socket *sock)
{
    sock->fd = -1;
}

enum socket_result socket_write(struct redis_socket *sock, const char *data, size_t len,
                                const struct socket_limit *limit)
{
    (void)limit;
    must(sock->fd == 0 && (len == 0 || data != NULL));
    return SOCKET_OK;
}

enum socket_result socket_read(struct redis_socket *sock, char *data, size_t size,
                               size_t *ret_len, const struct socket_limit *limit)
{
    (void)limit;
    struct ng_str next = signing_in ? ng_str_of(SIGN_IN) : incoming;
    size_t len = next.len < PIECE_BYTES ? next.len : PIECE_BYTES;
    must(len <= size);
    if (len == 0) {
        sock->error[0] = '\0';
        return SOCKET_CLOSED;
    }
    memcpy(data, next.data, len);
    if (!signing_in) {
        incoming = after(incoming, len);
    }
    signing_in = false;
    *ret_len = len;
    return SOCKET_OK;
}

bool socket_is_idle(const struct redis_socket *sock)
{
    return sock->fd == 0;
}

/* ---- what comes out ---- */

static int look_at_entry(void *user, const struct ng_entry *entry)
{
    struct ng_call *call = user;
    const struct ng_value *value = NULL;
    struct ng_writer *writer = call->host->json_writer(call);
    if (writer == NULL) {
        return 1;
    }
    redis_entry_write(call, writer, ng_str_of("2027-01-31"), entry);
    struct ng_str json = call->host->json_result(writer);
    if (json.data != NULL) {
        int rc = call->host->json_parse(call, json, &value);
        must(rc == NG_OK || rc == NG_EINTERNAL || rc == NG_ETOOLARGE);
    }
    return 0;
}

static int look_at_row(void *user, const struct ng_doc *doc)
{
    (void)user;
    must(doc->json.data != NULL);
    return 0;
}

static int restore(struct redis *redis, struct ng_call *call)
{
    const char *end = incoming.len == 0 ? NULL : memchr(incoming.data, '\0', incoming.len);
    size_t len = end == NULL ? incoming.len : (size_t)(end - incoming.data);
    struct ng_str json = {incoming.data, len};
    len += end == NULL ? 0 : 1;
    incoming = after(incoming, len);
    return redis_journal.restore(redis, call, ng_str_of("shared"), json);
}

static int dump(struct redis *redis, struct ng_call *call)
{
    const struct ng_value *value = NULL;
    struct ng_str json = {NULL, 0};
    int rc = redis_journal.dump(redis, call, ng_str_of("shared"), &json);
    if (rc == NG_OK) {
        int parsed = call->host->json_parse(call, json, &value);
        must(parsed == NG_OK || parsed == NG_EINTERNAL || parsed == NG_ETOOLARGE);
    }
    return rc;
}

static int ask_for(char what, struct redis *redis, struct ng_call *call)
{
    struct ng_str space = ng_str_of("shared");
    struct ng_str text = {NULL, 0};
    struct ng_str tags[] = {ng_str_of("x"), ng_str_of("y")};
    struct ng_timeline day = {
        .size = sizeof(day), .space = space, .date = ng_str_of("2027-01-31")};
    struct ng_recall recall = {
        .size = sizeof(recall), .space = space, .text = ng_str_of("alpha beta")};
    struct ng_entry entry = {
        .size = sizeof(entry),
        .kind = NG_ENTRY_MEMORY,
        .event_id = ng_str_of("one"),
        .space = space,
        .content = ng_str_of("alpha"),
    };
    const char *engine = NULL;
    switch (what) {
    case 'T':
        return redis_journal.timeline(redis, call, &day, look_at_entry, call);
    case 'R':
        return redis_journal.recall(redis, call, &recall, look_at_entry, call, &engine);
    case 'N': /* the newest, by tag */
        recall.text = text;
        recall.tags = tags;
        recall.tag_count = NG_COUNT(tags);
        return redis_journal.recall(redis, call, &recall, look_at_entry, call, &engine);
    case 'S':
        return redis_journal.summary(redis, call, space, &text);
    case 'W':
        return redis_journal.set_summary(redis, call, space, ng_str_of("text"));
    case 'D':
        return dump(redis, call);
    case 'B':
        return restore(redis, call);
    case 'P':
        return redis_journal.checkpoint_put(redis, call, space, ng_str_of("c"),
                                            ng_str_of("{\"label\":\"l\"}"));
    case 'G':
        return redis_journal.checkpoint_get(redis, call, space, ng_str_of("c"), &text);
    case 'L':
        return redis_journal.checkpoint_list(redis, call, space, look_at_row, NULL);
    case 'E':
        return redis_journal.deliver(redis, call, (const struct ng_entry *[]){&entry}, 1);
    default:
        return redis_journal.health(redis, call);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct redis redis = {.prefix = ng_str_of("p:")};
    struct pool_options options = {
        .uri = ng_str_of("redis://127.0.0.1"),
        .prefix = redis.prefix,
        .timeout_ms = 1000,
        .connections = 1,
    };
    if (size == 0 || size > INPUT_BYTES_MAX) {
        return 0;
    }
    /* An upper-case letter: a single server; a lower-case one: a node of a cluster, so that
     * redirections are followed (to where the same input is read on). */
    char what = (char)data[0];
    if (what >= 'a' && what <= 'z') {
        options.cluster = true;
        options.failover_ms = 1;
        what = (char)(what - 'a' + 'A');
    }
    struct ng_call *call = plain_call_begin();
    must(pool_open(call, &options, &redis.pool) == NG_OK);
    incoming.data = (const char *)data + 1;
    incoming.len = size - 1;
    int rc = ask_for(what, &redis, call);
    must(rc == NG_OK || plain_call_failed(call));
    pool_close(redis.pool);
    plain_call_end(call);
    return 0;
}
