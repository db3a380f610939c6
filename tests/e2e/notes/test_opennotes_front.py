# SPDX-License-Identifier: MIT
"""Front matter as another YAML 1.2 parser reads it: a generated set, and files of the packages of this machine."""

import datetime
import io
import math
import os
import pathlib
import random
import re

import pytest
from conftest import SOURCE
from ruamel.yaml import YAML

SANITIZED = os.environ.get("NOTEGATE_TEST_PRESET") in ("asan", "tsan")
GENERATED = 150 if SANITIZED else 600
FOUND_MAX = 100 if SANITIZED else 400
# Front matter that the other parser takes a while for is none that people write.
FRONT_BYTES_MAX = 20000

SCALARS = ["yes", "no", "on", "null", "~", "true", "False", "012", "0o14", "0x1F", "1.", "1e3", ".5", "-.inf", ".nan",
           "+12", "-0", "2026-01-28", "2026-01-28T10:00:00Z", "12:30:45", "a b", "it's", 'q"q', "a #b", "a: b", "- x",
           "[x", "é", "日本", "&x", "*x", "%", "@", "`", "", "  lead", "trail ", "a\tb", "line\nbreak", "x" * 90, "=",
           "1.2.3", "---", "...", "key:", "C:\\x", "{{title}}", "[[Wiki Link]]", "#tag", "!t"]


class Maker:
    """YAML that people could have written, by a seed."""

    def __init__(self, seed):
        self.random = random.Random(seed)

    def scalar(self):
        word = self.random.choice(SCALARS)
        style = self.random.randrange(4)
        if style == 0 or "\n" in word or "\t" in word:
            escaped = word.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t")
            return f'"{escaped}"'
        return "'" + word.replace("'", "''") + "'" if style == 1 else word

    def node(self, depth, indent):
        kind = self.random.random()
        pad = " " * (indent + 2)
        count = self.random.randrange(1, 4)
        if depth > 2 or kind < 0.55:
            return " " + self.scalar()
        if kind < 0.65:
            return " [" + ", ".join(self.scalar() for _ in range(count)) + "]"
        if kind < 0.72:
            return " {" + ", ".join(f"k{i}: {self.scalar()}" for i in range(count)) + "}"
        if kind < 0.8:
            lines = [pad + self.random.choice(["text", "# no comment", "more: text"]) for _ in range(count)]
            return " " + self.random.choice(["|", "|-", ">", ">-"]) + "\n" + "\n".join(lines)
        if kind < 0.9:
            return "\n" + "\n".join(pad + "-" + self.node(depth + 1, indent + 2) for _ in range(count))
        return "\n" + "\n".join(f"{pad}m{i}:" + self.node(depth + 1, indent + 2) for i in range(count))

    def document(self):
        lines = []
        for i in range(self.random.randrange(1, 7)):
            if self.random.random() < 0.2:
                lines.append(self.random.choice(["", "# comment"]))
            comment = self.random.choice(["", " # c"])
            lines.append(f"{self.random.choice(['k', 'a b', 'é'])}{i}:" + self.node(0, 0) + comment)
        return "\n".join(lines) + "\n"


def found():
    """Front matter of the Markdown files of installed packages."""
    roots = [pathlib.Path("/usr/share/doc"), pathlib.Path("/usr/lib"), pathlib.Path("/usr/share"), SOURCE / "build"]
    # Folders that go away meanwhile are passed over.
    files = (pathlib.Path(folder, name) for root in roots for folder, _, names in os.walk(root)
             for name in sorted(names) if name.endswith(".md"))
    seen = set()
    for path in files:
        try:
            with open(path, "rb") as file:
                if file.read(3) != b"---":
                    continue
            text = path.read_bytes().decode()
        except (OSError, UnicodeDecodeError):
            continue
        match = re.match(r"---[ \t]*\r?\n(.*?)^(?:---|\.\.\.)[ \t]*\r?$", text, re.S | re.M)
        if match and len(match.group(1)) < FRONT_BYTES_MAX and match.group(1) not in seen:
            seen.add(match.group(1))
            yield match.group(1)
        if len(seen) >= FOUND_MAX:
            return


def other(text):
    """Result of the other parser; None if it does not parse, or is no map."""
    parser = YAML(typ="safe", pure=True)
    parser.version = (1, 2)
    try:
        value = parser.load(io.StringIO(text))
    except Exception:  # noqa: BLE001 (it has many)
        return None
    value = {} if value is None else value
    return value if isinstance(value, dict) else None


