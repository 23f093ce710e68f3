#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""check_links.py [FOLDER] - checks every relative link and anchor in the Markdown pages of FOLDER
[this repository]. Addresses on the network are not checked.

Anchors are those that GitHub gives to headings, and the id or name of an HTML element."""
import os
import re
import sys
import urllib.parse

LEFT_OUT = {".git", "build"}

FENCE = re.compile(r"^ {0,3}(```+|~~~+)")
HEADING = re.compile(r"^ {0,3}#{1,6}\s+(.*?)\s*#*\s*$")
CODE = re.compile(r"(`+)(?!`).*?(?<!`)\1(?!`)")
INLINE = re.compile(r"\]\(\s*<?([^)\s>]*)>?(?:\s+\"[^\"]*\")?\s*\)")
REFERENCE = re.compile(r"^ {0,3}\[[^\]]+\]:\s*<?([^\s>]+)")
HTML = re.compile(r"<(?:a|img|source)\b[^>]*?\b(?:href|src|srcset)=[\"']([^\"']+)[\"']")
ELEMENT = re.compile(r"<\w+\b[^>]*?\b(?:id|name)=[\"']([^\"']+)[\"']")


def pages(folder):
    for where, folders, names in os.walk(folder):
        folders[:] = sorted(set(folders) - LEFT_OUT)
        yield from (os.path.join(where, name) for name in sorted(names) if name.endswith(".md"))


def prose(path):
    """(number, line) outside of blocks of code."""
    fence = None
    with open(path, encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            found = FENCE.match(line)
            if fence:
                if found and found.group(1).startswith(fence):
                    fence = None
            elif found:
                fence = found.group(1)
            else:
                yield number, line.rstrip("\n")


def links(path):
    """(number, target); not in `code`."""
    for number, line in prose(path):
        text = CODE.sub("", line)
        for pattern in (INLINE, REFERENCE, HTML):
            yield from ((number, target) for target in pattern.findall(text))


def slug(heading):
    """The anchor of a heading: GitHub keeps letters, digits, _ and -, and turns spaces into -."""
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower()
    return re.sub(r"[^\w\- ]", "", text).replace(" ", "-")


def anchors(path):
    found, times = set(), {}
    for _, line in prose(path):
        found.update(ELEMENT.findall(line))
        heading = HEADING.match(line)
        if heading:
            name = slug(heading.group(1))
            seen = times.get(name, 0)
            times[name] = seen + 1
            found.add(f"{name}-{seen}" if seen else name)
    return found


def problem(folder, page, target):
    """Why a link is broken; None: it is not, or it is not checked."""
    parts = urllib.parse.urlsplit(target)
    if parts.scheme or parts.netloc:
        return None
    name = urllib.parse.unquote(parts.path)
    if name.startswith("/"):
        return "starts with /; write it relative to this page"
    path = os.path.normpath(os.path.join(os.path.dirname(page), name)) if name else page
    if os.path.relpath(path, folder).startswith(".."):
        return "outside of the repository"
    if not os.path.exists(path):
        return "no such file"
    if parts.fragment and not path.endswith(".md"):
        return "anchors are checked in Markdown pages only; link to the file"
    if parts.fragment and parts.fragment not in anchors(path):
        return f"no heading #{parts.fragment} in {os.path.relpath(path, folder)}"
    return None


def main():
    if len(sys.argv) > 2:
        sys.exit(__doc__)
    here = os.path.dirname(os.path.abspath(__file__))
    folder = os.path.abspath(sys.argv[1] if len(sys.argv) == 2 else os.path.join(here, ".."))
    checked = failed = 0
    for page in pages(folder):
        for number, target in links(page):
            why = problem(folder, page, target)
            checked += 1
            if why:
                failed += 1
                print(f"{os.path.relpath(page, folder)}:{number}: ({target}): {why}")
    print(f"{checked} links, {failed} broken")
    sys.exit(1 if failed or not checked else 0)


if __name__ == "__main__":
    main()
