/* SPDX-License-Identifier: MIT */
#include "support/definition.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "layer/feature_map.h"

/* One head of one sequence. */
struct head {
    const struct definition *def;
    size_t n, nk, W, M;
    bool causal;
    double *x, *z; /* rows of similarity: n x W of queries, nk x W of keys */
    double *v, *g; /* nk x M, n x M */
    double *y, *dx, *dz, *dv;
};

/* ---- Rows and their maps ------------------------------------------------ */

static struct tn_feature_map map_open(const struct attention_run *run)
{
    const tarn_attention_desc *const desc = &run->is.desc;
    struct tn_feature_map map;
    struct tn_random random;
    tarn_error err = {0};

    check_ok(tn_feature_map_init(&map, desc->feature_map, desc->query_width,
                                 tn_kernels_pick(desc->host.cpu), &err),
             &err);
    map.draws = take(tn_feature_map_draws(&map), sizeof(float));
    tn_random_seed(&random, desc->seed);
    tn_feature_map_draw(&map, &random);
    return map;
}

static bool uses_library(const struct definition *def)
{
    return def->similarity == PRODUCT && def->phi == PHI_LIBRARY;
}

static double phi(const struct definition *def, double x)
{
    if (def->similarity != PRODUCT || def->phi == PHI_IDENTITY)
        return x;
    if (def->phi == PHI_RELU)
        return fmax(x, 0.0);
    return x > 0.0 ? x + 1.0 : exp(x);
}

static double phi_slope(const struct definition *def, double x)
{
    if (def->similarity != PRODUCT || def->phi == PHI_IDENTITY)
        return 1.0;
    if (def->phi == PHI_RELU)
        return x > 0.0 ? 1.0 : 0.0;
    return x > 0.0 ? 1.0 : exp(x);
}

static double *map_rows(const struct definition *def, const struct tn_feature_map *map,
                        const struct tensor *t, size_t b, size_t h, size_t n, size_t W)
{
    double *const rows = take(n * W, sizeof *rows);
    float *const features = take(W, sizeof *features);

    for (size_t i = 0; i < n; i++) {
        const float *const x = tensor_row(t, b, i, h);

        if (uses_library(def))
            map->row->forward(map, features, x);
        for (size_t w = 0; w < W; w++)
            rows[i * W + w] = uses_library(def) ? (double)features[w] : phi(def, (double)x[w]);
    }
    free(features);
    return rows;
}

/* From the gradient of mapped rows to that of the rows, at its place in (B, n, H, D). */
static void unmap_rows(const struct definition *def, const struct tn_feature_map *map,
                       double *out, const double *rows, const struct tensor *t, size_t b,
                       size_t h, size_t n, size_t W)
{
    float *const dphi = take(W, sizeof *dphi), *const dx = take(t->width, sizeof *dx);

    for (size_t i = 0; i < n; i++) {
        const float *const x = tensor_row(t, b, i, h);
        double *const at = out + ((b * t->n + i) * t->H + h) * t->width;

        for (size_t w = 0; w < W; w++)
            dphi[w] = (float)rows[i * W + w];
        if (uses_library(def))
            map->row->backward(map, dx, dphi, x);
        for (size_t d = 0; d < t->width; d++)
            at[d] = uses_library(def) ? (double)dx[d]
                                      : rows[i * W + d] * phi_slope(def, (double)x[d]);
    }
    free(dphi);
    free(dx);
}

/* ---- Similarity --------------------------------------------------------- */

static double dot(const double *x, const double *y, size_t n)
{
    double sum = 0.0;

    for (size_t i = 0; i < n; i++)
        sum += x[i] * y[i];
    return sum;
}

static double distance2(const double *x, const double *y, size_t n)
{
    double sum = 0.0;

    for (size_t i = 0; i < n; i++)
        sum += (x[i] - y[i]) * (x[i] - y[i]);
    return sum;
}

