/* SPDX-License-Identifier: MIT */
/* history.h - reads of the history of all documents; see struct ng_documents. */
#ifndef NOTEGATE_SQLITE_HISTORY_H
#define NOTEGATE_SQLITE_HISTORY_H

#include "notegate/backend.h"

int read_runs(void *self, struct ng_call *call, uint64_t since, uint64_t until, ng_run_fn *run,
              void *user);
int read_revision_at(void *self, struct ng_call *call, const struct ng_key *key, uint64_t seq,
                     int64_t time_ms, struct ng_kept *ret);
int read_trail(void *self, struct ng_call *call, const struct ng_trail *trail, uint64_t looks,
               ng_event_fn *event, void *user, uint64_t *ret_next);

#endif
