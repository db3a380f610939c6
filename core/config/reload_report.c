/* SPDX-License-Identifier: MIT */
/* reload_report.c - collects the changes of a reload, logs each, and prints them as JSON. */
#include "reload_report.h"

#include "core/base/log.h"
#include "core/base/str.h"

void reload_report_init(struct reload_report *report)
{
    memset(report, 0, sizeof(*report));
    arena_init(&report->arena, RELOAD_MEMORY_MAX);
    buf_init(&report->error, RELOAD_ERROR_MAX);
    report->last = &report->first;
}

void reload_report_done(struct reload_report *report)
{
    buf_done(&report->error);
    arena_done(&report->arena);
}

void reload_tell(struct reload_report *report, const char *key, bool holds, const char *format,
                 ...)
{
    struct buf text;
    va_list args;
    buf_init(&text, RELOAD_ERROR_MAX);
    va_start(args, format);
    (void)buf_vprintf(&text, format, args);
    va_end(args);
    /* Also what a log.level just raised would hide: a change that does not hold. */
    log_write(holds ? NG_LOG_INFO : NG_LOG_WARNING, "serve", "reload: %s: %s", key,
              buf_cstr(&text));
    struct reload_change *change = arena_zalloc(&report->arena, sizeof(*change));
    if (change != NULL && report->count < RELOAD_CHANGES_MAX) {
        change->key = arena_copy(&report->arena, ng_str_of(key));
        change->text = arena_copy(&report->arena, buf_str(&text));
        change->holds = holds;
        *report->last = change;
        report->last = &change->next;
        report->count++;
    }
    buf_done(&text);
}

int reload_print(const struct reload_report *report, struct buf *out)
{
    bool restart = false;
    (void)buf_add_c(out, "{\"changes\":[");
    for (const struct reload_change *at = report->first; at != NULL; at = at->next) {
        (void)buf_add_c(out, at == report->first ? "{\"key\":" : ",{\"key\":");
        (void)buf_add_json(out, at->key);
        (void)buf_printf(out, ",\"holds\":%s,\"message\":", at->holds ? "true" : "false");
        (void)buf_add_json(out, at->text);
        (void)buf_add_char(out, '}');
        restart = restart || !at->holds;
    }
    return buf_printf(out, "],\"restart_needed\":%s}", restart ? "true" : "false");
}
