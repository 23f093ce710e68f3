#!/bin/sh
# SPDX-License-Identifier: MIT
# tests/cli_image.sh PROGRAM MAKE_MODELS CHECK_COMPLETED - images: tarn train, eval, generate and
# complete, and what wrong input is answered.
set -u
. "$(dirname "$0")/expect.sh"
make_models=$2
check_completed=$3
mkdir "$folder/empty" "$folder/models"
path=$PATH
"$make_models" "$folder/models" || exit 1

# idx FILE COUNT HEIGHT WIDTH: squares that grow from image to image.
idx() {
    # shellcheck disable=SC2059
    printf "$(awk -v n="$2" -v h="$3" -v w="$4" 'BEGIN {
        printf "\\000\\000\\010\\003\\000\\000\\000\\%03o\\000\\000\\000\\%03o\\000\\000\\000\\%03o", n, h, w
        for (i = 0; i < n; i++)
            for (y = 0; y < h; y++)
                for (x = 0; x < w; x++)
                    printf "\\%03o", (x <= i % w && y <= i % h) ? 200 + i % 7 : 3 * x
    }')" >"$folder/$1"
}

same() {
    cmp -s "$folder/$1" "$folder/$2" || fail "$3"
}
different() {
    ! cmp -s "$folder/$1" "$folder/$2" || fail "$3"
}

idx images 40 6 5
idx wider 12 6 7
images=$folder/images
wider=$folder/wider
small="--preset tiny --layers 1 --heads 2 --head-width 8 --feed 16 --batch 4 --threads 1"

# train CODE PATTERN OPTION...: of small models.
train() {
    code=$1
    pattern=$2
    shift 2
    # shellcheck disable=SC2086
    expect "$code" "$pattern" train image $small "$@"
}

# ---- train ------------------------------------------------------------------------------------

path=$folder/empty # no gnuplot, which takes a while to start
expect 0 'image  *predict the next byte of an image' train --help
describes 'head SPEC .*\[logistic\]' train image
describes 'length N .*0: taken from the data' train image
train 2 'data is required for task .image.' --out "$folder/a"
train 1 'No such file' --out "$folder/a" --data "$folder/none"
train 1 'empty' --out "$folder/a" --data "$folder/empty"
train 2 'length is 30; it must be 0 or 29' --out "$folder/a" --data "$images" --length 30
expect 2 'has images of 6 x 5 x 1.*the task needs 7 x 0 x 0' train image:height=7 --out "$folder/a" \
    --data "$images"
train 2 'validation is 1, which leaves no training data' --out "$folder/a" --data "$images" \
    --validation 1
expect 2 "channels is '4'" train image:channels=4 --out "$folder/a" --data "$images"
[ -e "$folder/a" ] && fail 'a refused run made its folder'

train 0 '^validation after update 200: loss .*, bits_per_dim' --out "$folder/whole" --data "$images" --steps 200 \
    --eval-every 50 --lr 0.01
prints '^update 200/200  loss .*  bits_per_dim [0-9.]*  [0-9]* tokens/s' \
    '^image:height=6,width=5,channels=1: linear attention' 'batch size 4, sequence length 29'
head -n 1 "$folder/whole/loss.csv" | grep -q 'validation_loss,bits_per_dim$' || fail 'the CSV'
grep -q '"bits_per_dim":' "$folder/whole/log.jsonl" || fail 'the log'
# A symbol of 256 that are equally likely has 5.545 nats.
awk -F, 'NR == 2 { first = $2 } { last = $2 } END { exit !(last < first && last < 5) }' \
    "$folder/whole/loss.csv" || fail "nothing was learnt: $(tail -n 1 "$folder/whole/loss.csv")"
train 0 '80 updates' --out "$folder/part" --data "$images" --steps 80 --eval-every 50 --lr 0.01 \
    --schedule cosine:warmup=4,total=200,final=0.1
