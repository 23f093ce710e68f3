/* SPDX-License-Identifier: MIT */
/* test_unpack.c - files out of an archive: all that are wanted and nothing else, or a refusal.
 */
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "file/file_bytes.h"
#include "file/unpack.h"
#include "support/folder.h"
#include "support/tar_maker.h"

struct member {
    const char *name, *text;
};

static void make_archive(const char *path, const struct member *members)
{
    struct tar_member all[8] = {{0}};

    for (size_t i = 0; members[i].name; i++)
        all[i] =
            (struct tar_member){members[i].name, members[i].text, strlen(members[i].text), 0};
    tar_make(path, all);
}

/* "one" and "two" of such an archive, three bytes each. */
static tarn_status unpack(const struct folder *folder, const struct member *members,
                          tarn_error *err)
{
    const char *const archive = folder_file(folder, "archive");
    const struct tn_unpack wanted[] = {{"one", folder_file(folder, "1"), 3},
                                       {"two", folder_file(folder, "2"), 3}};

    make_archive(archive, members);
    return tn_unpack_tar(archive, wanted, 2, err);
}

static void what_is_wanted_is_unpacked_and_nothing_else(void **state)
{
    struct folder folder = folder_open();
    tarn_error err;

    (void)state;
    check_ok(
        unpack(&folder,
               (const struct member[]){
                   {"more", "..."}, {"two", "abc"}, {"../one", "..."}, {"one", "xyz"}, {0}},
               &err),
        &err);
    file_check(folder_file(&folder, "1"), "xyz", 3);
    file_check(folder_file(&folder, "2"), "abc", 3);
    assert_int_equal(folder_count(&folder), 3);
    folder_close(&folder);
}

static void a_member_that_is_there_twice_stands_for_no_other(void **state)
{
    struct folder folder = folder_open();
    tarn_error err;

    (void)state;
    check_ok(
        unpack(&folder,
               (const struct member[]){{"one", "1st"}, {"one", "2nd"}, {"two", "abc"}, {0}},
               &err),
        &err);
    file_check(folder_file(&folder, "1"), "1st", 3);
    file_check(folder_file(&folder, "2"), "abc", 3);
    folder_close(&folder);
}

static void a_member_that_is_missing_is_reported(void **state)
{
    struct folder folder = folder_open();
    tarn_error err;

    (void)state;
    assert_int_equal(
        unpack(&folder, (const struct member[]){{"one", "abc"}, {"one", "abc"}, {0}}, &err),
        TARN_EFORMAT);
    assert_non_null(strstr(err.text, "contains only 1 of the 2 expected files"));
    folder_close(&folder);
}

static void a_member_of_another_size_is_refused(void **state)
{
    static const char *const texts[] = {"", "ab", "abcd"};
    tarn_error err;

    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        struct folder folder = folder_open();

        assert_int_equal(unpack(&folder,
                                (const struct member[]){{"one", "abc"}, {"two", texts[i]}, {0}},
                                &err),
                         TARN_EFORMAT);
        assert_non_null(strstr(err.text, i < 2 ? "two has fewer" : "two has more"));
        assert_int_not_equal(access(folder_file(&folder, "2"), F_OK), 0);
        folder_close(&folder);
    }
}

/* Only files are what they are called; and a long name is in two parts. */
static void links_and_folders_are_no_files(void **state)
{
    static const char lengthy[] = "a/folder/with/a/name/that/is/longer/than/the/hundred/bytes/"
                                  "that/the/format/has/for/it/so/"
                                  "that/the/rest/is/elsewhere";
    struct folder folder = folder_open();
    const char *const path = folder_file(&folder, "archive");
    const struct tn_unpack wanted[] = {{"one", folder_file(&folder, "1"), 3},
                                       {lengthy, folder_file(&folder, "2"), 700}};
    char data[700];
    tarn_error err;

    (void)state;
    memset(data, 'x', sizeof data);
    tar_make(path, (const struct tar_member[]){{"one", NULL, 0, '5'},
                                               {"one", NULL, 0, '2'},
                                               {lengthy, data, sizeof data, 0},
                                               {"one", "abc", 3, 0},
                                               {0}});
    check_ok(tn_unpack_tar(path, wanted, 2, &err), &err);
    file_check(folder_file(&folder, "1"), "abc", 3);
    file_check(folder_file(&folder, "2"), data, sizeof data);
    folder_close(&folder);
}

