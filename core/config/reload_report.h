/* SPDX-License-Identifier: MIT */
/* reload_report.h - the changes that one reload of the configuration made or could not make. */
#ifndef NOTEGATE_RELOAD_REPORT_H
#define NOTEGATE_RELOAD_REPORT_H

#include "core/base/arena.h"
#include "core/base/buf.h"

/* Changes that one report lists; further changes take effect without being listed. */
#define RELOAD_CHANGES_MAX 256
/* Longest sentence of a report; memory of one. */
#define RELOAD_ERROR_MAX ((size_t)64 * 1024)
#define RELOAD_MEMORY_MAX ((size_t)1024 * 1024)

/* One changed key. Memory of the report. */
struct reload_change {
    struct ng_str key, text;
    bool holds; /* false: it needs a restart, or it failed */
    struct reload_change *next;
};

struct reload_report {
    int rc;           /* NG_OK; else nothing has changed, and `error` says why */
    struct buf error; /* one sentence or several lines */
    struct reload_change *first, **last;
    size_t count;
    struct arena arena;
};

void reload_report_init(struct reload_report *report);
void reload_report_done(struct reload_report *report);
/* Adds a change and logs it. */
void reload_tell(struct reload_report *report, const char *key, bool holds, const char *format,
                 ...) __attribute__((format(printf, 4, 5)));
/* {"changes":[{"key","holds","message"}],"restart_needed":false} */
int reload_print(const struct reload_report *report, struct buf *out);

#endif
