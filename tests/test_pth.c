/* SPDX-License-Identifier: MIT */
/* test_pth.c - files of torch.save(), which tests/vectors/pth.py wrote, and such as it would
 * never write: cut, changed, overlapping, with names that lead elsewhere. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "file/tensor_file.h"
#include "support/folder.h"
#include "support/zip_maker.h"

static tarn_status parse(struct tn_safetensors *s, const void *data, size_t size,
                         tarn_error *err)
{
    struct tn_bytes bytes;
    enum tn_tensor_format format;

    check_ok(tn_bytes_allocate(&bytes, size, NULL), NULL);
    if (size > 0)
        memcpy(bytes.data, data, size);
    const tarn_status status = tn_tensor_file_parse(s, &format, &bytes, "a/file", err);

    assert_true((bytes.data == NULL) == (status == TARN_OK));
    tn_bytes_free(&bytes);
    return status;
}

static void check_sentence(const struct tn_safetensors *s, tarn_status status,
                           const tarn_error *err)
{
    assert_int_equal(status, TARN_EFORMAT);
    assert_non_null(memchr(err->text, '\0', sizeof err->text));
    assert_non_null(strstr(err->text, "a/file"));
    assert_null(s->bytes.data);
    assert_int_equal(s->count, 0);
}

static void check_refused(const void *data, size_t size, const char *says)
{
    struct tn_safetensors s;
    tarn_error err = {TARN_OK, ""};

    check_sentence(&s, parse(&s, data, size, &err), &err);
    if (!strstr(err.text, says))
        fail_msg("'%s' does not say '%s'", err.text, says);
}

/* Every byte of every tensor is read: it lies within the memory. */
static void check_within(const struct tn_safetensors *s)
{
    size_t sum = 0;

    for (size_t i = 0; i < s->count; i++) {
        const unsigned char *const data = s->tensors[i].data;

        assert_ptr_equal(tn_safetensors_find(s, s->tensors[i].name), &s->tensors[i]);
        for (size_t b = 0; b < s->tensors[i].bytes; b++)
            sum += data[b];
    }
    assert_true(sum < SIZE_MAX);
}

static struct tn_bytes vector(const char *name)
{
    char path[512];
    struct tn_bytes bytes;
    tarn_error err;

    snprintf(path, sizeof path, TEST_VECTORS "%s", name);
    check_ok(tn_bytes_read(&bytes, path, SIZE_MAX, &err), &err);
    return bytes;
}

static void check_cuts(const char *name, size_t step)
{
    struct tn_bytes bytes = vector(name);
    struct tn_safetensors s;
    tarn_error err;

    for (size_t size = 0; size < bytes.size; size += step)
        check_sentence(&s, parse(&s, bytes.data, size, &err), &err);
    check_ok(parse(&s, bytes.data, bytes.size, &err), &err);
    check_within(&s);
    tn_safetensors_free(&s);
    tn_bytes_free(&bytes);
}

/* Each byte with its bits turned, one at a time: refused, or read within the file. */
static void check_flips(const char *name, size_t step)
{
    struct tn_bytes bytes = vector(name);

    for (size_t i = 0; i < bytes.size; i += step) {
        struct tn_safetensors s;
        tarn_error err;

        bytes.data[i] ^= 0xff;
        if (parse(&s, bytes.data, bytes.size, &err) == TARN_OK)
            check_within(&s);
        tn_safetensors_free(&s);
        bytes.data[i] ^= 0xff;
    }
    tn_bytes_free(&bytes);
}

static void every_truncation_of_the_old_format_is_refused(void **state)
{
    (void)state;
    check_cuts("image_old.pth", 1);
}

static void changes_of_the_old_format_stay_within(void **state)
{
    (void)state;
    check_flips("image_old.pth", 1);
}

static void the_old_format_goes_on_as_it_begins(void **state)
{
    struct tn_bytes bytes = vector("image_old.pth");
    unsigned char *const more = take(1, bytes.size + 1);

    (void)state;
    memcpy(more, bytes.data, bytes.size);
    check_refused(more, bytes.size + 1, "continues after its last storage");
    more[17] = 'K'; /* another version */
    check_refused(more, bytes.size, "begins like a PyTorch file, but is not one");
    free(more);
    tn_bytes_free(&bytes);
}

/* ---- What torch wrote --------------------------------------------------- */

