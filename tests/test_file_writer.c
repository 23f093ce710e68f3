/* SPDX-License-Identifier: MIT */
/* test_file_writer.c - a file is replaced as a whole or not at all, whatever fails. */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "file/file_writer.h"
#include "support/folder.h"

static void check_refused(const char *path, const char *says)
{
    struct tn_file_writer writer;
    tarn_error err = {0};

    assert_int_equal(tn_file_writer_open(&writer, path, &err), TARN_EIO);
    if (!strstr(err.text, path) || !strstr(err.text, says))
        fail_msg("'%s' does not name %s and say %s", err.text, path, says);
    tn_file_writer_discard(&writer);
    assert_int_equal(tn_file_writer_open(&writer, path, NULL), TARN_EIO);
}

static void write_file(const char *path, const char *text)
{
    struct tn_file_writer writer;
    tarn_error err;
    const size_t half = strlen(text) / 2;

    check_ok(tn_file_writer_open(&writer, path, &err), &err);
    check_ok(tn_file_writer_put(&writer, text, half, &err), &err);
    check_ok(tn_file_writer_put(&writer, text + half, strlen(text) - half, &err), &err);
    check_ok(tn_file_writer_put(&writer, NULL, 0, &err), &err);
    check_ok(tn_file_writer_commit(&writer, &err), &err);
    tn_file_writer_discard(&writer);
}

static void a_file_is_there_only_once_it_is_committed(void **state)
{
    struct folder folder = folder_open();
    const char *const path = folder_file(&folder, "a");
    struct tn_file_writer writer;

    (void)state;
    assert_int_equal(tn_file_writer_open(&writer, path, NULL), TARN_OK);
    assert_int_equal(tn_file_writer_put(&writer, "new", 3, NULL), TARN_OK);
    assert_int_equal(access(path, F_OK), -1);
    assert_int_equal(tn_file_writer_commit(&writer, NULL), TARN_OK);
    file_check(path, "new", 3);
    assert_int_equal(folder_count(&folder), 1);
    folder_close(&folder);
}

static void a_shorter_file_replaces_a_longer_one(void **state)
{
    struct folder folder = folder_open();
    const char *const path = folder_file(&folder, "a");

    (void)state;
    write_file(path, "a long text that was there before");
    write_file(path, "short");
    file_check(path, "short", 5);
    assert_int_equal(folder_count(&folder), 1);
    folder_close(&folder);
}

static void a_name_without_a_folder_is_in_this_one(void **state)
{
    struct folder folder = folder_open();
    char here[FOLDER_PATH];

    (void)state;
    assert_non_null(getcwd(here, sizeof here));
    assert_int_equal(chdir(folder.path), 0);
    write_file("a", "text");
    assert_int_equal(chdir(here), 0);
    file_check(folder_file(&folder, "a"), "text", 4);
    folder_close(&folder);
}

static void what_is_discarded_leaves_the_old_file(void **state)
{
    struct folder folder = folder_open();
    const char *const path = folder_file(&folder, "a");
    struct tn_file_writer writer;

    (void)state;
    write_file(path, "old");
    assert_int_equal(tn_file_writer_open(&writer, path, NULL), TARN_OK);
    assert_int_equal(tn_file_writer_put(&writer, "new", 3, NULL), TARN_OK);
    tn_file_writer_discard(&writer);
    tn_file_writer_discard(&writer);
    file_check(path, "old", 3);
    assert_int_equal(folder_count(&folder), 1);
    folder_close(&folder);
}

/* As on a full disk, write() stops in the middle: here because files may have 4096 bytes only.
 * */
static void a_write_that_fails_leaves_the_old_file(void **state)
{
    struct folder folder = folder_open();
    const char *const path = folder_file(&folder, "a");
    struct tn_file_writer writer;
    struct rlimit before;
    char data[10000] = {0};
    tarn_error err = {0};

    (void)state;
    write_file(path, "old");
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    signal(SIGXFSZ, SIG_IGN);
    const struct rlimit small = {4096, before.rlim_max};

    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    assert_int_equal(tn_file_writer_open(&writer, path, &err), TARN_OK);
    const tarn_status status = tn_file_writer_put(&writer, data, sizeof data, &err);

    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    assert_int_equal(status, TARN_EIO);
    assert_non_null(strstr(err.text, path));
    assert_non_null(strstr(err.text, "File too large"));
    tn_file_writer_discard(&writer);
    file_check(path, "old", 3);
    assert_int_equal(folder_count(&folder), 1);
    folder_close(&folder);
}

