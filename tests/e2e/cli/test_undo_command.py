# SPDX-License-Identifier: MIT
"""`notegate undo`: the preview, the question on a terminal, what it takes back, and how it ends."""

import contextlib
import json
import os
import pty
import re
import subprocess

import pytest
from cli_support import BINARY, Gateway
from conftest import Gateway as Served
from test_history_commands import COLOURS, PLUGINS, SECONDS, made
from test_history_commands import Store as History

RUN = r"undo-[0-9a-z]{12}"
CUT_DOCUMENTS = 1500  # so many that the undo is still under way when its first changes are seen


class Store(History):
    """In `shared`: `plan`, whose line of run r1 bob has changed since; `made` and `other`, which only r1 has changed."""

    def __init__(self, data):  # pylint: disable=super-init-not-called
        self.data = data
        self.write("bob", "day", "create", "plan", newStr="a\nb\nc\n")
        self.write("bob", "day", "create", "other", newStr="one\n")
        self.write("eve", "r1", "write", "plan", oldStr="b", newStr="B")
        self.write("bob", "day", "write", "plan", oldStr="B", newStr="BB")
        self.write("eve", "r1", "create", "made", newStr="hello\n")
        self.write("eve", "r1", "write", "other", oldStr="one", newStr="one\ntwo")

    def write(self, agent, run, mode, name, /, **arguments):
        self.call("notebook", agent, run, space="shared", mode=mode, name=name, **arguments)

    def text(self, name):
        return self.ok("show", f"shared/notebooks/{name}")

    def changes(self, **filters):
        (page,) = self.objects("log", *(f"--{name}={value}" for name, value in filters.items()))
        return page["changes"]

    def asked(self, reply, *words, before=lambda: None, **more):
        """Exit code, what the terminal shows, what comes on stderr. `reply` None: the end of the input."""
        ours, theirs = pty.openpty()
        variables = made(TERM="xterm", **more)
        for name in {"PAGER", "NO_COLOR"} - set(more):
            variables.pop(name, None)
        with subprocess.Popen([BINARY, "undo", *words, "--data-dir", self.data], stdin=theirs, stdout=theirs,
                              stderr=subprocess.PIPE, env=variables) as running:
            os.close(theirs)
            seen = b""
            with contextlib.suppress(OSError):  # all that had it open have ended
                while more := os.read(ours, 65536):
                    seen += more
                    if seen.endswith(b"[y/N] "):
                        before()
                        os.write(ours, b"\x04" if reply is None else reply.encode() + b"\n")
            code, errors = running.wait(SECONDS), running.stderr.read().decode()
        os.close(ours)
        return code, seen.decode().replace("\r\n", "\n"), errors


@pytest.fixture(name="store", params=["here", "there"])
def fixture_store(request, tmp_path):
    """Calls of this process, or of a gateway that serves the directory."""
    with contextlib.ExitStack() as stack:
        store = Store(tmp_path / "data")
        if request.param == "there":
            stack.enter_context(Gateway(store.data, "--set", f"plugins={PLUGINS}"))
        yield store


@pytest.fixture(name="served")
def fixture_served(tmp_path):
    store = Store(tmp_path / "data")
    with Gateway(store.data, "--set", f"plugins={PLUGINS}"):
        yield store


PREVIEW = """\
conflict   shared/notebooks/plan   overlap: the same lines have changed since
    line 2
      now:    BB
      before: b
undo       shared/notebooks/other  +0 -1
undo       shared/notebooks/made   +0 -2
3 documents changed by eve: 2 to take back, 0 unchanged, 1 conflict
"""


def test_preview(store):
    done = store.run("undo", "--run", "r1", "--dry-run")
    assert (done.returncode, done.stdout, done.stderr) == (1, PREVIEW, "")
    assert store.text("other") == "one\ntwo\n" and store.text("made") == "hello\n"
    assert "\x1b[31mconflict \x1b[m" in store.run("undo", "--run", "r1", "--dry-run", "--color", "always").stdout
    assert store.ok("undo", "--run", "r1", "--id", "oth*", "--dry-run").startswith("undo       shared/notebooks/other  +0 -1\n1 document ")
    done = store.run("undo", "--run", "r1", "--id", "nothing", "--dry-run")
    assert (done.returncode, done.stdout) == (0, "0 documents: 0 to take back, 0 unchanged, 0 conflicts\n")


