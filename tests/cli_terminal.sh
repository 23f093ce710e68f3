#!/bin/sh
# SPDX-License-Identifier: MIT
# tests/cli_terminal.sh PROGRAM MAKE_MODELS ON_TERMINAL [BATCHES] - what the program does on
# terminals of any width, with and without colours and UTF-8, and elsewhere. Validations have so
# many batches: enough for half a second.
set -u
. "$(dirname "$0")/expect.sh"
make_models=$2
on_terminal=$3
batches=${4:-4688}
"$make_models" "$folder" || exit 1
unset NO_COLOR COLORTERM COLUMNS LC_ALL LC_CTYPE LANG

escape=$(printf '\033')
block=$(printf '\342\226\200')

# on COLUMNS SETTING... -- ARGUMENT...: everything that the program writes on a terminal.
on() {
    columns=$1
    settings=
    shift
    while [ "$1" != -- ]; do
        settings="$settings $1"
        shift
    done
    shift
    # shellcheck disable=SC2086
    env TERM=xterm $settings "$on_terminal" "$columns" "$tarn" "$@" >"$out" || fail "$settings: tarn $*: $(cat "$out")"
    : >"$err"
}

# lines: what stood on the terminal at some time, a line for each.
lines() {
    tr '\r' '\n' <"$out" | sed "s/$escape\\[[0-9;]*[A-Za-z]//g"
}

# ---- The progress line ------------------------------------------------------------------------

# train COLUMNS SETTING...: a short run on a terminal.
train() {
    rm -rf "$folder/run"
    on "$@" -- train copy --out "$folder/run" --preset tiny --length 32 --batch 4 --steps 30 \
        --eval-every 0 --threads 1
}

for columns in 20 40 60 79 80 120; do
    train $columns
    lines | grep '^update' >"$folder/lines"
    [ -s "$folder/lines" ] || fail "$columns columns: no progress: $(cat "$out")"
    awk -v most=$columns 'length($0) >= most' "$folder/lines" | grep . &&
        fail "$columns columns: a line is wider"
    case $columns in
    20) grep -q 'update 30/30$' "$folder/lines" || fail 'what stays longest' ;;
    40) grep -q 'update 30/30  loss [0-9.]*  [0-9:]* left$' "$folder/lines" || fail '40 columns' ;;
    60) grep -q 'loss [0-9.]*  accuracy [0-9.]*  [0-9:]* left$' "$folder/lines" || fail '60' ;;
    *) grep -q 'accuracy [0-9.]*  [0-9]* tokens/s  [0-9:]* left$' "$folder/lines" || fail 'all' ;;
    esac
done
# A terminal that does not know its width: COLUMNS, otherwise 80.
for known in 40 80; do
    [ $known -eq 80 ] && train 0 COLUMNS= || train 0 COLUMNS=$known
    width=$(lines | grep '^update' | awk '{ print length($0) }' | sort -n | tail -n 1)
    [ "$width" -lt $known ] && [ "$width" -gt $((known / 2)) ] || fail "COLUMNS=$known: $width"
done
# A dumb terminal and a pipe have lines that stay.
train 40 TERM=dumb
grep -q "$escape" "$out" && fail 'a dumb terminal was given commands'
grep -q '^update 30/30 .* tokens/s .* left$' "$out" || fail "TERM=dumb: $(cat "$out")"

# Validations show how far they are, and leave the line of the update before them.
rm -rf "$folder/run"
on 80 -- train copy --out "$folder/run" --preset tiny --length 32 --batch 4 --steps 3 \
    --eval-every 3 --eval-batches $batches --threads 1
lines >"$folder/lines"
grep -q "^update 3/3  validation: batch [0-9]*/$batches$" "$folder/lines" || fail "validation: $(cat "$out")"
grep -q '^update 3/3  loss .* left$' "$folder/lines" || fail "the update is gone: $(cat "$out")"

# What is shown ten times a second needs work of half a second. eval shows how far it is; in a pipe a short one prints its results alone.
head -c $((batches * 256)) /dev/zero | tr '\0' a >"$folder/text"
eval="eval $folder/linear.safetensors --data $folder/text --validation 1 --length 64 --batch 4 --threads 1"
for columns in 16 30 80; do
    # shellcheck disable=SC2086
    on $columns -- $eval
    lines | grep '^batch' >"$folder/lines"
    awk -v most=$columns 'length($0) >= most' "$folder/lines" | grep . && fail "$columns: wider"
    [ "$(sort -u "$folder/lines" | wc -l)" -gt 1 ] || fail "eval shows no progress: $(cat "$out")"
    lines | tail -n 1 | grep -q '^positions/s  *[0-9]' || fail "eval: $(cat "$out")"
