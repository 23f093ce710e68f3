/* SPDX-License-Identifier: MIT */
/* run_lstm.c - an LSTM as the body of a model: what comes out of layer l is what goes into
 * layer l + 1, and the last one's goes to the predictor. The paper's baseline for speech is
 * three layers over frames as they are. */
#include "model/run.h"

/* The first layer may read another width than the others. */
static const struct tn_lstm *lstm_of(const tarn_run *run, size_t layer)
{
    return &run->lstms[layer > 0];
}

static const float *input_of(const tarn_run *run, size_t layer)
{
    return layer == 0 && run->stacked ? run->stacked : run->inputs[layer];
}

tarn_status tn_run_lstm_plan(tarn_run *run, const struct tn_run_desc *desc, tarn_error *err)
{
    const struct tn_arch *const arch = &run->model->arch;
    struct tn_lstm_desc lstm = {.B = run->B,
                                .N = run->N,
                                .units = tn_lstm_units(arch),
                                .one_way = tn_lstm_ways(arch) == 1,
                                .trains = desc->trains};
    tarn_status status = TARN_OK;

    if (desc->elements != TN_F32)
        return tn_fail(err, TARN_EINVAL, "precision is bf16; it must be f32 with an lstm");
    for (size_t i = 0; i < tn_min(arch->config.layers, 2) && status == TARN_OK; i++) {
        lstm.in = tn_lstm_inputs(arch, i);
        status = tn_lstm_init(&run->lstms[i], &lstm, &run->host, err);
    }
    if (status == TARN_OK)
        run->block.rows = tn_rows_on(&run->host, run->R, arch->config.width);
    return status;
}

void tn_run_lstm_take(tarn_run *run, struct tn_arena *arena)
{
    for (size_t layer = 0; layer < run->model->arch.config.layers; layer++)
        run->lstm_tapes[layer] = tn_lstm_tape_take(lstm_of(run, layer), arena);
    if (run->trains)
        run->lstm_d = tn_arena_floats(arena, run->R * run->model->arch.config.width);
}

size_t tn_run_lstm_scratch(const tarn_run *run)
{
    const bool more = run->model->arch.config.layers > 1;

    return tn_max(tn_lstm_scratch_size(&run->lstms[0]),
                  more ? tn_lstm_scratch_size(&run->lstms[1]) : 0);
}

void tn_run_lstm_forward(tarn_run *run)
{
    for (size_t layer = 0; layer < run->model->arch.config.layers; layer++)
        tn_lstm_forward(lstm_of(run, layer), &run->lstm_tapes[layer], run->inputs[layer + 1],
                        input_of(run, layer), run->model->weights.blocks[layer].lstm,
                        run->lengths, run->scratch);
}

/* d and lstm_d take turns, and change places with each layer. */
void tn_run_lstm_backward(tarn_run *run, const struct tn_weights *gradients)
{
    for (size_t layer = run->model->arch.config.layers; layer-- > 0;) {
        float *const dx = layer == 0 && run->stacked ? NULL : run->lstm_d;

        tn_lstm_backward(lstm_of(run, layer), &run->lstm_tapes[layer], dx,
                         gradients->blocks[layer].lstm, run->d, run->inputs[layer + 1],
                         input_of(run, layer), run->model->weights.blocks[layer].lstm,
                         run->lengths, run->scratch);
        if (dx) {
            run->lstm_d = run->d;
            run->d = dx;
        }
    }
}
