/* SPDX-License-Identifier: MIT */
/* redis.c - the journal in Redis: its options, opening, closing, health. */
#include "redis.h"

#include <stdlib.h>
#include <string.h>

static const struct ng_option redis_options[] = {
    {
        .name = "uri",
        .type = NG_OPTION_TEXT,
        .fallback = "redis://127.0.0.1:6379",
        .secret = true,
        .env = "REDIS_URL",
        .help = "Address of Redis: redis://[user:password@]host[:port][/database], rediss:// "
                "with TLS, unix:///path.",
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
        .name = "tls_ca",
        .type = NG_OPTION_TEXT,
        .fallback = "",
        .help = "File of certificates (PEM) that rediss:// trusts. Default: the certificates "
                "of the system.",
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

static int redis_open(struct ng_call *call, const struct ng_conf *conf, void **ret_journal)
{
    const struct ng_host *host = call->host;
    struct pool_options options = {
        .uri = host->conf_text(conf, "uri"),
        .ca = host->conf_text(conf, "tls_ca"),
        .timeout_ms = host->conf_int(conf, "timeout"),
        .connections = (size_t)host->conf_int(conf, "connections"),
    };
    struct ng_str prefix = host->conf_text(conf, "prefix");
    struct redis *redis = calloc(1, sizeof(*redis));
    char *copy = str_dup(prefix);
    if (redis == NULL || copy == NULL) {
        free(redis);
        free(copy);
        return redis_no_memory(call);
    }
    redis->prefix.data = copy;
    redis->prefix.len = prefix.len;
    int rc = pool_open(call, &options, &redis->pool);
    if (rc == NG_OK) {
        rc = redis_greet(redis, call);
    }
    if (rc != NG_OK) {
        redis_close(redis);
        return rc;
    }
    if (redis_health(redis, call) != NG_OK) {
        host->log(call, NG_LOG_WARNING,
                  "redis: the server of the journal does not answer yet; events wait for it");
    }
    *ret_journal = redis;
    return NG_OK;
}

int redis_health(void *journal, struct ng_call *call)
{
    return REDIS_DO(journal, call, NULL, WORD("PING"));
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
};

NG_EXPORT_JOURNAL(redis_journal);
