#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""paper_speech.py - writes recorded figures to the page of the paper's speech table.

    paper_speech.py rate DATA METHOD LOG FOLDER   prints a line for PAGE/rates.jsonl, from the
                                                  output of tarn eval --json on standard input
    paper_speech.py guess DATA FOLDER             prints a line for it: trivial baselines
    paper_speech.py evolution DATA RUNS PAGE      writes PAGE/evolution-DATA-METHOD.csv from the
                                                  logs of RUNS/DATA-METHOD
    paper_speech.py write PAGE                    writes the tables of PAGE/README.md from
                                                  PAGE/*.jsonl

DATA is real or spoken; FOLDER contains its train.tsv and test.tsv. The marks of the tables are as in
paper_pages.py, <!-- begin: NAME DATA -->.
"""
import collections
import csv
import json
import os
import sys

import paper_pages as pages

METHODS = ["bi-lstm", "softmax", "lsh-4", "linear"]

# Phone error rate in percent and seconds per epoch (80 hours), of Table 3.
PAPER = {"bi-lstm": (10.94, 1047), "softmax": (5.12, 2711), "lsh-4": (9.33, 2250),
         "linear": (8.08, 824)}

FRAMES_AN_HOUR = 360000

# ---- Records ----------------------------------------------------------------------------------


def read_tsv(folder, part):
    """(seconds, phones) of each utterance."""
    with open(os.path.join(folder, part + ".tsv"), encoding="utf-8") as lines:
        return [(float(row["seconds"]), row["phones"].split())
                for row in csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE)]


def read_log(path):
    """(update, CPU seconds, loss or None, error rate or None)."""
    before = last = 0.0
    for line in pages.read_lines(path):
        if line["cpu_seconds"] < last:
            before += last
        last = line["cpu_seconds"]
        yield line["update"], before + last, line.get("loss"), line.get("error_rate")


def rate(data, method, log, folder, batch=8):
    found = json.load(sys.stdin)
    points = list(read_log(log))
    rates = [point[3] for point in points if point[3] is not None]
    updates = points[-1][0]
    batches = -(-len(read_tsv(folder, "train")) // batch)
    print(json.dumps({"data": data, "method": method, "error_rate": found["error_rate"],
                      "last_greedy": rates[-1] if rates else None,
                      "best_greedy": min(rates, default=None), "updates": updates,
                      "epochs": round(updates / batches, 2),
                      "cpu_minutes": round(points[-1][1] / 60, 2)}))


def distance(a, b):
    """Substitutions, insertions and deletions between two sequences."""
    row = list(range(len(b) + 1))
    for i, left in enumerate(a, 1):
        corner, row[0] = row[0], i
        for j, right in enumerate(b, 1):
            corner, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, corner + (left != right))
    return row[-1]


def guess(data, folder):
    """Baselines that know only the duration of an utterance: no output; the most frequent phone, at
    the rate that suits the training utterances best; the training utterance of the nearest
    duration."""
    train, test = read_tsv(folder, "train"), read_tsv(folder, "test")
    common = collections.Counter(phone for _, phones in train for phone in phones).most_common(1)
    phone = common[0][0]
    labels = sum(len(phones) for _, phones in test)

    def errors(utterances, per_second):
        return sum(distance([phone] * round(seconds * per_second), phones)
                   for seconds, phones in utterances)

    often = min((k / 2 for k in range(1, 30)), key=lambda k: errors(train[:200], k))
    nearest = [min(train, key=lambda other, s=seconds: abs(other[0] - s))[1]
               for seconds, _ in test]
    print(json.dumps({
        "data": data, "method": "guess", "phone": phone, "phones_per_s": often, "labels": labels,
        "utterances": [len(train), len(test)],
        "minutes": [round(sum(s for s, _ in part) / 60, 1) for part in (train, test)],
        "nothing": 1.0, "one_phone": errors(test, often) / labels,
        "as_long": sum(map(distance, nearest, (phones for _, phones in test))) / labels}))


def evolution(data, runs, page):
    """About 300 means of the losses of the last 25 updates, and every validation."""
    for method in METHODS:
        points = list(read_log(os.path.join(runs, f"{data}-{method}", "log.jsonl")))
        if not points:
            print(f"{data}-{method}: the log is empty or missing; skipped", file=sys.stderr)
            continue
        every, recent = max(1, len(points) // 300), []
        path = os.path.join(page, f"evolution-{data}-{method}.csv")
        with open(path, "w", encoding="utf-8") as file:
            file.write("update,cpu_seconds,loss,error_rate\n")
            for update, seconds, loss, found in points:
                if loss is not None and found is None:
                    recent = (recent + [loss])[-25:]
                if found is not None:
                    file.write(f"{update},{seconds:.1f},,{found:.5f}\n")
                elif update % every == 0 and recent:
                    file.write(f"{update},{seconds:.1f},{sum(recent) / len(recent):.4f},\n")


# ---- Rows -------------------------------------------------------------------------------------


def percent(value):
    return pages.ABSENT if value is None else f"{100 * value:.1f}"


def rates(page, data):
    rows = [row for row in pages.read_lines(os.path.join(page, "rates.jsonl"))
            if row["data"] == data]
    found = {row["method"]: row for row in rows}
    lines = []
    for method in METHODS:
        row = found.get(method)
        ours = [pages.ABSENT] * 5
        if row:
            ours = [percent(row["error_rate"]), percent(row["best_greedy"]),
                    f"{row['epochs']:.1f}", f"{row['cpu_minutes']:.1f}",
                    f"{60 * row['cpu_minutes'] / row['epochs']:.1f}"]
        lines.append([method, str(PAPER[method][0])] + ours)
    if "guess" in found:
        row = found["guess"]
        for name, key in ((f"always {row['phone']}, {row['phones_per_s']:g} per second",
                           "one_phone"),
                          ("the training utterance of the nearest duration", "as_long"),
                          ("no output", "nothing")):
            lines.append([name, "", percent(row[key]), "", "", "", ""])
    return pages.table(["method", "paper, PER on WSJ", "PER", "best validation, greedy",
                        "epochs", "CPU minutes", "CPU seconds per epoch"], lines)


def epochs(page, _data):
    rows = {(row["method"], row["length"]): row
            for row in pages.read_lines(os.path.join(page, "epochs.jsonl"))}
    lengths = sorted({length for _, length in rows}) or [800, 2400]
    lines = []
    for method in METHODS:
        paper = PAPER[method][1]
        cells = [method, f"{paper:,} ({paper / PAPER['linear'][1]:.2f}×)"]
        for length in lengths:
            row, base = rows.get((method, length)), rows.get(("linear", length))
            cells.append(f"{80 * row['seconds_per_hour']:,.0f} "
                         f"({row['update_s'] / base['update_s']:.2f}×)"
                         if row and base else pages.ABSENT)
        row = rows.get((method, lengths[0]))
        cells.append(percent(row["ctc_share"]) if row else pages.ABSENT)
        cells.append(f"{row['parameters'] / 1e6:.1f}" if row else pages.ABSENT)
        lines.append(cells)
    return pages.table(["method", "paper, s per epoch"]
                       + [f"tarn, {length:,} frames, s" for length in lengths]
                       + ["CTC, at most, %", "parameters, million"], lines)


BLOCKS = {("rates", "real"): rates, ("rates", "spoken"): rates,
          ("epochs", "speech-paper"): epochs, ("machine", "speech-paper"): pages.machine}


def write(page):
    pages.fill_blocks(os.path.join(page, "README.md"), list(BLOCKS),
                      lambda *name: BLOCKS[name](page, name[1]))


def main():
    words = sys.argv[1:]
    if len(words) == 5 and words[0] == "rate":
        rate(*words[1:])
    elif len(words) == 3 and words[0] == "guess":
        guess(*words[1:])
    elif len(words) == 4 and words[0] == "evolution":
        evolution(*words[1:])
    elif len(words) == 2 and words[0] == "write":
        write(words[1])
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main()
