#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""tests/power_loss.py TARN FAULTS [--all]

Every state that a loss of power during a training with checkpoints could leave on the disk, and
from each the training ends as if nothing had happened, with every checkpoint that was reported.

A training runs with tests/faults.c, which records its calls. A crash may come after each of them.
Of a file, what was written since its last fsync() is there up to any write, or up to the middle
of one; of a folder, of the changes of names since its last fsync() any may be missing, whatever
their order. Without --all, a sample of the states.
"""
import argparse
import concurrent.futures
import hashlib
import itertools
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile

TRAIN = ("train copy --preset tiny --layers 1 --heads 2 --head-width 4 --feed 8 --length 9 --batch 2 --steps 4"
         " --save-every 2 --keep 1 --eval-every 2 --eval-batches 1 --threads 1 --json --out {out}").split()
EVERY, STEPS = 2, 4
RESUME = "train copy --threads 1 --resume --out {out}".split()
SAMPLE = 25


# ---- What a disk may hold -----------------------------------------------------------------------

class File:
    """What is certain of a file, and the changes since."""

    def __init__(self):
        self.synced, self.pending = b"", []

    def change(self, kind, *values):
        self.pending.append((kind, *values))

    @staticmethod
    def apply(data, change):
        if change[0] == "truncate":
            return data[:change[1]].ljust(change[1], b"\0")
        _, at, more = change
        return data[:at].ljust(at, b"\0") + more + data[at + len(more):]

    def now(self):
        data = self.synced
        for change in self.pending:
            data = self.apply(data, change)
        return data

    def sync(self):
        self.synced, self.pending = self.now(), []

    def contents(self):
        """Everything that may be found in it."""
        data, found = self.synced, [self.synced]
        for change in self.pending:
            if change[0] == "write" and len(change[2]) > 1:
                found.append(self.apply(data, ("write", change[1], change[2][:len(change[2]) // 2])))
            data = self.apply(data, change)
            found.append(data)
        return list(dict.fromkeys(found))


class Folder:
    """Names and their files or folders; changes since the last fsync()."""

    def __init__(self):
        self.synced, self.pending = {}, []

    @staticmethod
    def apply(names, change):
        names = dict(names)
        if change[0] == "add":
            names[change[1]] = change[2]
        elif change[0] == "remove":
            names.pop(change[1], None)
        elif names.pop(change[1], None) is not None:  # renamed
            names[change[2]] = change[3]
        return names

    def now(self):
        names = self.synced
        for change in self.pending:
            names = self.apply(names, change)
        return names

    def sync(self):
        self.synced, self.pending = self.now(), []

    def contents(self):
        """Every set of names that may be found in it."""
        for chosen in itertools.product((True, False), repeat=len(self.pending)):
            names = self.synced
            for change, is_there in zip(self.pending, chosen):
                if is_there:
                    names = self.apply(names, change)
            yield names


class Disk:
    """Calls, replayed. Paths are those below `root`, which is there and certain."""

    def __init__(self, root):
        self.root, self.top, self.open = root, Folder(), {}

    def find(self, path):
        """The folder of a path, and its name in there; None: elsewhere."""
        path = os.path.normpath(path)
        if path == self.root:
            return None, ""
        if not path.startswith(self.root + "/"):
            return None, None
        folder = self.top
        *above, name = path[len(self.root) + 1:].split("/")
        for part in above:
            folder = folder.now()[part]
        return folder, name

    def call(self, name, words, data):
        if name == "open":
            self.open_file(*words)
        elif name == "close":
            self.open.pop(words[0], None)
        elif name == "mkdir":
            folder, last = self.find(words[0])
            if folder:
                folder.pending.append(("add", last, Folder()))
        elif name == "unlink":
            folder, last = self.find(words[0])
            if folder:
                folder.pending.append(("remove", last))
        elif name == "rename":
            folder, last = self.find(words[0])
            target, becomes = self.find(words[1])
            if folder:
                assert folder is target, "renamed into another folder"
                folder.pending.append(("rename", last, becomes, folder.now()[last]))
        elif words[0] in self.open:
            self.change(name, self.open[words[0]], words, data)

    def open_file(self, descriptor, truncates, appends, path):
        folder, name = self.find(path)
        if folder is None and name is None:
            return
        node = self.top if folder is None else folder.now().get(name)
        if node is None:
            node = File()
            folder.pending.append(("add", name, node))
        if isinstance(node, File) and truncates == "1":
            node.change("truncate", 0)
        self.open[descriptor] = {"node": node, "at": 0, "appends": appends == "1"}

    @staticmethod
    def change(name, handle, words, data):
        node = handle["node"]
        if name == "fsync":
            node.sync()
        elif name == "ftruncate":
            node.change("truncate", int(words[1]))
        elif name == "write":
            at = len(node.now()) if handle["appends"] else handle["at"]
            node.change("write", at, data)
            handle["at"] = at + len(data)

    def states(self, folder=None):
        """Every state, as {path: contents}; folders have None."""
        for names in (folder or self.top).contents():
            choices = []
            for name, node in names.items():
                if isinstance(node, File):
                    choices.append([{name: data} for data in node.contents()])
                else:
                    choices.append([{name: None} | {f"{name}/{path}": data for path, data in state.items()}
                                    for state in self.states(node)])
            for parts in itertools.product(*choices):
                yield {path: data for part in parts for path, data in part.items()}


# ---- The record ---------------------------------------------------------------------------------

def calls_in(record):
    """(name, words, bytes) of each call."""
    at = 0
    while at < len(record):
        end = record.index(b"\n", at)
        name, _, rest = record[at:end].decode().partition(" ")
        at = end + 1
        if name == "rename":
            yield name, rest.split("\t"), b""
        elif name in ("open", "write"):
            words = rest.split(" ", 3 if name == "open" else 1)
            size = int(words[1]) if name == "write" else 0
            yield name, words, record[at:at + size]
            at += size
        elif name in ("mkdir", "unlink"):
            yield name, [rest], b""
        else:
            yield name, rest.split(), b""


def all_states(record, root):
    """Each state once, with the updates of the last checkpoint that is certain. An update is
    reported after the checkpoints before it were saved, and the end after all of them."""
    disk, found, reported = Disk(root), {}, -1
    for name, words, data in [*calls_in(record), ("exit", [""], b"")]:
        disk.call(name, words, data)
        if name == "write" and words[0] == "1":
            for update in re.findall(rb'"event": ?"update", ?"update": ?(\d+)', data):
                reported = max(reported, (int(update) - 1) // EVERY * EVERY)
        elif name == "exit":
            reported = STEPS
        for state in disk.states():
            key = hashlib.sha256(repr(sorted((path, data and hashlib.sha256(data).digest())
                                             for path, data in state.items())).encode()).digest()
            found[key] = (state, max(reported, found.get(key, (None, -1))[1]))
    return list(found.values())


# ---- Checks -------------------------------------------------------------------------------------

def log_of(folder):
    text = (folder / "log.jsonl").read_text()
    return re.sub(r',?"(tokens_per_s|seconds|cpu_seconds)":[^,}]*', "", text)


class Checker:
    def __init__(self, options, folder):
        self.tarn, self.library, self.folder = options.tarn, options.faults, folder
        self.whole = folder / "whole" / "run"
        self.whole.parent.mkdir()
        self.record = folder / "record"
        self.run(TRAIN, self.whole, {"LD_PRELOAD": options.faults, "FAULT_RECORD": str(self.record)})
        self.log = log_of(self.whole)

    def run(self, command, out, more=None):
        words = [word.replace("{out}", str(out)) for word in command]
        done = subprocess.run([self.tarn, *words], capture_output=True, stdin=subprocess.DEVNULL, timeout=120,
                              env={"PATH": "/nowhere", "OMP_NUM_THREADS": "1", "TARN_CPU": "portable", **(more or {})})
        return done.returncode, done.stderr.decode(errors="replace")

    def check(self, state, reported):
        """What is wrong, or None."""
        root = pathlib.Path(tempfile.mkdtemp(dir=self.folder))
        for path, data in state.items():
            if data is None:
                (root / path).mkdir()
            else:
                (root / path).write_bytes(data)
        try:
            return self.check_folder(root / "run", reported)
        finally:
            shutil.rmtree(root)

    def check_folder(self, run, reported):
        updates = [int(re.findall(r"\d+", path.name)[0]) for path in run.glob("checkpoint-*.safetensors")]
        if max(updates, default=-1) < reported:
            return f"the checkpoint of update {reported} was reported, and is not there"
        code, err = self.run(RESUME if updates else TRAIN, run)
        if code != 0:
            return f"{'resumed' if updates else 'begun again'}: exit code {code}: {err}"
        for name in ("model.safetensors", "best.safetensors", "checkpoint-0000000004.safetensors"):
            if (run / name).read_bytes() != (self.whole / name).read_bytes():
                return f"{name} differs in the end"
        return None if log_of(run) == self.log else "the log differs in the end"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tarn")
    parser.add_argument("faults")
    parser.add_argument("--all", action="store_true")
    options = parser.parse_args()
    shm = pathlib.Path("/dev/shm")
    folder = pathlib.Path(tempfile.mkdtemp(dir=shm if os.access(shm, os.W_OK) else None))
    try:
        checker = Checker(options, folder)
        if not checker.record.exists():
            print("nothing can be preloaded here")
            sys.exit(77)
        states = all_states(checker.record.read_bytes(), str(checker.whole.parent))
        chosen = states if options.all else random.Random(1).sample(states, min(SAMPLE, len(states)))
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            results = list(pool.map(lambda state: checker.check(*state), chosen))
        wrong = [(state, text) for (state, _), text in zip(chosen, results) if text]
        for state, text in wrong[:20]:
            print(f"FAILED: {text.strip()}\n  after a crash with {({k: v and len(v) for k, v in state.items()})}")
        print(f"{len(states)} states, {len(chosen)} checked, {len(wrong)} failures")
        sys.exit(len(wrong) > 0)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


main()
