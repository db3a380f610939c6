/* SPDX-License-Identifier: MIT */
/* test_cells_nb.c - the index of a notebook file and its edits, and the errors of files that
 * are none. */
#include "test_nb.h"

#define CELLS_MAX 12

/* One edit of a file given as text, and what must come out. */
typedef void change_fn(struct nb_edit *edit, const struct nb *nb);

static void becomes(const char *before, change_fn *change, const char *after)
{
    struct nb nb;
    struct nb_edit edit = {0};
    index_good(str(before), &nb);
    change(&edit, &nb);
    struct nb_text out = applied(&nb, &edit);
    equal(nb_text_str(&out), str(after));
    nb_text_done(&out);
    nb_done(&nb);
}

/* ---- files of no one layout ---- */

static const char odd[] =
    "\xef\xbb\xbf {\n"
    "  \"nbformat_minor\" : 5,\"nbformat\": 4,\n"
    "\t\"x-unknown\": {\"a\": [1e400, 1E5,\n 0.10]},\n"
    "  \"metadata\": {  },\r\n"
    "  \"cells\": [ { \"cell_type\":\"code\" , \"id\": \"a\", \"source\": "
    "[\"one\\n\",\n\"t\\u0077o\"],"
    " \"outputs\": [  ], \"execution_count\": 3.0, \"mine\": \"\\/\" },\n"
    "\n"
    "   "
    "{\"source\":\"text\",\"cell_type\":\"markdown\",\"id\":\"b\",\"metadata\":{\"n\":1}}\t]\n"
    "}  \n\n";

static void change_odd_source(struct nb_edit *edit, const struct nb *nb)
{
    nb_set_source(edit, nb, 0, str("one\ntwo\nthree"));
}

static void change_odd_text(struct nb_edit *edit, const struct nb *nb)
{
    nb_set_source(edit, nb, 1, str("te\"xt\n\xc3\xa9"));
}

static void change_same(struct nb_edit *edit, const struct nb *nb)
{
    nb_set_source(edit, nb, 0, str("one\ntwo"));
    assert_int_equal(edit->count, 0);
}

static void change_swap(struct nb_edit *edit, const struct nb *nb)
{
    nb_move_cell(edit, nb, 0, 1);
}

static void test_odd_file(void **state)
{
    (void)state;
    struct nb nb;
    index_good(str(odd), &nb);
    source_is(&nb, 0, "one\ntwo");
    source_is(&nb, 1, "text");
    assert_int_equal(nb.cell_count, 2);
    nb_done(&nb);
    becomes(odd, change_same, odd);
    becomes(
        odd, change_odd_source,
        "\xef\xbb\xbf {\n"
        "  \"nbformat_minor\" : 5,\"nbformat\": 4,\n"
        "\t\"x-unknown\": {\"a\": [1e400, 1E5,\n 0.10]},\n"
        "  \"metadata\": {  },\r\n"
        "  \"cells\": [ { \"cell_type\":\"code\" , \"id\": \"a\", \"source\": "
        "[\"one\\n\",\n\"two\\n\",\n\"three\"],"
        " \"outputs\": [  ], \"execution_count\": 3.0, \"mine\": \"\\/\" },\n"
        "\n"
        "   {\"source\":\"text\",\"cell_type\":\"markdown\",\"id\":\"b\",\"metadata\":{\"n\":1}"
        "}\t]\n"
        "}  \n\n");
    becomes(odd, change_odd_text,
            "\xef\xbb\xbf {\n"
            "  \"nbformat_minor\" : 5,\"nbformat\": 4,\n"
            "\t\"x-unknown\": {\"a\": [1e400, 1E5,\n 0.10]},\n"
            "  \"metadata\": {  },\r\n"
            "  \"cells\": [ { \"cell_type\":\"code\" , \"id\": \"a\", \"source\": "
            "[\"one\\n\",\n\"t\\u0077o\"],"
            " \"outputs\": [  ], \"execution_count\": 3.0, \"mine\": \"\\/\" },\n"
            "\n"
            "   {\"source\":\"te\\\"xt\\n\xc3\xa9\",\"cell_type\":\"markdown\",\"id\":\"b\","
            "\"metadata\":{\"n\":1}}\t]\n"
            "}  \n\n");
    becomes(odd, change_swap,
            "\xef\xbb\xbf {\n"
            "  \"nbformat_minor\" : 5,\"nbformat\": 4,\n"
            "\t\"x-unknown\": {\"a\": [1e400, 1E5,\n 0.10]},\n"
            "  \"metadata\": {  },\r\n"
            "  \"cells\": [ {\"source\":\"text\",\"cell_type\":\"markdown\",\"id\":\"b\","
            "\"metadata\":{\"n\":1}},\n"
            "\n"
            "   { \"cell_type\":\"code\" , \"id\": \"a\", \"source\": "
            "[\"one\\n\",\n\"t\\u0077o\"],"
            " \"outputs\": [  ], \"execution_count\": 3.0, \"mine\": \"\\/\" }\t]\n"
            "}  \n\n");
}

