/* SPDX-License-Identifier: MIT */
/* state_file.c - a state in a safetensors file: its bytes, and in the metadata whose they are. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "file/safetensors.h"
#include "generate/generator.h"

static const char key[] = "tarn_state", tensor[] = "state";

/* Everything that must be the same for the bytes to mean the same. */
static void describe(const tarn_generator *g, char *text, size_t size)
{
    snprintf(text, size, "version=1 model=%016" PRIx64 " method=%s batch=%zu longest=%zu",
             tarn_model_fingerprint(g->model), g->method->about.name, g->B, g->longest);
}

tarn_status tarn_state_save(const tarn_generator *g, const void *state, const char *path,
                            tarn_error *err)
{
    char whose[160];

    if (!g || !state || !path)
        return tn_fail(err, TARN_EINVAL, "generator, state, path: one is NULL; expected all");
    describe(g, whose, sizeof whose);
    return tn_safetensors_write(path,
                                &(struct tn_safetensor){.name = tensor,
                                                        .dtype = TN_DTYPE_U8,
                                                        .rank = 1,
                                                        .shape = {tarn_generator_state_size(g)},
                                                        .data = state},
                                1, &(struct tn_safetensors_entry){key, whose}, 1, err);
}

/* The file says it is a state of this generator. */
static tarn_status check_origin(const tarn_generator *g, const struct tn_safetensors *file,
                                const char *path, tarn_error *err)
{
    const char *const found = tn_safetensors_metadata(file, key);
    const struct tn_safetensor *const bytes = tn_safetensors_find(file, tensor);
    char whose[160];

    describe(g, whose, sizeof whose);
    if (!found || !bytes)
        return tn_fail(err, TARN_EFORMAT, "%s: holds no state of a generator", path);
    if (strcmp(found, whose) != 0)
        return tn_fail(err, TARN_EFORMAT, "%s: is a state of %.80s; expected %.80s", path,
                       found, whose);
    if (bytes->bytes != tarn_generator_state_size(g))
        return tn_fail(err, TARN_EFORMAT, "%s: a state of %zu bytes; expected %zu", path,
                       bytes->bytes, tarn_generator_state_size(g));
    return TARN_OK;
}

static tarn_status check_state(const tarn_generator *g, const struct tn_state *state,
                               const char *path, tarn_error *err)
{
    if (state->position > tn_generator_end(g))
        return tn_fail(err, TARN_EFORMAT, "%s: a state at position %llu; expected at most %zu",
                       path, (unsigned long long)state->position, tn_generator_end(g));
    return g->method->check ? g->method->check(g, state, path, err) : TARN_OK;
}

/* In a file bytes have no alignment: they are looked at in a copy. */
static tarn_status load(const tarn_generator *g, void *state, const struct tn_safetensors *file,
                        const char *path, tarn_error *err)
{
    struct tn_bytes copy = {0};
    tarn_status status = check_origin(g, file, path, err);

    if (status == TARN_OK)
        status = tn_bytes_take(&copy, tarn_generator_state_size(g), err);
    if (status == TARN_OK) {
        memcpy(copy.data, tn_safetensors_find(file, tensor)->data, copy.size);
        status = check_state(g, (const struct tn_state *)(const void *)copy.data, path, err);
    }
    if (status == TARN_OK)
        memcpy(state, copy.data, copy.size);
    tn_bytes_free(&copy);
    return status;
}

tarn_status tarn_state_load(const tarn_generator *g, void *state, const char *path,
                            tarn_error *err)
{
    struct tn_safetensors file;
    tarn_status status;

    if (!g || !state || !path)
        return tn_fail(err, TARN_EINVAL, "generator, state, path: one is NULL; expected all");
    if ((status = tn_safetensors_read(&file, path, err)) != TARN_OK)
        return status;
    status = load(g, state, &file, tn_path_shown(path), err);
    tn_safetensors_free(&file);
    return status;
}
