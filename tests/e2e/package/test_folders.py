# SPDX-License-Identifier: MIT
"""The READMEs of the folders: every file has a row or an item, and everything that they name exists."""

import re
import subprocess

import pytest
from conftest import SOURCE
from tree import code_spans, entry_names

# Folders with their own README. It also describes subfolders without one.
PAGES = sorted(
    path
    for pattern in ("*/README.md", "*/*/README.md", "*/*/*/README.md")
    for path in SOURCE.glob(pattern)
    if path.relative_to(SOURCE).parts[0] in ("core", "api", "plugins", "backends", "tests", "packaging")
)
CODE = (".c", ".h", ".py", ".mjs", ".sh", ".cmake", ".service", ".yaml", ".in", "")
# Files that any folder may have, or that are tests by their name.
ANYWHERE = re.compile(r"README\.md|CMakeLists\.txt|package(-lock)?\.json|test_.*|__pycache__|.*\.pyc|corpora|guides|data")


def pattern_of(name):
    """`a*.c`: all that begin so; `_b.c`, behind `a.c`: `a_b.c`."""
    return re.compile(("" if not name.startswith("_") else r"[a-z_]+") + re.escape(name).replace(r"\*", "[a-z0-9_]*"))


def files_of(page):
    """The files that the page has to place: those of its folder, and of the folders below that have no page."""
    found = []
    waiting = [page.parent]
    while waiting:
        for path in sorted(waiting.pop().iterdir()):
            if ANYWHERE.fullmatch(path.name):
                continue
            if path.is_dir() and not (path / "README.md").exists():
                waiting.append(path)
            elif path.is_file() and path.suffix in CODE:
                found.append(path)
    return found


def placed(path, said):
    """By its own name, or by that of the `.c` or `.h` beside it."""
    own = [path.name] + ([path.stem + ".c", path.stem + ".h"] if path.suffix in (".c", ".h") else [])
    for name in said:
        last = name.split(" ")[0].rsplit("/", 1)[-1]
        if last and any(pattern_of(last).fullmatch(other) for other in own):
            return True
    return False


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(SOURCE).parent))
def test_every_file_has_its_place(page):
    said = entry_names(page.read_text())
    missing = [str(path.relative_to(page.parent)) for path in files_of(page) if not placed(path, said)]
    assert missing == [], f"{page.relative_to(SOURCE)} does not say what these are for"


FILE = re.compile(r"[\w./*-]*\.(?:c|h|py|mjs|sh|cmake|supp)")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(SOURCE).parent))
def test_every_named_file_is_there(page):
    gone = []
    for name in code_spans(page.read_text()):
        if not FILE.fullmatch(name) or "NAME" in name or "_X" in name:
            continue
        wanted = f"*{name}" if name.startswith("_") else name.removeprefix("../")
        below = [path for path in page.parent.rglob(wanted.rsplit("/", 1)[-1]) if path.match(wanted)]
        # The examples of the SDK are installed in one folder.
        if wanted.startswith("examples/") or page.parent.name == "backends":
            below += (SOURCE / "tests/sdk").rglob(wanted.rsplit("/", 1)[-1])
        if not below and not any(list(folder.glob(wanted)) for folder in (SOURCE, SOURCE / "core/include")):
            gone.append(name)
    assert gone == [], f"{page.relative_to(SOURCE)} names what is not there"


@pytest.mark.parametrize("folder", ["core", "api"])
def test_every_named_function_is_there(folder):
    words = set()
    for path in [*SOURCE.glob("core/**/*.[ch]"), *SOURCE.glob("api/**/*.[ch]"),
                 *SOURCE.glob("backends/**/*.[ch]")]:
        words |= set(re.findall(r"\w+", path.read_text()))
    named = {name.removesuffix("()") for name in code_spans((SOURCE / folder / "README.md").read_text())}
    gone = sorted(name for name in named if re.fullmatch(r"[a-z]+_\w+", name) and name not in words)
    assert gone == [], f"{folder}/README.md names what no code has"


PAGE = """Text of `prose.c`.

| `row.c`, [`folder/`](folder/README.md) | not `cell.c` |
- `item.c` and `other.h`: not `inside.c`,
  nor `behind.c`.
  - `nested.c`: below it.
1. `a command
   with words`: broken.
- not `late.c`

```
- `fenced.c`: an example
```
| `last.c`
"""


def test_rows_and_items_name_files():
    assert entry_names(PAGE) == ["row.c", "folder/", "item.c", "other.h", "nested.c", "a command with words", "last.c"]
    assert set(code_spans(PAGE)) - set(entry_names(PAGE)) == {"prose.c", "cell.c", "inside.c", "behind.c", "late.c"}


def test_a_file_without_a_place_is_found(tmp_path):
    for name in ("row.c", "prose.c", "nested.c", "unknown.c"):
        (tmp_path / name).touch()
    page = tmp_path / "README.md"
    page.write_text(PAGE)
    assert [path.name for path in files_of(page) if not placed(path, entry_names(PAGE))] == ["prose.c", "unknown.c"]


@pytest.mark.parametrize("line, found", [
    ("é" * 120, False), ("é" * 121, True), ("- `a.c`: " + "x " * 60, True), ("| " + "x " * 60 + "|", True),
    ("https://example.org/" + "x" * 120, False), ("- [a page](" + "x" * 120 + ").", False),
    ("read [a page](" + "x" * 120 + ")", True), ("```\n" + "x" * 121 + "\n```", False)])
def test_long_lines_are_found(tmp_path, line, found):
    page = tmp_path / "page.md"
    page.write_text(f"# Page\n\n{line}\n")
    done = subprocess.run([SOURCE / "tests/house/pages", page], capture_output=True, text=True)
    assert (done.returncode, done.stdout.startswith(f"{page}:3: ")) == (int(found), found), done.stderr
