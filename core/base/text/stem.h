/* SPDX-License-Identifier: MIT */
/* stem.h - the stem of an English word, so that a search finds its other forms. */
#ifndef NOTEGATE_CORE_STEM_H
#define NOTEGATE_CORE_STEM_H

#include <stddef.h>

/* Replaces a folded word by its Porter stem and returns its length. Words with other than
 * English letters stay, and so does the first letter. */
size_t word_stem(char *word, size_t len);

#endif