static void every_truncation_is_refused(void **state)
{
    struct folder folder = folder_open();
    const char *const path = folder_file(&folder, "archive");
    const struct tn_unpack wanted = {"one", folder_file(&folder, "1"), 3};
    struct tn_bytes bytes;
    tarn_error err;

    (void)state;
    make_archive(path, (const struct member[]){{"other", "abc"}, {"one", "xyz"}, {0}});
    check_ok(tn_bytes_read(&bytes, path, SIZE_MAX, &err), &err);
    for (size_t size = 0; size < bytes.size; size++) {
        file_put(path, bytes.data, size);
        if (tn_unpack_tar(path, &wanted, 1, &err) == TARN_OK) {
            assert_true(size + 32 > bytes.size); /* all of it was there */
            file_check(wanted.path, "xyz", 3);
            assert_int_equal(unlink(wanted.path), 0);
        }
        assert_int_equal(folder_count(&folder), 1);
    }
    tn_bytes_free(&bytes);
    folder_close(&folder);
}

/* A plain archive, in which every byte of a header counts. */
static void damaged_headers_are_refused(void **state)
{
    struct folder folder = folder_open();
    const char *const path = folder_file(&folder, "archive");
    const struct tn_unpack wanted = {"one", folder_file(&folder, "1"), 3};
    unsigned char plain[4 * 512];
    tarn_error err;

    (void)state;
    make_archive(path, (const struct member[]){{"one", "xyz"}, {0}});
    gzFile packed = gzopen(path, "rb");

    assert_int_equal(gzread(packed, plain, sizeof plain), sizeof plain);
    gzclose(packed);
    file_put(path, plain, sizeof plain);
    check_ok(tn_unpack_tar(path, &wanted, 1, &err), &err);
    for (size_t at = 0; at < 512; at++) {
        plain[at] ^= 0x41;
        file_put(path, plain, sizeof plain);
        if (at != 154 && at != 155) /* what ends the sum may be anything */
            assert_int_equal(tn_unpack_tar(path, &wanted, 1, &err), TARN_EFORMAT);
        plain[at] ^= 0x41;
    }
    folder_close(&folder);
}

/* CRC-32 and length are the last 8 bytes, which no file needs. */
static void a_wrong_checksum_leaves_no_file(void **state)
{
    struct folder folder = folder_open();
    const char *const path = folder_file(&folder, "archive");
    const struct tn_unpack wanted = {"one", folder_file(&folder, "1"), 3};
    struct tn_bytes bytes;
    tarn_error err;

    (void)state;
    make_archive(path, (const struct member[]){{"one", "xyz"}, {"two", "abc"}, {0}});
    check_ok(tn_bytes_read(&bytes, path, SIZE_MAX, &err), &err);
    for (size_t back = 1; back <= 8; back++) {
        bytes.data[bytes.size - back] ^= 1;
        file_put(path, bytes.data, bytes.size);
        assert_int_equal(tn_unpack_tar(path, &wanted, 1, &err), TARN_EFORMAT);
        assert_int_equal(folder_count(&folder), 1);
        bytes.data[bytes.size - back] ^= 1;
    }
    file_put(path, bytes.data, bytes.size);
    check_ok(tn_unpack_tar(path, &wanted, 1, &err), &err);
    file_check(folder_file(&folder, "1"), "xyz", 3);
    tn_bytes_free(&bytes);
    folder_close(&folder);
}

static void what_is_no_archive_is_refused(void **state)
{
    struct folder folder = folder_open();
    const char *const path = folder_file(&folder, "archive");
    const struct tn_unpack wanted = {"one", folder_file(&folder, "1"), 3};
    tarn_error err;

    (void)state;
    file_put(path, "no archive", 10);
    assert_int_equal(tn_unpack_tar(path, &wanted, 1, &err), TARN_EFORMAT);
    assert_int_equal(folder_count(&folder), 1);
    folder_close(&folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_wanted_is_unpacked_and_nothing_else),
        cmocka_unit_test(a_member_that_is_there_twice_stands_for_no_other),
        cmocka_unit_test(a_member_that_is_missing_is_reported),
        cmocka_unit_test(a_member_of_another_size_is_refused),
        cmocka_unit_test(links_and_folders_are_no_files),
        cmocka_unit_test(every_truncation_is_refused),
        cmocka_unit_test(damaged_headers_are_refused),
        cmocka_unit_test(a_wrong_checksum_leaves_no_file),
        cmocka_unit_test(what_is_no_archive_is_refused),
    };

    return cmocka_run_group_tests_name("unpack", tests, NULL, NULL);
}
