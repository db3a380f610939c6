/* SPDX-License-Identifier: MIT */
/* test_opennotes_properties.c - front matter as people write it: links and names in it, blocks
 * that do not parse, and lines of the file; and words in other forms. */
#include "test_notebook.h"

#define SEARCH "opennotes_search"
#define LINKS "opennotes_links"
#define EDIT "opennotes_edit"
#define BROKEN "---\ntitle: Governance: a plan\nstatus: open\n---\n# Plan\n\nText.\n"

static int setup(void **state)
{
    struct fixture *fixture = calloc(1, sizeof(*fixture));
    assert_non_null(fixture);
    fixture_open(fixture);
    *state = fixture;
    return 0;
}

static int teardown(void **state)
{
    fixture_close(*state);
    free(*state);
    return 0;
}

static void says(struct fixture *fixture, const char *tool, const char *args,
                 const char *wanted)
{
    fixture_says(fixture, tool, args, (const char *const[]){wanted, NULL});
}

/* ---- links */

static void links_in_properties(void **state)
{
    struct fixture *fixture = *state;
    fixture_put(fixture, "Home.md", "home\n");
    fixture_put(fixture, "A, B.md", "two\n");
    fixture_put(fixture, "a.md",
                "---\nup: \"[[Home|the start]]\"\nrelated:\n  - '[[Home#Part]]'\n"
                "  - nested: {see: \"[x](Home.md)\"}\nbare: [[Home]]\nboth: [[A, B]]\n"
                "text: |\n  first\n  then [[Home]]\nsame: &x \"[[Home]]\"\nagain: *x\n"
                "address: https://example.org/[[x\nno: '[[]]'\n---\n[[Home]]\n");
    fixture_put(fixture, "b.md", "---\r\nup: \"[[gone]]\"\r\n---\r\ntext\r\n");
    fixture_serve(fixture, NULL);
    char *text = fixture_call(fixture, LINKS, "{\"path\":\"Home.md\",\"kind\":\"incoming\"}");
    static const char wanted[] =
        "{\"path\":\"Home.md\",\"incoming\":["
        "{\"path\":\"a.md\",\"line\":2,\"context\":\"up: \\\"[[Home|the start]]\\\"\"},"
        "{\"path\":\"a.md\",\"line\":4,\"context\":\"- '[[Home#Part]]'\"},"
        "{\"path\":\"a.md\",\"line\":5,\"context\":\"- nested: {see: \\\"[x](Home.md)\\\"}\"},"
        "{\"path\":\"a.md\",\"line\":6,\"context\":\"bare: [[Home]]\"},"
        "{\"path\":\"a.md\",\"line\":10,\"context\":\"then [[Home]]\"},"
        "{\"path\":\"a.md\",\"line\":11,\"context\":\"same: &x \\\"[[Home]]\\\"\"},"
        "{\"path\":\"a.md\",\"line\":16,\"context\":\"[[Home]]\"}],";
    assert_true(strncmp(text, wanted, strlen(wanted)) == 0);
    free(text);
    says(fixture, LINKS, "{\"path\":\"a.md\",\"kind\":\"outgoing\"}",
         "[{\"line\":2,\"target\":\"Home\",\"text\":\"the start\",\"resolved\":\"Home.md\"},");
    says(fixture, LINKS, "{\"path\":\"a.md\",\"kind\":\"outgoing\"}",
         "{\"line\":7,\"target\":\"A, B\",\"text\":\"A, B\",\"resolved\":\"A, B.md\"}");
    says(fixture, SEARCH, "{\"filters\":{\"and\":[\"links-to=A, B\"]}}", "\"total\":1,");
    says(fixture, "opennotes_views", "{\"view\":\"broken-links\"}",
         "\"results\":[{\"path\":\"b.md\",\"line\":2,\"target\":\"gone\",\"text\":\"gone\"}]");
    fixture_says(fixture, "opennotes_views", "{\"view\":\"orphans\"}",
                 (const char *const[]){"a.md", "b.md", "\"total\":2,", NULL});
}

/* ---- names */

