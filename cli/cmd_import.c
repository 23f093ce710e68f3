/* SPDX-License-Identifier: MIT */
/* cmd_import.c - tarn import: a model of another program's file, and what became of it. */
#include <stdio.h>
#include <string.h>

#include "args.h"
#include "command.h"
#include "formats.h"
#include "model_open.h"
#include "words.h"

#define AT(field) offsetof(struct options, field)

enum { SHOWN = 12 }; /* lines of a list, unless all are asked for */

struct options {
    const char *from, *to;
    size_t heads;
    const char *attention, *feature_map, *position, *head, *norm, *activation, *task;
    bool all;
};

static const struct args_option rows[] = {
    {"FILE", NULL, ARGS_OPERAND, NULL, AT(from), 1, 0,
     "a file of torch.save() (.pth, .pt), of safetensors or of NumPy (.npz)"},
    {"OUT", NULL, ARGS_OPERAND, NULL, AT(to), 1, 0, "the model to write, .safetensors"},
    {"heads", "H", ARGS_COUNT, NULL, AT(heads), 1, 1 << 20,
     "heads of attention, which no shape tells; 8 if not given"},
    {"attention", "SPEC", ARGS_TEXT, NULL, AT(attention), 0, 0,
     "kind of attention, likewise; linear if not given"},
    {"feature-map", "SPEC", ARGS_TEXT, NULL, AT(feature_map), 0, 0,
     "for the attentions that have one"},
    {"position", "SPEC", ARGS_TEXT, NULL, AT(position), 0, 0,
     "how positions enter, if it is not what the shapes say"},
    {"head", "SPEC", ARGS_TEXT, NULL, AT(head), 0, 0,
     "what the outputs are, if it is not what their number says"},
    {"norm", "post|pre", ARGS_TEXT, NULL, AT(norm), 0, 0, "post if not given"},
    {"activation", "relu|gelu", ARGS_TEXT, NULL, AT(activation), 0, 0, "relu if not given"},
    {"task", "SPEC", ARGS_TEXT, NULL, AT(task), 0, 0,
     "what the symbols mean, as image:height=28,width=28,channels=1, for tarn generate and "
     "tarn "
     "eval"},
    {"all", NULL, ARGS_FLAG, NULL, AT(all), 0, 0, "name every tensor"},
    {0},
};

static const struct args_table tables[] = {
    {"kinds of attention", tarn_attention_kind, "attention"},
    {"feature maps", tarn_feature_map, "feature-map"},
    {"positions", tarn_position_kind, "position"},
    {"heads", tarn_head_kind, "head"},
    {"tasks", tarn_task, "task"},
    {0},
};

static const struct args_command command = {
    .name = "tarn import",
    .help =
        "Makes a model of the parameters in a file, if they have the names of the paper's "
        "authors. What shapes tell is inferred, and what they do not tell is assumed and said "
        "so. The pickle of a .pth file is read, and never run.",
    .options = rows,
    .tables = tables,
};

/* ---- What is told ------------------------------------------------------- */

struct listing {
    const struct options *options;
    size_t count[TARN_IMPORT_ASSUMED + 1];
};

static const char *const words[] = {
    [TARN_IMPORT_READ] = "read",       [TARN_IMPORT_SKIPPED] = "skipped",
    [TARN_IMPORT_MISSING] = "missing", [TARN_IMPORT_INFERRED] = "inferred",
    [TARN_IMPORT_ASSUMED] = "assumed",
};

/* Names come from the file. */
static void tell(void *context, tarn_import_event event, const char *name, const char *value)
{
    struct listing *const listing = context;
    const bool of_field = event == TARN_IMPORT_INFERRED || event == TARN_IMPORT_ASSUMED;
    const size_t shown = event == TARN_IMPORT_READ ? 0 : SHOWN;
    char safe[300], text[300];

    if (++listing->count[event] > shown && !listing->options->all && !of_field)
        return;
    words_harmless(safe, sizeof safe, name);
    words_harmless(text, sizeof text, value);
    if (of_field)
        fprintf(stderr, "%-9s %s: %s%s\n", words[event], safe, text,
                event == TARN_IMPORT_ASSUMED ? ", as no shape tells" : "");
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

static tarn_import_desc describe(const struct options *o, struct listing *listing)
{
    return (tarn_import_desc){
        .heads = o->heads,
        .attention = o->attention,
        .feature_map = o->feature_map,
        .position = o->position,
        .head = o->head,
        .norm = o->norm,
        .activation = o->activation,
        .task = o->task,
        .tell = tell,
        .context = listing,
    };
}

/* All sizes of an image, or none: whoever draws needs all. */
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

/* The library's models do not know tasks: here both are known, the task as given or as the file
 * has it. */
static bool task_fits(const tarn_model *model)
{
    const tarn_config *const has = tarn_model_config(model);
    tarn_config usual; /* of the task */
    tarn_error err;

    if (!*has->task)
        return true;
    if (tarn_config_start(&usual, has->task, NULL, &err) != TARN_OK)
        model_refused(&command, &err);
    else if (usual.symbols != has->symbols)
        fprintf(stderr, "%s: --task: %s has %zu symbols; the model has %zu\n", command.name,
                has->task, usual.symbols, has->symbols);
    else if (usual.frames != has->frames)
        fprintf(stderr, "%s: --task: %s has %zu floats a frame; the model has %zu\n",
                command.name, has->task, usual.frames, has->frames);
    else if (is_sequence(usual.head) != is_sequence(has->head))
        fprintf(stderr, "%s: --head: '%s'; expected one like '%s', as task '%s' has\n",
                command.name, has->head, usual.head, has->task);
    else if (!sizes_fit(has->task))
        fprintf(stderr,
                "%s: --task: %s says not all of height, width and channels; expected all or "
                "none\n",
                command.name, has->task);
    else
        return true;
    return false;
}

static int save(const tarn_model *model, const struct options *o)
{
    tarn_error err;

    if (!task_fits(model))
        return EXIT_USAGE;
    if (tarn_model_save(model, o->to, &err) != TARN_OK)
        return model_refused(&command, &err);
    printf("%s: %zu parameters\n", o->to, tarn_model_parameters(model));
    return EXIT_DONE;
}

int cmd_import(int argc, char **argv)
{
    struct options o = {0};
    struct listing listing = {.options = &o};
    tarn_model *model;
    tarn_error err;
    int code = args_read(&command, &o, argc, argv);

    if (code != ARGS_GO_ON)
        return code;
    if (format_is_foreign(command.name, "OUT", o.to, FORMAT_MODEL))
        return EXIT_USAGE;
    const tarn_import_desc desc = describe(&o, &listing);
    const tarn_status status = tarn_model_import(&model, o.from, &desc, &err);

    if (listing.count[TARN_IMPORT_READ] + listing.count[TARN_IMPORT_MISSING] > 0)
        print_counts(&listing);
    code = status == TARN_OK ? save(model, &o) : model_refused(&command, &err);
    tarn_model_free(model);
    return code;
}
