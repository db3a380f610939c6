/* SPDX-License-Identifier: MIT */
/* faulty_backend.h - any documents backend, whose Nth call of a kind fails. */
#ifndef NOTEGATE_TEST_FAULTY_BACKEND_H
#define NOTEGATE_TEST_FAULTY_BACKEND_H

#include "notegate/backend.h"

enum fault {
    FAULT_NONE = 0,
    FAULT_BUSY,   /* commit() refuses */
    FAULT_COMMIT, /* done() says NG_EUNAVAILABLE, nothing is stored */
    FAULT_GET,
    FAULT_QUERY,
    FAULT_HISTORY,
    FAULT_CHANGES,
    FAULT_ANSWER,
    FAULT_SEARCH,
    FAULT_EXPORT,
    FAULT_IMPORT
};

/* Its functions take a handle of faulty_new(). open() is not offered. */
extern const struct ng_documents faulty_documents;

/* Wraps an open store, which stays the caller's until close() of the wrapper closes it. */
void *faulty_new(const struct ng_documents *inner, void *db);
/* The call of this kind after `after` more ones fails, once. */
void faulty_arm(void *faulty, enum fault fault, unsigned after);

#endif