static void names_in_any_case(void **state)
{
    struct fixture *fixture = *state;
    fixture_put(fixture, "a.md", "---\nTags: [x]\nTAG: y\nAliases: [Second Name]\n---\ntext\n");
    fixture_put(fixture, "b.md", "[[second name]]\n");
    fixture_serve(fixture, NULL);
    says(fixture, "opennotes_tags", "{}",
         "[{\"tag\":\"x\",\"count\":1},{\"tag\":\"y\",\"count\":1}]");
    static const char *const filters[] = {"data.tag=x", "data.Tags=y",
                                          "data.aliases=Second Name"};
    for (size_t i = 0; i < NG_COUNT(filters); i++) {
        char args[200];
        (void)snprintf(args, sizeof(args), "{\"filters\":{\"and\":[\"%s\"]}}", filters[i]);
        says(fixture, SEARCH, args, "\"total\":1,");
    }
    says(fixture, LINKS, "{\"path\":\"a.md\",\"kind\":\"incoming\"}", "\"path\":\"b.md\"");
    /* An edit sets the member that is there. */
    says(fixture, EDIT, "{\"path\":\"a.md\",\"operation\":\"set\",\"data\":{\"tags\":[\"z\"]}}",
         "revision");
    fixture_has(fixture, "a.md", "---\nTags: [z]\nTAG: y\nAliases: [Second Name]\n---\ntext\n");
    says(fixture, "opennotes_create",
         "{\"title\":\"C\",\"content\":\"---\\nTags: [old]\\n---\\n\","
         "\"data\":{\"tags\":[\"new\"]}}",
         "c.md");
    says(fixture, "opennotes_tags", "{\"prefix\":\"old\"}", "\"total\":0,");
}

static void aliases_are_searched(void **state)
{
    struct fixture *fixture = *state;
    /* Among equal hits the newest is the first. */
    fixture_put(fixture, "b.md", "about the kaffeekasse\n");
    fixture_put(fixture, "a.md", "---\naliases: [Kaffeekasse, Other]\n---\nfirst words\n");
    fixture_serve(fixture, NULL);
    static const char *const all[] = {
        "{\"query\":\"kaffeekasse\"}",
        "{\"query\":\"kafekasse\",\"fuzzy\":true}",
        "{\"query\":\"kaffeekasse here\"}",
        "{\"query\":\"KAFFEEKASSE\",\"filters\":{\"and\":[\"path=*\"]}}",
    };
    for (size_t i = 0; i < NG_COUNT(all); i++) {
        says(fixture, SEARCH, all[i], "\"results\":[{\"path\":\"a.md\",");
        says(fixture, SEARCH, all[i], "\"total\":2,");
    }
    says(fixture, SEARCH, all[0], "\"line\":4,\"excerpt\":\"first words\"");
}

/* ---- lines */

static void lines_of_the_file(void **state)
{
    struct fixture *fixture = *state;
    fixture_put(fixture, "a.md", "---\ntitle: T\n---\nfirst\nneedle and Target\n[[b]]\n");
    fixture_put(fixture, "b.md", "---\ntitle: Target\n---\n");
    fixture_serve(fixture, NULL);
    says(fixture, SEARCH, "{\"query\":\"needle\"}", "\"line\":5,");
    says(fixture, SEARCH, "{\"query\":\"neddle\",\"fuzzy\":true}", "\"line\":5,");
    says(fixture, LINKS, "{\"path\":\"b.md\",\"kind\":\"incoming\"}", "\"line\":6,");
    says(fixture, LINKS, "{\"path\":\"b.md\",\"kind\":\"unlinked\"}", "\"line\":5,");
    says(fixture, "opennotes_get",
         "{\"path\":\"a.md\",\"raw\":true,\"startLine\":5,\"maxLines\":1}",
         "\"content\":\"needle and Target\\n\"");
}

/* ---- front matter that does not parse */

#define OPEN_SQL                                                                               \
    "\"SELECT file_path FROM read_markdown('**/*.md') WHERE metadata ->> 'status' = 'open'"