static void check_floats(const struct tn_safetensors *s, const char *name, size_t rank,
                         const size_t *shape, const float *values, size_t count)
{
    const struct tn_safetensor *const t = tn_safetensors_find(s, name);
    float floats[64];
    size_t found;

    assert_non_null(t);
    assert_int_equal(t->rank, rank);
    for (size_t d = 0; d < rank; d++)
        assert_int_equal(t->shape[d], shape[d]);
    assert_true(tn_safetensor_count(&found, t));
    assert_int_equal(found, count);
    assert_true(tn_safetensor_floats(t, floats));
    for (size_t i = 0; i < count; i++)
        assert_true(floats[i] == values[i]);
}

static void tensors_are_read_as_they_are_meant(void **state)
{
    struct tn_bytes bytes = vector("views.pth");
    struct tn_safetensors s;
    float transposed[24];
    tarn_error err;

    (void)state;
    for (size_t i = 0; i < 24; i++)
        transposed[i] = (float)(i % 4 * 6 + i / 4);
    check_ok(parse(&s, bytes.data, bytes.size, &err), &err);
    assert_int_equal(s.count, 14);
    check_floats(&s, "transposed", 2, (size_t[]){6, 4}, transposed, 24);
    check_floats(&s, "slice", 2, (size_t[]){2, 3}, (float[]){8, 9, 10, 14, 15, 16}, 6);
    check_floats(&s, "column", 1, (size_t[]){4}, (float[]){1, 7, 13, 19}, 4);
    check_floats(&s, "one", 0, NULL, (float[]){7.5f}, 1);
    check_floats(&s, "none", 2, (size_t[]){0, 3}, NULL, 0);
    check_floats(&s, "half", 1, (size_t[]){6}, (float[]){0, 1, 2, 3, 4, 5}, 6);
    check_floats(&s, "bf16", 1, (size_t[]){6}, (float[]){0, 1, 2, 3, 4, 5}, 6);
    check_floats(&s, "double", 1, (size_t[]){6}, (float[]){0, 1, 2, 3, 4, 5}, 6);
    check_floats(&s, "parameter", 1, (size_t[]){6}, (float[]){12, 13, 14, 15, 16, 17}, 6);
    check_floats(&s, "list.0", 1, (size_t[]){6}, (float[]){18, 19, 20, 21, 22, 23}, 6);
    check_floats(&s, "list.1.deep", 1, (size_t[]){1}, (float[]){1}, 1);
    assert_int_equal(tn_safetensors_find(&s, "long")->dtype, TN_DTYPE_I64);
    assert_int_equal(tn_safetensors_find(&s, "bool")->dtype, TN_DTYPE_BOOL);
    tn_safetensors_free(&s);
    tn_bytes_free(&bytes);
}

static void both_formats_hold_the_same(void **state)
{
    struct tn_bytes bytes = vector("image.pth"), old_bytes = vector("image_old.pth");
    struct tn_safetensors s, old;
    char name[600];
    tarn_error err;

    (void)state;
    check_ok(parse(&s, bytes.data, bytes.size, &err), &err);
    check_ok(parse(&old, old_bytes.data, old_bytes.size, &err), &err);
    assert_string_equal(tn_safetensors_metadata(&s, "epoch"), "3");
    assert_string_equal(tn_safetensors_metadata(&s, "lr"), "0.001");
    assert_string_equal(tn_safetensors_metadata(&s, "name"), "image");
    size_t compared = 0;

    for (size_t i = 0; i < s.count; i++) {
        if (strncmp(s.tensors[i].name, "model_state.", 12) != 0)
            continue;
        snprintf(name, sizeof name, "state_dict.module.%s", s.tensors[i].name + 12);
        const struct tn_safetensor *const other = tn_safetensors_find(&old, name);

        assert_non_null(other);
        assert_int_equal(other->bytes, s.tensors[i].bytes);
        assert_memory_equal(other->data, s.tensors[i].data, other->bytes);
        compared++;
    }
    assert_int_equal(compared, 38);
    tn_safetensors_free(&s);
    tn_safetensors_free(&old);
    tn_bytes_free(&bytes);
    tn_bytes_free(&old_bytes);
}

static void every_truncation_is_refused(void **state)
{
    (void)state;
    check_cuts("views.pth", 1);
    check_cuts("encoder.pth", 29);
}

