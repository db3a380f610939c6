/* SPDX-License-Identifier: MIT */
/* zeromq.h - libzmq, loaded with the first kernel: a gateway without kernels does not need
 * it. */
#ifndef NOTEGATE_PLUGIN_CELLS_ZEROMQ_H
#define NOTEGATE_PLUGIN_CELLS_ZEROMQ_H

#include <zmq.h>

struct zeromq {
    void *library;
    __typeof__(&zmq_ctx_new) ctx_new;
    __typeof__(&zmq_ctx_term) ctx_term;
    __typeof__(&zmq_socket) socket;
    __typeof__(&zmq_close) close;
    __typeof__(&zmq_setsockopt) setsockopt;
    __typeof__(&zmq_connect) connect;
    __typeof__(&zmq_poll) poll;
    __typeof__(&zmq_msg_init) msg_init;
    __typeof__(&zmq_msg_recv) msg_recv;
    __typeof__(&zmq_msg_close) msg_close;
    __typeof__(&zmq_msg_data) msg_data;
    __typeof__(&zmq_msg_size) msg_size;
    __typeof__(&zmq_msg_more) msg_more;
    __typeof__(&zmq_send) send;
    __typeof__(&zmq_errno) error;
    __typeof__(&zmq_strerror) strerror;
};

/* NULL: loaded. Otherwise the reason: static text or dlerror()'s, valid until the next call. */
const char *zeromq_load(struct zeromq *zmq);

#endif