expect 0 'resuming after update 80' train image --out "$folder/part" --resume --steps 200
same whole/model.safetensors part/model.safetensors 'a resumed run has other weights'
expect 2 'was started with task' train image:height=6 --out "$folder/part" --resume
model=$folder/whole/model.safetensors
expect 0 'task  *image:height=6,width=5,channels=1' inspect "$model"

# ---- eval -------------------------------------------------------------------------------------

expect 0 '^bits_per_dim ' eval "$folder/whole"
expect 0 '^positions  *116$' eval "$model" --data "$images" # 4 images of 29
expect 0 '^positions  *1160$' eval "$model" --data "$images" --validation 1 --batch 7
expect 0 '"metric":"bits_per_dim","bits_per_dim":[0-9]' eval "$model" --data "$images" --json
expect 2 'has images of 6 x 7 x 1.*the task needs 6 x 5 x 1' eval "$model" --data "$wider"
expect 1 'empty' eval "$model" --data "$folder/empty"

# ---- generate ---------------------------------------------------------------------------------

# draw FILE OPTION...
draw() {
    file=$1
    shift
    expect 0 'images* of 6 x 5 x 1, .* images/s' generate "$model" -o "$folder/$file" "$@"
}

draw a.png -n 20
draw b.png -n 20 --threads 2
same a.png b.png 'threads change the picture'
for streams in 1 5 16 17 20; do
    draw b.png -n 20 --streams $streams
    same a.png b.png "$streams at once change the picture"
done
draw b.png -n 20 --seed 1 --prompt 0
same a.png b.png 'seed 1 and a black pixel are the default'
draw b.png -n 20 --seed 2
different a.png b.png 'seeds make no difference'
draw b.png -n 20 --prompt '200 200'
different a.png b.png 'first bytes make no difference'
draw b.png -n 20 --method recompute --greedy
draw c.png -n 20 --greedy
same b.png c.png 'both methods, greedy'
draw a.png
draw b.png -n 16
same a.png b.png '16 images are the default'
expect 0 '"images":3,"height":6,"width":5,"channels":1,"file":null,.*"images_per_s":' \
    generate "$model" -n 3 --json
expect 2 '-o FILE is required' generate "$model"
expect 2 'images are generated whole' generate "$model" -o "$folder/a.png" --save-state "$folder/s"
expect 2 'it must be a list of numbers from 0 to 255' generate "$model" -o "$folder/a.png" --prompt 256
expect 2 'the prompt has as many bytes as an image' generate "$model" -o "$folder/a.png" \
    --prompt "$(awk 'BEGIN { for (i = 0; i < 30; i++) printf "7 " }')"
