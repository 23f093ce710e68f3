/* SPDX-License-Identifier: MIT */
/* test_unpack.c - files out of an archive: all that are wanted and nothing else, or a refusal.
 */
#include <string.h>
#include <unistd.h>

#include "file/unpack.h"
#include "support/folder.h"

#ifdef TN_HAVE_ARCHIVE

#include <archive.h>
#include <archive_entry.h>

struct member {
    const char *name, *text;
};

/* In gzip, one behind the other. */
static void make_archive(const char *path, const struct member *members)
{
    struct archive *const to = archive_write_new();

    assert_int_equal(archive_write_set_format_ustar(to), ARCHIVE_OK);
    assert_int_equal(archive_write_add_filter_gzip(to), ARCHIVE_OK);
    assert_int_equal(archive_write_open_filename(to, path), ARCHIVE_OK);
    for (; members->name; members++) {
        struct archive_entry *const entry = archive_entry_new();
        const size_t bytes = strlen(members->text);

        archive_entry_set_pathname(entry, members->name);
        archive_entry_set_filetype(entry, AE_IFREG);
        archive_entry_set_perm(entry, 0644);
        archive_entry_set_size(entry, (la_int64_t)bytes);
        assert_int_equal(archive_write_header(to, entry), ARCHIVE_OK);
        assert_int_equal(archive_write_data(to, members->text, bytes), bytes);
        archive_entry_free(entry);
    }
    archive_write_close(to);
    archive_write_free(to);
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
        cmocka_unit_test(what_is_no_archive_is_refused),
    };

    return cmocka_run_group_tests_name("unpack", tests, NULL, NULL);
}

#else

static void it_is_said_that_archives_cannot_be_read(void **state)
{
    const struct tn_unpack wanted = {"one", "/nowhere/1", 3};
    tarn_error err;

    (void)state;
    assert_int_equal(tn_unpack_tar("/nowhere/archive", &wanted, 1, &err), TARN_EMACHINE);
    assert_non_null(strstr(err.text, "this build has no libarchive"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_is_said_that_archives_cannot_be_read)};

    return cmocka_run_group_tests_name("unpack", tests, NULL, NULL);
}

#endif
