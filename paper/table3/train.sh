#!/bin/sh
# SPDX-License-Identifier: MIT
# train.sh - measures the error rates of Table 3 with small models: four methods in equal CPU time, one
# thread each, on recorded and on synthetic speech; writes curves and the page.
#
#     TARN=build/release/tarn REAL=data/speech RUNS=runs/table3 paper/table3/train.sh
#
# SPOKEN is the synthetic corpus [RUNS/spoken], made if it does not exist. MINUTES_REAL and
# MINUTES_SPOKEN are CPU minutes for each method. Finished trainings are not repeated, interrupted
# ones are started again.
set -eu
page=$(cd "$(dirname "$0")" && pwd)
tools=$page/../../tools
tarn=${TARN:-$page/../../build/release/tarn}
runs=${RUNS:?"is not set; it must be the folder for the trainings"}
real=${REAL:?"is not set; it must be the folder with recorded speech"}
spoken=${SPOKEN:-$runs/spoken}
methods="linear softmax lsh-4 bi-lstm"
mkdir -p "$runs"
head -1 "$real/train.tsv" | grep -qw seconds || {
    echo "$real/train.tsv: has no column 'seconds', which the baselines need" >&2
    exit 1
}

[ -e "$spoken/test.tsv" ] || "$tools/make_speech.py" --out "$spoken" --tools flite --same-voices \
    --utterances 2000 --test 250 --seed 3

# form METHOD DROPOUT: 4 layers of 4 heads of 32 and RAdam; or an LSTM of 3 layers of 128 units per
# direction and Adam, with a quarter more parameters and without dropout.
form() {
    case $1 in
    bi-lstm) echo "--body lstm --layers 3 --heads 8 --optimizer adam" ;;
    lsh-*) echo "--attention lsh:rounds=${1#lsh-} --dropout $2" ;;
    *) echo "--attention $1 --dropout $2" ;;
    esac
}

# train DATA FOLDER SECONDS METHOD TASK DROPOUT: validations lower the learning rate.
train() {
    out=$runs/$1-$4
    [ -e "$out/trained" ] && return
    rm -rf "$out"
    (
        ulimit -S -t "$3"
        # shellcheck disable=SC2046 # words
        "$tarn" train "$5" --data "$2" --preset speech-small $(form "$4" "$6") --batch 8 \
            --lr 0.001 --schedule plateau:factor=0.5,patience=2 --steps 100000000 \
            --eval-every 200 --save-every 1000 --keep 1 --threads 1 --out "$out"
    )
    touch "$out/trained"
}

# record DATA FOLDER: error rates, decoded with a beam of 8, and those of trivial baselines.
record() {
    for method in $methods; do
        "$tarn" eval "$runs/$1-$method" --beam 8 --threads 1 --json |
            "$tools/paper_speech.py" rate "$1" "$method" "$runs/$1-$method/log.jsonl" "$2"
    done >>"$runs/rates.jsonl"
    "$tools/paper_speech.py" guess "$1" "$2" >>"$runs/rates.jsonl"
    "$tools/paper_speech.py" evolution "$1" "$runs" "$page"
}

for method in $methods; do
    train spoken "$spoken" $((60 * ${MINUTES_SPOKEN:-6})) "$method" speech 0
done
for method in $methods; do
    train real "$real" $((60 * ${MINUTES_REAL:-8})) "$method" speech:masks=2 0.1
done

: >"$runs/rates.jsonl"
record real "$real"
record spoken "$spoken"
cp "$runs/rates.jsonl" "$page/rates.jsonl"
"$page/plot.sh"
"$tools/paper_speech.py" write "$page"
