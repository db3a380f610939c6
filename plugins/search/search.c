/* SPDX-License-Identifier: MIT */
/* search.c - declaration of the plugin: one search over the resources of all plugins, by the
 * gateway's find. */
#include "search.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/clock.h"
#include "core/base/hash.h"
#include "core/base/minmax.h"
#include "core/base/str.h"

/* Kinds of the plugins of this tree. One of them may be missing; another name is refused,
 * unless a plugin has it. */
#define SEARCH_KINDS "notebook, page, code_snippet, research_note, memory, note, file, cell"
static const char *const search_kinds[] = {"notebook", "page", "code_snippet", "research_note",
                                           "memory",   "note", "file",         "cell"};
#define SEARCH_KINDS_MAX 16

static int search_no_memory(struct ng_call *call)
{
    return ng_fail(call, NG_EINTERNAL, "out of memory for a search");
}

/* ---- hits ---- */

static int search_room(struct search_job *job)
{
    if (job->count < job->room) {
        return NG_OK;
    }
    size_t room = job->room * 2 + 64;
    struct search_hit *hits = ng_alloc(job->call, room * sizeof(*hits));
    if (hits == NULL) {
        return search_no_memory(job->call);
    }
    if (job->count > 0) {
        memcpy(hits, job->hits, job->count * sizeof(*hits));
    }
    job->hits = hits;
    job->room = room;
    return NG_OK;
}

/* Texts of a hit live as long as the call: the gateway keeps them there. */
static int search_take(void *user, const struct ng_hit *hit)
{
    struct search_job *job = user;
    job->rc = search_room(job);
    if (job->rc != NG_OK) {
        return 1;
    }
    job->rank = str_equal(hit->kind, job->kind) ? job->rank + 1 : 1;
    job->kind = hit->kind;
    job->hits[job->count] = (struct search_hit){
        .hit = *hit,
        .rank = job->rank,
        .order = (uint32_t)job->count,
        .exact = hit->exact && job->rank <= SEARCH_EXACT_RANKS,
    };
    job->count++;
    return 0;
}

/* ---- kinds ---- */

static bool search_knows(struct ng_str kind)
{
    for (size_t i = 0; i < NG_COUNT(search_kinds); i++) {
        if (str_is(kind, search_kinds[i])) {
            return true;
        }
    }
    return false;
}

static int search_end(struct ng_call *call, void *user)
{
    struct search_job *job = user;
    struct ng_str unknown = job->find.unknown_kind;
    if (job->rc != NG_OK) {
        return job->rc;
    }
    if (unknown.data != NULL && !search_knows(unknown)) {
        (void)call->host->fail_text(
            call, NG_EINVAL,
            call->host->format(call, "`kinds`: there is no kind \"%.*s\"",
                               (int)size_min(unknown.len, SEARCH_TITLE_MAX), unknown.data));
        call->host->hint(call, "Kinds are " SEARCH_KINDS ", and those of further plugins");
        return NG_EINVAL;
    }
    return search_answer(job);
}

/* The known kinds come behind the others, so that find->unknown_kind is one that is wrong. */
static int search_read_kinds(struct search_job *job)
{
    struct ng_call *call = job->call;
    const struct ng_host *host = call->host;
    const struct ng_value *kinds = ng_arg(call, "kinds");
    size_t count = host->json_count(kinds);
    struct ng_str *names = ng_alloc(call, (count + 1) * sizeof(*names));
    if (names == NULL) {
        return search_no_memory(call);
    }
    size_t kept = 0;
    for (int known = 0; known <= 1; known++) {
        for (const struct ng_value *kind = host->json_first(kinds); kind != NULL;
             kind = host->json_next(kind)) {
            if (search_knows(host->json_text(kind)) == (known == 1)) {
                names[kept++] = host->json_text(kind);
            }
        }
    }
    for (size_t i = 0; i < kept; i++) {
        job->hash = hash_fnv_byte(hash_fnv(job->hash, names[i]), 0);
    }
    job->find.kinds = names;
    job->find.kind_count = kept;
    return NG_OK;
}

