/* SPDX-License-Identifier: MIT */
/* test_stream_refusals.c - nothing else than the streams that were saved gets in from files and
 * bytes, and no number that is not finite gets out. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "generate/engine.h"
#include "model/model_data.h"
#include "support/folder.h"
#include "support/streams.h"

enum { B = 2, LONG = 30 };

static const int32_t symbols[3 * B] = {1, 2, 3, 4, 5, 6};

/* At position 3. */
static struct streams streams_fed(const tarn_model *model)
{
    struct streams s = streams_by(model, "recurrent", 0, B);

    streams_feed(&s, symbols, 3);
    return s;
}

static void check_refused(const struct streams *s, const void *bytes, size_t size,
                          tarn_status status, const char *why)
{
    tarn_error err;

    assert_int_equal(tarn_streams_unpack(s->engine, s->at, B, bytes, size, &err), status);
    assert_non_null(strstr(err.text, why));
}

/* ---- What a file says --------------------------------------------------- */

static void a_file_says_whose_streams_it_has(void **unused)
{
    struct folder folder = folder_open();
    const char *const path = folder_file(&folder, "streams");
    tarn_config config = config_of(model_variant_at(0));
    tarn_model *model, *another;
    tarn_streams_about about;
    tarn_error err;

    (void)unused;
    check_ok(tarn_model_create(&model, &config, NULL, &err), &err);
    config.seed = 99; /* the same shape, other weights */
    check_ok(tarn_model_create(&another, &config, NULL, &err), &err);
    struct streams s = streams_by(model, NULL, 0, B), foreign = streams_by(another, NULL, 0, B);
    struct streams recomputed = streams_by(model, "recompute", LONG, B);

    streams_feed(&s, symbols, 3);
    check_ok(tarn_streams_save(s.engine, s.at, B, path, &err), &err);
    check_ok(tarn_streams_inspect(&about, path, &err), &err);
    assert_true(about.model == tarn_model_fingerprint(model));
    assert_string_equal(about.method, "recurrent");
    assert_int_equal(tarn_streams_load(s.engine, s.at, 1, path, &err), TARN_EFORMAT);
    assert_non_null(strstr(err.text, "2 streams; expected 1"));
    assert_int_equal(tarn_streams_load(recomputed.engine, recomputed.at, B, path, &err),
                     TARN_EFORMAT);
    assert_non_null(strstr(err.text, "method 'recurrent'"));
    assert_int_equal(tarn_streams_load(foreign.engine, foreign.at, B, path, &err),
                     TARN_EFORMAT);
    assert_non_null(strstr(err.text, "model"));
    assert_int_equal(tarn_streams_save(foreign.engine, s.at, B, path, &err), TARN_EINVAL);
    assert_non_null(strstr(err.text, "streams[0]: is of another model"));
    check_ok(tarn_model_save(model, path, &err), &err);
    assert_int_equal(tarn_streams_inspect(&about, path, &err), TARN_EFORMAT);
    assert_int_equal(tarn_streams_inspect(&about, folder_file(&folder, "none"), &err),
                     TARN_EIO);
    streams_close(&s);
    streams_close(&foreign);
    streams_close(&recomputed);
    tarn_model_free(model);
    tarn_model_free(another);
    folder_close(&folder);
}

/* What tarn_streams_inspect() says holds for every file that loads. */
static void metadata_that_disagrees_with_the_streams_is_refused(void **unused)
{
    static const char *const edits[][3] = {
        {"position\\\":3", "position\\\":4", "says position 4; its streams are at 3"},
        {"next\\\":false", "next\\\":true ", "one has not"}};
    tarn_model *const model = model_of(model_variant_at(0));
    struct streams s = streams_fed(model);
    size_t size;

    (void)unused;
    for (size_t i = 0; i < 2; i++) {
        unsigned char *const bytes = streams_pack(&s, &size);

        drop_checksums(bytes, size);
        edit_bytes(bytes, size, edits[i][0], edits[i][1]);
        check_refused(&s, bytes, size, TARN_EFORMAT, edits[i][2]);
        free(bytes);
    }
    streams_close(&s);
    tarn_model_free(model);
}

