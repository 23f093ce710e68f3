#!/bin/sh
# SPDX-License-Identifier: MIT
# web/test.sh - builds tarn.wasm and tests it in node, and the page in Chromium, both beside the
# program of build/release-gcc. Status 77: something that the tests need cannot be installed here.
set -eu
cd "$(dirname "$0")/.."

skip() {
    echo "$*"
    exit 77
}

command -v node || skip "node is not installed; tools/setup.sh web installs it"
web/tools.sh test || skip "web/tools.sh could not install zig, playwright-core and TypeScript"
web/wasm.sh web/page/tarn.wasm
cmake --build --preset release-gcc --target tarn_program make_models make_tones # with that module
node --test web/tests/*.test.mjs
