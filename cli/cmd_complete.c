/* SPDX-License-Identifier: MIT */
/* cmd_complete.c - tarn complete: completes partially shown images.
 *
 * Each row of the picture has the shown part of an image, the model's completions of it, and
 * the original. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "animation.h"
#include "command.h"
#include "draw.h"
#include "output.h"
#include "generate_options.h"
#include "hardware.h"
#include "json_line.h"
#include "model_open.h"
#include "picture.h"
#include "terminal.h"

#define AT(field) offsetof(struct options, field)

struct options {
    const char *model, *data, *out, *precision, *method;
    size_t images, samples, first, scale, top_k, seed;
    tarn_host host;
    double keep, temperature, top_p;
    bool greedy, best, json;
};

static const struct args_option rows[] = {
    {"MODEL", NULL, ARGS_OPERAND, NULL, AT(model), 1, 0, "image " MODEL_HELP},
    {"data", "PATH", ARGS_TEXT, NULL, AT(data), 1, 0,
     "images to complete; in folders of MNIST and CIFAR-10 the test set"},
    {"o", "FILE", ARGS_TEXT, NULL, AT(out), 1, 0,
     "PNG file to write, or an animation if the name ends in .svg, with one row per image: "
     "shown part | completions | original"},
    {"scale", "K", ARGS_COUNT, "0", AT(scale), 0, PICTURE_SCALE_MOST, PICTURE_SCALE_HELP},
    {"keep", "FRACTION", ARGS_NUMBER, "0.5", AT(keep), 0, 1,
     "fraction of the pixels shown, from the top; above 0 and below 1"},
    {"images", "K", ARGS_COUNT, "8", AT(images), 1, 1 << 20, "number of images to complete"},
    {"samples", "S", ARGS_COUNT, "3", AT(samples), 1, 1 << 20, "completions per image"},
    {"first", "I", ARGS_COUNT, "0", AT(first), 0, SIZE_MAX, "index of the first image"},
    {"temperature", "T", ARGS_NUMBER, "1", AT(temperature), 0, 1000, TEMPERATURE_HELP},
    {"top-k", "K", ARGS_COUNT, "0", AT(top_k), 0, SIZE_MAX, TOP_K_HELP},
    {"top-p", "P", ARGS_NUMBER, "1", AT(top_p), 0, 1, TOP_P_HELP},
    {"greedy", NULL, ARGS_FLAG, NULL, AT(greedy), 0, 0, GREEDY_HELP},
    {"seed", "S", ARGS_COUNT, "1", AT(seed), 0, SIZE_MAX, SEED_HELP},
    {"method", "METHOD", ARGS_TEXT, NULL, AT(method), 0, 0,
     "generation method, as in tarn generate"},
    {"precision", "f32|bf16", ARGS_TEXT, "f32", AT(precision), 0, 0,
     "precision of the weights"},
    {"best", NULL, ARGS_FLAG, NULL, AT(best), 0, 0, BEST_HELP},
    {"threads", "N", ARGS_HOST, "0", AT(host), 0, 1024, THREADS_HELP},
    {"json", NULL, ARGS_FLAG, NULL, AT(json), 0, 0,
     "print one JSON object: images, samples, kept_bytes, seconds, ..."},
    {0},
};

static const struct args_table tables[] = {
    {NULL, tarn_method, "method"},
    {0},
};

static int check_options(const struct options *o)
{
    if (format_is_foreign(&cmd_complete, "-o", o->out, FORMAT_PICTURE))
        return EXIT_USAGE;
    if (o->keep <= 0.0 || o->keep >= 1.0)
        return command_refuse(&cmd_complete, "--keep must be above 0 and below 1");
    if (o->top_p <= 0.0)
        return command_refuse(&cmd_complete, TOP_P_IS_0);
    return ARGS_GO_ON;
}

/* ---- The images --------------------------------------------------------- */

struct job {
    struct options o;
    tarn_model *model;
    tarn_images *images;
    tarn_image_size size;
    size_t count, bytes, kept; /* images; of one, and of what is shown of it */
    unsigned char *drawn;      /* count x samples images */
    unsigned char *grid;       /* count x (samples + 2) */
    bool *still;               /* those of the grid that are not drawn by the model */
    struct animation animation;
    double seconds;
};

/* Whole pixels; at least one byte, and not the whole image. */
static size_t kept_bytes(const struct job *j)
{
    const double pixels = floor(j->o.keep * (double)(j->size.height * j->size.width));
    const size_t kept = (size_t)pixels * j->size.channels;

    return kept == 0 ? 1 : kept < j->bytes ? kept : j->bytes - 1;
}

static int check_images(struct job *j)
{
    const tarn_image_size found = tarn_images_size(j->images);
    const size_t there = tarn_images_count(j->images);

    if (memcmp(&found, &j->size, sizeof found) != 0)
        return command_refuse(
            &cmd_complete,
            "%s has images of %zu x %zu x %zu (height x width x channels); the model needs "
            "%zu x %zu x %zu",
            j->o.data, found.height, found.width, found.channels, j->size.height, j->size.width,
            j->size.channels);
    if (j->o.first >= there)
        return command_refuse(&cmd_complete, "--first is %zu; %s has only %zu images",
                              j->o.first, j->o.data, there);
    j->count = j->o.images < there - j->o.first ? j->o.images : there - j->o.first;
    j->kept = kept_bytes(j);
    return ARGS_GO_ON;
}

