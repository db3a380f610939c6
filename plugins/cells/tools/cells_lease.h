/* SPDX-License-Identifier: MIT */
/*
 * cells_lease.h - several gateways on one database: the kernel of a notebook runs on one of
 * them, and the lease, a document of the notebook, names that gateway.
 *
 * A gateway has the lease from before its first run of the notebook to the end of the kernel.
 * Another takes it over when that gateway is dead (host->gateway_find). If documents are not
 * shared there are no leases, and these functions do nothing.
 */
#ifndef NOTEGATE_PLUGIN_CELLS_LEASE_H
#define NOTEGATE_PLUGIN_CELLS_LEASE_H

#include "cells_runs.h"

/* Space of all leases: their ids identify files. */
#define CELLS_LEASES_SPACE "shared"
/* Kernels of other gateways that are listed. */
#define CELLS_OTHERS_MAX SUPERVISOR_KERNELS_MAX

/* Sets self->leases; NULL if documents are not shared. */
int cells_leases_open(struct cells *self, struct ng_call *call);
/* From then on the kernels are not used, and may be freed. NULL is a no-op, as below. */
void cells_leases_settle(struct cells_leases *leases);
/* Releases all leases, as far as the database answers. */
void cells_leases_close(struct cells_leases *leases);
/* struct kernels_options.watch; user: the leases. */
void cells_leases_watch(void *user, const char *notebook, bool exists);

/* Before a run: takes the lease, or fails the call with the gateway that has it
 * (CELLS_EELSEWHERE). NG_OK: cells_lease_leave() must follow. ret_losses: for
 * cells_lease_check(). */
int cells_lease_take(struct cells *self, struct ng_call *call, struct ng_str notebook,
                     unsigned *ret_losses);
void cells_lease_leave(struct cells *self, const char *notebook);
/* Before the outputs of a run are saved: had this gateway the lease all the time? As far as the
 * database knows; else the call fails as above, and the kernel is ended. */
int cells_lease_check(struct cells *self, struct ng_call *call, struct ng_str notebook,
                      unsigned losses);
/* For a notebook without a kernel here: fails the call if another gateway has one. */
int cells_lease_find(struct cells *self, struct ng_call *call, struct ng_str notebook);

/* Makes a handle of 32 hex digits name its gateway. */
void cells_lease_name_run(struct cells *self, char id[CELLS_RUN_ID_SIZE]);
/* For a handle that is unknown here: fails the call if a living gateway has made it. */
int cells_lease_find_run(struct cells *self, struct ng_call *call, struct ng_str id);

struct cells_other {
    struct ng_str notebook, gateway, where;
};

/* The kernels of other gateways, at most CELLS_OTHERS_MAX, in call memory. */
int cells_lease_others(struct cells *self, struct ng_call *call, struct cells_other **ret,
                       size_t *ret_count);

#endif
