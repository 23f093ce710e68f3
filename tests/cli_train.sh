#!/bin/sh
# SPDX-License-Identifier: MIT
# tests/cli_train.sh PROGRAM - tarn train: what it refuses, what it learns, and that stops, kills
# and resumes change nothing.
set -u
. "$(dirname "$0")/expect.sh"
cd "$folder" || exit 1
mkdir empty
path=$PATH # of the program: "empty" is one without gnuplot, which takes a while to start

small="--preset tiny --layers 1 --heads 2 --head-width 8 --feed 16 --length 9 --batch 2
    --eval-every 10 --eval-batches 1 --threads 1"

# A small copy task: copy CODE PATTERN OPTION...
copy() {
    code=$1
    pattern=$2
    shift 2
    expect "$code" "$pattern" train copy $small "$@"
}

same() {
    cmp -s "$1" "$2" || fail "$1 and $2 differ"
}

# The number of the newest checkpoint of a folder.
newest() {
    ls "$1" | sed -n 's/^checkpoint-0*\([0-9]*\)\.safetensors$/\1/p' | tail -n 1
}

# wait_for FILE PATTERN: until a line there has it, or the run in the background is dead.
wait_for() {
    until grep -q -e "$2" "$1" 2>/dev/null || ! kill -0 $run 2>/dev/null; do
        sleep 0.02
    done
}

# ---- Help and refusals ----------------------------------------------------------------------

expect 0 'usage: tarn train TASK' train --help
expect 0 'text  *predict the next byte' train --help
expect 0 'tiny  *trains' train --help
expect 2 'TASK is required as the first argument; available: copy, text' train
expect 2 'TASK is required as the first argument' train --out a copy
expect 2 "task: unknown name 'cpoy'; available: copy, text" train cpoy --out a
expect 2 "symbols is '0'" train copy:symbols=0 --out a
describes 'length N .*\[128\]' train copy
describes 'preset NAME .*\[copy-paper\]' train copy
expect 0 ':rounds=1..64' train copy --help
expect 0 ':warmup=' train copy --help
describes 'batch B .*\[16\]' train text
expect 2 'did you mean --steps' train copy --stesp 3
expect 2 '--out DIR is required' train copy
expect 2 "unexpected argument 'now'" train copy now
expect 2 "train copy: preset: unknown name 'huge'; available:" train copy --out a --preset huge
copy 2 "lr is '1e9'; it must be a number from" --out a --lr 1e9
copy 2 "lr is 'fast'; it must be a number" --out a --lr fast
copy 2 "steps is '1.5'; it must be a whole number" --out a --steps 1.5
copy 2 "head_width is '0'; it must be" --out a --head-width 0
copy 2 'width is 16777216; it must be from 1 to 1048576' --out a --heads 4096 \
    --head-width 4096
copy 2 "layers is '-1'; it must be" --out a --layers=-1
copy 2 "dropout is '1'; it must be" --out a --dropout 1
copy 2 "attention: unknown name 'foo'; available: linear" --out a --attention foo
copy 2 "attention: rounds is '0'; it must be a whole number from 1 to 64" --out a --attention lsh:rounds=0
copy 2 'attention: rounds is given twice' --out a --attention lsh:rounds=4,rounds=5
copy 2 "feature_map: unknown name 'foo'" --out a --feature-map foo
copy 2 "optimizer: unknown name 'newton'; available: radam" --out a --optimizer newton
copy 2 'attention: .*linaer.*did you mean linear?$' --out a --attention linaer
copy 2 'attention: .*did you mean rounds?$' --out a --attention lsh:ruonds=4
copy 2 'optimizer: .*did you mean adamw?$' --out a --optimizer adamww
copy 2 'schedule: .*did you mean cosine?$' --out a --schedule cosin
copy 2 'norm: .*did you mean post?$' --out a --norm psot
copy 2 'preset: .*did you mean tiny?$' --out a --preset tny
expect 2 'task: .*did you mean copy?$' train cpoy --out a
copy 2 'attention: .*[^?]$' --out a --attention reformer
copy 2 "optimizer: 'adam' has no option 'momentum'" --out a --optimizer adam:momentum=1
copy 2 "schedule: unknown name 'linear'" --out a --schedule linear
copy 2 "clip: unknown name 'hard'" --out a --clip hard
copy 2 "position: unknown name 'rotary'" --out a --position rotary
copy 2 'positions is 0; it must be at least 1' --out a --position learned
copy 2 "norm: unknown name 'mid'; available: post, pre" --out a --norm mid
copy 2 "activation: unknown name 'tanh'" --out a --activation tanh
copy 2 "precision: unknown name 'f8'" --out a --precision f8
copy 2 'length is 4; it must be at least 5' --out a --length 4
copy 2 'data: task .copy. generates its own; leave it out' --out a --data /dev/null
copy 2 '--threads' --out a --threads many
expect 1 'a: No such file or directory' train copy --out a --resume
[ -e a ] && fail "a refused run made its folder"
expect 1 'empty: has no checkpoint to resume from' train copy --out empty --resume

