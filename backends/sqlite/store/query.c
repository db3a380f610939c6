/* SPDX-License-Identifier: MIT */
/* query.c - lists of documents: picks the index that leads, so that the cost of a page depends
 * on its rows and not on the size of the store. */
#include <inttypes.h>

#include "core/base/minmax.h"
#include "db.h"

/* A condition with fewer matches than this leads, whatever the order of the list. */
#define LEAD_MAX 2000
/* Up to this many (space, deleted) pairs are merged in index order; more are sorted. */
#define BRANCHES_MAX 16

#define NO_TERM SIZE_MAX

/* Which documents a query is about, see add_deleted(). */
static int query_deleted(const struct ng_query *query)
{
    if (NG_HAS(query, only_deleted) && query->only_deleted) {
        return 1;
    }
    return query->with_deleted ? -1 : 0;
}

struct plan {
    const struct db_collection *collection;
    const struct ng_query *query;
    struct shelves shelves;
    struct subject sort;
    bool by_created; /* the order is the order of creation */
    size_t lead;     /* the term that leads by the index of values, or NO_TERM */
    int64_t lead_count;
    const char *docs_index; /* index of docs, if a built-in field leads; or NULL */
    bool by_value;          /* the index of the sort field leads */
};

/* A space that is named twice counts once. */
static int add_shelf(struct conn *conn, struct ng_str collection, struct ng_str space,
                     struct shelves *shelves)
{
    sqlite3_stmt *stmt = conn_stmt(conn, STMT_SHELF);
    if (stmt == NULL) {
        return NG_EINTERNAL;
    }
    (void)bind_text(stmt, 1, collection);
    (void)bind_text(stmt, 2, space);
    int rc = sqlite3_step(stmt);
    bool known = rc != SQLITE_ROW;
    int64_t shelf = sqlite3_column_int64(stmt, 0); /* 0 without a row */
    for (size_t i = 0; i < shelves->count && !known; i++) {
        known = shelves->ids[i] == shelf;
    }
    if (!known) {
        shelves->ids[shelves->count++] = shelf;
        shelves->live += sqlite3_column_int64(stmt, 1);
        shelves->dead += sqlite3_column_int64(stmt, 2);
    }
    (void)sqlite3_reset(stmt);
    if (rc == SQLITE_ROW || rc == SQLITE_DONE) {
        return NG_OK;
    }
    return NG_EINTERNAL;
}

int query_shelves(struct conn *conn, const struct ng_query *query, struct shelves *ret)
{
    bool one = query->space.data != NULL;
    size_t count = 1;
    if (!one) {
        count = query->space_count;
    }
    *ret = (struct shelves){.ids = calloc(count + 1, sizeof(*ret->ids))};
    if (ret->ids == NULL) {
        return NG_EINTERNAL;
    }
    for (size_t i = 0; i < count; i++) {
        if (add_shelf(conn, query->collection, one ? query->space : query->spaces[i], ret) !=
            NG_OK) {
            return NG_EINTERNAL;
        }
    }
    return NG_OK;
}

void shelves_add(struct sql *sql, const struct shelves *shelves)
{
    sql_add(sql, shelves->count == 1 ? "=" : " IN (");
    for (size_t i = 0; i < shelves->count; i++) {
        sql_printf(sql, "%s%" PRId64, i > 0 ? "," : "", shelves->ids[i]);
    }
    sql_add(sql, shelves->count == 1 ? "" : ")");
}

/* The index of docs with this column behind shelf (and deleted). NULL: none. */
static const char *column_index(const char *column)
{
    static const struct {
        const char *column;
        const char *index;
    } indexes[] = {
        {"d.id", "docs_key"},
        {"d.created_ms", "docs_created_ms"},
        {"d.updated_ms", "docs_updated"},
        {"d.created_seq", "docs_created"},
        {"d.seq", "docs_seq"},
        {"d.author", "docs_author"},
    };
    for (size_t i = 0; i < NG_COUNT(indexes); i++) {
        if (column != NULL && strcmp(column, indexes[i].column) == 0) {
            return indexes[i].index;
        }
    }
    return NULL;
}

