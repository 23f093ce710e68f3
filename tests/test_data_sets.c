/* SPDX-License-Identifier: MIT */
/* test_data_sets.c - known sets of data: their table, what is told as they come, archives, and
 * whether what is there is right. test_data_fetch.c has single files. */
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/data_site.h"
#include "support/tar_maker.h"

struct heard {
    uint64_t most;
    size_t calls, stop_at;
    tarn_data_state states[32];
    size_t files;
};

static bool progress(void *context, const tarn_data_file *file, uint64_t done)
{
    struct heard *const heard = context;

    assert_true(done <= file->bytes);
    assert_true(done >= heard->most);
    heard->most = done;
    return ++heard->calls != heard->stop_at;
}

static void each_file(void *context, const tarn_data_file *file, tarn_data_state state)
{
    struct heard *const heard = context;

    assert_non_null(file->path);
    heard->states[heard->files++] = state;
}

static void progress_is_told_and_may_stop(void **state)
{
    struct site *const site = site_needed(state);
    const tarn_data_file files[] = {{"one", SITE_SIZE, site->sum}, {0}};
    const tarn_data_set set = {.name = "small", .files = files};
    struct heard heard = {.stop_at = 1};
    tarn_data_events events = {&heard, progress, each_file};
    char address[100];
    tarn_error err;

    snprintf(address, sizeof address, "http://127.0.0.1:%u/good", site->port);
    assert_int_equal(tarn_data_fetch(&set, site->target.path, address, &events, &err),
                     TARN_EIO);
    assert_non_null(strstr(err.text, "stopped after "));
    assert_int_equal(heard.files, 0);
    heard = (struct heard){0};
    check_ok(tarn_data_fetch(&set, site->target.path, address, &events, &err), &err);
    assert_true(heard.calls > 0);
    assert_int_equal(heard.files, 1);
    assert_int_equal(heard.states[0], TARN_DATA_FETCHED);
    check_ok(tarn_data_fetch(&set, site->target.path, address, &events, &err), &err);
    assert_int_equal(heard.states[1], TARN_DATA_THERE);
}

