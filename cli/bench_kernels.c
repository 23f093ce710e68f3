/* SPDX-License-Identifier: MIT */
/* bench_kernels.c - every vector loop at many widths with every instruction set of this
 * machine, to find those that are slow: a row that takes longer than a wider one, or an
 * instruction set slower than a narrower one. */
#include <string.h>

#include "bench.h"

struct options {
    struct bench_options common;
    const char *loop;
    size_t width;
};

static const struct args_option options[] = {
    {"loop", "NAME", ARGS_TEXT, NULL, AT(loop), 0, 0,
     "measure only this loop and print every width"},
    {"width", "N", ARGS_COUNT, "0", AT(width), 0, TARN_LOOP_WIDTH_MAX,
     "measure only this width; 0: widths from 1 to 1024"},
    BENCH_JSON("loop, width and instruction set"),
    {0},
};

/* ---- Cases -------------------------------------------------------------- */

enum {
    SETS_MAX = 8,
    WIDTHS_MAX = 64,
    TEXT = 128,
    PASSES_MAX = 10 /* over the widths of a loop, while one of them looks slow */
};

static const double gap_factor = 1.5, slower_factor = 1.25;

static const size_t all_widths[] = {1,   2,   3,   4,   5,   7,   8,   9,   12,   15,
                                    16,  17,  20,  24,  28,  31,  32,  33,  40,   47,
                                    48,  49,  56,  63,  64,  65,  80,  96,  100,  112,
                                    127, 128, 130, 160, 200, 256, 300, 512, 1000, 1024};

/* A loop: nanoseconds per float for each width and instruction set. */
struct loop {
    size_t index, widths, sets;
    const size_t *width;
    double ns[WIDTHS_MAX][SETS_MAX];
    char slow[WIDTHS_MAX][TEXT]; /* with which sets, and why */
};

static size_t count_loops(void)
{
    size_t count = 0;

    while (tarn_loop_name(count))
        count++;
    return count;
}

static void list(struct bench_run *run)
{
    const struct options *const v = run->values;
    struct loop *const cases = bench_cases(run, count_loops());

    run->count = 0;
    for (size_t i = 0; tarn_loop_name(i); i++) {
        if (v->loop && strcmp(v->loop, tarn_loop_name(i)) != 0)
            continue;
        cases[run->count] = (struct loop){
            .index = i,
            .widths = v->width ? 1 : sizeof all_widths / sizeof all_widths[0],
            .width = v->width ? &v->width : all_widths,
        };
        while (tarn_cpu_name(cases[run->count].sets) && cases[run->count].sets < SETS_MAX)
            cases[run->count].sets++;
        run->count++;
    }
    bench_title(run, "Nanoseconds per float on one thread");
    if (run->count == 0)
        refuse_name("loop", v->loop, tarn_loop_name);
}

/* A row of this width takes longer than one that is wider, at most twice as wide. */
static bool is_gap(const struct loop *t, size_t i, size_t set)
{
    const double row = t->ns[i][set] * (double)t->width[i];

    for (size_t j = i + 1; j < t->widths && t->width[j] <= 2 * t->width[i]; j++)
        if (row > gap_factor * t->ns[j][set] * (double)t->width[j])
            return true;
    return false;
}

/* Instruction sets are in order, the best first. */
static bool is_slower(const struct loop *t, size_t i, size_t set)
{
    for (size_t j = set + 1; j < t->sets; j++)
        if (t->ns[i][set] > slower_factor * t->ns[i][j])
            return true;
    return false;
}

/* "avx512: gap, avx2: >"; says whether there is something to say. */
static bool describe_slow(struct loop *t, size_t i)
{
    size_t used = 0;

    t->slow[i][0] = '\0';
    for (size_t set = 0; set < t->sets; set++)
        if (is_gap(t, i, set) || is_slower(t, i, set))
            used +=
                (size_t)snprintf(t->slow[i] + used, TEXT - used, "%s%s: %s", used ? ", " : "",
                                 tarn_cpu_name(set), is_gap(t, i, set) ? "gap" : ">");
    return used > 0;
}

