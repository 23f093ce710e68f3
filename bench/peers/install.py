#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""install.py FOLDER - installs the packages of the subjects from PyPI into the environment that runs
this script. FOLDER/installed.jsonl has the results, FOLDER/install.log the output of pip. Packages
that cannot be installed are recorded and skipped; NumPy is required."""
import importlib.metadata
import json
import pathlib
import re
import subprocess
import sys

from subjects import SUBJECTS

# Options of pip to try, until one works: packages that compile against other installed packages must
# be built without isolation.
WAYS = [[], ["--no-build-isolation"]]
BASE = ["numpy", "setuptools", "wheel", "ninja"]  # for builds without isolation


def version(package):
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def reason(text):
    """The first line with an error, without paths of this machine."""
    told = r"(?m)^\s*(?:\S*: )?((?:fatal )?error: .*|ERROR: .*|\w*Error: .*|#error .*)$"
    found = re.findall(told, text)
    return re.sub(r"(/[\w.+-]+)+/", "", (found or text.strip().splitlines())[0])[:200]


def install(package, log):
    failures = []
    for way in WAYS:
        command = [sys.executable, "-m", "pip", "install", *way, package]
        done = subprocess.run(command, text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT)
        log.write(done.stdout)
        if done.returncode == 0:
            break
        failures.append({"way": " ".join(["pip install", *way]), "why": reason(done.stdout)})
    return {"package": package, "installed": version(package), "failures": failures}


def main():
    folder = pathlib.Path(sys.argv[1])
    wanted = list(dict.fromkeys(need for subject in SUBJECTS for need in subject.needs))
    made = folder / "installed.jsonl"
    with open(folder / "install.log", "w") as log, open(f"{made}.part", "w") as records:
        for package in BASE:
            if not version(package):
                row = install(package, log)
                if package == "numpy" and not row["installed"]:
                    sys.exit(f"install.py: cannot install numpy, which is required: "
                             f"{row['failures'][-1]['why']}; see {log.name}")
        for package in wanted:
            print(f"installing {package}", file=sys.stderr)
            row = install(package, log)
            print(json.dumps(row), file=records, flush=True)
            print(json.dumps(row), file=sys.stderr)
    pathlib.Path(f"{made}.part").rename(made)  # exists only when complete


if __name__ == "__main__":
    main()
