#!/bin/sh
# SPDX-License-Identifier: MIT
# tools/fuzz.sh [--fast] [--hours H | --seconds S] [NAME...] - runs the fuzzers of fuzz/, or those named, in turn.
#
# The fuzzers of the preset fuzz; --fast: of fuzz-fast, which try inputs at twice the speed. They share a corpus.
# H hours of all fuzzers together, in rounds of 60 seconds each, or S seconds of each. Inputs that reach
# something new stay in build/corpus/NAME, findings in build/findings; fuzz/corpus/NAME are the seeds and
# fuzz/NAME.dict the words. Prints executions, coverage and findings of each at the end, and after every
# round into build/fuzz.txt, with those of earlier runs, whose records are in build/fuzz/records. Exit
# status 1: this run has findings.
set -eu
cd "$(dirname "$0")/.."

usage() {
    echo "usage: tools/fuzz.sh [--fast] [--hours H | --seconds S] [NAME...]" >&2
    exit 2
}

preset=fuzz
seconds=60
hours=
if [ "${1:-}" = --fast ]; then
    preset=fuzz-fast
    shift
fi
case ${1:-} in
--hours | --seconds)
    [ $# -ge 2 ] || usage
    if [ "$1" = --hours ]; then hours=$2; else seconds=$2; fi
    shift 2
    ;;
-*) usage ;;
esac
if [ $# -eq 0 ]; then
    for source in fuzz/*.c; do set -- "$@" "$(basename "$source" .c)"; done
fi
for name in "$@"; do
    [ -x "build/$preset/fuzzers/$name" ] || { echo "fuzz.sh: build/$preset/fuzzers/$name is not built: cmake --preset $preset && cmake --build --preset $preset" >&2 && exit 1; }
done
mkdir -p build/corpus build/findings build/fuzz/records

# One fuzzer for so many seconds; adds a line to its record: executions, edges covered, features.
round() { # NAME SECONDS
    name=$1
    log=build/fuzz/records/$name.log
    mkdir -p "build/corpus/$name"
    set -- "build/corpus/$name" -max_total_time="$2" -timeout=60 -rss_limit_mb=3000 -print_final_stats=1 \
        -artifact_prefix="build/findings/$name-" -close_fd_mask=1 -max_len=32768
    [ -d "fuzz/corpus/$name" ] && set -- "$@" "fuzz/corpus/$name"
    [ -f "fuzz/$name.dict" ] && set -- "$@" -dict="fuzz/$name.dict"
    status=0
    "build/$preset/fuzzers/$name" "$@" >"$log" 2>&1 || status=$?
    if [ $status -ne 0 ]; then
        cp "$log" "build/findings/$name-$(date +%s).log"
        found=1
    fi
    awk -v status=$status '
        / cov: / { for (i = 1; i < NF; i++) { if ($i == "cov:") cov = $(i + 1); if ($i == "ft:") ft = $(i + 1) } }
        /^#[0-9]+/ { runs = substr($1, 2) }
        /stat::number_of_executed_units/ { runs = $2 }
        END { print runs + 0, cov + 0, ft + 0, status != 0 }' "$log" >>"build/fuzz/records/$name"
}

table() { # NAME...
    printf '%-20s %14s %8s %9s %8s %9s\n' fuzzer executions edges features inputs findings
    for name in "$@"; do
        [ -f "build/fuzz/records/$name" ] || continue
        awk -v name="$name" -v inputs="$(find "build/corpus/$name" -type f | wc -l)" '
            { runs += $1; if ($2 > cov) cov = $2; if ($3 > ft) ft = $3; found += $4 }
            END { printf "%-20s %14d %8d %9d %8d %9d\n", name, runs, cov, ft, inputs, found }' "build/fuzz/records/$name"
    done | awk '{ print; all += $2; found += $6 } END { printf "%-20s %14d %37d\n", "all", all, found }'
}

found=0
if [ -n "$hours" ]; then
    end=$(awk -v now="$(date +%s)" -v hours="$hours" 'BEGIN { printf "%d", now + 3600 * hours }')
    while [ "$(date +%s)" -lt "$end" ]; do
        for name in "$@"; do
            left=$((end - $(date +%s)))
            [ $left -gt 0 ] && round "$name" "$((left < seconds ? left : seconds))"
            table "$@" >build/fuzz.txt
        done
    done
else
    for name in "$@"; do round "$name" "$seconds"; done
fi
table "$@" | tee build/fuzz.txt
exit $found
