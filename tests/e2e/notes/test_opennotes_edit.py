# SPDX-License-Identifier: MIT
"""Small edits of notes and their undo, over REST and both eras of MCP: a task that is ticked, a line below a heading, the last
change taken back."""

import json

import pytest
from mcp_support import HANDSHAKE, MODERN, Session, call, modern

DAY = "2026-03-04"
PLAN = "---\nstatus: open\n---\n# Plan\n\n## Tasks\n\n- [ ] one\n- [ ] two\n\n## Notes\n\nText.\n"


def of_mcp(answer):
    """(is it an error, what it tells) of tools/call."""
    assert answer.status_code == 200, answer.text
    text = answer.text
    if answer.headers["content-type"].startswith("text/event-stream"):
        text = [line for line in text.splitlines() if line.startswith("data:")][-1].removeprefix("data:")
    result = json.loads(text)["result"]
    told = json.loads(result["content"][0]["text"]) if not result.get("isError") else result["content"][0]["text"]
    assert result.get("isError") or result["structuredContent"] == told
    return result.get("isError", False), told


@pytest.fixture
def gateway(start, tmp_path):
    folder = tmp_path / "vault"
    folder.mkdir()
    (folder / "plan.md").write_text(PLAN)
    running = start(sets=[f"opennotes.notebooks={folder}", f"roots={folder}"])
    running.folder = folder
    return running


@pytest.fixture(params=["REST", HANDSHAKE, MODERN])
def ask(request, gateway):
    """A function that calls a tool; (is it an error, what it tells)."""
    session = Session(gateway) if request.param == HANDSHAKE else None

    def rest(tool, **arguments):
        answer = gateway.call(tool, arguments)
        body = answer.json()
        refused = answer.status_code != 200
        return refused, f"{body['message']} {body.get('hint', '')}" if refused else body["result"]

    def handshake(tool, **arguments):
        return of_mcp(session.post(call(tool, arguments)))

    def stateless(tool, **arguments):
        message, headers = modern({"name": tool, "arguments": arguments})
        return of_mcp(gateway.client.post("/mcp", json=message, headers=headers))

    yield {"REST": rest, HANDSHAKE: handshake, MODERN: stateless}[request.param]
    if session:
        session.close()


def works(ask, tool, **arguments):
    refused, told = ask(tool, **arguments)
    assert not refused, told
    return told


def test_a_task_is_ticked_and_the_tick_undone(gateway, ask):
    note = gateway.folder / "plan.md"
    done = works(ask, "opennotes_edit", path="plan.md", operation="str_replace", oldStr="- [ ] one", newStr="- [x] one")
    assert note.read_text() == PLAN.replace("[ ] one", "[x] one")
    assert done == {"path": "plan.md", "revision": done["revision"], "added": 1, "removed": 1}
    back = works(ask, "opennotes_edit", path="plan.md", operation="undo", expectedRevision=done["revision"])
    assert note.read_text() == PLAN
    assert back == {"path": "plan.md", "revision": back["revision"], "added": 1, "removed": 1, "undone": "edit"}
    read = works(ask, "opennotes_get", path="plan.md")
    assert read["note"]["revision"] == back["revision"]
    refused, told = ask("opennotes_edit", path="plan.md", operation="undo")
    assert refused and "No edit history" in told


def test_a_text_that_is_not_there_once_is_refused(gateway, ask):
    refused, told = ask("opennotes_edit", path="plan.md", operation="str_replace", oldStr="- [ ]", newStr="- [x]")
    assert refused and "occurs 2 times, in lines 8, 9" in told
    refused, told = ask("opennotes_edit", path="plan.md", operation="str_replace", oldStr="-\u00a0[ ] one", newStr="x")
    assert refused and "does not occur" in told and "Line 8 has a space (U+0020) where oldStr has a no-break space (U+00A0)" in told
    assert (gateway.folder / "plan.md").read_text() == PLAN


def test_a_line_below_a_heading(gateway, ask):
    done = works(ask, "opennotes_edit", path="plan.md", operation="append", section="Tasks", content="- [ ] three")
    assert (done["added"], done["removed"]) == (1, 0)
    works(ask, "opennotes_edit", path="plan.md", operation="prepend", section="Notes", content="First.")
    assert (gateway.folder / "plan.md").read_text() == PLAN.replace("two\n", "two\n- [ ] three\n").replace(
        "## Notes\n", "## Notes\nFirst.\n")
    refused, told = ask("opennotes_edit", path="plan.md", operation="append", section="Taks", content="x")
    assert refused and "Section not found: Taks" in told and "'Tasks'" in told


