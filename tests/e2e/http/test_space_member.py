# SPDX-License-Identifier: MIT
"""The member `space` of the tools that keep their data by space: in lists, arguments and answers."""

import json

import pytest
from cli_support import notegate
from conftest import Gateway, environment
from keys_support import add, bearer
from mcp_support import HANDSHAKE, MODERN

FORMS = {"mcp": "inputSchema", "openai": "parameters", "openai-responses": "parameters", "anthropic": "input_schema",
         "gemini": "parametersJsonSchema"}
WRITE = {"mode": "create", "name": "n", "newStr": "text"}
PAGE = {"collection": "pages", "title": "Plan", "content": "text"}
BY_SPACE = ("notebook", "notebook_", "memory_", "checkpoint_", "search", "history_")


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    running = Gateway(tmp_path_factory.mktemp("space") / "data")
    yield running
    assert running.stop() == 0


@pytest.fixture(scope="module")
def keys(tmp_path_factory):
    """A gateway with keys: of one space, of two, of more than a list names, of none, of an admin."""
    running = Gateway(tmp_path_factory.mktemp("keys") / "data")
    many = [word for number in range(21) for word in ("--space", f"s{number}")]
    running.keys = {"admin": add(running.data_dir, "root", "--role", "admin"), "one": add(running.data_dir, "one", "--space", "team"),
                    "two": add(running.data_dir, "two", "--space", "team", "--space", "notes"),
                    "many": add(running.data_dir, "many", *many), "none": add(running.data_dir, "none")}
    yield running
    assert running.stop() == 0


