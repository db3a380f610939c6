/* SPDX-License-Identifier: MIT */
/* test_opennotes_edit_rig.c - shared code of test_opennotes_edit*.c; see the header. */
#include "test_opennotes_edit_rig.h"

#include "note/revision.h"

int edit_setup(void **state)
{
    struct fixture *fixture = calloc(1, sizeof(*fixture));
    assert_non_null(fixture);
    fixture_open(fixture);
    fixture_serve(fixture, NULL);
    *state = fixture;
    return 0;
}

int edit_teardown(void **state)
{
    fixture_close(*state);
    free(*state);
    return 0;
}

/* The answer; free it. */
static char *edit(struct fixture *fixture, const char *text, const char *members,
                  const char *wanted)
{
    char args[2000];
    char said[200];
    char revision[NOTES_REVISION_SIZE];
    fixture_put(fixture, "n.md", text);
    (void)snprintf(args, sizeof(args), "{\"path\":\"n.md\",%s}", members);
    char *answer = fixture_call(fixture, EDIT, args);
    fixture_has(fixture, "n.md", wanted);
    assert_int_equal(notes_revision(ng_str_of(wanted), -1, revision), NG_OK);
    int len = snprintf(said, sizeof(said),
                       "{\"path\":\"n.md\",\"revision\":\"%s\",\"added\":", revision);
    assert_int_equal(strncmp(answer, said, (size_t)len), 0);
    (void)snprintf(said, sizeof(said), "\"revision\":\"%s\"", revision);
    fixture_says(fixture, "opennotes_get", "{\"path\":\"n.md\"}",
                 (const char *const[]){said, NULL});
    return answer;
}

void makes(struct fixture *fixture, const char *text, const char *members, const char *wanted)
{
    free(edit(fixture, text, members, wanted));
}

void counts(struct fixture *fixture, const char *text, const char *members, const char *wanted,
            int added, int removed)
{
    char end[100];
    char *answer = edit(fixture, text, members, wanted);
    (void)snprintf(end, sizeof(end), ",\"added\":%d,\"removed\":%d}", added, removed);
    if (!str_ends(ng_str_of(answer), end)) {
        fail_msg("%s answers %s, not %s", members, answer, end);
    }
    free(answer);
}

void refuses(struct fixture *fixture, const char *text, const char *members, const char *code,
             const char *said)
{
    char args[2000];
    fixture_put(fixture, "n.md", text);
    (void)snprintf(args, sizeof(args), "{\"path\":\"n.md\",%s}", members);
    fixture_fails(fixture, EDIT, args, code, said);
    fixture_has(fixture, "n.md", text);
}
