#!/bin/sh
# SPDX-License-Identifier: MIT
# tests/cli_generate.sh PROGRAM MAKE_MODELS TRAIN_COPY STREAM_TOKENS - tarn generate, eval and
# inspect: what is right, and what every kind of wrong input is answered.
set -u
. "$(dirname "$0")/expect.sh"

"$2" "$folder" || exit 1
"$3" "$folder/copy.safetensors" >/dev/null || exit 1
linear=$folder/linear.safetensors
softmax=$folder/softmax.safetensors
learned=$folder/learned.safetensors
copy=$folder/copy.safetensors

# refuse CODE PATTERN ARGUMENT...: likewise, and nothing on standard output.
refuse() {
    expect "$@"
    [ ! -s "$out" ] || fail "tarn $*: printed something before it failed"
}

# make FILE ARGUMENT...: what is generated, into a file.
make() {
    file=$1
    shift
    "$tarn" generate "$@" >"$folder/$file" 2>"$err" || fail "generate $*: $(cat "$err")"
}

# same A B WHAT, different A B WHAT
same() {
    cmp -s "$folder/$1" "$folder/$2" || fail "$3"
}
different() {
    ! cmp -s "$folder/$1" "$folder/$2" || fail "$3"
}

# ---- generate: what is made ---------------------------------------------------

expect 0 'usage: tarn generate MODEL \[options\]' generate --help
expect 0 '^5 1 4 1 3 0 $' generate "$copy" --prompt '5 1 4 1 3 0' -n 6 --greedy
expect 0 '^5 1 4 1 3 0 $' generate "$copy" --prompt '5 1 4 1 3 0' --length=6 --temperature 0
"$4" "$copy" >"$out" || fail 'stream_tokens on a model'
"$4" "$folder/none" >"$out" 2>"$err" && fail 'stream_tokens on nothing'

for model in linear softmax; do
    m=$folder/$model.safetensors
    make a "$m" -n 60 --prompt 'To be, or' --greedy
    make b "$m" -n 60 --prompt 'To be, or' --greedy --seed 9
    same a b "$model: greedy has no seed"
    make b "$m" -n 60 --prompt 'To be, or' --greedy --method recompute
    same a b "$model: both methods, greedy"
    [ "$(wc -c <"$folder/a")" -eq 60 ] || fail "$model: 60 symbols are 60 bytes"
    make b "$m" -n 60 --prompt 'To be, or' --greedy --precision f32
    same a b "$model: f32 is the default"
    make b "$m" -n 60 --prompt 'To be, or' --greedy --precision bf16
    [ "$(wc -c <"$folder/b")" -eq 60 ] || fail "$model: 60 symbols in bf16"
    expect 2 "generate: precision: unknown name 'f16'" generate "$m" --precision f16
    expect 2 'precision is bf16; it must be f32' generate "$m" --precision bf16 --method recompute
    make a "$m" -n 60 --seed 1
    make b "$m" -n 60
    same a b "$model: seed 1 is the default"
    make b "$m" -n 60 --threads 1
    same a b "$model: threads change nothing"
    make b "$m" -n 60 --seed 2
    different a b "$model: seeds differ"
    make b "$m" -n 60 --top-k 1
    make c "$m" -n 60 --greedy
    same b c "$model: one of the most likely is the most likely"
    make b "$m" -n 60 --prompt '
'
    same a b "$model: without a prompt there is a newline"
    printf 'To be' >"$folder/prompt"
    make a "$m" -n 20 --prompt-file "$folder/prompt"
    make b "$m" -n 20 --prompt 'To be'
    same a b "$model: a prompt from a file"
    make a "$m" -n 20 -o "$folder/b"
    make c "$m" -n 20
    same b c "$model: -o"
done
make a "$folder/lsh.safetensors" -n 20
make a "$folder/numbers.safetensors" -n 20
make b "$folder/numbers.safetensors" -n 20 --prompt 0
same a b 'copy: without a prompt there is the separator'
make b "$folder/taskless.safetensors" -n 20 --prompt 0
same a b 'symbols without a task are numbers'
make a "$folder/checkpoint.safetensors" -n 20
make a "$learned" -n 40

