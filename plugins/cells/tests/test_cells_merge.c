/* SPDX-License-Identifier: MIT */
/* test_cells_merge.c - three-way merges of notebooks: cells, members, bytes, limits. */
#include "core/base/arena.h"
#include "core/base/str.h"
#include "test_cells_merge_rig.h"

/* The result, or "!reason"; of a conflict also the first place as "line present=before". */
static void merge_gives(const char *name, const struct ng_str texts[3], struct ng_str want)
{
    struct merge_result result = {.text = {.len = 0}};
    char conflict[200] = "";
    assert_int_equal(notebook_merge(texts[0], texts[1], texts[2], &result), NG_OK);
    struct ng_str got = buf_str(&result.text);
    if (result.conflict.reason != MERGE_CLEAN) {
        const struct merge_place *place = &result.conflict.places[0];
        const char *side = result.conflict.sides.data;
        int len = snprintf(conflict, sizeof(conflict), "!%s",
                           merge_reason_name(result.conflict.reason));
        if (result.conflict.place_count > 0) {
            (void)snprintf(conflict + len, sizeof(conflict) - (size_t)len, " %llu %.*s=%.*s",
                           (unsigned long long)place->line, (int)place->present_len,
                           side + place->at, (int)place->before_len,
                           side + place->at + place->present_len);
        }
        got = str(conflict);
    }
    if (!str_equal(got, want)) {
        print_message("%s\n", name);
    }
    equal(got, want);
    merge_result_done(&result);
}

struct row {
    const char *base, *present, *before, *want;
};

static void check_rows(const struct row *rows, size_t count, unsigned minor)
{
    static struct rig_notebook notebook;
    for (size_t i = 0; i < count; i++) {
        const char *const cells[4] = {rows[i].base, rows[i].present, rows[i].before,
                                      rows[i].want};
        struct nb_text texts[4] = {{.len = 0}};
        for (int side = 0; side < 4; side++) {
            if (cells[side][0] != '!') {
                rig_read(&notebook, cells[side]);
                notebook.minor = minor;
                texts[side] = rig_write(&notebook);
            }
        }
        const struct ng_str sides[3] = {nb_text_str(&texts[0]), nb_text_str(&texts[1]),
                                        nb_text_str(&texts[2])};
        merge_gives(cells[1], sides, texts[3].len > 0 ? nb_text_str(&texts[3]) : str(cells[3]));
        for (int side = 0; side < 4; side++) {
            nb_text_done(&texts[side]);
        }
    }
}

static void test_cells(void **state)
{
    static const struct row rows[] = {
        /* sources by lines */
        {"a 1|2|3", "a 1|2|3|4", "a 0|2|3", "a 0|2|3|4"},
        {"a 1|2|3", "a 1|x|3", "a 1|y|3", "!overlap 3 x=y"},
        {"b;a 1|2|3", "b;a 1|x|3", "b;a 1|y|3", "!overlap 5 x=y"},
        {"a 1", "a 1|2", "a ", "a 2"},
        {"a 1;b 2", "a 1;b x", "a y;b 2", "a y;b x"},
        /* inserted and removed */
        {"a 1;b 2", "a 1;b 2;c 3", "b 2", "b 2;c 3"},
        {"b 2", "b 2;c 3", "a 1;b 2", "a 1;b 2;c 3"},
        {"a 1", "a 1;c 3", "", "c 3"},
        {"", "c 3", "a 1", "!cell"},
        {"a 1;b 2", "b 2", "a 1;b 3", "b 3"},
        {"a 1;b 2", "a 1", "a 3;b 2", "a 3"},
        {"a 1;b 2", "", "b 2", ""},
        {"a 1", "a 1;c x", "a 1;c x;d", "!cell"},
        {"a 1", "a 1;c x", "a 0;c x", "a 0;c x"},
        {"a 1", "a 1;c x", "a 0;c y", "!overlap 5 x=y"},
        /* changed and removed */
        {"a 1;b 2", "a 1;b x", "a 1", "!cell 4 x="},
        {"a 1;b 2", "a 1", "a 1;b x", "!cell 1 =x"},
        {"a 1;b 2", "a 1;b 2@m", "a 1", "!cell 4 2="},
        {"a 1;b 2>x", "a 1;b 2>long", "a 0", "a 0"},
        {"a 1;b 2", "a 1;b# 2", "a 0", "!cell 4 2="},
        /* moved */
        {"a 1;b 2;c 3", "c 3;a 1;b 2", "a 0;b 2;c 3", "c 3;a 0;b 2"},
        {"a 1;b 2;c 3", "a 0;b 2;c 3", "c 3;a 1;b 2", "c 3;a 0;b 2"},
        {"a 1;b 2", "a 1;x;b 2", "a 1;y;b 2", "!cell"},
        /* type and metadata as wholes */
        {"a 1@m", "a 1|2@m", "a 1@n", "a 1|2@n"},
        {"a 1@m", "a 1@x", "a 1@y",
         "!cell 1 \"metadata\": {\n    \"note\": \"x\"\n   }=\"metadata\": {\n    \"note\": "
         "\"y\"\n   }"},
        {"a# 1", "a# 1|2", "a 1", "a 1|2"},
        {"a 1>o", "a 1|2>o", "a# 1", "a# 1|2"},
        {"a 1>o", "a 1|2>other", "a# 1", "a# 1|2"},
        {"a# 1", "a# 1|2", "a 1>o", "a 1|2>o"},
        /* outputs and count */
        {"a 1>o", "a 1|2>o", "a 1>old", "a 1|2>old"},
        {"a 1>o", "a 1>other", "a 0>old", "a 0>other"},
        {"a 1", "a 1>o", "a 0", "a 0>o"},
    };
    (void)state;
    check_rows(rows, NG_COUNT(rows), 5);
}

