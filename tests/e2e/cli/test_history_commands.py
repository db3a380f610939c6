# SPDX-License-Identifier: MIT
"""`notegate log`, `show`, `diff` and `blame`: through a gateway and without one, for programs and on a terminal."""

import contextlib
import json
import os
import pty
import re
import subprocess

import pytest
from cli_support import BINARY, Gateway, environment, notegate

SECONDS = 120
PLUGINS = "notebook,agent_notebook,history"
HOSTILE = "a\x1b[31mb\nchange 99\tc"
COLOURS = re.compile(r"\x1b\[[0-9;]*m")


def made(**more):
    return environment(NOTEGATE_PLUGINS=PLUGINS, **more)


class Store:
    """A data directory with some history: `todo` in three revisions by two agents, and an entry."""

    def __init__(self, data):
        self.data = data
        self.call("notebook", "ada", "run-1", mode="create", name="todo", newStr="one\ntwo\n")
        self.call("notebook", "ada", "run-1", mode="write", name="todo", oldStr="two", newStr="2")
        self.call("notebook", "bob", "run-2", space="~ada", mode="write", name="todo", oldStr="2\n", newStr="2\nthree\n")

    def call(self, tool, agent, run, /, **arguments):
        done = notegate("call", tool, "-", "--agent", agent, "--run", run, "--data-dir", self.data, env=made(),
                        stdin=json.dumps(arguments))
        assert done.returncode == 0, (arguments, done.stderr)
        return done.stdout

    def run(self, *words, **more):
        return notegate(*words, "--data-dir", self.data, env=made(**more))

    def ok(self, *words, **more):
        done = self.run(*words, **more)
        assert (done.returncode, done.stderr) == (0, ""), (words, done)
        return done.stdout

    def lines(self, *words):
        return self.ok(*words).splitlines()

    def objects(self, *words):
        return [json.loads(line) for line in self.lines(*words, "--json")]


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


# ---- for programs ----


def test_log(store):
    assert [line for line in store.lines("log") if line.startswith("Document: ")] == [
        f"Document: ~ada/notebooks/todo@{number}" for number in (3, 2, 1)]
    first = store.lines("log", "-n", "1")
    assert re.fullmatch(r"change [0-9]+", first[0])
    assert first[2] == "Agent:    bob" and first[4:6] == ["Run:      run-2", "Tool:     notebook, updated"]
    assert re.fullmatch(r"Date:     2\d{3}-\d\d-\d\dT[\d:.]+Z", first[3])
    assert first[6:] == ["", "    three"]
    summaries = [line.split(") ", 1)[1] for line in store.lines("log", "--oneline")]
    assert summaries == ["three", "2", "one"]


@pytest.mark.parametrize("words, revisions", [
    (["--agent", "ada"], [2, 1]), (["--agent", "ada,bob"], [3, 2, 1]), (["--agent", "eve"], []), (["--run", "run-2"], [3]),
    (["--tool", "notebook", "-n2"], [3, 2]), (["--action", "created"], [1]), (["--collection", "pages"], []),
    (["--space", "~ada"], [3, 2, 1]), (["--space", "shared"], []), (["--id", "to*"], [3, 2, 1]), (["--id", "to"], []),
    (["--since", "1h"], [3, 2, 1]), (["--until", "1h"], []), (["--until", "2026-01-01"], []), (["todo"], [3, 2, 1]),
    (["~ada/notebooks/todo"], [3, 2, 1]), (["notegate://~ada/notebook/todo"], [3, 2, 1]), (["todo*"], []),
    (["todo", "--space", "shared"], [])])
def test_which_changes_the_log_has(served, words, revisions):
    pages = served.objects("log", *words)
    assert [change["revision"] for page in pages for change in page["changes"]] == revisions


def test_stat_and_comparisons(store):
    assert [line for line in store.lines("log", "--stat") if "|" in line] == [
        " ~ada/notebooks/todo | 1 +", " ~ada/notebooks/todo | 2 +-", " ~ada/notebooks/todo | 3 +++"]
    shown = store.ok("log", "-p", "todo")
    assert shown.count("--- ~ada/notebooks/todo@") == 3 and "\n-two\n+2\n" in shown and "\n+three" in shown
    assert store.ok("log", "-p", "--oneline", "-n", "1").count("@@") == 2
    store.call("notebook", "ada", "run-3", mode="delete", name="todo")
    shown = store.ok("log", "-p", "todo", "-n", "2")
    assert "Tool:     notebook, deleted" in shown and "no comparison" not in shown and "+three" in shown