/* ---- lists that are empty, or get so ---- */

#define HEAD "{\n  \"cells\": "
#define TAIL ",\n  \"metadata\": {},\n  \"nbformat\": 4,\n  \"nbformat_minor\": 5\n}"

static void change_add(struct nb_edit *edit, const struct nb *nb)
{
    nb_insert_cell(edit, nb, 0, NB_CODE, str("new"), str("a\nb"));
}

static void change_delete_all(struct nb_edit *edit, const struct nb *nb)
{
    bool gone[CELLS_MAX];
    memset(gone, 1, sizeof(gone));
    assert_true(nb->cell_count < CELLS_MAX);
    nb_delete_cells(edit, nb, gone);
}

static void test_empty_lists(void **state)
{
    (void)state;
    const char *one =
        HEAD "[\n    {\n      \"cell_type\": \"code\",\n      \"execution_count\": "
             "null,\n      \"id\": \"new\",\n      \"metadata\": {},\n      "
             "\"outputs\": [],\n      \"source\": [\n        \"a\\n\",\n        "
             "\"b\"\n      ]\n    }\n  ]" TAIL;
    becomes(HEAD "[]" TAIL, change_add, one);
    becomes(HEAD "[\n  ]" TAIL, change_add, one);
    becomes(one, change_delete_all, HEAD "[]" TAIL);
    becomes(HEAD "[]" TAIL, change_delete_all, HEAD "[]" TAIL);
    /* The order of members of a neighbour, and its one string. */
    becomes(
        "{\"nbformat\":4,\"nbformat_minor\":5,\"metadata\":{},\"cells\":[{\"source\":\"\","
        "\"id\":\"x\",\"cell_type\":\"raw\",\"metadata\":{}}]}",
        change_add,
        "{\"nbformat\":4,\"nbformat_minor\":5,\"metadata\":{},\"cells\":[{\"source\":\"a\\nb\","
        "\"id\":\"new\",\"cell_type\":\"code\",\"metadata\":{},\"execution_count\":null,"
        "\"outputs\":[]},{\"source\":\"\","
        "\"id\":\"x\",\"cell_type\":\"raw\",\"metadata\":{}}]}");
}

/* ---- lines of a source: those that stay keep their bytes ---- */

static void set_lines(const char *old, const char *text, const char *want)
{
    char before[1024];
    char after[1024];
    struct nb nb;
    struct nb_edit edit = {0};
    static const char form[] =
        "{\"cells\":[{\"cell_type\":\"raw\",\"metadata\":{},\"source\":%s}],"
        "\"metadata\":{},\"nbformat\":4,\"nbformat_minor\":4}";
    (void)snprintf(before, sizeof(before), form, old);
    (void)snprintf(after, sizeof(after), form, want);
    index_good(str(before), &nb);
    nb_set_source(&edit, &nb, 0, str(text));
    struct nb_text out = applied(&nb, &edit);
    equal(nb_text_str(&out), str(after));
    nb_text_done(&out);
    nb_done(&nb);
}

