/* SPDX-License-Identifier: MIT */
/* test_keys_rig.c - shared code of test_keys*.c; see the header.
 */
#include "test_keys_rig.h"

#include "core/base/clock.h"
#include "core/base/str.h"

const char *const plain[] = {"plugins=notebook", "documents=memory", NULL};

static const struct ng_str two_spaces[] = {{"~ada", 4}, {"team", 4}};

struct key_spec spec_of(const char *agent)
{
    struct key_spec spec = {
        .agent = ng_str_of(agent),
        .role = NG_ROLE_WRITER,
        .mode = NG_MODE_AGENT,
        .spaces = two_spaces,
        .space_count = 2,
        .created_ms = clock_unix_ms(),
    };
    return spec;
}
