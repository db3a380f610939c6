/* SPDX-License-Identifier: MIT */
/* test_file_editor_rig.h - a gateway with the file editor and a folder of files, in one case
 * or two roots. */
#ifndef NOTEGATE_TEST_FILE_EDITOR_RIG_H
#define NOTEGATE_TEST_FILE_EDITOR_RIG_H

#include "harness.h"

#define TEXT_MAX 16384
#define CAT "Here's the result of running `cat -n` on "
#define VIEW(path) "{\"command\":\"view\",\"path\":\"" path "\"}"
#define REPLACE(path, old, new)                                                                \
    "{\"command\":\"str_replace\",\"path\":\"" path "\",\"old_str\":\"" old                    \
    "\",\"new_str\":\"" new "\"}"

struct test {
    struct harness harness;
    char roots[300]; /* folder of the two roots, or "" */
    char root[320];
    char other[320];    /* the second root */
    char root_set[700]; /* "roots=..." */
    const char *sets[3];
};

/* Each "@" becomes the root; so it does in the arguments, texts and paths below. */
void expand(const struct test *test, const char *from, char *to, size_t size);
struct answer call(struct test *test, const char *args);
struct answer call_as(struct test *test, const char *agent, const char *args);
/* Calls that answer that text, fail with that sentence, or work. */
void ok(struct test *test, const char *args, const char *text);
void fails(struct test *test, const char *args, const char *code, const char *message);
void works(struct test *test, const char *args);
/* Files as other programs write and read them. */
void put_bytes(struct test *test, const char *path, const char *data, size_t len);
void put(struct test *test, const char *path, const char *text);
void has_bytes(struct test *test, const char *path, const char *data, size_t len);
void has(struct test *test, const char *path, const char *text);
bool exists(struct test *test, const char *path);
void make_dir(struct test *test, const char *path);
void make_link(struct test *test, const char *target, const char *path);
int setup(void **state);
int teardown(void **state);

#define INSERT(path, line, text)                                                               \
    "{\"command\":\"insert\",\"path\":\"" path "\",\"insert_line\":" #line                     \
    ",\"new_str\":\"" text "\"}"
#define REGEX(path, pattern, text)                                                             \
    "{\"command\":\"regex_replace\",\"path\":\"" path "\",\"pattern\":\"" pattern              \
    "\",\"new_str\":\"" text "\"}"
#define UNDO(path) "{\"command\":\"undo_edit\",\"path\":\"" path "\"}"
#define TRANSFER(command, from, to)                                                            \
    "{\"command\":\"" command "\",\"path\":\"" from "\",\"destination\":\"" to "\"}"

#endif
