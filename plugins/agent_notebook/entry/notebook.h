/* SPDX-License-Identifier: MIT */
/* notebook.h - the state of the plugin, its error codes and the names of its collections. */
#ifndef NOTEGATE_AGENT_NOTEBOOK_NOTEBOOK_H
#define NOTEGATE_AGENT_NOTEBOOK_NOTEBOOK_H

#include <notegate/plugin.h>

/* The collections of entries, in the order of all lists. */
enum entry_collection { ENTRY_PAGES = 0, ENTRY_CODE = 1, ENTRY_RESEARCH = 2 };
#define ENTRY_COLLECTIONS 3
extern const char *const entry_collections[ENTRY_COLLECTIONS];

/* Error codes of the plugin, in the order of agent_notebook_codes. */
#define AGENT_NOTEBOOK_ENTRY_NOT_FOUND (NG_EPLUGIN - 0)
#define AGENT_NOTEBOOK_EDIT_NO_MATCH (NG_EPLUGIN - 1)
#define AGENT_NOTEBOOK_EDIT_AMBIGUOUS (NG_EPLUGIN - 2)
#define AGENT_NOTEBOOK_SECTION_NOT_FOUND (NG_EPLUGIN - 3)
#define AGENT_NOTEBOOK_VERSION_NOT_FOUND (NG_EPLUGIN - 4)

/* Limit of an entry with all its members: the limit of a MongoDB document, minus the overhead
 * of a backend. */
#define ENTRY_BYTES_MAX ((uint64_t)15 * 1024 * 1024)

struct read_receipts;
struct checkpoint_state;

struct agent_notebook {
    uint64_t max_size;  /* bytes of one content */
    uint32_t max_tags;  /* of one entry */
    uint32_t max_title; /* characters */
    struct read_receipts *receipts;
    struct checkpoint_state *checkpoint;
};

#endif
