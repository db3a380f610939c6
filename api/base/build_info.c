/* SPDX-License-Identifier: MIT */
/* build_info.c - the one file that is compiled again after a commit. */
#include "build_info.h"

#include "build_info_made.h" /* packaging/cmake/BuildInfo.cmake */

const char *build_version(void)
{
    if (sizeof(BUILD_COMMIT) > 1) {
        return NOTEGATE_VERSION " (" BUILD_COMMIT ", " BUILD_DATE ")";
    }
    return NOTEGATE_VERSION;
}

const char *build_commit(void)
{
    return BUILD_COMMIT;
}

const char *build_date(void)
{
    return BUILD_DATE;
}
