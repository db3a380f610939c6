/* SPDX-License-Identifier: MIT */
/* module_run.c - the runs of a thread, innermost first. */
#include "module_run.h"

/* By thread: a signal handler has nothing else to find it by. */
/* NOLINTNEXTLINE(cppcoreguidelines-avoid-non-const-global-variables) */
_Thread_local struct module_run *module_run_innermost;
