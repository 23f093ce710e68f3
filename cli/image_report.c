/* SPDX-License-Identifier: MIT */
#include "image_report.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "bench_memory.h"
#include "hardware.h"
#include "json_line.h"
#include "words.h"

static double images_per_s(const struct image_row *row)
{
    return (double)row->batch / image_timing_seconds(&row->timing);
}

/* Relative to linear attention at the same batch size; NAN: not measured. */
static double of_linear(const struct image_bench *b, const struct image_row *row)
{
    for (size_t i = 0; i < b->count; i++)
        if (b->rows[i].method == 0 && b->rows[i].batch == row->batch)
            return images_per_s(row) / images_per_s(&b->rows[i]);
    return (double)NAN;
}

static double flops(const struct image_row *row)
{
    return image_methods[row->method].counted ? image_timing_flops(&row->timing) : (double)NAN;
}

static double state_first(const struct image_row *row)
{
    return (double)row->timing.state_first / (double)row->batch;
}

static double state_last(const struct image_row *row)
{
    return (double)row->timing.streams.size;
}

static void put_memory(json_t *object, const struct image_row *row)
{
    json_put_number(object, "state_first_bytes_per_image", state_first(row));
    json_put_number(object, "state_last_bytes_per_image", state_last(row));
    json_put_count(object, "held_first_bytes", row->timing.held_first);
    json_put_count(object, "held_last_bytes", row->timing.held);
    json_put_number(object, "process_peak_bytes", bench_resident_bytes());
}

static void put_time(json_t *object, const struct image_bench *b, const struct image_row *row)
{
    const double seconds = image_timing_seconds(&row->timing), work = flops(row);

    json_put_count(object, "measured_steps", image_timing_measured(&row->timing));
    json_put_count(object, "of_steps", row->timing.steps);
    json_put_number(object, "images_per_s", images_per_s(row));
    json_put_number(object, "seconds_per_batch", seconds);
    json_put_number(object, "seconds_per_image", seconds / (double)row->batch);
    json_put_number(object, "of_linear", of_linear(b, row));
    json_put_number(object, "gflop_per_image", 1e-9 * work);
    json_put_number(object, "fma_f32_gflops", b->peak);
    json_put_number(object, "of_peak", 1e-9 * work * images_per_s(row) / b->peak);
}

static void print_json(const struct image_bench *b, const struct image_row *row)
{
    char processor[128];
    json_t *const object = json_object();

    hardware_name(processor, sizeof processor);
    json_put_text(object, "preset", b->preset);
    json_put_text(object, "weights", "random");
    json_put_text(object, "method", image_methods[row->method].about.name);
    json_put_text(object, "attention", image_methods[row->method].attention);
    json_put_text(object, "generator", image_methods[row->method].method);
    json_put_text(object, "precision", row->timing.desc.precision);
    json_put_count(object, "batch", row->batch);
    json_put_count(object, "image_bytes", b->length);
    json_put_text(object, "processor", processor);
    json_put_text(object, "cpu", b->cpu ? b->cpu : tarn_cpu_name(0));
    json_put_count(object, "threads", b->threads);
    json_put_number(object, "budget_s", b->budget);
    json_put_count(object, "repeat", b->repeat);
    put_time(object, b, row);
    put_memory(object, row);
    json_print_line(object);
}

static void print_head(const struct image_bench *b)
{
    char processor[128];

    hardware_name(processor, sizeof processor);
    printf("%s, instruction set %s, %zu thread%s, peak %.1f GFLOP/s\n", processor,
           b->cpu ? b->cpu : tarn_cpu_name(0), b->threads, b->threads == 1 ? "" : "s", b->peak);
    printf("%s with random weights, %s, images of %zu bytes\n\n", b->preset, b->precision,
           b->length);
    printf("%-16s %5s %9s %8s %7s %9s %20s\n", "method", "batch", "images/s", "s/image",
           "of peak", "steps", "state");
}

enum { SIZE_TEXT = 16, STATE_TEXT = 2 * SIZE_TEXT + 4 };

static void describe_state(char text[STATE_TEXT], const struct image_row *row)
{
    char first[SIZE_TEXT], last[SIZE_TEXT];

    words_bytes(first, sizeof first, state_first(row));
    words_bytes(last, sizeof last, state_last(row));
    if (strcmp(first, last) == 0)
        snprintf(text, STATE_TEXT, "%s", first);
    else
        snprintf(text, STATE_TEXT, "%s to %s", first, last);
}

/* Within 80 columns; JSON has all numbers. */
static void print_row(const struct image_bench *b, const struct image_row *row)
{
    const double of_peak = 1e-9 * flops(row) * images_per_s(row) / b->peak;
    char peak[16] = "-", steps[48], state[STATE_TEXT];

    if (isfinite(of_peak))
        snprintf(peak, sizeof peak, "%.3f", of_peak);
    snprintf(steps, sizeof steps, "%zu/%zu", image_timing_measured(&row->timing),
             row->timing.steps);
    describe_state(state, row);
    printf("%-16s %5zu %9.4g %8.4g %7s %9s %20s\n", image_methods[row->method].about.name,
           row->batch, images_per_s(row), 1.0 / images_per_s(row), peak, steps, state);
}

static void print_tail(void)
{
    char bytes[32];

    words_bytes(bytes, sizeof bytes, bench_resident_bytes());
    printf("\nTime includes sampling; the state is that of one image, first to last byte.\n"
           "Peak memory of this process: %s.\n",
           bytes);
}

void image_report(const struct image_bench *b)
{
    if (!b->json)
        print_head(b);
    for (size_t i = 0; i < b->count; i++)
        if (b->json)
            print_json(b, &b->rows[i]);
        else
            print_row(b, &b->rows[i]);
    if (!b->json)
        print_tail();
}
