#!/bin/sh
# SPDX-License-Identifier: MIT
# tests/web_sources.sh LIBTARN.A - the files of which web/wasm.sh makes WebAssembly need nothing from
# the files that it leaves out: a file that moves or is added would break it where no compiler for
# WebAssembly is installed.
set -eu
root=$(dirname "$0")/..
command -v nm >/dev/null || { echo "no nm" && exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# As "member symbol" lines; kernel_portable.c is compiled apart.
for source in $("$root/web/wasm.sh" --sources) kernel_portable.c; do
    basename "$source"
done | sort >"$work/sources"
nm -A "$1" | sed -n 's/^.*:\([^:]*\.c\)\.o:[0-9a-f ]*\([A-Za-z]\) \(tn_[a-z0-9_]*\|tarn_[a-z0-9_]*\)$/\1 \2 \3/p' |
    awk 'NR == FNR { listed[$1] = 1; next } $1 in listed' "$work/sources" - >"$work/symbols"
[ -s "$work/symbols" ] || { echo "no symbols in $1" && exit 1; }

awk '$2 != "U" { print $3 }' "$work/symbols" >"$work/defined"
sed -n 's/^[a-z].*\b\(tn_[a-z0-9_]*\)(.*/\1/p' "$root"/web/platform/*.c >>"$work/defined"
# Not compiled for WebAssembly, or called only by what nothing there calls.
cat >>"$work/defined" <<'LEFT_OUT'
tn_comm_mpi
tn_kernels_avx2
tn_kernels_avx512
tn_kernels_neon
tn_npz_write
LEFT_OUT

awk 'NR == FNR { defined[$1] = 1; next }
     $2 == "U" && !($3 in defined) { print $1 " needs " $3 ", which web/wasm.sh leaves out"; bad = 1 }
     END { exit bad }' "$work/defined" "$work/symbols"
