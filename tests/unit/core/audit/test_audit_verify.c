/* SPDX-License-Identifier: MIT */
/* test_audit_verify.c - verification detects tampering: eight kinds at random places, with the
 * disk alone and with the key as well. */
#include "test_audit_rig.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/str.h"

#define ROUNDS 200 /* of each kind */
#define SIZE 520   /* entries: two full tiles, and 8 */
#define STATES 4   /* of the log in the past, the last one is the present */

/* The tests are many, and the disk is not their subject. */
int fsync(int fd) // NOLINT: in the place of libc's
{
    (void)fd;
    return 0;
}

int fdatasync(int fd) // NOLINT: in the place of libc's
{
    (void)fd;
    return 0;
}

enum kind {
    KIND_EDIT = 0,
    KIND_DROP,
    KIND_SWAP,
    KIND_INSERT,
    KIND_CUT_TAIL,
    KIND_FORK,
    KIND_OLD_CHECKPOINT,
    KIND_WRONG_KEY,
    KINDS
};

static const char *const kind_names[] = {"edit",     "drop", "swap",           "insert",
                                         "cut tail", "fork", "old checkpoint", "wrong key"};

/* How far it goes. */
enum means {
    MEANS_BUNDLE = 0, /* the entries alone */
    MEANS_TILES,      /* and every tile, so that they fit */
    MEANS_KEY,        /* and the checkpoint, signed with the key of the log */
    MEANS_COUNT
};

struct world {
    struct audit_rig rig;
    uint64_t sizes[STATES];
    char *checkpoints[STATES];
    char above[RIG_PATH_SIZE / 2];
    struct buf problem;
};

/* The numbers and variants of the entries that a tampered log has. */
struct entries {
    size_t count;
    struct {
        uint64_t number;
        unsigned variant;
    } list[SIZE + 64];
};

static uint32_t seed = 6962;

static uint32_t any(uint32_t below)
{
    return rig_any(&seed, below);
}

/* ---- what is changed ---- */

/* Changes the list; returns the first entry that differs. */
static size_t entries_tamper(struct entries *entries, enum kind kind)
{
    entries->count = SIZE;
    for (size_t i = 0; i < SIZE; i++) {
        entries->list[i].number = i;
        entries->list[i].variant = 0;
    }
    size_t at = any(SIZE);
    size_t other = (at + 1 + any(SIZE - 1)) % SIZE;
    switch (kind) {
    case KIND_EDIT:
        entries->list[at].variant = 1 + any(9);
        break;
    case KIND_DROP:
        entries->count--;
        memmove(&entries->list[at], &entries->list[at + 1],
                (entries->count - at) * sizeof(entries->list[0]));
        break;
    case KIND_SWAP:
        entries->list[at].number = other;
        entries->list[other].number = at;
        at = size_min(at, other);
        break;
    case KIND_INSERT:
        memmove(&entries->list[at + 1], &entries->list[at],
                (entries->count - at) * sizeof(entries->list[0]));
        entries->list[at].variant = 1;
        entries->count++;
        break;
    case KIND_CUT_TAIL:
        entries->count = at;
        break;
    default: /* a fork: another history from `at` on, shorter, longer or as long */
        entries->count = size_max(at + 1, SIZE - 32 + any(64));
        for (size_t i = at; i < entries->count; i++) {
            entries->list[i].number = i;
            entries->list[i].variant = 1;
        }
        break;
    }
    return at;
}

/* The bundle of `index` as these entries fill it. */
static void bundle_write(const struct world *world, const struct entries *entries, size_t index,
                         size_t count)
{
    char name[TLOG_PATH_SIZE];
    char text[RIG_ENTRY_SIZE];
    char head[TLOG_ENTRY_HEAD];
    struct buf bundle;
    buf_init(&bundle, TLOG_BUNDLE_MAX);
    for (size_t i = index * TLOG_TILE_WIDTH; i < entries->count && count > 0; i++, count--) {
        struct ng_str entry =
            rig_entry(entries->list[i].number, entries->list[i].variant, text);
        tlog_bundle_head(entry.len, head);
        (void)buf_add(&bundle, head, sizeof(head));
        (void)buf_add_str(&bundle, entry);
    }
    assert_int_equal(bundle.rc, NG_OK);
    tlog_tile_path(TLOG_ENTRIES, index, tlog_tile_width(TLOG_ENTRIES, index, SIZE), name);
    rig_write(&world->rig, name, buf_str(&bundle));
    buf_done(&bundle);
}

