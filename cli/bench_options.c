/* SPDX-License-Identifier: MIT */
#include "bench_options.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench_report.h"
#include "hardware.h"
#include "plot.h"

#define AT(field) offsetof(struct bench_options, field)

enum { TOKENS = 65536 }; /* batch times length in the paper's figure */

#define LENGTH_MAX ((size_t)1 << 40)

const struct args_option bench_option_rows[] = {
    {"attention", "SPEC[;SPEC...]", ARGS_TEXT, bench_methods_figure, AT(attention), 0, 0,
     "attention methods to compare, listed below"},
    {"feature-map", "SPEC", ARGS_TEXT, NULL, AT(feature_map), 0, 0,
     "feature map of the methods that use one [elu]"},
    {"causal", NULL, ARGS_FLAG, NULL, AT(causal), 0, 0,
     "causal attention: a position attends only to itself and earlier ones"},
    {"length", "N", ARGS_COUNT, "0", AT(length), 0, LENGTH_MAX,
     "a single sequence length; 0: those of --lengths"},
    {"lengths", "LO..HI", ARGS_TEXT, "512..65536", AT(range), 0, 0,
     "sequence lengths: LO, doubled up to HI"},
    {"batch", "B", ARGS_COUNT, "0", AT(batch), 0, LENGTH_MAX,
     "batch size; 0: 65536 / length, so that the number of tokens stays the same"},
    {"heads", "H", ARGS_COUNT, "8", AT(heads), 1, (size_t)1 << 20, "number of attention heads"},
    {"head-width", "D", ARGS_COUNT, "32", AT(head_width), 1, (size_t)1 << 20,
     "width of queries and keys per head"},
    {"value-width", "M", ARGS_COUNT, "0", AT(value_width), 0, (size_t)1 << 20,
     "width of values per head; 0: as --head-width"},
    {"layout", "bnhd|bhnd", ARGS_TEXT, "bhnd", AT(layout), 0, 0,
     "memory layout of the arrays: batch, length, heads, width or batch, heads, length, "
     "width"},
    {"threads", "N", ARGS_COUNT, "0", AT(threads), 0, 1024, THREADS_HELP},
    {"memory-limit", "BYTES", ARGS_BYTES, "0", AT(memory_limit), 0, (size_t)1 << 50,
     "skip what needs more memory; 0: half of the installed memory"},
    {"time-limit", "SECONDS", ARGS_SECONDS, "600", AT(time_limit), 0, 0,
     "skip what is expected to take longer per forward and backward pass"},
    {"repeat", "N", ARGS_COUNT, "0", AT(repeat), 0, 1000000,
     "repetitions; the fastest counts; 0: for a second, at least 3, or 2 if they take over "
     "10 s"},
    {"rounds", "N", ARGS_COUNT, "1", AT(rounds), 1, 1000000,
     "repetitions of the whole table; the fastest of each row counts, so that a busy minute "
     "does not distort single rows"},
    {"forward-only", NULL, ARGS_FLAG, NULL, AT(forward_only), 0, 0,
     "measure only the forward pass"},
    {"seed", "S", ARGS_COUNT, "1", AT(seed), 0, SIZE_MAX,
     "random seed of arrays, features and hashes"},
    {"json", NULL, ARGS_FLAG, NULL, AT(json), 0, 0, "print one JSON object per row"},
    {"csv", "FILE", ARGS_TEXT, NULL, AT(csv), 0, 0, "write the table as CSV"},
    {"plot", "FILE", ARGS_TEXT, NULL, AT(plot), 0, 0,
     "draw the results with gnuplot as .svg or .png, and write them to --csv, or to a .csv "
     "file of the same name"},
    {"demo", NULL, ARGS_FLAG, NULL, AT(demo), 0, 0,
     "a short demonstration: softmax and linear attention up to length 8192"},
    {0},
};

const struct args_group bench_option_groups[] = {
    {"most used options", "attention lengths length causal threads demo plot csv json"},
    {"sizes", "batch heads head-width value-width layout feature-map seed"},
    {"measurement", "repeat rounds forward-only memory-limit time-limit"},
    {0},
};

