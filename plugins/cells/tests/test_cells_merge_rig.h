/* SPDX-License-Identifier: MIT */
/* test_cells_merge_rig.h - notebooks for the tests of merges: written short, or random. */
#ifndef NOTEGATE_TEST_CELLS_MERGE_RIG_H
#define NOTEGATE_TEST_CELLS_MERGE_RIG_H

#include "content/notebook_merge.h"
#include "test_nb.h"

#define RIG_CELLS_MAX 40
#define RIG_TEXT_MAX 400

struct rig_cell {
    char id[24];
    bool code;
    char source[RIG_TEXT_MAX];
    char meta[RIG_TEXT_MAX]; /* value of a member of metadata; "": none */
    char out[RIG_TEXT_MAX];  /* text of an output; "": none */
    unsigned run;            /* execution_count; 0: null */
};

struct rig_notebook {
    struct rig_cell cells[RIG_CELLS_MAX];
    size_t count;
    unsigned minor;  /* below 5 the cells have no ids */
    unsigned kernel; /* a value of the notebook's metadata; 0: none */
    unsigned layout;
};

/* Ways to lay out a file. */
#define RIG_LAYOUTS 5

/* Cells such as "a one|two>out;b# Text@meta": the id, # for markdown, the source with | for
 * line feeds, then metadata behind @ and an output behind >. */
void rig_read(struct rig_notebook *ret, const char *cells);
struct nb_text rig_write(const struct rig_notebook *notebook);
/* The file of rig_read() in Jupyter's layout. */
struct nb_text rig_file(const char *cells);

/* Printed, so that a failure can be repeated: NOTEGATE_TEST_SEED, or 1. */
unsigned rig_seed(void);
unsigned rig_below(unsigned *seed, unsigned limit);
void rig_random(unsigned *seed, struct rig_notebook *ret);
/* Changes source, metadata or outputs of the cell. */
void rig_change_cell(unsigned *seed, struct rig_notebook *notebook, size_t index);
/* Any change; *inout_next numbers new cells. */
void rig_change(unsigned *seed, struct rig_notebook *notebook, unsigned *inout_next);

/* Fails unless the text is a notebook as nbformat has it. */
void rig_check_valid(struct ng_str text, struct nb *ret);

#endif
