/* SPDX-License-Identifier: MIT */
/* test_task_image.c - images as a task: what the data says of itself, bits/dim against its
 * plain definition, step by step and in parallel, in a state that does not grow; pictures of
 * them. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "file/images.h"
#include "support/batches.h"
#include "support/folder.h"
#include "support/image_bits.h"
#include "support/image_files.h"
#include "support/streams.h"
#include "task/task.h"
#include "tarn/tarn.h"

enum { HEIGHT = 4, WIDTH = 5, COUNT = 23, N = HEIGHT * WIDTH - 1, MIXTURES = 10 };

static const char whole_spec[] = "image:height=4,width=5,channels=1";

static const char *put_images(const struct folder *folder)
{
    const char *const path = folder_file(folder, "images");

    bytes_put(path, idx_bytes(COUNT, HEIGHT, WIDTH));
    return path;
}

static tarn_settings settings_for(const char *path)
{
    tarn_settings settings;
    tarn_error err;

    check_ok(tarn_settings_start(&settings, "image", &err), &err);
    snprintf(settings.data, sizeof settings.data, "%s", path);
    settings.batch = 4;
    settings.eval_batches = 0;
    settings.validation = 0.5;
    return settings;
}

static tarn_config small_config(void)
{
    tarn_config config;
    tarn_error err;

    check_ok(tarn_config_start(&config, "image", NULL, &err), &err);
    config.layers = 2;
    config.heads = 2;
    config.width = 16;
    config.feed = 32;
    return config;
}

static tarn_model *small_model(void)
{
    const tarn_config config = small_config();
    tarn_model *model;
    tarn_error err;

    check_ok(tarn_model_create(&model, &config, NULL, &err), &err);
    return model;
}

/* ---- What the data says ------------------------------------------------- */

static void the_data_gives_length_and_size(void **state)
{
    struct folder folder = folder_open();
    const struct tn_task_desc desc = {.data = put_images(&folder)};
    tarn_task *task;
    tarn_image_size size;
    tarn_error err;

    (void)state;
    check_ok(tn_task_create(&task, "image", &desc, &err), &err);
    assert_int_equal(task->N, N);
    assert_string_equal(task->spec, whole_spec);
    tarn_task_free(task);
    assert_true(tarn_task_image(&size, whole_spec));
    assert_true(size.height == HEIGHT && size.width == WIDTH && size.channels == 1);
    assert_true(tarn_task_image(&size, "image"));
    assert_int_equal(size.height, 0);
    assert_false(tarn_task_image(&size, "text"));
    assert_false(tarn_task_image(&size, "none"));
    folder_close(&folder);
}

static void another_size_is_refused(void **state)
{
    static const struct {
        const char *spec;
        size_t length;
        const char *says;
    } cases[] = {
        {"image:height=5,width=4", 0, "4 x 5 x 1"},
        {"image:width=4", 0, "the task needs 0 x 4 x 0, where 0 is any"},
        {"image:channels=3", 0, "the task needs 0 x 0 x 3"},
        {"image", N + 1, "length is 20; it must be 0 or 19"},
        {"image:channels=4", 0, "channels is '4'"},
    };
    struct folder folder = folder_open();
    const char *const path = put_images(&folder);

    (void)state;
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        const struct tn_task_desc desc = {.data = path, .length = cases[c].length};
        tarn_task *task;
        tarn_error err = {0};

        assert_int_equal(tn_task_create(&task, cases[c].spec, &desc, &err), TARN_EINVAL);
        if (!strstr(err.text, cases[c].says))
            fail_msg("case %zu: '%s' does not say '%s'", c, err.text, cases[c].says);
    }
    folder_close(&folder);
}

static void a_side_that_no_option_holds_is_refused(void **state)
{
    struct folder folder = folder_open();
    const char *const path = folder_file(&folder, "images");
    tarn_task *task;
    tarn_error err;

    (void)state;
    bytes_put(path, idx_bytes(20, 1, (1 << 15) + 1));
    assert_int_equal(tn_task_create(&task, "image", &(struct tn_task_desc){.data = path}, &err),
                     TARN_EINVAL);
    assert_non_null(strstr(err.text, "1 x 32769 x 1"));
    folder_close(&folder);
}

