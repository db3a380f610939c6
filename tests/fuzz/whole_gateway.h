/* SPDX-License-Identifier: MIT */
/* whole_gateway.h - a gateway with plugins and documents for a fuzz target, in a folder of its
 * own that goes with the process. */
#ifndef NOTEGATE_FUZZ_WHOLE_GATEWAY_H
#define NOTEGATE_FUZZ_WHOLE_GATEWAY_H

#include "core/call/gateway.h"

#define WHOLE_FOLDER_SIZE 256

struct whole_gateway {
    struct gateway *gateway;
    char folder[WHOLE_FOLDER_SIZE]; /* the data are in it */
};

/* Below TMPDIR; aborts where there is none. */
void whole_folder(char folder[WHOLE_FOLDER_SIZE]);
/* In `folder`, which whole_folder() made. sets: "key=value" of the configuration, NULL at the
 * end. Aborts where it does not open. */
void whole_gateway_open(struct whole_gateway *whole, const char *const *sets);
/* Waits for its calls. False: some do not end, and it stays open. */
bool whole_gateway_drain(struct whole_gateway *whole);
/* After that; removes the folder. */
void whole_gateway_close(struct whole_gateway *whole, bool drained);

#endif
