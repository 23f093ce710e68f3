#!/bin/sh
# SPDX-License-Identifier: MIT
# tools/analyze.sh - static analysis of src/ and cli/ by cppcheck. Fails at a finding that tools/analyze.txt does
# not explain, and at an explanation that no finding needs.
set -eu
cd "$(dirname "$0")/.."
command -v cppcheck >/dev/null || { echo "cppcheck is not installed" && exit 77; }
mkdir -p build

# As "FILE CHECK: text". Of the kernels, which are one body per instruction set, the portable one.
find src cli -name '*.c' ! -name 'kernel_avx*' ! -name 'kernel_neon*' ! -name 'peak_bf16*' | sort |
    xargs -P "$(getconf _NPROCESSORS_ONLN)" -n 8 cppcheck --quiet --enable=warning,portability \
        --template='{file} {id}: {message}' -Iinclude -Isrc 2>&1 |
    sed -n '/^nofile/d; /^[a-z]*\/[^ ]* [A-Za-z_]*: /p' | sort -u >build/analyze.txt

# Each line of tools/analyze.txt: FILE CHECK REASON.
awk '
    NR == FNR { if (/^[^#]/) reason[$1 " " $2] = 1; next }
    { key = $1 " " $2; sub(/:$/, "", key); used[key] = 1; if (!(key in reason)) { print; bad = 1 } }
    END {
        for (key in reason)
            if (!(key in used)) { print "not needed any more: " key; bad = 1 }
        exit bad
    }' tools/analyze.txt build/analyze.txt
echo "$(wc -l <build/analyze.txt) findings, each explained in tools/analyze.txt"