def test_more_changes_than_a_page(served):
    for _ in range(120):
        served.call("notebook", "eve", "long", mode="create", name="long", newStr="text")
    for words in (["log", "--oneline"], ["log", "--oneline", "long"]):
        done = served.run(*words)
        assert len(done.stdout.splitlines()) == 20 and done.returncode == 0
        assert done.stderr == "notegate: only the newest 20 are shown; -n N shows more\n"
    assert len(served.lines("log", "--oneline", "-n", "110", "long")) == 110
    assert len(served.lines("log", "--oneline", "-n", "1000", "long")) == 120
    assert [len(page["changes"]) for page in served.objects("log", "long", "-n", "110")] == [100, 10]


def test_show(store):
    assert store.ok("show", "~ada/notebooks/todo") == "one\n2\nthree\n"
    assert store.ok("show", "todo@1", "--as", "ada") == store.ok("show", "todo", "--at", "1", "--space", "~ada") == "one\ntwo\n"
    seq = store.objects("log")[0]["changes"][1]["seq"]
    assert store.ok("show", f"notegate://~ada/notebook/todo@#{seq}") == "one\n2\n"
    (answer,) = store.objects("show", "~ada/notebooks/todo@2")
    assert (answer["revision"], answer["content"], answer["agent"]) == (2, "one\n2\n", "ada")


def test_diff(store):
    name = "~ada/notebooks/todo"
    assert store.lines("diff", name)[:2] == [f"--- {name}@2", f"+++ {name}@3"]
    assert store.lines("diff", f"{name}@..2")[:2] == [f"--- {name}@1", f"+++ {name}@2"]
    assert store.lines("diff", f"{name}@1..2")[3:] == [" one", "-two", "+2"]
    assert store.lines("diff", f"{name}@1")[:2] == store.lines("diff", name, "--at", "1..")[:2] == [
        f"--- {name}@1", f"+++ {name}@3"]
    assert store.ok("diff", f"{name}@2..2") == ""
    (answer,) = store.objects("diff", f"{name}@1..2")
    assert (answer["from"], answer["to"], answer["added"], answer["removed"]) == (1, 2, 1, 1)


def test_diff_of_a_run(store):
    store.call("memory_log", "ada", "run-1", content="kept elsewhere")
    store.call("notebook", "bob", "run-2", mode="create", name="own", newStr="text\n")
    name = "~ada/notebooks/todo"
    shown = store.lines("diff", "--run", "run-1")
    assert shown == ["document shared/agent_memory/ada@0..1", "(no comparison: its content is not kept)", "",
                     f"document {name}@0..2", f"--- {name}@0", f"+++ {name}@2", "@@ -0,0 +1,2 @@", "+one", "+2"]
    assert [line for line in store.lines("diff", "--run", "run-2") if line.startswith("document ")] == [
        "document ~bob/notebooks/own@0..1", f"document {name}@2..3"]
    assert [line for line in store.lines("diff", "--agent", "bob", "todo") if line.startswith("document ")] == [f"document {name}@2..3"]
    assert store.lines("diff", "--run", "run-1,run-2", "--stat") == [
        " ~bob/notebooks/own | 1 +", " shared/agent_memory/ada | not kept", f" {name} | 3 +++"]
    assert store.lines("diff", name, "--stat") == [f" {name} | 1 +"]
    store.call("notebook", "ada", "run-3", mode="create", name="todo", newStr="new\n")
    assert "with 1 other change between" in store.lines("diff", "--agent", "ada", "--id", "todo")
    (answer,) = store.objects("diff", "--space", "~ada")
    assert [(row["id"], row["from"], row["to"]) for row in answer["documents"]] == [("todo", 0, 4)]
    assert store.ok("diff", "--agent", "eve") == ""
    done = store.run("diff", "--run", "run-11")
    assert done.returncode == 1 and 'The nearest is "run-1"' in done.stderr


