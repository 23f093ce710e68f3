/* SPDX-License-Identifier: MIT */
#include "support/attention_piece.h"

struct piece piece_open(const struct attention_run *of, size_t from, size_t n, size_t threads)
{
    tarn_attention_desc desc = of->is.desc;
    struct piece piece = {.of = of, .from = from, .n = n};
    tarn_error err = {0};

    desc.queries = n; /* desc.keys stays: all pieces go into one cache */
    desc.host.threads = threads;
    check_ok(tarn_attention_create(&piece.plan, &desc, &err), &err);
    assert_int_equal(tarn_attention_state_size(piece.plan),
                     tarn_attention_state_size(of->plan));
    piece.saved = block_open(tarn_attention_saved_size(piece.plan), 3, 0xff);
    piece.work = block_open(tarn_attention_workspace_size(piece.plan), 61, 0xff);
    return piece;
}

void piece_close(struct piece *piece)
{
    tarn_attention_free(piece->plan);
    block_close(&piece->saved);
    block_close(&piece->work);
}

tarn_attention_arrays piece_arrays(const struct piece *piece)
{
    const struct attention_run *const run = piece->of;
    tarn_attention_arrays arrays = run_arrays(run);

    for (size_t i = 0; i < run->in_count; i++) {
        const size_t from = run->in[i].parameter ? 0 : piece->from;

        arrays.in[i].data = tensor_row(&run->tensors[i], 0, from, 0);
        arrays.din[i].data = tensor_row(&run->tensors[run_gradient(i)], 0, from, 0);
    }
    arrays.y.data = tensor_row(&run->tensors[Y], 0, piece->from, 0);
    arrays.dy.data = tensor_row(&run->tensors[DY], 0, piece->from, 0);
    return arrays;
}

void piece_forward(struct piece *piece, const void *state0, void *state1, const size_t *lengths)
{
    tarn_attention_arrays arrays = piece_arrays(piece);
    tarn_error err = {0};

    arrays.state0 = state0;
    arrays.state1 = state1;
    arrays.key_lengths = lengths;
    check_ok(tarn_attention_forward(piece->plan, &arrays, piece->saved.bytes, piece->work.bytes,
                                    &err),
             &err);
    pool_check(&piece->of->inputs, run_name(piece->of));
    pool_check(&piece->of->outputs, run_name(piece->of));
    block_check(&piece->saved, "saved");
    block_check(&piece->work, "workspace");
}

void piece_backward(struct piece *piece, const void *state0, const float *dstate1,
                    float *dstate0)
{
    tarn_attention_arrays arrays = piece_arrays(piece);
    tarn_error err = {0};

    arrays.state0 = state0;
    arrays.dstate1 = dstate1;
    arrays.dstate0 = dstate0;
    check_ok(tarn_attention_backward(piece->plan, &arrays, piece->saved.bytes,
                                     piece->work.bytes, &err),
             &err);
    pool_check(&piece->of->outputs, run_name(piece->of));
    block_check(&piece->saved, "saved");
    block_check(&piece->work, "workspace");
}

struct attention_case piece_case(const struct variant *variant, double budget,
                                 struct tn_random *random)
{
    struct attention_case is = case_draw(variant, true, budget, random);

    is.has_lengths = false;
    return is;
}

void piece_check_state(const struct attention_run *run, const struct block *want,
                       const struct block *got, size_t position)
{
    for (size_t i = 0; i < want->size; i++)
        if (want->bytes[i] != got->bytes[i])
            fail_msg("%s: state has another byte %zu of %zu after %zu positions", run_name(run),
                     i, want->size, position);
}
