/* SPDX-License-Identifier: MIT */
/* answer.h - the budget and paging of every answer: 75 % of max_bytes and max_lines, counted on
 * the JSON. */
#ifndef OPENNOTES_ANSWER_H
#define OPENNOTES_ANSWER_H

#include "text/text.h"
#include "tool.h"

/* Share of max_bytes and max_lines that the items may take, in percent. */
#define NOTES_ANSWER_PERCENT 75

/*
 * One answer: an object whose list is paged.
 *
 *   notes_answer_begin(&answer, call, budget, limit, offset)
 *   other members: notes_json_name_c(&answer.json, "notebook"), ... (before the list, so that
 * they count; reserve the room of later members before with notes_answer_reserve)
 *   notes_answer_list(&answer, "notes")
 *   for each row: if (notes_answer_row(&answer)) { write into notes_answer_item(&answer);
 *                                                  notes_answer_add(&answer); }
 *   notes_answer_list_end(&answer)
 *   return notes_answer_finish(&answer, rc)     writes pagination and _guidance, replies
 *
 * Whatever happens in between, end with notes_answer_finish, notes_answer_end or
 * notes_answer_drop.
 */
struct notes_answer {
    struct ng_call *call;
    struct buf json; /* the object so far */
    struct buf item; /* the item that is being written */
    int64_t limit, offset;
    int64_t rows;                /* counted by notes_answer_row() */
    size_t bytes_max, lines_max; /* of the written text */
    size_t lines;                /* line ends in the strings so far */
    int64_t returned;
    bool full; /* the next item did not fit */
    bool cut;  /* an item is truncated */
};

void notes_answer_begin(struct notes_answer *answer, struct ng_call *call,
                        const struct notes_budget *budget, int64_t limit, int64_t offset);
/* Reserves room for members that are written after the list. */
void notes_answer_reserve(struct notes_answer *answer, size_t bytes);
void notes_answer_list(struct notes_answer *answer, const char *name);
/* Is there room for one more: under the limit and nothing refused so far? */
bool notes_answer_more(const struct notes_answer *answer);
/* Counts a row; true: it is on this page. */
bool notes_answer_row(struct notes_answer *answer);
/* An empty buffer for the next item: one JSON value. */
struct buf *notes_answer_item(struct notes_answer *answer);
/* Adds the item. false: it does not fit and was not added; the page ends before it. The first
 * item of a page is always added: an object over the budget gets its longest strings cut on a
 * character boundary, and `"truncated": true`. */
bool notes_answer_add(struct notes_answer *answer);
void notes_answer_list_end(struct notes_answer *answer);
/* Bytes left of the budget, for a caller that cuts its own texts. */
size_t notes_answer_room(const struct notes_answer *answer);
/* Writes pagination {total, returned, page, pageSize, hasMore, nextOffset?} and `_guidance`,
 * closes the object and replies. */
int notes_answer_end(struct notes_answer *answer, int64_t total);
/* The same with the counted rows, or the failure `rc`, which it returns. */
int notes_answer_finish(struct notes_answer *answer, int rc);
/* Closes and replies without pagination. */
int notes_answer_end_plain(struct notes_answer *answer);
void notes_answer_drop(struct notes_answer *answer);

/* Replies with a JSON object that was written by hand. */
int notes_answer_reply(struct ng_call *call, struct buf *json);

/* The longest prefix, on a character boundary, whose JSON (with its quotes) takes at most
 * `bytes` and which has at most `lines` line ends. */
struct ng_str notes_json_cut(struct ng_str text, size_t bytes, size_t lines);

#endif