static int open_all(struct job *j)
{
    tarn_error err;

    if (!(j->model = model_open(&cmd_complete, j->o.model, j->o.best)))
        return EXIT_FAILED;
    j->size = draw_size(&cmd_complete, j->o.model, j->model);
    j->bytes = draw_bytes(j->size);
    if (j->bytes == 0)
        return EXIT_USAGE;
    if (!output_can_be(&cmd_complete, "-o", j->o.out))
        return EXIT_FAILED;
    if (tarn_images_open(&j->images, j->o.data, &err) != TARN_OK)
        return command_error(&cmd_complete, &err);
    return check_images(j);
}

static int take_memory(struct job *j)
{
    const size_t all = j->count * (j->o.samples + 2); /* both at most 2^20 */

    j->drawn = calloc(j->count * j->o.samples, j->bytes);
    j->grid = calloc(all, j->bytes);
    j->still = calloc(all, sizeof *j->still);
    if (j->drawn && j->grid && j->still)
        return ARGS_GO_ON;
    return command_fail(&cmd_complete,
                        "not enough memory for %zu images; reduce --images or --samples", all);
}

/* ---- Drawing ------------------------------------------------------------ */

static const unsigned char *original(const struct job *j, size_t i)
{
    return tarn_images_at(j->images, j->o.first + i);
}

/* Sample s of image i is stream i x samples + s, i counted from the data's first image. */
static int draw(struct job *j)
{
    const struct options *const o = &j->o;
    struct draw d = {
        .command = &cmd_complete,
        .model = j->model,
        .size = j->size,
        .sampling = {.temperature = o->temperature,
                     .top_k = o->top_k,
                     .top_p = o->top_p,
                     .greedy = o->greedy || o->temperature <= 0.0,
                     .seed = o->seed,
                     .number = o->first * o->samples},
        .how = {.method = o->method, .precision = o->precision, .host = o->host},
        .pixels = j->drawn,
        .count = j->count * o->samples,
        .given = j->kept,
    };

    for (size_t i = 0; i < d.count; i++)
        memcpy(j->drawn + i * j->bytes, original(j, i / o->samples), j->kept);
    const int code = draw_images(&d);

    j->seconds = d.seconds;
    return code == EXIT_DONE ? ARGS_GO_ON : code;
}

static void arrange(struct job *j)
{
    const size_t S = j->o.samples, bytes = j->bytes;

    for (size_t i = 0; i < j->count; i++) {
        unsigned char *const row = j->grid + i * (S + 2) * bytes;

        memcpy(row, original(j, i), j->kept);
        memset(row + j->kept, TARN_PNG_GREY, bytes - j->kept);
        memcpy(row + bytes, j->drawn + i * S * bytes, S * bytes);
        memcpy(row + (S + 1) * bytes, original(j, i), bytes);
        j->still[i * (S + 2)] = j->still[i * (S + 2) + S + 1] = true;
    }
    animation_of(&j->animation, j->model, bytes, j->kept);
    j->animation.how.still = j->still;
    j->animation.how.scale = j->o.scale;
}

static void print_json(const struct job *j)
{
    json_t *const object = json_object();

    json_put_count(object, "images", j->count);
    json_put_count(object, "samples", j->o.samples);
    json_put_count(object, "first", j->o.first);
    json_put_count(object, "kept_bytes", j->kept);
    json_put_count(object, "image_bytes", j->bytes);
    json_put_text(object, "file", j->o.out);
    json_put_number(object, "seconds", j->seconds);
    json_put_number(object, "images_per_s", (double)(j->count * j->o.samples) / j->seconds);
    json_print_line(object);
}

static struct picture picture_of(const struct job *j)
{
    return (struct picture){.command = &cmd_complete,
                            .pixels = j->grid,
                            .size = j->size,
                            .count = j->count * (j->o.samples + 2),
                            .columns = j->o.samples + 2,
                            .scale = j->o.scale,
                            .animation = &j->animation.how};
}

static int make(struct job *j)
{
    const struct picture picture = picture_of(j);
    int code;

    if (!picture_fits(&picture))
        return EXIT_USAGE;
    return (code = take_memory(j)) == ARGS_GO_ON ? draw(j) : code;
}

static int complete(struct job *j)
{
    int code;

    if ((code = open_all(j)) != ARGS_GO_ON || (code = make(j)) != ARGS_GO_ON)
        return code;
    arrange(j);
    const struct picture picture = picture_of(j);

    if (!picture_write(&picture, j->o.out))
        return EXIT_FAILED;
    if (j->o.json) {
        print_json(j);
        return EXIT_DONE;
    }
    picture_show(&picture);
    printf("%s: %zu images, %zu of %zu bytes shown, %zu completions per image\n", j->o.out,
           j->count, j->kept, j->bytes, j->o.samples);
    return EXIT_DONE;
}

static int run(void *values)
{
    struct job j = {.o = *(const struct options *)values};
    int code = check_options(&j.o);

    if (code == ARGS_GO_ON)
        code = complete(&j);
    free(j.still);
    free(j.grid);
    free(j.drawn);
    tarn_images_free(j.images);
    tarn_model_free(j.model);
    return code;
}

const struct command cmd_complete = {
    .name = "tarn complete",
    .summary = "complete partially shown images",
    .help =
        "Complete partially shown images: the model is given the upper part of each image and "
        "generates the rest, several times.",
    .options = rows,
    .tables = tables,
    .notes = TERMINAL_RULE,
    .examples =
        "tarn complete models/mnist.safetensors --data data/mnist -o out.png\n"
        "tarn complete runs/digits --data data/mnist --keep 0.25 --samples 6 -o out.png\n",
    .values = sizeof(struct options),
    .run = run,
};
