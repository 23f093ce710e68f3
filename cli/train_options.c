/* SPDX-License-Identifier: MIT */
/* train_options.c - the options of tarn train. Most set a field of tarn_config or tarn_settings
 * as text; the library checks the value and has the help. */
#include "train_options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hardware.h"

/* Every field of the model's configuration and of the settings is an option of the same name,
 * but for those that follow from the task or from --head-width. The random seed is a field of
 * both. */
enum { FIELDS_MOST = 64, OPTION_NAME = 32 };

static const char *const no_options[] = {"task", "symbols", "frames", "width"};

struct values {
    const char *out, *preset, *start, *head_width;
    bool resume, json;
    tarn_host host;
    double minutes, epochs;
    const char *text[FIELDS_MOST]; /* of fields with a value */
    bool flag[FIELDS_MOST];        /* of those without */
};

enum { PRESET, HEAD_WIDTH }; /* rows whose default depends on the task */

static const struct args_option others[] = {
    [PRESET] = {"preset", "NAME", ARGS_TEXT, NULL, offsetof(struct values, preset), 0, 0,
                "model preset; other options override it"},
    [HEAD_WIDTH] = {"head-width", "D", ARGS_TEXT, NULL, offsetof(struct values, head_width), 0,
                    0, "width of an attention head; the model width is --heads times this"},
    {"start", "MODEL", ARGS_TEXT, NULL, offsetof(struct values, start), 0, 0,
     "start from the weights and architecture of a trained model instead of a preset: "
     "a " MODEL_HELP},
    {"out", "DIR", ARGS_TEXT, NULL, offsetof(struct values, out), 1, 0,
     "folder for checkpoints, model, log and loss curve"},
    {"resume", NULL, ARGS_FLAG, NULL, offsetof(struct values, resume), 0, 0,
     "continue the run in DIR from its last checkpoint, with its settings; only --steps, "
     "--epochs, --minutes, --save-every, --keep, --recompute, --skip-nonfinite, --cache, "
     "--strict and --threads can be changed"},
    {"json", NULL, ARGS_FLAG, NULL, offsetof(struct values, json), 0, 0,
     "print one JSON object per update and validation, and one at the end"},
    {"threads", "N", ARGS_HOST, "0", offsetof(struct values, host), 0, 1024,
     THREADS_HELP "; results do not depend on it"},
    {"epochs", "E", ARGS_NUMBER, "0", offsetof(struct values, epochs), 0, 1 << 20,
     "passes over the training data, instead of --steps; 0: use --steps"},
    {"minutes", "M", ARGS_NUMBER, "0", offsetof(struct values, minutes), 0, 1 << 20,
     "train for M minutes: the number of updates, the schedule and the validations are fitted "
     "to the time. With --steps or --epochs: stop after M minutes, as Ctrl-C does. 0: no "
     "limit"},
};

enum { OTHERS = sizeof others / sizeof others[0] };

/* The table of options, first those above; and the texts in it. */
struct table {
    struct args_option rows[OTHERS + FIELDS_MOST + 1];
    const tarn_field *fields[FIELDS_MOST];
    size_t count; /* of fields */
    char names[FIELDS_MOST][OPTION_NAME];
    char initial[FIELDS_MOST][TARN_PATH_SIZE];
    char head_width[OPTION_NAME];
};

/* ---- Help --------------------------------------------------------------- */

