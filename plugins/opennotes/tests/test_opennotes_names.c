/* SPDX-License-Identifier: MIT */
/* test_opennotes_names.c - search of notes without front matter: the file's name as
 * their title, tags in their text, the line and the words of a hit; and what their links mean.
 */
#include "test_opennotes_rig.h"

#include <stdlib.h>
#include <string.h>

static void titles(void **state)
{
    struct test *test = *state;
    put(test, "@/nb/sub/Quarterly harvest.md", "figures\n");
    put(test, "@/nb/other.md", "of the quarterly harvest we know nothing\n");
    put(test, "@/nb/named.md", "---\ntitle: Shown\n---\nx\n");
    open_with(test, REGISTERED);
    has(test, "list", "{\"pattern\":\"sub/*\"}", "\"title\":\"Quarterly harvest\"");
    has(test, "get", "{\"path\":\"sub/Quarterly harvest.md\"}",
        "\"title\":\"Quarterly harvest\"");
    has(test, "get", "{\"path\":\"named.md\"}", "\"title\":\"Shown\"");
    /* Found by its name, before a note that has it in the text; with typing errors, too. */
    has(test, "search", "{\"query\":\"quarterly harvest\"}",
        "\"results\":[{\"path\":\"sub/Quarterly harvest.md\"");
    has(test, "search", "{\"query\":\"quartely harvset\",\"fuzzy\":true}",
        "\"results\":[{\"path\":\"sub/Quarterly harvest.md\"");
    has(test, "search", "{\"filters\":{\"and\":[\"title~HARVEST\"]}}", "\"total\":1,");
    has(test, "search",
        "{\"sql\":\"SELECT title FROM read_markdown('sub/*.md') ORDER BY title\"}",
        "[{\"title\":\"Quarterly harvest\"}]");
    /* Front matter's title stands in place of the name. */
    has(test, "search", "{\"query\":\"named\"}", "\"total\":0,");
}

static void inline_tags(void **state)
{
    struct test *test = *state;
    put(test, "@/nb/a.md", "---\ntags: [One]\n---\n#one text #Two/sub `#no` #1984\n");
    put(test, "@/nb/b.md", "- [ ] call #two\n");
    put(test, "@/nb/c.md", "# Heading\n\n[x](http://a.b/#no) <!-- #no --> %% #no %%\n");
    open_with(test, REGISTERED);
    has(test, "tags", "{}",
        "{\"tags\":[{\"tag\":\"Two\",\"count\":2},{\"tag\":\"One\",\"count\":1},"
        "{\"tag\":\"Two/sub\",\"count\":1}],");
    has(test, "search", "{\"filters\":{\"and\":[\"data.tag=two\"]}}", "\"path\":\"b.md\"");
    has(test, "search", "{\"filters\":{\"and\":[\"data.tags=Two/sub\"]}}", "\"path\":\"a.md\"");
    has(test, "list", "{\"pattern\":\"a.md\"}", "\"tags\":[\"One\",\"Two/sub\"]");
    has(test, "get", "{\"path\":\"a.md\"}", "\"tags\":[\"One\",\"Two/sub\"]");
    has(test, "views", "{\"view\":\"untagged\"}", "\"path\":\"c.md\"");
    has_not(test, "views", "{\"view\":\"untagged\"}", "\"path\":\"b.md\"");
    /* Read again when it changes. */
    put(test, "@/nb/b.md", "- [x] call #three\n");
    has(test, "tags", "{\"prefix\":\"th\"}", "[{\"tag\":\"three\",\"count\":1}]");
    has_not(test, "search", "{\"filters\":{\"and\":[\"data.tag=two\"]}}", "\"path\":\"b.md\"");
}

static void excerpts(void **state)
{
    struct test *test = *state;
    char text[6000] = "---\ntitle: T\n---\nfirst line\n\n";
    for (int i = 0; i < 100; i++) {
        (void)strncat(text, "many words before ", sizeof(text) - strlen(text) - 1);
    }
    (void)strncat(text, "\nthen a NEEDLE in it\n", sizeof(text) - strlen(text) - 1);
    for (int i = 0; i < 100; i++) {
        (void)strncat(text, "many words behind ", sizeof(text) - strlen(text) - 1);
    }
    put(test, "@/nb/a.md", text);
    put(test, "@/nb/title.md", "\n\nnothing of it\n");
    /* Folding makes this line longer than it is. */
    put(test, "@/nb/long.md",
        "Stra\xc3\x9f"
        "e \xc4\xb0\xc4\xb0\xc4\xb0 \xe4\xbc\x9a\xe8\xad\xb0\xe3\x83\xa1\xe3\x83\xa2 "
        "Stra\xc3\x9f"
        "en hidden here\n");
    open_with(test, REGISTERED);
    has(test, "search", "{\"query\":\"needle\"}", "\"line\":7,\"excerpt\":\"");
    has(test, "search", "{\"query\":\"needle\"}",
        "before many words before \\nthen a NEEDLE in it\\nmany words");
    has(test, "search", "{\"query\":\"nedle\",\"fuzzy\":true}", "\"line\":7,");
    has(test, "search", "{\"query\":\"nedle\",\"fuzzy\":true}", "then a NEEDLE in it");
    has(test, "search", "{\"query\":\"title\"}", "\"line\":3,\"excerpt\":\"nothing of it\"");
    has(test, "search", "{\"query\":\"STRASSEN\"}",
        "\"line\":1,\"excerpt\":\"Stra\xc3\x9f"
        "e \xc4\xb0\xc4\xb0\xc4\xb0 \xe4\xbc\x9a");
    has_not(test, "search", "{\"filters\":{\"and\":[\"title=T\"]}}", "excerpt");
    struct answer answer = call(test, "search", "{\"query\":\"needle\"}");
    const char *excerpt = strstr(answer.text, "\"excerpt\":\"");
    assert_non_null(excerpt);
    size_t len = strcspn(excerpt + strlen("\"excerpt\":\""), "\"");
    assert_true(len > 120 && len <= 210);
    answer_free(&answer);
}

