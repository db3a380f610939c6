/* SPDX-License-Identifier: MIT */
/*
 * notebook_search.c - mode search: the lines of all notebooks of a space that have all words.
 *
 * It reads the texts. The full-text index of the store finds words, their stems and beginnings,
 * but no word inside of a word, and it names documents, not lines.
 */
#include "core/base/buf.h"
#include "core/base/utf8.h"
#include "notebook.h"
#include "notebook_text.h"

/* Notebooks of one query: their texts are in memory together. */
#define SEARCH_PAGE 8
#define SEARCH_WORDS_MAX 32
#define SEARCH_QUERY_MAX 4096
/* Bytes of the lines in the answer, and of one of them. */
#define SEARCH_ANSWER_MAX ((size_t)60 * 1024)
#define SEARCH_SHOWN 400
/* Bytes before the first word in a line of which only a part is shown. */
#define SEARCH_BEFORE 100
/* Case folding makes a character at most three times as long. The largest text is that of
 * NOTEBOOK_MAX_SIZE_MOST. */
#define SEARCH_FOLDED_TIMES 3
#define SEARCH_FOLDED_MAX ((size_t)SEARCH_FOLDED_TIMES * 64 * 1024 * 1024)
#define SEARCH_CUT "\xe2\x80\xa6"

struct search {
    struct ng_call *call;
    struct ng_str words[SEARCH_WORDS_MAX];
    size_t word_count;
    struct buf folded; /* of the present notebook */
    struct buf answer;
    uint64_t last_seq;
    uint32_t rows;                       /* of the present query */
    uint64_t left_lines, left_notebooks; /* not in the answer: no room */
    int rc;
};

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* The folded query is in `folded`, where the words point to. */
static int search_words(struct search *search, struct ng_str query, struct buf *folded)
{
    size_t at = 0;
    if (utf8_fold(folded, query) != NG_OK) {
        return ng_fail(search->call, NG_EINTERNAL, "out of memory");
    }
    struct ng_str text = buf_str(folded);
    while (at < text.len) {
        size_t begin = at;
        while (at < text.len && !is_blank(text.data[at])) {
            at++;
        }
        if (at == begin) {
            at++;
            continue;
        }
        if (search->word_count == SEARCH_WORDS_MAX) {
            return ng_fail(search->call, NG_EINVAL, "`query` may have at most %d words",
                           SEARCH_WORDS_MAX);
        }
        search->words[search->word_count++] = str_make(text.data + begin, at - begin);
    }
    return NG_OK;
}

/* The place of the first word in a folded line that has all words; SIZE_MAX: it has not. */
static size_t search_line(const struct search *search, struct ng_str line)
{
    size_t first = SIZE_MAX;
    for (size_t i = 0; i < search->word_count; i++) {
        size_t at = str_find(line, search->words[i], 0);
        if (at == SIZE_MAX) {
            return SIZE_MAX;
        }
        first = at < first ? at : first;
    }
    return first;
}

/* The part of a line that is shown. `at`: of the hit, in the folded line of `folded` bytes,
 * whose lengths are nearly the same. */
static void search_show(struct buf *out, struct ng_str line, size_t at, size_t folded)
{
    size_t begin = 0;
    if (line.len > SEARCH_SHOWN) {
        size_t hit = (size_t)((double)at * (double)line.len / (double)folded);
        begin = hit > SEARCH_BEFORE ? hit - SEARCH_BEFORE : 0;
        begin = begin > line.len - SEARCH_SHOWN ? line.len - SEARCH_SHOWN : begin;
        while (begin > 0 && !utf8_is_start(line.data[begin])) {
            begin--;
        }
    }
    struct ng_str part = utf8_cut(str_make(line.data + begin, line.len - begin), SEARCH_SHOWN);
    (void)buf_add_str(out, ng_str_of(begin > 0 ? SEARCH_CUT : ""));
    (void)buf_add_str(out, part);
    (void)buf_add_str(out, ng_str_of(begin + part.len < line.len ? SEARCH_CUT : ""));
}

/* False: it does not fit. */
static bool search_add(struct search *search, struct ng_str name, int64_t number,
                       struct ng_str line, size_t at, size_t folded)
{
    struct buf *out = &search->answer;
    size_t before = out->len;
    if (before > 0) {
        (void)buf_add_str(out, ng_str_of("\n"));
    }
    (void)buf_add_str(out, name);
    (void)buf_printf(out, ":%lld: ", (long long)number);
    search_show(out, line, at, folded);
    if (out->rc == NG_ETOOLARGE) {
        buf_cut(out, before);
        return false;
    }
    return true;
}

