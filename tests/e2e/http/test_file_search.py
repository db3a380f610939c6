# SPDX-License-Identifier: MIT
"""The command `search` of fileEditor, over REST and both versions of MCP."""

import os

import pytest
from cells_tools_support import Handshake, modern
from conftest import Gateway
from keys_support import add, bearer

SEARCH = {"command": "search"}
LINES = "\n".join(f"line {number}" for number in range(1, 151)) + "\n"
FILES = {
    "a-b.txt": "needle -\n", "a.txt": "x\nneedle .\nNEEDLE\n", "a/b.txt": "needle /", "crlf.txt": "one needle\r\ntwo\r\n",
    "umlaut.txt": "ÄPFEL\näpfel\n", "lines.txt": LINES, ".hidden": "needle\n", ".folder/x": "needle\n", "src/one.c": "int needle(void)\n",
    "src/deep/two.h": "int needle;\n"}
WITH = "Left out: 1 binary, 2 hidden, 1 over 16 MiB, 1 links"

# Arguments, and the answer; {0} is the root.
CASES = {
    "plain": ({"pattern": "needle"}, "{0}/a-b.txt:1: needle -\n{0}/a.txt:2: needle .\n{0}/a/b.txt:1: needle /\n{0}/crlf.txt:1: one needle\n"
              "{0}/src/deep/two.h:1: int needle;\n{0}/src/one.c:1: int needle(void)\n6 matches in 6 files\n" + WITH),
    "file": ({"path": "a.txt", "pattern": "NEEDLE"}, "{0}/a.txt:3: NEEDLE\n1 matches in 1 files"),
    "regex": ({"path": "crlf.txt", "pattern": "(needle|two)$", "regex": True},
              "{0}/crlf.txt:1: one needle\n{0}/crlf.txt:2: two\n2 matches in 1 files"),
    "any case": ({"path": "umlaut.txt", "pattern": "äpFEL", "ignore_case": True},
                 "{0}/umlaut.txt:1: ÄPFEL\n{0}/umlaut.txt:2: äpfel\n2 matches in 1 files"),
    "name": ({"path": "src", "pattern": "needle", "glob": "*.h"}, "{0}/src/deep/two.h:1: int needle;\n1 matches in 1 files"),
    "below": ({"pattern": "needle", "glob": "src/*.{c,h}"}, "{0}/src/one.c:1: int needle(void)\n1 matches in 1 files\n"
              "Left out: 2 hidden, 1 links"),
    "max": ({"path": "lines.txt", "pattern": "line", "max": 2},
            "{0}/lines.txt:1: line 1\n{0}/lines.txt:2: line 2\n150 matches in 1 files\nLeft out: 148 over `max`"),
    "nothing": ({"path": "a", "pattern": "none"}, "0 matches in 0 files"),
    "hidden": ({"path": ".folder", "pattern": "needle"}, "{0}/.folder/x:1: needle\n1 matches in 1 files"),
    "no pattern": ({}, "Parameter `pattern` is required for command: search"),
    "empty": ({"pattern": ""}, "Invalid `pattern`: it is empty"),
    "bad regex": ({"pattern": "a(", "regex": True}, "Invalid `pattern`: missing closing parenthesis at character 2"),
    "bad glob": ({"pattern": "a", "glob": "[a"}, "Invalid `glob`: missing terminating ]"),
    "no path": ({"path": "none", "pattern": "a"}, "The path {0}/none does not exist"),
    "outside": ({"path": "/etc", "pattern": "root"}, "The path /etc is outside the roots"),
    "steps": ({"path": "steps", "pattern": "(a+)+$", "regex": True}, "The pattern takes too many steps on {0}/steps, line 1"),
}
FAILING = list(CASES)[9:]


@pytest.fixture(scope="module", name="folder")
def fixture_folder(tmp_path_factory):
    root = tmp_path_factory.mktemp("search") / "root"
    for name, text in FILES.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(text.encode())
    (root / "binary").write_bytes(b"needle\n\0")
    (root / "loop").symlink_to(root)
    (root / "steps").write_text("a" * 60 + "!")
    with open(root / "large", "wb") as large:
        large.write(b"needle\n")
        large.truncate(16 * 1024 * 1024 + 1)
    return root


@pytest.fixture(scope="module", name="served")
def fixture_served(tmp_path_factory, folder):
    running = Gateway(tmp_path_factory.mktemp("data") / "data", ("plugins=file_editor", f"roots={folder}"))
    yield running
    assert running.stop() == 0


