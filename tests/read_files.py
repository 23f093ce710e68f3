#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""tests/read_files.py FILE... - reads and verifies model, checkpoint and state files with nothing but
docs/formats.md and the standard library, and prints one line for each."""
import json
import math
import struct
import sys
import zlib

SIZES = {"F64": 8, "I64": 8, "F32": 4, "I32": 4, "F16": 2, "BF16": 2, "I16": 2, "I8": 1, "U8": 1, "BOOL": 1}
HEAD = struct.Struct("<QQQQddIi")  # of a stream: position, seed, number, top_k, ...


def need(holds, message):
    if not holds:
        raise ValueError(message)


def split(data):
    """The tensors of a safetensors file as {name: (dtype, shape, bytes)}, and its metadata."""
    need(len(data) >= 8, "shorter than the length of its header")
    length = struct.unpack_from("<Q", data)[0]
    need(length <= len(data) - 8, "header is truncated")
    header = json.loads(data[8:8 + length])
    metadata = header.pop("__metadata__", {})
    start, end, tensors = 8 + length, 0, {}
    for name, about in sorted(header.items(), key=lambda item: item[1]["data_offsets"]):
        begin, stop = about["data_offsets"]
        size = math.prod(about["shape"]) * SIZES[about["dtype"]]
        need(begin == end and stop - begin == size, f"{name}: offsets {begin} to {stop}")
        tensors[name] = (about["dtype"], about["shape"], data[start + begin:start + stop])
        end = stop
    need(start + end == len(data), "data is truncated or too long")
    return tensors, metadata


def verify(tensors, metadata):
    """Compares all checksums; false if the file has none."""
    if "tarn_crc32" not in metadata:
        return False
    sums = json.loads(metadata["tarn_crc32"])
    pairs = sorted((key.encode(), value.encode()) for key, value in metadata.items() if key != "tarn_crc32")
    found = {name: zlib.crc32(tensor[2]) for name, tensor in tensors.items()}
    found["__metadata__"] = zlib.crc32(b"".join(key + b"\0" + value + b"\0" for key, value in pairs))
    need(sums.keys() == found.keys(), "tensors and checksums do not have the same names")
    for name, value in found.items():
        need(sums[name] == f"{value:08x}", f"{name}: CRC-32 is {value:08x}; expected {sums[name]}")
    return True


def count_values(tensors):
    """How many tensors and values there are, to be printed."""
    values = sum(math.prod(shape) for dtype, shape, _ in tensors.values() if dtype in ("F32", "BF16"))
    return f"{len(tensors)} tensors of {values} values"


def read_streams(tensors, about):
    """The heads of the streams: the number of positions and the next symbol of each."""
    data, at, heads = tensors["streams"][2], 0, []
    each = len(data) // about["streams"]
    for _ in range(about["streams"]):
        position, _, number, _, temperature, top_p, greedy, drawn = HEAD.unpack_from(data, at)
        need(position <= about["position"] and greedy in (0, 1), f"a stream at position {position}")
        need(temperature >= 0 and 0 <= top_p <= 1 and drawn >= 0, "settings of sampling")
        heads.append((position, number, drawn - 1))
        at += each
    # Streams at one position, which is what this program reads, have one size.
    need(at == len(data) and len({head[0] for head in heads}) == 1, "streams at several positions")
    return heads


def describe(path):
    with open(path, "rb") as file:
        tensors, metadata = split(file.read())
    checked = "verified" if verify(tensors, metadata) else "no checksums"
    if "tarn_state" in metadata:
        about = json.loads(metadata["tarn_state"])
        need(about["version"] == 1, "another version")
        heads = read_streams(tensors, about)
        return f"state of model {about['model']}, {checked}, streams at {[head[0] for head in heads]}"
    config = json.loads(metadata["tarn"])
    need(config["version"] == 1, "another version")
    what = f"{checked}, {count_values(tensors)}, {config['layers']} layers"
    if "tarn_progress" not in metadata:
        return f"model, {what}"
    progress = json.loads(metadata["tarn_progress"])
    weights = {name for name in tensors if not name.startswith(("optimizer.", "carry."))}
    moments = {name for name in tensors if name.startswith("optimizer.")}
    need({name.split(".", 2)[2] for name in moments} <= weights, "moments of no weight")
    return f"checkpoint, {what}, {progress['updates']} updates by {progress['optimizer']}"


if __name__ == "__main__":
    for name in sys.argv[1:]:
        try:
            print(f"{name}: {describe(name)}")
        except (ValueError, KeyError, OSError, struct.error) as error:
            sys.exit(f"{name}: {error}")
