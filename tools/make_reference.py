#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""make_reference.py [--check] PROGRAM - writes docs/reference/ from the program and the headers.

    cli.md     every command and option, from the manual pages that PROGRAM writes
    kinds.md   attentions, feature maps, heads, optimizers, ...: the tables of the same pages
    c-api.md   every declaration of include/tarn/ with its comment

--check writes nothing, shows where the pages differ, and exits with status 1 if they do."""
import difflib
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import textwrap

ROOT = pathlib.Path(__file__).resolve().parents[1]
FOLDER = ROOT / "docs" / "reference"
MADE = "<!-- Written by tools/make_reference.py: change the source, then run it again. -->\n"

# ---- Manual pages -----------------------------------------------------------------------------


class Command:
    """A command, or a group of them, as its manual page describes it."""

    def __init__(self, path):
        self.path, self.summary, self.about, self.usage = path, "", "", []
        self.rows, self.options, self.tables, self.notes = [], [], [], []
        self.examples = []


class Table:
    def __init__(self, title):
        self.title, self.rows = title, []  # rows: (name, help, [(range, help)])


def plain(text):
    """Text of man(7) without its escapes."""
    return re.sub(r"\\(.)", lambda found: {"e": "\\", "&": ""}.get(*2 * found.group(1)),
                  text).strip()


def words_of(line):
    """The words of a line such as .BI --out " DIR", as they are printed."""
    return re.sub(" +", " ", plain(re.sub(r"^\.[A-Z]+ ", "", line).replace('"', "")))


def paragraphs(lines):
    """(depth, term, text) for .TP, (depth, "", title) for the title of a group of them, and
    (depth, None, text) for other paragraphs; the text of one that is a title of what is indented
    below it ends with a colon."""
    depth, i = 0, 0
    while i < len(lines):
        line = lines[i]
        if line == ".TP":
            yield depth, words_of(lines[i + 1]), plain(lines[i + 2])
            i += 3
            continue
        if line in (".RS", ".RE"):
            depth += 1 if line == ".RS" else -1
        elif line.startswith(".") and line != ".PP":
            sys.exit(f"make_reference.py: '{line}' in a manual page is not understood")
        elif line.endswith(":") and lines[i + 1:i + 2] == [".TP"]:
            yield depth, "", plain(line)[:-1]
        elif line != ".PP":
            titles = lines[i + 1:i + 2] == [".RS"]
            yield depth, None, plain(line).rstrip(":") + ":" if titles else plain(line)
        i += 1


def read_options(command, lines):
    """Options, in groups with a title each or without, then tables, then notes."""
    for depth, term, text in paragraphs(lines):
        if term is None and text.endswith(":"):
            command.tables.append(Table(text[:-1]))
        elif term is None:
            command.notes.append(text)
        elif depth == 0:
            command.options.append((term, text))
        elif depth == 1:
            command.tables[-1].rows.append((term, text, []))
        else:
            command.tables[-1].rows[-1][2].append((term, text))


def sections(lines, mark):
    """{title: lines} of .SH or .SS; what comes before the first is under ''."""
    found = {"": []}
    name = ""
    for line in lines:
        if line.startswith(mark + " "):
            name = plain(line[len(mark):])
            found[name] = []
        else:
            found[name].append(line)
    return found


def read_synopsis(lines):
    """{path: usage line}"""
    found = {}
    for piece in "\n".join(lines).split("\n.br\n"):
        first, *rest = piece.split("\n")
        path = words_of(first)
        operands = [words_of(line).replace("[ ", "[").replace(" ]", "]").replace(" ...", "...")
                    for line in rest]
        found[path] = " ".join([path] + operands)
    return found


def read_page(path):
    """The commands of a manual page, the group first."""
    parts = sections(path.read_text(encoding="utf-8").splitlines(), ".SH")
    usage = read_synopsis(parts["SYNOPSIS"])
    first = Command(next(iter(usage)))
    first.summary = plain(parts["NAME"][0]).split(" - ", 1)[1]
    first.usage = usage[first.path]
    for _, term, text in paragraphs(parts["DESCRIPTION"]):
        if term is None:
            first.about = text
        else:
            first.rows.append((term, text))
    first.examples = [plain(line) for line in parts["EXAMPLES"] if line not in (".EX", ".EE")]
    commands = [first]
    for name, lines in sections(parts["OPTIONS"], ".SS").items():
        if name:
            command = Command(name)
            command.about, command.usage = plain(lines[0]), usage[name]
            read_options(command, lines[1:])
            commands.append(command)
        else:
            read_options(first, lines)
    return commands, parts["EXIT STATUS"]


def read_manual(program):
    """Every command in the order in which the program lists them, and what exit codes mean."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([program, "manual", folder], check=True)
        folder = pathlib.Path(folder)
        (main,), codes = read_page(folder / "tarn.1")
        commands = [main]
        for name, _ in main.rows:
            commands += read_page(folder / f"tarn-{name}.1")[0]
    return commands, [(term, text) for _, term, text in paragraphs(codes)]


