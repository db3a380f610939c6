/* SPDX-License-Identifier: MIT */
/* kernel_messages.c - messages to and from one kernel. */
#include "core/base/str.h"
#include "kernel_state.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

/* Messages of one channel that are handled before other channels. */
#define RECEIVE_BATCH 500

bool kernel_send(struct kernel *kernel, enum kernel_channel channel, const char *type,
                 struct ng_str content, char ret_id[WIRE_ID_SIZE])
{
    struct zeromq *zmq = &kernel->kernels->zmq;
    void *socket = kernel->sockets[channel];
    struct wire_out out;
    if (socket == NULL || !wire_make(&out, &kernel->key, kernel->session, type, content)) {
        return false;
    }
    const struct ng_str frames[] = {
        ng_str_of(WIRE_DELIMITER), ng_str_of(out.signature), nb_text_str(&out.header),
        ng_str_of("{}"),           ng_str_of("{}"),          nb_text_str(&out.content),
    };
    bool good = true;
    for (size_t i = 0; i < NG_COUNT(frames) && good; i++) {
        int flags = ZMQ_DONTWAIT | ZMQ_SNDMORE;
        if (i + 1 == NG_COUNT(frames)) {
            flags = ZMQ_DONTWAIT;
        }
        good = zmq->send(socket, frames[i].data, frames[i].len, flags) >= 0;
    }
    if (ret_id != NULL) {
        memcpy(ret_id, out.id, WIRE_ID_SIZE);
    }
    wire_out_done(&out);
    return good;
}

bool kernel_has_stdin(struct kernel *kernel)
{
    zmq_pollitem_t item = {.socket = kernel->sockets[CHANNEL_STDIN], .events = ZMQ_POLLOUT};
    return kernel->kernels->zmq.poll(&item, 1, 0) == 1;
}

static bool is_word(struct ng_str json, const char *name, const char *word)
{
    struct nb_span whole = {0, json.len};
    return nb_is_word(json, nb_member(json, whole, name), word);
}

static void take_count(struct kernel *kernel, struct ng_str content)
{
    struct execution *execution = &kernel->execution;
    struct nb_span whole = {0, content.len};
    int64_t count = 0;
    if (execution->run != NULL &&
        nb_integer(content, nb_member(content, whole, "execution_count"), &count)) {
        execution->run->cells[execution->run->at].count = count;
    }
}

/* Keeps pager text for the answer (files do not store it), and notes that the code called
 * quit(). */
static void take_payloads(struct kernel *kernel, struct ng_str content)
{
    struct execution *execution = &kernel->execution;
    struct nb_span whole = {0, content.len};
    struct nb_span list = nb_member(content, whole, "payload");
    struct nb_span payload;
    if (execution->run == NULL || list.len == 0 || content.data[list.at] != '[') {
        return;
    }
    struct run_cell *cell = &execution->run->cells[execution->run->at];
    struct nb_walk walk = nb_walk_into(content, list);
    while (nb_walk_element(&walk, &payload)) {
        struct nb_span source = nb_member(content, payload, "source");
        struct nb_span keep = nb_member(content, payload, "keepkernel");
        if (nb_is_word(content, source, "ask_exit")) {
            execution->exits = keep.len == 0 || content.data[keep.at] != 't';
        } else if (nb_is_word(content, source, "page")) {
            struct nb_span data = nb_member(content, payload, "data");
            (void)nb_decode_lines(&cell->page, content, nb_member(content, data, "text/plain"));
        }
    }
}

static void take_reply(struct kernel *kernel, const struct wire_message *message)
{
    struct execution *execution = &kernel->execution;
    struct ng_str content = message->content;
    execution->replied_ms = kernel_now_ms();
    take_count(kernel, content);
    take_payloads(kernel, content);
    if (is_word(content, "status", "aborted")) {
        execution->reply = REPLY_ABORTED;
    } else if (is_word(content, "status", "ok")) {
        execution->reply = REPLY_OK;
    } else {
        execution->reply = REPLY_ERROR;
        execution->error.len = 0;
        nb_add_str(&execution->error, content);
    }
}

static void take_shell(struct kernel *kernel, const struct wire_message *message)
{
    struct execution *execution = &kernel->execution;
    if (str_is(message->type, "kernel_info_reply")) {
        kernel->info_replied = true;
        if (execution->run == NULL && execution->probe[0] != '\0' &&
            str_is(message->parent_id, execution->probe)) {
            execution->active = false;
        }
    } else if (str_is(message->type, "execute_reply") && execution->active &&
               str_is(message->parent_id, execution->id)) {
        take_reply(kernel, message);
    }
}

