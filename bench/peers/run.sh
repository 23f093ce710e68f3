#!/bin/sh
# SPDX-License-Identifier: MIT
# run.sh [--record] [--fresh] [OPTION...] - compares tarn with its peers. OPTIONs are passed to
# compare.py: --rounds 1 --seconds 0.5 for a quick look. Installs missing packages for the build
# (Debian, Ubuntu), builds the library, and installs the peers in a virtual environment in
# build/peers; --fresh creates it again.
#
# The records are written to build/peers/results.jsonl. With --record they are copied to this folder,
# and the tables of its README.md and of docs/benchmarks.md are updated.
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
cmake --build "$root/build/release" --target tarn_shared tarn_program

mkdir -p "$made"
python=$made/venv/bin/python
"$python" -m pip --version >/dev/null 2>&1 || python3 -m venv --clear "$made/venv"
[ -s "$made/installed.jsonl" ] || "$python" "$here/install.py" "$made"

export TARN_LIBRARY="$root/build/release/libtarn.so" PYTHONPATH="$root/bindings/python"
export PYTHONDONTWRITEBYTECODE=1
export TORCHINDUCTOR_CACHE_DIR="$made/compiled" # what torch compiled once is not compiled again
"$python" "$here/compare.py" --program "$root/build/release/tarn" \
    --installed "$made/installed.jsonl" --out "$made/results.jsonl" "$@"

if $record; then
    cp "$made/results.jsonl" "$here/results.jsonl"
    "$python" "$here/pages.py" "$here/results.jsonl" "$here/README.md" "$root/docs/benchmarks.md"
fi