static void test_lines(void **state)
{
    (void)state;
    set_lines("[ \"a\\u000a\" ,\"b\"]", "a\nc", "[ \"a\\u000a\" ,\"c\"]");
    set_lines("[\"\\u0061\\n\",\"b\\n\",\"\\u0063\"]", "a\nc", "[\"\\u0061\\n\",\"\\u0063\"]");
    set_lines("[\"\\u0061\\n\", \"b\"]", "a\n", "[\"\\u0061\\n\"]");
    set_lines("[\"\\u0061\"]", "a\nb", "[\"a\\n\",\"b\"]");
    set_lines("[\"b\"]", "a\nb", "[\"a\\n\",\"b\"]");
    set_lines("[\"\\u0062\", \"\"]", "a\nb", "[\"a\\n\",\"b\"]");
    set_lines("[\"a\\n\", \"b\\n\"]", "", "[]");
    set_lines("[]", "a\n", "[\"a\\n\"]");
    set_lines("\"\"", "a\nb", "\"a\\nb\"");
    set_lines("\"\\u0061\"", "a", "\"\\u0061\"");
    set_lines("[\"x\\ny\\n\",\"z\"]", "x\ny\nz", "[\"x\\ny\\n\",\"z\"]"); /* the same text */
    set_lines("[\"x\\ny\\n\",\"z\"]", "x\ny\nw", "[\"x\\ny\\n\",\"w\"]");
    set_lines("[\"a\\u2028\",\"b\"]", "a\xe2\x80\xa8-", "[\"a\\u2028\",\"-\"]");
    set_lines("[\"a\\rb\\n\",\"c\"]", "a\rb\nd",
              "[\"a\\rb\\n\",\"d\"]"); /* kept as it was split */
    set_lines("[\"a\\r\",\"\\nc\"]", "a\r\nd", "[\"a\\r\\n\",\"d\"]");
    set_lines("[\"\\ud800\"]", "\xef\xbf\xbd", "[\"\\ud800\"]"); /* read as that, kept */
}

/* ---- members that are missing ---- */

static void change_outputs(struct nb_edit *edit, const struct nb *nb)
{
    nb_set_outputs(edit, nb, 0,
                   str("[{\"output_type\":\"stream\",\"name\":\"stdout\",\"text\":[]}]"), 7);
}

static void change_append(struct nb_edit *edit, const struct nb *nb)
{
    nb_replace_outputs(edit, nb, 0, SIZE_MAX, str("[{\"a\":1},{\"b\":[]}]"));
}

static void change_behind_first(struct nb_edit *edit, const struct nb *nb)
{
    nb_replace_outputs(edit, nb, 0, 1, str("[{\"a\":1},{\"b\":[]}]"));
}

#define APPEND_HEAD "{\"cells\": [{\"cell_type\": \"code\", \"source\": \"1\""
#define APPEND_TAIL "}], \"nbformat\": 4}"

static void test_outputs_behind_others(void **state)
{
    (void)state;
    becomes(APPEND_HEAD APPEND_TAIL, change_append,
            APPEND_HEAD ", \"outputs\": [{\"a\": 1}, {\"b\": []}]" APPEND_TAIL);
    becomes(APPEND_HEAD ", \"outputs\": []" APPEND_TAIL, change_append,
            APPEND_HEAD ", \"outputs\": [{\"a\": 1}, {\"b\": []}]" APPEND_TAIL);
    becomes(APPEND_HEAD ", \"outputs\": [{\"x\": 1}, {\"y\": [2]}, {}]" APPEND_TAIL,
            change_behind_first,
            APPEND_HEAD ", \"outputs\": [{\"x\": 1}, {\"a\": 1}, {\"b\": []}]" APPEND_TAIL);
    becomes(APPEND_HEAD ", \"outputs\": []" APPEND_TAIL, change_behind_first,
            APPEND_HEAD ", \"outputs\": [{\"a\": 1}, {\"b\": []}]" APPEND_TAIL);
    /* Existing members keep their text. */
    becomes(APPEND_HEAD ", \"outputs\": [ {\"odd\":1e999 } ]" APPEND_TAIL, change_append,
            APPEND_HEAD
            ", \"outputs\": [ {\"odd\":1e999 }, {\"a\": 1}, {\"b\": []} ]" APPEND_TAIL);
    becomes("{\"cells\":[\r\n {\r\n  \"cell_type\":\"code\",\r\n  \"outputs\":[\r\n   {},\r\n  "
            " {}\r\n  ],\r\n"
            "  \"source\":\"1\"\r\n }\r\n],\"nbformat\":4}",
            change_append,
            "{\"cells\":[\r\n {\r\n  \"cell_type\":\"code\",\r\n  \"outputs\":[\r\n   {},\r\n"
            "   {},\r\n   {\"a\":1},\r\n   {\"b\":[]}\r\n  ],\r\n"
            "  \"source\":\"1\"\r\n }\r\n],\"nbformat\":4}");
}

