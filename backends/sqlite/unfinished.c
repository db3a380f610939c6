/* SPDX-License-Identifier: MIT */
/* unfinished.c - stands in for upkeep, export, import and verify until they are here. */
#include "db.h"

#define UNFINISHED __attribute__((weak))

UNFINISHED int maintain_run(void *self, struct ng_call *call, int64_t now_ms, int64_t keep_ms,
                            bool (*pinned)(void *user, const struct ng_key *key,
                                           uint64_t revision),
                            void *user)
{
    (void)self;
    (void)call;
    (void)now_ms;
    (void)keep_ms;
    (void)pinned;
    (void)user;
    return NG_OK;
}

UNFINISHED int export_all(void *self, struct ng_call *call, ng_record_fn *record, void *user)
{
    (void)self;
    (void)record;
    (void)user;
    return ng_fail(call, NG_EUNAVAILABLE, "export is not offered yet");
}

UNFINISHED int import_begin(void *self, struct ng_call *call)
{
    (void)self;
    return ng_fail(call, NG_EUNAVAILABLE, "import is not offered yet");
}

UNFINISHED int import_record(void *self, struct ng_call *call, const struct ng_record *record)
{
    (void)self;
    (void)record;
    return ng_fail(call, NG_EUNAVAILABLE, "import is not offered yet");
}

UNFINISHED int import_end(void *self, struct ng_call *call, bool keep)
{
    (void)self;
    (void)keep;
    return ng_fail(call, NG_EUNAVAILABLE, "import is not offered yet");
}

UNFINISHED int verify_run(void *self, struct ng_call *call, ng_finding_fn *finding, void *user)
{
    (void)self;
    (void)finding;
    (void)user;
    return ng_fail(call, NG_EUNAVAILABLE, "verify is not offered yet");
}

UNFINISHED void import_abandon(struct db *db)
{
    (void)db;
}
