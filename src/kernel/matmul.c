/* SPDX-License-Identifier: MIT */
/* matmul.c - checks that every backend shares, and who multiplies. */
#include "kernel/matmul.h"

#include <assert.h>
#include <string.h>

#include "kernel/int8.h"

extern const struct tn_matmul_backend tn_matmul_packed, tn_matmul_int8, tn_matmul_bf16,
    tn_matmul_plain;

/* Best first. `packed` can do everything but packed weights in int8 and bf16-inputs, which have
 * their own. */
static const struct tn_matmul_backend *const backends[] = {
    &tn_matmul_packed,
    &tn_matmul_int8,
    &tn_matmul_bf16,
    &tn_matmul_plain,
};

enum { BACKENDS = sizeof backends / sizeof backends[0] };

/* ---- checks ------------------------------------------------------------- */

/* A matrix as it is stored. Sets *ld where it was left out. */
static tarn_status check_matrix(const char *name, size_t *ld, size_t rows, size_t cols,
                                tarn_error *err)
{
    size_t bytes;

    if (*ld == 0)
        *ld = cols;
    if (*ld < cols)
        return tn_fail(err, TARN_EINVAL,
                       "ld%s is %zu; it must be at least the width of a row, %zu", name, *ld,
                       cols);
    if (!tn_size_product(&bytes, (size_t[]){rows, *ld, sizeof(float)}, 3) ||
        bytes > PTRDIFF_MAX)
        return tn_fail(err, TARN_EINVAL,
                       "%s: %zu rows with a stride of %zu do not fit in memory", name, rows,
                       *ld);
    return TARN_OK;
}

static tarn_status check(struct tn_matmul_desc *desc, tarn_error *err)
{
    const size_t m = desc->m, n = desc->n, k = desc->k;
    tarn_status status;

    if (desc->elements > TN_BF16 && !desc->packed)
        return tn_fail(err, TARN_EINVAL, "elements are %s; such weights must be packed",
                       tn_element_name(desc->elements));
    if (m == 0 || n == 0 || k == 0)
        return tn_fail(err, TARN_EINVAL, "m, n, k are %zu, %zu, %zu; each must be at least 1",
                       m, n, k);
    status = desc->transpose_a ? check_matrix("a", &desc->lda, k, m, err)
                               : check_matrix("a", &desc->lda, m, k, err);
    if (status == TARN_OK)
        status = desc->transpose_b ? check_matrix("b", &desc->ldb, n, k, err)
                                   : check_matrix("b", &desc->ldb, k, n, err);
    return status == TARN_OK ? check_matrix("c", &desc->ldc, m, n, err) : status;
}

/* ---- life --------------------------------------------------------------- */

/* The first backend that can, of all or of those called `desc.backend`. */
static tarn_status choose(struct tn_matmul *plan, tarn_error *err)
{
    const char *const name = plan->desc.backend;
    tarn_status status = TARN_EUNKNOWN;
    tarn_error refusal; /* of one, where another may still do */

    for (size_t i = 0; i < BACKENDS; i++) {
        if (name && strcmp(name, backends[i]->name) != 0)
            continue;
        plan->backend = backends[i];
        status = plan->backend->create(plan, &refusal);
        if (status != TARN_EMACHINE)
            break;
    }
    if (status == TARN_EUNKNOWN)
        return tn_fail(err, status, "backend: '%.40s' is not available in this build",
                       name ? name : "");
    return status == TARN_OK ? status : tn_fail(err, status, "%s", refusal.text);
}

tarn_status tn_matmul_create(struct tn_matmul **plan, const struct tn_matmul_desc *desc,
                             const struct tn_host *host, tarn_error *err)
{
    struct tn_matmul_desc checked = *desc;
    tarn_status status = check(&checked, err);

    *plan = NULL;
    if (status != TARN_OK)
        return status;
    struct tn_matmul *const made = tn_allocate(&host->allocator, sizeof *made);
    if (!made)
        return tn_fail(err, TARN_ENOMEM, "not enough memory for a matrix product plan");
    *made = (struct tn_matmul){.desc = checked, .host = host};
    status = choose(made, err);
    if (status == TARN_OK)
        *plan = made;
    else
        tn_matmul_free(made);
    return status;
}

void tn_matmul_free(struct tn_matmul *plan)
{
    if (!plan)
        return;
    if (plan->backend && plan->backend->free)
        plan->backend->free(plan);
    tn_release(&plan->host->allocator, plan);
}

/* ---- use ---------------------------------------------------------------- */

size_t tn_matmul_scratch_size(const struct tn_matmul *plan)
{
    return plan->scratch;
}

void tn_matmul_run(const struct tn_matmul *plan, float *c, const float *a, const void *b,
                   const float *bias, void *scratch)
{
    tn_matmul_run_rows(plan, c, a, b, bias, plan->desc.m, scratch);
}

void tn_matmul_run_rows(const struct tn_matmul *plan, float *c, const float *a, const void *b,
                        const float *bias, size_t rows, void *scratch)
{
    assert(rows == plan->desc.m || (rows < plan->desc.m && plan->desc.packed));
    plan->backend->run(plan, &(struct tn_matmul_arrays){c, a, b, bias, scratch, rows});
}

size_t tn_matmul_packed_size(const struct tn_matmul *plan)
{
    return plan->desc.packed ? plan->backend->packed_size(plan) : 0;
}

void tn_matmul_pack(const struct tn_matmul *plan, void *packed, const float *b)
{
    plan->backend->pack(plan, packed, b);
}

const char *tn_matmul_name(const struct tn_matmul *plan)
{
    return plan->backend->name;
}

/* ---- elements --------------------------------------------------------------- */

static const char *const names[TN_ELEMENTS] = {
    [TN_F32] = "f32", [TN_BF16] = "bf16", [TN_INT8] = "int8", [TN_BF16_INPUTS] = "bf16-inputs"};

const char *tn_element_name(enum tn_element element)
{
    return names[element];
}

tarn_status tn_element_named(enum tn_element *element, const char *name, size_t count,
                             tarn_error *err)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(name ? name : names[TN_F32], names[i]) == 0) {
            *element = (enum tn_element)i;
            return TARN_OK;
        }
    return tn_fail(
        err, TARN_EUNKNOWN, "precision: unknown name '%.40s'; available: f32, bf16%s%s", name,
        count > TN_INT8 ? ", int8" : "", count > TN_BF16_INPUTS ? ", bf16-inputs" : "");
}

size_t tn_element_bytes(enum tn_element element, size_t rows, size_t columns)
{
    const size_t scales = element == TN_INT8 ? rows * tn_int8_blocks(columns) : 0;

    return rows * columns * tn_element_size(element) + scales * sizeof(float);
}

float tn_bf16_to_f32(uint16_t x)
{
    const uint32_t bits = (uint32_t)x << 16;
    float wide;

    memcpy(&wide, &bits, sizeof wide);
    return wide;
}

uint16_t tn_bf16_from_f32(float x)
{
    uint32_t bits;

    memcpy(&bits, &x, sizeof bits);
    if ((bits & 0x7fffffff) > 0x7f800000) /* rounding up could turn NaN into infinity */
        return (uint16_t)(bits >> 16 | 0x40);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}
