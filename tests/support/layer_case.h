/* SPDX-License-Identifier: MIT */
/* layer_case.h - arrays of floats for tests of layers, and the slope of a loss along them. */
#ifndef LAYER_CASE_H
#define LAYER_CASE_H

#include "layer/rows.h"
#include "support/guarded.h"

/* n floats between guard bytes; or, in every second one, floats that end where their memory
 * does, so that a sanitizer sees a read past them. */
struct floats {
    struct block block;
    float *memory, *at;
    size_t n;
};

/* Normal draws times `scale`. */
struct floats floats_open(size_t n, double scale, struct tn_random *random);
void floats_close(struct floats *floats);

/* Sets of sizes and threads that a layer must not stumble over. */
extern const size_t awkward_rows[], awkward_widths[], awkward_threads[];
enum { AWKWARD_ROWS = 6, AWKWARD_WIDTHS = 9, AWKWARD_THREADS = 3 };

/* |got - want| <= tolerance max(1, |want|), for n of them. */
void check_floats(const char *what, const float *got, const double *want, size_t n,
                  double tolerance);
void check_bits(const char *what, const float *a, const float *b, size_t n);

double *doubles_of(const float *x, size_t n);

/* The sum of x y. */
double dot_product(const float *x, const float *y, size_t n);

/* <dx, u> is the slope of the loss along a random u of +-1, within `tolerance` |dx|. x is as
 * before afterwards. */
typedef double loss_of(void *arg);
void check_slope(const char *what, loss_of *loss, void *arg, float *x, const float *dx,
                 size_t n, double tolerance, struct tn_random *random);

#endif