const struct args_table bench_option_tables[] = {
    {"attention, with options as in lsh:rounds=4,chunk=32 (lsh-4 is short for lsh:rounds=4, "
     "softmax-stored for softmax:store=1)",
     tarn_attention_kind, "attention"},
    {"feature maps", tarn_feature_map, "feature-map"},
    {0},
};

/* ---- reading ------------------------------------------------------------ */

static int refuse(const char *option, const char *text, const char *expected)
{
    fprintf(stderr, "%s: --%s is '%.80s'; it must be %s\n", bench_attention.name, option, text,
            expected);
    return EXIT_USAGE;
}

static bool read_length(size_t *length, const char **text)
{
    char *end;
    const uintmax_t number = **text >= '0' && **text <= '9' ? strtoumax(*text, &end, 10) : 0;

    if (number < 1 || number > LENGTH_MAX)
        return false;
    *length = (size_t)number;
    *text = end;
    return true;
}

static int read_lengths(struct bench_options *o)
{
    const char *text = o->range;
    size_t length = o->length, last = o->length;

    if (o->length == 0) {
        bool read = read_length(&length, &text);

        last = length;
        if (read && *text) {
            read = strncmp(text, "..", 2) == 0;
            text += read ? 2 : 0;
            read = read && read_length(&last, &text);
        }
        if (!read || *text || last < length)
            return refuse("lengths", o->range, "LO..HI, such as 512..65536");
    }
    o->length_count = 0;
    for (; length <= last; length *= 2)
        o->lengths[o->length_count++] = length;
    return ARGS_GO_ON;
}

/* The numbers of "fig1.svg" go to "fig1.csv". */
static int read_files(struct bench_options *o)
{
    if (o->csv && (!*o->csv || strlen(o->csv) >= PATH_MAX_CHARS))
        return refuse("csv", o->csv, "a file name of fewer than 1024 bytes");
    if (!o->plot)
        return ARGS_GO_ON;
    if (!plot_name_is_fit(o->plot) || strlen(o->plot) >= sizeof o->csv_beside_plot)
        return refuse("plot", o->plot, "a file name that ends in .svg or .png");
    if (!o->csv) {
        snprintf(o->csv_beside_plot, sizeof o->csv_beside_plot, "%.*s.csv",
                 (int)strlen(o->plot) - 4, o->plot);
        o->csv = o->csv_beside_plot;
    }
    return ARGS_GO_ON;
}

static int read_layout(struct bench_options *o)
{
    o->heads_first = strcmp(o->layout, "bhnd") == 0;
    if (!o->heads_first && strcmp(o->layout, "bnhd") != 0)
        return refuse("layout", o->layout, "bnhd or bhnd");
    return ARGS_GO_ON;
}

static int read_methods(struct bench_options *o)
{
    if (!bench_methods_read(o->methods, &o->method_count, o->attention))
        return EXIT_USAGE;
    o->label_width = (int)strlen("attention");
    for (size_t i = 0; i < o->method_count; i++) {
        const int width = (int)strlen(o->methods[i].label);

        o->label_width = width > o->label_width ? width : o->label_width;
    }
    return ARGS_GO_ON;
}

/* Replaces zeros by the actual defaults. */
static void fill_in(struct bench_options *o)
{
    if (o->value_width == 0)
        o->value_width = o->head_width;
    if (o->threads == 0)
        o->threads = tarn_threads_default();
    if (o->memory_limit == 0)
        o->memory_limit = hardware_memory() / 2;
}

int bench_options_read(struct bench_options *o)
{
    int code;

    if (o->demo) {
        o->attention = demo_methods;
        o->range = "512..8192";
        o->length = 0;
        o->batch = 1;
        o->causal = true;
    }
    fill_in(o);
    if ((code = read_lengths(o)) != ARGS_GO_ON || (code = read_files(o)) != ARGS_GO_ON ||
        (code = read_layout(o)) != ARGS_GO_ON || (code = read_methods(o)) != ARGS_GO_ON)
        return code;
    return hardware_cpu(&o->cpu) ? ARGS_GO_ON : EXIT_USAGE;
}

size_t bench_options_batch(const struct bench_options *options, size_t length)
{
    if (options->batch > 0)
        return options->batch;
    return length < TOKENS ? TOKENS / length : 1;
}

int bench_options_refused(const tarn_error *err)
{
    return command_error(&bench_attention, err);
}
