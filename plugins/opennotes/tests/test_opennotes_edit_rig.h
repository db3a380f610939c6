/* SPDX-License-Identifier: MIT */
/* test_opennotes_edit_rig.h - edits of one note, n.md, for test_opennotes_edit*.c. */
#ifndef OPENNOTES_TEST_EDIT_RIG_H
#define OPENNOTES_TEST_EDIT_RIG_H

#include "test_notebook.h"

#define EDIT "opennotes_edit"
#define APPEND(content) "\"operation\":\"append\",\"content\":\"" content "\""
#define PREPEND(content) "\"operation\":\"prepend\",\"content\":\"" content "\""
#define SECTION(section, content)                                                              \
    "\"operation\":\"replace_section\",\"section\":\"" section "\",\"content\":\"" content "\""
#define APPEND_IN(section, content) "\"section\":\"" section "\"," APPEND(content)
#define PREPEND_IN(section, content) "\"section\":\"" section "\"," PREPEND(content)
#define SET(data) "\"operation\":\"set\",\"data\":" data
#define REPLACE(old, new)                                                                      \
    "\"operation\":\"str_replace\",\"oldStr\":\"" old "\",\"newStr\":\"" new "\""

int edit_setup(void **state);
int edit_teardown(void **state);

/* The operation on a note with this text makes that text, and tells its revision. */
void makes(struct fixture *fixture, const char *text, const char *members, const char *wanted);
/* ... and so many lines added and removed. */
void counts(struct fixture *fixture, const char *text, const char *members, const char *wanted,
            int added, int removed);
/* The operation on a note with this text is refused in such words, and the text stays. */
void refuses(struct fixture *fixture, const char *text, const char *members, const char *code,
             const char *said);

#endif
