/* SPDX-License-Identifier: MIT */
/* test_no_memory.c - files are read and written while one allocation fails, whichever it is, or
 * that and all after it: a call does what it should or says that there is no memory, and every
 * file is the old one or the new one. */
#include <signal.h>
#include <sndfile.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "data/speech_set.h"
#include "file/file_bytes.h"
#include "file/unpack.h"
#include "support/audio_files.h"
#include "support/count_calls.h"
#include "support/folder.h"
#include "support/streams.h"
#include "support/tar_maker.h"
#include "support/zip_maker.h"
#include "tarn/tarn.h"

#ifdef COUNTS_CALLS

enum { B = 2, LONGEST = 20 };

/* What calls are made on. */
struct world {
    struct folder folder;
    tarn_model *model;
    tarn_trainer *trainer;
    struct streams streams, loaded;
    size_t packed;          /* bytes of the streams */
    unsigned char *pack;    /* memory for them */
    char path[FOLDER_PATH]; /* of the file that a call writes */
};

struct call {
    const char *name;
    const char *file; /* that it writes; NULL: none */
    tarn_status (*run)(struct world *w, tarn_error *err);
};

static void set_path(struct world *w, const char *file)
{
    strcpy(w->path, folder_file(&w->folder, file));
}

/* ---- Calls -------------------------------------------------------------- */

static tarn_status save_model(struct world *w, tarn_error *err)
{
    return tarn_model_save(w->model, w->path, err);
}

static tarn_status export_bf16(struct world *w, tarn_error *err)
{
    return tarn_model_export(w->model, w->path, "bf16", 9, err);
}

static tarn_status save_checkpoint(struct world *w, tarn_error *err)
{
    return tarn_trainer_save(w->trainer, w->path, err);
}

static tarn_status save_streams(struct world *w, tarn_error *err)
{
    return tarn_streams_save(w->streams.engine, w->streams.at, B, w->path, err);
}

static tarn_status load_model(struct world *w, tarn_error *err)
{
    const char *const path = folder_file(&w->folder, "model");
    tarn_model *model = w->model;
    const tarn_status status = tarn_model_load(&model, path, NULL, err);

    assert_true(status == TARN_OK
                    ? tarn_model_fingerprint(model) == tarn_model_fingerprint(w->model)
                    : model == NULL);
    tarn_model_free(model);
    return status;
}

static tarn_status load_checkpoint(struct world *w, tarn_error *err)
{
    return tarn_trainer_load(w->trainer, folder_file(&w->folder, "checkpoint"), err);
}

static void check_loaded(const struct world *w)
{
    for (size_t i = 0; i < B; i++)
        assert_memory_equal(w->loaded.at[i], w->streams.at[i], w->streams.size);
}

static tarn_status load_streams(struct world *w, tarn_error *err)
{
    const tarn_status status = tarn_streams_load(w->loaded.engine, w->loaded.at, B,
                                                 folder_file(&w->folder, "streams"), err);

    if (status == TARN_OK)
        check_loaded(w);
    return status;
}

static tarn_status pack_streams(struct world *w, tarn_error *err)
{
    size_t size = w->packed;

    memset(w->pack, 0, size);
    tarn_status status =
        tarn_streams_pack(w->streams.engine, w->pack, &size, w->streams.at, B, err);

    if (status == TARN_OK && (status = tarn_streams_unpack(w->loaded.engine, w->loaded.at, B,
                                                           w->pack, size, err)) == TARN_OK)
        check_loaded(w);
    return status;
}

static tarn_status inspect_streams(struct world *w, tarn_error *err)
{
    tarn_streams_about about = {0};
    const tarn_status status =
        tarn_streams_inspect(&about, folder_file(&w->folder, "streams"), err);

    if (status == TARN_OK)
        assert_int_equal(about.count, B);
    return status;
}

