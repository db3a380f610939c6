/* SPDX-License-Identifier: MIT */
/* find_files.h - the text files of a space, newest first: the scan of kinds of resources that
 * are files. */
#ifndef NOTEGATE_CORE_FIND_FILES_H
#define NOTEGATE_CORE_FIND_FILES_H

#include "notegate/plugin.h"

/* Files of one scan, bytes of their paths, bytes of one file, levels of folders. At a limit the
 * search is incomplete. */
#define FIND_FILES_MAX ((size_t)200000)
#define FIND_FILES_PATHS_MAX ((size_t)64 * 1024 * 1024)
#define FIND_FILE_BYTES_MAX ((uint64_t)16 * 1024 * 1024)
#define FIND_FILES_DEPTH 64

/* A file. Borrowed for the function that gets it. */
struct find_file {
    struct ng_str path; /* absolute */
    struct ng_str name; /* its last part */
    int64_t modified_ms;
    struct ng_str text; /* valid UTF-8 without NUL */
};

/* Return NG_OK to continue; FIND_FILES_END to end the scan; an error fails it. */
#define FIND_FILES_END 1
typedef int find_file_fn(void *user, const struct find_file *file);

/* Which files: those whose names end so, or with `others` all except those. */
struct find_files_wanted {
    const char *ending;
    bool others;
};

/*
 * Passes the files below the roots of the space to `fn`: first those whose name is the searched
 * text, then newest first. Hidden files, links, binary files and unreadable ones are left out.
 * Ends at find->scan_until_ns; sets find->incomplete. Only where the call may block.
 */
int find_files(struct ng_call *call, struct ng_str space, struct ng_find *find,
               const struct find_files_wanted *wanted, find_file_fn *fn, void *user);

#endif
