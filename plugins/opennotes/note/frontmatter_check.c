/* SPDX-License-Identifier: MIT */
/* frontmatter_check.c - the front matter of a note after a merge. */
#include "frontmatter_check.h"

enum check_state {
    CHECK_NONE, /* there is no front matter */
    CHECK_PARSED,
    CHECK_ERROR
};

static int check_read(struct ng_str bytes, enum check_state *ret)
{
    struct arena arena;
    struct notes_note note;
    arena_init(&arena, 0);
    int rc = notes_note_parse_frontmatter(&arena, bytes, &note);
    if (rc == NG_OK && note.frontmatter_error.data != NULL) {
        *ret = CHECK_ERROR;
    } else if (rc == NG_OK) {
        *ret = note.has_frontmatter ? CHECK_PARSED : CHECK_NONE;
    }
    arena_done(&arena);
    return rc;
}

int notes_frontmatter_check(struct ng_str present, struct ng_str before, struct ng_str merged,
                            bool *ret_good)
{
    enum check_state states[3] = {CHECK_NONE, CHECK_NONE, CHECK_NONE};
    int rc = check_read(present, &states[0]);
    if (rc == NG_OK) {
        rc = check_read(before, &states[1]);
    }
    if (rc == NG_OK) {
        rc = check_read(merged, &states[2]);
    }
    if (rc != NG_OK) {
        return rc;
    }
    bool both = states[0] == CHECK_PARSED && states[1] == CHECK_PARSED;
    bool failed = states[0] == CHECK_ERROR || states[1] == CHECK_ERROR;
    *ret_good = failed || (states[2] != CHECK_ERROR && (!both || states[2] == CHECK_PARSED));
    return NG_OK;
}
