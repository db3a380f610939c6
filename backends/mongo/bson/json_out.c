/* SPDX-License-Identifier: MIT */
/* json_out.c - converts the members of an entry back to JSON, spelled as the core spells it. */
#include "bson_members.h"
#include "core/base/buf.h"
#include "core/base/text/json_writer.h"
#include "core/base/text/rfc3339.h"

static void write_value(struct ng_writer *writer, const bson_iter_t *iter);

static void write_container(struct ng_writer *writer, const bson_iter_t *iter)
{
    bson_iter_t child;
    bool array = BSON_ITER_HOLDS_ARRAY(iter);
    if (array) {
        json_array(writer);
    } else {
        json_object(writer);
    }
    if (bson_iter_recurse(iter, &child)) {
        while (bson_iter_next(&child)) {
            if (!array) {
                json_name_str(writer, str_of(bson_iter_key(&child), bson_iter_key_len(&child)));
            }
            write_value(writer, &child);
        }
    }
    json_end(writer);
}

static void write_value(struct ng_writer *writer, const bson_iter_t *iter)
{
    char time[RFC3339_SIZE];
    switch (bson_iter_type(iter)) {
    case BSON_TYPE_UTF8:
        json_string(writer, iter_str(iter));
        break;
    case BSON_TYPE_INT32:
    case BSON_TYPE_INT64:
        json_int(writer, bson_iter_as_int64(iter));
        break;
    case BSON_TYPE_DOUBLE:
        json_number(writer, bson_iter_double(iter));
        break;
    case BSON_TYPE_BOOL:
        json_bool(writer, bson_iter_bool(iter));
        break;
    case BSON_TYPE_DATE_TIME:
        rfc3339_write(bson_iter_date_time(iter), RFC3339_MS, time);
        json_cstring(writer, time);
        break;
    case BSON_TYPE_DOCUMENT:
    case BSON_TYPE_ARRAY:
        write_container(writer, iter);
        break;
    default:
        json_null(writer); /* another program has changed the document */
        break;
    }
}

int json_of(const bson_t *doc, const bson_t *names, struct bytes *ret)
{
    bson_iter_t name, value;
    struct buf json;
    struct ng_writer writer;
    buf_init(&json, 2 * DOCUMENT_BYTES_MAX);
    json_writer_init(&writer, &json);
    json_object(&writer);
    if (names != NULL && bson_iter_init(&name, names)) {
        while (bson_iter_next(&name)) {
            struct ng_str key = iter_str(&name);
            if (key.data != NULL && bson_iter_init_find(&value, doc, key.data)) {
                json_name_str(&writer, key);
                write_value(&writer, &value);
            }
        }
    }
    json_end(&writer);
    int rc = json.rc;
    if (rc == NG_OK) {
        rc = bytes_set(ret, buf_str(&json));
    }
    buf_done(&json);
    return rc;
}