static struct ng_str line_at(struct ng_str text, size_t at)
{
    size_t end = str_find(text, ng_str_of("\n"), at);
    return str_make(text.data + at, (end == SIZE_MAX ? text.len : end) - at);
}

/* Folding keeps line ends, so both texts have the same lines. */
static void search_text(struct search *search, struct ng_str name, struct ng_str text)
{
    struct ng_str folded = buf_str(&search->folded);
    uint64_t left = search->left_lines;
    int64_t number = 1;
    size_t at = 0;
    for (size_t in = 0; in <= folded.len && at <= text.len; number++) {
        struct ng_str line = line_at(text, at);
        struct ng_str wanted = line_at(folded, in);
        size_t hit = search_line(search, wanted);
        if (hit != SIZE_MAX && (search->left_lines > 0 ||
                                !search_add(search, name, number, line, hit, wanted.len))) {
            search->left_lines++;
        }
        at += line.len + 1;
        in += wanted.len + 1;
    }
    search->left_notebooks += search->left_lines > left;
}

static int search_row(void *user, const struct ng_doc *row)
{
    struct search *search = user;
    search->rows++;
    search->last_seq = row->created_seq;
    if (search->call->host->cancelled(search->call)) {
        search->rc = ng_fail(search->call, NG_ECANCELLED, "the call was cancelled");
        return 1;
    }
    buf_clear(&search->folded);
    if (row->text.len == 0) {
        return 0;
    }
    if (utf8_fold(&search->folded, row->text) != NG_OK) {
        search->rc = ng_fail(search->call, NG_EINTERNAL, "out of memory");
        return 1;
    }
    search_text(search, row->key.id, row->text);
    return search->answer.rc != NG_OK;
}

static int search_run(struct search *search)
{
    struct ng_call *call = search->call;
    struct ng_term after = {.field = ng_str_of("created_seq"), .op = NG_TERM_GT};
    struct ng_query query = {
        .size = sizeof(query),
        .collection = ng_str_of(NOTEBOOK_COLLECTION),
        .space = call->caller->space,
        .terms = &after,
        .term_count = 1,
        .sort = after.field,
        .limit = SEARCH_PAGE,
        .with_text = true,
    };
    do {
        search->rows = 0;
        after.number = (double)search->last_seq;
        int rc = call->host->query(call, &query, search_row, search, NULL);
        if (rc != NG_OK || search->rc != NG_OK) {
            return rc != NG_OK ? rc : search->rc;
        }
        if (search->answer.rc != NG_OK) {
            return ng_fail(call, NG_EINTERNAL, "out of memory");
        }
    } while (search->rows == SEARCH_PAGE);
    return NG_OK;
}

static int search_reply(struct search *search)
{
    struct ng_call *call = search->call;
    if (search->answer.len == 0 && search->left_lines == 0) {
        return ng_reply(call, ng_str_of("No matches"));
    }
    const struct ng_str pieces[] = {
        buf_str(&search->answer),
        call->host->format(call, "\n[%llu more lines in %llu notebooks; search for more words]",
                           (unsigned long long)search->left_lines,
                           (unsigned long long)search->left_notebooks),
    };
    return call->host->reply_parts(call, pieces, search->left_lines > 0 ? 2 : 1);
}

int notebook_search(struct ng_call *call)
{
    struct search search = {.call = call};
    struct ng_str query = ng_arg_text(call, "query");
    struct buf folded_query;
    if (query.len > SEARCH_QUERY_MAX) {
        return ng_fail(call, NG_EINVAL, "`query` is %zu bytes long, it may have at most %d",
                       query.len, SEARCH_QUERY_MAX);
    }
    if (!call->host->may_block(call)) {
        return NG_EWOULDBLOCK;
    }
    buf_init(&folded_query, (size_t)SEARCH_QUERY_MAX * SEARCH_FOLDED_TIMES + 64);
    buf_init(&search.folded, SEARCH_FOLDED_MAX);
    buf_init(&search.answer, SEARCH_ANSWER_MAX);
    int rc = search_words(&search, query, &folded_query);
    if (rc == NG_OK && search.word_count == 0) {
        rc = ng_fail(call, NG_EINVAL, "Search operation requires query with at least one word");
        notebook_violation(call, "/query", ng_str_of("a text with a word"),
                           ng_str_of(query.data == NULL ? "nothing" : "blanks"));
    }
    if (rc == NG_OK) {
        rc = search_run(&search);
    }
    if (rc == NG_OK) {
        rc = search_reply(&search);
    }
    buf_done(&folded_query);
    buf_done(&search.folded);
    buf_done(&search.answer);
    return rc;
}
