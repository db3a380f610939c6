/* SPDX-License-Identifier: MIT */
/* test_opennotes_markdown.c - headings, links and tasks of Markdown texts, their exact lines,
 * what is none, and texts that are made to be slow. */
#include "harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "markdown/markdown.h"
#include "markdown/markdown_parts.h"

struct dump {
    struct buf buf;
    uint64_t count;
    uint64_t stop_at; /* the event that fails; 0: none */
};

static int dump_heading(void *user, const struct notes_heading *heading)
{
    struct dump *dump = user;
    buf_printf(&dump->buf, "H %u %u [%.*s] #%.*s\n", heading->line, heading->level,
               (int)heading->text.len, heading->text.data, (int)heading->slug.len,
               heading->slug.data);
    return ++dump->count == dump->stop_at ? NG_ECANCELLED : 0;
}

static int dump_link(void *user, const struct notes_link *link)
{
    struct dump *dump = user;
    buf_printf(&dump->buf, "L %u %s [%.*s] %.*s\n", link->line,
               notes_link_kind_name(link->kind), (int)link->text.len, link->text.data,
               (int)link->target.len, link->target.data);
    return ++dump->count == dump->stop_at ? NG_ECANCELLED : 0;
}

static int dump_task(void *user, const struct notes_task *task)
{
    struct dump *dump = user;
    buf_printf(&dump->buf, "T %u %c [%.*s]\n", task->line, task->done ? 'x' : '-',
               (int)task->text.len, task->text.data);
    return ++dump->count == dump->stop_at ? NG_ECANCELLED : 0;
}

static int dump_tag(void *user, const struct notes_inline_tag *tag)
{
    struct dump *dump = user;
    buf_printf(&dump->buf, "# %u %.*s\n", tag->line, (int)tag->name.len, tag->name.data);
    return ++dump->count == dump->stop_at ? NG_ECANCELLED : 0;
}

static const struct notes_markdown_events dump_events = {
    .heading = dump_heading, .link = dump_link, .task = dump_task, .tag = dump_tag};

static void expect_bytes(struct ng_str text, const char *wanted)
{
    struct dump dump = {.count = 0};
    buf_init(&dump.buf, (size_t)1024 * 1024);
    assert_int_equal(notes_markdown_parse(text, &dump_events, &dump, NULL), NG_OK);
    buf_add_char(&dump.buf, '\0');
    assert_string_equal(dump.buf.data, wanted);
    buf_done(&dump.buf);
}

/* The text as it is, with CRLF, and with lines before it. */
static void expect(const char *text, const char *wanted)
{
    expect_bytes(ng_str_of(text), wanted);
    struct buf crlf;
    buf_init(&crlf, (size_t)1024 * 1024);
    for (const char *c = text; *c != '\0'; c++) {
        if (*c == '\n') {
            buf_add_char(&crlf, '\r');
        }
        buf_add_char(&crlf, *c);
    }
    expect_bytes(notes_buf_str(&crlf), wanted);
    buf_done(&crlf);
}

/* ---- headings ---- */

static void test_headings(void **state)
{
    (void)state;
    expect("", "");
    expect("plain\n", "");
    expect("# One\n\ntext\n\n## Two ##\n### Three", "H 1 1 [One] #one\n"
                                                    "H 5 2 [Two] #two\n"
                                                    "H 6 3 [Three] #three\n");
    expect("\n\n   # Indented\n    # code\n\n#none\n#\ttab\n",
           "H 3 1 [Indented] #indented\n# 6 none\nH 7 1 [tab] #tab\n");
    expect("Title\n=====\n\nOther\n---\n\nof two\nlines\n--\n",
           "H 1 1 [Title] #title\nH 4 2 [Other] #other\nH 7 2 [of two lines] #of-two-lines\n");
    expect("> # Quoted\n>\n> > ## Deep\n\n- # In a list\n\n  ## Below\n1. x\n   # Third\n",
           "H 1 1 [Quoted] #quoted\nH 3 2 [Deep] #deep\nH 5 1 [In a list] #in-a-list\n"
           "H 7 2 [Below] #below\nH 9 1 [Third] #third\n");
    expect("```\n# code\n```\n~~~ sh\n# code\n~~~\n\n    # code\n\n<div>\n# html\n</div>\n\n# "
           "Real\n",
           "H 14 1 [Real] #real\n");
    expect("- item\n\n  ```\n  # code\n  [a](b)\n  ```\n\n# After\n", "H 8 1 [After] #after\n");
    expect("# *Em* `code` **st** ~~del~~ &amp; a\\*b <b>x</b>\n",
           "H 1 1 [Em code st del & a*b x] #em-code-st-del--ab-x\n");
    expect("# A [link](x.md) ![pic](p.png)\n",
           "L 1 inline [link] x.md\nH 1 1 [A link] #a-link\n");
}

