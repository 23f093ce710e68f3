/* SPDX-License-Identifier: MIT */
#include "layer/linear_sums.h"

#include <string.h>

/* rows x C_ld floats from one place to another. */
static void copy(const struct tn_linear_group *a, float *to, size_t to_ld, const float *from,
                 size_t from_ld)
{
    const struct tn_linear_sizes *const s = &a->sizes;

    a->plan->host.kernels->scale_rows(to, (ptrdiff_t)to_ld, from, (ptrdiff_t)from_ld,
                                      (struct tn_column){0}, s->rows, s->C_ld, false);
}

void tn_linear_sums_load(const struct tn_linear_group *a, float *sums, const float *kept)
{
    const struct tn_linear_sizes *const s = &a->sizes;
    const size_t floats = s->rows * s->St_ld;

    for (size_t head = 0; head < a->heads; head++)
        if (kept)
            copy(a, sums + head * floats, s->St_ld, kept + head * s->kept, s->C_ld);
        else
            memset(sums + head * floats, 0, floats * sizeof(float));
}

void tn_linear_sums_keep(const struct tn_linear_group *a, const float *sums, float *kept)
{
    const struct tn_linear_sizes *const s = &a->sizes;

    for (size_t head = 0; head < a->heads; head++)
        copy(a, kept + head * s->kept, s->C_ld, sums + head * s->rows * s->St_ld, s->St_ld);
}

/* Without the last row of `sums`; what pads the rows of the result is zero. */
static void turn(const struct tn_linear_group *a, float *turned, const float *sums)
{
    const struct tn_linear_sizes *const s = &a->sizes;

    memset(turned, 0, a->heads * s->C * s->S_ld * sizeof(float));
    for (size_t head = 0; head < a->heads; head++)
        a->plan->host.kernels->transpose(turned + head * s->C * s->S_ld, (ptrdiff_t)s->S_ld,
                                         sums + head * s->rows * s->St_ld, (ptrdiff_t)s->St_ld,
                                         s->M, s->C);
}

/* z is St's row for the value that is always 1. */
static float *ones_row(const struct tn_linear_group *a, size_t head)
{
    return a->tiles->St + (head * a->sizes.rows + a->sizes.M) * a->sizes.St_ld;
}

void tn_linear_turn_St(const struct tn_linear_group *a)
{
    const size_t C_ld = a->sizes.C_ld;

    turn(a, a->tiles->S, a->tiles->St);
    for (size_t head = 0; head < a->heads && a->sizes.normalises; head++)
        memcpy(a->tiles->z + head * C_ld, ones_row(a, head), C_ld * sizeof(float));
}

void tn_linear_turn_S(const struct tn_linear_group *a)
{
    const struct tn_linear_sizes *const s = &a->sizes;

    for (size_t head = 0; head < a->heads; head++) {
        a->plan->host.kernels->transpose(
            a->tiles->St + head * s->rows * s->St_ld, (ptrdiff_t)s->St_ld,
            a->tiles->S + head * s->C * s->S_ld, (ptrdiff_t)s->S_ld, s->C, s->M);
        if (s->normalises)
            memcpy(ones_row(a, head), a->tiles->z + head * s->C_ld, s->C_ld * sizeof(float));
    }
}

void tn_linear_turn_Rt(const struct tn_linear_group *a)
{
    turn(a, a->tiles->R, a->tiles->Rt);
}

void tn_linear_turn_far(const struct tn_linear_group *a)
{
    const struct tn_linear_sizes *const s = &a->sizes;

    for (size_t head = 0; head < a->heads; head++) {
        float *const St = a->tiles->St + head * s->rows * s->St_ld;
        const float *const R = a->tiles->R + head * s->C * s->S_ld;

        for (size_t m = 0; m < s->M; m++)
            for (size_t c = 0; c < s->C; c++)
                St[m * s->St_ld + c] += R[c * s->S_ld + m];
        if (s->normalises)
            a->plan->host.kernels->axpy(ones_row(a, head), 1.0f,
                                        a->tiles->far_z + head * s->C_ld, s->C);
    }
}

void tn_linear_fold(const struct tn_linear_group *a)
{
    const size_t floats = a->heads * a->sizes.C * a->sizes.S_ld;
    const size_t z_floats = a->heads * a->sizes.C_ld;
    const struct tn_linear_tiles *const t = a->tiles;

    a->plan->host.kernels->add(t->R, t->R, t->S, floats);
    a->plan->host.kernels->add(t->far_z, t->far_z, t->z, z_floats);
    memset(t->S, 0, floats * sizeof(float));
    memset(t->z, 0, z_floats * sizeof(float));
}

void tn_linear_sums_scan(const tarn_attention *plan, float *kept, size_t head, size_t count,
                         bool backwards)
{
    const size_t floats = tn_linear_sizes_of(plan).kept, stride = plan->B * plan->H * floats;
    float *const first = kept + head * floats;

    for (size_t i = 1; i < count; i++) {
        const size_t at = backwards ? count - 1 - i : i, done = backwards ? at + 1 : at - 1;

        plan->host.kernels->axpy(first + at * stride, 1.0f, first + done * stride, floats);
    }
}
