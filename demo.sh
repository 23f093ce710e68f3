#!/bin/sh
# SPDX-License-Identifier: MIT
# ./demo.sh - builds tarn and shows what linear attention is for: the time of softmax attention
# grows with the square of the sequence length, that of linear attention in proportion to it.
set -eu
cd "$(dirname "$0")"

tools/setup.sh build
cmake --preset release >/dev/null
cmake --build --preset release --target tarn_program
exec build/release/tarn bench attention --demo