def test_undo_and_undo_of_that(store):
    done = store.run("undo", "--run", "r1", "--yes")
    assert (done.returncode, done.stderr) == (1, "")
    told = done.stdout.splitlines()
    assert told[4:7] == ["undone     shared/notebooks/other  +0 -1", "undone     shared/notebooks/made   +0 -2",
                         "3 documents changed by eve: 2 taken back, 0 unchanged, 1 conflict"]
    run = re.fullmatch(rf"run ({RUN}); `notegate undo --run \1` takes this back", told[7])[1]
    assert store.text("plan") == "a\nBB\nc\n" and store.text("other") == "one\n"
    assert store.run("show", "shared/notebooks/made").returncode == 1
    assert {change["agent"] for change in store.changes(run=run)} == {"local"}
    again = store.ok("undo", "--run", run, "-y", "--as", "adam")
    assert "2 documents changed by local: 2 taken back" in again
    assert store.text("made") == "hello\n" and store.text("other") == "one\ntwo\n"
    assert store.changes(agent="adam")[0]["run"].startswith("undo-")


def test_json(store):
    (preview,) = [json.loads(line) for line in store.run("undo", "--run", "r1", "--dry-run", "--json").stdout.splitlines()]
    assert (preview["dry_run"], preview["total"], preview["undone"], preview["conflicts"]) == (True, 3, 2, 1)
    assert preview["items"][0]["conflict"] == {"reason": "overlap", "at": [{"line": 2, "present": "BB", "before": "b"}]}
    done = store.run("undo", "--run", "r1", "--collection", "notebooks", "--id", "made", "--yes", "--json")
    answer = json.loads(done.stdout)
    assert done.returncode == 0 and re.fullmatch(RUN, answer["undo"]) and answer["dry_run"] is False and answer["undone"] == 1


def test_which_changes(served):
    first, second = (change["seq"] for change in reversed(served.changes(run="r1")[:2]))
    for words in (["--change", str(first), str(second)], ["--change", f"#{first},{second}"], ["--change", str(first), "--change", str(second)],
                  ["--agent", "eve", "--since", f"#{first - 1}"], ["--agent", "eve", "--since", "1h", "--action", "created,updated",
                   "--id", "*e*", "--until", "now", "--space", "shared", "--tool", "notebook"]):
        done = served.run("undo", "--dry-run", "--json", *words)
        total = json.loads(done.stdout)["total"]
        assert total == 2 if "--id" not in words else total == 0, words
    assert served.ok("undo", "--change", str(second), "-y").splitlines()[0] == "undone     shared/notebooks/other  +0 -1"


# ---- on a terminal ----


def test_the_question(store):
    for reply in ("", "n", "nein", None):
        code, shown, errors = store.asked(reply, "--run", "r1", "--no-pager", "--color", "never")
        assert (code, errors) == (1, "") and shown.startswith(PREVIEW + "Take back 2 documents? [y/N] "), shown
        assert shown.endswith("Nothing was taken back\n") and "undone" not in shown and store.text("other") == "one\ntwo\n"
    code, shown, errors = store.asked("y", "--run", "r1", "--no-pager")
    preview, answered = COLOURS.sub("", shown).split("Take back 2 documents? [y/N] y\n")
    assert (code, errors, preview) == (1, "", PREVIEW)
    assert answered.startswith(PREVIEW[:PREVIEW.index("undo ")] + "3 documents changed by eve: 2 taken back") and RUN[:5] in answered
    assert store.text("other") == "one\n"
    code, shown, errors = store.asked("y", "--run", "r1", "--id", "plan", "--no-pager")
    assert (code, errors) == (1, "") and "[y/N]" not in shown, "there is nothing to ask"


def test_one_document_and_the_pager(served, tmp_path):
    pager = tmp_path / "pager"
    pager.write_text('#!/bin/sh\necho PAGED\nexec cat\n')
    pager.chmod(0o755)
    code, shown, errors = served.asked("yes", "--run", "r1", "--id", "made", PAGER=str(pager))
    assert (code, errors) == (0, "") and shown.startswith("PAGED\n") and "Take back 1 document? [y/N] yes\n" in shown
    assert "1 taken back" in shown


@pytest.mark.parametrize("words", [["--run", "r1"], ["--agent", "eve", "--since", "1h"], ["--agent", "eve", "--since", "1h", "--until", "now"]])
def test_what_was_previewed_is_what_is_done(served, words):
    """A change behind the preview stays, also if its run is selected."""
    code, shown, _ = served.asked("y", *words, "--no-pager", before=lambda: served.write("eve", "r1", "create", "late", newStr="late\n"))
    assert code == 1 and "2 taken back" in shown
    assert served.text("late") == "late\n" and served.text("other") == "one\n"


# ---- one that is cut off ----


