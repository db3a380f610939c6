/* SPDX-License-Identifier: MIT */
/* test_cells_late.c - output that a thread of an ended cell produces: no line of it is lost,
 * whichever cell it is added to. The states of the kernel thread are entered by hand, so that a
 * line comes in each of them. */
#include "harness.h"
#include "kernel/kernel_state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct bench {
    struct kernels kernels;
    struct kernel kernel;
};

static struct run *new_run(struct bench *bench, const char *first, const char *second)
{
    const char *handles[] = {first, second};
    struct run *run = calloc(1, sizeof(*run));
    assert_non_null(run);
    run->cell_count = second != NULL ? 2 : 1;
    run->cells = calloc(run->cell_count, sizeof(*run->cells));
    assert_non_null(run->cells);
    for (size_t i = 0; i < run->cell_count; i++) {
        (void)snprintf(run->cells[i].handle, sizeof(run->cells[i].handle), "%s", handles[i]);
    }
    run->state = RUN_RUNNING;
    bench->kernel.previous.id[0] = '\0';
    bench->kernel.first = run;
    bench->kernel.queued = 1;
    return run;
}

/* As begin_cell() does, but without a kernel to send to. */
static void begin(struct bench *bench, struct run *run, const char *id)
{
    struct execution *execution = &bench->kernel.execution;
    memset(execution, 0, sizeof(*execution));
    outputs_begin(&run->cells[run->at].outputs, 1000);
    run->cells[run->at].state = CELL_RUNNING;
    execution->run = run;
    execution->active = true;
    (void)snprintf(execution->id, sizeof(execution->id), "%s", id);
}

static void print_line(struct bench *bench, const char *parent, const char *line)
{
    char content[128];
    (void)snprintf(content, sizeof(content), "{\"name\":\"stdout\",\"text\":\"%s\"}", line);
    struct wire_message message = {.type = ng_str_of("stream"),
                                   .parent_id = ng_str_of(parent),
                                   .content = ng_str_of(content)};
    kernel_take_output(&bench->kernel, &message);
}

static void expect(const struct run_cell *cell, const char *handle, const char *text)
{
    assert_string_equal(cell->handle, handle);
    if (text[0] == '\0') {
        assert_int_equal(cell->outputs.count, 0);
        return;
    }
    assert_int_equal(cell->outputs.count, 1);
    struct ng_str has = nb_text_str(&cell->outputs.items[0].text);
    assert_int_equal(has.len, strlen(text));
    assert_memory_equal(has.data, text, has.len);
}

static void free_run(struct bench *bench, struct run *run)
{
    bench->kernels.ended = NULL;
    run_free(run);
}

static void close_bench(struct bench *bench)
{
    kernel_drop_late(&bench->kernel);
    free(bench->kernel.places);
}

/* The window between the end of a cell and the begin of the next one of its run: the source of
 * that one is being read. */
static void test_between_two_cells(void **state)
{
    struct bench bench = {.kernel.kernels = &bench.kernels};
    struct run *run = new_run(&bench, "a", "b");
    (void)state;
    begin(&bench, run, "id-a");
    print_line(&bench, "id-a", "1");
    kernel_cell_over(&bench.kernel, CELL_OK);
    assert_true(kernel_is_between_cells(&bench.kernel));
    print_line(&bench, "id-a", "2");
    print_line(&bench, "id-of-an-older-cell", "3");
    begin(&bench, run, "id-b");
    print_line(&bench, "id-a", "4");
    print_line(&bench, "id-b", "5");
    print_line(&bench, "id-of-an-older-cell", "6");
    expect(&run->cells[0], "a", "1234");
    expect(&run->cells[1], "b", "56");
    kernel_cell_over(&bench.kernel, CELL_OK);
    assert_int_equal(run->state, RUN_DONE);
    free_run(&bench, run);
    close_bench(&bench);
}

