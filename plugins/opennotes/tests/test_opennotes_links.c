/* SPDX-License-Identifier: MIT */
/* test_opennotes_links.c - links in, links out, mentions, and the tags of a notebook. */
#include "test_notebook.h"

#define LINKS "opennotes_links"
#define TAGS "opennotes_tags"

static int setup(void **state)
{
    struct fixture *fixture = calloc(1, sizeof(*fixture));
    assert_non_null(fixture);
    fixture_open(fixture);
    fixture_put(fixture, "alpha.md",
                "---\ntitle: Alpha Project\naliases: [AP, \xe8\xa8\x88\xe7\x94\xbb]\ntags: "
                "[a/b, A/c, x]\n---\n"
                "[b](sub/beta.md#part) and [[missing]], <https://example.org>\n"
                "[self](alpha.md) ![pic](p.png) `[code](sub/beta.md)`\n");
    fixture_put(fixture, "sub/beta.md",
                "---\ntag: a\n---\n[up](../alpha.md) then\n[[alpha|A]]\n[[Alpha Project#x]]\n"
                "[[ap]]\n[space](../no%20te.md)\n");
    fixture_put(
        fixture, "no te.md",
        "The alpha project is here.\nAlphaProject is not, nor alphas.\n"
        "[[Alpha Project]]: the Alpha Project again\n"
        "\xe3\x81\x93\xe3\x81\xae\xe8\xa8\x88\xe7\x94\xbb\xe3\x81\xaf\n`Alpha Project`\n");
    fixture_put(fixture, "cafe\xcc\x81.md", "---\ntags: ['#y', a/b]\n---\n");
    fixture_put(fixture, "x/c^d.md", "A name that ends in a block.\n");
    fixture_put(fixture, "blocks.md", "[[x/c^d.md]]\n![[c^d.md^block]]\n[y](x/c^d.md)\n");
    fixture_put(fixture, "links.md", "[[Caf\xc3\xa9]] [x](caf%C3%A9.md)\n");
    fixture_serve(fixture, NULL);
    *state = fixture;
    return 0;
}

static int teardown(void **state)
{
    fixture_close(*state);
    free(*state);
    return 0;
}

static void answers(struct fixture *fixture, const char *tool, const char *args,
                    const char *wanted)
{
    char *text = fixture_call(fixture, tool, args);
    assert_string_equal(text, wanted);
    free(text);
}

static void incoming(void **state)
{
    answers(
        *state, LINKS, "{\"path\":\"alpha.md\",\"kind\":\"incoming\"}",
        "{\"path\":\"alpha.md\",\"incoming\":["
        "{\"path\":\"no te.md\",\"line\":3,\"context\":\"[[Alpha Project]]: the Alpha Project "
        "again\"},"
        "{\"path\":\"sub/beta.md\",\"line\":4,\"context\":\"[up](../alpha.md) then\"},"
        "{\"path\":\"sub/beta.md\",\"line\":5,\"context\":\"[[alpha|A]]\"},"
        "{\"path\":\"sub/beta.md\",\"line\":6,\"context\":\"[[Alpha Project#x]]\"},"
        "{\"path\":\"sub/beta.md\",\"line\":7,\"context\":\"[[ap]]\"}],"
        "\"pagination\":{\"total\":5,\"returned\":5,\"page\":1,\"pageSize\":50,"
        "\"hasMore\":false}}");
    /* Names are compared in one form of Unicode. */
    fixture_says(
        *state, LINKS, "{\"path\":\"caf\xc3\xa9.md\",\"kind\":\"incoming\"}",
        (const char *const[]){"\"path\":\"links.md\",\"line\":1", "\"total\":2", NULL});
    fixture_says(
        *state, LINKS, "{\"path\":\"no te.md\",\"kind\":\"incoming\"}",
        (const char *const[]){"\"path\":\"sub/beta.md\",\"line\":8", "\"total\":1", NULL});
}

/* The block is no part of the name, neither of the note nor of a target with the ending. */
static void names_with_blocks(void **state)
{
    answers(*state, LINKS, "{\"path\":\"x/c^d.md\",\"kind\":\"incoming\"}",
            "{\"path\":\"x/c^d.md\",\"incoming\":["
            "{\"path\":\"blocks.md\",\"line\":1,\"context\":\"[[x/c^d.md]]\"},"
            "{\"path\":\"blocks.md\",\"line\":2,\"context\":\"![[c^d.md^block]]\"},"
            "{\"path\":\"blocks.md\",\"line\":3,\"context\":\"[y](x/c^d.md)\"}],"
            "\"pagination\":{\"total\":3,\"returned\":3,\"page\":1,\"pageSize\":50,"
            "\"hasMore\":false}}");
}