static void a_target_that_becomes_a_folder_fails_at_commit(void **state)
{
    struct folder folder = folder_open();
    const char *const path = folder_file(&folder, "a");
    struct tn_file_writer writer;
    tarn_error err = {0};

    (void)state;
    assert_int_equal(tn_file_writer_open(&writer, path, NULL), TARN_OK);
    assert_int_equal(mkdir(path, 0700), 0);
    assert_int_equal(tn_file_writer_commit(&writer, &err), TARN_EIO);
    assert_non_null(strstr(err.text, path));
    assert_int_equal(folder_count(&folder), 1);
    assert_int_equal(rmdir(path), 0);
    folder_close(&folder);
}

static void targets_that_cannot_be_are_refused_at_once(void **state)
{
    struct folder folder = folder_open();

    (void)state;
    check_refused(folder.path, "folder");
    assert_int_equal(mkfifo(folder_file(&folder, "pipe"), 0600), 0);
    check_refused(folder_file(&folder, "pipe"), "pipe");
    check_refused(folder_file(&folder, "missing/a"), "missing/a: No such file");
    file_put(folder_file(&folder, "file"), "", 0);
    check_refused(folder_file(&folder, "file/a"), "file/a: Not a directory");
    assert_int_equal(folder_count(&folder), 2);
    if (geteuid() != 0) {
        assert_int_equal(chmod(folder.path, 0500), 0);
        check_refused(folder_file(&folder, "a"), "Permission denied");
        assert_int_equal(chmod(folder.path, 0700), 0);
    } else
        print_message("root may write to read-only folders: not tested\n");
    folder_close(&folder);
}

static void an_empty_path_is_refused_and_shown(void **state)
{
    struct tn_file_writer writer;
    tarn_error err = {0};

    (void)state;
    assert_int_equal(tn_file_writer_open(&writer, "", &err), TARN_EINVAL);
    assert_string_equal(err.text, "'': is not a file name");
    tn_file_writer_discard(&writer);
}

static void what_a_killed_process_left_is_used_again(void **state)
{
    struct folder folder = folder_open();
    const char *const path = folder_file(&folder, "a");
    int how = 0;

    (void)state;
    const pid_t child = fork();

    if (child == 0) {
        struct tn_file_writer writer;

        if (tn_file_writer_open(&writer, path, NULL) == TARN_OK &&
            tn_file_writer_put(&writer, "half of something long", 22, NULL) == TARN_OK)
            raise(SIGKILL);
        _exit(1);
    }
    assert_int_equal(waitpid(child, &how, 0), child);
    assert_true(WIFSIGNALED(how));
    assert_int_equal(folder_count(&folder), 1);
    write_file(path, "whole");
    file_check(path, "whole", 5);
    assert_int_equal(folder_count(&folder), 1);
    folder_close(&folder);
}

static void a_second_writer_is_refused(void **state)
{
    struct folder folder = folder_open();
    const char *const path = folder_file(&folder, "a");
    struct tn_file_writer writer;

    (void)state;
    assert_int_equal(tn_file_writer_open(&writer, path, NULL), TARN_OK);
    assert_int_equal(tn_file_writer_put(&writer, "first", 5, NULL), TARN_OK);
    check_refused(path, "another process");
    assert_int_equal(tn_file_writer_commit(&writer, NULL), TARN_OK);
    file_check(path, "first", 5);
    folder_close(&folder);
}

static void write_often(const char *path, char letter, int times, size_t size)
{
    char data[5000];

    memset(data, letter, sizeof data);
    for (int i = 0; i < times; i++) {
        struct tn_file_writer writer;
        tarn_error err;

        if (tn_file_writer_open(&writer, path, &err) != TARN_OK) {
            if (!strstr(err.text, "another process"))
                _exit(2);
        } else if (tn_file_writer_put(&writer, data, size, NULL) != TARN_OK ||
                   tn_file_writer_commit(&writer, NULL) != TARN_OK)
            _exit(1);
    }
    _exit(0);
}

/* Whoever gets the lock of a temporary that was renamed in the meantime must not write to it:
 * what is opened can be committed. In a folder that is no disk, where syncing is quick, if
 * there is one. */
