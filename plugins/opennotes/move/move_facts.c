/* SPDX-License-Identifier: MIT */
/* move_facts.c - the notes that links lead to, before and after a move. The index has the names
 * of before; those of the moved notes afterwards are added to them. */
#include "move_facts.h"

#include <stdlib.h>
#include <string.h>

#include "index/index.h"
#include "index/index_link.h"
#include "index/link_sql.h"
#include "markdown/markdown_parts.h"

#define QUESTION_MAX ((size_t)1024 * 1024)
#define FIRST_OWN_RANK 2 /* titles and aliases: they do not depend on the path */

static const char find_sql[] =
    "SELECT m.id, m.path, " NOTES_LINK_RANK " FROM names x JOIN notes m ON m.id = x.note"
    " WHERE x.key = ?1 AND (x.kind = 'path') = ?2";

static const char in_folder_sql[] =
    "SELECT id, path FROM notes WHERE path = ?1 OR (path > ?1 || '/' AND path < ?1 || '0')"
    " ORDER BY id";

/* ---- answers */

static struct ng_str question(struct notes_facts *facts, char about, char more,
                              struct ng_str text)
{
    buf_clear(&facts->question);
    buf_add_char(&facts->question, about);
    buf_add_char(&facts->question, more);
    buf_add_str(&facts->question, text);
    return notes_buf_str(&facts->question);
}

static int compare_facts(const void *a, const void *b)
{
    const struct notes_fact *one = a;
    const struct notes_fact *other = b;
    return str_compare(one->question, other->question);
}

struct wanted {
    char about, more;
    struct ng_str text;
};

static int compare_wanted(const void *key, const void *item)
{
    const struct wanted *wanted = key;
    struct ng_str has = ((const struct notes_fact *)item)->question;
    if (wanted->about != has.data[0]) {
        return wanted->about - has.data[0];
    }
    if (wanted->more != has.data[1]) {
        return wanted->more - has.data[1];
    }
    return str_compare(wanted->text, str_make(has.data + 2, has.len - 2));
}

static struct ng_str kept_answer(const struct notes_facts *facts, char about, char more,
                                 struct ng_str text)
{
    const struct wanted wanted = {about, more, text};
    const struct notes_fact *found = NULL;
    if (facts->kept_count > 0) {
        found = bsearch(&wanted, facts->kept, facts->kept_count, sizeof(*facts->kept),
                        compare_wanted);
    }
    return found != NULL ? found->answer : STR_NONE;
}

static void out_of_memory(struct notes_facts *facts)
{
    if (facts->rc == NG_OK) {
        facts->rc = notes_fail_memory(facts->call);
    }
}

/* A new answer; its text in the arena. */
static struct ng_str answered(struct notes_facts *facts, char about, char more,
                              struct ng_str text, struct ng_str answer)
{
    struct ng_str asked = arena_copy(facts->arena, question(facts, about, more, text));
    struct notes_key *key = NULL;
    if (asked.data != NULL) {
        key = notes_keys_add(&facts->answers, asked);
    }
    if (key == NULL || facts->question.rc != NG_OK) {
        out_of_memory(facts);
        return STR_NONE;
    }
    key->value = answer;
    return answer;
}

/* ---- what a key leads to */

struct best {
    struct ng_str path;
    int rank;
};

/* As NOTES_LINK_TARGET orders them. */
static void take_better(struct best *best, struct ng_str path, int rank)
{
    bool better = best->path.data == NULL || rank < best->rank;
    if (!better && rank == best->rank) {
        size_t chars = utf8_count(path);
        size_t least = utf8_count(best->path);
        better = chars < least || (chars == least && str_compare(path, best->path) < 0);
    }
    if (better) {
        *best = (struct best){path, rank};
    }
}

static int compare_ids(const void *a, const void *b)
{
    int64_t one = ((const struct notes_moved *)a)->id;
    int64_t other = ((const struct notes_moved *)b)->id;
    return (one > other) - (one < other);
}