draw a.svg -n 4
[ "$(grep -c '<use href="#cover"' "$folder/a.svg")" = 4 ] || fail 'an animation draws all images'
grep -q 'linear attention: .* at every pixel' "$folder/a.svg" || fail 'an animation shows the memory'
draw each/ -n 3
draw b.png -n 1
same each/00000.png b.png 'a folder has a file for each image'
[ -f "$folder/each/00002.png" ] && [ ! -e "$folder/each/00003.png" ] || fail 'three files for three images'
expect 0 '3 images, .* bytes shown' complete "$model" --data "$folder/each" -o "$folder/b.png"
expect 1 'none/each/: No such file' generate "$model" -n 1 -o "$folder/none/each/"
expect 1 'a.png/: Not a directory' generate "$model" -n 1 -o "$folder/a.png/"
expect 1 'none/a.png: No such file' generate "$model" -o "$folder/none/a.png"
expect 1 'empty: Is a directory' generate "$model" -o "$folder/empty"
expect 1 '-o: the file name is empty' generate "$model" -o ''
# ---- formats and sizes of files ---------------------------------------------------------------

for ending in .jpg .JPEG .gif .webp .bmp .pdf .npz .gguf .safetensors .txt; do
    expect 2 "'; $(echo $ending | tr A-Z a-z) files cannot be written here; supported: .png, .svg$" \
        generate "$model" -o "$folder/foreign$ending"
    expect 2 "tarn complete: -o is '.*'; .* files cannot be written here" complete "$model" --data "$images" \
        -o "$folder/foreign$ending"
    [ -e "$folder/foreign$ending" ] && fail "$ending was written"
done
draw picture -n 1 # no ending, or one that nobody knows: PNG
draw picture.v2 -n 1
same picture picture.v2 'unknown endings'
draw picture.SVG -n 1
grep -q '<svg' "$folder/picture.SVG" || fail 'capitals are small letters'

# side FILE: width x height of a PNG file.
side() {
    od -An -tu1 -j16 -N8 "$folder/$1" | awk '{ print $3 * 256 + $4 "x" $7 * 256 + $8 }'
}

draw one.png -n 4
draw large.png -n 4 --scale 3
[ "$(side one.png) $(side large.png)" = '11x13 33x39' ] || fail "sizes: $(side one.png) $(side large.png)"
draw b.png -n 4 --scale 1
same one.png b.png 'a scale of 1 is none'
draw each-large/ -n 2 --scale 5
[ "$(side each-large/00001.png)" = 25x30 ] || fail "a file each: $(side each-large/00001.png)"
draw k.png -n 1
expect 0 ' bytes shown' complete "$model" --data "$folder/k.png" --images 1 --samples 1 -o "$folder/m.png" --scale 2
[ "$(side m.png)" = '34x12' ] || fail "complete --scale: $(side m.png)"
draw small.svg -n 1 --scale 1
draw usual.svg -n 1
different small.svg usual.svg 'the scale of an animation'
expect 2 "--scale is '101'; it must be a whole number from 0 to 100" generate "$model" --scale 101
expect 2 'is too large; its sides can be at most 1000000 pixels' generate "$model" --scale 100 -n 100000000 -o "$folder/a.png"
expect 2 '--scale is for image models' generate "$folder/models/linear.safetensors" --scale 2

# ---- models of the wrong kind -----------------------------------------------------------------

# wrong MODEL SENTENCE COMMAND...: exit code 2 in every command.
wrong() {
    given=$folder/models/$1.safetensors
    sentence=$2
    shift 2
    command=$1
    shift
    expect 2 "$sentence" "$command" "$given" "$@"
}

for given in linear numbers taskless speech; do
    wrong $given 'it must be an image model' complete --data "$images" -o "$folder/a.png"
done
wrong sizeless 'does not give the size of the images' complete --data "$images" -o "$folder/a.png"
wrong sizeless 'does not give the size of the images' generate -o "$folder/a.png"
wrong image 'has images of 6 x 5 x 1' complete --data "$images" -o "$folder/a.png"
for given in linear numbers taskless image; do
    wrong $given 'it must be a speech model' transcribe "$images"
done
wrong speech 'is a speech model' generate
wrong both 'is not causal' generate
wrong taskless 'the model has no task to evaluate' eval
wrong image 'has images of 6 x 5 x 1' eval --data "$images"
expect 2 'it must be an image model' bench image --like "$folder/models/linear.safetensors" --method linear
expect 2 "symbols is 11; it must be 256 for task .image" train image --start "$folder/models/numbers.safetensors" --out "$folder/none-made" --data "$images"

# ---- wrong input ------------------------------------------------------------------------------

sed 's/tarn_crc32/xarn_crc32/;s/image:height=6,width=5,channels=1/image:height=6,width=0,channels=1/' "$model" \
    >"$folder/sizeless"
expect 2 'does not give the size of the images' generate "$folder/sizeless" -o "$folder/a.png"

# ---- complete ---------------------------------------------------------------------------------

# complete FIRST SAMPLES KEPT OPTION...: a picture with what must be in it.
complete() {
    first=$1
    samples=$2
    kept=$3
    shift 3
    expect 0 'completions* per image' complete "$model" --data "$images" --first "$first" --samples "$samples" \
        -o "$folder/k.png" "$@"
    "$check_completed" "$folder/k.png" "$images" "$first" "$samples" "$kept" >"$out" ||
        fail "completions, $*: $(cat "$out")"
}

complete 0 3 15
grep -q '^8 rows' "$out" || fail '8 images are the default'
cp "$folder/k.png" "$folder/half.png"
complete 0 3 15 --keep 0.5 --images 8 --threads 2
same half.png k.png 'threads change completions'
complete 0 3 15 --seed 2
different half.png k.png 'seeds make no difference to completions'
complete 2 1 29 --keep 0.99 --images 1
complete 39 2 1 --keep 0.01
grep -q '^1 rows' "$out" || fail 'more images than there are'
expect 0 '"images":1,"samples":3,"first":0,"kept_bytes":15,"image_bytes":30,' complete "$model" \
    --data "$images" --images 1 -o "$folder/k.png" --json
expect 0 'completions* per image' complete "$model" --data "$images" --images 2 --samples 3 -o "$folder/k.svg"
[ "$(grep -c '<use href="#cover"' "$folder/k.svg")" = 6 ] || fail 'only completions are animated'
for keep in 0 1 -1 1.5 half nan; do
    expect 2 '--keep is .*; it must be ' complete "$model" --data "$images" -o "$folder/k.png" --keep $keep
done
expect 0 'usage: tarn complete MODEL' complete --help
expect 2 'MODEL is required' complete
expect 2 '--data PATH is required' complete "$model" -o "$folder/k.png"
expect 2 '-o FILE is required' complete "$model" --data "$images"
expect 2 'has images of 6 x 7 x 1.*the model needs 6 x 5 x 1' complete "$model" --data "$wider" \
    -o "$folder/k.png"
expect 2 '--first is 40; .*images has only 40 images' complete "$model" --data "$images" --first 40 \
    -o "$folder/k.png"
expect 2 "is a model of task 'text'; it must be an image model" complete \
    "$folder/models/linear.safetensors" --data "$images" -o "$folder/k.png"
expect 1 'empty' complete "$model" --data "$folder/empty" -o "$folder/k.png"
expect 1 '-o: the file name is empty' complete "$model" --data "$images" -o ''
expect 2 '1 rows of 166667 images of 6 x 5 at scale 1 is too large; its sides can be at most 1000000' complete "$model" \
    --data "$images" -o "$folder/k.png" --images 1 --samples 166665
expect 1 'No such file' complete "$folder/none" --data "$images" -o "$folder/k.png"

# ---- bench ------------------------------------------------------------------------------------

expect 0 'whole with random weights, f32, images of 30 bytes' bench image --like "$folder/whole" \
    --method linear --budget 0.001 --threads 1
expect 0 'images of 7 bytes' bench image --like "$model" --length 7 --method linear --budget 0.001 \
    --threads 1
expect 2 "is a model of task 'text'; it must be an image model" bench image \
    --like "$folder/models/linear.safetensors"
expect 1 'none: No such file' bench image --like "$folder/none"

# ---- PNG files --------------------------------------------------------------------------------

mkdir "$folder/pictures"
for i in 1 2 3 4 5 6 7 8; do
    draw pictures/$i.png -n 1 --seed $i
done
train 0 '2 updates' --out "$folder/of_png" --data "$folder/pictures" --steps 2 --validation 0.25
expect 0 '^positions  *232$' eval "$folder/of_png" --validation 1

# ---- Real data --------------------------------------------------------------------------------

if [ -n "${TARN_DATA:-}" ]; then
    for set in mnist cifar-10-batches-bin; do
        [ -d "$TARN_DATA/$set" ] || continue
        train 0 '3 updates' --out "$folder/$set" --data "$TARN_DATA/$set" --steps 3 --batch 1 \
            --eval-batches 1
        expect 0 '^bits_per_dim ' eval "$folder/$set" --eval-batches 1
        expect 0 'completions* per image' complete "$folder/$set" --data "$TARN_DATA/$set" --images 1 --samples 1 \
            -o "$folder/k.png"
    done
else
    echo 'without TARN_DATA: not tried on MNIST and CIFAR-10'
fi

exit $failed