static void test_empty_headings(void **state)
{
    (void)state;
    expect("#\n\n##\n\n# #\n", "H 1 1 [] #\nH 3 2 [] #-1\nH 5 1 [] #-2\n");
    expect("text\n\n> ##\n\n- ###\n\n# ![](a.png)\n# <!-- x -->\n# x\n",
           "H 3 2 [] #\nH 5 3 [] #-1\nH 7 1 [] #-2\nH 8 1 [] #-3\nH 9 1 [x] #x\n");
    expect("- [ ] ##\n\n## ##\n\nx\n", "T 1 - [##]\nH 3 2 [] #\n");
    expect_bytes(ng_str_of("a\r##\rb\n\n## ##\n## c\n"),
                 "H 1 2 [] #\nH 3 2 [] #-1\nH 4 2 [c] #c\n");
    expect("[a]: b\n\n#\n\n[a]\n", "H 3 1 [] #\nL 5 reference [a] b\n");
}

static void test_slugs(void **state)
{
    (void)state;
    expect("# Hello, World!\n# Hello World\n# hello world\n# hello-world-1\n",
           "H 1 1 [Hello, World!] #hello-world\nH 2 1 [Hello World] #hello-world-1\n"
           "H 3 1 [hello world] #hello-world-2\nH 4 1 [hello-world-1] #hello-world-1-1\n");
    expect("# \xc3\x9c"
           "ber_uns 2.0 \xe4\xbc\x9a\xe8\xad\xb0\n# C++\n# C\n# a  b\n",
           "H 1 1 [\xc3\x9c"
           "ber_uns 2.0 \xe4\xbc\x9a\xe8\xad\xb0] #\xc3\xbc"
           "ber_uns-20-\xe4\xbc\x9a\xe8\xad\xb0\nH 2 1 [C++] #c\nH 3 1 [C] #c-1\nH 4 1 [a  b] "
           "#a--b\n");
}

/* ---- links ---- */

static void test_inline_links(void **state)
{
    (void)state;
    expect("See [a](x.md) and [b c](<y z.md> \"title\").\n",
           "L 1 inline [a] x.md\nL 1 inline [b c] y z.md\n");
    expect("\n\n[a](../x%20y.md#part) [](empty.md) [n]()\n",
           "L 3 inline [a] ../x%20y.md#part\nL 3 inline [] empty.md\nL 3 inline [n] \n");
    expect("[a\nb](x.md)\n\n[\na](y.md)\n\npre [c](\nz.md)\n",
           "L 1 inline [a b] x.md\nL 4 inline [a] y.md\nL 7 inline [c] z.md\n");
    expect("a [**bo** `co`](x.md) [\\[e\\]](y\\_z.md) [&lt;](a&amp;b.md)\n",
           "L 1 inline [bo co] x.md\nL 1 inline [[e]] y_z.md\nL 1 inline [<] a&b.md\n");
    expect("[![alt](pic.png)](x.md) [a ![i](i.png)](y.md)\n",
           "L 1 inline [alt] x.md\nL 1 inline [a i] y.md\n");
    expect("> quoted [a](x.md)\n> - item [b](y.md)\n\n1. one\n   [c](z.md)\n",
           "L 1 inline [a] x.md\nL 2 inline [b] y.md\nL 5 inline [c] z.md\n");
    expect("a | b\n--|--\n[x](1.md) | y\nz | [w](2.md)\n",
           "L 3 inline [x] 1.md\nL 4 inline [w] 2.md\n");
}

