#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""tests/serve_faults.py TARN MAKE_MODELS FAULTS [--all] [--call NAME] [--jobs N]

tarn serve, in which one call of the system fails, whichever it is, or that and all after it
(tests/faults.c). After each: every answer is the right one or an error in OpenAI's form, the
server ends with exit code 0, or did not start and said why, and every state that a client was
given is there after a restart. Where libmicrohttpd itself finds no memory it can only close the
connection. Without --all, a sample of the calls.
"""
import argparse
import concurrent.futures
import http.client
import json
import os
import pathlib
import random
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import threading

import faults

SAMPLE = 24
PATIENCE = int(os.environ.get("TARN_TEST_PATIENCE", "120"))
CHANGES = r'"(id|created|uptime)": ?("[^"]*"|[\d.e+-]+)'  # from run to run
TEXT = {"model": "linear", "prompt": "hello", "max_tokens": 12, "seed": 3}


class Failed(Exception):
    """What is wrong."""


class Server:
    """tarn serve under a fault, or none."""

    def __init__(self, world, folder, fault=None):
        self.counts = folder / "counts"
        environment = {"LD_PRELOAD": str(world.library), "FAULT_COUNTS": str(self.counts), "FAULT_FILES": "1",
                       "TARN_CPU": "portable", "OMP_NUM_THREADS": "1", "LC_ALL": "C", "HOME": "/nowhere"}
        if fault:
            environment["FAULT"] = fault
        self.process = subprocess.Popen(
            [world.tarn, "serve", *world.models, "--port", "0", "--threads", "1", "--drain", "1",
             "--state-dir", str(folder / "states"), "--log", str(folder / "log")],
            env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        line = self.process.stdout.readline()
        self.port = int(line.rsplit(":", 1)[1]) if line.startswith("listening") else None

    def made(self):
        return struct.unpack(f"{len(faults.CALLS) + 1}q", self.counts.read_bytes())

    def ask(self, method, path, body=None):
        """Status and bytes; None: the connection was closed."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        try:
            connection.request(method, path, json.dumps(body) if isinstance(body, dict) else body)
            reply = connection.getresponse()
            return reply.status, reply.read()
        except TimeoutError as error:
            raise Failed(f"{method} {path}: no answer") from error
        except (OSError, http.client.HTTPException):
            return None
        finally:
            connection.close()

    def end(self):
        """Exit code and standard error."""
        if self.process.poll() is None:
            self.process.terminate()
        try:
            err = self.process.communicate(timeout=PATIENCE)[1]
        except subprocess.TimeoutExpired as error:
            self.process.kill()
            raise Failed("does not end") from error
        return self.process.returncode, err


