/* SPDX-License-Identifier: MIT */
/* test_nb.h - what the tests of notebook files share. */
#ifndef NOTEGATE_TEST_NB_H
#define NOTEGATE_TEST_NB_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "notebook/nb.h"

static inline struct ng_str str(const char *text)
{
    return ng_str_of(text);
}

static inline void index_good(struct ng_str bytes, struct nb *nb)
{
    struct nb_error error;
    enum nb_fault fault = nb_index(bytes, nb, &error);
    if (fault != NB_FINE) {
        fail_msg("%s in:\n%.*s", error.text, (int)bytes.len, bytes.data);
    }
}

static inline void equal(struct ng_str got, struct ng_str want)
{
    size_t same = 0;
    while (same < got.len && same < want.len && got.data[same] == want.data[same]) {
        same++;
    }
    if (same < got.len || same < want.len) {
        size_t from = same < 100 ? 0 : same - 100;
        size_t left = got.len - from < 300 ? got.len - from : 300;
        size_t wanted = want.len - from < 300 ? want.len - from : 300;
        fail_msg("byte %zu of %zu (wanted %zu): ...%.*s\nwanted: ...%.*s", same, got.len,
                 want.len, (int)left, got.data + from, (int)wanted, want.data + from);
    }
}

/* Applies the edit, frees it, and finds the result to be a notebook. */
static inline struct nb_text applied(const struct nb *nb, struct nb_edit *edit)
{
    struct nb_text out = {0};
    struct nb again;
    nb_apply(&out, nb->bytes, edit);
    assert_false(out.failed);
    nb_edit_done(edit);
    index_good(nb_text_str(&out), &again);
    nb_done(&again);
    return out;
}

static inline void source_is(const struct nb *nb, size_t index, const char *want)
{
    struct nb_text text = {0};
    assert_true(nb_decode_lines(&text, nb->bytes, nb->cells[index].source));
    equal(nb_text_str(&text), str(want));
    nb_text_done(&text);
}

#endif