static void test_no_links(void **state)
{
    (void)state;
    expect("`[a](b)` ``[[w]]`` \\[a](b) ![pic](p.png) ![[p.PNG]]\n", "");
    expect("```\n[a](b) [[w]] http://x.y\n```\n\n    [a](b) [[w]]\n", "");
    expect("<!-- [a](b) [[w]] -->\n\n<div>\n[a](b) [[w]] http://x.y\n</div>\n", "");
    expect("text <a href=\"[[w]]\">x</a> [a] [b][c] [d](e f)\n", "");
    expect("![a [b](c.md) d](e.png) ![[[w]]](x.png)\n", "");
}

static void test_reference_links(void **state)
{
    (void)state;
    expect("[a][r] [r][] [r]\n\n[r]: x.md 'Title'\n",
           "L 1 reference [a] x.md\nL 1 reference [r] x.md\nL 1 reference [r] x.md\n");
    expect("[r]: <x y.md>\n\npara\n[A b][R] [not (x.md)\n", "L 4 reference [A b] x y.md\n");
    expect("[foo] (bar)\n\n[foo]:\n  x.md\n", "L 1 reference [foo] x.md\n");
    expect("line\n[][r]\n\n[r]: x.md\n", "L 2 reference [] x.md\n");
    expect("[*e* t][r]\n[r](inline.md)\n\n[r]: x.md\n",
           "L 1 reference [e t] x.md\nL 2 inline [r] inline.md\n");
}

static void test_wiki_links(void **state)
{
    (void)state;
    expect("[[a]] [[a|b]] [[a#part]] [[dir/a.md#p|text]] [[ a | b ]]\n",
           "L 1 wiki [a] a\nL 1 wiki [b] a\nL 1 wiki [a#part] a#part\n"
           "L 1 wiki [text] dir/a.md#p\nL 1 wiki [b] a\n");
    expect("x\n\n![[note]] ![[note#part]] ![[p.png]]\n- [[ \xe4\xbc\x9a\xe8\xad\xb0 ]]\n",
           "L 3 wiki [note] note\nL 3 wiki [note#part] note#part\n"
           "L 4 wiki [\xe4\xbc\x9a\xe8\xad\xb0] \xe4\xbc\x9a\xe8\xad\xb0\n");
    expect("[[]] [[|x]] [[a\nb]] [[[c]]] \\[[d]] [[e\\]] [[a_b_c]] [[*x*]] [[f|]]\n",
           "L 2 wiki [c] c\nL 2 wiki [a_b_c] a_b_c\nL 2 wiki [*x*] *x*\nL 2 wiki [f] f\n");
    expect("| a | b |\n|---|---|\n| [[x\\|y]] | [[z]] |\n| [[p|q]] | |\n",
           "L 3 wiki [y] x\nL 3 wiki [z] z\nL 4 wiki [q] p\n");
    expect("[[r]] [[a|r]]\n\n[r]: x.md\n", "L 1 wiki [r] r\nL 1 wiki [r] a\n");
    expect("# See [[x]]\n", "L 1 wiki [x] x\nH 1 1 [See x] #see-x\n");
}

static void test_addresses(void **state)
{
    (void)state;
    expect("<https://a.b/c> <me@x.org>\n",
           "L 1 auto [https://a.b/c] https://a.b/c\nL 1 auto [me@x.org] mailto:me@x.org\n");
    expect(
        "See https://a.b/c_d_e?f=1. (http://x.y/z_(w)) xhttp://no HTTP://UP.x, http://\n",
        "L 1 auto [https://a.b/c_d_e?f=1] https://a.b/c_d_e?f=1\n"
        "L 1 auto [http://x.y/z_(w)] http://x.y/z_(w)\nL 1 auto [HTTP://UP.x] HTTP://UP.x\n");
    expect("[https://a.b](https://c.d)\n", "L 1 inline [https://a.b] https://c.d\n");
}

/* ---- tasks ---- */

