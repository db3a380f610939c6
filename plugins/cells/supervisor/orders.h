/* SPDX-License-Identifier: MIT */
/*
 * orders.h - what the gateway and the process that holds its kernels say to each other: one
 * message a packet, on a socket of type SOCK_SEQPACKET. Both are built together.
 */
#ifndef NOTEGATE_PLUGIN_CELLS_ORDERS_H
#define NOTEGATE_PLUGIN_CELLS_ORDERS_H

#include <stdint.h>

/* The socket in the holder. */
#define HOLDER_FD 3
#define HOLDER_PROGRAM "notegate-kernels"
#define HOLDER_PACKET_MAX 131072
#define HOLDER_KERNELS_MAX 256
/* Of what a kernel wrote to its standard output and error: the last bytes, told when it ends.
 */
#define HOLDER_TAIL_MAX 8192
/* In the environment of a kernel and all it starts: who they belong to, as "OWNER.ID": the
 * holder's only argument, which says which gateway, and the number of the kernel. */
#define HOLDER_MARK "NOTEGATE_KERNEL"
#define HOLDER_OWNER_MAX 128

enum holder_order_kind {
    HOLDER_START =
        1, /* behind the head: folder, `argc` words, `envc` variables, each with NUL */
    HOLDER_SIGNAL = 2 /* to the kernel and its process group */
};

struct holder_order {
    uint32_t kind;
    uint32_t id; /* of the kernel: the gateway's number for it */
    int32_t signal;
    uint32_t argc, envc;
};

enum holder_news_kind {
    HOLDER_STARTED = 1, /* value: process id */
    HOLDER_FAILED = 2,  /* value: errno of what did not go; it never ran */
    HOLDER_ENDED = 3    /* value: status as of waitpid(); behind it the tail of its output */
};

struct holder_news {
    uint32_t kind;
    uint32_t id;
    int32_t value;
    uint32_t tail; /* bytes that follow */
};

#endif