def test_a_task_in_the_note_of_a_day(gateway, ask):
    note = gateway.folder / "daily" / f"{DAY}.md"
    made = works(ask, "opennotes_daily", date=DAY, section="Tasks", content="- [ ] one")
    assert made["created"] is True
    works(ask, "opennotes_daily", date=DAY, content="The end.")
    more = works(ask, "opennotes_daily", date=DAY, section="Tasks", content="- [ ] two")
    assert more["created"] is False
    assert note.read_text().endswith("\n## Tasks\n- [ ] one\nThe end.\n- [ ] two\n")
    works(ask, "opennotes_daily", date=DAY, section="Log", content="- noon")
    assert note.read_text().endswith("- [ ] two\n\n## Log\n- noon\n")
    refused, told = ask("opennotes_daily", date=DAY, section="Log")
    assert refused and "`content`" in told


def test_the_undo_of_every_tool(gateway, ask):
    made = works(ask, "opennotes_create", title="New", content="text")
    path = made["created"]["path"]
    lines = (gateway.folder / path).read_text().count("\n")
    file = str(gateway.folder / path)
    replaced = gateway.call("fileEditor", {"command": "str_replace", "path": file, "old_str": "text", "new_str": "Text"})
    assert replaced.status_code == 200, replaced.text
    moved = str(gateway.folder / "sub" / "moved.md")
    assert gateway.call("fileEditor", {"command": "move", "path": file, "destination": moved}).status_code == 200
    back = works(ask, "opennotes_edit", path="sub/moved.md", operation="undo")
    assert (back["path"], back["undone"], back["added"], back["removed"]) == (path, "move", 0, 0)
    assert works(ask, "opennotes_edit", path=path, operation="undo")["undone"] == "edit"
    gone = works(ask, "opennotes_edit", path=path, operation="undo")
    assert gone == {"path": path, "added": 0, "removed": lines, "undone": "creation", "deleted": True}
    assert not (gateway.folder / path).exists()
    refused, told = ask("opennotes_get", path=path)
    assert refused and "Note not found" in told


def test_the_change_of_another_is_not_undone(gateway, ask):
    works(ask, "opennotes_edit", path="plan.md", operation="append", content="Mine.")
    answer = gateway.call("opennotes_edit", {"path": "plan.md", "operation": "append", "content": "Hers."},
                          {"X-Notegate-Agent": "ada"})
    assert answer.status_code == 200, answer.text
    refused, told = ask("opennotes_edit", path="plan.md", operation="undo")
    assert refused and "is not yours: the agent ada made it at 20" in told
    answer = gateway.call("opennotes_edit", {"path": "plan.md", "operation": "undo"}, {"X-Notegate-Agent": "bob"})
    assert (answer.status_code, answer.json()["code"]) == (409, "CONFLICT")
    (gateway.folder / "plan.md").write_text("From outside.\n")
    refused, told = ask("opennotes_edit", path="plan.md", operation="undo")
    assert refused and "Another program changed the file" in told
    assert (gateway.folder / "plan.md").read_text() == "From outside.\n"


def test_an_undo_is_repeated_once(gateway):
    """The answer of an idempotency key: the second call takes nothing more back."""
    for content in ("One.", "Two."):
        gateway.call("opennotes_edit", {"path": "plan.md", "operation": "append", "content": content})
    answers = [gateway.call("opennotes_edit", {"path": "plan.md", "operation": "undo"}, {"Idempotency-Key": "k"}) for _ in range(2)]
    assert answers[0].status_code == 200 and answers[0].json() == answers[1].json()
    assert (gateway.folder / "plan.md").read_text() == PLAN + "One.\n"


def test_subscribers_of_a_note_hear_of_an_undo(gateway):
    session = Session(gateway)
    listed = session.post({"jsonrpc": "2.0", "id": 1, "method": "resources/list"}).json()["result"]["resources"]
    uri = next(item["uri"] for item in listed if "/note/" in item["uri"])
    gateway.call("opennotes_edit", {"path": "plan.md", "operation": "append", "content": "x"})
    assert session.post({"jsonrpc": "2.0", "id": 2, "method": "resources/subscribe", "params": {"uri": uri}}).json()["result"] == {}
    events = session.get()
    gateway.call("opennotes_edit", {"path": "plan.md", "operation": "undo"})
    told = events.message()
    while told["method"] != "notifications/resources/updated":
        told = events.message()
    assert told["params"]["uri"] == uri
    session.close()
