/* SPDX-License-Identifier: MIT */
/* upkeep.h - maintenance, purge, export, import and verification; see struct ng_documents. */
#ifndef NOTEGATE_SQLITE_UPKEEP_H
#define NOTEGATE_SQLITE_UPKEEP_H

#include "notegate/backend.h"

struct db;

int maintain_run(void *self, struct ng_call *call, int64_t now_ms, int64_t keep_ms,
                 bool (*pinned)(void *user, const struct ng_key *key, uint64_t revision),
                 void *user);
int purge_run(void *self, struct ng_call *call, const struct ng_key *key, uint64_t revision);
int purge_events(void *self, struct ng_call *call, const struct ng_key *key, uint64_t revision,
                 struct ng_str about, uint64_t since, uint64_t until, ng_event_fn *event,
                 void *user);
int purge_data(void *self, struct ng_call *call, const uint64_t *seqs, size_t count);
int purge_sweep(void *self, struct ng_call *call);
int export_all(void *self, struct ng_call *call, ng_record_fn *record, void *user);
int import_begin(void *self, struct ng_call *call);
int import_record(void *self, struct ng_call *call, const struct ng_record *record);
int import_end(void *self, struct ng_call *call, bool keep);
void import_abandon(struct db *db);
int verify_run(void *self, struct ng_call *call, ng_finding_fn *finding, void *user);

#endif