text="train text --preset tiny --layers 1 --length 9 --batch 2 --threads 1"
printf '%0999d' 7 >data
printf 'short' >short
: >none
expect 2 'data is required for task .text.' $text --out a
expect 1 'missing: No such file' $text --out a --data missing
expect 2 'short: has 5 bytes' $text --out a --data short
expect 2 'none: ' $text --out a --data none
expect 2 '^tarn train text: norm: unknown name .mid.' $text --out a --data data --steps 1 --norm mid
[ "$(wc -l <err)" -eq 1 ] || fail "a refusal is not alone: $(cat err)"
expect 1 'empty: contains no text, in 0 files' $text --out a --data empty
copy 1 'missing/a: No such file' --out missing/a --steps 1
copy 1 'data/a: Not a directory' --out data/a --steps 1
copy 1 'data: File exists' --out data --steps 1
mkdir locked
chmod 555 locked
if [ ! -w locked ]; then
    copy 1 'locked/a: Permission denied' --out locked/a --steps 1
    copy 1 'Permission denied' --out locked --steps 1
fi
TARN_CPU=z80 "$tarn" train copy --out a 2>err && fail "TARN_CPU=z80 trains"
grep -q "TARN_CPU is 'z80'" err || fail "TARN_CPU=z80 is not named"

# ---- Learning -------------------------------------------------------------------------------

"$tarn" train copy:symbols=4 --preset tiny --layers 1 --length 16 --batch 16 --steps 300 \
    --lr 0.005 --threads 1 --eval-every 100 --out learns --json >out 2>err || fail "learning: $(cat err)"
[ "$(grep -c '^{"event":"update"' out)" -eq 300 ] || fail "not 300 updates in JSON"
[ "$(grep -c '^{"event":"validation"' out)" -eq 3 ] || fail "not 3 validations in JSON"
tail -n 1 out | grep -q '^{"event":"done","update":300,"stopped":false' || fail "no end in JSON"
[ "$(grep -vc '^{' out)" -eq 0 ] || fail "not only JSON on standard output"
grep -q '^copy:symbols=4: linear attention, 1 layer, 4 heads of width 16, feed-forward 256$' err ||
    fail "the model is not told"
grep -q '^update 300/300  loss .*accuracy .*tokens/s' err || fail "no progress on standard error"
grep -q '^validation after update 200: loss .*, accuracy' err || fail "no validation there"
awk -F, 'NR == 2 { first = $2 } { last = $4 } END { exit !(first > 1.5 && last < 0.7) }' \
    learns/loss.csv || fail "nothing was learnt: $(tail -n 1 learns/loss.csv)"
[ "$(wc -l <learns/loss.csv)" -eq 301 ] || fail "the CSV has not 301 lines"
head -n 1 learns/loss.csv | grep -q '^update,loss,lr,validation_loss,accuracy$' ||
    fail "the CSV's head"
if command -v gnuplot >/dev/null; then
    grep -q '</svg>' learns/loss.svg || fail "no picture of the loss"
    grep -q 'copy:symbols=4: linear attention, 1 layer, 4 heads of width 16, feed-forward 256' learns/loss.svg ||
        fail "the title of the picture"
fi