/* All entries of the list in the bundles of the true log: one that is dropped or inserted
 * leaves its bundle shorter or longer. */
static void tamper_bundles(const struct world *world, const struct entries *entries,
                           enum kind kind, size_t at)
{
    size_t index = at / TLOG_TILE_WIDTH;
    size_t width = tlog_tile_width(TLOG_ENTRIES, index, SIZE);
    switch (kind) {
    case KIND_DROP:
        bundle_write(world, entries, index, width - 1);
        break;
    case KIND_INSERT:
        bundle_write(world, entries, index, width + 1);
        break;
    case KIND_CUT_TAIL:
        bundle_write(world, entries, index, width);
        break;
    default:
        for (size_t i = 0; i * TLOG_TILE_WIDTH < SIZE; i++) {
            bundle_write(world, entries, i, TLOG_TILE_WIDTH);
        }
        break;
    }
}

/* Writes a log of these entries in the place of the true one, with its key. The checkpoint
 * stays, unless the means are the key. */
static void tamper_log(struct world *world, const struct entries *entries, enum means means)
{
    struct audit_rig *rig = &world->rig;
    size_t len = 0;
    char *key = rig_read(rig, "key", &len);
    char text[RIG_ENTRY_SIZE];
    rig_remove(rig->dir);
    assert_int_equal(mkdir(rig->dir, 0700), 0);
    rig_write(rig, "key", ng_str_of(key));
    rig_open(rig);
    for (size_t i = 0; i < entries->count; i++) {
        struct ng_str entry =
            rig_entry(entries->list[i].number, entries->list[i].variant, text);
        size_t done = 0;
        assert_int_equal(audit_log_append(rig->log, &entry, 1, &done, &rig->error), NG_OK);
    }
    assert_int_equal(audit_log_fold(rig->log, &rig->error), NG_OK);
    rig_close(rig);
    if (means != MEANS_KEY) {
        rig_write(rig, "checkpoint", ng_str_of(world->checkpoints[STATES - 1]));
    }
    free(key);
}

/* ---- checks ---- */

static void expect_found(struct world *world, enum kind kind, const char *kept,
                         struct audit_verify_report *ret)
{
    int rc = rig_verify(world->rig.dir, kept, ret, &world->problem);
    if (rc != NG_EFAILED) {
        fail_msg("%s: %d %s", kind_names[kind], rc, buf_cstr(&world->problem));
    }
    assert_true(world->problem.len > 0);
    assert_true(ret->bad_first <= ret->bad_last);
}

/* The true log again. */
static void world_restore(struct world *world)
{
    struct audit_rig there = {.log = NULL};
    (void)snprintf(there.dir, sizeof(there.dir), "%s/true", world->above);
    rig_remove(world->rig.dir);
    rig_copy(&there, world->rig.dir);
}

static void tamper_entries(struct world *world, enum kind kind, bool is_kept)
{
    struct audit_verify_report report;
    struct entries entries;
    size_t at = entries_tamper(&entries, kind);
    enum means means = (enum means)any(MEANS_COUNT);
    if (means == MEANS_BUNDLE) {
        tamper_bundles(world, &entries, kind, at);
    } else {
        tamper_log(world, &entries, means);
    }
    const char *kept = is_kept || means == MEANS_KEY ? world->checkpoints[STATES - 1] : NULL;
    expect_found(world, kind, kept, &report);
    if (means == MEANS_BUNDLE) { /* exactly this one */
        assert_int_equal(report.bad_first, at);
        assert_int_equal(report.bad_last, at);
    } else if (entries.count == SIZE) {
        assert_true(report.bad_first <= at && at <= report.bad_last);
    }
}

