# SPDX-License-Identifier: MIT
"""GET /v1/history and its addresses: each is a call of a tool, whose arguments are the parameters."""

import pytest
from conftest import Gateway
from keys_support import add, bearer


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    running = Gateway(tmp_path_factory.mktemp("history") / "data", ["tools.max_answer=4KiB"])
    for agent, run, text in (("ada", "night", "one\ntwo\n"), ("bob", "day", "one\ntwo\nthree\n")):
        made = running.call("notebook", {"mode": "create", "name": "a,b", "newStr": text, "space": "shared"},
                            {"X-Notegate-Agent": agent, "X-Notegate-Run": run})
        assert made.status_code == 200
    running.call("notebook", {"mode": "create", "name": "long", "newStr": "line\n" * 5000, "space": "shared"})
    yield running
    assert running.stop() == 0


def get(running, path, headers=None, **parameters):
    return running.client.get(f"/v1/history{path}", params=parameters, headers=headers or {})


def of_tool(running, tool, **arguments):
    answer = running.call(tool, arguments)
    assert answer.status_code == 200, answer.text
    return answer.json()["result"]


@pytest.mark.parametrize(("path", "tool", "parameters", "arguments"), [
    ("", "history_log", {}, {}),
    ("", "history_log", {"agent": "ada"}, {"agent": "ada"}),
    ("", "history_log", {"agent": "ada,bob", "limit": "1"}, {"agent": ["ada", "bob"], "limit": 1}),
    ("", "history_log", {"id": "a,b", "run": "day"}, {"id": "a,b", "run": "day"}),
    ("/at", "history_read", {"id": "a,b", "space": "shared", "at": "1"}, {"id": "a,b", "space": "shared", "at": "1"}),
    ("/at", "history_read", {"space": "shared", "at": "#1"}, {"space": "shared", "at": "#1"}),
    ("/diff", "history_diff", {"id": "a,b", "space": "shared", "context": "0"}, {"id": "a,b", "space": "shared", "context": 0}),
    ("/diff", "history_diff", {"run": "day"}, {"run": "day"}),
    ("/diff", "history_diff", {"run": "night,day", "agent": "bob", "collection": "pages,notebooks", "since": "#0"},
     {"run": ["night", "day"], "agent": "bob", "collection": ["pages", "notebooks"], "since": "#0"}),
    ("/diff", "history_diff", {"space": "shared", "action": "created"}, {"space": "shared", "action": "created"}),
    ("/blame", "history_blame", {"id": "a,b", "space": "shared", "max_lines": "2"}, {"id": "a,b", "space": "shared", "max_lines": 2}),
])
def test_each_is_a_call_of_its_tool(served, path, tool, parameters, arguments):
    answer = get(served, path, **parameters)
    assert answer.status_code == 200, answer.text
    assert answer.headers["Content-Type"] == "application/json"
    assert answer.json() == of_tool(served, tool, **arguments)


def test_the_bytes(served):
    plain = {"Accept": "text/plain"}
    answer = get(served, "/at", plain, id="a,b", space="shared", at="1")
    assert answer.text == "one\ntwo\n" and answer.headers["Content-Type"] == "text/plain; charset=utf-8"
    assert get(served, "/at", plain, id="long", space="shared").text == "line\n" * 5000, "not cut to tools.max_answer"
    assert get(served, "/diff", plain, id="a,b", space="shared").text.endswith("+three\n")
    for path in ("/diff", "/at"):
        answer = get(served, path, plain, space="shared")
        assert answer.headers["Content-Type"] == "application/json" and answer.json()["documents"], "several have no bytes"


def test_diff_of_a_run(served):
    (row,) = get(served, "/diff", run="day").json()["documents"]
    assert (row["space"], row["collection"], row["id"], row["from"], row["to"]) == ("shared", "notebooks", "a,b", 1, 2)
    assert (row["added"], row["removed"], row["others"]) == (1, 0, 0) and row["diff"].endswith("+three\n")


@pytest.mark.parametrize(("path", "parameters", "status", "code", "part"), [
    ("/at", {"id": "none", "space": "shared"}, 404, "NOT_FOUND", "none"),
    ("/at", {"id": "a,b", "space": "shared", "at": "x"}, 400, "INVALID_INPUT", "`at`"),
    ("", {"limit": "x"}, 400, "INVALID_INPUT", "`limit`"),
    ("", {"nothing": "1"}, 400, "INVALID_INPUT", "nothing"),
    ("/diff", {}, 400, "INVALID_INPUT", "`id`"),
    ("/diff", {}, 400, "INVALID_INPUT", "`run`, `agent` or `space`"),
    ("/diff", {"run": "dya"}, 404, "NOT_FOUND", "dya"),
    ("/diff", {"run": "day", "to": "1"}, 400, "INVALID_INPUT", "`until`"),
    ("/at", {"id": "long", "space": "shared", "start_line": "9999"}, 400, "INVALID_INPUT", "5001"),
])
def test_refusals_name_the_parameter(served, path, parameters, status, code, part):
    answer = get(served, path, **parameters)
    assert (answer.status_code, answer.json()["code"]) == (status, code)
    assert part in answer.json()["message"]


def test_a_value_that_is_no_text(served):
    answer = served.client.get("/v1/history?agent=%ff")
    assert answer.status_code == 400 and "agent" in answer.json()["message"]


def test_without_the_plugin(tmp_path):
    running = Gateway(tmp_path / "data", ["plugins=notebook"])
    answer = running.client.get("/v1/history")
    assert (answer.status_code, answer.json()["code"]) == (404, "NOT_FOUND") and "`plugins`" in answer.json()["hint"]
    assert "/v1/history" not in running.client.get("/openapi.json").json()["paths"]
    assert running.stop() == 0


def test_a_key_without_the_tool(tmp_path):
    key = bearer(add(tmp_path / "data", "ada", "--tool", "notebook"))
    running = Gateway(tmp_path / "data")
    assert running.client.get("/v1/history", headers=key).status_code == 403
    assert "/v1/history" not in running.client.get("/openapi.json", headers=key).json()["paths"]
    assert running.stop() == 0


def test_the_document_has_every_argument(served):
    paths = served.client.get("/openapi.json").json()["paths"]
    for path, tool in (("", "history_log"), ("/at", "history_read"), ("/diff", "history_diff"), ("/blame", "history_blame")):
        named = {one["name"] for one in paths[f"/v1/history{path}"]["get"]["parameters"] if "name" in one}
        schema = served.client.get(f"/v1/tools/{tool}").json()["inputSchema"]
        assert named == set(schema["properties"])