path=$folder/empty
# The task's cosine schedule ends with the run, and with a longer one when it is resumed.
lr() { sed -n "s/^{\"update\":$2,.*\"lr\":\([0-9.e-]*\).*/\1/p" $1/log.jsonl | awk '{ printf "%.6f\n", $1 }'; }
expect 0 'schedule cosine:warmup=0.04,final=0.1' $text --out t --data data --steps 30
[ "$(lr t 1) $(lr t 30)" = "0.000833 0.000100" ] || fail "learning rates: $(lr t 1) $(lr t 30)"
expect 0 '^validation after update 31: loss .*, bits_per_byte' train text --out t --resume --steps 31
[ "$(lr t 31)" = 0.000100 ] || fail "the learning rate at the end of a resumed run: $(lr t 31)"
expect 0 'schedule cosine:final=0.5' $text --out t2 --data data --steps 2 --schedule cosine:final=0.5
[ "$(lr t2 2)" = 0.000500 ] || fail "the learning rate at the end: $(lr t2 2)"
expect 2 'warmup is 9; it must be less than total, 2' $text --out t3 --data data --steps 2 \
    --schedule cosine:warmup=9

# ---- Resuming -------------------------------------------------------------------------------

for optimizer in $("$tarn" train copy --help |
    sed -n '/^optimizers:/,/^$/s/^  \([a-z0-9]*\) .*/\1/p'); do
    copy 0 '40 updates' --out whole-$optimizer --steps 40 --optimizer $optimizer --dropout 0.1
    copy 0 '20 updates' --out part-$optimizer --steps 20 --optimizer $optimizer --dropout 0.1
    expect 0 'resuming after update 20' train copy --out part-$optimizer --resume --steps 40
    same whole-$optimizer/model.safetensors part-$optimizer/model.safetensors
done
[ "$(wc -l <part-radam/loss.csv)" -eq 41 ] || fail "the CSV does not span the resume"
copy 0 '40 updates' --out threads --steps 40 --dropout 0.1 --threads 2
same whole-radam/model.safetensors threads/model.safetensors

carry="$text --data data --carry --length 8 --batch 2 --context 1,3 --schedule constant"
expect 0 '12 updates' $carry --out whole-carry --steps 12
expect 0 '5 updates' $carry --out part-carry --steps 5 --threads 2
expect 0 'resuming after update 5' train text --out part-carry --resume --steps 12
same whole-carry/model.safetensors part-carry/model.safetensors
expect 2 "carry: the sequences of task 'copy' do not continue each other" train copy --carry --out c
expect 2 "carry needs states of constant size" $carry --attention softmax --out c

# ---- files that are not the run's own ---------------------------------------------------------

mkdir curve
echo 'mine' >curve/loss.csv
copy 2 'loss.csv: already exists; choose another folder' --out curve --steps 2
grep -qx mine curve/loss.csv || fail "a new run changed a loss.csv that is not its own"
copy 0 '2 updates' --out linked --steps 2
echo 'mine' >elsewhere
rm linked/loss.csv
ln -s ../elsewhere linked/loss.csv
expect 1 'loss.csv: is a link, or not a file of this run' train copy --out linked --resume --steps 3
rm linked/loss.csv
ln elsewhere linked/loss.csv
expect 1 'loss.csv: is a link, or not a file of this run' train copy --out linked --resume --steps 4
grep -qx mine elsewhere || fail "a loss.csv that is a link was written through"
if command -v gnuplot >/dev/null; then
    path=$PATH
    rm linked/loss.csv
    ln -s ../elsewhere linked/loss.svg.tmp
    expect 0 '^validation after update 5: ' train copy --out linked --resume --steps 5
    grep -q '</svg>' linked/loss.svg || fail "no picture beside a link"
    grep -qx mine elsewhere || fail "gnuplot wrote through a link"
    path=$folder/empty
fi

# ---- damaged checkpoints ----------------------------------------------------------------------

# Flips a byte in the last tensor.
damage() {
    printf '\377' | dd of="$1" bs=1 seek=$(($(wc -c <"$1") - 3)) conv=notrunc status=none
}

copy 0 '30 updates' --out whole --steps 30 --save-every 10 --keep 3
copy 0 '20 updates' --out damaged --steps 20 --save-every 10 --keep 3
damage damaged/checkpoint-0000000020.safetensors
sentence='checkpoint-0000000020.safetensors: is damaged: tensor .* has the CRC-32 .*; the '
sentence="$sentence"'checkpoint of update 10 is whole: add --any to resume from it'
expect 1 "$sentence" train copy --out damaged --resume --steps 30
[ -e damaged/checkpoint-0000000020.safetensors ] || fail "a damaged checkpoint was renamed without --any"
expect 0 'resuming after update 10' train copy --out damaged --resume --any --steps 30
[ -e damaged/checkpoint-0000000020.safetensors.damaged ] || fail "a damaged checkpoint was not set aside"
cmp -s whole/model.safetensors damaged/model.safetensors || fail "a run from an earlier checkpoint has other weights"
for checkpoint in damaged/checkpoint-*.safetensors; do
    damage "$checkpoint"