static const struct notes_moved *find_moved(const struct notes_facts *facts, int64_t id)
{
    const struct notes_moved wanted = {.id = id};
    if (facts->moved_count == 0) {
        return NULL;
    }
    return bsearch(&wanted, facts->moved, facts->moved_count, sizeof(wanted), compare_ids);
}

bool notes_facts_moves(const struct notes_facts *facts, int64_t id)
{
    return find_moved(facts, id) != NULL;
}

static void take_row(struct notes_facts *facts, enum notes_when when, struct best *best)
{
    struct ng_str path = notes_column_text(facts->find, 1);
    int rank = sqlite3_column_int(facts->find, 2);
    const struct notes_moved *moved = NULL;
    if (when == NOTES_AFTER) {
        moved = find_moved(facts, sqlite3_column_int64(facts->find, 0));
    }
    if (moved != NULL && (facts->removes || rank < FIRST_OWN_RANK)) {
        return;
    }
    take_better(best, arena_copy(facts->arena, moved != NULL ? moved->to : path), rank);
}

static struct ng_str look_up(struct notes_facts *facts, enum notes_when when, bool wiki,
                             struct ng_str key)
{
    struct best best = {.rank = 0};
    int step = SQLITE_DONE;
    (void)notes_bind_text(facts->find, 1, key);
    (void)sqlite3_bind_int(facts->find, 2, !wiki);
    while ((step = sqlite3_step(facts->find)) == SQLITE_ROW) {
        take_row(facts, when, &best);
    }
    if (step != SQLITE_DONE && facts->rc == NG_OK) {
        facts->rc = notes_notebook_fail(facts->notebook, facts->call);
    }
    (void)sqlite3_reset(facts->find);
    (void)sqlite3_clear_bindings(facts->find);
    if (when == NOTES_BEFORE || facts->removes) {
        return best.path;
    }
    const struct notes_key *names =
        notes_keys_find(&facts->names, question(facts, 'n', wiki ? 'w' : 'p', key));
    for (size_t next = names != NULL ? (size_t)names->number : 0; next != 0;
         next = facts->new_names[next - 1].next) {
        const struct notes_new_name *name = &facts->new_names[next - 1];
        take_better(&best, name->path, name->rank);
    }
    return best.path;
}

static struct ng_str leads(void *user, enum notes_when when, bool wiki, struct ng_str key)
{
    struct notes_facts *facts = user;
    char about = when == NOTES_BEFORE ? 'b' : 'a';
    char more = wiki ? 'w' : 'p';
    if (facts->find == NULL) {
        return kept_answer(facts, about, more, key);
    }
    const struct notes_key *known =
        notes_keys_find(&facts->answers, question(facts, about, more, key));
    if (known != NULL) {
        return known->value;
    }
    struct ng_str path = answered(facts, about, more, key, look_up(facts, when, wiki, key));
    if (when == NOTES_BEFORE && path.data != NULL) {
        /* Both are kept: a link of another note may have this key, too. */
        (void)leads(user, NOTES_AFTER, wiki, key);
    }
    return path;
}

/* ---- the shortest wiki link */

static bool leads_there(struct notes_facts *facts, struct ng_str target, struct ng_str path)
{
    struct ng_str written =
        arena_printf(facts->arena, "[[%.*s]]", (int)target.len, target.data);
    struct ng_str read;
    struct ng_str text;
    size_t end = 0;
    if (written.data == NULL || !notes_wiki_at(written, 0, &read, &text, &end) ||
        end != written.len || !str_equal(read, target)) {
        return false;
    }
    struct ng_str key = notes_link_key(facts->arena, path, true, target);
    return key.len > 0 && str_equal(leads(facts, NOTES_AFTER, true, key), path);
}

static struct ng_str find_shortest(struct notes_facts *facts, struct ng_str path, bool ending)
{
    struct ng_str name = path;
    name.len -= (size_t)3 * (!ending && notes_tree_is_note(path));
    for (size_t at = name.len; at > 0; at--) {
        struct ng_str target = str_make(name.data + at - 1, name.len - at + 1);
        bool begins = at == 1 || name.data[at - 2] == '/';
        if (begins && leads_there(facts, target, path)) {
            return target;
        }
    }
    struct ng_str absolute = arena_printf(facts->arena, "/%.*s", (int)name.len, name.data);
    bool there = absolute.data != NULL && leads_there(facts, absolute, path);
    return there ? absolute : STR_NONE;
}