static void outgoing(void **state)
{
    char *text = fixture_call(*state, LINKS, "{\"path\":\"alpha.md\",\"kind\":\"outgoing\"}");
    assert_non_null(strstr(text, "{\"line\":6,\"target\":\"sub/beta.md#part\",\"text\":\"b\","
                                 "\"resolved\":\"sub/beta.md\"}"));
    assert_non_null(strstr(text, "{\"line\":6,\"target\":\"missing\",\"text\":\"missing\"}"));
    assert_non_null(strstr(text, "\"resolved\":\"alpha.md\""));
    assert_null(strstr(text, "p.png"));
    assert_null(strstr(text, "code"));
    free(text);
}

static void unlinked(void **state)
{
    answers(*state, LINKS, "{\"path\":\"alpha.md\",\"kind\":\"unlinked\"}",
            "{\"path\":\"alpha.md\",\"unlinked\":["
            "{\"path\":\"no te.md\",\"line\":1,\"context\":\"The alpha project is here.\"},"
            "{\"path\":\"no "
            "te.md\",\"line\":4,\"context\":"
            "\"\xe3\x81\x93\xe3\x81\xae\xe8\xa8\x88\xe7\x94\xbb\xe3\x81\xaf\"},"
            "{\"path\":\"no te.md\",\"line\":5,\"context\":\"`Alpha Project`\"}],"
            "\"pagination\":{\"total\":3,\"returned\":3,\"page\":1,\"pageSize\":50,"
            "\"hasMore\":false}}");
}

/* The three lists are paged as one: page by page gives what all at once gives. */
static void paging(void **state)
{
    struct fixture *fixture = *state;
    static const char *const names[] = {"\"incoming\":[", "\"outgoing\":[", "\"unlinked\":["};
    size_t whole[3];
    size_t sums[3] = {0};
    char *all = fixture_call(fixture, LINKS, "{\"path\":\"alpha.md\"}");
    for (int page = -1; page < 20; page++) {
        char args[100];
        (void)snprintf(args, sizeof(args), "{\"path\":\"alpha.md\",\"limit\":2,\"offset\":%d}",
                       page * 2);
        char *text = page < 0 ? all : fixture_call(fixture, LINKS, args);
        for (size_t i = 0; i < 3; i++) {
            const char *list = strstr(text, names[i]);
            assert_non_null(list);
            size_t count = 0;
            const char *end =
                i < 2 ? strstr(text, names[i + 1]) : strstr(text, "\"pagination\"");
            for (const char *at = strstr(list, "\"line\":"); at != NULL && at < end;
                 at = strstr(at + 1, "\"line\":")) {
                count++;
            }
            if (page < 0) {
                whole[i] = count;
            } else {
                sums[i] += count;
            }
        }
        bool more = strstr(text, "\"hasMore\":true") != NULL;
        free(text);
        if (page >= 0 && !more) {
            break;
        }
    }
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(sums[i], whole[i]);
        assert_true(whole[i] > 0);
    }
    fixture_fails(fixture, LINKS, "{\"path\":\"nothing.md\"}", "NOTE_NOT_FOUND", "nothing.md");
    fixture_fails(fixture, LINKS, "{\"path\":\"../x.md\"}", "PATH_TRAVERSAL", "");
    fixture_fails(fixture, LINKS, "{\"path\":\"alpha.md\",\"kind\":\"other\"}",
                  "INVALID_PARAMS", "");
    fixture_fails(fixture, LINKS, "{\"path\":\"alpha.md\",\"limit\":0}", "INVALID_PARAMS", "");
}

static void tags(void **state)
{
    answers(*state, TAGS, "{}",
            "{\"tags\":[{\"tag\":\"A\",\"count\":3},{\"tag\":\"a/b\",\"count\":2},"
            "{\"tag\":\"A/"
            "c\",\"count\":1},{\"tag\":\"x\",\"count\":1},{\"tag\":\"y\",\"count\":1}],"
            "\"pagination\":{\"total\":5,\"returned\":5,\"page\":1,\"pageSize\":50,"
            "\"hasMore\":false}}");
    answers(*state, TAGS, "{\"prefix\":\"#A/\",\"limit\":1,\"offset\":1}",
            "{\"tags\":[{\"tag\":\"A/c\",\"count\":1}],"
            "\"pagination\":{\"total\":2,\"returned\":1,\"page\":2,\"pageSize\":1,"
            "\"hasMore\":false}}");
    answers(*state, TAGS, "{\"limit\":2}",
            "{\"tags\":[{\"tag\":\"A\",\"count\":3},{\"tag\":\"a/b\",\"count\":2}],"
            "\"pagination\":{\"total\":5,\"returned\":2,\"page\":1,\"pageSize\":2,"
            "\"hasMore\":true,\"nextOffset\":2},"
            "\"_guidance\":\"More results available. To fetch next page: { offset: 2 }\"}");
    fixture_says(*state, TAGS, "{\"prefix\":\"none\"}",
                 (const char *const[]){"\"tags\":[]", "\"total\":0", NULL});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(incoming), cmocka_unit_test(names_with_blocks),
        cmocka_unit_test(outgoing), cmocka_unit_test(unlinked),
        cmocka_unit_test(paging),   cmocka_unit_test(tags),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
