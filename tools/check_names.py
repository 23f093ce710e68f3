#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""check_names.py [FOLDER] - checks that every function and file named in docs/architecture.md and
docs/maths.md exists in FOLDER [this repository].

Names are text in backquotes:

    `src/layer/dense.c`, `dense.c`, `src/layer/`   a file or folder; a file without a folder may be
                                                   anywhere; * and ? as in a shell
    `recur()`                                      a function that is defined in the sources
    `dense.c`: `backward()`, `forward()`           functions that are defined in that file; the list
                                                   ends at . ; ) or the end of a table cell
    `tn_block`, `radam`                            a single word that occurs in the sources, in code
                                                   or in a string; comments do not count

Other text in backquotes, such as a formula or a command, is not checked."""
import fnmatch
import os
import pathlib
import re
import sys

PAGES = ["docs/architecture.md", "docs/maths.md"]
SOURCES = ["include", "src", "cli", "bindings"]
SUFFIXES = {".c", ".h", ".def", ".py"}
LEFT_OUT = {".git", "build", "__pycache__"}

SPAN = re.compile(r"`([^`]+)`")
FILE = re.compile(r"[\w.*?/-]*(/|\.(c|h|def|py|sh|md|cmake|txt))")
CALL = re.compile(r"(\w+)\(\)")
WORD = re.compile(r"[A-Za-z_]\w{2,}")
SYMBOL = re.compile(r"[A-Za-z]_\w")  # q_i: mathematics
LIST_ENDS = re.compile(r"[.;)|]")

COMMENT = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"', re.S)
STRING = re.compile(r'"(?:\\.|[^"\\\n])*"')
ATTRIBUTE = re.compile(r"__attribute__\(\((?:[^()]|\([^()]*\))*\)\)\s*")
NESTED = r"\((?:[^;{}()]|\([^;{}()]*\))*\)"
DEFINITION = re.compile(rf"^[A-Za-z_][\w \t*]*?\b(\w+){NESTED}\s*\{{|^\s*def (\w+)\(|^(\w+)\(\) {{",
                        re.M)


class Sources:
    """The files of a repository, the functions that each defines, and all words of the code."""

    def __init__(self, folder):
        self.paths, self.functions, self.words = [], {}, set()
        for where, folders, names in os.walk(folder):
            folders[:] = set(folders) - LEFT_OUT
            inside = pathlib.Path(where).relative_to(folder)
            self.paths += [(inside / name).as_posix() for name in names]
            self.paths += [(inside / name).as_posix() + "/" for name in folders]
        for path in self.paths:
            if path.split("/")[0] in SOURCES and pathlib.Path(path).suffix in SUFFIXES:
                self._read(path, (folder / path).read_text(encoding="utf-8"))

    def _read(self, path, text):
        code = text if path.endswith(".py") else COMMENT.sub(
            lambda found: found.group() if found.group().startswith('"') else " ", text)
        self.words.update(WORD.findall(code))
        bare = ATTRIBUTE.sub("", STRING.sub('""', code))
        self.functions[path] = {name for names in DEFINITION.findall(bare) for name in names if name}

    def files(self, name):
        """The paths that a name stands for: relative to the repository, or as in an #include."""
        if "/" in name.rstrip("/"):
            forms = [name, "src/" + name, "include/" + name]
        else:
            forms = [name, "*/" + name]
        return [path for path in self.paths for form in forms if fnmatch.fnmatchcase(path, form)]

    def defines(self, function, paths=None):
        return any(function in self.functions.get(path, ())
                   for path in (self.functions if paths is None else paths))


def paragraphs(text):
    """(line number, text) of each paragraph, list item and row of a table; blocks of code as
    well, whose lines are taken as text in backquotes."""
    lines, first, fence = [], 0, False
    for number, line in enumerate(text.split("\n") + [""], 1):
        mark = line.startswith("```")
        starts = mark or fence or not line.strip() or re.match(r"\s*([-*|#]|\d+\. )", line)
        if starts and lines:
            yield first, " ".join(lines)
            lines = []
        fence = fence != mark
        if fence and not mark:
            yield number, " ".join(f"`{word}`" for word in re.findall(r"[\w./]+(?:\(\))?", line)
                                   if FILE.fullmatch(word) or CALL.fullmatch(word))
        elif line.strip() and not mark:
            first = first if lines else number
            lines.append(line)


def problems(sources, text):
    """(what is wrong or None) for every name in a paragraph."""
    files, name_of_file, end = None, "", 0
    for found in SPAN.finditer(text):
        name, before, end = found.group(1), text[end:found.start()], found.end()
        if files is not None and LIST_ENDS.search(before):
            files = None
        call = CALL.fullmatch(name)
        if FILE.fullmatch(name):
            paths = sources.files(name)
            yield None if paths else f"`{name}`: no such file"
            files = paths if text[end:end + 1] == ":" else None
            name_of_file = name
        elif call and files is not None:
            yield (None if sources.defines(call.group(1), files)
                   else f"`{name}`: not defined in {name_of_file}")
        elif call:
            yield None if sources.defines(call.group(1)) else f"`{name}`: no such function"
        elif WORD.fullmatch(name) and not SYMBOL.fullmatch(name):
            yield None if name in sources.words else f"`{name}`: does not occur in the sources"


def main():
    if len(sys.argv) > 2:
        sys.exit(__doc__)
    here = pathlib.Path(__file__).resolve().parents[1]
    folder = pathlib.Path(sys.argv[1]).resolve() if len(sys.argv) == 2 else here
    sources = Sources(folder)
    checked = failed = 0
    for page in PAGES:
        for number, text in paragraphs((folder / page).read_text(encoding="utf-8")):
            for why in problems(sources, text):
                checked += 1
                failed += why is not None
                if why:
                    print(f"{page}:{number}: {why}")
    print(f"{checked} names, {failed} missing")
    sys.exit(1 if failed or not checked else 0)


if __name__ == "__main__":
    main()
