/* SPDX-License-Identifier: MIT */
#include "picture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "stream_block.h"
#include "terminal.h"
#include "words.h"

enum { ROWS = 64 }; /* rows of pixels shown on a terminal, but at least one row of images */

/* ---- Pixels ------------------------------------------------------------- */

struct colour {
    int r, g, b;
};

/* Pixel (y, x) of the shown images, which have a gap of one pixel between them as the file
 * has. */
static struct colour pixel(const struct picture *p, size_t y, size_t x)
{
    const tarn_image_size s = p->size;
    const size_t row = y % (s.height + 1), column = x % (s.width + 1);
    const size_t i = y / (s.height + 1) * p->columns + x / (s.width + 1);

    if (row == s.height || column == s.width || i >= p->count)
        return (struct colour){TARN_PNG_GREY, TARN_PNG_GREY, TARN_PNG_GREY};
    const unsigned char *const at =
        p->pixels + (((i * s.height + row) * s.width) + column) * s.channels;

    return s.channels == 1 ? (struct colour){at[0], at[0], at[0]}
                           : (struct colour){at[0], at[1], at[2]};
}

/* ---- A file ------------------------------------------------------------- */

static size_t scale_of(const struct picture *p)
{
    return p->scale ? p->scale : 1;
}

/* Side by side, with what is between them. */
static bool side_fits(size_t images, size_t pixels, size_t scale)
{
    return images <= TARN_PNG_SIDE_MOST / scale / (pixels + TARN_PNG_GAP);
}

void picture_check(const struct picture *p)
{
    const size_t down = (p->count + p->columns - 1) / p->columns, scale = scale_of(p);

    if (!side_fits(down, p->size.height, scale) || !side_fits(p->columns, p->size.width, scale))
        refuse("a picture of %zu rows of %zu images of %zu x %zu at scale %zu is too large; "
               "its sides can be at most %d pixels",
               down, p->columns, p->size.height, p->size.width, scale, TARN_PNG_SIDE_MOST);
}

/* Row y of the grid, each pixel `scale` times. */
static void enlarge_row(unsigned char *out, const struct picture *p, size_t y, size_t width)
{
    for (size_t x = 0; x < width; x++) {
        const struct colour c = pixel(p, y, x);

        for (size_t k = 0; k < p->scale; k++) {
            *out++ = (unsigned char)c.r;
            if (p->size.channels == 3) {
                *out++ = (unsigned char)c.g;
                *out++ = (unsigned char)c.b;
            }
        }
    }
}

/* The grid as one large image, gaps and all. */
static void write_png(const struct picture *p, const char *path)
{
    const struct picture grid = {.pixels = p->pixels,
                                 .size = p->size,
                                 .count = p->count,
                                 .columns = smaller(p->count, p->columns),
                                 .scale = scale_of(p)};
    const size_t down = (p->count + grid.columns - 1) / grid.columns;
    const size_t height = down * (p->size.height + TARN_PNG_GAP) - TARN_PNG_GAP;
    const size_t width = grid.columns * (p->size.width + TARN_PNG_GAP) - TARN_PNG_GAP;
    const tarn_image_size size = {height * grid.scale, width * grid.scale, p->size.channels};
    const size_t row = size.width * size.channels;
    unsigned char *const pixels =
        allocate(size.height, row, "%zu x %zu pixels", size.height, size.width);

    for (size_t y = 0; y < size.height; y++)
        if (y % grid.scale == 0)
            enlarge_row(pixels + y * row, &grid, y / grid.scale, width);
        else
            memcpy(pixels + y * row, pixels + (y - 1) * row, row);
    const tarn_status status = tarn_png_write(path, pixels, size, 1, 1, &failure);

    free(pixels);
    if (status != TARN_OK)
        fail("%s", failure.text);
}

void picture_write(const struct picture *p, const char *path)
{
    if (!words_end_in(path, ".svg"))
        write_png(p, path);
    else if (tarn_svg_write(path, p->pixels, p->size, p->count, p->columns, p->animation,
                            &failure) != TARN_OK)
        fail("%s", failure.text);
}

/* ---- A terminal --------------------------------------------------------- */

/* Of the cube's levels 0, 95, 135, 175, 215, 255. */
static int level(int value)
{
    return value < 48 ? 0 : value < 115 ? 1 : (value - 35) / 40;
}

/* The nearest of 256 colours: 24 greys from 232 (8, 8, 8) to 255 (238, 238, 238), and a cube of
 * 6 x 6 x 6 from 16 (black) to 231 (white). */
static int nearest_of_256(struct colour c)
{
    if (c.r != c.g || c.g != c.b || c.r < 4 || c.r > 246)
        return 16 + 36 * level(c.r) + 6 * level(c.g) + level(c.b);
    return c.r < 13 ? 232 : c.r > 238 ? 255 : 232 + (c.r - 3) / 10;
}

