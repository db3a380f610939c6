/* SPDX-License-Identifier: MIT */
/* build_info.h - which sources the program was built from. Texts of the program; any thread. */
#ifndef NOTEGATE_API_BUILD_INFO_H
#define NOTEGATE_API_BUILD_INFO_H

/* "0.2.0 (4ebeec6e, 2026-11-28)"; without the part in parentheses where it is not known. */
const char *build_version(void);
/* As `git describe` names the commit; "": not known. */
const char *build_commit(void);
/* The day of the commit, as 2026-11-28; "": not known. */
const char *build_date(void);

#endif
