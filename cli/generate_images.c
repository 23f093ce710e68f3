/* SPDX-License-Identifier: MIT */
#include "generate_images.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "animation.h"
#include "draw.h"
#include "output.h"
#include "json_line.h"
#include "picture.h"

enum { USUAL = 16 }; /* default number of images */

/* A name that ends in a slash is a folder, for one file per image: FOLDER/00000.png, ... */
static bool is_folder(const char *out)
{
    return *out && out[strlen(out) - 1] == '/';
}

static bool folder_can_be(const char *folder)
{
    if (strlen(folder) >= TARN_PATH_SIZE)
        errno = ENAMETOOLONG;
    else if ((mkdir(folder, 0777) == 0 || errno == EEXIST) && access(folder, W_OK) == 0)
        return true;
    command_fail(&cmd_generate, "%s: %s", folder, strerror(errno));
    return false;
}

static int check(const struct generate_options *o, tarn_image_size size, size_t prompt_count)
{
    if (o->save || o->load)
        return command_refuse(
            &cmd_generate,
            "--save-state and --load-state are for text; images are generated whole");
    if (prompt_count >= draw_bytes(size))
        return command_refuse(
            &cmd_generate,
            "the prompt has as many bytes as an image or more; it must have fewer");
    if (!o->out && !o->json && !isatty(STDOUT_FILENO))
        return command_refuse(&cmd_generate, "-o FILE is required: a PNG file for the images");
    if (!o->out)
        return ARGS_GO_ON;
    if (format_is_foreign(&cmd_generate, "-o", o->out, FORMAT_PICTURE))
        return EXIT_USAGE;
    return (is_folder(o->out) ? folder_can_be(o->out)
                              : output_can_be(&cmd_generate, "-o", o->out))
               ? ARGS_GO_ON
               : EXIT_FAILED;
}

static bool write_each(const struct picture *all, const char *folder)
{
    const size_t bytes = draw_bytes(all->size);
    struct picture one = *all;
    char path[TARN_PATH_SIZE + 32];

    one.count = one.columns = 1;
    for (size_t i = 0; i < all->count; i++, one.pixels += bytes) {
        snprintf(path, sizeof path, "%s%05zu.png", folder, i);
        if (!picture_write(&one, path))
            return false;
    }
    return true;
}

static bool write_all(const struct picture *picture, const char *out)
{
    return out && is_folder(out) ? write_each(picture, out) : picture_write(picture, out);
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

static int draw_and_show(const struct generate_options *o, struct draw *d)
{
    struct animation animation;
    const struct picture picture = {
        .command = &cmd_generate,
        .pixels = d->pixels,
        .size = d->size,
        .count = d->count,
        .columns = (size_t)ceil(sqrt((double)d->count)),
        .scale = o->scale,
        .animation = &animation.how,
    };
    int code;

    if (o->out && !is_folder(o->out) && !picture_fits(&picture))
        return EXIT_USAGE;
    code = draw_images(d);
    animation_of(&animation, d->model, draw_bytes(d->size), d->given);
    animation.how.scale = o->scale;
    if (code != EXIT_DONE)
        return code;
    if (!write_all(&picture, o->out))
        return EXIT_FAILED;
    if (o->json) {
        print_json(o, d);
        return EXIT_DONE;
    }
    picture_show(&picture);
    printf("%s%s%zu image%s of %zu x %zu x %zu, %.4g images/s\n", o->out ? o->out : "",
           o->out ? ": " : "", d->count, d->count == 1 ? "" : "s", d->size.height,
           d->size.width, d->size.channels, (double)d->count / d->seconds);
    return EXIT_DONE;
}

int generate_images(const struct generate_options *o, const tarn_model *model,
                    const int32_t *prompt, size_t prompt_count)
{
    struct draw d = {
        .command = &cmd_generate,
        .model = model,
        .size = draw_size(&cmd_generate, o->model, model),
        .sampling = generate_options_sampling(o),
        .at_once = o->streams,
        .how = {.method = o->method, .precision = o->precision, .host = o->host},
        .count = o->count ? o->count : USUAL,
        .given = prompt_count,
    };
    const size_t bytes = draw_bytes(d.size);
    int code;

    if (bytes == 0)
        return EXIT_USAGE;
    if ((code = check(o, d.size, prompt_count)) != ARGS_GO_ON)
        return code;
    d.pixels = calloc(d.count, bytes);
    if (!d.pixels)
        return command_refuse(&cmd_generate, "not enough memory for so many images; reduce -n");
    for (size_t i = 0; i < d.count; i++)
        for (size_t k = 0; k < prompt_count; k++)
            d.pixels[i * bytes + k] = (unsigned char)prompt[k];
    code = draw_and_show(o, &d);
    free(d.pixels);
    return code;
}