def same(theirs, ours):
    if isinstance(theirs, bool) or isinstance(ours, bool):
        return theirs is ours
    if isinstance(theirs, datetime.date):
        return isinstance(ours, str)  # the core types have no times
    if isinstance(theirs, float) and not math.isfinite(theirs):
        return str(ours).lower().lstrip("+") in (".inf", "-.inf", ".nan")
    if isinstance(theirs, int) and isinstance(ours, str):
        return "_" in ours or ours.startswith("0b")  # neither are these
    if isinstance(theirs, dict):
        keys = {"" if key is None else key if isinstance(key, str) else None for key in theirs}
        if None in keys:  # keys that are no texts: ours are as they are written
            return isinstance(ours, dict) and len(ours) == len(theirs)
        return isinstance(ours, dict) and keys == set(ours) and all(
            same(value, ours[key or ""]) for key, value in theirs.items())
    if isinstance(theirs, list):
        return isinstance(ours, list) and len(ours) == len(theirs) and all(map(same, theirs, ours))
    return type(theirs) is type(ours) and theirs == ours or (
        isinstance(theirs, (int, float)) and isinstance(ours, (int, float)) and theirs == ours)


@pytest.fixture(scope="module")
def texts():
    maker = Maker(1)
    return [maker.document() for _ in range(GENERATED)] + list(found())


@pytest.mark.long
def test_front_matter_is_read_as_another_parser_reads_it(start, texts, tmp_path):
    folder = tmp_path / "notes"
    folder.mkdir()
    for number, text in enumerate(texts):
        (folder / f"{number}.md").write_bytes(f"---\n{text.replace(chr(13), '')}---\nbody\n".encode())
    gateway = start(sets=[f"opennotes.notebooks={folder}", "opennotes.max_bytes=1MiB", "opennotes.max_lines=100000"])
    agreed = refused = lenient = 0
    for number, text in enumerate(texts):
        answer = gateway.call("opennotes_get", {"path": f"{number}.md"})
        assert answer.status_code == 200, answer.text
        note = answer.json()["result"]["note"]
        theirs = other(text.replace("\r", ""))
        if re.search(r"^(---|\.\.\.)[ \t]*$", text, re.M):
            continue  # the front matter ended before
        assert note["content"] == "body\n"
        if "frontmatterError" in note:
            # libyaml knows a few forms less than YAML 1.2 has.
            refused += theirs is not None
            continue
        if theirs is None:
            lenient += 1
            continue
        assert same(theirs, note["frontmatter"]), f"{text}\n{theirs}\n{note['frontmatter']}"
        agreed += 1
    assert agreed > len(texts) / 3
    assert refused < len(texts) / 20


def test_a_key_that_is_set_leaves_the_others_to_the_other_parser(start, texts, tmp_path):
    folder = tmp_path / "notes"
    folder.mkdir()
    gateway = start(sets=[f"opennotes.notebooks={folder}"])
    maker = random.Random(2)
    done = refused = 0
    for number, text in enumerate(texts[::3]):
        before = other(text)
        if before is None or not before or not all(isinstance(key, str) for key in before):
            continue
        whole = f"---\n{text}---\nbody\n"
        path = folder / f"{number}.md"
        path.write_bytes(whole.encode())
        key = maker.choice([*before, "new key"])
        value = maker.choice(["text", "a: b", 7, True, ["x", "no"], None, {"deep": ["y", {"z": "#"}]}])
        answer = gateway.call("opennotes_edit", {"path": path.name, "operation": "set", "data": {key: value}})
        now = path.read_bytes().decode()
        if answer.status_code != 200:
            assert answer.json()["code"] == "TOOL_FAILED", answer.text
            assert now == whole
            refused += 1
            continue
        wanted = {name: item for name, item in before.items() if name != key}
        if value is not None:
            wanted[key] = value
        assert now.startswith("---\n") and now.endswith("---\nbody\n")
        after = other(now[4:-len("---\nbody\n")])
        if after is None and not wanted:
            after = {}
        assert str(after) == str(after | wanted) and set(after) == set(wanted), f"{whole}\n{key}: {value}\n{now}"
        # Lines of other keys are as they were, one by one.
        kept = [line for line in whole.splitlines() if re.match(r"\S", line) and not line.startswith((key, f'"{key}'))]
        assert [line for line in now.splitlines() if line in kept] == [
            line for line in whole.splitlines() if line in kept], f"{whole}\n{key}\n{now}"
        done += 1
    assert done > 20
    assert refused < done / 3
