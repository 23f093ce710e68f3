#!/bin/sh
# SPDX-License-Identifier: MIT
# tools/check_format.sh [--fix|--find] - every .c and .h file is as .clang-format says.
# --fix makes it so; --find only tells whether clang-format is there. Versions lay lines out
# differently, so that only version 14 is asked; without it the check is skipped (status 77).
set -eu
cd "$(dirname "$0")/.."

find_formatter() {
    for name in clang-format-14 clang-format; do
        if "$name" --version 2>/dev/null | grep -q 'version 14\.'; then
            echo "$name"
            return
        fi
    done
    echo "no clang-format 14" >&2
    return 77
}

formatter=$(find_formatter)
case ${1:-} in
'') set -- --dry-run -Werror ;;
--fix) set -- -i ;;
--find) exit 0 ;;
*)
    echo "usage: tools/check_format.sh [--fix|--find]" >&2
    exit 2
    ;;
esac

find . \( -path ./build -o -path ./.git \) -prune -o -type f -name '*.[ch]' -print0 |
    xargs -0 "$formatter" "$@"
