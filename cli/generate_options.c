/* SPDX-License-Identifier: MIT */
#include "generate_options.h"

#include <stdint.h>
#include <stdio.h>

#include "hardware.h"
#include "model_open.h"
#include "picture.h"

#define AT(field) offsetof(struct generate_options, field)

#define COUNT_MAX ((size_t)1 << 40)

const struct args_option generate_rows[] = {
    {"MODEL", NULL, ARGS_OPERAND, NULL, AT(model), 1, 0, MODEL_HELP},
    {"n", "N", ARGS_COUNT, NULL, AT(count), 1, COUNT_MAX,
     "number of symbols (bytes of text) per stream, or of images [256 symbols, 16 images]"},
    {"length", "N", ARGS_COUNT, NULL, AT(count), 1, COUNT_MAX, "same as -n"},
    {"prompt", "TEXT", ARGS_TEXT, NULL, AT(prompt), 0, 0,
     "prompt, not echoed; models of numbers take symbols such as '5 1 4', image models the "
     "first pixel values [a newline, or 0]"},
    {"prompt-file", "FILE", ARGS_TEXT, NULL, AT(prompt_file), 0, 0,
     "read the prompt from a file"},
    {"streams", "B", ARGS_COUNT, "0", AT(streams), 0, (size_t)1 << 20,
     "sequences to generate at the same time, each with its own random numbers; 0: one, or "
     "as many as in --load-state, or up to 256 images"},
    {"temperature", "T", ARGS_NUMBER, "1", AT(temperature), 0, 1000, TEMPERATURE_HELP},
    {"top-k", "K", ARGS_COUNT, "0", AT(top_k), 0, SIZE_MAX, TOP_K_HELP},
    {"top-p", "P", ARGS_NUMBER, "1", AT(top_p), 0, 1, TOP_P_HELP},
    {"greedy", NULL, ARGS_FLAG, NULL, AT(greedy), 0, 0, GREEDY_HELP},
    {"seed", "S", ARGS_COUNT, "1", AT(seed), 0, SIZE_MAX, SEED_HELP},
    {"method", "METHOD", ARGS_TEXT, NULL, AT(method), 0, 0,
     "generation method, listed below [recurrent, if the attention supports it]"},
    {"precision", "f32|bf16", ARGS_TEXT, "f32", AT(precision), 0, 0,
     "precision of the weights; bf16 halves the memory traffic and is slightly less "
     "accurate; only for recurrent"},
    {"save-state", "FILE", ARGS_TEXT, NULL, AT(save), 0, 0,
     "save the state of all streams at the end or after Ctrl-C, for --load-state"},
    {"load-state", "FILE", ARGS_TEXT, NULL, AT(load), 0, 0,
     "continue from a saved state, as if generation had not been interrupted"},
    {"o", "FILE", ARGS_TEXT, NULL, AT(out), 0, 0,
     "write to a file instead of standard output; images: a PNG file with all of them, an "
     "animation if the name ends in .svg, or a folder with one PNG file each if it ends in /; "
     "required for images unless standard output is a terminal"},
    {"scale", "K", ARGS_COUNT, "0", AT(scale), 0, PICTURE_SCALE_MOST,
     "images: " PICTURE_SCALE_HELP},
    {"best", NULL, ARGS_FLAG, NULL, AT(best), 0, 0, BEST_HELP},
    {"threads", "N", ARGS_HOST, "0", AT(host), 0, 1024, THREADS_HELP},
    {"json", NULL, ARGS_FLAG, NULL, AT(json), 0, 0,
     "print one JSON object per stream at the end: text, symbols, seconds, steps_per_s; for "
     "images one in all: images, height, width, channels, seconds, images_per_s"},
    {0},
};

const struct args_group generate_groups[] = {
    {"most used options", "n prompt prompt-file o temperature top-k top-p greedy seed"},
    {0},
};

int generate_options_check(const struct generate_options *o)
{
    if (o->prompt && o->prompt_file)
        return command_refuse(
            &cmd_generate,
            "--prompt and --prompt-file cannot be used together; give one of them");
    if (o->top_p <= 0.0)
        return command_refuse(&cmd_generate, TOP_P_IS_0);
    return ARGS_GO_ON;
}

tarn_sampling generate_options_sampling(const struct generate_options *o)
{
    return (tarn_sampling){
        .temperature = o->temperature,
        .top_k = o->top_k,
        .top_p = o->top_p,
        .greedy = o->greedy || o->temperature <= 0.0,
        .seed = o->seed,
    };
}