static struct ng_str shortest(void *user, struct ng_str path, bool ending)
{
    struct notes_facts *facts = user;
    char more = ending ? 'm' : 's';
    if (facts->find == NULL) {
        return kept_answer(facts, 's', more, path);
    }
    const struct notes_key *known =
        notes_keys_find(&facts->answers, question(facts, 's', more, path));
    if (known != NULL) {
        return known->value;
    }
    struct ng_str found = find_shortest(facts, path, ending);
    if (found.data == NULL) { /* some names can be written in one form only */
        found = find_shortest(facts, path, !ending);
    }
    return answered(facts, 's', more, path, arena_copy(facts->arena, found));
}

/* ---- files */

static bool climbs(struct ng_str path)
{
    return str_is(path, "..") || str_begins(path, "../");
}

static bool exists(void *user, struct ng_str path)
{
    struct notes_facts *facts = user;
    struct ng_call *call = facts->call;
    struct ng_file found = {.size = sizeof(found)};
    struct ng_str root = facts->notebook->path;
    if (climbs(path) || memchr(path.data, '\0', path.len) != NULL) {
        return false;
    }
    struct ng_str absolute = call->host->format(call, "%.*s/%.*s", (int)root.len, root.data,
                                                (int)path.len, path.data);
    struct ng_str below = notes_path_below(path, facts->move.from);
    if (below.len > 0 && facts->absolute.data != NULL) {
        absolute = call->host->format(call, "%.*s/%.*s", (int)facts->absolute.len,
                                      facts->absolute.data, (int)below.len, below.data);
    }
    return absolute.data != NULL && call->host->file_stat(call, absolute, &found) == NG_OK &&
           found.type != NG_FILE_NONE;
}

/* ---- the moved notes */

static int add_new_name(struct notes_facts *facts, struct ng_str key, bool wiki,
                        struct ng_str path, int rank)
{
    if (key.len == 0) {
        return NG_OK;
    }
    struct ng_str asked = question(facts, 'n', wiki ? 'w' : 'p', key);
    struct notes_key *names = notes_keys_find(&facts->names, asked);
    if (names == NULL) {
        asked = arena_copy(facts->arena, asked);
        names = asked.data != NULL ? notes_keys_add(&facts->names, asked) : NULL;
    }
    if (names == NULL || !notes_grow(facts->arena, (void **)&facts->new_names, facts->new_count,
                                     &facts->new_room, sizeof(*facts->new_names))) {
        return notes_fail_memory(facts->call);
    }
    facts->new_names[facts->new_count++] =
        (struct notes_new_name){.path = path, .rank = rank, .next = (size_t)names->number};
    names->number = facts->new_count;
    return NG_OK;
}

struct naming {
    struct notes_facts *facts;
    struct ng_str path;
};

static int take_name(void *user, struct ng_str key, const char *kind)
{
    const struct naming *naming = user;
    bool wiki = strcmp(kind, "path") != 0;
    int rank = wiki && strcmp(kind, "wikipath") != 0;
    if (key.data == NULL) {
        return notes_fail_memory(naming->facts->call);
    }
    return add_new_name(naming->facts, key, wiki, naming->path, rank);
}

int notes_facts_add(struct notes_facts *facts, int64_t id, struct ng_str from, struct ng_str to)
{
    struct naming naming = {facts, to};
    if (from.data == NULL || to.data == NULL ||
        !notes_grow(facts->arena, (void **)&facts->moved, facts->moved_count,
                    &facts->moved_room, sizeof(*facts->moved))) {
        return notes_fail_memory(facts->call);
    }
    facts->moved[facts->moved_count++] = (struct notes_moved){id, from, to};
    return facts->removes ? NG_OK : notes_link_names(facts->arena, to, take_name, &naming);
}

