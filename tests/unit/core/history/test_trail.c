/* SPDX-License-Identifier: MIT */
/* test_trail.c - the changes of all documents, newest first: filters, pages, rights. The oracle
 * is the list of changes, oldest first, as it was read in one piece. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/arena.h"
#include "core/base/str.h"
#include "core/call/key.h"
#include "core/history/trail.h"
#include "core/store/store.h"
#include "harness.h"

#define GROUPS 160
#define ROWS_MAX 60000
#define NAME_MAX_BYTES 24
#define VALUES 3
#define DIMENSIONS 6

/* The dimensions of a filter, in the order of names_of(). */
static const char *const values[DIMENSIONS][VALUES] = {
    {"shared", "team", "~ada"},     {"notebooks", "things", "others"},
    {"ada", "bob", "eve"},          {"run-1", "run-2", ""},
    {"notebook", "import", "sync"}, {"created", "updated", "moved"},
};

/* Ids begin so. */
static const char *const beginnings[] = {"note/", "note*", "no", "x/"};

struct row {
    uint64_t seq;
    char id[NAME_MAX_BYTES];
    char names[DIMENSIONS][NAME_MAX_BYTES];
};

struct rows {
    struct row *rows;
    size_t count;
};

static struct {
    struct harness harness;
    struct rows all; /* oldest first */
    unsigned seed;
} rig;

static unsigned below(unsigned limit)
{
    return (unsigned)rand_r(&rig.seed) % limit;
}

/* ---- changes ---- */

static const struct ng_collection collections[] = {
    {.name = "things"},
    {.name = "others"},
    {.name = "hidden", .flags = NG_COLLECTION_QUIET},
};

static int write_text(struct ng_call *call, const struct ng_doc *present, struct ng_draft *next,
                      void *user)
{
    (void)present;
    struct ng_str text = ng_str_of(user);
    return call->host->draft_text(next, &text, 1);
}

/* Documents that one call changes. */
struct group {
    struct call *call;
    struct ng_change changes[NG_CHANGES_MAX];
    char ids[NG_CHANGES_MAX][NAME_MAX_BYTES];
    size_t count;
};

static void group_new(struct group *group, const char *agent, const char *run, const char *tool)
{
    group->call = harness_new_call(&rig.harness);
    group->call->may_block = true;
    group->call->caller.agent = ng_str_of(agent);
    group->call->pub.tool = ng_str_of(tool);
    call_set_run(group->call, ng_str_of(run));
    group->count = 0;
}

static struct ng_change *group_add(struct group *group, const char *space,
                                   const char *collection, const char *beginning,
                                   unsigned number)
{
    char *id = group->ids[group->count];
    struct ng_change *change = &group->changes[group->count++];
    (void)snprintf(id, NAME_MAX_BYTES, "%s%u", beginning, number);
    *change = (struct ng_change){
        .size = sizeof(*change),
        .key = {ng_str_of(collection), ng_str_of(space), ng_str_of(id)},
        .fn = write_text,
        .user = id,
    };
    return change;
}

static void group_write(struct group *group)
{
    assert_int_equal(
        store_write_wait(rig.harness.gateway->store, group->call, group->changes, group->count),
        NG_OK);
    call_unref(group->call);
}

static void write_random_group(void)
{
    struct group group;
    group_new(&group, values[2][below(VALUES)], values[3][below(VALUES)],
              values[4][below(VALUES)]);
    bool quiet = below(4) == 0;
    unsigned count = 1 + below(NG_CHANGES_MAX);
    for (unsigned i = 0; i < count; i++) {
        const char *collection = quiet ? "hidden" : values[1][below(VALUES)];
        struct ng_change *change =
            group_add(&group, values[0][below(VALUES)], collection,
                      beginnings[below(NG_COUNT(beginnings))], i + NG_CHANGES_MAX * below(2));
        change->action = below(3) == 0 ? "moved" : NULL;
    }
    group_write(&group);
}

/* ---- the oracle ---- */

static void set_name(char name[NAME_MAX_BYTES], struct ng_str text)
{
    assert_true(text.len < NAME_MAX_BYTES);
    (void)snprintf(name, NAME_MAX_BYTES, "%.*s", (int)text.len, text.len > 0 ? text.data : "");
}