static void writers_in_a_race_leave_whole_files(void **state)
{
    enum { WRITERS = 4, SIZE = 5000 };
    const bool quick = access("/dev/shm", W_OK) == 0;
    struct folder folder = quick ? folder_open_in("/dev/shm") : folder_open();
    const char *const path = folder_file(&folder, "a");
    pid_t children[WRITERS];
    char first, same[SIZE];

    (void)state;
    write_file(path, "start");
    for (int c = 0; c < WRITERS; c++)
        if ((children[c] = fork()) == 0)
            write_often(path, (char)('a' + c), quick ? 2000 : 50, SIZE);
    for (int c = 0; c < WRITERS; c++) {
        int how;

        assert_int_equal(waitpid(children[c], &how, 0), children[c]);
        assert_int_equal(how, 0);
    }
    FILE *const file = fopen(path, "rb");

    assert_non_null(file);
    assert_int_equal(fread(&first, 1, 1, file), 1);
    fclose(file);
    memset(same, first, SIZE);
    file_check(path, same, SIZE);
    assert_int_equal(folder_count(&folder), 1);
    folder_close(&folder);
}

static void permissions_are_kept(void **state)
{
    struct folder folder = folder_open();
    const char *const path = folder_file(&folder, "a");
    struct stat about;

    (void)state;
    write_file(path, "old");
    assert_int_equal(chmod(path, 0600), 0);
    write_file(path, "new");
    assert_int_equal(stat(path, &about), 0);
    assert_int_equal(about.st_mode & 0777, 0600);
    folder_close(&folder);
}

static void a_temporary_that_is_a_link_is_not_followed(void **state)
{
    struct folder folder = folder_open();
    const char *const path = folder_file(&folder, "a"), *const other =
                                                            folder_file(&folder, "b");

    (void)state;
    file_put(other, "precious", 8);
    assert_int_equal(symlink(other, folder_file(&folder, "a.tmp")), 0);
    check_refused(path, "a.tmp");
    file_check(other, "precious", 8);
    folder_close(&folder);
}

/* The new file is another one: who has the old one open, or its name elsewhere, keeps it. */
static void what_is_left_is_never_written_to(void **state)
{
    struct folder folder = folder_open();
    const char *const path = folder_file(&folder, "a"), *const left =
                                                            folder_file(&folder, "a.tmp");
    char kept[9] = "";

    (void)state;
    file_put(left, "precious", 8);
    FILE *const file = fopen(left, "rb");

    assert_non_null(file);
    assert_int_equal(chmod(left, 0444), 0);
    write_file(path, "new");
    assert_int_equal(fread(kept, 1, 8, file), 8);
    assert_string_equal(kept, "precious");
    fclose(file);
    file_check(path, "new", 3);
    folder_close(&folder);
}

/* Which a symbolic link, a hard link, a pipe and a folder in the way are not. */
static void only_what_a_writer_left_is_removed(void **state)
{
    struct folder folder = folder_open();
    const char *const path = folder_file(&folder, "a"), *const other =
                                                            folder_file(&folder, "b");
    const char *const way = folder_file(&folder, "a.tmp");

    (void)state;
    file_put(other, "precious", 8);
    assert_int_equal(link(other, way), 0);
    check_refused(path, "a.tmp: is in the way");
    file_check(other, "precious", 8);
    file_check(way, "precious", 8);
    assert_int_equal(unlink(way), 0);
    assert_int_equal(mkfifo(way, 0600), 0);
    check_refused(path, "a.tmp: is in the way");
    assert_int_equal(unlink(way), 0);
    assert_int_equal(mkdir(way, 0700), 0);
    check_refused(path, "a.tmp: is in the way");
    assert_int_equal(rmdir(way), 0);
    if (geteuid() == 0) {
        file_put(way, "theirs", 6);
        assert_int_equal(chown(way, 65534, 65534), 0);
        check_refused(path, "a.tmp: is in the way");
        file_check(way, "theirs", 6);
    } else
        print_message("only root can make files of other users: not tested\n");
    folder_close(&folder);
}

/* A partial download is continued: then it must be our own. */
static void only_an_own_partial_file_is_continued(void **state)
{
    struct folder folder = folder_open();
    const char *const path = folder_file(&folder, "a"), *const other =
                                                            folder_file(&folder, "b");
    struct tn_file_writer writer;
    uint64_t there;
    tarn_error err = {0};

    (void)state;
    file_put(other, "precious", 8);
    assert_int_equal(link(other, folder_file(&folder, "a.part")), 0);
    assert_int_equal(tn_file_writer_resume(&writer, &there, path, &err), TARN_EIO);
    assert_non_null(strstr(err.text, "a.part: is in the way"));
    file_check(other, "precious", 8);
    folder_close(&folder);
}

/* Without locks two writers may have the same temporary: the first must not commit what the
 * second has written. */
