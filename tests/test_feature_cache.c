/* SPDX-License-Identifier: MIT */
/* test_feature_cache.c - features from a folder are those of the file, whatever was done to
 * either. */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "data/feature_cache.h"
#include "file/file_bytes.h"
#include "support/audio_files.h"
#include "support/comma.h"
#include "support/speech_folder.h"

struct fixture {
    struct folder folder;
    struct tn_feature_cache cache;
    char audio[FOLDER_PATH], entries[FOLDER_PATH];
};

static struct fixture open_fixture(void)
{
    struct fixture f = {.folder = folder_open()};
    tarn_error err;

    strcpy(f.audio, folder_file(&f.folder, "a.wav"));
    strcpy(f.entries, folder_file(&f.folder, "cache"));
    speech_put(f.audio, 8000, 1);
    check_ok(tn_feature_cache_open(&f.cache, f.entries, &err), &err);
    return f;
}

static void close_fixture(struct fixture *f)
{
    tn_feature_cache_close(&f->cache);
    tn_feature_cache_close(&f->cache);
    tree_close(&f->folder);
}

/* Reads through the cache; what comes must be the file's. */
static void check_read(struct fixture *f, double speed, size_t found, size_t made)
{
    struct tn_frames got, expected;
    tarn_error err;

    f->cache.found = f->cache.made = 0;
    check_ok(tn_feature_cache_read(&f->cache, &got, f->audio, speed, 1000, &err), &err);
    check_ok(tn_features_read(&expected, f->audio, speed, 1000, &err), &err);
    assert_int_equal(got.count, expected.count);
    assert_int_equal(got.samples, expected.samples);
    assert_int_equal(got.rate, expected.rate);
    assert_memory_equal(got.data, expected.data, got.count * TN_MEL_BANDS * sizeof *got.data);
    assert_int_equal(f->cache.found, found);
    assert_int_equal(f->cache.made, made);
    tn_frames_free(&got);
    tn_frames_free(&expected);
}

/* The only entry's path. */
static void entry_path(const struct fixture *f, char path[FOLDER_PATH])
{
    DIR *const directory = opendir(f->entries);
    size_t count = 0;

    assert_non_null(directory);
    for (struct dirent *entry; (entry = readdir(directory)) != NULL;)
        if (entry->d_name[0] != '.') {
            snprintf(path, FOLDER_PATH, "%.200s/%.200s", f->entries, entry->d_name);
            count++;
        }
    closedir(directory);
    assert_int_equal(count, 1);
}

static void what_was_read_once_is_found(void **state)
{
    struct fixture f = open_fixture();
    char path[FOLDER_PATH];

    (void)state;
    check_read(&f, 1.0, 0, 1);
    check_read(&f, 1.0, 1, 0);
    entry_path(&f, path);
    check_read(&f, 0.9, 0, 1);
    check_read(&f, 0.9, 1, 0);
    check_read(&f, 1.0, 1, 0);
    assert_int_equal(f.cache.lost, 0);
    close_fixture(&f);
}

/* The name of an entry contains the speed. */
static void entries_are_found_under_a_comma(void **state)
{
    const locale_t before = use_comma();
    struct fixture f = open_fixture();

    (void)state;
    check_read(&f, 0.9, 0, 1);
    drop_comma(before);
    check_read(&f, 0.9, 1, 0);
    close_fixture(&f);
}

static void an_audio_file_that_changed_is_read_again(void **state)
{
    const struct timespec times[2] = {{.tv_sec = 1000000}, {.tv_sec = 1000000}};
    struct fixture f = open_fixture();
    char path[FOLDER_PATH];

    (void)state;
    check_read(&f, 1.0, 0, 1);
    speech_put(f.audio, 9000, 1); /* another size */
    check_read(&f, 1.0, 0, 1);
    check_read(&f, 1.0, 1, 0);
    speech_put(f.audio, 9000, 2); /* another time */
    assert_int_equal(utimensat(AT_FDCWD, f.audio, times, 0), 0);
    check_read(&f, 1.0, 0, 1);
    check_read(&f, 1.0, 1, 0);
    entry_path(&f, path); /* old ones do not gather */
    close_fixture(&f);
}

/* What a first reading leaves, to be damaged. */
static struct tn_bytes fresh_entry(struct fixture *f, char path[FOLDER_PATH])
{
    struct tn_bytes bytes;
    tarn_error err;

    check_read(f, 1.0, 0, 1);
    entry_path(f, path);
    check_ok(tn_bytes_read(&bytes, path, 1 << 20, &err), &err);
    return bytes;
}

