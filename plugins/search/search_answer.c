/* SPDX-License-Identifier: MIT */
/* search_answer.c - the order of the hits, pages by cursor, and the answer. */
#include <stdlib.h>
#include <string.h>

#include "core/base/minmax.h"
#include "core/base/str.h"
#include "core/base/text/hex.h"
#include "core/base/text/rfc3339.h"
#include "core/base/utf8.h"
#include "search.h"

/* Bytes of the names and punctuation of one hit. */
#define HIT_AROUND ((size_t)256)
/* "OFFSET.HASH", each eight bytes in hex. */
#define CURSOR_HALF ((size_t)16)

/* ---- cursor ---- */

static bool cursor_number(struct ng_str text, uint64_t *ret)
{
    unsigned char bytes[8];
    *ret = 0;
    if (text.len != CURSOR_HALF || !hex_read(text, bytes)) {
        return false;
    }
    for (size_t i = 0; i < sizeof(bytes); i++) {
        *ret = *ret << 8 | bytes[i];
    }
    return true;
}

int search_cursor(struct search_job *job)
{
    struct ng_str cursor = ng_arg_text(job->call, "cursor");
    uint64_t offset = 0;
    uint64_t hash = 0;
    if (cursor.data == NULL) {
        return NG_OK;
    }
    bool valid = cursor.len == 2 * CURSOR_HALF + 1 &&
                 cursor_number(str_make(cursor.data, CURSOR_HALF), &offset) &&
                 cursor_number(str_make(cursor.data + CURSOR_HALF + 1, CURSOR_HALF), &hash);
    if (!valid || hash != job->hash || offset >= SEARCH_DEPTH_MAX) {
        return ng_fail(job->call, NG_EINVAL,
                       "`cursor` is not of an answer to this query, `kinds` and space; leave "
                       "it out to start again");
    }
    job->offset = (uint32_t)offset;
    return NG_OK;
}

/* ---- order ---- */

static int hit_order(const void *left, const void *right)
{
    const struct search_hit *a = left;
    const struct search_hit *b = right;
    if (a->exact != b->exact) {
        return b->exact - a->exact;
    }
    if (a->rank != b->rank) {
        return (a->rank > b->rank) - (a->rank < b->rank);
    }
    return (a->order > b->order) - (a->order < b->order);
}

/* ---- the answer ---- */

/* Bytes of the text in JSON. */
static size_t json_bytes(struct ng_str text)
{
    size_t bytes = 2;
    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.data[i];
        size_t escaped = c < 0x20 || c == 0x7f ? 6 : 1;
        bytes += c == '"' || c == '\\' ? 2 : escaped;
    }
    return bytes;
}

static size_t hit_bytes(const struct ng_hit *hit)
{
    return HIT_AROUND + json_bytes(hit->uri) + json_bytes(hit->kind) + json_bytes(hit->space) +
           json_bytes(utf8_cut(hit->title, SEARCH_TITLE_MAX)) + json_bytes(hit->agent) +
           json_bytes(utf8_cut(hit->excerpt, SEARCH_EXCERPT_MAX));
}

static void put(struct search_job *job, struct ng_writer *writer, const char *name,
                struct ng_str text)
{
    job->call->host->json_name(writer, name);
    job->call->host->json_string(writer, str_or(text, ng_str_of("")));
}

static void put_hit(struct search_job *job, struct ng_writer *writer,
                    const struct search_hit *found)
{
    const struct ng_host *host = job->call->host;
    const struct ng_hit *hit = &found->hit;
    double score = 1.0 / (SEARCH_RANK_K + (double)found->rank);
    char updated[RFC3339_SIZE];
    host->json_object(writer);
    put(job, writer, "uri", hit->uri);
    put(job, writer, "kind", hit->kind);
    put(job, writer, "space", hit->space);
    put(job, writer, "title", utf8_cut(hit->title, SEARCH_TITLE_MAX));
    rfc3339_write(hit->updated_ms, RFC3339_MS, updated);
    put(job, writer, "updated", ng_str_of(updated));
    if (hit->agent.len > 0) {
        put(job, writer, "agent", hit->agent);
    }
    if (hit->line > 0) {
        host->json_name(writer, "line");
        host->json_int(writer, (int64_t)hit->line);
    }
    put(job, writer, "excerpt", utf8_cut(hit->excerpt, SEARCH_EXCERPT_MAX));
    host->json_name(writer, "score");
    host->json_number(writer, found->exact ? 1.0 + score : score);
    host->json_end(writer);
}

/* Writes the hits of the page; returns the number of the hit behind it. */
static size_t put_hits(struct search_job *job, struct ng_writer *writer)
{
    size_t end = size_min(job->count, (size_t)job->offset + job->limit);
    size_t room = job->call->host->answer_room(job->call);
    room -= size_min(room, SEARCH_END_MAX);
    size_t left = room;
    size_t at = job->offset;
    for (; at < end; at++) {
        size_t bytes = hit_bytes(&job->hits[at].hit);
        if (bytes > room) {
            job->find.incomplete = true; /* too large for any page */
            continue;
        }
        if (bytes > left) {
            break;
        }
        left -= bytes;
        put_hit(job, writer, &job->hits[at]);
    }
    return at;
}

int search_answer(struct search_job *job)
{
    struct ng_call *call = job->call;
    const struct ng_host *host = call->host;
    if (job->count > 1) {
        qsort(job->hits, job->count, sizeof(*job->hits), hit_order);
    }
    struct ng_writer *writer = host->reply_json(call);
    host->json_object(writer);
    host->json_name(writer, "hits");
    host->json_array(writer);
    size_t end = put_hits(job, writer);
    host->json_end(writer);
    bool more = end < job->count;
    bool deep = end >= SEARCH_DEPTH_MAX;
    host->json_name(writer, "total");
    host->json_int(writer, (int64_t)job->find.total);
    host->json_name(writer, "complete");
    host->json_bool(writer, !job->find.incomplete && !(more && deep));
    if (more && !deep) {
        put(job, writer, "cursor",
            host->format(call, "%016llx.%016llx", (unsigned long long)end,
                         (unsigned long long)job->hash));
    }
    host->json_end(writer);
    return NG_OK;
}
