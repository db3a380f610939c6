/* SPDX-License-Identifier: MIT */
/*
 * hub.h - a documents backend that several gateways of one test program share: each open() is a
 * gateway's view of the same data, with a queue and a thread of its own, as of a database
 * server that is a round trip away.
 *
 * It is a module (tests/modules/hub.so, documents=PATH), so that whole gateways can use it.
 */
#ifndef NOTEGATE_TEST_HUB_H
#define NOTEGATE_TEST_HUB_H

#include "notegate/backend.h"

#define HUB_MODULE NOTEGATE_BUILD "/tests/modules/hub.so"

/* The module's symbol hub_control. All but `hook` may be called at any time. */
struct hub_control {
    /* Takes this long to answer, each time. */
    void (*delay)(int64_t microseconds);
    /* Does not answer: everything is NG_EUNAVAILABLE at once. */
    void (*away)(bool away);
    /* Commits that change the one collection, and queries of the other, are NG_EUNAVAILABLE;
     * NULL: none. The names stay. */
    void (*refuse)(const char *commits, const char *queries);
    /* Commits that change this collection are made, and answered as if nobody knew
     * (NG_ETIMEOUT). A text that stays; NULL: none. */
    void (*unanswered)(const char *collection);
    /* Tells no sequence number with a commit. */
    void (*unnumbered)(bool unnumbered);
    /* Runs in front of each round trip of any gateway that changes the collection "things", on
     * that gateway's thread. */
    void (*hook)(void (*hook)(void *user), void *user);
    /* Round trips with commits, and commits in them. */
    uint64_t (*trips)(void);
    uint64_t (*commits)(void);
};

/* The control of the module as this process has loaded it. */
const struct hub_control *hub_load(void);
/* Anything the test wants: all as at first. */
void hub_reset(void);

#endif
