/* SPDX-License-Identifier: MIT */
/*
 * supervisor_protocol.h - what the gateway and the process that holds its kernels say to each
 * other: one message a packet, on a socket of type SOCK_SEQPACKET. Both are built together.
 */
#ifndef NOTEGATE_PLUGIN_CELLS_SUPERVISOR_PROTOCOL_H
#define NOTEGATE_PLUGIN_CELLS_SUPERVISOR_PROTOCOL_H

#include <stdint.h>

/* The socket in the holder. */
#define SUPERVISOR_FD 3
#define SUPERVISOR_PROGRAM "notegate-kernels"
#define SUPERVISOR_PACKET_MAX 131072
#define SUPERVISOR_KERNELS_MAX 256
/* Of what a kernel wrote to its standard output and error: the last bytes, told when it ends.
 */
#define SUPERVISOR_TAIL_MAX 8192
/* In the environment of a kernel and all it starts: who they belong to, as "OWNER.ID": the
 * holder's only argument, which says which gateway, and the number of the kernel. */
#define SUPERVISOR_MARK "NOTEGATE_KERNEL"
#define SUPERVISOR_OWNER_MAX 128

enum supervisor_request_kind {
    SUPERVISOR_START =
        1, /* behind the head: folder, `argc` words, `envc` variables, each with NUL */
    SUPERVISOR_SIGNAL = 2 /* to the kernel and its process group */
};

struct supervisor_request {
    uint32_t kind;
    uint32_t id; /* of the kernel: the gateway's number for it */
    int32_t signal;
    uint32_t argc, envc;
};

enum supervisor_event_kind {
    SUPERVISOR_STARTED = 1, /* value: process id */
    SUPERVISOR_FAILED = 2,  /* value: errno of what did not go; it never ran */
    SUPERVISOR_EXITED = 3 /* value: status as of waitpid(); behind it the tail of its output */
};

struct supervisor_event_head {
    uint32_t kind;
    uint32_t id;
    int32_t value;
    uint32_t tail; /* bytes that follow */
};

#endif