static void a_batch_has_all_bytes_but_one(void **state)
{
    struct folder folder = folder_open();
    const struct tn_task_desc desc = {.data = put_images(&folder), .validation = 0.5};
    struct owned_batch owned = batch_open(4, N);
    tarn_task *task;
    size_t positions = 0;
    tarn_error err;

    (void)state;
    check_ok(tn_task_create(&task, "image", &desc, &err), &err);
    const size_t batches = tn_task_batches(task, TN_VALIDATION, 4), images = COUNT / 2;

    assert_int_equal(batches, (images + 3) / 4);
    for (size_t i = 0; i < batches; i++) {
        batch_fill(task, &owned.batch, TN_VALIDATION, i);
        positions += batch_check(&owned.batch, 256);
        for (size_t n = 0; n < N; n++) {
            assert_int_equal(owned.batch.inputs[n], image_byte(COUNT - images + 4 * i, n));
            assert_int_equal(owned.batch.targets[n], image_byte(COUNT - images + 4 * i, n + 1));
        }
    }
    assert_int_equal(positions, images * N);
    tarn_task_free(task);
    batch_close(&owned);
    folder_close(&folder);
}

/* ---- Bits per dim ------------------------------------------------------- */

static void bits_per_dim_is_what_steps_and_the_formula_give(void **state)
{
    struct folder folder = folder_open();
    const tarn_settings settings = settings_for(put_images(&folder));
    tarn_model *const model = small_model();
    unsigned char pixels[COUNT / 2][N + 1];
    tarn_validation validation;
    tarn_error err;

    (void)state;
    for (size_t i = 0; i < COUNT / 2; i++)
        for (size_t k = 0; k < N + 1; k++)
            pixels[i][k] = image_byte(COUNT - COUNT / 2 + i, k);
    check_ok(tarn_evaluate(&validation, model, &settings,
                           &(tarn_evaluate_desc){.host = {.threads = 1, .cpu = forced_cpu()}},
                           &err),
             &err);
    const double plain = bits_by_steps(model, pixels[0], COUNT / 2, N + 1);

    assert_string_equal(validation.name, "bits_per_dim");
    assert_int_equal((size_t)validation.positions, COUNT / 2 * N);
    assert_true(fabs(validation.metric - plain) < 1e-4);
    assert_true(fabs(validation.loss - plain * log(2.0)) < 1e-4);
    assert_true(plain > 1.0);
    tarn_model_free(model);
    folder_close(&folder);
}

/* ---- Training ----------------------------------------------------------- */

static void on_start(void *context, const tarn_settings *settings, uint64_t from, size_t bytes)
{
    (void)from;
    (void)bytes;
    *(size_t *)context = settings->length;
}

static void a_trained_model_knows_the_size(void **state)
{
    struct folder folder = folder_open(), run = folder_open();
    tarn_settings settings = settings_for(put_images(&folder));
    const tarn_config config = small_config();
    size_t length = 0;
    const tarn_train_desc desc = {.out = run.path,
                                  .host.threads = 1,
                                  .events = {.context = &length, .started = on_start}};
    tarn_config kept;
    tarn_error err;

    (void)state;
    settings.steps = 2;
    check_ok(tarn_train(&config, &settings, &desc, &err), &err);
    assert_int_equal(length, N);
    check_ok(tarn_train_settings(&kept, &settings, run.path, &err), &err);
    assert_string_equal(kept.task, whole_spec);
    assert_string_equal(kept.head, "logistic");
    assert_string_equal(settings.task, whole_spec);
    assert_int_equal(settings.length, N);
    folder_close(&folder);
    folder_close(&run);
}

/* ---- The state ---------------------------------------------------------- */

/* Images of fewer than 1024 bytes to read have one size of state, all others another. */
static void the_state_is_as_large_at_the_last_pixel(void **state)
{
    static const size_t longest[] = {1, 28 * 28 - 1, 1024, 32 * 32 * 3 - 1};
    tarn_model *const model = small_model();
    size_t sizes[4];

    (void)state;
    for (size_t i = 0; i < 4; i++) {
        tarn_engine *const engine = engine_of(model, (tarn_engine_desc){.longest = longest[i]});

        sizes[i] = tarn_stream_size(engine);
        engine_close(engine);
    }
    assert_int_equal(sizes[0], sizes[1]);
    assert_int_equal(sizes[2], sizes[3]);
    tarn_model_free(model);
}

