#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""tests/faults.py TARN MAKE_MODELS MAKE_TONES FAULTS [--all] [--case NAME] [--jobs N]

Commands of the program in which one call of the system fails, whichever it is, or that and all
after it (tests/faults.c). After each: the exit code is 0 and everything printed and written is as
it should be, or it is 1 and the error names the cause; every file is the old one or the new one;
a training, resumed, ends as if nothing had happened. Libraries may end the process where one
allocation fails of their own, but not where the memory ends before the program calls them ("memory").
Without --all, a sample of all this.
"""
import argparse
import concurrent.futures
import errno
import os
import pathlib
import random
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import zlib

CALLS = "malloc write read fsync rename open close ftruncate unlink mkdir memory".split()
ONCE, REST = 1, 1 << 40
SHORT = 0
MOST_SHOWN = 40
PER_CASE = 10  # runs of a sample
PER_CASE_OF_MPI = 3
OLD = b"what was there before\n"

# Error numbers and how many calls in a row fail.
FAULTS = {
    "malloc": [(errno.ENOMEM, ONCE), (errno.ENOMEM, REST)],
    "write": [(errno.EIO, ONCE), (errno.ENOSPC, ONCE), (errno.ENOSPC, REST), (errno.EINTR, ONCE), (SHORT, ONCE)],
    "read": [(errno.EIO, ONCE), (errno.EIO, REST), (errno.EINTR, ONCE), (SHORT, ONCE)],
    "open": [(errno.EIO, ONCE), (errno.EMFILE, REST)],
    "close": [(errno.EIO, ONCE), (errno.EIO, REST), (errno.EINTR, ONCE)],
    "unlink": [(errno.EIO, ONCE), (errno.EIO, REST)],
    "mkdir": [(errno.ENOSPC, ONCE)],
    "rename": [(errno.ENOSPC, ONCE), (errno.EIO, REST)],
    "fsync": [(errno.EIO, ONCE), (errno.EIO, REST)],
    "ftruncate": [(errno.EIO, ONCE)],
    "memory": [(errno.ENOMEM, bytes) for bytes in (0, 1 << 10, 1 << 12, 1 << 15, 1 << 18, 1 << 21, 1 << 23)],
}


class Case:
    """A command. {in} and {out} are folders; `old` are files that are there before it runs. It
    may need a library that does not check all its allocations. With a rank: two processes of
    MPI, in which calls of that one about files in {out} fail."""

    def __init__(self, name, command, old=(), resume=False, library=None, calls=CALLS, rank=None):
        self.name, self.command, self.old, self.resume = name, command.split(), old, resume
        self.library, self.rank = library, rank
        self.calls = [call for call in calls if call != "memory" or library]


COPY = ("train copy --preset tiny --layers 1 --heads 2 --head-width 8 --feed 16 --length 9 --batch 2 --micro-batches 2 --steps 4"
        " --save-every 2 --eval-every 2 --eval-batches 1 --threads 1 --schedule plateau:factor=0.5,patience=1,threshold=0.5")
TIMES = r"positions/s +[\d.]+|[\d.]+ images/s|[\d.]+ tokens/s|\"(seconds|steps_per_s|images_per_s|[a-z_]*per_s)\": ?[\d.e+-]+|[\d.]+ s\b"
CASES = [
    Case("inspect", "inspect {in}/models/linear.safetensors"),
    Case("inspect-json", "inspect --json --tensors {in}/models/softmax.safetensors"),
    Case("inspect-folder", "inspect {in}/models/run"),
    Case("inspect-state", "inspect {in}/state"),
    Case("import-pth", "import {in}/image_old.pth {out}/a.safetensors --heads 2", ["a.safetensors"]),
    Case("import-zip", "import {in}/image.pth {out}/a.safetensors --heads 2", ["a.safetensors"]),
    Case("import-npz", "import {in}/deflated.npz {out}/a.safetensors", ["a.safetensors"]),
    Case("import-safetensors", "import {in}/models/other.safetensors {out}/a.safetensors", ["a.safetensors"]),
    Case("export-safetensors", "export {in}/models/linear.safetensors {out}/a.safetensors", ["a.safetensors"]),
    Case("export-int8", "export --precision int8 {in}/models/linear.safetensors {out}/a.safetensors"),
    Case("export-bf16", "export --precision bf16 {in}/models/linear.safetensors {out}/a.safetensors"),
    Case("export-npz", "export {in}/models/linear.safetensors {out}/a.npz", ["a.npz"]),
    Case("generate", "generate {in}/models/linear.safetensors -n 5 --threads 1"),
    Case("generate-file", "generate {in}/models/softmax.safetensors -n 5 --streams 2 --threads 1 -o {out}/a.txt",
         ["a.txt"]),
    Case("generate-json", "generate {in}/models/linear.safetensors -n 5 --threads 1 --json --method recompute"),
    Case("generate-image", "generate {in}/models/image.safetensors -n 2 --threads 1 -o {out}/a.png", ["a.png"]),
    Case("save-state", "generate {in}/models/linear.safetensors -n 5 --threads 1 --save-state {out}/a.state",
         ["a.state"]),
    Case("load-state", "generate {in}/models/linear.safetensors -n 5 --threads 1 --load-state {in}/state"),
    Case("complete", "complete {in}/models/image.safetensors --data {in}/images --images 2 --samples 1 --threads 1"
         " -o {out}/a.png", ["a.png"]),
    Case("complete-svg", "complete {in}/models/image.safetensors --data {in}/images --images 1 --samples 1"
         " --threads 1 -o {out}/a.svg", ["a.svg"]),
    Case("transcribe", "transcribe {in}/heard/model.safetensors {in}/tones/odd/slow.wav --threads 1", library="libsndfile"),
    Case("transcribe-stream", "transcribe {in}/heard/model.safetensors {in}/tones/odd/stereo.wav --stream --threads 1",
         library="libsndfile"),
    Case("transcribe-flac", "transcribe {in}/heard/model.safetensors {in}/tones/odd/slow.flac --threads 1",
         library="libsndfile"),
    Case("transcribe-ogg", "transcribe {in}/heard/model.safetensors {in}/tones/odd/slow.ogg --threads 1",
         library="libvorbis"),
    Case("eval", "eval {in}/models/run --threads 1"),
    Case("eval-speech", "eval {in}/heard --threads 1 --strict", library="libsndfile"),
    Case("eval-cache", "eval {in}/heard --threads 1 --strict --cache {out}/cache", library="libsndfile"),
    Case("plot", "plot {in}/models/run -o {out}/a.svg", ["a.csv", "a.svg"]),
    Case("train", COPY + " --out {out}/run", resume=True),
    Case("train-text", COPY.replace("copy", "text --data {in}/text") + " --carry --out {out}/run", resume=True),
    Case("resume", "train copy --steps 6 --threads 1 --resume --out {out}/run", ["run"], resume=True),
    Case("mpi-train", COPY.replace("--steps 4", "--steps 2") + " --out {out}/run", resume=True, rank=0),
    Case("mpi-resume", "train copy --steps 6 --threads 1 --resume --out {out}/run", ["run"], resume=True, rank=0),
    Case("mpi-resume-rank-1", "train copy --steps 6 --threads 1 --resume --out {out}/run", ["run"], resume=True, rank=1),
]

# As root, on any number of processors, and without waits for networks and processes that end.
OPEN_MPI = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_rmaps_base_oversubscribe": "1",
            "OMPI_MCA_hwloc_base_binding_policy": "none", "OMPI_MCA_mpi_yield_when_idle": "1",
            "OMPI_MCA_odls_base_sigkill_timeout": "0", "OMPI_MCA_pml": "ob1"}
RANK = """#!/bin/sh
[ "${OMPI_COMM_WORLD_RANK:-$PMI_RANK}" = "$FAULT_RANK" ] || exec "$@"
LD_PRELOAD=$FAULT_LIBRARY exec "$@"
"""


def png(pixel):
    """8 x 8 pixels of one colour."""
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    rows = b"".join(b"\0" + bytes(pixel) * 8 for _ in range(8))
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 8, 8, 8, 2, 0, 0, 0)) +
            chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


def deflate(source, target):
    """The same zip archive, deflated."""
    import zipfile
    with zipfile.ZipFile(source) as a, zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as b:
        for name in a.namelist():
            b.writestr(name, a.read(name))


class World:
    """The files that commands read, and how to run one."""

    def __init__(self, options, folder):
        self.tarn, self.library, self.folder = options.tarn, options.faults, folder
        self.input = folder / "in"
        self.local = threading.local()
        (self.input / "models").mkdir(parents=True)
        (self.input / "images").mkdir()
        self.rank_script = folder / "rank"
        self.rank_script.write_text(RANK)
        self.rank_script.chmod(0o755)
        vectors = pathlib.Path(__file__).parent / "vectors"
        for name in ("image_old.pth", "image.pth"):
            shutil.copy(vectors / name, self.input)
        for i in range(2):
            (self.input / "images" / f"{i}.png").write_bytes(png((10, 80 * i, 200)))
        (self.input / "text").write_text("to be or not to be\n" * 40)
        subprocess.run([options.make_models, self.input / "models"], check=True)
        subprocess.run([options.make_tones, self.input / "tones", "4", "2"], check=True)
        self.make("export {in}/models/linear.safetensors {in}/stored.npz")
        deflate(self.input / "stored.npz", self.input / "deflated.npz")
        self.make("generate {in}/models/linear.safetensors -n 3 --save-state {in}/state")
        self.make("train speech --preset speech-tiny --layers 1 --heads 2 --head-width 8 --feed 16 --causal --steps 1"
                  " --batch 2 --threads 1 --data {in}/tones --out {in}/heard")
        self.make(COPY + " --out {in}/begun")

    def make(self, command):
        code, _, err, _ = self.run(command.split(), self.folder, None)
        if code != 0:
            sys.exit(f"faults.py: tarn {command}: {err}")

    def run(self, command, out, fault, rank=None):
        """Exit code, standard output and error, and how often each call was made and one failed."""
        counts = self.folder / f"counts-{threading.get_ident()}"
        environment = {"FAULT_COUNTS": str(counts), "PATH": "/nowhere", "OMP_NUM_THREADS": "1", "HOME": "/nowhere",
                       "LC_ALL": "C"}
        words = [self.tarn, *command]
        if fault:
            environment["FAULT"] = fault
        if rank is None:
            environment["LD_PRELOAD"] = str(self.library)
        else:
            words = ["mpirun", "-n", "2", str(self.rank_script), *words]
            sockets = self.folder / f"mpi-{threading.get_ident()}"  # one mpirun removes what another is about to use
            sockets.mkdir(exist_ok=True)
            environment.update(OPEN_MPI, OMPI_MCA_orte_tmpdir_base=str(sockets), PATH=os.environ["PATH"], LD_LIBRARY_PATH=os.path.dirname(self.tarn), FAULT_LIBRARY=str(self.library), FAULT_UNDER=str(out),
                               FAULT_RANK=str(rank))
        words = [word.replace("{in}", str(self.input)).replace("{out}", str(out)) for word in words]
        done = subprocess.run(words, env=environment, stdin=subprocess.DEVNULL, capture_output=True, timeout=600)
        made = struct.unpack(f"{len(CALLS) + 1}q", counts.read_bytes().ljust(8 * (len(CALLS) + 1), b"\0"))
        return done.returncode, done.stdout, done.stderr.decode(errors="replace"), made

    def has_mpi(self):
        """The program was built with it, and mpirun is there."""
        return shutil.which("mpirun") and (pathlib.Path(self.tarn).parent / "libtarn-mpi.so").exists()

    def fresh(self, case):
        """An empty folder of this thread with the files that were there before."""
        if not hasattr(self.local, "folder"):
            self.local.folder = pathlib.Path(tempfile.mkdtemp(dir=self.folder))
        out = self.local.folder / "out"
        shutil.rmtree(out, ignore_errors=True)
        out.mkdir()
        for name in case.old:
            if name == "run":
                shutil.copytree(self.input / "begun", out / "run")
            else:
                (out / name).write_bytes(OLD)
        return out


def without_times(data):
    """A log, or a table of it, without what the clock says."""
    return re.sub(rb',?"(tokens_per_s|seconds|cpu_seconds)":[^,}]*', b"", data)


def files_in(folder):
    """Contents by name; caches are named by paths."""
    found = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path.suffix != ".mel":
            found[str(path.relative_to(folder))] = without_times(path.read_bytes())
    return found


class Checker:
    """One case: what it should do, and runs that are compared to that."""

    def __init__(self, world, case):
        self.world, self.case, self.ended = world, case, 0
        out = world.fresh(case)
        code, self.out, self.err, self.made = self.run(out, None)
        self.files = files_in(out)
        self.out = self.printed(self.out, out)
        if code not in ((0, 1) if case.rank is None else (0,)):
            sys.exit(f"faults.py: {case.name}: exit code {code}: {self.err}")
        self.code = code
        again = world.fresh(case)
        if self.printed(self.run(again, None)[1], again) != self.out or files_in(again) != self.files:
            sys.exit(f"faults.py: {case.name}: two runs differ")

    def run(self, out, fault, command=None):
        rank = self.case.rank if not command else None  # one process continues what two began
        return self.world.run(command or self.case.command, out, fault, rank)

    def printed(self, data, out):
        """Standard output without what changes from run to run."""
        return re.sub(TIMES, "", data.decode(errors="replace").replace(str(out), "OUT"))

    def check_words(self, call, number, code, err):
        """What is wrong with a failure's text, or None."""
        if not err.strip():
            return "no error message"
        if call in ("malloc", "memory") and not re.search("memory", err, re.I):
            return "the error is not about memory"
        if call not in ("malloc", "memory") and number and os.strerror(number) not in err:
            return f"the error does not say '{os.strerror(number)}'"
        return None

    def check_files(self, out, call, code):
        found = files_in(out)
        for name, data in found.items():
            if name.endswith(".tmp"):
                if call != "unlink":
                    return f"{name} was left"
            elif self.case.resume:
                if name.endswith(".safetensors") and data != self.files.get(name):
                    status = self.world.run(["inspect", str(out / name)], out, None)
                    if status[0] != 0:
                        return f"{name} is damaged: {status[2]}"
            elif data != self.files.get(name) and not (code and data == OLD and name in self.case.old):
                return f"{name} is neither the old file nor the new one"
        if code == 0 and not self.case.resume and set(self.files) - set(found):
            return f"{set(self.files) - set(found)} missing, exit code 0"
        return None

    def check_resumed(self, out):
        """Continues a training, or begins it again, and compares what it ends with."""
        has_checkpoint = any((out / "run").glob("checkpoint-*.safetensors")) if (out / "run").exists() else False
        command = self.case.command
        if has_checkpoint and "--resume" not in command:
            command = f"train {command[1]} --threads 1 --resume --out {{out}}/run".split()
        code, _, err, _ = self.run(out, None, command)
        if code != self.code:
            return f"{'resumed' if has_checkpoint else 'begun again'}: exit code {code}: {err}"
        found = files_in(out)
        for name in ("model.safetensors", "best.safetensors", "log.jsonl", "loss.csv"):
            if found.get(f"run/{name}") != self.files[f"run/{name}"]:
                return f"resumed, {name} differs"
        last = max(name for name in self.files if "checkpoint-" in name)
        return None if found.get(last) == self.files[last] else f"resumed, {last} differs"

    def check(self, call, at, number, length):
        """(whether the fault happened, whether the command failed, what is wrong or None)"""
        out = self.world.fresh(self.case)
        try:
            code, printed, err, made = self.run(out, f"{call}:{at}:{number}:{length}")
        except subprocess.TimeoutExpired:
            return True, True, "does not end"
        hit = made[-1] > 0
        err = err.replace(str(out), "OUT")
        wrong = None
        if code == self.code and (code == 0 or not hit or err == self.err):
            if self.printed(printed, out) != self.out:
                wrong = f"exit code {code}, but the output differs: {self.printed(printed, out)[:300]!r}"
        elif self.case.library and call == "malloc" and (
                code in (-signal.SIGABRT, -signal.SIGSEGV) or "libgomp" in err):
            self.ended += 1
        elif code != 1:
            wrong = f"exit code {code}"
        elif not hit or number == SHORT:
            wrong = f"exit code {code} without an error of the system"
        else:
            wrong = self.check_words(call, number, code, err)
        wrong = wrong or self.check_files(out, call, code)
        if not wrong and self.case.resume:
            wrong = self.check_resumed(out)
        return hit, code != self.code, wrong and f"{wrong}; stderr: {err[-300:].strip()!r}"


