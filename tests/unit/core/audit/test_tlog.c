/* SPDX-License-Identifier: MIT */
/* test_tlog.c - the Merkle tree, its proofs, tiles, signed notes and checkpoints, against known
 * values and a tree that is computed as RFC 6962 defines it. */
#include <stdlib.h>
#include <string.h>

#include "core/audit/tlog/checkpoint.h"
#include "core/audit/tlog/tlog_proof.h"
#include "core/audit/tlog/tlog_tile.h"
#include "core/base/str.h"
#include "core/base/text/hex.h"
#include "harness.h"

/* ---- a tree by its definition ---- */

/* Leaves of the largest tree here: tiles of level 2. */
#define LEAVES_MAX 66000
#define SMALL_MAX 70 /* sizes up to which everything is tried */

struct tree {
    struct tlog_hash leaves[LEAVES_MAX];
};

static struct tree *tree_make(void)
{
    struct tree *tree = malloc(sizeof(*tree));
    assert_non_null(tree);
    for (uint32_t i = 0; i < LEAVES_MAX; i++) {
        assert_int_equal(
            tlog_hash_leaf(str_make((const char *)&i, sizeof(i)), &tree->leaves[i]), NG_OK);
    }
    return tree;
}

/* RFC 6962, section 2.1. */
static struct tlog_hash root_by_definition(const struct tlog_hash *leaves, uint64_t size)
{
    struct tlog_hash root = leaves[0];
    if (size > 1) {
        uint64_t left = 1;
        while (left * 2 < size) {
            left *= 2;
        }
        struct tlog_hash a = root_by_definition(leaves, left);
        struct tlog_hash b = root_by_definition(leaves + left, size - left);
        assert_int_equal(tlog_hash_node(&a, &b, &root), NG_OK);
    }
    return root;
}

/* As tiles would give them. */
static int tree_read(void *user, unsigned level, uint64_t first, size_t count,
                     struct tlog_hash *ret)
{
    const struct tree *tree = user;
    uint64_t span = UINT64_C(1) << (TLOG_TILE_BITS * level);
    assert_true(first / TLOG_TILE_WIDTH == (first + count - 1) / TLOG_TILE_WIDTH);
    for (size_t i = 0; i < count; i++) {
        ret[i] = root_by_definition(tree->leaves + (first + i) * span, span);
    }
    return NG_OK;
}

static uint32_t seed = 20261130;

static uint32_t any(uint32_t below)
{
    seed = seed * 1664525U + 1013904223U;
    return (uint32_t)((uint64_t)seed * below >> 32);
}

/* ---- hashes ---- */

static void assert_hash(const struct tlog_hash *hash, const char *digits)
{
    char text[SHA256_HEX_SIZE];
    hex_write(hash->bytes, sizeof(hash->bytes), text);
    assert_string_equal(text, digits);
}

