/* SPDX-License-Identifier: MIT */
/* test_state_file.c - states in files: they go on in longer generators, and nothing else than
 * what was saved gets in. */
#include <stdlib.h>
#include <string.h>

#include "file/file_bytes.h"
#include "support/folder.h"
#include "support/model_case.h"
#include "tarn/file.h"
#include "tarn/generate.h"

enum { B = 2, SHORT = 9, LONG = 30 };

/* A generator and its state. */
struct stream {
    tarn_generator *g;
    unsigned char *state;
    size_t bytes;
};

static struct stream stream_open(const tarn_model *model, const char *method, size_t batch,
                                 size_t longest)
{
    const tarn_generator_desc desc = {
        .batch = batch, .longest = longest, .method = method, .host.cpu = forced_cpu()};
    struct stream s;
    tarn_error err;

    check_ok(tarn_generator_create(&s.g, model, &desc, &err), &err);
    s.bytes = tarn_generator_state_size(s.g);
    s.state = take(s.bytes, 1);
    return s;
}

static void stream_close(struct stream *s)
{
    free(s->state);
    tarn_generator_free(s->g);
}

/* Outputs after `n` symbols. */
static const float *feed(struct stream *s, const int32_t *symbols, size_t n)
{
    const float *outputs = NULL;
    tarn_error err;

    for (size_t i = 0; i < n; i++)
        check_ok(tarn_generator_step(s->g, s->state, &outputs, symbols + i * B, &err), &err);
    return outputs;
}

/* Whatever it may grow to, a state is the same to the last bit. */
static void check_variant(const tarn_model *model, const char *method, const char *path)
{
    struct stream first = stream_open(model, method, B, SHORT);
    struct stream whole = stream_open(model, method, B, LONG);
    struct stream rest = stream_open(model, method, B, LONG);
    struct stream narrow = stream_open(model, method, B, SHORT - 1);
    const size_t bytes = tarn_model_outputs(model) * B * sizeof(float);
    const int32_t next[B] = {3, 1};
    int32_t symbols[LONG * B], found[B];
    struct tn_random random;
    tarn_error err;

    tn_random_seed(&random, 5);
    draw_symbols(symbols, LONG * B, &random);
    feed(&first, symbols, SHORT);
    check_ok(tarn_state_save(first.g, first.state, next, path, &err), &err);
    check_ok(tarn_state_load(rest.g, rest.state, found, path, &err), &err);
    assert_memory_equal(found, next, sizeof next);
    assert_int_equal(tarn_state_position(rest.state), SHORT);
    assert_memory_equal(feed(&rest, symbols + SHORT * B, LONG - SHORT),
                        feed(&whole, symbols, LONG), bytes);
    assert_memory_equal(rest.state, whole.state, whole.bytes);
    assert_int_equal(tarn_state_load(narrow.g, narrow.state, found, path, &err), TARN_EFORMAT);
    assert_non_null(strstr(err.text, "position 9"));
    stream_close(&first);
    stream_close(&whole);
    stream_close(&rest);
    stream_close(&narrow);
}

