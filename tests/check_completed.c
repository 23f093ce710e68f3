/* SPDX-License-Identifier: MIT */
/* check_completed.c GRID DATA FIRST SAMPLES KEPT - whether the picture that tarn complete made
 * of the images in DATA has the bytes that it must: KEPT of every image in all cells of its
 * row, and the whole image in the last. */
#include <stdio.h>
#include <stdlib.h>

#include "tarn/tarn.h"

struct grid {
    tarn_images *picture, *data;
    tarn_image_size cell;
    size_t samples, kept, first;
};

/* Byte k of the cell in a row and column of the grid. */
static unsigned char byte_at(const struct grid *g, size_t row, size_t column, size_t k)
{
    const size_t c = g->cell.channels, line = g->cell.width * c;
    const size_t width = tarn_images_size(g->picture).width;
    const size_t y = row * (g->cell.height + TARN_PNG_GAP) + k / line;
    const size_t x = column * (g->cell.width + TARN_PNG_GAP) + k % line / c;

    return tarn_images_at(g->picture, 0)[(y * width + x) * c + k % c];
}

/* Bytes of a row that are not what they must be. */
static size_t wrong_in_row(const struct grid *g, size_t row)
{
    const unsigned char *const image = tarn_images_at(g->data, g->first + row);
    const size_t bytes = g->cell.height * g->cell.width * g->cell.channels;
    size_t wrong = 0;

    for (size_t k = 0; k < bytes; k++) {
        for (size_t column = 0; k < g->kept && column < g->samples + 1; column++)
            wrong += byte_at(g, row, column, k) != image[k];
        if (k >= g->kept)
            wrong += byte_at(g, row, 0, k) != TARN_PNG_GREY;
        wrong += byte_at(g, row, g->samples + 1, k) != image[k];
    }
    return wrong;
}

int main(int argc, char **argv)
{
    struct grid g = {0};
    tarn_error err = {0};
    size_t wrong = 0;

    if (argc != 6 || tarn_images_open(&g.picture, argv[1], &err) != TARN_OK ||
        tarn_images_open(&g.data, argv[2], &err) != TARN_OK) {
        fprintf(stderr, "check_completed: %s\n", argc == 6 ? err.text : "5 arguments");
        return 2;
    }
    g.cell = tarn_images_size(g.data);
    g.first = (size_t)atoi(argv[3]);
    g.samples = (size_t)atoi(argv[4]);
    g.kept = (size_t)atoi(argv[5]);
    const tarn_image_size all = tarn_images_size(g.picture);
    const size_t rows = (all.height + TARN_PNG_GAP) / (g.cell.height + TARN_PNG_GAP);

    if (all.width != (g.samples + 2) * (g.cell.width + TARN_PNG_GAP) - TARN_PNG_GAP)
        wrong++;
    for (size_t row = 0; wrong == 0 && row < rows; row++)
        wrong += wrong_in_row(&g, row);
    printf("%zu rows, %zu wrong\n", rows, wrong);
    tarn_images_free(g.picture);
    tarn_images_free(g.data);
    return wrong > 0 || rows == 0;
}