static void verifying_tells_missing_from_wrong(void **state)
{
    struct folder folder = folder_open();
    const tarn_data_file files[] = {
        {"empty", 0, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
        {"abc", 3, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
        {"abd", 3, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
        {"long", 3, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
        {"none", 3, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
        {0}};
    static const tarn_data_state want[] = {TARN_DATA_THERE, TARN_DATA_THERE, TARN_DATA_WRONG,
                                           TARN_DATA_WRONG, TARN_DATA_MISSING};
    tarn_data_set set = {.name = "small", .files = files};
    struct heard heard = {0};
    const tarn_data_events events = {&heard, NULL, each_file};
    tarn_error err;

    (void)state;
    file_put(folder_file(&folder, "empty"), "", 0);
    file_put(folder_file(&folder, "abc"), "abc", 3);
    file_put(folder_file(&folder, "abd"), "abd", 3);
    file_put(folder_file(&folder, "long"), "abcd", 4);
    assert_int_equal(tarn_data_verify(&set, folder.path, &events, &err), TARN_EFORMAT);
    assert_non_null(strstr(err.text, "/abd: has SHA-256 a52d159f262b...; expected ba7816bf"));
    assert_int_equal(heard.files, 5);
    for (size_t i = 0; i < 5; i++)
        assert_int_equal(heard.states[i], want[i]);
    set.files = files + 3;
    assert_int_equal(tarn_data_verify(&set, folder.path, NULL, &err), TARN_EFORMAT);
    assert_non_null(strstr(err.text, "/long: has 4 bytes; expected 3"));
    set.files = files + 4;
    assert_int_equal(tarn_data_verify(&set, folder.path, NULL, &err), TARN_EIO);
    assert_non_null(strstr(err.text, "/none: No such file"));
    folder_close(&folder);
}

static void the_table_is_in_order(void **state)
{
    const tarn_data_set *set;

    (void)state;
    for (size_t i = 0; (set = tarn_data_set_at(i)) != NULL; i++) {
        assert_ptr_equal(tarn_data_set_find(set->name), set);
        assert_int_equal(strncmp(set->address, "https://", 8), 0);
        assert_true(*set->about && *set->licence && *set->folder);
        assert_int_not_equal(set->address[strlen(set->address) - 1], '/');
        for (const tarn_data_file *file = set->files; file->path; file++) {
            assert_int_equal(strncmp(file->path, set->folder, strlen(set->folder)), 0);
            assert_int_equal(strspn(file->sha256, "0123456789abcdef"), 64);
            assert_int_equal(strlen(file->sha256), 64);
            assert_true(file->bytes > 0);
        }
    }
    assert_null(tarn_data_set_find("none"));
}

/* ---- Archives ----------------------------------------------------------- */

static tarn_status fetch_archive(const struct site *site, const char *abc, struct heard *heard,
                                 tarn_error *err)
{
    static const tarn_data_file files[] = {
        {"inner/abc", 3, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
        {"inner/empty", 0, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
        {0}};
    const tarn_data_events events = {heard, NULL, each_file};
    const char *const path = folder_file(&site->source, "a.tar.gz");
    char address[100], sum[TN_SHA256_TEXT];
    struct stat about;

    tar_make(path, (const struct tar_member[]){{"../outside", "evil", 4, 0},
                                               {"inner/other", "not asked for", 13, 0},
                                               {"inner/abc", abc, strlen(abc), 0},
                                               {"inner/empty", "", 0, 0},
                                               {0}});
    assert_int_equal(tn_sha256_file(sum, path, NULL), TARN_OK);
    assert_int_equal(stat(path, &about), 0);
    const tarn_data_set set = {
        .name = "small", .archive = {"a.tar.gz", (uint64_t)about.st_size, sum}, .files = files};

    snprintf(address, sizeof address, "http://127.0.0.1:%u/good", site->port);
    return tarn_data_fetch(&set, site->target.path, address, &events, err);
}

static void only_what_is_wanted_is_unpacked(void **state)
{
    struct site *const site = site_needed(state);
    struct heard heard = {0};
    char abc[FOLDER_PATH];
    tarn_error err;

    strcpy(abc, folder_file(&site->target, "inner/abc"));
    check_ok(fetch_archive(site, "abc", &heard, &err), &err);
    file_check(abc, "abc", 3);
    assert_int_equal(folder_count(&site->target), 2); /* the archive and the folder */
    assert_int_equal(heard.files, 2);
    assert_int_equal(heard.states[0], TARN_DATA_UNPACKED);
    unlink(folder_file(&site->target, "a.tar.gz"));
    check_ok(fetch_archive(site, "abc", &heard, &err), &err); /* all there: no archive */
    assert_int_equal(folder_count(&site->target), 1);
    assert_int_equal(heard.states[2], TARN_DATA_THERE);
    file_put(abc, "abd", 3);
    check_ok(fetch_archive(site, "abc", &heard, &err), &err);
    file_check(abc, "abc", 3);
    unlink(abc);
    assert_int_equal(fetch_archive(site, "abcd", &heard, &err), TARN_EFORMAT);
    assert_non_null(strstr(err.text, "inner/abc has more bytes than the expected 3"));
    assert_int_equal(fetch_archive(site, "ab", &heard, &err), TARN_EFORMAT);
    assert_non_null(strstr(err.text, "inner/abc has fewer bytes than the expected 3"));
    assert_int_not_equal(access(abc, F_OK), 0);
    assert_int_equal(fetch_archive(site, "abd", &heard, &err), TARN_EFORMAT);
    assert_non_null(strstr(err.text, "inner/abc: has SHA-256"));
    unlink(abc);
    unlink(folder_file(&site->target, "inner/empty"));
    rmdir(folder_file(&site->target, "inner"));
}

static void what_is_missing_is_refused(void **state)
{
    const tarn_data_set *const set = tarn_data_set_find("mnist");

    (void)state;
    assert_non_null(set);
    assert_null(tarn_data_set_find(NULL));
    assert_int_equal(tarn_data_verify(NULL, "a", NULL, NULL), TARN_EINVAL);
    assert_int_equal(tarn_data_verify(set, NULL, NULL, NULL), TARN_EINVAL);
    assert_int_equal(tarn_data_fetch(NULL, "a", NULL, NULL, NULL), TARN_EINVAL);
    assert_int_equal(tarn_data_fetch(set, NULL, NULL, NULL, NULL), TARN_EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_missing_is_refused),
        cmocka_unit_test(the_table_is_in_order),
        cmocka_unit_test(verifying_tells_missing_from_wrong),
        ON_SITE(progress_is_told_and_may_stop),
        ON_SITE(only_what_is_wanted_is_unpacked),
    };

    signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests_name("data sets", tests, NULL, NULL);
}
