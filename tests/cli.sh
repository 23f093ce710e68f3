#!/bin/sh
# SPDX-License-Identifier: MIT
# tests/cli.sh PROGRAM - what the program answers: exit codes, messages, JSON, CSV.
set -u
. "$(dirname "$0")/expect.sh"

expect 0 '^tarn [0-9]' --version
expect 0 '^tarn [0-9]' version
expect 2 "unexpected argument 'now'" version now
expect 0 'usage: tarn COMMAND' --help
cp "$out" "$folder/help"
expect 0 'usage: tarn COMMAND' help
cmp -s "$out" "$folder/help" || fail 'tarn help is not tarn --help'
for command in train generate help 'bench peak' 'train copy' 'data fetch'; do
    # shellcheck disable=SC2086
    {
        expect 0 "usage: tarn $command" $command --help
        cp "$out" "$folder/help"
        expect 0 "usage: tarn $command" help $command
    }
    cmp -s "$out" "$folder/help" || fail "tarn help $command is not tarn $command --help"
done
expect 0 'usage: tarn bench COMMAND' help bench
expect 2 "unknown command 'generat'; did you mean 'generate'?$" help generat
expect 2 "unknown command 'peek'; did you mean 'peak'?$" help bench peek
expect 2 'usage: tarn COMMAND'
esc=$(printf 'a\033[2Jb')
for words in "$esc" "train $esc" "inspect x $esc" "inspect --$esc" "generate x -n $esc" "help $esc"; do
    # shellcheck disable=SC2086
    expect 2 'a?\[2Jb' $words
done
expect 2 "unknown command 'benhc'; did you mean 'bench'?" benhc
expect 2 "unknown option '--hlep'; see tarn --help$" --hlep
expect 2 "unknown option '-v'; see tarn data --help$" data -v
expect 0 'attention ' bench --help
expect 2 "unknown command 'foo'; available: peak, kernels, attention, train, generate, prefill, image, speech" bench foo
expect 0 '--threads N' bench peak --help
expect 2 'did you mean --threads' bench peak --thread 2
expect 2 "--threads is '-1'; it must be a whole number from 0 to 1024" bench peak --threads=-1
expect 2 '--threads requires a value' bench peak --threads
expect 2 '--json does not take a value' bench peak --json=yes
expect 2 "unexpected argument 'now'" bench peak now
expect 0 'elu1 ' bench kernels --loop elu1 --width 32
expect 0 '"loop":"elu1","width":32,"cpu":"portable"' bench kernels --loop elu1 --width 32 --json
expect 2 "unknown loop 'elu2'; did you mean 'elu1'?" bench kernels --loop elu2
expect 2 "unknown loop 'nothing'; available: dot" bench kernels --loop nothing
# All benchmarks write the same kinds of files.
expect 0 '^tiny  *linear  *2  *8 ' bench train --preset tiny --batch 2 --length 8 --threads 1 --repeat 1 \
    --plot "$folder/train.svg"
head -n 1 "$folder/train.csv" | grep -q '^preset,attention,.*,tokens_per_s,' || fail "the CSV of bench train"
if command -v gnuplot >/dev/null; then
    grep -q '</svg>' "$folder/train.svg" || fail "no plot of bench train"
fi
expect 0 '"of_peak":[0-9]' bench train --preset tiny --batch 2 --length 8 --threads 1 --repeat 1 --json

attention() {
    code=$1
    pattern=$2
    shift 2
    expect "$code" "$pattern" bench attention --length 40 --batch 2 --heads 2 --head-width 8 \
        --repeat 1 --threads 1 "$@"
}

attention 0 'softmax-stored' --causal
# Each run measures the machine for a second, so that one run answers several questions.
attention 0 '"attention":"linear",.*"kind":"linear"' --attention 'linear;lsh-4' --json \
    --layout bhnd --forward-only --rounds 3
prints '"attention":"lsh-4",.*"kind":"lsh:rounds=4"' '"layout":"bhnd"' '"backward_s":null'
attention 0 'lsh:chunk=4,rounds=2' --attention 'softmax;lsh:chunk=4,rounds=2' \
    --csv "$folder/rows.csv"
[ "$(wc -l <"$folder/rows.csv")" -eq 3 ] &&
    grep -q '^"lsh:chunk=4,rounds=2",0,40,2,2,8,8,1,' "$folder/rows.csv" ||
    fail "the CSV: $(cat "$folder/rows.csv")"
