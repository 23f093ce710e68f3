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

/* ---- Blocks of rows ----------------------------------------------------- */

struct blocks {
    const struct tn_head_call *call;
    tn_head_rows *run;
    struct tn_loss *losses; /* one per block */
    float *work;            /* `apart` floats per thread */
    size_t apart;
};

static struct blocks lay_out(const struct tn_rows *r, size_t floats, struct tn_arena *arena)
{
    struct blocks blocks = {.apart = tn_rows_sum_width(floats)};

    blocks.losses =
        tn_arena_alloc(arena, tn_blocks(r->rows, tn_rows_sum_block(r)), sizeof *blocks.losses);
    blocks.work = tn_arena_alloc(arena, r->threads, blocks.apart * sizeof(float));
    return blocks;
}

void tn_head_blocks_size(const struct tn_rows *r, size_t floats, struct tn_arena *arena)
{
    lay_out(r, floats, arena);
}

static void run_block(void *arg, size_t index, size_t thread)
{
    const struct blocks *const blocks = arg;
    const struct tn_rows *const r = blocks->call->rows;
    const size_t block = tn_rows_sum_block(r), from = index * block;
    struct tn_loss loss = {0};

    blocks->run(blocks->call, &loss, blocks->work + thread * blocks->apart, from,
                tn_min(r->rows, from + block));
    blocks->losses[index] = loss;
}

void tn_head_blocks_run(const struct tn_head_call *call, struct tn_loss *loss, size_t floats,
                        tn_head_rows *run)
{
    const struct tn_rows *const r = call->rows;
    const size_t count = tn_blocks(r->rows, tn_rows_sum_block(r));
    struct tn_arena arena = tn_arena_over(call->scratch);
    struct blocks blocks = lay_out(r, floats, &arena);

    blocks.call = call;
    blocks.run = run;
    tn_parallel(r->threads, count, run_block, &blocks);
    *loss = (struct tn_loss){0};
    for (size_t i = 0; i < count; i++)
        *loss = tn_loss_add(*loss, blocks.losses[i]);
}