def post(running, version, method, params, headers):
    """The result of one request, in a session where the version has sessions."""
    headers = {"Accept": "application/json, text/event-stream", "MCP-Protocol-Version": version} | headers
    about = {"io.modelcontextprotocol/protocolVersion": version, "io.modelcontextprotocol/clientCapabilities": {}}
    if version == MODERN:
        params = params | {"_meta": about}
        headers |= {"Mcp-Method": method} | ({"Mcp-Name": params["name"]} if "name" in params else {})
    else:
        opened = running.client.post("/mcp", headers=headers, json={
            "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
                "protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}})
        headers["Mcp-Session-Id"] = opened.headers["Mcp-Session-Id"]
    answer = running.client.post("/mcp", headers=headers, json={"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
    assert answer.status_code == 200, answer.text
    return answer.json()["result"]


def schemas(running, form, headers):
    """Schemas of the arguments, by tool."""
    tools = running.client.get("/v1/tools", params={"format": form}, headers=headers).json()
    if form == "mcp":
        tools = tools["tools"]
    elif form == "gemini":
        tools = tools[0]["functionDeclarations"]
    tools = [tool.get("function", tool) for tool in tools]
    return {tool["name"]: tool[FORMS[form]] for tool in tools}


def spaces(schema):
    return schema["properties"].get("space")


# ---- lists ----


@pytest.mark.parametrize("form", FORMS)
def test_all_tools_that_keep_data_by_space_have_it(served, form):
    """Without keys it is any text."""
    found = schemas(served, form, {})
    assert len(found) > 20
    for name, schema in found.items():
        has = spaces(schema)
        assert (has is not None) == name.startswith(BY_SPACE), name
        assert has is None or (has["type"] == "string" and "enum" not in has and has["description"]), name
        assert "space" not in schema.get("required", [])


@pytest.mark.parametrize("version", [None, HANDSHAKE, "2025-06-18", MODERN])
@pytest.mark.parametrize(("key", "named"), [
    ("admin", ...), ("one", None), ("two", ["team", "notes"]), ("many", ...), ("none", ["~none", "shared"])])
def test_a_list_names_the_spaces_of_its_caller(keys, version, key, named):
    """None: no member. Ellipsis: any text. Of more than 20 spaces a list names none."""
    headers = bearer(keys.keys[key])
    if version is None:
        found = schemas(keys, "mcp", headers)
        shown = keys.client.get("/v1/tools/notebook", headers=headers).json()
        assert shown["inputSchema"] == found["notebook"]
        documented = keys.client.get("/openapi.json", headers=headers).json()["components"]["schemas"]
        assert (spaces(documented["notebook_arguments"]) is None) == (named is None)
    else:
        found = {tool["name"]: tool["inputSchema"] for tool in post(keys, version, "tools/list", {}, headers)["tools"]}
    for name in ("notebook", "notebook_read", "memory_log", "checkpoint_list"):
        has = spaces(found[name])
        if named is None:
            assert has is None, name
        elif named is ...:
            assert has["type"] == "string" and "enum" not in has, name
        else:
            assert sorted(has["enum"]) == sorted(named), name
    assert spaces(found["fileEditor"]) is None


def test_who_has_named_a_space_is_offered_no_other(keys, served):
    headers = bearer(keys.keys["two"]) | {"X-Notegate-Space": "notes"}
    assert spaces(schemas(keys, "mcp", headers)["notebook"]) is None
    assert spaces(schemas(served, "mcp", {"X-Notegate-Space": "notes"})["notebook"]) is None


# ---- arguments and answers ----


def test_it_means_what_the_header_means(served):
    assert served.call("notebook", WRITE | {"space": "rest"}).json()["result"] == "Created notebook 'n' with specified content"
    assert "n:" in served.call("notebook", {"mode": "list"}, {"X-Notegate-Space": "rest"}).json()["result"]
    assert "n:" not in served.call("notebook", {"mode": "list"}).json()["result"]
    both = served.call("notebook", {"mode": "list", "space": "rest"}, {"X-Notegate-Space": "rest"})
    assert both.status_code == 200 and "n:" in both.json()["result"]
    null = served.call("notebook", {"mode": "list", "space": None}, {"X-Notegate-Space": "rest"})
    assert null.status_code == 200 and "n:" in null.json()["result"]
    only = served.call("notebook_list", {"space": "rest"})
    assert only.status_code == 200 and only.json()["result"]["space"] == "rest"


def test_answers_with_a_schema_say_the_space(served):
    made = served.call("notebook_create", PAGE | {"space": "said"}).json()["result"]
    assert made["space"] == "said"
    default = served.call("notebook_create", PAGE).json()["result"]
    assert default["space"] == "shared"
    assert served.call("notebook_list", {}, {"X-Notegate-Space": "said"}).json()["result"]["space"] == "said"
    found = served.client.get("/v1/tools/notebook_create").json()
    assert found["outputSchema"]["properties"]["space"] == {"type": "string"}
    assert "outputSchema" not in served.client.get("/v1/tools/notebook").json()
    # A page of a list that is answered from memory has the space of its own call.
    for _ in range(3):
        for space in ("said", "shared"):
            assert served.call("notebook_list", {"space": space}).json()["result"]["space"] == space


@pytest.mark.parametrize("version", [HANDSHAKE, "2025-06-18", MODERN])
def test_over_mcp(served, version):
    space = f"mcp-{version}"
    made = post(served, version, "tools/call", {"name": "notebook_create", "arguments": PAGE | {"space": space}}, {})
    said = made["structuredContent"]
    assert said["space"] == space and json.loads(made["content"][0]["text"]) == said
    read = post(served, version, "tools/call", {"name": "notebook_read", "arguments": {
        "collection": "pages", "notebook_id": said["notebook_id"], "space": space}}, {})
    assert read["structuredContent"]["title"] == "Plan"
    other = post(served, version, "tools/call", {"name": "notebook_read", "arguments": {
        "collection": "pages", "notebook_id": said["notebook_id"]}}, {})
    assert other["isError"]


@pytest.mark.parametrize("beside", [False, True])
def test_the_command_line(tmp_path, beside):
    data = tmp_path / "data"
    gateway = Gateway(data) if beside else None

    def run(*words):
        return notegate("call", *words, "--data-dir", data, env=environment())

    assert run("notebook", "mode=create", "name=n", "newStr=x", "space=cli").returncode == 0
    assert "n:" in run("notebook", "mode=list", "--space", "cli").stdout
    assert "n:" in run("notebook", '{"mode":"list","space":"cli"}').stdout
    done = run("notebook", "mode=list", "space=other", "--space", "cli")
    assert done.returncode == 1 and "leave one of them out" in done.stderr, done.stderr
    if gateway:
        assert gateway.stop() == 0


@pytest.mark.parametrize(("given", "header", "status", "code", "says"), [
    ("other", "here", 400, "INVALID_INPUT", 'the argument `space` is "other", but the caller names the space "here"'),
    ("no space", None, 400, "INVALID_INPUT", 'the space name "no space" is not of the form'),
    ("", None, 400, "INVALID_INPUT", 'the space name "" is not of the form'),
    ("x" * 100000, None, 400, "INVALID_INPUT", "is not of the form"),
    (7, None, 400, "INVALID_INPUT", "`space`: expected a string, got the number 7"),
    (["a"], None, 400, "INVALID_INPUT", "`space`: expected a string"),
])
def test_what_is_refused(served, given, header, status, code, says):
    headers = {"X-Notegate-Space": header} if header else {}
    answer = served.call("notebook", {"mode": "list", "space": given}, headers)
    assert answer.status_code == status and answer.json()["code"] == code, answer.text
    assert says in answer.json()["message"] and len(answer.text) < 4096


@pytest.mark.parametrize("tool", ["fileEditor", "listNotebooks", "runNotebookCells"])
def test_other_tools_do_not_take_it(served, tool):
    answer = served.call(tool, {"space": "x"})
    assert answer.status_code in (400, 404), answer.text


def test_rights(keys):
    """One space: accepted where it is that one. A key's space is no other's."""
    one, two, none = (bearer(keys.keys[name]) for name in ("one", "two", "none"))
    assert keys.call("notebook", WRITE | {"space": "team"}, one).status_code == 200
    for headers, space in ((one, "notes"), (one, "~one"), (two, "~two"), (none, "team"), (none, "~one")):
        answer = keys.call("notebook", {"mode": "list", "space": space}, headers)
        assert answer.status_code == 403 and answer.json()["code"] == "FORBIDDEN", answer.text
        assert f'does not allow the space "{space}"; it allows ' in answer.json()["message"]
    assert "n:" in keys.call("notebook", {"mode": "list", "space": "team"}, two).json()["result"]
    assert "n:" in keys.call("notebook", {"mode": "list"}, two).json()["result"], "the first of its spaces"
    assert "n:" not in keys.call("notebook", {"mode": "list", "space": "notes"}, two).json()["result"]
    assert "n:" in keys.call("notebook", {"mode": "list", "space": "team"}, bearer(keys.keys["admin"])).json()["result"]


def test_a_retry_in_another_space_is_another_call(served):
    headers = {"Idempotency-Key": "k1"}
    made = [served.call("notebook_create", PAGE | {"space": space}, headers).json()["result"] for space in ("i1", "i2", "i1")]
    assert made[0] == made[2] and made[0]["notebook_id"] != made[1]["notebook_id"]
    assert [one["space"] for one in made] == ["i1", "i2", "i1"]


def test_a_large_body_and_arguments_as_a_text(served):
    large = PAGE | {"content": "x" * 200000, "space": "large"}
    assert served.call("notebook_create", large).json()["result"]["space"] == "large"
    version = HANDSHAKE
    made = post(served, version, "tools/call", {"name": "notebook_create", "arguments": large}, {})
    assert made["structuredContent"]["space"] == "large"
    made = post(served, version, "tools/call", {"name": "notebook_create", "arguments": json.dumps(PAGE | {"space": "text"})}, {})
    assert made["structuredContent"]["space"] == "text"


