#!/bin/sh
# SPDX-License-Identifier: MIT
# plot.sh - draws evolution.png from evolution-DATA-METHOD.csv: the error rates of validations against
# CPU time; recorded speech on the left, synthetic on the right.
set -eu
cd "$(dirname "$0")"
if ! command -v gnuplot >/dev/null; then
    echo "plot.sh: gnuplot is not installed; no plot, the numbers are in evolution-*.csv" >&2
    exit 0
fi

# curves DATA: arguments of plot, for the files that exist. Rows have a loss or an error rate.
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
set multiplot layout 1,2 title 'Speech, small models, one thread: validation phone error rate'
set ylabel 'phone error rate, % (greedy)'
set yrange [0:100]
set xlabel 'CPU minutes'
EOD
    printf "set title 'recorded speech'\nplot "
    curves real
    printf "set title 'synthetic speech'\nplot "
    curves spoken
    printf 'unset multiplot\n'
} | gnuplot