def test_diff_of_many_documents(served):
    text = "".join(f"line {number} of a long text\n" for number in range(4000))
    for number in range(4):
        served.call("notebook", "ada", "many", mode="create", name=f"long{number}", newStr=text)
    shown = served.ok("diff", "--run", "many")
    assert shown.count("\ndocument ") == 3 and shown.count("\n+line ") == 8000
    assert shown.count("(no comparison: those before it are long already; compare this document alone)") == 2


def test_runs(store):
    rows = [re.fullmatch(r"(\S+)  (\S+)  (\d) changes? +(2\S+Z)  (2\S+Z)", line).groups() for line in store.lines("log", "--runs")]
    assert [row[:3] for row in rows] == [("run-2", "bob", "1"), ("run-1", "ada", "2")]
    assert rows[0][3] == rows[0][4] and rows[1][3] <= rows[1][4]
    assert [line.split()[0] for line in store.lines("log", "--runs", "--agent", "ada")] == ["run-1"]
    assert len(store.lines("log", "--runs", "-n", "1")) == 1
    (answer,) = store.objects("log", "--runs")
    assert [(run["run"], run["agents"], run["changes"]) for run in answer["runs"]] == [("run-2", ["bob"], 1), ("run-1", ["ada"], 2)]


def test_a_comparison_longer_than_an_answer(served):
    text = "".join(f"line {number} of a long text\n" for number in range(20000))
    served.call("notebook", "ada", "run-1", mode="create", name="long", newStr=text)
    shown = served.ok("diff", "long@..1", "--as", "ada")
    assert shown.count("\n+line ") == 20000
    assert served.ok("show", "long", "--as", "ada") == text
    assert len(served.lines("blame", "long", "--as", "ada")) == 20000


def test_blame(store):
    lines = store.lines("blame", "~ada/notebooks/todo")
    rows = [re.fullmatch(r"(\d) \((\w+) (\S+) (\S+) 2\S+Z (\d)\) (.*)", line).groups() for line in lines]
    assert rows == [("1", "ada", "run-1", "notebook", "1", "one"), ("2", "ada", "run-1", "notebook", "2", "2"),
                    ("3", "bob", "run-2", "notebook", "3", "three")]
    assert [line[-5:] for line in store.lines("blame", "~ada/notebooks/todo", "-L", "3,3")] == ["three"]
    assert len(store.lines("blame", "~ada/notebooks/todo@1", "-L2")) == 1
    store.call("notebook", "elizabeth", "a-longer-run", mode="write", name="todo", oldStr="one", newStr="1", space="~ada")
    lines = store.lines("blame", "~ada/notebooks/todo")
    assert lines[0].startswith("4 (elizabeth a-longer-run notebook 2") and lines[1].startswith("2 (ada       run-1        notebook 2")
    (answer,) = store.objects("blame", "~ada/notebooks/todo@3", "-L", ",2")
    assert [row["revision"] for row in answer["lines"]] == [1, 2]


def test_members_of_an_entry(store):
    made_entry = json.loads(store.call("notebook_create", "ada", "run-4", title="Old", content="text\n", collection="pages"))
    store.call("notebook_update", "ada", "run-4", notebook_id=made_entry["notebook_id"], title="New", collection="pages")
    name = f"shared/pages/{made_entry['notebook_id']}"
    assert store.lines("diff", name)[0].startswith("changed members: title")
    assert store.ok("show", f"notegate://shared/pages/{made_entry['notebook_id']}@1") == "text\n"


# ---- what is refused ----


