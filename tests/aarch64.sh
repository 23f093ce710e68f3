#!/bin/sh
# SPDX-License-Identifier: MIT
# aarch64.sh BUILD TARN - tests of a build for 64-bit ARM under qemu-user: kernels, attention,
# several threads, int8 with and without the dot product of bytes; and an image that must have the
# pixels that TARN, a program for this machine, draws. --list: the tests that it needs.
set -eu
cd "$(dirname "$0")/.."

list="test_kernels test_kernel_few test_kernel_layer test_kernel_rows test_kernel_widths test_int8
test_linear test_lsh test_recurrent test_states test_state_gradients test_threads"
if [ "$1" = --list ]; then
    echo "$list"
    exit
fi
build=$1
tarn=$2
command -v qemu-aarch64 >/dev/null || { echo "qemu-aarch64 is not installed" && exit 77; }
[ -x "$build/tarn" ] || { echo "$build/tarn does not exist" && exit 77; }

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

for test in $list; do
    qemu-aarch64 "$build/tests/$test"
done
qemu-aarch64 -cpu cortex-a53 "$build/tests/test_int8" # ARMv8.0

draw() { # FILE COMMAND...
    file=$1
    shift
    "$@" generate models/mnist.safetensors -n 1 --seed 3 --precision "$precision" \
        --threads "$threads" -o "$file"
}
for precision in f32 int8; do
    for threads in 1 2; do
        draw "$folder/here.png" "$tarn"
        draw "$folder/arm.png" qemu-aarch64 "$build/tarn"
        cmp "$folder/here.png" "$folder/arm.png"
    done
done