static void a_temporary_that_was_replaced_is_not_committed(void **state)
{
    struct folder folder = folder_open();
    const char *const path = folder_file(&folder, "a");
    struct tn_file_writer writer;

    (void)state;
    write_file(path, "old");
    assert_int_equal(tn_file_writer_open(&writer, path, NULL), TARN_OK);
    assert_int_equal(unlink(folder_file(&folder, "a.tmp")), 0);
    file_put(folder_file(&folder, "a.tmp"), "half", 4);
    assert_int_equal(tn_file_writer_commit(&writer, NULL), TARN_EIO);
    file_check(path, "old", 3);
    folder_close(&folder);
}

static void what_was_written_can_be_read_again(void **state)
{
    struct folder folder = folder_open();
    struct tn_file_writer writer;
    char read[4] = "";
    uint64_t size = 0;
    tarn_error err = {0};

    (void)state;
    check_ok(tn_file_writer_open(&writer, folder_file(&folder, "a"), &err), &err);
    check_ok(tn_file_writer_put(&writer, "abcde", 5, &err), &err);
    check_ok(tn_file_writer_read(&writer, read, 3, &size, &err), &err);
    assert_string_equal(read, "abc");
    assert_int_equal(size, 5);
    assert_int_equal(tn_file_writer_read(&writer, (char[8]){0}, 6, &size, &err), TARN_EIO);
    check_ok(tn_file_writer_put(&writer, "f", 1, &err), &err);
    check_ok(tn_file_writer_commit(&writer, &err), &err);
    file_check(folder_file(&folder, "a"), "abcdef", 6);
    folder_close(&folder);
}

static void a_suspended_writer_goes_on(void **state)
{
    struct folder folder = folder_open();
    const char *const path = folder_file(&folder, "a"), *part = folder_file(&folder, "a.part");
    struct tn_file_writer writer, second;
    uint64_t there = 9;
    tarn_error err;

    (void)state;
    check_ok(tn_file_writer_resume(&writer, &there, path, &err), &err);
    assert_int_equal(there, 0);
    check_ok(tn_file_writer_put(&writer, "abc", 3, &err), &err);
    assert_int_equal(tn_file_writer_resume(&second, &there, path, &err), TARN_EIO);
    assert_non_null(strstr(err.text, "a: is being written by another process"));
    tn_file_writer_suspend(&writer);
    tn_file_writer_suspend(&writer);
    file_check(part, "abc", 3);
    check_ok(tn_file_writer_resume(&writer, &there, path, &err), &err);
    assert_int_equal(there, 3);
    check_ok(tn_file_writer_put(&writer, "de", 2, &err), &err);
    check_ok(tn_file_writer_commit(&writer, &err), &err);
    file_check(path, "abcde", 5);
    file_put(part, "other", 5);
    check_ok(tn_file_writer_resume(&writer, &there, path, &err), &err);
    check_ok(tn_file_writer_restart(&writer, &err), &err);
    check_ok(tn_file_writer_put(&writer, "new", 3, &err), &err);
    check_ok(tn_file_writer_commit(&writer, &err), &err);
    file_check(path, "new", 3);
    assert_int_equal(folder_count(&folder), 1);
    folder_close(&folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_is_there_only_once_it_is_committed),
        cmocka_unit_test(a_shorter_file_replaces_a_longer_one),
        cmocka_unit_test(a_name_without_a_folder_is_in_this_one),
        cmocka_unit_test(what_is_discarded_leaves_the_old_file),
        cmocka_unit_test(a_write_that_fails_leaves_the_old_file),
        cmocka_unit_test(a_target_that_becomes_a_folder_fails_at_commit),
        cmocka_unit_test(targets_that_cannot_be_are_refused_at_once),
        cmocka_unit_test(an_empty_path_is_refused_and_shown),
        cmocka_unit_test(what_a_killed_process_left_is_used_again),
        cmocka_unit_test(a_second_writer_is_refused),
        cmocka_unit_test(writers_in_a_race_leave_whole_files),
        cmocka_unit_test(permissions_are_kept),
        cmocka_unit_test(a_temporary_that_is_a_link_is_not_followed),
        cmocka_unit_test(what_is_left_is_never_written_to),
        cmocka_unit_test(only_what_a_writer_left_is_removed),
        cmocka_unit_test(only_an_own_partial_file_is_continued),
        cmocka_unit_test(a_temporary_that_was_replaced_is_not_committed),
        cmocka_unit_test(what_was_written_can_be_read_again),
        cmocka_unit_test(a_suspended_writer_goes_on),
    };

    return cmocka_run_group_tests_name("file writer", tests, NULL, NULL);
}
