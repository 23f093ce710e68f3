/* SPDX-License-Identifier: MIT */
/* bench_kernels.c - every vector loop at many widths with every instruction set of this
 * machine, to find those that are slow: a row that takes longer than a wider one, or an
 * instruction set slower than a narrower one. */
#include <stdio.h>
#include <string.h>

#include "command.h"
#include "hardware.h"
#include "json_line.h"
#include "tarn/tarn.h"

struct values {
    const char *loop;
    size_t width;
    bool json;
};

static const struct args_option options[] = {
    {"loop", "NAME", ARGS_TEXT, NULL, offsetof(struct values, loop), 0, 0,
     "measure only this loop and print every width"},
    {"width", "N", ARGS_COUNT, "0", offsetof(struct values, width), 0, TARN_LOOP_WIDTH_MAX,
     "measure only this width; 0: widths from 1 to 1024"},
    {"json", NULL, ARGS_FLAG, NULL, offsetof(struct values, json), 0, 0,
     "print one JSON object per loop, width and instruction set"},
    {0},
};

enum { SETS_MAX = 8, WIDTHS_MAX = 64 };

static const double tolerance = 1.3; /* of a machine that does other things, too */

static const size_t all_widths[] = {1,   2,   3,   4,   5,   7,   8,   9,   12,   15,
                                    16,  17,  20,  24,  28,  31,  32,  33,  40,   47,
                                    48,  49,  56,  63,  64,  65,  80,  96,  100,  112,
                                    127, 128, 130, 160, 200, 256, 300, 512, 1000, 1024};

/* Of one loop: nanoseconds per float for each width and instruction set. */
struct table {
    size_t loop, widths, sets;
    const size_t *width;
    double ns[WIDTHS_MAX][SETS_MAX];
};

static tarn_status measure(struct table *t, tarn_error *err)
{
    tarn_status status = TARN_OK;

    for (size_t i = 0; i < t->widths; i++)
        for (size_t set = 0; status == TARN_OK && set < t->sets; set++)
            status = tarn_measure_loop(&t->ns[i][set], t->loop, t->width[i], tarn_cpu_name(set),
                                       err);
    return status;
}

/* A row of this width takes longer than one that is wider, at most twice as wide. */
static bool is_gap(const struct table *t, size_t i, size_t set)
{
    const double row = t->ns[i][set] * (double)t->width[i];

    for (size_t j = i + 1; j < t->widths && t->width[j] <= 2 * t->width[i]; j++)
        if (row > tolerance * t->ns[j][set] * (double)t->width[j])
            return true;
    return false;
}

/* Instruction sets are in order, the best first. */
static bool is_slower(const struct table *t, size_t i, size_t set)
{
    for (size_t j = set + 1; j < t->sets; j++)
        if (t->ns[i][set] > tolerance * t->ns[i][j])
            return true;
    return false;
}

static bool is_slow(const struct table *t, size_t i)
{
    for (size_t set = 0; set < t->sets; set++)
        if (is_gap(t, i, set) || is_slower(t, i, set))
            return true;
    return false;
}

/* ---- output ------------------------------------------------------------- */

static void print_head(size_t sets)
{
    char name[128];

    hardware_name(name, sizeof name);
    printf("%s, one thread, nanoseconds per float\n\n%-16s %6s", name, "loop", "width");
    for (size_t set = 0; set < sets; set++)
        printf(" %10s     ", tarn_cpu_name(set));
    printf("\n");
}

static void print_row(const struct table *t, size_t i)
{
    printf("%-16s %6zu", tarn_loop_name(t->loop), t->width[i]);
    for (size_t set = 0; set < t->sets; set++)
        printf(" %10.3f %s%s", t->ns[i][set], is_slower(t, i, set) ? ">" : " ",
               is_gap(t, i, set) ? "gap" : "   ");
    printf("\n");
}

static void print_json(const struct table *t, size_t i, size_t set)
{
    json_t *const object = json_object();

    json_put_text(object, "loop", tarn_loop_name(t->loop));
    json_put_count(object, "width", t->width[i]);
    json_put_text(object, "cpu", tarn_cpu_name(set));
    json_put_number(object, "nanoseconds_per_float", t->ns[i][set]);
    json_put_bool(object, "gap", is_gap(t, i, set));
    json_put_bool(object, "slower_than_narrower", is_slower(t, i, set));
    json_print_line(object);
}

/* Without `everything` the last width and those that are slow. Returns how many are. */
static size_t print_table(const struct table *t, bool everything, bool json)
{
    size_t slow = 0;

    for (size_t i = 0; i < t->widths; i++) {
        slow += is_slow(t, i);
        for (size_t set = 0; json && set < t->sets; set++)
            print_json(t, i, set);
        if (!json && (everything || is_slow(t, i) || i + 1 == t->widths))
            print_row(t, i);
    }
    return slow;
}

/* ---- the command -------------------------------------------------------- */

static int measure_and_report(const struct values *values)
{
    struct table t = {.widths = sizeof all_widths / sizeof all_widths[0], .width = all_widths};
    size_t slow = 0, measured = 0;
    tarn_error err;

    if (values->width > 0) {
        t.widths = 1;
        t.width = &values->width;
    }
    while (t.sets < SETS_MAX && tarn_cpu_name(t.sets))
        t.sets++;
    if (!values->json)
        print_head(t.sets);
    for (; tarn_loop_name(t.loop); t.loop++) {
        if (values->loop && strcmp(values->loop, tarn_loop_name(t.loop)) != 0)
            continue;
        if (measure(&t, &err) != TARN_OK) {
            fprintf(stderr, "tarn bench kernels: %s\n", err.text);
            return EXIT_FAILED;
        }
        slow += print_table(&t, values->loop != NULL, values->json);
        measured += t.widths;
    }
    if (!values->json)
        printf("\n%zu of %zu rows are slow with some instruction set\n", slow, measured);
    return EXIT_DONE;
}

static bool loop_exists(const char *name)
{
    for (size_t i = 0; tarn_loop_name(i); i++)
        if (strcmp(name, tarn_loop_name(i)) == 0)
            return true;
    return false;
}

static int run(void *given)
{
    const struct values *const values = given;

    if (values->loop && !loop_exists(values->loop)) {
        fprintf(stderr, "%s: unknown loop '%.80s'; available:", bench_kernels.name,
                values->loop);
        for (size_t i = 0; tarn_loop_name(i); i++)
            fprintf(stderr, " %s", tarn_loop_name(i));
        fprintf(stderr, "\n");
        return EXIT_USAGE;
    }
    return measure_and_report(values);
}

const struct command bench_kernels = {
    .name = "tarn bench kernels",
    .summary = "find vector loops that are slow at some width",
    .help = "Measure the vector loops at widths from 1 to 1024 with each instruction set of "
            "this machine, on one thread with data in the first-level cache. Prints the "
            "largest width of each loop and every width that is slow: 'gap' marks a row that "
            "takes 1.3 times as long as one up to twice as wide, '>' an instruction set that "
            "takes 1.3 times as long as a narrower one.",
    .options = options,
    .examples = "tarn bench kernels\n"
                "tarn bench kernels --loop elu1\n",
    .values = sizeof(struct values),
    .run = run,
};
