/* SPDX-License-Identifier: MIT */
/* fuzz_notebook.c - two numbers, a needle, a NUL, a text: lines are found, placed and numbered
 * inside the text, and the counted size is the written size. */
#include <stdlib.h>
#include <string.h>

#include "../../plugins/notebook/notebook_text.c"

#define NUMBERS (2 * sizeof(int16_t))

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
    if (!holds) {
        abort();
    }
}

static void check_range(struct ng_str text, int64_t a, int64_t b)
{
    int64_t first = 0;
    int64_t last = 0;
    int64_t lines = notebook_lines(text);
    if (!notebook_range(lines, a, b, &first, &last)) {
        return;
    }
    must(first >= 1 && first <= last && last <= lines);
    size_t len = 0;
    size_t some = 0;
    must(notebook_fitting(text, first, last, SIZE_MAX, &len) == last - first + 1);
    must(notebook_fitting(text, first, last, len - 1, &some) <= last - first && some < len);
    char *out = malloc(len + 1);
    must(out != NULL);
    must(notebook_number(text, first, last, out) == len);
    struct ng_str numbered = {out, len};
    must(notebook_lines(numbered) == last - first + 1);
    free(out);
}

static void check_place(struct ng_str text, int64_t number)
{
    int64_t after = 0;
    int64_t lines = notebook_lines(text);
    must(notebook_place(lines, number, &after) ==
         (number >= -(lines + 1) && number <= lines + 1));
    must(after >= 0 && after <= lines);
    if (after > 0) {
        uint64_t at = notebook_line_end(text, after);
        must(at <= text.len && (at == text.len || text.data[at] == '\n'));
        struct ng_str before = {text.data, (size_t)at};
        must(notebook_lines(before) == after);
    }
}

static void check_find(struct ng_str text, struct ng_str needle)
{
    uint64_t at = 0;
    int64_t number = 0;
    if (notebook_find(text, needle, &at)) {
        must(at <= text.len && needle.len <= text.len - at);
        must(needle.len == 0 || memcmp(text.data + at, needle.data, needle.len) == 0);
    }
    int64_t line = notebook_find_line(text, needle);
    must(line >= 0 && line <= notebook_lines(text));
    if (notebook_integer(needle, &number)) {
        must(needle.len > 0);
        check_place(text, number);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    int16_t numbers[2];
    if (size < NUMBERS) {
        return 0;
    }
    memcpy(numbers, data, NUMBERS);
    struct ng_str needle = {(const char *)data + NUMBERS, size - NUMBERS};
    const char *nul = needle.len == 0 ? NULL : memchr(needle.data, '\0', needle.len);
    struct ng_str text = {NULL, 0};
    if (nul != NULL) {
        size_t len = (size_t)(nul - needle.data);
        text.data = nul + 1;
        text.len = needle.len - len - 1;
        needle.len = len;
    }
    check_range(text, numbers[0], numbers[1]);
    check_place(text, numbers[0]);
    check_find(text, needle);
    return 0;
}
