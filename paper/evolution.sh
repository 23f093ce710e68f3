#!/bin/sh
# SPDX-License-Identifier: MIT
# evolution.sh PAGE TITLE - draws PAGE/evolution.png from PAGE/evolution-METHOD.csv: bits/dim against
# CPU time and against updates; lines are means of 25 updates, points are validations.
set -eu
cd "$1"
if ! command -v gnuplot >/dev/null; then
    echo "evolution.sh: gnuplot is not installed; no plot, the numbers are in evolution-*.csv" >&2
    exit 0
fi

# curves COLUMN SCALE: arguments of plot.
curves() {
    style=0
    separator=
    for method in softmax linear lsh-1 lsh-4; do
        style=$((style + 1))
        [ -e "evolution-$method.csv" ] || continue
        printf '%s"evolution-%s.csv" using ($%s/%s):3 with lines ls %s title "%s"' \
            "$separator" $method "$1" "$2" $style $method
        separator=', '
        printf ', "evolution-%s.csv" using ($%s/%s):4 with points ls %s pt 7 ps 0.7 notitle' \
            $method "$1" "$2" $style
    done
    printf '\n'
}

{
    cat <<EOD
load '../style.gp'
set key top right
set multiplot layout 1,2 title '$2'
set ylabel 'bits/dim'
set autoscale yfix
set offsets 0, 0, 0, graph 0.05
set xlabel 'CPU minutes'
EOD
    printf 'plot '
    curves 2 60
    printf "set xlabel 'updates'\nplot "
    curves 1 1
    printf 'unset multiplot\n'
} | gnuplot
