/* SPDX-License-Identifier: MIT */
/* matmul_problem.h - a dense product with its arrays, and what must come of it. */
#ifndef MATMUL_PROBLEM_H
#define MATMUL_PROBLEM_H

#include "kernel/matmul.h"
#include "support/testing.h"

/* One product with its arrays. Elements between rows are NaN in a and b, `untouched` in c. */
struct matmul_problem {
    struct tn_matmul_desc desc;
    size_t a_rows, b_rows, a_floats, b_floats, c_floats;
    float *a, *b, *bias, *c, *old;
    double *want, *size; /* m x n: what must come out, and how large its terms are */
};

/* Random arrays for a desc. */
void matmul_problem_init(struct matmul_problem *p, struct tn_matmul_desc desc,
                         struct tn_random *random);
void matmul_problem_clear(struct matmul_problem *p);

/* Runs the plan, with misaligned scratch and b packed if it wants that, on a copy of the old c
 * in `c`: p->c or its like. */
void matmul_problem_run(const struct tn_matmul *plan, struct matmul_problem *p, float *c);
void matmul_problem_run_rows(const struct tn_matmul *plan, struct matmul_problem *p, float *c,
                             size_t rows); /* the first rows only */

/* p->c against three plain loops in double; nothing between its rows was written. */
void matmul_problem_check(const struct matmul_problem *p);

#endif
