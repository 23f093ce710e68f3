#!/bin/sh
# SPDX-License-Identifier: MIT
# plot.sh - draws fig2.png from softmax.csv, linear.csv and lsh.csv, the loss.csv of each training: each
# update as a dot, and the mean of the last 25.
set -eu
cd "$(dirname "$0")"

last=$(for kind in softmax linear lsh; do tail -n 1 $kind.csv | cut -d , -f 1; done | sort -n | head -n 1)

smooth() { # KIND: update and mean, up to the last update that all have
    awk -F , -v last="$last" 'NR > 1 && $1 <= last {
        sum += $2 - kept[NR % 25]; kept[NR % 25] = $2
        if (NR > 25) print $1, sum / 25
    }' "$1.csv"
}

for kind in softmax linear lsh; do
    printf '$%s << EOD\n' $kind
    smooth $kind
    printf 'EOD\n'
done >fig2.gp.tmp
cat >>fig2.gp.tmp <<EOD
set terminal pngcairo size 900,600 font 'sans,12' background rgb 'white'
set output 'fig2.png'
set grid xtics ytics lc rgb '#c8c8c8' lt 1 lw 0.5
set border 3
set tics nomirror
set xlabel 'updates'
set ylabel 'cross-entropy per symbol, nats'
set title 'Copy task, N = 128: training loss'
set xrange [0:$last]
set logscale y 10
set key outside top right
set style line 1 lc rgb '#d55e00' lw 2
set style line 2 lc rgb '#0072b2' lw 2
set style line 3 lc rgb '#009e73' lw 2
plot "< tail -n +2 softmax.csv | tr , ' '" using 1:2 with dots lc rgb '#eec0a0' notitle, \\
     "< tail -n +2 linear.csv | tr , ' '" using 1:2 with dots lc rgb '#a0c8e0' notitle, \\
     "< tail -n +2 lsh.csv | tr , ' '" using 1:2 with dots lc rgb '#a0d8c0' notitle, \\
     \$softmax with lines ls 1 title 'softmax', \$linear with lines ls 2 title 'linear', \\
     \$lsh with lines ls 3 title 'lsh'
EOD
gnuplot fig2.gp.tmp
rm -f fig2.gp.tmp