static void test_without_ids(void **state)
{
    static const struct row rows[] = {
        {"a 1|2|3", "a 1|2|3|4", "a 0|2|3", "a 0|2|3|4"},
        {"a 1;b 2;c 3", "a 1;b 2;c 3;d 4", "b 2;c 3", "b 2;c 3;d 4"},
        {"a 1;b 2;c 3", "a 1;x x;b 2;y y;c 3", "a 1;b 2;c z", "a 1;x x;b 2;y y;c z"},
        {"a 1;b ;c ;d 4", "a 1;b ;c ;d 5", "a 0;b ;c ;d 4", "a 0;b ;c ;d 5"},
        {"a 1>o;b 1>p;c 2", "a 1>o;b 1>p;c 3", "c 2", "!cell"}, /* equal cells */
        {"a 1;b 2;c 3", "b 2;a 1;c 3", "a 1;b 2;c 4", "!cell"}, /* moved */
        {"a 1;b 2;c 3", "a 4;b 5;d 6;c 3", "a 1;b 2;c 4", "!cell"},
        {"a 1;b 2;c 3", "a 1;c 3", "a 1;b 4;c 3", "!cell 1 =4"},
    };
    (void)state;
    check_rows(rows, NG_COUNT(rows), 4);
}

/* ---- bytes ---- */

#define FLAT(cells)                                                                            \
    "{\"nbformat\":4,\"nbformat_minor\":4,\"metadata\":{},\"cells\":[" cells "]}"
#define RAW(members) "{\"cell_type\":\"raw\",\"metadata\":{}," members "}"

