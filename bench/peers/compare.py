#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""compare.py - compares tarn with other libraries, interleaved in one run; see README.md.

For each workload every subject gets a process, which stays alive. Its results are compared with
those of tarn, and a subject whose results differ is not measured. Then, in every round, one subject
after the other runs for some seconds while the others sleep; the next round starts with the next
subject. Ratios are computed within rounds. Records are JSON lines."""
import argparse
import dataclasses
import datetime
import json
import os
import pathlib
import platform
import subprocess
import sys
import tempfile

import numpy as np
import tarn

from subjects import SUBJECTS
from workloads import PRESET, SMALL_PRESET, WORKLOADS, given, small, weights_of

HERE = pathlib.Path(__file__).resolve().parent

# Limits of |a - b| / |b| for each array, where b is tarn's, and of the fraction of symbols that
# differ. An update depends on which relu units are on: of 64 million some are so close to 0 that
# rounding decides.
LIMITS = {"train": 1e-2, "generate": 1e-4, "attention": 1e-4}
SYMBOLS_LIMIT = 0.05


# ---- Workers ---------------------------------------------------------------------------------


class Worker:
    def __init__(self, subject, work, threads, folder):
        self.subject, self._log = subject, open(folder / "log", "ab")
        command = [sys.executable, str(HERE / "worker.py"), subject.name, work.name,
                   str(threads), str(folder)]
        environment = dict(os.environ, OMP_NUM_THREADS=str(threads))
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, text=True,
                                         stdout=subprocess.PIPE, stderr=self._log,
                                         env=environment)
        self.started = self._heard()

    def _heard(self):
        line = self._process.stdout.readline()
        if not line:
            return {"ready": False, "why": f"ended with status {self._process.wait()}"}
        return json.loads(line)

    def turn(self, seconds):
        try:
            self._process.stdin.write(f"{seconds}\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            pass
        return self._heard()

    def close(self):
        self._process.communicate()
        self._log.close()


# ---- Comparing results ------------------------------------------------------------------------


def distance(name, found, wanted):
    if found.shape != wanted.shape:
        return float("inf")
    if name == "symbols":
        return float(np.mean(found != wanted))
    found, wanted = found.astype(np.float64), wanted.astype(np.float64)
    return float(np.linalg.norm(found - wanted) / max(np.linalg.norm(wanted), 1e-30))


def disagreement(subject, work, folder):
    """(largest distance relative to its limit, name of the array); above 1 is refused."""
    def load(name):
        with np.load(folder / f"answer-{work.name}-{name}.npz") as file:
            return dict(file)
    found, wanted = load(subject.name), load(SUBJECTS[0].name)
    if set(found) != set(wanted):
        return float("inf"), ", ".join(sorted(set(found) ^ set(wanted)))[:200]
    # Rounded weights lead to different symbols after some steps.
    limits = {name: SYMBOLS_LIMIT if name == "symbols" else LIMITS[work.kind] * work.tolerance
              for name in wanted if name != "symbols" or work.precision == "f32"}
    rows = [(distance(name, found[name], wanted[name]) / limit, name)
            for name, limit in limits.items()]
    return max(rows, key=lambda row: row[0] if row[0] == row[0] else float("inf"))


# ---- The limit of the machine ----------------------------------------------------------------


def limit_of(work, program, threads):
    """Seconds per call at the limit that binds the workload: multiply-adds, or reading all weights
    for each step. `tarn bench` measures that limit, and reports its own speed as a fraction."""
    done = subprocess.run([program, "bench", *work.bench, "--threads", str(threads), "--json"],
                          capture_output=True, text=True, check=True)
    row = json.loads(done.stdout.splitlines()[-1])
    if work.kind == "train":
        return row["of_peak"] * row["update_s"]
    if work.kind == "generate":
        return row["of_limit"] * row["ms_per_step"] * 1e-3 * work.per_call
    return row["of_peak"] * row["seconds_per_sample"]


# ---- One workload ----------------------------------------------------------------------------


def start(work, names, threads, folder, record):
    """The workers whose results agree."""
    workers = []
    for subject in SUBJECTS:
        if work.precision not in subject.precisions or (names and subject.name not in names):
            continue
        worker = Worker(subject, work, threads, folder)
        row = {"workload": work.name, "subject": subject.name, **worker.started}
        if row["ready"]:
            worst, where = disagreement(subject, work, folder)
            row["ready"] = worst <= 1.0  # false for NaN
            row.update(distance_of_limit=worst if worst < 1e9 else None, farthest=where)
            if not row["ready"]:
                row["why"] = f"its results differ: {where}"
        record(row)
        if row["ready"]:
            workers.append(worker)
        else:
            worker.close()
            print((folder / "log").read_text()[-2000:], file=sys.stderr)
    return workers


def run(work, options, folder, record):
    workers = start(work, options.subjects, options.threads, folder, record)
    if not workers or workers[0].subject is not SUBJECTS[0]:
        sys.exit(f"{work.name}: {SUBJECTS[0].name} failed")
    if options.program and work.bench:
        record({"workload": work.name,
                "limit_seconds": limit_of(work, options.program, options.threads)})
    for number in range(options.rounds):
        first = number % len(workers)
        for worker in workers[first:] + workers[:first]:
            record({"workload": work.name, "subject": worker.subject.name, "round": number,
                    **worker.turn(options.seconds)})
    for worker in workers:
        worker.close()


# ---- All workloads ----------------------------------------------------------------------------


def processor():
    with open("/proc/cpuinfo") as lines:
        names = [line.split(":")[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def commit():
    done = subprocess.run(["git", "-C", str(HERE), "rev-parse", "--short", "HEAD"],
                          capture_output=True, text=True)
    return done.stdout.strip()


def about(options):
    return {"date": datetime.date.today().isoformat(), "processor": processor(),
            "processors": len(os.sched_getaffinity(0)), "threads": options.threads,
            "system": f"{platform.system()} {platform.machine()}",
            "python": platform.python_version(), "numpy": np.__version__,
            "tarn": tarn.__version__, "commit": commit(),
            "preset": SMALL_PRESET if options.small else PRESET,
            "rounds": options.rounds, "seconds": options.seconds}


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5, help="number of rounds [%(default)s]")
    parser.add_argument("--seconds", type=float, default=1.5, 
                        help="minimum time per subject and round [%(default)s]")
    parser.add_argument("--threads", type=int, default=2, help="threads of each subject [%(default)s]")
    parser.add_argument("--only", nargs="*", metavar="WORKLOAD", default=[],
                        choices=[work.name for work in WORKLOADS],
                        help="workloads to measure: %(choices)s [all]")
    parser.add_argument("--subjects", nargs="*", metavar="SUBJECT", default=[],
                        choices=[subject.name for subject in SUBJECTS],
                        help="libraries to measure, named as in README.md [all]")
    parser.add_argument("--small", action="store_true", help="small sizes, for a test")
    parser.add_argument("--program", metavar="TARN",
                        help="the program, to measure the limits of the machine [not measured]")
    parser.add_argument("--installed", metavar="FILE",
                        help="output of install.py, to be included in the records")
    parser.add_argument("--out", default="-", metavar="FILE", help="file of records [standard output]")
    return parser.parse_args()


def run_all(options, folder, record):
    model = tarn.Model.create(SMALL_PRESET if options.small else PRESET)
    np.savez(folder / "weights.npz", **weights_of(model.tensors()))
    for work in WORKLOADS:
        if options.only and work.name not in options.only:
            continue
        work = small(work) if options.small else work
        (folder / f"{work.name}.json").write_text(json.dumps(dataclasses.asdict(work)))
        np.savez(folder / f"given-{work.name}.npz", **given(work, model.config.symbols))
        run(work, options, folder, record)


def main():
    options = arguments()
    out = sys.stdout if options.out == "-" else open(options.out, "w")

    def record(row):
        print(json.dumps(row), file=out, flush=True)
        if out is not sys.stdout:
            print(json.dumps(row), file=sys.stderr)

    record(about(options))
    if options.installed:
        for line in open(options.installed):
            record(json.loads(line))
    with tempfile.TemporaryDirectory() as name:
        run_all(options, pathlib.Path(name), record)


if __name__ == "__main__":
    main()
