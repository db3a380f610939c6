/* SPDX-License-Identifier: MIT */
/* content.c - answers of tools as JSON. */
#include "content.h"

#include "core/base/str.h"
#include "core/base/text/base64.h"

/* A JSON string of bytes in base64. */
static void print_base64(struct buf *out, struct ng_str bytes)
{
    (void)buf_add_char(out, '"');
    base64_encode(out, bytes, BASE64_STANDARD);
    (void)buf_add_char(out, '"');
}

static void print_member(struct buf *out, const char *name, struct ng_str value)
{
    (void)buf_printf(out, ",\"%s\":", name);
    (void)buf_add_json(out, value);
}

static void print_mime_type(struct buf *out, const struct part *part)
{
    if (part->mime_type.len > 0) {
        print_member(out, "mimeType", part->mime_type);
    }
}

void content_print_contents(struct buf *out, const struct part *part, struct ng_str uri)
{
    (void)buf_add_c(out, "{\"uri\":");
    (void)buf_add_json(out, str_or(part->uri, uri));
    print_mime_type(out, part);
    if (part->is_text || part->kind == PART_TEXT) {
        print_member(out, "text", part->data);
    } else {
        (void)buf_add_c(out, ",\"blob\":");
        print_base64(out, part->data);
    }
    (void)buf_add_char(out, '}');
}

void content_print_part(struct buf *out, const struct part *part)
{
    switch (part->kind) {
    case PART_TEXT:
        (void)buf_add_c(out, "{\"type\":\"text\"");
        print_member(out, "text", part->data);
        break;
    case PART_IMAGE:
    case PART_AUDIO:
        (void)buf_printf(
            out, "{\"type\":\"%s\",\"data\":", part->kind == PART_IMAGE ? "image" : "audio");
        print_base64(out, part->data);
        print_mime_type(out, part);
        break;
    case PART_RESOURCE:
        (void)buf_add_c(out, "{\"type\":\"resource\",\"resource\":");
        content_print_contents(out, part, part->uri);
        break;
    case PART_LINK:
        (void)buf_add_c(out, "{\"type\":\"resource_link\"");
        print_member(out, "uri", part->uri);
        print_member(out, "name", str_or(part->name, part->uri));
        print_mime_type(out, part);
        break;
    }
    (void)buf_add_char(out, '}');
}

void content_print_meta(struct buf *out, const struct result *result)
{
    if (result->meta != NULL) {
        (void)buf_add_c(out, ",\"_meta\":{");
        call_print_meta(result, out);
        (void)buf_add_char(out, '}');
    }
}

void content_print_result(struct buf *out, const struct result *result)
{
    (void)buf_add_c(out, "{\"result\":");
    if (result->is_json) {
        (void)buf_add_str(out, result->text);
    } else {
        (void)buf_add_json(out, str_or(result->text, ng_str_of("")));
    }
    if (result->parts != NULL) {
        (void)buf_add_c(out, ",\"content\":[");
        for (const struct part *part = result->parts; part != NULL; part = part->next) {
            content_print_part(out, part);
            (void)buf_add_c(out, part->next != NULL ? "," : "]");
        }
    }
    if (result->revision_kind == REVISION_NUMBER) {
        (void)buf_add_c(out, ",\"revision\":");
        (void)buf_add_number(out, result->revision_number);
    } else if (result->revision_kind == REVISION_TEXT) {
        (void)buf_add_c(out, ",\"revision\":");
        (void)buf_add_json(out, result->revision_text);
    }
    content_print_meta(out, result);
    (void)buf_add_char(out, '}');
}