@pytest.mark.parametrize("words, told", [
    (["show"], '"show" needs T'), (["show", "s//a"], "names no document"), (["show", "a@1", "--at", "x"], '--at is "x"'),
    (["show", "a", "--at", "1..2"], '--at is "1..2"'), (["diff", "a", "--at", ".."], '--at is ".."'),
    (["show", "s/pages/a", "--space", "s"], "names the space already"), (["log", "a", "--id", "b"], "names the document already"),
    (["show", "/a", "--space", "s"], "names the space already"), (["log", "./a", "--id", "b"], "names the document already"),
    (["log", "--since", "7"], '--since is "7"'), (["log", "--until", "soon"], '--until is "soon"'),
    (["log", "-n", "0"], '--number is "0"'), (["log", "--json", "-p"], "--json has all members"),
    (["log", "--runs", "--tool", "x"], "--runs lists runs of"), (["log", "--runs", "todo"], "--runs lists runs of"),
    (["log", "--runs", "--stat"], "--runs has a line for each run"), (["diff"], '"diff" needs a document T, or one of --run'),
    (["diff", "--tool", "x"], '"diff" needs a document T, or one of --run'), (["diff", "a@1", "--run", "x"], 'leave out "@1"'),
    (["diff", "a", "--run", "x", "--at", "1"], "--at is of one document"), (["diff", "--run", "x", "--since", "7"], '--since is "7"'),
    (["diff", "--run", "x", "--json", "--stat"], "--json has all members"), (["diff", "s/pages/a", "--run", "x", "--space", "s"], "names the document already"),
    (["log", "--color", "blue"], '--color is "blue"'), (["blame", "a", "-L", "3,1"], '--lines is "3,1"'),
    (["show", "a", "-p"], 'unknown option "-p"'), (["show", "a", "--oneline"], '"show" does not take --oneline'),
    (["show", "a", "--as", "a b"], '--as is "a b"'), (["show", "notegate://shared/notebook/%zz"], "names no document")])
def test_wrong_command_lines(tmp_path, words, told):
    done = notegate(*words, "--data-dir", tmp_path, env=made())
    assert done.returncode == 2 and told in done.stderr and done.stdout == "", done


def test_what_is_not_there(store, tmp_path):
    for words in (["show", "none"], ["diff", "none@1"], ["blame", "none"], ["show", "~ada/notebooks/todo@9"],
                  ["show", "~ada/none/todo"], ["blame", "~ada/notebooks/todo", "-L", "9,9"], ["show", "todo@1h"]):
        done = store.run(*words)
        assert (done.returncode, done.stdout) == (1, "") and done.stderr.startswith("notegate: "), done
    for words, told in [
            (["show", "none"], 'there is no document "none" in notebooks of the space ~local; SPACE/COLLECTION/ID, or `space`, names one of another'),
            (["diff", "shared/notebooks/none"], 'there is no document "none" in notebooks of the space shared'),
            (["show", "~ada/notebooks/todo@9"], "there is no revision 9 (`at`): the newest one is 3"),
            (["diff", "~ada/notebooks/todo@9.."], "there is no revision 9 (`from`): the newest one is 3"),
            (["blame", "~ada/notebooks/todo", "-L", "9,9"], "there is no line 9 (`start_line`): the text has 4 lines")]:
        assert store.run(*words).stderr.startswith(f"notegate: {told}"), words
    for name, tail in (("todo@yesterday", "yesterday"), ("./a@2026-13-45", "2026-13-45"), ("~ada/notebooks/todo@", "")):
        for command in ("show", "diff", "blame"):
            told = store.run(command, name).stderr.splitlines()[-1]
            assert told.startswith(f'notegate: "@{tail}" is part of the name; a point is a revision such as 7, or #SEQ'), told
    assert "is part of the name" not in store.run("show", "./a@b/c").stderr
    done = store.run("show", "none", "--json")
    assert done.returncode == 1 and json.loads(done.stdout)["code"] == "NOT_FOUND"
    done = notegate("log", "--data-dir", tmp_path / "nothing", env=made())
    assert done.returncode == 1 and "nothing does not exist" in done.stderr


def test_nothing_fits(store):
    never = 'no change fits: there never was a document "{}" in {}'
    for words, told in [
            (["--agent", "eve"], "no change fits"), (["--runs", "--agent", "eve"], "no run fits"), (["todo", "--agent", "eve"], "no change fits"),
            (["~ada/notebooks/todo", "--until", "1h"], "no change fits"), (["none"], never.format("none", "notebooks")),
            (["none", "--agent", "ada"], never.format("none", "notebooks")), (["todo", "--space", "shared"], never.format("todo", "notebooks")),
            (["shared/notebooks/todo"], never.format("todo", "notebooks of the space shared"))]:
        done = store.run("log", *words)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", f"notegate: {told}\n"), words
    (answer,) = store.objects("log", "none")
    assert answer["changes"] == []
    assert "only the newest" not in store.ok("log", "-n", "1") + store.ok("log")


