#!/bin/sh
# SPDX-License-Identifier: MIT
# web/wasm.sh OUT - compiles the library to one WebAssembly module by zig's C compiler.
# web/wasm.sh --sources - prints the files of src/ that are in it.
#
# Everything that generates is in it; training, data sets and the libraries for sound, pictures,
# archives and downloads are not. The linker drops functions that nothing exported calls, and with
# them what they would need.
set -eu
out=$(realpath -- "$1")
cd "$(dirname "$0")/.."

sources=$(ls src/base/*.c src/kernel/*.c src/layer/*.c src/model/*.c src/generate/*.c \
    src/comm/*.c src/file/safetensor*.c src/file/json_*.c src/file/fields_json.c \
    src/file/file_bytes.c src/file/text_buffer.c |
    grep -v -e /kernel_ -e /peak_ -e /parallel -e /clock -e /cores -e /machine \
        -e /import -e /recognizer -e /comm_mpi -e /comm_load)

if [ "$1" = --sources ]; then
    echo "$sources"
    exit
fi

find_zig() {
    for python in build/web/venv/bin/python python3; do
        if "$python" -c 'import ziglang' 2>/dev/null; then
            echo "$python -m ziglang"
            return
        fi
    done
    command -v zig
}

zig=$(find_zig) || {
    echo "zig, whose C compiler makes WebAssembly, is not installed; web/tools.sh zig installs it"
    exit 77
}

# Objects are cached here by their contents.
export ZIG_GLOBAL_CACHE_DIR="$PWD/build/web/zig" ZIG_LOCAL_CACHE_DIR="$PWD/build/web/zig"
objects=build/web/objects
mkdir -p "$objects"

flags="--target=wasm32-wasi -mexec-model=reactor -std=c17 -DNDEBUG -DTN_HAVE_WASM
    -Wall -Wextra -Wconversion -Wsign-conversion -Wshadow -Wno-enum-float-conversion -Werror
    -ffunction-sections -fdata-sections -fvisibility=hidden
    -Iinclude -Isrc -Iweb/platform"
# As in CMakeLists.txt: kernels may fuse and vectorise, the rest rounds as written.
kernel="-O3 -ffp-contract=fast -fno-math-errno -fno-trapping-math"

# shellcheck disable=SC2086 # the lists are words
{
    $zig cc $flags $kernel -msimd128 -c src/kernel/kernel_wasm.c -o "$objects/kernel_wasm.o"
    $zig cc $flags $kernel -c src/kernel/kernel_portable.c -o "$objects/kernel_portable.o"
    $zig cc $flags -O2 -ffp-contract=off $sources web/tarn_wasm.c web/platform/*.c \
        "$objects"/kernel_*.o -Wl,--gc-sections -Wl,--strip-all \
        -Wl,-z,stack-size=1048576 -o "$out"
}