attention 2 '--rounds' --rounds 0
attention 2 "attention: method 'foo': kind: unknown name 'foo'; available: linear" --attention foo
attention 2 "kind: 'linear' has no option 'foo'" --attention linear:foo=1
attention 2 "method 'linear': feature_map: unknown name" --attention linear --feature-map foo
attention 2 'none of the methods in --attention uses one' --attention softmax --feature-map elu
attention 2 "--layout is 'nbhd'; it must be bnhd or bhnd" --layout nbhd
attention 2 '--heads' --heads 0
attention 2 "--memory-limit is '5Q'; it must be a size such as 512M or 8G" --memory-limit 5Q
attention 1 'over --memory-limit' --memory-limit 1K --csv "$folder/rows.csv"
attention 2 "--csv is ''; it must be a file name" --csv ''
attention 1 'none/rows.csv: No such file' --csv "$folder/none/rows.csv"
attention 1 'No such file' --csv "$folder/rows.csv" --plot "$folder/none/rows.png"
[ "$(wc -l <"$folder/rows.csv")" -eq 3 ] && [ ! -e "$folder/rows.csv.tmp" ] ||
    fail "a run that failed changed the CSV: $(ls "$folder") $(cat "$folder/rows.csv")"
attention 2 '.svg or .png' --plot "$folder/rows.pdf"
expect 2 "--lengths is '8..4'; it must be LO..HI" bench attention --lengths 8..4
expect 2 "--lengths is 'many'; it must be LO..HI" bench attention --lengths many

# Rounds go over all rows before a row comes again, and each is reported once.
expect 0 'lsh-1' bench attention --lengths 16..32 --batch 1 --heads 1 --head-width 8 --repeat 1 \
    --threads 1 --attention 'linear;lsh-1' --rounds 2 --csv "$folder/rounds.csv"
