/* SPDX-License-Identifier: MIT */
/* text.c - growing text with a sticky out-of-memory flag, checked once at the end. */
#include "core/base/minmax.h"
#include "nb.h"

#include <stdlib.h>
#include <string.h>

#define TEXT_FIRST 256

static bool text_room(struct nb_text *text, size_t more)
{
    if (text->failed || more > SIZE_MAX / 2 - text->len) {
        text->failed = true;
        return false;
    }
    size_t need = text->len + more;
    if (need <= text->size) {
        return true;
    }
    size_t size = size_max(text->size, TEXT_FIRST);
    while (size < need) {
        size += size / 2;
    }
    char *data = realloc(text->data, size);
    if (data == NULL) {
        text->failed = true;
        return false;
    }
    text->data = data;
    text->size = size;
    return true;
}

void nb_add(struct nb_text *text, const char *data, size_t len)
{
    if (len > 0 && text_room(text, len)) {
        memcpy(text->data + text->len, data, len);
        text->len += len;
    }
}

void nb_add_str(struct nb_text *text, struct ng_str piece)
{
    nb_add(text, piece.data, piece.len);
}

void nb_add_word(struct nb_text *text, const char *word)
{
    nb_add(text, word, strlen(word));
}

void nb_add_if(struct nb_text *text, bool condition, const char *word)
{
    if (condition) {
        nb_add_word(text, word);
    }
}

void nb_add_done(struct nb_text *text, struct nb_text *piece)
{
    text->failed |= piece->failed;
    nb_add(text, piece->data, piece->len);
    nb_text_done(piece);
}

struct ng_str nb_text_str(const struct nb_text *text)
{
    struct ng_str str = {"", 0};
    if (text->data != NULL) {
        str = (struct ng_str){text->data, text->len};
    }
    return str;
}

void nb_text_done(struct nb_text *text)
{
    free(text->data);
    memset(text, 0, sizeof(*text));
}
