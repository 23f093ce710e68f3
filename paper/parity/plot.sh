#!/bin/sh
# SPDX-License-Identifier: MIT
# plot.sh - draws parity.png from parity.csv: for each case tarn's losses as a line, PyTorch's in double as
# dots on it, and below the distance of tarn and of PyTorch in float from double.
set -eu
cd "$(dirname "$0")"

cases=$(tail -n +2 parity.csv | cut -d , -f 1 | uniq)
{
    cat <<'EOD'
set terminal pngcairo size 1200,1200 font 'sans,10' background rgb 'white'
set output 'parity.png'
set datafile separator ','
set border 3
set tics nomirror
set grid xtics ytics lc rgb '#c8c8c8' lt 1 lw 0.5
set multiplot layout 6,4 margins 0.06,0.98,0.04,0.96 spacing 0.05,0.055
set title offset 0,-0.6
set xtics 100
set xrange [0:*]
EOD
    row() { # CASES: their curves, then their distances
        for name in "$@"; do
            cat <<EOD
set title '$name: loss'
set key top right
unset logscale
set format y '%g'
plot "< grep '^$name,' parity.csv" using 2:3 with lines lw 2 lc rgb '#0072b2' title 'tarn', \\
     '' using 2:5 every 10 with points pt 7 ps 0.5 lc rgb '#d55e00' title 'PyTorch, double'
EOD
        done
        for name in "$@"; do
            cat <<EOD
set title '$name: distance from double'
set key bottom right
set logscale y 10
set format y '1e%T'
plot "< grep '^$name,' parity.csv" using 2:(abs(\$4-\$5)/\$5) with lines lc rgb '#bbbbbb' title 'PyTorch, float', \\
     '' using 2:(abs(\$3-\$5)/\$5) with lines lc rgb '#0072b2' title 'tarn'
EOD
        done
    }
    # shellcheck disable=SC2086 # names are words
    set -- $cases
    while [ $# -gt 0 ]; do
        row "$1" "$2" "$3" "$4"
        shift 4
    done
} | gnuplot