static int take_row(void *user, const struct ng_event *event)
{
    struct rows *rows = user;
    assert_true(rows->count < ROWS_MAX);
    struct row *row = &rows->rows[rows->count++];
    const struct ng_str names[DIMENSIONS] = {event->key.space, event->key.collection,
                                             event->agent,     event->origin.run_id,
                                             event->tool,      event->action};
    row->seq = event->seq;
    set_name(row->id, event->key.id);
    for (size_t i = 0; i < DIMENSIONS; i++) {
        set_name(row->names[i], names[i]);
    }
    return 0;
}

static struct rows rows_new(void)
{
    struct rows rows = {calloc(ROWS_MAX, sizeof(struct row)), 0};
    assert_non_null(rows.rows);
    return rows;
}

static void read_all(void)
{
    struct call *call = harness_new_call(&rig.harness);
    call->may_block = true;
    rig.all.count = 0;
    assert_int_equal(
        store_changes(rig.harness.gateway->store, call, 0, ROWS_MAX, take_row, &rig.all),
        NG_OK);
    call_unref(call);
}

static bool oracle_names(const struct ng_names *names, const char *name)
{
    for (size_t i = 0; i < names->count; i++) {
        if (str_is(names->items[i], name)) {
            return true;
        }
    }
    return names->count == 0;
}

static bool oracle_wants(const struct ng_trail *trail, const struct row *row)
{
    const struct ng_names *const lists[DIMENSIONS] = {&trail->spaces, &trail->collections,
                                                      &trail->agents, &trail->runs,
                                                      &trail->tools,  &trail->actions};
    if (row->seq <= trail->since || row->seq > trail->until) {
        return false;
    }
    for (size_t i = 0; i < DIMENSIONS; i++) {
        if (!oracle_names(lists[i], row->names[i])) {
            return false;
        }
    }
    size_t len = trail->id_prefix ? trail->id.len : strlen(row->id);
    return trail->id.data == NULL || (len == trail->id.len && len <= strlen(row->id) &&
                                      memcmp(row->id, trail->id.data, len) == 0);
}

/* ---- walks ---- */

struct walk {
    struct rows found; /* newest first */
    size_t most;       /* of one walk; 0: all */
    size_t page;
};

static int walk_take(void *user, const struct ng_event *event)
{
    struct walk *walk = user;
    (void)take_row(&walk->found, event);
    walk->page++;
    return walk->most != 0 && walk->page == walk->most;
}

static uint64_t walk_by(struct call *call, const struct ng_trail *trail, struct walk *walk)
{
    uint64_t next = UINT64_MAX;
    call->may_block = true;
    walk->page = 0;
    assert_int_equal(trail_walk(call, trail, walk_take, walk, &next), NG_OK);
    assert_true(next < trail->until && (next == 0 || next > trail->since));
    return next;
}

static uint64_t walk_on(const struct ng_trail *trail, struct walk *walk)
{
    struct call *call = harness_new_call(&rig.harness);
    uint64_t next = walk_by(call, trail, walk);
    call_unref(call);
    return next;
}

static void expect_rows(const struct ng_trail *trail, const struct rows *found)
{
    size_t at = 0;
    for (size_t i = rig.all.count; i > 0; i--) {
        const struct row *row = &rig.all.rows[i - 1];
        if (oracle_wants(trail, row)) {
            assert_true(at < found->count);
            assert_memory_equal(&found->rows[at], row, sizeof(*row));
            at++;
        }
    }
    assert_int_equal(at, found->count);
}

/* Pages of so many changes (0: one walk) give what the oracle gives; how many walks. */
static size_t expect_pages(const struct ng_trail *trail, size_t most)
{
    struct walk walk = {.found = rows_new(), .most = most};
    struct ng_trail page = *trail;
    size_t walks = 0;
    do {
        page.until = walk_on(&page, &walk);
        walks++;
    } while (page.until != 0);
    expect_rows(trail, &walk.found);
    free(walk.found.rows);
    return walks;
}

static struct ng_trail trail_all(void)
{
    return (struct ng_trail){.size = sizeof(struct ng_trail), .until = UINT64_MAX};
}

static struct ng_names *names_of(struct ng_trail *trail, size_t dimension)
{
    struct ng_names *const lists[DIMENSIONS] = {&trail->spaces, &trail->collections,
                                                &trail->agents, &trail->runs,
                                                &trail->tools,  &trail->actions};
    return lists[dimension];
}

