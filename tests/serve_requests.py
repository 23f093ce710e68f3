#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""serve_requests.py PROGRAM MAKE_MODELS MAKE_TONES [TEST...] - tarn serve: every request, right and
wrong, and what becomes of the others meanwhile."""
import base64
import concurrent.futures
import http.client
import json
import os
import random
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import zlib

PROGRAM, MAKE_MODELS, MAKE_TONES = (os.path.abspath(path) for path in sys.argv[1:4])
FOLDER = None
LONG = "1000000000"  # tokens
PATIENCE = int(os.environ.get("TARN_TEST_PATIENCE", "120"))  # seconds that anything may take on a slow machine


class Server:
    """tarn serve with some models, on any free port."""

    def __init__(self, *options, models=("linear", "image"), before=()):
        paths = [m if "=" in m else f"{FOLDER}/{m}.safetensors" for m in models]
        self.process = subprocess.Popen([*before, PROGRAM, "serve", *paths, "--port", "0", *options],
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        line = self.process.stdout.readline()
        if not line.startswith("listening on http://"):
            self.process.wait(PATIENCE)
            raise RuntimeError(f"no server: {line}{self.process.stderr.read()}")
        self.stopped = False
        self.port = int(line.rsplit(":", 1)[1])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()
        code = self.process.wait(PATIENCE)
        errors = self.process.stderr.read()
        self.process.stdout.close()
        self.process.stderr.close()
        assert code in (0, -signal.SIGKILL) and not errors, f"exit {code}: {errors}"

    def stop(self):
        """Asks it to; a second signal would end it at once."""
        if not self.stopped and self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        self.stopped = True

    def connect(self):
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)

    def ask(self, method, path, body=None, headers=None):
        """Status, headers and body; JSON is read."""
        connection = self.connect()
        if isinstance(body, (dict, list)):
            body = json.dumps(body)
        connection.request(method, path, body, headers or {})
        reply = connection.getresponse()
        data = reply.read()
        connection.close()
        if reply.getheader("Content-Type") == "application/json":
            data = json.loads(data)
        return reply.status, reply.headers, data

    def get(self, path, **headers):
        return self.ask("GET", path, None, headers)

    def post(self, path, body):
        status, _, data = self.ask("POST", path, body)
        return status, data

    def complete(self, **fields):
        fields = {"model": "linear", "prompt": "hello", "max_tokens": 12, "seed": 3, **fields}
        status, data = self.post("/v1/completions", fields)
        assert status == 200, data
        return data

    def text(self, **fields):
        return self.complete(**fields)["choices"][0]["text"]

    def events(self, path, body):
        """Events as they arrive, without [DONE], which must come."""
        connection = self.connect()
        connection.request("POST", path, json.dumps(body))
        reply = connection.getresponse()
        assert reply.status == 200, reply.read()
        assert reply.getheader("Content-Type") == "text/event-stream"
        text = reply.read().decode()
        connection.close()
        events = [line[6:] for line in text.split("\n\n") if line]
        assert events[-1] == "[DONE]", events
        return [json.loads(event) for event in events[:-1]]

    def occupy(self, model="numbers", **fields):
        """A connection with a request that takes longer than the test."""
        body = json.dumps({"model": model, "prompt": "1", "max_tokens": 10 ** 8, **fields}).encode()
        connection = socket.create_connection(("127.0.0.1", self.port), PATIENCE)
        connection.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: "
                           + str(len(body)).encode() + b"\r\n\r\n" + body)
        return connection

    def metric(self, name, model=None):
        text = self.get("/metrics")[2].decode()
        label = f'{{model="{model}"}}' if model else ""
        return float(re.search(rf"^tarn_{name}{re.escape(label)} (\S+)$", text, re.M)[1])

    def memory(self):
        """Bytes that are resident."""
        with open(f"/proc/{self.process.pid}/status", encoding="ascii") as file:
            return 1024 * int(re.search(r"VmRSS:\s+(\d+)", file.read())[1])

    def wait_for(self, name, value, model=None):
        end = time.time() + PATIENCE
        while self.metric(name, model) != value:
            assert time.time() < end, f"{name} is {self.metric(name, model)}, not {value}"
            time.sleep(0.01)


def png_pixels(base64_text):
    """Width, height, channels and bytes of an 8-bit PNG file without interlacing."""
    data = base64.b64decode(base64_text)
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    at, compressed = 8, b""
    while at < len(data):
        size, kind = struct.unpack(">I4s", data[at:at + 8])
        if kind == b"IHDR":
            width, height, depth, colour = struct.unpack(">IIBB", data[at + 8:at + 18])
        if kind == b"IDAT":
            compressed += data[at + 8:at + 8 + size]
        at += 12 + size
    channels = {0: 1, 2: 3}[colour]
    raw, stride, rows = zlib.decompress(compressed), width * channels, []
    for y in range(height):
        kind, row = raw[y * (stride + 1)], bytearray(raw[y * (stride + 1) + 1:(y + 1) * (stride + 1)])
        up = rows[-1] if rows else bytearray(stride)
        for x in range(stride):
            left = row[x - channels] if x >= channels else 0
            corner = up[x - channels] if x >= channels else 0
            guess = {0: 0, 1: left, 2: up[x], 3: (left + up[x]) // 2,
                     4: min((left, up[x], corner),
                            key=lambda value: abs(left + up[x] - corner - value))}[kind]
            row[x] = (row[x] + guess) & 255
        rows.append(row)
    return width, height, channels, b"".join(rows)


def png_file(width, height, channels, pixels):
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    stride = width * channels
    raw = b"".join(b"\0" + pixels[y * stride:(y + 1) * stride] for y in range(height))
    head = struct.pack(">IIBBBBB", width, height, 8, {1: 0, 3: 2}[channels], 0, 0, 0)
    data = (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(raw))
            + chunk(b"IEND", b""))
    return base64.b64encode(data).decode()


def generated(model, *options):
    """What tarn generate prints."""
    return subprocess.run([PROGRAM, "generate", f"{FOLDER}/{model}.safetensors", *options],
                          stdout=subprocess.PIPE, check=True).stdout


def folder():
    return tempfile.mkdtemp(dir=FOLDER)


class Case(unittest.TestCase):
    def setUp(self):
        self.begun = time.time()

    def tearDown(self):
        if os.environ.get("TARN_TEST_TIMES"):
            print(f"{time.time() - self.begun:8.2f} s {self.id()}")

    def refused(self, answer, status, word, param=None):
        """An error in OpenAI's form that names what is wrong."""
        self.assertEqual(answer[0], status, answer)
        error = answer[-1]["error"]
        self.assertEqual(sorted(error), ["code", "message", "param", "type"])
        self.assertIn(word, error["message"])
        if param:
            self.assertEqual(error["param"], param)


