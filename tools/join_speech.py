#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Joins recordings of single words to strings of words, with pauses, noise, speed and gain varied.

    tools/join_speech.py FOLDER... --out DIR [--strings N] [--test N] [--most W] [--without SPEAKER]

reads train.tsv and test.tsv of each FOLDER and writes DIR/train.tsv, DIR/test.tsv and their audio
files, 16 kHz WAV. A string of the test part has recordings of one speaker as they are, with pauses
between them. So has a quarter of the training part; the others are at any speed from 0.8 to 1.25,
through a random microphone, in noise or none. With --without, no string of the training part has that
speaker, and all of the test part have. Needs sox and NumPy. The same seed gives the same corpus.
"""
import argparse
import csv
import os
import pathlib
import random
import shutil
import subprocess
import sys
import wave

RATE = 16000
AS_RECORDED = 0.25  # of the training strings: models that hear only varied ones learn slowly


def stop(text):
    print(f"join_speech: {text}", file=sys.stderr)
    sys.exit(1)


try:
    import numpy as np
except ImportError:
    stop(f"NumPy is not installed for {sys.executable}; run tools/setup.sh speech, or use another Python")


# ---- Recordings -----------------------------------------------------------------

def read_table(folder, part):
    path = pathlib.Path(folder) / f"{part}.tsv"
    if not path.is_file():
        return []
    with open(path, encoding="utf-8", newline="") as table:
        rows = list(csv.DictReader(table, delimiter="\t", quoting=csv.QUOTE_NONE))
    for row in rows:
        if not row.get("audio") or not row.get("text"):
            stop(f"{path}: expected the columns audio and text in every row")
        row["path"] = str(pathlib.Path(folder) / row["audio"])
        row["speaker"] = row.get("speaker") or "unknown"
    return rows


def read_sound(path):
    """Samples in [-1, 1] at 16 kHz, without the silence at the ends."""
    done = subprocess.run(["sox", path, "-t", "s16", "-r", str(RATE), "-c", "1", "-"],
                          capture_output=True, check=False)
    if done.returncode != 0:
        stop(f"{path}: sox failed: {done.stderr.decode(errors='replace').strip()}")
    sound = np.frombuffer(done.stdout, dtype="<i2").astype(np.float32) / 32768
    loud = np.flatnonzero(np.abs(sound) > 0.02 * np.abs(sound).max(initial=1e-9))
    margin = RATE // 50
    return sound[max(0, loud[0] - margin):loud[-1] + margin] if len(loud) else sound


# ---- Variation ------------------------------------------------------------------

def change_speed(sound, speed):
    """As a tape does: pitch and formants change too, as from voice to voice."""
    places = np.arange(0, len(sound) - 1, speed)
    return np.interp(places, np.arange(len(sound)), sound).astype(np.float32)


def through_microphone(sound, tilt):
    """A filter of first order, y[i] = x[i] - tilt x[i - 1]."""
    return sound - tilt * np.concatenate([np.zeros(1, np.float32), sound[:-1]])


def noise_like(count, colour, numbers):
    """White noise, or, with colour 1, noise that falls by 3 dB per octave."""
    spectrum = np.fft.rfft(numbers.standard_normal(count))
    spectrum[1:] /= np.arange(1, len(spectrum)) ** (colour / 2)
    noise = np.fft.irfft(spectrum, count)
    return (noise / (noise.std() + 1e-9)).astype(np.float32)


def silence(seconds):
    return np.zeros(int(seconds * RATE), np.float32)


def edge(chance):
    """Before the first word and after the last: often nothing, as in recordings that were cut."""
    return silence(chance.choice([0.0, 0.0, chance.uniform(0.05, 0.3)]))


def join(sounds, chance, shortest, longest):
    pieces = [edge(chance), sounds[0]]
    for sound in sounds[1:]:
        pieces += [silence(chance.uniform(shortest, longest)), sound]
    return np.concatenate(pieces + [edge(chance)])


def vary(sounds, chance, numbers):
    """One voice, one room: speed and microphone are drawn once per string, little of both per
    word."""
    speed, tilt = chance.uniform(0.8, 1.25), chance.uniform(-0.4, 0.7)
    varied = [through_microphone(change_speed(s, speed * chance.uniform(0.93, 1.07)), tilt)
              for s in sounds]
    varied = [s / (np.abs(s).max() + 1e-9) * chance.uniform(0.5, 1.0) for s in varied]
    string = join(varied, chance, 0.02, chance.choice([0.1, 0.3, 0.7]))
    level = 10 ** (chance.uniform(-100, -22) / 20)  # below -90 dB, 16 bits hold silence
    return string + level * noise_like(len(string), chance.uniform(0, 2), numbers)


def write_sound(path, sound, gain):
    peak = np.abs(sound).max() + 1e-9
    with wave.open(str(path), "wb") as file:
        file.setparams((1, 2, RATE, 0, "NONE", ""))
        file.writeframes((sound / peak * gain * 32000).astype("<i2").tobytes())


# ---- The corpus -----------------------------------------------------------------

class Recordings:
    """By speaker; sounds are read once."""

    def __init__(self, rows):
        self.rows = {}
        self.sounds = {}
        for row in rows:
            self.rows.setdefault(row["speaker"], []).append(row)

    def draw(self, count, chance):
        speakers = sorted(self.rows)
        speaker, = chance.choices(speakers, [len(self.rows[name]) for name in speakers])
        chosen = [chance.choice(self.rows[speaker]) for _ in range(count)]
        for row in chosen:
            if row["path"] not in self.sounds:
                self.sounds[row["path"]] = read_sound(row["path"])
        return speaker, chosen, [self.sounds[row["path"]] for row in chosen]


def make_part(out, part, rows, options, count, varied):
    chance = random.Random(f"{options.seed} {part}")
    numbers = np.random.default_rng([options.seed, part == "test"])
    recordings, lines, total = Recordings(rows), [], 0.0
    (out / part).mkdir(parents=True, exist_ok=True)
    for i in range(count):
        speaker, chosen, sounds = recordings.draw(chance.randint(1, options.most), chance)
        changed = chance.random() < varied
        sound = vary(sounds, chance, numbers) if changed else join(sounds, chance, 0.1, 0.5)
        name = f"{part}/{i:06d}.wav"
        write_sound(out / name, sound, 10 ** (chance.uniform(-30, 0) / 20) if changed else 1.0)
        seconds = len(sound) / RATE
        total += seconds
        lines.append("\t".join([name, f"{seconds:.2f}", speaker,
                                " ".join(row["text"] for row in chosen)]))
    temporary = out / f"{part}.tsv.tmp"
    temporary.write_text("audio\tseconds\tspeaker\ttext\n" + "\n".join(lines) + "\n", encoding="utf-8")
    os.replace(temporary, out / f"{part}.tsv")
    print(f"{part}: {len(lines)} strings, {total / 60:.1f} minutes, {len(recordings.rows)} speakers")


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("folder", nargs="+", help="folder with recordings of single words")
    parser.add_argument("--out", required=True, metavar="DIR", help="output folder")
    parser.add_argument("--strings", type=int, default=4000, metavar="N", help="training strings [4000]")
    parser.add_argument("--test", type=int, default=400, metavar="N", help="test strings [400]")
    parser.add_argument("--most", type=int, default=6, metavar="W", help="maximum words of a string [6]")
    parser.add_argument("--without", metavar="SPEAKER", help="speaker who is only in the test part")
    parser.add_argument("--seed", type=int, default=0, metavar="S", help="random seed [0]")
    options = parser.parse_args()
    if min(options.strings, options.test, options.most) < 1:
        parser.error("--strings, --test and --most must be at least 1")
    return options


def choose(options):
    """Rows of the training part and of the test part."""
    train = [row for folder in options.folder for row in read_table(folder, "train")]
    test = read_table(options.folder[0], "test")
    if options.without:
        test = [row for row in train + test if row["speaker"] == options.without]
        train = [row for row in train if row["speaker"] != options.without]
    if not train or not test:
        stop(f"{len(train)} recordings to train on and {len(test)} to test on; expected some of each")
    return train, test


def main():
    options = arguments()
    out = pathlib.Path(options.out)
    if (out / "train.tsv").exists() or (out / "test.tsv").exists():
        stop(f"{out}: already contains a corpus; choose another --out")
    if not shutil.which("sox"):
        stop("sox: not installed; run tools/setup.sh speech")
    train, test = choose(options)
    make_part(out, "train", train, options, options.strings, 1 - AS_RECORDED)
    make_part(out, "test", test, options, options.test, 0)


if __name__ == "__main__":
    main()