/* deleted: 1 only deleted documents, 0 only live ones, -1 both. */
static void add_deleted(struct sql *sql, int deleted)
{
    static const char *const conditions[] = {" AND d.deleted IN (0,1)", " AND d.deleted=0",
                                             " AND d.deleted=1"};
    sql_add(sql, conditions[deleted + 1]);
}

/* Counts the documents that match the term, by its index, up to LEAD_MAX. -1: failed. */
static int64_t count_term(struct conn *conn, const struct plan *plan,
                          const struct subject *subject, const struct ng_term *term)
{
    struct sql sql = {0};
    if (subject->field != NULL) {
        sql_printf(&sql,
                   "SELECT count(*) FROM (SELECT 1 FROM field_values v WHERE v.field=%" PRId64
                   " AND v.shelf",
                   subject->field->id);
        shelves_add(&sql, &plan->shelves);
        term_add_range(&sql, subject, term);
    } else {
        const char *index = column_index(subject->column);
        sql_printf(&sql,
                   "SELECT count(*) FROM (SELECT 1 FROM docs d INDEXED BY %s WHERE d.shelf",
                   index);
        shelves_add(&sql, &plan->shelves);
        if (strcmp(index, "docs_key") !=
            0) { /* the index of values has deleted documents, too */
            add_deleted(&sql, query_deleted(plan->query));
        }
        sql_add(&sql, " AND ");
        term_add_column(&sql, subject, term);
    }
    sql_printf(&sql, " LIMIT %d)", LEAD_MAX);
    return sql_number(conn, &sql);
}

/* Finds the most selective term with an index; counting stops at LEAD_MAX. */
static int find_lead(struct conn *conn, struct plan *plan)
{
    plan->lead = NO_TERM;
    plan->lead_count = LEAD_MAX + 1;
    for (size_t i = 0; i < plan->query->term_count; i++) {
        const struct ng_term *term = &plan->query->terms[i];
        struct subject subject;
        bool order = term->op != NG_TERM_EQ && term->op != NG_TERM_IN;
        /* Deleted documents have no values. */
        if (term->op == NG_TERM_NE ||
            !term_subject(plan->collection, term->field, order, &subject) ||
            (subject.field != NULL && query_deleted(plan->query) == 1) ||
            (subject.field == NULL && column_index(subject.column) == NULL)) {
            continue;
        }
        int64_t count = count_term(conn, plan, &subject, term);
        if (count < 0) {
            return NG_EINTERNAL;
        }
        /* Of equal terms prefer one of values: its index may have the order of creation. */
        if (count < plan->lead_count ||
            (count == plan->lead_count && plan->lead == NO_TERM && subject.field != NULL)) {
            plan->lead = NO_TERM;
            plan->docs_index = column_index(subject.column);
            if (subject.field != NULL) {
                plan->lead = i;
            }
            plan->lead_count = count;
        }
    }
    return NG_OK;
}

/* Picks what leads: a selective term, else the index of the order. */
static void choose(struct plan *plan)
{
    bool selective = plan->lead_count < LEAD_MAX;
    bool in_order = plan->lead != NO_TERM && plan->by_created &&
                    plan->query->terms[plan->lead].op == NG_TERM_EQ;
    if (selective || in_order) {
        return;
    }
    plan->lead = NO_TERM;
    plan->docs_index = NULL;
    plan->by_value = plan->sort.field != NULL && query_deleted(plan->query) == 0;
}

/* The index of docs that leads if none of values does. NULL: sqlite decides. */
static const char *index_of(const struct plan *plan)
{
    if (plan->docs_index != NULL) {
        return plan->docs_index;
    }
    for (size_t i = 0; i < plan->query->term_count && plan->by_created; i++) {
        const struct ng_term *term = &plan->query->terms[i];
        struct subject subject;
        if (term->op == NG_TERM_EQ &&
            term_subject(plan->collection, term->field, false, &subject) &&
            subject.column != NULL && strcmp(subject.column, "d.author") == 0) {
            return "docs_author"; /* of one author, in the order of creation */
        }
    }
    return column_index(plan->sort.column);
}

void subject_add(struct sql *sql, const struct subject *subject)
{
    if (subject->field != NULL) {
        sql_printf(sql, "ng_field(d.fields,%" PRId64 ")", subject->field->id);
    } else {
        sql_add(sql, subject->column);
    }
}