static void take_iopub(struct kernel *kernel, const struct wire_message *message)
{
    struct execution *execution = &kernel->execution;
    kernel->iopub_seen = true;
    bool ours = execution->active && str_is(message->parent_id, execution->id);
    if (str_is(message->type, "status")) {
        if (ours && execution->idle_ms == 0 &&
            is_word(message->content, "execution_state", "idle")) {
            execution->idle_ms = kernel_now_ms();
        }
    } else if (str_is(message->type, "execute_input")) {
        if (ours) {
            execution->begun = true;
            take_count(kernel, message->content);
        }
    } else {
        kernel_take_output(kernel, message);
    }
}

/* Kernels that ignore allow_stdin:false get an empty answer. */
static void take_stdin(struct kernel *kernel, const struct wire_message *message)
{
    if (str_is(message->type, "input_request")) {
        (void)kernel_send(kernel, CHANNEL_STDIN, "input_reply", ng_str_of("{\"value\":\"\"}"),
                          NULL);
    }
}

static void dispatch(struct kernel *kernel, enum kernel_channel channel,
                     const struct wire_message *message)
{
    switch (channel) {
    case CHANNEL_SHELL:
        take_shell(kernel, message);
        break;
    case CHANNEL_IOPUB:
        take_iopub(kernel, message);
        break;
    case CHANNEL_STDIN:
        take_stdin(kernel, message);
        break;
    default:
        break; /* replies on control are not used */
    }
}

/* Receives one message with all its frames. False: there is none. */
static bool receive_one(struct kernel *kernel, enum kernel_channel channel)
{
    struct zeromq *zmq = &kernel->kernels->zmq;
    zmq_msg_t parts[WIRE_FRAMES_MAX];
    zmq_msg_t rest; /* receives further frames; the message is dropped */
    struct ng_str frames[WIRE_FRAMES_MAX];
    size_t count = 0;
    bool more = true;
    bool fits = true;
    while (more) {
        zmq_msg_t *part = &rest;
        if (count < WIRE_FRAMES_MAX) {
            part = &parts[count];
        }
        (void)zmq->msg_init(part);
        if (zmq->msg_recv(part, kernel->sockets[channel], ZMQ_DONTWAIT) < 0) {
            (void)zmq->msg_close(part);
            break;
        }
        more = zmq->msg_more(part) != 0;
        if (part == &rest) {
            fits = false;
            (void)zmq->msg_close(part);
            continue;
        }
        frames[count].data = zmq->msg_data(part);
        frames[count].len = zmq->msg_size(part);
        count++;
    }
    struct wire_message message;
    if (count > 0) {
        kernel->received_ms = kernel_now_ms();
    }
    if (count > 0 && fits && wire_parse(frames, count, &kernel->key, &message)) {
        dispatch(kernel, channel, &message);
    }
    for (size_t i = 0; i < count; i++) {
        (void)zmq->msg_close(&parts[i]);
    }
    return count > 0;
}

bool kernel_receive(struct kernel *kernel)
{
    /* Shell last: output that was published before a reply is handled before it. */
    static const enum kernel_channel order[] = {CHANNEL_IOPUB, CHANNEL_STDIN, CHANNEL_CONTROL,
                                                CHANNEL_SHELL};
    bool more = false;
    for (size_t i = 0; i < NG_COUNT(order) && kernel->sockets[order[i]] != NULL; i++) {
        int batch = 0;
        while (batch < RECEIVE_BATCH && receive_one(kernel, order[i])) {
            batch++;
        }
        more = more || batch == RECEIVE_BATCH;
    }
    return more;
}

/* These exit on a signal, or ignore the interrupt_mode of their kernel.json. */
static bool wants_message(const struct kernelspec *spec)
{
    return spec->message_interrupt || strncmp(spec->name, "deno", 4) == 0 ||
           strncmp(spec->name, "xpython", 7) == 0;
}

void kernel_interrupt(struct kernel *kernel)
{
    kernel->execution.interrupted_ms = kernel_now_ms();
    if (wants_message(&kernel->spec)) {
        (void)kernel_send(kernel, CHANNEL_CONTROL, "interrupt_request", ng_str_of("{}"), NULL);
    } else {
        (void)supervisor_signal(&kernel->kernels->supervisor, kernel->id, SIGINT);
    }
}