/* ---- Files -------------------------------------------------------------- */

static void images_of_a_file_are_numbered(void **state)
{
    struct folder folder = folder_open();
    tarn_images *images;
    tarn_error err = {0};

    (void)state;
    check_ok(tarn_images_open(&images, put_images(&folder), &err), &err);
    const tarn_image_size size = tarn_images_size(images);

    assert_int_equal(tarn_images_count(images), COUNT);
    assert_true(size.height == HEIGHT && size.width == WIDTH && size.channels == 1);
    for (size_t i = 0; i < COUNT; i++)
        for (size_t k = 0; k < N + 1; k++)
            assert_int_equal(tarn_images_at(images, i)[k], image_byte(i, k));
    assert_null(tarn_images_at(images, COUNT));
    tarn_images_free(images);
    tarn_images_free(NULL);
    assert_int_equal(tarn_images_open(&images, "/nowhere/at/all", &err), TARN_EIO);
    assert_null(images);
    folder_close(&folder);
}

/* Five colour images in rows of three. */
static void a_grid_has_gaps_between_images(void **state)
{
    enum { H = 2, W = 3, C = 3, IMAGES = 5, ACROSS = 3 };
    struct folder folder = folder_open();
    const char *const path = folder_file(&folder, "grid.png");
    const tarn_image_size size = {H, W, C};
    unsigned char pixels[IMAGES * H * W * C];
    struct tn_images read;
    tarn_error err;

    (void)state;
    for (size_t i = 0; i < sizeof pixels; i++)
        pixels[i] = (unsigned char)i;
    check_ok(tarn_png_write(path, pixels, size, IMAGES, ACROSS, &err), &err);
    check_ok(tn_images_read(&read, path, NULL, &err), &err);
    assert_true(read.height == 2 * H + 1 && read.width == ACROSS * (W + 1) - 1);
    for (size_t y = 0; y < read.height; y++)
        for (size_t x = 0; x < read.width; x++)
            for (size_t c = 0; c < C; c++) {
                const size_t image = y / (H + 1) * ACROSS + x / (W + 1);
                const size_t row = y % (H + 1), column = x % (W + 1);
                const bool inside = row < H && column < W && image < IMAGES;
                const size_t at = ((image * H + row) * W + column) * C + c;

                assert_int_equal(read.pixels[(y * read.width + x) * C + c],
                                 inside ? pixels[at] : TARN_PNG_GREY);
            }
    tn_images_free(&read);
    assert_int_equal(tarn_png_write(path, pixels, size, 0, 1, &err), TARN_EINVAL);
    assert_int_equal(tarn_png_write(path, pixels, size, SIZE_MAX, 1, &err), TARN_EINVAL);
    assert_int_equal(tarn_png_write(path, pixels, (tarn_image_size){2, 3, 2}, 1, 1, &err),
                     TARN_EINVAL);
    folder_close(&folder);
}

/* ---- Real data ---------------------------------------------------------- */

static void mnist_gives_sequences_of_783(void **state)
{
    const char *const root = getenv("TARN_DATA");
    char path[1024];
    tarn_task *task;
    tarn_error err;

    (void)state;
    if (!root)
        skip();
    snprintf(path, sizeof path, "%s/mnist", root);
    check_ok(tn_task_create(&task, "image", &(struct tn_task_desc){.data = path}, &err), &err);
    assert_int_equal(task->N, 783);
    assert_int_equal(tn_task_batches(task, TN_VALIDATION, 10), 1000);
    assert_string_equal(task->spec, "image:height=28,width=28,channels=1");
    tarn_task_free(task);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_data_gives_length_and_size),
        cmocka_unit_test(another_size_is_refused),
        cmocka_unit_test(a_side_that_no_option_holds_is_refused),
        cmocka_unit_test(a_batch_has_all_bytes_but_one),
        cmocka_unit_test(bits_per_dim_is_what_steps_and_the_formula_give),
        cmocka_unit_test(a_trained_model_knows_the_size),
        cmocka_unit_test(the_state_is_as_large_at_the_last_pixel),
        cmocka_unit_test(images_of_a_file_are_numbered),
        cmocka_unit_test(a_grid_has_gaps_between_images),
        cmocka_unit_test(mnist_gives_sequences_of_783),
    };

    return cmocka_run_group_tests_name("task_image", tests, NULL, NULL);
}
