/* SPDX-License-Identifier: MIT */
/* test_merge_rig.c - random texts and edits for the tests of core/base/merge. */
#include "test_merge_rig.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/minmax.h"
#include "core/base/str.h"

unsigned rig_seed(void)
{
    /* NOLINTNEXTLINE(concurrency-mt-unsafe) */
    const char *wanted = getenv("NOTEGATE_TEST_SEED");
    unsigned seed = wanted == NULL ? 1 : (unsigned)strtoul(wanted, NULL, 10);
    print_message("NOTEGATE_TEST_SEED=%u\n", seed);
    return seed;
}

unsigned rig_below(unsigned *seed, unsigned limit)
{
    return (unsigned)rand_r(seed) % limit;
}

struct ng_str rig_str(const struct rig_text *text)
{
    return str_make(text->data, text->len);
}

void rig_set(struct rig_text *text, struct ng_str bytes)
{
    text->len = 0;
    rig_add(text, bytes.data, bytes.len);
}

void rig_add(struct rig_text *text, const char *data, size_t len)
{
    assert_true(text->len + len < sizeof(text->data));
    if (len > 0) {
        memcpy(text->data + text->len, data, len);
    }
    text->len += len;
    text->data[text->len] = '\0';
}

static struct ng_str random_line(unsigned *seed)
{
    static const char *const lines[] = {"a\n",   "b\n", "\n",         "\r\n",
                                        "a\r\n", "c",   "long line\n"};
    unsigned which = rig_below(seed, 9);
    if (which >= 7) {
        return which == 7 ? str_make("\0\n", 2) : str_make("x\0y\n", 4);
    }
    return ng_str_of(lines[which]);
}

void rig_random(unsigned *seed, struct rig_text *text, unsigned lines)
{
    unsigned count = rig_below(seed, lines + 1);
    text->len = 0;
    for (unsigned i = 0; i < count; i++) {
        struct ng_str line = random_line(seed);
        rig_add(text, line.data, line.len);
    }
    if (text->len > 0 && rig_below(seed, 3) == 0) {
        text->len--;
    }
}

static size_t random_line_start(unsigned *seed, const struct rig_text *text, size_t from)
{
    size_t at = from + rig_below(seed, (unsigned)(text->len - from) + 1);
    while (at < text->len && at > 0 && text->data[at - 1] != '\n') {
        at++;
    }
    return at;
}

void rig_edit(unsigned *seed, struct rig_text *text)
{
    static struct rig_text made;
    bool lines = rig_below(seed, 2) == 0;
    size_t at = rig_below(seed, (unsigned)text->len + 1);
    size_t end = size_min(text->len, at + rig_below(seed, 6));
    if (lines) {
        at = random_line_start(seed, text, 0);
        end = rig_below(seed, 3) == 0 ? at : random_line_start(seed, text, at);
        end = end - at > 40 ? at : end;
    }
    if (rig_below(seed, 40) == 0) { /* all of it */
        at = 0;
        end = text->len;
    }
    made.len = 0;
    rig_add(&made, text->data, at);
    for (unsigned i = rig_below(seed, 4); i > 0; i--) {
        struct ng_str line = random_line(seed);
        rig_add(&made, line.data, lines ? line.len : line.len - rig_below(seed, 2));
    }
    rig_add(&made, text->data + end, text->len - end);
    rig_set(text, rig_str(&made));
}

void rig_splice(struct ng_str old, struct ng_str new, struct ng_splice *ret)
{
    size_t most = size_min(old.len, new.len);
    size_t head = 0;
    size_t tail = 0;
    while (head < most && old.data[head] == new.data[head]) {
        head++;
    }
    while (tail < most - head && old.data[old.len - 1 - tail] == new.data[new.len - 1 - tail]) {
        tail++;
    }
    *ret = (struct ng_splice){
        .at = head,
        .removed = old.len - head - tail,
        .inserted = str_make(new.data + head, new.len - head - tail),
    };
}

uint64_t rig_pieces(struct ng_str text)
{
    uint64_t pieces = text.len > 0;
    for (size_t i = 0; i < text.len; i++) {
        pieces += text.data[i] == '\n';
    }
    return pieces;
}
