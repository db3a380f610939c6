/* SPDX-License-Identifier: MIT */
/* terms.c - conditions of a query as SQL, over the row of a document or over the index of
 * values. */
#include "db.h"

#include <inttypes.h>
#include <stdio.h>

bool term_subject(const void *of, struct ng_str name, bool ordered, struct subject *ret)
{
    static const char *const columns[] = {"d.id",         "d.author",      "d.created_ms",
                                          "d.updated_ms", "d.created_seq", "d.seq",
                                          "d.revision"};
    const struct db_field *field = collection_field(of, name, ordered);
    if (field != NULL) {
        *ret = (struct subject){.field = field, .number = field->use == NG_FIELD_NUMBER};
        return true;
    }
    return subject_built_in(name, columns, ret);
}

int terms_check(struct ng_call *call, const struct db_collection *collection,
                const struct ng_query *query)
{
    return query_check(call, query, collection->name, term_subject, collection);
}

static struct bound bound_of(const struct subject *subject, struct ng_str text, double number)
{
    struct bound bound = {.kind = BOUND_BLOB, .bytes = text, .number = number + 0.0};
    if (subject->number) {
        bound.kind = BOUND_NUMBER;
    } else if (subject->column != NULL && strcmp(subject->column, "d.author") == 0) {
        bound.kind = BOUND_TEXT;
    }
    return bound;
}

static void bind_value(struct sql *sql, const struct subject *subject, struct ng_str text,
                       double number)
{
    struct bound bound = bound_of(subject, text, number);
    sql_bind(sql, &bound);
}

static const char *sign_of(enum ng_op op)
{
    switch (op) {
    case NG_TERM_LT:
        return "<";
    case NG_TERM_LE:
        return "<=";
    case NG_TERM_GT:
        return ">";
    case NG_TERM_GE:
        return ">=";
    case NG_TERM_NE:
        return "<>";
    default:
        return "=";
    }
}

/* A prefix is a range of bytes: from the prefix up to, but excluding, the next text of its
 * length. */
static void add_prefix(struct sql *sql, const char *left, const struct subject *subject,
                       struct ng_str prefix)
{
    sql_add(sql, left);
    sql_add(sql, ">=");
    bind_value(sql, subject, prefix, 0);
    size_t len = prefix.len;
    while (len > 0 && (unsigned char)prefix.data[len - 1] == 0xFF) {
        len--;
    }
    if (len == 0) {
        return; /* no text sorts behind these */
    }
    char *end = malloc(len);
    if (end == NULL) {
        sql->rc = NG_EINTERNAL;
        return;
    }
    memcpy(end, prefix.data, len);
    end[len - 1] = (char)((unsigned char)end[len - 1] + 1);
    struct bound bound = bound_of(subject, str_of(end, len), 0);
    bound.owned = end;
    sql_add(sql, " AND ");
    sql_add(sql, left);
    sql_add(sql, "<");
    sql_bind(sql, &bound);
}

/* Adds `column` OP value(s), for a plain column. */
static void add_column(struct sql *sql, const char *column, const struct subject *subject,
                       const struct ng_term *term)
{
    if (term->op == NG_TERM_PREFIX) {
        add_prefix(sql, column, subject, term->value);
    } else if (term->op == NG_TERM_IN) {
        sql_add(sql, column);
        sql_add(sql, " IN (");
        for (size_t i = 0; i < term->value_count; i++) {
            sql_add(sql, i > 0 ? "," : "");
            bind_value(sql, subject, term->values[i], 0);
        }
        sql_add(sql, ")");
    } else {
        sql_add(sql, column);
        sql_add(sql, sign_of(term->op));
        bind_value(sql, subject, term->value, term->number);
    }
}

static void add_has(struct sql *sql, const struct subject *subject, struct ng_str text,
                    double number)
{
    sql_printf(sql, "ng_has(d.fields,%" PRId64 ",", subject->field->id);
    bind_value(sql, subject, text, number);
    sql_add(sql, ")");
}

/* Adds a condition on a declared field, looked up in the blob of the document. */
static void add_field(struct sql *sql, const struct subject *subject,
                      const struct ng_term *term)
{
    char left[64];
    switch (term->op) {
    case NG_TERM_EQ:
        add_has(sql, subject, term->value, term->number);
        break;
    case NG_TERM_NE:
        sql_add(sql, "NOT ");
        add_has(sql, subject, term->value, term->number);
        break;
    case NG_TERM_IN:
        sql_add(sql, "(0");
        for (size_t i = 0; i < term->value_count; i++) {
            sql_add(sql, " OR ");
            add_has(sql, subject, term->values[i], 0);
        }
        sql_add(sql, ")");
        break;
    default:
        (void)snprintf(left, sizeof(left), "ng_field(d.fields,%lld)",
                       (long long)subject->field->id);
        add_column(sql, left, subject, term);
    }
}

void terms_add(struct sql *sql, const struct db_collection *collection,
               const struct ng_query *query, size_t skip)
{
    for (size_t i = 0; i < query->term_count; i++) {
        const struct ng_term *term = &query->terms[i];
        struct subject subject;
        if (i == skip ||
            !term_subject(collection, term->field, query_is_ordered(term->op), &subject)) {
            continue;
        }
        sql_add(sql, " AND ");
        if (subject.field != NULL) {
            add_field(sql, &subject, term);
        } else {
            add_column(sql, subject.column, &subject, term);
        }
    }
}

void term_add_column(struct sql *sql, const struct subject *subject, const struct ng_term *term)
{
    add_column(sql, subject->column, subject, term);
}

void term_add_range(struct sql *sql, const struct subject *subject, const struct ng_term *term)
{
    sql_add(sql, " AND ");
    add_column(sql, "v.value", subject, term);
    if (subject->number && (term->op == NG_TERM_LT || term->op == NG_TERM_LE)) {
        sql_add(sql, " AND v.value>-1e999"); /* exclude documents without the field */
    } else if (!subject->number && (term->op == NG_TERM_LT || term->op == NG_TERM_LE)) {
        sql_add(sql, " AND v.value>=x''");
    }
}
