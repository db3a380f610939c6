/* SPDX-License-Identifier: MIT */
/* cut_line.h - a line to a MongoDB server that breaks for good before a certain message: what
 * the server has by then is what a kill of the client at that step leaves. */
#ifndef NOTEGATE_TEST_CUT_LINE_H
#define NOTEGATE_TEST_CUT_LINE_H

#include <stdbool.h>
#include <stddef.h>

struct cut_line;

/* Is this message one that counts? */
typedef bool cut_counts_fn(const char *message, size_t len);

/* To the server at that port of this machine. The line breaks before the message number
 * `passes` + 1 of those that count. */
struct cut_line *cut_line_new(int server_port, size_t passes, cut_counts_fn *counts);
int cut_line_port(const struct cut_line *line);
/* Ends it. True: it had broken. */
bool cut_line_free(struct cut_line *line);

#endif
