/* SPDX-License-Identifier: MIT */
/* names.c - names of documents and versions on the server. */
#include "document.h"

#include <stdio.h>

/* The collections whose documents have the form that agents see. */
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

/* Writes controls, '%' and the caller's separator as %XX, so that names are printable and
 * unique. */
static void add_escaped(struct bytes *ret, struct ng_str text, char mark)
{
    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.data[i];
        char code[4];
        if (c >= 0x20 && c != 0x7F && c != '%' && (mark == '\0' || c != (unsigned char)mark)) {
            (void)bytes_add(ret, text.data + i, 1);
        } else {
            (void)snprintf(code, sizeof(code), "%%%02X", c);
            (void)bytes_add_c(ret, code);
        }
    }
}

int name_document(const struct db_collection *collection, struct ng_str space, struct ng_str id,
                  struct bytes *ret)
{
    (void)bytes_set(ret, ng_str_of(""));
    if (!utf8_valid(space) || !utf8_valid(id)) {
        return NG_EINVAL;
    }
    bool plain = collection->is_entry && str_equal(space, ng_str_of(ENTRY_SPACE)) &&
                 (id.len == 0 || memchr(id.data, '/', id.len) == NULL);
    if (!plain) {
        add_escaped(ret, space, '/');
        (void)bytes_add_c(ret, "/");
    }
    add_escaped(ret, id, '\0');
    return ret->rc;
}

/* With the space, so that a sharded collection asks one shard. */
bson_t *name_filter(const bson_t *doc, bool with_revision)
{
    bson_t *filter =
        bson_of("_id:s, space:s", member_str(doc, "_id"), member_str(doc, "space"));
    if (with_revision) {
        bson_add(filter, "notegate.revision:u", member_u64(doc, "notegate.revision"));
    }
    return filter;
}

int name_tombstone(const char *collection, struct ng_str document, struct bytes *ret)
{
    (void)bytes_set(ret, ng_str_of(collection));
    (void)bytes_add_c(ret, "/");
    return bytes_add(ret, document.data, document.len);
}

int name_version(const char *collection, struct ng_str document, uint64_t revision,
                 struct bytes *ret)
{
    char digits[24];
    (void)snprintf(digits, sizeof(digits), "#%020llu", (unsigned long long)revision);
    (void)name_tombstone(collection, document, ret);
    return bytes_add_c(ret, digits);
}

bson_t *version_range(const char *collection, struct ng_str document, uint64_t from,
                      uint64_t to)
{
    struct bytes low = {0};
    struct bytes high = {0};
    bson_t *filter = NULL;
    if (name_version(collection, document, from, &low) == NG_OK &&
        name_version(collection, document, to, &high) == NG_OK) {
        /* Names of other documents may begin like a version of this one. */
        filter = bson_of("_id:{$gte:s, $lte:s}, document:s", bytes_str(&low), bytes_str(&high),
                         document);
    }
    bytes_done(&low);
    bytes_done(&high);
    return filter;
}
