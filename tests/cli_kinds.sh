#!/bin/sh
# SPDX-License-Identifier: MIT
# tests/cli_kinds.sh PROGRAM - a program with an attention kind of the tests, "gated"
# (support/attention_gated.c), which has a gate per head and position and a learned decay: one
# file and one row are enough to train, resume, evaluate, inspect, generate and measure it.
set -u
. "$(dirname "$0")/expect.sh"
cd "$folder" || exit 1
mkdir empty
path=$PATH

small="--preset tiny --layers 1 --heads 2 --head-width 8 --feed 16 --length 9 --batch 2
    --eval-every 10 --eval-batches 1 --threads 1 --attention gated"

expect 0 gated train copy --help
expect 0 gated bench attention --help

# Twenty updates at once and in two pieces.
expect 0 'step' train copy $small --steps 20 --out whole
expect 0 'step' train copy $small --steps 10 --out pieces
expect 0 'step' train copy --steps 20 --out pieces --resume
for file in whole pieces; do
    expect 0 'gated' inspect $file
    expect 0 'loss' eval $file
done
expect 0 'attention.decay' inspect whole --tensors
prints 'attention.gate_projection.weight' 'attention.gate_projection.bias' '2 x 1'
cmp -s whole/checkpoint-*20.safetensors pieces/checkpoint-*20.safetensors ||
    fail "a resumed training has other weights"

# Each position from the state of the one before, and all of them anew.
expect 0 . generate whole -n 12 --seed 3 --method recurrent
cp out recurrent
expect 0 . generate whole -n 12 --seed 3 --method recompute
cmp -s out recurrent || fail "the methods of generation differ"

expect 0 'gated' bench attention --attention 'gated;linear' --length 256 --causal --repeat 1 \
    --batch 1 --heads 2 --head-width 8 --threads 1
exit $failed
