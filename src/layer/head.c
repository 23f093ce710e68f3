/* SPDX-License-Identifier: MIT */
#include "layer/head.h"
#include "tarn/model.h"

#define TN_HEAD(name) extern const struct tn_head_row tn_head_##name;
#include "layer/heads.def"
#undef TN_HEAD

#define TN_HEAD(name) &tn_head_##name.about,
const tarn_table_row *const tn_head_rows[] = {
#include "layer/heads.def"
    NULL,
};
#undef TN_HEAD

const tarn_table_row *tarn_head_kind(size_t index)
{
    return tn_row_at(tn_head_rows, index);
}

tarn_status tn_head_init(struct tn_head *head, const char *spec, size_t symbols,
                         tarn_error *err)
{
    const tarn_table_row *about = NULL;

    *head = (struct tn_head){.symbols = symbols};
    const tarn_status status =
        tn_option_choose(&about, &head->options, tn_head_rows, "head", spec, err);

    if (status != TARN_OK)
        return status;
    head->row = (const struct tn_head_row *)about; /* its first member */
    if (symbols < head->row->least || symbols > head->row->most)
        return tn_fail(err, TARN_EINVAL,
                       "head: '%s' with %zu symbols; it must have from %zu to %zu", about->name,
                       symbols, head->row->least, head->row->most);
    head->outputs = head->row->outputs(head);
    return TARN_OK;
}

size_t tn_head_scratch_size(const struct tn_head *head, const struct tn_rows *r, size_t B)
{
    struct tn_arena arena = tn_arena_over(NULL);

    head->row->work(head, r, B, &arena);
    return tn_arena_bytes(&arena);
}

void tn_head_loss(const struct tn_head_call *call, struct tn_loss *loss)
{
    call->head->row->loss(call, loss);
}

struct tn_loss tn_loss_sum(const struct tn_loss *of_blocks, size_t blocks)
{
    struct tn_loss sum = {0};

    for (size_t i = 0; i < blocks; i++) {
        sum.loss += of_blocks[i].loss;
        sum.weight += of_blocks[i].weight;
        sum.correct += of_blocks[i].correct;
    }
    return sum;
}
