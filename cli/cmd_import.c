/* SPDX-License-Identifier: MIT */
/* cmd_import.c - tarn import: a model from the file of another program, and what was read. */
#include <stdio.h>
#include <string.h>

#include "files.h"

enum { SHOWN = 12 }; /* lines per list without --all */

struct options {
    const char *from, *to;
    tarn_import_desc desc;
    bool all;
};

static const struct args_option rows[] = {
    {"FILE", NULL, ARGS_OPERAND, NULL, AT(from), 1, 0,
     "file to read: PyTorch (.pth, .pt), safetensors or NumPy (.npz)"},
    {"OUT", NULL, ARGS_OPERAND, NULL, AT(to), 1, 0, "model file to write (.safetensors)"},
    {"heads", "H", ARGS_COUNT, NULL, AT(desc.heads), 1, 1 << 20,
     "number of attention heads, which shapes do not show [8]"},
    {"attention", "SPEC", ARGS_TEXT, NULL, AT(desc.attention), 0, 0,
     "kind of attention, which shapes do not show [linear]"},
    {"feature-map", "SPEC", ARGS_TEXT, NULL, AT(desc.feature_map), 0, 0,
     "feature map of the attention [the default of its kind]"},
    {"position", "SPEC", ARGS_TEXT, NULL, AT(desc.position), 0, 0,
     "position encoding [inferred from the shapes]"},
    {"head", "SPEC", ARGS_TEXT, NULL, AT(desc.head), 0, 0,
     "output head [inferred from the number of outputs]"},
    {"norm", "post|pre", ARGS_TEXT, NULL, AT(desc.norm), 0, 0,
     "layer normalization after or before each sublayer [post]"},
    {"activation", "relu|gelu", ARGS_TEXT, NULL, AT(desc.activation), 0, 0,
     "activation of the feed-forward layers [relu]"},
    {"task", "SPEC", ARGS_TEXT, NULL, AT(desc.task), 0, 0,
     "task of the model, such as image:height=28,width=28,channels=1; tarn generate and tarn "
     "eval need it"},
    {"all", NULL, ARGS_FLAG, NULL, AT(all), 0, 0, "list every tensor"},
    {0},
};

static const struct args_table tables[] = {
    {"attention", tarn_attention_kind, "attention"},
    {"feature maps", tarn_feature_map, "feature-map"},
    {"position encodings", tarn_position_kind, "position"},
    {"output heads", tarn_head_kind, "head"},
    {"tasks", tarn_task_kind, "task"},
    {0},
};

/* ---- Report ------------------------------------------------------------- */

struct listing {
    const struct options *options;
    size_t count[TARN_IMPORT_ASSUMED + 1];
};

static const char *const words[] = {
    [TARN_IMPORT_READ] = "read",       [TARN_IMPORT_SKIPPED] = "skipped",
    [TARN_IMPORT_MISSING] = "missing", [TARN_IMPORT_INFERRED] = "inferred",
    [TARN_IMPORT_ASSUMED] = "assumed",
};

/* Names come from the file and may contain anything. */
static void tell(void *context, tarn_import_event event, const char *name, const char *value)
{
    struct listing *const listing = context;
    const bool of_field = event == TARN_IMPORT_INFERRED || event == TARN_IMPORT_ASSUMED;
    const size_t shown = event == TARN_IMPORT_READ ? 0 : SHOWN;
    char safe[300], text[300];

    if (++listing->count[event] > shown && !listing->options->all && !of_field)
        return;
    tarn_printable(safe, sizeof safe, name);
    tarn_printable(text, sizeof text, value);
    if (of_field)
        fprintf(stderr, "%-9s %s: %s%s\n", words[event], safe, text,
                event == TARN_IMPORT_ASSUMED ? " (not shown by the shapes)" : "");
    else
        fprintf(stderr, "%-9s %s%s%s\n", words[event], safe,
                event == TARN_IMPORT_READ ? " -> " : (*text ? ": " : ""), text);
}

static void print_counts(const struct listing *listing)
{
    const tarn_import_event events[] = {TARN_IMPORT_READ, TARN_IMPORT_SKIPPED,
                                        TARN_IMPORT_MISSING};
    const char *between = "tensors: ";

    for (size_t i = 0; i < sizeof events / sizeof events[0]; i++) {
        fprintf(stderr, "%s%zu %s", between, listing->count[events[i]], words[events[i]]);
        between = ", ";
    }
    fprintf(stderr, "\n");
}

/* ---- The command -------------------------------------------------------- */

/* A task must give all sizes of an image, or none. */
static bool sizes_fit(const char *task)
{
    tarn_image_size size;
    const bool is_image = tarn_task_image(&size, task);
    const size_t all = size.height * size.width * size.channels;

    return !is_image || all > 0 || size.height + size.width + size.channels == 0;
}

static bool is_sequence(const char *head)
{
    return strcmp(head, "ctc") == 0;
}

/* Whether the model fits its task, which is given or in the file. */
static void check_task(const tarn_model *model)
{
    const tarn_config *const has = tarn_model_config(model);
    tarn_config usual; /* of the task */

    if (!*has->task)
        return;
    must(tarn_config_start(&usual, has->task, NULL, &failure));
    if (usual.symbols != has->symbols)
        refuse("--task: '%s' has %zu symbols, but the model has %zu", has->task, usual.symbols,
               has->symbols);
    if (usual.frames != has->frames)
        refuse("--task: '%s' has %zu features per frame, but the model has %zu", has->task,
               usual.frames, has->frames);
    if (is_sequence(usual.head) != is_sequence(has->head))
        refuse("--head is '%s'; task '%s' needs a head like '%s'", has->head, has->task,
               usual.head);
    if (!sizes_fit(has->task))
        refuse("--task: '%s' must give all of height, width and channels, or none", has->task);
}

static void run(void *values)
{
    const struct options *const o = values;
    struct listing listing = {.options = o};
    tarn_import_desc desc = o->desc;
    tarn_model *model;

    desc.tell = tell;
    desc.context = &listing;
    check_format("OUT", o->to, FORMAT_MODEL);
    const tarn_status status = tarn_model_import(&model, o->from, &desc, &failure);

    if (listing.count[TARN_IMPORT_READ] + listing.count[TARN_IMPORT_MISSING] > 0)
        print_counts(&listing);
    must(status);
    check_task(model);
    must(tarn_model_save(model, o->to, &failure));
    printf("%s: %zu parameters\n", o->to, tarn_model_parameters(model));
    tarn_model_free(model);
}

const struct command cmd_import = {
    .name = "tarn import",
    .summary = "import a model from PyTorch, NumPy or safetensors",
    .help =
        "Import a model from PyTorch, safetensors or NumPy. Parameters must have the names of "
        "the fast-transformers library. The architecture is inferred from their shapes; what "
        "shapes do not show is assumed and reported. Pickles are parsed safely: no code is "
        "ever executed.",
    .options = rows,
    .tables = tables,
    .examples = "tarn import checkpoint.pth model.safetensors --heads 8\n"
                "tarn import mnist.pth mnist.safetensors \\\n"
                "    --task image:height=28,width=28,channels=1\n",
    .values = sizeof(struct options),
    .run = run,
};