# ---- generate: streams, JSON --------------------------------------------------

make one "$linear" -n 30 --json
make three "$linear" -n 30 --json --streams 3
symbols() { sed -n "$2p" "$folder/$1" | sed 's/.*"symbols":\(\[[^]]*\]\).*/\1/'; }
[ "$(symbols one 1)" = "$(symbols three 1)" ] || fail 'stream 0 of three is the one alone'
[ "$(symbols three 1)" != "$(symbols three 2)" ] || fail 'streams differ'
[ "$(wc -l <"$folder/three")" -eq 3 ] || fail 'an object per stream'
grep -q '^{"stream":2,"text":".*","symbols":\[.*\],"seconds":.*,"steps_per_s":.*}$' \
    "$folder/three" || fail 'the objects'
make a "$linear" -n 5 --streams 2
[ "$(grep -ac '^=== stream [01] ===$' "$folder/a")" -eq 2 ] || fail 'streams are told apart'

# ---- generate: states ---------------------------------------------------------

for options in 'linear' 'softmax' 'lsh' 'linear --method recompute' 'linear --streams 3 --json' \
    'learned --seed 5 --top-p 0.9'; do
    m=$folder/${options%% *}.safetensors
    more=$(echo "$options" | sed 's/^[a-z]*//')
    [ "${options%% *}" = learned ] && n=10 || n=50
    # shellcheck disable=SC2086
    {
        make whole "$m" -n $((2 * n)) --prompt 'Once upon a time' $more
        make first "$m" -n $n --prompt 'Once upon a time' $more --save-state "$folder/state"
        make second "$m" -n $n $more --load-state "$folder/state" --save-state "$folder/state"
        make rest "$m" -n 5 $more --load-state "$folder/state"
    }
    case $more in
    *json*)
        for i in 1 2 3; do
            whole=$(symbols whole $i)
            parts=$(symbols first $i | tr -d ']'),$(symbols second $i | tr -d '[')
            [ "$whole" = "$parts" ] || fail "$options: two halves are the whole, stream $i"
        done
        ;;
    *)
        cat "$folder/first" "$folder/second" >"$folder/parts"
        same whole parts "$options: two halves are the whole"
        ;;
    esac
done
make first "$linear" -n 20 --save-state "$folder/state"
expect 0 '^' generate "$linear" --load-state "$folder/state" --prompt 'and then' -n 5
refuse 1 "its streams are of the model" generate "$folder/other.safetensors" --load-state "$folder/state"
refuse 1 "has 1 streams; expected 2" generate "$linear" --load-state "$folder/state" \
    --streams 2
refuse 1 "its streams are of the method 'recurrent'" generate "$linear" \
    --load-state "$folder/state" --method recompute
refuse 1 'does not contain saved streams' generate "$linear" --load-state "$linear"
refuse 1 'No such file' generate "$linear" --load-state "$folder/none"
for size in 0 5 8 100 1000; do
    head -c $size "$folder/state" >"$folder/cut"
    refuse 1 'cut: ' generate "$linear" --load-state "$folder/cut"
done

# Ctrl-C, once something was printed, is an end like any other.
mkfifo "$folder/pipe"
"$tarn" generate "$linear" -n 1000000000 --save-state "$folder/stopped" >"$folder/pipe" 2>"$err" &
pid=$!
{
    dd bs=1 count=1 2>/dev/null
    kill -INT $pid
    cat
} <"$folder/pipe" >"$folder/text"
wait $pid || fail 'Ctrl-C'
n=$(wc -c <"$folder/text")
make rest "$linear" -n 5 --load-state "$folder/stopped"
make whole "$linear" -n $((n + 5))
cat "$folder/text" "$folder/rest" >"$folder/parts"
same whole parts 'a stream that was stopped goes on'

# ---- generate: wrong usage ----------------------------------------------------

