# SPDX-License-Identifier: MIT
"""Shared by the house checks: the source files of the product, their areas, their text without comments, and Markdown."""

import re
import subprocess
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2]
HERE = SOURCE / "tests/house"
TOPS = ("core", "api", "plugins", "backends")


def is_test(path):
    """Tests of plugins stand beside the plugin or in its folder tests/."""
    return path.name.startswith("test_") or "tests" in path.relative_to(SOURCE).parts


def product_files(suffixes=(".c", ".h")):
    """The C files of the product, without tests, sorted."""
    found = [path for top in TOPS for path in (SOURCE / top).rglob("*") if path.suffix in suffixes and path.is_file()]
    return sorted(path for path in found if not is_test(path))


def area_of(path):
    """core, api, plugins/NAME or backends/NAME."""
    parts = path.relative_to(SOURCE).parts
    return "/".join(parts[:2]) if parts[0] in ("plugins", "backends") else parts[0]


TOKEN = re.compile(
    r"""(?P<comment>/\*.*?\*/|//[^\n]*)|(?P<string>"(?:\\.|[^"\\\n])*")|(?P<char>'(?:\\.|[^'\\\n])*')""", re.S
)


def blank(text, kinds=("comment", "string", "char")):
    """The text with these tokens replaced by spaces; lines stay where they are."""

    def give(match):
        if match.lastgroup not in kinds:
            return match[0]
        return re.sub(r"[^\n]", " ", match[0])

    return TOKEN.sub(give, text)


FENCED = re.compile(r"^ *(```|~~~).*?^ *\1 *$", re.M | re.S)
BEGINS = r"\||(?:[-*+]|\d+\.) "  # a row of a table, an item of a list
SPAN = rf"`(?:[^`\n]|\n(?! *(?:\n|{BEGINS})))+`"
NAMES = re.compile(rf"(?:(?:, | and )?(?:\[{SPAN}\]\([^)]*\)|{SPAN}))+")
ENTRY = re.compile(rf"^ *(?:{BEGINS}) *(.*(?:\n +(?!{BEGINS})\S.*)*)", re.M)


def code_spans(page):
    """Texts in backticks outside of fenced blocks of a Markdown text; one may end on the next line."""
    return [" ".join(span[1:-1].split()) for span in re.findall(SPAN, FENCED.sub("", page))]


def entry_names(page):
    """The code spans with which a row of a table or an item of a list begins, in the order of the Markdown text."""
    begins = (NAMES.match(entry[1]) for entry in ENTRY.finditer(FENCED.sub("", page)))
    return [name for begin in begins if begin for name in code_spans(begin[0])]


def object_files(build):
    """Object files of product sources: {source path: object path}. Objects of removed sources are left out."""
    found = {}
    for path in Path(build).rglob("*.o"):
        parts = path.relative_to(build).parts
        if "CMakeFiles" not in parts:
            continue
        at = parts.index("CMakeFiles")
        below = ["..".join(part.split("__")) if part == "__" else part for part in parts[at + 2 :]]
        if parts[0] not in (*TOPS, "base") or not below:
            continue
        source = (SOURCE / Path(*parts[:at]) / Path(*below)).resolve().with_suffix("")
        if source.suffix == ".c" and source.is_file() and not is_test(source):
            found[source] = path
    return found


def symbols(objects):
    """For each source: (defined, used) names of symbols with external linkage."""
    by_object = {str(path): source for source, path in objects.items()}
    table = {source: (set(), set()) for source in objects}
    names = sorted(by_object)
    for start in range(0, len(names), 200):
        out = subprocess.run(["nm", "-A", "-P", *names[start : start + 200]], capture_output=True, text=True, check=True)
        for line in out.stdout.splitlines():
            where, name, kind = line.rsplit(": ", 1)[0], *line.rsplit(": ", 1)[1].split()[:2]
            defined, used = table[by_object[where]]
            if kind == "U":
                used.add(name)
            elif kind.isupper():
                defined.add(name)
    return table