/* The values that certificate transparency publishes for its trees. */
static void test_known_roots(void **state)
{
    (void)state;
    static const struct {
        const char *leaf;
        size_t len;
        const char *root;
    } known[] = {
        {"", 0, "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d"},
        {"\x00", 1, "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125"},
        {"\x10", 1, "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77"},
        {"\x20\x21", 2, "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7"},
        {"\x30\x31", 2, "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4"},
        {"@ABC", 4, "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef"},
        {"PQRSTUVW", 8, "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c"},
        {"`abcdefghijklmno", 16,
         "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328"},
    };
    struct tlog_range range = {.size = 0};
    struct tlog_hash hash;
    assert_int_equal(tlog_range_root(&range, &hash), NG_OK);
    assert_hash(&hash, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    for (size_t i = 0; i < NG_COUNT(known); i++) {
        assert_int_equal(tlog_hash_leaf(str_make(known[i].leaf, known[i].len), &hash), NG_OK);
        assert_int_equal(tlog_range_add(&range, 0, &hash), NG_OK);
        assert_int_equal(tlog_range_root(&range, &hash), NG_OK);
        assert_hash(&hash, known[i].root);
    }
}

static void test_roots_are_those_of_the_definition(void **state)
{
    struct tree *tree = *state;
    const struct tlog_source source = {tree_read, tree};
    struct tlog_range range = {.size = 0};
    for (uint64_t size = 1; size <= SMALL_MAX * 10; size++) {
        struct tlog_hash root;
        struct tlog_hash wanted = root_by_definition(tree->leaves, size);
        assert_int_equal(tlog_range_add(&range, 0, &tree->leaves[size - 1]), NG_OK);
        assert_int_equal(tlog_range_root(&range, &root), NG_OK);
        assert_true(tlog_hash_equal(&root, &wanted));
        assert_int_equal(tlog_root(&source, size, &root), NG_OK);
        assert_true(tlog_hash_equal(&root, &wanted));
    }
}

static void test_a_tree_has_an_end(void **state)
{
    (void)state;
    struct tlog_range range = {.size = TLOG_SIZE_MAX};
    struct tlog_hash hash = {{0}};
    assert_int_equal(tlog_range_add(&range, 0, &hash), NG_ETOOLARGE);
    assert_true(range.size == TLOG_SIZE_MAX);
}

/* ---- proofs ---- */

/* It is proved, and nothing else is by the same proof. */
static void check_inclusion(struct tree *tree, uint64_t index, uint64_t size)
{
    const struct tlog_source source = {tree_read, tree};
    struct tlog_proof proof;
    struct tlog_hash root = root_by_definition(tree->leaves, size);
    const struct tlog_hash *leaf = &tree->leaves[index];
    assert_int_equal(tlog_prove_inclusion(&source, index, size, &proof), NG_OK);
    assert_int_equal(tlog_check_inclusion(&proof, index, size, leaf, &root), NG_OK);
    struct tlog_hash other = *leaf;
    other.bytes[any(SHA256_BYTES)] ^= 1;
    assert_int_equal(tlog_check_inclusion(&proof, index, size, &other, &root), NG_EFAILED);
    other = root;
    other.bytes[any(SHA256_BYTES)] ^= 1;
    assert_int_equal(tlog_check_inclusion(&proof, index, size, leaf, &other), NG_EFAILED);
    assert_int_equal(tlog_check_inclusion(&proof, size, size, leaf, &root), NG_EFAILED);
    if (proof.count > 0) {
        struct tlog_proof bad = proof;
        bad.hashes[any((uint32_t)proof.count)].bytes[any(SHA256_BYTES)] ^= 1;
        assert_int_equal(tlog_check_inclusion(&bad, index, size, leaf, &root), NG_EFAILED);
        bad = proof;
        bad.count--;
        assert_int_equal(tlog_check_inclusion(&bad, index, size, leaf, &root), NG_EFAILED);
        assert_int_equal(tlog_check_inclusion(&proof, index ^ 1, size, leaf, &root),
                         NG_EFAILED);
    }
    proof.count++;
    assert_int_equal(tlog_check_inclusion(&proof, index, size, leaf, &root), NG_EFAILED);
}

static void check_consistency(struct tree *tree, uint64_t old, uint64_t size)
{
    const struct tlog_source source = {tree_read, tree};
    struct tlog_proof proof;
    struct tlog_hash root = root_by_definition(tree->leaves, size);
    struct tlog_hash old_root = root_by_definition(tree->leaves, old);
    assert_int_equal(tlog_prove_consistency(&source, old, size, &proof), NG_OK);
    assert_int_equal(tlog_check_consistency(&proof, old, size, &old_root, &root), NG_OK);
    for (int which = 0; which < 2; which++) {
        struct tlog_hash roots[] = {old_root, root};
        roots[which].bytes[any(SHA256_BYTES)] ^= 1;
        assert_int_equal(tlog_check_consistency(&proof, old, size, &roots[0], &roots[1]),
                         NG_EFAILED);
    }
    if (proof.count > 0) {
        struct tlog_proof bad = proof;
        bad.hashes[any((uint32_t)proof.count)].bytes[any(SHA256_BYTES)] ^= 1;
        assert_int_equal(tlog_check_consistency(&bad, old, size, &old_root, &root), NG_EFAILED);
        bad = proof;
        bad.count--;
        assert_int_equal(tlog_check_consistency(&bad, old, size, &old_root, &root), NG_EFAILED);
    }
    proof.count++;
    assert_int_equal(tlog_check_consistency(&proof, old, size, &old_root, &root), NG_EFAILED);
}

static void test_proofs_of_small_trees(void **state)
{
    for (uint64_t size = 1; size <= SMALL_MAX; size++) {
        for (uint64_t at = 0; at < size; at++) {
            check_inclusion(*state, at, size);
            check_consistency(*state, at + 1, size);
        }
    }
}

static void test_proofs_of_large_trees(void **state)
{
    static const uint64_t sizes[] = {255, 256, 257, 511, 512, 1000, 65535, 65536, LEAVES_MAX};
    for (size_t i = 0; i < NG_COUNT(sizes); i++) {
        check_inclusion(*state, any((uint32_t)sizes[i]), sizes[i]);
        check_inclusion(*state, sizes[i] - 1, sizes[i]);
        check_consistency(*state, 1 + any((uint32_t)sizes[i]), sizes[i]);
        check_consistency(*state, sizes[i] / 2, sizes[i]);
    }
}

static void test_proofs_of_what_is_not_there(void **state)
{
    const struct tlog_source source = {tree_read, *state};
    struct tlog_proof proof;
    struct tlog_hash root = {{0}};
    assert_int_equal(tlog_prove_inclusion(&source, 5, 5, &proof), NG_EINVAL);
    assert_int_equal(tlog_prove_consistency(&source, 6, 5, &proof), NG_EINVAL);
    assert_int_equal(tlog_prove_consistency(&source, 0, 5, &proof), NG_OK);
    assert_int_equal(proof.count, 0);
    assert_int_equal(tlog_check_consistency(&proof, 0, 5, &root, &root), NG_OK);
    assert_int_equal(tlog_check_consistency(&proof, 6, 5, &root, &root), NG_EFAILED);
    assert_int_equal(tlog_check_inclusion(&proof, 0, 0, &root, &root), NG_EFAILED);
}

static int source_fails(void *user, unsigned level, uint64_t first, size_t count,
                        struct tlog_hash *ret)
{
    (void)level;
    (void)first;
    (void)ret;
    (void)count;
    return --*(int *)user < 0 ? NG_EUNAVAILABLE : NG_OK;
}

static void test_a_failure_of_the_source_is_told(void **state)
{
    (void)state;
    struct tlog_proof proof;
    for (int left = 0; left < 4; left++) {
        int counts[] = {left, left};
        const struct tlog_source sources[] = {{source_fails, &counts[0]},
                                              {source_fails, &counts[1]}};
        assert_int_equal(tlog_prove_inclusion(&sources[0], 3, 600, &proof), NG_EUNAVAILABLE);
        assert_int_equal(tlog_prove_consistency(&sources[1], 511, 600, &proof),
                         NG_EUNAVAILABLE);
    }
}

/* ---- tiles ---- */

static void assert_path(unsigned level, uint64_t index, size_t width, const char *wanted)
{
    char path[TLOG_PATH_SIZE];
    tlog_tile_path(level, index, width, path);
    assert_string_equal(path, wanted);
}

static void test_paths_of_tiles(void **state)
{
    (void)state;
    assert_path(0, 0, 256, "tile/0/000");
    assert_path(1, 999, 256, "tile/1/999");
    assert_path(0, 1234067, 256, "tile/0/x001/x234/067");
    assert_path(2, 1000, 7, "tile/2/x001/000.p/7");
    assert_path(TLOG_ENTRIES, 273, 112, "tile/entries/273.p/112");
    assert_path(TLOG_ENTRIES, TLOG_SIZE_MAX >> TLOG_TILE_BITS, 255,
                "tile/entries/x281/x474/x976/x710/655.p/255");
}

/* The example of the specification: a tree of 70,000. */
static void test_widths_of_tiles(void **state)
{
    (void)state;
    assert_int_equal(tlog_tile_width(0, 272, 70000), 256);
    assert_int_equal(tlog_tile_width(0, 273, 70000), 112);
    assert_int_equal(tlog_tile_width(0, 274, 70000), 0);
    assert_int_equal(tlog_tile_width(1, 0, 70000), 256);
    assert_int_equal(tlog_tile_width(1, 1, 70000), 17);
    assert_int_equal(tlog_tile_width(2, 0, 70000), 1);
    assert_int_equal(tlog_tile_width(3, 0, 70000), 0);
    assert_int_equal(tlog_tile_width(0, 0, 256), 256);
    assert_int_equal(tlog_tile_width(0, 1, 256), 0);
    assert_int_equal(tlog_tile_width(1, 0, 256), 1);
    assert_int_equal(tlog_tile_width(TLOG_ENTRIES, 0, 255), 255);
}

static void test_bundles_are_split(void **state)
{
    (void)state;
    struct ng_str entries[3];
    const char bundle[] = "\x00\x02"
                          "ab"
                          "\x00\x00"
                          "\x00\x01"
                          "c";
    struct ng_str all = str_make(bundle, sizeof(bundle) - 1);
    assert_int_equal(tlog_bundle_split(all, 3, entries), 3);
    assert_true(str_is(entries[0], "ab") && entries[1].len == 0 && str_is(entries[2], "c"));
    assert_int_equal(tlog_bundle_split(all, 2, entries), 3); /* bytes follow */
    assert_int_equal(tlog_bundle_split(str_make(all.data, all.len - 1), 3, entries), 2);
    assert_int_equal(tlog_bundle_split(str_make(all.data, 5), 3, entries), 1);
    assert_int_equal(tlog_bundle_split(STR_NONE, 1, entries), 0);
}

/* ---- notes ---- */

/* Of the documentation of golang.org/x/mod/sumdb/note. */
#define KNOWN_PRIVATE                                                                          \
    "PRIVATE+KEY+PeterNeumann+c74f20a3+AYEKFALVFGyNhPJEMzD1QIDr+Y7hfZx09iUvxdXHKDFz"
#define KNOWN_PUBLIC "PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW"
#define KNOWN_TEXT                                                                             \
    "If you think cryptography is the answer to your problem,\n"                               \
    "then you don't know what your problem is.\n"
#define KNOWN_SIGNATURE                                                                        \
    "\xe2\x80\x94 PeterNeumann "                                                               \
    "x08go/ZJkuBS9UG/SffcvIAQxVBtiFupLLr8pAcElZInNIuGUgYN1FFYC2pZSNXgKvqfqdngotpRZb6KE6RyyBw"  \
    "JnAM=\n"
#define OTHER_SIGNATURE "\xe2\x80\x94 Somebody AAAAAAAA\n"

static void test_a_known_note(void **state)
{
    (void)state;
    struct note_signer signer;
    struct note_key key;
    struct buf out;
    struct ng_str text;
    buf_init(&out, NOTE_BYTES_MAX);
    assert_int_equal(note_signer_read(ng_str_of(KNOWN_PRIVATE "\n"), &signer), NG_OK);
    assert_int_equal(note_signer_write(&signer, &out), NG_OK);
    assert_string_equal(buf_cstr(&out), KNOWN_PRIVATE);
    buf_clear(&out);
    assert_int_equal(note_key_write(&signer.key, &out), NG_OK);
    assert_string_equal(buf_cstr(&out), KNOWN_PUBLIC);
    buf_clear(&out);
    assert_int_equal(note_sign(&signer, ng_str_of(KNOWN_TEXT), &out), NG_OK);
    assert_string_equal(buf_cstr(&out), KNOWN_TEXT "\n" KNOWN_SIGNATURE);
    assert_int_equal(note_key_read(ng_str_of(KNOWN_PUBLIC), &key), NG_OK);
    assert_int_equal(note_open(buf_str(&out), &key, &text), NG_OK);
    assert_true(str_is(text, KNOWN_TEXT));
    /* Others may sign as well. */
    assert_int_equal(
        note_open(ng_str_of(KNOWN_TEXT "\n" OTHER_SIGNATURE KNOWN_SIGNATURE), &key, &text),
        NG_OK);
    assert_int_equal(note_open(ng_str_of(KNOWN_TEXT "\n" OTHER_SIGNATURE), &key, &text),
                     NG_ENOTFOUND);
    note_signer_done(&signer);
    buf_done(&out);
}

static void test_notes_that_are_none(void **state)
{
    (void)state;
    static const struct {
        const char *note;
        int rc;
    } bad[] = {
        {"", NG_EINVAL},
        {KNOWN_TEXT, NG_EINVAL},
        {KNOWN_TEXT KNOWN_SIGNATURE, NG_EINVAL},
        {KNOWN_TEXT "\n", NG_EINVAL},
        {KNOWN_TEXT "\nno signature\n", NG_EINVAL},
        {KNOWN_TEXT "\n\xe2\x80\x94 PeterNeumann\n", NG_EINVAL},
        {KNOWN_TEXT "\n\xe2\x80\x94 PeterNeumann x08go/ZJ", NG_EINVAL},
        {"\t" KNOWN_TEXT "\n" KNOWN_SIGNATURE, NG_EINVAL},
        {"\xff" KNOWN_TEXT "\n" KNOWN_SIGNATURE, NG_EINVAL},
        {"x" KNOWN_TEXT "\n" KNOWN_SIGNATURE, NG_EFAILED},
        {KNOWN_TEXT "\n\xe2\x80\x94 PeterNeumann x08go/ZJ\n", NG_EFAILED},
        {KNOWN_TEXT "\n\xe2\x80\x94 PeterNeumann ?\n", NG_EFAILED},
        {KNOWN_TEXT "\n\xe2\x80\x94 PeterNeumann AAAAAAAA\n", NG_ENOTFOUND},
    };
    struct note_key key;
    struct ng_str text;
    assert_int_equal(note_key_read(ng_str_of(KNOWN_PUBLIC), &key), NG_OK);
    for (size_t i = 0; i < NG_COUNT(bad); i++) {
        assert_int_equal(note_open(ng_str_of(bad[i].note), &key, &text), bad[i].rc);
    }
}

static void test_keys_that_are_none(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "",
        "PeterNeumann",
        "PeterNeumann+c74f20a3",
        "PeterNeumann+c74f20a3+",
        "+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW",
        "Peter Neumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW",
        "PeterNeumann+c74f20a4+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW",
        "PeterNeumann+C74F20A3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW",
        "PeterNeumann+c74f20+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW",
        "PeterNeumann+c74f20a3+Ahpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW",
        "PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy",
        "PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW+x",
    };
    struct note_key key;
    struct note_signer signer;
    for (size_t i = 0; i < NG_COUNT(bad); i++) {
        assert_int_equal(note_key_read(ng_str_of(bad[i]), &key), NG_EINVAL);
        assert_int_equal(note_signer_read(ng_str_of(bad[i]), &signer), NG_EINVAL);
    }
    assert_int_equal(note_signer_read(ng_str_of("PRIVATE+KEY+PeterNeumann+c74f20a4+"
                                                "AYEKFALVFGyNhPJEMzD1QIDr+Y7hfZx09iUvxdXHKDFz"),
                                      &signer),
                     NG_EINVAL);
    assert_int_equal(note_signer_make(ng_str_of("a b"), &signer), NG_EINVAL);
    assert_int_equal(note_signer_make(ng_str_of("a+b"), &signer), NG_EINVAL);
    assert_int_equal(note_signer_make(STR_NONE, &signer), NG_EINVAL);
}