static const struct args_table tables[] = {
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

static const char task_name[] = "TASK";

enum { ABOUT_SIZE = 512 };

static const struct args_group groups[] = {
    {"most used options",
     "data out preset epochs steps minutes batch length lr resume threads"},
    {"model", "start attention feature-map layers heads head-width feed body causal position "
              "positions norm activation head dropout context stack"},
    {"optimization", "optimizer schedule clip accumulate carry precision recompute "
                     "skip-nonfinite seed"},
    {"validation and checkpoints", "validation eval-every eval-batches save-every keep"},
    {0},
};

#define WRITES                                                                                 \
    "write checkpoints, the model, a log and the loss curve to a folder. Defaults are in "     \
    "brackets; those of the model come from the preset."

static const char about[] = "Train a model and " WRITES;

static const char notes[] =
    "Ctrl-C saves a checkpoint and exits with code 0; a second Ctrl-C "
    "exits at once. A run that completes all updates ends with a validation. " CPU_NOTE;

static const char examples[] = "tarn train copy --preset tiny --length 32 --out runs/copy\n"
                               "tarn train text --data book.txt --out runs/book --minutes 5\n"
                               "tarn train text --out runs/book --resume --steps 20000\n";

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
static tarn_status start(struct train_options *o, const char *task, const char *preset,
                         tarn_error *err)
{
    const char *const whole = whole_task(task, preset);
    tarn_status status;

    if ((status = tarn_settings_start(&o->settings, whole, err)) != TARN_OK ||
        (status = tarn_config_start(&o->config, whole, preset, err)) != TARN_OK)
        return status;
    return preset ? tarn_settings_preset(&o->settings, preset, err) : TARN_OK;
}

/* Takes the architecture from a trained model, but the task from the command line. False after
 * a message. */
static bool start_with(struct train_options *o, const char *given)
{
    tarn_config own = o->config;
    tarn_model *model;
    tarn_error err;

    model_path(&o->command, o->first, given, false);
    if (tarn_model_load(&model, o->first, NULL, &err) != TARN_OK) {
        command_fail(&o->command, "--start: %s", err.text);
        return false;
    }
    o->config = *tarn_model_config(model);
    memcpy(o->config.task, own.task, sizeof own.task);
    tarn_model_free(model);
    return true;
}

static const tarn_field *find(const tarn_field *(*field)(size_t), const char *name)
{
    size_t i = 0;

    while (field(i) && strcmp(field(i)->name, name) != 0)
        i++;
    return field(i);
}

static bool is_option(const char *field)
{
    for (size_t i = 0; i < sizeof no_options / sizeof no_options[0]; i++)
        if (strcmp(no_options[i], field) == 0)
            return false;
    return true;
}

/* The default shown is the value that the field has now. */
static void add_field(struct table *table, const struct train_options *o,
                      const tarn_field *field)
{
    const size_t i = table->count++;
    const bool is_flag = field->value == NULL;
    char *const name = table->names[i], *const initial = table->initial[i];

    table->fields[i] = field;
    snprintf(name, OPTION_NAME, "%s", field->name);
    for (char *at = name; (at = strchr(at, '_')) != NULL;)
        *at = '-';
    if (tarn_settings_text(&o->settings, initial, TARN_PATH_SIZE, field->name, NULL) != TARN_OK)
        tarn_config_text(&o->config, initial, TARN_PATH_SIZE, field->name, NULL);
    table->rows[OTHERS + i] = (struct args_option){
        .name = name,
        .argument = field->value,
        .type = is_flag ? ARGS_FLAG : ARGS_TEXT,
        .initial = is_flag || !*initial ? NULL : initial,
        .offset = is_flag ? offsetof(struct values, flag) + i * sizeof(bool)
                          : offsetof(struct values, text) + i * sizeof(char *),
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
        if (is_option(field->name))
            add_field(table, o, field);
    for (size_t i = 0; (field = tarn_config_field(i)) != NULL; i++)
        if (is_option(field->name) && !find(tarn_settings_field, field->name))
            add_field(table, o, field);
}

/* Replaces defaults that differ between tasks. */
static void blank_differing(struct table *table)
{
    static struct table other;
    static struct train_options o;

    for (size_t task = 0; tarn_task_kind(task); task++) {
        start(&o, tarn_task_kind(task)->name, tarn_task_preset(tarn_task_kind(task)->name),
              NULL);
        table_make(&other, &o);
        for (size_t i = 0; other.rows[i].name; i++) {
            const char **const initial = &table->rows[i].initial;
            const char *const here = other.rows[i].initial;

            if (strcmp(*initial ? *initial : "", here ? here : "") != 0)
                *initial = own_default;
        }
    }
}

/* The value given for field i; NULL: none. */
static const char *given(const struct values *values, const struct table *table, size_t i)
{
    if (!table->fields[i]->value)
        return values->flag[i] ? "true" : NULL;
    return values->text[i] == table->initial[i] ? NULL : values->text[i];
}

static bool is_given(const struct values *values, const struct table *table, const char *field)
{
    for (size_t i = 0; i < table->count; i++)
        if (strcmp(table->fields[i]->name, field) == 0)
            return given(values, table, i) != NULL;
    return false;
}

void train_options_model(char text[TRAIN_MODEL_SIZE], const tarn_config *c)
{
    const char *const plural = c->layers == 1 ? "" : "s";

    if (strcmp(c->body, "lstm") == 0)
        snprintf(text, TRAIN_MODEL_SIZE, "LSTM, %zu layer%s of width %zu", c->layers, plural,
                 c->width);
    else
        snprintf(text, TRAIN_MODEL_SIZE,
                 "%s attention, %zu layer%s, %zu head%s of width %zu, feed-forward %zu",
                 c->attention, c->layers, plural, c->heads, c->heads == 1 ? "" : "s",
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

static int go_on(struct train_options *o, const char *task, bool has_preset)
{
    tarn_error err;

    if (has_preset)
        return command_refuse(
            &o->command, "--preset cannot be used with --resume, which continues the model "
                         "of the folder");
    if (tarn_train_settings(&o->config, &o->settings, o->folder, &err) != TARN_OK)
        return command_error(&o->command, &err);
    if (same_task(o, task))
        return ARGS_GO_ON;
    return command_refuse(&o->command,
                          "%s was started with task '%s'; use that task to resume it",
                          o->folder, o->settings.task);
}

/* ---- Overriding defaults ------------------------------------------------ */

static tarn_status set(struct train_options *o, const char *field, const char *text,
                       tarn_error *err)
{
    tarn_status status = TARN_OK;

    if (find(tarn_settings_field, field))
        status = tarn_settings_set(&o->settings, field, text, err);
    if (status == TARN_OK && find(tarn_config_field, field))
        status = tarn_config_set(&o->config, field, text, err);
    return status;
}

/* --head-width, or what the model has. */
static tarn_status read_head_width(size_t *head_width, const struct train_options *o,
                                   const struct values *values, const struct table *table,
                                   tarn_error *err)
{
    tarn_config scratch = {.width = o->config.width / o->config.heads};
    tarn_status status = TARN_OK;
    tarn_error cause;

    if (values->head_width != table->head_width &&
        (status = tarn_config_set(&scratch, "width", values->head_width, &cause)) != TARN_OK) {
        snprintf(err->text, sizeof err->text, "head_%.240s", cause.text);
        err->status = status;
    }
    *head_width = scratch.width;
    return status;
}

static tarn_status lay_over(struct train_options *o, const struct values *values,
                            const struct table *table, tarn_error *err)
{
    size_t head_width;
    tarn_status status = read_head_width(&head_width, o, values, table, err);

    for (size_t i = 0; i < table->count && status == TARN_OK; i++) {
        const char *const text = given(values, table, i);

        if (text)
            status = set(o, table->fields[i]->name, text, err);
    }
    o->config.width = o->config.heads * head_width;
    if (strcmp(o->config.body, "lstm") == 0 && o->config.frames > 0 &&
        !is_given(values, table, "position"))
        status =
            status == TARN_OK ? tarn_config_set(&o->config, "position", "none", err) : status;
    return status;
}

/* ---- Reading ------------------------------------------------------------ */

static int fill(struct train_options *o, const struct values *values, const struct table *table,
                const char *task)
{
    const bool has_preset = values->preset != table->rows[PRESET].initial;
    tarn_error err;
    int code;

    o->folder = values->out;
    o->resume = values->resume;
    o->json = values->json;
    o->host = values->host;
    o->minutes = values->minutes;
    o->epochs = values->epochs;
    o->validations_given = is_given(values, table, "eval_every");
    o->steps_given = is_given(values, table, "steps");
    if (o->steps_given && o->epochs > 0.0)
        return command_refuse(&o->command,
                              "--epochs and --steps cannot be used together; give one of them");
    o->steps_given |= o->epochs > 0.0;
    if (!*o->folder)
        return command_refuse(&o->command, "--out is ''; it must be the name of a folder");
    if (o->resume && (code = go_on(o, task, has_preset)) != ARGS_GO_ON)
        return code;
    if (values->start && (o->resume || has_preset))
        return command_refuse(&o->command, "--start cannot be used with --resume or --preset");
    if (!o->resume && start(o, task, values->preset, &err) != TARN_OK)
        return command_error(&o->command, &err);
    if (values->start && !start_with(o, values->start))
        return EXIT_FAILED;
    if (lay_over(o, values, table, &err) != TARN_OK)
        return command_error(&o->command, &err);
    return ARGS_GO_ON;
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

int train_options_read(struct train_options *o, int argc, char **argv)
{
    const char *const task = argv[0];
    struct values values;
    struct table table;
    tarn_error err;

    *o = (struct train_options){0};
    snprintf(o->name, sizeof o->name, "tarn train %s", task);
    if (start(o, task, tarn_task_preset(task), &err) != TARN_OK)
        return command_error(&cmd_train, &err);
    table_make(&table, o);
    char help[ABOUT_SIZE] = "";

    describe_task(help, task);
    o->command = (struct command){
        .name = o->name,
        .help = help,
        .options = table.rows,
        .tables = tables,
        .notes = notes,
        .groups = groups,
        .examples = examples,
    };
    const int code = args_read(&o->command, &values, argc, argv);

    return code == ARGS_GO_ON ? fill(o, &values, &table, task) : code;
}

const struct command *train_options_describe(void)
{
    static struct table table;
    static struct args_option rows[1 + sizeof table.rows / sizeof table.rows[0]];
    static struct args_table all[1 + sizeof tables / sizeof tables[0]];
    static struct command command;
    struct train_options o = {0};

    start(&o, tarn_task_kind(0)->name, tarn_task_preset(tarn_task_kind(0)->name), NULL);
    table_make(&table, &o);
    blank_differing(&table);
    rows[0] = (struct args_option){
        .name = task_name, .type = ARGS_OPERAND, .minimum = 1, .help = "the task to learn"};
    memcpy(rows + 1, table.rows, sizeof table.rows);
    all[0] = (struct args_table){"tasks", tarn_task_kind, task_name};
    memcpy(all + 1, tables, sizeof tables);
    command = cmd_train;
    command.help = about;
    command.options = rows;
    command.tables = all;
    command.notes = notes;
    command.groups = groups;
    command.examples = examples;
    return &command;
}
