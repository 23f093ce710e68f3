/* SPDX-License-Identifier: MIT */
/* test_tasks.c - what holds for every task of the table, and the words of each. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/batches.h"
#include "support/folder.h"
#include "support/image_files.h"
#include "support/speech_folder.h"
#include "task/task.h"

static void put_text(const char *path)
{
    char text[2000];

    for (size_t i = 0; i < sizeof text; i++)
        text[i] = (char)(unsigned char)(i * i);
    file_put(path, text, sizeof text);
}

/* 24 is for tasks whose data does not say. */
static size_t length_for(const char *name)
{
    return strcmp(name, "speech") == 0 ? 0 : 24;
}

static tarn_task *open_task(const char *name, const char *data, size_t N, uint64_t seed)
{
    const struct tn_task_desc desc = {.data = data, .length = N, .seed = seed};
    tarn_task *task;
    tarn_error err;

    check_ok(tn_task_create(&task, name, &desc, &err), &err);
    assert_non_null(task);
    return task;
}

/* ---- Every task --------------------------------------------------------- */

static const struct tn_task_row *row_at(size_t i)
{
    return (const struct tn_task_row *)tarn_task_kind(i);
}

/* A folder of recordings within another. */
static const char *put_speech(const struct folder *folder)
{
    static struct folder made;

    folders_make(folder, "speech/");
    snprintf(made.path, sizeof made.path, "%.200s/speech", folder->path);
    speech_folder_fill(&made, 20, 7, 2, 0.1);
    return made.path;
}

/* The path of what a task reads, with sequences of 24 if its data does not say how long they
 * are, or NULL for those that read none. */
static const char *data_for(const struct tn_task_row *row, const struct folder *folder)
{
    const char *const path = folder_file(folder, "data");

    if (row->frames)
        return put_speech(folder);
    if (row->image)
        bytes_put(path, idx_bytes(100, 5, 5));
    else
        put_text(path);
    return row->reads_data ? path : NULL;
}

static void every_row_is_complete(void **state)
{
    (void)state;
    for (size_t i = 0; tarn_task_kind(i); i++) {
        const struct tn_task_row *const row = row_at(i);

        assert_true(row->about.name && row->about.help && row->about.options);
        assert_true(row->metric.name && row->metric.value);
        assert_true(row->set > 0 && row->open && row->fill);
        assert_true((row->symbol_count > 0) != (row->symbols != NULL));
        assert_true(row->frames || (row->encode && row->decode));
        assert_true(!row->frames || (row->lay_out && row->note && row->skipped));
    }
}

static void every_task_fills_batches_by_their_place(void **state)
{
    struct folder folder = folder_open();

    (void)state;
    for (size_t i = 0; tarn_task_kind(i); i++) {
        const char *const data = data_for(row_at(i), &folder);
        const char *const name = tarn_task_kind(i)->name;
        tarn_task *const task = open_task(name, data, length_for(name), 5);
        tarn_task *const again = open_task(name, data, length_for(name), 5);
        struct owned_batch a = batch_of_task(task, 3), b = batch_of_task(again, 3);

        for (int split = 0; split < 2; split++)
            for (uint64_t index = 3; index-- > 0;) {
                if (!a.batch.frames)
                    batch_spoil(&a);
                batch_fill(task, &a.batch, (enum tn_split)split, index);
                assert_true(batch_check(&a.batch, tarn_task_symbols(task)) > 0);
                batch_fill(again, &b.batch, (enum tn_split)split, 2 - index);
                batch_fill(again, &b.batch, (enum tn_split)split, index);
                assert_true(batch_equal(&a.batch, &b.batch));
            }
        batch_close(&a);
        batch_close(&b);
        tarn_task_free(task);
        tarn_task_free(again);
    }
    tree_close(&folder);
}

