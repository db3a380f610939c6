/* SPDX-License-Identifier: MIT */
/* supervisor_protocol.h - packets between the gateway and its supervisor, on a socket of type
 * SOCK_SEQPACKET. Both programs are built together. */
#ifndef NOTEGATE_PLUGIN_CELLS_SUPERVISOR_PROTOCOL_H
#define NOTEGATE_PLUGIN_CELLS_SUPERVISOR_PROTOCOL_H

#include <stdint.h>

/* Descriptor of the socket in the supervisor. */
#define SUPERVISOR_FD 3
#define SUPERVISOR_PROGRAM "notegate-kernels"
#define SUPERVISOR_PACKET_MAX 131072
#define SUPERVISOR_KERNELS_MAX 256
/* Last bytes of a kernel's standard output and error, reported at its exit. */
#define SUPERVISOR_TAIL_MAX 8192
/* Environment variable of a kernel and its descendants, "OWNER.ID": the supervisor's only
 * argument, which identifies the gateway, and the number of the kernel. */
#define SUPERVISOR_MARK "NOTEGATE_KERNEL"
#define SUPERVISOR_OWNER_MAX 128

enum supervisor_request_kind {
    SUPERVISOR_START =
        1, /* followed by folder, `argc` words and `envc` variables, each with NUL */
    SUPERVISOR_SIGNAL = 2 /* to the kernel's process group */
};

struct supervisor_request {
    uint32_t kind;
    uint32_t id; /* number of the kernel */
    int32_t signal;
    uint32_t argc, envc;
};

enum supervisor_event_kind {
    SUPERVISOR_STARTED = 1, /* value: process id */
    SUPERVISOR_FAILED = 2,  /* value: errno of the failed step */
    SUPERVISOR_EXITED = 3   /* value: status of waitpid(); followed by the tail of the output */
};

struct supervisor_event_head {
    uint32_t kind;
    uint32_t id;
    int32_t value;
    uint32_t tail; /* bytes that follow */
};

#endif
