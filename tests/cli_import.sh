#!/bin/sh
# SPDX-License-Identifier: MIT
# tests/cli_import.sh PROGRAM - models from PyTorch's files and into NumPy's, through the program.
set -u
. "$(dirname "$0")/expect.sh"
vectors=$(dirname "$0")/vectors

same_weights() { # FILE FILE
    one=$("$tarn" inspect "$1" | grep fingerprint)
    other=$("$tarn" inspect "$2" | grep fingerprint)
    [ -n "$one" ] && [ "$one" = "$other" ] || fail "$1 and $2 are not the same model"
}

expect 0 '1162 parameters' import "$vectors/image_old.pth" "$folder/old.safetensors" --heads 2
prints 'inferred  layers: 2' 'assumed   attention: linear (not shown by the shapes)' \
    'skipped   state_dict.module.pos_embedding.pe: is computed' \
    'tensors: 37 read, 3 skipped, 0 missing'
expect 0 'assumed   heads: 8' import "$vectors/image_old.pth" "$folder/eight.safetensors"
expect 0 'read .*module.predictor.bias -> predictor.bias' import "$vectors/image_old.pth" \
    "$folder/all.safetensors" --heads 2 --all
same_weights "$folder/old.safetensors" "$folder/all.safetensors"
expect 0 'logistic:mixtures=2' inspect "$folder/old.safetensors"
expect 0 'state_dict.module.value_embedding.weight' inspect "$vectors/image_old.pth"
expect 0 '"kind":"pth"' inspect "$vectors/image_old.pth" --json
expect 0 '.' generate "$folder/old.safetensors" -n 5 --seed 3
expect 0 'parameters' import "$vectors/image_old.pth" "$folder/task.safetensors" --heads 2 \
    --task copy:symbols=6
expect 0 'copy:symbols=6' inspect "$folder/task.safetensors"
expect 2 "'image:height=2,width=2' has 256 symbols, but the model has 7" import \
    "$vectors/image_old.pth" "$folder/no" --heads 2 --task image:height=2,width=2
expect 2 "'image:height=5' must give all of height, width and channels" import "$vectors/parity.pth" \
    "$folder/no" --heads 2 --task image:height=5
expect 2 "import: task: unknown name 'foo'" import "$vectors/image_old.pth" "$folder/no" --heads 2 --task foo
"$tarn" train copy --preset tiny --layers 1 --length 9 --batch 2 --steps 1 --eval-every 0 \
    --out "$folder/copied" >"$out" 2>"$err" || fail "train: $(cat "$err")"
expect 0 'parameters' import "$folder/copied/model.safetensors" "$folder/copied.safetensors"
expect 2 "import: --head is 'ctc'; task 'copy' needs a head like 'categorical'" import \
    "$folder/copied/model.safetensors" "$folder/no" --head ctc
for name in no.npz no.pth no.pt no.gguf no.onnx no.png; do
    expect 2 "OUT is '.*$name'; .* files cannot be written here; supported: .safetensors$" import "$vectors/image_old.pth" \
        "$folder/$name" --heads 2
    [ ! -e "$folder/$name" ] || fail "what is refused leaves $name"
done
expect 2 'multiple of heads, 3' import "$vectors/image_old.pth" "$folder/no" --heads 3
expect 2 "unknown name 'linaer'" import "$vectors/image_old.pth" "$folder/no" --attention linaer
expect 2 'OUT is required' import "$vectors/image_old.pth"
expect 1 'No such file' import "$folder/none.pth" "$folder/no"
expect 1 'none/no: No such file' import "$vectors/image_old.pth" "$folder/none/no"
expect 2 "'': is not a file name" import "$vectors/image_old.pth" ''
expect 1 "'': No such file" inspect ''
[ ! -e "$folder/no" ] || fail "what is refused leaves a file"

# What is exported is the same model.
expect 0 '1162 parameters' export "$folder/old.safetensors" "$folder/out.safetensors"
same_weights "$folder/old.safetensors" "$folder/out.safetensors"
expect 0 'pos_embedding.pe  *F32  *1 x 5000 x 4' inspect "$folder/out.safetensors" --tensors
expect 0 '1162 parameters' export "$folder/old.safetensors" "$folder/out.safetensors" --positions 5
expect 0 'pos_embedding.pe  *F32  *1 x 5 x 4' inspect "$folder/out.safetensors" --tensors
expect 0 'parameters' import "$vectors/parity.pth" "$folder/image.safetensors" --heads 2 \
    --task image:height=5,width=6,channels=1
