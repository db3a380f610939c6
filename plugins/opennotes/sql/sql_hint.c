/* SPDX-License-Identifier: MIT */
/* sql_hint.c - hints for statements written for DuckDB. */
#include <string.h>
#include <strings.h>

#include "sql_parts.h"

struct spelling {
    const char *word; /* of the statement; with '(' at its end: a function */
    const char *hint;
};

static const struct spelling spellings[] = {
    {"ILIKE", "SQLite has no ILIKE; its LIKE ignores case already: content LIKE '%word%'"},
    {"SIMILAR", "SQLite has no SIMILAR TO; use LIKE or GLOB"},
    {"REGEXP", "There is no REGEXP here; use LIKE, GLOB or instr()"},
    {"regexp_matches(", "There are no regular expressions here; use LIKE, GLOB or instr()"},
    {"regexp_full_match(", "There are no regular expressions here; use LIKE or GLOB"},
    {"regexp_extract(", "There are no regular expressions here; use substr() and instr()"},
    {"regexp_replace(", "There are no regular expressions here; use replace()"},
    {"QUALIFY", "SQLite has no QUALIFY; put the window function into a subquery and use WHERE"},
    {"INTERVAL", "SQLite adds to dates with modifiers: date('now', '-7 days')"},
    {"EXCLUDE", "SQLite has no SELECT * EXCLUDE; name the columns"},
    {"PIVOT", "SQLite has no PIVOT; use sum(CASE WHEN ... END) per column"},
    {"UNPIVOT", "SQLite has no UNPIVOT; use UNION ALL"},
    {"STRUCT", "SQLite has no structs; use json_object() and json_extract()"},
    {"TRY_CAST", "SQLite's CAST never fails: CAST(x AS INTEGER)"},
    {"unnest(", "SQLite reads lists as tables: FROM read_markdown('**/*.md') n, "
                "json_each(n.tags) t, with t.value"},
    {"list_contains(", "A list is JSON here: EXISTS (SELECT 1 FROM json_each(tags) WHERE value "
                       "= 'x')"},
    {"array_contains(",
     "A list is JSON here: EXISTS (SELECT 1 FROM json_each(tags) WHERE value "
     "= 'x')"},
    {"list_has(", "A list is JSON here: EXISTS (SELECT 1 FROM json_each(tags) WHERE value = "
                  "'x')"},
    {"list(", "Use json_group_array(x)"},
    {"array_agg(", "Use json_group_array(x)"},
    {"list_aggregate(", "A list is JSON here: (SELECT max(value) FROM json_each(x))"},
    {"list_sort(", "A list is JSON here: (SELECT json_group_array(value) FROM (SELECT value "
                   "FROM json_each(x) ORDER BY value))"},
    {"array_length(", "Use json_array_length(x)"},
    {"list_value(", "Use json_array(...)"},
    {"len(", "Use length(x), or json_array_length(x) for lists"},
    {"string_agg(", "Use group_concat(x, ', ')"},
    {"listagg(", "Use group_concat(x, ', ')"},
    {"string_split(",
     "SQLite has no string_split(); use json_each() on a JSON list, or instr() "
     "and substr()"},
    {"str_split(", "SQLite has no str_split(); use instr() and substr()"},
    {"split_part(", "SQLite has no split_part(); use instr() and substr()"},
    {"contains(", "Use instr(x, 'word') > 0, or x LIKE '%word%'"},
    {"starts_with(", "Use x LIKE 'start%'"},
    {"ends_with(", "Use x LIKE '%end'"},
    {"concat(", "Use x || y"},
    {"concat_ws(", "Use x || ', ' || y"},
    {"strlen(", "Use length(CAST(x AS BLOB))"},
    {"now(", "Use datetime('now')"},
    {"today(", "Use date('now', 'localtime')"},
    {"date_trunc(", "Use date(x, 'start of month') or strftime('%Y-%m', x)"},
    {"date_diff(", "Use julianday(a) - julianday(b)"},
    {"datediff(", "Use julianday(a) - julianday(b)"},
    {"date_part(", "Use strftime('%Y', x)"},
    {"extract(", "Use strftime('%Y', x)"},
    {"year(", "Use strftime('%Y', x)"},
    {"month(", "Use strftime('%m', x)"},
    {"strptime(", "Dates are ISO 8601 text here: date(x)"},
    {"epoch(", "Use unixepoch(x)"},
    {"to_json(", "Use json_object() or json_array()"},
    {"json_keys(", "Use (SELECT json_group_array(key) FROM json_each(x))"},
    {"map_keys(", "metadata is JSON here: (SELECT json_group_array(key) FROM "
                  "json_each(metadata))"},
    {"map_values(", "metadata is JSON here: (SELECT json_group_array(value) FROM "
                    "json_each(metadata))"},
    {"element_at(", "metadata is JSON here: metadata ->> 'key'"},
    {"map_extract(", "metadata is JSON here: metadata ->> 'key'"},
    {"greatest(", "Use max(a, b)"},
    {"least(", "Use min(a, b)"},
    {"median(", "SQLite has no median(); order the values and take the one in the middle"},
    {"bool_and(", "Use min(x)"},
    {"bool_or(", "Use max(x)"},
    {"range(", "Use WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < "
               "10)"},
    {"generate_series(", "Use WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n "
                         "WHERE i < 10)"},
    {"md_extract_links(", "Use the table md_links(content): FROM read_markdown('**/*.md') n, "
                          "md_links(n.content) l"},
    {"md_extract_headings(", "Use the table md_headings(content)"},
    {"md_extract_sections(", "Use the table md_headings(content), and opennotes_get with "
                             "`section` for the text"},
    {"read_markdown_sections(", "Use read_markdown(glob) with the table md_headings(content)"},
    {"read_markdown_blocks(", "Use read_markdown(glob) with md_headings(), md_links() or "
                              "md_tasks()"},
    {"read_text(", "Only notes can be read: FROM read_markdown('**/*.md')"},
    {"read_csv(", "Only notes can be read: FROM read_markdown('**/*.md')"},
    {"read_json(", "Only notes can be read: FROM read_markdown('**/*.md')"},
    {"read_blob(", "Only notes can be read: FROM read_markdown('**/*.md')"},
};

