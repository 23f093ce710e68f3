#!/bin/sh
# SPDX-License-Identifier: MIT
# tests/cli_mpi.sh PROGRAM [tarn_mpi|KILLS] - tarn as processes of mpirun: the same files for any
# number of them, and what happens if one fails. Without the second argument the build has no MPI.
# A number is how often a random one of two processes is killed, which takes a while.
set -u
. "$(dirname "$0")/expect.sh"
[ -n "${2:-}" ] || { echo "this build is without MPI" && exit 77; }
command -v mpirun >/dev/null || { echo "mpirun is not installed" && exit 77; }
cd "$folder" || exit 1
mkdir empty
program=$tarn

# MPI leaks, which is not what is tested here; and the dlopen() of a sanitizer does not look beside
# the program.
ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0
LD_LIBRARY_PATH=$(dirname "$program")${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
export ASAN_OPTIONS LD_LIBRARY_PATH

# Open MPI's options, which MPICH does not need: as root, on any number of processors, and without
# waits at the start for networks and at the end for processes that mpirun has to kill; with a
# folder of its own for its sockets, as one mpirun may remove what another is about to use.
mkdir mpi
OMPI_MCA_orte_tmpdir_base=$folder/mpi
OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_hwloc_base_binding_policy=none
OMPI_MCA_mpi_yield_when_idle=1 OMPI_MCA_odls_base_sigkill_timeout=0 OMPI_MCA_pml=ob1
export OMPI_ALLOW_RUN_AS_ROOT OMPI_ALLOW_RUN_AS_ROOT_CONFIRM OMPI_MCA_rmaps_base_oversubscribe \
    OMPI_MCA_hwloc_base_binding_policy OMPI_MCA_mpi_yield_when_idle \
    OMPI_MCA_odls_base_sigkill_timeout OMPI_MCA_pml OMPI_MCA_orte_tmpdir_base

# ranks N CODE PATTERN ARGUMENT...: expect, by so many processes. RANK in an argument is the number
# of the process; OTHER and OTHER_CPU are program and instructions of all but the first.
cat >ranks <<END
#!/bin/sh
rank=\${OMPI_COMM_WORLD_RANK:-\${PMI_RANK:-0}}
for argument; do
    shift
    set -- "\$@" "\$(echo "\$argument" | sed "s/RANK/\$rank/")"
done
echo \$\$ >pid\$rank
program="$program"
if [ \$rank -gt 0 ]; then
    program=\${OTHER:-\$program}
    [ -z "\${OTHER_CPU:-}" ] || export TARN_CPU=\$OTHER_CPU
fi
PATH=$folder/empty:/usr/bin:/bin exec "\$program" "\$@"
END
cat >many <<END
#!/bin/sh
exec mpirun -n \$RANKS "$folder/ranks" "\$@"
END
chmod +x ranks many
ranks() {
    RANKS=$1
    export RANKS
    shift
    tarn=$folder/many
    expect "$@"
    tarn=$program
}

same() {
    cmp -s "$1" "$2" || fail "$1 and $2 differ"
}

# Losses without times.
losses() {
    sed 's/,"tokens_per_s".*//; s/,"seconds".*//' "$1/log.jsonl"
}

same_runs() { # A B UPDATE
    same "$1/model.safetensors" "$2/model.safetensors"
    same "$1/checkpoint-00000000$3.safetensors" "$2/checkpoint-00000000$3.safetensors"
    same_losses "$1" "$2"
}

same_losses() {
    [ "$(losses "$1")" = "$(losses "$2")" ] || fail "the logs of $1 and $2 differ"
}

small="--preset tiny --layers 1 --heads 2 --head-width 8 --feed 16 --length 9 --batch 8
    --eval-every 7 --eval-batches 3 --threads 1 --micro-batches 4"

# ---- The same files -------------------------------------------------------------------------

if [ "$2" = tarn_mpi ]; then
    # Large enough for sums in several parts, which begin during the backward pass.
    large="--preset tiny --layers 2 --heads 4 --head-width 32 --feed 512 --length 17 --batch 8
        --eval-every 3 --eval-batches 3 --threads 1 --micro-batches 4 --dropout 0.1
        --accumulate 2 --minutes 0"
    expect 0 '6 updates' train copy $large --steps 6 --out large1
    ranks 2 0 '6 updates' train copy $large --steps 6 --out large2
    [ "$(grep -c '6 updates' "$out")" = 1 ] || fail "more than one process prints"
    same_runs large1 large2 06
    ranks 4 0 '3 updates' train copy $large --steps 3 --out large4
    ranks 2 0 '6 updates' train copy --resume --steps 6 --out large4 --shard-optimizer
    same large1/model.safetensors large4/model.safetensors
    expect 0 '"loss":[0-9]' eval large1 --json
    sed 's/,"positions_per_s".*//' "$out" >loss1
    for n in 2 3; do # 16 batches, which 3 ranks cannot share evenly
        ranks $n 0 '"loss":[0-9]' eval large1 --json
        sed 's/,"positions_per_s".*//' "$out" >loss$n
        same loss1 loss$n
    done

    # Without --micro-batches, too: a batch of 4,096 positions is cut into parts of 1,024.
    whole="--preset tiny --layers 1 --heads 2 --head-width 8 --feed 16 --length 128 --batch 32
        --eval-every 3 --eval-batches 3 --threads 1"
    expect 0 '3 updates' train copy $whole --steps 3 --out whole1
    ranks 4 0 '3 updates' train copy $whole --steps 3 --out whole4
    same_runs whole1 whole4 03

    # One sequence over several processes, which also share the batch; and another number of them.
    cut="--preset tiny --layers 2 --heads 2 --head-width 8 --feed 32 --length 48 --batch 4
        --eval-every 3 --eval-batches 3 --threads 1 --micro-batches 2 --dropout 0.1
        --sequence-chunks 8"
    for attention in linear softmax; do
        expect 0 '6 updates' train copy $cut --attention $attention --steps 6 --out cut1
        ranks 4 0 '6 updates' train copy $cut --attention $attention --steps 6 --out cut4 \
            --sequence-parallel 2
        same cut1/model.safetensors cut4/model.safetensors
        same_losses cut1 cut4
        ranks 2 0 '3 updates' train copy $cut --attention $attention --steps 3 --out cut2 \
            --sequence-parallel 2
        expect 0 '6 updates' train copy --resume --steps 6 --out cut2 --sequence-parallel 1
        same cut1/model.safetensors cut2/model.safetensors
        rm -r cut1 cut2 cut4
    done

    # A length that is no multiple of the chunks.
    odd="$cut --length 50 --steps 3"
    expect 0 '3 updates' train copy $odd --out odd1
    ranks 4 0 '3 updates' train copy $odd --out odd4 --sequence-parallel 4
    same odd1/model.safetensors odd4/model.safetensors
    same_losses odd1 odd4

    # Generation continues one sequence that processes have shared, from the state at its end: that
    # which one process leaves, and the bytes that follow the whole of it as a prompt.
    seq 300 >numbers
    long="$cut --data numbers --length 512 --batch 1 --micro-batches 1 --dropout 0"
    expect 0 '3 updates' train text $long --steps 3 --out long1
    ranks 4 0 '3 updates' train text $long --steps 3 --out long4 --sequence-parallel 4
    for run in long1 long4; do
        "$tarn" generate $run --prompt-file numbers -n 1 --save-state $run/end -o first ||
            fail "no state of $run is saved"
    done
    same long1/end long4/end
    "$tarn" generate long4 --load-state long4/end -n 40 -o rest || fail "no state is loaded"
    "$tarn" generate long1 --prompt-file numbers -n 41 -o all || fail "nothing is generated"
    tail -c 40 all >behind
    same rest behind
    ranks 2 2 'sequence_parallel is 4; it must be a power of two that divides the number of ranks' \
        train copy $cut --sequence-parallel 4 --out x
    ranks 4 2 'sequence_parallel is 4; it must be a power of two that divides sequence_chunks' \
        train copy $cut --sequence-parallel 4 --sequence-chunks 2 --out x

    ranks 2 0 '"mode":"strong","ranks":2,"threads":1,"batch":1,"length":64' bench scale \
        --preset tiny --batch 1 --length 64 --sequence-chunks 4 --threads 1 --repeat 1 --json
    prints '"mode":"weak","ranks":1,"threads":1,"batch":1,"length":32'
    ranks 2 2 'sequence-chunks is 3 with 2 ranks' bench scale --preset tiny --sequence-chunks 3

    # ---- Refusals ---------------------------------------------------------------------------

    # Another build: one that differs in a byte of the number that the linker gave it.
    number=$(LC_ALL=C grep -aboP '\x14\x00\x00\x00\x03\x00\x00\x00GNU\x00' "$program" | sed 's/:.*//')
    [ -n "$number" ] || fail "the program has no build number"
    cp "$program" other
    printf 'another build' | dd of=other bs=1 seek=$((number + 12)) conv=notrunc 2>/dev/null
    OTHER=./other ranks 2 2 'rank 1 has another build of tarn than rank 0' train copy $small --out x
    for cpu in avx2 neon; do # where there is anything but portable
        TARN_CPU=$cpu "$tarn" train copy --steps 1 $small --out $cpu >log 2>&1 || continue
        OTHER_CPU=portable ranks 2 2 'rank 1 has another kind of processor, or other instructions,' \
            train copy $small --out x
    done
    printf 'the quick brown fox jumps over the lazy dog. %.0s' 1 2 3 4 5 6 7 8 9 >text0
    sed 's/fox/cat/' text0 >text1
    ranks 2 2 'rank 1 has other data than rank 0' train text $small --data textRANK --out x
    rm text1
    ranks 2 1 'rank 1: text1: No such file or directory' train text $small --data textRANK --out x
    ranks 2 2 'did you mean --steps' train copy --stesp 3 --out x
    # The other one, if rank 0 takes long, under its name.
    [ "$(grep -c '^tarn train copy: unknown.*did you mean' "$err")" = 1 ] ||
        fail "not one process complains for all"
    TARN_COMM_TIMEOUT=never expect 2 'TARN_COMM_TIMEOUT' train copy $small --out x
    TARN_COMM=mip expect 2 "comm: unknown name 'mip'" train copy $small --out x
    TARN_COMM=mpi expect 0 '3 updates' train copy $small --steps 3 --out alone
fi

# ---- A process dies or hangs ----------------------------------------------------------------

# interrupt SIGNAL FOLDER RANK UPDATES: a process of a run of $processes after so many updates; the
# code of mpirun is in $code. False if the run has ended before.
processes=2
interrupt() {
    rm -f pid?
    : >"$out" # not what the run before printed
    mpirun -n $processes ./ranks train copy $options --steps 1000000 --save-every 3 --out "$2" --json \
        </dev/null >"$out" 2>"$err" &
    run=$!
    until grep -q "\"update\":$4," "$out" || ! kill -0 $run 2>/dev/null; do
        sleep 0.05
    done
    interrupted=0
    kill "-$1" "$(cat "pid$3")" 2>/dev/null || interrupted=1
    [ $interrupted = 0 ] || kill $run 2>/dev/null # or it would go on for long
    code=0
    wait $run || code=$?
    [ "$1" != STOP ] || kill -9 "$(cat "pid$3")" 2>/dev/null
    return $interrupted
}

early() {
    fail "a run ended before a process of it was interrupted"
    cat "$out" "$err"
}

# hangs PROCESSES RANK OPTION...: all others end, and name that one. On a slow machine a process may
# seem to hang that does not: then it gets more time.
hangs() {
    processes=$1
    hanging=$2
    shift 2
    options="$small $*"
    for seconds in 2 8 32; do
        rm -rf hangs
        export TARN_COMM_TIMEOUT=$seconds
        interrupt STOP hangs "$hanging" 10 && break
    done || early
    unset TARN_COMM_TIMEOUT
    processes=2
    options=$small
    [ "$code" != 0 ] || fail "a run whose process hangs ends with code 0"
    prints "rank $hanging has not answered for"
    ! grep 'has not answered' "$out" "$err" | grep -v "rank $hanging has" ||
        fail "another rank than $hanging is said to hang"
}

# The number of the newest checkpoint of a folder.
newest() {
    ls "$1" | sed -n 's/^checkpoint-0*\([0-9]*\)\.safetensors$/\1/p' | tail -n 1
}

options=$small
if [ "$2" = tarn_mpi ]; then
    hangs 2 1
    # Others wait for it only through others: they share a sequence with it, or keys pass them.
    hangs 4 3 --length 16 --sequence-parallel 2
    hangs 4 2 --length 16 --sequence-parallel 4 --attention softmax
    hangs 4 0 --length 16 --sequence-parallel 4 --attention softmax
    interrupt TERM stops 1 10 || early
    [ "$code" = 0 ] || fail "a run of which one process was asked to stop ends with code $code"
    prints 'stopped and saved'
    kills=2
else
    kills=$2
fi

# Whatever is killed, and however often, the weights become those of a run that was not.
i=0
updates=10
while [ $i -lt "$kills" ]; do
    victim=$((i % 2))
    [ "$kills" = 2 ] || victim=$(($(od -An -N1 -tu1 /dev/urandom) % 2))
    interrupt KILL killed $victim $updates || early
    [ "$code" != 0 ] || fail "a run whose process was killed ends with code 0"
    options=--resume
    updates=$(($(newest killed) + 5))
    i=$((i + 1))
done
ranks 2 0 "$updates updates" train copy --resume --steps $updates --out killed
expect 0 "$updates updates" train copy $small --steps $updates --out whole
same killed/model.safetensors whole/model.safetensors
exit $failed