/* ---- filters and pages ---- */

static void test_newest_first(void **state)
{
    struct ng_trail trail = trail_all();
    (void)state;
    assert_true(rig.all.count > 2000);
    assert_true(rig.all.rows[rig.all.count - 1].seq > rig.all.count + 500); /* quiet ones */
    assert_int_equal(expect_pages(&trail, 0), 1);
}

static void test_each_filter(void **state)
{
    (void)state;
    for (size_t i = 0; i < DIMENSIONS; i++) {
        struct ng_str two[2] = {ng_str_of("unheard of"), ng_str_of("unheard of")};
        struct ng_trail trail = trail_all();
        *names_of(&trail, i) = (struct ng_names){two, 1};
        assert_int_equal(expect_pages(&trail, 0), 1);
        for (size_t value = 0; value < VALUES; value++) {
            two[0] = ng_str_of(values[i][value]);
            two[1] = ng_str_of(values[i][(value + 1) % VALUES]);
            *names_of(&trail, i) = (struct ng_names){two, 1};
            assert_int_equal(expect_pages(&trail, 0), 1);
            *names_of(&trail, i) = (struct ng_names){two, 2};
            assert_int_equal(expect_pages(&trail, 0), 1);
        }
    }
}

static void test_ids(void **state)
{
    static const char *const ids[] = {"", "n", "no", "note", "note*", "note*1", "note/7", "y"};
    (void)state;
    for (size_t i = 0; i < 2 * NG_COUNT(ids); i++) {
        struct ng_trail trail = trail_all();
        trail.id = ng_str_of(ids[i / 2]);
        trail.id_prefix = i % 2 == 0;
        (void)expect_pages(&trail, 0);
    }
}

static void random_filter(struct ng_trail *trail, struct ng_str texts[DIMENSIONS][2])
{
    uint64_t last = rig.all.rows[rig.all.count - 1].seq;
    *trail = trail_all();
    for (size_t i = 0; i < DIMENSIONS; i++) {
        texts[i][0] = ng_str_of(values[i][below(VALUES)]);
        texts[i][1] = ng_str_of(values[i][below(VALUES)]);
        *names_of(trail, i) = (struct ng_names){texts[i], below(3)};
    }
    if (below(3) == 0) {
        trail->id = ng_str_of("no");
        trail->id_prefix = true;
    }
    trail->since = below(2) == 0 ? 0 : below((unsigned)last + 10);
    trail->until = below(2) == 0 ? UINT64_MAX : 1 + below((unsigned)last + 10);
}

static void test_filters_together(void **state)
{
    (void)state;
    for (int i = 0; i < 100; i++) {
        struct ng_str texts[DIMENSIONS][2];
        struct ng_trail trail;
        random_filter(&trail, texts);
        (void)expect_pages(&trail, 0);
        (void)expect_pages(&trail, 20 + below(100));
    }
}

static void test_since_and_until(void **state)
{
    (void)state;
    const struct row *rows = rig.all.rows;
    for (size_t i = 0; i + 5 < rig.all.count; i += 331) {
        struct ng_trail trail = trail_all();
        struct walk walk = {.found = rows_new()};
        trail.since = rows[i].seq;
        trail.until = rows[i + 5].seq;
        assert_int_equal(walk_on(&trail, &walk), 0);
        assert_int_equal(walk.found.count, 5);
        assert_int_equal(walk.found.rows[0].seq, rows[i + 5].seq);
        assert_int_equal(walk.found.rows[4].seq, rows[i + 1].seq);
        trail.since = trail.until; /* nothing lies between */
        walk.found.count = 0;
        assert_int_equal(walk_on(&trail, &walk), 0);
        trail.since = trail.until + 1;
        assert_int_equal(walk_on(&trail, &walk), 0);
        assert_int_equal(walk.found.count, 0);
        free(walk.found.rows);
    }
}

static void test_pages(void **state)
{
    static const size_t sizes[] = {100, 999, 1000, 1001, 5000};
    (void)state;
    struct ng_trail trail = trail_all();
    for (size_t i = 0; i < NG_COUNT(sizes); i++) {
        size_t walks = expect_pages(&trail, sizes[i]);
        assert_true(walks >= (rig.all.count + sizes[i] - 1) / sizes[i]);
    }
    struct ng_str run = ng_str_of("run-2");
    trail.runs = (struct ng_names){&run, 1};
    trail.since = rig.all.rows[rig.all.count - 500].seq;
    (void)expect_pages(&trail, 1);
}