static void an_evaluation_ends_where_it_says(void **state)
{
    struct folder folder = folder_open();

    (void)state;
    for (size_t i = 0; tarn_task_kind(i); i++) {
        const char *const name = tarn_task_kind(i)->name;
        tarn_task *const task =
            open_task(name, data_for(row_at(i), &folder), length_for(name), 5);
        struct owned_batch owned = batch_of_task(task, 2);
        const size_t batches = tn_task_batches(task, TN_VALIDATION, 2);

        batch_fill(task, &owned.batch, TN_VALIDATION, batches ? batches - 1 : 1000000);
        assert_true(batch_check(&owned.batch, tarn_task_symbols(task)) > 0);
        batch_fill(task, &owned.batch, TN_VALIDATION, batches);
        if (batches)
            assert_int_equal(batch_check(&owned.batch, tarn_task_symbols(task)), 0);
        batch_close(&owned);
        tarn_task_free(task);
    }
    tree_close(&folder);
}

/* A task without a set, as for generation. Text in pieces is the text of the whole. */
static void every_task_reads_what_it_writes(void **state)
{
    (void)state;
    for (size_t i = 0; tarn_task_kind(i); i++) {
        tarn_task *task;
        tarn_error err;

        if (!row_at(i)->decode)
            continue; /* its symbols are the data's */
        check_ok(tarn_task_open(&task, tarn_task_kind(i)->name, &err), &err);
        const size_t n = tarn_task_symbols(task);
        int32_t *const symbols = take(n, sizeof *symbols);
        char *const text = take(n, TN_TASK_TEXT), *const pieces = take(n, TN_TASK_TEXT);
        size_t count = 0, length = 0;

        for (size_t s = 0; s < n; s++)
            symbols[s] = (int32_t)(n - 1 - s);
        const size_t whole = tarn_task_decode(task, text, symbols, n);

        for (size_t s = 0; s < n; s++)
            length += tarn_task_decode(task, pieces + length, symbols + s, 1);
        assert_int_equal(length, whole);
        assert_memory_equal(pieces, text, whole);
        int32_t *const back = take(whole, sizeof *back);

        check_ok(tarn_task_encode(task, back, &count, text, whole, &err), &err);
        assert_int_equal(count, n);
        assert_memory_equal(back, symbols, n * sizeof *symbols);
        free(symbols);
        free(back);
        free(text);
        free(pieces);
        tarn_task_free(task);
    }
}

static void symbols_that_are_none_become_question_marks(void **state)
{
    static const int32_t symbols[] = {-1, INT32_MAX, INT32_MIN};

    (void)state;
    for (size_t i = 0; tarn_task_kind(i); i++) {
        tarn_task *task;
        char text[3 * TN_TASK_TEXT];

        assert_int_equal(tarn_task_open(&task, tarn_task_kind(i)->name, NULL), TARN_OK);
        assert_int_equal(tarn_task_decode(task, text, symbols, 3), 3);
        assert_memory_equal(text, "???", 3);
        tarn_task_free(task);
    }
    tarn_task_free(NULL);
}

static void a_task_that_cannot_be_opened_is_refused(void **state)
{
    int dummy;
    tarn_task *task = (tarn_task *)(void *)&dummy;
    int32_t symbol;
    size_t count;
    tarn_error err;

    (void)state;
    assert_int_equal(tarn_task_open(NULL, "text", &err), TARN_EINVAL);
    assert_int_equal(tarn_task_open(&task, NULL, &err), TARN_EINVAL);
    assert_null(task);
    task = (tarn_task *)(void *)&dummy;
    assert_int_equal(tarn_task_open(&task, "poetry", &err), TARN_EUNKNOWN);
    assert_null(task);
    assert_int_equal(tarn_task_open(&task, "copy:symbols=0", &err), TARN_EINVAL);
    check_ok(tarn_task_open(&task, "text", &err), &err);
    assert_int_equal(tarn_task_encode(NULL, &symbol, &count, "a", 1, &err), TARN_EINVAL);
    assert_int_equal(tarn_task_encode(task, NULL, &count, "a", 1, &err), TARN_EINVAL);
    assert_int_equal(tarn_task_encode(task, &symbol, NULL, "a", 1, &err), TARN_EINVAL);
    assert_int_equal(tarn_task_encode(task, &symbol, &count, NULL, 1, &err), TARN_EINVAL);
    tarn_task_free(task);
}