static void damage_anywhere_is_noticed(void **state)
{
    struct fixture f = open_fixture();
    char path[FOLDER_PATH];
    struct tn_bytes bytes;

    (void)state;
    bytes = fresh_entry(&f, path);
    for (size_t i = 0; i < bytes.size; i += i < 64 ? 1 : 61) {
        bytes.data[i] ^= 0x10;
        file_put(path, bytes.data, bytes.size);
        check_read(&f, 1.0, 0, 1);
        bytes.data[i] ^= 0x10;
        file_put(path, bytes.data, i); /* cut short */
        check_read(&f, 1.0, 0, 1);
    }
    check_read(&f, 1.0, 1, 0);
    tn_bytes_free(&bytes);
    close_fixture(&f);
}

/* The head of an entry with another number, and a check that fits. */
static void forge(const char *path, const struct tn_bytes *bytes, size_t number, uint64_t value)
{
    uint64_t head[8];
    struct tn_bytes forged;

    check_ok(tn_bytes_allocate(&forged, bytes->size, NULL), NULL);
    memcpy(forged.data, bytes->data, bytes->size);
    memcpy(head, bytes->data, sizeof head);
    head[number] = value;
    head[7] = 0;
    head[7] = crc32_z(crc32_z(0, (const unsigned char *)head, sizeof head),
                      bytes->data + sizeof head, bytes->size - sizeof head);
    memcpy(forged.data, head, sizeof head);
    file_put(path, forged.data, forged.size);
    tn_bytes_free(&forged);
}

static void entries_that_tell_another_length_are_not_believed(void **state)
{
    enum { SAMPLES = 4, RATE = 5 };
    struct fixture f = open_fixture();
    char path[FOLDER_PATH];
    struct tn_bytes bytes;

    (void)state;
    bytes = fresh_entry(&f, path);
    forge(path, &bytes, SAMPLES, 8000);
    check_read(&f, 1.0, 1, 0);
    forge(path, &bytes, SAMPLES, 80000);
    check_read(&f, 1.0, 0, 1);
    forge(path, &bytes, SAMPLES, UINT64_MAX);
    check_read(&f, 1.0, 0, 1);
    forge(path, &bytes, RATE, 0);
    check_read(&f, 1.0, 0, 1);
    forge(path, &bytes, RATE, 8000);
    check_read(&f, 1.0, 0, 1);
    tn_bytes_free(&bytes);
    close_fixture(&f);
}

static void entries_that_cannot_be_written_are_counted(void **state)
{
    struct fixture f = open_fixture();

    (void)state;
    assert_int_equal(rmdir(f.entries), 0);
    check_read(&f, 1.0, 0, 1);
    check_read(&f, 1.0, 0, 1);
    assert_int_equal(f.cache.lost, 2);
    close_fixture(&f);
}

static void limits_hold_for_entries_too(void **state)
{
    struct fixture f = open_fixture();
    struct tn_frames got;
    tarn_error err;

    (void)state;
    check_read(&f, 1.0, 0, 1);
    assert_int_equal(tn_feature_cache_read(&f.cache, &got, f.audio, 1.0, 47, &err),
                     TARN_EINVAL);
    assert_null(got.data);
    assert_int_equal(
        tn_feature_cache_read(&f.cache, &got, folder_file(&f.folder, "b.wav"), 1.0, 47, &err),
        TARN_EIO);
    assert_non_null(strstr(err.text, "b.wav: No such file"));
    close_fixture(&f);
}

static void a_cache_that_is_no_folder_is_refused(void **state)
{
    struct fixture f = open_fixture();
    struct tn_feature_cache cache;
    tarn_error err;

    (void)state;
    assert_int_equal(tn_feature_cache_open(&cache, f.audio, &err), TARN_EIO);
    assert_non_null(strstr(err.text, "a.wav: File exists; cannot create a folder there"));
    assert_int_equal(tn_feature_cache_open(&cache, folder_file(&f.folder, "x/y"), &err),
                     TARN_EIO);
    check_ok(tn_feature_cache_open(&cache, NULL, &err), &err);
    tn_feature_cache_close(&cache);
    close_fixture(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_read_once_is_found),
        cmocka_unit_test(entries_are_found_under_a_comma),
        cmocka_unit_test(an_audio_file_that_changed_is_read_again),
        cmocka_unit_test(damage_anywhere_is_noticed),
        cmocka_unit_test(entries_that_tell_another_length_are_not_believed),
        cmocka_unit_test(entries_that_cannot_be_written_are_counted),
        cmocka_unit_test(limits_hold_for_entries_too),
        cmocka_unit_test(a_cache_that_is_no_folder_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
