#!/bin/sh
# SPDX-License-Identifier: MIT
# ./demo.sh - builds tarn, draws digits with the model in models/, completes some of them, and
# compares how many a second three ways of computing the same transformer draw.
#
# The digits that are completed are drawn first; TARN_DATA=FOLDER with MNIST's files in FOLDER/mnist
# completes digits that people wrote.
set -eu
cd "$(dirname "$0")"

tools/setup.sh build
cmake --preset release >/dev/null
cmake --build --preset release --target tarn_program

tarn=build/release/tarn
model=models/mnist.safetensors
out=build/demo
mkdir -p "$out"

printf '\n64 digits, pixel by pixel, by a transformer that runs as a recurrent network:\n\n'
$tarn generate $model -n 64 --seed 7 -o "$out/digits.png"

given=${TARN_DATA:+$TARN_DATA/mnist}
if [ -z "$given" ] || [ ! -d "$given" ]; then
    given=$out/given/
    $tarn generate $model -n 8 --seed 11 -o "$given" >/dev/null
fi
printf '\nThe upper half is shown, the lower one drawn, three times: shown | drawn | whole\n\n'
$tarn complete $model --data "$given" --images 8 --seed 3 -o "$out/completions.png"

printf '\nA transformer of this size by three methods, the paper'\''s comparison:\n\n'
$tarn bench image --like $model --method linear:64,stateful-softmax:64,softmax:1 --budget 4

printf '\nThe pictures: %s/digits.png and %s/completions.png\n' "$out" "$out"
printf 'What attention alone takes, at growing lengths: %s bench attention --demo\n' "$tarn"
