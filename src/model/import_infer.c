/* SPDX-License-Identifier: MIT */
#include "model/import_infer.h"

#include <stdio.h>
#include <string.h>

const char tn_import_body[] = "transformer.";

static const char first_tensor[] = "layers.0.attention.query_projection.weight";

void tn_import_tell(const struct tn_importing *m, tarn_import_event event, const char *name,
                    const char *value)
{
    if (m->desc->tell)
        m->desc->tell(m->desc->context, event, name, value);
}

static void tell_count(const struct tn_importing *m, const char *field, size_t count)
{
    char text[32];

    snprintf(text, sizeof text, "%zu", count);
    tn_import_tell(m, TARN_IMPORT_INFERRED, field, text);
}

tarn_status tn_import_refuse(const struct tn_importing *m, const char *name, const char *what)
{
    return tn_fail_path(m->err, TARN_EFORMAT, m->path, "%.80s %s", name, what);
}

/* ---- Where the model is ------------------------------------------------- */

/* Bytes of what stands before `end`, which begins a part of the name; SIZE_MAX: it does not end
 * so. */
static size_t length_before(const char *name, const char *end)
{
    const size_t length = strlen(name), tail = strlen(end);

    if (length < tail || strcmp(name + length - tail, end) != 0 ||
        (length > tail && name[length - tail - 1] != '.'))
        return SIZE_MAX;
    return length - tail;
}

/* Keys under which programs keep the weights, rather than a copy of them: the sooner the
 * better. */
static size_t rank_of(const char *name)
{
    static const char *const keys[] = {tn_import_body, "model_state.", "model_state_dict.",
                                       "state_dict.", "model."};
    const size_t count = sizeof keys / sizeof keys[0];

    for (size_t i = 0; i < count; i++)
        if (strncmp(name, keys[i], strlen(keys[i])) == 0)
            return i;
    return count;
}

const struct tn_safetensor *tn_import_find(const struct tn_importing *m, const char *before,
                                           const char *name)
{
    char full[2 * TN_IMPORT_NAME];

    snprintf(full, sizeof full, "%s%s", before, name);
    return tn_safetensors_find(&m->file, full);
}

/* Without the last key: "a.b." is "a." */
static void cut_key(char *keys)
{
    size_t length = strlen(keys);

    if (length > 0)
        keys[--length] = '\0';
    while (length > 0 && keys[length - 1] != '.')
        keys[--length] = '\0';
}

/* `knows`: the file has a configuration; if nothing in it looks like a transformer, as in a
 * model of LSTM layers, its names are tarn's own. */
static tarn_status find_body(struct tn_importing *m, bool knows)
{
    const char *best = NULL;
    size_t before = 0;

    for (size_t i = 0; i < m->file.count; i++) {
        const char *const name = m->file.tensors[i].name;
        const size_t length = length_before(name, first_tensor);

        if (length != SIZE_MAX && (!best || rank_of(name) < rank_of(best))) {
            best = name;
            before = length;
        }
    }
    if (!best && knows) {
        snprintf(m->body, sizeof m->body, "%s", tn_import_body);
        return TARN_OK;
    }
    if (!best)
        return tn_fail_path(
            m->err, TARN_EFORMAT, m->path,
            "not a supported model: none of its %zu tensors has a name ending in '%s'",
            m->file.count, first_tensor);
    snprintf(m->body, sizeof m->body, "%.*s", (int)before, best);
    memcpy(m->outer, m->body, sizeof m->outer);
    if (!tn_import_find(m, m->outer, "value_embedding.weight"))
        cut_key(m->outer);
    return TARN_OK;
}

/* ---- What it is --------------------------------------------------------- */

static tarn_status read_matrix(size_t *rows, size_t *columns, const struct tn_importing *m,
                               const char *before, const char *name)
{
    const struct tn_safetensor *const found = tn_import_find(m, before, name);

    if (!found) {
        tn_import_tell(m, TARN_IMPORT_MISSING, name, "");
        return tn_fail_path(m->err, TARN_EFORMAT, m->path, "has no tensor '%.60s%s'", before,
                            name);
    }
    if (found->rank != 2 || found->shape[0] == 0 || found->shape[1] == 0)
        return tn_import_refuse(m, found->name, "is not a matrix");
    *rows = found->shape[0];
    *columns = found->shape[1];
    return TARN_OK;
}

/* An encoder alone has nothing that reads symbols and nothing that predicts them. */
static tarn_status check_whole(const struct tn_importing *m)
{
    static const char *const needed[] = {"value_embedding.weight", "predictor.weight",
                                         "predictor.bias"};
    size_t missing = 0;

    for (size_t i = 0; i < 3; i++)
        if (!tn_import_find(m, m->outer, needed[i])) {
            tn_import_tell(m, TARN_IMPORT_MISSING, needed[i], "");
            missing++;
        }
    if (missing == 3)
        return tn_fail_path(m->err, TARN_EFORMAT, m->path,
                            "is only an encoder: value_embedding.weight, predictor.weight and "
                            "predictor.bias are missing");
    return TARN_OK;
}