static void test_tasks(void **state)
{
    (void)state;
    expect("- [ ] open\n- [x] done *em*\n- [X] DONE\n- [y] none\n- []\n* plain\n+ [ ] plus\n",
           "T 1 - [open]\nT 2 x [done em]\nT 3 x [DONE]\nT 7 - [plus]\n");
    expect("1. [ ] one\n2. [x] two\n\n   more\n3) [ ] other list\n",
           "T 1 - [one]\nT 2 x [two]\nT 5 - [other list]\n");
    expect("- [ ] a\n  - [x] b\n    goes on\n    1. [ ] c\n  - [ ] d\n\n- [x] e\n",
           "T 1 - [a]\nT 2 x [b goes on]\nT 4 - [c]\nT 5 - [d]\nT 7 x [e]\n");
    expect("> - [ ] quoted [l](x.md)\n\n```\n- [ ] code\n```\n",
           "L 1 inline [l] x.md\nT 1 - [quoted l]\n");
}

/* ---- what a reader that is not exact takes for something else ---- */

static void test_ends_of_blocks(void **state)
{
    (void)state;
    /* A heading ends a table; a fence that is indented too far is a text. */
    expect("## A\n\n| x |\n|---|\n| 1 |\n## B\nkeep me\n", "H 1 2 [A] #a\nH 6 2 [B] #b\n");
    expect("## A\n\ntext\n    ```\n\n## B\nkeep me\n", "H 1 2 [A] #a\nH 6 2 [B] #b\n");
    expect("para\n| a | b |\n|--|--|\n| [x](1.md) | 2 |\n[y](2.md)\n\n[z](3.md)\n",
           "L 4 inline [x] 1.md\nL 5 inline [y] 2.md\nL 7 inline [z] 3.md\n");
    expect("[a]: b\n[c]: d\ntext\n[a]\nTitle\n===\n[c]\n",
           "L 4 reference [a] b\nH 3 1 [text a Title] #text-a-title\nL 7 reference [c] d\n");
    expect("[a](x.md\n\"t\") [b](y.md)\n`c\nd` [e](z.md)\n",
           "L 1 inline [a] x.md\nL 2 inline [b] y.md\nL 4 inline [e] z.md\n");
    expect("a\n\n\n\n\n\n# B\n\n\n\n\n[x](y)\n", "H 7 1 [B] #b\nL 12 inline [x] y\n");
}

static void test_footnotes(void **state)
{
    (void)state;
    expect("a[^1] [^2] [b][^1]\n\n[^1]: word\n[^2]: see [x](y.md)\n    more [z](w.md)\n",
           "L 4 inline [x] y.md\nL 5 inline [z] w.md\n");
}

static void test_comments(void **state)
{
    (void)state;
    expect("%%[[x]]%% [[y]] %%\nnot over blocks\n\n[[z]] `%%` [[w]]\n",
           "L 1 wiki [y] y\nL 4 wiki [z] z\nL 4 wiki [w] w\n");
    expect("%%\n[[a]]\n\n- [[b]] #c\n\n# H [[d]]\n\n[[e]] %% [[f]]\n\n[[g]]\n",
           "H 6 1 [H d] #h-d\nL 8 wiki [f] f\nL 10 wiki [g] g\n");
    expect("%% alone [[a]]\n\n[[b]] 100% [[c]]\n",
           "L 1 wiki [a] a\nL 3 wiki [b] b\nL 3 wiki [c] c\n");
}

static void test_tags(void **state)
{
    (void)state;
    expect("#one two #a/b-c_d #1984 #y1984 #2024-01 x#no \\#no `#no` #\n#\xc3\xa9t\xc3\xa9/ "
           "#x. (#no)\n",
           "# 1 one\n# 1 a/b-c_d\n# 1 y1984\n# 1 2024-01\n# 2 \xc3\xa9t\xc3\xa9\n# 2 x\n");
    expect("[a #no](x.md) [[n #no]] http://x.y/ #yes\n## H #t\n\n    "
           "#code\n\n<div>\n#no\n</div>\n",
           "L 1 inline [a #no] x.md\nL 1 wiki [n #no] n #no\nL 1 auto [http://x.y/] "
           "http://x.y/\n# 1 yes\n# 2 t\nH 2 2 [H #t] #h-t\n");
    expect("| #a | b |\n|--|--|\n| x | #c |\n\n- #d\n> #e\n\n<!-- #no -->\n",
           "# 1 a\n# 3 c\n# 5 d\n# 6 e\n");
}

