/* SPDX-License-Identifier: MIT */
/* test_files_rig.h - a gateway with the file editor and a root of its own, and looks at what
 * it left there. */
#ifndef NOTEGATE_TEST_FILES_RIG_H
#define NOTEGATE_TEST_FILES_RIG_H

#include "harness.h"

#include "core/base/buf.h"

#define PATH_SIZE 1024

extern const char *const sets[];
int setup(void **state);
int teardown(void **state);
/* The path of a file in the root, written into `path` (PATH_SIZE). */
struct ng_str in_root(struct harness *harness, char *path, const char *name);
void put(struct harness *harness, const char *name, const char *text);
/* Its content, or NULL; free() it. */
char *get(struct harness *harness, const char *name);
void has(struct harness *harness, const char *name, const char *text);
/* State of an edit that did not end. */
size_t count_temps(struct harness *harness);
size_t count_intents(struct harness *harness);
/* A call of the editor: `args` are the members behind the path. */
struct answer edit(struct harness *harness, const char *args, const char *name);
void edit_fails(struct harness *harness, const char *args, const char *name, const char *code,
                const char *part);
/* A call with a key, as it is when its tool runs. */
struct call *keyed_call(struct harness *harness);
void edit_works(struct harness *harness, const char *args, const char *name);
/* copy, move: both names are in the root. */
void transfers(struct harness *harness, const char *command, const char *from, const char *to);

#define APPEND "\"command\":\"insert\",\"insert_line\":1,\"new_str\":\"x\""
#define CREATE "\"command\":\"create\",\"file_text\":\"new\""
#define INSERT(line, text)                                                                     \
    "\"command\":\"insert\",\"insert_line\":" #line ",\"new_str\":\"" text "\""
#define WRITE(text) "\"command\":\"create\",\"file_text\":\"" text "\""
#define DELETE "\"command\":\"delete\""
#define UNDO "\"command\":\"undo_edit\""

/* The tools of a plugin for moves with groups: `group_move` {from, to, edits: [path], find,
 * put, meddle?} replaces `find` in the edited files; `group_undo` {path}; `group_edit` {path,
 * find, put, meddle?} replaces it in one file. With `meddle` another program appends a line to
 * that file while the first edit is made. */
void add_group_tools(struct harness *harness);

/* ---- versions */

/* Those of a file, oldest first, one a line:
 *   NUMBER ACTION AGENT[ RUN REQUEST] "CONTENT" +ADDED-REMOVED[ from PATH@NUMBER][ gap]
 *   NUMBER ACTION AGENT[ RUN REQUEST] gone +0-REMOVED[ to PATH][ gap]
 * without `prefix` where a path begins with it. Asserts what all versions have in common. */
void versions_print(struct harness *harness, const char *path, const char *prefix,
                    struct buf *out);
/* Those of a file in the root. */
void versions_are(struct harness *harness, const char *name, const char *text);
/* Is the newest version as the file is? Without a version it must not be there. */
bool versions_end_with(struct harness *harness, const char *path);

void close_gateway(struct harness *harness);
/* As the harness does, in whatever process. */
void open_gateway(struct harness *harness);
void pause_us(long us);

#endif