/* Adds one SELECT over these shelves; `deleted` as in add_deleted(). */
static void add_branch(struct sql *sql, const struct plan *plan, const struct shelves *shelves,
                       int deleted, bool with_order)
{
    const struct ng_query *query = plan->query;
    bool values = plan->lead != NO_TERM || plan->by_value;
    size_t rest = query->term_count - (plan->lead != NO_TERM);
    bool needs_row =
        !values || rest > 0 || (with_order && !plan->by_created && !plan->by_value);
    const struct ng_term *lead = NULL;
    if (plan->lead != NO_TERM) {
        lead = &query->terms[plan->lead];
    }
    /* A document may have several of the tags. */
    sql_add(sql, lead != NULL && lead->op == NG_TERM_IN ? "SELECT DISTINCT " : "SELECT ");
    sql_add(sql, values ? "v.doc,v.created_seq AS c" : "d.doc,d.created_seq AS c");
    if (with_order && plan->by_value) {
        sql_add(sql, ",v.value AS k");
    } else if (with_order && !plan->by_created) {
        sql_add(sql, ",");
        subject_add(sql, &plan->sort);
        sql_add(sql, " AS k");
    }
    if (values) {
        struct subject subject = plan->sort;
        if (lead != NULL) {
            bool order = lead->op != NG_TERM_EQ && lead->op != NG_TERM_IN;
            (void)term_subject(plan->collection, lead->field, order, &subject);
        }
        sql_printf(sql, " FROM field_values v%s WHERE v.field=%" PRId64 " AND v.shelf",
                   needs_row ? " CROSS JOIN docs d ON d.doc=v.doc" : "", subject.field->id);
        shelves_add(sql, shelves);
        if (lead != NULL) {
            term_add_range(sql, &subject, lead);
        }
    } else {
        const char *index = index_of(plan);
        sql_add(sql, " FROM docs d");
        if (index != NULL) {
            sql_printf(sql, " INDEXED BY %s", index);
        }
        sql_add(sql, " WHERE d.shelf");
        shelves_add(sql, shelves);
        add_deleted(sql, deleted);
    }
    terms_add(sql, plan->collection, query, plan->lead);
}

static void add_branches(struct sql *sql, const struct plan *plan, bool with_order)
{
    int deleted = query_deleted(plan->query);
    bool both = deleted == -1 && plan->lead == NO_TERM;
    size_t branches = plan->shelves.count * (both ? 2 : 1);
    if (branches > BRANCHES_MAX || !with_order) {
        add_branch(sql, plan, &plan->shelves, deleted, with_order);
        return;
    }
    for (size_t i = 0; i < branches; i++) {
        struct shelves one = {.ids = &plan->shelves.ids[both ? i / 2 : i], .count = 1};
        sql_add(sql, i > 0 ? " UNION ALL " : "");
        add_branch(sql, plan, &one, both ? (int)(i % 2) : deleted, with_order);
    }
}

/* The number of documents that its conditions choose from. */
static int64_t plan_documents(const struct plan *plan)
{
    int deleted = query_deleted(plan->query);
    return (deleted != 1 ? plan->shelves.live : 0) + (deleted != 0 ? plan->shelves.dead : 0);
}

static int count_total(struct conn *conn, const struct plan *plan, uint64_t *ret)
{
    struct sql sql = {0};
    if (plan->query->term_count == 0) {
        *ret = (uint64_t)plan_documents(plan);
        return NG_OK;
    }
    sql_add(&sql, "SELECT count(*) FROM (");
    add_branches(&sql, plan, false);
    sql_add(&sql, ")");
    int64_t number = sql_number(conn, &sql);
    if (number < 0) {
        return NG_EINTERNAL;
    }
    *ret = (uint64_t)number;
    return NG_OK;
}