/* ---- Each task ---------------------------------------------------------- */

static void the_copy_task_speaks_in_numbers(void **state)
{
    static const struct {
        const char *text;
        size_t count;
        int32_t symbols[4];
    } cases[] = {
        {"", 0, {0}},
        {" \n", 0, {0}},
        {"1 2 12 0", 4, {1, 2, 12, 0}},
        {"\t007\n 3 ", 2, {7, 3}},
    };
    static const char *const bad[] = {"13", "1,2",   "-1",
                                      "x",  "1 2.0", "99999999999999999999 1"};
    tarn_task *const task = open_task("copy:symbols=12", NULL, 20, 0);
    int32_t symbols[64];
    char text[64];
    size_t count;

    (void)state;
    assert_int_equal(tarn_task_symbols(task), 13);
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        assert_int_equal(
            tarn_task_encode(task, symbols, &count, cases[c].text, strlen(cases[c].text), NULL),
            TARN_OK);
        assert_int_equal(count, cases[c].count);
        assert_memory_equal(symbols, cases[c].symbols, count * sizeof *symbols);
    }
    assert_int_equal(tarn_task_decode(task, text, (const int32_t[]){1, 12, 0}, 3), 7);
    assert_memory_equal(text, "1 12 0 ", 7);
    for (size_t c = 0; c < sizeof bad / sizeof bad[0]; c++) {
        tarn_error err = {0};

        assert_int_equal(tarn_task_encode(task, symbols, &count, bad[c], strlen(bad[c]), &err),
                         TARN_EINVAL);
        assert_non_null(strstr(err.text, "from 0 to 12"));
    }
    /* Only `length` bytes are looked at, and no more symbols than bytes are written. */
    symbols[1] = -7;
    assert_int_equal(tarn_task_encode(task, symbols, &count, "12", 1, NULL), TARN_OK);
    assert_int_equal(symbols[0], 1);
    assert_int_equal(symbols[1], -7);
    assert_int_equal(count, 1);
    tarn_task_free(task);
}

static void metrics_are_computed_from_the_sums(void **state)
{
    struct folder folder = folder_open();
    tarn_task *const copy = open_task("copy", NULL, 20, 0);
    tarn_task *const text = open_task("text", data_for(&tn_task_text, &folder), 20, 0);
    const tarn_score sums = {.loss = 30.0 * log(4.0), .correct = 24.0, .weight = 30.0};

    (void)state;
    assert_string_equal(copy->row->metric.name, "accuracy");
    assert_true(fabs(copy->row->metric.value(&sums) - 0.8) < 1e-15);
    assert_string_equal(text->row->metric.name, "bits_per_byte");
    assert_true(fabs(text->row->metric.value(&sums) - 2.0) < 1e-14);
    tarn_task_free(copy);
    tarn_task_free(text);
    folder_close(&folder);
}

/* A tenth of 2000 bytes is 200: 199 predicted, 9 windows of 24, 5 batches of 2. */
static void a_tenth_of_a_text_is_for_validation(void **state)
{
    struct folder folder = folder_open();
    tarn_task *const task = open_task("text", data_for(&tn_task_text, &folder), 24, 0);

    (void)state;
    assert_int_equal(tarn_task_symbols(task), 256);
    assert_int_equal(tn_task_batches(task, TN_VALIDATION, 2), 5);
    tarn_task_free(task);
    folder_close(&folder);
}

/* ---- Refusals ----------------------------------------------------------- */

