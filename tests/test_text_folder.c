/* SPDX-License-Identifier: MIT */
/* test_text_folder.c - a folder of text files as one text, whatever else is in it. */
#define _XOPEN_SOURCE 700
#include <ftw.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "data/text_set.h"
#include "support/folder.h"
#include "tarn/data.h"

/* ---- Folders ------------------------------------------------------------ */

static void put(const struct folder *folder, const char *name, const char *text)
{
    file_put(folder_file(folder, name), text, strlen(text));
}

static void make_folder(const struct folder *folder, const char *name)
{
    assert_int_equal(mkdir(folder_file(folder, name), 0777), 0);
}

static void make_link(const struct folder *folder, const char *name, const char *target)
{
    assert_int_equal(symlink(target, folder_file(folder, name)), 0);
}

static int remove_one(const char *path, const struct stat *about, int type, struct FTW *place)
{
    (void)about;
    (void)type;
    (void)place;
    return remove(path);
}

static void remove_all(const struct folder *folder)
{
    assert_int_equal(nftw(folder->path, remove_one, 16, FTW_DEPTH | FTW_PHYS), 0);
}

/* ---- Checks ------------------------------------------------------------- */

static void check_text(const char *path, const char *expected, size_t skipped)
{
    struct tn_paths left = {0};
    struct tn_bytes text;
    tarn_error err;

    check_ok(tn_text_folder_read(&text, &left, path, false, &err), &err);
    assert_int_equal(text.size, strlen(expected));
    assert_memory_equal(text.data, expected, text.size);
    assert_int_equal(left.count, skipped);
    tn_bytes_free(&text);
    tn_paths_free(&left);

    unsigned char *read;
    size_t size;

    check_ok(tarn_text_read(&read, &size, path, &err), &err);
    assert_int_equal(size, strlen(expected));
    assert_memory_equal(read, expected, size);
    tarn_text_free(read);
}

static void check_refused(const char *path, bool strict, tarn_status status, const char *says)
{
    struct tn_paths left = {0};
    struct tn_bytes text;
    tarn_error err = {0};

    assert_int_equal(tn_text_folder_read(&text, &left, path, strict, &err), status);
    assert_null(text.data);
    if (!strstr(err.text, says))
        fail_msg("'%s' does not say '%s'", err.text, says);
    tn_paths_free(&left);
}

/* ---- Tests -------------------------------------------------------------- */

static void files_are_joined_in_the_order_of_their_paths(void **state)
{
    struct folder folder = folder_open();

    (void)state;
    put(&folder, "c", "last");
    put(&folder, "B", "capitals first\n");
    put(&folder, "a.txt", "a dot is before a slash");
    make_folder(&folder, "a");
    put(&folder, "a/2", "two");
    put(&folder, "a/10", "ten");
    put(&folder, "b", "\303\244"); /* any bytes but zero */
    put(&folder, "b-empty", "");
    check_text(folder.path,
               "capitals first\n\na dot is before a slash\nten\ntwo\n\303\244\nlast", 0);
    remove_all(&folder);
}

static void what_is_not_a_text_file_is_left_out(void **state)
{
    struct folder folder = folder_open();

    (void)state;
    put(&folder, "text", "text");
    put(&folder, ".hidden", "hidden");
    make_folder(&folder, ".git");
    put(&folder, ".git/config", "not ours");
    make_folder(&folder, "empty");
    assert_int_equal(mkfifo(folder_file(&folder, "pipe"), 0600), 0);
    check_text(folder.path, "text", 0);
    remove_all(&folder);
}

static void links_to_files_are_followed_and_loops_are_not(void **state)
{
    struct folder folder = folder_open();

    (void)state;
    make_folder(&folder, "in");
    put(&folder, "in/text", "text");
    make_link(&folder, "in/loop", "..");
    make_link(&folder, "again", "in");
    make_link(&folder, "link", "in/text");
    check_text(folder.path, "text\ntext", 0);
    check_text(folder_file(&folder, "again"), "text", 0); /* the folder itself may be one */
    make_link(&folder, "nowhere", "nothing");
    check_refused(folder.path, false, TARN_EIO, "nowhere: No such file");
    remove_all(&folder);
}

static void binary_files_are_skipped_or_refused(void **state)
{
    struct folder folder = folder_open();

    (void)state;
    put(&folder, "a", "text");
    file_put(folder_file(&folder, "b.png"), "\211PNG\0", 5);
    file_put(folder_file(&folder, "c.png"), "\0", 1);
    put(&folder, "d", "more");
    check_text(folder.path, "text\nmore", 2);
    check_refused(folder.path, true, TARN_EFORMAT, "b.png: contains a zero byte");
    remove_all(&folder);
}

static void folders_without_text_are_refused(void **state)
{
    struct folder folder = folder_open();

    (void)state;
    check_refused(folder.path, false, TARN_EIO, "contains no text, in 0 files");
    put(&folder, "empty", "");
    file_put(folder_file(&folder, "binary"), "\0", 1);
    check_refused(folder.path, false, TARN_EIO, "contains no text, in 2 files");
    check_refused(folder_file(&folder, "none"), false, TARN_EIO, "none: No such file");
    remove_all(&folder);
}

static void files_that_cannot_be_read_are_told(void **state)
{
    struct folder folder = folder_open();

    (void)state;
    put(&folder, "text", "text");
    put(&folder, "locked", "secret");
    assert_int_equal(chmod(folder_file(&folder, "locked"), 0), 0);
    if (access(folder_file(&folder, "locked"), R_OK) != 0) /* root may read everything */
        check_refused(folder.path, false, TARN_EIO, "locked: Permission denied");
    remove_all(&folder);
}

static void a_folder_is_a_set_like_a_file(void **state)
{
    struct folder folder = folder_open();
    struct tn_text_set set;
    tarn_error err;

    (void)state;
    put(&folder, "1", "0123456789");
    put(&folder, "2", "abcdefghi");
    file_put(folder_file(&folder, "3"), "\0", 1);
    check_ok(tn_text_set_read(&set, folder.path, 4, 0.25, 0, false, &err), &err);
    assert_int_equal(set.bytes.size, 20);
    assert_int_equal(set.training, 15);
    assert_int_equal(set.skipped.count, 1);
    tn_text_set_free(&set);
    assert_int_equal(set.skipped.count, 0);
    assert_int_equal(tn_text_set_read(&set, folder.path, 4, 0.25, 0, true, &err), TARN_EFORMAT);
    assert_int_equal(tn_text_set_read(&set, folder.path, 40, 0.25, 0, false, &err),
                     TARN_EINVAL);
    assert_null(set.bytes.data);
    remove_all(&folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(files_are_joined_in_the_order_of_their_paths),
        cmocka_unit_test(what_is_not_a_text_file_is_left_out),
        cmocka_unit_test(links_to_files_are_followed_and_loops_are_not),
        cmocka_unit_test(binary_files_are_skipped_or_refused),
        cmocka_unit_test(folders_without_text_are_refused),
        cmocka_unit_test(files_that_cannot_be_read_are_told),
        cmocka_unit_test(a_folder_is_a_set_like_a_file),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
