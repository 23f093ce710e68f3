#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""pages.py RECORDS PAGE... - writes the records of compare.py as tables to pages, between marks such
as <!-- begin: peers ratios --> and <!-- end: peers ratios -->."""
import pathlib
import statistics
import sys

from subjects import SUBJECTS
from workloads import WORKLOADS

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
from paper_pages import fill_blocks, number, read_lines, table  # noqa: E402

TARN = SUBJECTS[0].name
ABSENT = "–"


def turns(records, work, subject):
    """Seconds per call, by round."""
    return {row["round"]: row["seconds"] / row["calls"] for row in records
            if "calls" in row and (row["workload"], row["subject"]) == (work.name, subject)}


def ratios_of(records, work, subject):
    """The time relative to that of tarn, in every round."""
    ours = turns(records, work, TARN)
    return [seconds / ours[turn] for turn, seconds
            in turns(records, work, subject).items() if turn in ours]


def speed(work, seconds):
    if work.unit.endswith("/s"):
        return f"{number(work.per_call / seconds)} {work.unit}"
    return f"{1e3 * seconds / work.per_call:.3g} {work.unit}"


def of_workloads(records, first, cell):
    """A row per workload, a column per subject: first() makes the text for tarn from its seconds,
    cell() that of a peer from its ratios."""
    lines = []
    for work in WORKLOADS:
        ours = turns(records, work, TARN)
        if not ours:
            continue
        cells = [work.title, first(work, statistics.median(ours.values()))]
        for subject in SUBJECTS[1:]:
            found = ratios_of(records, work, subject.name)
            cells.append(cell(work, ours, found) if found else ABSENT)
        lines.append(cells)
    return table(["", TARN] + [f"{subject.name}" for subject in SUBJECTS[1:]], lines)


def ratios(records):
    return of_workloads(records, speed,
                        lambda work, ours, found: f"{statistics.median(found):.3g}×")


def spread(records):
    return of_workloads(records, speed,
                        lambda work, ours, found: f"{min(found):.3g} to {max(found):.3g}")


def limits(records):
    """Speeds as fractions of the limit of the machine."""
    known = {row["workload"]: row["limit_seconds"] for row in records if "limit_seconds" in row}

    def fraction(work, seconds):
        return f"{known[work.name] / seconds:.2f}" if work.name in known else ABSENT

    def peer(work, ours, found):
        return fraction(work, statistics.median(ours.values()) * statistics.median(found))

    return of_workloads(records, fraction, peer)


def versions(records):
    """The versions of all packages measured."""
    found = {}
    for row in records:
        found.update(row.get("versions", {}))
    return ", ".join(f"{name} {value}" for name, value in sorted(found.items()))


def machine(records):
    row = records[0]
    return (f"{row['date']}, {row['processor']}, {row['processors']} processors, "
            f"{row['threads']} threads for each subject; tarn {row['tarn']} ({row['commit']}), "
            f"{versions(records)}, NumPy {row['numpy']}, Python {row['python']}. "
            f"{row['rounds']} rounds of {row['seconds']:g} s per subject.\n")


def absent(records):
    """What was not measured, and why."""
    lines = []
    for row in records:
        for failure in row.get("failures", []):
            lines.append(f"- `{failure['way']} {row['package']}`: {failure['why']}")
    for row in records:
        if row.get("ready") is False:
            lines.append(f"- {row['subject']}, {row['workload']}: {row['why']}")
    text = "".join(line + "\n" for line in dict.fromkeys(lines))
    return text or "None: all libraries were installed, and their results agree.\n"


BLOCKS = {"ratios": ratios, "spread": spread, "limits": limits, "machine": machine, "absent": absent}


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    records = read_lines(sys.argv[1])
    known = [("peers", name) for name in BLOCKS]
    for page in sys.argv[2:]:
        fill_blocks(page, known, lambda _, name: BLOCKS[name](records))


if __name__ == "__main__":
    main()