done
expect 1 'no other checkpoint is whole' train copy --out damaged --resume --any --steps 40
expect 2 '--any needs --resume' train copy --out any --any --steps 1
damage whole/model.safetensors
expect 1 'model.safetensors: is damaged: tensor' generate whole/model.safetensors
expect 0 'checksums  *CRC-32 of every tensor, correct' inspect whole/checkpoint-0000000030.safetensors

expect 0 'nothing to do: 40 updates are done' train copy --out threads --resume
expect 2 "copy: lr is '0.01'; it must be '0.001', as in .*checkpoint" train copy --out threads \
    --resume --lr 0.01
expect 2 "copy: eval_every is '9'; it must be '10', as in" train copy --out threads --resume \
    --eval-every 9
expect 2 "copy: heads is '4'; it must be '2', as in" train copy --out threads --resume --heads 4
expect 2 '--preset cannot be used with --resume' train copy --out threads --resume \
    --preset tiny
expect 2 "was started with task 'copy'" train text --out threads --resume
expect 2 "was started with task 'copy'" train copy:symbols=5 --out threads --resume
copy 2 'already contains a run of 40 updates; resume it' --out threads --steps 50

copy 0 '^copy: LSTM, 1 layer of width 16$' --out lstm --steps 1 --body lstm

# Without gnuplot the numbers are there and the picture is not.
copy 0 'gnuplot is not installed, so bare/loss.svg was not written' --out bare --steps 2
[ -s bare/loss.csv ] && [ ! -e bare/loss.svg ] || fail "files without gnuplot"

# ---- Stopping -------------------------------------------------------------------------------

# begin FOLDER OPTION...: a run in the background that does not end by itself; its id is $run.
begin() {
    where=$1
    shift
    : >err
    PATH=$path "$tarn" train copy --out "$where" --steps 100000000 --threads 1 "$@" >out 2>err &
    run=$!
}

for name in INT TERM; do
    begin stop-$name $small --dropout 0.1
    wait_for stop-$name/log.jsonl '"update":30,'
    expect 1 'is in use by another training run' train copy $small --out stop-$name
    kill -$name $run
    wait $run
    code=$?
    [ $code -eq 0 ] || fail "exit code $code after SIG$name"
    done=$(newest stop-$name)
    expect 0 "resuming after update $done\$" train copy --out stop-$name --resume \
        --steps $((done + 7))
    copy 0 "$((done + 7)) updates" --out through-$name --steps $((done + 7)) --dropout 0.1
    same stop-$name/model.safetensors through-$name/model.safetensors
done

begin again $small
wait_for again/log.jsonl '"update":2,'
kill -INT $run
wait $run
grep -q 'to continue: tarn train copy --out again --resume' err || fail "nothing says how to continue"

# A run that begins with a trained model: its weights, its form, and no other.
copy 0 '3 updates' --out first --steps 3
for start in first/model.safetensors first; do
    rm -rf second
    expect 0 '1 updates' train copy --out second --start $start --steps 1 --lr 1e-12 \
        --optimizer adam --length 16 --batch 2
done
for run_of in first second; do
    "$tarn" eval $run_of --length 16 --batch 2 --eval-batches 4 --seed 5 --json | sed 's/"model":"[^"]*",//; s/"positions_per_s".*//' >$run_of.eval
done
same first.eval second.eval
copy 2 '--start cannot be used with --resume or --preset' --out a --start first/model.safetensors --preset tiny
expect 2 "layers is '3'; it must be" train copy --out a --start first/model.safetensors --layers 3
expect 1 '--start: nowhere: No such file' train copy --out a --start nowhere
expect 1 'empty: contains no model.safetensors; it must be a training folder$' train copy --out a --start empty
head -c 5000 /dev/zero | tr '\0' a >bytes
expect 2 'symbols is ' train text --out a --start first/model.safetensors --data bytes

