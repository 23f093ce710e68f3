#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""tests/kills.py TARN [KILLS] - trainings that are killed (SIGKILL) at random moments, KILLS times in
all [1000], and continued each time, end with the files of one that is not: weights, best model,
checkpoint and log, to the byte but for times.
"""
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time

TRAIN = ("train copy --preset tiny --layers 1 --length 17 --batch 4 --steps 40 --save-every 1 --keep 2"
         " --eval-every 3 --eval-batches 1 --threads 2 --schedule plateau:factor=0.5,patience=1,threshold=0.5").split()
RESUME = "train copy --threads 2 --resume".split()
FILES = ("model.safetensors", "best.safetensors", "checkpoint-0000000040.safetensors", "log.jsonl")
STUCK = 50  # kills without a new checkpoint, after which the next run gets more time


def start(tarn, folder):
    """Continues what is there, or begins."""
    command = RESUME if any(folder.glob("checkpoint-*.safetensors")) else TRAIN
    environment = {**os.environ, "PATH": "/nowhere"}  # without gnuplot
    return subprocess.Popen([tarn, *command, "--out", folder], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                            stderr=subprocess.PIPE, env=environment)


def contents(folder):
    def without_times(data):
        return re.sub(rb',?"(tokens_per_s|seconds|cpu_seconds)":[^,}]*', b"", data)
    return [without_times((folder / name).read_bytes()) for name in FILES]


def kill_at_random(tarn, folder, longest, numbers):
    """Whether it was killed; otherwise the training is done."""
    run = start(tarn, folder)
    try:
        _, err = run.communicate(timeout=numbers.uniform(0, longest))
    except subprocess.TimeoutExpired:
        run.kill()
        run.communicate()
        return True
    if run.returncode != 0:
        sys.exit(f"kills.py: exit code {run.returncode}: {err.decode(errors='replace')}")
    return False


def main():
    tarn, most = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 1000
    numbers = random.Random(7)
    shm = pathlib.Path("/dev/shm")
    root = pathlib.Path(tempfile.mkdtemp(dir=shm if os.access(shm, os.W_OK) else None))
    kills = trainings = differences = 0
    try:
        begin = time.monotonic()
        run = start(tarn, root / "whole")
        if run.wait() != 0:
            sys.exit(f"kills.py: {run.stderr.read().decode()}")
        longest = (time.monotonic() - begin) / 3
        expected = contents(root / "whole")
        while kills < most:
            folder, last, same = root / "run", None, 0
            while kill_at_random(tarn, folder, longest, numbers):
                kills += 1
                now = max(folder.glob("checkpoint-*.safetensors"), default=None)
                same = same + 1 if now == last else 0
                last = now
                if same == STUCK:
                    longest, same = 1.5 * longest, 0
            trainings += 1
            differences += contents(folder) != expected
            shutil.rmtree(folder)
    finally:
        shutil.rmtree(root, ignore_errors=True)
    print(f"{kills} kills of {trainings} trainings, {differences} end otherwise")
    sys.exit(differences > 0)


main()