class World:
    """Models, and what a server without faults answers."""

    def __init__(self, options, folder):
        self.tarn, self.library, self.folder = options.tarn, options.faults, folder
        self.local = threading.local()
        subprocess.run([options.make_models, folder], check=True)
        self.models = [str(folder / f"{name}.safetensors") for name in ("linear", "image")]
        server = Server(self, self.fresh())
        self.before = server.made()
        self.right = {}
        self.converse(server)
        self.after = server.made()
        code, err = server.end()
        if code != 0 or err:
            sys.exit(f"serve_faults.py: exit code {code}: {err}")
        self.ended = server.made()

    def fresh(self):
        """An empty folder of this thread."""
        if not hasattr(self.local, "folder"):
            self.local.folder = pathlib.Path(tempfile.mkdtemp(dir=self.folder))
        out = self.local.folder / "out"
        shutil.rmtree(out, ignore_errors=True)
        out.mkdir()
        return out

    def check(self, name, answer):
        """The JSON of a right answer; None: an error. The first conversation says what is right."""
        if answer is None:
            return None
        status, data = answer
        text = re.sub(CHANGES, r'"\1":0', data.decode(errors="replace"))
        if status >= 400:
            error = json.loads(data)["error"]
            if sorted(error) != ["code", "message", "param", "type"] or not error["message"]:
                raise Failed(f"{name}: {data}")
            return None
        if "data: " in text:
            events = [line[6:] for line in text.split("\n\n") if line.startswith("data: ")]
            if '"error"' in text or events[-1] != "[DONE]":
                return None  # refused in the middle, or cut off: the client sees it
            text = "".join(json.loads(event)["choices"][0]["text"] for event in events[:-1])
        if self.right.setdefault(name, text) != text:
            raise Failed(f"{name}: {text[:300]!r} instead of {self.right[name][:300]!r}")
        return json.loads(data) if data.startswith(b"{") else {}

    def converse(self, server):
        """One of each request; returns the ids of states that were given, and closed connections."""
        given, closed = [], []

        def ask(name, method, path, body=None):
            answer = server.ask(method, path, body)
            closed.extend([] if answer else [name])
            return self.check(name, answer)

        def state_of(answer):
            if answer:
                given.append(answer["choices"][0]["state"]["id"] if "choices" in answer else answer["id"])
            return given[-1] if answer else "0" * 32

        ask("health", "GET", "/health")
        ask("models", "GET", "/v1/models")
        first = state_of(ask("text", "POST", "/v1/completions", {**TEXT, "return_state": "id"}))
        if first in given:
            ask("continued", "POST", "/v1/completions", {**TEXT, "state": first, "prompt": ["", "a"], "n": 2})
            state_of(ask("fork", "POST", f"/v1/states/{first}/fork"))
            ask("data", "GET", f"/v1/states/{first}/data")
        ask("stream", "POST", "/v1/completions", {**TEXT, "stream": True, "logprobs": 2})
        ask("image", "POST", "/v1/images/generations", {"model": "image", "seed": 1})
        ask("page", "GET", "/")
        second = state_of(ask("again", "POST", "/v1/completions", {**TEXT, "return_state": "id"}))
        if ask("delete", "DELETE", f"/v1/states/{second}") is not None and second in given:
            given.remove(second)
        return [one for one in given if one != second], closed

    def try_fault(self, call, at, number, length):
        """(whether it happened, connections that were closed, what is wrong or None)"""
        folder = self.fresh()
        server = None
        try:
            server = Server(self, folder, f"{call}:{at}:{number}:{length}")
            if server.port is None:
                code, err = server.end()
                hit = server.made()[-1] > 0
                return hit, 0, None if hit and code == 1 and err.strip() else f"exit code {code}: {err[-300:]!r}"
            given, closed = self.converse(server)
            if closed and (call != "malloc" or (length == faults.ONCE and len(closed) > 1)):
                raise Failed(f"no answer to {closed}")
            if length == faults.ONCE and server.made()[-1] > 0 and self.check("text", server.ask(
                    "POST", "/v1/completions", {**TEXT, "return_state": "id"})) is None:
                raise Failed("still refuses after one failure")
            code, err = server.end()
            hit = server.made()[-1] > 0
            if code != 0 and not (code == 1 and err.strip()):
                raise Failed(f"exit code {code}: {err[-300:]!r}")
            self.check_states(folder, given)
            return hit, len(closed), None
        except (Failed, ValueError, KeyError, IndexError) as error:
            if server and server.process.poll() is None:
                server.process.kill()
                server.process.communicate()
            return True, 0, f"{type(error).__name__}: {error}"

    def check_states(self, folder, given):
        """They are there, whole, after a restart; nothing half-written is."""
        if not given:
            return
        server = Server(self, folder)
        for one in given:
            answer = server.ask("GET", f"/v1/states/{one}/data")
            if not answer or answer[0] != 200 or self.right["data"] != re.sub(
                    CHANGES, r'"\1":0', answer[1].decode(errors="replace")):
                server.end()
                raise Failed(f"state {one} is lost: {answer and answer[0]}")
        server.end()
        left = [path.name for path in (folder / "states").glob("*.tmp")]
        if left:
            raise Failed(f"{left} left")


def jobs_of(world, options):
    found = []
    for call, kinds in faults.FAULTS.items():
        if call == "memory" or (options.call and call not in options.call):
            continue
        index = faults.CALLS.index(call)
        for number, length in kinds:
            found += [(call, at, number, length) for at in range(world.ended[index])]
    return found if options.all else random.Random("serve").sample(found, min(SAMPLE, len(found)))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("tarn", "make_models", "faults"):
        parser.add_argument(name, type=os.path.abspath)
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--call", action="append")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    options = parser.parse_args()
    for command in ("version", "serve"):
        probe = subprocess.run([options.tarn, command], env={"LD_PRELOAD": options.faults}, capture_output=True,
                               check=False)
        if b"no server" in probe.stderr or b"cannot be preloaded" in probe.stderr or (
                command == "version" and probe.returncode != 0):
            print("this build has no server, or nothing can be preloaded")
            return 77
    shm = pathlib.Path("/dev/shm")
    folder = pathlib.Path(tempfile.mkdtemp(dir=shm if os.access(shm, os.W_OK) else None))
    try:
        world = World(options, folder)
        jobs = jobs_of(world, options)
        with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
            results = list(pool.map(lambda job: world.try_fault(*job), jobs))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    wrong = [(job, what) for job, (_, _, what) in zip(jobs, results) if what]
    for job, what in wrong[:faults.MOST_SHOWN]:
        print(f"FAILED {':'.join(map(str, job))}: {what}")
    print(f"{len(jobs)} runs, {sum(hit for hit, _, _ in results)} in which the call was made, "
          f"{sum(closed for _, closed, _ in results)} connections closed without an answer, {len(wrong)} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
