/* SPDX-License-Identifier: MIT */
/* host_answer.c - the answer of a plugin: text, JSON, parts, failures; and the memory of a
 * call.
 */

#include "core/base/minmax.h"
#include "core/base/str.h"
#include "core/call/plugin.h"
#include "core/store/store.h"
#include "host.h"

/* A shorter text is copied: that is faster than store_lends(). */
#define REPLY_LENT_BYTES ((size_t)16 * 1024)

/* The core adds the member `space` to an object. */
#define REPLY_SPACE_MAX (NG_SPACE_MAX + sizeof(",\"" TOOL_SPACE_MEMBER "\":\"\""))

void *host_alloc(struct ng_call *pub, size_t bytes)
{
    return arena_alloc(&call_of(pub)->arena, bytes);
}

struct ng_str host_format(struct ng_call *pub, const char *format, ...)
{
    struct ng_str result = {NULL, 0};
    struct buf text;
    va_list args;
    va_start(args, format);
    buf_init(&text, CALL_MEMORY_MAX);
    text.oom = &call_of(pub)->arena.oom;
    if (buf_vprintf(&text, format, args) == NG_OK) {
        result = arena_copy(&call_of(pub)->arena, str_make(buf_cstr(&text), text.len));
    } else {
        call_of(pub)->arena.failed = true;
    }
    va_end(args);
    buf_done(&text);
    return result;
}

static void host_reply_is(struct call *call, struct ng_str text)
{
    call->staged.text = text;
    call->staged.has_text = true;
    call->staged.is_json = false;
    call->reply_writer.buf = NULL;
}

int host_reply_parts(struct ng_call *pub, const struct ng_str *pieces, size_t count)
{
    struct call *call = call_of(pub);
    size_t size = 0;
    for (size_t i = 0; i < count; i++) {
        size += pieces[i].len;
    }
    char *text = arena_alloc(&call->arena, size + 1);
    if (text == NULL) {
        return call_no_memory(call);
    }
    size_t at = 0;
    for (size_t i = 0; i < count; i++) {
        if (pieces[i].len > 0) {
            memcpy(text + at, pieces[i].data, pieces[i].len);
            at += pieces[i].len;
        }
    }
    text[size] = '\0';
    host_reply_is(call, str_make(text, size));
    return NG_OK;
}

int host_reply(struct ng_call *pub, struct ng_str text)
{
    struct call *call = call_of(pub);
    if (text.len < REPLY_LENT_BYTES || !store_lends(call, text)) {
        return host_reply_parts(pub, &text, 1);
    }
    host_reply_is(call, text);
    return NG_OK;
}

struct ng_writer *host_reply_json(struct ng_call *pub)
{
    struct call *call = call_of(pub);
    buf_clear(&call->reply_buf);
    json_writer_init(&call->reply_writer, &call->reply_buf);
    return &call->reply_writer;
}

size_t host_answer_room(struct ng_call *pub)
{
    const struct call *call = call_of(pub);
    size_t max = call_answer_max(call);
    size_t used = 0;
    if (call_reply_is_open(call)) {
        used = call->reply_buf.len + REPLY_SPACE_MAX;
    }
    return max - size_min(used, max);
}

static struct part *host_add_part(struct call *call, enum part_kind kind)
{
    struct part *part = arena_zalloc(&call->arena, sizeof(*part));
    if (part == NULL) {
        return NULL;
    }
    part->kind = kind;
    if (call->staged.last_part == NULL) {
        call->staged.parts = part;
    } else {
        call->staged.last_part->next = part;
    }
    call->staged.last_part = part;
    return part;
}

static int part_rc(struct call *call, bool copied)
{
    return copied ? NG_OK : call_no_memory(call);
}

int host_reply_media(struct ng_call *pub, const char *kind, const char *mime_type,
                     struct ng_str bytes)
{
    struct call *call = call_of(pub);
    bool audio = strcmp(kind, "audio") == 0;
    struct part *part = host_add_part(call, audio ? PART_AUDIO : PART_IMAGE);
    if (part == NULL) {
        return call_no_memory(call);
    }
    part->mime_type = arena_copy(&call->arena, ng_str_of(mime_type));
    part->data = arena_copy(&call->arena, bytes);
    return part_rc(call, part->data.data != NULL &&
                             (mime_type == NULL || part->mime_type.data != NULL));
}