@pytest.mark.parametrize("option", ["run", "agent", "tool", "action", "collection", "space", "id", "since", "until"])
def test_an_empty_option_selects_nothing(tmp_path, option):
    """A variable that is not set must not select everything."""
    for words in (["log"], ["diff", "--run", "x"], ["undo", "--run", "x", "--yes"], ["audit", "list"], ["audit", "export"]):
        done = notegate(*words, f"--{option}=", "--data-dir", tmp_path, env=made())
        told = f"--{option} is empty: give it a value, or leave it out\n", f'--{option} is "", it must be 1 to 64 of'
        assert done.returncode == 2 and done.stderr.startswith(tuple(f"notegate: {text}" for text in told)) and done.stdout == "", done


def test_an_empty_part_of_a_list(tmp_path):
    for value in (",", "a,", ",a", "a,,b"):
        done = notegate("log", "--agent", value, "--data-dir", tmp_path, env=made())
        assert done.returncode == 2 and f'--agent is "{value}", which has an empty part at a comma' in done.stderr, done
    for words in (["audit", "list", "--outcome", ""], ["show", "a", "--space", ""]):
        done = notegate(*words, "--data-dir", tmp_path, env=made())
        assert done.returncode == 2 and f"{words[-2]} is empty" in done.stderr, done


# ---- names and texts of others ----


def test_hostile_ids_and_texts(store):
    store.call("notebook", "ada", "run-5", mode="create", name=HOSTILE, newStr="x\x1b[2J\x07\ty\n")
    log = store.ok("log", "-n", "1", "-p", "--stat")
    assert "\x1b" not in log.split("@@")[0] and r"~ada/notebooks/a\u001b[31mb\u000achange 99\u0009c@1" in log
    assert log.count("\nchange ") == 0 and "\x1b[2J" in log  # contents for programs are as they are
    assert len(store.lines("log", "-n", "1", "--oneline")) == 1
    uri = "notegate://~ada/notebook/a%1B%5B31mb%0Achange%2099%09c"
    assert store.ok("show", uri) == "x\x1b[2J\x07\ty\n"
    assert store.lines("log", "--oneline", uri) == store.lines("log", "--oneline", "-n1")
    for words in (["show", uri], ["diff", uri], ["blame", uri], ["log", "-p", uri], ["diff", "--run", "run-5"]):
        shown = COLOURS.sub("", store.ok(*words, "--color", "always").replace("x\x1b[2J", "RAW"))
        assert "\x1b" not in shown and "\x07" not in shown and "RAW" not in shown and "\t" in shown, (words, shown)


def test_an_id_with_an_at_sign(store):
    store.call("notebook", "ada", "run-6", mode="create", name="mail@7", newStr="text")
    assert store.run("show", "mail@7", "--as", "ada").returncode == 1
    assert store.ok("show", "mail@7@1", "--as", "ada") == store.ok("show", "mail@7", "--at", "now", "--as", "ada") == "text"
    assert store.ok("show", "notegate://~ada/notebook/mail%407") == "text"
    assert len(store.lines("log", "--oneline", "mail@7")) == 1


# ---- on a terminal ----


def on_a_terminal(store, *words, **more):
    """Exit code, what the terminal shows, what comes on stderr."""
    ours, theirs = pty.openpty()
    variables = made(TERM="xterm", **more)
    for name in {"PAGER", "NO_COLOR", "LESS"} - set(more):
        variables.pop(name, None)
    with subprocess.Popen([BINARY, *words, "--data-dir", store.data], stdin=subprocess.DEVNULL, stdout=theirs,
                          stderr=subprocess.PIPE, env=variables) as running:
        os.close(theirs)
        seen = b""
        with contextlib.suppress(OSError):  # all that had it open have ended
            while more := os.read(ours, 65536):
                seen += more
        code, errors = running.wait(SECONDS), running.stderr.read().decode()
    os.close(ours)
    return code, seen.decode().replace("\r\n", "\n"), errors


