/* SPDX-License-Identifier: MIT */
/* test_cells_merge_rig.c - notebooks for the tests of merges. */
#include "test_cells_merge_rig.h"

#include "core/base/str.h"

/* ---- written short ---- */

/* Copies up to one of `ends`, with | as line feed. Returns the place of the end. */
static const char *rig_take(char *to, const char *from, const char *ends)
{
    size_t len = strcspn(from, ends);
    assert_true(len < RIG_TEXT_MAX);
    for (size_t i = 0; i < len; i++) {
        to[i] = (char)(from[i] == '|' ? '\n' : from[i]);
    }
    to[len] = '\0';
    return from + len;
}

void rig_read(struct rig_notebook *ret, const char *cells)
{
    memset(ret, 0, sizeof(*ret));
    ret->minor = 5;
    while (*cells != '\0') {
        assert_true(ret->count < RIG_CELLS_MAX);
        struct rig_cell *cell = &ret->cells[ret->count++];
        size_t len = strcspn(cells, "# ;");
        assert_true(len < sizeof(cell->id));
        memcpy(cell->id, cells, len);
        cells += len;
        cell->code = *cells != '#';
        cells += *cells == '#';
        cells += *cells == ' ';
        cells = rig_take(cell->source, cells, "@>;");
        if (*cells == '@') {
            cells = rig_take(cell->meta, cells + 1, ">;");
        }
        if (*cells == '>') {
            cells = rig_take(cell->out, cells + 1, ";");
            cell->run = 1 + (unsigned)strlen(cell->out);
        }
        cells += *cells == ';';
    }
}

static void rig_write_run(struct nb_text *out, const struct rig_cell *cell)
{
    bool ascii = false;
    nb_add_word(out, "\"execution_count\":");
    if (cell->run > 0) {
        nb_addf(out, "%u,", cell->run);
    } else {
        nb_add_word(out, "null,");
    }
    nb_add_word(out, "\"outputs\":[");
    if (cell->out[0] != '\0') {
        nb_add_word(out, "{\"name\":\"stdout\",\"output_type\":\"stream\",\"text\":");
        nb_encode_lines(out, str(cell->out), ascii);
        nb_add_word(out, "}");
    }
    nb_add_word(out, "],");
}

static void rig_write_cell(struct nb_text *out, const struct rig_notebook *notebook,
                           const struct rig_cell *cell)
{
    bool one_string = notebook->layout == 3;
    bool ascii = notebook->layout == 4;
    nb_addf(out, "{\"cell_type\":\"%s\",", cell->code ? "code" : "markdown");
    if (cell->code) {
        rig_write_run(out, cell);
    }
    if (notebook->minor >= 5) {
        nb_addf(out, "\"id\":\"%s\",", cell->id);
    }
    nb_add_word(out, "\"metadata\":{");
    if (cell->meta[0] != '\0') {
        nb_add_word(out, "\"note\":");
        nb_encode(out, str(cell->meta), ascii);
    }
    nb_add_word(out, "},\"source\":");
    nb_encode_text(out, str(cell->source), ascii, one_string);
    nb_add_word(out, "}");
}

struct nb_text rig_write(const struct rig_notebook *notebook)
{
    static const struct nb_style styles[RIG_LAYOUTS] = {
        {.indent = " ", .newline = "\n", .space_colon = true},
        {.indent = "    ", .newline = "\r\n", .space_colon = true},
        {.flat = true},
        {.indent = "\t", .newline = "\n", .space_colon = true, .one_string = true},
        {.indent = " ", .newline = "\n", .space_colon = true, .ascii = true},
    };
    struct nb_text json = {0};
    struct nb_text out = {0};
    nb_add_word(&json, "{\"cells\":[");
    for (size_t i = 0; i < notebook->count; i++) {
        nb_add_if(&json, i > 0, ",");
        rig_write_cell(&json, notebook, &notebook->cells[i]);
    }
    nb_add_word(&json, "],\"metadata\":{");
    if (notebook->kernel > 0) {
        nb_addf(&json, "\"kernel\":%u", notebook->kernel);
    }
    nb_addf(&json, "},\"nbformat\":4,\"nbformat_minor\":%u}", notebook->minor);
    nb_format(&out, &styles[notebook->layout], nb_text_str(&json), 0);
    nb_add_word(&out, "\n");
    nb_text_done(&json);
    assert_false(out.failed);
    return out;
}

struct nb_text rig_file(const char *cells)
{
    struct rig_notebook notebook;
    rig_read(&notebook, cells);
    return rig_write(&notebook);
}

/* ---- random ---- */

unsigned rig_seed(void)
{
    /* NOLINTNEXTLINE(concurrency-mt-unsafe) */
    const char *wanted = getenv("NOTEGATE_TEST_SEED");
    unsigned seed = wanted == NULL ? 1 : (unsigned)strtoul(wanted, NULL, 10);
    print_message("NOTEGATE_TEST_SEED=%u\n", seed);
    return seed;
}

unsigned rig_below(unsigned *seed, unsigned limit)
{
    return (unsigned)rand_r(seed) % limit;
}