static double scale_of(const struct head *a)
{
    return a->def->scale > 0.0 ? a->def->scale : 1.0 / sqrt((double)a->W);
}

static const double *key(const struct head *a, size_t j)
{
    return a->z + j * a->W;
}

/* exp(-most) is what softmax is in units of. */
static double similarity(const struct head *a, size_t i, size_t j, double most)
{
    const struct definition *const def = a->def;
    const double *const x = a->x + i * a->W;

    switch (def->similarity) {
    case POLYNOMIAL:
        return pow(dot(x, key(a, j), a->W) + def->bias, def->degree);
    case RBF:
        return exp(-distance2(x, key(a, j), a->W) / (2.0 * def->sigma * def->sigma));
    case SOFTMAX:
        return exp(scale_of(a) * dot(x, key(a, j), a->W) - most);
    default:
        return dot(x, key(a, j), a->W);
    }
}

/* dsim/dx = toward z + own x, and dsim/dz = toward x + own z. */
static void similarity_slope(const struct head *a, size_t i, size_t j, double sim,
                             double *toward, double *own)
{
    const struct definition *const def = a->def;

    *own = 0.0;
    switch (def->similarity) {
    case POLYNOMIAL:
        *toward = def->degree *
                  pow(dot(a->x + i * a->W, key(a, j), a->W) + def->bias, def->degree - 1.0);
        return;
    case RBF:
        *toward = sim / (def->sigma * def->sigma);
        *own = -*toward;
        return;
    case SOFTMAX:
        *toward = scale_of(a) * sim;
        return;
    default:
        *toward = 1.0;
    }
}

/* ---- One query ---------------------------------------------------------- */

static size_t seen(const struct head *a, size_t i)
{
    return a->causal ? tn_min(i + 1, a->nk) : a->nk;
}

static double largest_score(const struct head *a, size_t i)
{
    double most = -HUGE_VAL;

    if (a->def->similarity != SOFTMAX)
        return 0.0;
    for (size_t j = 0; j < seen(a, i); j++)
        most = fmax(most, scale_of(a) * dot(a->x + i * a->W, key(a, j), a->W));
    return most;
}

static void query_forward(const struct head *a, size_t i, double *sim, double *d, bool *held)
{
    double *const y = a->y + i * a->M;
    const double most = largest_score(a, i), eps = a->def->eps;
    double sum = 0.0;

    for (size_t j = 0; j < seen(a, i); j++) {
        sim[j] = similarity(a, i, j, most);
        sum += sim[j];
        for (size_t m = 0; m < a->M; m++)
            y[m] += sim[j] * a->v[j * a->M + m];
    }
    *held = fabs(sum + eps) < eps || a->def->bare;
    *d = a->def->bare ? 1.0 : fabs(sum + eps) < eps ? copysign(eps, sum + eps) : sum + eps;
    for (size_t m = 0; m < a->M; m++)
        y[m] = *d != 0.0 ? y[m] / *d : 0.0;
}

static void pair_backward(const struct head *a, size_t i, size_t j, double sim, double slope)
{
    double toward, own;

    similarity_slope(a, i, j, sim, &toward, &own);
    for (size_t w = 0; w < a->W; w++) {
        const double x = a->x[i * a->W + w], z = key(a, j)[w];

        a->dx[i * a->W + w] += slope * (toward * z + own * x);
        a->dz[j * a->W + w] += slope * (toward * x + own * z);
    }
}

static void query_backward(const struct head *a, size_t i, const double *sim, double d,
                           bool held)
{
    const double *const g = a->g + i * a->M;
    const double along = held ? 0.0 : dot(g, a->y + i * a->M, a->M);

    for (size_t j = 0; j < seen(a, i) && d != 0.0; j++) {
        for (size_t m = 0; m < a->M; m++)
            a->dv[j * a->M + m] += sim[j] / d * g[m];
        pair_backward(a, i, j, sim[j], (dot(g, a->v + j * a->M, a->M) - along) / d);
    }
}

