/* SPDX-License-Identifier: MIT */
#include "support/algorithm_1.h"

#include <stdlib.h>

#include "support/testing.h"

/* S += a b^T */
static void add_outer(double *S, const double *a, const double *b, size_t C, size_t M)
{
    for (size_t c = 0; c < C; c++)
        for (size_t m = 0; m < M; m++)
            S[c * M + m] += a[c] * b[m];
}

/* y = S^T a */
static void left(double *y, const double *S, const double *a, size_t C, size_t M)
{
    for (size_t m = 0; m < M; m++) {
        y[m] = 0.0;
        for (size_t c = 0; c < C; c++)
            y[m] += a[c] * S[c * M + m];
    }
}

/* y = S b */
static void right(double *y, const double *S, const double *b, size_t C, size_t M)
{
    for (size_t c = 0; c < C; c++) {
        y[c] = 0.0;
        for (size_t m = 0; m < M; m++)
            y[c] += S[c * M + m] * b[m];
    }
}

void algorithm_1_forward(double *y, const double *q, const double *k, const double *v, size_t N,
                         size_t C, size_t M)
{
    double *const S = take(C * M, sizeof *S);

    for (size_t i = 0; i < N; i++) {
        add_outer(S, k + i * C, v + i * M, C, M);
        left(y + i * M, S, q + i * C, C, M);
    }
    free(S);
}

void algorithm_1_backward(double *dq, double *dk, double *dv, const double *q, const double *k,
                          const double *v, const double *g, size_t N, size_t C, size_t M)
{
    double *S = take(C * M, sizeof *S);

    for (size_t i = 0; i < N; i++) {
        add_outer(S, k + i * C, v + i * M, C, M);
        right(dq + i * C, S, g + i * M, C, M); /* (13) */
    }
    free(S);
    S = take(C * M, sizeof *S);
    for (size_t i = N; i-- > 0;) {
        add_outer(S, q + i * C, g + i * M, C, M);
        left(dv + i * M, S, k + i * C, C, M);  /* (15) */
        right(dk + i * C, S, v + i * M, C, M); /* (14) */
    }
    free(S);
}