static tarn_status open_file(struct world *w, tarn_error *err)
{
    tarn_file *file;
    tarn_file_tensor tensor;
    tarn_file_entry entry;
    size_t tensors = 0, entries = 0;
    const tarn_status status =
        tarn_file_open(&file, folder_file(&w->folder, "checkpoint"), err);

    if (status != TARN_OK)
        return status;
    while (tarn_file_tensor_at(file, tensors, &tensor))
        tensors++;
    while (tarn_file_entry_at(file, entries, &entry))
        entries++;
    assert_int_equal(tensors % 3, 0); /* weights and two moments */
    assert_int_equal(entries, 3);     /* model, progress, checksums */
    tarn_file_free(file);
    return TARN_OK;
}

static tarn_status export_npz(struct world *w, tarn_error *err)
{
    return tarn_model_export(w->model, w->path, NULL, 9, err);
}

static tarn_status import(const char *path, tarn_error *err)
{
    tarn_model *model;
    const tarn_status status = tarn_model_import(&model, path, &(tarn_import_desc){0}, err);

    assert_true((status == TARN_OK) == (model != NULL));
    tarn_model_free(model);
    return status;
}

static tarn_status import_old_pth(struct world *w, tarn_error *err)
{
    (void)w;
    return import(TEST_VECTORS "image_old.pth", err);
}

static tarn_status import_pth(struct world *w, tarn_error *err)
{
    (void)w;
    return import(TEST_VECTORS "image.pth", err);
}

static tarn_status import_npz(struct world *w, tarn_error *err)
{
    return import(folder_file(&w->folder, "model.npz"), err);
}

/* Its members are deflated, as NumPy may have them. */
static tarn_status open_deflated(struct world *w, tarn_error *err)
{
    tarn_file *file;
    const tarn_status status = tarn_file_open(&file, folder_file(&w->folder, "deflated"), err);

    tarn_file_free(file);
    return status;
}

static tarn_status unpack(struct world *w, tarn_error *err)
{
    const struct tn_unpack wanted = {"one", w->path, 700};

    return tn_unpack_tar(folder_file(&w->folder, "archive"), &wanted, 1, err);
}

static const struct call calls_made[] = {
    {"save a model", "model", save_model},
    {"export a model in bf16", "exported", export_bf16},
    {"save a checkpoint", "checkpoint", save_checkpoint},
    {"save streams", "streams", save_streams},
    {"load a model", NULL, load_model},
    {"load a checkpoint", NULL, load_checkpoint},
    {"load streams", NULL, load_streams},
    {"pack and unpack streams", NULL, pack_streams},
    {"inspect streams", NULL, inspect_streams},
    {"open a file of tensors", NULL, open_file},
    {"export a NumPy file", "model.npz", export_npz},
    {"import an old PyTorch file", NULL, import_old_pth},
    {"import a PyTorch file", NULL, import_pth},
    {"import a NumPy file", NULL, import_npz},
    {"read a deflated NumPy file", NULL, open_deflated},
    {"unpack a tar archive", "unpacked", unpack},
};

/* ---- The world ---------------------------------------------------------- */

/* Sounds with their phones beside them, one of 8 kHz, one in FLAC, and one to validate on. */
static void put_speech(const struct folder *folder)
{
    static const struct {
        const char *name;
        int format;
        size_t rate;
    } sounds[] = {
        {"a", SF_FORMAT_WAV | SF_FORMAT_PCM_16, 8000},
        {"b", SF_FORMAT_FLAC | SF_FORMAT_PCM_16, 16000},
        {"c", SF_FORMAT_WAV | SF_FORMAT_PCM_16, 16000},
    };
    float *const samples = sound(4000, 1);
    char path[FOLDER_PATH];

    for (size_t i = 0; i < 3; i++) {
        const bool flac = (sounds[i].format & SF_FORMAT_TYPEMASK) == SF_FORMAT_FLAC;

        snprintf(path, sizeof path, "%s.%s", sounds[i].name, flac ? "flac" : "wav");
        audio_put(folder_file(folder, path), sounds[i].format, sounds[i].rate, 1, samples,
                  4000);
        snprintf(path, sizeof path, "%s.phn", sounds[i].name);
        file_put(folder_file(folder, path), "0 9 aa\n10 19 b\n", 15);
    }
    free(samples);
}

