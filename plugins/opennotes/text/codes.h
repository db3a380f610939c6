/* SPDX-License-Identifier: MIT */
/* codes.h - the error codes of the plugin. */
#ifndef OPENNOTES_CODES_H
#define OPENNOTES_CODES_H

#include <notegate/plugin.h>

/* The plugin's own codes, in the order of its descriptor. Others are the core's: INVALID_PARAMS
 * is NG_EINVAL, PATH_TRAVERSAL is NG_ETRAVERSAL, QUERY_TIMEOUT is NG_EQUERYTIMEOUT. */
#define NOTES_ENOTEBOOK (NG_EPLUGIN - 0)   /* NOTEBOOK_NOT_FOUND */
#define NOTES_ENOTE (NG_EPLUGIN - 1)       /* NOTE_NOT_FOUND */
#define NOTES_EVIEW (NG_EPLUGIN - 2)       /* VIEW_NOT_FOUND */
#define NOTES_ETEMPLATE (NG_EPLUGIN - 3)   /* TEMPLATE_NOT_FOUND */
#define NOTES_ESECTION (NG_EPLUGIN - 4)    /* SECTION_NOT_FOUND */
#define NOTES_ESQL (NG_EPLUGIN - 5)        /* INVALID_SQL */
#define NOTES_EEXISTS (NG_EPLUGIN - 6)     /* NOTE_EXISTS */
#define NOTES_EPATH (NG_EPLUGIN - 7)       /* NOTE_INVALID_PATH */
#define NOTES_ECONFIG (NG_EPLUGIN - 8)     /* NOTEBOOK_CONFIG_ERROR */
#define NOTES_EVIEWPARAMS (NG_EPLUGIN - 9) /* VIEW_INVALID_PARAMS */
#define NOTES_ENOTTEXT (NG_EPLUGIN - 10)   /* NOT_TEXT */
#define NOTES_ENOHISTORY (NG_EPLUGIN - 11) /* NO_HISTORY */

/* The collection of the events of notes that tools write (struct ng_file_edit). */
#define NOTES_COLLECTION "notes"

#endif
