#!/bin/sh
# SPDX-License-Identifier: MIT
# tests/cli_speech.sh PROGRAM MAKER - speech: a model learns tones, is stopped and resumed,
# evaluated and used alone; and what becomes of data and files that are not as they should be.
set -u
. "$(dirname "$0")/expect.sh"
maker=$(cd "$(dirname "$2")" && pwd)/$(basename "$2")
[ -x "$maker" ] || { echo "no program $maker" && exit 1; }
cd "$folder" || exit 1
mkdir empty
path=$folder/empty # no gnuplot, which takes a while to start

"$maker" tones 64 16 || exit 1

same() {
    cmp -s "$1" "$2" || fail "$1 and $2 differ"
}

# The error rate that the last command printed as JSON is below a number.
rate_below() {
    tail -n 1 "$out" | sed 's/.*"error_rate":\([0-9.e-]*\).*/\1/' |
        awk -v most="$1" '{ exit !($1 < most) }' || fail "error rate: $(tail -n 1 "$out")"
}

# ---- Refusals -------------------------------------------------------------------------------

tiny="--preset speech-tiny --layers 1 --batch 8 --threads 1"
expect 2 'data is required for task .speech.' train speech --out a
expect 1 'missing' train speech --data missing --out a
expect 1 'empty' train speech --data empty --out a
expect 2 'kind is .letters.; it must be one of phones, characters, words' \
    train speech:kind=letters --data tones --out a
expect 2 'length is 7; it must be 0 or' train speech $tiny --data tones --out a --length 7
expect 2 'position is .add.; it must be none' train speech $tiny --data tones --out a --body lstm \
    --position add
expect 2 '--epochs and --steps cannot be used together' train speech --data tones --out a --epochs 1 --steps 3
expect 2 'epochs: task .copy. generates endless data' train copy --out a --epochs 1
expect 2 'cache: task .copy. does not use it' train copy --out a --cache features
expect 0 'speech-paper  *speech model of the paper' train speech --help
expect 0 ':kind=phones|characters|words' train --help
[ -e a ] && fail "a refused run made its folder"

# ---- Learning -------------------------------------------------------------------------------

expect 0 'error_rate' train speech $tiny --data tones --out learnt --steps 300 --lr 0.003 \
    --eval-every 100 --cache features --json --causal
[ "$(ls features | wc -l)" -eq 80 ] || fail "not 80 features in the cache"
expect 0 '"error_rate"' eval learnt --data tones --json
rate_below 0.1
prints '"labels":' '"substitutions":' '"insertions":' '"deletions":' '"utterances":16' \
    '"skipped":0'
expect 0 'error_rate' eval learnt/model.safetensors --data tones --beam 4 --threads 1
expect 0 '"error_rate"' eval learnt --best --data tones --json --beam 4
rate_below 0.1

expect 2 "eval: --length cannot be used with a speech model" eval learnt --data tones --length 5

for more in '--attention softmax' '--attention lsh:rounds=1,chunk=16' \
    '--body lstm --heads 1 --head-width 32' '--stack 2 --dropout 0.1'; do
    expect 0 'error_rate' train speech:masks=1,speed=0.1 $tiny --data tones --out other \
        --steps 2 --eval-every 2 $more
    expect 0 'error_rate' eval other
    expect 0 '' transcribe other tones/test/0.wav --threads 1
    rm -r other
done
expect 0 '9 layers, 6 heads of width 32' train speech --preset speech-paper --batch 1 --data tones \
    --out paper --steps 1 --eval-batches 1 --threads 1
expect 0 'frames  *40' inspect paper

# ---- Epochs, stops and resumes --------------------------------------------------------------

expect 0 '16 updates' train speech $tiny --data tones --out epochs --epochs 2
expect 0 '8 updates' train speech $tiny --data tones --out half --epochs 1
expect 0 'resuming after update 8' train speech --out half --resume --epochs 2
same epochs/model.safetensors half/model.safetensors
expect 0 '4 updates' train speech $tiny --data tones --out sums --epochs 1 --accumulate 2
expect 0 '16 updates' train speech $tiny --data tones --out threads --epochs 2 --threads 2 \
    --cache features
