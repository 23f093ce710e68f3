#!/bin/sh
# SPDX-License-Identifier: MIT
# tests/mpich.sh PROGRAM - tests/cli_mpi.sh with MPICH, whatever MPI the build has found: only
# libtarn-mpi knows MPI, so that alone is compiled again.
set -eu
program=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
root=$(cd "$(dirname "$0")/.." && pwd)
for command in mpicc.mpich mpirun.mpich; do
    command -v "$command" >/dev/null || { echo "$command is not installed" && exit 77; }
done
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

library=$(basename "$(ls "$(dirname "$program")"/libtarn-mpi.so.*.*.*)")
mkdir "$folder/bin"
mpicc.mpich -std=c17 -O2 -fPIC -shared -I "$root/include" -I "$root/src" \
    "$root/src/comm/comm_mpi.c" -o "$folder/${library%.*}"
cp "$program" "$folder/tarn"
printf '#!/bin/sh\nexec mpirun.mpich "$@"\n' >"$folder/bin/mpirun" # not a link: it looks beside itself
chmod +x "$folder/bin/mpirun"

PATH=$folder/bin:$PATH
export PATH
mpirun --version | sed -n 's/ *Version: */MPICH /p'
sh "$root/tests/cli_mpi.sh" "$folder/tarn" tarn_mpi
