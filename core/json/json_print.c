/* SPDX-License-Identifier: MIT */
/* json_print.c - JSON out of parsed values. */
#include "core/base/buf.h"
#include "json.h"

static void print_container(struct buf *buf, const struct ng_value *value)
{
    bool is_object = value->type == NG_TYPE_OBJECT;
    buf_add_char(buf, "[{"[is_object]);
    for (const struct ng_value *child = value->first; child != NULL && buf->rc == NG_OK;
         child = child->next) {
        if (child != value->first) {
            buf_add_char(buf, ',');
        }
        if (is_object) {
            buf_add_json(buf, child->key);
            buf_add_char(buf, ':');
        }
        json_print(buf, child);
    }
    buf_add_char(buf, "]}"[is_object]);
}

int json_print(struct buf *buf, const struct ng_value *value)
{
    switch (value == NULL ? NG_TYPE_NULL : value->type) {
    case NG_TYPE_FALSE:
        buf_add_c(buf, "false");
        break;
    case NG_TYPE_TRUE:
        buf_add_c(buf, "true");
        break;
    case NG_TYPE_NUMBER:
        buf_add_str(buf, value->text);
        break;
    case NG_TYPE_STRING:
        buf_add_json(buf, value->text);
        break;
    case NG_TYPE_ARRAY:
    case NG_TYPE_OBJECT:
        if (value->printed) {
            buf_add_str(buf, value->text);
        } else {
            print_container(buf, value);
        }
        break;
    default:
        buf_add_c(buf, "null");
        break;
    }
    return buf->rc;
}

void json_copy(struct ng_writer *writer, const struct ng_value *value)
{
    if (json_value_begin(writer)) {
        json_print(writer->buf, value);
        json_value_end(writer);
    }
}
