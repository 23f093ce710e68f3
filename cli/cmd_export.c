/* SPDX-License-Identifier: MIT */
/* cmd_export.c - tarn export: writes a model for other programs. */
#include <stdio.h>

#include "files.h"

enum { POSITIONS_MOST = 1 << 24 };

struct options {
    const char *model, *to, *precision;
    size_t positions;
    bool best;
};

static const struct args_option rows[] = {
    {"MODEL", NULL, ARGS_OPERAND, NULL, AT(model), 1, 0, MODEL_HELP},
    {"OUT", NULL, ARGS_OPERAND, NULL, AT(to), 1, 0,
     "file to write: .npz for NumPy, otherwise safetensors"},
    {"precision", "f32|bf16|int8", ARGS_TEXT, "f32", AT(precision), 0, 0,
     "precision of matrices; bf16 halves the file size, int8 makes it about a quarter; .npz "
     "files are always f32"},
    {"positions", "N", ARGS_COUNT, "0", AT(positions), 0, POSITIONS_MOST,
     "length of the position encoding table pos_embedding.pe, as in the PyTorch module that "
     "will load the file; 0: the bytes of an image for image models, otherwise 5000"},
    {"best", NULL, ARGS_FLAG, NULL, AT(best), 0, 0, BEST_HELP},
    {0},
};

static size_t positions_of(const struct options *o, const tarn_model *model)
{
    tarn_image_size size;

    if (o->positions == 0 && tarn_task_image(&size, tarn_model_config(model)->task))
        return size.height * size.width * size.channels;
    return o->positions;
}

static void run(void *values)
{
    const struct options *const o = values;

    check_format("OUT", o->to, FORMAT_EXPORT);
    tarn_model *const model = model_open(o->model, o->best);

    must(tarn_model_export(model, o->to, o->precision, positions_of(o, model), &failure));
    printf("%s: %zu parameters\n", o->to, tarn_model_parameters(model));
    tarn_model_free(model);
}

const struct command cmd_export = {
    .name = "tarn export",
    .summary = "export a model to safetensors or NumPy",
    .help = "Export the parameters of a model, without training state, under the names of the "
            "fast-transformers library. The configuration is included: as metadata, or as the "
            "array tarn.json in a NumPy file.",
    .options = rows,
    .examples = "tarn export runs/book book.safetensors\n"
                "tarn export runs/book --best book.npz\n",
    .values = sizeof(struct options),
    .run = run,
};
