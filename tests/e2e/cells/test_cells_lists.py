# SPDX-License-Identifier: MIT
"""Listed tools of notebooks by time and caller, and attached notebooks."""

import asyncio
import json
import threading

import pytest
from cells_tools_support import (  # noqa: F401 (fixtures among them)
    Handshake, MODES, SECONDS, SETS, code, gateway, modern, ok, put, refused, rest_tools, who,
)
from conftest import Gateway, eventually
from mcp import Client

READ = {"getNotebookCells", "getCellOutputs"}
LONG_KNOWN = READ | {"runNotebookCells", "addNotebookCell", "updateNotebookCell"}
CHANGE = {"deleteNotebookCells", "moveNotebookCell", "clearCellOutputs", "interruptKernel", "restartKernel"}
ALWAYS = {"attachNotebook", "listKernels", "listNotebooks", "getNotebookContext"}
ATTACHED = {"detachNotebook", "selectNotebookCells", "getNotebookRun"}


# ---- lists ----


def rest_listed(gateway, headers):
    return {tool["name"] for tool in rest_tools(gateway, headers)}


class Rest:
    """Lists and calls without a session."""

    def __init__(self, gateway, headers):
        self.gateway, self.headers = gateway, headers

    def listed(self):
        return rest_listed(self.gateway, self.headers)

    def call(self, tool, arguments):
        """The error's code, or None, and the text."""
        answer = self.gateway.call(tool, arguments, self.headers).json()
        return answer.get("code"), answer.get("message") or answer["result"]


class Session(Handshake):
    def call(self, tool, arguments):
        result = self.post("tools/call", {"name": tool, "arguments": arguments}).json()["result"]
        code = result["_meta"]["notegate/error"]["code"] if result.get("isError") else None
        return code, result["content"][0]["text"]


def expected(attached, mode):
    """The tools that clients have long known, and the further ones."""
    agent = mode == "agent"
    listed = ALWAYS | ({"createNotebook"} if agent else set())
    if attached:
        listed |= READ | ATTACHED | ((LONG_KNOWN | CHANGE) if agent else set())
    return listed


# Attached, which of them is active, and whether notebook mode is on.
SCENARIOS = {
    "1-3 attached and active": (["a.ipynb"], "a.ipynb", True),
    "4 attached, another file active": (["a.ipynb"], None, False),
    "5 not attached": ([], None, False),
    "6-7 several, one active": (["a.ipynb", "b.ipynb", "c.ipynb"], "b.ipynb", True),
    "8 several, none active": (["a.ipynb", "b.ipynb"], None, False),
}


@pytest.mark.parametrize("transport", [Rest, Session])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_the_scenarios(gateway, scenario, mode, transport):
    attached, active, on = SCENARIOS[scenario]
    caller = transport(gateway, who(f"s{scenario[0]}-{mode}-{transport.__name__}", mode))
    for name in attached:
        put(gateway, name, [code("c", "1")])
        assert caller.call("attachNotebook", {"notebook": name, "active": name == active})[0] is None
    found = caller.listed()
    assert found == expected(on, mode)
    assert (found & LONG_KNOWN) == (set() if not on else LONG_KNOWN if mode == "agent" else READ)
    calls = {"getNotebookCells": {}, "getCellOutputs": {"cellId": "c"},
             "addNotebookCell": {"type": "code", "index": -1, "content": ""},
             "updateNotebookCell": {"cellId": "c", "content": "2"}, "runNotebookCells": {"cellIds": ["none"]}}
    for tool, arguments in calls.items():
        failed, text = caller.call(tool, arguments)
        if tool not in READ and mode != "agent":
            assert failed == "MODE_FORBIDDEN" and "Agent mode" in text
        elif not on:
            assert failed == "NO_ACTIVE_NOTEBOOK" and text.startswith("No active notebook found")
        elif tool not in READ and len(attached) > 1 and transport is Rest:
            assert failed == "NOTEBOOK_AMBIGUOUS", text
        else:
            assert failed == ("CELL_NOT_FOUND" if tool == "runNotebookCells" else None), text


@pytest.mark.parametrize("mode", MODES)
def test_without_sessions_lists_vary_with_rights_only(gateway, mode):
    headers = who(f"modern-{mode}", mode)
    put(gateway, "a.ipynb", [code("c", "1")])

    def listed():
        return {tool["name"] for tool in modern(gateway, "tools/list", headers)["result"]["tools"]}

    assert listed() == expected(True, mode)
    answer = modern(gateway, "tools/call", headers, name="getNotebookCells", arguments={})["result"]
    assert answer["isError"] and answer["content"][0]["text"].startswith("No active notebook found")
    assert answer["_meta"]["notegate/error"]["code"] == "NO_ACTIVE_NOTEBOOK"
    modern(gateway, "tools/call", headers, name="attachNotebook", arguments={"notebook": "a.ipynb"})
    assert listed() == expected(True, mode)
    answer = modern(gateway, "tools/call", headers, name="getNotebookCells", arguments={})["result"]
    assert "ID: c" in answer["content"][0]["text"]


