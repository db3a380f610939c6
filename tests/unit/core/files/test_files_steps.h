/* SPDX-License-Identifier: MIT */
/* test_files_steps.h - the changes that test_files_steps.c cuts off at each of their steps. */
#ifndef NOTEGATE_TEST_FILES_STEPS_H
#define NOTEGATE_TEST_FILES_STEPS_H

#include "test_files_rig.h"

struct state {
    const char *f, *g; /* contents, NULL: not there */
    const char *h;     /* another file, which leads to f */
    const char *i;     /* f, once its folder has moved to that of g */
};

/* Commands on the files f and g of one round; `on`: which of them. */
struct command {
    char on;
    const char *args; /* %s: the other one's path; NULL and `on`: what moves, with its group */
};

struct scene {
    const char *name;
    struct command before[3], change;
    bool apart, mounted, refused;
    bool linked; /* f has a second name */
    struct state was, is;
    /* Result of an undo of the last change, from either state. */
    struct state undone_was, undone_is;
};

#define CREATE_ONE "\"command\":\"create\",\"file_text\":\"one\\n\""
#define INSERT_X "\"command\":\"insert\",\"insert_line\":1,\"new_str\":\"x\""
#define LINE "a line that is long enough to make, with others of its kind, some sectors\n"
#define LINES_4 LINE LINE LINE LINE
#define LINES_16 LINES_4 LINES_4 LINES_4 LINES_4
#define JSON_LINE "a line that is long enough to make, with others of its kind, some sectors\\n"
#define JSON_4 JSON_LINE JSON_LINE JSON_LINE JSON_LINE
#define JSON_16 JSON_4 JSON_4 JSON_4 JSON_4
#define CREATE_LONG "\"command\":\"create\",\"file_text\":\"" JSON_16 "\""
#define INSERT_LONG "\"command\":\"insert\",\"insert_line\":0,\"new_str\":\"" JSON_4 "x\\ny\""
#define LONG LINES_16
#define LONGER LINES_4 "x\ny\n" LINES_16
#define COPY "\"command\":\"copy\",\"destination\":\"%s\""
#define MOVE "\"command\":\"move\",\"destination\":\"%s\""
#define CREATE_TWO "\"command\":\"create\",\"file_text\":\"two\\n\""
/* `f` moves to `g`, or its folder `F` to `G`; "o" becomes "00" in f and h. */
#define WITH_GROUP NULL
#define NOTHING                                                                                \
    {                                                                                          \
        NULL, NULL                                                                             \
    }

