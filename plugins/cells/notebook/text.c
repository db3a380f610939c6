/* SPDX-License-Identifier: MIT */
/* text.c - growing text with a sticky out-of-memory flag, checked once at the end. */
#include "core/base/array.h"
#include "nb.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool text_room(struct nb_text *text, size_t more)
{
    text->failed = text->failed || more > SIZE_MAX / 4 ||
                   array_reserve((void **)&text->data, &text->size, text->len + more, 1,
                                 SIZE_MAX / 4) != NG_OK;
    return !text->failed;
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

void nb_addf(struct nb_text *text, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    nb_vaddf(text, format, args);
    va_end(args);
}

void nb_vaddf(struct nb_text *text, const char *format, va_list args)
{
    va_list again;
    char *end = NULL;
    size_t room = 0;
    if (text->data != NULL) {
        end = text->data + text->len;
        room = text->size - text->len;
    }
    va_copy(again, args);
    int len = vsnprintf(end, room, format, args);
    bool complete = len >= 0 && (size_t)len < room;
    if (len > 0 && !complete && text_room(text, (size_t)len + 1)) {
        (void)vsnprintf(text->data + text->len, (size_t)len + 1, format, again);
        complete = true;
    }
    if (complete && !text->failed) {
        text->len += (size_t)len;
    }
    va_end(again);
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
