/* SPDX-License-Identifier: MIT */
#include "support/packed_product.h"

#include <stdlib.h>
#include <string.h>

void draw_normal(float *x, size_t n, double size, struct tn_random *random)
{
    for (size_t i = 0; i < n; i++)
        x[i] = (float)(size * tn_random_normal(random));
}

static float *drawn(size_t n, double size, struct tn_random *random)
{
    float *const x = take(n, sizeof *x);

    draw_normal(x, n, size, random);
    return x;
}

struct packed_product packed_product_of(struct tn_matmul_desc desc, enum tn_element elements,
                                        struct tn_random *random)
{
    desc.lda = tn_max(desc.lda, desc.k);
    desc.ldb = tn_max(desc.ldb, desc.transpose_b ? desc.k : desc.n);
    desc.ldc = tn_max(desc.ldc, desc.n);
    desc.packed = true;
    desc.elements = elements;
    return (struct packed_product){
        .desc = desc,
        .a = drawn(desc.m * desc.lda, 3.0, random),
        .b = drawn((desc.transpose_b ? desc.n : desc.k) * desc.ldb, 0.1, random),
        .bias = drawn(desc.n, 1.0, random),
        .old = drawn(desc.m * desc.ldc, 1.0, random)};
}

struct packed_product packed_product_draw(enum tn_element elements, struct tn_random *random)
{
    struct tn_matmul_desc desc = {
        .m = ONE_OF(random, 1, 2, 3, 4, 5, 6, 7, 13, 14, 15, 100),
        .n = ONE_OF(random, 1, 7, 16, 30, 32, 33, 64, 65, 200),
        .k = ONE_OF(random, 1, 2, 3, 4, 27, 63, 64, 65, 127, 256, 301),
        .transpose_b = below(random, 4) > 0,
        .bias = below(random, 2) > 0,
        .add = below(random, 2) > 0,
        .activation = below(random, 2) > 0 ? TN_RELU : TN_IDENTITY,
    };

    desc.lda = desc.k + below(random, 3);
    desc.ldc = desc.n + below(random, 3);
    return packed_product_of(desc, elements, random);
}

void packed_product_clear(struct packed_product *p)
{
    free(p->a);
    free(p->b);
    free(p->bias);
    free(p->old);
}

float *packed_product_multiply(const struct packed_product *p, const char *backend,
                               const struct tn_host *host, size_t rows)
{
    const struct tn_matmul_desc *const d = &p->desc;
    float *const c = take(d->m * d->ldc, sizeof *c);
    struct tn_matmul *plan;
    tarn_error err;

    check_ok(tn_matmul_create(&plan, d, host, &err), &err);
    assert_string_equal(tn_matmul_name(plan), backend);
    void *const packed = take(tn_matmul_packed_size(plan) + TN_ALIGN, 1);
    void *const aligned = (void *)tn_round_up((size_t)packed, TN_ALIGN);
    void *const scratch = take(tn_matmul_scratch_size(plan) + 1, 1);

    memcpy(c, p->old, d->m * d->ldc * sizeof *c);
    tn_matmul_pack(plan, aligned, p->b);
    for (size_t i = 0; i < d->m; i += rows)
        tn_matmul_run_rows(plan, c + i * d->ldc, p->a + i * d->lda, aligned,
                           d->bias ? p->bias : NULL, tn_min(rows, d->m - i), scratch);
    free(scratch);
    free(packed);
    tn_matmul_free(plan);
    return c;
}