static void test_bytes(void **state)
{
    static const struct row rows[] = {
        /* what is not changed keeps its spelling */
        {FLAT(RAW("\"source\":[\"a\\n\",\"b\\n\",\"c\"]")),
         FLAT(RAW(" \"source\" :[ \"\\u0061\\n\", \"b\\n\", \"x\"] , \"mine\" : 1.50 ")),
         FLAT(RAW("\"source\":[\"a\\n\",\"B\\n\",\"c\"]")),
         FLAT(RAW(" \"source\" :[ \"\\u0061\\n\", \"B\\n\", \"x\"] , \"mine\" : 1.50 "))},
        {FLAT(RAW("\"source\":[\"a\\n\",\"b\\n\",\"c\"]")),
         FLAT(RAW(" \"source\" :[ \"\\u0061\\n\", \"b\\n\", \"c\"] , \"mine\" : 1.50 ")),
         FLAT(RAW("\"source\":[\"a\\n\",\"b\\n\",\"C\"]")),
         FLAT(RAW(" \"source\" :[ \"\\u0061\\n\", \"b\\n\", \"C\"] , \"mine\" : 1.50 "))},
        /* members added and removed, in before's place */
        {FLAT(RAW("\"b\":1,\"source\":\"x\"")), FLAT(RAW("\"b\":1,\"source\":\"y\"")),
         FLAT(RAW("\"a\":0,\"source\":\"x\",\"z\":[]")),
         FLAT(RAW("\"a\":0,\"source\":\"y\",\"z\":[]"))},
        /* order of members, white space and escapes are no change */
        {FLAT(RAW("\"source\":\"x\",\"a\":{\"k\":\"\\u00e9\",\"l\":[1, 2]}")),
         FLAT(RAW("\"source\":\"y\",\"a\":{\"l\":[1,2],\"k\":\"\xc3\xa9\"}")),
         FLAT(RAW("\"source\":\"x\",\"a\":{\"k\":2}")),
         FLAT(RAW("\"source\":\"y\",\"a\":{\"k\":2}"))},
        {FLAT(RAW("\"source\":\"x\",\"a\":\"\\ud800\"")),
         FLAT(RAW("\"source\":\"y\",\"a\":\"\\ud801\"")), FLAT(RAW("\"source\":\"x\",\"a\":1")),
         "!cell 1 \"a\": \"\\ud801\"=\"a\": 1"},
        /* lone surrogates: the source is one value */
        {FLAT(RAW("\"source\":\"\\ud800\"")), FLAT(RAW("\"source\":\"\\ud800\",\"a\":1")),
         FLAT(RAW("\"source\":[\"\\udfff\",\"x\"]")),
         FLAT(RAW("\"source\":[\"\\udfff\",\"x\"],\"a\":1"))},
        /* a member twice */
        {FLAT(RAW("\"source\":\"1\"")), FLAT(RAW("\"source\":\"2\",\"source\":\"1\"")),
         FLAT(RAW("\"source\":\"3\"")), "!cell 1 1=3"},
        /* a cell of a type that is not known, without a source */
        {FLAT("{\"cell_type\":\"sql\",\"query\":\"1\"}"),
         FLAT("{\"cell_type\":\"sql\",\"query\":\"1\",\"more\":1}"),
         FLAT("{\"cell_type\":\"sql\",\"query\":\"2\"}"),
         FLAT("{\"cell_type\":\"sql\",\"query\":\"2\",\"more\":1}")},
        /* the notebook's own members */
        {"{\"cells\":[],\"nbformat\":4,\"x\":1,\"y\":1}",
         "{\"cells\":[],\"nbformat\":4,\"x\":1,\"y\":2}",
         "{\"cells\":[],\"metadata\":{},\"nbformat\":4,\"y\":1}",
         "{\"cells\":[],\"metadata\":{},\"nbformat\":4,\"y\":2}"},
        {"{\"a\":1,\"b\":1,\"cells\":[],\"nbformat\":4,\"y\":1}",
         "{\"a\":1,\"b\":1,\"cells\":[],\"nbformat\":4,\"y\":2}",
         "{\"cells\":[],\"nbformat\":4,\"y\":1}", "{\"cells\":[],\"nbformat\":4,\"y\":2}"},
        {"{\"cells\":[],\"nbformat\":4,\"y\":1}", "{\"cells\":[],\"nbformat\":4,\"y\":2}",
         "{\"cells\":[],\"nbformat\":4,\"y\":3}", "!member 0 \"y\": 2=\"y\": 3"},
        /* no notebooks */
        {"{\"nbformat\":4}", "{\"cells\":[],\"nbformat\":4}", "{}", "!not_text"},
        {"\xff", "\xfe", "", "!not_text"},
        {"\xff", "\xff", "x", "x"},
        {"\xff", "y", "\xff", "y"},
    };
    (void)state;
    for (size_t i = 0; i < NG_COUNT(rows); i++) {
        const struct ng_str texts[3] = {str(rows[i].base), str(rows[i].present),
                                        str(rows[i].before)};
        merge_gives(rows[i].present, texts, str(rows[i].want));
    }
}

/* An undone upgrade to nbformat 4.5 would leave a new cell with an id. */
static void test_invalid(void **state)
{
    (void)state;
    const struct ng_str texts[3] = {
        str("{\"cells\":[{\"cell_type\":\"raw\",\"id\":\"a\",\"metadata\":{},\"source\":\"1\"}"
            "],\"metadata\":{},\"nbformat\":4,\"nbformat_minor\":5}"),
        str("{\"cells\":[{\"cell_type\":\"raw\",\"id\":\"a\",\"metadata\":{},\"source\":\"1\"},"
            "{\"cell_type\":\"raw\",\"id\":\"b\",\"metadata\":{},\"source\":\"2\"}"
            "],\"metadata\":{},\"nbformat\":4,\"nbformat_minor\":5}"),
        str("{\"cells\":[{\"cell_type\":\"raw\",\"metadata\":{},\"source\":\"1\"}"
            "],\"metadata\":{},\"nbformat\":4,\"nbformat_minor\":4}"),
    };
    merge_gives("an upgrade", texts, str("!invalid_merge"));
}

/* ---- limits ---- */

#define MANY_CELLS 60000

static struct nb_text many_cells(size_t count, size_t changed)
{
    struct nb_text text = {0};
    nb_add_word(&text, "{\"cells\":[");
    for (size_t i = 0; i < count; i++) {
        nb_add_if(&text, i > 0, ",");
        nb_addf(&text,
                "{\"cell_type\":\"raw\",\"id\":\"%zu\",\"metadata\":{},\"source\":\"%s\"}", i,
                i == changed ? "x" : "");
    }
    nb_add_word(&text, "],\"metadata\":{},\"nbformat\":4,\"nbformat_minor\":5}");
    return text;
}

