/* SPDX-License-Identifier: MIT */
/* test_stream_file.c - streams in files and bytes: they continue in other engines. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "file/file_bytes.h"
#include "support/folder.h"
#include "support/streams.h"

enum { B = 2, SHORT = 9, LONG = 30 };

static void check_equal(const struct streams *a, const struct streams *b)
{
    assert_int_equal(a->size, b->size);
    for (size_t i = 0; i < a->n; i++)
        assert_memory_equal(a->at[i], b->at[i], a->size);
}

/* ---- Continuing --------------------------------------------------------- */

/* However long it may become, a stream is the same to the last bit. */
static void check_variant(const tarn_model *model, const char *method, const char *path)
{
    struct streams first = streams_by(model, method, SHORT, B);
    struct streams whole = streams_by(model, method, LONG, B);
    struct streams rest = streams_by(model, method, LONG, B);
    struct streams narrow = streams_by(model, method, SHORT - 1, B);
    int32_t symbols[LONG * B];
    struct tn_random random;
    tarn_error err;

    tn_random_seed(&random, 5);
    draw_symbols(symbols, LONG * B, &random);
    streams_feed(&first, symbols, SHORT);
    check_ok(tarn_streams_save(first.engine, first.at, B, path, &err), &err);
    check_ok(tarn_streams_load(rest.engine, rest.at, B, path, &err), &err);
    assert_int_equal(tarn_stream_position(rest.at[1]), SHORT);
    assert_memory_equal(streams_feed(&rest, symbols + SHORT * B, LONG - SHORT),
                        streams_feed(&whole, symbols, LONG), B * whole.O * sizeof(float));
    check_equal(&rest, &whole);
    assert_int_equal(tarn_streams_load(narrow.engine, narrow.at, B, path, &err), TARN_EFORMAT);
    assert_non_null(strstr(err.text, "position 9"));
    streams_close(&first);
    streams_close(&whole);
    streams_close(&rest);
    streams_close(&narrow);
}

static void streams_continue_in_an_engine_for_longer_ones(void **unused)
{
    struct folder folder = folder_open();
    const char *const path = folder_file(&folder, "streams");
    const struct model_variant *variant;

    (void)unused;
    for (size_t i = 0; (variant = model_variant_at(i)) != NULL; i++) {
        const tarn_config config = config_of(variant);

        if (!config.causal)
            continue;
        tarn_model *const model = model_of(variant);

        if (!strstr(config.attention, "lsh"))
            check_variant(model, "recurrent", path);
        check_variant(model, "recompute", path);
        tarn_model_free(model);
    }
    folder_close(&folder);
}

/* A stream that ends before its 1024th step has half as many sums as one without a limit; in a
 * file they are the same, and each continues as the other. */
static void short_and_unlimited_streams_are_one_in_a_file(void **unused)
{
    enum { FED = 1020, MORE = 9, REST = 3 };
    struct folder folder = folder_open();
    const char *const path = folder_file(&folder, "streams");
    tarn_model *const model = model_of(model_variant_at(0));
    struct streams brief = streams_by(model, NULL, FED + REST, B);
    struct streams endless = streams_by(model, NULL, 0, B);
    struct streams other = streams_by(model, NULL, 0, B);
    const size_t bytes = B * brief.O * sizeof(float);
    int32_t *const symbols = take((FED + MORE) * B, sizeof *symbols);
    struct tn_random random;
    tarn_error err;

    (void)unused;
    tn_random_seed(&random, 8);
    draw_symbols(symbols, (FED + MORE) * B, &random);
    assert_true(brief.size < endless.size);
    assert_memory_equal(streams_feed(&brief, symbols, FED),
                        streams_feed(&endless, symbols, FED), bytes);
    check_ok(tarn_streams_save(brief.engine, brief.at, B, path, &err), &err);
    check_ok(tarn_streams_load(other.engine, other.at, B, path, &err), &err);
    check_equal(&other, &endless);
    check_ok(tarn_streams_save(endless.engine, endless.at, B, path, &err), &err);
    assert_memory_equal(streams_feed(&other, symbols + FED * B, MORE),
                        streams_feed(&endless, symbols + FED * B, MORE), bytes);
    check_ok(tarn_streams_load(brief.engine, brief.at, B, path, &err), &err);
    check_ok(tarn_streams_load(other.engine, other.at, B, path, &err), &err);
    assert_memory_equal(streams_feed(&brief, symbols + FED * B, REST),
                        streams_feed(&other, symbols + FED * B, REST), bytes);
    free(symbols);
    streams_close(&brief);
    streams_close(&endless);
    streams_close(&other);
    tarn_model_free(model);
    folder_close(&folder);
}

