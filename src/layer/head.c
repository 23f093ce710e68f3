/* SPDX-License-Identifier: MIT */
#include "layer/head.h"
#include "tarn/model.h"

static const struct tn_head_row *const rows[] = {
    &tn_head_categorical,
    &tn_head_logistic,
    &tn_head_ctc,

};

const struct tn_table tn_heads = {"head", tarn_head_kind};

const tarn_table_row *tarn_head_kind(size_t index)
{
    return index < sizeof rows / sizeof rows[0] ? &rows[index]->about : NULL;
}

tarn_status tn_head_init(struct tn_head *head, const char *spec, size_t symbols,
                         tarn_error *err)
{
    tarn_status status;

    *head = (struct tn_head){.symbols = symbols};
    head->row = tn_table_find(&tn_heads, &head->options, spec, &status, err);
    if (!head->row)
        return status;
    if (symbols < head->row->least || symbols > head->row->most)
        return tn_fail(err, TARN_EINVAL,
                       "head: '%s' with %zu symbols; it must have from %zu to %zu",
                       head->row->about.name, symbols, head->row->least, head->row->most);
    head->outputs = head->row->outputs ? head->row->outputs(head) : symbols;
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
