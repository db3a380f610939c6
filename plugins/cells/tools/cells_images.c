/* SPDX-License-Identifier: MIT */
/* cells_images.c - images of an answer within limits.result; omitted ones are listed in the
 * text, which is always sent. */
#include "cells.h"
#include "core/base/minmax.h"

/* Maximum length of a line about an omitted image. */
#define IMAGES_LINE_MAX (CELLS_HANDLE_MAX + 200)
/* Reserve for parts of the answer beside its text. */
#define IMAGES_ROOM_LEAST 1024

size_t cells_text_max(struct ng_call *call)
{
    size_t limit = call->host->answer_room(call);
    if (limit > 2 * IMAGES_ROOM_LEAST) {
        return limit - IMAGES_ROOM_LEAST;
    }
    return limit / 2 + 1;
}

void cells_fit_text(struct ng_call *call, struct ng_str path, struct nb_text *text)
{
    struct nb_text cut = {0};
    size_t most = cells_text_max(call);
    most -= size_min(most, cells_notebook_len(path));
    if (text->len <= most) {
        return;
    }
    render_cut(&cut, nb_text_str(text), most);
    cut.failed |= text->failed;
    nb_text_done(text);
    *text = cut;
}

void cells_images_begin(struct cells_images *images, const struct cells *self,
                        struct ng_call *call, struct ng_str path, struct nb_text *text)
{
    size_t limit = (size_t)self->max_result;
    *images = (struct cells_images){.call = call, .text = text, .limit = limit};
    cells_fit_text(call, path, text);
    images->room = limit - size_min(limit, text->len + cells_notebook_len(path));
}

int cells_images_add(struct cells_images *images, const struct rendered *rendered,
                     const char *handle)
{
    for (size_t i = 0; i < rendered->image_count; i++) {
        const struct rendered_image *image = &rendered->images[i];
        struct ng_str bytes = buf_str(&image->bytes);
        /* Keep room for the lines about further images. */
        if (images->room >= IMAGES_LINE_MAX && bytes.len <= images->room - IMAGES_LINE_MAX) {
            images->room -= bytes.len;
            int rc = images->call->host->reply_media(images->call, "image", image->mime, bytes);
            if (rc != NG_OK) {
                return rc;
            }
            continue;
        }
        images->left_out++;
        if (images->room < 2 * IMAGES_LINE_MAX) {
            continue;
        }
        images->room -= IMAGES_LINE_MAX;
        nb_addf(images->text, "\n[image %zu of cell %s, %s, %zu bytes: left out]", i + 1,
                handle, image->mime, bytes.len);
    }
    return NG_OK;
}

void cells_images_end(struct cells_images *images)
{
    if (images->left_out > 0) {
        nb_addf(images->text,
                "\n[%zu image(s) left out: the answer would be larger than limits.result, "
                "%zu bytes. They are in the file]",
                images->left_out, images->limit);
    }
}