refuse 2 'MODEL is required' generate
refuse 2 "unexpected argument 'more'" generate "$linear" more
refuse 2 'did you mean --prompt' generate "$linear" --promt x
refuse 2 "unknown option '-x'; tarn generate --help" generate "$linear" -x 5
refuse 2 '-n requires a value' generate "$linear" -n
refuse 2 "-n is '0'; it must be a whole number from 1" generate "$linear" -n 0
refuse 2 "temperature is '-1'" generate "$linear" --temperature -1
refuse 2 "temperature is 'nan'" generate "$linear" --temperature nan
refuse 2 'top-p' generate "$linear" --top-p 0
refuse 2 'top-p' generate "$linear" --top-p 1.5
refuse 2 '--prompt and --prompt-file cannot be used together' generate "$linear" --prompt a --prompt-file b
refuse 2 "generate: method: unknown name 'fast'; available: recurrent" generate "$linear" --method fast
refuse 2 'no recurrent form' generate "$folder/lsh.safetensors" --method recurrent
refuse 2 'is not causal' generate "$folder/both.safetensors"
refuse 2 "'11' at byte 4 is not a symbol; it must be a list of numbers from 0 to 10" generate "$copy" --prompt '1 7 11'
refuse 2 "it must be a list of numbers from 0 to 10" generate "$copy" --prompt 'abc'
refuse 2 'need 41 positions; the model has learned only 40' generate "$learned" -n 41
refuse 2 'the model has learned only 40' generate "$learned" -n 2 \
    --prompt 'a prompt that is longer than all positions of it'
refuse 1 'No such file' generate "$linear" --prompt-file "$folder/none"

# ---- files that cannot be read ------------------------------------------------

printf '\211PNG\r\n\032\n\000\000\000\rIHDR\000\000\000\001' >"$folder/png.safetensors"
printf '' >"$folder/empty.safetensors"
size=$(wc -c <"$linear")
mkdir "$folder/hollow"
for command in generate inspect eval; do
    refuse 1 'No such file' $command "$folder/none"
    refuse 1 'png.safetensors: not a safetensors, PyTorch or NumPy file$' \
        $command "$folder/png.safetensors"
    refuse 1 'empty.safetensors: has only 0 bytes' $command "$folder/empty.safetensors"
    refuse 1 'none: No such file' $command "$folder/none" --best
    refuse 2 '--best requires a training folder' $command "$linear" --best
    refuse 1 'hollow: contains no model.safetensors; it must be a training folder$' $command "$folder/hollow"
    refuse 1 'hollow: contains no best.safetensors; it must be a training folder$' $command "$folder/hollow" --best
    for cut in 3 8 9 500 2000 $((size - 1)); do
        head -c "$cut" "$linear" >"$folder/cut"
        refuse 1 'cut: ' $command "$folder/cut"
    done
    head -c 500 "$linear" >"$folder/cut"
    refuse 1 'cut: .* truncated: a header of [0-9]* bytes needs more than the 492 that follow' $command "$folder/cut"
    sed 's/tarn_crc32/xarn_crc32/;s/"attention\\":\\"linear/"attention\\":\\"linaer/' "$linear" >"$folder/cut"
    refuse 1 "cut: .*unknown name 'linaer'" $command "$folder/cut"
    sed 's/tarn_crc32/xarn_crc32/;s/layers.0.norm1.bias/layers.0.norm1.bios/g' "$linear" >"$folder/cut"
    refuse 1 "cut: has no tensor 'transformer.layers.0.norm1.bias'" $command "$folder/cut"
    { head -c $((size - 4)) "$linear" && printf '\000\000\300\177'; } >"$folder/cut"
    refuse 1 "cut: is damaged: tensor 'predictor.bias' has the CRC-32 " $command "$folder/cut"
    sed -i 's/tarn_crc32/xarn_crc32/' "$folder/cut"
    refuse 1 'cut: .* has the value nan' $command "$folder/cut"