# A folder of texts is the text of its files, in the order of their names.
mkdir -p books/more
head -c 600 data >books/1
head -c 300 data >books/more/2
{ cat books/1 && echo && cat books/more/2; } >both
expect 0 '5 updates' $text --out from-file --data both --steps 5
expect 0 '5 updates' $text --out from-folder --data books --steps 5
same from-file/model.safetensors from-folder/model.safetensors
printf 'a\0b' >books/binary
expect 0 'skipped books/binary: contains a zero byte' $text --out skips --data books --steps 5
same from-file/model.safetensors skips/model.safetensors
expect 1 'books/binary: contains a zero byte' $text --out a --data books --steps 5 --strict
expect 0 'skipped books/binary' eval from-file/model.safetensors --data books --length 9

# What a stopped run repeats at its end is said to be of an earlier update.
copy 0 '"event":"done"' --out early --steps 100000000 --minutes 0.01 --eval-every 7 --json
last=$(sed -n 's/^{"event":"validation","update":\([0-9]*\).*/\1/p' out | tail -n 1)
grep -q "^{\"event\":\"done\".*\"validation_update\":$last," out || fail "the update of a validation: $(tail -n 1 out)"

# A recipe has its settings, which options change, and is for its task.
expect 0 'adamw:beta2=0.99, learning rate 0.004, schedule cosine:warmup=0.00625,' train text --data bytes --out recipe \
    --preset text-fast --length 32 --batch 1 --steps 1
prints 'batch size 1, sequence length 32' '3 layers, 4 heads of width 32'
expect 2 "preset: 'digits-fast' is made for task 'image', not for 'text'" train text --data bytes --out a \
    --preset digits-fast

# The clock stops a run as Ctrl-C does.
copy 0 'to continue: tarn train copy --out timed --resume' --out timed --steps 100000000 --minutes 0.005
done=$(newest timed)
expect 0 "$((done + 3)) updates" train copy --out timed --resume --steps $((done + 3)) --minutes 9
copy 0 "$((done + 3)) updates" --out untimed --steps $((done + 3))
same timed/model.safetensors untimed/model.safetensors
# Without --steps the run is fitted to it.
expect 0 'updates fit into 0.01 minutes; the schedule is fitted to that' train copy ${small%--eval-every*} \
    --eval-batches 1 --threads 1 --out fitted --schedule cosine:final=0.1 --minutes 0.01
tail -1 fitted/log.jsonl | grep -q validation_loss || fail "no validation at the end"
[ "$(grep -c validation_loss fitted/log.jsonl)" -le 8 ] || fail "more than 8 validations"
expect 0 'nothing to do' train copy --out fitted --resume
expect 0 "$(($(newest fitted) + 2)) updates" train copy --out fitted --resume --steps $(($(newest fitted) + 2))
copy 2 "--minutes is '-1'; it must be a number from 0" --out a --minutes -1
copy 2 "--minutes is 'soon'" --out a --minutes soon

# A limit of processor time too, however often it tells.
begin limited $small
wait_for limited/log.jsonl '"update":2,'
kill -XCPU $run
kill -XCPU $run 2>/dev/null
wait $run || fail "exit code $? after a limit of processor time"
grep -q 'to continue: tarn train copy --out limited --resume' err || fail "a limit does not say how to continue"
grep -q '"cpu_seconds":' limited/log.jsonl || fail "no processor time in the log"

# Who asks twice does not wait for an update that takes seconds. On a busy machine the first one
# may come before the first update begins, which ends the run: then it is tried again.
for try in 0.1 0.2 0.4 0.8 1.6 3.2 6.4 12.8; do
    begin twice-$try --preset medium --length 512 --batch 8
    wait_for err 'memory'
    sleep $try
    kill -INT $run
    sleep 0.1
    kill -INT $run 2>/dev/null
    wait $run
    code=$?
    [ $code -eq 0 ] || break
done
[ $code -eq 130 ] || fail "exit code $code after the second SIGINT"

# ---- Killing --------------------------------------------------------------------------------

