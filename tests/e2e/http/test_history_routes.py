# SPDX-License-Identifier: MIT
"""/v1/history and its addresses: each is a call of a tool, whose arguments are the parameters, or the body."""

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


def test_bytes_that_no_answer_holds(tmp_path):
    """They are whole or refused, unless the request asks for a part."""
    running = Gateway(tmp_path / "data", ["limits.result=64KiB"])
    text = "".join(f"line {number}\n" for number in range(20000))
    plain = {"Accept": "text/plain"}
    named = {"id": "long", "space": "shared"}
    for content in ("one\n", text):
        assert running.call("notebook", {"mode": "create", "name": "long", "newStr": content, "space": "shared"}).status_code == 200
    for path, more in (("/at", {}), ("/at", {"start_line": "2"}), ("/at", {"max_lines": "19000"}), ("/diff", {})):
        answer = get(running, path, plain, **named, **more)
        assert (answer.status_code, answer.json()["code"]) == (413, "TOO_LARGE"), (path, more)
    assert get(running, "/at", **named).json()["next_line"] > 1000 and get(running, "/diff", **named).json()["truncated"]
    parts = [get(running, "/at", plain, **named, start_line=str(line), max_lines="1000") for line in range(1, 20001, 1000)]
    assert {part.status_code for part in parts} == {200} and "".join(part.text for part in parts) == text
    assert get(running, "/at", plain, **named, start_line="19001").text == text[text.index("line 19000\n"):]
    assert running.stop() == 0


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


@pytest.fixture(name="edited")
def fixture_edited(tmp_path):
    """`plan` in two revisions; the second one is of the run night."""
    running = Gateway(tmp_path / "data")
    for agent, run, text in (("ada", "day", "one\n"), ("bob", "night", "one\ntwo\n")):
        made = running.call("notebook", {"mode": "create", "name": "plan", "newStr": text, "space": "shared"},
                            {"X-Notegate-Agent": agent, "X-Notegate-Run": run})
        assert made.status_code == 200
    yield running
    assert running.stop() == 0


def post(running, path, arguments, **headers):
    return running.client.post(f"/v1/history{path}", json=arguments, headers={name.replace("_", "-"): value for name, value in headers.items()})


def test_undo(edited):
    preview = post(edited, "/undo", {"run": "night"})
    assert preview.status_code == 200 and preview.headers["Content-Type"] == "application/json"
    assert preview.json() == of_tool(edited, "history_undo", run="night") and preview.json()["dry_run"] and preview.json()["undone"] == 1
    done = post(edited, "/undo", {"run": "night", "dry_run": False, "upto": preview.json()["upto"]}, Idempotency_Key="once").json()
    assert done["undone"] == 1 and done["undo"].startswith("undo-")
    assert post(edited, "/undo", {"run": "night", "dry_run": False, "upto": preview.json()["upto"]}, Idempotency_Key="once").json() == done
    assert get(edited, "/at", id="plan", space="shared").json()["content"] == "one\n"
    assert post(edited, "/undo", {"run": done["undo"], "dry_run": False}, X_Notegate_Agent="eve").json()["agents"] == ["local"]
    assert get(edited, "/at", id="plan", space="shared").json()["content"] == "one\ntwo\n"
    assert get(edited, "", agent="eve").json()["changes"][0]["run"].startswith("undo-")


def test_restore(edited):
    answer = post(edited, "/restore", {"id": "plan", "space": "shared", "at": "1", "expectedRevision": 2})
    assert answer.status_code == 200, answer.text
    assert (answer.json()["revision"], answer.json()["restored_from"], answer.json()["removed"]) == (3, 1, 1)
    again = post(edited, "/restore", {"id": "plan", "at": "2", "expectedRevision": 2}, X_Notegate_Space="shared")
    assert (again.status_code, again.json()["code"]) == (409, "CONFLICT")


@pytest.mark.parametrize(("path", "arguments", "headers", "status", "code"), [
    ("/undo", {}, {}, 400, "INVALID_INPUT"), ("/undo", {"run": "nihgt"}, {}, 404, "NOT_FOUND"), ("/undo", [], {}, 400, "INVALID_INPUT"),
    ("/undo", {"run": "night", "limit": 1}, {}, 400, "INVALID_INPUT"), ("/restore", {"id": "plan"}, {}, 400, "INVALID_INPUT"),
    ("/restore", {"id": "none", "at": "1", "space": "shared"}, {}, 404, "NOT_FOUND"),
    ("/undo", {"run": "night", "dry_run": False}, {"X_Notegate_Mode": "ask"}, 403, "MODE_FORBIDDEN")])
def test_refused_bodies(edited, path, arguments, headers, status, code):
    answer = post(edited, path, arguments, **headers)
    assert (answer.status_code, answer.json()["code"]) == (status, code), answer.text


@pytest.mark.parametrize("path", ["/undo", "/restore"])
def test_requests_that_are_none(edited, path):
    wrong = edited.client.get(f"/v1/history{path}")
    assert (wrong.status_code, wrong.headers["Allow"]) == (405, "POST, OPTIONS")
    form = edited.client.post(f"/v1/history{path}", content="run=night", headers={"Content-Type": "application/x-www-form-urlencoded"})
    assert (form.status_code, form.json()["code"]) == (415, "UNSUPPORTED_MEDIA_TYPE")
    assert edited.client.post(f"/v1/history{path}", content="{", headers={"Content-Type": "application/json"}).status_code == 400
    assert edited.client.post("/v1/history", json={}).status_code == 405


def test_a_value_that_is_no_text(served):
    answer = served.client.get("/v1/history?agent=%ff")
    assert answer.status_code == 400 and "agent" in answer.json()["message"]


def test_without_the_plugin(tmp_path):
    running = Gateway(tmp_path / "data", ["plugins=notebook"])
    answer = running.client.get("/v1/history")
    assert (answer.status_code, answer.json()["code"]) == (404, "NOT_FOUND") and "`plugins`" in answer.json()["hint"]
    assert post(running, "/undo", {"run": "x"}).status_code == 404
    assert not [path for path in running.client.get("/openapi.json").json()["paths"] if path.startswith("/v1/history")]
    assert running.stop() == 0


def test_a_key_without_the_tool(tmp_path):
    key = bearer(add(tmp_path / "data", "ada", "--tool", "notebook"))
    running = Gateway(tmp_path / "data")
    assert running.client.get("/v1/history", headers=key).status_code == 403
    assert running.client.post("/v1/history/undo", json={"run": "x"}, headers=key).status_code == 403
    assert not [path for path in running.client.get("/openapi.json", headers=key).json()["paths"] if path.startswith("/v1/history")]
    assert running.stop() == 0


def test_the_document_has_every_argument(served):
    paths = served.client.get("/openapi.json").json()["paths"]
    for path, tool in (("", "history_log"), ("/at", "history_read"), ("/diff", "history_diff"), ("/blame", "history_blame")):
        named = {one["name"] for one in paths[f"/v1/history{path}"]["get"]["parameters"] if "name" in one}
        schema = served.client.get(f"/v1/tools/{tool}").json()["inputSchema"]
        assert named == set(schema["properties"])
    for path, tool in (("/undo", "history_undo"), ("/restore", "history_restore")):
        post_of = paths[f"/v1/history{path}"]["post"]
        assert post_of["requestBody"]["content"]["application/json"]["schema"] == {"$ref": f"#/components/schemas/{tool}_arguments"}
        assert {"Space", "IdempotencyKey"} <= {one["$ref"].rsplit("/", 1)[1] for one in post_of["parameters"]}