static void test_many(void **state)
{
    (void)state;
    struct nb_text base = many_cells(MANY_CELLS, SIZE_MAX);
    struct nb_text present = many_cells(MANY_CELLS, MANY_CELLS - 1);
    struct nb_text before = many_cells(MANY_CELLS - 10, 0);
    assert_true(base.len < NOTEBOOK_BYTES_MAX);
    const struct ng_str texts[3] = {nb_text_str(&base), nb_text_str(&present),
                                    nb_text_str(&before)};
    merge_gives("many", texts, str("!cell 119999 x="));
    nb_text_done(&before);
    before = many_cells(MANY_CELLS, 0);
    struct merge_result result = {.text = {.len = 0}};
    assert_int_equal(notebook_merge(texts[0], texts[1], nb_text_str(&before), &result), NG_OK);
    assert_int_equal(result.text.len, present.len + 1);
    merge_result_done(&result);
    nb_text_done(&base);
    nb_text_done(&present);
    nb_text_done(&before);
}

static void test_too_large(void **state)
{
    char *large = malloc(NOTEBOOK_BYTES_MAX + 1);
    (void)state;
    assert_non_null(large);
    memset(large, ' ', NOTEBOOK_BYTES_MAX + 1);
    const struct ng_str text = {large, NOTEBOOK_BYTES_MAX + 1};
    const struct ng_str texts[3] = {text, str("{}"), str("")};
    const struct ng_str same[3] = {text, text, str("1")};
    merge_gives("large", texts, str("!too_large"));
    merge_gives("large", same, str("1"));
    free(large);
}

/* ---- without memory ---- */

static void test_without_memory(void **state)
{
    static const struct row rows[] = {
        {"a 1|2;b 2@m;c 3>o", "a 1|2|3;b 2@m;n new;c 3>oo", "c 4>x;a 0|2;b 2@n", ""},
        {"a 1;b 2", "a 1|2;b 2@m", "a x|y;b 2@n", ""},
    };
    (void)state;
    for (size_t i = 0; i < 2 * NG_COUNT(rows); i++) {
        static struct rig_notebook notebook;
        const char *const cells[3] = {rows[i / 2].base, rows[i / 2].present,
                                      rows[i / 2].before};
        struct nb_text texts[3];
        for (int side = 0; side < 3; side++) {
            rig_read(&notebook, cells[side]);
            notebook.minor = i % 2 == 0 ? 5 : 4;
            texts[side] = rig_write(&notebook);
        }
        int rc = NG_EINTERNAL;
        for (long n = 0; rc != NG_OK; n++) {
            struct merge_result result = {.text = {.len = 0}};
            assert_true(n < 2000);
            alloc_fail_after(n);
            rc = notebook_merge(nb_text_str(&texts[0]), nb_text_str(&texts[1]),
                                nb_text_str(&texts[2]), &result);
            alloc_fail_after(-1);
            assert_true(rc == NG_OK || rc == NG_EINTERNAL);
            assert_true(rc != NG_OK || n > 10);
            assert_true(rc == NG_OK || result.text.len == 0);
            merge_result_done(&result);
        }
        for (int side = 0; side < 3; side++) {
            nb_text_done(&texts[side]);
        }
    }
}

/* ---- the view ---- */

static void view_is(const char *cells, const char *want)
{
    struct nb_text file = rig_file(cells);
    struct notebook_view view;
    assert_int_equal(notebook_view_read(nb_text_str(&file), &view), NG_OK);
    equal(nb_text_str(&view.text), str(want));
    notebook_view_done(&view);
    nb_text_done(&file);
}

static void test_view(void **state)
{
    struct notebook_view view;
    (void)state;
    view_is("", "");
    view_is("a ", "# %% [code] a\n");
    view_is("a 1|2;b# Text|;c ;a. x",
            "# %% [code] a\n1\n2\n\n# %% [markdown] b\nText\n\n\n# %% [code] c\n\n"
            "# %% [code] cell 3\nx\n");
    view_is("a ;a x", "# %% [code] cell 0\n\n# %% [code] cell 1\nx\n");
    assert_int_equal(notebook_view_read(str("{}"), &view), NG_EINVAL);
    notebook_view_done(&view);
    assert_int_equal(notebook_view_read((struct ng_str){"", NOTEBOOK_BYTES_MAX + 1}, &view),
                     NG_ETOOLARGE);
    notebook_view_done(&view);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cells), cmocka_unit_test(test_without_ids),
        cmocka_unit_test(test_bytes), cmocka_unit_test(test_invalid),
        cmocka_unit_test(test_many),  cmocka_unit_test(test_too_large),
        cmocka_unit_test(test_view),  cmocka_unit_test(test_without_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