done
i=8
while [ $i -lt 600 ]; do # an edited byte is refused or read, and ends no program by a signal
    { head -c $i "$linear" && printf '\377' && tail -c +$((i + 2)) "$linear"; } >"$folder/cut"
    "$tarn" inspect "$folder/cut" >"$out" 2>"$err"
    [ $? -le 1 ] || fail "byte $i edited"
    i=$((i + 53))
done

# ---- files that cannot be written ---------------------------------------------

refuse 1 'none/text: No such file' generate "$linear" -o "$folder/none/text"
refuse 1 "'': No such file" generate "$linear" -o ''
refuse 1 'none/state: No such file' generate "$linear" --save-state "$folder/none/state"
refuse 1 "save-state: the file name is empty" generate "$linear" --save-state ''
mkdir "$folder/locked"
chmod a-w "$folder/locked"
if ! : 2>/dev/null >"$folder/locked/try"; then # who is root may write anywhere
    refuse 1 'locked/text: Permission denied' generate "$linear" -o "$folder/locked/text"
    refuse 1 'locked/state: Permission denied' generate "$linear" \
        --save-state "$folder/locked/state"
fi
refuse 1 'locked: Is a directory' generate "$linear" -o "$folder/locked"
refuse 1 'locked: Is a directory' generate "$linear" --save-state "$folder/locked"
refuse 1 'pipe: is a device, pipe or socket' generate "$linear" --save-state "$folder/pipe"
if [ -e /dev/full ]; then
    "$tarn" generate "$linear" >/dev/full 2>"$err"
    [ $? -eq 1 ] && grep -q 'standard output: No space' "$err" || fail 'a full device'
    expect 1 '/dev/full: No space' generate "$linear" -o /dev/full
fi
# limited ARGUMENT...: no file may become longer than 8 or 16 KiB, as the shell counts.
limited() {
    (
        trap '' XFSZ
        ulimit -f 16
        exec "$tarn" "$@"
    ) >"$out" 2>"$err"
}
limited generate "$linear" -n 20000 -o "$folder/text"
[ $? -eq 1 ] && grep -q 'text: File too large' "$err" || fail 'a text that does not fit'
cp "$folder/state" "$folder/kept"
limited generate "$linear" -n 5 --streams 32 --save-state "$folder/kept"
[ $? -eq 1 ] && grep -q 'kept' "$err" || fail 'a state that does not fit'
same state kept 'a state that could not be written leaves the old one'

# ---- eval ---------------------------------------------------------------------

i=0
while [ $i -lt 100 ]; do
    echo "line $i of a text that nobody learned"
    i=$((i + 1))
done >"$folder/text.txt"
bytes=$(wc -c <"$folder/text.txt")
expect 0 "^positions  *$((bytes - 1))\$" eval "$linear" --data "$folder/text.txt" --validation 1
expect 0 '^bits_per_byte ' eval "$linear" --data "$folder/text.txt" --validation 1 --length 32 \
    --batch 4 --eval-batches 2
expect 0 '^positions  *128$' eval "$linear" --data "$folder/text.txt" --validation 1 \
    --length 32 --batch 4 --eval-batches 1
expect 0 '"task":"text",.*"loss":5.*"metric":"bits_per_byte","bits_per_byte":8.*"positions_per_s"' \
    eval "$linear" --data "$folder/text.txt" --length 64 --json
expect 0 '^accuracy ' eval "$copy" --length 12 --batch 8 --eval-batches 2 --threads 1
expect 0 '^bits_per_byte ' eval "$folder/checkpoint.safetensors" --data "$folder/text.txt" \
    --length 64
