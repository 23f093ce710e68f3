/* SPDX-License-Identifier: MIT */
/* cmd_export.c - tarn export: a model in a file for other programs. */
#include <stdio.h>

#include "args.h"
#include "command.h"
#include "formats.h"
#include "model_open.h"

enum { POSITIONS_MOST = 1 << 24 };

#define AT(field) offsetof(struct options, field)

struct options {
    const char *model, *to, *precision;
    size_t positions;
    bool best;
};

static const struct args_option rows[] = {
    {"MODEL", NULL, ARGS_OPERAND, NULL, AT(model), 1, 0,
     "a model, a checkpoint, or a folder of training"},
    {"OUT", NULL, ARGS_OPERAND, NULL, AT(to), 1, 0,
     "the file to write: .npz for NumPy, otherwise safetensors"},
    {"precision", "f32|bf16", ARGS_TEXT, "f32", AT(precision), 0, 0,
     "of matrices; bf16 takes half the bytes, and NumPy has none"},
    {"positions", "N", ARGS_COUNT, "0", AT(positions), 0, POSITIONS_MOST,
     "of the authors' sinusoid, pos_embedding.pe, as long as sequences were for the module "
     "that is to "
     "load it; 0: as an image of the model has bytes, or 5000"},
    {"best", NULL, ARGS_FLAG, NULL, AT(best), 0, 0,
     "of a folder: the model of its best validation instead of the last"},
    {0},
};

static const struct args_command command = {
    .name = "tarn export",
    .help =
        "Writes the parameters of a model under the names of the paper's authors, "
        "without what training keeps beside them. The configuration goes along: as metadata, "
        "or as tarn.json among NumPy's arrays.",
    .options = rows,
};

static size_t positions_of(const struct options *o, const tarn_model *model)
{
    tarn_image_size size;

    if (o->positions == 0 && tarn_task_image(&size, tarn_model_config(model)->task))
        return size.height * size.width * size.channels;
    return o->positions;
}

int cmd_export(int argc, char **argv)
{
    struct options o = {0};
    tarn_error err;
    int code = args_read(&command, &o, argc, argv);

    if (code != ARGS_GO_ON)
        return code;
    if (format_is_foreign(command.name, "OUT", o.to, FORMAT_EXPORT))
        return EXIT_USAGE;
    tarn_model *const model = model_open(command.name, o.model, o.best);

    if (!model)
        return EXIT_FAILED;
    if (tarn_model_export(model, o.to, o.precision, positions_of(&o, model), &err) == TARN_OK) {
        printf("%s: %zu parameters\n", o.to, tarn_model_parameters(model));
        code = EXIT_DONE;
    } else {
        code = model_refused(&command, &err);
    }
    tarn_model_free(model);
    return code;
}