static void change_clear(struct nb_edit *edit, const struct nb *nb)
{
    nb_clear_outputs(edit, nb, 0);
}

static void test_missing_members(void **state)
{
    (void)state;
    const char *without = "{\"cells\": [{\"cell_type\": \"code\", \"source\": \"1\"}], "
                          "\"nbformat\": 4}";
    becomes(
        without, change_outputs,
        "{\"cells\": [{\"cell_type\": \"code\", \"source\": \"1\", \"execution_count\": 7, "
        "\"outputs\": [{\"output_type\": \"stream\", \"name\": \"stdout\", \"text\": []}]}], "
        "\"nbformat\": 4}");
    becomes(without, change_clear, without);
    const char *doubled =
        "{\"cells\":[{\"cell_type\":\"raw\",\"cell_type\":\"code\",\"outputs\":[{}],"
        "\"outputs\":[],\"source\":\"a\",\"source\":\"b\"}],\"nbformat\":4}";
    struct nb nb;
    index_good(str(doubled), &nb);
    assert_int_equal(nb.cells[0].type, NB_CODE); /* the last counts, as for every reader */
    assert_int_equal(nb.cells[0].output_count, 0);
    source_is(&nb, 0, "b");
    nb_done(&nb);
}

static void test_patch_output(void **state)
{
    (void)state;
    const char *file =
        "{\"cells\":[{\"cell_type\":\"code\",\"source\":[],\"outputs\":[{\"output_type\":"
        "\"stream\"},{\"data\":{\"text/plain\":\"1\"},\"metadata\":{}}]}],\"nbformat\":4}";
    struct nb nb;
    struct nb_edit edit = {0};
    index_good(str(file), &nb);
    assert_false(nb_patch_output(&edit, &nb, 0, 0, str("{}"), str("{}")));
    assert_false(nb_patch_output(&edit, &nb, 0, 2, str("{}"), str("{}")));
    assert_true(
        nb_patch_output(&edit, &nb, 0, 1, str("{\"text/plain\":\"2\"}"), str("{\"a\":1}")));
    struct nb_text out = applied(&nb, &edit);
    equal(nb_text_str(&out),
          str("{\"cells\":[{\"cell_type\":\"code\",\"source\":[],\"outputs\":[{\"output_type\":"
              "\"stream\"},{\"data\":{\"text/"
              "plain\":\"2\"},\"metadata\":{\"a\":1}}]}],\"nbformat\":4}"));
    nb_text_done(&out);
    nb_done(&nb);
}

/* ---- ids ---- */

