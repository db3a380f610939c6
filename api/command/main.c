/* SPDX-License-Identifier: MIT */
/* main.c - the one binary. */
#include "commands.h"

int main(int argc, char **argv)
{
    return command_main(argc, argv);
}
