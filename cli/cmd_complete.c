/* SPDX-License-Identifier: MIT */
/* cmd_complete.c - tarn complete: completes partially shown images.
 *
 * Each row of the picture has the shown part of an image, the model's completions of it, and
 * the original. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "draw.h"
#include "files.h"
#include "hardware.h"
#include "json_line.h"
#include "picture.h"
#include "terminal.h"

struct options {
    const char *model, *data, *out;
    size_t images, samples, first, scale;
    struct sampling_options sampling;
    tarn_engine_desc how; /* longest is filled in */
    double keep;
    bool best, json;
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
    SAMPLING_OPTIONS(struct options),
    {"method", "METHOD", ARGS_TEXT, NULL, AT(how.method), 0, 0,
     "generation method, as in tarn generate"},
    {"precision", "f32|bf16|int8|bf16-inputs", ARGS_TEXT, "f32", AT(how.precision), 0, 0,
     "precision of the weights"},
    {"best", NULL, ARGS_FLAG, NULL, AT(best), 0, 0, BEST_HELP},
    {"threads", "N", ARGS_HOST, "0", AT(how.host), 0, 1024, THREADS_HELP},
    {"json", NULL, ARGS_FLAG, NULL, AT(json), 0, 0,
     "print one JSON object: images, samples, kept_bytes, seconds, ..."},
    {0},
};

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
    double seconds;
};

/* Whole pixels; at least one byte, and not the whole image. */
static size_t kept_bytes(const struct job *j)
{
    const double pixels = floor(j->o.keep * (double)(j->size.height * j->size.width));
    const size_t kept = (size_t)pixels * j->size.channels;

    return kept == 0 ? 1 : kept < j->bytes ? kept : j->bytes - 1;
}

static void check_images(struct job *j)
{
    const tarn_image_size found = tarn_images_size(j->images);
    const size_t there = tarn_images_count(j->images);

    if (memcmp(&found, &j->size, sizeof found) != 0)
        refuse("%s has images of %zu x %zu x %zu (height x width x channels); the model needs "
               "%zu x %zu x %zu",
               j->o.data, found.height, found.width, found.channels, j->size.height,
               j->size.width, j->size.channels);
    if (j->o.first >= there)
        refuse("--first is %zu; %s has only %zu images", j->o.first, j->o.data, there);
    j->count = smaller(j->o.images, there - j->o.first);
    j->kept = kept_bytes(j);
}

static void open_all(struct job *j)
{
    j->model = model_open(j->o.model, j->o.best);
    j->size = image_size(j->o.model, j->model);
    j->bytes = image_bytes(j->size);
    check_writable("-o", j->o.out);
    must(tarn_images_open(&j->images, j->o.data, &failure));
    check_images(j);
}

static void make_room(struct job *j)
{
    static const char what[] = "%zu images; reduce --images or --samples";
    const size_t all = j->count * (j->o.samples + 2); /* both at most 2^20 */

    j->drawn = allocate(j->count * j->o.samples, j->bytes, what, all);
    j->grid = allocate(all, j->bytes, what, all);
    j->still = allocate(all, sizeof *j->still, what, all);
}

/* ---- Drawing ------------------------------------------------------------ */

static const unsigned char *original(const struct job *j, size_t i)
{
    return tarn_images_at(j->images, j->o.first + i);
}

/* Sample s of image i is stream i x samples + s, i counted from the data's first image. */
static void draw(struct job *j)
{
    const struct options *const o = &j->o;
    struct draw d = {
        .model = j->model,
        .size = j->size,
        .sampling = sampling_of(&o->sampling),
        .how = o->how,
        .pixels = j->drawn,
        .count = j->count * o->samples,
        .given = j->kept,
    };

    d.sampling.number = o->first * o->samples;
    for (size_t i = 0; i < d.count; i++)
        memcpy(j->drawn + i * j->bytes, original(j, i / o->samples), j->kept);
    draw_images(&d);
    j->seconds = d.seconds;
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

/* The picture is checked before the work, and memory is taken only for one that fits. */
static void complete(struct job *j)
{
    struct animation animation;
    struct picture picture = {.size = j->size,
                              .count = j->count * (j->o.samples + 2),
                              .columns = j->o.samples + 2,
                              .scale = j->o.scale,
                              .animation = &animation.how};

    picture_check(&picture);
    make_room(j);
    draw(j);
    arrange(j);
    animation_of(&animation, j->model, j->bytes, j->kept);
    animation.how.still = j->still;
    animation.how.scale = j->o.scale;
    picture.pixels = j->grid;
    picture_write(&picture, j->o.out);
    if (j->o.json) {
        print_json(j);
        return;
    }
    picture_show(&picture);
    printf("%s: %zu image%s, %zu of %zu bytes shown, %zu completion%s per image\n", j->o.out,
           j->count, plural(j->count), j->kept, j->bytes, j->o.samples, plural(j->o.samples));
}

static void run(void *values)
{
    struct job j = {.o = *(const struct options *)values};

    check_format("-o", j.o.out, FORMAT_PICTURE);
    if (j.o.keep <= 0.0 || j.o.keep >= 1.0)
        refuse("--keep is %g; it must be above 0 and below 1", j.o.keep);
    sampling_of(&j.o.sampling);
    open_all(&j);
    complete(&j);
    free(j.still);
    free(j.grid);
    free(j.drawn);
    tarn_images_free(j.images);
    tarn_model_free(j.model);
}

const struct command cmd_complete = {
    .name = "tarn complete",
    .summary = "complete partially shown images",
    .help =
        "Complete partially shown images: the model is given the upper part of each image and "
        "generates the rest, several times.",
    .options = rows,
    .notes = TERMINAL_RULE,
    .examples =
        "tarn complete models/mnist.safetensors --data data/mnist -o out.png\n"
        "tarn complete runs/digits --data data/mnist --keep 0.25 --samples 6 -o out.png\n",
    .values = sizeof(struct options),
    .run = run,
};