static void test_ids(void **state)
{
    (void)state;
    struct nb nb;
    char file[2048];
    char longest[80];
    memset(longest, 'x', sizeof(longest));
    longest[64] = '\0';
    (void)snprintf(file, sizeof(file),
                   "{\"cells\":[{\"cell_type\":\"raw\",\"source\":[],\"id\":\"a\"},"
                   "{\"cell_type\":\"raw\",\"source\":[],\"id\":\"a\"},"
                   "{\"cell_type\":\"raw\",\"source\":[],\"id\":\"a\"},"
                   "{\"cell_type\":\"raw\",\"source\":[],\"id\":\"b-_Z9\"},"
                   "{\"cell_type\":\"raw\",\"source\":[],\"id\":\"\"},"
                   "{\"cell_type\":\"raw\",\"source\":[],\"id\":\"a b\"},"
                   "{\"cell_type\":\"raw\",\"source\":[],\"id\":7},"
                   "{\"cell_type\":\"raw\",\"source\":[]},"
                   "{\"cell_type\":\"raw\",\"source\":[],\"id\":\"%s\"},"
                   "{\"cell_type\":\"raw\",\"source\":[],\"id\":\"%sy\"}],\"nbformat\":4}",
                   longest, longest);
    index_good(str(file), &nb);
    for (size_t i = 0; i < nb.cell_count; i++) {
        assert_int_equal(nb.cells[i].id_unique, i == 3 || i == 8);
        assert_int_equal(nb.cells[i].id_duplicate, i < 3);
    }
    assert_false(nb.has_ids);
    nb_done(&nb);
}

/* Names and words as some writers spell them: readers take them for the same. */
static void test_escaped_words(void **state)
{
    (void)state;
    struct nb nb;
    static const char file[] =
        "{\"c\\u0065lls\":[{\"cell\\u005Ftype\":\"c\\u006fde\",\"source\":\"old\","
        "\"s\\u006Furce\":\"new\",\"sourc\\u00e9\":\"\",\"sourc\\u0165\":\"\","
        "\"sourc\\\\e\":\"\",\"outputs\":[{\"output_type\":\"display_data\","
        "\"metadata\":{},\"data\":{\"image\\/png\":\"aGk=\"}}],\"execution_count\":null}],"
        "\"nbformat\":4}";
    index_good(str(file), &nb);
    assert_int_equal(nb.cells[0].type, NB_CODE);
    source_is(&nb, 0, "new");
    struct nb_walk walk = nb_walk_into(nb.bytes, nb.cells[0].outputs);
    struct nb_span output = {0, 0};
    assert_true(nb_walk_element(&walk, &output));
    struct nb_span data = nb_member(nb.bytes, output, "data");
    assert_int_equal(nb_member(nb.bytes, data, "image/png").len, 6);
    assert_int_equal(nb_member(nb.bytes, data, "image/pn").len, 0);
    assert_int_equal(nb_member(nb.bytes, data, "image/pngs").len, 0);
    nb_done(&nb);
}

/* ---- errors ---- */

struct bad {
    const char *bytes;
    enum nb_fault fault;
    const char *text;
};

