#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""paper_pages.py - writes recorded figures to the pages of the paper's image tables.

    paper_pages.py evolution RUNS PAGE   writes PAGE/evolution-METHOD.csv from RUNS/METHOD/log.jsonl
    paper_pages.py bits METHOD LOG       prints a line for PAGE/bits.jsonl, from the output of
                                         tarn eval --json on standard input
    paper_pages.py write PAGE...         writes the tables of PAGE/README.md from PAGE/*.jsonl

A table is the text between <!-- begin: NAME --> and <!-- end: NAME -->.
"""
import json
import os
import re
import sys

METHODS = ["softmax", "stateful-softmax", "lsh-1", "lsh-4", "linear"]
TRAINED = ["softmax", "lsh-1", "lsh-4", "linear"]

# Bits/dim and images/s of Tables 1, 2 and 4; seconds on CPU and GPU of Table 5.
PAPER = {
    "mnist-paper": {
        "softmax": (0.621, 0.45, 72.6, 10.2),
        "stateful-softmax": (0.621, 7.56, 7.4, 10.4),
        "lsh-1": (0.745, 0.68, 46.0, 19.2),
        "lsh-4": (0.676, 0.27, 112.0, 55.8),
        "linear": (0.644, 142.8, 5.5, 7.3),
    },
    "cifar-paper": {
        "softmax": (3.47, 0.004, 8651.4, 300.1),
        "stateful-softmax": (3.47, 0.32, 71.9, 70.4),
        "lsh-1": (3.39, 0.015, 2318.9, 221.6),
        "lsh-4": (3.51, 0.005, 5263.7, 683.9),
        "linear": (3.40, 17.85, 45.1, 61.3),
    },
}

ABSENT = "not recorded yet"


def read_lines(path):
    """The objects of a JSON lines file; none if it does not exist."""
    if not os.path.exists(path):
        return []
    with open(path) as lines:
        return [json.loads(line) for line in lines if line.strip()]


def number(value):
    return ABSENT if value is None else f"{value:,.4g}" if value < 1e4 else f"{value:,.0f}"


def size(value):
    for unit in ("B", "KiB", "MiB", "GiB"):
        if value < 1024 or unit == "GiB":
            return f"{value:.4g} {unit}"
        value /= 1024


def table(head, rows):
    lines = [head, ["---"] * len(head)] + rows
    return "".join("| " + " | ".join(cells) + " |\n" for cells in lines)


# ---- Rows ------------------------------------------------------------------------------------


def fastest(rows, method):
    found = [row for row in rows if row["method"] == method]
    return max(found, key=lambda row: row["images_per_s"], default=None)


def steps_of(row):
    measured, all_steps = row["measured_steps"], row["of_steps"]
    return "all" if measured == all_steps else f"{measured} of {all_steps:,}"


def throughput(page, preset):
    """Every method with its fastest batch size, as in the paper."""
    rows = read_lines(os.path.join(page, "throughput.jsonl"))
    base = fastest(rows, "softmax")
    lines = []
    for method in METHODS:
        _, images, _, _ = PAPER[preset][method]
        cells = [method, f"{images} ({images / PAPER[preset]['softmax'][1]:,.4g}×)"]
        row = fastest(rows, method)
        if not row or not base:
            lines.append(cells + [ABSENT] * 4)
            continue
        times = row["images_per_s"] / base["images_per_s"]
        peak = number(row["of_peak"]) if row["of_peak"] is not None else "–"
        lines.append(cells + [f"{number(row['images_per_s'])} ({times:,.4g}×)",
                              str(row["batch"]), peak, steps_of(row)])
    return table(["method", "paper, images/s", "tarn, images/s", "batch", "of peak",
                  "steps measured"], lines)


def memory(page, _preset):
    """The memory of one image, and of a process that generates very many."""
    rows = read_lines(os.path.join(page, "throughput.jsonl"))
    lines = []
    for method in METHODS:
        row = fastest([row for row in rows if row["batch"] == 1], method)
        if not row:
            lines.append([method] + [ABSENT] * 4)
            continue
        lines.append([method] + [size(row[name]) for name in (
            "state_first_bytes_per_image", "state_last_bytes_per_image", "held_first_bytes",
            "held_last_bytes")])
    text = table(["method, one image", "state, first byte", "state, last byte",
                  "other memory, first byte", "other memory, last byte"], lines)
    for row in read_lines(os.path.join(page, "memory.jsonl")):
        text += (f"\n{row['batch']:,} images at once by {row['method']}: a peak of "
                 f"{number(row['process_peak_bytes'] / 1e9)} GB, including the program and the "
                 f"weights ({row['measured_steps']} steps were run).\n")
    return text


def bits(page, preset):
    rows = {row["method"]: row for row in read_lines(os.path.join(page, "bits.jsonl"))}
    lines = []
    for method in METHODS:
        row = rows.get("softmax" if method == "stateful-softmax" else method)
        ours = [ABSENT] * 3
        if row and method == "stateful-softmax":
            ours = [f"{row['bits_per_dim']:.3f}", "as softmax", ""]
        elif row:
            ours = [f"{row['bits_per_dim']:.3f}", f"{row['updates']:,}", f"{row['minutes']:.0f}"]
        lines.append([method, str(PAPER[preset][method][0])] + ours)
    return table(["method", "paper, bits/dim", "tarn, bits/dim", "updates",
                  "CPU minutes"], lines)


def latency(page, preset):
    """The rows with batch 1 of the tables of throughput."""
    table_of = os.path.join(page, "..", {"mnist-paper": "table1", "cifar-paper": "table2"}[preset])
    rows = read_lines(os.path.join(table_of, "throughput.jsonl"))
    found = {row["method"]: row for row in rows if row["batch"] == 1}
    lines = []
    for method in METHODS:
        row, base, paper = found.get(method), found.get("linear"), PAPER[preset]
        cells = [method] + [f"{paper[method][i]} ({paper[method][i] / paper['linear'][i]:.3g}×)"
                            for i in (2, 3)]
        if not row or not base:
            lines.append(cells + [ABSENT] * 2)
            continue
        times = row["seconds_per_image"] / base["seconds_per_image"]
        lines.append(cells + [f"{number(row['seconds_per_image'])} ({times:.3g}×)",
                              steps_of(row)])
    for row in read_lines(os.path.join(table_of, "bf16.jsonl")):
        lines.append([row["method"] + ", weights in bf16", "", "",
                      number(row["seconds_per_image"]), steps_of(row)])
    return table(["method", "paper, CPU, s", "paper, GPU, s", "tarn, s", "steps measured"], lines)


def machine(page, _preset):
    names = sorted(name for name in os.listdir(page) if name.endswith(".jsonl"))
    rows = [row for name in names for row in read_lines(os.path.join(page, name))
            if row.get("precision") == "f32" and "processor" in row]
    if not rows:
        return ABSENT + "\n"
    peak = max(row["fma_f32_gflops"] for row in rows)
    row = rows[0]
    return (f"{row['processor']}, {row['threads']} thread{'s' * (row['threads'] > 1)}, "
            f"{row['cpu']}, {row['precision']}: FMA peak {peak:.0f} GFLOP/s.\n")


BLOCKS = {"throughput": throughput, "memory": memory, "bits": bits, "latency": latency,
          "machine": machine}


def fill_blocks(path, known, rows_of):
    """Replaces the text between the marks NAME REST of a page by rows_of(NAME, REST). `known` are the
    pairs (NAME, REST) that a page may contain."""
    with open(path) as file:
        text = file.read()

    def fill(match):
        if match.group(2, 3) not in known:
            shown = ", ".join(" ".join(pair) for pair in known)
            sys.exit(f"{path}: unknown table '{match.group(2)} {match.group(3)}'; "
                     f"available: {shown}")
        return match.group(1) + "\n" + rows_of(*match.group(2, 3)) + match.group(4)

    pattern = r"(<!-- begin: (\S+) (\S+) -->)\n.*?(<!-- end: \2 \3 -->)"
    with open(path, "w") as file:
        file.write(re.sub(pattern, fill, text, flags=re.S))


def write(page):
    """The marks are of the form <!-- begin: latency mnist-paper -->."""
    known = [(name, preset) for name in BLOCKS for preset in PAPER]
    fill_blocks(os.path.join(page, "README.md"), known,
                lambda name, preset: BLOCKS[name](page, preset))


# ---- Trainings -------------------------------------------------------------------------------


def read_log(path):
    """(update, CPU seconds, training bits or None, validation bits or None). The seconds of a
    resumed run continue those before it."""
    before = last = 0.0
    for line in read_lines(path):
        if line["cpu_seconds"] < last:
            before += last
        last = line["cpu_seconds"]
        loss = line.get("loss")
        train = loss / 0.6931471805599453 if loss is not None else None
        yield line["update"], before + last, train, line.get("bits_per_dim")


def evolution(runs, page):
    """500 to 1000 means of the last 25 updates, and every validation."""
    for method in TRAINED:
        log = os.path.join(runs, method, "log.jsonl")
        points = list(read_log(log))
        every = max(1, len(points) // 500)
        if not points:
            print(f"{log}: empty or missing; skipped", file=sys.stderr)
            continue
        recent = []
        with open(os.path.join(page, f"evolution-{method}.csv"), "w") as file:
            file.write("update,cpu_seconds,bits_per_dim,validation_bits_per_dim\n")
            for update, seconds, train, validation in points:
                if train is not None:
                    recent = (recent + [train])[-25:]
                if validation is not None:
                    file.write(f"{update},{seconds:.1f},,{validation:.5f}\n")
                elif update % every == 0 and recent:
                    file.write(f"{update},{seconds:.1f},{sum(recent) / len(recent):.5f},\n")


def bits_line(method, log):
    found = json.load(sys.stdin)
    points = list(read_log(log))
    print(json.dumps({"method": method, "bits_per_dim": found["bits_per_dim"],
                      "positions": found["positions"], "updates": points[-1][0],
                      "minutes": round(points[-1][1] / 60, 2)}))


def main():
    words = sys.argv[1:]
    if len(words) == 3 and words[0] == "evolution":
        evolution(words[1], words[2])
    elif len(words) == 3 and words[0] == "bits":
        bits_line(words[1], words[2])
    elif len(words) >= 2 and words[0] == "write":
        for page in words[1:]:
            write(page)
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main()
