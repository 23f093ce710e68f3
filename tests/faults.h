/* SPDX-License-Identifier: MIT */
/* faults.h - calls of the system that fail, for programs that faults.c is linked to. */
#ifndef TESTS_FAULTS_H
#define TESTS_FAULTS_H

enum call {
    MALLOC,
    WRITE,
    READ,
    FSYNC,
    RENAME,
    OPEN,
    CLOSE,
    FTRUNCATE,
    UNLINK,
    MKDIR,
    MEMORY,
    CALLS
};

struct fault {
    enum call call; /* CALLS: none */
    long from, length;
    int error; /* 0: half of the bytes */
};

extern const char *const call_names[CALLS];

/* Calls are counted from 0 again. */
void fault_set(struct fault fault);

/* How many calls failed since. */
long fault_count(void);

#endif
