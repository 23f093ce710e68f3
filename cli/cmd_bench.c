/* SPDX-License-Identifier: MIT */
#include "command.h"

static const struct command benches[] = {
    {"peak", "what this machine can do at most: multiply-adds, caches, memory", bench_peak},
    {"attention", "time and memory of the attentions at growing lengths: Figure 1 of the paper",
     bench_attention},
    {"train", "how fast a model trains, and in how much memory", bench_train},
    {"generate", "what a step of generation costs, beside what it must", bench_generate},
    {"image", "how long whole images take by each method: Tables 1, 2, 4 and 5 of the paper",
     bench_image},
    {"speech", "how long training on utterances takes by each method: Table 3 of the paper",
     bench_speech},
    {0},
};

int cmd_bench(int argc, char **argv)
{
    return command_run("tarn bench", "Measurements, each beside the limit of this machine.",
                       benches, argc, argv);
}