/* Every width once. Other work on the machine can only make a figure larger. */
static void measure_widths(struct loop *t)
{
    for (size_t i = 0; i < t->widths; i++)
        for (size_t set = 0; set < t->sets; set++) {
            double *const best = &t->ns[i][set], ns;

            must(tarn_measure_loop(&ns, t->index, t->width[i], tarn_cpu_name(set), &failure));
            *best = *best > 0.0 && *best < ns ? *best : ns;
        }
}

/* What looks slow is measured again, with everything it is compared to, until it does not or
 * has had its chances: interruptions come and go, slow loops stay slow. */
static void measure(struct bench_run *run, void *one)
{
    struct loop *const t = one;
    bool slow = true;

    (void)run;
    for (int pass = 0; pass < PASSES_MAX && slow; pass++) {
        measure_widths(t);
        slow = false;
        for (size_t i = 0; i < t->widths; i++)
            slow |= describe_slow(t, i);
    }
}

/* ---- Report ------------------------------------------------------------- */

static void put_object(const struct bench_run *run, const struct loop *t, size_t i, size_t set)
{
    struct bench_record r = {0};

    bench_text(&r, "loop", NULL, tarn_loop_name(t->index));
    bench_count(&r, "width", NULL, t->width[i]);
    bench_text(&r, "cpu", NULL, tarn_cpu_name(set));
    bench_number(&r, "nanoseconds_per_float", NULL, t->ns[i][set]);
    bench_bool(&r, "gap", is_gap(t, i, set));
    bench_bool(&r, "slower_than_narrower", is_slower(t, i, set));
    bench_report(run, &r);
}

static void put_row(const struct bench_run *run, const struct loop *t, size_t i)
{
    struct bench_record r = {0};

    bench_text(&r, NULL, "loop", tarn_loop_name(t->index));
    bench_count(&r, NULL, "width", t->width[i]);
    for (size_t set = 0; set < t->sets; set++)
        bench_number(&r, NULL, tarn_cpu_name(set), t->ns[i][set]);
    bench_text(&r, NULL, "slow", t->slow[i]);
    bench_report(run, &r);
}

/* In the table the last width and those that are slow, unless a loop was asked for. */
static void report(const struct bench_run *run, const void *one)
{
    const struct options *const v = run->values;
    const struct loop *const t = one;

    for (size_t i = 0; i < t->widths; i++) {
        for (size_t set = 0; run->options->json && set < t->sets; set++)
            put_object(run, t, i, set);
        if (!run->options->json && (v->loop || *t->slow[i] || i + 1 == t->widths))
            put_row(run, t, i);
    }
}

static void conclude(const struct bench_run *run)
{
    size_t slow = 0, rows = 0;

    for (size_t i = 0; i < run->count; i++) {
        const struct loop *const t = bench_case_at(run, i);

        rows += t->widths;
        for (size_t k = 0; k < t->widths; k++)
            slow += *t->slow[k] != '\0';
    }
    printf("\n%zu of %zu rows are slow with some instruction set\n", slow, rows);
}

const struct command bench_kernels = {
    .name = "tarn bench kernels",
    .summary = "find vector loops that are slow at some width",
    .help = "Measure the vector loops at widths from 1 to 1024 with each instruction set of "
            "this machine, on one thread with data in the first-level cache. Prints the "
            "largest width of each loop and every width that is slow: 'gap' marks a row that "
            "takes 1.5 times as long as one up to twice as wide, '>' an instruction set that "
            "takes 1.25 times as long as a narrower one. A loop with marks is measured ten "
            "times, each width by its best time, so that other work leaves none.",
    .options = options,
    .examples = "tarn bench kernels\n"
                "tarn bench kernels --loop elu1\n",
    .values = sizeof(struct options),
    .bench =
        &(const struct bench){
            .case_size = sizeof(struct loop),
            .open_one = true,
            .list = list,
            .measure = measure,
            .report = report,
            .conclude = conclude,
        },
};