same epochs/model.safetensors threads/model.safetensors
printf '%0999d' 7 >text
expect 0 '8 updates' train text --preset tiny --layers 1 --length 9 --batch 13 --data text \
    --out text_out --epochs 1
cp -r tones other
sed 's/AA/ZZ/' other/train.tsv >table && mv table other/train.tsv
expect 2 'symbols and the blank; the task needs 5 in all' train speech --out half --resume \
    --data other --epochs 3
sed 's/D/DH/g' tones/train.tsv >other/train.tsv
sed 's/D/DH/g' tones/test.tsv >other/test.tsv
sed -i "s|\"data\":\"tones\"|\"data\":\"other\"|g" half/*.safetensors 2>/dev/null
expect 2 'data is .*as in\|was trained on other data' train speech --out half --resume \
    --data other --epochs 3

# ---- Data with holes ------------------------------------------------------------------------

rm -r other
cp -r tones other
: >other/train/1.wav
rm other/train/2.wav
printf 'train/3.wav\tAA AA AA AA AA AA AA AA AA AA AA AA AA AA AA AA AA AA AA AA AA AA AA AA' \
    >>other/train.tsv
printf ' AA AA AA AA AA AA AA AA AA AA AA AA AA AA AA AA AA AA AA AA AA AA AA AA AA\n' \
    >>other/train.tsv
printf 'odd/none.wav\tAA\nodd/silence.wav\tB\nodd/eight.wav\tAA B\nodd/float.wav\tAA B\n' \
    >>other/train.tsv
printf 'odd/stereo.wav\tAA B\nno tab here\n' >>other/train.tsv
printf 'test/3.wav\tUNHEARD\n' >>other/test.tsv
expect 0 '2 updates' train speech $tiny --data other --out holes --steps 2
prints 'skipped other/train.tsv:3: .*1.wav: is empty' 'skipped other/train.tsv:4: .*2.wav' \
    'skipped other/train.tsv:66: .*frames of 30 ms; its transcript of 49 symbols needs 97' \
    'skipped other/train.tsv:67: .*none.wav: has 0 samples' \
    'skipped other/train.tsv:72: ' "skipped other/test.tsv:18: symbol 'UNHEARD'"
[ "$(grep -c '^skipped' err)" -eq 6 ] || fail "not 6 utterances were skipped: $(cat err)"
expect 1 'other/train.tsv:\|other/test.tsv:' train speech $tiny --data other --out strict \
    --steps 2 --strict
expect 0 '"skipped":1' eval learnt --data other --json --threads 1
prints "skipped other/test.tsv:18: symbol 'UNHEARD' is not one of the 4"
expect 1 'other/test.tsv:18: symbol' eval learnt --data other --strict

expect 0 'parameters' import learnt/model.safetensors imported.safetensors

# ---- Transcribing ---------------------------------------------------------------------------

expect 0 'usage: tarn transcribe MODEL AUDIO\.\.\.' transcribe --help
expect 2 'AUDIO is required' transcribe learnt
expect 2 'MODEL is required' transcribe
expect 2 '--rate is for raw samples on standard input; it requires --stream' transcribe learnt tones/test/0.wav --rate 16000
expect 2 "text_out is a model of task 'text'; it must be a speech model" transcribe text_out \
    tones/test/0.wav
expect 2 "learnt is a speech model (task 'speech.*'), which cannot generate; use tarn transcribe" generate learnt
expect 2 'AUDIO is -, standard input, which requires --stream' transcribe learnt -
expect 2 '--rate is for raw samples on standard input; AUDIO must be -' transcribe learnt tones/test/0.wav \
    --stream --rate 16000
expect 2 '--longest cannot be used with --stream' transcribe learnt tones/test/0.wav --stream \
    --longest 5
cp learnt/model.safetensors alone.safetensors
for name in eight float stereo; do
    expect 0 '^AA B$' transcribe alone.safetensors tones/odd/$name.wav --threads 1
done
for name in slow silence; do # which sound like nothing that it learnt from
    expect 0 '' transcribe alone.safetensors tones/odd/$name.wav --threads 1
    [ "$(wc -l <out)" -eq 1 ] || fail "$name: $(cat out)"
done
expect 0 '"text":"AA B","seconds":.*"symbols":\[{"symbol":"AA","begin":0.*"confidence":0' \
    transcribe alone.safetensors tones/odd/float.wav --json
expect 0 '^AA B$' transcribe alone.safetensors tones/odd/float.wav --beam 8
expect 0 ' 0 skipped, 0 missing' import alone.safetensors imported.safetensors
expect 0 '^AA B$' transcribe imported.safetensors tones/odd/float.wav
: >zero.wav
expect 1 "$(printf '^tones/odd/float.wav\tAA B$')" transcribe alone.safetensors zero.wav \
    tones/odd/none.wav missing.wav tones/odd/float.wav text
prints 'zero.wav: is empty' 'none.wav: has 0 samples' 'missing.wav: No such file' \
    'text: is damaged or not an audio file'
expect 1 '"error":' transcribe alone.safetensors zero.wav tones/odd/float.wav --json
prints '"text":"AA B"'
expect 1 'zero.wav' transcribe alone.safetensors zero.wav tones/odd/float.wav --strict
grep -q 'AA B' out && fail "--strict goes on behind a file that is bad"
expect 1 'seconds long; expected at most' transcribe alone.safetensors tones/odd/float.wav --longest 0.1

# ---- As it arrives --------------------------------------------------------------------------

expect 0 '^AA B$' transcribe alone.safetensors tones/odd/float.wav --stream
expect 2 'is not causal' transcribe holes tones/odd/float.wav --stream
expect 2 'beam is 4; it must be 0' transcribe alone.safetensors tones/odd/float.wav --stream \
    --beam 4
for i in 0 1 2 3 4 5 6 7; do
    "$tarn" transcribe alone.safetensors tones/test/$i.wav >whole
    "$tarn" transcribe alone.safetensors tones/test/$i.wav --stream >pieces
    "$tarn" transcribe alone.safetensors - --stream <tones/test/$i.wav >input
    (head -c 3001 tones/test/$i.wav && sleep 0.05 && tail -c +3002 tones/test/$i.wav) |
        "$tarn" transcribe alone.safetensors - --stream >pipe
    tail -c +45 tones/test/$i.wav |
        "$tarn" transcribe alone.safetensors - --stream --rate 16000 >raw
    for got in pieces input pipe raw; do
        cmp -s whole $got || fail "tones/test/$i.wav: $got: $(cat $got), expected $(cat whole)"
    done
done
expect 0 '^{"symbol":"B","begin":' transcribe alone.safetensors tones/odd/float.wav --stream \
    --json
prints '^{"file":"tones/odd/float.wav","seconds":.*"count":2}'
printf '' | "$tarn" transcribe alone.safetensors - --stream 2>err && fail "nothing is heard"
grep -q 'standard input: is damaged or not an audio file' err || fail "nothing: $(cat err)"

# A symbol is told before the sound has ended.
mkfifo pipe.wav
"$tarn" transcribe alone.safetensors - --stream --rate 16000 <pipe.wav >soon &
run=$!
exec 3>pipe.wav
tail -c +45 tones/test/0.wav >&3
i=0
until grep -q '[A-Z]' soon || [ $i -gt 6000 ]; do
    sleep 0.02
    i=$((i + 1))
done
grep -q '[A-Z]' soon || fail "no symbol before the end of the sound"
exec 3>&-
wait $run || fail "a stream fails at its end"
[ "$(cat soon)" = "$("$tarn" transcribe alone.safetensors tones/test/0.wav)" ] ||
    fail "a stream says $(cat soon)"

exit $failed
