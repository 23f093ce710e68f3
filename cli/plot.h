/* SPDX-License-Identifier: MIT */
/* plot.h - pictures by gnuplot, if it is there. */
#ifndef PLOT_H
#define PLOT_H

#include <stdbool.h>
#include <stdio.h>

/* True for names that end in .svg or .png: gnuplot is told which by the name. */
bool plot_name_is_fit(const char *path);

/* So that a wrong folder is known before the work and not after it. Sets errno. */
bool plot_is_writable(const char *path);

/* A gnuplot that draws to `path`, a picture of that many points; NULL, and said why, if there
 * is none. */
FILE *plot_open(const char *path, int width, int height);

/* False, and said, if gnuplot could not write the picture. */
bool plot_close(FILE *gnuplot, const char *path);

/* In gnuplot's own quotes. */
void plot_quoted(FILE *gnuplot, const char *text);

/* Line types 1 to `count`, one for each curve of a picture. */
void plot_styles(FILE *gnuplot, size_t count);

/* A thin grid, an open frame. */
void plot_frame(FILE *gnuplot);

#endif
