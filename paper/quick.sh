#!/bin/sh
# SPDX-License-Identifier: MIT
# quick.sh [FOLDER] - measures a rough Figure 1 and Table 1 of the paper, in about two minutes on two
# cores, and writes fig1.csv, fig1.png (with gnuplot), table1.jsonl and table1.md to FOLDER
# [build/quick]. Everything is measured once, so look at the ratios rather than the absolute figures;
# paper/fig1/ and paper/table1/ have careful measurements. TARN is the program [build/release/tarn].
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
tarn=${TARN:-$root/build/release/tarn}
case ${1-} in
-*)
    sed '1,2d; /^#/!q; s/^# //' "$0" | sed '$d'
    exit 0
    ;;
esac
out=${1:-$root/build/quick}
model=$root/models/mnist.safetensors
[ -x "$tarn" ] || {
    echo "quick.sh: $tarn does not exist; build it (cmake --preset release && cmake --build" \
        "--preset release), or set TARN=PROGRAM" >&2
    exit 1
}
mkdir -p "$out"

echo 'Figure 1: forward and backward pass of attention over one sequence, 8 heads of width 32.'
echo
"$tarn" bench attention --attention 'softmax;linear' --lengths 512..16384 --batch 1 \
    --time-limit 12 --csv "$out/fig1.csv" --plot "$out/fig1.png"

# images METHOD BATCH: images per second.
images() {
    sed -n "s/.*\"method\":\"$1\".*\"batch\":$2,.*\"images_per_s\":\([^,}]*\).*/\1/p" "$out/table1.jsonl"
}

echo
echo 'Table 1: images of 28 x 28 per second, by a model of the size of models/mnist.safetensors.'
"$tarn" bench image --like "$model" --budget 4 --json \
    --method linear:1,linear:64,stateful-softmax:1,stateful-softmax:64,softmax:1,lsh-1:1,lsh-4:1 \
    >"$out/table1.jsonl"
{
    echo '| method | batch | images/s | speed-up of linear |'
    echo '|---|---|---|---|'
    for row in 'linear 64' 'stateful-softmax 64' 'linear 1' 'stateful-softmax 1' 'softmax 1' 'lsh-1 1' 'lsh-4 1'; do
        set -- $row
        rate=$(images "$1" "$2")
        best=$(images linear "$2")
        awk -v name="$1" -v batch="$2" -v rate="$rate" -v best="$best" 'BEGIN {
            printf "| %s | %d | %.4g | %.3gx |\n", name, batch, rate, best / rate }'
    done
} >"$out/table1.md"
echo
cat "$out/table1.md"

echo
echo 'Conclusions:'
awk -F, 'NR > 1 && $NF == "" {
    gsub(/"/, "", $1)
    time[$1, $3] = $9 + $10
    if ($1 == "softmax") last = $3
    if (!first) first = $3
} END {
    n = last / first
    printf "- From length %d to %d, a factor of %d, the time of softmax grows by %.0f and that of linear\n",
        first, last, n, time["softmax", last] / time["softmax", first]
    printf "  attention by %.1f: quadratic and linear growth. At %d linear is %.0f times as fast.\n",
        time["linear", last] / time["linear", first], last, time["softmax", last] / time["linear", last]
}' "$out/fig1.csv"
awk -v linear="$(images linear 64)" -v kept="$(images stateful-softmax 64)" -v all="$(images softmax 1)" 'BEGIN {
    printf "- As a recurrent network a linear transformer generates %.4g images/s, %.1f times as many as softmax\n", linear, linear / kept
    printf "  with cached keys and values, and %.0f times as many as softmax that recomputes everything.\n", linear / all
}'
echo "Files: $out. Careful measurements at the paper's sizes: paper/fig1/README.md, paper/table1/README.md."