static void left_out_notes_are_told(void **state)
{
    struct fixture *fixture = *state;
    fixture_put(fixture, "good.md", "---\nstatus: open\n---\nText\n");
    fixture_put(fixture, "bad2.md", "---\n\tx: 1\n---\nText #inline\n");
    fixture_put(fixture, "bad.md", BROKEN); /* the newest is told first */
    fixture_serve(fixture,
                  (const char *const[]){
                      "opennotes.views={\"v\":{\"query\":{\"filters\":{"
                      "\"and\":[\"data.status=open\"]}}},\"s\":{\"sql\":" OPEN_SQL "\"}}",
                      NULL});
    static const struct {
        const char *tool, *args, *left;
    } calls[] = {
        {SEARCH, "{\"filters\":{\"and\":[\"data.status=open\"]}}", "\"leftOut\":{\"count\":2,"},
        {SEARCH, "{\"filters\":{\"or\":[\"title=x\"]}}", "\"leftOut\":{\"count\":2,"},
        {SEARCH, "{\"query\":\"plan\",\"filters\":{\"and\":[\"data.status=open\"]}}",
         "\"leftOut\":{\"count\":1,"},
        {SEARCH, "{\"query\":\"plann\",\"fuzzy\":true,\"filters\":{\"and\":[\"data.a=1\"]}}",
         "\"leftOut\":{\"count\":1,"},
        {SEARCH, "{\"filters\":{\"and\":[\"data.status=open\",\"path=bad2*\"]}}",
         "\"leftOut\":{\"count\":1,"},
        {SEARCH, "{\"filters\":{\"and\":[\"data.tag=inline\"]}}", "\"leftOut\":{\"count\":1,"},
        /* Without properties to compare, broken notes are results like all others. */
        {SEARCH, "{\"filters\":{\"and\":[\"path=*.md\"]}}", NULL},
        {SEARCH, "{\"filters\":{\"not\":[\"data.status=done\"]}}", NULL},
        {SEARCH, "{\"filters\":{\"and\":[\"data.status!=done\"]}}", NULL},
        {SEARCH, "{\"query\":\"text\"}", NULL},
        {SEARCH, "{\"sql\":" OPEN_SQL "\"}", "\"leftOut\":{\"count\":2,"},
        {SEARCH,
         "{\"sql\":\"SELECT 1 FROM read_markdown('**') WHERE file_path LIKE 'bad2%' AND "
         "metadata ->> 'a' = 1\"}",
         "\"leftOut\":{\"count\":1,"},
        {SEARCH,
         "{\"sql\":\"SELECT title FROM read_markdown('bad.*') WHERE metadata ->> 'a' = 1\"}",
         "\"leftOut\":{\"count\":1,"},
        {SEARCH,
         "{\"sql\":\"SELECT n.title FROM read_markdown('**') n, json_each(n.tags) t, "
         "read_markdown('**') m WHERE t.value = 'x' ORDER BY 1\"}",
         "\"leftOut\":{\"count\":2,"},
        /* Rows are not left out, nor are those behind a limit without a condition. */
        {SEARCH,
         "{\"sql\":\"SELECT metadata, file_path AS p FROM read_markdown('**') WHERE "
         "metadata ->> 'status' IS NOT 'open' ORDER BY modified\"}",
         NULL},
        {SEARCH, "{\"sql\":\"SELECT * FROM read_markdown('**') ORDER BY modified LIMIT 1\"}",
         NULL},
        {SEARCH, "{\"sql\":\"SELECT 1 FROM read_markdown('**') WHERE title = 'x'\"}", NULL},
        {"opennotes_views", "{\"view\":\"s\"}", "\"leftOut\":{\"count\":2,"},
        {"opennotes_views", "{\"view\":\"kanban\"}", "\"leftOut\":{\"count\":2,"},
        {"opennotes_views", "{\"view\":\"v\"}", "\"leftOut\":{\"count\":2,"},
        {"opennotes_views", "{\"view\":\"recent\"}", NULL},
    };
    for (size_t i = 0; i < NG_COUNT(calls); i++) {
        char *text = fixture_call(fixture, calls[i].tool, calls[i].args);
        const char *left = strstr(text, calls[i].left != NULL ? calls[i].left : "leftOut");
        if ((left != NULL) != (calls[i].left != NULL)) {
            fail_msg("%s %s answers %s", calls[i].tool, calls[i].args, text);
        }
        free(text);
    }
    says(fixture, SEARCH, calls[0].args,
         "\"notes\":[{\"path\":\"bad.md\",\"frontmatterError\":\"line 2: ");
}