def over_rest(served, arguments):
    answer = served.call("fileEditor", arguments)
    return answer.status_code == 200, answer.json()["result" if answer.status_code == 200 else "message"]


def over_handshake(served, arguments):
    answer = Handshake(served, {}).post("tools/call", {"name": "fileEditor", "arguments": arguments}).json()["result"]
    return not answer.get("isError"), answer["content"][0]["text"]


def over_modern(served, arguments):
    answer = modern(served, "tools/call", {}, name="fileEditor", arguments=arguments)["result"]
    return not answer.get("isError"), answer["content"][0]["text"]


@pytest.mark.parametrize("over", (over_rest, over_handshake, over_modern))
@pytest.mark.parametrize("case", CASES)
def test_answers(served, folder, over, case):
    arguments, wanted = CASES[case]
    path = os.path.join(folder, arguments.get("path", ""))
    worked, text = over(served, SEARCH | arguments | {"path": path})
    assert worked == (case not in FAILING), text
    if worked:
        assert text == wanted.format(folder)
    else:
        assert wanted.format(folder) in text


def test_a_file_that_is_too_large_for_a_view(served, folder):
    answer = served.call("fileEditor", {"command": "view", "path": str(folder / "large")})
    assert answer.status_code == 413 and "`view_range`" in answer.json()["hint"] and "`search`" in answer.json()["hint"]


def test_it_only_reads(served, folder):
    """In mode ask, and by readers."""
    answer = served.call("fileEditor", SEARCH | {"path": str(folder), "pattern": "needle"}, {"X-Notegate-Mode": "ask"})
    assert answer.status_code == 200


def test_what_a_caller_may_not_see(tmp_path):
    """A root inside another one, of a space that the key does not have; files of the gateway under another name."""
    outer, inner, config = tmp_path / "outer", tmp_path / "outer" / "inner", tmp_path / "config.yaml"
    inner.mkdir(parents=True)
    (outer / "open").write_text("needle\n")
    (inner / "closed").write_text("needle\n")
    (outer / "link").symlink_to(inner / "closed")
    config.write_text(f"# needle\nplugins: [file_editor]\nroots: ['shared:{outer}', 'team:{inner}']\n")
    os.link(config, outer / "alias")
    data = tmp_path / "data"
    keys = [add(data, "one", "--space", "shared", "--role", "reader"), add(data, "two", "--space", "shared", "--space", "team")]
    running = Gateway(data, args=("--config", str(config)))
    search = SEARCH | {"path": str(outer), "pattern": "needle"}
    shared, both = (running.call("fileEditor", search, bearer(key)).json()["result"] for key in keys)
    refused = running.call("fileEditor", search | {"path": str(inner)}, bearer(keys[0]))
    assert running.stop() == 0
    assert shared == f"{outer}/open:1: needle\n1 matches in 1 files\nLeft out: 1 links"
    assert both == f"{outer}/inner/closed:1: needle\n{outer}/open:1: needle\n2 matches in 2 files\nLeft out: 1 links"
    assert refused.json()["code"] == "PATH_OUTSIDE_ROOTS"


def test_time_is_limited(tmp_path):
    """A search that would take minutes answers what it has found before the call's time is up."""
    root = tmp_path / "root"
    root.mkdir()
    (root / "first").write_text("abz\n")
    (root / "slow").write_text("ab" * 1200 + "\n")
    running = Gateway(tmp_path / "data", ("plugins=file_editor", f"roots={root}", "limits.call_timeout=2s"))
    answer = running.call("fileEditor", SEARCH | {"path": str(root), "pattern": "a.*b.*[zq]", "regex": True})
    assert running.stop() == 0
    assert answer.status_code == 200, answer.text
    assert answer.json()["result"] == (f"{root}/first:1: abz\n1 matches in 1 files\n"
                                       "Not complete, stopped at the limit of time. Search a folder below, or with `glob`.")


def test_ten_thousand_files(tmp_path):
    root = tmp_path / "root"
    for number in range(10000):
        folder = root / str(number // 500)
        if number % 500 == 0:
            folder.mkdir(parents=True)
        (folder / f"{number:05}").write_text("needle\n" if number % 1000 == 3 else "hay\n")
    running = Gateway(tmp_path / "data", ("plugins=file_editor", f"roots={root}"))
    text = running.call("fileEditor", SEARCH | {"path": str(root), "pattern": "needle"}).json()["result"]
    assert running.stop() == 0
    lines = text.splitlines()
    assert lines[-1] == "10 matches in 10 files"
    assert lines[:-1] == sorted(f"{root}/{number // 500}/{number:05}:1: needle" for number in range(3, 10000, 1000))