static bool begins_bracket_of_key(struct ng_str bracket)
{
    size_t at = 1;
    while (at < bracket.len && bracket.data[at] == ' ') {
        at++;
    }
    return at < bracket.len && (strchr("'\"", bracket.data[at]) != NULL ||
                                (bracket.data[at] >= '0' && bracket.data[at] <= '9'));
}

/* `metadata['key']`: SQLite would read the bracket as a column alias. */
static bool is_bracket_of_key(struct ng_call *call, const struct notes_token *before,
                              const struct notes_token *token, struct ng_str *ret_message,
                              struct ng_str *ret_hint)
{
    if (token->kind != NOTES_TOKEN_BRACKET || !begins_bracket_of_key(token->text)) {
        return false;
    }
    struct ng_str key = notes_trim(str_make(token->text.data + 1, token->text.len - 2));
    bool quoted = key.len >= 2 && strchr("'\"", key.data[0]) != NULL;
    if (quoted) {
        key = str_make(key.data + 1, key.len - 2);
    }
    key = utf8_cut(key, 100);
    struct ng_str of = before->kind == NOTES_TOKEN_WORD || before->kind == NOTES_TOKEN_QUOTED
                           ? utf8_cut(before->text, 100)
                           : ng_str_of("metadata");
    *ret_message = call->host->format(
        call, "Invalid SQL query: %.*s%.*s is not SQLite: there, [...] is a name", (int)of.len,
        of.data, (int)utf8_cut(token->text, 100).len, token->text.data);
    if (quoted) {
        *ret_hint = call->host->format(call, "Write %.*s ->> '%.*s'", (int)of.len, of.data,
                                       (int)key.len, key.data);
    } else {
        *ret_hint =
            call->host->format(call, "Write %.*s ->> N, counted from 0", (int)of.len, of.data);
    }
    return true;
}

/* `->> 'ms.topic'`: some versions of SQLite read a key, others a path. */
static bool is_dotted_key(struct ng_call *call, const struct notes_token *token,
                          struct ng_str *ret_message, struct ng_str *ret_hint)
{
    if (token->kind != NOTES_TOKEN_STRING || token->text.len < 3) {
        return false;
    }
    struct ng_str key = str_make(token->text.data + 1, token->text.len - 2);
    if (key.data[0] == '$' || key.data[0] == '[' || memchr(key.data, '.', key.len) == NULL) {
        return false;
    }
    key = utf8_cut(key, 100);
    *ret_message = call->host->format(
        call, "Invalid SQL query: ->> '%.*s' may mean a key with a dot or a path", (int)key.len,
        key.data);
    *ret_hint = call->host->format(
        call, "Write ->> '$.\"%.*s\"' for the key, ->> '$.%.*s' for what is nested",
        (int)key.len, key.data, (int)key.len, key.data);
    return true;
}