static void replace(struct fixture *fixture, const char *more, const char *wanted)
{
    char args[1000];
    (void)snprintf(args, sizeof(args),
                   "{\"path\":\"bad.md\",\"operation\":\"replace_frontmatter\",%s}", more);
    fixture_put(fixture, "bad.md", BROKEN);
    says(fixture, EDIT, args, "revision");
    fixture_has(fixture, "bad.md", wanted);
}

static void refuses(struct fixture *fixture, const char *more, const char *code,
                    const char *part)
{
    char args[1000];
    (void)snprintf(args, sizeof(args),
                   "{\"path\":\"bad.md\",\"operation\":\"replace_frontmatter\",%s}", more);
    fixture_put(fixture, "bad.md", BROKEN);
    fixture_fails(fixture, EDIT, args, code, part);
    fixture_has(fixture, "bad.md", BROKEN);
}

#define BODY "---\n# Plan\n\nText.\n"

static void broken_blocks_are_mended(void **state)
{
    struct fixture *fixture = *state;
    fixture_put(fixture, "plain.md", "text\n");
    fixture_put(fixture, "crlf.md", "---\r\na: b: c\r\n---\r\ntext\r\n");
    fixture_serve(fixture, NULL);
    replace(fixture, "\"line\":2,\"content\":\"title: 'Governance: a plan'\"",
            "---\ntitle: 'Governance: a plan'\nstatus: open\n" BODY);
    says(fixture, SEARCH, "{\"filters\":{\"and\":[\"data.status=open\"]}}", "\"total\":1,");
    replace(fixture, "\"line\":2,\"content\":\"\"", "---\nstatus: open\n" BODY);
    replace(fixture, "\"content\":\"a: 1\\nb: 2\\n\"", "---\na: 1\nb: 2\n" BODY);
    replace(fixture, "\"content\":\"---\\na: 1\\n---\\n\"", "---\na: 1\n" BODY);
    replace(fixture, "\"content\":\"\"", "---\n" BODY);
    refuses(fixture, "\"content\":\"a: b: c\"", "TOOL_FAILED", "line 2: ");
    refuses(fixture, "\"line\":3,\"content\":\"status: done\"", "TOOL_FAILED", "line 2: ");
    refuses(fixture, "\"content\":\"a: 1\\n---\\nb: 2\"", "TOOL_FAILED", "'---'");
    refuses(fixture, "\"line\":1,\"content\":\"x\"", "INVALID_PARAMS", "`line` is 1");
    refuses(fixture, "\"line\":4,\"content\":\"x\"", "INVALID_PARAMS", "lines 1 and 4");
    refuses(fixture, "\"line\":99", "INVALID_PARAMS", "`content` is missing");
    fixture_fails(fixture, EDIT,
                  "{\"path\":\"bad.md\",\"operation\":\"append\",\"content\":\"x\",\"line\":2}",
                  "INVALID_PARAMS", "`line`");
    /* The refusal of `set` names the way. */
    fixture_fails(fixture, EDIT,
                  "{\"path\":\"bad.md\",\"operation\":\"set\",\"data\":{\"a\":1}}",
                  "TOOL_FAILED", "replace_frontmatter");
    says(fixture, EDIT,
         "{\"path\":\"plain.md\",\"operation\":\"replace_frontmatter\",\"content\":\"a: 1\"}",
         "revision");
    fixture_has(fixture, "plain.md", "---\na: 1\n---\ntext\n");
    says(fixture, EDIT,
         "{\"path\":\"crlf.md\",\"operation\":\"replace_frontmatter\",\"line\":2,"
         "\"content\":\"a: c\"}",
         "revision");
    fixture_has(fixture, "crlf.md", "---\r\na: c\r\n---\r\ntext\r\n");
}

/* ---- sections */

