/* SPDX-License-Identifier: MIT */
/* test_sqlite.c - the documents suite on sqlite's file. */
#include "documents_contract.h"

int main(void)
{
    return documents_contract("sqlite", NULL);
}
