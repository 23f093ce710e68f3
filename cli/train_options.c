/* SPDX-License-Identifier: MIT */
/* train_options.c - the options of tarn train. Most set a field of tarn_config or tarn_settings
 * as text; the library checks the value and has the help. */
#include <stdio.h>
#include <string.h>

#include "hardware.h"
#include "cmd_train.h"
#include "ranks.h"

/* Every field of the model's configuration and of the settings is an option of the same name,
 * but for those that follow from the task or from --head-width. The random seed is a field of
 * both. */
enum { OPTION_NAME = 32 };

static const char no_options[] = "task symbols frames width";

#define GIVEN(field) offsetof(struct train_options, field)

enum { TASK, PRESET, HEAD_WIDTH }; /* not for a given task; defaults that depend on it */

static const struct args_option others[] = {
    [TASK] = {"TASK", NULL, ARGS_OPERAND, NULL, 0, 1, 0, "the task to learn"},
    [PRESET] = {"preset", "NAME", ARGS_FIELD, NULL, GIVEN(preset), 0, 0,
                "model preset; other options override it"},
    [HEAD_WIDTH] = {"head-width", "D", ARGS_FIELD, NULL, GIVEN(head_width), 0, 0,
                    "width of an attention head; the model width is --heads times this"},
    {"start", "MODEL", ARGS_TEXT, NULL, GIVEN(start), 0, 0,
     "start from the weights and architecture of a trained model instead of a preset: "
     "a " MODEL_HELP},
    {"out", "DIR", ARGS_TEXT, NULL, GIVEN(folder), 1, 0,
     "folder for checkpoints, model, log and loss curve"},
    {"resume", NULL, ARGS_FLAG, NULL, GIVEN(resume), 0, 0,
     "continue the run in DIR from its last checkpoint, with its settings; only --steps, "
     "--epochs, --minutes, --save-every, --keep, --recompute, --skip-nonfinite, --cache, "
     "--strict, --shard-optimizer and --threads can be changed, and the number of ranks"},
    {"any", NULL, ARGS_FLAG, NULL, GIVEN(any), 0, 0,
     "with --resume: if the last checkpoint is damaged, continue from the last intact one; "
     "damaged ones are renamed to NAME.damaged"},
    {"json", NULL, ARGS_FLAG, NULL, GIVEN(json), 0, 0,
     "print one JSON object per update and validation, and one at the end"},
    {"threads", "N", ARGS_HOST, "0", GIVEN(host), 0, 1024,
     THREADS_HELP "; results do not depend on it"},
    {"epochs", "E", ARGS_NUMBER, "0", GIVEN(epochs), 0, 1 << 20,
     "passes over the training data, instead of --steps; 0: use --steps"},
    {"minutes", "M", ARGS_NUMBER, "0", GIVEN(minutes), 0, 1 << 20,
     "train for M minutes: the number of updates, the schedule and the validations are fitted "
     "to the time. With --steps or --epochs: stop after M minutes, as Ctrl-C does. 0: no "
     "limit"},
};

enum { OTHERS = sizeof others / sizeof others[0] };

/* The table of options, first those above; and the texts in it. */
struct table {
    struct args_option rows[OTHERS + TRAIN_FIELDS + 1];
    size_t count; /* of fields */
    char names[TRAIN_FIELDS][OPTION_NAME];
    char initial[TRAIN_FIELDS][TARN_PATH_SIZE];
    char head_width[OPTION_NAME];
};

/* ---- Help --------------------------------------------------------------- */

/* The first is not for a given task. */
static const struct args_table tables[] = {
    {"tasks", tarn_task_kind, "TASK"},
    {"presets", tarn_preset, "preset"},
    {"attention, with options as in --attention lsh:rounds=4,chunk=32", tarn_attention_kind,
     "attention"},
    {"feature maps", tarn_feature_map, "feature-map"},
    {"position encodings", tarn_position_kind, "position"},
    {"output heads", tarn_head_kind, "head"},
    {"optimizers", tarn_optimizer, "optimizer"},
    {"learning rate schedules", tarn_schedule, "schedule"},
    {"gradient clipping", tarn_clip, "clip"},
    {0},
};

enum { ABOUT_SIZE = 512 };

static const struct args_group groups[] = {
    {"most used options",
     "data out preset epochs steps minutes batch length lr resume threads"},
    {"model", "start attention feature-map layers heads head-width feed body causal position "
              "positions norm activation head dropout context stack"},
    {"optimization", "optimizer schedule clip accumulate carry precision recompute "
                     "skip-nonfinite seed"},
    {"several processes", "micro-batches sequence-parallel sequence-chunks bf16-gradients "
                          "shard-optimizer"},
    {"validation and checkpoints", "validation eval-every eval-batches save-every keep"},
    {0},
};

