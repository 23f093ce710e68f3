#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""paper_results.py [--check] - writes the tables of docs/results.md from the records in paper/*/,
between the marks <!-- begin: NAME WHAT -->. --check writes nothing and exits with status 1 if the
page would change."""
import csv
import pathlib
import shutil
import sys
import tempfile

import paper_pages as pages
import paper_speech as speech

ROOT = pathlib.Path(__file__).resolve().parents[1]
PAPER = ROOT / "paper"
PAGE = ROOT / "docs" / "results.md"

FIGURE_1 = ["softmax", "softmax-stored", "linear", "lsh-1", "lsh-4", "lsh-8"]
LENGTHS = [512, 4096, 65536]
FIGURE_2 = ["softmax", "linear", "lsh"]
FIGURE_2_UPDATES = 10000


def read_csv(path):
    with open(path, encoding="utf-8") as lines:
        return list(csv.DictReader(lines))


def figure_1(column, text_of):
    """A row per method, a column per length."""
    found = {(row["attention"], int(row["length"])): row
             for row in read_csv(PAPER / "fig1" / "fig1.csv")}
    lines = []
    for method in FIGURE_1:
        cells = [method]
        for length in LENGTHS:
            row = found[method, length]
            cells.append("over 11 GB" if row["skipped"] else text_of(float(row[column])))
        lines.append(cells)
    return pages.table([""] + [f"N = {length:,}" for length in LENGTHS], lines)


def figure_2(_):
    """The updates and the last loss and accuracy of each run."""
    lines = []
    for method in FIGURE_2:
        rows = read_csv(PAPER / "fig2" / f"{method}.csv")
        losses = [float(row["loss"]) for row in rows if row["loss"]]
        scored = [row for row in rows if row["accuracy"]]
        lines.append([method, f"{len(losses):,} of {FIGURE_2_UPDATES:,}",
                      f"{sum(losses[-25:]) / 25:.2f}",
                      f"{float(scored[-1]['accuracy']):.2f} at {int(scored[-1]['update']):,}"
                      if scored else "–"])
    return pages.table(["", "updates recorded", "loss, mean of the last 25, nats",
                        "accuracy of the last validation"], lines)


TABLE_OF = {"mnist-paper": "table1", "cifar-paper": "table2"}

BLOCKS = {
    ("figure-1", "time"): lambda _: figure_1("us_per_token", lambda value: f"{value:,.3g}"
                                             if value < 1000 else f"{value:,.0f}"),
    ("figure-1", "memory"): lambda _: figure_1("peak_bytes_per_sample", pages.size),
    ("figure-2", "copy"): figure_2,
    ("epochs", "speech-paper"): lambda data: speech.epochs(PAPER / "table3", data),
    ("rates", "real"): lambda data: speech.rates(PAPER / "table3", data),
    ("rates", "spoken"): lambda data: speech.rates(PAPER / "table3", data),
}
for preset, folder in TABLE_OF.items():
    for block in ("throughput", "bits"):
        BLOCKS[block, preset] = (lambda what, rows=pages.BLOCKS[block], page=PAPER / folder:
                                 rows(page, what))
    BLOCKS["latency", preset] = lambda what: pages.latency(PAPER / "table5", what)


def main():
    words = sys.argv[1:]
    if words not in ([], ["--check"]):
        sys.exit(__doc__)
    with tempfile.TemporaryDirectory() as folder:
        made = pathlib.Path(folder) / PAGE.name
        shutil.copy(PAGE, made)
        pages.fill_blocks(made, list(BLOCKS), lambda *name: BLOCKS[name](name[1]))
        if not words:
            shutil.copy(made, PAGE)
        elif made.read_bytes() != PAGE.read_bytes():
            sys.exit("docs/results.md is out of date: run "
                     "tools/paper_results.py and commit the page")


if __name__ == "__main__":
    main()