/* Streams at their own positions, with their own settings and what they drew, saved together
 * and one by one. */
static void check_together(const struct model_variant *variant, const char *path)
{
    enum { N = 5 };
    tarn_model *const model = model_of(variant);
    struct streams s = streams_open(model, (tarn_engine_desc){.longest = LONG}, N);
    struct streams t = streams_open(model, (tarn_engine_desc){.longest = LONG}, N);
    int32_t symbols[LONG];
    tarn_streams_about about;
    struct tn_random random;
    tarn_error err;

    tn_random_seed(&random, 15);
    draw_symbols(symbols, LONG, &random);
    streams_sampling(&s, (tarn_sampling){.seed = 3, .temperature = 0.5, .top_k = 4});
    for (size_t i = 1; i < N; i++) /* the first is at its start */
        check_ok(
            tarn_engine_prefill(s.engine, s.at[i], s.outputs + i * s.O, symbols, 5 * i, &err),
            &err);
    check_ok(tarn_engine_draw(s.engine, s.at + 2, NULL, s.outputs + 2 * s.O, 3, &err), &err);
    check_ok(tarn_streams_save(s.engine, s.at, N, path, &err), &err);
    check_ok(tarn_streams_inspect(&about, path, &err), &err);
    assert_true(about.count == N && about.position == 20 && !about.has_next);
    check_ok(tarn_streams_load(t.engine, t.at, N, path, &err), &err);
    for (size_t i = 0; i < N; i++) {
        assert_int_equal(tarn_stream_position(t.at[i]), 5 * i);
        assert_int_equal(tarn_stream_next(t.at[i]), tarn_stream_next(s.at[i]));
    }
    check_ok(tarn_streams_save(s.engine, s.at + 3, 2, path, &err), &err);
    check_ok(tarn_streams_inspect(&about, path, &err), &err);
    assert_true(about.has_next);
    for (size_t i = N; i-- > 1;) { /* loading the first marked it as of this engine */
        memset(t.at[i], 0, t.size);
        check_ok(tarn_streams_save(s.engine, s.at + i, 1, path, &err), &err);
        check_ok(tarn_streams_load(t.engine, t.at + i, 1, path, &err), &err);
        assert_memory_equal(t.at[i], s.at[i], s.size);
    }
    streams_close(&s);
    streams_close(&t);
    tarn_model_free(model);
}

static void streams_are_saved_together_and_one_by_one(void **unused)
{
    static const size_t variants[] = {0, 4, 6,
                                      9}; /* linear, softmax, lsh, softmax and context */
    struct folder folder = folder_open();

    (void)unused;
    for (size_t i = 0; i < sizeof variants / sizeof variants[0]; i++)
        check_together(model_variant_at(variants[i]), folder_file(&folder, "streams"));
    folder_close(&folder);
}

/* ---- Bytes -------------------------------------------------------------- */

static void bytes_in_memory_are_those_of_a_file(void **unused)
{
    struct folder folder = folder_open();
    const char *const path = folder_file(&folder, "streams");
    tarn_model *const model = model_of(model_variant_at(0));
    struct streams s = streams_by(model, NULL, 0, B), t = streams_by(model, NULL, 0, B);
    const int32_t symbols[3 * B] = {1, 2, 3, 4, 5, 6};
    struct tn_bytes file;
    size_t size, less;
    tarn_streams_about about;
    tarn_error err;

    (void)unused;
    streams_feed(&s, symbols, 3);
    check_ok(tarn_streams_save(s.engine, s.at, B, path, &err), &err);
    check_ok(tn_bytes_read(&file, path, 1 << 20, &err), &err);
    unsigned char *const bytes = streams_pack(&s, &size);

    assert_int_equal(size, file.size);
    assert_memory_equal(bytes, file.data, size);
    less = size - 1;
    assert_int_equal(tarn_streams_pack(s.engine, bytes, &less, s.at, B, &err), TARN_EINVAL);
    assert_int_equal(less, size - 1);
    check_ok(tarn_streams_inspect_packed(&about, bytes, size, &err), &err);
    assert_true(!about.has_next && about.position == 3 && about.count == B);
    assert_int_equal(tarn_streams_unpack(t.engine, t.at, B, bytes, size - 1, &err),
                     TARN_EFORMAT);
    assert_int_equal(tarn_streams_unpack(t.engine, t.at, B, bytes, 0, &err), TARN_EFORMAT);
    check_ok(tarn_streams_unpack(t.engine, t.at, B, bytes, size, &err), &err);
    check_equal(&s, &t);
    free(bytes);
    tn_bytes_free(&file);
    streams_close(&s);
    streams_close(&t);
    tarn_model_free(model);
    folder_close(&folder);
}

