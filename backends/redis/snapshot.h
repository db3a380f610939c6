/* SPDX-License-Identifier: MIT */
/* snapshot.h - between dumping and restoring. */
#ifndef NOTEGATE_REDIS_SNAPSHOT_H
#define NOTEGATE_REDIS_SNAPSHOT_H

/* The same form as that of a journal kept in documents, so that either can restore it. */
#define REDIS_DUMP_FORMAT "notegate-journal-1"

#endif