def test_modes_are_checked_at_the_call(gateway):
    put(gateway, "m.ipynb", [code("c", "1")])
    before = (gateway.data_dir / "files" / "m.ipynb").read_bytes()
    calls = {
        "runNotebookCells": {"cellIds": ["c"]}, "addNotebookCell": {"type": "code", "index": 0, "content": ""},
        "updateNotebookCell": {"cellId": "c", "content": ""}, "deleteNotebookCells": {"cellIds": ["c"]},
        "moveNotebookCell": {"cellId": "c", "index": 0}, "clearCellOutputs": {}, "interruptKernel": {}, "restartKernel": {},
    }
    for mode in ("ask", "edit"):
        for tool, arguments in calls.items():
            for name in (tool, tool[0].upper() + tool[1:]):
                error = refused(gateway, name, {"notebook": "m.ipynb", **arguments}, "MODE_FORBIDDEN", who("m", mode))
                assert "Agent mode" in error["message"]
        refused(gateway, "createNotebook", {"notebook": "new.ipynb"}, "MODE_FORBIDDEN", who("m", mode))
        # Reading works without attaching, and so does saying what is selected once it is attached.
        assert "ID: c" in ok(gateway, "GetNotebookCells", {"notebook": "m.ipynb"}, who("m", mode))
        ok(gateway, "attachNotebook", {"notebook": "m.ipynb"}, who("m", mode))
        ok(gateway, "selectNotebookCells", {"cellIds": ["c"]}, who("m", mode))
        ok(gateway, "detachNotebook", {}, who("m", mode))
    assert (gateway.data_dir / "files" / "m.ipynb").read_bytes() == before
    assert not (gateway.data_dir / "files" / "new.ipynb").exists()
    refused(gateway, "getNotebookCells", {"notebook": "m.ipynb"}, "INVALID_INPUT", who("m", "Agent!"))


def test_lists_say_that_they_changed(gateway):
    put(gateway, "a.ipynb", [code("c", "1")])
    heard = asyncio.Queue()

    async def hear(message):
        await heard.put(getattr(message, "method", None))

    async def changed():
        while await asyncio.wait_for(heard.get(), SECONDS) != "notifications/tools/list_changed":
            pass

    async def use():
        async with Client(gateway.url + "/mcp", mode="legacy", read_timeout_seconds=SECONDS, message_handler=hear) as client:
            # Its stream may open after the first call: what is changed again is heard at last.
            for _ in range(2):
                await client.call_tool("attachNotebook", {"notebook": "a.ipynb"})
                await changed()
                assert "getNotebookCells" in {tool.name for tool in (await client.list_tools()).tools}
                await client.call_tool("detachNotebook", {})
                await changed()
                assert "getNotebookCells" not in {tool.name for tool in (await client.list_tools()).tools}

    asyncio.run(use())


# ---- attached notebooks ----


def test_attached_is_each_agents_and_each_spaces_own(gateway):
    one, two = put(gateway, "one.ipynb", [code("one", "1")]), put(gateway, "two.ipynb", [code("two", "2")])
    assert ok(gateway, "attachNotebook", {"notebook": "one.ipynb"}, who("anna")) == f"Attached {one} with 1 cell(s); it is active"
    ok(gateway, "attachNotebook", {"notebook": str(two)}, who("ben"))
    ok(gateway, "attachNotebook", {"notebook": "two.ipynb"}, who("anna", **{"X-Notegate-Space": "lab"}))
    assert "ID: one" in ok(gateway, "getNotebookCells", {}, who("anna"))
    assert "ID: two" in ok(gateway, "getNotebookCells", {}, who("ben"))
    assert "ID: two" in ok(gateway, "getNotebookCells", {}, who("anna", **{"X-Notegate-Space": "lab"}))
    refused(gateway, "getNotebookCells", {}, "NO_ACTIVE_NOTEBOOK", who("carl"))
    # One that is attached beside the active one; the last that is made active is.
    assert ok(gateway, "attachNotebook", {"notebook": "two.ipynb", "active": False}, who("anna")) == f"Attached {two} with 1 cell(s)"
    assert "ID: one" in ok(gateway, "getNotebookCells", {}, who("anna"))
    ok(gateway, "attachNotebook", {"notebook": "two.ipynb"}, who("anna"))
    assert "ID: two" in ok(gateway, "getNotebookCells", {}, who("anna"))
    # After the active one is detached none is, though another is attached.
    ok(gateway, "detachNotebook", {}, who("anna"))
    refused(gateway, "getNotebookCells", {}, "NO_ACTIVE_NOTEBOOK", who("anna"))
    refused(gateway, "detachNotebook", {}, "NO_ACTIVE_NOTEBOOK", who("anna"))
    assert ok(gateway, "detachNotebook", {"notebook": "one.ipynb"}, who("anna")) == f"Detached {one}"
    refused(gateway, "detachNotebook", {"notebook": "one.ipynb"}, "NO_ACTIVE_NOTEBOOK", who("anna"))
    refused(gateway, "attachNotebook", {"notebook": "/etc/hostname"}, "PATH_OUTSIDE_ROOTS", who("anna"))
    refused(gateway, "attachNotebook", {"notebook": ""}, "INVALID_INPUT", who("anna"))