static void test_checkpoints(void **state)
{
    (void)state;
    struct note_signer signer;
    struct note_signer other;
    struct checkpoint made = {.size = 20852163};
    struct checkpoint read;
    struct buf out;
    buf_init(&out, NOTE_BYTES_MAX);
    memset(made.root.bytes, 7, sizeof(made.root.bytes));
    assert_int_equal(note_signer_make(ng_str_of("notegate/1"), &signer), NG_OK);
    assert_int_equal(note_signer_make(ng_str_of("notegate/2"), &other), NG_OK);
    assert_int_equal(checkpoint_sign(&made, &signer, &out), NG_OK);
    const char *begin =
        "notegate/1\n20852163\nBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwc=\n\n";
    assert_true(str_starts(buf_str(&out), ng_str_of(begin)));
    assert_int_equal(checkpoint_open(buf_str(&out), &signer.key, &read), NG_OK);
    assert_true(read.size == made.size && tlog_hash_equal(&read.root, &made.root));
    assert_int_equal(checkpoint_open(buf_str(&out), &other.key, &read), NG_ENOTFOUND);
    static const char *const bad[] = {
        "notegate/2\n1\nBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwc=\n",
        "notegate/1\n01\nBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwc=\n",
        "notegate/1\n-1\nBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwc=\n",
        "notegate/1\n72057594037927936\nBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwc=\n",
        "notegate/1\n1\nBwcHBwc=\n",
        "notegate/1\n1\n",
        "notegate/1\n",
    };
    for (size_t i = 0; i < NG_COUNT(bad); i++) {
        buf_clear(&out);
        assert_int_equal(note_sign(&signer, ng_str_of(bad[i]), &out), NG_OK);
        assert_int_equal(checkpoint_open(buf_str(&out), &signer.key, &read), NG_EINVAL);
    }
    buf_done(&out);
}

static int tree_setup(void **state)
{
    *state = tree_make();
    return 0;
}

static int tree_teardown(void **state)
{
    free(*state);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_known_roots),
        cmocka_unit_test(test_roots_are_those_of_the_definition),
        cmocka_unit_test(test_a_tree_has_an_end),
        cmocka_unit_test(test_proofs_of_small_trees),
        cmocka_unit_test(test_proofs_of_large_trees),
        cmocka_unit_test(test_proofs_of_what_is_not_there),
        cmocka_unit_test(test_a_failure_of_the_source_is_told),
        cmocka_unit_test(test_paths_of_tiles),
        cmocka_unit_test(test_widths_of_tiles),
        cmocka_unit_test(test_bundles_are_split),
        cmocka_unit_test(test_a_known_note),
        cmocka_unit_test(test_notes_that_are_none),
        cmocka_unit_test(test_keys_that_are_none),
        cmocka_unit_test(test_checkpoints),
    };
    return cmocka_run_group_tests(tests, tree_setup, tree_teardown);
}
