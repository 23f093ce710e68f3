#!/bin/sh
# SPDX-License-Identifier: MIT
# train_images.sh - trains the four attentions in equal CPU time, one thread each, and writes bits/dim on
# the test images, curves and samples. Sourced by table1/train.sh and table2/train.sh, which set page,
# title, preset, context, batch, eval_every, minutes, test_batches, and the numbers of samples, images
# and recomputed.
#
#     TARN=build/release/tarn DATA=data/mnist RUNS=runs/table1 MINUTES=10 JOBS=1 paper/table1/train.sh
#
# Finished trainings are not repeated, interrupted ones are started again. JOBS=2 trains two at a time,
# each on its own core. TEST_BATCHES=N evaluates N batches; 0: all test images.
set -eu
tarn=${TARN:-$page/../../build/release/tarn}
runs=${RUNS:?"is not set; it must be the folder for the trainings"}
data=${DATA:?"is not set; it must be the folder with the images"}
pages=$page/../../tools/paper_pages.py
methods="softmax lsh-1 lsh-4 linear"
mkdir -p "$runs"

attention() {
    case $1 in
    lsh-*) echo "lsh:rounds=${1#lsh-}" ;;
    *) echo "$1" ;;
    esac
}

# Minutes instead of days: the neighbours are embedded together with the current value (context), and
# the rest is a recipe that learns quickly. The learning rate is constant: a schedule by updates would
# favour methods that make many.
train() {
    [ -e "$runs/$1/trained" ] && return
    rm -rf "${runs:?}/$1"
    ulimit -S -t $((60 * ${MINUTES:-$minutes}))
    "$tarn" train image --data "$data" --preset "$preset" --attention "$(attention "$1")" \
        --norm pre --context "$context" --optimizer adamw:beta2=0.99 --lr 0.002 \
        --batch "$batch" --schedule constant --steps 100000000 \
        --eval-every "$eval_every" --eval-batches 20 --save-every 500 --keep 1 \
        --threads 1 --out "$runs/$1"
    touch "$runs/$1/trained"
}

# An image takes minutes if it is recomputed.
count() {
    case $1 in
    lsh-*) echo "$recomputed" ;;
    *) echo "$images" ;;
    esac
}

jobs=0
for method in $methods; do
    train "$method" &
    jobs=$((jobs + 1))
    if [ $jobs -eq "${JOBS:-1}" ]; then
        wait
        jobs=0
    fi
done
wait

# At a constant learning rate the last model is noisy, so the best validation is used.
: >"$runs/bits.jsonl"
for method in $methods; do
    "$tarn" eval "$runs/$method" --best --eval-batches "${TEST_BATCHES:-$test_batches}" --json |
        "$pages" bits "$method" "$runs/$method/log.jsonl" >>"$runs/bits.jsonl"
    "$tarn" generate "$runs/$method" --best -n "$(count "$method")" --seed 1 -o "$page/samples-$method.png"
done
cp "$runs/bits.jsonl" "$page/bits.jsonl"
"$pages" evolution "$runs" "$page"
"$page/../evolution.sh" "$page" "$title"
"$pages" write "$page"
