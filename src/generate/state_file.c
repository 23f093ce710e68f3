/* SPDX-License-Identifier: MIT */
/* state_file.c - a state in a safetensors file, or in the bytes of one: as many of its bytes as
 * mean something, the symbols that come next, and in the metadata whose they are and how far
 * they got.
 *
 * What is written does not depend on how long the generator's sequences may become, so that
 * another one can go on further. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "file/fields_json.h"
#include "file/safetensors.h"
#include "generate/generator.h"

static const char key[] = "tarn_state", state_tensor[] = "state", next_tensor[] = "next";
static const char packed_name[] = "bytes"; /* of what is no file, in messages */

/* Everything that must be the same for the bytes to mean the same, and the position. */
struct origin {
    char model[TARN_NAME_SIZE]; /* fingerprint, which JSON's numbers do not hold */
    char method[TARN_NAME_SIZE];
    size_t batch;
    uint64_t position;
};

static const struct tn_field fields[] = {
    TN_FIELD(struct origin, TEXT, model, 0, 0, ""),
    TN_FIELD(struct origin, TEXT, method, 0, 0, ""),
    TN_FIELD(struct origin, COUNT, batch, 1, TN_FIELD_MOST, ""),
    TN_FIELD(struct origin, SEED, position, 0, TN_FIELD_MOST, ""),
    {.about = {.name = NULL}},
};

static struct origin origin_of(const tarn_generator *g, uint64_t position)
{
    struct origin origin = {.batch = g->B, .position = position};

    snprintf(origin.model, sizeof origin.model, "%016" PRIx64,
             tarn_model_fingerprint(g->model));
    snprintf(origin.method, sizeof origin.method, "%s", g->method->about.name);
    return origin;
}

/* ---- Saving ------------------------------------------------------------- */

/* Where a state goes: to a file, or to memory. */
struct target {
    const char *path; /* NULL: to memory */
    void *bytes;      /* NULL: only measured */
    size_t *size;
};

static tarn_status write_to(const struct target *target, const tarn_generator *g,
                            const struct tn_bytes *packed, const int32_t *next,
                            const char *origin, tarn_error *err)
{
    const struct tn_safetensor tensors[] = {
        {.name = state_tensor,
         .dtype = TN_DTYPE_U8,
         .rank = 1,
         .shape = {packed->size},
         .data = packed->data},
        {.name = next_tensor, .dtype = TN_DTYPE_I32, .rank = 1, .shape = {g->B}, .data = next},
    };
    const struct tn_safetensors_entry entry = {key, origin};

    if (target->path)
        return tn_safetensors_write(target->path, tensors, next ? 2 : 1, &entry, 1, err);
    return tn_safetensors_pack(target->bytes, target->size, tensors, next ? 2 : 1, &entry, 1,
                               err);
}

static tarn_status save(const tarn_generator *g, const struct target *target, const void *state,
                        const int32_t *next, tarn_error *err)
{
    struct tn_bytes packed = {0};
    tarn_status status;

    if (tarn_state_position(state) > tn_generator_end(g))
        return tn_fail(err, TARN_EINVAL, "state is at position %llu; it must be at most %zu",
                       (unsigned long long)tarn_state_position(state), tn_generator_end(g));
    if (next && (status = tn_symbols_check(g->model, next, g->B, "next", err)) != TARN_OK)
        return status;
    const struct origin origin = origin_of(g, tarn_state_position(state));
    char *json;

    if ((status = tn_fields_write(&json, fields, &origin, "the state's origin", err)) !=
        TARN_OK)
        return status;
    status = tn_bytes_take(&packed, g->method->packed(g, (size_t)origin.position), err);
    if (status == TARN_OK) {
        g->method->pack(g, packed.data, state);
        status = write_to(target, g, &packed, next, json, err);
    }
    tn_bytes_free(&packed);
    free(json);
    return status;
}

tarn_status tarn_state_save(const tarn_generator *g, const void *state, const int32_t *next,
                            const char *path, tarn_error *err)
{
    if (!g || !state || !path)
        return tn_fail(err, TARN_EINVAL, "generator, state and path must not be NULL");
    return save(g, &(struct target){.path = path}, state, next, err);
}

