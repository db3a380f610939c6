/* SPDX-License-Identifier: MIT */
/* nb_scan.h - the JSON parser under the index of a notebook. */
#ifndef NOTEGATE_PLUGIN_CELLS_NB_SCAN_H
#define NOTEGATE_PLUGIN_CELLS_NB_SCAN_H

#include "nb.h"

struct nb_scan {
    struct ng_str bytes;
    size_t start, at; /* start: after a byte order mark */
    unsigned depth;
    struct nb *nb;
    struct nb_error *error;
    struct nb_error bad_cell; /* the first one; reported only for nbformat 4 */
    size_t cells_size;
    bool has_cells, has_format, has_worksheets, cells_no_array;
    struct nb_span format, minor;
};

/* Parsers return false after setting `error`. They begin at the first byte of a value and end
 * after it. */

/* Parses the value of a member; `name` with its quotes. */
typedef bool nb_member_fn(struct nb_scan *scan, struct nb_span name, void *user);

bool nb_scan_fail(struct nb_scan *scan, enum nb_fault fault, size_t at, const char *what);
void nb_scan_space(struct nb_scan *scan);
bool nb_scan_is(const struct nb_scan *scan, char c);
bool nb_scan_value(struct nb_scan *scan, struct nb_span *ret);
bool nb_scan_object(struct nb_scan *scan, nb_member_fn *member, void *user,
                    struct nb_span *ret);
bool nb_scan_array(struct nb_scan *scan, bool (*element)(struct nb_scan *scan, void *user),
                   void *user, struct nb_span *ret);

#endif
