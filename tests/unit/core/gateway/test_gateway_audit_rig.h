/* SPDX-License-Identifier: MIT */
/* test_gateway_audit_rig.h - a gateway, and the entries of its audit log. */
#ifndef NOTEGATE_TEST_GATEWAY_AUDIT_RIG_H
#define NOTEGATE_TEST_GATEWAY_AUDIT_RIG_H

#include "harness.h"

/* Opens the gateway again, so that all entries are in the log, and returns them, a line each;
 * to be freed. NULL: there is no log. */
char *audit_text(struct harness *harness);
/* The lines of a text that have `what` in them. */
size_t audit_count(const char *text, const char *what);
/* The first of them, to be freed; a failure where there is none. */
char *audit_line(const char *text, const char *what);

#endif