def test_one_file_under_several_names_is_one(gateway):
    path = put(gateway, "below/real.ipynb", [code("c", "1")])
    (path.parent.parent / "other.ipynb").symlink_to("below/real.ipynb")
    for name in ("below/real.ipynb", "other.ipynb", "below/../other.ipynb", str(path)):
        ok(gateway, "attachNotebook", {"notebook": name}, who("links"))
    ok(gateway, "selectNotebookCells", {"cellIds": ["c"], "notebook": "other.ipynb"}, who("links"))
    assert "Selection: selected" in ok(gateway, "getNotebookCells", {"notebook": "below/real.ipynb"}, who("links"))
    ok(gateway, "detachNotebook", {"notebook": "other.ipynb"}, who("links"))
    refused(gateway, "getNotebookCells", {}, "NO_ACTIVE_NOTEBOOK", who("links"))
    assert rest_listed(gateway, who("links")) == expected(False, "agent")


def test_attached_survives_a_restart_and_files_that_went(tmp_path):
    gateway = Gateway(tmp_path / "data", SETS)
    try:
        path = put(gateway, "a.ipynb", [code("c", "1"), code("d", "2")])
        gone = put(gateway, "gone.ipynb", [code("c", "1")])
        for agent in ("anna", "ben"):
            ok(gateway, "attachNotebook", {"notebook": "a.ipynb"}, who(agent))
        ok(gateway, "selectNotebookCells", {"cellIds": ["index:0"], "active": "d"}, who("anna"))
        ok(gateway, "attachNotebook", {"notebook": "gone.ipynb", "active": False}, who("anna"))
        ok(gateway, "detachNotebook", {}, who("ben"))
    finally:
        assert gateway.stop() == 0
    gone.unlink()
    gateway = Gateway(tmp_path / "data", SETS)
    try:
        # Attached, and active for nobody.
        for agent in ("anna", "ben"):
            refused(gateway, "getNotebookCells", {}, "NO_ACTIVE_NOTEBOOK", who(agent))
            assert rest_listed(gateway, who(agent)) == expected(False, "agent")
        told = ok(gateway, "getNotebookCells", {"notebook": "a.ipynb"}, who("anna"))
        assert "ID: c\nStatus: Selection: selected |" in told and "ID: d\nStatus: Selection: active |" in told
        ok(gateway, "attachNotebook", {"notebook": "a.ipynb"}, who("anna"))
        assert ok(gateway, "getNotebookContext", {}, who("anna"))["uri"] == str(path)
        ok(gateway, "detachNotebook", {"notebook": "gone.ipynb"}, who("anna"))
        path.unlink()
        refused(gateway, "getNotebookCells", {}, "NOT_FOUND", who("anna"))
        ok(gateway, "detachNotebook", {}, who("anna"))
        assert rest_listed(gateway, who("anna")) == expected(False, "agent")
    finally:
        assert gateway.stop() == 0


