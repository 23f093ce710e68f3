#!/bin/sh
# SPDX-License-Identifier: MIT
# ./demo.sh - builds tarn, generates digits with the model in models/, completes half-shown digits,
# and compares the speed of three ways to generate images with a transformer.
#
# With TARN_DATA=FOLDER and the MNIST files in FOLDER/mnist, handwritten digits are completed;
# otherwise the digits to complete are generated first.
set -eu
cd "$(dirname "$0")"

tools/setup.sh build
cmake --preset release >/dev/null
cmake --build --preset release --target tarn_program

tarn=build/release/tarn
model=models/mnist.safetensors
out=build/demo
mkdir -p "$out"

printf '\n64 digits, generated pixel by pixel by a transformer that runs as a recurrent network:\n\n'
$tarn generate $model -n 64 --seed 7 -o "$out/digits.png"

given=${TARN_DATA:+$TARN_DATA/mnist}
if [ -z "$given" ] || [ ! -d "$given" ]; then
    given=$out/given/
    $tarn generate $model -n 8 --seed 11 -o "$given" >/dev/null
fi
printf '\nThe model sees the upper half and completes it, three times: shown | completed | original\n\n'
$tarn complete $model --data "$given" --images 8 --seed 3 -o "$out/completions.png"

printf '\nSpeed of a transformer of this size with three methods, as compared in the paper:\n\n'
$tarn bench image --like $model --method linear:64,stateful-softmax:64,softmax:1 --budget 4

printf '\nPictures: %s/digits.png and %s/completions.png\n' "$out" "$out"
printf 'Time and memory of attention against sequence length: %s bench attention --demo\n' "$tarn"
