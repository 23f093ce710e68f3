#!/bin/sh
# SPDX-License-Identifier: MIT
# web/build.sh [MODEL...] - the folder web/dist, which any static host can serve: the page, tarn.js,
# tarn.wasm and models of text and images [those in models/].
#
# It also leaves web/page/tarn.wasm: a program that is built afterwards serves it, too.
set -eu
here=$(dirname "$0")
if [ $# -eq 0 ]; then
    for model in "$here"/../models/*.safetensors; do
        python3 "$here/list_models.py" "$model" | grep -q '"task": "speech"' || set -- "$@" "$model"
    done
fi
for model in "$@"; do
    [ -f "$model" ] || {
        echo "build.sh: $model: no such file" >&2
        exit 1
    }
done

"$here/wasm.sh" "$here/page/tarn.wasm"
rm -rf "$here/dist"
mkdir -p "$here/dist/models"
cp "$here"/page/* "$here/dist/"
cp "$@" "$here/dist/models/"
python3 "$here/list_models.py" "$here"/dist/models/*.safetensors >"$here/dist/models.json"
echo "$here/dist: $(du -sk "$here/dist" | cut -f 1) KB; tarn.wasm compressed:" \
    "$(gzip -9c "$here/dist/tarn.wasm" | wc -c) bytes"