static const struct bad malformed[] = {
    {"", NB_EMPTY, "it is empty (line 1, column 1)"},
    {" \n\t", NB_EMPTY, "it is empty"},
    {"\xef\xbb\xbf", NB_EMPTY, "it is empty"},
    {"{\"cells\": [", NB_NOT_JSON,
     "it is cut short: its JSON does not end (line 1, column 12)"},
    {"{\"a\": \"\xc3\xa9\",\n \"b\": \"x", NB_NOT_JSON, "does not end (line 2, column 9)"},
    {"{\"\xc3\xa9\": tru}", NB_NOT_JSON, "this is not a JSON value (line 1, column 7)"},
    {"\xef\xbb\xbf{\"a\" 1}", NB_NOT_JSON, "a colon is missing (line 1, column 6)"},
    {"{\"a\": 1 \"b\": 2}", NB_NOT_JSON, "a comma or the closing bracket is missing"},
    {"{\"a\": 1,}", NB_NOT_JSON, "a string is missing (line 1, column 9)"},
    {"{\"a\": [1,]}", NB_NOT_JSON, "this is not a JSON value"},
    {"{\"a\": \"\t\"}", NB_NOT_JSON, "a control character stands unescaped in a string"},
    {"{\"a\": \"\\x\"}", NB_NOT_JSON, "this escape does not exist (line 1, column 8)"},
    {"{\"a\": \"\\u12g4\"}", NB_NOT_JSON, "\\u needs four hexadecimal digits"},
    {"{\"a\": 01}", NB_NOT_JSON, "this is not a JSON value"},
    {"{\"a\": 1.}", NB_NOT_JSON, "digits are missing after the point"},
    {"{\"a\": 1e}", NB_NOT_JSON, "digits are missing in the exponent"},
    {"{} {}", NB_NOT_JSON, "there is text after the end of its JSON (line 1, column 4)"},
    {"{\n<<<<<<< HEAD\n", NB_NOT_JSON,
     "conflict markers of a merge: resolve the conflicts first (line 2, column 1)"},
    {"{\"a\": 1\n=======\n", NB_NOT_JSON, "conflict markers"},
    {"{\"a\": \"\xff\"}", NB_NOT_UTF8, "it is not UTF-8 (line 1, column 8)"},
    {"{\"a\": \"\xed\xa0\x80\"}", NB_NOT_UTF8, "it is not UTF-8"},
    {"\xff\xfe{\0", NB_NOT_UTF8, "it is not UTF-8 (line 1, column 1)"},
    {"[]", NB_NO_NOTEBOOK, "it is JSON, but not an object"},
    {"{}", NB_NO_NOTEBOOK, "it has neither nbformat nor cells"},
    {"{\"cells\": []}", NB_NO_NOTEBOOK, "its nbformat is missing or not a whole number"},
    {"{\"cells\": [], \"nbformat\": \"4\"}", NB_NO_NOTEBOOK, "its nbformat is missing"},
    {"{\"cells\": [], \"nbformat\": 4, \"nbformat_minor\": 1.5}", NB_NO_NOTEBOOK,
     "its nbformat_minor is not a whole number"},
    {"{\"nbformat\": 4}", NB_NO_NOTEBOOK, "it has no list of cells"},
    {"{\"cells\": {}, \"nbformat\": 4}", NB_NO_NOTEBOOK, "it has no list of cells"},
    {"{\"cells\": [], \"metadata\": [], \"nbformat\": 4}", NB_NO_NOTEBOOK,
     "its metadata are not an object"},
    {"{\"worksheets\": [], \"nbformat\": 3}", NB_OTHER_VERSION, "its nbformat is older than 4"},
    {"{\"cells\": [], \"nbformat\": 5}", NB_OTHER_VERSION, "its nbformat is newer than 4"},
    {"{\"cells\": [1], \"nbformat\": 4}", NB_BAD_CELL,
     "cell 0 is not an object (line 1, column 12)"},
    {"{\"cells\": [\n{\"source\": \"\"}], \"nbformat\": 4}", NB_BAD_CELL,
     "cell 0 has no cell_type (line 2, column 1)"},
    {"{\"cells\": [{\"cell_type\": \"code\"}], \"nbformat\": 4}", NB_BAD_CELL, "has no source"},
    {"{\"cells\": [{\"cell_type\": \"code\", \"source\": 1}], \"nbformat\": 4}", NB_BAD_CELL,
     "has a source that is not text"},
    {"{\"cells\": [{\"cell_type\": \"code\", \"source\": [1]}], \"nbformat\": 4}", NB_BAD_CELL,
     "has a source that is not text"},
    {"{\"cells\": [{\"cell_type\": \"code\", \"source\": \"\", \"outputs\": {}}], "
     "\"nbformat\": 4}",
     NB_BAD_CELL, "has outputs that are not a list"},
    {"{\"cells\": [{\"cell_type\": \"code\", \"source\": \"\", \"outputs\": [1]}], "
     "\"nbformat\": 4}",
     NB_BAD_CELL, "has an output that is not an object"},
    {"{\"cells\": [{\"cell_type\": \"code\", \"source\": \"\", \"metadata\": 1}], "
     "\"nbformat\": 4}",
     NB_BAD_CELL, "has metadata that are not an object"},
};