def test_what_is_out_of_reach_by_now_can_be_detached(tmp_path):
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    path = tmp_path / "one" / "n.ipynb"
    path.write_text(json.dumps({"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}))
    gateway = Gateway(tmp_path / "data", SETS, ["--root", str(path.parent)])
    try:
        ok(gateway, "attachNotebook", {"notebook": "n.ipynb"}, who("anna"))
    finally:
        assert gateway.stop() == 0
    gateway = Gateway(tmp_path / "data", SETS, ["--root", str(tmp_path / "two")])
    try:
        refused(gateway, "getNotebookCells", {"notebook": str(path)}, "PATH_OUTSIDE_ROOTS", who("anna"))
        refused(gateway, "detachNotebook", {"notebook": str(tmp_path / "one" / "other.ipynb")}, "NO_ACTIVE_NOTEBOOK", who("anna"))
        assert ok(gateway, "detachNotebook", {"notebook": str(path)}, who("anna")) == f"Detached {path}"
        refused(gateway, "getNotebookCells", {}, "NO_ACTIVE_NOTEBOOK", who("anna"))
    finally:
        assert gateway.stop() == 0


def test_many_attached(gateway):
    for number in range(64):
        put(gateway, f"many/{number}.ipynb", [])
        ok(gateway, "attachNotebook", {"notebook": f"many/{number}.ipynb"}, who("many"))
    put(gateway, "many/more.ipynb", [])
    error = refused(gateway, "attachNotebook", {"notebook": "many/more.ipynb"}, "BUSY", who("many"))
    assert "64" in error["message"]
    ok(gateway, "attachNotebook", {"notebook": "many/3.ipynb"}, who("many"))
    ok(gateway, "detachNotebook", {}, who("many"))
    ok(gateway, "attachNotebook", {"notebook": "many/more.ipynb"}, who("many"))


def test_attached_on_one_gateway_is_attached_on_all(tmp_path, servers):
    """Two gateways on one database and one root: each sees what the other did, and neither undoes it."""
    mongo, root = servers.mongo(), tmp_path / "root"
    root.mkdir()
    cells = {"cells": [code("c", "1")], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    for number in range(12):
        (root / f"{number}.ipynb").write_text(json.dumps(cells))
    made = []
    try:
        for number in range(2):
            made.append(Gateway(tmp_path / f"gateway{number}", [*SETS, "documents=mongo", f"mongo.uri={mongo.uri}", "mongo.timeout=30s"],
                                ["--root", str(root)]))
            eventually(lambda: made[-1].client.get("/readyz", timeout=SECONDS).status_code == 200, SECONDS * 2, "readiness")
        one, two = made
        ok(one, "attachNotebook", {"notebook": "0.ipynb"}, who("anna"))
        assert ok(two, "getNotebookContext", {}, who("anna"))["uri"] == str(root / "0.ipynb")
        ok(two, "selectNotebookCells", {"cellIds": ["c"]}, who("anna"))
        for named in ({}, {"notebook": "0.ipynb"}):
            assert "Selection: selected" in ok(one, "getNotebookCells", named, who("anna"))
        # Each attaches six of its own at once: all are there then.
        def attach(gateway, numbers):
            for number in numbers:
                ok(gateway, "attachNotebook", {"notebook": f"{number}.ipynb", "active": False}, who("anna"))
        threads = [threading.Thread(target=attach, args=(made[number], range(number, 12, 2))) for number in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        # Lists come from the known state, and follow it.
        for gateway in made:
            eventually(lambda: rest_listed(gateway, who("anna")) == expected(True, "agent"), SECONDS, "tools on the list")
        ok(two, "detachNotebook", {}, who("anna"))
        refused(one, "getNotebookCells", {}, "NO_ACTIVE_NOTEBOOK", who("anna"))
        for number in range(1, 12):
            ok(made[number // 2 % 2], "detachNotebook", {"notebook": f"{number}.ipynb"}, who("anna"))
        for gateway in made:
            refused(gateway, "detachNotebook", {"notebook": "3.ipynb"}, "NO_ACTIVE_NOTEBOOK", who("anna"))
            eventually(lambda: rest_listed(gateway, who("anna")) == expected(False, "agent"), SECONDS, "tools off the list")
    finally:
        for gateway in made:
            assert gateway.stop() == 0, gateway.errors


def test_attaching_tells_the_revision_of_the_file(gateway):
    put(gateway, "attached.ipynb", [code("c", "1")])
    attached = gateway.call("attachNotebook", {"notebook": "attached.ipynb"}, who("revision")).json()["revision"]
    read = gateway.call("getNotebookCells", {}, who("revision")).json()["revision"]
    selected = gateway.call("selectNotebookCells", {"cellIds": ["c"]}, who("revision")).json()["revision"]
    assert attached == read == selected
    assert "revision" not in gateway.call("detachNotebook", {}, who("revision")).json()
    change = {"notebook": "attached.ipynb", "cellId": "c", "content": "2", "expectedRevision": attached}
    assert ok(gateway, "updateNotebookCell", change, who("revision"))
