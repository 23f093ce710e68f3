#!/bin/sh
# SPDX-License-Identifier: MIT
# tools/check_format.sh [--fix|--find] - checks that .c and .h files are formatted by clang-format.
# --fix formats them; --find only checks whether clang-format is installed. Versions format
# differently, so only version 14 is used; without it the check is skipped (status 77).
set -eu
cd "$(dirname "$0")/.."

find_formatter() {
    for name in clang-format-14 clang-format; do
        if "$name" --version 2>/dev/null | grep -q 'version 14\.'; then
            echo "$name"
            return
        fi
    done
    echo "clang-format 14 is not installed" >&2
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
