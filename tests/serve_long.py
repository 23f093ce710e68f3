#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""serve_long.py PROGRAM MAKE_MODELS MAKE_TONES [REQUESTS] - tarn serve with clients that others wrote
(the openai package of PyPI, curl), with 10,000 connections, and with a million requests, after which
it may not have grown. Exit status 77: PyPI cannot be reached, all else passed."""
import asyncio
import json
import os
import random
import resource
import shutil
import subprocess
import sys
import tempfile
import time

import serve_requests as short

CONNECTIONS = 10000
REQUESTS = int(sys.argv[4]) if len(sys.argv) > 4 else 1000000
GROWTH = 8 << 20  # bytes that a million requests may leave behind, of caches and fragments

OPENAI = r'''
import base64, sys
from openai import OpenAI, NotFoundError, BadRequestError, AuthenticationError

url, wave = sys.argv[1:3]
client = OpenAI(base_url=url + "/v1", api_key="secret")
assert {m.id for m in client.models.list()} == {"linear", "image", "speech"}
assert client.models.retrieve("image").task == "image"
whole = client.completions.create(model="linear", prompt="hello", max_tokens=20, seed=3, n=2,
                                  logprobs=2, extra_body={"return_state": "id"})
assert whole.usage.completion_tokens == 40 and len(whole.choices) == 2
assert whole.choices[0].finish_reason == "length"
assert len(whole.choices[0].logprobs.tokens) == 20
pieces = client.completions.create(model="linear", prompt="hello", max_tokens=20, seed=3, stream=True,
                                   stream_options={"include_usage": True})
text, usage = "", None
for piece in pieces:
    text += piece.choices[0].text if piece.choices else ""
    usage = piece.usage or usage
assert text == whole.choices[0].text and usage.completion_tokens == 20
rest = client.completions.create(model="linear", prompt="", max_tokens=5,
                                 extra_body={"state": whole.choices[0].state["id"], "top_k": 40})
assert rest.usage.completion_tokens == 5
images = client.images.generate(model="image", prompt="", n=2, response_format="b64_json",
                                extra_body={"seed": 1})
assert base64.b64decode(images.data[1].b64_json).startswith(b"\x89PNG")
with open(wave, "rb") as file:
    heard = client.audio.transcriptions.create(model="speech", file=file,
                                               response_format="verbose_json")
assert heard.words is not None and heard.duration > 0
with open(wave, "rb") as file:
    plain = client.audio.transcriptions.create(model="speech", file=file, response_format="text")
assert plain.strip() == heard.text
for error, fields in ((NotFoundError, {"model": "none"}), (BadRequestError, {"temperature": -1})):
    try:
        client.completions.create(**{"model": "linear", "prompt": "a", **fields})
        sys.exit(f"no {error}")
    except error as e:
        assert e.body["message"], e
try:
    OpenAI(base_url=url + "/v1", api_key="wrong", max_retries=0).models.list()
    sys.exit("a wrong key was accepted")
except AuthenticationError:
    pass
print("openai: passed")
'''


def with_openai(folder):
    """False: PyPI cannot be reached."""
    venv = f"{folder}/venv"
    subprocess.run([sys.executable, "-m", "venv", venv], check=True)
    if subprocess.run([f"{venv}/bin/pip", "install", "-q", "openai"], check=False).returncode != 0:
        return False
    with open(f"{folder}/keys", "w", encoding="utf-8") as file:
        file.write("secret\n")
    with short.Server("--api-key-file", f"{folder}/keys",
                      models=("linear", "image", f"speech={folder}/spoken/model.safetensors")) as server:
        subprocess.run([f"{venv}/bin/python", "-c", OPENAI, f"http://127.0.0.1:{server.port}",
                        f"{folder}/tones/test/0.wav"], check=True)
    return True


def with_curl(folder):
    if not shutil.which("curl"):
        print("curl: not installed, skipped")
        return
    with short.Server(models=("linear", f"speech={folder}/spoken/model.safetensors")) as server:
        url = f"http://127.0.0.1:{server.port}"

        def curl(*words):
            return subprocess.run(["curl", "-sS", "--fail-with-body", "--max-time", "60", *words],
                                  stdout=subprocess.PIPE, check=True).stdout

        body = '{"model": "linear", "prompt": "hello", "max_tokens": 5, "seed": 3}'
        text = json.loads(curl(f"{url}/v1/completions", "-H", "Content-Type: application/json", "-d",
                               body))["choices"][0]["text"]
        assert text == server.text(max_tokens=5)
        assert curl("-N", f"{url}/v1/completions", "-d", body[:-1] + ', "stream": true}').endswith(
            b"data: [DONE]\n\n")
        heard = json.loads(curl(f"{url}/v1/audio/transcriptions", "-F", "model=speech", "-F",
                                f"file=@{folder}/tones/test/0.wav"))
        assert "text" in heard
        assert curl(f"{url}/models/linear.safetensors", "-H", "Expect: 100-continue") != b""
    print("curl: passed")


def resident(server):
    with open(f"/proc/{server.process.pid}/status", encoding="utf-8") as file:
        return next(1024 * int(line.split()[1]) for line in file if line.startswith("VmRSS"))


async def ask(port, text):
    """One request on a connection of its own, which stays open."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(text)
    head = await reader.readuntil(b"\r\n\r\n")
    return head, writer