static void changes_stay_within(void **state)
{
    (void)state;
    check_flips("views.pth", 1);
    check_flips("image.pth", 41);
}

/* ---- What it would not write -------------------------------------------- */

/* A dict {"t": a tensor of rows x columns} over a storage "0" of `count` floats. */
struct tensor_made {
    uint64_t offset, rows, columns, row_stride, stride, count;
};

static size_t put_text(unsigned char *out, const char *text, size_t length)
{
    memcpy(out, text, length);
    return length;
}

static size_t put_number(unsigned char *out, uint64_t number)
{
    out[0] = 0x8a;
    out[1] = 8;
    for (size_t i = 0; i < 8; i++)
        out[2 + i] = (unsigned char)(number >> (8 * i) & 255);
    return 10;
}

#define PUT(text) used += put_text(out + used, text, sizeof(text) - 1)

static size_t make_pickle(unsigned char *out, const struct tensor_made *t)
{
    size_t used = 0;

    PUT("\x80\x02}X\1\0\0\0tctorch._utils\n_rebuild_tensor_v2\n((X\7\0\0\0storage"
        "ctorch\nFloatStorage\nX\1\0\0\0"
        "0X\3\0\0\0cpu");
    used += put_number(out + used, t->count);
    PUT("tQ");
    used += put_number(out + used, t->offset);
    used += put_number(out + used, t->rows);
    used += put_number(out + used, t->columns);
    PUT("\x86");
    used += put_number(out + used, t->row_stride);
    used += put_number(out + used, t->stride);
    PUT("\x86\x89NtRs.");
    return used;
}

static const float six[6] = {0, 1, 2, 3, 4, 5};

static void check_tensor(const struct tensor_made *t, const char *says)
{
    unsigned char pickle[512];
    const struct zip_made entries[] = {
        {"m/data.pkl", pickle, make_pickle(pickle, t), 0},
        {"m/data/0", six, sizeof six, 0},
    };
    struct tn_bytes zip = zip_make(entries, 2);

    if (says) {
        check_refused(zip.data, zip.size, says);
    } else {
        struct tn_safetensors s;
        tarn_error err;

        check_ok(parse(&s, zip.data, zip.size, &err), &err);
        check_within(&s);
        tn_safetensors_free(&s);
    }
    tn_bytes_free(&zip);
}

static void tensors_beyond_their_storage_are_refused(void **state)
{
    const uint64_t huge = UINT64_MAX / 2;
    static const char out[] = "exceed its storage", more[] = "more elements than the file";

    (void)state;
    check_tensor(&(struct tensor_made){0, 2, 3, 3, 1, 6}, NULL);
    check_tensor(&(struct tensor_made){0, 3, 2, 1, 3, 6}, NULL);
    check_tensor(&(struct tensor_made){1, 2, 3, 3, 1, 6}, out);
    check_tensor(&(struct tensor_made){0, 2, 3, 4, 1, 6}, out);
    check_tensor(&(struct tensor_made){0, 3, 3, 3, 1, 6}, out);
    check_tensor(&(struct tensor_made){6, 1, 1, 1, 1, 6}, out);
    check_tensor(&(struct tensor_made){huge, 1, 1, 1, 1, 6}, out);
    check_tensor(&(struct tensor_made){0, huge, 3, 3, 1, 6}, out);
    check_tensor(&(struct tensor_made){0, huge, huge, huge, huge, 6}, out);
    check_tensor(&(struct tensor_made){0, 2, 3, huge, 1, 6}, out);
    check_tensor(&(struct tensor_made){0, 1u << 30, 3, 0, 1, 6}, more); /* rows that are one */
    check_tensor(&(struct tensor_made){0, huge / 8, 1, 0, 1, 6}, more);
    check_tensor(&(struct tensor_made){7, 0, 3, 3, 1, 6}, out);
    check_tensor(&(struct tensor_made){0, 2, 3, 3, 1, 7}, "expected 7 elements of F32");
    check_tensor(&(struct tensor_made){0, 2, 3, 3, 1, huge}, "elements of F32");
    check_tensor(&(struct tensor_made){0, UINT64_MAX, 3, 3, 1, 6}, "sizes and strides");
}