enum { FOREGROUND = 38, BACKGROUND = 48 };

static void put_colour(const struct terminal *t, int where, struct colour c)
{
    if (t->colours == COLOURS_24_BITS)
        printf("\033[%d;2;%d;%d;%dm", where, c.r, c.g, c.b);
    else
        printf("\033[%d;5;%dm", where, nearest_of_256(c));
}

static void put_blocks(const struct terminal *t, struct colour up, const struct colour *low)
{
    put_colour(t, FOREGROUND, up);
    if (low)
        put_colour(t, BACKGROUND, *low);
    fputs("\xe2\x96\x80", stdout);
}

/* As bright to the eye, from 0 to 255. */
static int brightness(struct colour c)
{
    return (299 * c.r + 587 * c.g + 114 * c.b) / 1000;
}

static void put_shade(struct colour up, struct colour low)
{
    static const char shades[] = " .:-=+*#%@";
    const int both = brightness(up) + brightness(low);

    putchar(shades[both * (int)(sizeof shades - 2) / 510]);
}

static void show_line(const struct picture *p, const struct terminal *t, size_t y,
                      size_t height, size_t width)
{
    const bool in_colour = t->colours != COLOURS_NONE && t->unicode;

    for (size_t x = 0; x < width; x++) {
        const struct colour up = pixel(p, y, x);
        const struct colour low = y + 1 < height ? pixel(p, y + 1, x) : up;

        if (in_colour)
            put_blocks(t, up, y + 1 < height ? &low : NULL);
        else
            put_shade(up, low);
    }
    printf(in_colour ? "\033[0m\n" : "\n");
}

void picture_show(const struct picture *p)
{
    const struct terminal t = terminal_of(STDOUT_FILENO);
    const tarn_image_size s = p->size;
    const size_t all = (p->count + p->columns - 1) / p->columns;
    const size_t fit = (t.columns + 1) / (s.width + 1);
    const size_t across = fit == 0 ? 1 : smaller(fit, p->columns);
    const size_t down = ROWS < s.height ? 1 : smaller((ROWS + 1) / (s.height + 1), all);
    const size_t height = down * (s.height + 1) - 1;

    if (!t.is_terminal)
        return;
    for (size_t y = 0; y < height; y += 2)
        show_line(p, &t, y, height, smaller(across * (s.width + 1) - 1, t.columns));
}

/* ---- An animation ------------------------------------------------------- */

struct span {
    double first, last; /* bytes of memory before and after drawing */
};

/* `when` says at which pixel it is so much. */
static void add_bar(struct animation *a, struct span bytes, const char *who, const char *when)
{
    const size_t i = a->how.bar_count++;
    char last[32];

    words_bytes(last, sizeof last, bytes.last);
    snprintf(a->labels[i], sizeof a->labels[i], "%s: %s at %s", who, last, when);
    a->bars[i] = (tarn_animation_bar){a->labels[i], bytes.first, bytes.last};
}

/* As every implementation of softmax attention keeps them: a key and a value of every position
 * in every layer. */
static double cache_bytes(const tarn_config *config)
{
    return 2.0 * (double)config->layers * (double)config->width * sizeof(float);
}

/* "linear:chunk=8" without its options. */
static void kind_of(char *kind, size_t size, const tarn_config *config)
{
    snprintf(kind, size, "%.*s attention", (int)strcspn(config->attention, ":"),
             config->attention);
}

static void add_bars(struct animation *a, const tarn_model *model, size_t bytes, size_t given)
{
    const tarn_config *const config = tarn_model_config(model);
    const struct state_size s = state_size(model);
    char kind[64];

    kind_of(kind, sizeof kind, config);
    if (!s.generates || strcmp(config->body, "transformer") != 0)
        return;
    if (s.per_position > 0) {
        const double each = (double)s.per_position, always = (double)s.bytes;

        add_bar(a, (struct span){always + each * (double)given, always + each * (double)bytes},
                kind, "the last pixel, and growing");
        return;
    }
    const double each = cache_bytes(config);

    add_bar(a, (struct span){(double)s.bytes, (double)s.bytes}, kind, "every pixel");
    add_bar(a, (struct span){each * (double)given, each * (double)bytes},
            "softmax attention, the same model", "the last pixel, and growing");
}

void animation_of(struct animation *a, const tarn_model *model, size_t bytes, size_t given)
{
    *a = (struct animation){.how = {.given = given, .bars = a->bars}};
    add_bars(a, model, bytes, given);
    if (a->how.bar_count > 0)
        a->how.caption = "Memory that an image takes while it is drawn:";
}
