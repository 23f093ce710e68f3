# SPDX-License-Identifier: MIT
"""The readers of the library give what is in the files."""
import gzip
import struct
import wave

import numpy as np
import pytest

import tarn


@pytest.fixture()
def digits(tmp_path):
    """Random images as MNIST's training file."""
    pixels = np.random.default_rng(0).integers(0, 256, (20, 4, 3), np.uint8)
    with gzip.open(tmp_path / "train-images-idx3-ubyte.gz", "wb") as file:
        file.write(struct.pack(">4i", 0x803, *pixels.shape) + pixels.tobytes())
    return tmp_path, pixels


def test_images(digits):
    folder, pixels = digits
    found = tarn.data.images(folder / "train-images-idx3-ubyte.gz")
    assert found.dtype == np.uint8 and np.array_equal(found[..., 0], pixels)
    assert found.shape == (20, 4, 3, 1)


def test_text(tmp_path):
    (tmp_path / "b.txt").write_bytes(b"second")
    (tmp_path / "a.txt").write_bytes(b"first")
    assert tarn.data.text(tmp_path / "a.txt").tobytes() == b"first"
    assert tarn.data.text(tmp_path).tobytes() == b"first\nsecond"
    (tmp_path / "empty").write_bytes(b"")
    assert tarn.data.text(tmp_path / "empty").size == 0


def test_audio_and_features(tmp_path):
    samples = (np.sin(np.arange(16000) / 10) * 12000).astype("<i2")
    with wave.open(str(tmp_path / "tone.wav"), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(16000)
        file.writeframes(samples.tobytes())
    found, rate = tarn.data.audio(tmp_path / "tone.wav")
    assert rate == 16000 and np.allclose(found, samples / 32768)
    frames = tarn.data.features(found, rate)
    assert frames.shape == ((16000 - 400) // 160 + 1, 40) and np.isfinite(frames).all()
    assert tarn.data.features(found[:100], rate).shape == (0, 40)
    assert len({row.argmax() for row in frames}) == 1  # one tone, one band


def test_batches_of_images(digits):
    folder, pixels = digits
    batches = tarn.data.batches("image", folder, batch=4, validation=0.25)
    assert batches.task == "image:height=4,width=3,channels=1" and batches.length == 11
    assert batches.count() == 4 and batches.count(validation=True) == 2
    known = {row.tobytes() for row in pixels.reshape(20, 12)}
    seen = set()
    for batch, _ in zip(batches.training(), range(4)):
        assert np.array_equal(batch["inputs"][:, 1:], batch["targets"][:, :-1])
        whole = np.concatenate([batch["inputs"], batch["targets"][:, -1:]], 1).astype(np.uint8)
        seen |= {row.tobytes() for row in whole}
    assert seen <= known and len(seen) == 15
    weights = [batch["weights"].sum() for batch in batches.validation()]
    assert weights == [4 * 11, 1 * 11]
    with pytest.raises(tarn.InvalidArgument, match="index is 2; it must be less than 2"):
        batches.batch(2, validation=True)


def test_batches_of_text_carry_on(tmp_path):
    (tmp_path / "text").write_bytes(bytes(range(32, 127)) * 4)
    batches = tarn.data.batches("text", tmp_path / "text", batch=2, length=10, carry=True)
    first, second = batches[0], batches[1]
    assert (first["position"], second["position"]) == (0, 10)
    assert np.array_equal(first["targets"][:, -1], second["inputs"][:, 0])


def test_endless_data():
    batches = tarn.data.batches("copy", length=9, batch=2)
    assert batches.count() is None
    assert np.array_equal(batches[5]["inputs"], batches[5]["inputs"])
    with pytest.raises(tarn.InvalidArgument, match="endless"):
        next(batches.validation())


@pytest.mark.parametrize("read", [tarn.data.images, tarn.data.text, tarn.data.audio])
def test_what_is_not_there_is_refused(tmp_path, read):
    with pytest.raises(OSError, match="nowhere"):
        read(tmp_path / "nowhere")


def test_what_is_wrong_is_refused(tmp_path):
    (tmp_path / "noise").write_bytes(b"\1\2\3" * 100)
    for read in (tarn.data.images, tarn.data.audio):
        with pytest.raises(tarn.Error, match="noise"):
            read(tmp_path / "noise")
    with pytest.raises(tarn.InvalidArgument, match="rate is 5"):
        tarn.data.features(np.zeros(100), 5)
    with pytest.raises(tarn.InvalidArgument, match="rate is 0"):
        tarn.data.features(np.zeros(100), 0)
    with pytest.raises(tarn.Error, match="data"):
        tarn.data.batches("text")
    with pytest.raises(tarn.UnknownName, match="nonsense: unknown option"):
        tarn.data.batches("copy", nonsense=1)
