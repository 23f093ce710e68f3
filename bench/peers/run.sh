#!/bin/sh
# SPDX-License-Identifier: MIT
# run.sh [--record] [--fresh] [OPTION...] - tarn beside its peers; OPTIONs are compare.py's, as
# --rounds 1 --seconds 0.5 for a quick look. Installs what is missing to build (Debian, Ubuntu),
# builds the library, makes a virtual environment in build/peers and installs the peers there;
# --fresh makes it anew.
#
# Records are build/peers/results.jsonl. With --record they are kept beside this file and fill
# its page and docs/benchmarks.md.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
made=$root/build/peers
record=false

while [ $# -gt 0 ]; do
    case $1 in
    --record) record=true ;;
    --fresh) rm -rf "$made" ;;
    *) break ;;
    esac
    shift
done

"$root/tools/setup.sh" peers
[ -f "$root/build/release/build.ninja" ] || (cd "$root" && cmake --preset release)
cmake --build "$root/build/release" --target tarn_shared

mkdir -p "$made"
python=$made/venv/bin/python
"$python" -m pip --version >/dev/null 2>&1 || python3 -m venv --clear "$made/venv"
[ -s "$made/installed.jsonl" ] || "$python" "$here/install.py" "$made"

export TARN_LIBRARY="$root/build/release/libtarn.so" PYTHONPATH="$root/bindings/python"
export PYTHONDONTWRITEBYTECODE=1
"$python" "$here/compare.py" --installed "$made/installed.jsonl" --out "$made/results.jsonl" "$@"

if $record; then
    cp "$made/results.jsonl" "$here/results.jsonl"
    "$python" "$here/pages.py" "$here/results.jsonl" "$here/README.md" "$root/docs/benchmarks.md"
fi