expect 0 'parameters' export "$folder/image.safetensors" "$folder/sized.safetensors"
expect 0 'pos_embedding.pe  *F32  *1 x 30 x 4' inspect "$folder/sized.safetensors" --tensors
expect 1 'No such file' export "$folder/none" "$folder/no"
expect 2 'OUT is required' export "$folder/old.safetensors"
expect 2 "OUT is '.*no.pth'; .pth files cannot be written here; supported: .safetensors, .npz$" export \
    "$folder/old.safetensors" "$folder/no.pth"
for name in no.gguf no.PT no.bin no.h5 no.png; do
    expect 2 "OUT is '.*$name'; .* supported: .safetensors, .npz$" export "$folder/old.safetensors" "$folder/$name"
    [ ! -e "$folder/$name" ] || fail "what is refused leaves $name"
done
expect 0 'parameters' export "$folder/old.safetensors" "$folder/out.npz"
expect 0 'parameters' export "$folder/old.safetensors" "$folder/capitals.NPZ"
[ "$(head -c 2 "$folder/capitals.NPZ")" = PK ] || fail '.NPZ is .npz'
same_weights "$folder/old.safetensors" "$folder/out.npz"
expect 0 'parameters' import "$folder/out.npz" "$folder/again.safetensors"
cmp "$folder/again.safetensors" "$folder/old.safetensors" || fail "out.npz came back as another"
expect 0 '37 read, ' import "$vectors/image.pth" "$folder/new.safetensors" --heads 2
same_weights "$folder/old.safetensors" "$folder/new.safetensors"
expect 0 'epoch *3' inspect "$vectors/image.pth"
expect 0 'transposed  *F32  *6 x 4 .*65.757' inspect "$vectors/views.pth" --tensors
expect 1 'is only an encoder: value_embedding.weight, predictor.weight' \
    import "$vectors/encoder.pth" "$folder/no"
expect 0 'layers.0.norm1.weight' inspect "$vectors/encoder.pth"
expect 1 'not a supported model' import "$vectors/views.pth" "$folder/no"
head -c 3000 "$vectors/views.pth" >"$folder/cut.pth"
expect 1 'cut.pth: zip' inspect "$folder/cut.pth"

# Python reads the archive, and what it packs again is read here.
python3 - "$folder/out.npz" "$folder/packed.npz" <<'END' || fail "Python reads another archive"
import sys, zipfile
source = zipfile.ZipFile(sys.argv[1])
assert source.testzip() is None
with zipfile.ZipFile(sys.argv[2], "w", zipfile.ZIP_DEFLATED) as target:
    for name in source.namelist():
        with target.open(name, "w", force_zip64=len(name) % 2 == 0) as entry:
            entry.write(source.read(name))
END
expect 0 'parameters' import "$folder/packed.npz" "$folder/again.safetensors"
cmp "$folder/again.safetensors" "$folder/old.safetensors" || fail "packed.npz came back as another"

if python3 -c 'import numpy' 2>"$err"; then
    python3 - "$folder/out.npz" "$folder/deflated.npz" "$folder/whole.npz" <<'END' || fail "NumPy reads another"
import json, sys, numpy
arrays = numpy.load(sys.argv[1])
assert arrays["predictor.weight"].shape == (6, 8)
assert arrays["predictor.weight"].dtype == numpy.float32
everything = {name: arrays[name] for name in arrays.files}
assert all(isinstance(array, numpy.ndarray) for array in everything.values())
assert json.loads(bytes(everything["tarn.json"]))["layers"] == 2
numpy.savez(sys.argv[3], **everything)
del everything["tarn.json"]
assert len(everything) == 38 and arrays["pos_embedding.pe"].shape == (1, 5000, 4)
numpy.savez_compressed(sys.argv[2], **everything)
END
    expect 0 'parameters' import "$folder/whole.npz" "$folder/again.safetensors"
    cmp "$folder/again.safetensors" "$folder/old.safetensors" || fail "NumPy's copy is another"
    expect 0 '37 read, 1 skipped' import "$folder/deflated.npz" "$folder/np.safetensors" --heads 2
    same_weights "$folder/old.safetensors" "$folder/np.safetensors"
fi
exit $failed
