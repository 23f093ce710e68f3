/* SPDX-License-Identifier: MIT */
#include "generate_options.h"

#include <stdint.h>
#include <stdio.h>

#include "hardware.h"
#include "picture.h"
#include "terminal.h"

#define AT(field) offsetof(struct generate_options, field)

#define COUNT_MAX ((size_t)1 << 40)

const char generate_name[] = "tarn generate";

static const struct args_option rows[] = {
    {"MODEL", NULL, ARGS_OPERAND, NULL, AT(model), 1, 0,
     "a model, a checkpoint, or a folder of training"},
    {"n", "N", ARGS_COUNT, NULL, AT(count), 1, COUNT_MAX,
     "symbols of every stream [256]; for a model of images, images [16]"},
    {"length", "N", ARGS_COUNT, NULL, AT(count), 1, COUNT_MAX, "the same as -n"},
    {"prompt", "TEXT", ARGS_TEXT, NULL, AT(prompt), 0, 0,
     "what is read first, and not printed again; without one a newline where the task's "
     "symbols are bytes, else symbol 0, which separates copies; of images their first bytes, "
     "as "
     "numbers, and without one 0, black"},
    {"prompt-file", "FILE", ARGS_TEXT, NULL, AT(prompt_file), 0, 0, "likewise, from a file"},
    {"streams", "B", ARGS_COUNT, "0", AT(streams), 0, (size_t)1 << 20,
     "sequences at once, each with its own random numbers; 0: 1, or those of --load-state; of "
     "images up to 256"},
    {"temperature", "T", ARGS_NUMBER, "1", AT(temperature), 0, 1000,
     "below 1 the likely becomes likelier; 0: as --greedy"},
    {"top-k", "K", ARGS_COUNT, "0", AT(top_k), 0, SIZE_MAX, "only the K most likely; 0: all"},
    {"top-p", "P", ARGS_NUMBER, "1", AT(top_p), 0, 1,
     "only the fewest most likely whose share reaches P"},
    {"greedy", NULL, ARGS_FLAG, NULL, AT(greedy), 0, 0, "always the most likely"},
    {"seed", "S", ARGS_COUNT, "1", AT(seed), 0, SIZE_MAX, "of the random numbers"},
    {"method", "METHOD", ARGS_TEXT, NULL, AT(method), 0, 0,
     "how, see below; by default recurrent where the attention has that form"},
    {"precision", "f32|bf16", ARGS_TEXT, "f32", AT(precision), 0, 0,
     "of the weights; bf16 is read in half the time and a little less exact; for recurrent"},
    {"save-state", "FILE", ARGS_TEXT, NULL, AT(save), 0, 0,
     "where the streams stand at the end, for --load-state; Ctrl-C is an end, too"},
    {"load-state", "FILE", ARGS_TEXT, NULL, AT(load), 0, 0,
     "go on from there: with the same options the symbols are those that would have come"},
    {"o", "FILE", ARGS_TEXT, NULL, AT(out), 0, 0,
     "to a file instead of standard output; for images a PNG file, an animation if the name "
     "ends in .svg, or a folder with a PNG for each if it ends in /; needed where there is "
     "no terminal to show them on"},
    {"scale", "K", ARGS_COUNT, "0", AT(scale), 0, PICTURE_SCALE_MOST,
     "of images: " PICTURE_SCALE_HELP},
    {"best", NULL, ARGS_FLAG, NULL, AT(best), 0, 0,
     "of a folder: the model of its best validation instead of the last"},
    {"threads", "N", ARGS_COUNT, "0", AT(threads), 0, 1024, "threads; 0: all"},
    {"json", NULL, ARGS_FLAG, NULL, AT(json), 0, 0,
     "at the end one object per stream: text, symbols, seconds, steps_per_s; of images one for "
     "all: images, height, width, channels, seconds, images_per_s"},
    {0},
};

static const struct args_table tables[] = {
    {"methods", tarn_method, "method"},
    {0},
};

const struct args_command generate_command = {
    .name = generate_name,
    .help =
        "Runs a model as a recurrent network: symbol by symbol, each read before the next is "
        "chosen.",
    .options = rows,
    .tables = tables,
    .notes = "One stream is printed as it is made, several one below the other at the end. "
             "Images become one picture. " TERMINAL_RULE,
};

static int refuse(const char *why)
{
    fprintf(stderr, "%s: %s\n", generate_name, why);
    return EXIT_USAGE;
}

int generate_options_read(struct generate_options *o, int argc, char **argv)
{
    const int code = args_read(&generate_command, o, argc, argv);

    if (code != ARGS_GO_ON)
        return code;
    if (o->prompt && o->prompt_file)
        return refuse("--prompt and --prompt-file; expected one of them");
    if (o->top_p <= 0.0)
        return refuse("--top-p: '0'; expected a number above 0, up to 1");
    return hardware_cpu(&o->cpu) ? ARGS_GO_ON : EXIT_USAGE;
}

tarn_sampling generate_options_sampling(const struct generate_options *o)
{
    return (tarn_sampling){
        .temperature = o->temperature,
        .top_k = o->top_k,
        .top_p = o->top_p,
        .greedy = o->greedy || o->temperature <= 0.0,
        .seed = o->seed,
        .cpu = o->cpu,
    };
}
