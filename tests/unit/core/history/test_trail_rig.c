/* SPDX-License-Identifier: MIT */
/* test_trail_rig.c - shared code of test_trail*.c; see the header. */
#include "test_trail_rig.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/str.h"
#include "core/store/store_types.h"

struct trail_rig rig;

/* The dimensions of a filter, in the order of names_of(). */
const char *const values[DIMENSIONS][VALUES] = {
    {"shared", "team", "~ada"},     {"notebooks", "things", "others"},
    {"ada", "bob", "eve"},          {"run-1", "run-2", ""},
    {"notebook", "import", "sync"}, {"created", "updated", "moved"},
};

/* Ids begin so. */
static const char *const beginnings[] = {"note/", "note*", "no", "x/"};

unsigned below(unsigned limit)
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

void group_new(struct group *group, const char *agent, const char *run, const char *tool)
{
    group->call = harness_new_call(&rig.harness);
    group->call->may_block = true;
    group->call->caller.agent = ng_str_of(agent);
    group->call->pub.tool = ng_str_of(tool);
    call_set_run(group->call, ng_str_of(run));
    group->count = 0;
}

struct ng_change *group_add(struct group *group, const char *space, const char *collection,
                            const char *beginning, unsigned number)
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

void group_write(struct group *group)
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

struct rows rows_new(void)
{
    struct rows rows = {calloc(ROWS_MAX, sizeof(struct row)), 0};
    assert_non_null(rows.rows);
    return rows;
}

void read_all(void)
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

int walk_take(void *user, const struct ng_event *event)
{
    struct walk *walk = user;
    (void)take_row(&walk->found, event);
    walk->page++;
    return walk->most != 0 && walk->page == walk->most;
}

uint64_t walk_by(struct call *call, const struct ng_trail *trail, struct walk *walk)
{
    uint64_t next = UINT64_MAX;
    call->may_block = true;
    walk->page = 0;
    assert_int_equal(trail_walk(call, trail, walk_take, walk, &next), NG_OK);
    assert_true(next < trail->until && (next == 0 || next > trail->since));
    return next;
}

uint64_t walk_on(const struct ng_trail *trail, struct walk *walk)
{
    struct call *call = harness_new_call(&rig.harness);
    uint64_t next = walk_by(call, trail, walk);
    call_unref(call);
    return next;
}

void expect_rows(const struct ng_trail *trail, const struct rows *found)
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
size_t expect_pages(const struct ng_trail *trail, size_t most)
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

struct ng_trail trail_all(void)
{
    return (struct ng_trail){.size = sizeof(struct ng_trail), .until = UINT64_MAX};
}

struct ng_names *names_of(struct ng_trail *trail, size_t dimension)
{
    struct ng_names *const lists[DIMENSIONS] = {&trail->spaces, &trail->collections,
                                                &trail->agents, &trail->runs,
                                                &trail->tools,  &trail->actions};
    return lists[dimension];
}

void random_filter(struct ng_trail *trail, struct ng_str texts[DIMENSIONS][2])
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

/* ---- */

int setup(void **state)
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

int setup_without(void **state)
{
    int rc = setup(state);
    harness_documents(&rig.harness)->trail = NULL;
    return rc;
}

int teardown(void **state)
{
    (void)state;
    harness_close(&rig.harness);
    free(rig.all.rows);
    return 0;
}
