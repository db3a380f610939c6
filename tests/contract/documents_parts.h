/* SPDX-License-Identifier: MIT */
/* documents_parts.h - shared by the parts of the documents suite. */
#ifndef NOTEGATE_TEST_DOCUMENTS_PARTS_H
#define NOTEGATE_TEST_DOCUMENTS_PARTS_H

#include "backend_fixture.h"
#include "faulty_backend.h"

int documents_setup(void **state);
int documents_teardown(void **state);
/* One more store of the same kind, to be closed by the test. */
void documents_second(struct fixture *fixture);

/* A query over things in the space team: no conditions, limit 100. */
static inline struct ng_query documents_query(void)
{
    struct ng_query query = {
        .size = sizeof(query),
        .collection = {"things", 6},
        .space = {"team", 4},
        .limit = 100,
    };
    return query;
}

/* Each commit takes milliseconds: a server, or the wrapper with its faults. What is repeated
 * many times for the sake of files is repeated less there. */
static inline bool documents_slow(const struct fixture *fixture)
{
    return fixture->docs == &faulty_documents ||
           (fixture->docs->flags & NG_DOCUMENTS_SHARED) != 0;
}

/* Adds " run R key K request Q +A -B", without what is not known. */
void documents_log_origin(struct buf *log, const struct ng_origin *origin);

int documents_origin_contract(void);
int documents_splices_contract(void);
int documents_query_contract(void);
int documents_trail_contract(void);
int documents_upkeep_contract(void);
int documents_shared_contract(void);

#endif