/* A callback that stops has taken its change: the next walk begins with the one before. */
static void test_stop(void **state)
{
    struct ng_trail trail = trail_all();
    struct walk walk = {.found = rows_new(), .most = 3};
    (void)state;
    uint64_t next = walk_on(&trail, &walk);
    assert_int_equal(walk.found.count, 3);
    assert_int_equal(next, walk.found.rows[2].seq - 1);
    /* The first change of all is the end. */
    trail.until = rig.all.rows[2].seq;
    trail.since = rig.all.rows[0].seq - 1;
    walk.found.count = 0;
    assert_int_equal(walk_on(&trail, &walk), 0);
    assert_int_equal(walk.found.count, 3);
    free(walk.found.rows);
}

static void test_out_of_memory(void **state)
{
    struct ng_trail trail = trail_all();
    size_t failed = 0;
    (void)state;
    trail.since = rig.all.rows[rig.all.count - 20].seq;
    for (long fails = 0; fails < 40; fails++) {
        struct walk walk = {.found = rows_new()};
        struct call *call = harness_new_call(&rig.harness);
        uint64_t next = 0;
        call->may_block = true;
        alloc_fail_after(fails);
        int rc = trail_walk(call, &trail, walk_take, &walk, &next);
        alloc_fail_after(-1);
        assert_true(rc == NG_OK || (rc == NG_EINTERNAL && call->staged.message.data != NULL));
        if (rc == NG_OK) {
            expect_rows(&trail, &walk.found);
        }
        failed += rc != NG_OK;
        call_unref(call);
        free(walk.found.rows);
    }
    assert_true(failed > 0 && failed < 40);
}

/* ---- rights ---- */

/* A key that lives as long as a case; what it allows. */
static void key_allow(struct call *call, struct key *key, const struct ng_str *tools,
                      size_t tool_count)
{
    memset(key, 0, sizeof(*key));
    atomic_init(&key->refs, 1);
    lock_init(&key->lock, LOCK_KEY);
    key->tools = tools;
    key->tool_count = tool_count;
    call_take_key(call, key);
}

/* The rows that a caller of these spaces finds are those of `seen`; NULL: none. */
static void expect_seen(struct call *call, const struct ng_trail *trail,
                        const struct ng_trail *seen)
{
    struct walk walk = {.found = rows_new()};
    assert_int_equal(walk_by(call, trail, &walk), 0);
    if (seen == NULL) {
        assert_int_equal(walk.found.count, 0);
    } else {
        assert_true(walk.found.count > 100);
        expect_rows(seen, &walk.found);
    }
    free(walk.found.rows);
}

/* A space that the key does not allow is refused by its name. */
static void expect_refused(struct call *call, const struct ng_trail *trail)
{
    struct walk walk = {.found = rows_new()};
    uint64_t next = 0;
    assert_int_equal(trail_walk(call, trail, walk_take, &walk, &next), NG_EFORBIDDEN);
    assert_string_equal(call->staged.message.data,
                        "the caller's key does not allow the space \"team\"; it allows "
                        "shared, ~ada");
    assert_int_equal(walk.found.count, 0);
    free(walk.found.rows);
    call_reset_result(call);
}

static struct call *call_of_spaces(const struct ng_str *spaces, size_t count)
{
    struct call *call = harness_new_call(&rig.harness);
    call->caller.all_spaces = false;
    call->caller.spaces = spaces;
    call->caller.space_count = count;
    call->caller.role = NG_ROLE_WRITER;
    return call;
}

static void test_other_spaces(void **state)
{
    static const struct ng_str both[] = {{"shared", 6}, {"~ada", 4}};
    static const struct ng_str team[] = {{"team", 4}};
    struct ng_trail all = trail_all();
    struct ng_trail mine = trail_all();
    struct ng_trail others = trail_all();
    struct key key;
    (void)state;
    mine.spaces = (struct ng_names){both, 2};
    others.spaces = (struct ng_names){team, 1};
    struct call *call = call_of_spaces(both, 2);
    expect_seen(call, &all, &mine);
    expect_seen(call, &others, &others); /* without keys: what it names */
    key_allow(call, &key, NULL, 0);
    expect_seen(call, &all, &mine);
    expect_refused(call, &others);
    call->caller.all_spaces = true;
    expect_seen(call, &all, &all);
    expect_seen(call, &others, &others);
    call_unref(call);
    call = call_of_spaces(NULL, 0);
    key_allow(call, &key, NULL, 0);
    expect_seen(call, &all, NULL);
    call_unref(call);
}

