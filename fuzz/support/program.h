/* SPDX-License-Identifier: MIT */
/* program.h - included before every file of the program in fuzzers of it: it is silent, and
 * where it would end, the fuzzer continues. */
#ifndef FUZZ_PROGRAM_H
#define FUZZ_PROGRAM_H

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>

extern FILE *program_output;
extern jmp_buf program_end;

_Noreturn void program_exit(int code);
int program_main(int count, char **words);

#undef stdout
#undef stderr
#define stdout program_output
#define stderr program_output
#define exit program_exit
#define main program_main
#define atexit(function) ((void)(function), 0)

#endif
