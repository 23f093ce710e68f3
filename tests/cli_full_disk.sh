#!/bin/sh
# SPDX-License-Identifier: MIT
# tests/cli_full_disk.sh PROGRAM - tarn train on a disk that fills up while it writes: it says so,
# exits with 1, and what was saved before is whole.
#
# The disk is a file system of a megabyte that this test alone sees: it runs itself again in a
# namespace of mounts. Exit code 77, skipped, where none may be made.
set -u
folder=$(mktemp -d)
trap 'umount "$folder/disk" 2>/dev/null; rm -rf "$folder"' EXIT
if [ "${TARN_TEST_DISK:-}" = "" ]; then
    for namespaces in -rm -m; do # as nobody in particular, or as root
        unshare $namespaces mount -t tmpfs tmpfs "$folder" 2>/dev/null || continue
        TARN_TEST_DISK=here unshare $namespaces sh "$0" "$1"
        exit
    done
    echo "no file system can be mounted here, not even by unshare"
    exit 77
fi

. "$(dirname "$0")/expect.sh"
cd "$folder" && mkdir empty disk && mount -t tmpfs -o size=1m tmpfs disk || exit 1
path=$folder/empty # without gnuplot

copy() { # CODE PATTERN OPTION...
    code=$1
    pattern=$2
    shift 2
    expect "$code" "$pattern" train copy --eval-every 10 --eval-batches 1 --threads 1 "$@"
}

small="--preset tiny --layers 1 --heads 2 --head-width 8 --feed 16 --length 9 --batch 2"
copy 0 '2 updates' --out disk/run $small --steps 2
saved=$(echo disk/run/checkpoint-*2.safetensors)
cp "$saved" saved || fail "no checkpoint after 2 updates"
bytes=$(wc -c <saved)

# fill LEFT: all of the disk but about LEFT bytes.
fill() {
    rm -f disk/filler
    dd if=/dev/zero of=disk/filler bs=4096 2>/dev/null && fail "the disk does not fill up"
    truncate -s $(($(wc -c <disk/filler) - $1)) disk/filler
}

# full LEFT PATTERN: an update fits, or not even its line in the log.
full() {
    fill "$1"
    copy 1 "$2" --out disk/run --resume --steps 3
    cmp -s "$saved" saved || fail "$1 bytes left: the checkpoint before is not what it was"
    [ "$(ls disk/run | grep -c -e '^checkpoint' -e 'tmp$')" -eq 1 ] ||
        fail "$1 bytes left: not one checkpoint alone: $(ls disk/run)"
}

full $((bytes / 2)) 'checkpoint-.*3.*: No space left on device'
full 0 'No space left on device'

rm disk/filler
copy 0 'resuming after update 2' --out disk/run --resume --steps 5
copy 0 '5 updates' --out through $small --steps 5
cmp -s disk/run/model.safetensors through/model.safetensors ||
    fail "full disks changed the training"
[ "$(wc -l <disk/run/loss.csv)" -eq 6 ] || fail "the log: $(cat disk/run/loss.csv)"
exit $failed