tarn_status tarn_state_pack(const tarn_generator *g, void *bytes, size_t *size,
                            const void *state, const int32_t *next, tarn_error *err)
{
    if (!g || !size || !state)
        return tn_fail(err, TARN_EINVAL, "generator, size and state must not be NULL");
    return save(g, &(struct target){.bytes = bytes, .size = size}, state, next, err);
}

/* ---- Loading ------------------------------------------------------------ */

static tarn_status read_origin(struct origin *origin, const struct tn_safetensors *file,
                               const char *path, tarn_error *err)
{
    const char *const json = tn_safetensors_metadata(file, key);

    if (!json || !tn_safetensors_find(file, state_tensor))
        return tn_fail(err, TARN_EFORMAT, "%s: is not a saved generator state", path);
    *origin = (struct origin){0};
    return tn_fields_read(fields, origin, json, path, "state", err);
}

static tarn_status refuse_origin(const char *what, const char *found, const char *expected,
                                 const char *path, tarn_error *err)
{
    return tn_fail(err, TARN_EFORMAT, "%s: is a state of %s '%.40s'; expected '%.40s'", path,
                   what, found, expected);
}

/* The file says it is a state of this generator. */
static tarn_status check_origin(const tarn_generator *g, const struct origin *found,
                                const char *path, tarn_error *err)
{
    const struct origin own = origin_of(g, 0);

    if (strcmp(found->model, own.model) != 0)
        return refuse_origin("the model", found->model, own.model, path, err);
    if (strcmp(found->method, own.method) != 0)
        return refuse_origin("the method", found->method, own.method, path, err);
    if (found->batch != own.batch)
        return tn_fail(err, TARN_EFORMAT, "%s: is a state of %zu streams; expected %zu", path,
                       found->batch, own.batch);
    if (found->position > tn_generator_end(g))
        return tn_fail(err, TARN_EFORMAT,
                       "%s: is a state at position %llu; expected at most %zu", path,
                       (unsigned long long)found->position, tn_generator_end(g));
    return TARN_OK;
}

static tarn_status check_tensor(const struct tn_safetensor *tensor, const char *name,
                                enum tn_dtype dtype, size_t bytes, const char *path,
                                tarn_error *err)
{
    if (!tensor)
        return tn_fail(err, TARN_EFORMAT, "%s: has no tensor '%s'", path, name);
    if (tensor->dtype != dtype || tensor->bytes != bytes)
        return tn_fail(
            err, TARN_EFORMAT, "%s: '%s' has %zu bytes of %s; expected %zu bytes of %s", path,
            name, tensor->bytes, tn_dtype_name(tensor->dtype), bytes, tn_dtype_name(dtype));
    return TARN_OK;
}

static tarn_status load_next(const tarn_generator *g, int32_t *next,
                             const struct tn_safetensors *file, const char *path,
                             tarn_error *err)
{
    const struct tn_safetensor *const tensor = tn_safetensors_find(file, next_tensor);
    const tarn_status status =
        check_tensor(tensor, next_tensor, TN_DTYPE_I32, g->B * sizeof(int32_t), path, err);

    if (status != TARN_OK)
        return status;
    memcpy(next, tensor->data, tensor->bytes);
    return tn_symbols_check(g->model, next, g->B, path, err);
}

static tarn_status load_state(const tarn_generator *g, struct tn_state *state,
                              uint64_t position, const struct tn_safetensors *file,
                              const char *path, tarn_error *err)
{
    const struct tn_safetensor *const tensor = tn_safetensors_find(file, state_tensor);
    const tarn_status status = check_tensor(tensor, state_tensor, TN_DTYPE_U8,
                                            g->method->packed(g, (size_t)position), path, err);

    if (status != TARN_OK)
        return status;
    memset(state, 0, tarn_generator_state_size(g));
    state->position = position;
    g->method->unpack(g, state, tensor->data);
    return g->method->check ? g->method->check(g, state, path, err) : TARN_OK;
}