static void own_heading_stays_once(void **state)
{
    struct fixture *fixture = *state;
    static const struct {
        const char *content, *wanted;
    } edits[] = {
        {"## Tasks\\n\\n- new", "# T\n\n## Tasks\n\n- new\n\n## Next\n"},
        {"\\n## tasks\\n- new\\n", "# T\n\n## Tasks\n\n- new\n\n## Next\n"},
        {"Tasks\\n-----\\n- new\\n", "# T\n\n## Tasks\n\n- new\n\n## Next\n"},
        {"### Tasks\\n- new", "# T\n\n## Tasks\n\n### Tasks\n- new\n\n## Next\n"},
        {"## Other\\n- new", "# T\n\n## Tasks\n\n## Other\n- new\n\n## Next\n"},
    };
    fixture_serve(fixture, NULL);
    for (size_t i = 0; i < NG_COUNT(edits); i++) {
        char args[300];
        fixture_put(fixture, "a.md", "# T\n\n## Tasks\n\n- old\n\n## Next\n");
        (void)snprintf(args, sizeof(args),
                       "{\"path\":\"a.md\",\"operation\":\"replace_section\","
                       "\"section\":\"Tasks\",\"content\":\"%s\"}",
                       edits[i].content);
        says(fixture, EDIT, args, "revision");
        fixture_has(fixture, "a.md", edits[i].wanted);
    }
}

/* ---- words */

static void other_forms_are_found(void **state)
{
    struct fixture *fixture = *state;
    fixture_put(fixture, "a.md", "one needle\n\na battery and an organization\n");
    fixture_put(fixture, "b.md", "many needles\n");
    fixture_put(fixture, "c.md", "nothing new\n");
    fixture_put(fixture, "d.md", "he knew it\n");
    fixture_serve(fixture, NULL);
    static const struct {
        const char *args, *wanted;
    } calls[] = {
        {"{\"query\":\"needles\"}", "\"total\":2,"},
        {"{\"query\":\"needles\"}", "\"results\":[{\"path\":\"b.md\","},
        {"{\"query\":\"batteries\"}", "\"total\":1,"},
        {"{\"query\":\"batteries\"}", "\"line\":3,\"excerpt\":"},
        {"{\"query\":\"batteries\",\"fuzzy\":true}", "\"line\":3,\"excerpt\":"},
        {"{\"query\":\"organizing\",\"fuzzy\":true}", "\"total\":1,"},
        {"{\"query\":\"organized batteries\"}", "\"total\":1,"},
        {"{\"query\":\"the needles\"}", "\"total\":2,"},
        {"{\"query\":\"batteries\",\"filters\":{\"and\":[\"path=*\"]}}", "\"total\":1,"},
        {"{\"query\":\"the batteries\",\"filters\":{\"and\":[\"path=*\"]}}", "\"total\":1,"},
        {"{\"query\":\"\\\"batteries\\\"\"}", "\"total\":1,"},
        {"{\"query\":\"batters\"}", "\"total\":0,"},
        /* Forms are whole words. */
        {"{\"query\":\"news\"}", "\"total\":1,"},
        {"{\"query\":\"news\",\"filters\":{\"and\":[\"path=*\"]}}", "\"total\":1,"},
    };
    for (size_t i = 0; i < NG_COUNT(calls); i++) {
        says(fixture, SEARCH, calls[i].args, calls[i].wanted);
    }
    /* A form that comes later is found too, and one that went is not. */
    fixture_put(fixture, "c.md", "all batteries\n");
    says(fixture, SEARCH, "{\"query\":\"battery\"}", "\"total\":2,");
    fixture_put(fixture, "a.md", "nothing\n");
    says(fixture, SEARCH, "{\"query\":\"battery\"}", "\"total\":1,");
    says(fixture, SEARCH, "{\"query\":\"needle\"}", "\"total\":1,");
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(links_in_properties),     TEST(names_in_any_case),
        TEST(aliases_are_searched),    TEST(lines_of_the_file),
        TEST(left_out_notes_are_told), TEST(broken_blocks_are_mended),
        TEST(own_heading_stays_once),  TEST(other_forms_are_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