static void a_state_goes_on_in_a_longer_generator(void **unused)
{
    struct folder folder = folder_open();
    const char *const path = folder_file(&folder, "state");
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

/* A stream that ends before its 1024th step keeps half as much as one without end; in a file
 * they are the same, and each goes on as the other. */
static void short_and_endless_streams_are_one_in_a_file(void **unused)
{
    enum { FED = 1020, MORE = 9, REST = 3 };
    struct folder folder = folder_open();
    const char *const path = folder_file(&folder, "state");
    tarn_model *const model = model_of(model_variant_at(0));
    struct stream brief = stream_open(model, NULL, B, FED + REST);
    struct stream endless = stream_open(model, NULL, B, 0);
    struct stream other = stream_open(model, NULL, B, 0);
    const size_t bytes = tarn_model_outputs(model) * B * sizeof(float);
    int32_t *const symbols = take((FED + MORE) * B, sizeof *symbols);
    struct tn_random random;
    tarn_error err;

    (void)unused;
    tn_random_seed(&random, 8);
    draw_symbols(symbols, (FED + MORE) * B, &random);
    assert_true(brief.bytes < endless.bytes);
    assert_memory_equal(feed(&brief, symbols, FED), feed(&endless, symbols, FED), bytes);
    check_ok(tarn_state_save(brief.g, brief.state, NULL, path, &err), &err);
    check_ok(tarn_state_load(other.g, other.state, NULL, path, &err), &err);
    assert_memory_equal(other.state, endless.state, endless.bytes);
    check_ok(tarn_state_save(endless.g, endless.state, NULL, path, &err), &err);
    assert_memory_equal(feed(&other, symbols + FED * B, MORE),
                        feed(&endless, symbols + FED * B, MORE), bytes);
    check_ok(tarn_state_load(brief.g, brief.state, NULL, path, &err), &err);
    check_ok(tarn_state_load(other.g, other.state, NULL, path, &err), &err);
    assert_memory_equal(feed(&brief, symbols + FED * B, REST),
                        feed(&other, symbols + FED * B, REST), bytes);
    free(symbols);
    stream_close(&brief);
    stream_close(&endless);
    stream_close(&other);
    tarn_model_free(model);
    folder_close(&folder);
}

static void what_comes_next_is_kept_if_there_is_something(void **unused)
{
    struct folder folder = folder_open();
    const char *const path = folder_file(&folder, "state");
    tarn_model *const model = model_of(model_variant_at(0));
    struct stream s = stream_open(model, NULL, B, 0);
    const int32_t unknown[B] = {0, MODEL_SYMBOLS};
    int32_t next[B] = {5, 6};
    tarn_state_about about;
    tarn_error err;

    (void)unused;
    check_ok(tarn_state_save(s.g, s.state, NULL, path, &err), &err);
    check_ok(tarn_state_load(s.g, s.state, NULL, path, &err), &err);
    check_ok(tarn_state_inspect(&about, path, &err), &err);
    assert_false(about.has_next);
    assert_int_equal(tarn_state_load(s.g, s.state, next, path, &err), TARN_EFORMAT);
    assert_int_equal(next[0], 5);
    check_ok(tarn_state_save(s.g, s.state, next, path, &err), &err);
    check_ok(tarn_state_load(s.g, s.state, NULL, path, &err), &err);
    assert_int_equal(tarn_state_save(s.g, s.state, unknown, path, &err), TARN_EINVAL);
    stream_close(&s);
    tarn_model_free(model);
    folder_close(&folder);
}

static void bytes_in_memory_are_those_of_a_file(void **unused)
{
    struct folder folder = folder_open();
    const char *const path = folder_file(&folder, "state");
    tarn_model *const model = model_of(model_variant_at(0));
    struct stream s = stream_open(model, NULL, B, 0), t = stream_open(model, NULL, B, 0);
    const int32_t symbols[3 * B] = {1, 2, 3, 4, 5, 6};
    struct tn_bytes file;
    int32_t next[B] = {-7, -7};
    size_t size = 0, less;
    tarn_state_about about;
    tarn_error err;

    (void)unused;
    feed(&s, symbols, 3);
    check_ok(tarn_state_save(s.g, s.state, symbols, path, &err), &err);
    check_ok(tn_bytes_read(&file, path, 1 << 20, &err), &err);
    check_ok(tarn_state_pack(s.g, NULL, &size, s.state, symbols, &err), &err);
    assert_int_equal(size, file.size);
    unsigned char *const bytes = take(size, 1);

    less = size - 1;
    assert_int_equal(tarn_state_pack(s.g, bytes, &less, s.state, symbols, &err), TARN_EINVAL);
    assert_int_equal(less, size - 1);
    check_ok(tarn_state_pack(s.g, bytes, &size, s.state, symbols, &err), &err);
    assert_memory_equal(bytes, file.data, size);
    check_ok(tarn_state_inspect_packed(&about, bytes, size, &err), &err);
    assert_true(about.has_next && about.position == 3 && about.batch == B);
    assert_int_equal(tarn_state_unpack(t.g, t.state, next, bytes, size - 1, &err),
                     TARN_EFORMAT);
    assert_int_equal(tarn_state_unpack(t.g, t.state, next, bytes, 0, &err), TARN_EFORMAT);
    assert_int_equal(next[0], -7);
    check_ok(tarn_state_unpack(t.g, t.state, next, bytes, size, &err), &err);
    assert_memory_equal(next, symbols, sizeof next);
    assert_memory_equal(t.state, s.state, s.bytes);
    free(bytes);
    tn_bytes_free(&file);
    stream_close(&s);
    stream_close(&t);
    tarn_model_free(model);
    folder_close(&folder);
}

/* A state ends with the symbols that its context reaches back to, which choose rows of a
 * table. */
static void symbols_of_the_past_that_are_none_are_refused(void **unused)
{
    const struct model_variant variant = {"context", {{"context", "2"}, {0}}};
    tarn_model *const model = model_of(&variant);
    struct stream s = stream_open(model, "recurrent", B, 0);
    const int32_t symbols[3 * B] = {1, 2, 3, 4, 5, 6};
    size_t size = 0;
    tarn_error err;

    (void)unused;
    feed(&s, symbols, 3);
    check_ok(tarn_state_pack(s.g, NULL, &size, s.state, NULL, &err), &err);
    unsigned char *const bytes = take(size, 1);

    check_ok(tarn_state_pack(s.g, bytes, &size, s.state, NULL, &err), &err);
    check_ok(tarn_state_unpack(s.g, s.state, NULL, bytes, size, &err), &err);
    bytes[size - 1] = 0x7f;
    assert_int_equal(tarn_state_unpack(s.g, s.state, NULL, bytes, size, &err), TARN_EINVAL);
    assert_non_null(strstr(err.text, "it must be from 0 to 6"));
    free(bytes);
    stream_close(&s);
    tarn_model_free(model);
}

static void a_file_tells_whose_state_it_is(void **unused)
{
    struct folder folder = folder_open();
    const char *const path = folder_file(&folder, "state");
    tarn_model *const model = model_of(model_variant_at(0));
    struct stream s = stream_open(model, NULL, B, 0), one = stream_open(model, NULL, 1, 0);
    struct stream other = stream_open(model, "recompute", B, LONG);
    const int32_t symbols[3 * B] = {1, 2, 3, 4, 5, 6};
    tarn_state_about about;
    tarn_error err;

    (void)unused;
    feed(&s, symbols, 3);
    check_ok(tarn_state_save(s.g, s.state, symbols, path, &err), &err);
    check_ok(tarn_state_inspect(&about, path, &err), &err);
    assert_true(about.model == tarn_model_fingerprint(model));
    assert_string_equal(about.method, "recurrent");
    assert_int_equal(about.batch, B);
    assert_int_equal(about.position, 3);
    assert_true(about.has_next);
    assert_int_equal(tarn_state_load(one.g, one.state, NULL, path, &err), TARN_EFORMAT);
    assert_non_null(strstr(err.text, "2 streams; expected 1"));
    assert_int_equal(tarn_state_load(other.g, other.state, NULL, path, &err), TARN_EFORMAT);
    assert_non_null(strstr(err.text, "method 'recurrent'"));
    check_ok(tarn_model_save(model, path, &err), &err);
    assert_int_equal(tarn_state_inspect(&about, path, &err), TARN_EFORMAT);
    assert_int_equal(tarn_state_inspect(&about, folder_file(&folder, "none"), &err), TARN_EIO);
    stream_close(&s);
    stream_close(&one);
    stream_close(&other);
    tarn_model_free(model);
    folder_close(&folder);
}

/* Either refused, with state and symbols as they were, or a state of this generator. */
static void check_hostile(struct stream *s, const char *path, bool must_fail)
{
    unsigned char *const before = take(s->bytes, 1);
    int32_t next[B] = {-7, -7};
    tarn_state_about about;
    const float *outputs;
    tarn_error err;

    memcpy(before, s->state, s->bytes);
    tarn_state_inspect(&about, path, &err);
    const tarn_status status = tarn_state_load(s->g, s->state, next, path, &err);

    if (status != TARN_OK) {
        assert_memory_equal(s->state, before, s->bytes);
        assert_int_equal(next[0], -7);
    } else {
        assert_false(must_fail);
        check_ok(tarn_generator_step(s->g, s->state, &outputs, next, &err), &err);
        memcpy(s->state, before, s->bytes);
    }
    free(before);
}

static void check_bytes(const tarn_model *model, const char *method,
                        const struct folder *folder)
{
    const char *const path = folder_file(folder, "whole");
    const char *const edited = folder_file(folder, "edited");
    struct stream s = stream_open(model, method, B, LONG);
    const int32_t symbols[3 * B] = {1, 2, 3, 4, 5, 6};
    struct tn_bytes whole;
    tarn_error err;

    feed(&s, symbols, 3);
    check_ok(tarn_state_save(s.g, s.state, symbols, path, &err), &err);
    check_ok(tn_bytes_read(&whole, path, 1 << 20, &err), &err);
    for (size_t size = 0; size < whole.size; size += size < 400 ? 1 : 97) {
        file_put(edited, whole.data, size);
        check_hostile(&s, edited, true);
    }
    for (size_t i = 0; i < whole.size; i += i < 400 ? 1 : 41) {
        whole.data[i] ^= 0x15;
        file_put(edited, whole.data, whole.size);
        check_hostile(&s, edited, false);
        whole.data[i] ^= 0x15;
    }
    tn_bytes_free(&whole);
    stream_close(&s);
}

static void truncated_and_edited_files_do_no_harm(void **unused)
{
    static const size_t variants[] = {0, 3}; /* linear, softmax */
    struct folder folder = folder_open();

    (void)unused;
    for (size_t i = 0; i < sizeof variants / sizeof variants[0]; i++) {
        tarn_model *const model = model_of(model_variant_at(variants[i]));

        for (size_t m = 0; tarn_method(m); m++)
            check_bytes(model, tarn_method(m)->name, &folder);
        tarn_model_free(model);
    }
    folder_close(&folder);
}

static void a_file_lists_what_it_holds(void **unused)
{
    struct folder folder = folder_open();
    const char *const path = folder_file(&folder, "model");
    tarn_model *const model = model_of(model_variant_at(0));
    tarn_file_tensor tensor;
    tarn_file_entry entry;
    tarn_tensor wanted;
    tarn_file *file;
    tarn_error err;
    size_t i = 0;

    (void)unused;
    check_ok(tarn_model_save(model, path, &err), &err);
    check_ok(tarn_file_open(&file, path, &err), &err);
    for (; tarn_file_tensor_at(file, i, &tensor); i++) {
        float *const values = take(tensor.count, sizeof *values);

        assert_true(tarn_model_tensor(model, i, &wanted));
        assert_string_equal(tensor.name, wanted.name);
        assert_string_equal(tensor.dtype, "F32");
        assert_int_equal(tensor.rank, wanted.columns ? 2 : 1);
        assert_int_equal(tensor.shape[0], wanted.rows);
        assert_int_equal(tensor.bytes, tensor.count * sizeof *values);
        check_ok(tarn_file_floats(file, values, i, &err), &err);
        assert_memory_equal(values, wanted.values, tensor.bytes);
        free(values);
    }
    assert_false(tarn_model_tensor(model, i, &wanted));
    assert_true(tarn_file_entry_at(file, 0, &entry));
    assert_string_equal(entry.key, "tarn");
    assert_ptr_equal(entry.text, tarn_file_text(file, "tarn"));
    assert_false(tarn_file_entry_at(file, 1, &entry));
    assert_null(tarn_file_text(file, "none"));
    assert_int_equal(tarn_file_floats(file, NULL, i, &err), TARN_EINVAL);
    tarn_file_free(file);
    tarn_file_free(NULL);
    assert_int_equal(tarn_file_open(&file, folder.path, &err), TARN_EIO);
    assert_null(file);
    tarn_model_free(model);
    folder_close(&folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_state_goes_on_in_a_longer_generator),
        cmocka_unit_test(short_and_endless_streams_are_one_in_a_file),
        cmocka_unit_test(what_comes_next_is_kept_if_there_is_something),
        cmocka_unit_test(bytes_in_memory_are_those_of_a_file),
        cmocka_unit_test(symbols_of_the_past_that_are_none_are_refused),
        cmocka_unit_test(a_file_tells_whose_state_it_is),
        cmocka_unit_test(truncated_and_edited_files_do_no_harm),
        cmocka_unit_test(a_file_lists_what_it_holds),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