/* ---- Damaged bytes ------------------------------------------------------ */

/* Symbols that the context reaches back to choose rows of a table. They are the last bytes. */
static void recent_symbols_that_are_none_are_refused(void **unused)
{
    const struct model_variant variant = {"context", {{"context", "2"}, {0}}};
    tarn_model *const model = model_of(&variant);
    struct streams s = streams_fed(model);
    size_t size;
    tarn_error err;

    (void)unused;
    unsigned char *const bytes = streams_pack(&s, &size);

    check_ok(tarn_streams_unpack(s.engine, s.at, B, bytes, size, &err), &err);
    bytes[size - 1] = 0x7f;
    check_refused(&s, bytes, size, TARN_EFORMAT, "is damaged: tensor");
    drop_checksums(bytes, size);
    check_refused(&s, bytes, size, TARN_EINVAL, "it must be from 0 to 6");
    free(bytes);
    streams_close(&s);
    tarn_model_free(model);
}

/* The least number of all, too, of which 1 cannot be subtracted. */
static void next_symbols_that_are_none_are_refused(void **unused)
{
    static const int32_t drawn[] = {8, -1, INT32_MIN, INT32_MAX};
    tarn_model *const model = model_of(model_variant_at(0));
    struct streams s = streams_fed(model);
    size_t size;

    (void)unused;
    for (size_t i = 0; i < sizeof drawn / sizeof drawn[0]; i++) {
        for (size_t b = 0; b < B; b++)
            s.at[b]->head.drawn = drawn[i];
        unsigned char *const bytes = streams_pack(&s, &size);

        check_refused(&s, bytes, size, TARN_EINVAL, "it must be from 0 to 6");
        free(bytes);
    }
    streams_close(&s);
    tarn_model_free(model);
}

/* Either refused, with all streams as they were, or streams that continue. */
static void check_hostile(struct streams *s, const void *bytes, size_t size, bool must_fail)
{
    unsigned char *const before = take(B, s->size);
    tarn_streams_about about;
    tarn_error err;

    for (size_t i = 0; i < B; i++)
        memcpy(before + i * s->size, s->at[i], s->size);
    tarn_streams_inspect_packed(&about, bytes, size, &err);
    if (tarn_streams_unpack(s->engine, s->at, B, bytes, size, &err) == TARN_OK) {
        assert_false(must_fail);
        check_ok(tarn_engine_draw(s->engine, s->at, NULL, s->outputs, B, &err), &err);
        if (tarn_stream_position(s->at[0]) < LONG && tarn_stream_position(s->at[1]) < LONG) {
            const tarn_status status =
                tarn_engine_step(s->engine, s->at, s->outputs, NULL, B, &err);

            assert_true(status == TARN_OK || status == TARN_ENUMBER);
        }
        for (size_t i = 0; i < B; i++)
            memcpy(s->at[i], before + i * s->size, s->size);
    }
    for (size_t i = 0; i < B; i++)
        assert_memory_equal(s->at[i], before + i * s->size, s->size);
    free(before);
}

/* `bytes` may become any; they are allocated to their size, so that sanitizers see more. With
 * checksums no edit loads, unless it is of the `key_length` bytes of their key. */
static void check_bytes(struct streams *s, const unsigned char *bytes, size_t size, size_t key,
                        size_t key_length)
{
    for (size_t cut = 0; cut < size; cut += cut < 600 ? 1 : 97) {
        unsigned char *const less = take(cut + !cut, 1);

        memcpy(less, bytes, cut);
        check_hostile(s, less, cut, true);
        free(less);
    }
    unsigned char *const edited = take(size, 1);

    memcpy(edited, bytes, size);
    for (size_t i = 0; i < size; i += i < 600 ? 1 : 41)
        for (int bit = 0; bit < 8; bit += 3) {
            edited[i] ^= (unsigned char)(1 << bit);
            check_hostile(s, edited, size, key > 0 && (i < key || i >= key + key_length));
            edited[i] = bytes[i];
        }
    free(edited);
}