mkdir "$folder/training"
cp "$linear" "$folder/training/model.safetensors"
cp "$softmax" "$folder/training/best.safetensors"
expect 0 '^loss ' eval "$folder/training" --data "$folder/text.txt" --length 64
expect 0 '^loss ' eval "$folder/training" --best --data "$folder/text.txt" --length 64
expect 0 'attention  *softmax' inspect "$folder/training" --best
# A folder's own settings: 3 batches of 4 sequences of 12, in which 4 or 5 positions count.
expect 0 '"positions":\(4[89]\|5[0-9]\|60\),' eval "$folder/run" --json
expect 0 '^accuracy ' eval "$folder/run" --best --eval-batches 1
expect 0 '^[0-9 ]*$' generate "$folder/run" -n 8
expect 0 'eval_every  *2' inspect "$folder/run/checkpoint-0000000004.safetensors"
expect 0 '"training":{.*"length":12' inspect --json \
    "$folder/run/checkpoint-0000000004.safetensors"
refuse 2 'best' eval "$linear" --best --data "$folder/text.txt"
refuse 2 "eval: data is required for task 'text'" eval "$linear"
refuse 2 "eval: data: task 'copy' generates its own" eval "$copy" --data "$folder/text.txt"
refuse 1 'No such file' eval "$linear" --data "$folder/none"
refuse 2 'eval: length is 0; it must be' eval "$linear" --data "$folder/text.txt" --length 0
refuse 2 'eval: validation is' eval "$linear" --data "$folder/text.txt" --validation 2
refuse 2 'eval: batch is' eval "$linear" --data "$folder/text.txt" --batch many
refuse 2 "eval: eval_batches is '-1'" eval "$linear" --data "$folder/text.txt" --eval-batches -1
refuse 2 "eval: beam is 3; it must be 0, because task 'copy.*' has no sequences" eval "$copy" --beam 3
refuse 2 "eval: seed is 'x'" eval "$copy" --seed x
refuse 2 "eval: strict: task 'copy' does not use it" eval "$copy" --strict
refuse 2 'of them for validation' eval "$linear" --data "$folder/empty.safetensors" --validation 1
refuse 2 'the model has no task to evaluate' eval "$folder/taskless.safetensors"
refuse 2 'MODEL is required' eval

# ---- inspect ------------------------------------------------------------------

expect 0 'linear.safetensors: model' inspect "$linear"
expect 0 'state  *.*KiB per stream, at any length' inspect "$linear"
expect 0 'state .* per stream, plus .* per position' \
    inspect "$softmax"
expect 0 'none: the model is not causal and cannot generate' inspect "$folder/both.safetensors"
expect 0 'layers.1.norm2.weight  *F32  *16  *4  *1  *0  *1  *1$' inspect "$linear" --tensors
expect 0 '"kind":"model","parameters":[0-9]*,"fingerprint":"[0-9a-f]*","state_bytes":' \
    inspect "$linear" --json
expect 0 '"state_bytes_per_position":0' inspect "$linear" --json
expect 0 '"name":"transformer.norm.weight","dtype":"F32","shape":\[16\],"norm":4' \
    inspect "$linear" --json --tensors
expect 0 'updates  *3' inspect "$folder/checkpoint.safetensors"
expect 0 '"kind":"checkpoint".*"progress":{.*"updates":3' \
    inspect "$folder/checkpoint.safetensors" --json
expect 0 'position  *20' inspect "$folder/state"
expect 0 'state: state' inspect "$folder/state"
refuse 2 'FILE is required' inspect

# Names that are commands to a terminal are shown, not obeyed.
header='{"__metadata__":{"a\u001b[2Jkey":"te\u001b]0;xt"},"na\u001b[31mme\u0085":{"dtype":"I64","shape":[1],"data_offsets":[0,8]}}'
{
    printf "\\$(printf '%03o' ${#header})\\000\\000\\000\\000\\000\\000\\000"
    printf '%s' "$header"
    printf 'abcdefgh'
} >"$folder/hostile.safetensors"
expect 0 'na?\[31mme?  *I64' inspect "$folder/hostile.safetensors" --tensors
expect 0 'a?\[2Jkey  *te?\]0;xt' inspect "$folder/hostile.safetensors"
if tr -d '\n -~' <"$out" | grep -aq .; then
    fail 'control characters reach the terminal'
fi
expect 0 '"kind":"safetensors"' inspect "$folder/hostile.safetensors" --json

exit $failed
