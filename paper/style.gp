# style.gp - what the pictures of training have in common.
set terminal pngcairo size 1100,480 font 'sans,11' background rgb 'white'
set output 'evolution.png'
set datafile separator ','
set datafile missing ''
set grid xtics ytics lc rgb '#c8c8c8' lt 1 lw 0.5
set border 3
set tics nomirror
set style line 1 lc rgb '#d55e00' lw 2 pt 7 ps 0.6
set style line 2 lc rgb '#0072b2' lw 2 pt 7 ps 0.6
set style line 3 lc rgb '#009e73' lw 2 pt 7 ps 0.6
set style line 4 lc rgb '#cc79a7' lw 2 pt 7 ps 0.6
