/* SPDX-License-Identifier: MIT */
/* upkeep.h - maintenance, export, import, verification. */
#ifndef NOTEGATE_MONGO_UPKEEP_H
#define NOTEGATE_MONGO_UPKEEP_H

#include "../commit/commit.h"
#include "../read/read.h"

int maintain_run(void *self, struct ng_call *call, int64_t now_ms, int64_t keep_ms,
                 bool (*pinned)(void *user, const struct ng_key *key, uint64_t revision),
                 void *user);
int purge_run(void *self, struct ng_call *call, const struct ng_key *key, uint64_t revision);
int purge_events(void *self, struct ng_call *call, const struct ng_key *key, uint64_t revision,
                 struct ng_str about, uint64_t since, uint64_t until, ng_event_fn *event,
                 void *user);
int purge_data(void *self, struct ng_call *call, const uint64_t *seqs, size_t count);
int purge_sweep(void *self, struct ng_call *call);
int export_run(void *self, struct ng_call *call, ng_record_fn *record, void *user);
/* Frees the memory of an import that was not ended. */
void import_drop(struct mongo *db);
int import_begin(void *self, struct ng_call *call);
int import_record(void *self, struct ng_call *call, const struct ng_record *record);
int import_end(void *self, struct ng_call *call, bool keep);
int verify_run(void *self, struct ng_call *call, ng_finding_fn *finding, void *user);

#endif
