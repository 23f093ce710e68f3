#!/bin/sh
# SPDX-License-Identifier: MIT
# quick.sh [FOLDER] - a rough Figure 1 and Table 1 of the paper in about two minutes on two cores, into
# FOLDER (build/quick): fig1.csv, fig1.png (with gnuplot), table1.jsonl and table1.md. Measured once, on
# whatever else the machine does: the ratios are what to look at. paper/fig1/ and paper/table1/ have the
# careful figures. TARN names the program, build/release/tarn otherwise.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
tarn=${TARN:-$root/build/release/tarn}
case ${1-} in
-*)
    sed -n 's/^# //p' "$0" | sed 1d
    exit 0
    ;;
esac
out=${1:-$root/build/quick}
model=$root/models/mnist.safetensors
[ -x "$tarn" ] || {
    echo "quick.sh: there is no program $tarn; build it (cmake --preset release && cmake --build" \
        "--preset release), or name one: TARN=PROGRAM paper/quick.sh" >&2
    exit 1
}
mkdir -p "$out"

echo 'Figure 1: a forward and a backward pass of attention, one sequence of growing length, 8 heads of 32.'
echo
"$tarn" bench attention --attention 'softmax;linear' --lengths 512..16384 --batch 1 \
    --time-limit 12 --csv "$out/fig1.csv" --plot "$out/fig1.png"

# images METHOD BATCH: how many a second.
images() {
    sed -n "s/.*\"method\":\"$1\".*\"batch\":$2,.*\"images_per_s\":\([^,}]*\).*/\1/p" "$out/table1.jsonl"
}

echo
echo 'Table 1: images a second, 28 x 28 bytes each, drawn by a model of the size of models/mnist.safetensors.'
"$tarn" bench image --like "$model" --budget 4 --json \
    --method linear:1,linear:64,stateful-softmax:1,stateful-softmax:64,softmax:1,lsh-1:1,lsh-4:1 \
    >"$out/table1.jsonl"
{
    echo '| method | images at once | images/s | linear is faster by |'
    echo '|---|---|---|---|'
    for row in 'linear 64' 'stateful-softmax 64' 'linear 1' 'stateful-softmax 1' 'softmax 1' 'lsh-1 1' 'lsh-4 1'; do
        set -- $row
        rate=$(images "$1" "$2")
        best=$(images linear "$2")
        awk -v name="$1" -v batch="$2" -v rate="$rate" -v best="$best" 'BEGIN {
            printf "| %s | %d | %.4g | %.3g |\n", name, batch, rate, best / rate }'
    done
} >"$out/table1.md"
echo
cat "$out/table1.md"

echo
echo 'What to conclude:'
awk -F, 'NR > 1 && $NF == "" {
    gsub(/"/, "", $1)
    time[$1, $3] = $9 + $10
    if ($1 == "softmax") last = $3
    if (!first) first = $3
} END {
    n = last / first
    printf "- From length %d to %d, %d times as long, softmax takes %.0f times as long and linear %.1f times:\n",
        first, last, n, time["softmax", last] / time["softmax", first],
        time["linear", last] / time["linear", first]
    printf "  one grows with the square of the length, the other with the length. At %d linear is %.0f times faster.\n",
        last, time["softmax", last] / time["linear", last]
}' "$out/fig1.csv"
awk -v linear="$(images linear 64)" -v kept="$(images stateful-softmax 64)" -v all="$(images softmax 1)" 'BEGIN {
    printf "- As a recurrent network a linear transformer draws %.4g images/s, %.1f times as many as softmax that\n", linear, linear / kept
    printf "  keeps keys and values, and %.0f times as many as softmax that computes all bytes again for each.\n", linear / all
}'
echo "The files are in $out. The paper's own sizes: paper/fig1/README.md and paper/table1/README.md."