int host_reply_resource(struct ng_call *pub, struct ng_str uri, const char *mime_type,
                        struct ng_str content, bool is_text)
{
    struct call *call = call_of(pub);
    struct part *part = host_add_part(call, PART_RESOURCE);
    if (part == NULL) {
        return call_no_memory(call);
    }
    part->uri = arena_copy(&call->arena, uri);
    part->mime_type = arena_copy(&call->arena, ng_str_of(mime_type));
    part->data = arena_copy(&call->arena, content);
    part->is_text = is_text;
    return part_rc(call, part->data.data != NULL && part->uri.data != NULL &&
                             (mime_type == NULL || part->mime_type.data != NULL));
}

int host_reply_link(struct ng_call *pub, struct ng_str uri, struct ng_str name,
                    const char *mime_type)
{
    struct call *call = call_of(pub);
    struct part *part = host_add_part(call, PART_LINK);
    if (part == NULL) {
        return call_no_memory(call);
    }
    part->uri = arena_copy(&call->arena, uri);
    part->name = arena_copy(&call->arena, name);
    part->mime_type = arena_copy(&call->arena, ng_str_of(mime_type));
    return part_rc(call, part->uri.data != NULL &&
                             (name.data == NULL || part->name.data != NULL) &&
                             (mime_type == NULL || part->mime_type.data != NULL));
}

int host_revision_number(struct ng_call *pub, uint64_t revision)
{
    struct result *staged = &call_of(pub)->staged;
    staged->revision_kind = REVISION_NUMBER;
    staged->revision_number = revision;
    return NG_OK;
}

int host_revision_text(struct ng_call *pub, struct ng_str revision)
{
    struct call *call = call_of(pub);
    call->staged.revision_kind = REVISION_TEXT;
    call->staged.revision_text = arena_copy(&call->arena, revision);
    return part_rc(call, call->staged.revision_text.data != NULL);
}

int host_reply_meta(struct ng_call *pub, const char *name, struct ng_str text)
{
    struct call *call = call_of(pub);
    return part_rc(call, call_set_meta(call, ng_str_of(name), text));
}

int host_fail(struct ng_call *pub, int code, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    call_vfail(call_of(pub), code, format, args);
    va_end(args);
    return code;
}

int host_fail_text(struct ng_call *pub, int code, struct ng_str message)
{
    struct call *call = call_of(pub);
    struct buf text;
    call_fail(call, code, "%s", "");
    buf_init(&text, message.len);
    (void)buf_add_str(&text, message);
    call_cut_echoes(call, &text);
    call->staged.message = call_shorten(call, buf_str_or(&text, message), CALL_MESSAGE_MAX);
    buf_done(&text);
    if (call->staged.message.data == NULL) {
        call->staged.message = ng_str_of("out of memory while a failure was described");
    }
    return code;
}

int host_fail_on_completion(struct ng_call *pub, int code, struct ng_str message)
{
    struct call *call = call_of(pub);
    call->after_rc = code;
    call->after_text = call_shorten(call, message, CALL_MESSAGE_MAX);
    if (call->after_text.data == NULL) {
        call->after_rc = NG_EINTERNAL;
        call->after_text = ng_str_of("out of memory while a failure was described");
        return NG_EINTERNAL;
    }
    return NG_OK;
}

int host_on_complete(struct ng_call *pub, ng_complete_fn *ended, void *user)
{
    struct call *call = call_of(pub);
    struct call_end *end = arena_alloc(&call->arena, sizeof(*end));
    if (end == NULL) {
        return call_no_memory(call);
    }
    *end = (struct call_end){ended, user, call->ends};
    call->ends = end;
    return NG_OK;
}

/* An empty hint removes an earlier one. */
static void host_set_hint(struct call *call, struct ng_str text)
{
    struct ng_str none = {NULL, 0};
    call->staged.hint = text.len > 0 ? call_shorten(call, text, CALL_HINT_MAX) : none;
}

void host_hint(struct ng_call *pub, const char *format, ...)
{
    struct call *call = call_of(pub);
    struct buf text;
    va_list args;
    va_start(args, format);
    buf_init(&text, CALL_MEMORY_MAX);
    text.oom = &call->arena.oom;
    if (buf_vprintf(&text, format, args) == NG_OK) {
        host_set_hint(call, buf_str(&text));
    }
    va_end(args);
    buf_done(&text);
}

void host_hint_text(struct ng_call *pub, struct ng_str text)
{
    host_set_hint(call_of(pub), text);
}

struct ng_writer *host_details(struct ng_call *pub)
{
    struct call *call = call_of(pub);
    buf_clear(&call->details_buf);
    json_writer_init(&call->details_writer, &call->details_buf);
    return &call->details_writer;
}