static const char *rig_line(unsigned *seed)
{
    static const char *const lines[] = {"a = 1\n",
                                        "b = 2\n",
                                        "\n",
                                        "print(\"x\")\n",
                                        "\xc3\xa9t\xc3\xa9\n",
                                        "c = 3\r\n",
                                        "# %% [code]\n",
                                        "tab\t\\ end\n",
                                        "d\xe2\x80\xa8"
                                        "e\n",
                                        "last"};
    return lines[rig_below(seed, (unsigned)NG_COUNT(lines))];
}

/* Replaces up to a line at a random line of the text. */
static void rig_change_lines(unsigned *seed, char text[RIG_TEXT_MAX])
{
    char made[2 * RIG_TEXT_MAX];
    size_t len = strlen(text);
    size_t at = rig_below(seed, (unsigned)len + 1);
    while (at > 0 && text[at - 1] != '\n') {
        at--;
    }
    size_t end = at;
    if (rig_below(seed, 2) == 0) {
        end += strcspn(text + at, "\n");
        end += text[end] == '\n';
    }
    const char *line = end > at && rig_below(seed, 3) == 0 ? "" : rig_line(seed);
    int made_len = snprintf(made, sizeof(made), "%.*s%s%s", (int)at, text, line, text + end);
    if (made_len < RIG_TEXT_MAX) {
        memcpy(text, made, (size_t)made_len + 1);
    }
}

static void rig_new_cell(unsigned *seed, struct rig_cell *cell, unsigned number)
{
    memset(cell, 0, sizeof(*cell));
    (void)snprintf(cell->id, sizeof(cell->id), "cell-%u", number);
    cell->code = rig_below(seed, 3) > 0;
    for (unsigned i = rig_below(seed, 6); i > 0; i--) {
        rig_change_lines(seed, cell->source);
    }
    if (cell->code && rig_below(seed, 2) == 0) {
        cell->run = 1 + rig_below(seed, 50);
        (void)snprintf(cell->out, sizeof(cell->out), "out %u\n", rig_below(seed, 100));
    }
}

void rig_random(unsigned *seed, struct rig_notebook *ret)
{
    memset(ret, 0, sizeof(*ret));
    ret->layout = rig_below(seed, RIG_LAYOUTS);
    ret->minor = rig_below(seed, 4) == 0 ? 4 : 5;
    ret->count = rig_below(seed, 9);
    for (size_t i = 0; i < ret->count; i++) {
        rig_new_cell(seed, &ret->cells[i], (unsigned)i);
    }
}

void rig_change_cell(unsigned *seed, struct rig_notebook *notebook, size_t index)
{
    struct rig_cell *cell = &notebook->cells[index];
    switch (rig_below(seed, 4)) {
    case 0:
        (void)snprintf(cell->meta, sizeof(cell->meta), "m%u\xc3\xa9", rig_below(seed, 3));
        break;
    case 1:
        if (cell->code) {
            cell->run += 1 + rig_below(seed, 3);
            (void)snprintf(cell->out, sizeof(cell->out), "again %u\n", rig_below(seed, 100));
        }
        break;
    default:
        rig_change_lines(seed, cell->source);
        break;
    }
}

static void rig_change_type(struct rig_cell *cell)
{
    cell->code = !cell->code;
    cell->run = 0;
    cell->out[0] = '\0';
}

/* Takes a cell out, and puts it in at `to`. */
static void rig_move(struct rig_notebook *notebook, size_t from, size_t to)
{
    struct rig_cell moved = notebook->cells[from];
    struct rig_cell *cells = notebook->cells;
    memmove(cells + from, cells + from + 1, (notebook->count - from - 1) * sizeof(*cells));
    memmove(cells + to + 1, cells + to, (notebook->count - to - 1) * sizeof(*cells));
    cells[to] = moved;
}

void rig_change(unsigned *seed, struct rig_notebook *notebook, unsigned *inout_next)
{
    unsigned kind = rig_below(seed, 12);
    size_t count = notebook->count;
    size_t index = count == 0 ? 0 : rig_below(seed, (unsigned)count);
    if (kind < 2 && count + 1 < RIG_CELLS_MAX) {
        rig_new_cell(seed, &notebook->cells[notebook->count++], (*inout_next)++);
        rig_move(notebook, count, rig_below(seed, (unsigned)count + 1));
    } else if (count == 0) {
        notebook->kernel = 1 + rig_below(seed, 3);
    } else if (kind == 3) {
        rig_move(notebook, index, count - 1);
        notebook->count--;
    } else if (kind == 4) {
        rig_move(notebook, index, rig_below(seed, (unsigned)count));
    } else if (kind == 5) {
        rig_change_type(&notebook->cells[index]);
    } else if (kind == 6) {
        notebook->kernel = 1 + rig_below(seed, 3);
    } else {
        rig_change_cell(seed, notebook, index);
    }
}

/* ---- checks ---- */

void rig_check_valid(struct ng_str text, struct nb *ret)
{
    index_good(text, ret);
    for (size_t i = 0; i < ret->cell_count; i++) {
        const struct nb_cell *cell = &ret->cells[i];
        assert_true(cell->metadata.len > 0);
        assert_int_equal(cell->id_unique, ret->has_ids);
        assert_int_equal(cell->id.len > 0, ret->has_ids);
        assert_int_equal(cell->outputs.len > 0, cell->type == NB_CODE);
        assert_int_equal(cell->count.len > 0, cell->type == NB_CODE);
        assert_true(cell->type == NB_CODE || cell->type == NB_MARKDOWN);
    }
}