static void truncated_and_edited_bytes_do_no_harm(void **unused)
{
    static const size_t variants[] = {0, 3, 9}; /* linear, softmax, softmax and context */

    (void)unused;
    for (size_t i = 0; i < sizeof variants / sizeof variants[0]; i++) {
        tarn_model *const model = model_of(model_variant_at(variants[i]));

        for (size_t m = 0; tarn_method(m); m++) {
            struct streams s = streams_by(model, tarn_method(m)->name, LONG, B);
            size_t size;
            tarn_error err;

            streams_feed(&s, symbols, 3);
            check_ok(tarn_engine_draw(s.engine, s.at, NULL, s.outputs, B, &err), &err);
            unsigned char *const bytes = streams_pack(&s, &size);

            unsigned char *const sealed = take(size, 1);

            memcpy(sealed, bytes, size);
            const size_t key = drop_checksums(bytes, size);

            check_bytes(&s, sealed, size, key, sizeof "\"tarn_crc32\"" - 1);
            check_bytes(&s, bytes, size, 0, 0);
            free(sealed);
            free(bytes);
            streams_close(&s);
        }
        tarn_model_free(model);
    }
}

/* ---- Numbers that are not finite ---------------------------------------- */

static void outputs_that_are_not_finite_are_an_error(void **unused)
{
    (void)unused;
    for (size_t m = 0; tarn_method(m); m++) {
        tarn_model *const model = model_of(model_variant_at(0));
        tarn_error err;

        for (size_t i = 0; i < model->count; i++)
            model->values[i] = i % 2 ? 3e38f : -3e38f;
        struct streams s = streams_by(model, tarn_method(m)->name, LONG, B);

        assert_int_equal(tarn_engine_step(s.engine, s.at, s.outputs, symbols, B, &err),
                         TARN_ENUMBER);
        assert_non_null(strstr(err.text, "outputs of the model are not finite"));
        streams_close(&s);
        tarn_model_free(model);
    }
}

/* The first float of the first layer: after the head of the stream and that of the state. */
static void a_state_that_is_not_finite_is_refused(void **unused)
{
    static const float wrong[] = {NAN, INFINITY, -INFINITY};
    tarn_model *const model = model_of(model_variant_at(0));
    struct streams s = streams_by(model, "recurrent", LONG, B);
    size_t size, length = 0;
    tarn_error err;

    (void)unused;
    streams_feed(&s, symbols, 1);
    unsigned char *const bytes = streams_pack(&s, &size);

    drop_checksums(bytes, size);
    for (size_t i = 8; i-- > 0;)
        length = length << 8 | bytes[i];
    check_ok(tarn_streams_unpack(s.engine, s.at, B, bytes, size, &err), &err);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        memcpy(bytes + 8 + length + 56 + 64, &wrong[i], sizeof wrong[i]);
        check_refused(&s, bytes, size, TARN_EFORMAT, "a state that is not finite");
    }
    free(bytes);
    streams_close(&s);
    tarn_model_free(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_says_whose_streams_it_has),
        cmocka_unit_test(metadata_that_disagrees_with_the_streams_is_refused),
        cmocka_unit_test(recent_symbols_that_are_none_are_refused),
        cmocka_unit_test(next_symbols_that_are_none_are_refused),
        cmocka_unit_test(truncated_and_edited_bytes_do_no_harm),
        cmocka_unit_test(outputs_that_are_not_finite_are_an_error),
        cmocka_unit_test(a_state_that_is_not_finite_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
