/* SPDX-License-Identifier: MIT */
/* hub.c - the test's side of the shared backend: finding the module's controls. */
#include "hub.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

const struct hub_control *hub_load(void)
{
    setenv("NOTEGATE_TEST_MODULES", NOTEGATE_MODULES, 0);
    void *module = dlopen(HUB_MODULE, RTLD_NOW | RTLD_LOCAL);
    const struct hub_control *control = module == NULL ? NULL : dlsym(module, "hub_control");
    if (control == NULL) {
        (void)fprintf(stderr, "%s: %s\n", HUB_MODULE, dlerror());
        abort();
    }
    return control; /* the module stays: gateways load it too */
}

void hub_reset(void)
{
    const struct hub_control *control = hub_load();
    control->hook(NULL, NULL);
    control->delay(0);
    control->away(false);
    control->refuse(NULL, NULL);
    control->unnumbered(false);
    control->unanswered(NULL);
}