def places(count, sample, everything):
    """Which calls fail."""
    if everything or count <= sample:
        return range(count)
    return sorted({(2 * i + 1) * count // (2 * sample) for i in range(sample)})


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("tarn", "make_models", "make_tones", "faults"):
        parser.add_argument(name)
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--case", action="append")
    parser.add_argument("--call", action="append")
    parser.add_argument("--sample", type=int, default=0, help="calls of each kind")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    options = parser.parse_args()
    probe = subprocess.run([options.tarn, "version"], env={"LD_PRELOAD": options.faults}, capture_output=True)
    if probe.returncode != 0 or b"cannot be preloaded" in probe.stderr:
        print("nothing can be preloaded here")
        sys.exit(77)
    shm = pathlib.Path("/dev/shm")
    folder = pathlib.Path(tempfile.mkdtemp(dir=shm if os.access(shm, os.W_OK) else None))
    try:
        sys.exit(run_all(World(options, folder), options))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def run_all(world, options):
    failures = total = 0
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for case in CASES:
            if options.case and case.name not in options.case:
                continue
            if case.rank is not None and not world.has_mpi():
                print(f"{case.name:20} skipped: there is no MPI", flush=True)
                continue
            checker = Checker(world, case)
            jobs = []
            for call, kinds in FAULTS.items():
                if (options.call and call not in options.call) or call not in case.calls:
                    continue
                for number, length in kinds:
                    for at in places(checker.made[CALLS.index(call)], max(options.sample, 1) * (2 if call == "malloc" else 1), options.all):
                        jobs.append((call, at, number, length))
            if not options.all and options.sample == 0:
                most = PER_CASE if case.rank is None else PER_CASE_OF_MPI
                jobs = random.Random(case.name).sample(jobs, min(most, len(jobs)))
            results = list(pool.map(lambda job: checker.check(*job), jobs))
            hits = sum(hit for hit, _, _ in results)
            failed = sum(failed for _, failed, _ in results)
            ended = f", {checker.ended} ended by {case.library}" if case.library else ""
            print(f"{case.name:20} {len(jobs):6} runs, {hits:6} faults, {failed:6} reported{ended}", flush=True)
            total += len(jobs)
            for (call, at, number, length), (_, _, wrong) in zip(jobs, results):
                if wrong:
                    failures += 1
                if wrong and failures <= MOST_SHOWN:
                    print(f"  FAILED: {case.name}, {call} {at}, {os.strerror(number) if number else 'short'}"
                          f"{', from then on' if length > 1 else ''}: {wrong}", flush=True)
    print(f"{total} runs, {failures} failures")
    return failures > 0


if __name__ == "__main__":
    main()
