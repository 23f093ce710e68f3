/* SPDX-License-Identifier: MIT */
/* test_image_set.c - images as sequences: every one once an epoch to train on, once to
 * validate; the folders that are known; on real data where TARN_DATA names some. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "data/image_set.h"
#include "file/png_file.h"
#include "support/batches.h"
#include "support/folder.h"
#include "support/image_files.h"

static struct tn_image_set open_set(const char *path, double validation)
{
    struct tn_image_set set;
    tarn_error err;

    check_ok(tn_image_set_read(&set, path, validation, 11, NULL, &err), &err);
    return set;
}

/* `count` images of 2 x 3 in an IDX file. */
static struct tn_image_set small_set(const struct folder *folder, size_t count,
                                     double validation)
{
    const char *const path = folder_file(folder, "images");

    bytes_put(path, idx_bytes(count, 2, 3));
    return open_set(path, validation);
}

static void check_parts(const struct tn_image_set *set, size_t training, size_t validation)
{
    assert_int_equal(set->count[TN_TRAINING], training);
    assert_int_equal(set->count[TN_VALIDATION], validation);
}

static void the_last_images_are_for_validation(void **state)
{
    static const struct {
        size_t count;
        double validation;
        size_t training;
    } cases[] = {{10, 0.1, 9}, {10, 0.25, 8}, {100, 0.5, 50}, {2, 0.5, 1}, {7, 1.0, 0}};
    struct folder folder = folder_open();

    (void)state;
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        struct tn_image_set set = small_set(&folder, cases[c].count, cases[c].validation);

        check_parts(&set, cases[c].training, cases[c].count - cases[c].training);
        assert_int_equal(tn_image_set_length(&set), 5);
        for (size_t i = 0; i < set.count[TN_VALIDATION]; i++)
            assert_int_equal(tn_image_set_image(&set, TN_VALIDATION, i)[4],
                             image_byte(set.count[TN_TRAINING] + i, 4));
        tn_image_set_free(&set);
        tn_image_set_free(&set);
    }
    folder_close(&folder);
}

/* The image that sequence b holds, told by its first byte, after checking all of it. */
static size_t image_in(const struct tn_batch *batch, size_t b, size_t count)
{
    const int32_t *const inputs = batch->inputs + b * batch->N;
    size_t i = 0;

    while (i < count && image_byte(i, 0) != inputs[0])
        i++;
    assert_true(i < count);
    for (size_t n = 0; n < batch->N; n++) {
        assert_int_equal(inputs[n], image_byte(i, n));
        assert_int_equal(batch->targets[b * batch->N + n], image_byte(i, n + 1));
        assert_true(batch->weights[b * batch->N + n] == 1.0f);
    }
    return i;
}

/* Batches that do not divide the number of images, so that some hold two epochs. */
static void every_image_is_trained_on_once_an_epoch(void **state)
{
    struct folder folder = folder_open();
    struct tn_image_set set = small_set(&folder, 50, 0.1);
    struct owned_batch owned = batch_open(7, 5);
    size_t order[4][45], place = 0, same = 0;

    (void)state;
    for (uint64_t index = 0; place < 4 * 45; index++) {
        batch_spoil(&owned);
        tn_image_set_fill(&set, &owned.batch, TN_TRAINING, index);
        for (size_t b = 0; b < 7 && place < 4 * 45; b++, place++)
            order[place / 45][place % 45] = image_in(&owned.batch, b, 45);
    }
    for (size_t epoch = 0; epoch < 4; epoch++) {
        bool seen[45] = {false};

        for (size_t i = 0; i < 45; i++) {
            assert_false(seen[order[epoch][i]]);
            seen[order[epoch][i]] = true;
            same += epoch > 0 && order[epoch][i] == order[epoch - 1][i];
            same += order[epoch][i] == i;
        }
    }
    assert_true(same < 20); /* 7 by chance */
    batch_close(&owned);
    tn_image_set_free(&set);
    folder_close(&folder);
}

