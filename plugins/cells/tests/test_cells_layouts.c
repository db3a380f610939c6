/* SPDX-License-Identifier: MIT */
/* test_cells_layouts.c - random edits of notebooks in every layout: an edit of the file gives,
 * byte by byte, what writing the edited notebook in that layout gives. */
#include "test_nb.h"

/* ---- a model of a notebook, written in any layout: an edit of the file must give what writing
 * the edited model gives ---- */

#define MODEL_CELLS 12
#define MODEL_TEXT 256

struct model_cell {
    enum nb_type type;
    char id[16];
    char source[MODEL_TEXT];
    int outputs; /* how many */
    int count;   /* -1: null */
    bool one_string;
};

struct model {
    struct model_cell cells[MODEL_CELLS];
    size_t count;
    bool ids, unsorted, one_string;
    bool marked; /* with a byte order mark */
    struct nb_style style;
};

static void add_source(struct nb_text *out, const struct model_cell *cell, bool ascii)
{
    if (cell->one_string) {
        nb_encode(out, str(cell->source), ascii);
    } else {
        nb_encode_lines(out, str(cell->source), ascii);
    }
}

static void add_outputs(struct nb_text *out, int count)
{
    nb_add_word(out, "[");
    for (int i = 0; i < count; i++) {
        nb_add_word(out, i > 0 ? "," : "");
        nb_add_word(out,
                    "{\"output_type\":\"execute_result\",\"data\":{\"application/json\":"
                    "{\"n\":1e400,\"m\":[NaN,-Infinity,1.0E+2]},\"text/plain\":[\"a\\n\","
                    "\"\\u0000\\u001b[0m\\ud800\"]},\"metadata\":{},\"execution_count\":1}");
    }
    nb_add_word(out, "]");
}

static void add_model_member(struct nb_text *out, const struct model_cell *cell,
                             const struct model *model, const char *name)
{
    static const char *const types[] = {"", "\"code\"", "\"markdown\"", "\"raw\""};
    bool code = strcmp(name, "outputs") == 0 || strcmp(name, "execution_count") == 0;
    char number[16];
    if ((code && cell->type != NB_CODE) || (strcmp(name, "id") == 0 && !model->ids)) {
        return;
    }
    nb_add_word(out, out->data[out->len - 1] == '{' ? "\"" : ",\"");
    nb_add_word(out, name);
    nb_add_word(out, "\":");
    if (strcmp(name, "cell_type") == 0) {
        nb_add_word(out, types[cell->type]);
    } else if (strcmp(name, "id") == 0) {
        nb_encode(out, str(cell->id), false);
    } else if (strcmp(name, "metadata") == 0) {
        nb_add_word(out, "{}");
    } else if (strcmp(name, "source") == 0) {
        add_source(out, cell, model->style.ascii);
    } else if (strcmp(name, "outputs") == 0) {
        add_outputs(out, cell->outputs);
    } else {
        (void)snprintf(number, sizeof(number), "%d", cell->count);
        nb_add_word(out, cell->count < 0 ? "null" : number);
    }
}

static void model_json(const struct model *model, struct nb_text *out)
{
    static const char *const sorted[] = {"cell_type", "execution_count", "id",
                                         "metadata",  "outputs",         "source"};
    static const char *const colab[] = {"cell_type", "source",          "metadata",
                                        "id",        "execution_count", "outputs"};
    nb_add_word(out, "{");
    const char *const tail = "\"metadata\":{\"title\":\"\\u00e9\xc3\xa9\",\"big\":"
                             "100000000000000000000000000000000000000000000000000000,"
                             "\"odd\":[1.50,-0,1E5,[],{},[[]],\"a/b\\/c\"]},";
    nb_add_word(out, model->unsorted ? tail : "");
    nb_add_word(out, "\"cells\":[");
    for (size_t i = 0; i < model->count; i++) {
        nb_add_word(out, i > 0 ? ",{" : "{");
        for (size_t k = 0; k < NG_COUNT(sorted); k++) {
            add_model_member(out, &model->cells[i], model,
                             model->unsorted ? colab[k] : sorted[k]);
        }
        nb_add_word(out, "}");
    }
    nb_add_word(out, "],");
    nb_add_word(out, model->unsorted ? "" : tail);
    nb_add_word(out, model->ids ? "\"nbformat\":4,\"nbformat_minor\":5,\"zz\":null}"
                                : "\"nbformat\":4,\"nbformat_minor\":4,\"zz\":null}");
}

