/* SPDX-License-Identifier: MIT */
/* cmd_train.c - tarn train TASK: a training run in a folder. */
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "help.h"
#include "json_line.h"
#include "progress.h"
#include "ranks.h"
#include "cmd_train.h"
#include "words.h"

static bool must_stop(void *context)
{
    return progress_must_stop() || train_progress_is_over(context);
}

enum { PATH = TARN_PATH_SIZE + 32 };

/* ---- The end ------------------------------------------------------------ */

/* Files that a run writes into its folder; some may be missing. */
static const char *const files[] = {"model.safetensors", "best.safetensors", "log.jsonl",
                                    "loss.csv", "loss.svg"};

static bool is_there(const struct train_options *o, const char *name)
{
    char path[PATH];

    snprintf(path, sizeof path, "%s/%s", o->folder, name);
    return access(path, F_OK) == 0;
}

static json_t *list_files(const struct train_options *o)
{
    json_t *const list = json_array();

    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++)
        if (is_there(o, files[i]))
            json_array_append_new(list, json_string(files[i]));
    return list;
}

static void print_json(const struct train_progress *p, bool stopped)
{
    const struct train_options *const o = p->options;
    json_t *const object = json_object();

    json_put_text(object, "event", "done");
    json_put_count(object, "update", (size_t)p->report.update);
    json_put_bool(object, "stopped", stopped);
    json_put_number(object, "loss", train_progress_loss(p));
    if (p->validated) {
        json_put_count(object, "validation_update", (size_t)p->validation.update);
        json_put_number(object, "validation_loss", p->validation.loss);
        json_put_number(object, p->validation.name, p->validation.metric);
    }
    json_put_number(object, "tokens_per_s", train_progress_speed(p));
    json_put_count(object, "planned_bytes", p->bytes);
    json_put_text(object, "folder", o->folder);
    json_object_set_new(object, "files", list_files(o));
    json_print_line(object);
}

static void print_text(const struct train_progress *p)
{
    const struct train_options *const o = p->options;
    char memory[32];

    words_bytes(memory, sizeof memory, (double)p->bytes);
    printf("%" PRIu64 " updates", p->report.update);
    if (p->report.update > p->from)
        printf(", loss %.4f, %.0f tokens/s", train_progress_loss(p), train_progress_speed(p));
    printf(", memory %s\n", memory);
    if (p->validated)
        printf("validation after update %" PRIu64 ": loss %.4f, %s %.4f\n",
               p->validation.update, p->validation.loss, p->validation.name,
               p->validation.metric);
    printf("%s:", o->folder);
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++)
        if (is_there(o, files[i]))
            printf(" %s", files[i]);
    printf("\n");
}

/* What to do next, if not all updates were done. */
static void advise(const struct train_progress *p)
{
    const struct train_options *const o = p->options;
    const size_t updates = p->settings.steps;

    if (p->from >= updates)
        warn("nothing to do: %" PRIu64 " updates are done; give a larger --steps to continue",
             p->from);
    else if (p->report.update < updates)
        fprintf(stderr, "stopped and saved; to continue: tarn train %s --out %s --resume\n",
                o->settings.task, o->folder);
}

/* ---- One run ------------------------------------------------------------ */

enum { VALIDATIONS = 8 }; /* of a run that is fitted to a time */

/* Of a process that does not print. */
static void train_silently(const struct train_options *o, tarn_train_desc desc)
{
    desc.events = (tarn_events){.stop = must_stop, .context = desc.events.context};
    must(ranks_found(tarn_train(&o->config, &o->settings, &desc, &failure)));
}

static void train(const struct train_options *o)
{
    struct train_progress progress = {.options = o, .settings = o->settings};
    tarn_host host = o->host;
    const tarn_comm *const comm = ranks_open(&host);
    tarn_train_desc desc = {
        .out = o->folder,
        .resume = o->resume,
        .any = o->any,
        .start = *o->first ? o->first : NULL,
        .epochs = o->epochs,
        .host = host,
        .events = train_progress_events(&progress),
        .minutes = o->steps_given ? 0.0 : o->minutes,
        .validations = o->validations_given ? 0 : VALIDATIONS,
        .comm = comm,
    };

    progress_listen();
    ranks_lost();
    if (!ranks_prints()) {
        train_silently(o, desc);
        return;
    }
    desc.events.stop = must_stop;
    const tarn_status status =
        ranks_found(tarn_train(&o->config, &o->settings, &desc, &failure));

    progress_keep();
    const bool drawn = !progress.started || train_curve_write(o);

    must(status);
    if (o->json)
        print_json(&progress, progress.report.update < progress.settings.steps);
    else
        print_text(&progress);
    advise(&progress);
    if (!drawn)
        leave(EXIT_FAILED);
}

/* ---- Tasks -------------------------------------------------------------- */

static const char *task_name(size_t index)
{
    return tarn_task_kind(index) ? tarn_task_kind(index)->name : NULL;
}

/* The task comes first: options and their defaults depend on it. */
static void run(int argc, char **argv)
{
    struct train_options options;
    char tasks[256];

    if (argc > 1 && args_is_help(argv[1])) {
        help_print(&cmd_train);
        return;
    }
    if (argc < 2 || argv[1][0] == '-') {
        words_list(tasks, sizeof tasks, task_name);
        refuse("TASK is required as the first argument; available: %s", tasks);
    }
    train_options_read(&options, argc - 1, argv + 1);
    train_curve_check(&options);
    train(&options);
}

const struct command cmd_train = {
    .name = "tarn train",
    .summary = "train a model on text, images, speech or the copy task",
    .help = "Train a model and write checkpoints, the model, a log and the loss curve to a "
            "folder.",
    .options =
        (const struct args_option[]){
            {"TASK", NULL, ARGS_OPERAND, NULL, 0, 1, 0, "the task to learn, listed below"},
            {"out", "DIR", ARGS_TEXT, NULL, 0, 1, 0,
             "folder for checkpoints, model, log and loss curve"},
            {0},
        },
    .tables =
        (const struct args_table[]){
            {"tasks, with options as in copy:symbols=20", tarn_task_kind, "TASK"},
            {"presets", tarn_preset, "preset"},
            {0},
        },
    .notes = "Run 'tarn train TASK --help' for all options.",
    .examples = "tarn train copy --preset tiny --length 32 --out runs/copy\n"
                "tarn train text --data book.txt --out runs/book --minutes 5\n"
                "tarn train image --data data/mnist --out runs/digits\n"
                "tarn train text --out runs/book --resume --steps 20000\n",
    .run_words = run,
    .describe = train_options_describe,
};
