/* SPDX-License-Identifier: MIT */
/* documents_contract.h - requirements on every documents backend. */
#ifndef NOTEGATE_TEST_DOCUMENTS_CONTRACT_H
#define NOTEGATE_TEST_DOCUMENTS_CONTRACT_H

#include "backend_fixture.h"

/* Runs the suite on the module, plain and behind the fault-injecting wrapper. `sets`: its
 * configuration, NULL at the end. Returns the number of failed tests. */
int documents_contract(const char *module_name, const char *const *sets);

/* For the suites after it: the server shows no earlier state, so reads of several collections
 * are not of one moment. */
void documents_contract_without_moments(void);

/* A part of the suite: several programs run a slow backend's suite at the same time. */
enum documents_part {
    DOCUMENTS_CHANGES,
    DOCUMENTS_WRAPPED, /* changes and reads behind the wrapper */
    DOCUMENTS_REST,    /* queries, upkeep, several stores on one database */
};
int documents_contract_part(const char *module_name, const char *const *sets,
                            enum documents_part part);

#endif