/* ---- Heads -------------------------------------------------------------- */

static double *rows_of(const struct tensor *t, size_t b, size_t h, size_t n)
{
    double *const rows = take(n * t->width, sizeof *rows);

    for (size_t i = 0; i < n; i++)
        for (size_t e = 0; e < t->width; e++)
            rows[i * t->width + e] = (double)tensor_row(t, b, i, h)[e];
    return rows;
}

static void put_rows(double *out, const double *rows, const struct tensor *t, size_t b,
                     size_t h, size_t n)
{
    for (size_t i = 0; i < n; i++)
        memcpy(out + ((b * t->n + i) * t->H + h) * t->width, rows + i * t->width,
               t->width * sizeof *out);
}

static void head_run(struct head *a)
{
    double *const sim = take(a->nk, sizeof *sim);

    for (size_t i = 0; i < a->n; i++) {
        double d;
        bool held;

        query_forward(a, i, sim, &d, &held);
        query_backward(a, i, sim, d, held);
    }
    free(sim);
}

static void define_head(const struct definition *def, const struct attention_run *run,
                        const struct tn_feature_map *map, struct defined *out, size_t b,
                        size_t h)
{
    const struct tensor *const t = run->tensors;
    const tarn_attention_desc *const desc = &run->is.desc;
    struct head a = {.def = def,
                     .n = desc->queries,
                     .nk = case_length(&run->is, b),
                     .W = uses_library(def) ? map->C : desc->query_width,
                     .M = desc->value_width,
                     .causal = desc->causal};

    a.x = map_rows(def, map, &t[Q], b, h, a.n, a.W);
    a.z = map_rows(def, map, &t[K], b, h, a.nk, a.W);
    a.v = rows_of(&t[V], b, h, a.nk);
    a.g = rows_of(&t[DY], b, h, a.n);
    a.y = take(a.n * a.M, sizeof(double));
    a.dx = take(a.n * a.W, sizeof(double));
    a.dz = take(a.nk * a.W, sizeof(double));
    a.dv = take(a.nk * a.M, sizeof(double));
    head_run(&a);
    put_rows(out->y, a.y, &t[Y], b, h, a.n);
    put_rows(out->dv, a.dv, &t[DV], b, h, a.nk);
    unmap_rows(def, map, out->dq, a.dx, &t[Q], b, h, a.n, a.W);
    unmap_rows(def, map, out->dk, a.dz, &t[K], b, h, a.nk, a.W);
    double *const all[] = {a.x, a.z, a.v, a.g, a.y, a.dx, a.dz, a.dv};

    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        free(all[i]);
}

struct defined define(const struct definition *def, const struct attention_run *run)
{
    const struct tensor *const t = run->tensors;
    struct defined out = {
        .y = take(tensor_count(&t[Y]), sizeof(double)),
        .dq = take(tensor_count(&t[DQ]), sizeof(double)),
        .dk = take(tensor_count(&t[DK]), sizeof(double)),
        .dv = take(tensor_count(&t[DV]), sizeof(double)),
    };
    struct tn_feature_map map = {0};

    if (uses_library(def))
        map = map_open(run);
    for (size_t b = 0; b < run->is.desc.batch; b++)
        for (size_t h = 0; h < run->is.desc.heads; h++)
            define_head(def, run, &map, &out, b, h);
    free(map.draws);
    return out;
}

void defined_free(struct defined *defined)
{
    free(defined->y);
    free(defined->dq);
    free(defined->dk);
    free(defined->dv);
}

void check_defined(const struct attention_run *run, const struct definition *def,
                   bool gradients, double tolerance)
{
    struct defined want = define(def, run);

    check_array_close(run, Y, want.y, tolerance);
    if (gradients) {
        check_array_close(run, DQ, want.dq, tolerance);
        check_array_close(run, DK, want.dk, tolerance);
        check_array_close(run, DV, want.dv, tolerance);
    }
    defined_free(&want);
}
