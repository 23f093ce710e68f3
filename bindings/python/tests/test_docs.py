# SPDX-License-Identifier: MIT
"""The Python of the documentation runs as it stands, but for shorter times of training."""
import gzip
import re
import shutil
import struct
import sys
import wave
from pathlib import Path

import numpy as np
import pytest

import tarn

ROOT = Path(__file__).parents[3]
SHORTER = {"minutes=5": "minutes=0.002", "steps=20000": "minutes=0.002"}


def blocks(page):
    """(heading, code) of each block of Python, in order."""
    heading, found = "", []
    for title, code in re.findall(r"(?ms)^#+ ([^\n]+)$|^```python\n(.*?)^```$",
                                  (ROOT / page).read_text()):
        if title:
            heading = title
        else:
            found.append((heading, code))
    return found


def run(code, names):
    for long, short in SHORTER.items():
        code = code.replace(long, short)
    exec(compile(code, "<documentation>", "exec"), names)


# ---- What a section needs besides its own lines -------------------------------------


def arrays(folder):
    return {name: np.ones((2, 8, 1024, 32), np.float32)
            for name in ("q1", "k1", "v1", "q2", "k2", "v2")}


def book(folder):
    tarn.Model.create("tiny", task="text").save(folder / "book")
    shutil.copy(ROOT / "tests" / "vectors" / "image.pth", folder / "mnist.pth")
    return {}


def text(folder):
    (folder / "book.txt").write_bytes(b"to be or not to be " * 4000)
    symbols = np.zeros((2, 9), np.int32)
    half = symbols[:, 1:], symbols[:, :-1], np.ones((2, 8), np.float32)
    return dict(symbols=symbols, one=symbols, another=symbols,
                **dict(zip(("inputs", "targets", "weights"), half)))


def files(folder):
    pixels = np.random.default_rng(0).integers(0, 256, (40, 4, 4), np.uint8)
    for name in ("mnist", "data/mnist"):
        (folder / name).mkdir(parents=True)
        with gzip.open(folder / name / "train-images-idx3-ubyte.gz", "wb") as file:
            file.write(struct.pack(">4i", 0x803, *pixels.shape) + pixels.tobytes())
    with wave.open(str(folder / "hello.flac"), "wb") as file:
        file.setparams((1, 2, 16000, 0, "NONE", ""))
        file.writeframes(np.zeros(8000, "<i2").tobytes())
    (folder / "book.txt").write_bytes(b"to be or not to be")
    config = tarn.Config.of_task("image:height=4,width=4,channels=1", "tiny")
    return dict(trainer=tarn.Trainer(tarn.Model.create(config)))


def tensors(folder):
    torch = pytest.importorskip("torch")
    import tarn.torch as tt
    q = torch.randn(2, 5, 3, 32)
    return dict(queries=q, keys=q, values=q, attn_mask=tt.TriangularCausalMask(5),
                query_lengths=None, key_lengths=tt.LengthMask([3, 5]))


SECTIONS = {"Attention": arrays, "Models": book, "Training": text, "Data": files, "torch": tensors}


@pytest.mark.parametrize("section", SECTIONS)
def test_the_guide_to_python(section, tmp_path, monkeypatch):
    names = dict(SECTIONS[section](tmp_path), np=np, tarn=tarn)
    monkeypatch.chdir(tmp_path)
    found = [code for heading, code in blocks("docs/python.md") if heading == section]
    assert found
    for code in found:
        run(code, names)


def test_every_block_is_run():
    headings = {heading for heading, _ in blocks("docs/python.md")}
    assert headings == {*SECTIONS, "For users of fast_transformers"}


def test_the_guide_for_users_of_fast_transformers(tmp_path, monkeypatch):
    torch = pytest.importorskip("torch")
    import tarn.fast_transformers as drop_in
    monkeypatch.chdir(tmp_path)
    for name in [name for name in sys.modules if name.split(".")[0] == "fast_transformers"]:
        monkeypatch.delitem(sys.modules, name)  # the original, if other tests imported it
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    builder = drop_in.builders.TransformerEncoderBuilder.from_kwargs(
        n_layers=8, n_heads=8, attention_type="causal-linear")
    torch.save(builder.get().state_dict(), "theirs.pth")
    (code,) = [code for heading, code in blocks("docs/python.md") if "users of" in heading]
    names = dict(torch=torch)
    run(code, names)
    for name in [name for name in sys.modules if name.split(".")[0] == "fast_transformers"]:
        monkeypatch.delitem(sys.modules, name)
    assert type(names["model"]) is drop_in.transformers.TransformerEncoder


def test_the_front_page(tmp_path, monkeypatch):
    pytest.importorskip("torch")
    files(tmp_path)
    monkeypatch.chdir(tmp_path)
    q = np.ones((1, 2, 8, 4), np.float32)
    ((_, code),) = blocks("README.md")
    names = dict(q=q, k=q, v=q)
    run(code, names)
    assert names["model"].config.task.startswith("image")


def test_the_tutorial(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (first, second) = (code for _, code in blocks("docs/tutorial.md"))
    tarn.Model.create("tiny", task="copy:symbols=10").save("copied")
    run(first, {})
    pytest.importorskip("torch")
    run(second, {})
    printed = capsys.readouterr().out
    assert float(re.findall(r"update 100: .*accuracy ([0-9.]+)", printed)[0]) > 0.9
