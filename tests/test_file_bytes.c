/* SPDX-License-Identifier: MIT */
/* test_file_bytes.c - whole files in memory, and what is none. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "file/file_bytes.h"
#include "support/folder.h"

static void check_refused(const char *path, size_t limit, const char *says)
{
    struct tn_bytes bytes = {(unsigned char *)1, 1};
    tarn_error err = {0};

    assert_int_equal(tn_bytes_read(&bytes, path, limit, &err), TARN_EIO);
    assert_int_equal(err.status, TARN_EIO);
    assert_null(bytes.data);
    assert_int_equal(bytes.size, 0);
    if (!strstr(err.text, path) || !strstr(err.text, says))
        fail_msg("'%s' does not name %s and say %s", err.text, path, says);
    assert_int_equal(tn_bytes_read(&bytes, path, limit, NULL), TARN_EIO);
}

static void a_file_is_read_whole_and_aligned(void **state)
{
    static const size_t sizes[] = {0, 1, 63, 64, 65, 4096, 100000};
    struct folder folder = folder_open();
    struct tn_random random;

    (void)state;
    tn_random_seed(&random, 1);
    for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
        unsigned char *const data = take(sizes[s], 1);
        struct tn_bytes bytes;
        tarn_error err;

        for (size_t i = 0; i < sizes[s]; i++)
            data[i] = (unsigned char)tn_random_bits(&random);
        file_put(folder_file(&folder, "a"), data, sizes[s]);
        check_ok(tn_bytes_read(&bytes, folder_file(&folder, "a"), sizes[s], &err), &err);
        assert_int_equal(bytes.size, sizes[s]);
        assert_non_null(bytes.data);
        assert_int_equal((uintptr_t)bytes.data % 64, 0);
        assert_memory_equal(bytes.data, data, sizes[s]);
        tn_bytes_free(&bytes);
        assert_null(bytes.data);
        tn_bytes_free(&bytes);
        free(data);
    }
    folder_close(&folder);
}

static void what_is_no_file_is_refused_with_a_sentence(void **state)
{
    struct folder folder = folder_open();
    const char *const pipe = folder_file(&folder, "pipe");

    (void)state;
    check_refused(folder_file(&folder, "missing"), 100, "No such file");
    check_refused(folder.path, 100, "folder");
    check_refused("/dev/null", 100, "device");
    assert_int_equal(mkfifo(pipe, 0600), 0);
    check_refused(pipe, 100, "pipe");
    folder_close(&folder);
}

static void a_file_beyond_the_limit_is_refused(void **state)
{
    struct folder folder = folder_open();
    const char *const path = folder_file(&folder, "a");

    (void)state;
    file_put(path, "0123456789", 10);
    check_refused(path, 9, "has 10 bytes; expected at most 9");
    folder_close(&folder);
}

static void a_long_path_leaves_room_for_the_reason(void **state)
{
    char path[2000];
    struct tn_bytes bytes;
    tarn_error err = {0};

    (void)state;
    memset(path, 'x', sizeof path);
    snprintf(path + sizeof path - 20, 20, "%s", "/the_end");
    assert_int_equal(tn_bytes_read(&bytes, path, 10, &err), TARN_EIO);
    assert_non_null(strstr(err.text, "/the_end: "));
    assert_true(strlen(err.text) < sizeof err.text - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_is_read_whole_and_aligned),
        cmocka_unit_test(what_is_no_file_is_refused_with_a_sentence),
        cmocka_unit_test(a_file_beyond_the_limit_is_refused),
        cmocka_unit_test(a_long_path_leaves_room_for_the_reason),
    };

    return cmocka_run_group_tests_name("file bytes", tests, NULL, NULL);
}
