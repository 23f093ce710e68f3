/* SPDX-License-Identifier: MIT */
/* testing.h - cmocka with the headers that it needs, and what every test wants. */
#ifndef TESTING_H
#define TESTING_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "kernel/host.h"

/* Zeroed, never NULL, freed by free(). */
void *take(size_t count, size_t size);

/* Uniform in 0 .. n-1. */
size_t below(struct tn_random *random, size_t n);

size_t one_of(const size_t *values, size_t count, struct tn_random *random);

#define ONE_OF(random, ...)                                                                    \
    one_of((const size_t[]){__VA_ARGS__},                                                      \
           sizeof((const size_t[]){__VA_ARGS__}) / sizeof(size_t), random)

/* The instruction set that TARN_CPU forces; NULL: the best. */
const char *forced_cpu(void);

/* A host with malloc() that lives as long as the calling thread; threads 0: all. */
const struct tn_host *host_of(const struct tn_kernels *kernels, size_t threads);
const struct tn_host *forced_host(size_t threads); /* of forced_cpu() */

/* Fails unless `status` is TARN_OK, with the error's text. */
void check_ok(tarn_status status, const tarn_error *err);

#endif
