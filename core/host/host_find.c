/* SPDX-License-Identifier: MIT */
/*
 * host_find.c - a search of the resources of all plugins (ng_host.find): one kind after the
 * other, each on a worker and behind the mutex of its plugin, as continue_on_worker() runs it.
 *
 * A kind that may return NG_PENDING is repeated, so its hits are kept until it has ended.
 */
#include "core/base/clock.h"
#include "core/base/find/resource_uri.h"
#include "core/base/log.h"
#include "core/base/minmax.h"
#include "core/base/str.h"
#include "core/base/text_choice.h"
#include "core/base/utf8.h"
#include "core/call/gateway.h"
#include "core/call/plugin.h"
#include "core/call/quota.h"
#include "core/dispatch/dispatch.h"
#include "core/dispatch/dispatch_space.h"
#include "core/module/abi_size.h"
#include "core/module/registry.h"
#include "host.h"

/* Kinds that scan files, under way at once in a gateway: a quarter of its workers, and at least
 * this many. One agent may have half of them. */
#define FIND_SCANS_LEAST 4
#define FIND_SCANS_PART 4
/* Hits of one kind that are kept, whatever limit is asked for. */
#define FIND_HITS_MAX 10000

struct find_hit {
    struct ng_hit hit;
    struct find_hit *next;
};

/* A search under way. Memory of the call. */
struct find_run {
    struct call *call;
    struct ng_find *asked; /* the plugin's */
    struct ng_find all;    /* the same, in the size of this gateway */
    ng_step_fn *step;
    struct plugin *own;  /* of the search; NULL: that of the tool */
    struct ng_str query; /* folded */
    size_t index;        /* of the kind */
    size_t failed, done; /* kinds */
    /* The present kind. */
    struct plugin *plugin;
    const struct ng_resources *desc;
    struct ng_str space;
    struct ng_find find;
    struct find_hit *first, **last;
    uint32_t count;
    int rc;        /* of its hits */
    bool has_scan; /* it holds a place of gateway->scans */
};

static struct ng_str find_kind(const struct ng_resources *desc)
{
    return ng_str_of(text_or(desc->find_kind, text_or(desc->kind, desc->uri_template)));
}

/* ---- places of scans ---- */

static size_t find_scans(const struct gateway *gateway)
{
    return size_max(FIND_SCANS_LEAST, gateway->limits.workers / FIND_SCANS_PART);
}

static void find_end_scan(void *user)
{
    struct find_run *run = user;
    if (run->has_scan) {
        run->has_scan = false;
        quota_release(run->call->gateway->scans, run->call->caller.agent);
    }
}

/* False: no place is free for this agent. */
static bool find_begin_scan(struct find_run *run)
{
    struct call *call = run->call;
    if (!run->desc->scans || run->has_scan) {
        return true;
    }
    run->has_scan = quota_acquire(call->gateway->scans, call->caller.agent,
                                  find_scans(call->gateway)) == NG_OK;
    return run->has_scan;
}

/* ---- the hits of one kind ---- */

/* Folded text in call memory; {NULL, 0}: out of memory. */
static struct ng_str find_folded(struct call *call, struct ng_str text)
{
    struct buf folded;
    struct ng_str copy = STR_NONE;
    buf_init(&folded, RESOURCE_URI_MAX);
    if (utf8_fold(&folded, str_or(text, ng_str_of(""))) == NG_OK) {
        copy = arena_copy(&call->arena, str_make(buf_cstr(&folded), folded.len));
    } else if (folded.rc == NG_ETOOLARGE) {
        copy = ng_str_of("");
    }
    buf_done(&folded);
    return copy;
}

static struct ng_str find_uri(struct find_run *run, struct ng_str id)
{
    struct buf uri;
    if (run->desc->kind == NULL) {
        return id;
    }
    buf_init(&uri, RESOURCE_URI_MAX);
    struct ng_str copy = STR_NONE;
    if (resource_uri_print(&uri, run->space, ng_str_of(run->desc->kind), id) == NG_OK) {
        copy = arena_copy(&run->call->arena, buf_str(&uri));
    }
    buf_done(&uri);
    return copy;
}