static void test_malformed(void **state)
{
    (void)state;
    for (size_t i = 0; i < NG_COUNT(malformed); i++) {
        struct nb nb;
        struct nb_error error;
        enum nb_fault fault = nb_index(str(malformed[i].bytes), &nb, &error);
        if (fault != malformed[i].fault || strstr(error.text, malformed[i].text) == NULL) {
            fail_msg("%s: %d, %s", malformed[i].bytes, (int)fault, error.text);
        }
    }
}

static void test_deep(void **state)
{
    (void)state;
    struct nb_text text = {0};
    struct nb nb;
    struct nb_error error;
    nb_add_word(&text, "{\"nbformat\":4,\"cells\":[],\"x\":");
    for (int i = 0; i < 100000; i++) {
        nb_add_word(&text, "[");
    }
    assert_int_equal(nb_index(nb_text_str(&text), &nb, &error), NB_DEEP);
    nb_text_done(&text);
    /* Output of a kernel with the maximum nesting can be read back from the file. */
    nb_add_word(&text, "{\"nbformat\":4,\"cells\":[{\"cell_type\":\"code\",\"source\":[],"
                       "\"outputs\":[{\"data\":{\"x\":");
    size_t before = text.len;
    for (int i = 0; i < NB_DEPTH_MAX - NB_DEPTH_AROUND; i++) {
        nb_add_word(&text, "[");
    }
    for (int i = 0; i < NB_DEPTH_MAX - NB_DEPTH_AROUND; i++) {
        nb_add_word(&text, "]");
    }
    struct ng_str inner = {text.data + before, text.len - before};
    assert_true(nb_check(inner));
    nb_add_word(&text, "}}]}]}");
    index_good(nb_text_str(&text), &nb);
    nb_done(&nb);
    nb_text_done(&text);
    for (int i = 0; i <= NB_DEPTH_MAX - NB_DEPTH_AROUND; i++) {
        nb_add_word(&text, "[");
    }
    for (int i = 0; i <= NB_DEPTH_MAX - NB_DEPTH_AROUND; i++) {
        nb_add_word(&text, "]");
    }
    assert_false(nb_check(nb_text_str(&text)));
    nb_text_done(&text);
    assert_true(nb_check(str(" [NaN, -Infinity, \"\\ud800\", 1e999] ")));
    assert_false(nb_check(str("[1] 2")));
    assert_false(nb_check(str("")));
    assert_false(nb_check(str("[-NaN]")));
}

/* Cut at every byte: never a notebook, never a crash. */
static void test_cut_short(void **state)
{
    (void)state;
    size_t end = strlen(odd) - strlen("  \n\n");
    for (size_t len = 0; len < end; len++) {
        struct nb nb;
        struct nb_error error;
        char *copy = malloc(len + 1); /* of its own size, for the sanitizer */
        assert_non_null(copy);
        memcpy(copy, odd, len);
        struct ng_str bytes = {copy, len};
        enum nb_fault fault = nb_index(bytes, &nb, &error);
        assert_true(fault == NB_NOT_JSON || fault == NB_EMPTY || fault == NB_NOT_UTF8);
        free(copy);
    }
}

