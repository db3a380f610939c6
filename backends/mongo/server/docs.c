/* SPDX-License-Identifier: MIT */
/* docs.c - documents found, kept until the client is released: callbacks may read again. */
#include "core/base/array.h"
#include "server.h"

int docs_add(struct docs *docs, bson_t *doc)
{
    docs->rc = array_reserve((void **)&docs->list, &docs->cap, docs->count + 1,
                             sizeof(*docs->list), UINT32_MAX);
    if (docs->rc != NG_OK) {
        bson_destroy(doc);
        return 1;
    }
    docs->list[docs->count++] = doc;
    docs->bytes += doc->len;
    docs->is_full =
        docs->count == docs->most || (docs->bytes_most > 0 && docs->bytes >= docs->bytes_most);
    return docs->is_full;
}

int docs_keep(void *user, const bson_t *doc)
{
    return docs_add(user, bson_copy(doc));
}

void docs_clear(struct docs *docs)
{
    for (size_t i = 0; i < docs->count; i++) {
        bson_destroy(docs->list[i]);
    }
    docs->count = 0;
    docs->bytes = 0;
    docs->is_full = false;
}

void docs_done(struct docs *docs)
{
    docs_clear(docs);
    free(docs->list);
    docs->list = NULL;
    docs->cap = 0;
}