/* Puts the partial tiles of a former state beside the present ones. */
static void restore_partial(struct world *world, size_t state)
{
    static const unsigned levels[] = {0, 1, TLOG_ENTRIES};
    struct audit_rig there = {.log = NULL};
    char name[TLOG_PATH_SIZE];
    char folder[RIG_PATH_SIZE + TLOG_PATH_SIZE];
    (void)snprintf(there.dir, sizeof(there.dir), "%s/state%zu", world->above, state);
    for (size_t i = 0; i < NG_COUNT(levels); i++) {
        uint64_t index = tlog_tile_count(levels[i], world->sizes[state]) >> TLOG_TILE_BITS;
        size_t width = tlog_tile_width(levels[i], index, world->sizes[state]);
        size_t len = 0;
        if (width == 0) {
            continue;
        }
        tlog_tile_path(levels[i], index, width, name);
        char *bytes = rig_read(&there, name, &len);
        assert_non_null(bytes);
        (void)snprintf(folder, sizeof(folder), "%s/%s", world->rig.dir, name);
        *strrchr(folder, '/') = '\0';
        (void)mkdir(folder, 0700);
        rig_write(&world->rig, name, str_make(bytes, len));
        free(bytes);
    }
}

/* An older checkpoint, which the log's key has signed: alone, or with the tiles that it needs,
 * or with the whole folder of then. */
static void tamper_checkpoint(struct world *world)
{
    struct audit_verify_report report;
    size_t state = any(STATES - 1);
    if (any(3) != 0) {
        rig_write(&world->rig, "checkpoint", ng_str_of(world->checkpoints[state]));
        expect_found(world, KIND_OLD_CHECKPOINT,
                     any(2) == 0 ? NULL : world->checkpoints[STATES - 1], &report);
        restore_partial(world, state);
        expect_found(world, KIND_OLD_CHECKPOINT, NULL, &report);
        assert_non_null(strstr(buf_cstr(&world->problem), "an older one"));
        assert_int_equal(report.bad_first, world->sizes[state]);
        /* The gateway does not go on from there: it would sign another past. */
        buf_clear(&world->problem);
        assert_int_equal(audit_log_open(world->rig.dir, ng_str_of(RIG_NAME), &world->rig.log,
                                        &world->problem),
                         NG_EFAILED);
        assert_non_null(strstr(buf_cstr(&world->problem), "that is an older one"));
        return;
    }
    struct audit_rig there = {.log = NULL};
    (void)snprintf(there.dir, sizeof(there.dir), "%s/state%zu", world->above, state);
    rig_remove(world->rig.dir);
    rig_copy(&there, world->rig.dir);
    expect_found(world, KIND_OLD_CHECKPOINT, world->checkpoints[STATES - 1], &report);
    assert_int_equal(report.bad_first, world->sizes[state]);
    /* Against a checkpoint of its own past it is as good as any. */
    assert_int_equal(rig_verify(world->rig.dir, world->checkpoints[any((uint32_t)state + 1)],
                                &report, &world->problem),
                     NG_OK);
}

/* Another key with the name of the log, the true entries; or other bytes in a signature. */
static void tamper_key(struct world *world)
{
    struct audit_verify_report report;
    struct note_signer signer = {.secret = {0}};
    struct checkpoint checkpoint;
    struct note_key key;
    struct buf note;
    size_t len = 0;
    bool with_public = any(2) == 0;
    char *public_key = rig_read(&world->rig, "key.pub", &len);
    const char *text = world->checkpoints[STATES - 1];
    buf_init(&note, NOTE_BYTES_MAX);
    assert_int_equal(note_key_read(ng_str_of(public_key), &key), NG_OK);
    assert_int_equal(checkpoint_open(ng_str_of(text), &key, &checkpoint), NG_OK);
    if (any(3) == 0) {
        (void)buf_add_c(&note, text);
        char *signature = strstr(buf_cstr(&note), " " RIG_NAME " ") + strlen(RIG_NAME) + 2;
        char *letter = signature + 6 + any(80);
        *letter = *letter == 'A' ? 'B' : 'A';
        with_public = false;
    } else {
        assert_int_equal(note_signer_make(ng_str_of(RIG_NAME), &signer), NG_OK);
        assert_int_equal(checkpoint_sign(&checkpoint, &signer, &note), NG_OK);
    }
    rig_write(&world->rig, "checkpoint", buf_str(&note));
    if (with_public) {
        buf_clear(&note);
        (void)note_key_write(&signer.key, &note);
        rig_write(&world->rig, "key.pub", buf_str(&note));
    }
    expect_found(world, KIND_WRONG_KEY, with_public ? text : NULL, &report);
    buf_done(&note);
    free(public_key);
}

