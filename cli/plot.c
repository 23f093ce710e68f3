/* SPDX-License-Identifier: MIT */
#include "plot.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "command.h"
#include "words.h"

bool plot_name_is_fit(const char *path)
{
    return words_end_in(path, ".svg") || words_end_in(path, ".png");
}

/* In single quotes, only a quote is special: it is doubled. */
void plot_quoted(FILE *gnuplot, const char *text)
{
    fputc('\'', gnuplot);
    for (; *text; text++) {
        if (*text == '\'')
            fputc('\'', gnuplot);
        fputc(*text, gnuplot);
    }
    fputc('\'', gnuplot);
}

void plot_frame(FILE *gnuplot)
{
    fprintf(gnuplot, "set grid xtics ytics lc rgb '#c8c8c8' lt 1 lw 0.5\n"
                     "set border 3 lc rgb '#606060'\nset tics nomirror out scale 0.6\n");
}

/* The colours of Okabe and Ito, which the colour-blind tell apart; the points differ too. */
void plot_styles(FILE *gnuplot, size_t count)
{
    static const char *const colours[] = {"#d55e00", "#e69f00", "#0072b2", "#56b4e9",
                                          "#009e73", "#cc79a7", "#000000", "#999999"};
    static const int points[] = {7, 6, 5, 9, 13, 11, 12, 4};
    const size_t styles = sizeof colours / sizeof colours[0];

    for (size_t i = 0; i < count; i++)
        fprintf(gnuplot, "set linetype %zu lc rgb '%s' lw 2 pt %d ps 0.9\n", i + 1,
                colours[i % styles], points[i % styles]);
}

/* gnuplot writes beside a picture that is there, which stays until all of the new one is. */
struct beside {
    char path[TARN_PATH_SIZE + 40];
};

static struct beside beside(const char *path)
{
    struct beside beside;

    snprintf(beside.path, sizeof beside.path, "%s.tmp", path);
    return beside;
}

static void put_terminal(FILE *gnuplot, const char *path, int width, int height)
{
    if (words_end_in(path, ".svg"))
        fprintf(gnuplot,
                "set terminal svg size %d,%d noenhanced font 'Helvetica,13' "
                "background rgb 'white'\n",
                width, height);
    else
        fprintf(gnuplot,
                "set terminal pngcairo size %d,%d noenhanced font 'Helvetica,15' "
                "fontscale 1.1 linewidth 1.5 pointscale 1.5\n",
                width + width / 2, height + height / 2);
    fprintf(gnuplot, "set output ");
    plot_quoted(gnuplot, beside(path).path);
    fprintf(gnuplot, "\n");
}

FILE *plot_open(const char *path, int width, int height)
{
    if (system("command -v gnuplot >/dev/null 2>&1") != 0) {
        warn("gnuplot is not installed, so %s was not written", path);
        return NULL;
    }
    if (unlink(beside(path).path) != 0 && errno != ENOENT) { /* gnuplot would follow a link */
        warn("%s: %s", beside(path).path, strerror(errno));
        return NULL;
    }
    signal(SIGPIPE, SIG_IGN); /* if gnuplot fails, its exit code says so */
    FILE *const gnuplot = popen("gnuplot", "w");

    if (gnuplot)
        put_terminal(gnuplot, path, width, height);
    else
        warn("gnuplot: %s", strerror(errno));
    return gnuplot;
}

bool plot_close(FILE *gnuplot, const char *path)
{
    fprintf(gnuplot, "unset output\n");
    const bool drawn = pclose(gnuplot) == 0;

    if (drawn && rename(beside(path).path, path) == 0)
        return true;
    if (drawn)
        warn("%s: %s", path, strerror(errno));
    else
        warn("gnuplot could not write %s", path);
    unlink(beside(path).path);
    return false;
}