static void a_batch_is_a_function_of_its_place(void **state)
{
    struct folder folder = folder_open();
    struct tn_image_set set = small_set(&folder, 200, 0.1);
    struct owned_batch a = batch_open(4, 5), b = batch_open(4, 5);

    (void)state;
    tn_image_set_fill(&set, &a.batch, TN_TRAINING, 3);
    tn_image_set_fill(&set, &b.batch, TN_TRAINING, 4);
    assert_false(batch_equal(&a.batch, &b.batch));
    tn_image_set_fill(&set, &b.batch, TN_TRAINING, 3);
    assert_true(batch_equal(&a.batch, &b.batch));
    set.seed++;
    tn_image_set_fill(&set, &b.batch, TN_TRAINING, 3);
    assert_false(batch_equal(&a.batch, &b.batch));
    tn_image_set_fill(&set, &b.batch, TN_TRAINING, UINT64_MAX);
    assert_int_equal(batch_check(&b.batch, TN_IMAGE_SYMBOLS), 20);
    batch_close(&a);
    batch_close(&b);
    tn_image_set_free(&set);
    folder_close(&folder);
}

static void validation_goes_over_every_image_once_and_in_order(void **state)
{
    struct folder folder = folder_open();

    (void)state;
    for (size_t B = 1; B <= 9; B++) {
        struct tn_image_set set = small_set(&folder, 7, 1.0);
        struct owned_batch owned = batch_open(B, 5);
        const size_t batches = tn_image_set_batches(&set, B);

        assert_int_equal(batches, (7 + B - 1) / B);
        for (uint64_t index = 0; index < batches + 2; index++) {
            batch_spoil(&owned);
            tn_image_set_fill(&set, &owned.batch, TN_VALIDATION, index);
            for (size_t b = 0; b < B; b++)
                if (index * B + b < 7)
                    assert_int_equal(image_in(&owned.batch, b, 7), index * B + b);
                else
                    for (size_t n = 0; n < 5; n++)
                        assert_true(owned.batch.weights[b * 5 + n] == 0.0f &&
                                    owned.batch.inputs[b * 5 + n] == 0);
        }
        tn_image_set_fill(&set, &owned.batch, TN_VALIDATION,
                          B > 1 ? UINT64_MAX / B + 1 : UINT64_MAX);
        assert_int_equal(batch_check(&owned.batch, 1), 0);
        tn_image_set_fill(&set, &owned.batch, TN_TRAINING, 0);
        assert_int_equal(batch_check(&owned.batch, 1), 0); /* none to train on */
        batch_close(&owned);
        tn_image_set_free(&set);
    }
    folder_close(&folder);
}

/* ---- Folders ------------------------------------------------------------ */

static void mnists_folder_has_parts(void **state)
{
    static const char *const names[][2] = {
        {"train-images-idx3-ubyte", "t10k-images-idx3-ubyte"},
        {"train-images-idx3-ubyte.gz", "t10k-images-idx3-ubyte.gz"},
        {"train-images.idx3-ubyte", "t10k-images.idx3-ubyte"},
    };

    (void)state;
    for (size_t c = 0; c < sizeof names / sizeof names[0]; c++) {
        struct folder folder = folder_open();
        struct tn_bytes plain = idx_bytes(6, 2, 3);

        bytes_put(folder_file(&folder, names[c][0]), gzip_bytes(&plain));
        struct tn_image_set set = open_set(folder.path, 0.5); /* one part only */

        check_parts(&set, 3, 3);
        tn_image_set_free(&set);
        bytes_put(folder_file(&folder, names[c][1]), idx_bytes(2, 2, 3));
        file_put(folder_file(&folder, "train-labels-idx1-ubyte.gz"), "not looked at", 13);
        set = open_set(folder.path, 0.5);
        check_parts(&set, 6, 2);
        assert_int_equal(tn_image_set_image(&set, TN_VALIDATION, 1)[0], image_byte(1, 0));
        tn_image_set_free(&set);
        tn_bytes_free(&plain);
        folder_close(&folder);
    }
}

