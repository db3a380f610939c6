/* SPDX-License-Identifier: MIT */
/* test_cells_cache.c - the cache of indexes: the index of other bytes is never given, and the
 * memory is bounded. */
#include "test_nb.h"

static struct nb_text notebook(size_t cells, const char *source)
{
    struct nb_text out = {0};
    nb_add_word(&out, "{\"cells\": [");
    for (size_t i = 0; i < cells; i++) {
        nb_add_if(&out, i > 0, ",");
        nb_addf(
            &out,
            "{\"cell_type\": \"raw\", \"id\": \"c%zu\", \"metadata\": {}, \"source\": \"%s\"}",
            i, source);
    }
    nb_add_word(&out, "], \"metadata\": {}, \"nbformat\": 4, \"nbformat_minor\": 5}");
    assert_false(out.failed);
    return out;
}

static struct nb index_of(struct nb_cache *cache, const struct nb_text *text,
                          const char *revision)
{
    struct nb nb;
    struct nb_error error;
    assert_int_equal(nb_cache_index(cache, nb_text_str(text), str(revision), &nb, &error),
                     NB_FINE);
    assert_ptr_equal(nb.bytes.data, text->data);
    return nb;
}

static void test_by_revision(void **state)
{
    struct nb_cache *cache = nb_cache_new();
    struct nb_text one = notebook(2, "x");
    struct nb_text copy = notebook(2, "x");
    struct nb_text other = notebook(3, "longer");
    size_t bytes = 0;
    size_t count = 0;
    (void)state;
    struct nb first = index_of(cache, &one, "1");
    struct nb again = index_of(cache, &copy, "1");
    assert_ptr_equal(again.cells, first.cells);
    struct nb third = index_of(cache, &other, "2");
    assert_int_equal(third.cell_count, 3);
    source_is(&third, 2, "longer");
    nb_done(&first);
    source_is(&again, 1, "x");
    nb_cache_size(cache, &bytes, &count);
    assert_int_equal(count, 2);
    nb_cache_free(cache); /* the indexes that are in use stay */
    source_is(&again, 0, "x");
    nb_done(&again);
    nb_done(&third);
    nb_text_done(&one);
    nb_text_done(&copy);
    nb_text_done(&other);
}

static void test_errors_and_no_revision(void **state)
{
    struct nb_cache *cache = nb_cache_new();
    struct nb nb;
    struct nb_error error;
    struct nb_text one = notebook(1, "x");
    size_t bytes = 0;
    size_t count = 0;
    (void)state;
    for (int i = 0; i < 2; i++) {
        assert_int_equal(nb_cache_index(cache, str("{"), str("1"), &nb, &error), NB_NOT_JSON);
    }
    nb = index_of(cache, &one, "");
    nb_done(&nb);
    nb_cache_size(cache, &bytes, &count);
    assert_int_equal(count, 0);
    assert_int_equal(bytes, 0);
    nb_text_done(&one);
    nb_cache_free(cache);
}

static void test_memory_is_bounded(void **state)
{
    struct nb_cache *cache = nb_cache_new();
    char revision[32];
    size_t cells = NB_CACHE_BYTES / 8 / sizeof(struct nb_cell);
    struct nb_text text = notebook(cells, "x");
    struct nb_text huge = notebook(3 * cells, "x");
    struct nb_text small = notebook(1, "x");
    size_t bytes = 0;
    size_t count = 0;
    (void)state;
    for (int i = 0; i < 20; i++) {
        (void)snprintf(revision, sizeof(revision), "%d", i);
        struct nb nb = index_of(cache, &text, revision);
        nb_done(&nb);
        nb_cache_size(cache, &bytes, &count);
        assert_true(bytes <= NB_CACHE_BYTES);
    }
    assert_in_range(count, 5, 8); /* of an eighth each, and half as much room */
    struct nb nb = index_of(cache, &huge, "huge");
    assert_null(nb.kept);
    nb_done(&nb);
    for (int i = 0; i < 2 * NB_CACHE_MAX; i++) {
        (void)snprintf(revision, sizeof(revision), "small%d", i);
        nb = index_of(cache, &small, revision);
        nb_done(&nb);
    }
    nb_cache_size(cache, &bytes, &count);
    assert_int_equal(count, NB_CACHE_MAX);
    nb_text_done(&text);
    nb_text_done(&huge);
    nb_text_done(&small);
    nb_cache_free(cache);
}

/* Words of eight bytes are skipped at once: each byte that matters, at each position. */
static void test_strings_at_each_position(void **state)
{
    static const char *const good[] = {"\\\"", "\\n", "\xc3\xa9", "\\u0041", " ", "~", "\x7f"};
    static const char *const bad[] = {"\x1f", "\x01", "\n", "\x80", "\xff", "\\x"};
    char text[64];
    (void)state;
    for (size_t before = 0; before < 17; before++) {
        for (size_t after = 0; after < 17; after++) {
            for (size_t i = 0; i < NG_COUNT(good) + NG_COUNT(bad); i++) {
                bool fine = i < NG_COUNT(good);
                (void)snprintf(text, sizeof(text), "\"%.*s%s%.*s\"", (int)before,
                               "!#$%&'()*+,-./:;<=", fine ? good[i] : bad[i - NG_COUNT(good)],
                               (int)after, "[]^_`{|}~abcdefgh");
                assert_int_equal(nb_check(str(text)), fine);
            }
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_by_revision),
        cmocka_unit_test(test_errors_and_no_revision),
        cmocka_unit_test(test_memory_is_bounded),
        cmocka_unit_test(test_strings_at_each_position),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
