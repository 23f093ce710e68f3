/* SPDX-License-Identifier: MIT */
#include "command.h"

const struct command cmd_bench = {
    .name = "tarn bench",
    .summary = "measure the speed and memory of attention and models",
    .help = "Measure speed and memory, each compared with the limits of this machine. Figures "
            "and tables are those of the paper.",
    .rows = (const struct command *const[]){&bench_peak, &bench_kernels, &bench_attention,
                                            &bench_train, &bench_generate, &bench_image,
                                            &bench_speech, &bench_threads, NULL},
    .examples = "tarn bench peak\n"
                "tarn bench attention --demo\n"
                "tarn bench image --preset mnist-paper --method linear,softmax\n",
};