static void cifars_folder_has_parts(void **state)
{
    struct folder folder = folder_open();

    (void)state;
    bytes_put(folder_file(&folder, "data_batch_1.bin"), cifar_bytes(3));
    bytes_put(folder_file(&folder, "data_batch_2.bin"), cifar_bytes(2));
    bytes_put(folder_file(&folder, "test_batch.bin"), cifar_bytes(4));
    struct tn_image_set set = open_set(folder.path, 0.5);

    check_parts(&set, 5, 4);
    assert_int_equal(tn_image_set_length(&set), 3071);
    assert_int_equal(tn_image_set_image(&set, TN_TRAINING, 4)[7], image_byte(1, 7));
    tn_image_set_free(&set);
    folder_close(&folder);
}

static void put_png(const char *path, size_t i, size_t height, size_t channels)
{
    unsigned char pixels[12 * 3];
    tarn_error err;

    for (size_t k = 0; k < sizeof pixels; k++)
        pixels[k] = image_byte(i, k);
    check_ok(tarn_png_write(path, pixels, (tarn_image_size){height, 4, channels}, 1, 1, &err),
             &err);
}

static void refuse(const char *path, double validation, tarn_status status, const char *says)
{
    struct tn_image_set set;
    tarn_error err = {0};

    assert_int_equal(tn_image_set_read(&set, path, validation, 0, NULL, &err), status);
    assert_null(set.images[0].pixels);
    assert_null(set.images[1].pixels);
    if (!strstr(err.text, says))
        fail_msg("'%s' does not say '%s'", err.text, says);
}

static void a_folder_of_pngs_is_read_in_order(void **state)
{
    static const char *const names[] = {"b.png", "a.PNG", "c.png", "10.png", "9.png"};
    static const size_t order[] = {3, 4, 1, 0, 2};
    struct folder folder = folder_open();

    (void)state;
    for (size_t i = 0; i < 5; i++)
        put_png(folder_file(&folder, names[i]), i, 3, 3);
    file_put(folder_file(&folder, "notes.txt"), "x", 1);
    file_put(folder_file(&folder, ".hidden.png"), "x", 1);
    struct tn_image_set set = open_set(folder.path, 0.4);

    check_parts(&set, 3, 2);
    assert_int_equal(set.channels, 3);
    for (size_t i = 0; i < 5; i++)
        assert_int_equal(set.part[TN_TRAINING][i * 36], image_byte(order[i], 0));
    tn_image_set_free(&set);
    put_png(folder_file(&folder, "d.png"), 0, 2, 3);
    refuse(folder.path, 0.4, TARN_EFORMAT,
           "is 2 high, 4 wide and colour; expected 3, 4 and colour");
    put_png(folder_file(&folder, "d.png"), 0, 3, 1);
    refuse(folder.path, 0.4, TARN_EFORMAT, "grey; expected 3, 4 and colour");
    file_put(folder_file(&folder, "d.png"), "x", 1);
    refuse(folder.path, 0.4, TARN_EFORMAT, "d.png: is not a PNG file");
    folder_close(&folder);
}

static void a_list_names_its_files(void **state)
{
    struct folder folder = folder_open();
    char list[1024];
    const char *const path = folder_file(&folder, "list.txt");

    (void)state;
    put_png(folder_file(&folder, "a.png"), 1, 3, 1);
    put_png(folder_file(&folder, "b"), 2, 3, 1);
    snprintf(list, sizeof list, "b\r\n\n%s\nb", folder_file(&folder, "a.png"));
    file_put(path, list, strlen(list));
    struct tn_image_set set = open_set(path, 0.4);

    check_parts(&set, 2, 1);
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(set.part[TN_TRAINING][i * 12], image_byte(i == 1 ? 1 : 2, 0));
    tn_image_set_free(&set);
    file_put(path, "\n\n", 2);
    refuse(path, 0.4, TARN_EFORMAT, "contains no images");
    file_put(path, "", 0);
    refuse(path, 0.4, TARN_EFORMAT, "contains no images");
    file_put(path, "a\0b", 3);
    refuse(path, 0.4, TARN_EFORMAT, "zero byte");
    file_put(path, "none.png", 8);
    refuse(path, 0.4, TARN_EIO, "none.png: No such file");
    folder_close(&folder);
}

