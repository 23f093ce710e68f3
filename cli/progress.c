/* SPDX-License-Identifier: MIT */
#include "progress.h"

#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "hardware.h"
#include "terminal.h"

enum { PARTS = 8, PART_SIZE = 160 };

static const double terminal_every = 0.1, log_every = 5.0; /* seconds between lines */
static const char between[] = "  ";

/* There is one standard error. */
static struct {
    double begin, shown; /* seconds: of the work, of the last line */
    bool open;           /* there is a line that the next one replaces */
    size_t count;
    struct {
        char text[PART_SIZE];
        int rank;
    } part[PARTS]; /* from left to right */
} line;

bool progress_on_terminal(void)
{
    return terminal_of(STDERR_FILENO).rewrites;
}

void progress_begin(void)
{
    line.begin = line.shown = seconds_now();
}

double progress_seconds(void)
{
    return seconds_now() - line.begin;
}

bool progress_is_due(void)
{
    const double waited = seconds_now() - line.shown;

    return waited >= log_every || (waited >= terminal_every && progress_on_terminal());
}

void progress_part(int rank, const char *format, ...)
{
    va_list args;

    if (line.count == PARTS)
        return;
    va_start(args, format);
    vsnprintf(line.part[line.count].text, PART_SIZE, format, args);
    va_end(args);
    line.part[line.count++].rank = rank;
}

/* ---- Width -------------------------------------------------------------- */

/* Characters of UTF-8: bytes that do not continue one. */
static size_t width_of(const char *text)
{
    size_t width = 0;

    for (; *text; text++)
        width += ((unsigned char)*text & 0xc0) != 0x80;
    return width;
}

static size_t width_below(int rank)
{
    size_t width = 0;

    for (size_t i = 0; i < line.count; i++)
        if (line.part[i].rank < rank)
            width += (width ? strlen(between) : 0) + width_of(line.part[i].text);
    return width;
}

/* Parts below this rank fit. The last column stays free: many terminals wrap after it. */
static int rank_that_fits(size_t columns)
{
    int rank = PARTS;

    while (rank > 1 && width_below(rank) >= columns)
        rank--;
    return rank;
}

/* ---- Lines -------------------------------------------------------------- */

/* In one piece: standard error has no buffer, and half a line would flicker. */
void progress_show(void)
{
    const struct terminal terminal = terminal_of(STDERR_FILENO);
    const size_t columns = terminal.rewrites ? terminal.columns : SIZE_MAX;
    const int rank = rank_that_fits(columns);
    char text[PARTS * (PART_SIZE + sizeof between)] = "";
    size_t used = 0;

    for (size_t i = 0; i < line.count; i++)
        if (line.part[i].rank < rank)
            used += (size_t)snprintf(text + used, sizeof text - used, "%s%s",
                                     used ? between : "", line.part[i].text);
    while (width_of(text) >= columns)
        text[--used] = '\0';
    fprintf(stderr, terminal.rewrites ? "\r%s\033[K" : "%s\n", text);
    line.open = terminal.rewrites;
    line.shown = seconds_now();
    line.count = 0;
}

void progress_keep(void)
{
    if (line.open)
        fputc('\n', stderr);
    line.open = false;
}

void progress_erase(void)
{
    if (line.open)
        fputs("\r\033[K", stderr);
    line.open = false;
}

void progress_skipped(const tarn_skipped *skipped)
{
    char file[TARN_PATH_SIZE], reason[512], number[32] = "";

    tarn_printable(file, sizeof file, skipped->file);
    tarn_printable(reason, sizeof reason, skipped->reason);
    if (skipped->line > 0)
        snprintf(number, sizeof number, ":%zu", skipped->line);
    progress_erase();
    fprintf(stderr, "skipped %s%s: %s\n", file, number, reason);
}

/* ---- Stopping ----------------------------------------------------------- */

static volatile sig_atomic_t stop_asked, limit_reached;

/* The first signal asks to stop; the second exits at once. */
static void on_signal(int number)
{
    if (stop_asked) {
        const ssize_t ignored = write(STDERR_FILENO, "\n", 1);

        (void)ignored;
        _exit(128 + number);
    }
    stop_asked = 1;
}

static void on_limit(int number)
{
    (void)number;
    limit_reached = 1;
}

void progress_listen(void)
{
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};

    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    action.sa_handler = on_limit;
    sigaction(SIGXCPU, &action, NULL);
}

bool progress_must_stop(void)
{
    return stop_asked != 0 || limit_reached != 0;
}
