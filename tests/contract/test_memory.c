/* SPDX-License-Identifier: MIT */
/* test_memory.c - the documents suite on the sqlite backend in memory. */
#include "documents_contract.h"

int main(void)
{
    static const char *const sets[] = {"documents=memory", NULL};
    return documents_contract("sqlite", sets);
}
