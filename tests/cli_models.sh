#!/bin/sh
# SPDX-License-Identifier: MIT
# tests/cli_models.sh PROGRAM - the models of models/: each loads, is small, does on a small input
# what its page says, and generates or transcribes the same with any number of threads.
set -u
. "$(dirname "$0")/expect.sh"
models=$(cd "$(dirname "$0")/../models" && pwd)
cd "$folder" || exit 1

same() {
    cmp -s "$1" "$2" || fail "$1 and $2 differ"
}

# below NUMBER KEY: the value of a key in the JSON that the last command printed.
below() {
    sed "s/.*\"$2\":\([0-9.e-]*\).*/\1/" "$out" |
        awk -v most="$1" '{ exit !($1 < most) }' || fail "$2 is not below $1: $(cat "$out")"
}

# ---- Every model ------------------------------------------------------------------------------

for model in "$models"/*.safetensors; do
    name=$(basename "$model" .safetensors)
    expect 0 'parameters' inspect "$model"
    [ "$(wc -c <"$model")" -le 4000000 ] || fail "$name: is larger than 4 MB"
    grep -q "$name.safetensors" "$models/README.md" || fail "$name: models/README.md does not name it"
done

# ---- Digits -----------------------------------------------------------------------------------

expect 0 '' generate "$models/mnist.safetensors" -n 3 --seed 7 -o digits/ --threads 1
expect 0 '' generate "$models/mnist.safetensors" -n 3 --seed 7 -o again/ --threads 2
diff -r digits again >"$out" || fail "digits depend on the number of threads"
expect 0 'bits_per_dim' eval "$models/mnist.safetensors" --data digits --validation 1 --json
below 1.0 bits_per_dim

# ---- Text -------------------------------------------------------------------------------------

# Words of the time that stand in no play. A uniform guess takes 8 bits, one from the frequencies
# of English letters more than 4.
cat >scene <<END
First Gentleman:
Good morrow, sir; what news is come from Padua?

Second Gentleman:
None that I know, my lord, but that the duke
Hath sent his brother and his men to sea,
And all the city speaks of nothing else.
END
play=$models/shakespeare.safetensors
expect 0 'bits_per_byte' eval "$play" --data scene --validation 1 --length 128 --json
below 2.6 bits_per_byte
expect 0 '' generate "$play" --prompt 'ROMEO:' -n 300 --seed 3 --temperature 0.8 --threads 1
cp "$out" first
expect 0 '' generate "$play" --prompt 'ROMEO:' -n 300 --seed 3 --temperature 0.8 --threads 2
same "$out" first
[ "$(wc -c <first)" -ge 300 ] || fail "$(wc -c <first) bytes of text; expected 300"

# ---- Spoken digits ----------------------------------------------------------------------------

digits=$models/spoken-digits.safetensors
if command -v espeak-ng >/dev/null; then
    espeak-ng -v en-us -s 130 -w number.wav 'seven, three, nine.' || fail "espeak-ng: exit code $?"
    expect 0 '^SEVEN THREE NINE$' transcribe "$digits" number.wav --threads 1
    expect 0 '^SEVEN THREE NINE$' transcribe "$digits" number.wav --stream --threads 2
    tail -c +45 number.wav >raw
    "$tarn" transcribe "$digits" - --stream --rate 22050 <raw >"$out" || fail "stream: exit code $?"
    prints '^SEVEN THREE NINE$'
    printf 'audio\ttext\nnumber.wav\tSEVEN THREE NINE\n' >test.tsv
    expect 0 'error_rate' eval "$digits" --data . --json
    below 0.01 error_rate
else
    echo "no espeak-ng: the model of spoken digits hears nothing"
fi

exit $failed