static int search_run(void *self, struct ng_call *call, struct ng_str args)
{
    const struct search *search = self;
    struct search_job *job = ng_alloc(call, sizeof(*job));
    (void)args;
    if (job == NULL) {
        return search_no_memory(call);
    }
    *job = (struct search_job){
        .self = search,
        .call = call,
        .limit = (uint32_t)ng_arg_int(call, "limit", SEARCH_LIMIT_DEFAULT),
        .find =
            {
                .size = sizeof(job->find),
                .text = ng_arg_text(call, "query"),
                .scan_until_ns = clock_monotonic_ns() + search->scan_ms * 1000000,
                .hit = search_take,
                .user = job,
            },
    };
    job->hash = hash_fnv_byte(hash_fnv(HASH_FNV_BASIS, job->find.text), 0);
    job->hash = hash_fnv_byte(hash_fnv(job->hash, call->caller->space), 0);
    int rc = search_read_kinds(job);
    if (rc == NG_OK) {
        rc = search_cursor(job);
    }
    if (rc != NG_OK) {
        return rc;
    }
    job->limit = u32_min(job->limit, SEARCH_DEPTH_MAX - job->offset);
    /* One more tells whether there is another page. */
    job->find.limit = u32_max(job->offset + job->limit + 1, SEARCH_EXACT_RANKS);
    return call->host->find(call, &job->find, search_end);
}

/* ---- declarations ---- */

static int search_start(struct ng_call *call, const struct ng_conf *conf, void **ret_self)
{
    struct search *self = calloc(1, sizeof(*self));
    if (self == NULL) {
        return search_no_memory(call);
    }
    self->scan_ms = call->host->conf_int(conf, "scan_time");
    *ret_self = self;
    return NG_OK;
}

static void search_stop(void *self)
{
    free(self);
}

static const char search_params[] =
    "{\"type\":\"object\",\"additionalProperties\":false,\"required\":[\"query\"],"
    "\"properties\":{"
    "\"query\":{\"type\":\"string\",\"minLength\":1,\"maxLength\":1000,"
    "\"description\":\"Words.\"},"
    "\"kinds\":{\"type\":\"array\",\"items\":{\"type\":\"string\"},\"maxItems\":16,"
    "\"description\":\"Only " SEARCH_KINDS ".\"},"
    "\"limit\":{\"type\":\"integer\",\"minimum\":1,\"maximum\":50,\"default\":10,"
    "\"description\":\"Hits.\"},"
    "\"cursor\":{\"type\":\"string\",\"description\":\"Of the last answer: the next page.\"}}}";
_Static_assert(SEARCH_LIMIT_MAX == 50 && SEARCH_KINDS_MAX == 16, "as in the schema");

static const char search_result[] =
    "{\"type\":\"object\",\"required\":[\"hits\",\"total\",\"complete\"],\"properties\":{"
    "\"hits\":{\"type\":\"array\",\"description\":\"Best first\",\"items\":{\"type\":"
    "\"object\",\"required\":[\"uri\",\"kind\",\"space\",\"title\",\"updated\",\"excerpt\","
    "\"score\"],\"properties\":{"
    "\"uri\":{\"type\":\"string\",\"description\":\"resources/read gives the text\"},"
    "\"kind\":{\"type\":\"string\"},\"space\":{\"type\":\"string\"},"
    "\"title\":{\"type\":\"string\"},"
    "\"updated\":{\"type\":\"string\",\"format\":\"date-time\"},"
    "\"agent\":{\"type\":\"string\"},"
    "\"line\":{\"type\":\"integer\",\"description\":\"Of the hit in the text, from 1\"},"
    "\"excerpt\":{\"type\":\"string\"},\"score\":{\"type\":\"number\"}}}},"
    "\"total\":{\"type\":\"integer\"},"
    "\"complete\":{\"type\":\"boolean\",\"description\":\"false: there may be more hits than "
    "`total`\"},"
    "\"cursor\":{\"type\":\"string\"}}}";

static const struct ng_tool search_tools[] = {
    {
        .name = "search",
        .title = "Search everything",
        .summary =
            "Search everything at once (named notebooks, entries, memories, notes, files, "
            "cells), when it is not known where something was written.",
        .params = search_params,
        .result = search_result,
        .run = search_run,
        .effect = NG_EFFECT_READS,
        .space = NG_SPACE_SHARED,
        .flags = NG_TOOL_BY_SPACE,
    },
};

static const struct ng_option search_options[] = {
    {
        .name = "scan_time",
        .type = NG_OPTION_DURATION,
        .fallback = "2s",
        .min = 0,
        .max = 60000,
        .help = "How long one search reads files and cells.",
    },
};

static const struct ng_plugin search_plugin = {
    .name = "search",
    .version = "1.0.0",
    .threads = NG_THREADS_PARALLEL,
    .tools = search_tools,
    .tool_count = NG_COUNT(search_tools),
    .start = search_start,
    .stop = search_stop,
    .options = search_options,
    .option_count = NG_COUNT(search_options),
};

NG_EXPORT_PLUGIN(search_plugin);