static void tasks_that_cannot_be_are_refused(void **state)
{
    struct folder folder = folder_open();
    const char *const path = folder_file(&folder, "data"), *const missing = "/nowhere/at/all";
    const struct {
        const char *name;
        struct tn_task_desc desc;
        tarn_status status;
        const char *says;
    } cases[] = {
        {"cpy", {.length = 20}, TARN_EUNKNOWN, "copy, text"},
        {"", {.length = 20}, TARN_EUNKNOWN, "task"},
        {"copy:symbls=3", {.length = 20}, TARN_EUNKNOWN, "symbols"},
        {"copy:symbols=0", {.length = 20}, TARN_EINVAL, "symbols"},
        {"copy:symbols=0", {.bare = true}, TARN_EINVAL, "symbols"},
        {"copy:symbols=2.5", {.length = 20}, TARN_EINVAL, "symbols"},
        {"copy", {.length = 4}, TARN_EINVAL, "length"},
        {"copy", {.length = 0}, TARN_EINVAL, "length"},
        {"copy", {.length = 20, .data = path}, TARN_EINVAL, "data"},
        {"copy", {.length = 20, .validation = 2.0}, TARN_EINVAL, "validation"},
        {"text", {.length = 20}, TARN_EINVAL, "data"},
        {"text:symbols=3", {.length = 20, .data = path}, TARN_EUNKNOWN, "none"},
        {"text", {.length = 20, .data = missing}, TARN_EIO, missing},
        {"text", {.length = 20, .data = folder.path}, TARN_EIO, folder.path},
        {"text", {.length = 0, .data = path}, TARN_EINVAL, "length"},
        {"text", {.length = 1900, .data = path}, TARN_EINVAL, "2000 bytes"},
        {"text", {.length = 20, .data = path, .validation = -1.0}, TARN_EINVAL, "validation"},
        {"text", {.length = 20, .data = path, .validation = (double)NAN}, TARN_EINVAL, "nan"},
        {"text", {.length = 20, .data = path, .cache = missing}, TARN_EINVAL, "cache"},
        {"copy", {.length = 20, .strict = true}, TARN_EINVAL, "strict"},
        {"speech", {0}, TARN_EINVAL, "data"},
        {"speech:kind=letters", {.data = missing}, TARN_EINVAL, "phones, characters, words"},
        {"speech:symbols=-1", {.bare = true}, TARN_EINVAL, "symbols"},
        {"speech", {.data = missing}, TARN_EIO, missing},
        {"speech", {.data = path}, TARN_EIO, "data"},
        {"speech", {.data = path, .note = "{}"}, TARN_EFORMAT, "version"},
    };

    (void)state;
    put_text(path);
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        tarn_task *task = (tarn_task *)(uintptr_t)64;
        tarn_error err = {0};
        const tarn_status status = tn_task_create(&task, cases[c].name, &cases[c].desc, &err);

        if (status != cases[c].status || !strstr(err.text, cases[c].says))
            fail_msg("case %zu: %d, '%s' does not say '%s'", c, (int)status, err.text,
                     cases[c].says);
        assert_null(task);
    }
    folder_close(&folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_row_is_complete),
        cmocka_unit_test(every_task_fills_batches_by_their_place),
        cmocka_unit_test(an_evaluation_ends_where_it_says),
        cmocka_unit_test(every_task_reads_what_it_writes),
        cmocka_unit_test(symbols_that_are_none_become_question_marks),
        cmocka_unit_test(a_task_that_cannot_be_opened_is_refused),
        cmocka_unit_test(the_copy_task_speaks_in_numbers),
        cmocka_unit_test(metrics_are_computed_from_the_sums),
        cmocka_unit_test(a_tenth_of_a_text_is_for_validation),
        cmocka_unit_test(tasks_that_cannot_be_are_refused),
    };

    return cmocka_run_group_tests_name("tasks", tests, NULL, NULL);
}
