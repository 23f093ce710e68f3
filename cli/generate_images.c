/* SPDX-License-Identifier: MIT */
/* generate_images.c - tarn generate, for a model of images. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "draw.h"
#include "files.h"
#include "cmd_generate.h"
#include "json_line.h"
#include "picture.h"

enum { USUAL = 16 }; /* default number of images */

/* A name that ends in a slash is a folder, for one file per image: FOLDER/00000.png, ... */
static bool names_folder(const char *out)
{
    return *out && out[strlen(out) - 1] == '/';
}

static void make_folder(const char *folder)
{
    if (strlen(folder) >= TARN_PATH_SIZE)
        fail("%s: %s", folder, strerror(ENAMETOOLONG));
    if ((mkdir(folder, 0777) != 0 && errno != EEXIST) || access(folder, W_OK) != 0)
        fail("%s: %s", folder, strerror(errno));
}

static void check(const struct generate_options *o, tarn_image_size size, size_t prompt_count)
{
    if (o->save || o->load)
        refuse("--save-state and --load-state are for text; images are generated whole");
    if (prompt_count >= image_bytes(size))
        refuse("the prompt has as many bytes as an image or more; it must have fewer");
    if (!o->out && !o->json && !isatty(STDOUT_FILENO))
        refuse("-o FILE is required: a PNG file for the images");
    if (!o->out)
        return;
    check_format("-o", o->out, FORMAT_PICTURE);
    if (names_folder(o->out))
        make_folder(o->out);
    else
        check_writable("-o", o->out);
}

static void write_each(const struct picture *all, const char *folder)
{
    struct picture one = *all;
    char path[TARN_PATH_SIZE + 32];

    one.count = one.columns = 1;
    for (size_t i = 0; i < all->count; i++, one.pixels += image_bytes(all->size)) {
        snprintf(path, sizeof path, "%s%05zu.png", folder, i);
        picture_write(&one, path);
    }
}

static void print_json(const struct generate_options *o, const struct draw *d)
{
    json_t *const object = json_object();

    json_put_count(object, "images", d->count);
    json_put_count(object, "height", d->size.height);
    json_put_count(object, "width", d->size.width);
    json_put_count(object, "channels", d->size.channels);
    json_put_text(object, "file", o->out);
    json_put_number(object, "seconds", d->seconds);
    json_put_number(object, "images_per_s", (double)d->count / d->seconds);
    json_print_line(object);
}

static void print_text(const struct generate_options *o, const struct draw *d)
{
    printf("%s%s%zu image%s of %zu x %zu x %zu, %.4g images/s\n", o->out ? o->out : "",
           o->out ? ": " : "", d->count, plural(d->count), d->size.height, d->size.width,
           d->size.channels, (double)d->count / d->seconds);
}

static void write_and_show(const struct generate_options *o, const struct draw *d,
                           struct picture *picture)
{
    struct animation animation;

    animation_of(&animation, d->model, image_bytes(d->size), d->given);
    animation.how.scale = o->scale;
    picture->animation = &animation.how;
    picture->pixels = d->pixels;
    if (o->out && names_folder(o->out))
        write_each(picture, o->out);
    else if (o->out)
        picture_write(picture, o->out);
    if (!o->json)
        picture_show(picture);
    (o->json ? print_json : print_text)(o, d);
}

void generate_images(const struct generate_options *o, const tarn_model *model,
                     const int32_t *prompt, size_t prompt_count)
{
    struct draw d = {
        .model = model,
        .size = image_size(o->model, model),
        .sampling = sampling_of(&o->sampling),
        .at_once = o->streams,
        .how = o->how,
        .count = o->count ? o->count : USUAL,
        .given = prompt_count,
    };
    struct picture picture = {.size = d.size,
                              .count = d.count,
                              .columns = (size_t)ceil(sqrt((double)d.count)),
                              .scale = o->scale};
    const size_t bytes = image_bytes(d.size);

    check(o, d.size, prompt_count);
    if (o->out && !names_folder(o->out))
        picture_check(&picture);
    d.pixels = allocate(d.count, bytes, "so many images; reduce -n");
    for (size_t i = 0; i < d.count; i++)
        for (size_t k = 0; k < prompt_count; k++)
            d.pixels[i * bytes + k] = (unsigned char)prompt[k];
    draw_images(&d);
    write_and_show(o, &d, &picture);
    free(d.pixels);
}