static void test_new_file(void **state)
{
    (void)state;
    struct nb_text out = {0};
    const struct nb_new_cell first = {NB_CODE, str("abc"), str("")};
    const struct nb_new_cell two[] = {{NB_MARKDOWN, str("m"), str("# Eins\n\"zwei\"")},
                                      {NB_CODE, str("c"), str("1\n2\n")}};
    nb_new_file(&out, str("{\"display_name\":\"P\",\"language\":\"python\",\"name\":\"p\"}"),
                &first, 1);
    equal(nb_text_str(&out),
          str("{\n \"cells\": [\n  {\n   \"cell_type\": \"code\",\n   \"execution_count\": "
              "null,\n"
              "   \"id\": \"abc\",\n   \"metadata\": {},\n   \"outputs\": [],\n   \"source\": "
              "[]\n"
              "  }\n ],\n \"metadata\": {\n  \"kernelspec\": {\n   \"display_name\": \"P\",\n"
              "   \"language\": \"python\",\n   \"name\": \"p\"\n  }\n },\n \"nbformat\": 4,\n"
              " \"nbformat_minor\": 5\n}\n"));
    nb_text_done(&out);
    nb_new_file(&out, str(""), NULL, 0);
    equal(nb_text_str(&out), str("{\n \"cells\": [],\n \"metadata\": {},\n \"nbformat\": 4,\n"
                                 " \"nbformat_minor\": 5\n}\n"));
    nb_text_done(&out);
    nb_new_file(&out, str(""), two, NG_COUNT(two));
    equal(nb_text_str(&out),
          str("{\n \"cells\": [\n  {\n   \"cell_type\": \"markdown\",\n   \"id\": \"m\",\n"
              "   \"metadata\": {},\n   \"source\": [\n    \"# Eins\\n\",\n"
              "    \"\\\"zwei\\\"\"\n   ]\n  },\n  {\n   \"cell_type\": \"code\",\n"
              "   \"execution_count\": null,\n   \"id\": \"c\",\n   \"metadata\": {},\n"
              "   \"outputs\": [],\n   \"source\": [\n    \"1\\n\",\n    \"2\\n\"\n   ]\n  }\n"
              " ],\n \"metadata\": {},\n \"nbformat\": 4,\n \"nbformat_minor\": 5\n}\n"));
    nb_text_done(&out);
}

static void test_strings(void **state)
{
    (void)state;
    struct nb_text out = {0};
    const char *json = "\"\\b\\f\\n\\r\\t\\\"\\\\\\/\\u0041\\uD83D\\ude00\\ud83dx\\udc00\"";
    struct nb_span whole = {0, strlen(json)};
    nb_decode(&out, str(json), whole);
    equal(nb_text_str(&out), str("\b\f\n\r\t\"\\/A\xf0\x9f\x98\x80\xef\xbf\xbdx\xef\xbf\xbd"));
    nb_text_done(&out);
    nb_encode(&out, str("\b\f\n\r\t\"\\/\x01\x7f\xc3\xa9\xf0\x9f\x98\x80\xff"), true);
    equal(nb_text_str(&out),
          str("\"\\b\\f\\n\\r\\t\\\"\\\\/\\u0001\\u007f\\u00e9\\ud83d\\ude00\\ufffd\""));
    nb_text_done(&out);
    nb_encode(&out, str("\x7f\xc3\xa9\xc3"), false);
    equal(nb_text_str(&out), str("\"\x7f\xc3\xa9\xef\xbf\xbd\""));
    nb_text_done(&out);
    nb_encode_lines(&out, str("a\r\nb\n\nc\rd\n"), false);
    equal(nb_text_str(&out), str("[\"a\\r\\n\",\"b\\n\",\"\\n\",\"c\\r\",\"d\\n\"]"));
    nb_text_done(&out);
    /* As Python's splitlines() has it. */
    nb_encode_lines(&out,
                    str("a\vb\fc\x1c\x1d\x1e\xc2\x85\xe2\x80\xa8"
                        "d\xe2\x80\xa9\r\r\ne\x1f\xc2\x86\xe2\x80\xaa"),
                    true);
    equal(nb_text_str(&out), str("[\"a\\u000b\",\"b\\f\",\"c\\u001c\",\"\\u001d\",\"\\u001e\","
                                 "\"\\u0085\",\"\\u2028\",\"d\\u2029\",\"\\r\",\"\\r\\n\","
                                 "\"e\\u001f\\u0086\\u202a\"]"));
    nb_text_done(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_strings),
        cmocka_unit_test(test_odd_file),
        cmocka_unit_test(test_empty_lists),
        cmocka_unit_test(test_lines),
        cmocka_unit_test(test_missing_members),
        cmocka_unit_test(test_patch_output),
        cmocka_unit_test(test_ids),
        cmocka_unit_test(test_escaped_words),
        cmocka_unit_test(test_malformed),
        cmocka_unit_test(test_deep),
        cmocka_unit_test(test_cut_short),
        cmocka_unit_test(test_new_file),
        cmocka_unit_test(test_outputs_behind_others),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