copy 0 '2 updates' --out killed --steps 2 --save-every 1 --dropout 0.1
last=2
for round in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15; do
    begin killed --resume
    sleep 0.$(od -An -N2 -tu2 /dev/urandom | awk '{ printf "%03d", 30 + $1 % 200 }')
    kill -9 $run 2>/dev/null
    wait $run 2>/dev/null
    now=$(newest killed)
    [ "$now" -ge "$last" ] || fail "round $round: checkpoint $last is lost, $now is the newest"
    expect 0 "$((now + 1)) updates" train copy --out killed --resume --steps $((now + 1))
    last=$((now + 1))
done
copy 0 "$last updates" --out unharmed --steps $last --dropout 0.1
same killed/model.safetensors unharmed/model.safetensors
[ "$(tail -n 1 killed/loss.csv | cut -d, -f1)" -eq "$last" ] || fail "the CSV after kills"
[ "$(wc -l <killed/loss.csv)" -eq $((last + 1)) ] || fail "updates are missing from the log"

# A log of version 0.1 calls the learning rate "rate".
sed 's/"lr":/"rate":/' unharmed/log.jsonl >old.jsonl
mv old.jsonl unharmed/log.jsonl
expect 0 "$((last + 1)) updates" train copy --out unharmed --resume --steps $((last + 1))
head -n 2 unharmed/loss.csv | tail -n 1 | cut -d, -f3 | grep -q '^0.001' ||
    fail "the learning rates of an old log: $(head -n 2 unharmed/loss.csv)"
sed '1s/,lr,/,rate,/' learns/loss.csv >old.csv

# ---- Curves of several runs -----------------------------------------------------------------

path=$PATH
expect 0 '^killed  *[0-9]* ' plot killed unharmed/log.jsonl learns/loss.csv old.csv -o curves.svg
prints '^run  *updates  *loss  *validation  *best  *accuracy$' '^unharmed/log.jsonl ' '^learns/loss.csv  *300 ' '^old.csv  *300 '
head -n 1 curves.csv | grep -q '^run,update,loss,smoothed_loss,validation_loss,accuracy$' ||
    fail "the CSV of the curves: $(head -n 1 curves.csv)"
cat killed/log.jsonl unharmed/log.jsonl | grep -c '"loss"' >both.updates
[ "$(grep -c -e '^"killed",' -e '^"unharmed/log.jsonl",' curves.csv)" -eq "$(cat both.updates)" ] ||
    fail "the CSV of the curves does not have every update"
if command -v gnuplot >/dev/null; then
    grep -q '</svg>' curves.svg || fail "no picture of curves"
    for name in killed unharmed/log.jsonl learns/loss.csv validation; do
        grep -q ">$name<" curves.svg || fail "the picture of curves has no '$name'"
    done
    expect 0 . plot killed -o curves.png
    head -c 4 curves.png | grep -aq PNG || fail "a picture as PNG"
fi
sed 's/accuracy/bits_per_dim/' killed/loss.csv >other.csv
expect 2 'killed is measured in accuracy and other.csv in bits_per_dim; plot runs of different tasks separately' \
    plot killed other.csv -o other.svg
[ ! -e other.svg ] || fail "a picture of runs that cannot be compared"
expect 1 'bytes has no updates; it must be a training folder' plot bytes
printf '{"update":1,"loss":2}\n{"update":1,"":2,"validation_loss":3}\n' >nameless
expect 0 '^nameless  *1 ' plot nameless -o nameless.svg
expect 1 'nowhere: No such file' plot nowhere
expect 1 'empty/log.jsonl: No such file' plot empty
expect 2 "-o is 'curves.gif'; it must end in .svg or .png" plot killed -o curves.gif
expect 1 'no/such.csv: No such file' plot killed -o no/such.svg
expect 2 'RUN is required' plot
path=$folder/empty
expect 0 'gnuplot is not installed, so bare.svg was not written' plot killed -o bare.svg
[ -s bare.csv ] && [ ! -e bare.svg ] || fail "curves without gnuplot"

# ---- Numbers that are not finite ------------------------------------------------------------

wild="--lr 10 --clip none --optimizer adamw:decay=1 --save-every 5 --steps 80"
copy 1 'tarn train copy: update [0-9]*: the ' --out wild $wild
[ -n "$(newest wild)" ] || fail "no checkpoint before the loss went wild"
expect 0 'update [0-9]* skipped: not finite' train copy --out wild --resume --skip-nonfinite
[ "$(newest wild)" -eq 80 ] || fail "skipping does not go on"

exit $failed