static struct nb_text model_file(const struct model *model)
{
    struct nb_text json = {0};
    struct nb_text out = {0};
    model_json(model, &json);
    nb_add_word(&out, model->marked ? "\xef\xbb\xbf" : "");
    nb_format(&out, &model->style, nb_text_str(&json), 0);
    nb_add_word(&out, model->style.flat ? "" : model->style.newline);
    assert_false(json.failed || out.failed);
    nb_text_done(&json);
    return out;
}

/* ---- random models and edits ---- */

static unsigned next_random(unsigned *state, unsigned below)
{
    *state = *state * 1103515245u + 12345u;
    return (*state >> 16 & 0x7fff) % below;
}

static void random_text(unsigned *state, char *out)
{
    static const char *const pieces[] = {"x = 1\n",
                                         "\n",
                                         "print(\"a\\b\")",
                                         "\tend\n",
                                         "\xc3\xa9t\xc3\xa9\n",
                                         "\xf0\x9f\x98\x80",
                                         "a\r\nb",
                                         "'",
                                         "\x7f\x01\n",
                                         "same\n",
                                         "same\n",
                                         "\xe2\x80\xa8",
                                         "```\n{{}}\n"};
    unsigned count = next_random(state, 8);
    size_t len = 0;
    for (unsigned i = 0; i < count; i++) {
        const char *piece = pieces[next_random(state, NG_COUNT(pieces))];
        memcpy(out + len, piece, strlen(piece));
        len += strlen(piece);
    }
    out[len] = '\0';
}

static void random_cell(unsigned *state, struct model *model, struct model_cell *cell)
{
    memset(cell, 0, sizeof(*cell));
    cell->type = 1 + next_random(state, 3);
    cell->one_string = model->one_string;
    (void)snprintf(cell->id, sizeof(cell->id), "c%u-%u", next_random(state, 30000),
                   next_random(state, 30000));
    random_text(state, cell->source);
    cell->count = -1;
    if (cell->type == NB_CODE && next_random(state, 2) == 0) {
        cell->outputs = (int)next_random(state, 3);
        cell->count = (int)next_random(state, 100);
    }
}

static void random_model(unsigned *state, struct model *model)
{
    static const char *const indents[] = {" ", "  ", "    ", "\t", ""};
    memset(model, 0, sizeof(*model));
    model->ids = next_random(state, 3) > 0;
    model->unsorted = next_random(state, 2) == 0;
    model->one_string = next_random(state, 3) == 0;
    model->marked = next_random(state, 4) == 0;
    struct nb_style *style = &model->style;
    style->flat = next_random(state, 4) == 0;
    (void)snprintf(style->newline, sizeof(style->newline), "%s",
                   next_random(state, 3) == 0 ? "\r\n" : "\n");
    if (!style->flat) {
        (void)snprintf(style->indent, sizeof(style->indent), "%s",
                       indents[next_random(state, NG_COUNT(indents))]);
    }
    style->space_comma = next_random(state, 2) == 0;
    style->space_colon = next_random(state, 4) > 0;
    style->ascii = next_random(state, 3) == 0;
    model->count = 2 + next_random(state, MODEL_CELLS - 3);
    for (size_t i = 0; i < model->count; i++) {
        random_cell(state, model, &model->cells[i]);
    }
    /* Something to learn the form from. */
    (void)snprintf(model->cells[0].source, MODEL_TEXT, "first\nof all");
    (void)snprintf(model->cells[1].source, MODEL_TEXT, "second\n");
    model->cells[0].type = NB_CODE;
    model->cells[1].type = NB_MARKDOWN;
    model->cells[1].outputs = 0;
    model->cells[1].count = -1;
}