static void test_plain(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"[[Some note|As shown]] and more", "As shown and more"},
        {"*a **b** c* snake_case 2 * 3", "a b c snake_case 2 * 3"},
        {"***a** b* ~~c~~ ~d~ ~~~e~~~", "a b c d ~~~e~~~"},
        {"**a*b*** _c_d_ __e__", "ab c_d e"},
        {"a ![b ![c](d) e](f) g", "a  g"},
        {"[*a](b)* `` ` `` <b>c</b>", "*a* ` c"},
    };
    for (size_t i = 0; i < NG_COUNT(cases); i++) {
        struct buf buf;
        buf_init(&buf, 1024);
        assert_true(notes_markdown_plain(ng_str_of(cases[i][0]), &buf));
        buf_add_char(&buf, '\0');
        assert_string_equal(buf.data, cases[i][1]);
        buf_done(&buf);
    }
}

static void test_limits(void **state)
{
    (void)state;
    struct notes_markdown_stats stats;
    struct buf text;
    buf_init(&text, (size_t)16 * 1024 * 1024);
    for (size_t i = 0; i <= NOTES_BLOCKS_DEPTH_MAX; i++) {
        buf_add_c(&text, "> ");
    }
    buf_add_c(&text, "x\n\n# H\n");
    assert_int_equal(notes_markdown_parse(notes_buf_str(&text), NULL, NULL, &stats), NG_OK);
    assert_false(stats.whole);
    buf_clear(&text);
    for (size_t i = 0; i < 2000000; i++) {
        buf_add_c(&text, "- a\n");
    }
    assert_int_equal(notes_markdown_parse(notes_buf_str(&text), NULL, NULL, &stats), NG_OK);
    assert_false(stats.whole);
    assert_int_equal(stats.lines, 2000000);
    buf_done(&text);
    assert_int_equal(notes_markdown_parse(ng_str_of("# a\n> > b\n"), NULL, NULL, &stats),
                     NG_OK);
    assert_true(stats.whole);
}

/* ---- counts, ends ---- */

static void test_stats(void **state)
{
    (void)state;
    struct notes_markdown_stats stats;
    struct ng_str text = ng_str_of("# One two\n\n- [ ] [a](b) \xc3\xa9t\xc3\xa9\n\n```\nx - "
                                   "y\n```\n\n    code\n");
    assert_int_equal(notes_markdown_parse(text, NULL, NULL, &stats), NG_OK);
    assert_int_equal(stats.words, notes_words(text));
    assert_int_equal(stats.chars, text.len - 2);
    assert_int_equal(stats.lines, 9);
    assert_int_equal(stats.headings, 1);
    assert_int_equal(stats.code_blocks, 2);
    assert_int_equal(stats.links, 1);
    assert_int_equal(stats.tasks, 1);
    assert_int_equal(notes_markdown_parse(ng_str_of("a\nb"), NULL, NULL, &stats), NG_OK);
    assert_int_equal(stats.lines, 2);
}

static void test_stops(void **state)
{
    (void)state;
    struct ng_str text = ng_str_of("# a\n[b](c)\n\n- [ ] d\n\n# e\n");
    for (uint64_t stop = 1; stop <= 4; stop++) {
        struct dump dump = {.stop_at = stop};
        buf_init(&dump.buf, 4096);
        assert_int_equal(notes_markdown_parse(text, &dump_events, &dump, NULL), NG_ECANCELLED);
        assert_int_equal(dump.count, stop);
        buf_done(&dump.buf);
    }
}

/* ---- entities, taming ---- */

static void test_entities(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"&amp;", "&"},
        {"&AMP;", "&"},
        {"&yen;", "\xc2\xa5"},
        {"&num;", "#"},
        {"&Uuml;", "\xc3\x9c"},
        {"&#65;", "A"},
        {"&#x1F600;", "\xf0\x9f\x98\x80"},
        {"&#0;", "\xef\xbf\xbd"},
        {"&#xD800;", "\xef\xbf\xbd"},
        {"&nosuch;", "&nosuch;"},
        {"&#x;", "\xef\xbf\xbd"},
        {"&percnt;", "%"},
    };
    for (size_t i = 0; i < NG_COUNT(cases); i++) {
        struct buf buf;
        buf_init(&buf, 64);
        notes_entity_add(&buf, ng_str_of(cases[i][0]));
        buf_add_char(&buf, '\0');
        assert_string_equal(buf.data, cases[i][1]);
        buf_done(&buf);
    }
}