bool notes_sql_is_foreign(struct ng_call *call, struct ng_str sql, struct ng_str *ret_message,
                          struct ng_str *ret_hint)
{
    struct notes_token before = {NOTES_TOKEN_END, {NULL, 0}};
    unsigned arrow = 0; /* 1 behind '-', 2 behind "->" and "->>" */
    for (size_t at = 0;;) {
        struct notes_token token = notes_token_next(sql, &at);
        if (token.kind == NOTES_TOKEN_END) {
            return false;
        }
        if (is_bracket_of_key(call, &before, &token, ret_message, ret_hint) ||
            (arrow == 2 && is_dotted_key(call, &token, ret_message, ret_hint))) {
            return true;
        }
        bool goes_on = arrow > 0 && notes_token_is(&token, ">");
        if (goes_on) {
            arrow = 2;
        } else if (notes_token_is(&token, "-")) {
            arrow = 1;
        } else {
            arrow = 0;
        }
        before = token;
    }
}

static bool is_spelling(const struct spelling *spelling, const struct notes_token *token,
                        struct ng_str sql, size_t behind)
{
    size_t len = strlen(spelling->word);
    bool call = spelling->word[len - 1] == '(';
    len -= call;
    if (token->kind != NOTES_TOKEN_WORD || token->text.len != len ||
        strncasecmp(token->text.data, spelling->word, len) != 0) {
        return false;
    }
    struct notes_token next = notes_token_next(sql, &behind);
    return !call || notes_token_is(&next, "(");
}

/* The place where SQLite stopped: in its message as "near \"X\"" or "no such function: X". */
static bool is_named(struct ng_str word, const char *message)
{
    struct ng_str text = ng_str_of(message);
    return word.len > 0 && str_find(text, word, 0) != SIZE_MAX;
}

static struct ng_str table_hint(const char *message)
{
    if (strncmp(message, "no such table", 13) == 0 ||
        strncmp(message, "There is no table", 17) == 0) {
        return ng_str_of("Notes are read with FROM read_markdown('**/*.md'); also there: "
                         "md_tasks(content) (" NOTES_SQL_TASK_COLUMNS
                         "), md_links(content) (" NOTES_SQL_LINK_COLUMNS
                         "), md_headings(content) (" NOTES_SQL_HEADING_COLUMNS
                         "), json_each(x), json_tree(x)");
    }
    if (strncmp(message, "no such column", 14) == 0) {
        return ng_str_of(
            "read_markdown() has file_path, title, content, metadata (JSON), tags "
            "(JSON), created, modified, size, word_count; md_tasks() " NOTES_SQL_TASK_COLUMNS
            "; md_links() " NOTES_SQL_LINK_COLUMNS "; md_headings() " NOTES_SQL_HEADING_COLUMNS
            "; front matter: metadata ->> 'key'; texts are in single quotes");
    }
    return str_make(NULL, 0);
}

struct ng_str notes_sql_hint(struct ng_call *call, struct ng_str sql, const char *message)
{
    const char *other = NULL;
    (void)call;
    for (size_t at = 0;;) {
        struct notes_token token = notes_token_next(sql, &at);
        if (token.kind == NOTES_TOKEN_END) {
            break;
        }
        if (notes_token_is(&token, "::")) {
            return ng_str_of("SQLite casts with CAST(x AS TEXT), INTEGER, REAL or BLOB");
        }
        for (size_t i = 0; i < NG_COUNT(spellings); i++) {
            if (!is_spelling(&spellings[i], &token, sql, at)) {
                continue;
            }
            if (is_named(token.text, message)) {
                return ng_str_of(spellings[i].hint);
            }
            if (other == NULL) {
                other = spellings[i].hint;
            }
        }
    }
    struct ng_str hint = table_hint(message);
    if (hint.data != NULL || other == NULL) {
        return hint;
    }
    return ng_str_of(other);
}