static void tamper_rounds(struct world *world, enum kind kind)
{
    for (unsigned i = 0; i < ROUNDS; i++) {
        struct audit_verify_report report;
        if (kind == KIND_OLD_CHECKPOINT) {
            tamper_checkpoint(world);
        } else if (kind == KIND_WRONG_KEY) {
            tamper_key(world);
        } else {
            tamper_entries(world, kind, any(2) == 0);
        }
        world_restore(world);
        if (i % 50 == 0) { /* and the true one is whole, by each of its checkpoints */
            for (size_t state = 0; state < STATES; state++) {
                assert_int_equal(rig_verify(world->rig.dir, world->checkpoints[state], &report,
                                            &world->problem),
                                 NG_OK);
                assert_int_equal(report.size, SIZE);
                assert_int_equal(report.kept, world->sizes[state]);
            }
        }
    }
}

#define TEST_KIND(name, kind)                                                                  \
    static void name(void **state)                                                             \
    {                                                                                          \
        tamper_rounds(*state, kind);                                                           \
    }
TEST_KIND(test_edits_are_found, KIND_EDIT)
TEST_KIND(test_drops_are_found, KIND_DROP)
TEST_KIND(test_swaps_are_found, KIND_SWAP)
TEST_KIND(test_inserts_are_found, KIND_INSERT)
TEST_KIND(test_cut_tails_are_found, KIND_CUT_TAIL)
TEST_KIND(test_forks_are_found, KIND_FORK)
TEST_KIND(test_old_checkpoints_are_found, KIND_OLD_CHECKPOINT)
TEST_KIND(test_wrong_keys_are_found, KIND_WRONG_KEY)

/* Each file of the log, with one byte changed, cut off, or gone. */
static void test_every_file_counts(void **state)
{
    static const char *const files[] = {
        "checkpoint",       "key.pub",          "tile/0/000",
        "tile/0/001",       "tile/0/002.p/8",   "tile/1/000.p/2",
        "tile/entries/000", "tile/entries/001", "tile/entries/002.p/8",
    };
    struct world *world = *state;
    struct audit_verify_report report;
    char path[RIG_PATH_SIZE + 64];
    for (size_t i = 0; i < NG_COUNT(files); i++) {
        size_t len = 0;
        char *bytes = rig_read(&world->rig, files[i], &len);
        assert_non_null(bytes);
        for (unsigned round = 0; round < 20; round++) {
            size_t at = any((uint32_t)len);
            bytes[at] = (char)(bytes[at] ^ (1 << any(8)));
            rig_write(&world->rig, files[i], str_make(bytes, len));
            expect_found(world, KIND_EDIT, NULL, &report);
            world_restore(world);
            free(bytes);
            bytes = rig_read(&world->rig, files[i], &len);
        }
        rig_write(&world->rig, files[i], str_make(bytes, len - 2));
        expect_found(world, KIND_EDIT, NULL, &report);
        (void)snprintf(path, sizeof(path), "%s/%s", world->rig.dir, files[i]);
        assert_int_equal(unlink(path), 0);
        expect_found(world, KIND_DROP, NULL, &report);
        assert_non_null(strstr(buf_cstr(&world->problem), "missing"));
        free(bytes);
        world_restore(world);
    }
}

static void test_what_is_no_log(void **state)
{
    struct world *world = *state;
    struct audit_verify_report report;
    struct audit_rig rig;
    rig_make(&rig);
    assert_int_equal(rig_verify(rig.dir, NULL, &report, &world->problem), NG_ENOTFOUND);
    assert_int_equal(mkdir(rig.dir, 0700), 0);
    assert_int_equal(rig_verify(rig.dir, NULL, &report, &world->problem), NG_EFAILED);
    assert_non_null(strstr(buf_cstr(&world->problem), "key.pub is missing"));
    assert_int_equal(rig_verify(world->rig.dir, "nonsense", &report, &world->problem),
                     NG_EINVAL);
    assert_non_null(strstr(buf_cstr(&world->problem), "no checkpoint of the log " RIG_NAME));
    rig_done(&rig);
}

