/* SPDX-License-Identifier: MIT */
/* gateway_open.h - opens and closes a gateway, sets its limits, and owns the data directory. */
#ifndef NOTEGATE_CORE_GATEWAY_OPEN_H
#define NOTEGATE_CORE_GATEWAY_OPEN_H

#include "core/call/gateway.h"

enum gateway_parts {
    GATEWAY_DESCRIBE = 0, /* modules and configuration only: tools, check --help-config */
    GATEWAY_FULL = 1      /* data directory, store, files, plugins started */
};

/*
 * The data directory's owner: NG_OK (locked until gateway_close), or NG_EBUSY with a sentence
 * naming the process that has it. Waits up to wait_ms.
 */
int gateway_lock_data_dir(const char *data_dir, int64_t wait_ms, int *ret_fd,
                          struct buf *error);
/* The configured data directory, made with mode 0700 if `make`. To be freed. */
char *gateway_data_dir(const struct config *config, bool make, struct buf *error);

/* Gives an empty data directory of this user the mode 0700. True: it had another one. */
bool gateway_make_private(const char *data_dir);

/* Checks that the data directory belongs to this user and is closed to other users. NG_OK also
 * if it does not exist yet. NG_EFORBIDDEN, NG_EUNAVAILABLE: `error` has the reason and a way
 * out. */
int gateway_check_data_dir(const char *data_dir, struct buf *error);

/* Reads all limits from the configuration, at the start. */
void gateway_read_limits(struct gateway *gateway);
/* Reads those limits that a reload can change, and history.keep. */
void gateway_take_limits(struct gateway *gateway, const struct config *config);
/* At the start: opens the file service with the roots of this configuration (by default `files`
 * in the data directory). In a reload: replaces the roots, and opens each again. */
int gateway_set_files(struct gateway *gateway, struct call *call, const struct config *config);
/* Opens everything. `error`: one or several lines. On NG_OK the gateway owns config. */
int gateway_open(struct config *config, enum gateway_parts parts, int64_t wait_ms,
                 struct gateway **ret, struct buf *error);
/* It serves from now on: the audit log has an entry of that, and later one of its stop. */
void gateway_tell_start(struct gateway *gateway);
/* Refuses new calls with BUSY, and waits at most wait_ms for the running ones. False: some are
 * still running. */
bool gateway_drain(struct gateway *gateway, int64_t wait_ms);
/* Closes in the reverse order. NULL is a no-op. */
void gateway_close(struct gateway *gateway);

#endif