static struct world world_open(void)
{
    static const char array[] = "\x93NUMPY\1\0\x3b\0"
                                "{'descr': '|i1', 'fortran_order': False, 'shape': (1,), } \n";
    struct world w = {.folder = access("/dev/shm", W_OK) == 0 ? folder_open_in("/dev/shm")
                                                              : folder_open(),
                      .model = model_of(model_variant_at(0))};
    char data[700];
    tarn_error err;

    memset(data, 'x', sizeof data);
    tar_make(folder_file(&w.folder, "archive"),
             (const struct tar_member[]){{"one", data, sizeof data, 0}, {0}});
    struct tn_bytes zip =
        zip_make_as((struct zip_made[]){{"a.npy", array, sizeof array, 0}}, 1, ZIP_DEFLATED);

    file_put(folder_file(&w.folder, "deflated"), zip.data, zip.size);
    tn_bytes_free(&zip);
    w.streams =
        streams_open(w.model, (tarn_engine_desc){.longest = LONGEST, .host.threads = 1}, B);
    w.loaded =
        streams_open(w.model, (tarn_engine_desc){.longest = LONGEST, .host.threads = 1}, B);
    check_ok(tarn_trainer_create(
                 &w.trainer, w.model,
                 &(tarn_trainer_desc){.batch = B, .length = LONGEST, .host.threads = 1}, &err),
             &err);
    streams_step(&w.streams, (const int32_t[B]){3, 4});
    check_ok(tarn_streams_pack(w.streams.engine, NULL, &w.packed, w.streams.at, B, &err), &err);
    w.pack = take(w.packed, 1);
    set_path(&w, "model");
    check_ok(save_model(&w, &err), &err);
    set_path(&w, "checkpoint");
    check_ok(save_checkpoint(&w, &err), &err);
    set_path(&w, "streams");
    check_ok(save_streams(&w, &err), &err);
    return w;
}

static void world_close(struct world *w)
{
    free(w->pack);
    streams_close(&w->streams);
    streams_close(&w->loaded);
    tarn_trainer_free(w->trainer);
    tarn_model_free(w->model);
    folder_close(&w->folder);
}

/* ---- One call ----------------------------------------------------------- */

/* The file that a call writes, whole: the one before, or the one that it should write. */
static void check_file(const struct world *w, const struct tn_bytes *whole, bool is_new)
{
    if (is_new)
        file_check(w->path, whole->data, whole->size);
    else
        file_check(w->path, "old", 3);
}

/* Whether an allocation was refused. */
static bool run_once(struct world *w, const struct call *call, const struct tn_bytes *whole,
                     size_t n, size_t length)
{
    const size_t files = folder_count(&w->folder);
    tarn_error err = {0};

    if (call->file)
        file_put(w->path, "old", 3);
    refuse_calls(n, length);
    const size_t first = atomic_load(&refused_from);
    const tarn_status status = call->run(w, &err);
    const bool refused = atomic_load(&calls) > first;

    refuse_no_calls();
    if (status != TARN_OK && (status != TARN_ENOMEM || !strstr(err.text, "memory")))
        fail_msg("%s without allocation %zu: %s: %s", call->name, n, tarn_status_name(status),
                 err.text);
    if (status != TARN_OK && !refused)
        fail_msg("%s: %s", call->name, err.text);
    if (call->file)
        check_file(w, whole, status == TARN_OK);
    assert_int_equal(folder_count(&w->folder), files);
    return refused;
}