#define WRITES                                                                                 \
    "write checkpoints, the model, a log and the loss curve to a folder. Defaults are in "     \
    "brackets; those of the model come from the preset."

static const char about[] = "Train a model and " WRITES;

static const char notes[] =
    "Ctrl-C saves a checkpoint and exits with code 0; a second Ctrl-C "
    "exits at once. A run that completes all updates ends with a validation. " RANKS_NOTE
        CPU_NOTE;

/* ---- Table -------------------------------------------------------------- */

static const char own_default[] = "depends on the task";

/* The task as it was written, or without options of its own as the preset's recipe has it. */
static const char *whole_task(const char *task, const char *preset)
{
    const char *const made_for = tarn_preset_task(preset);

    return made_for && strncmp(made_for, task, strlen(task)) == 0 &&
                   made_for[strlen(task)] == ':'
               ? made_for
               : task;
}

/* The defaults of the task, and the recipe of the preset. */
static void start(struct train_options *o, const char *task, const char *preset)
{
    const char *const whole = whole_task(task, preset);

    must(tarn_settings_start(&o->settings, whole, &failure));
    must(tarn_config_start(&o->config, whole, preset, &failure));
    if (preset)
        must(tarn_settings_preset(&o->settings, preset, &failure));
}

/* Takes the architecture from a trained model, but the task from the command line. */
static void start_with(struct train_options *o, const char *given)
{
    const tarn_config own = o->config;
    tarn_model *model;

    model_path(o->first, given, false);
    if (tarn_model_load(&model, o->first, NULL, &failure) != TARN_OK)
        fail("--start: %s", failure.text);
    o->config = *tarn_model_config(model);
    memcpy(o->config.task, own.task, sizeof own.task);
    tarn_model_free(model);
}

static const tarn_field *find(const tarn_field *(*field)(size_t), const char *name)
{
    size_t i = 0;

    while (field(i) && strcmp(field(i)->name, name) != 0)
        i++;
    return field(i);
}

/* The default shown is the value that the field has now. */
static void add_field(struct table *table, const struct train_options *o,
                      const tarn_field *field)
{
    const size_t i = table->count++;
    char *const name = table->names[i], *const initial = table->initial[i];

    snprintf(name, OPTION_NAME, "%s", field->name);
    for (char *at = name; (at = strchr(at, '_')) != NULL;)
        *at = '-';
    if (tarn_settings_text(&o->settings, initial, TARN_PATH_SIZE, field->name, NULL) != TARN_OK)
        tarn_config_text(&o->config, initial, TARN_PATH_SIZE, field->name, NULL);
    table->rows[OTHERS + i] = (struct args_option){
        .name = name,
        .argument = field->value,
        .type = ARGS_FIELD,
        .initial = field->value && *initial ? initial : NULL,
        .offset = GIVEN(given) + i * sizeof(char *),
        .help = field->help,
    };
}

static void table_make(struct table *table, const struct train_options *o)
{
    const tarn_field *field;

    *table = (struct table){0};
    memcpy(table->rows, others, sizeof others);
    snprintf(table->head_width, OPTION_NAME, "%zu", o->config.width / o->config.heads);
    table->rows[PRESET].initial = tarn_task_preset(o->settings.task);
    table->rows[HEAD_WIDTH].initial = table->head_width;
    for (size_t i = 0; (field = tarn_settings_field(i)) != NULL; i++)
        if (!words_have(no_options, field->name))
            add_field(table, o, field);
    for (size_t i = 0; (field = tarn_config_field(i)) != NULL; i++)
        if (!words_have(no_options, field->name) && !find(tarn_settings_field, field->name))
            add_field(table, o, field);
}

/* Replaces defaults that differ between tasks. */
static void blank_differing(struct table *table)
{
    static struct table other;
    static struct train_options o;

    for (size_t task = 0; tarn_task_kind(task); task++) {
        start(&o, tarn_task_kind(task)->name, tarn_task_preset(tarn_task_kind(task)->name));
        table_make(&other, &o);
        for (size_t i = 0; other.rows[i].name; i++) {
            const char **const initial = &table->rows[i].initial;
            const char *const here = other.rows[i].initial;

            if (strcmp(*initial ? *initial : "", here ? here : "") != 0)
                *initial = own_default;
        }
    }
}

void train_options_model(char text[TRAIN_MODEL_SIZE], const tarn_config *c)
{
    if (strcmp(c->body, "lstm") == 0)
        snprintf(text, TRAIN_MODEL_SIZE, "LSTM, %zu layer%s of width %zu", c->layers,
                 plural(c->layers), c->width);
    else
        snprintf(text, TRAIN_MODEL_SIZE,
                 "%s attention, %zu layer%s, %zu head%s of width %zu, feed-forward %zu",
                 c->attention, c->layers, plural(c->layers), c->heads, plural(c->heads),
                 c->width / c->heads, c->feed);
}

