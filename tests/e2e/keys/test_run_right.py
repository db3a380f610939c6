# SPDX-License-Identifier: MIT
"""The right to run code: callers with it, listed tools, answers without it, and the report of callers that may."""

import json
import os

import pytest
from cells_support import need, write_notebook
from cells_tools_support import Handshake, modern
from conftest import Gateway
from keys_support import add, bearer, key_id, mcp, notegate, refused

SETS = ("plugins=notebook,cells",)
RUNS = {"runNotebookCells": {"cellIds": ["c"]}, "restartKernel": {}}
NAMED = {"notebook": "n.ipynb"}


@pytest.fixture(scope="module")
def team(tmp_path_factory):
    """A gateway with a notebook, an agent that may run code and one that may not, and admins of both kinds."""
    gateway = Gateway(tmp_path_factory.mktemp("run") / "data", sets=SETS)
    folder = gateway.data_dir / "files"
    folder.mkdir(parents=True, exist_ok=True)
    write_notebook(folder / "n.ipynb", [("c", "print(6 * 7)")])
    gateway.keys = {name: add(gateway.data_dir, name, *options) for name, options in {
        "runs": ["--run"], "plain": [], "admin": ["--role", "admin"], "root": ["--role", "admin", "--run"]}.items()}
    yield gateway
    assert gateway.stop() == 0, "".join(gateway.errors)


def mcp_code(answer):
    result = answer.json()["result"]
    return result["_meta"]["notegate/error"]["code"] if result.get("isError") else "ok"


def attached_list(team, headers):
    """The list of a session that has attached the notebook."""
    session = Handshake(team, headers)
    session.post("tools/call", {"name": "attachNotebook", "arguments": NAMED})
    return session.listed()


@pytest.mark.parametrize("name", ["plain", "admin"])
def test_without_the_right_nothing_that_runs_is_listed_or_runs(team, name):
    key = team.keys[name]
    headers = bearer(key)
    assert team.call("attachNotebook", NAMED, headers).status_code == 200
    lists = [{tool["name"] for tool in team.client.get("/v1/tools", headers=headers).json()["tools"]},
             attached_list(team, headers),
             {tool["name"] for tool in modern(team, "tools/list", headers)["result"]["tools"]},
             {path.rsplit("/", 1)[1] for path in team.client.get("/openapi.json", headers=headers).json()["paths"]}]
    for listed in lists:
        assert "addNotebookCell" in listed and "interruptKernel" in listed and not listed & set(RUNS)
    before = (team.data_dir / "files" / "n.ipynb").read_bytes()
    for tool, arguments in RUNS.items():
        for called in (tool, tool[0].upper() + tool[1:]):
            body = refused(team.call(called, {**NAMED, **arguments}, headers), 403, "RUN_FORBIDDEN")
            assert tool in body["message"] and f"notegate key set {key_id(key)} --run" in body["hint"]
        assert mcp_code(mcp(team, key, "tools/call", {"name": tool, "arguments": {**NAMED, **arguments}})) == "RUN_FORBIDDEN"
    assert (team.data_dir / "files" / "n.ipynb").read_bytes() == before
    # Cells are still written: that runs nothing.
    added = team.call("addNotebookCell", {**NAMED, "type": "code", "index": -1, "content": "1"}, headers)
    assert added.status_code == 200, added.text


def test_with_the_right_cells_run(team):
    need("python3")
    headers = bearer(team.keys["runs"])
    assert team.call("attachNotebook", NAMED, headers).status_code == 200
    assert set(RUNS) <= {tool["name"] for tool in team.client.get("/v1/tools", headers=headers).json()["tools"]}
    assert set(RUNS) <= attached_list(team, headers)
    answer = team.call("runNotebookCells", {**NAMED, "cellIds": ["c"]}, headers)
    assert answer.status_code == 200 and "42" in answer.json()["result"], answer.text
    assert team.call("restartKernel", NAMED, headers).status_code == 200
    # Besides the right it needs the same as writing.
    refused(team.call("runNotebookCells", {**NAMED, "cellIds": ["c"]}, bearer(team.keys["runs"], X_Notegate_Mode="ask")),
            403, "MODE_FORBIDDEN")


