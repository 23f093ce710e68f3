#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""tools/analyze.py [cppcheck] [gcc] [clang] - static analysis of src/ and cli/, by all three without a name.

Fails at a finding that tools/analyze.txt does not explain, and at an explanation that no finding
needs. Of the kernels, which are one body per instruction set, the portable one is analyzed.
"""
import concurrent.futures
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys

BUILD = pathlib.Path("build/analyze")
DEFINE_FAILURES = ("src/base/status.c", "src/file/file_bytes.c")
TOO_LONG_FOR_GCC = ("src/kernel/kernel_portable.c",)  # minutes; it has neither memory nor files of its own
LEFT_OUT = re.compile(r"/(kernel_(avx|neon|wasm))[^/]*$")


def compile_commands():
    """Words of the compiler's command by file, with asserts and without what the compiler is to write."""
    subprocess.run(["cmake", "--preset", "debug", "-B", BUILD, "-DBUILD_TESTING=OFF", "-DCMAKE_C_COMPILER_LAUNCHER="],
                   check=True, capture_output=True)
    commands = {}
    for entry in json.loads((BUILD / "compile_commands.json").read_text()):
        name = os.path.relpath(entry["file"])
        words = shlex.split(entry["command"])[1:]
        at = words.index("-o")
        if name.startswith(("src/", "cli/")) and not LEFT_OUT.search(name):
            commands[name] = words[:at] + words[at + 2:]
            if name.startswith("src/") and name not in DEFINE_FAILURES:
                commands[name] += ["-D_GNU_SOURCE=", "-include", os.path.abspath("tools/analyze.h")]
    return commands


def findings_of(command):
    """(file, check, text) of each warning of an analyzer."""
    done = subprocess.run(command, cwd=BUILD, capture_output=True, text=True)
    pattern = r"^(\S+?):\d+:\d+: warning: (.*) \[(?:CWE-\d+\] \[)?(-Wanalyzer-[\w-]+|[a-z]\w*\.[\w.]+)\]$"
    found = set()
    for path, text, check in re.findall(pattern, done.stderr, re.M):
        found.add((os.path.relpath(BUILD / path), check, text))
    if done.returncode != 0:
        sys.exit(f"analyze.py: {shlex.join(command)}\n{done.stderr}")
    return found


def by_gcc(words):
    return findings_of(["gcc", *words, "-fanalyzer", "-O0", "-S", "-o", "/dev/null"])


def by_clang(words):
    return findings_of(["clang", *words, "-w", "--analyze", "-Xclang", "-analyzer-output=text", "-o", "/dev/null"])


def by_cppcheck(files):
    done = subprocess.run(["cppcheck", "--quiet", "--enable=warning,portability", "--template={file} {id}: {message}",
                           "-Iinclude", "-Isrc", *files], capture_output=True, text=True)
    lines = re.findall(r"^((?:src|cli)/\S+) (\w+): (.*)$", done.stderr, re.M)
    return set(lines)


def analyze(name, commands, pool):
    if name == "cppcheck":
        files = sorted(commands)
        parts = pool.map(by_cppcheck, [files[i:i + 8] for i in range(0, len(files), 8)])
    else:
        files = [file for file in commands if name != "gcc" or file not in TOO_LONG_FOR_GCC]
        parts = pool.map({"gcc": by_gcc, "clang": by_clang}[name], [commands[file] for file in files])
    return set().union(*parts)


def analyzer_of(check):
    return "gcc" if check.startswith("-W") else "clang" if "." in check else "cppcheck"


def report(found, names):
    """Prints what is not as tools/analyze.txt says; the number of these lines."""
    reasons = set()
    for line in pathlib.Path("tools/analyze.txt").read_text().splitlines():
        if line and not line.startswith("#"):
            file, check, _ = line.split(" ", 2)
            if analyzer_of(check) in names:
                reasons.add((file, check))
    lines = [f"{file} {check}: {text}" for file, check, text in sorted(found) if (file, check) not in reasons]
    used = {(file, check) for file, check, _ in found}
    lines += [f"not needed any more: {file} {check}" for file, check in sorted(reasons - used)]
    print("\n".join(lines), end="\n" if lines else "")
    return len(lines)


def main():
    os.chdir(pathlib.Path(__file__).parent.parent)
    names = sys.argv[1:] or ["cppcheck", "gcc", "clang"]
    for name in names:
        if name not in ("cppcheck", "gcc", "clang"):
            sys.exit(__doc__)
        if not shutil.which(name):
            print(f"{name} is not installed")
            sys.exit(77)
    commands = compile_commands()
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        found = set().union(*(analyze(name, commands, pool) for name in names))
    if report(found, names) > 0:
        sys.exit(1)
    print(f"{len(found)} findings, each explained in tools/analyze.txt")


main()