/* ---- Resuming ----------------------------------------------------------- */

/* The task of the folder; its options need not be repeated. */
static bool same_task(const struct train_options *o, const char *task)
{
    const char *const before = o->settings.task;
    const size_t length = strcspn(task, ":");

    return strcmp(task, before) == 0 ||
           (task[length] == '\0' && strcspn(before, ":") == length &&
            strncmp(task, before, length) == 0);
}

static void resume(struct train_options *o, const char *task)
{
    if (o->preset)
        refuse("--preset cannot be used with --resume, which continues the model of the "
               "folder");
    if (tarn_train_settings(&o->config, &o->settings, o->folder, &failure) != TARN_OK)
        fail("%s", failure.text);
    if (!same_task(o, task))
        refuse("%s was started with task '%s'; use that task to resume it", o->folder,
               o->settings.task);
}

/* ---- Overriding defaults ------------------------------------------------ */

static void set(void *options, const char *field, const char *text)
{
    struct train_options *const o = options;

    o->steps_given |= strcmp(field, "steps") == 0;
    o->validations_given |= strcmp(field, "eval_every") == 0;
    o->position_given |= strcmp(field, "position") == 0;
    if (find(tarn_settings_field, field))
        must(tarn_settings_set(&o->settings, field, text, &failure));
    if (find(tarn_config_field, field))
        must(tarn_config_set(&o->config, field, text, &failure));
}

/* --head-width, or what the model has. */
static size_t head_width_of(const struct train_options *o)
{
    tarn_config scratch = {.width = o->config.width / o->config.heads};

    if (o->head_width && tarn_config_set(&scratch, "width", o->head_width, &failure) != TARN_OK)
        refuse("head_%s", failure.text);
    return scratch.width;
}

static void override(struct train_options *o)
{
    const size_t head_width = head_width_of(o);

    args_set_fields(o->command.options, o, set, o);
    o->config.width = o->config.heads * head_width;
    if (strcmp(o->config.body, "lstm") == 0 && o->config.frames > 0 && !o->position_given)
        must(tarn_config_set(&o->config, "position", "none", &failure));
}

/* ---- Reading ------------------------------------------------------------ */

static void fill(struct train_options *o, const char *task)
{
    if (!*o->folder)
        refuse("--out is ''; it must be the name of a folder");
    if (o->any && !o->resume)
        refuse("--any needs --resume");
    if (o->resume)
        resume(o, task);
    if (o->start && (o->resume || o->preset))
        refuse("--start cannot be used with --resume or --preset");
    if (!o->resume)
        start(o, task, o->preset ? o->preset : tarn_task_preset(task));
    if (o->start)
        start_with(o, o->start);
    override(o);
    if (o->steps_given && o->epochs > 0.0)
        refuse("--epochs and --steps cannot be used together; give one of them");
    o->steps_given |= o->epochs > 0.0;
}

/* "Train a model to predict the next byte of a text, and ..." */
static void describe_task(char help[ABOUT_SIZE], const char *task)
{
    const size_t length = strcspn(task, ":");

    for (size_t i = 0; tarn_task_kind(i); i++)
        if (strlen(tarn_task_kind(i)->name) == length &&
            strncmp(task, tarn_task_kind(i)->name, length) == 0)
            snprintf(help, ABOUT_SIZE, "Train a model to %s, and %s", tarn_task_kind(i)->help,
                     WRITES);
}

void train_options_read(struct train_options *o, int argc, char **argv)
{
    static struct table table;
    static char help[ABOUT_SIZE];
    const char *const task = argv[0];

    *o = (struct train_options){0};
    start(o, task, tarn_task_preset(task));
    table_make(&table, o);
    describe_task(help, task);
    snprintf(o->name, sizeof o->name, "tarn train %s", task);
    o->command = (struct command){
        .name = o->name,
        .help = help,
        .options = table.rows + 1,
        .tables = tables + 1,
        .notes = notes,
        .groups = groups,
        .examples = cmd_train.examples,
    };
    command_name(&o->command);
    args_read(&o->command, o, argc, argv);
    fill(o, task);
}

const struct command *train_options_describe(void)
{
    static struct table table;
    static struct command command;
    struct train_options o = {0};

    start(&o, tarn_task_kind(0)->name, tarn_task_preset(tarn_task_kind(0)->name));
    table_make(&table, &o);
    blank_differing(&table);
    command = cmd_train;
    command.help = about;
    command.options = table.rows;
    command.tables = tables;
    command.notes = notes;
    command.groups = groups;
    return &command;
}