def test_prompts_tell_to_run_only_who_may(team):
    for name, tells in (("runs", True), ("plain", False)):
        got = modern(team, "prompts/get", bearer(team.keys[name]), name="notebook-mode-agent", arguments=NAMED)
        text = got["result"]["messages"][0]["content"]["text"]
        assert ("runNotebookCells" in text) == tells and ("no right to run" in text) == (not tells)


def test_the_list_of_keys_shows_it(team):
    listed = notegate(team.data_dir, "key", "list").stdout.splitlines()
    column = listed[0].split().index("RUN")
    shown = {line.split()[1]: line.split()[column] for line in listed[1:]}
    assert {name: shown[name] for name in team.keys} == {"runs": "yes", "plain": "no", "admin": "no", "root": "yes"}
    keys = team.client.get("/v1/keys", headers=bearer(team.keys["root"])).json()["keys"]
    assert {key["agent"]: key["run"] for key in keys if key["agent"] in team.keys} == {
        "runs": True, "plain": False, "admin": False, "root": True}


def test_keys_over_rest(team):
    """Only a caller with the right can give it: otherwise an admin without it could give it to itself."""
    post = lambda who, **more: team.client.post("/v1/keys", headers=bearer(team.keys[who]), json={"agent": "x", **more})  # noqa: E731
    body = refused(post("admin", run=True), 403, "RUN_FORBIDDEN")
    assert "notegate key add NAME --run" in body["hint"]
    for more in ({}, {"run": False}, {"run": None}):
        made = post("admin", **more)
        assert made.status_code == 201 and made.json()["run"] is False, made.text
    made = post("root", run=True)
    assert made.status_code == 201 and made.json()["run"] is True
    for bad in ("true", 1, [], {}):
        assert "`run`" in refused(post("root", run=bad), 400, "INVALID_INPUT")["message"]


def test_check_names_who_may(team, tmp_path):
    def line(data_dir):
        done = notegate(data_dir, "check", plugins="notebook,cells")
        return next(text for text in done.stdout.splitlines() if " run code: " in text)

    served = line(team.data_dir)
    for name, key in team.keys.items():
        assert (f"{name} ({key_id(key)})" in served) == (name in ("runs", "root")), served
    assert f"as user {os.geteuid()}" in served
    data = tmp_path / "data"
    assert "no key exists" in line(data)
    gone = add(data, "gone", "--run")
    add(data, "plain")
    assert f"gone ({key_id(gone)}) may run code" in line(data)
    assert notegate(data, "key", "revoke", "gone").returncode == 0
    assert "no key may run code" in line(data)
    done = notegate(data, "check")
    assert "run code" not in done.stdout, "no plugin runs code"


def test_the_start_names_who_may(tmp_path):
    data = tmp_path / "data"
    key = add(data, "runs", "--run")
    add(data, "plain")
    gateway = Gateway(data, sets=SETS)
    assert gateway.stop() == 0
    told = [text for text in gateway.errors if "may run code" in text]
    assert len(told) == 1 and f"runs ({key_id(key)})" in told[0] and "plain" not in told[0]


def test_callers_that_need_no_key_have_it(team, start):
    need("python3")
    done = notegate(team.data_dir, "call", "runNotebookCells", json.dumps({**NAMED, "cellIds": ["c"]}), plugins="notebook,cells")
    assert done.returncode == 0 and "42" in done.stdout, done.stderr
    gateway = start(sets=SETS)
    assert gateway.call("runNotebookCells", {"notebook": "no.ipynb", "cellIds": ["c"]}).status_code == 404