/* Archives around a pickle that is right. */
static void check_archive(const struct zip_made *entries, size_t count, const char *says)
{
    struct tn_bytes zip = zip_make(entries, count);

    check_refused(zip.data, zip.size, says);
    tn_bytes_free(&zip);
}

static void archives_that_trick_are_refused(void **state)
{
    unsigned char pickle[512];
    const size_t size = make_pickle(pickle, &(struct tensor_made){0, 2, 3, 3, 1, 6});
    const struct zip_made right = {"m/data.pkl", pickle, size, 0};
    const struct zip_made storage = {"m/data/0", six, sizeof six, 0};

    (void)state;
    check_archive((struct zip_made[]){right}, 1, "storage 'm/data/0' is missing");
    check_archive((struct zip_made[]){right, storage, {"../../etc/passwd", "x", 1, 0}}, 3,
                  "contains '..'");
    check_archive((struct zip_made[]){right, storage, {"m/../../x", "x", 1, 0}}, 3,
                  "contains '..'");
    check_archive((struct zip_made[]){right, storage, {"/etc/passwd", "x", 1, 0}}, 3,
                  "not a relative path");
    check_archive((struct zip_made[]){right, storage, storage}, 3, "twice");
    check_archive((struct zip_made[]){right, {"m/data/0", six, sizeof six, 0xfffffff0}}, 2,
                  "above the");
    check_archive((struct zip_made[]){right, {"m/data/0", six, sizeof six, 25}}, 2, "");
    check_archive((struct zip_made[]){right, storage, {"m/byteorder", "big", 3, 0}}, 3,
                  "little-endian");
    check_archive((struct zip_made[]){storage}, 1, "neither");
    struct tn_bytes nested = zip_make_nested("m/data.pkl", 40, 4096);

    check_refused(nested.data, nested.size, "the file can contain");
    tn_bytes_free(&nested);
    check_refused("PK\3\4", 4, "zip");
}

/* {"a": {"a": ... }}, deeper than anybody's. */
static void dicts_that_are_too_deep_are_refused(void **state)
{
    unsigned char pickle[4096];
    size_t used = 0;

    (void)state;
    for (size_t i = 0; i < 40; i++)
        used += put_text(pickle + used, "}X\1\0\0\0a", 7);
    used += put_text(pickle + used, "N", 1);
    for (size_t i = 0; i < 40; i++)
        used += put_text(pickle + used, "s", 1);
    used += put_text(pickle + used, ".", 1);
    check_archive((struct zip_made[]){{"m/data.pkl", pickle, used, 0}}, 1, "deep");
}

/* A dict that holds itself is gone into once. */
static void a_dict_in_itself_ends(void **state)
{
    static const char pickle[] = "}q\0X\1\0\0\0ah\0s.";
    struct tn_bytes zip =
        zip_make((struct zip_made[]){{"m/data.pkl", pickle, sizeof pickle - 1, 0}}, 1);
    struct tn_safetensors s;
    tarn_error err;

    (void)state;
    check_ok(parse(&s, zip.data, zip.size, &err), &err);
    assert_int_equal(s.count, 0);
    tn_safetensors_free(&s);
    tn_bytes_free(&zip);
}

static void names_that_are_no_text_are_refused(void **state)
{
    unsigned char pickle[512];
    const size_t size = make_pickle(pickle, &(struct tensor_made){0, 2, 3, 3, 1, 6});

    (void)state;
    pickle[8] = 0xff; /* its one letter */
    check_archive(
        (struct zip_made[]){{"m/data.pkl", pickle, size, 0}, {"m/data/0", six, sizeof six, 0}},
        2, "not UTF-8");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_truncation_of_the_old_format_is_refused),
        cmocka_unit_test(changes_of_the_old_format_stay_within),
        cmocka_unit_test(the_old_format_goes_on_as_it_begins),
        cmocka_unit_test(tensors_are_read_as_they_are_meant),
        cmocka_unit_test(both_formats_hold_the_same),
        cmocka_unit_test(every_truncation_is_refused),
        cmocka_unit_test(changes_stay_within),
        cmocka_unit_test(tensors_beyond_their_storage_are_refused),
        cmocka_unit_test(archives_that_trick_are_refused),
        cmocka_unit_test(dicts_that_are_too_deep_are_refused),
        cmocka_unit_test(a_dict_in_itself_ends),
        cmocka_unit_test(names_that_are_no_text_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