def cut_off(store):
    """Kills the gateway once its undo has changed something. What --list says then."""
    gateway = Served(store.data, (f"plugins={PLUGINS}",))
    for number in range(CUT_DOCUMENTS):
        gateway.call("notebook", {"mode": "create", "name": f"note {number}", "newStr": "text\n"},
                     {"X-Notegate-Agent": "eve", "X-Notegate-Run": "many"})
    with subprocess.Popen([BINARY, "undo", "--run", "many", "--yes", "--data-dir", store.data], stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=made()) as running:
        while running.poll() is None:
            assert gateway.call("history_log", {"limit": 1}).json()["result"]["unfinished"] == [], "it runs"
            if gateway.call("notebook", {"mode": "read", "name": f"note {CUT_DOCUMENTS - 1}"}, {"X-Notegate-Agent": "eve"}).status_code == 404:
                gateway.process.kill()
                break
        gateway.process.kill()
        running.communicate(timeout=SECONDS)
    gateway.process.wait()
    gateway.client.close()
    return store.run("undo", "--list")


def test_the_rest_of_one_that_was_cut_off(tmp_path):
    store = Store(tmp_path / "data")
    assert store.ok("undo", "--list") == "" and store.objects("undo", "--list") == [{"unfinished": []}]
    listed = cut_off(store)
    told = re.fullmatch(rf"({RUN})  left: (\d+) documents changed by eve: \2 to take back, 0 unchanged, 0 conflicts\n", listed.stdout)
    unfinished = [told[1]]
    assert f"was cut off; `notegate undo --continue {unfinished[0]}` does the rest" in listed.stderr
    assert json.loads(store.run("undo", "--list", "--json").stdout) == {"unfinished": unfinished}
    preview = json.loads(store.run("undo", "--continue", unfinished[0], "--dry-run", "--json").stdout)
    assert preview["total"] == preview["undone"] == int(told[2]) > 0
    done = json.loads(store.run("undo", "--continue", unfinished[0], "--yes", "--json").stdout)
    assert done["undo"] == unfinished[0] and done["undone"] == preview["undone"]
    assert store.ok("undo", "--list") == ""
    assert store.run("undo", "--continue", unfinished[0], "--yes").returncode == 1


# ---- what is refused ----


@pytest.mark.parametrize("words, told", [
    ([], "which changes?"), (["--agent", "a"], "which changes?"), (["--since", "1h"], "which changes?"), (["--id", "a", "--yes"], "which changes?"),
    (["--run", "x"], "there is no terminal to ask on: it needs --yes, or --dry-run"), (["--continue", "undo-a"], "there is no terminal to ask on"),
    (["--run", "x", "--json"], "--json does not ask"), (["--run", "x", "--yes", "--dry-run"], "leave out one"),
    (["--run", "x", "--since", "7", "--yes"], '--since is "7"'), (["--change", "1", "b", "--yes"], '--change has "b"'),
    (["--change", "1,,2", "--yes"], '--change has ""'), (["--change", "0", "--yes"], '--change has "0"'),
    (["a", "--run", "x", "--yes"], 'unexpected argument "a"'), (["--continue", "undo-a", "--run", "x", "--yes"], "--continue does the rest"),
    (["--list", "--yes"], "--list stands alone"), (["--list", "--run", "x"], "--list stands alone"),
    (["--run", "x", "--at", "1", "--yes"], '"undo" does not take --at'), (["--run", "x", "--stat"], '"undo" does not take --stat'),
    (["--run", "", "--yes"], "--run is empty"), (["--run", "x", "--agent", "", "--yes"], "--agent is empty"), (["--run=", "--dry-run"], "--run is empty"),
    (["--run", "x", "--tool", "", "--yes"], "--tool is empty"), (["--run", ",", "--yes"], '--run is ",", which has an empty part'),
    (["--run", "x", "--as", "a b", "--yes"], '--as is "a b"')])
def test_wrong_command_lines(tmp_path, words, told):
    done = subprocess.run([BINARY, "undo", *words, "--data-dir", tmp_path], capture_output=True, stdin=subprocess.DEVNULL, text=True,
                          timeout=SECONDS, env=made(), check=False)
    assert done.returncode == 2 and told in done.stderr and done.stdout == "", done


def test_what_is_not_there(store):
    for words in (["--run", "r11"], ["--continue", "undo-000000000000"], ["--change", "99999"]):
        done = store.run("undo", *words, "--yes")
        assert (done.returncode, done.stdout) == (1, "") and words[1] in done.stderr, done


def test_hostile_names(served):
    name = "a\x1b[31mb\nundone\tc"
    served.write("eve", "bad", "create", name, newStr="x\x1b[2J\n")
    served.write("bob", "day", "write", name, oldStr="x", newStr="y")
    shown = served.run("undo", "--run", "bad", "--dry-run").stdout
    assert shown.splitlines()[0].startswith(r"conflict   shared/notebooks/a\u001b[31mb\u000aundone\u0009c  changed_since: ") and "\x1b" not in shown
