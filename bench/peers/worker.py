# SPDX-License-Identifier: MIT
"""worker.py SUBJECT WORKLOAD THREADS FOLDER - runs a subject in a process of its own.

FOLDER contains weights.npz, WORKLOAD.json and given-WORKLOAD.npz. The worker prepares the workload,
writes its results to answer-WORKLOAD-SUBJECT.npz and reports that it is ready. Then every line of
standard input is a number of seconds to run for, answered with the measurement."""
import importlib
import importlib.metadata
import json
import os
import pathlib
import re
import sys
import time


def speak_alone():
    """A copy of standard output for the answers; libraries that print go to standard error."""
    out = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    return out


def keep_to(threads):
    """Restricts the process to as many processors as threads, since not every library has a setting
    for the number of threads."""
    allowed = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, allowed[:threads])


def versions(packages):
    return {name: importlib.metadata.version(name) for name in packages}


def measure(run, seconds):
    start, calls, spent = time.perf_counter(), 0, 0.0
    while spent < seconds:
        run()
        calls += 1
        spent = time.perf_counter() - start
    return {"seconds": spent, "calls": calls}


def prepare(subject, name, threads, folder):
    import numpy as np

    work = json.loads((folder / f"{name}.json").read_text())
    with np.load(folder / "weights.npz") as weights, \
            np.load(folder / f"given-{name}.npz") as given:
        make = getattr(importlib.import_module(subject.module), work["kind"])
        made = make(dict(weights), dict(given), work["sizes"], threads, work["precision"],
                    **subject.options)
    np.savez(folder / f"answer-{name}-{subject.name}.npz", **made.answer())
    made.run()
    return made


def main():
    out = speak_alone()
    threads, folder = int(sys.argv[3]), pathlib.Path(sys.argv[4])
    keep_to(threads)
    import subjects

    subject = subjects.named(sys.argv[1])
    try:
        made = prepare(subject, sys.argv[2], threads, folder)
        print(json.dumps({"ready": True, "versions": versions(subject.needs)}), file=out)
    except Exception as error:  # from any library: recorded, not measured
        text = f"{type(error).__name__}: {error}".strip().splitlines()[0]
        text = re.sub(r"(/[\w.+-]+)+/", "", text)  # without paths of this machine
        print(json.dumps({"ready": False, "why": text[:300]}), file=out)
        raise
    for line in sys.stdin:
        print(json.dumps(measure(made.run, float(line))), file=out)


if __name__ == "__main__":
    main()