static void sets_that_make_no_sense_are_refused(void **state)
{
    struct folder folder = folder_open();
    const char *const path = folder_file(&folder, "images");

    (void)state;
    refuse(folder.path, 0.1, TARN_EFORMAT, "contains no images");
    refuse(path, 0.1, TARN_EIO, "No such file");
    bytes_put(path, idx_bytes(9, 2, 3));
    refuse(path, 0.1, TARN_EINVAL, "has 9 images, 0 of them for validation");
    refuse(path, 0.0, TARN_EINVAL, "validation is 0");
    refuse(path, 1.5, TARN_EINVAL, "validation is 1.5");
    refuse(path, (double)NAN, TARN_EINVAL, "validation");
    bytes_put(path, idx_bytes(20, 1, 1));
    refuse(path, 0.1, TARN_EINVAL, "images of 1 byte; expected at least 2");
    bytes_put(folder_file(&folder, "t10k-images-idx3-ubyte"), idx_bytes(4, 2, 3));
    refuse(folder.path, 0.1, TARN_EINVAL, "only validation images");
    struct tn_image_set set = open_set(folder.path, 1.0);

    check_parts(&set, 0, 4);
    tn_image_set_free(&set);
    bytes_put(folder_file(&folder, "train-images-idx3-ubyte"), idx_bytes(4, 3, 2));
    refuse(folder.path, 0.1, TARN_EFORMAT, "are 2 x 3; expected 3 x 2");
    folder_close(&folder);
}

/* ---- Real data ---------------------------------------------------------- */

static struct tn_image_set open_real(const char *name)
{
    const char *const data = getenv("TARN_DATA");
    char path[1024];

    snprintf(path, sizeof path, "%s/%s", data ? data : "", name);
    if (!data || access(path, R_OK) != 0) {
        print_message("TARN_DATA has no %s: skipped\n", name);
        skip();
    }
    return open_set(path, 0.1);
}

static void real_mnist_is_read(void **state)
{
    static const unsigned char row5[] = {3, 18, 18, 18, 126, 136, 175, 26, 166, 255, 247, 127};
    struct tn_image_set set = open_real("mnist");

    (void)state;
    check_parts(&set, 60000, 10000);
    assert_int_equal(set.height, 28);
    assert_int_equal(set.width, 28);
    assert_int_equal(tn_image_set_length(&set), 783);
    assert_memory_equal(tn_image_set_image(&set, TN_TRAINING, 0) + 5 * 28 + 12, row5, 12);
    assert_int_equal(tn_image_set_batches(&set, 64), 157);
    tn_image_set_free(&set);
}

static void real_cifar_is_read(void **state)
{
    static const unsigned char frog[] = {59, 62, 63, 43, 46, 45}, cat[] = {158, 112, 49};
    struct tn_image_set set = open_real("cifar-10-batches-bin");

    (void)state;
    assert_int_equal(set.count[TN_TRAINING] % 10000, 0);
    assert_int_equal(set.count[TN_VALIDATION], 10000);
    assert_int_equal(tn_image_set_length(&set), 3071);
    assert_memory_equal(tn_image_set_image(&set, TN_TRAINING, 0), frog, 6);
    assert_memory_equal(tn_image_set_image(&set, TN_VALIDATION, 0), cat, 3);
    tn_image_set_free(&set);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_last_images_are_for_validation),
        cmocka_unit_test(every_image_is_trained_on_once_an_epoch),
        cmocka_unit_test(a_batch_is_a_function_of_its_place),
        cmocka_unit_test(validation_goes_over_every_image_once_and_in_order),
        cmocka_unit_test(mnists_folder_has_parts),
        cmocka_unit_test(cifars_folder_has_parts),
        cmocka_unit_test(a_folder_of_pngs_is_read_in_order),
        cmocka_unit_test(a_list_names_its_files),
        cmocka_unit_test(sets_that_make_no_sense_are_refused),
        cmocka_unit_test(real_mnist_is_read),
        cmocka_unit_test(real_cifar_is_read),
    };

    return cmocka_run_group_tests_name("image set", tests, NULL, NULL);
}