/* Nothing of this run was executed yet, so there is no preceding cell. */
static void test_before_the_first_cell(void **state)
{
    struct bench bench = {.kernel.kernels = &bench.kernels};
    struct run *run = new_run(&bench, "a", "b");
    (void)state;
    print_line(&bench, "id-unknown", "no cell has run");
    /* An empty cell is not sent: it has no request whose output could come. */
    begin(&bench, run, "");
    kernel_cell_over(&bench.kernel, CELL_OK);
    assert_true(kernel_is_between_cells(&bench.kernel));
    print_line(&bench, "id-unknown", "no cell has run");
    begin(&bench, run, "id-b");
    kernel_cell_over(&bench.kernel, CELL_OK);
    expect(&run->cells[0], "a", "");
    expect(&run->cells[1], "b", "");
    free_run(&bench, run);
    close_bench(&bench);
}

/* Between two runs it belongs to the cell that ran last, also if an older cell is its parent.
 */
static void test_between_two_runs(void **state)
{
    struct bench bench = {.kernel.kernels = &bench.kernels};
    struct run *run = new_run(&bench, "a", "b");
    (void)state;
    begin(&bench, run, "id-a");
    kernel_cell_over(&bench.kernel, CELL_OK);
    begin(&bench, run, "id-b");
    kernel_cell_over(&bench.kernel, CELL_OK);
    print_line(&bench, "id-b", "1");
    print_line(&bench, "id-a", "2");
    free_run(&bench, run);

    run = new_run(&bench, "c", NULL);
    print_line(&bench, "id-a", "3"); /* the run has begun, its cell has not */
    begin(&bench, run, "id-c");
    print_line(&bench, "id-b", "4");
    print_line(&bench, "id-a", "5");
    kernel_cell_over(&bench.kernel, CELL_OK);
    assert_non_null(run->late);
    expect(run->late, "b", "1234");
    expect(&run->cells[0], "c", "5");
    print_line(&bench, "id-b", "6");
    expect(&bench.kernel.late.cell, "c", "6");
    free_run(&bench, run);
    close_bench(&bench);
}

/* What comes after the end of a run goes to the watch, all of it each time, and at the latest
 * when the kernel ends. */
static void test_a_watch(void **state)
{
    struct bench bench = {.kernel.kernels = &bench.kernels, .kernel.state = KERNEL_READY};
    struct run watches[4] = {{.late = NULL}};
    struct run *run = new_run(&bench, "a", NULL);
    (void)state;
    begin(&bench, run, "id-a");
    print_line(&bench, "id-a", "0");
    kernel_cell_over(&bench.kernel, CELL_OK);
    free_run(&bench, run);
    bench.kernel.late.watch = &watches[0];
    kernel_advance_late(&bench.kernel, false);
    assert_null(bench.kernels.ended); /* nothing has come */
    print_line(&bench, "id-a", "1");
    bench.kernel.late.since_ms -= KERNEL_LATE_MS;
    kernel_advance_late(&bench.kernel, false);
    assert_ptr_equal(bench.kernels.ended, &watches[0]);
    assert_int_equal(watches[0].late->before, 1);
    expect(watches[0].late, "a", "1");
    bench.kernels.ended = NULL;
    /* All of it again, after twice the time. */
    bench.kernel.late.watch = &watches[1];
    print_line(&bench, "id-of-an-older-cell", "2");
    bench.kernel.late.since_ms -= KERNEL_LATE_MS;
    kernel_advance_late(&bench.kernel, false);
    assert_null(bench.kernels.ended);
    kernel_advance_late(&bench.kernel, true);
    expect(watches[1].late, "a", "12");
    bench.kernels.ended = NULL;
    /* The next run takes it over; the watch ends without any. */
    bench.kernel.late.watch = &watches[2];
    print_line(&bench, "id-a", "3");
    run = new_run(&bench, "b", NULL);
    begin(&bench, run, "id-b");
    kernel_cell_over(&bench.kernel, CELL_OK);
    assert_ptr_equal(bench.kernels.ended, &watches[2]);
    assert_null(watches[2].late);
    expect(run->late, "a", "123");
    free_run(&bench, run);
    /* The kernel exits. */
    bench.kernel.late.watch = &watches[3];
    print_line(&bench, "id-b", "4");
    kernel_set_state(&bench.kernel, KERNEL_GONE);
    assert_ptr_equal(bench.kernels.ended, &watches[3]);
    expect(watches[3].late, "b", "4");
    for (size_t i = 0; i < NG_COUNT(watches); i++) {
        if (watches[i].late != NULL) {
            run_cell_done(watches[i].late);
            free(watches[i].late);
        }
        run_patches_done(&watches[i].patches);
    }
    close_bench(&bench);
}

