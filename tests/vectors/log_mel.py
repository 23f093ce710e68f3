#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Log-mel frames from their definition, in double: writes log_mel_vectors.h beside itself.

Where the package kaldi-native-fbank is installed, what Kaldi computes must agree.
"""
import pathlib

import numpy as np

from c_array import c_array

WINDOW, HOP, POINTS, BANDS, RATE = 400, 160, 512, 40, 16000


def signal():
    """A tone that rises over everything, hiss that fades, an offset, and silence; 16 bits."""
    n = np.arange(1500)
    tone = 9000 * np.sin(2 * np.pi * (200 * n / RATE + 0.5 * 60000 * (n / RATE) ** 2))
    hiss = np.random.default_rng(1).normal(size=n.size) * 3000 * np.exp(-n / 300)
    x = np.round(tone + hiss + 500).astype(int)
    x[900:] = 0
    return np.clip(x, -32768, 32767)


def mel(hertz):
    return 1127.0 * np.log(1.0 + hertz / 700.0)


def triangles():
    corners = np.linspace(mel(20.0), mel(RATE / 2), BANDS + 2)
    bins = mel(np.arange(POINTS // 2) * RATE / POINTS)
    rows = []
    for left, middle, right in zip(corners, corners[1:], corners[2:]):
        up, down = (bins - left) / (middle - left), (right - bins) / (right - middle)
        rows.append(np.maximum(0.0, np.minimum(up, down)))
    return np.array(rows)


def frame(x):
    d = x - x.mean()
    e = d - 0.97 * np.concatenate([d[:1], d[:-1]])
    i = np.arange(WINDOW)
    w = (0.5 - 0.5 * np.cos(2 * np.pi * i / (WINDOW - 1))) ** 0.85
    k = np.arange(POINTS // 2)[:, None]
    power = np.abs((np.exp(-2j * np.pi * k * i / POINTS) * (e * w)).sum(axis=1)) ** 2
    return np.log(np.maximum(triangles() @ power, 2.0**-23))


def frames(x):
    return np.array([frame(x[t:t + WINDOW]) for t in range(0, len(x) - WINDOW + 1, HOP)])


def check(x, ours):
    try:
        import kaldi_native_fbank as kaldi
    except ImportError:
        print("no kaldi-native-fbank: not compared")
        return
    options = kaldi.FbankOptions()
    options.frame_opts.dither = 0
    options.mel_opts.num_bins = BANDS
    fbank = kaldi.OnlineFbank(options)
    fbank.accept_waveform(RATE, x.tolist())
    fbank.input_finished()
    theirs = np.array([fbank.get_frame(t) for t in range(fbank.num_frames_ready)])
    assert theirs.shape == ours.shape, (theirs.shape, ours.shape)
    print("largest difference from Kaldi:", np.abs(theirs - ours).max())
    assert np.abs(theirs - ours).max() < 2e-3


x = signal()
y = frames(x / 32768.0)
check(x / 32768.0, y)
text = "/* SPDX-License-Identifier: MIT */\n/* log_mel_vectors.h - made by log_mel.py. */\n"
text += "/* clang-format off */\n"
text += c_array("short", "log_mel_samples", [str(v) for v in x])
text += c_array("float", "log_mel_frames", [f"{v:#.9g}f" for v in y.flatten()])
pathlib.Path(__file__).with_name("log_mel_vectors.h").write_text(text)
