/* SPDX-License-Identifier: MIT */
/*
 * reload.h - the configuration read again while the gateway runs, on SIGHUP or when an admin
 * asks.
 *
 * One thread reloads, the one that waits for signals: a request over HTTP sends it SIGHUP and
 * gets the report when the reload is done.
 */
#ifndef NOTEGATE_API_RELOAD_H
#define NOTEGATE_API_RELOAD_H

#include "core/call/gateway.h"
#include "core/config/config.h"
#include "core/config/reload_report.h"

/* Requests that wait for one reload. */
#define RELOAD_WAITERS_MAX 64

struct reload;
struct http_server;

/* Called in the thread that will run the reloads. input: lent for good. */
int reload_new(struct gateway *gateway, const struct config_input *input, struct reload **ret);
/* No request may come any more. NULL is a no-op. */
void reload_free(struct reload *reload);
/* The transport whose certificate, names and sessions follow the configuration. */
void reload_attach(struct reload *reload, struct http_server *server);
/*
 * Reads the configuration again, applies the changes that need no restart, logs each change and
 * answers the waiting requests. That thread only. An invalid configuration changes nothing.
 * `report` (initialised), or NULL.
 */
void reload_run(struct reload *reload, struct reload_report *report);
/* From a step of `call`: makes that thread run a reload. NG_PENDING: the call ends with the
 * report as its reply. NG_EBUSY: too many ask, or the gateway stops. */
int reload_ask(struct reload *reload, struct call *call);
/* The configuration in effect, as config_print() has it. Any thread. The error of `out`. */
int reload_print_config(struct reload *reload, struct buf *out);
/* Ends reloads: waiting requests are answered with BUSY. */
void reload_end(struct reload *reload);
/* shutdown_timeout as it holds now. */
int64_t reload_shutdown_ms(const struct reload *reload);
/* shutdown_delay as it holds now. */
int64_t reload_delay_ms(const struct reload *reload);

/* Raises the limit of open files as far as it goes; fewer connections where that is not enough
 * (a warning says so). */
void reload_fit_files(struct gateway *gateway);

#endif