static void check_call(struct world *w, const struct call *call)
{
    const size_t lengths[] = {1, SIZE_MAX / 2};
    struct tn_bytes whole = {0};
    tarn_error err;

    if (call->file) {
        set_path(w, call->file);
        check_ok(call->run(w, &err), &err);
        check_ok(tn_bytes_read(&whole, w->path, SIZE_MAX, &err), &err);
    }
    for (size_t i = 0; i < 2; i++) {
        size_t n = 0;

        while (run_once(w, call, &whole, n, lengths[i]))
            n++;
        assert_true(n > 3);
        print_message("%s: %zu allocations, %s\n", call->name, n,
                      i == 0 ? "each fails alone" : "each fails with all after it");
    }
    if (call->file)
        file_put(w->path, whole.data, whole.size);
    tn_bytes_free(&whole);
}

static void files_are_whole_whichever_allocation_fails(void **state)
{
    struct world w = world_open();

    (void)state;
    for (size_t i = 0; i < sizeof calls_made / sizeof calls_made[0]; i++)
        check_call(&w, &calls_made[i]);
    world_close(&w);
}

/* ---- Speech ------------------------------------------------------------- */

enum { DONE = 0, NOTHING_REFUSED = 10, INCOMPLETE = 20, NOT_MEMORY = 30 };

/* Every utterance, or no set at all: a sound that could not be read for lack of memory is not
 * damaged. How the process ends. */
static int read_speech(const char *folder, size_t n, size_t length)
{
    struct tn_speech_settings settings;
    struct tn_speech_set set;
    tarn_error err = {0};

    tn_speech_settings_default(&settings);
    settings.threads = 1;
    settings.validation = 0.4;
    refuse_calls(n, length);
    const size_t first = atomic_load(&refused_from);
    const tarn_status status = tn_speech_set_read(&set, folder, &settings, &err);
    const bool refused = atomic_load(&calls) > first;

    refuse_no_calls();
    if (status != TARN_OK && (status != TARN_ENOMEM || !strstr(err.text, "memory"))) {
        fprintf(stderr, "%s: %s\n", tarn_status_name(status), err.text);
        return NOT_MEMORY;
    }
    if (status == TARN_OK && (set.count[TN_TRAINING] != 2 || set.count[TN_VALIDATION] != 1 ||
                              set.list.skipped_count > 0))
        return INCOMPLETE;
    return refused ? DONE : NOTHING_REFUSED;
}

/* In a process of its own each: some allocations that fail crash libsndfile. The command fails
 * then, which is what counts here. */
static void speech_is_read_whole_or_refused(void **state)
{
    const size_t lengths[] = {1, SIZE_MAX / 2};
    struct folder folder = folder_open();

    (void)state;
    put_speech(&folder);
    for (size_t i = 0; i < 2; i++) {
        size_t n = 0, ended = 0;
        int code = DONE;

        for (; code != NOTHING_REFUSED; n++) {
            const pid_t child = fork();

            assert_true(child >= 0);
            if (child == 0) {
                signal(SIGSEGV, SIG_DFL); /* cmocka catches it */
                signal(SIGABRT, SIG_DFL);
                _exit(read_speech(folder.path, n, lengths[i]));
            }
            assert_int_equal(waitpid(child, &code, 0), child);
            const bool by_library = WIFSIGNALED(code) || WEXITSTATUS(code) == 1;

            ended += by_library;
            code = by_library ? DONE : WEXITSTATUS(code);
            if (code != DONE && code != NOTHING_REFUSED)
                fail_msg("allocation %zu: %s", n,
                         code == INCOMPLETE ? "an utterance is missing" : "another reason");
        }
        print_message("read speech: %zu allocations, %zu of them end the process\n", n - 1,
                      ended);
        assert_true(n > 50 && ended < n / 4);
    }
    folder_close(&folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(files_are_whole_whichever_allocation_fails),
        cmocka_unit_test(speech_is_read_whole_or_refused),
    };

    return cmocka_run_group_tests_name("no memory", tests, NULL, NULL);
}

#else

static void allocations_cannot_be_refused_here(void **state)
{
    (void)state;
    print_message("skipped: allocations are refused with glibc and without sanitizers\n");
    skip();
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(allocations_cannot_be_refused_here)};

    return cmocka_run_group_tests_name("no memory", tests, NULL, NULL);
}

#endif
