/* SPDX-License-Identifier: MIT */
/* test_slice_states.c - the state that processes which share a sequence have before its last
 * chunk: generation continues from it as from that of one process that read all before. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "generate/engine.h"
#include "model/slices.h"
#include "model/transformer.h"
#include "support/course.h"
#include "train/trainer.h"

enum { CHUNK = 300, CHUNKS = 4, LENGTH = CHUNK * CHUNKS, READ = LENGTH - CHUNK };

/* What the last process has: states of all layers, one after the other. */
struct left {
    int32_t *symbols; /* LENGTH */
    char *states;
    size_t bytes;
    tarn_status status;
};

static size_t state_bytes(const struct tn_transformer *body)
{
    return tarn_attention_state_size(&body->attentions[0]);
}

static void take_states(struct left *left, const tarn_run *run)
{
    const struct tn_transformer *const body = run->body;
    const size_t layers = tn_run_layers(run), each = state_bytes(body), own = run->slices->own;

    left->bytes = layers * each;
    left->states = take(left->bytes, 1);
    for (size_t layer = 0; layer < layers; layer++)
        memcpy(left->states + layer * each,
               body->slices.states + ((layer + 1) * own - 1) * tn_round_up(each, TN_ALIGN),
               each);
}

static void read_together(void *arg, const tarn_comm *comm)
{
    struct left *const left = arg;
    const tarn_trainer_desc desc = {.batch = 1,
                                    .length = LENGTH,
                                    .sequence_chunks = CHUNKS,
                                    .sequence_parallel = comm->size,
                                    .comm = comm,
                                    .host = {.threads = 1, .cpu = forced_cpu()}};
    const tarn_batch batch = {.inputs = left->symbols, .targets = left->symbols};
    tarn_model *const model = model_of(model_variant_at(0));
    tarn_trainer *trainer = NULL;
    tarn_score score;
    tarn_status status = tarn_trainer_create(&trainer, model, &desc, NULL);

    if (status == TARN_OK)
        status = tarn_trainer_score(trainer, &score, &batch, NULL);
    if (comm->rank + 1 == comm->size) {
        left->status = status;
        if (status == TARN_OK)
            take_states(left, trainer->run->slice);
    }
    tarn_trainer_free(trainer);
    tarn_model_free(model);
}

static struct left read_by(size_t processes, int32_t *symbols)
{
    struct left left = {.symbols = symbols};

    run_processes(processes, 0.0, read_together, &left);
    assert_int_equal(left.status, TARN_OK);
    return left;
}

/* Streams that continue with the symbols of the last chunk, of which one is fed those before
 * and the other starts from the states that were left. */
static void check_continues(tarn_engine *engine, tarn_stream *const streams[2],
                            const int32_t *symbols)
{
    float *const outputs = take(2 * tarn_model_outputs(engine->model), sizeof *outputs);
    const size_t O = tarn_model_outputs(engine->model);
    tarn_error err;

    for (size_t i = 0; i < CHUNK; i++) {
        const int32_t both[2] = {symbols[READ + i], symbols[READ + i]};

        check_ok(tarn_engine_step(engine, streams, outputs, both, 2, &err), &err);
        for (size_t o = 0; o < O; o++)
            assert_true(fabsf(outputs[o] - outputs[O + o]) < 1e-4f);
    }
    free(outputs);
}

static void generation_continues_from_the_state_of_all(void **state)
{
    int32_t symbols[LENGTH];
    tarn_model *const model = model_of(model_variant_at(0));
    tarn_engine *engine;
    tarn_stream *streams[2];
    struct tn_random random;
    tarn_error err;

    (void)state;
    tn_random_seed(&random, 7);
    draw_symbols(symbols, LENGTH, &random);
    struct left left = read_by(4, symbols);

    check_ok(tarn_engine_create(&engine, model,
                                &(tarn_engine_desc){.host = {.cpu = forced_cpu()}}, &err),
             &err);
    for (size_t i = 0; i < 2; i++)
        check_ok(tarn_stream_create(&streams[i], engine, &err), &err);
    check_ok(tarn_engine_prefill(engine, streams[0], NULL, symbols, READ, &err), &err);
    streams[1]->head.position = READ;
    streams[1]->form = streams[0]->form;
    engine->method->unpack(engine, streams[1], left.states);
    check_continues(engine, streams, symbols);
    for (size_t i = 0; i < 2; i++)
        tarn_stream_free(streams[i]);
    check_ok(tarn_engine_free(engine, &err), &err);
    tarn_model_free(model);
    free(left.states);
}

static void any_number_of_processes_leaves_the_same_bits(void **state)
{
    int32_t symbols[LENGTH];
    struct tn_random random;

    (void)state;
    tn_random_seed(&random, 8);
    draw_symbols(symbols, LENGTH, &random);
    struct left one = read_by(1, symbols);

    for (size_t processes = 2; processes <= CHUNKS; processes *= 2) {
        struct left many = read_by(processes, symbols);

        assert_int_equal(many.bytes, one.bytes);
        assert_memory_equal(many.states, one.states, one.bytes);
        free(many.states);
    }
    free(one.states);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_number_of_processes_leaves_the_same_bits),
        cmocka_unit_test(generation_continues_from_the_state_of_all),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
