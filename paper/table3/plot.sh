#!/bin/sh
# SPDX-License-Identifier: MIT
# plot.sh - evolution.png from evolution-DATA-METHOD.csv: the error rates of validations against the
# time of the processor, recorded speech left, synthetic right.
set -eu
cd "$(dirname "$0")"
if ! command -v gnuplot >/dev/null; then
    echo "plot.sh: there is no gnuplot; the numbers are in evolution-*.csv" >&2
    exit 0
fi

# curves DATA: what to plot, as far as it is there. Rows have a loss or an error rate.
curves() {
    style=0
    separator=
    for method in softmax linear bi-lstm lsh-4; do
        style=$((style + 1))
        file=evolution-$1-$method.csv
        [ -e "$file" ] || continue
        printf '%s"%s" using ($2/60):($4*100) with linespoints ls %s title "%s"' \
            "$separator" "$file" $style "$method"
        separator=', '
    done
    printf '\n'
}

{
    cat <<EOD
load '../style.gp'
set key right center
set multiplot layout 1,2 title 'Speech, small models, one thread: phone error rate in training'
set ylabel 'phone error rate, % (greedy)'
set yrange [0:100]
set xlabel 'minutes of a core'
EOD
    for data in real spoken; do
        echo "set title '$data'"
        printf 'plot '
        curves "$data"
    done
    printf 'unset multiplot\n'
} | gnuplot
