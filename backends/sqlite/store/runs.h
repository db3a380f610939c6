/* SPDX-License-Identifier: MIT */
/* runs.h - the runs with changes. */
#ifndef NOTEGATE_SQLITE_RUNS_H
#define NOTEGATE_SQLITE_RUNS_H

#include "notegate/backend.h"

/* See runs in struct ng_documents. */
int read_runs(void *self, struct ng_call *call, uint64_t since, uint64_t until, ng_run_fn *run,
              void *user);

#endif