/* A run of which no cell was executed leaves the late output where it is. */
static void test_a_run_without_an_executed_cell(void **state)
{
    struct bench bench = {.kernel.kernels = &bench.kernels};
    struct run *run = new_run(&bench, "a", NULL);
    (void)state;
    begin(&bench, run, "id-a");
    kernel_cell_over(&bench.kernel, CELL_OK);
    free_run(&bench, run);
    print_line(&bench, "id-a", "1");
    run = new_run(&bench, "empty", NULL);
    begin(&bench, run, "");
    kernel_cell_over(&bench.kernel, CELL_OK);
    free_run(&bench, run);
    print_line(&bench, "id-a", "2");
    expect(&bench.kernel.late.cell, "a", "12");
    close_bench(&bench);
}

static void send_display(struct bench *bench, const char *type, const char *text)
{
    char content[256];
    (void)snprintf(content, sizeof(content),
                   "{\"data\":{\"text/plain\":\"%s\"},\"metadata\":{},"
                   "\"transient\":{\"display_id\":\"d\"}}",
                   text);
    struct wire_message message = {
        .type = ng_str_of(type), .parent_id = ng_str_of("id-a"), .content = ng_str_of(content)};
    kernel_take_output(&bench->kernel, &message);
}

/* A run that has begun saves it, also if it comes before its first cell is executed. */
static void test_update_of_a_display_before_the_first_cell(void **state)
{
    struct bench bench = {.kernel.kernels = &bench.kernels};
    struct run *run = new_run(&bench, "a", NULL);
    (void)state;
    begin(&bench, run, "id-a");
    send_display(&bench, "display_data", "one");
    kernel_cell_over(&bench.kernel, CELL_OK);
    free_run(&bench, run);

    run = new_run(&bench, "b", NULL);
    send_display(&bench, "update_display_data", "two");
    assert_int_equal(run->patches.count, 1);
    assert_string_equal(run->patches.items[0].handle, "a");
    begin(&bench, run, "id-b");
    kernel_cell_over(&bench.kernel, CELL_OK);
    assert_int_equal(run->patches.count, 1);
    free_run(&bench, run);
    close_bench(&bench);
}

/* A bar of a cell that has used its limit: its last state is there after the run, too. */
static void test_a_bar_at_the_limit(void **state)
{
    struct bench bench = {.kernel.kernels = &bench.kernels};
    struct run *run = new_run(&bench, "a", NULL);
    char content[1200];
    (void)state;
    begin(&bench, run, "id-a");
    struct wire_message message = {
        .type = ng_str_of("display_data"),
        .parent_id = ng_str_of("id-a"),
        .content = ng_str_of("{\"data\":{},\"transient\":{\"display_id\":\"d\"}}")};
    kernel_take_output(&bench.kernel, &message);
    for (int i = 0; i < 20; i++) {
        (void)snprintf(content, 100, "%098d", i);
        print_line(&bench, "id-a", content);
    }
    kernel_cell_over(&bench.kernel, CELL_OK);
    free_run(&bench, run);
    static const int digits[] = {100, 900, 1001, 1};
    for (size_t i = 0; i < NG_COUNT(digits); i++) {
        (void)snprintf(content, sizeof(content),
                       "{\"data\":{\"a\":\"%0*d\"},\"transient\":{\"display_id\":\"d\"}}",
                       digits[i], 1);
        message.type = ng_str_of("update_display_data");
        message.content = ng_str_of(content);
        kernel_take_output(&bench.kernel, &message);
        const struct run_patches *patches = &bench.kernel.late.patches;
        assert_int_equal(patches->count, 1);
        if (digits[i] < 1000) { /* else it is larger than the limit and stays as it is */
            assert_int_equal(patches->items[0].data.len, digits[i] + 8);
        }
    }
    close_bench(&bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_between_two_cells),
        cmocka_unit_test(test_before_the_first_cell),
        cmocka_unit_test(test_between_two_runs),
        cmocka_unit_test(test_a_watch),
        cmocka_unit_test(test_a_run_without_an_executed_cell),
        cmocka_unit_test(test_update_of_a_display_before_the_first_cell),
        cmocka_unit_test(test_a_bar_at_the_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