/* Texts on which a simple reader takes quadratic time, cmark-gfm among them: they end. Such a
 * reader would not within the test's time limit. */
static void test_hostile(void **state)
{
    (void)state;
    static const char *const units[] = {
        "[",          "[[",          "[a](",
        "](",         "](\n[",       "[a\nb]: \n",
        "*a **b ",    "<",           "`",
        "\\`` ",      "> ",          "- ",
        "|",          "![",          "<!--",
        "a <?",       "http://a.b(", "http://",
        "[x]: b\n",   "[x]",         "| [a](b) |\n",
        "- [a](b)\n", "#\n",         "[][",
        "&a",         "<div\n",      "- [ ] a\n",
        "[](a)",      "## x\n",      "a\n",
        "[[a|",       "~~a",         "    - ](\n[",
        "\xc3\xa9",   "\r",          "%%",
        "%% a\n\n",   "#a ",         "*a_ ",
        "a**b",       "[^1]: ",      "[^1]:\n  ",
        "|-|-\n",     "a|b\n-|-\n",  "<a b='",
        "<![CDATA[",  "a\n===\n",    "1. ",
        "`a``b```c ", "![a](b \"",   "[a](<b",
        "* * ",       "- - a\n",
    };
    const size_t size = (size_t)512 * 1024;
    char *text = malloc(size);
    assert_non_null(text);
    for (size_t i = 0; i < NG_COUNT(units); i++) {
        size_t len = strlen(units[i]);
        size_t count = size / len;
        for (size_t k = 0; k < count; k++) {
            memcpy(text + k * len, units[i], len);
        }
        struct notes_markdown_stats stats;
        assert_int_equal(notes_markdown_parse(str_make(text, count * len), NULL, NULL, &stats),
                         NG_OK);
        if (strcmp(units[i], "- [a](b)\n") == 0 || strcmp(units[i], "[](a)") == 0) {
            assert_int_equal(stats.links, count);
        }
    }
    free(text);
}

static void add_times(struct buf *text, const char *unit, size_t times)
{
    for (size_t i = 0; i < times; i++) {
        buf_add_c(text, unit);
    }
}

/* The same for texts of several parts: what is open, or wide, and then many lines of it. */
static void test_hostile_parts(void **state)
{
    (void)state;
    static const struct {
        const char *parts[3];
        size_t times[3];
    } cases[] = {
        {{"- ", "a\n", "\n"}, {99, 1, 500000}},
        {{"> ", "a\n", "a\n"}, {99, 1, 250000}},
        {{"a|", "\n", ""}, {100000, 1, 0}},
        {{"[", "]", ""}, {250000, 250000, 0}},
        {{"*", "a", "*"}, {250000, 1, 250000}},
        {{"- ", "\n", ""}, {250000, 1, 0}},
        {{"# ", "~~~ ", "*a_ b* "}, {1, 40000, 40000}},
    };
    for (size_t i = 0; i < NG_COUNT(cases); i++) {
        struct buf text;
        struct notes_markdown_stats stats;
        buf_init(&text, (size_t)16 * 1024 * 1024);
        for (size_t k = 0; k < 3; k++) {
            add_times(&text, cases[i].parts[k], cases[i].times[k]);
        }
        if (i == 2) {
            add_times(&text, "-|", cases[i].times[0]);
            add_times(&text, "\n|a", 100000);
        }
        assert_int_equal(notes_markdown_parse(notes_buf_str(&text), NULL, NULL, &stats), NG_OK);
        buf_done(&text);
    }
}

