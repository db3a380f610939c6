/* SPDX-License-Identifier: MIT */
/* redis.c - the journal in Redis: its options, opening, closing, health. */
#include "redis.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "connection/find.h"

static const struct ng_option redis_options[] = {
    {
        .name = "uri",
        .type = NG_OPTION_TEXT,
        .fallback = "",
        .secret = true,
        .env = "REDIS_URL",
        .help = "Address of Redis: redis://[user:password@]host[:port][/database], rediss:// "
                "with TLS, unix:///path, redis+sentinel://host1,host2,host3/master/database.",
    },
    {
        .name = "prefix",
        .type = NG_OPTION_TEXT,
        .fallback = "aether:",
        .help = "Prefix of every key.",
    },
    {
        .name = "timeout",
        .type = NG_OPTION_DURATION,
        .fallback = "2s",
        .min = 10,
        .max = 600000,
        .help = "Time limit of an answer of Redis.",
    },
    {
        .name = "connections",
        .type = NG_OPTION_INT,
        .fallback = "16",
        .min = 1,
        .max = 1000,
        .help = "Maximum number of connections to Redis.",
    },
    {
        .name = "cluster",
        .type = NG_OPTION_BOOL,
        .fallback = "false",
        .help = "Redis is a Redis Cluster: all keys share the hash tag of their prefix "
                "({aether}:...).",
    },
    {
        .name = "failover_timeout",
        .type = NG_OPTION_DURATION,
        .fallback = "10s",
        .min = 0,
        .max = 600000,
        .help = "How long a call waits for the next primary, or for keys that are being moved "
                "(Sentinel, Cluster).",
    },
    {
        .name = "tls_ca",
        .type = NG_OPTION_TEXT,
        .fallback = "",
        .help = "File of certificates (PEM) that rediss:// trusts. Default: the certificates "
                "of the system.",
    },
    {
        .name = "tls_cert",
        .type = NG_OPTION_TEXT,
        .fallback = "",
        .help = "File of the certificate (PEM) that the gateway shows to Redis.",
    },
    {
        .name = "tls_key",
        .type = NG_OPTION_TEXT,
        .fallback = "",
        .help = "File of the key (PEM) of redis.tls_cert.",
    },
};

static void redis_close(void *journal)
{
    struct redis *redis = journal;
    if (redis != NULL) {
        pool_close(redis->pool);
        free((void *)(uintptr_t)redis->prefix.data);
        free(redis);
    }
}

/* Whether all keys with the prefix have the same hash tag: text in its first braces. */
static bool redis_has_tag(struct ng_str prefix)
{
    size_t from = str_find(prefix, WORD("{"), 0);
    if (from >= prefix.len) {
        return false;
    }
    size_t to = str_find(prefix, WORD("}"), from);
    return to < prefix.len && to > from + 1;
}

/* The prefix of all keys. In a cluster it has a hash tag: "aether:" becomes "{aether}:". */
static int redis_make_prefix(struct ng_call *call, struct ng_str prefix, bool cluster,
                             struct ng_str *ret)
{
    size_t size = prefix.len + sizeof("{}");
    size_t tag = prefix.len;
    bool adds = cluster && !redis_has_tag(prefix);
    while (tag > 0 && prefix.data[tag - 1] == ':') {
        tag--;
    }
    if (adds && (tag == 0 || prefix.data[0] == '}')) {
        return ng_fail(call, NG_EINVAL,
                       "redis.prefix must begin with a name: with redis.cluster it is the hash "
                       "tag of all keys");
    }
    char *text = malloc(size);
    if (text == NULL) {
        return redis_no_memory(call);
    }
    if (adds) {
        (void)snprintf(text, size, "{%.*s}%.*s", (int)tag, prefix.data, (int)(prefix.len - tag),
                       prefix.data + tag);
    } else {
        (void)snprintf(text, size, "%.*s", (int)prefix.len, prefix.data);
    }
    *ret = str_make(text, strlen(text));
    return NG_OK;
}

static int redis_open(struct ng_call *call, const struct ng_conf *conf, void **ret_journal)
{
    const struct ng_host *host = call->host;
    struct pool_options options = {
        .uri = host->conf_text(conf, "uri"),
        .ca = host->conf_text(conf, "tls_ca"),
        .cert = host->conf_text(conf, "tls_cert"),
        .key = host->conf_text(conf, "tls_key"),
        .timeout_ms = host->conf_int(conf, "timeout"),
        .failover_ms = host->conf_int(conf, "failover_timeout"),
        .connections = (size_t)host->conf_int(conf, "connections"),
        .cluster = host->conf_bool(conf, "cluster"),
    };
    if (options.uri.len == 0) {
        return ng_fail(call, NG_EINVAL,
                       "redis.uri is not set; it is the address of the journal's server, such "
                       "as redis://127.0.0.1:6379/0");
    }
    struct redis *redis = calloc(1, sizeof(*redis));
    if (redis == NULL) {
        return redis_no_memory(call);
    }
    atomic_flag_clear(&redis->filling);
    int rc = redis_make_prefix(call, host->conf_text(conf, "prefix"), options.cluster,
                               &redis->prefix);
    options.prefix = redis->prefix;
    if (rc == NG_OK) {
        rc = pool_open(call, &options, &redis->pool);
    }
    if (rc == NG_OK) {
        rc = redis_greet(redis, call);
    }
    if (rc != NG_OK) {
        redis_close(redis);
        return rc;
    }
    if (redis_health(redis, call) != NG_OK) {
        char failure[CONN_TEXT_SIZE];
        pool_failure(redis->pool, failure);
        host->log(call, NG_LOG_WARNING, "redis: the journal is not available, events wait: %s",
                  failure);
    }
    *ret_journal = redis;
    return NG_OK;
}

int redis_health(void *journal, struct ng_call *call)
{
    struct redis *redis = journal;
    struct pipeline pipeline;
    find_look(redis->pool, call);
    pipeline_init(&pipeline, redis->pool, call);
    pipeline.at_once = true;
    PIPELINE_ADD(&pipeline, WORD("PING"));
    int rc = pipeline_run_all(&pipeline);
    pipeline_done(&pipeline);
    return rc;
}

static const struct ng_journal redis_journal = {
    .name = "redis",
    .version = NOTEGATE_VERSION,
    .options = redis_options,
    .option_count = NG_COUNT(redis_options),
    .open = redis_open,
    .close = redis_close,
    .deliver = redis_deliver,
    .timeline = redis_timeline,
    .recall = redis_recall,
    .summary = redis_summary,
    .set_summary = redis_set_summary,
    .dump = redis_dump,
    .restore = redis_restore,
    .checkpoint_put = redis_checkpoint_put,
    .checkpoint_get = redis_checkpoint_get,
    .checkpoint_list = redis_checkpoint_list,
    .health = redis_health,
    .restore_aside = redis_restore_aside,
    .checkpoint_delete = redis_checkpoint_delete,
    .trim = redis_trim,
    .mark = redis_mark,
    .deliver_marked = redis_deliver_marked,
    .memory = redis_memory,
    .forget = redis_forget,
};

NG_EXPORT_JOURNAL(redis_journal);
