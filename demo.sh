#!/bin/sh
# SPDX-License-Identifier: MIT
# ./demo.sh - builds tarn and shows the models in models/: generated digits, completions of
# half-shown digits, a scene of a play, a spoken number transcribed as it arrives; then compares the
# speed of three ways to generate images with a transformer.
#
# With TARN_DATA=FOLDER and the MNIST files in FOLDER/mnist, handwritten digits are completed;
# otherwise the digits to complete are generated first. The number is spoken by espeak-ng.
set -eu
cd "$(dirname "$0")"

tools/setup.sh demo
cmake --preset release >/dev/null
cmake --build --preset release --target tarn_program

tarn=build/release/tarn
model=models/mnist.safetensors
out=build/demo
mkdir -p "$out"

# as_spoken FILE BYTES: the samples of a WAV file, of so many bytes per second, as fast as they are
# spoken, in pieces of a tenth of a second.
as_spoken() {
    tail -c +45 "$1" | (
        left=$(($(wc -c <"$1") - 44))
        while [ "$left" -gt 0 ]; do
            head -c $(($2 / 10))
            left=$((left - $2 / 10))
            sleep 0.1
        done
    )
}

printf '\n64 digits, generated pixel by pixel by a transformer that runs as a recurrent network:\n\n'
$tarn generate $model -n 64 --seed 7 -o "$out/digits.png"

given=${TARN_DATA:+$TARN_DATA/mnist}
if [ -z "$given" ] || [ ! -d "$given" ]; then
    given=$out/given/
    $tarn generate $model -n 8 --seed 11 -o "$given" >/dev/null
fi
printf '\nThe model sees the upper half and completes it, three times: shown | completed | original\n\n'
$tarn complete $model --data "$given" --images 8 --seed 3 -o "$out/completions.png"

printf '\nA scene, written byte by byte after the words "ROMEO:":\n\nROMEO:'
$tarn generate models/shakespeare.safetensors --prompt 'ROMEO:' -n 600 --temperature 0.8 --seed 5
echo

if command -v espeak-ng >/dev/null; then
    printf '\nespeak-ng says "seven, three, nine, zero, four", transcribed as it arrives:\n\n'
    espeak-ng -v en-us -s 130 -w "$out/number.wav" 'seven, three, nine, zero, four.'
    as_spoken "$out/number.wav" 44100 |
        $tarn transcribe models/spoken-digits.safetensors - --stream --rate 22050
else
    printf '\nespeak-ng is not installed: no spoken number is transcribed.\n'
fi

printf '\nSpeed of a transformer of this size with three methods, as compared in the paper:\n\n'
$tarn bench image --like $model --method linear:64,stateful-softmax:64,softmax:1 --budget 4

printf '\nPictures: %s/digits.png and %s/completions.png\n' "$out" "$out"
printf 'Time and memory of attention against sequence length: %s bench attention --demo\n' "$tarn"