def test_colours(served):
    code, shown, errors = on_a_terminal(served, "log", "--no-pager")
    assert (code, errors) == (0, "") and re.match(r"\x1b\[33mchange \d+\x1b\[m\n", shown)
    _, shown, _ = on_a_terminal(served, "diff", "--run", "run-2", "--no-pager")
    assert shown.startswith("\x1b[33mdocument ~ada/notebooks/todo@2..3\x1b[m\n\x1b[1m--- ") and "\x1b[32m+three\x1b[m\n" in shown
    _, shown, _ = on_a_terminal(served, "log", "--runs", "--no-pager")
    assert shown.startswith("\x1b[33mrun-2\x1b[m  bob")
    _, shown, _ = on_a_terminal(served, "diff", "~ada/notebooks/todo@1..2", "--no-pager")
    assert "\x1b[31m-two\x1b[m\n\x1b[32m+2\x1b[m\n" in shown and "\x1b[36m@@ " in shown
    for words, variables in ((["--color", "never"], {}), ([], {"NO_COLOR": "1"})):
        _, shown, _ = on_a_terminal(served, "log", "--no-pager", *words, **variables)
        assert "\x1b" not in shown and shown.startswith("change ")
    _, shown, _ = on_a_terminal(served, "log", "--no-pager", "--color", "always", NO_COLOR="1")
    assert "\x1b[33m" in shown
    assert "\x1b[33m" in served.ok("log", "--color", "always") and "\x1b" not in served.ok("log", "--color", "auto")
    code, shown, _ = on_a_terminal(served, "show", "~ada/notebooks/todo", "--no-pager")
    assert code == 0 and COLOURS.sub("", shown).startswith("document ~ada/notebooks/todo@3\nAgent:    bob\n")
    assert shown.endswith("\n\none\n2\nthree\n")


def test_the_pager(served, tmp_path):
    pager = tmp_path / "pager"
    pager.write_text('#!/bin/sh\necho "PAGED $LESS"\nexec cat\n')
    pager.chmod(0o755)
    other = {"PAGER": "false", "NOTEGATE_PAGER": str(pager)}
    for words in (["log"], ["show", "~ada/notebooks/todo"], ["diff", "~ada/notebooks/todo"], ["blame", "~ada/notebooks/todo"]):
        for variables in ({"PAGER": str(pager)}, other):
            code, shown, errors = on_a_terminal(served, *words, **variables)
            assert (code, errors) == (0, "") and shown.startswith("PAGED FRX\n") and "three" in shown, (words, shown)
    for variables in ({"PAGER": ""}, {"NOTEGATE_PAGER": "cat", "PAGER": "false"}):
        code, shown, errors = on_a_terminal(served, "log", **variables)
        assert (code, errors) == (0, "") and "PAGED" not in shown and "three" in shown
    assert on_a_terminal(served, "log", "--no-pager", **other)[1].startswith("\x1b[33mchange ")
    assert served.ok("log", **other).startswith("change ")
    code, shown, errors = on_a_terminal(served, "show", "none", **other)
    assert code == 1 and shown == "" and "notegate: " in errors
    code, shown, errors = on_a_terminal(served, "log", PAGER="/does/not/exist")
    assert code == 1 and "--no-pager" in errors


def test_a_pager_that_ends_early(served):
    """Pages are fetched as they are read: the log of a terminal has no end of its own."""
    for _ in range(130):
        served.call("notebook", "eve", "long", mode="create", name="long", newStr="text")
    code, shown, errors = on_a_terminal(served, "log", "--oneline", PAGER="cat -")
    assert (code, errors) == (0, "") and len(shown.splitlines()) == 133
    code, shown, errors = on_a_terminal(served, "log", "-p", PAGER="head -1")
    assert (code, errors) == (0, "") and len(shown.splitlines()) == 1
    code, shown, errors = on_a_terminal(served, "log", "-p", PAGER="true")
    assert (code, shown, errors) == (0, "", "")


def test_a_reader_that_leaves(store):
    """As other commands: it is told nothing, and the exit code is 1."""
    for words in (["log"], ["show", "~ada/notebooks/todo"], ["diff", "~ada/notebooks/todo"], ["blame", "~ada/notebooks/todo"]):
        read, write = os.pipe()
        os.close(read)
        done = subprocess.run([BINARY, *words, "--data-dir", store.data], stdout=write, stderr=subprocess.PIPE, text=True,
                              timeout=SECONDS, env=made(), check=False)
        os.close(write)
        assert (done.returncode, done.stderr) == (1, ""), words
        with open("/dev/full", "w", encoding="utf-8") as full:
            done = subprocess.run([BINARY, *words, "--data-dir", store.data], stdout=full, stderr=subprocess.PIPE, text=True,
                                  timeout=SECONDS, env=made(), check=False)
        assert done.returncode == 1 and "cannot write to the standard output" in done.stderr, words
