/* SPDX-License-Identifier: MIT */
/* print_keys.c - keys for a person at the command line: the table, and the rights of a new one.
 */
#include "print_keys.h"

#include <string.h>

#include "core/base/minmax.h"
#include "core/base/str.h"
#include "core/base/text_choice.h"

#define KEY_TEXT_BYTES ((size_t)1024 * 1024)
#define KEY_COLUMNS 16

static void key_join(const struct ng_value *array, const char *none, const char *between,
                     struct buf *out)
{
    if (array == NULL || array->count == 0) {
        (void)buf_add_c(out, none);
        return;
    }
    for (const struct ng_value *item = array->first; item != NULL; item = item->next) {
        (void)buf_add_str(out, item->text);
        (void)buf_add_c(out, item->next == NULL ? "" : between);
    }
}

/* Absent in the answer of an earlier gateway, where every key did. */
static bool key_runs(const struct ng_value *key)
{
    const struct ng_value *run = json_get(key, "run");
    return run == NULL || run->type == NG_TYPE_TRUE;
}

/* ", WHAT a, b", or nothing. */
static void add_excluded(const struct ng_value *key, struct buf *about)
{
    const struct ng_value *no_tools = json_get(key, "no_tools");
    if (no_tools != NULL) {
        (void)buf_add_c(about, " without ");
        key_join(no_tools, "", ", ", about);
    }
}

void print_new_key(const struct ng_value *key)
{
    struct buf about;
    struct ng_str id = json_get_text(key, "id");
    struct ng_str agent = json_get_text(key, "agent");
    struct ng_str role = json_get_text(key, "role");
    struct ng_str mode = json_get_text(key, "mode");
    struct ng_str expires = json_get_text(key, "expires");
    buf_init(&about, KEY_TEXT_BYTES);
    (void)buf_printf(&about, "Key %.*s for %.*s: role %.*s, mode %.*s, spaces ", (int)id.len,
                     id.data, (int)agent.len, agent.data, (int)role.len, role.data,
                     (int)mode.len, mode.data);
    key_join(json_get(key, "spaces"), "none", ", ", &about);
    (void)buf_add_c(&about, ", tools ");
    key_join(json_get(key, "tools"), "all", ", ", &about);
    add_excluded(key, &about);
    const struct ng_value *rate = json_get(key, "rate");
    if (rate != NULL) {
        (void)buf_printf(&about, ", rate %.*s/s", (int)rate->text.len, rate->text.data);
    }
    (void)buf_printf(
        &about,
        ", expires %.*s, %s run code%s.\nSend it as `Authorization: Bearer KEY`. It is shown "
        "only this once:\n",
        expires.len == 0 ? 5 : (int)expires.len, expires.len == 0 ? "never" : expires.data,
        key_runs(key) ? "may" : "may not",
        text_if(json_is(json_get(key, "restore"), NG_TYPE_TRUE), ", may restore checkpoints"));
    (void)command_put(stderr, buf_str(&about));
    (void)fflush(stderr);
    buf_done(&about);
}

/* ---- the table ---- */

static const struct {
    const char *title, *name, *absent;
} key_columns[KEY_COLUMNS] = {
    {"ID", "id", "-"},
    {"AGENT", "agent", "-"},
    {"ROLE", "role", "-"},
    {"MODE", "mode", "-"},
    {"RUN", "run", "-"},
    {"RESTORE", "restore", "-"},
    {"SPACES", "spaces", "-"},
    {"TOOLS", "tools", "all"},
    {"EXCEPT", "no_tools", "-"},
    {"RATE", "rate", "-"},
    {"EXPIRES", "expires", "never"},
    {"STATE", "state", "-"},
    {"CREATED", "created", "-"},
    {"LAST USED", "last_used", "never"},
    {"MADE BY", "made_by", "-"},
    {"NOTE", "note", "-"},
};

static void key_cell(const struct ng_value *key, size_t column, struct buf *out)
{
    const char *name = key_columns[column].name;
    const struct ng_value *value = json_get(key, name);
    buf_clear(out);
    if (json_is(value, NG_TYPE_ARRAY)) {
        key_join(value, "", ",", out);
    } else if (strcmp(name, "run") == 0) {
        (void)buf_add_c(out, key_runs(key) ? "yes" : "no");
    } else if (strcmp(name, "restore") == 0) {
        (void)buf_add_c(out, json_is(value, NG_TYPE_TRUE) ? "yes" : "no");
    } else if (value != NULL && strcmp(name, "rate") == 0) {
        double rate = json_double(value);
        (void)buf_printf(out, "%g/%s", rate < 1 ? rate * 60 : rate, rate < 1 ? "min" : "s");
    } else if (value != NULL) {
        (void)buf_add_str(out, value->text);
    } else {
        (void)buf_add_c(out, key_columns[column].absent);
    }
}

static void key_print_row(const struct ng_value *key, const size_t widths[KEY_COLUMNS],
                          struct buf *cell)
{
    for (size_t i = 0; i < KEY_COLUMNS; i++) {
        if (key == NULL) {
            buf_clear(cell);
            (void)buf_add_c(cell, key_columns[i].title);
        } else {
            key_cell(key, i, cell);
        }
        int pad = i + 1 < KEY_COLUMNS ? (int)(widths[i] - cell->len) + 2 : 0;
        printf("%s%*s", buf_cstr(cell), pad, "");
    }
    printf("\n");
}

void print_key_table(const struct ng_value *list)
{
    size_t widths[KEY_COLUMNS];
    struct buf cell;
    buf_init(&cell, KEY_TEXT_BYTES);
    for (size_t i = 0; i < KEY_COLUMNS; i++) {
        widths[i] = strlen(key_columns[i].title);
        for (const struct ng_value *key = list->first; key != NULL; key = key->next) {
            key_cell(key, i, &cell);
            widths[i] = size_max(cell.len, widths[i]);
        }
    }
    key_print_row(NULL, widths, &cell);
    for (const struct ng_value *key = list->first; key != NULL; key = key->next) {
        key_print_row(key, widths, &cell);
    }
    buf_done(&cell);
}
