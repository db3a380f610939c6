/* SPDX-License-Identifier: MIT */
/* plain_call.c - calls of a gateway that keeps nothing, for fuzz targets of module code. */
#include "plain_call.h"

#include <stdlib.h>

#include "core/call/call.h"
#include "test_gateway.h"

struct ng_call *plain_call_begin(void)
{
    static struct gateway *gateway;
    if (gateway == NULL) {
        gateway = test_gateway_open(NULL);
    }
    struct call *call = gateway == NULL ? NULL : call_new(gateway);
    if (call == NULL) {
        abort();
    }
    return &call->pub;
}

void plain_call_end(struct ng_call *call)
{
    call_unref(call_of(call));
}

bool plain_call_failed(const struct ng_call *call)
{
    return call_of((struct ng_call *)(uintptr_t)call)->staged.message.len > 0;
}
