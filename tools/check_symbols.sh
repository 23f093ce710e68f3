#!/bin/sh
# SPDX-License-Identifier: MIT
# tools/check_symbols.sh LIBRARY - checks that a shared library exports only tarn_* symbols.
set -eu
[ $# -eq 1 ] || { echo "usage: tools/check_symbols.sh LIBRARY" >&2 && exit 2; }

symbols=$(nm -D --defined-only --format=posix "$1")
echo "$symbols" | awk -v library="$1" '
    $1 ~ /^tarn_/ { exported++; next }
    NF { printf "%s exports %s\n", library, $1; failed = 1 }
    END {
        if (!exported) { printf "%s exports no tarn_ function\n", library; failed = 1 }
        exit failed
    }'