int notes_facts_name(struct notes_facts *facts, struct ng_str path, struct ng_str name,
                     int rank)
{
    struct ng_str key = notes_fold(facts->arena, notes_link_note(notes_trim(name)));
    return add_new_name(facts, key, true, path, rank);
}

static int find_notes(struct notes_facts *facts)
{
    sqlite3_stmt *rows = notes_notebook_prepare(facts->notebook, facts->call, in_folder_sql);
    int step = SQLITE_ERROR;
    int rc = NG_OK;
    if (rows == NULL) {
        return NG_EINTERNAL;
    }
    (void)notes_bind_text(rows, 1, facts->move.from);
    while (rc == NG_OK && (step = sqlite3_step(rows)) == SQLITE_ROW) {
        struct ng_str from = arena_copy(facts->arena, notes_column_text(rows, 1));
        rc = notes_facts_add(facts, sqlite3_column_int64(rows, 0), from,
                             notes_move_path(facts->arena, &facts->move, from));
    }
    if (rc == NG_OK && step != SQLITE_DONE) {
        rc = notes_notebook_fail(facts->notebook, facts->call);
    }
    (void)sqlite3_finalize(rows);
    return rc;
}

int notes_facts_begin(struct notes_facts *facts, const struct notes_notebook *notebook,
                      struct ng_call *call, struct arena *arena)
{
    facts->notebook = notebook;
    facts->call = call;
    facts->arena = arena;
    facts->move.leads = leads;
    facts->move.shortest = shortest;
    facts->move.exists = exists;
    facts->move.user = facts;
    buf_init(&facts->question, QUESTION_MAX);
    facts->find = notes_notebook_prepare(notebook, call, find_sql);
    if (facts->find == NULL) {
        return NG_EINTERNAL;
    }
    return find_notes(facts);
}

bool notes_facts_differ(struct notes_facts *facts, bool wiki, struct ng_str key)
{
    struct ng_str before = leads(facts, NOTES_BEFORE, wiki, key);
    if (before.data == NULL) {
        return false;
    }
    struct ng_str wanted = notes_move_path(facts->arena, &facts->move, before);
    if (str_equal(leads(facts, NOTES_AFTER, wiki, key), wanted)) {
        return false;
    }
    if (wiki && !facts->removes) {
        (void)shortest(facts, wanted, false);
        (void)shortest(facts, wanted, true);
    }
    return true;
}

/* ---- */

int notes_facts_keep(struct notes_facts *facts)
{
    struct hash_table *table = &facts->answers.table;
    size_t count = 0;
    for (struct hash_link *link = hash_table_first(table); link != NULL;
         link = hash_table_next(table, link)) {
        count++;
    }
    facts->kept = ng_alloc(facts->call, (count + 1) * sizeof(*facts->kept));
    if (facts->kept == NULL) {
        return notes_fail_memory(facts->call);
    }
    for (struct hash_link *link = hash_table_first(table); link != NULL;
         link = hash_table_next(table, link)) {
        const struct notes_key *key = HASH_ITEM(link, struct notes_key, link);
        if (key->value.data == NULL) {
            continue;
        }
        struct notes_fact *fact = &facts->kept[facts->kept_count++];
        fact->question = notes_call_copy(facts->call, key->text);
        fact->answer = notes_call_copy(facts->call, key->value);
        if (fact->question.data == NULL || fact->answer.data == NULL) {
            return notes_fail_memory(facts->call);
        }
    }
    if (facts->kept_count > 0) {
        qsort(facts->kept, facts->kept_count, sizeof(*facts->kept), compare_facts);
    }
    notes_facts_done(facts);
    return NG_OK;
}

void notes_facts_done(struct notes_facts *facts)
{
    (void)sqlite3_finalize(facts->find);
    facts->find = NULL;
    notes_keys_done(&facts->names);
    notes_keys_done(&facts->answers);
    facts->names = facts->answers = (struct notes_keys){.table = {.size = 0}};
    buf_done(&facts->question);
}
