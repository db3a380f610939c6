/* SPDX-License-Identifier: MIT */
/* zeromq.c - resolves libzmq's functions by name. The library is never unloaded. */
#include "zeromq.h"

#include <dlfcn.h>
#include <string.h>

#define LIBRARY "libzmq.so.5"

const char *zeromq_load(struct zeromq *zmq)
{
    void *library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
        return dlerror();
    }
    const struct {
        const char *name;
        void *member;
    } functions[] = {
        {"zmq_ctx_new", &zmq->ctx_new},
        {"zmq_ctx_term", &zmq->ctx_term},
        {"zmq_socket", &zmq->socket},
        {"zmq_close", &zmq->close},
        {"zmq_setsockopt", &zmq->setsockopt},
        {"zmq_connect", &zmq->connect},
        {"zmq_poll", &zmq->poll},
        {"zmq_msg_init", &zmq->msg_init},
        {"zmq_msg_recv", &zmq->msg_recv},
        {"zmq_msg_close", &zmq->msg_close},
        {"zmq_msg_data", &zmq->msg_data},
        {"zmq_msg_size", &zmq->msg_size},
        {"zmq_msg_more", &zmq->msg_more},
        {"zmq_send", &zmq->send},
        {"zmq_errno", &zmq->error},
        {"zmq_strerror", &zmq->strerror},
    };
    for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
        void *function = dlsym(library, functions[i].name);
        if (function == NULL) {
            (void)dlclose(library);
            return "libzmq lacks a function that is needed: it is older than 4.0";
        }
        memcpy(functions[i].member, &function, sizeof(function));
    }
    zmq->library = library;
    return NULL;
}