static tarn_status infer_body(struct tn_importing *m)
{
    tarn_config *const c = &m->config;
    char name[64];
    size_t columns = 0;
    tarn_status status = read_matrix(&c->width, &columns, m, m->body, first_tensor);

    if (status != TARN_OK)
        return status;
    if (c->width != columns)
        return tn_import_refuse(
            m, first_tensor, "is not square; tarn supports only queries as wide as the model");
    if ((status = read_matrix(&c->feed, &columns, m, m->body, "layers.0.linear1.weight")) !=
        TARN_OK)
        return status;
    do {
        c->layers++;
        snprintf(name, sizeof name, "layers.%zu.attention.query_projection.weight", c->layers);
    } while (tn_import_find(m, m->body, name));
    tell_count(m, "layers", c->layers);
    tell_count(m, "width", c->width);
    tell_count(m, "feed", c->feed);
    return TARN_OK;
}

static tarn_status infer_position(struct tn_importing *m)
{
    tarn_config *const c = &m->config;
    const struct tn_safetensor *const learned =
        tn_import_find(m, m->outer, "pos_embedding.weight");
    size_t width = 0;
    const tarn_status status =
        read_matrix(&c->symbols, &width, m, m->outer, "value_embedding.weight");
    const char *kind = "none";

    if (status != TARN_OK)
        return status;
    if (2 * width == c->width)
        kind = "concat";
    else if (width != c->width)
        return tn_import_refuse(m, "value_embedding.weight",
                                "has neither the width of the model nor half of it");
    else if (learned)
        kind = "learned";
    else if (tn_import_find(m, m->outer, tn_sinusoid_name))
        kind = "add";
    snprintf(c->position, sizeof c->position, "%s", kind);
    if (width == c->width && learned && learned->rank == 2)
        c->positions = learned->shape[0];
    tell_count(m, "symbols", c->symbols);
    tn_import_tell(m, TARN_IMPORT_INFERRED, "position", c->position);
    return TARN_OK;
}

/* As many outputs as symbols are their logits; otherwise three for each logistic of a mixture.
 * */
static tarn_status infer_head(struct tn_importing *m)
{
    tarn_config *const c = &m->config;
    size_t outputs = 0, columns = 0;
    const tarn_status status = read_matrix(&outputs, &columns, m, m->outer, "predictor.weight");

    if (status != TARN_OK)
        return status;
    if (outputs == c->symbols)
        snprintf(c->head, sizeof c->head, "categorical");
    else if (outputs % 3 == 0)
        snprintf(c->head, sizeof c->head, "logistic:mixtures=%zu", outputs / 3);
    else if (!m->desc->head)
        return tn_fail_path(m->err, TARN_EFORMAT, m->path,
                            "predictor.weight has %zu rows; expected %zu, one per symbol, or 3 "
                            "per logistic of a mixture",
                            outputs, c->symbols);
    if (!m->desc->head)
        tn_import_tell(m, TARN_IMPORT_INFERRED, "head", c->head);
    return TARN_OK;
}

/* ---- What no shape tells ------------------------------------------------ */

static tarn_status set_field(struct tn_importing *m, const char *field, const char *given,
                             const char *usual)
{
    if (!given && usual)
        tn_import_tell(m, TARN_IMPORT_ASSUMED, field, usual);
    return given || usual ? tarn_config_set(&m->config, field, given ? given : usual, m->err)
                          : TARN_OK;
}

/* `knows`: the file has a configuration, and nothing has to be assumed. */
static tarn_status set_fields(struct tn_importing *m, bool knows)
{
    const tarn_import_desc *const d = m->desc;
    char heads[32];
    const struct {
        const char *field, *given, *usual;
    } fields[] = {
        {"heads", d->heads ? heads : NULL, "8"},
        {"attention", d->attention, "linear"},
        {"norm", d->norm, "post"},
        {"activation", d->activation, "relu"},
        {"feature_map", d->feature_map, NULL},
        {"head", d->head, NULL},
        {"position", d->position, NULL},
        {"task", d->task, NULL},
    };
    tarn_status status = TARN_OK;

    snprintf(heads, sizeof heads, "%zu", d->heads);
    for (size_t i = 0; i < sizeof fields / sizeof fields[0] && status == TARN_OK; i++)
        status = set_field(m, fields[i].field, fields[i].given, knows ? NULL : fields[i].usual);
    return status;
}

tarn_status tn_import_configure(struct tn_importing *m)
{
    const bool knows = tn_safetensors_metadata(&m->file, tn_model_key) != NULL;
    tarn_status status;

    m->config = (tarn_config){.body = "transformer", .causal = true, .stack = 1, .seed = 1};
    if ((status = find_body(m, knows)) != TARN_OK)
        return status;
    if (knows)
        status = tn_config_from_file(&m->config, &m->file, tn_path_shown(m->path), m->err);
    else if ((status = check_whole(m)) == TARN_OK && (status = infer_body(m)) == TARN_OK &&
             (status = infer_position(m)) == TARN_OK)
        status = infer_head(m);
    if (status != TARN_OK)
        return status;
    m->keeps_note = !m->desc->task || strcmp(m->desc->task, m->config.task) == 0;
    return set_fields(m, knows);
}
