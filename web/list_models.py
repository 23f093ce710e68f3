#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""list_models.py MODEL... - prints models.json: what GET /v1/models of a server would say about
model files, for pages without one."""
import json
import pathlib
import struct
import sys


def describe(path):
    with open(path, "rb") as file:
        (size,) = struct.unpack("<Q", file.read(8))
        header = json.loads(file.read(size))
    config = json.loads(header["__metadata__"]["tarn"])
    task, _, options = config["task"].partition(":")
    sizes = dict(pair.split("=") for pair in options.split(",") if pair)
    return {"id": path.stem, "object": "model", "task": task, "attention": config["attention"],
            **{name: int(sizes[name]) for name in ("height", "width", "channels") if name in sizes}}


print(json.dumps({"object": "list", "data": [describe(pathlib.Path(p)) for p in sys.argv[1:]]}))
