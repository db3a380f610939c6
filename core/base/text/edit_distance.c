/* SPDX-License-Identifier: MIT */
/* edit_distance.c - optimal string alignment (Damerau-Levenshtein without later edits of a
 * swapped pair). */
#include "edit_distance.h"

#include "core/base/minmax.h"
#include "core/base/str.h"

size_t edit_distance(struct ng_str a, struct ng_str b, size_t most)
{
    size_t rows[3][EDIT_DISTANCE_BYTES_MAX + 1]; /* of the last three letters of `a` */
    if (a.len > EDIT_DISTANCE_BYTES_MAX || b.len > EDIT_DISTANCE_BYTES_MAX) {
        return SIZE_MAX;
    }
    for (size_t j = 0; j <= b.len; j++) {
        rows[0][j] = j;
    }
    for (size_t i = 1; i <= a.len; i++) {
        const size_t *above = rows[(i - 1) % 3];
        size_t *row = rows[i % 3];
        char letter = str_lower(a.data[i - 1]);
        row[0] = i;
        for (size_t j = 1; j <= b.len; j++) {
            char other = str_lower(b.data[j - 1]);
            row[j] = above[j - 1] + (letter != other);
            row[j] = size_min(row[j], size_min(above[j], row[j - 1]) + 1);
            if (i > 1 && j > 1 && letter == str_lower(b.data[j - 2]) &&
                other == str_lower(a.data[i - 2])) {
                row[j] = size_min(row[j], rows[(i - 2) % 3][j - 2] + 1);
            }
        }
    }
    size_t distance = rows[a.len % 3][b.len];
    if (distance > most) {
        return SIZE_MAX;
    }
    return distance;
}