/* The excerpt is around the hit wherever it is, in lines that fold to other lengths, too. */
static void excerpts_far(void **state)
{
    struct test *test = *state;
    char text[20000] = "";
    for (int i = 0; i < 300; i++) {
        (void)strncat(text, "\xc3\x9f\xc4\xb0 \xe4\xbc\x9a\xe8\xad\xb0 e\xcc\x81t\xc3\xa9 ",
                      sizeof(text) - strlen(text) - 1);
    }
    (void)strncat(text, "Here It Is ", sizeof(text) - strlen(text) - 1);
    for (int i = 0; i < 100; i++) {
        (void)strncat(text, "\xc3\x9f\xc3\x9f more ", sizeof(text) - strlen(text) - 1);
    }
    put(test, "@/nb/far.md", text);
    open_with(test, REGISTERED);
    has(test, "search", "{\"query\":\"here it is\"}", " Here It Is \xc3\x9f\xc3\x9f more ");
}

static void links(void **state)
{
    struct test *test = *state;
    put(test, "@/nb/a.md",
        "text[^1] [[b^block]] %%[[hidden]]%% [[b#Part|x]] [[x^2]]\n\n[^1]: word\n");
    put(test, "@/nb/b.md", "# Part\n");
    put(test, "@/nb/x^2.md", "x\n");
    open_with(test, REGISTERED);
    has(test, "views", "{\"view\":\"broken-links\"}", "\"total\":0,");
    has(test, "links", "{\"path\":\"b.md\",\"kind\":\"incoming\"}", "\"line\":1");
    has(test, "links", "{\"path\":\"x^2.md\",\"kind\":\"incoming\"}", "\"path\":\"a.md\"");
    has_not(test, "links", "{\"path\":\"a.md\",\"kind\":\"outgoing\"}", "word");
    has_not(test, "links", "{\"path\":\"a.md\",\"kind\":\"outgoing\"}", "hidden");
    has(test, "search", "{\"filters\":{\"and\":[\"links-to=b.md\"]}}", "\"path\":\"a.md\"");
}

static void lost_files(void **state)
{
    struct test *test = *state;
    put(test, "@/nb/a.md", "[[lost.png]] [[there.PNG]] [[sub/there.png]] ![[lost.pdf]]\n");
    put(test, "@/nb/sub/deep/There.png", "x");
    open_with(test, REGISTERED);
    has(test, "views", "{\"view\":\"broken-links\"}",
        "[{\"path\":\"a.md\",\"line\":1,\"target\":\"lost.png\",\"text\":\"lost.png\"}]");
}

static void written(void **state)
{
    struct test *test = *state;
    put(test, "@/nb/a.md",
        "---\ntitle: 09\ncreated: 1617039442351\nmodified: 1617039442\n"
        "tags: [007]\n---\nx\n");
    open_with(test, REGISTERED);
    has(test, "list", "{}",
        "\"title\":\"09\",\"tags\":[\"007\"],\"created\":\"2021-03-29T17:37:22Z\","
        "\"modified\":\"2021-03-29T17:37:22Z\"");
    has(test, "get", "{\"path\":\"a.md\"}", "\"title\":\"09\"");
}

static void refusals(void **state)
{
    struct test *test = *state;
    put(test, "@/nb/a.md", "---\nms.topic: t\nms: {topic: u}\n---\n");
    open_with(test, REGISTERED);
    fails(test, "list", "{\"pattern\":\"../**/*.md\"}", "PATH_TRAVERSAL", "../**/*.md");
    fails(test, "list", "{\"pattern\":\"/etc/*\"}", "PATH_TRAVERSAL", "relative to notebook");
    fails(test, "search",
          "{\"sql\":\"SELECT metadata ->> 'ms.topic' FROM read_markdown('**/*.md')\"}",
          "INVALID_SQL", "Write ->> '$.\"ms.topic\"' for the key, ->> '$.ms.topic'");
    has(test, "search",
        "{\"sql\":\"SELECT metadata ->> '$.\\\"ms.topic\\\"' AS a, metadata ->> '$.ms.topic' "
        "AS b "
        "FROM read_markdown('**/*.md')\"}",
        "[{\"a\":\"t\",\"b\":\"u\"}]");
    put(test, "@/nb/.opennotes.json", "{\"root\":\"notes\"}");
    fails(test, "list", "{}", "NOTEBOOK_CONFIG_ERROR", "@/nb/notes, is not there");
    fails(test, "list", "{}", "NOTEBOOK_CONFIG_ERROR", "git keeps no empty ones");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(titles, setup, teardown),
        cmocka_unit_test_setup_teardown(inline_tags, setup, teardown),
        cmocka_unit_test_setup_teardown(excerpts, setup, teardown),
        cmocka_unit_test_setup_teardown(excerpts_far, setup, teardown),
        cmocka_unit_test_setup_teardown(links, setup, teardown),
        cmocka_unit_test_setup_teardown(lost_files, setup, teardown),
        cmocka_unit_test_setup_teardown(written, setup, teardown),
        cmocka_unit_test_setup_teardown(refusals, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
