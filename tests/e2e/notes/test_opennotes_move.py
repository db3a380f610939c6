# SPDX-License-Identifier: MIT
"""Notes that are renamed, moved and deleted with their links, over REST and both eras of MCP."""

import json

import pytest
from mcp_support import HANDSHAKE, MODERN, Session, call, modern

PLAN = "---\nstatus: open\n---\n# Plan\n\nSee [Ada](people/ada.md).\n"
ADA = "---\nup: \"[[plan]]\"\n---\n[[plan#Plan|the plan]], [again](../plan.md#plan), `[[plan]]`\n"


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
    (folder / "people").mkdir()
    (folder / "plan.md").write_text(PLAN)
    (folder / "people" / "ada.md").write_text(ADA)
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


def test_a_note_is_renamed_with_its_links_in_one_call(gateway, ask):
    folder = gateway.folder
    moved = works(ask, "opennotes_move", path="plan.md", to="done/Old plan.md")
    assert moved == {"path": "done/Old plan.md", "links": 4, "notes": ["people/ada.md"], "revision": moved["revision"]}
    assert not (folder / "plan.md").exists()
    assert (folder / "done" / "Old plan.md").read_text() == PLAN.replace("people/ada.md", "../people/ada.md")
    assert (folder / "people" / "ada.md").read_text() == (
        '---\nup: "[[Old plan]]"\n---\n[[Old plan#Plan|the plan]], [again](../done/Old%20plan.md#plan), `[[plan]]`\n')
    assert works(ask, "opennotes_get", path="done/Old plan.md")["note"]["revision"] == moved["revision"]
    assert len(works(ask, "opennotes_links", path="done/Old plan.md", kind="incoming")["incoming"]) == 3
    back = works(ask, "opennotes_edit", path="done/Old plan.md", operation="undo")
    assert back["path"] == "plan.md" and back["undone"] == "move"
    assert (folder / "plan.md").read_text() == PLAN and (folder / "people" / "ada.md").read_text() == ADA
    assert works(ask, "opennotes_get", path="plan.md")["note"]["revision"] == back["revision"]


def test_a_folder_moves_with_all_its_files(gateway, ask):
    (gateway.folder / "people" / "ada.png").write_bytes(b"picture")
    moved = works(ask, "opennotes_move", path="people", to="team/all")
    assert moved == {"path": "team/all", "links": 2, "notes": ["plan.md"]}
    assert (gateway.folder / "team" / "all" / "ada.png").exists() and not (gateway.folder / "people").exists()
    assert "[Ada](team/all/ada.md)" in (gateway.folder / "plan.md").read_text()
    assert "[again](../../plan.md#plan)" in (gateway.folder / "team" / "all" / "ada.md").read_text()
    refused, told = ask("opennotes_move", path="plan.md", to="team/all/ada.md")
    assert refused and "already" in told


def test_a_deleted_note_comes_back(gateway, ask):
    gone = works(ask, "opennotes_delete", path="plan.md")
    assert gone == {"trash": ".trash/plan.md", "broken_links": 3}
    assert [note["path"] for note in works(ask, "opennotes_list")["notes"]] == ["people/ada.md"]
    assert works(ask, "opennotes_search", query="plan", limit=50)["pagination"]["total"] == 1
    back = works(ask, "opennotes_move", path=gone["trash"], to="plan.md")
    assert back == {"path": "plan.md", "links": 0, "notes": [], "revision": back["revision"]}
    assert (gateway.folder / "people" / "ada.md").read_text() == ADA
    assert len(works(ask, "opennotes_links", path="plan.md", kind="incoming")["incoming"]) == 3
    works(ask, "opennotes_delete", path="plan.md")
    undone = works(ask, "opennotes_edit", path=".trash/plan.md", operation="undo")
    assert undone["path"] == "plan.md" and (gateway.folder / "plan.md").read_text() == PLAN