static int find_keep(struct find_run *run, const struct ng_hit *hit)
{
    struct arena *arena = &run->call->arena;
    struct find_hit *kept = arena_zalloc(arena, sizeof(*kept));
    struct ng_str title = find_folded(run->call, str_or(hit->title, hit->id));
    if (kept == NULL || title.data == NULL) {
        return call_no_memory(run->call);
    }
    kept->hit = *hit;
    kept->hit.id = arena_copy(arena, hit->id);
    kept->hit.title = arena_copy(arena, str_or(hit->title, hit->id));
    kept->hit.agent = arena_copy(arena, hit->agent);
    kept->hit.excerpt = arena_copy(arena, hit->excerpt);
    kept->hit.kind = find_kind(run->desc);
    kept->hit.space = run->space;
    kept->hit.exact = hit->exact || str_equal(title, run->query);
    kept->hit.uri = find_uri(run, kept->hit.id);
    if (kept->hit.uri.data == NULL || arena->failed) {
        return call_no_memory(run->call);
    }
    *run->last = kept;
    run->last = &kept->next;
    run->count++;
    return NG_OK;
}

static int find_add(void *user, const struct ng_hit *hit)
{
    struct find_run *run = user;
    struct ng_hit mine;
    if (run->rc == NG_OK) {
        run->rc = abi_take(run->call, &abi_hit, &mine, hit);
    }
    if (run->rc == NG_OK && mine.id.data == NULL) {
        run->rc = call_fail(run->call, NG_EINTERNAL, "a hit of plugin %s has no id",
                            run->plugin->desc.name);
    }
    if (run->rc != NG_OK || run->count >= run->find.limit) {
        return 1;
    }
    run->rc = find_keep(run, &mine);
    return run->rc != NG_OK || run->count >= run->find.limit;
}

/* Passes the kept hits to the plugin that searches. */
static void find_give(struct find_run *run)
{
    struct ng_find *all = &run->all;
    all->total += u64_max(run->find.total, run->count);
    all->incomplete = all->incomplete || run->find.incomplete;
    for (const struct find_hit *hit = run->first; hit != NULL; hit = hit->next) {
        if (all->hit(all->user, &hit->hit) != 0) {
            return;
        }
    }
}

/* ---- kind by kind ---- */

static bool find_wants(const struct find_run *run, const struct ng_resources *desc)
{
    bool wants = run->all.kind_count == 0;
    for (size_t i = 0; i < run->all.kind_count && !wants; i++) {
        wants = str_equal(run->all.kinds[i], find_kind(desc));
    }
    return wants && desc->find != NULL;
}

/* The space in which a call of the plugin's tools would be; without tools, that of this call.
 */
static bool find_pick_space(struct find_run *run)
{
    struct call *call = run->call;
    struct ng_caller before = call->caller;
    const struct tool *tool = run->plugin->tool_count > 0 ? run->plugin->tools[0] : call->tool;
    int rc = dispatch_space_pick(call, tool);
    run->space = call->caller.space;
    call->caller = before;
    return rc == NG_OK;
}

static bool find_may(struct find_run *run)
{
    return run->plugin->started && dispatch_sees_plugin(run->call, run->plugin) &&
           dispatch_configured(run->call, run->plugin) && find_pick_space(run);
}

/* The next kind to search. False: there are no more. */
static bool find_next(struct find_run *run)
{
    while (
        registry_resource(run->call->gateway->registry, run->index, &run->plugin, &run->desc)) {
        if (find_wants(run, run->desc) && find_may(run)) {
            return true;
        }
        run->index++;
    }
    return false;
}

/* The kind failed: the others are searched all the same. */
static int find_failed(struct find_run *run, int rc)
{
    struct call *call = run->call;
    if (rc == NG_ECANCELLED || host_cancelled(&call->pub) || call_lacks_memory(call)) {
        return rc;
    }
    run->failed++;
    run->all.incomplete = true;
    log_write(NG_LOG_WARNING, "find", "the search of `%.*s` (plugin %s) failed: %.*s",
              (int)find_kind(run->desc).len, find_kind(run->desc).data, run->plugin->desc.name,
              (int)call->staged.message.len,
              call->staged.message.data != NULL ? call->staged.message.data : "");
    return NG_OK;
}

