/* SPDX-License-Identifier: MIT */
#include "support/program.h"

#undef exit

FILE *program_output;
jmp_buf program_end;

_Noreturn void program_exit(int code)
{
    longjmp(program_end, code + 1);
}