/* Entries that wait are counted, and have to follow. */
static void test_pending_entries(void **state)
{
    struct world *world = *state;
    struct audit_verify_report report;
    rig_open(&world->rig);
    assert_int_equal(rig_append(&world->rig, 4), NG_OK);
    assert_int_equal(rig_verify(world->rig.dir, NULL, &report, &world->problem), NG_OK);
    assert_int_equal(report.size, SIZE);
    assert_int_equal(report.pending, 4);
    rig_close(&world->rig);
    rig_write(&world->rig, "checkpoint", ng_str_of(world->checkpoints[0]));
    expect_found(world, KIND_OLD_CHECKPOINT, NULL, &report);
    world_restore(world);
}

/* Another process folds amid each verification: that is no tampering. */
static void test_beside_a_writer(void **state)
{
    struct world *world = *state;
    struct audit_verify_report report;
    int pipes[2];
    char byte = 0;
    int status = 0;
    uint64_t last = 0;
    assert_int_equal(pipe(pipes), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        (void)close(pipes[1]);
        rig_open(&world->rig);
        while (read(pipes[0], &byte, 1) == 1) {
            rig_grow(&world->rig, 1 + any(200));
        }
        _exit(0);
    }
    (void)close(pipes[0]);
    for (unsigned i = 0; i < ROUNDS; i++) {
        assert_int_equal(write(pipes[1], &byte, 1), 1);
        int rc = rig_verify(world->rig.dir, world->checkpoints[i % STATES], &report,
                            &world->problem);
        if (rc != NG_OK) {
            fail_msg("%d: %s", rc, buf_cstr(&world->problem));
        }
        assert_true(report.size >= last);
        last = report.size;
    }
    (void)close(pipes[1]);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    world_restore(world);
}

/* ---- the log ---- */

static int world_setup(void **state)
{
    static const size_t steps[STATES] = {100, 156, 44, 220};
    struct world *world = calloc(1, sizeof(*world));
    assert_non_null(world);
    char path[RIG_PATH_SIZE];
    size_t len = 0;
    buf_init(&world->problem, 4096);
    rig_make(&world->rig);
    (void)snprintf(world->above, sizeof(world->above), "%.*s",
                   (int)(strrchr(world->rig.dir, '/') - world->rig.dir), world->rig.dir);
    rig_open(&world->rig);
    for (size_t i = 0; i < STATES; i++) {
        rig_grow(&world->rig, steps[i]);
        world->sizes[i] = audit_log_size(world->rig.log);
        world->checkpoints[i] = rig_read(&world->rig, "checkpoint", &len);
        (void)snprintf(path, sizeof(path), "%s/state%zu", world->above, i);
        rig_copy(&world->rig, path);
    }
    rig_close(&world->rig);
    (void)snprintf(path, sizeof(path), "%s/true", world->above);
    rig_copy(&world->rig, path);
    *state = world;
    return 0;
}

static int world_teardown(void **state)
{
    struct world *world = *state;
    for (size_t i = 0; i < STATES; i++) {
        free(world->checkpoints[i]);
    }
    buf_done(&world->problem);
    rig_done(&world->rig);
    free(world);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_edits_are_found),
        cmocka_unit_test(test_drops_are_found),
        cmocka_unit_test(test_swaps_are_found),
        cmocka_unit_test(test_inserts_are_found),
        cmocka_unit_test(test_cut_tails_are_found),
        cmocka_unit_test(test_forks_are_found),
        cmocka_unit_test(test_old_checkpoints_are_found),
        cmocka_unit_test(test_wrong_keys_are_found),
        cmocka_unit_test(test_every_file_counts),
        cmocka_unit_test(test_what_is_no_log),
        cmocka_unit_test(test_pending_entries),
        cmocka_unit_test(test_beside_a_writer),
    };
    return cmocka_run_group_tests(tests, world_setup, world_teardown);
}