/* Many short references to one long target: what is told ends, the text is read in time. */
static void test_long_target(void **state)
{
    (void)state;
    const size_t long_len = 60000;
    struct buf text;
    buf_init(&text, (size_t)8 * 1024 * 1024);
    buf_add_c(&text, "[a]: /");
    for (size_t i = 0; i < long_len; i++) {
        buf_add_char(&text, 'u');
    }
    buf_add_c(&text, "\n\n");
    for (size_t i = 0; i < 100000; i++) {
        buf_add_c(&text, "[a] ");
    }
    struct notes_markdown_stats stats;
    assert_int_equal(notes_markdown_parse(notes_buf_str(&text), NULL, NULL, &stats), NG_OK);
    assert_true(stats.links > 100);
    assert_true(stats.links < 100000);
    buf_done(&text);
}

struct placed {
    struct ng_str text;
    struct buf targets;
};

static int dump_place(void *user, const struct notes_link *link)
{
    struct placed *placed = user;
    assert_true(link->at < link->end && link->end <= placed->text.len);
    buf_printf(&placed->targets, "%.*s|", (int)(link->end - link->at),
               placed->text.data + link->at);
    return 0;
}

/* Targets as they are written, in the bytes of the text. */
static void test_places(void **state)
{
    static const struct notes_markdown_events events = {
        .link = dump_place, .image = dump_place, .places = true};
    static const char text[] =
        "# [a](h1) ##\n\n[b](s1)\n===\n\n- > [c](<l 1>)\r\n  [d](l&amp;2 'T')\r\n\n"
        "|[e](t1)|[[w1 \\|x]]|\n|-|-|\n|[f](t2)|![[p.png]]|\n\n- [ ] [[k1|k]] ![i](k2)\n\n"
        "[![i](i1)](i2)\n> - lazy\n[[z1#p]] `[[no]]`";
    struct placed placed = {.text = ng_str_of(text)};
    (void)state;
    buf_init(&placed.targets, 4096);
    assert_int_equal(notes_markdown_parse(placed.text, &events, &placed, NULL), NG_OK);
    assert_string_equal(buf_cstr(&placed.targets),
                        "h1|s1|l 1|l&amp;2|t1|w1|t2|p.png|k1|k2|i1|i2|z1#p|");
    buf_done(&placed.targets);
}

static int dump_definition(void *user, const struct notes_definition *found)
{
    struct placed *placed = user;
    assert_memory_equal(placed->text.data + found->at, found->target.data, found->target.len);
    buf_printf(&placed->targets, "%.*s=%.*s|", (int)found->label.len, found->label.data,
               (int)found->target.len, found->target.data);
    return 0;
}

static void test_definitions(void **state)
{
    static const char text[] =
        "[a]: one 'T'\n[b]:\n  <two 2>\ntext [a]: no\n\n> [c]: three\n\n"
        "```\n[d]: no\n```\n\n<div>\n[e]: no\n</div>\n\n- x\n\n  [f]: six\n";
    struct placed placed = {.text = ng_str_of(text)};
    (void)state;
    buf_init(&placed.targets, 4096);
    assert_int_equal(notes_markdown_definitions(placed.text, dump_definition, &placed), NG_OK);
    assert_string_equal(buf_cstr(&placed.targets), "a=one|b=two 2|c=three|f=six|");
    buf_done(&placed.targets);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_headings),       cmocka_unit_test(test_empty_headings),
        cmocka_unit_test(test_slugs),          cmocka_unit_test(test_inline_links),
        cmocka_unit_test(test_no_links),       cmocka_unit_test(test_reference_links),
        cmocka_unit_test(test_wiki_links),     cmocka_unit_test(test_addresses),
        cmocka_unit_test(test_tasks),          cmocka_unit_test(test_stats),
        cmocka_unit_test(test_ends_of_blocks), cmocka_unit_test(test_footnotes),
        cmocka_unit_test(test_comments),       cmocka_unit_test(test_tags),
        cmocka_unit_test(test_plain),          cmocka_unit_test(test_limits),
        cmocka_unit_test(test_stops),          cmocka_unit_test(test_entities),
        cmocka_unit_test(test_hostile),        cmocka_unit_test(test_long_target),
        cmocka_unit_test(test_hostile_parts),  cmocka_unit_test(test_places),
        cmocka_unit_test(test_definitions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