static const struct scene scenes[] = {
    {
        .name = "create",
        .change = {'f', CREATE_ONE},
        .was = NOTHING,
        .is = {"one\n", NULL},
        .undone_is = NOTHING,
    },
    {
        .name = "edit",
        .before = {{'f', CREATE_ONE}},
        .change = {'f', INSERT_X},
        .was = {"one\n", NULL},
        .is = {"one\nx\n", NULL},
        .undone_was = NOTHING,
        .undone_is = {"one\n", NULL},
    },
    {
        .name = "edit of a file with two names",
        .before = {{'f', CREATE_LONG}},
        .change = {'f', INSERT_LONG},
        .linked = true,
        .was = {LONG, NULL},
        .is = {LONGER, NULL},
        .undone_was = NOTHING,
        .undone_is = {LONG, NULL},
    },
    {
        .name = "undo of an edit of a file with two names",
        .before = {{'f', CREATE_LONG}, {'f', INSERT_LONG}},
        .change = {'f', UNDO},
        .linked = true,
        .was = {LONGER, NULL},
        .is = {LONG, NULL},
        .undone_was = {LONG, NULL},
        .undone_is = NOTHING,
    },
    {
        .name = "edit of a mount",
        .before = {{'f', CREATE_LONG}},
        .change = {'f', INSERT_LONG},
        .mounted = true,
        .was = {LONG, NULL},
        .is = {LONGER, NULL},
        .undone_was = NOTHING,
        .undone_is = {LONG, NULL},
    },
    {
        .name = "undo of an edit of a mount",
        .before = {{'f', CREATE_LONG}, {'f', INSERT_LONG}},
        .change = {'f', UNDO},
        .mounted = true,
        .was = {LONGER, NULL},
        .is = {LONG, NULL},
        .undone_was = {LONG, NULL},
        .undone_is = NOTHING,
    },
    {
        .name = "copy",
        .before = {{'f', CREATE_ONE}},
        .change = {'f', COPY},
        .was = {"one\n", NULL},
        .is = {"one\n", "one\n"},
        .undone_was = NOTHING,
        .undone_is = {"one\n", NULL},
    },
    {
        .name = "move",
        .before = {{'f', CREATE_ONE}},
        .change = {'f', MOVE},
        .was = {"one\n", NULL},
        .is = {NULL, "one\n"},
        .undone_was = NOTHING,
        .undone_is = {"one\n", NULL},
    },
    {
        .name = "move to another file system",
        .before = {{'f', CREATE_ONE}},
        .change = {'f', MOVE},
        .apart = true,
        .was = {"one\n", NULL},
        .is = {NULL, "one\n"},
        .undone_was = NOTHING,
        .undone_is = {"one\n", NULL},
    },
    {
        .name = "undo of an edit",
        .before = {{'f', CREATE_ONE}, {'f', INSERT_X}},
        .change = {'f', UNDO},
        .was = {"one\nx\n", NULL},
        .is = {"one\n", NULL},
        .undone_was = {"one\n", NULL},
        .undone_is = NOTHING,
    },
    {
        .name = "undo of a create",
        .before = {{'f', CREATE_ONE}},
        .change = {'f', UNDO},
        .was = {"one\n", NULL},
        .is = NOTHING,
        .undone_was = NOTHING,
    },
    {
        .name = "undo of a move",
        .before = {{'f', CREATE_ONE}, {'f', MOVE}},
        .change = {'g', UNDO},
        .was = {NULL, "one\n"},
        .is = {"one\n", NULL},
        .undone_was = {"one\n", NULL},
        .undone_is = NOTHING,
    },
    {
        .name = "undo of a move to another file system",
        .before = {{'f', CREATE_ONE}, {'f', MOVE}},
        .change = {'g', UNDO},
        .apart = true,
        .was = {NULL, "one\n"},
        .is = {"one\n", NULL},
        .undone_was = {"one\n", NULL},
        .undone_is = NOTHING,
    },
    {
        .name = "removal",
        .before = {{'f', CREATE_ONE}},
        .change = {'f', DELETE},
        .was = {"one\n", NULL},
        .is = NOTHING,
        .undone_was = NOTHING,
    },
    {
        .name = "undo of a removal",
        .before = {{'f', CREATE_ONE}, {'f', DELETE}},
        .change = {'f', UNDO},
        .was = NOTHING,
        .is = {"one\n", NULL},
        .undone_is = NOTHING,
    },
    {
        .name = "move with its group",
        .before = {{'f', CREATE_ONE}, {'h', CREATE_TWO}},
        .change = {'f', WITH_GROUP},
        .was = {"one\n", NULL, "two\n", NULL},
        .is = {NULL, "00ne\n", "tw00\n", NULL},
        .undone_was = {NULL, NULL, "two\n", NULL},
        .undone_is = {"one\n", NULL, "two\n", NULL},
    },
    {
        .name = "undo of a move with its group",
        .before = {{'f', CREATE_ONE}, {'h', CREATE_TWO}, {'f', WITH_GROUP}},
        .change = {'g', UNDO},
        .was = {NULL, "00ne\n", "tw00\n", NULL},
        .is = {"one\n", NULL, "two\n", NULL},
        .undone_was = {"one\n", NULL, "two\n", NULL},
        .undone_is = {NULL, NULL, "two\n", NULL},
    },
    {
        .name = "move of a folder with its group",
        .before = {{'f', CREATE_ONE}, {'h', CREATE_TWO}},
        .change = {'F', WITH_GROUP},
        .was = {"one\n", NULL, "two\n", NULL},
        .is = {NULL, NULL, "tw00\n", "00ne\n"},
        .undone_was = {NULL, NULL, "two\n", NULL},
        .undone_is = {"one\n", NULL, "two\n", NULL},
    },
    {
        .name = "undo of a move of a folder with its group",
        .before = {{'f', CREATE_ONE}, {'h', CREATE_TWO}, {'F', WITH_GROUP}},
        .change = {'G', UNDO},
        .was = {NULL, NULL, "tw00\n", "00ne\n"},
        .is = {"one\n", NULL, "two\n", NULL},
        .undone_was = {"one\n", NULL, "two\n", NULL},
        .undone_is = {NULL, NULL, "two\n", NULL},
    },
    {
        .name = "move with its group, refused",
        .before = {{'f', CREATE_ONE}, {'h', CREATE_TWO}},
        .change = {'f', WITH_GROUP},
        .refused = true,
        .was = {"one\n", NULL, "two\n", NULL},
        .is = {NULL, "00ne\n", "tw00\n", NULL},
        .undone_was = {NULL, NULL, "two\n", NULL},
        .undone_is = {"one\n", NULL, "two\n", NULL},
    },
    {
        .name = "undo of a move with its group, refused",
        .before = {{'f', CREATE_ONE}, {'h', CREATE_TWO}, {'f', WITH_GROUP}},
        .change = {'g', UNDO},
        .refused = true,
        .was = {NULL, "00ne\n", "tw00\n", NULL},
        .is = {"one\n", NULL, "two\n", NULL},
        .undone_was = {"one\n", NULL, "two\n", NULL},
        .undone_is = {NULL, NULL, "two\n", NULL},
    },
    {
        .name = "move of a folder with its group, refused",
        .before = {{'f', CREATE_ONE}, {'h', CREATE_TWO}},
        .change = {'F', WITH_GROUP},
        .refused = true,
        .was = {"one\n", NULL, "two\n", NULL},
        .is = {NULL, NULL, "tw00\n", "00ne\n"},
        .undone_was = {NULL, NULL, "two\n", NULL},
        .undone_is = {"one\n", NULL, "two\n", NULL},
    },
    {
        .name = "undo of a move of a folder with its group, refused",
        .before = {{'f', CREATE_ONE}, {'h', CREATE_TWO}, {'F', WITH_GROUP}},
        .change = {'G', UNDO},
        .refused = true,
        .was = {NULL, NULL, "tw00\n", "00ne\n"},
        .is = {"one\n", NULL, "two\n", NULL},
        .undone_was = {"one\n", NULL, "two\n", NULL},
        .undone_is = {NULL, NULL, "two\n", NULL},
    },
};

#endif
