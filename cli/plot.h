/* SPDX-License-Identifier: MIT */
/* plot.h - plots drawn with gnuplot, if it is installed. */
#ifndef PLOT_H
#define PLOT_H

#include <stdbool.h>
#include <stdio.h>

/* True for names that end in .svg or .png, the formats that can be written. */
bool plot_name_is_fit(const char *path);

/* Starts gnuplot, drawing to `path` at this size in points; NULL after a message. */
FILE *plot_open(const char *path, int width, int height);

/* False after a message if gnuplot could not write the file. */
bool plot_close(FILE *gnuplot, const char *path);

/* In gnuplot's own quotes. */
void plot_quoted(FILE *gnuplot, const char *text);

/* Line types 1 to `count`, one for each curve of a picture. */
void plot_styles(FILE *gnuplot, size_t count);

/* A thin grid, an open frame. */
void plot_frame(FILE *gnuplot);

#endif
