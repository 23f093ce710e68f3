/* SPDX-License-Identifier: MIT */
/* dot_product.c - the numerator of (8) alone: linear attention that does not map and does not
 * normalise. The plan lives on the stack and draws nothing, so nothing is allocated. */
#include "layer/attention_kind.h"

static tarn_status plan_make(tarn_attention *plan, const tarn_dot_product_sizes *sizes,
                             tarn_error *err)
{
    if (!sizes)
        return tn_fail(err, TARN_EINVAL, "sizes must not be NULL");
    const tarn_attention_desc desc = {
        .kind = "linear:normalise=0",
        .feature_map = "identity",
        .causal = true,
        .batch = sizes->batch,
        .heads = sizes->heads,
        .queries = sizes->length,
        .keys = sizes->length,
        .query_width = sizes->query_width,
        .value_width = sizes->value_width,
    };
    struct tn_host host;
    const tarn_status status = tn_host_init(&host, &sizes->host, err);

    return status == TARN_OK ? tn_attention_init(plan, &desc, &host, err) : status;
}

size_t tarn_causal_dot_product_workspace_size(const tarn_dot_product_sizes *sizes)
{
    tarn_attention plan;

    return plan_make(&plan, sizes, NULL) == TARN_OK ? tarn_attention_workspace_size(&plan) : 0;
}

tarn_status tarn_causal_dot_product(const tarn_dot_product_sizes *sizes, tarn_output y,
                                    tarn_input q, tarn_input k, tarn_input v, void *workspace,
                                    tarn_error *err)
{
    tarn_attention plan;
    const tarn_attention_arrays arrays = {.in = {q, k, v}, .y = y};
    const tarn_status status = plan_make(&plan, sizes, err);

    return status == TARN_OK ? tarn_attention_forward(&plan, &arrays, NULL, workspace, err)
                             : status;
}

tarn_status tarn_causal_dot_product_backward(const tarn_dot_product_sizes *sizes,
                                             tarn_output dq, tarn_output dk, tarn_output dv,
                                             tarn_input q, tarn_input k, tarn_input v,
                                             tarn_input dy, void *workspace, tarn_error *err)
{
    tarn_attention plan;

    /* (13)-(15) do not need y; dv has its shape when there is one length, and is not read. */
    const tarn_attention_arrays arrays = {
        .in = {q, k, v}, .y = dv, .dy = dy, .din = {dq, dk, dv}};
    const tarn_status status = plan_make(&plan, sizes, err);

    return status == TARN_OK ? tarn_attention_backward(&plan, &arrays, NULL, workspace, err)
                             : status;
}