/* Reports the documents that the first column of the statement names, in its order. */
static int report_rows(struct conn *conn, struct ng_call *call, sqlite3_stmt *stmt,
                       const struct ng_query *query, ng_row_fn *row, void *user)
{
    int step;
    while ((step = sqlite3_step(stmt)) == SQLITE_ROW) {
        sqlite3_stmt *get = conn_stmt(conn, STMT_GET_DOC);
        if (get == NULL) {
            return conn_fail(conn, call, "the query");
        }
        (void)sqlite3_bind_int64(get, 1, sqlite3_column_int64(stmt, 0));
        (void)sqlite3_bind_int(get, 2, query->with_text);
        int got = sqlite3_step(get);
        if (got != SQLITE_ROW && got != SQLITE_DONE) {
            return conn_fail(conn, call, "the query");
        }
        if (got == SQLITE_DONE) {
            return ng_fail(call, NG_EUNAVAILABLE,
                           "an index of %s names a missing document: run `notegate verify` and "
                           "restore from a backup",
                           conn->db->path);
        }
        struct ng_doc doc;
        row_from_stmt(get, query->with_text, &doc);
        int stop = row(user, &doc);
        (void)sqlite3_reset(get);
        if (stop != 0) {
            return NG_OK;
        }
    }
    if (step == SQLITE_DONE) {
        return NG_OK;
    }
    return conn_fail(conn, call, "the query");
}

static void page_add(struct sql *sql, const struct ng_query *query)
{
    sql_add(sql, " LIMIT ");
    sql_bind_int(sql, query->limit);
    sql_add(sql, " OFFSET ");
    sql_bind_int(sql, (int64_t)u64_min(query->offset, INT64_MAX));
}

static int list(struct conn *conn, struct ng_call *call, const struct plan *plan,
                ng_row_fn *row, void *user)
{
    const struct ng_query *query = plan->query;
    struct sql sql = {0};
    sqlite3_stmt *stmt = NULL;
    const char *down = query->descending ? " DESC" : "";
    add_branches(&sql, plan, true);
    if (plan->by_created) {
        sql_printf(&sql, " ORDER BY c%s", down);
    } else {
        sql_printf(&sql, " ORDER BY k%s,c%s", down, down);
    }
    page_add(&sql, query);
    int rc = NG_OK;
    if (sql_prepare(conn, &sql, &stmt) != SQLITE_OK) {
        rc = conn_fail(conn, call, "the query");
    } else {
        rc = report_rows(conn, call, stmt, query, row, user);
    }
    (void)sql_release(conn, stmt);
    sql_done(&sql);
    return rc;
}

static int run(struct conn *conn, struct ng_call *call, struct plan *plan, ng_row_fn *row,
               void *user, uint64_t *ret_total)
{
    const struct ng_query *query = plan->query;
    uint64_t total = 0;
    if (query_shelves(conn, query, &plan->shelves) != NG_OK) {
        return conn_fail(conn, call, "the query");
    }
    if (plan_documents(plan) > 0) {
        if (find_lead(conn, plan) != NG_OK) {
            return conn_fail(conn, call, "the query");
        }
        if (query->want_total && count_total(conn, plan, &total) != NG_OK) {
            return conn_fail(conn, call, "counting");
        }
        choose(plan);
        int rc = NG_OK;
        if (query->limit > 0) {
            rc = list(conn, call, plan, row, user);
        }
        if (rc != NG_OK) {
            return rc;
        }
    }
    if (query->want_total && ret_total != NULL) {
        *ret_total = total;
    }
    return NG_OK;
}

int query_run(void *self, struct ng_call *call, const struct ng_query *query, ng_row_fn *row,
              void *user, uint64_t *ret_total)
{
    struct db *db = self;
    struct plan plan = {.query = query, .lead = NO_TERM};
    plan.collection = collection_find(db, query->collection);
    if (plan.collection == NULL) {
        return ng_fail(call, NG_EINVAL, "the collection of the query was not declared");
    }
    int rc = terms_check(call, plan.collection, query);
    if (rc != NG_OK) {
        return rc;
    }
    struct ng_str sort = str_or(query->sort, ng_str_of("created_seq"));
    (void)term_subject(plan.collection, sort, true, &plan.sort);
    plan.by_created =
        plan.sort.column != NULL && strcmp(plan.sort.column, "d.created_seq") == 0;
    struct conn *conn = NULL;
    rc = reader_begin(db, call, &conn);
    if (rc == NG_OK) {
        rc = run(conn, call, &plan, row, user, ret_total);
        reader_end(conn);
    }
    free(plan.shelves.ids);
    return rc;
}
