/* SPDX-License-Identifier: MIT */
#include "command.h"

static const struct command benches[] = {
    {"peak", "measure the peak multiply-add rate and memory bandwidth", bench_peak},
    {"kernels", "find vector loops that are slow at some width", bench_kernels},
    {"attention", "time and memory of attention against sequence length: Figure 1",
     bench_attention},
    {"train", "training speed and memory of a model", bench_train},
    {"generate", "time per generated token, compared with the hardware limit", bench_generate},
    {"image", "images generated per second by each method: Tables 1, 2, 4 and 5", bench_image},
    {"speech", "speech training speed of each method: Table 3", bench_speech},
    {"threads", "speed alone and beside busy processes", bench_threads},
    {0},
};

static const struct command_group group = {
    .path = "tarn bench",
    .about = "Measure speed and memory, each compared with the limits of this machine. Figures "
             "and tables are those of the paper.",
    .rows = benches,
    .examples = "tarn bench peak\n"
                "tarn bench attention --demo\n"
                "tarn bench image --preset mnist-paper --method linear,softmax\n",
};

int cmd_bench(int argc, char **argv)
{
    return command_run(&group, argc, argv);
}
