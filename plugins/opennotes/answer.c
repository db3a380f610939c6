/* SPDX-License-Identifier: MIT */
/* answer.c - the budget and paging of every answer. */
#include "answer.h"

#include <string.h>

/* Of the answer's other members, which the items leave room for by the percentage. */
#define ANSWER_BYTES_MAX 67108864

static void count_lines(struct on_answer *answer, struct ng_str json)
{
    for (size_t at = on_find(json, ng_str_of("\\n"), 0); at != SIZE_MAX;
         at = on_find(json, ng_str_of("\\n"), at + 2)) {
        answer->lines++;
    }
}

void on_answer_begin(struct on_answer *answer, struct ng_call *call,
                     const struct on_budget *budget, int64_t limit, int64_t offset)
{
    *answer = (struct on_answer){.call = call, .limit = limit, .offset = offset};
    answer->bytes_max = budget->max_bytes / 100 * ON_ANSWER_PERCENT;
    answer->lines_max = budget->max_lines * ON_ANSWER_PERCENT / 100;
    on_buf_init(&answer->json, ANSWER_BYTES_MAX);
    on_buf_init(&answer->item, ANSWER_BYTES_MAX);
    on_json_begin(&answer->json, '{');
}

void on_answer_list(struct on_answer *answer, const char *name)
{
    on_json_name_c(&answer->json, name);
    on_json_begin(&answer->json, '[');
    answer->paged = true;
}

bool on_answer_more(const struct on_answer *answer)
{
    return !answer->full && answer->returned < answer->limit;
}

struct on_buf *on_answer_item(struct on_answer *answer)
{
    on_buf_clear(&answer->item);
    return &answer->item;
}

bool on_answer_add(struct on_answer *answer)
{
    on_json_raw(&answer->json, on_buf_str(&answer->item));
    count_lines(answer, on_buf_str(&answer->item));
    answer->returned++;
    return true;
}

void on_answer_list_end(struct on_answer *answer)
{
    on_json_end(&answer->json, ']');
}

size_t on_answer_room(const struct on_answer *answer)
{
    return answer->json.len < answer->bytes_max ? answer->bytes_max - answer->json.len : 0;
}

void on_answer_drop(struct on_answer *answer)
{
    on_buf_done(&answer->json);
    on_buf_done(&answer->item);
}

int on_answer_end(struct on_answer *answer, int64_t total)
{
    (void)total;
    return on_answer_end_plain(answer);
}

int on_answer_end_plain(struct on_answer *answer)
{
    on_json_end(&answer->json, '}');
    int rc = on_answer_reply(answer->call, &answer->json);
    on_answer_drop(answer);
    return rc;
}

int on_answer_reply(struct ng_call *call, struct on_buf *json)
{
    const struct ng_host *host = call->host;
    const struct ng_value *value = NULL;
    int rc = json->rc != NG_OK ? ng_fail(call, json->rc, "Out of memory while answering.")
                               : host->json_parse(call, on_buf_str(json), &value);
    struct ng_writer *writer = rc == NG_OK ? host->reply_json(call) : NULL;
    if (writer == NULL) {
        return rc != NG_OK ? rc : ng_fail(call, NG_EINTERNAL, "Out of memory while answering.");
    }
    host->json_copy(writer, value);
    return NG_OK;
}
