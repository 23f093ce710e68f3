#!/bin/sh
# SPDX-License-Identifier: MIT
# tests/make_speech.sh READER - tools/make_speech.py: a small corpus, read back; the same again
# for the same seed; nothing of the test in what is trained on. Skipped without flite.
set -u
reader=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
[ -x "$reader" ] || { echo "no program $reader" && exit 1; }
maker=$(cd "$(dirname "$0")/../tools" && pwd)/make_speech.py
for tool in flite python3; do
    command -v $tool >/dev/null || { echo "no $tool: tools/make_speech.py is not tested" && exit 77; }
done
folder=$(mktemp -d)
cd "$folder" || exit 1
trap 'cd /; rm -rf "$folder"' EXIT
failed=0

fail() {
    echo "FAILED: $*"
    failed=1
}

column() { # NUMBER FILE
    tail -n +2 "$2" | cut -f "$1" | sort -u
}

# disjoint NUMBER FOLDER: no value of a column is in both parts.
disjoint() {
    column "$1" "$2/train.tsv" >a
    column "$1" "$2/test.tsv" >b
    [ -z "$(comm -12 a b)" ] || fail "column $1 of $2: $(comm -12 a b)"
}

# expect PATTERN ARGUMENT...: fails with a message.
expect() {
    pattern=$1
    shift
    "$maker" --no-setup "$@" >out 2>&1 && fail "make_speech $*: did not fail"
    grep -q -e "$pattern" out || fail "make_speech $*: $(cat out)"
}

"$maker" --no-setup --out one --utterances 12 --test 4 --seed 7 >out 2>&1 ||
    fail "make_speech: $(cat out)"
"$reader" one >read || fail "reading it back"
grep -q '^train 12 test [34] symbols [23][0-9] frames [0-9]* [0-9]* skipped [01]$' read ||
    fail "read back: $(cat read)"
[ "$(head -n 1 one/train.tsv)" = "$(printf 'audio\tseconds\tspeaker\tphones\ttext')" ] ||
    fail "the first line: $(head -n 1 one/train.tsv)"
disjoint 3 one
disjoint 5 one

"$maker" --no-setup --out two --utterances 12 --test 4 --seed 7 --jobs 1 >out 2>&1 ||
    fail "make_speech again: $(cat out)"
diff -r one two >out || fail "the same seed: $(cat out)"
"$maker" --no-setup --out three --utterances 12 --test 4 --seed 8 --tools flite --same-voices \
    >out 2>&1 || fail "make_speech by flite: $(cat out)"
disjoint 5 three
[ "$(column 3 three/train.tsv)" = "$(column 3 three/test.tsv)" ] || fail "voices are not the same"
cmp -s one/train.tsv three/train.tsv && fail "another seed made the same"

printf 'The cat sat on the mat. A dog, too!\nIn 1999 it rained\nWhere did they go?\n' >text
"$maker" --no-setup --out four --utterances 2 --test 1 --tools flite --text text >out 2>&1 ||
    fail "make_speech of a text: $(cat out)"
cat four/*.tsv | cut -f 5 | grep -q 'A DOG TOO' || fail "the text is not there: $(cat four/*.tsv)"
grep -q 1999 four/*.tsv && fail "a number is there"

expect 'text: has 3 usable sentences; 30 are needed' --out five --utterances 25 --text text
expect 'already contains a corpus' --out one
expect "unknown name 'say'; available: flite, espeak-ng" --out five --tools say
expect 'no such file' --out five --text nothing
[ -e five ] && fail "failures made a folder"

"$maker" --no-setup --out words --utterances 12 --test 4 --tools flite --same-voices \
    --words one,two >out 2>&1 || fail "make_speech of words: $(cat out)"
[ "$(column 5 words/train.tsv | tr '\n' ' ')" = "ONE TWO " ] || fail "words: $(cat words/train.tsv)"

# ---- Strings of words ---------------------------------------------------------

for python in python3 /usr/bin/python3; do
    "$python" -c 'import numpy' 2>/dev/null && break
    python=
done
if [ -z "$python" ] || ! command -v sox >/dev/null; then
    echo "no sox, or no Python with NumPy: tools/join_speech.py is not tested"
    exit $failed
fi

join() {
    "$python" "${maker%make_speech.py}join_speech.py" "$@" >out 2>&1
}

join words --out strings --strings 9 --test 3 --most 4 --seed 2 || fail "join_speech: $(cat out)"
"$reader" strings words >read || fail "reading strings back"
grep -q '^train 9 test 3 symbols 2 ' read || fail "strings read back: $(cat read)"
awk -F '\t' 'NR > 1 && (split($4, w, " ") > 4 || $2 < 0.2) { exit 1 }' strings/train.tsv ||
    fail "strings: $(cat strings/train.tsv)"
join words --out again --strings 9 --test 3 --most 4 --seed 2 || fail "join_speech again: $(cat out)"
diff -r strings again >out || fail "strings of the same seed: $(cat out)"
join words --out without --strings 9 --test 3 --without flite-slt || fail "without: $(cat out)"
disjoint 3 without
[ "$(column 3 without/test.tsv)" = flite-slt ] || fail "test speakers: $(cat without/test.tsv)"
join words --out strings && fail "a corpus was overwritten"
grep -q 'already contains a corpus' out || fail "another corpus: $(cat out)"
join nothing --out none && fail "no recordings were joined"
grep -q '0 recordings to train on' out || fail "no recordings: $(cat out)"
exit $failed