def task_defaults(program, task):
    """{option: default} as `tarn train TASK --help` has them."""
    text = subprocess.run([program, "train", task, "--help"], check=True, capture_output=True,
                          encoding="utf-8").stdout
    text = text.split("\n\npresets:")[0]
    joined = re.sub(r"\n {4,}", " ", text)
    return {found.group(1): found.group(2)
            for found in re.finditer(r"^ +(--?[a-z-]+).*?(?: \[([^\]]*)\])?$", joined, re.M)}


# ---- Markdown ---------------------------------------------------------------------------------


def cell(text):
    return re.sub(r"([|<>*])", r"\\\1", text)


def code(text):
    return f"`{text.replace('|', chr(92) + '|')}`" if text else ""


def table(head, rows):
    lines = [head, ["---"] * len(head)] + rows
    return "".join("| " + " | ".join(cells) + " |\n" for cells in lines)


def split_default(text):
    """"threads; 0: all [0]" to ("threads; 0: all", "0")."""
    found = re.fullmatch(r"(.*?) \[([^\[\]]*)\]", text)
    return found.groups() if found else (text, "")


def slug(heading):
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def upper_first(text):
    return text[:1].upper() + text[1:]


# ---- cli.md -----------------------------------------------------------------------------------


def heading_of(table_):
    """"Kinds of attention, as in lsh:rounds=4" is listed as "Kinds of attention"."""
    return re.split(r"[,(:]", table_.title)[0].strip()


def option_rows(options):
    """All but --help, which every command has."""
    rows = []
    for term, text in options:
        if term.endswith("--help"):
            continue
        meaning, initial = split_default(text)
        if term:
            rows.append([code(term), cell(meaning), code(initial)])
        else:
            rows.append([f"**{cell(text)}**", "", ""])
    return rows


def command_text(command, shared):
    text = f"\n```\n{command.usage}\n```\n\n{cell(command.about)}\n"
    if command.examples:
        text += "\n```\n" + "\n".join(command.examples) + "\n```\n"
    if command.rows:
        return text
    options = option_rows(command.options)
    if options:
        text += "\n" + table(["", "meaning", "default"], options)
    if command.tables:
        names = [f"[{heading_of(t).lower()}](kinds.md#{shared[rows_key(t)]})"
                 for t in command.tables]
        text += f"\nNames and their options: {', '.join(names)}.\n"
    return text + "".join(f"\n{cell(note)}\n" for note in command.notes)


def cli_page(commands, codes, shared):
    main = commands[0]
    text = MADE + "\n# Commands\n"
    text += "\nAlso `man tarn-COMMAND` and `tarn COMMAND --help`.\n\n"
    text += table(["command", ""], [[f"[{code('tarn ' + name)}](#{slug('tarn ' + name)})",
                                     cell(help_)] for name, help_ in main.rows])
    text += "\nExit codes: " + " ".join(f"{number}: {cell(meaning)}"
                                        for number, meaning in codes) + "\n"
    for command in commands[1:]:
        level = "##" if command.path.count(" ") == 1 else "###"
        text += f"\n{level} {command.path}\n" + command_text(command, shared)
    return text


# ---- kinds.md ---------------------------------------------------------------------------------


def rows_key(table_):
    return tuple(name for name, _, _ in table_.rows)