done
grep -q "^batch [0-9]*/$batches  [0-9.e+]* batches/s  0:[0-9]* left$" "$folder/lines" || fail 'rate and time left'
# shellcheck disable=SC2086
expect 0 '^positions/s' $eval
grep -v "^batch [0-9]*/$batches .* left$" "$err" && fail "eval in a pipe: more than plain lines of progress"

# ---- Images -----------------------------------------------------------------------------------

# image COLUMNS SETTING...: drawn for those.
image() {
    columns=$1
    shift
    on "$columns" "$@" -- generate "$folder/image.safetensors" -n 4 --threads 1
    lines | grep -q '4 images of 8 x 8 x 3, .* images/s$' || fail "no last line: $(cat "$out")"
}

in_colours() { # WHAT CODE: half blocks in these and no other colours
    grep -aq "$escape\\[38;$2;[0-9;]*m$escape\\[48;$2;[0-9;]*m$block" "$out" || fail "$1: no picture: $(cat "$out")"
    sed "s/$escape\\[[34]8;$2;[0-9;]*m//g; s/$escape\\[0m//g; s/$escape\\[K//g" "$out" |
        grep -a "$escape" && fail "$1: other colours"
}

in_shades() { # WHAT: bytes of ASCII alone, and none that commands
    sed "s/$escape\\[K//g" "$out" | tr -d '\r\n -~' | grep -a . && fail "$1: colours or half blocks"
    [ "$(lines | grep -c '^[-.:=+*#%@ ]*[-.:=+*#%@][-.:=+*#%@ ]*$')" -ge 8 ] ||
        fail "$1: no picture: $(cat "$out")"
}

image 80 COLORTERM=truecolor && in_colours 'COLORTERM=truecolor' 2
image 80 COLORTERM=24bit LANG=en_US.UTF-8 && in_colours 'COLORTERM=24bit' 2
image 80 TERM=xterm-direct LC_ALL=C.utf8 && in_colours 'TERM=xterm-direct' 2
image 80 LANG=de_DE.UTF-8@euro && in_colours 'nothing said' 5
image 80 NO_COLOR= LC_CTYPE=C.UTF-8 LANG=C && in_colours 'NO_COLOR is empty' 5
image 80 NO_COLOR=1 COLORTERM=truecolor && in_shades 'NO_COLOR=1'
image 80 TERM=dumb COLORTERM=truecolor && in_shades 'TERM=dumb'
image 80 TERM= && in_shades 'no TERM'
image 80 LC_ALL=C LANG=en_US.UTF-8 && in_shades 'LC_ALL=C'
image 80 LANG=POSIX && in_shades 'LANG=POSIX'
image 80 LC_CTYPE=en_US.ISO-8859-1 COLORTERM=truecolor && in_shades 'Latin 1'

# While images are drawn, how many are, from the first group of 256 on.
for columns in 40 80; do
    on $columns -- generate "$folder/image.safetensors" -n 1000 --threads 1
    lines | grep -a '% of 1000 images' >"$folder/lines"
    [ "$(cut -d ' ' -f 1 "$folder/lines" | sort -un | wc -l)" -gt 1 ] || fail "progress: $(cat "$folder/lines")"
    awk -v most=$columns 'length($0) >= most' "$folder/lines" | grep . && fail "$columns: wider"
done
grep -q '^[1-9][0-9]* % of 1000 images  [0-9.e+]* images/s  0:[0-9]* left$' "$folder/lines" || fail 'rate and time left'

# As many images side by side as there is room for; one that is wider is cut.
for pair in 80:17 20:17 16:8 8:8 5:5; do
    image ${pair%:*} NO_COLOR=1
    width=$(lines | grep '^[-.:=+*#%@ ]*$' | awk '{ print length($0) }' | sort -n | tail -n 1)
    [ "$width" = "${pair#*:}" ] || fail "${pair%:*} columns: an image of $width columns"
done

# Elsewhere there is a file, and nothing is drawn.
expect 0 'a.png: 4 images' generate "$folder/image.safetensors" -n 4 -o "$folder/a.png"
prints '4 images of 8 x 8 x 3'
[ "$(cat "$out" "$err" | wc -l)" -eq 1 ] || fail "more than a line in a pipe: $(cat "$out" "$err")"

# ---- Help -------------------------------------------------------------------------------------

# As wide as a narrow terminal, but for names and examples, and never wider than 80.
for pair in 60:60 200:80 0:80; do
    on ${pair%:*} -- data fetch --help
    width=$(sed '/^examples/,$d' "$out" | awk '{ print length($0) }' | sort -n | tail -n 1)
    [ "$width" -le "${pair#*:}" ] && [ "$width" -gt $((${pair#*:} - 12)) ] ||
        fail "${pair%:*} columns: help of $width"
done
expect 0 'NO_COLOR' generate --help
expect 0 'drawn as ASCII shades' complete --help

exit $failed