[ "$(cut -d, -f1,3 "$folder/rounds.csv" | tail -n +2 | tr '"\n' '  ')" = \
    " linear ,16  lsh-1 ,16  linear ,32  lsh-1 ,32 " ] ||
    fail "the CSV of two rounds: $(cat "$folder/rounds.csv")"

# Steps of a model, from one position on or from several.
steps() {
    code=$1
    pattern=$2
    shift 2
    expect "$code" "$pattern" bench generate --preset tiny --length 20 --threads 1 --repeat 1 "$@"
}

steps 0 '^recurrent  *1  *0  *20 '
steps 0 '"from":1100,' --from 7,1100 --json
[ "$(wc -l <"$out")" -eq 2 ] || fail "the rows: $(cat "$out")"
[ "$(grep -o '"state_bytes":[0-9]*' "$out" | sort -u | wc -l)" -eq 1 ] ||
    fail "the state of linear attention: $(cat "$out")"
steps 0 '"method":"recompute"' --attention softmax --method recompute --json
steps 2 "generate: method: unknown name 'foo'" --method foo
steps 2 "generate: precision: unknown name 'f8'" --precision f8
steps 2 "generate: preset: unknown name 'foo'" --preset foo
for wrong in x 1, ,1 1,x -1 1.5 '' 999999999999 1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17; do
    steps 2 "--from is '.*'; it must be up to 16 whole numbers" --from "$wrong"
done

# Whole images, and images of which some steps are measured.
image() {
    code=$1
    pattern=$2
    shift 2
    expect "$code" "$pattern" bench image --preset tiny --length 40 --threads 1 "$@"
}

image 0 '^lsh-4  *1  .* 39/39 ' --budget 1000
prints '^linear  *1  .* 39/39 ' '^stateful-softmax ' '^softmax ' '^lsh-1 .* - ' 'random weights' \
    'Peak memory of this process'
image 0 '"method":"linear".*"precision":"int8","batch":2,"image_bytes":40,' --json \
    --precision int8 --method linear:2
image 0 '"method":"linear".*"precision":"bf16","batch":2,"image_bytes":40,' --json \
    --method linear:2,softmax,stateful-softmax --batch 1,3 --budget 0.000001 --repeat 2 \
    --precision bf16
[ "$(wc -l <"$out")" -eq 5 ] || fail "the rows: $(cat "$out")"
prints '"method":"softmax".*"precision":"f32","batch":3.*"measured_steps":3,"of_steps":39,' \
    '"weights":"random"' '"of_linear":1.0' '"of_linear":null' '"process_peak_bytes":[0-9]'
# What linear attention keeps is the same from the first byte to the last, what a cache keeps is
# not.
grep '"method":"linear"' "$out" |
    grep -q '"state_first_bytes_per_image":\([0-9.]*\),"state_last_bytes_per_image":\1,' ||
    fail "the state of linear: $(cat "$out")"
grep '"method":"stateful-softmax"' "$out" |
    grep -q '"state_first_bytes_per_image":\([0-9.]*\),"state_last_bytes_per_image":\1,' &&
    fail "the state of stateful-softmax: $(cat "$out")"
expect 0 'random weights' bench image --help

# Updates on speech.
speech() {
    code=$1
    pattern=$2
    shift 2
    expect "$code" "$pattern" bench speech --preset speech-tiny --threads 1 --repeat 1 "$@"
}

speech 0 '^linear  *24  *1 ' --lengths 16,24 --frames 33 --csv "$folder/speech.csv"
prints '^bi-lstm  *16  *2 .* [0-9]' '^softmax ' '^lsh-4 .* -$' '^method .* of CTC '
[ "$(wc -l <"$folder/speech.csv")" -eq 9 ] || fail "the CSV of speech: $(cat "$folder/speech.csv")"
speech 0 '"method":"linear",.*"precision":"f32","length":24,"batch":1,"labels":3,' --lengths 24 --frames 1 --json
prints '"ctc_share":[0-9]' '"update_cpu_s":[0-9]' '"seconds_per_hour":[0-9]'
for wrong in x 0 8, ,8 8.5 ''; do
    speech 2 "--lengths is '.*'; it must be up to 16 whole numbers" --lengths "$wrong"
done
expect 2 "speech: preset: unknown name 'foo'" bench speech --preset foo
expect 0 'Table 3' bench speech --help

# ---- bench prefill: a row for each length ----
expect 0 '"length":40,.*"of_forward":[0-9]' bench prefill --preset tiny --length 40,70 --threads 1 \
    --repeat 1 --json
test "$(grep -c '"prefill_tokens_per_s":[0-9]' "$out")" = 2 || fail 'bench prefill: not two rows'
expect 2 'attention has no recurrent form' bench prefill --preset tiny --attention lsh --length 4

# ---- bench threads: rows of one thread and of two, for each kind of work ----
expect 0 'beside 1 busy process\.' bench threads --threads 2 --busy 1 --seconds 0.02
test "$(grep -cE '^(train|generate) +(tiny|mnist-paper) +[0-9]+ +[12] ' "$out")" = 6 ||
    fail 'bench threads does not print six rows'
expect 0 '"threads":1,"busy":1,"alone_tokens_per_s":[0-9]' bench threads --threads 1 --busy 1 \
    --seconds 0.02 --json
test "$(grep -c '"of_one_thread":1' "$out")" = 3 || fail 'bench threads: one row for each work'
expect 2 "--busy.*'257'" bench threads --busy 257

expect 0 'images of 3072 bytes' bench image --preset cifar-paper --method linear --budget 0.001
image 2 "--method is 'foo'; it must be a list of linear" --method foo
image 2 '--method' --method linear,
image 2 '--method' --method linear:0
image 2 '--method' --method linear:2x
image 2 "--batch is '1,x'; it must be up to 16 whole numbers" --batch 1,x
image 2 '--batch' --batch ''
image 2 "--length is '1'; it must be at least 2" --length 1
image 1 'none: No such file' --like none
image 2 "--precision is 'f16'; it must be f32, bf16, int8 or bf16-inputs" --precision f16
image 2 '--budget' --budget 0
image 2 "image: preset: unknown name 'foo'; available: copy-paper" --preset foo
image 2 'is not causal' --preset speech-paper
image 1 'not enough memory for 1048576 streams of' --preset mnist-paper --method linear:1048576

# Without gnuplot the numbers are there and the picture is not.
mkdir "$folder/empty"
path=$folder/empty
attention 0 'gnuplot is not installed' --attention linear --plot "$folder/fig.svg"
[ -s "$folder/fig.csv" ] && [ ! -e "$folder/fig.svg" ] || fail "--plot without gnuplot"

export TARN_CPU=z80
expect 2 "TARN_CPU is 'z80', which is not supported here; available: .*portable" bench peak

exit $failed