def shared_tables(commands):
    """Each table once, whichever commands have it: ({rows: anchor}, [(heading, table, commands)])."""
    found = {}
    for command in commands:
        for table_ in command.tables:
            _, _, users = found.setdefault(rows_key(table_), (heading_of(table_), table_, []))
            users.append(command.path)
    headings, anchors = [], {}
    for key, (heading, table_, users) in found.items():
        if any(heading == other for other, _, _ in headings):
            heading = f"{heading} of {users[0]}"
        headings.append((heading, table_, users))
        anchors[key] = slug(heading)
    return anchors, headings


def kind_text(heading, table_, users):
    text = f"\n## {heading}\n\nFor {', '.join(code(user) for user in users)}.\n\n"
    text += table(["name", ""], [[code(name), cell(help_)] for name, help_, _ in table_.rows])
    options = []
    for name, _, its in table_.rows:
        for term, help_ in its:
            option, allowed = term.lstrip(":").split("=", 1)
            meaning, initial = split_default(help_)
            options.append([code(f"{name}:{option}"), cell(meaning), code(allowed),
                            code(initial)])
    if options:
        text += "\n" + table(["option", "meaning", "values", "default"], options)
    return text


def defaults_text(program, tasks):
    """What each task trains with unless told otherwise."""
    found = {task: task_defaults(program, task) for task in tasks}
    names = [name for name in found[tasks[0]]
             if any(found[task].get(name) for task in tasks)]
    rows = [[code(name)] + [code(found[task].get(name) or "") for task in tasks]
            for name in names]
    return ("\n## Defaults of the tasks\n\nWhat `tarn train TASK` uses where an option is not "
            "given.\n\n" + table([""] + [code(task) for task in tasks], rows))


def kinds_page(program, tables):
    text = MADE + "\n# Names and their options\n"
    text += ("\nA kind is written as its name, with options after a colon: "
             "`--attention lsh:rounds=4,chunk=32`.\n\n")
    for heading, _, _ in tables:
        text += f"- [{heading}](#{slug(heading)})\n"
    text += "- [Defaults of the tasks](#defaults-of-the-tasks)\n"
    for row in tables:
        text += kind_text(*row)
    tasks = next(t for heading, t, _ in tables if heading == "Tasks")
    return text + defaults_text(program, list(rows_key(tasks)))


# ---- c-api.md ---------------------------------------------------------------------------------

HEADERS = ["status", "attention", "model", "train", "comm", "generate", "image", "speech",
           "serve", "data", "file", "import", "machine"]

# A comment, a line of the preprocessor, or a declaration with the comment behind it.
TOKEN = re.compile(r"/\*.*?\*/|^#[^\n]*|^(?:typedef|enum|TARN_API)[^;{]*"
                   r"(?:\{[^\n]*\}|\{.*?^\})?[^;]*;(?:[ ]*/\*.*?\*/)?", re.S | re.M)


def comment_lines(token):
    """A comment without its frame."""
    lines = token[2:-2].strip("\n").split("\n")
    return [re.sub(r"^ \* ?| \*$", "", line).rstrip() if i else line.strip()
            for i, line in enumerate(lines)]


def comment_text(lines):
    """Prose as it is; what is indented, and the empty lines in it, is a block of code."""
    text, block = [], []

    def end_block():
        kept = textwrap.dedent("\n".join(block)).strip("\n")
        if kept:
            text.extend(["", "```c" if block[0].startswith("    ") else "```", kept, "```", ""])
        elif block:
            text.append("")
        block.clear()

    for line in lines:
        if line.startswith("  ") or (block and not line):
            block.append(line)
        else:
            end_block()
            text.append(cell(line))
    end_block()
    return re.sub(r"\n{3,}", "\n\n", "\n".join(text)).strip("\n") + "\n"


def declared(token):
    """The name that a declaration is looked up by."""
    if token.startswith("TARN_API"):
        return re.search(r"(tarn_\w+)\(", token).group(1)
    found = re.search(r"(tarn_\w+);$", re.sub(r" */\*.*?\*/", "", token, flags=re.S))
    return found.group(1) if found else None


def pieces(source):
    """(kind, text, whether an empty line comes before): a title of a section, a comment, a
    declaration, or a line of the preprocessor, which ends what a comment is about."""
    end = 0
    for found in TOKEN.finditer(source):
        token, apart = found.group(), source[end:found.start()].count("\n") > 1
        end = found.end()
        title = re.fullmatch(r"/\* -+ (.*?) -+ \*/", token)
        if title:
            yield "title", title.group(1), apart
        elif token.startswith("#"):
            yield "directive", token, apart
        elif not token.startswith("/*"):
            yield "declaration", token, apart
        elif "SPDX" not in token:
            yield "comment", token, apart