/* ---- Version 0.1 -------------------------------------------------------- */

/* Two streams as `tarn generate --streams 2 --seed 5 --save-state` of version 0.1 saved them,
 * and the symbols that it then continued with. */
struct old {
    const char *model, *streams;
    size_t position;
    int32_t symbols[B][24];
};

static const struct old olds[] = {
    {"old_linear.safetensors",
     "old_linear.state",
     1500,
     {{4, 0, 5, 3, 6, 1, 4, 1, 6, 6, 5, 6, 6, 2, 1, 4, 4, 3, 4, 3, 4, 5, 0, 4},
      {5, 1, 1, 2, 1, 2, 2, 2, 5, 1, 3, 4, 0, 4, 0, 5, 5, 6, 2, 3, 6, 6, 2, 4}}},
    {"old_softmax.safetensors",
     "old_softmax.state",
     20,
     {{1, 2, 2, 2, 2, 3, 6, 1, 4, 3, 6, 1, 4, 2, 0, 5, 0, 5, 4, 6, 5, 3, 5, 0},
      {0, 2, 2, 3, 6, 5, 3, 3, 0, 5, 1, 2, 5, 1, 2, 5, 6, 0, 0, 0, 5, 6, 1, 5}}},
    {"old_linear.safetensors",
     "old_linear_recompute.state",
     9,
     {{5, 6, 5, 4, 0, 1, 1, 0, 6, 5, 2, 1, 2, 2, 2, 2, 3, 6, 1, 4, 3, 6, 1, 4},
      {5, 4, 0, 0, 3, 0, 3, 5, 2, 1, 0, 0, 1, 2, 3, 6, 5, 3, 3, 0, 5, 1, 2, 5}}},
};

static void check_old(const struct old *old)
{
    char path[2][TARN_PATH_SIZE];
    tarn_streams_about about;
    tarn_model *model;
    struct tn_bytes file;
    tarn_error err;

    snprintf(path[0], sizeof path[0], "%s%s", TEST_VECTORS, old->model);
    snprintf(path[1], sizeof path[1], "%s%s", TEST_VECTORS, old->streams);
    check_ok(tarn_model_load(&model, path[0], NULL, &err), &err);
    check_ok(tarn_streams_inspect(&about, path[1], &err), &err);
    assert_true(about.count == B && about.has_next && about.position == old->position);
    struct streams s = streams_by(model, about.method, old->position + 24, B);

    check_ok(tarn_streams_load(s.engine, s.at, B, path[1], &err), &err);
    streams_sampling(&s, (tarn_sampling){.seed = 5});
    for (size_t i = 0; i < 24; i++) {
        streams_step(&s, NULL);
        check_ok(tarn_engine_draw(s.engine, s.at, NULL, s.outputs, B, &err), &err);
        for (size_t b = 0; b < B; b++)
            assert_int_equal(tarn_stream_next(s.at[b]), old->symbols[b][i]);
    }
    check_ok(tarn_streams_load(s.engine, s.at, B, path[1], &err), &err);
    check_ok(tn_bytes_read(&file, path[1], 1 << 20, &err), &err);
    for (size_t cut = 0; cut < file.size; cut += 53) {
        assert_int_not_equal(tarn_streams_unpack(s.engine, s.at, B, file.data, cut, &err),
                             TARN_OK);
        assert_int_equal(tarn_stream_position(s.at[1]), old->position);
    }
    for (size_t i = 0; i < file.size; i += i < 400 ? 1 : 41) {
        file.data[i] ^= 0x15;
        tarn_streams_unpack(s.engine, s.at, B, file.data, file.size, &err);
        file.data[i] ^= 0x15;
    }
    tn_bytes_free(&file);
    streams_close(&s);
    tarn_model_free(model);
}

static void files_of_version_0_1_continue(void **unused)
{
    (void)unused;
    for (size_t i = 0; i < sizeof olds / sizeof olds[0]; i++)
        check_old(&olds[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(streams_continue_in_an_engine_for_longer_ones),
        cmocka_unit_test(short_and_unlimited_streams_are_one_in_a_file),
        cmocka_unit_test(streams_are_saved_together_and_one_by_one),
        cmocka_unit_test(bytes_in_memory_are_those_of_a_file),
        cmocka_unit_test(files_of_version_0_1_continue),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
