#!/bin/sh
# SPDX-License-Identifier: MIT
# tests/cli_data.sh PROGRAM - tarn data: the list, refusals, and a fetch from a server on this
# machine; with TARN_DATA a whole set.
set -u
. "$(dirname "$0")/expect.sh"
server=$(cd "$(dirname "$0")" && pwd)/data_server.py
cd "$folder" || exit 1
trap 'exec 9>&-; cd /; rm -rf "$folder"' EXIT
export no_proxy=127.0.0.1

expect 0 'fetch  *download' data --help
expect 0 '^cifar10  *photographs' data list
expect 0 'licence: ' data list
expect 0 '"name":"mnist".*"sha256":"440fcabf' data list --json
expect 2 "unknown command 'get'; available: list, fetch, verify" data get
expect 2 'SET is required' data fetch
expect 2 "unknown data set 'minst'; did you mean 'mnist'?$" data fetch minst
expect 2 "unknown data set 'imagenet'; available: mnist" data fetch imagenet
expect 2 "unknown data set 'minst'" data verify minst
expect 0 'to DIR .*\[data\]' data fetch --help
expect 1 'No such file.*; to download what is missing or corrupt: tarn data fetch mnist --to data$' data verify mnist
[ "$(grep -c '  missing$' out)" -eq 4 ] || fail "not four files are missing"
[ -e data ] && fail "verifying made a folder"

"$tarn" data fetch mnist --from http://127.0.0.1:1 >out 2>err
if grep -q 'this build has no libcurl' err; then
    echo "without libcurl: fetching is not tested"
    exit $failed
fi
grep -q 'tarn data fetch: http://127.0.0.1:1/train-images.*0 of 9912422 bytes' err ||
    fail "a server that is not there: $(cat err)"

# The server ends when descriptor 9 is closed.
mkdir files
mkfifo line
python3 "$server" files <line >port &
exec 9>line
until [ -s port ] || ! kill -0 $! 2>/dev/null; do sleep 0.05; done
from=http://127.0.0.1:$(cat port)

for name in train-images-idx3 train-labels-idx1 t10k-images-idx3 t10k-labels-idx1; do
    head -c 5000 /dev/zero >files/$name-ubyte.gz
done
expect 1 'the server sent 5000 bytes; expected 9912422' data fetch mnist --from "$from/good"
expect 1 'the server sent 5000 bytes; expected 9912422' data fetch mnist --from "$from/good/" --to data/
[ "$(find data -type f | wc -l)" -eq 0 ] || fail "what is wrong stays: $(find data)"
expect 1 'requested URL returned error: 404' data fetch cifar10 --from "$from/good" --to c
: >file
expect 1 'file: File exists; cannot create a folder there' data fetch mnist --from "$from/good" --to file

mnist=${TARN_DATA:-}/mnist
if [ -r "$mnist/train-images-idx3-ubyte.gz" ]; then
    rm files/*
    cp "$mnist"/*.gz files
    chmod u+w files/*
    head -c 4000000 files/train-images-idx3-ubyte.gz >data/mnist/train-images-idx3-ubyte.gz.part
    expect 0 'train-images-idx3-ubyte.gz  fetched' data fetch mnist --from "$from/cutonce"
    grep -q 'resuming after byte 4000000' err || fail "does not say that it resumes: $(cat err)"
    grep -q 'mnist is complete; use it with --data data/mnist' err || fail "does not say what to do now"
    grep -q 'train-images-idx3-ubyte.gz bytes=4000000-' files/requests || fail "began anew"
    expect 0 'images-idx3-ubyte.gz  ok' data verify mnist
    expect 0 'images-idx3-ubyte.gz  ok' data fetch mnist --from "$from/stall"
    cmp data/mnist/t10k-images-idx3-ubyte.gz files/t10k-images-idx3-ubyte.gz || fail "differs"
    expect 1 'SHA-256' data fetch mnist --from "$from/wrong" --to other
    [ "$(find other -type f | wc -l)" -eq 0 ] || fail "what is wrong stays: $(find other)"
else
    echo "TARN_DATA has no mnist: a whole set is not fetched"
fi
exit $failed
