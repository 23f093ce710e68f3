/* SPDX-License-Identifier: MIT */
#include "picture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ROWS = 64 }; /* of pixels that a terminal is shown at most, and one row of images */

/* ---- A file ------------------------------------------------------------- */

/* Side by side, with what is between them. */
static bool side_fits(size_t images, size_t pixels)
{
    return images <= TARN_PNG_SIDE_MOST / (pixels + TARN_PNG_GAP);
}

bool picture_fits(const struct picture *p)
{
    const size_t down = (p->count + p->columns - 1) / p->columns;

    if (side_fits(down, p->size.height) && side_fits(p->columns, p->size.width))
        return true;
    fprintf(stderr,
            "%s: %zu rows of %zu images of %zu x %zu; expected a picture of up to %d pixels a "
            "side\n",
            p->command, down, p->columns, p->size.height, p->size.width, TARN_PNG_SIDE_MOST);
    return false;
}

bool picture_write(const struct picture *p, const char *path)
{
    tarn_error err;

    if (!path ||
        tarn_png_write(path, p->pixels, p->size, p->count, p->columns, &err) == TARN_OK)
        return true;
    fprintf(stderr, "%s: %s\n", p->command, err.text);
    return false;
}

/* ---- A terminal --------------------------------------------------------- */

static size_t terminal_width(void)
{
    const char *const columns = getenv("COLUMNS");
    const int width = columns ? atoi(columns) : 0;

    return width > 0 ? (size_t)width : 80;
}

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

static void show_line(const struct picture *p, size_t y, size_t height, size_t width)
{
    for (size_t x = 0; x < width; x++) {
        const struct colour up = pixel(p, y, x);

        printf("\033[38;2;%d;%d;%dm", up.r, up.g, up.b);
        if (y + 1 < height) {
            const struct colour low = pixel(p, y + 1, x);

            printf("\033[48;2;%d;%d;%dm", low.r, low.g, low.b);
        }
        fputs("\xe2\x96\x80", stdout);
    }
    printf("\033[0m\n");
}

void picture_show(const struct picture *p)
{
    const tarn_image_size s = p->size;
    const size_t fit = (terminal_width() + 1) / (s.width + 1);
    const size_t across = fit < p->columns ? fit : p->columns;
    const size_t all = (p->count + p->columns - 1) / p->columns;
    size_t down = (ROWS + 1) / (s.height + 1);

    if (across == 0 || !isatty(STDOUT_FILENO))
        return;
    down = down == 0 ? 1 : down < all ? down : all;
    for (size_t y = 0, height = down * (s.height + 1) - 1; y < height; y += 2)
        show_line(p, y, height, across * (s.width + 1) - 1);
}