def grouped(source):
    """[(title or None, comment, declarations)]. Declarations that follow each other without an
    empty line between them share the comment above the first."""
    groups, open_ = [], False
    for kind, value, apart in pieces(source):
        if kind == "title":
            groups.append((value, [], []))
            open_ = False
        elif kind == "directive":
            open_ = False
        elif kind == "comment":
            groups.append((None, comment_lines(value), []))
            open_ = True
        elif open_ and (not apart or not groups[-1][2]):
            groups[-1][2].append(value)
        else:
            groups.append((None, [], [value]))
            open_ = True
    return groups


def without_api(token):
    """A declaration without TARN_API, its other lines moved as far to the left."""
    if not token.startswith("TARN_API "):
        return token
    return token[len("TARN_API "):].replace("\n" + " " * len("TARN_API "), "\n")


def header_text(name):
    """(its part of the page, its line of the index)"""
    source = (ROOT / "include" / "tarn" / f"{name}.h").read_text(encoding="utf-8")
    about, *groups = grouped(source)
    about[1][0] = upper_first(re.sub(r"^\S+\.h - ", "", about[1][0]))
    text = f"\n## tarn/{name}.h\n\n" + comment_text(about[1])
    index, listed = [], set()
    for title, comment, declarations in groups:
        names = list(dict.fromkeys(filter(None, map(declared, declarations))))
        if title:
            text += f"\n### {title}\n"
        if names:
            heading = ", ".join(map(code, names))
            text += f"\n#### {heading}\n"
            listed.update(names)
            index += [f"[{one}](#{slug(heading)})" for one in names]
        if comment:
            text += "\n" + comment_text(comment)
        if declarations:
            text += "\n```c\n" + "\n".join(map(without_api, declarations)) + "\n```\n"
    missing = set(re.findall(r"^TARN_API [^(]*?(tarn_\w+)\(", source, re.M)) - listed
    if missing:
        sys.exit(f"make_reference.py: tarn/{name}.h: {sorted(missing)} would be left out")
    first = re.split(r"(?<=[.]) |\n\n", " ".join(about[1]).replace("  ", "\n\n"))[0]
    return text, f"\n[**tarn/{name}.h**](#tarn{name}h): {cell(first)}\n{', '.join(index)}\n"


def c_api_page():
    there = {path.stem for path in (ROOT / "include" / "tarn").glob("*.h")} - {"tarn"}
    if there != set(HEADERS):
        sys.exit(f"make_reference.py: {sorted(there ^ set(HEADERS))}: in only one of include/tarn/ "
                 "and HEADERS of this script; add it to the other")
    texts, index = zip(*map(header_text, HEADERS))
    return (MADE + "\n# The C library\n\n`#include <tarn/tarn.h>` brings all of it. "
            "[Embedding in C](../c.md) shows how it is used.\n" + "".join(index)
            + "".join(texts))


# ---- All of them ------------------------------------------------------------------------------


def make(program):
    commands, codes = read_manual(program)
    anchors, tables = shared_tables(commands)
    return {"cli.md": cli_page(commands, codes, anchors),
            "kinds.md": kinds_page(program, tables),
            "c-api.md": c_api_page()}


def check(pages):
    differ = False
    for name, text in pages.items():
        path = FOLDER / name
        there = path.read_text(encoding="utf-8") if path.exists() else ""
        lines = list(difflib.unified_diff(there.splitlines(), text.splitlines(),
                                          f"docs/reference/{name}", "as it would be written now",
                                          lineterm="", n=1))
        differ = differ or bool(lines)
        print("\n".join(lines[:40]), end="\n" if lines else "")
    if differ:
        sys.exit("docs/reference/ is out of date: run tools/make_reference.py PROGRAM and commit "
                 "the pages")


def main():
    words = sys.argv[1:]
    checks = words[:1] == ["--check"]
    if len(words) != 1 + checks or words[-1].startswith("-"):
        sys.exit(__doc__)
    pages = make(os.path.abspath(words[-1]))
    if checks:
        check(pages)
        return
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name, text in pages.items():
        (FOLDER / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