/* A kind that reads files shares the time with those that follow. */
static int64_t find_scan_until(const struct find_run *run)
{
    struct plugin *plugin = NULL;
    const struct ng_resources *desc = NULL;
    int64_t now = clock_monotonic_ns();
    int64_t scans = 1;
    for (size_t i = run->index + 1;
         registry_resource(run->call->gateway->registry, i, &plugin, &desc); i++) {
        scans += desc->scans && find_wants(run, desc);
    }
    return run->all.scan_until_ns > now ? now + (run->all.scan_until_ns - now) / scans
                                        : run->all.scan_until_ns;
}

/* Searches the present kind. NG_PENDING: it is searched again. */
static int find_search(struct find_run *run, ng_step_fn *again)
{
    struct call *call = run->call;
    if (!find_begin_scan(run)) {
        run->all.incomplete = true;
        return NG_OK;
    }
    run->first = NULL;
    run->last = &run->first;
    run->count = 0;
    run->rc = NG_OK;
    run->find = (struct ng_find){
        .size = sizeof(run->find),
        .text = run->all.text,
        .limit = u32_min(run->all.limit, FIND_HITS_MAX),
        .scan_until_ns = run->desc->scans ? find_scan_until(run) : run->all.scan_until_ns,
        .hit = find_add,
        .user = run,
    };
    call_gives(call);
    int rc = run->desc->find(run->plugin->self, &call->pub, run->space, &run->find);
    if (rc == NG_PENDING && run->rc == NG_OK) {
        return call_gave_pending(call, again, run);
    }
    find_end_scan(run);
    rc = run->rc != NG_OK ? run->rc : rc;
    if (rc != NG_OK) {
        return find_failed(run, rc);
    }
    run->done++;
    find_give(run);
    return NG_OK;
}

static int find_end(struct ng_call *pub, void *user)
{
    struct find_run *run = user;
    (void)pub;
    ng_fill(run->asked, &run->all);
    return run->step(&run->call->pub, run->all.user);
}

static int find_step(struct ng_call *pub, void *user)
{
    struct find_run *run = user;
    struct call *call = run->call;
    struct result before = call->staged;
    while (find_next(run)) {
        if (call->plugin != run->plugin) {
            call->plugin = run->plugin; /* its mutex, and its share of the workers */
            return dispatch_continue(pub, find_step, run);
        }
        int rc = find_search(run, find_step);
        if (rc != NG_OK) {
            call->plugin = rc == NG_PENDING ? call->plugin : run->own;
            return rc;
        }
        call->staged = before;
        run->index++;
    }
    call->plugin = run->own;
    if (run->done == 0 && run->failed > 0) {
        return call_fail(call, NG_EFAILED,
                         "no kind could be searched; the log of the gateway says why");
    }
    return dispatch_continue(pub, find_end, run);
}

/* ---- the beginning ---- */

/* A wanted kind that no plugin has. */
static struct ng_str find_unknown(const struct find_run *run)
{
    for (size_t i = 0; i < run->all.kind_count; i++) {
        struct plugin *plugin = NULL;
        const struct ng_resources *desc = NULL;
        size_t at = 0;
        while (registry_resource(run->call->gateway->registry, at, &plugin, &desc) &&
               !str_equal(run->all.kinds[i], find_kind(desc))) {
            at++;
        }
        if (!registry_resource(run->call->gateway->registry, at, &plugin, &desc)) {
            return run->all.kinds[i];
        }
    }
    return STR_NONE;
}

int host_find(struct ng_call *pub, struct ng_find *find, ng_step_fn *step)
{
    struct call *call = call_of(pub);
    struct find_run *run = arena_zalloc(&call->arena, sizeof(*run));
    if (run == NULL) {
        return call_no_memory(call);
    }
    run->call = call;
    run->asked = find;
    run->step = step;
    run->own = call->plugin;
    int rc = abi_take(call, &abi_find, &run->all, find);
    if (rc == NG_OK && run->all.hit == NULL) {
        rc = call_fail(call, NG_EINTERNAL, "a search needs its function (`hit`)");
    }
    if (rc == NG_OK) {
        rc = call_pin(call, find_end_scan, run);
    }
    if (rc != NG_OK) {
        return rc;
    }
    run->query = find_folded(call, run->all.text);
    if (run->query.data == NULL) {
        return call_no_memory(call);
    }
    run->all.total = 0;
    run->all.incomplete = false;
    run->all.unknown_kind = find_unknown(run);
    return dispatch_continue(pub, find_step, run);
}