async def connect_all(server):
    body = b'{"model":"linear","prompt":"a","max_tokens":2,"seed":1}'
    post = (b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % len(body)
            + body)
    get = b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"
    writers = []
    for _ in range(0, CONNECTIONS, 100):
        answers = await asyncio.gather(*(ask(server.port, post if i % 10 == 0 else get)
                                         for i in range(100)))
        assert all(head.startswith(b"HTTP/1.1 200") for head, _ in answers)
        writers += [writer for _, writer in answers]
    text = await asyncio.to_thread(server.text)
    used = resident(server)
    for writer in writers:
        writer.close()
    return text, used


def with_connections():
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    if limits[1] < CONNECTIONS + 200:
        print(f"connections: only {limits[1]} files may be open, skipped")
        return
    resource.setrlimit(resource.RLIMIT_NOFILE, (limits[1], limits[1]))
    with short.Server(models=("linear",)) as server:
        alone = server.text()
        before = resident(server)
        text, used = asyncio.run(connect_all(server))
        assert text == alone
        server.wait_for("open_requests", 1)
        print(f"connections: {CONNECTIONS} at once, {(used - before) / CONNECTIONS:.0f} bytes each")


def batch(generator, count):
    """Requests in one piece, and how many of them are answered with 200."""
    bodies = (
        '{"model":"linear","prompt":"ab","max_tokens":1,"seed":1}',
        '{"model":"linear","prompt":"ab","max_tokens":2,"return_state":"data"}',
        '{"model":"linear","prompt":"ab","max_tokens":1,"return_state":"id"}',
        '{"model":"linear","prompt":"ab","max_tokens":2,"logprobs":2,"n":2}',
        '{"model":"none"}', "{", '{"model":"linear","prompt":7}')
    text, good = b"", 0
    for _ in range(count):
        kind = generator.randrange(10)
        if kind < 5:
            text += b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"
            good += 1
        elif kind < 7:
            text += b"GET /v1/states/0123 HTTP/1.1\r\nHost: localhost\r\n\r\n"
        else:
            body = generator.choice(bodies)
            good += bodies.index(body) < 4
            text += (f"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n\r\n"
                     f"{body}").encode()
    return text, good


async def one_client(port, count, seed):
    generator = random.Random(seed)
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 20)
    while count > 0:
        n = min(100, count)
        text, good = batch(generator, n)
        writer.write(text)
        status = []
        for _ in range(n):
            head = await reader.readuntil(b"\r\n\r\n")
            status.append(head[9:12])
            await reader.readexactly(int(head.lower().split(b"content-length: ")[1].split()[0]))
        assert status.count(b"200") == good, status
        count -= n
    writer.close()


async def many_clients(port, count, clients=16):
    await asyncio.gather(*(one_client(port, count // clients, seed) for seed in range(clients)))


def without_leaks():
    with short.Server("--max-states", "100", models=("linear",)) as server:
        asyncio.run(many_clients(server.port, 48000))
        before, start = resident(server), time.time()
        asyncio.run(many_clients(server.port, REQUESTS))
        after = resident(server)
        print(f"leaks: {REQUESTS} requests in {time.time() - start:.0f} s, memory {before} to {after}")
        assert after - before < GROWTH
        assert server.metric("open_requests") == 1
        assert server.metric("users", "linear") == 0


def main():
    folder = short.FOLDER = tempfile.mkdtemp()
    try:
        short.make_models(folder)
        with_curl(folder)
        with_connections()
        without_leaks()
        if not with_openai(folder):
            print("PyPI cannot be reached for the openai package")
            return 77
        return 0
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