static void model_remove(struct model *model, size_t index)
{
    model->count--;
    memmove(&model->cells[index], &model->cells[index + 1],
            (model->count - index) * sizeof(model->cells[0]));
}

static void model_insert(struct model *model, size_t index, const struct model_cell *cell)
{
    memmove(&model->cells[index + 1], &model->cells[index],
            (model->count - index) * sizeof(model->cells[0]));
    model->cells[index] = *cell;
    model->count++;
}

/* The same edit on both. */
static void edit_both(unsigned *state, struct model *model, const struct nb *nb,
                      struct nb_edit *edit)
{
    size_t at = next_random(state, (unsigned)model->count);
    size_t to = next_random(state, (unsigned)model->count);
    struct model_cell cell = model->cells[at];
    bool gone[MODEL_CELLS] = {false};
    struct nb_text json = {0};
    switch (next_random(state, 6)) {
    case 0:
        random_text(state, model->cells[at].source);
        nb_set_source(edit, nb, at, str(model->cells[at].source));
        break;
    case 1:
        random_cell(state, model, &cell);
        cell.outputs = 0;
        cell.count = -1;
        to = next_random(state, (unsigned)model->count + 1);
        nb_insert_cell(edit, nb, to, cell.type, model->ids ? str(cell.id) : str(""),
                       str(cell.source));
        model_insert(model, to, &cell);
        break;
    case 2:
        nb_move_cell(edit, nb, at, to);
        model_remove(model, at);
        model_insert(model, to, &cell);
        break;
    case 3:
        for (size_t i = model->count; i > 2; i--) { /* the two first stay */
            gone[i - 1] = next_random(state, 2) == 0;
            if (gone[i - 1]) {
                model_remove(model, i - 1);
            }
        }
        nb_delete_cells(edit, nb, gone);
        break;
    case 4:
        nb_clear_outputs(edit, nb, at);
        model->cells[at].outputs = 0;
        model->cells[at].count = -1;
        break;
    default:
        while (at < model->count && model->cells[at].type != NB_CODE) {
            at++;
        }
        if (at == model->count) {
            break; /* there is none from there on */
        }
        model->cells[at].outputs = (int)next_random(state, 3);
        model->cells[at].count = (int)next_random(state, 50) - 1;
        add_outputs(&json, model->cells[at].outputs);
        nb_set_outputs(edit, nb, at, nb_text_str(&json), model->cells[at].count);
        nb_text_done(&json);
        break;
    }
}

static void check_index(const struct nb *nb, const struct model *model)
{
    assert_int_equal(nb->cell_count, model->count);
    assert_int_equal(nb->style.flat, model->style.flat);
    assert_string_equal(nb->style.indent, model->style.indent);
    assert_int_equal(nb->style.one_string, model->one_string);
    assert_int_equal(nb->style.ascii, model->style.ascii);
    for (size_t i = 0; i < model->count; i++) {
        assert_int_equal(nb->cells[i].type, model->cells[i].type);
        assert_int_equal(nb->cells[i].output_count, model->cells[i].outputs);
        source_is(nb, i, model->cells[i].source);
    }
}

static void test_every_layout(void **state)
{
    (void)state;
    unsigned random = 7;
    for (int round = 0; round < 1500; round++) {
        struct model model;
        random_model(&random, &model);
        struct nb_text file = model_file(&model);
        for (int step = 0; step < 6 && model.count < MODEL_CELLS; step++) {
            struct nb nb;
            struct nb_edit edit = {0};
            index_good(nb_text_str(&file), &nb);
            check_index(&nb, &model);
            edit_both(&random, &model, &nb, &edit);
            struct nb_text after = applied(&nb, &edit);
            struct nb_text want = model_file(&model);
            equal(nb_text_str(&after), nb_text_str(&want));
            nb_text_done(&want);
            nb_done(&nb);
            nb_text_done(&file);
            file = after;
        }
        nb_text_done(&file);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_layout),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
