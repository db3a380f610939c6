/* SPDX-License-Identifier: MIT */
/* names.c - what names a document and a version on the server. */
#include "db.h"

#include <stdio.h>

/* The collections whose documents have the shape in which agents see them. */
static const struct {
    const char *name;
    const char *text_member;
} entry_shapes[] = {
    {"pages", "content"},
    {"code_snippets", "code"},
    {"research_notes", "content"},
};

bool is_entry_collection(const char *name, const char **ret_text_member)
{
    for (size_t i = 0; i < NG_COUNT(entry_shapes); i++) {
        if (strcmp(entry_shapes[i].name, name) == 0) {
            *ret_text_member = entry_shapes[i].text_member;
            return true;
        }
    }
    *ret_text_member = "text";
    return false;
}

/* Controls, '%' and what the caller needs as a mark are written as %XX: names are printable and
 * no two documents have one. */
static int add_escaped(struct bytes *ret, struct ng_str text, char mark)
{
    int rc = NG_OK;
    size_t from = 0;
    for (size_t i = 0; i < text.len && rc == NG_OK; i++) {
        unsigned char c = (unsigned char)text.data[i];
        if (c >= 0x20 && c != 0x7F && c != '%' && (mark == '\0' || c != (unsigned char)mark)) {
            continue;
        }
        char code[4];
        (void)snprintf(code, sizeof(code), "%%%02X", c);
        rc = bytes_add(ret, text.data + from, i - from);
        rc = rc == NG_OK ? bytes_add(ret, code, 3) : rc;
        from = i + 1;
    }
    return rc == NG_OK
               ? bytes_add(ret, text.data != NULL ? text.data + from : "", text.len - from)
               : rc;
}

int name_document(const struct db_collection *collection, struct ng_str space, struct ng_str id,
                  struct bytes *ret)
{
    ret->len = 0;
    if (!utf8_valid(space) || !utf8_valid(id)) {
        return NG_EINVAL;
    }
    bool plain = collection->is_entry && str_same(space, ng_str_of(ENTRY_SPACE)) &&
                 (id.len == 0 || memchr(id.data, '/', id.len) == NULL);
    int rc = plain ? NG_OK : add_escaped(ret, space, '/');
    rc = rc == NG_OK && !plain ? bytes_add(ret, "/", 1) : rc;
    return rc == NG_OK ? add_escaped(ret, id, '\0') : rc;
}

int name_version(const char *collection, struct ng_str document, uint64_t revision,
                 struct bytes *ret)
{
    char digits[24];
    (void)snprintf(digits, sizeof(digits), "#%020llu", (unsigned long long)revision);
    ret->len = 0;
    int rc = bytes_add_c(ret, collection);
    rc = rc == NG_OK ? bytes_add(ret, "/", 1) : rc;
    rc = rc == NG_OK ? bytes_add(ret, document.data, document.len) : rc;
    return rc == NG_OK ? bytes_add_c(ret, digits) : rc;
}