class Requests(Case):
    @classmethod
    def setUpClass(cls):
        cls.log = f"{folder()}/log"
        cls.server = Server("--log", cls.log, "--max-body", "64K", "--max-tokens", LONG,
                            models=("linear", "softmax", "lsh", "learned", "numbers", "image",
                                    "taskless", f"speech={FOLDER}/spoken/model.safetensors"))
        cls.server.__enter__()

    @classmethod
    def tearDownClass(cls):
        cls.server.__exit__()
        with open(cls.log, encoding="utf-8") as log:
            lines = [json.loads(line) for line in log]
        odd = [line for line in lines if not line["status"] or line["seconds"] < 0]
        assert not odd, odd
        assert not re.search("[0-9a-f]{32}", json.dumps(lines)), "the log has ids of states"

    # ---- Models, health, page ----

    def test_models(self):
        status, _, data = self.server.get("/v1/models")
        self.assertEqual((status, data["object"]), (200, "list"))
        models = {model["id"]: model for model in data["data"]}
        self.assertEqual(models["linear"]["task"], "text")
        self.assertEqual(models["speech"]["task"], "speech")
        self.assertEqual([models["image"][key] for key in ("task", "width", "height", "channels")],
                         ["image", 8, 8, 3])
        self.assertGreater(models["linear"]["state_bytes"], 1000)
        self.assertIsNone(models["linear"]["max_positions"])
        self.assertEqual(self.server.get("/v1/models/linear")[2], models["linear"])
        self.refused(self.server.get("/v1/models/none"), 404, "none", "model")

    def test_files_of_models(self):
        status, headers, data = self.server.get("/models/linear.safetensors")
        with open(f"{FOLDER}/linear.safetensors", "rb") as file:
            self.assertEqual(data, file.read())
        self.assertEqual(status, 200)
        self.assertRegex(headers["ETag"], '^"[0-9a-f-]+"$')
        known = self.server.ask("GET", "/models/linear.safetensors", None, {"If-None-Match": headers["ETag"]})
        self.assertEqual((known[0], known[2]), (304, b""))
        for path in ("linear", "none.safetensors", "..%2flinear.safetensors", "%2e%2e"):
            self.refused(self.server.get(f"/models/{path}"), 404, "there is no")

    def test_health_and_metrics(self):
        self.assertEqual(self.server.get("/health")[2]["status"], "ok")
        before = self.server.metric("generated_tokens_total", "linear")
        self.server.complete(max_tokens=7)
        self.assertEqual(self.server.metric("generated_tokens_total", "linear"), before + 7)
        self.assertEqual(self.server.metric("users", "linear"), 0)

    def test_page(self):
        status, headers, data = self.server.get("/")
        self.assertEqual(status, 200)
        self.assertIn(b"<title>", data)
        self.assertIn("default-src 'self'", headers["Content-Security-Policy"])
        self.assertEqual(self.server.get("/index.html")[2], data)
        tag = headers["ETag"]
        self.assertEqual(self.server.ask("GET", "/", None, {"If-None-Match": tag})[0], 304)
        connection = self.server.connect()
        connection.request("HEAD", "/")
        reply = connection.getresponse()
        self.assertEqual((reply.status, reply.read()), (200, b""))
        connection.close()

    def test_addresses_that_are_not_there(self):
        for path in ("/none", "/v1", "/v1/none", "/../etc/passwd", "/%2e%2e/etc/passwd", "//",
                     "/v1/states/", "/v1/states//data", "/health%00", "/v1/models/linear%00",
                     "/models/linear.safetensors%00.txt", "/style.css%00%2500"):
            self.refused(self.server.get(path), 404, "no such path")
        for path, allowed in (("/v1/completions", "POST"), ("/v1/states/0", "GET, DELETE"), ("/health", "GET")):
            status, headers, data = self.server.ask("PUT", path, "{}")
            self.refused((status, data), 405, "PUT")
            self.assertEqual(headers["Allow"], allowed)
        self.refused(self.server.get("/v1/completions"), 405, "GET")

    # ---- Completions ----

    def test_completion_is_what_generate_prints(self):
        for model in ("linear", "softmax", "lsh"):
            printed = generated(model, "--prompt", "hello", "-n", "30", "--seed", "5")
            tokens = self.server.complete(model=model, seed=5, max_tokens=30, logprobs=0)
            said = b"".join(bytes.fromhex(token[8:]) if token.startswith("bytes:") else token.encode()
                            for token in tokens["choices"][0]["logprobs"]["tokens"])
            self.assertEqual(said, printed)
            self.assertEqual(tokens["usage"], {"prompt_tokens": 5, "completion_tokens": 30,
                                               "total_tokens": 35})
            self.assertEqual(tokens["choices"][0]["finish_reason"], "length")
        self.assertEqual(self.server.text(model="numbers", prompt="1 2 3", max_tokens=9),
                         generated("numbers", "--prompt", "1 2 3", "-n", "9", "--seed",
                                   "3").decode())
        self.assertEqual(self.server.text(model="numbers", prompt=[1, 2, 3], max_tokens=9),
                         self.server.text(model="taskless", prompt="1 2 3", max_tokens=9))

    def test_sampling(self):
        greedy = self.server.text(temperature=0)
        self.assertEqual(greedy, self.server.text(top_k=1, seed=9))
        self.assertEqual(self.server.text(), self.server.text())
        self.assertNotEqual(self.server.text(), self.server.text(seed=4))
        self.assertNotEqual(self.server.text(seed=None, max_tokens=40),
                            self.server.text(seed=None, max_tokens=40))
        two = self.server.complete(n=2)["choices"]
        self.assertEqual([choice["index"] for choice in two], [0, 1])
        self.assertEqual(two[0]["text"], self.server.text())
        self.assertNotEqual(two[0]["text"], two[1]["text"])
        self.assertEqual(self.server.text(echo=True), "hello" + self.server.text())

    def test_several_prompts(self):
        """Each as if it were alone, choices in OpenAI's order."""
        prompts, fields = ["hello", "a", "hello", "longer than the others"], {"n": 2, "max_tokens": 9}
        alone = [self.server.complete(prompt=prompt, **fields) for prompt in prompts]
        both = self.server.complete(prompt=prompts, **fields)
        self.assertEqual([choice["index"] for choice in both["choices"]], list(range(8)))
        self.assertEqual([choice["text"] for choice in both["choices"]],
                         [choice["text"] for one in alone for choice in one["choices"]])
        self.assertEqual(both["usage"]["prompt_tokens"], sum(map(len, prompts)))
        self.assertEqual(both["usage"]["completion_tokens"], 72)
        texts = [""] * 8
        for event in self.server.events("/v1/completions", {
                "model": "linear", "prompt": prompts, "seed": 3, "stream": True, **fields}):
            texts[event["choices"][0]["index"]] += event["choices"][0]["text"]
        self.assertEqual(texts, [choice["text"] for choice in both["choices"]])
        echoed = self.server.complete(prompt=prompts, echo=True, **fields)["choices"]
        self.assertEqual([choice["text"] for choice in echoed],
                         [prompts[i // 2] + text for i, text in enumerate(texts)])
        symbols = self.server.complete(model="numbers", prompt=[[1, 2], "1 2"])["choices"]
        self.assertEqual(symbols[0]["text"], symbols[1]["text"])
        state = self.server.complete(return_state="id")["choices"][0]["state"]["id"]
        forked = self.server.complete(state=state, prompt=["x", "yz", "x"], return_state="data")["choices"]
        self.assertEqual([choice["text"] for choice in forked],
                         [self.server.text(state=state, prompt=prompt) for prompt in ("x", "yz", "x")])
        self.assertEqual(forked[0]["state"], forked[2]["state"])
        for wrong in ([["a"]], ["a", 1], [1, "a"], [[1], [2.5]], [None], [[[1]]], [True]):
            self.refused(self.server.post("/v1/completions", {"model": "linear", "prompt": wrong}), 400,
                         "prompt", "prompt")
        for many in ({"prompt": ["a"] * 129}, {"prompt": ["a"] * 65, "n": 2}):
            self.refused(self.server.post("/v1/completions", {"model": "linear", **many}), 400, "128", "prompt")

    def test_logprobs_have_a_bound(self):
        body = {"model": "linear", "prompt": "a", "max_tokens": 10 ** 6, "logprobs": 5}
        self.refused(self.server.post("/v1/completions", body), 400, "stream", "logprobs")
        body = {**body, "max_tokens": 100, "n": 2}
        self.refused(self.server.post("/v1/completions", body), 400, "2 x 100 tokens", "logprobs")
        tokens = 0
        for event in self.server.events("/v1/completions", {**body, "stream": True}):
            tokens += len(event["choices"][0]["logprobs"]["tokens"])
        self.assertEqual(tokens, 200)

    def test_logprobs(self):
        logprobs = self.server.complete(logprobs=3, max_tokens=4)["choices"][0]["logprobs"]
        self.assertEqual([len(logprobs[key]) for key in
                          ("tokens", "token_logprobs", "top_logprobs", "text_offset")], [4] * 4)
        for token, logprob, top in zip(logprobs["tokens"], logprobs["token_logprobs"],
                                       logprobs["top_logprobs"]):
            self.assertEqual(len(top), 3)
            self.assertLess(max(top.values()), 0)
            self.assertGreaterEqual(max(top.values()), logprob)
            if token in top:
                self.assertAlmostEqual(top[token], logprob, places=5)

    def test_stop(self):
        whole = self.server.text(model="numbers", prompt="1", max_tokens=40)
        stop = whole.split()[7] + " " + whole.split()[8]
        first = whole.index(stop)
        choice = self.server.complete(model="numbers", prompt="1", max_tokens=40,
                                      stop=[stop, "never"])["choices"][0]
        self.assertEqual((choice["text"], choice["finish_reason"]), (whole[:first], "stop"))
        pieces = self.server.events("/v1/completions",
                                    {"model": "numbers", "prompt": "1", "max_tokens": 40, "seed": 3,
                                     "stop": stop, "stream": True})
        self.assertEqual("".join(piece["choices"][0]["text"] for piece in pieces), whole[:first])
        fields = {"model": "numbers", "prompt": "1", "max_tokens": 5}  # an echo is not searched
        self.assertEqual(self.server.text(**fields, echo=True, stop="1 " + whole.split()[0]),
                         "1 " + self.server.text(**fields))

    def test_stream(self):
        for model in ("linear", "numbers"):
            body = {"model": model, "prompt": "1", "max_tokens": 300, "seed": 3, "n": 2}
            whole = self.server.post("/v1/completions", body)[1]
            events = self.server.events("/v1/completions", {
                **body, "stream": True, "stream_options": {"include_usage": True}})
            for index in range(2):
                mine = [event["choices"][0] for event in events
                        if event["choices"] and event["choices"][0]["index"] == index]
                self.assertEqual("".join(choice["text"] for choice in mine),
                                 whole["choices"][index]["text"])
                self.assertEqual([choice["finish_reason"] for choice in mine],
                                 [None] * (len(mine) - 1) + ["length"])
            self.assertEqual(events[-1]["usage"], whole["usage"])
            self.assertEqual({event["usage"] for event in events[:-1]}, {None})
            self.assertEqual({event["object"] for event in events}, {"text_completion"})

    def test_long_prompt_is_read_in_pieces(self):
        prompt = "abcdefghij" * 300
        for model in ("linear", "softmax"):
            text = prompt if model == "linear" else prompt[:1000]
            printed = generated(model, "--prompt", text, "-n", "8", "--seed", "3")
            tokens = self.server.complete(model=model, prompt=text, max_tokens=8, logprobs=0)
            said = b"".join(bytes.fromhex(token[8:]) if token.startswith("bytes:") else token.encode()
                            for token in tokens["choices"][0]["logprobs"]["tokens"])
            self.assertEqual(said, printed)

    def test_long_stop_is_refused(self):
        body = {"model": "linear", "prompt": "a", "max_tokens": 1}
        self.assertEqual(self.server.post("/v1/completions", {**body, "stop": "a" * 256})[0], 200)
        self.refused(self.server.post("/v1/completions", {**body, "stop": "a" * 257}), 400,
                     "at most 256", "stop")

    def test_echo_does_not_multiply(self):
        body = {"model": "linear", "prompt": "a" * 60000, "max_tokens": 1, "echo": True}
        self.assertEqual(self.server.post("/v1/completions", body)[0], 200)
        self.refused(self.server.post("/v1/completions", {**body, "n": 2}), 400, "echoed", "echo")

    def test_stream_that_is_refused_is_no_success(self):
        other = self.server.complete(model="numbers", prompt="1", return_state="id")["choices"][0]
        body = {"model": "linear", "stream": True, "state": other["state"]["id"], "prompt": "a"}
        with concurrent.futures.ThreadPoolExecutor(16) as pool:
            answers = list(pool.map(lambda _: self.server.post("/v1/completions", body), range(400)))
        for answer in answers:
            self.refused(answer, 400, "model", "state")

    def test_wrong_fields(self):
        for fields, param in (
                ({"model": None}, "model"), ({"model": "none"}, "model"), ({"model": 7}, "model"),
                ({"model": "speech"}, "model"), ({"prompt": 7}, "prompt"),
                ({"prompt": ["a", 7]}, "prompt"), ({"prompt": [1, 999]}, "prompt"),
                ({"prompt": [-1]}, "prompt"), ({"prompt": [1.5, 2]}, "prompt"),
                ({"prompt": {}}, "prompt"), ({"max_tokens": -1}, "max_tokens"),
                ({"max_tokens": 10 ** 10}, "max_tokens"), ({"max_tokens": "9"}, "max_tokens"),
                ({"temperature": -1}, "temperature"), ({"temperature": "hot"}, "temperature"),
                ({"top_p": 1.5}, "top_p"), ({"top_k": -1}, "top_k"), ({"seed": 1.5}, "seed"),
                ({"n": 0}, "n"), ({"n": 1000}, "n"), ({"logprobs": 6}, "logprobs"),
                ({"stop": 7}, "stop"), ({"stop": ""}, "stop"), ({"stop": ["a"] * 5}, "stop"),
                ({"stream": 1}, "stream"), ({"echo": "yes"}, "echo"),
                ({"echo": True, "logprobs": 1}, "echo"), ({"state": 7}, "state"),
                ({"state": {}}, "state"), ({"state": {"data": "!"}}, "state"),
                ({"state": {"data": "QUJD"}}, "state"), ({"state": "../x"}, "state"),
                ({"state": "0" * 32}, "state"), ({"return_state": "x"}, "return_state"),
                ({"best_of": 5}, "best_of"), ({"presence_penalty": 1}, "presence_penalty"),
                ({"logit_bias": {"1": 2}}, "logit_bias"), ({"suffix": "x"}, "suffix"),
                ({"stream_options": 1}, "stream_options"),
                ({"stream_options": {"include_usages": True}}, "stream_options"), ({"unknown": 1}, "unknown")):
            status, data = self.server.post("/v1/completions", {
                "model": "linear", "prompt": "a", "max_tokens": 2, **fields})
            self.assertIn(status, (400, 404), (fields, data))
            self.assertEqual(data["error"]["param"], param, (fields, data))
        self.refused(self.server.post("/v1/completions", {
            "model": "learned", "prompt": "a" * 41}), 400, "at most 40", "prompt")
        choice = self.server.complete(model="learned", prompt="a" * 30, max_tokens=99)["choices"][0]
        self.assertEqual(choice["finish_reason"], "length")
        for length in range(40, 50):
            name = "a" * length + "\u00e9" * 40
            self.refused(self.server.post("/v1/completions", {name: 1}), 400, "unknown field")

    def test_wrong_bodies(self):
        for body in ("", "{", "[]", "7", "null", '{"model"', '{"a":1,"a":2}', "\xff\xfe",
                     "[" * 5000, '{"model":"linear","prompt":"\\ud800"}', "{}" * 3,
                     '{"prompt": "' + "\x00" + '"}'):
            self.refused(self.server.post("/v1/completions", body.encode("latin-1")), 400, "")
        self.refused(self.server.post("/v1/completions", "x" * 70000), 413, "65536")
        self.refused(self.server.post("/v1/completions", '{"model": "linear", "prompt": "'
                                      + "x" * 66000 + '"}'), 413, "65536")

    # ---- States ----

    def test_state_continues(self):
        whole = self.server.text(max_tokens=30)
        for kind in ("id", "data"):
            first = self.server.complete(max_tokens=13, return_state=kind)["choices"][0]
            self.assertEqual(first["state"]["position"], 17)
            given = first["state"]["id"] if kind == "id" else {"data": first["state"]["data"]}
            for _ in range(2):  # a state does not change when it is continued
                rest = self.server.text(state=given, prompt="", max_tokens=17)
                self.assertEqual(first["text"] + rest, whole)
            rest = self.server.text(state=given, prompt=None, seed=None, max_tokens=17)
            self.assertEqual(first["text"] + rest, whole)

    def test_conversation_forks_and_rewinds(self):
        a = self.server.complete(prompt="A", max_tokens=5, temperature=0, return_state="id")
        a = a["choices"][0]
        b = self.server.complete(prompt="B", state=a["state"]["id"], max_tokens=5, temperature=0,
                                 return_state="id")["choices"][0]
        status, fork = self.server.post(f"/v1/states/{a['state']['id']}/fork", "")
        self.assertEqual((status, fork["position"]), (200, a["state"]["position"]))
        self.assertNotEqual(fork["id"], a["state"]["id"])
        again = self.server.complete(prompt="B", state=fork["id"], max_tokens=5, temperature=0,
                                     return_state="id")["choices"][0]
        self.assertEqual(again["text"], b["text"])
        other = self.server.complete(prompt="C", state=a["state"]["id"], max_tokens=5,
                                     temperature=0, return_state="data")["choices"][0]
        self.assertEqual(other["state"]["position"], b["state"]["position"])
        # Reading a prompt without drawing, then drawing, is the same as both at once.
        read = self.server.complete(prompt="hello", max_tokens=0, return_state="id")["choices"][0]
        self.assertEqual(read["text"], "")
        self.assertEqual(self.server.text(prompt="", state=read["state"]["id"]), self.server.text())

    def test_state_as_object(self):
        made = self.server.complete(max_tokens=3, return_state="id")["choices"][0]["state"]
        path = f"/v1/states/{made['id']}"
        status, _, about = self.server.get(path)
        self.assertEqual((status, about["model"], about["position"], about["bytes"]),
                         (200, "linear", made["position"], made["bytes"]))
        status, _, data = self.server.get(path + "/data")
        self.assertEqual((status, len(data)), (200, made["bytes"]))
        status, copy = self.server.post("/v1/states?model=linear", data)
        self.assertEqual((status, copy["position"]), (200, made["position"]))
        self.assertEqual(self.server.text(state=copy["id"], prompt="x"),
                         self.server.text(state=made["id"], prompt="x"))
        for odd in ("%00", "%00x", "%00/data", "/data%00"):
            self.refused(self.server.get(path + odd), 404, "no such path")
        self.assertEqual(self.server.ask("DELETE", path)[0], 200)
        for answer in (self.server.get(path), self.server.get(path + "/data"),
                       self.server.ask("DELETE", path), self.server.ask("POST", path + "/fork")):
            self.refused(answer, 404, "no such state")
        self.refused(self.server.post("/v1/completions", {"model": "linear", "state": made["id"]}),
                     404, "no such state", "state")

    def test_wrong_states(self):
        made = self.server.complete(max_tokens=3, return_state="data")["choices"][0]["state"]
        data = base64.b64decode(made["data"])
        for model, bytes_, word in (("softmax", data, "model"), ("linear", data[:-1], ""),
                                    ("linear", data[:100], ""), ("linear", b"x" * 200, ""),
                                    ("linear", data + b"x", ""), ("none", data, "no model"),
                                    ("speech", data, "text or images")):
            status, answer = self.server.post(f"/v1/states?model={model}", bytes_)
            self.assertIn(status, (400, 404))
            self.assertIn(word, answer["error"]["message"])
        self.refused(self.server.post("/v1/states", data), 400, "model", "model")
        self.refused(self.server.post("/v1/states?model=linear%00", data), 404, "no model", "model")
        self.refused(self.server.post("/v1/states?model=linear", b""), 400, "bytes")
        generator = random.Random(1)
        for _ in range(40):
            edited = bytearray(data)
            for _ in range(generator.randrange(1, 5)):
                edited[generator.randrange(len(edited))] = generator.randrange(256)
            status, answer = self.server.post("/v1/states?model=linear", bytes(edited))
            self.assertIn(status, (200, 400), answer)
        for name in ("x", "../../etc/passwd", "..%2f..%2fetc%2fpasswd", "A" * 32, "0" * 31, "0" * 33,
                     "0" * 32 + "%00", "%2e%2e", "0" * 500):
            for path in (f"/v1/states/{name}", f"/v1/states/{name}/data"):
                self.refused(self.server.get(path), 404, "")
            self.refused(self.server.ask("DELETE", f"/v1/states/{name}"), 404, "")

    def test_state_too_large_for_numbers_harms_nobody(self):
        made = self.server.complete(max_tokens=3, return_state="data")["choices"][0]["state"]
        data = bytearray(base64.b64decode(made["data"]))
        head = struct.unpack("<Q", data[:8])[0]
        meta = json.loads(data[8:8 + head])
        meta["__metadata__"].pop("tarn_crc32", None)
        tail = data[8 + head:]
        for at in range(200, len(tail) - 4, 4):
            if struct.unpack("<f", tail[at:at + 4])[0] not in (0.0,):
                tail[at:at + 4] = struct.pack("<f", 3e38)
        text = json.dumps(meta, separators=(",", ":")).encode()
        text += b" " * (-len(text) % 64)
        edited = struct.pack("<Q", len(text)) + text + bytes(tail)
        whole = self.server.text(max_tokens=2000)
        with concurrent.futures.ThreadPoolExecutor() as pool:
            other = pool.submit(self.server.text, max_tokens=2000)
            for _ in range(5):
                status, answer = self.server.post("/v1/completions", {
                    "model": "linear", "max_tokens": 20,
                    "state": {"data": base64.b64encode(edited).decode()}})
                self.assertIn(status, (400, 500), answer)
            self.assertEqual(other.result(), whole)

    # ---- Images ----

    def test_images(self):
        fields = {"model": "image", "seed": 7, "n": 2}
        status, data = self.server.post("/v1/images/generations", fields)
        self.assertEqual(status, 200)
        images = [png_pixels(image["b64_json"]) for image in data["data"]]
        self.assertEqual([image[:3] for image in images], [(8, 8, 3)] * 2)
        self.assertNotEqual(images[0], images[1])
        out = f"{folder()}/"
        generated("image", "-n", "2", "--seed", "7", "-o", out)
        for index, name in enumerate(sorted(os.listdir(out))):
            with open(out + name, "rb") as file:
                self.assertEqual(png_pixels(base64.b64encode(file.read())), images[index])
        events = self.server.events("/v1/images/generations", {**fields, "stream": True})
        for index in range(2):
            pixels = [p for event in events if event["index"] == index and "pixels" in event
                      for p in event["pixels"]]
            self.assertEqual(bytes(pixels), images[index][3])
            last = [event for event in events if event["index"] == index][-1]
            self.assertEqual(png_pixels(last["b64_json"]), images[index])

    def test_images_are_completed(self):
        pixels = bytes(range(192))
        image = png_file(8, 8, 3, pixels)
        for given in ({"keep": 20}, {"rows": 3}):
            kept = given.get("keep", 8 * given.get("rows", 0)) * 3
            status, data = self.server.post("/v1/images/completions", {
                "model": "image", "image": image, "seed": 1, "n": 2, **given})
            self.assertEqual(status, 200, data)
            done = [png_pixels(one["b64_json"])[3] for one in data["data"]]
            self.assertEqual([one[:kept] for one in done], [pixels[:kept]] * 2)
            self.assertNotEqual(done[0], done[1])
        events = self.server.events("/v1/images/completions", {
            "model": "image", "image": image, "seed": 1, "rows": 3, "stream": True})
        self.assertEqual(events[0]["position"], 72)
        events = self.server.events("/v1/images/completions", {
            "model": "image", "image": image, "seed": 1, "keep": 0, "stream": True})
        self.assertEqual((events[0]["position"], events[0]["pixels"][0]), (0, 0))
        for fields, param in (({"image": "!!"}, "image"), ({"image": "QUJD"}, "image"),
                              ({"image": None}, "image"), ({"keep": 64}, "keep"),
                              ({"keep": None}, "keep"), ({"rows": 2}, "keep"),
                              ({"image": png_file(4, 4, 3, bytes(48))}, "image"),
                              ({"image": image[:100]}, "image"), ({"model": "linear"}, "model"),
                              ({"response_format": "url"}, "response_format")):
            self.refused(self.server.post("/v1/images/completions", {
                "model": "image", "image": image, "keep": 5, **fields}), 400, "", param)

    def test_size_of_an_image_is_checked_before_it_is_unpacked(self):
        header = b"\x89PNG\r\n\x1a\n" + struct.pack(">I4sIIBBBBB", 13, b"IHDR", 9, 8, 8, 2, 0, 0, 0)
        self.refused(self.server.post("/v1/images/completions", {
            "model": "image", "image": base64.b64encode(header).decode(), "keep": 5}),
            400, "8 x 9 pixels", "image")

    # ---- Speech ----

    def upload(self, fields, file):
        marker = "xyzzy"
        parts = [f'--{marker}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'
                 for name, value in fields.items()]
        body = "".join(parts).encode()
        if file is not None:
            body += (f'--{marker}\r\nContent-Disposition: form-data; name="file"; filename="a.wav"'
                     f"\r\nContent-Type: audio/wav\r\n\r\n").encode() + file + b"\r\n"
        body += f"--{marker}--\r\n".encode()
        return self.server.ask("POST", "/v1/audio/transcriptions", body,
                               {"Content-Type": f"multipart/form-data; boundary={marker}"})

    @staticmethod
    def recording():
        with open(f"{FOLDER}/tones/test/0.wav", "rb") as file:
            return file.read()

    def test_transcription(self):
        wave = self.recording()
        printed = subprocess.run([PROGRAM, "transcribe", f"{FOLDER}/spoken",
                                  f"{FOLDER}/tones/test/0.wav"], stdout=subprocess.PIPE, check=True)
        text = printed.stdout.decode().strip()
        self.assertEqual(self.upload({"model": "speech"}, wave)[2], {"text": text})
        status, headers, data = self.upload({"model": "speech", "response_format": "text"}, wave)
        self.assertEqual((status, data.decode()), (200, text + "\n"))
        verbose = self.upload({"model": "speech", "response_format": "verbose_json"}, wave)[2]
        self.assertEqual(verbose["text"], text)
        self.assertEqual(" ".join(word["word"] for word in verbose["words"]), text)
        self.assertGreater(verbose["duration"], 0)
        for fields, file, word in (
                ({"model": "linear"}, wave, "speech model"), ({}, wave, "model"),
                ({"model": "speech"}, None, "file"), ({"model": "speech"}, b"", "file"),
                ({"model": "speech"}, b"RIFF" + b"x" * 50, "file"),
                ({"model": "speech"}, wave[:30], "file"),
                ({"model": "speech", "response_format": "srt"}, wave, "response_format")):
            self.refused(self.upload(fields, file), 400, word)
        self.refused(self.server.ask("POST", "/v1/audio/transcriptions", "{}"), 415, "multipart")

    def test_live_sound(self):
        samples = self.recording()[44:]
        status, data = self.server.post("/v1/audio/live", {"model": "speech", "sample_rate": 16000})
        self.assertEqual(status, 200)
        path, texts = f"/v1/audio/live/{data['id']}", []
        for at in range(0, len(samples), 3200):
            status, data = self.server.post(path, samples[at:at + 3200])
            self.assertEqual((status, data["final"]), (200, False))
            texts.append(data["text"])
        self.assertTrue(all(b.startswith(a) for a, b in zip(texts, texts[1:])))
        self.refused(self.server.post(path, b"odd"), 400, "2 bytes")
        status, _, data = self.server.ask("DELETE", path)
        self.assertEqual((status, data["final"]), (200, True))
        printed = subprocess.run([PROGRAM, "transcribe", "--stream", f"{FOLDER}/spoken",
                                  f"{FOLDER}/tones/test/0.wav"], stdout=subprocess.PIPE, check=True)
        self.assertEqual(data["text"], printed.stdout.decode().strip())
        self.refused(self.server.ask("DELETE", path), 404, "no such audio stream")
        self.refused(self.server.post(path, b""), 404, "no such audio stream")
        for fields, param in (({"model": "linear"}, "model"), ({"sample_rate": 1}, "sample_rate")):
            self.refused(self.server.post("/v1/audio/live", {"model": "speech", **fields}), 400, "",
                         param)

    # ---- HTTP ----

    def raw(self, data):
        """What is answered, if it is soon."""
        with socket.create_connection(("127.0.0.1", self.server.port), 0.3) as connection:
            received = b""
            try:
                connection.sendall(data)
                connection.shutdown(socket.SHUT_WR)
                while piece := connection.recv(65536):
                    received += piece
            except OSError:
                pass
        return received

    def until_closed(self, data):
        """What is answered before the server closes the connection."""
        with socket.create_connection(("127.0.0.1", self.server.port), PATIENCE) as connection:
            connection.sendall(data)
            received = b""
            while piece := connection.recv(65536):
                received += piece
        return received

    def test_malformed_http(self):
        for data in (b"\r\n\r\n", b"GET\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", b"\x16\x03\x01" * 50,
                     b"GET / HTTP/1.1\r\nHost: localhost\r\nbad header\r\n\r\n", b"A" * 20000,
                     b"GET /" + b"a" * 20000 + b" HTTP/1.1\r\n\r\n",
                     b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: -5\r\n\r\n",
                     b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: x\r\n\r\n",
                     b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
                     b"zz\r\n", b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\n"
                     b"Content-Length: 99999999999999999999\r\n\r\n"):
            received = self.raw(data)
            self.assertTrue(received == b"" or re.match(rb"HTTP/1\.[01] [45]\d\d ", received),
                            received[:100])
        self.assertEqual(self.server.get("/health")[0], 200)

    def test_requests_that_end_in_two_places(self):
        """Or have two names of their host: refused, and what follows is not taken for a request."""
        def asked(*headers):
            head = "".join(f"{one}\r\n" for one in headers)
            return (f"POST /v1/completions HTTP/1.1\r\n{head}\r\n").encode()

        good = b'{"model": "linear", "prompt": "a", "max_tokens": 1}'
        chunks = b"%x\r\n%s\r\n0\r\n\r\n" % (len(good), good)
        size, host, chunked = f"Content-Length: {len(good)}", "Host: localhost", "Transfer-Encoding: chunked"
        hidden = b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
        for request in (asked(host, size) + good, asked(host, chunked) + chunks,
                        asked(host, "transfer-encoding: Chunked") + chunks):
            self.assertEqual(re.findall(rb"HTTP/1.1 (\d+)", self.until_closed(request + hidden)),
                             [b"200", b"200"])
        for request, status, word in (
                (asked(host, size, "content-length: 0") + good, 400, "Content-Length is given"),
                (asked(host, "Content-Length: 0", size) + good, 400, "Content-Length is given"),
                (asked(host, size, chunked) + chunks, 400, "together"),
                (asked(host, chunked, chunked) + chunks, 400, "Transfer-Encoding is given"),
                (asked(host, "Transfer-Encoding: gzip") + good, 501, "'gzip'"),
                (asked(host, "Transfer-Encoding: gzip, chunked") + chunks, 501, "gzip, chunked"),
                (asked(host, "Transfer-Encoding:") + good, 501, "chunked"),
                (asked(host, f"Content-Length : {len(good)}") + good, 400, "blank"),
                (asked(host, "Host: evil.example", size) + good, 400, "Host"),
                (asked("Host: evil.example", host, size) + good, 400, "Host")):
            received = self.until_closed(request + hidden)
            self.assertEqual(received.count(b"HTTP/1.1"), 1, received)
            head, body = received.split(b"\r\n\r\n", 1)
            self.assertIn(b"\r\nconnection: close", head.lower())
            self.refused((int(head.split()[1]), json.loads(body)), status, word)
        self.assertEqual(self.server.get("/health")[0], 200)

    def test_bodies_cut_short_or_endless(self):
        head = b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\n"
        for _ in range(20):
            with socket.create_connection(("127.0.0.1", self.server.port), PATIENCE) as connection:
                connection.sendall(head + b'Content-Length: 500\r\n\r\n{"model": "linear"')
        with socket.create_connection(("127.0.0.1", self.server.port), PATIENCE) as connection:
            connection.sendall(head + b"Transfer-Encoding: chunked\r\n\r\n")
            with self.assertRaises(OSError):
                for _ in range(10000):
                    connection.sendall(b"1000\r\n" + b"x" * 4096 + b"\r\n")
        self.assertEqual(self.server.get("/health")[0], 200)

    def test_two_requests_on_one_connection(self):
        connection = self.server.connect()
        for _ in range(3):
            connection.request("POST", "/v1/completions", json.dumps(
                {"model": "linear", "prompt": "hello", "max_tokens": 12, "seed": 3}))
            self.assertEqual(json.loads(connection.getresponse().read())["choices"][0]["text"],
                             self.server.text())
        connection.close()

    # ---- Company ----

    def test_bits_do_not_depend_on_company(self):
        def one(seed):
            return self.server.text(seed=seed, max_tokens=100 + 37 * (seed % 5),
                                    prompt="x" * (1 + seed % 300))

        alone = [one(seed) for seed in range(12)]
        with concurrent.futures.ThreadPoolExecutor(36) as pool:
            self.assertEqual(list(pool.map(one, [seed for seed in range(12)] * 6)), alone * 6)

    def test_first_symbol_comes_within_three_steps(self):
        with Server("--max-tokens", LONG, models=("linear",)) as server:
            with server.occupy("linear", n=8):
                server.wait_for("first_tokens_total", 8, "linear")
                for joined in range(1, 21):
                    steps = server.metric("first_token_steps_total", "linear")
                    server.complete(seed=joined)
                    steps = server.metric("first_token_steps_total", "linear") - steps
                    self.assertEqual(server.metric("first_tokens_total", "linear"), 8 + joined)
                    self.assertTrue(1 <= steps <= 3, steps)

    def test_client_that_leaves_frees_its_stream(self):
        left = self.server.metric("clients_left_total")
        for streams in (True, False):
            with self.server.occupy(n=30, stream=streams):
                self.server.wait_for("users", 30, "numbers")
            self.server.wait_for("users", 0, "numbers")
        self.server.wait_for("clients_left_total", left + 2)
        with open(self.log, encoding="utf-8") as log:
            last = [line["status"] for line in map(json.loads, log) if line.get("model") == "numbers"]
        self.assertEqual(last[-2:], [200, 499])  # a stream had begun; the other got no reply
        steps = self.server.metric("steps_total", "numbers")
        time.sleep(0.1)
        self.assertEqual(self.server.metric("steps_total", "numbers"), steps)


class Limits(Case):
    def test_long_prompt_delays_nobody_and_ends_with_its_client(self):
        with Server("--max-tokens", LONG, models=("linear",)) as server:
            steps = server.metric("steps_total", "linear")
            with server.occupy("linear", prompt="x" * 30_000_000):
                server.wait_for("users", 1, "linear")
                self.assertEqual(server.complete()["usage"]["completion_tokens"], 12)
                server.wait_for("users", 1, "linear")
            server.wait_for("users", 0, "linear")
            self.assertEqual(server.metric("steps_total", "linear"), steps + 12)

    def test_request_that_waits_keeps_its_symbols_only(self):
        """JSON takes 16 times the bytes of a body of short numbers."""
        with open(PROGRAM, "rb") as file:
            if re.search(rb"__[amt]san_init", file.read()):
                self.skipTest("a sanitizer keeps memory that was freed")
        with Server("--max-tokens", LONG, models=("linear",)) as server:
            before, end = server.memory(), time.time() + PATIENCE
            with server.occupy("linear", prompt=[0] * 1_000_000):
                server.wait_for("users", 1, "linear")
                while server.memory() - before > 20_000_000:  # the rest is freed now
                    self.assertLess(time.time(), end)
                    time.sleep(0.01)

    def test_bodies_of_all_together(self):
        with Server("--max-body", "1K", models=("linear",)) as server:
            head = b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1024\r\n\r\n"
            clients = [socket.create_connection(("127.0.0.1", server.port), PATIENCE) for _ in range(17)]
            for client in clients:
                client.sendall(head + b" " * 1000)
            server.wait_for("open_requests", 18)
            body = b" " * 1000 + b'{"model":1}'
            end = time.time() + PATIENCE
            while server.post("/v1/completions", body)[0] != 429:
                assert time.time() < end
            for client in clients:
                client.close()
            server.wait_for("open_requests", 1)
            self.refused(server.post("/v1/completions", body), 400, "model must be")

    def test_log_of_a_strange_method(self):
        log = f"{folder()}/log"
        with Server("--log", log, models=("linear",)) as server:
            with socket.create_connection(("127.0.0.1", server.port), PATIENCE) as client:
                client.sendall(b"\xff\xfe /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
                self.assertIn(b"405", client.recv(100))
            server.wait_for("open_requests", 1)
        with open(log, encoding="utf-8") as lines:
            self.assertEqual(json.loads(lines.readline())["status"], 405)

    def test_body_that_never_ends(self):
        with Server("--max-seconds", "0.3", models=("linear",)) as server:
            with socket.create_connection(("127.0.0.1", server.port), PATIENCE) as client:
                client.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n")
                with self.assertRaises(OSError):
                    for _ in range(999):
                        client.sendall(b" ")
                        time.sleep(0.01)

    def test_file_of_a_model_that_is_gone(self):
        path = f"{folder()}/moved.safetensors"
        shutil.copy(f"{FOLDER}/linear.safetensors", path)
        with Server(models=(f"moved={path}",)) as server:
            os.unlink(path)
            os.mkdir(path)
            for _ in range(2):
                self.refused(server.get("/models/moved.safetensors"), 500, "not a regular file")
            files = os.listdir(f"/proc/{server.process.pid}/fd")
            for _ in range(20):
                self.refused(server.get("/models/moved.safetensors"), 500, "not a regular file")
            self.assertLess(len(os.listdir(f"/proc/{server.process.pid}/fd")), len(files) + 10)

    def test_queue_is_full(self):
        clients = []
        self.addCleanup(lambda: [client.close() for client in clients])
        with Server("--max-streams", "2", "--max-queue", "2", "--max-tokens", LONG,
                    models=("numbers", "linear")) as server:
            clients += [server.occupy() for _ in range(4)]
            server.wait_for("users", 2, "numbers")
            server.wait_for("queued_streams", 2, "numbers")
            body = {"model": "numbers", "prompt": "1", "max_tokens": 5}
            status, headers, data = server.ask("POST", "/v1/completions", body)
            self.refused((status, data), 429, "queue")
            self.assertGreaterEqual(int(headers["Retry-After"]), 1)
            self.assertEqual(server.complete()["usage"]["prompt_tokens"], 5)
            clients.pop().close()  # one that waits
            server.wait_for("queued_streams", 1, "numbers")
            with concurrent.futures.ThreadPoolExecutor() as pool:
                waiting = pool.submit(server.post, "/v1/completions", body)
                server.wait_for("queued_streams", 2, "numbers")
                for client in clients:
                    client.close()
                self.assertEqual(waiting.result()[0], 200)
            self.refused(server.post("/v1/completions", {**body, "n": 3}), 400, "at most 2", "n")

    def test_time(self):
        with Server("--max-seconds", "0.2", "--max-tokens", LONG) as server:
            choice = server.complete(max_tokens=10 ** 8, n=8)["choices"][0]
            self.assertEqual(choice["finish_reason"], "time")

    def test_slow_reader_delays_nobody(self):
        with Server("--max-tokens", LONG, models=("linear",)) as server:
            slow = server.occupy("linear", logprobs=5, n=8, stream=True)
            server.wait_for("users", 8, "linear")
            end = time.time() + PATIENCE
            steps = -1
            while steps != server.metric("steps_total", "linear"):
                steps = server.metric("steps_total", "linear")
                assert time.time() < end
                time.sleep(0.3)
            self.assertEqual(server.metric("users", "linear"), 8)
            self.assertEqual(server.complete()["usage"]["completion_tokens"], 12)
            slow.close()
            server.wait_for("users", 0, "linear")

    def test_keys(self):
        path = f"{folder()}/keys"
        with open(path, "w", encoding="utf-8") as file:
            file.write("# keys\nsecret-one\nsecret-two\n")
        with Server("--api-key-file", path) as server:
            for key in ("", "Bearer", "Bearer secret-on", "Bearer secret-one1", "Basic secret-one",
                        "Bearer secret-thr"):
                self.refused(server.get("/v1/models", Authorization=key), 401, "key")
            for address in ("/metrics", "/models/linear.safetensors", "/v1/states/" + "0" * 32):
                self.refused(server.get(address), 401, "key")
            self.assertEqual(server.get("/v1/models")[1]["WWW-Authenticate"], "Bearer")
            for scheme in ("Bearer", "bearer"):
                self.assertEqual(server.get("/v1/models", Authorization=f"{scheme} secret-two")[0], 200)
            self.assertEqual(server.get("/health")[0], 200)

    def test_origins(self):
        with Server() as server:
            self.refused(server.get("/v1/models", Origin="http://evil.example"), 403, "origin")
            own = f"http://127.0.0.1:{server.port}"
            status, headers, _ = server.get("/v1/models", Origin=own)
            self.assertEqual((status, headers["Access-Control-Allow-Origin"]), (200, None))
            for host, status in ((f"localhost:{server.port}", 200), ("[::1]", 200),
                                 ("evil.example", 403), ("127.0.0.1.evil.example", 403),
                                 ("localhost.evil.example", 403)):
                self.assertEqual(server.get("/v1/models", Origin=f"http://{host}", Host=host)[0],
                                 status, host)
                # Browsers send no Origin when a page gets something of its own host.
                self.assertEqual(server.get("/models/linear.safetensors", Host=host)[0], status, host)
        with Server("--host", "0.0.0.0") as server:
            self.assertEqual(server.get("/v1/models", Origin="http://a.example", Host="a.example")[0],
                             200)
        with Server("--cors", "https://page.example") as server:
            status, headers, _ = server.get("/v1/models", Origin="https://page.example")
            self.assertEqual((status, headers["Access-Control-Allow-Origin"]),
                             (200, "https://page.example"))
            status, headers, _ = server.ask("OPTIONS", "/v1/completions", None,
                                            {"Origin": "https://page.example"})
            self.assertEqual(status, 204)
            self.assertIn("POST", headers["Access-Control-Allow-Methods"])
            self.assertEqual(headers["Access-Control-Allow-Headers"], "Authorization, *")
            self.refused(server.get("/v1/models", Origin="https://other.example"), 403, "origin")
            self.assertEqual(server.get("/v1/models", Host="page.example")[0], 200)
            self.refused(server.get("/v1/models", Host="other.example"), 403, "other.example")

    def test_refused_to_start(self):
        linear = f"{FOLDER}/linear.safetensors"
        for words, text in (([linear, linear], "two models have the name 'linear'"),
                            ([f"a b={linear}"], "model name is 'a b'"),
                            ([f"{FOLDER}/none"], "none"), ([], "MODEL"),
                            ([linear, "--host", "localhost"], "numeric address"),
                            ([linear, "--state-dir", linear], "linear"),
                            ([f"{FOLDER}/both.safetensors"], "not causal"),
                            ([f"{FOLDER}/sizeless.safetensors"], "size"),
                            ([linear, "--api-key-file", "/dev/null"], "no keys"),
                            ([linear, "--log", "/none/log"], "/none/log")):
            done = subprocess.run([PROGRAM, "serve", "--port", "0", *words], capture_output=True,
                                  text=True, timeout=PATIENCE, check=False)
            self.assertIn(done.returncode, (1, 2), words)
            self.assertIn(text, done.stderr)
        with Server() as server:
            done = subprocess.run([PROGRAM, "serve", linear, "--port", str(server.port)],
                                  capture_output=True, text=True, timeout=PATIENCE, check=False)
            self.assertEqual(done.returncode, 1)
            self.assertIn("cannot listen", done.stderr)


class Restarts(Case):
    def test_states_survive(self):
        states = folder()
        with Server("--state-dir", states) as server:
            whole = server.text(max_tokens=30)
            first = server.complete(max_tokens=13, return_state="id")["choices"][0]
            done = subprocess.run([PROGRAM, "serve", f"{FOLDER}/linear.safetensors", "--port", "0",
                                   "--state-dir", states], capture_output=True, text=True,
                                  check=False, timeout=PATIENCE)
            self.assertIn("in use by another server", done.stderr)
            modes = [os.stat(f"{states}/{name}").st_mode & 0o777 for name in os.listdir(states)]
            self.assertEqual(modes, [0o600] * 2)
        with Server("--state-dir", states) as server:
            rest = server.text(state=first["state"]["id"], prompt="", seed=None, max_tokens=17)
            self.assertEqual(first["text"] + rest, whole)
        with Server("--state-dir", states, models=("other",)) as server:
            self.refused(server.post("/v1/completions", {
                "model": "other", "state": first["state"]["id"]}), 400, "model", "state")

    def test_old_and_many_states_make_room(self):
        states = folder()
        with Server("--state-dir", states, "--max-states", "3") as server:
            ids = [server.complete(return_state="id")["choices"][0]["state"]["id"]
                   for _ in range(5)]
            found = [server.get(f"/v1/states/{id_}")[0] for id_ in ids]
            self.assertEqual(found, [404, 404, 200, 200, 200])
            self.assertEqual(len([n for n in os.listdir(states) if n.endswith(".state")]), 3)
        with Server("--state-dir", states, "--state-age", "1") as server:
            id_ = server.complete(return_state="id")["choices"][0]["state"]["id"]
            end = time.time() + PATIENCE
            while server.get(f"/v1/states/{id_}")[0] == 200:
                self.assertLess(time.time(), end)
                time.sleep(0.1)
            for _ in range(3):  # each removes one that is too old
                self.assertEqual(server.get(f"/v1/states/{id_}")[0], 404)
            self.assertEqual([n for n in os.listdir(states) if n.endswith(".state")], [])

    def test_folder_that_fails(self):
        states = folder()
        with Server("--state-dir", states) as server:
            server.complete(return_state="id")
            shutil.rmtree(states)
            body = {"model": "linear", "max_tokens": 3, "return_state": "id"}
            self.refused(server.post("/v1/completions", body), 507, "", "return_state")
            events = server.events("/v1/completions", {**body, "stream": True})
            self.assertIn("error", events[-1])
            self.assertEqual(server.complete()["usage"]["completion_tokens"], 12)

    def test_full_disk(self):
        states = folder()
        for names in ("-rm", "-m"):
            can = subprocess.run(["unshare", names, "mount", "-t", "tmpfs", "tmpfs", states],
                                 stderr=subprocess.DEVNULL, check=False).returncode == 0
            if can:
                break
        if not can:
            self.skipTest("no file system can be mounted here")
        script = 'mount -t tmpfs -o size=64k tmpfs "$0" && exec "$@"'
        with Server("--state-dir", states, before=("unshare", names, "sh", "-c", script,
                                                   states)) as server:
            saved, answers = [], []
            for _ in range(30):
                answers.append(server.post("/v1/completions", {
                    "model": "linear", "prompt": "hello", "max_tokens": 3, "return_state": "id"}))
                if answers[-1][0] == 200:
                    saved.append(answers[-1][1]["choices"][0]["state"]["id"])
            self.refused(answers[-1], 507, "No space", "return_state")
            self.assertGreater(len(saved), 3)
            for id_ in saved:
                self.assertEqual(server.get(f"/v1/states/{id_}")[0], 200)
            self.assertEqual(server.ask("DELETE", f"/v1/states/{saved[0]}")[0], 200)
            server.complete(return_state="id")

    def test_shutdown_lets_streams_end(self):
        with Server("--drain", str(PATIENCE), models=("numbers",)) as server:
            fields = {"model": "numbers", "prompt": "1", "max_tokens": 40000, "seed": 1}
            with concurrent.futures.ThreadPoolExecutor() as pool:
                whole = pool.submit(server.post, "/v1/completions", fields)
                pieces = pool.submit(server.events, "/v1/completions", {**fields, "stream": True})
                while server.metric("users", "numbers") < 2 and not whole.done():
                    time.sleep(0.001)
                server.stop()
                status, data = whole.result()
                self.assertEqual(status, 200)
                text = "".join(piece["choices"][0]["text"] for piece in pieces.result())
                self.assertEqual(text, data["choices"][0]["text"])

    def test_shutdown_saves_streams(self):
        states = folder()
        fields = {"model": "numbers", "prompt": "1", "max_tokens": 10 ** 8, "seed": 1}
        with Server("--drain", "0.05", "--state-dir", states, "--max-tokens", LONG,
                    models=("numbers",)) as server:
            with concurrent.futures.ThreadPoolExecutor() as pool:
                future = pool.submit(server.post, "/v1/completions",
                                     {**fields, "n": 4, "return_state": "id"})
                server.wait_for("users", 4, "numbers")
                server.stop()
                status, data = future.result()
        self.assertEqual(status, 200, data)
        choice = data["choices"][0]
        self.assertEqual(choice["finish_reason"], "shutdown")
        made = choice["state"]["position"]
        with Server("--state-dir", states, "--max-tokens", LONG, models=("numbers",)) as server:
            whole = server.text(**{**fields, "max_tokens": made + 50})
            rest = server.text(model="numbers", prompt="", seed=None, state=choice["state"]["id"],
                               max_tokens=50)
            self.assertEqual(choice["text"] + rest, whole)

    def test_kill_under_load(self):
        states, acknowledged, lock = folder(), [], threading.Lock()

        def load(server, stop):
            while not stop.is_set():
                try:
                    choice = server.complete(return_state="id", n=2)["choices"]
                except (OSError, http.client.HTTPException, ValueError, AssertionError):
                    return
                with lock:
                    acknowledged.extend(one["state"]["id"] for one in choice)

        for _ in range(3):
            stop = threading.Event()
            with Server("--state-dir", states) as server:
                threads = [threading.Thread(target=load, args=(server, stop)) for _ in range(8)]
                for thread in threads:
                    thread.start()
                target = len(acknowledged) + 30
                end = time.time() + PATIENCE
                while len(acknowledged) < target:
                    self.assertLess(time.time(), end)
                    time.sleep(0.005)
                server.process.kill()
                stop.set()
                for thread in threads:
                    thread.join()
            with Server("--state-dir", states) as server:
                for id_ in acknowledged:
                    self.assertEqual(server.get(f"/v1/states/{id_}")[0], 200)
                begun, whole = server.text(), server.text(max_tokens=20)
                for id_ in acknowledged[-20::2]:  # of the first of both choices
                    self.assertEqual(begun + server.text(state=id_, prompt="", seed=None, max_tokens=8),
                                     whole)


def make_models(where):
    subprocess.run([MAKE_MODELS, where], check=True)
    subprocess.run([MAKE_TONES, f"{where}/tones", "8", "2"], check=True)
    subprocess.run([PROGRAM, "train", "speech", "--preset", "speech-tiny", "--layers", "1",
                    "--batch", "4", "--causal", "--steps", "4", "--eval-every", "4", "--data",
                    f"{where}/tones", "--out", f"{where}/spoken"], check=True,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def main():
    global FOLDER
    FOLDER = tempfile.mkdtemp()
    try:
        done = subprocess.run([PROGRAM, "serve", f"{FOLDER}/none"], capture_output=True, text=True,
                              check=False)
        if "no server" in done.stderr:
            print("this build has no server")
            return 77
        make_models(FOLDER)
        program = unittest.main(argv=[sys.argv[0], *sys.argv[4:]], exit=False, verbosity=1)
        return 0 if program.result.wasSuccessful() else 1
    finally:
        shutil.rmtree(FOLDER, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