/* All is read before anything is taken over. */
static tarn_status load(const tarn_generator *g, void *state, int32_t *next,
                        const struct tn_safetensors *file, const char *path, tarn_error *err)
{
    const size_t bytes = tarn_generator_state_size(g), more = g->B * sizeof *next;
    struct tn_bytes copy = {0};
    struct origin origin;
    tarn_status status;

    if ((status = read_origin(&origin, file, path, err)) != TARN_OK ||
        (status = check_origin(g, &origin, path, err)) != TARN_OK ||
        (status = tn_bytes_take(&copy, bytes + more, err)) != TARN_OK)
        return status;
    int32_t *const symbols = (int32_t *)(void *)(copy.data + bytes);

    status =
        load_state(g, (struct tn_state *)(void *)copy.data, origin.position, file, path, err);
    if (status == TARN_OK && next)
        status = load_next(g, symbols, file, path, err);
    if (status == TARN_OK) {
        memcpy(state, copy.data, bytes);
        if (next)
            memcpy(next, symbols, more);
    }
    tn_bytes_free(&copy);
    return status;
}

tarn_status tarn_state_load(const tarn_generator *g, void *state, int32_t *next,
                            const char *path, tarn_error *err)
{
    struct tn_safetensors file;
    tarn_status status;

    if (!g || !state || !path)
        return tn_fail(err, TARN_EINVAL, "generator, state and path must not be NULL");
    if ((status = tn_safetensors_read(&file, path, err)) != TARN_OK)
        return status;
    status = load(g, state, next, &file, tn_path_shown(path), err);
    tn_safetensors_free(&file);
    return status;
}

/* Bytes of the caller's as if they had been read. */
static tarn_status parse(struct tn_safetensors *file, const void *bytes, size_t size,
                         tarn_error *err)
{
    struct tn_bytes copy;
    tarn_status status = tn_bytes_take(&copy, size, err);

    if (status != TARN_OK)
        return status;
    memcpy(copy.data, bytes, size);
    status = tn_safetensors_parse(file, &copy, packed_name, err);
    tn_bytes_free(&copy);
    return status;
}

tarn_status tarn_state_unpack(const tarn_generator *g, void *state, int32_t *next,
                              const void *bytes, size_t size, tarn_error *err)
{
    struct tn_safetensors file;
    tarn_status status;

    if (!g || !state || !bytes)
        return tn_fail(err, TARN_EINVAL, "generator, state and bytes must not be NULL");
    if ((status = parse(&file, bytes, size, err)) != TARN_OK)
        return status;
    status = load(g, state, next, &file, packed_name, err);
    tn_safetensors_free(&file);
    return status;
}

/* ---- Questions ---------------------------------------------------------- */

static tarn_status read_about(tarn_state_about *about, const struct tn_safetensors *file,
                              const char *path, tarn_error *err)
{
    struct origin origin;
    uint64_t fingerprint;
    char again[TARN_NAME_SIZE];
    const tarn_status status = read_origin(&origin, file, path, err);

    if (status != TARN_OK)
        return status;
    fingerprint = strtoull(origin.model, NULL, 16);
    snprintf(again, sizeof again, "%016" PRIx64, fingerprint);
    if (strcmp(again, origin.model) != 0)
        return tn_fail(err, TARN_EFORMAT,
                       "%s: model is '%.40s'; expected 16 hexadecimal digits", path,
                       origin.model);
    *about = (tarn_state_about){
        .model = fingerprint,
        .batch = origin.batch,
        .position = origin.position,
        .has_next = tn_safetensors_find(file, next_tensor) != NULL,
    };
    memcpy(about->method, origin.method, sizeof about->method);
    return TARN_OK;
}

tarn_status tarn_state_inspect(tarn_state_about *about, const char *path, tarn_error *err)
{
    struct tn_safetensors file;
    tarn_status status;

    if (!about || !path)
        return tn_fail(err, TARN_EINVAL, "about and path must not be NULL");
    if ((status = tn_safetensors_read(&file, path, err)) != TARN_OK)
        return status;
    status = read_about(about, &file, tn_path_shown(path), err);
    tn_safetensors_free(&file);
    return status;
}

tarn_status tarn_state_inspect_packed(tarn_state_about *about, const void *bytes, size_t size,
                                      tarn_error *err)
{
    struct tn_safetensors file;
    tarn_status status;

    if (!about || !bytes)
        return tn_fail(err, TARN_EINVAL, "about and bytes must not be NULL");
    if ((status = parse(&file, bytes, size, err)) != TARN_OK)
        return status;
    status = read_about(about, &file, packed_name, err);
    tn_safetensors_free(&file);
    return status;
}
