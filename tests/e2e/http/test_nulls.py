# SPDX-License-Identifier: MIT
"""Clients that send null for each optional argument, and clients that cannot read type lists."""

import pytest


def nulls(tool, given):
    """The arguments, and null for every other property of the tool's schema."""
    return {**{name: None for name in tool["inputSchema"]["properties"]}, **given}


@pytest.fixture
def tools(gateway):
    return {tool["name"]: tool for tool in gateway.client.get("/v1/tools").json()["tools"]}


def test_null_is_not_given(gateway, tools):
    notebook = tools["notebook"]
    for given in ({"mode": "create", "name": "n", "newStr": "a\nb"}, {"mode": "read", "name": "n"}):
        answer = gateway.call("notebook", nulls(notebook, given))
        assert answer.status_code == 200, answer.text
    assert "a" in answer.json()["result"]
    missing = gateway.call("notebook", {"mode": None, "name": "n"})
    assert missing.status_code == 400 and "`mode`" in missing.json()["message"]
    entry = nulls(tools["notebook_create"], {"collection": "pages", "title": "t", "content": "c"})
    assert gateway.call("notebook_create", entry).status_code == 200
    entry["sections"] = [{"heading": "h", "content": None}]
    assert gateway.call("notebook_create", entry).status_code == 200


def test_a_repeat_with_nulls_is_the_same_call(gateway, tools):
    headers = {"Idempotency-Key": "once"}
    write = {"mode": "write", "name": "r", "newStr": "x"}
    gateway.call("notebook", {"mode": "create", "name": "r"})
    answers = [gateway.call("notebook", arguments, headers).json() for arguments in (
        nulls(tools["notebook"], write), nulls(tools["notebook"], write))]
    assert answers[0] == answers[1] and answers[0]["revision"] == 2


def walk(schema, path=""):
    if isinstance(schema, dict):
        assert not isinstance(schema.get("type"), list), path
        for name, value in schema.items():
            walk(value, f"{path}/{name}")
    elif isinstance(schema, list):
        for index, value in enumerate(schema):
            walk(value, f"{path}/{index}")


def test_no_input_schema_has_a_list_of_types(tools):
    for name, tool in tools.items():
        walk(tool["inputSchema"], name)


def test_every_violation_is_in_the_sentence(gateway):
    message = gateway.call("notebook", {"mode": "fly", "readRange": "all", "colour": 1}).json()["message"]
    assert all(f"`{name}`" in message for name in ("mode", "readRange")) and "colour" in message and "; " in message
