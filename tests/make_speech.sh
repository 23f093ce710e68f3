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
exit $failed