static void test_keys_of_some_tools(void **state)
{
    static const struct ng_str notebook[] = {{"notebook", 8}};
    static const struct ng_str editor[] = {{"fileEditor", 10}};
    static const struct ng_str notebooks[] = {{"notebooks", 9}};
    struct ng_trail all = trail_all();
    struct ng_trail mine = trail_all();
    struct key of_notebook;
    struct key of_editor;
    (void)state;
    mine.collections = (struct ng_names){notebooks, 1};
    struct call *call = call_of_spaces(NULL, 0);
    call->caller.all_spaces = true;
    key_allow(call, &of_notebook, notebook, 1);
    expect_seen(call, &all, &mine);
    expect_seen(call, &mine, &mine);
    key_allow(call, &of_editor, editor, 1);
    expect_seen(call, &all, NULL);
    expect_seen(call, &mine, NULL);
    call_unref(call);
}

/* ---- more numbers than one walk looks at ---- */

static void write_many(const char *collection, size_t count)
{
    for (size_t i = 0; i < count; i += NG_CHANGES_MAX) {
        struct group group;
        group_new(&group, "ada", "run-1", "import");
        for (unsigned number = 0; number < NG_CHANGES_MAX; number++) {
            (void)group_add(&group, "team", collection, "many/", number);
        }
        group_write(&group);
    }
}

static void test_many_numbers(void **state)
{
    struct ng_trail trail = trail_all();
    struct ng_str bob = ng_str_of("bob");
    (void)state;
    write_many("hidden", TRAIL_LOOKS_MAX / 2);
    write_many("things", TRAIL_LOOKS_MAX / 2 + 5000);
    read_all();
    uint64_t last = rig.all.rows[rig.all.count - 1].seq;
    trail.agents = (struct ng_names){&bob, 1};
    trail.until = last;
    struct walk walk = {.found = rows_new()};
    assert_int_equal(walk_on(&trail, &walk), last - TRAIL_LOOKS_MAX);
    assert_int_equal(walk.found.count, 0); /* empty, but there is more */
    free(walk.found.rows);
    assert_int_equal(expect_pages(&trail, 0), 2);
    trail.until = last - 777;
    assert_int_equal(expect_pages(&trail, 0), 2);
    trail.since = last - TRAIL_LOOKS_MAX - 777; /* all that one walk looks at */
    assert_int_equal(expect_pages(&trail, 0), 1);
    trail.since--;
    assert_int_equal(expect_pages(&trail, 0), 2);
}

/* ---- */

static int setup(void **state)
{
    static const char *const sets[] = {"plugins=notebook,file_editor", "documents=memory",
                                       NULL};
    const char *wanted = getenv("NOTEGATE_TEST_SEED");
    (void)state;
    rig.seed = wanted == NULL ? 1 : (unsigned)strtoul(wanted, NULL, 10);
    print_message("NOTEGATE_TEST_SEED=%u\n", rig.seed);
    harness_open(&rig.harness, sets);
    struct call *call = harness_new_call(&rig.harness);
    for (size_t i = 0; i < NG_COUNT(collections); i++) {
        assert_int_equal(store_declare(rig.harness.gateway->store, call, &collections[i]),
                         NG_OK);
    }
    call_unref(call);
    rig.all = rows_new();
    for (int i = 0; i < GROUPS; i++) {
        write_random_group();
    }
    read_all();
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    harness_close(&rig.harness);
    free(rig.all.rows);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_newest_first),
        cmocka_unit_test(test_each_filter),
        cmocka_unit_test(test_ids),
        cmocka_unit_test(test_filters_together),
        cmocka_unit_test(test_since_and_until),
        cmocka_unit_test(test_pages),
        cmocka_unit_test(test_stop),
        cmocka_unit_test(test_out_of_memory),
        cmocka_unit_test(test_other_spaces),
        cmocka_unit_test(test_keys_of_some_tools),
        cmocka_unit_test(test_many_numbers), /* the last one: it writes */
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
