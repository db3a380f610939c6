/* SPDX-License-Identifier: MIT */
/* fuzz_search.c - any text as a full-text search in sqlite: nothing in it is syntax that fails.
 */
#include "backend_fixture.h"

#include <stdlib.h>

#include "core/base/str.h"
#include "core/base/utf8.h"

#define INPUT_BYTES_MAX 4096

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
    if (!holds) {
        abort();
    }
}

static int count_row(void *user, const struct ng_doc *row)
{
    must(row->snippet.len == 0 || utf8_valid(row->snippet));
    ++*(uint64_t *)user;
    return 0;
}

static void fill(struct fixture *fixture)
{
    static const char *const texts[] = {"the quick brown fox",
                                        "AND OR NOT NEAR c0 text : ^ * + -",
                                        "\xc3\xa9t\xc3\xa9 \xe6\x97\xa5\xe6\x9c\xac",
                                        "quick* \"phrases\" in (brackets) {braces}"};
    for (size_t i = 0; i < NG_COUNT(texts); i++) {
        char id[2] = {(char)('a' + i), '\0'};
        must(fixture_put(fixture, id, 0, "", texts[i]) == NG_OK);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct fixture fixture;
    static const char *const sets[] = {"documents=memory", NULL};
    if (fixture.db == NULL) {
        fixture_open(&fixture, "sqlite", sets);
        fill(&fixture);
    }
    struct ng_str text = str_make((const char *)data, size);
    if (size > INPUT_BYTES_MAX || !utf8_valid(text)) {
        return 0;
    }
    uint64_t rows = 0;
    uint64_t total = 0;
    struct ng_query query = {.size = sizeof(query),
                             .collection = ng_str_of("things"),
                             .space = ng_str_of("team"),
                             .limit = 10,
                             .want_total = true};
    struct ng_search search = {
        .size = sizeof(search),
        .query = &query,
        .text = text,
        .snippet_chars = 20,
    };
    int rc = fixture.docs->search(fixture.db, fixture_call(&fixture), &search, count_row, &rows,
                                  &total);
    must(rc == NG_ETOOLARGE || (rc == NG_OK && rows == total));
    return 0;
}
