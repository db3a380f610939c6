# SPDX-License-Identifier: MIT
"""The command line of the MCP inspector against the real gateway, over HTTP and stdio."""

import json

import pytest

from conftest import WITH_FIXTURES, e2e


@pytest.fixture(params=["http", "stdio"])
def inspect(request, node, tmp_path, url):
    """inspect(method, options...) gives what the inspector printed."""
    if request.param == "http":
        target = [url]
    else:
        target = [e2e.binary(), "mcp", "--data-dir", str(tmp_path / "data")]
        for item in WITH_FIXTURES:
            target += ["--set", item]
    program = node.modules / "@modelcontextprotocol" / "inspector" / "clients" / "launcher" / "build" / "index.js"
    home = tmp_path / "home"
    home.mkdir()

    def run(method, *options):
        if request.param == "http":
            args = ("--cli", *target, "--transport", "http", "--method", method, *options)
        else:
            args = ("--cli", "--method", method, *options, "--", *target)
        code, out, errors = node.run(program, *args, cwd=tmp_path, extra={"HOME": str(home)})
        assert code == 0, f"{method} ended with {code}:\n{out}\n{errors}"
        return json.loads(out)

    return run


def test_tools(inspect):
    tools = {tool["name"]: tool for tool in inspect("tools/list")["tools"]}
    assert {"notebook", "test_simple_text"} <= set(tools)
    assert all(tool["description"] and tool["inputSchema"]["type"] == "object" for tool in tools.values())
    answer = inspect("tools/call", "--tool-name", "greet", "--tool-arg", "name=World")
    assert answer["content"] == [{"type": "text", "text": "Hello, World!"}]
    assert not answer.get("isError")


def test_resources(inspect):
    assert "test://static-text" in [resource["uri"] for resource in inspect("resources/list")["resources"]]
    templates = inspect("resources/templates/list")["resourceTemplates"]
    assert "test://template/{id}/data" in [template["uriTemplate"] for template in templates]
    read = inspect("resources/read", "--uri", "test://static-text")
    assert read["contents"][0]["text"] == "This is the content of the static text resource."


def test_prompts(inspect):
    assert "test_simple_prompt" in [prompt["name"] for prompt in inspect("prompts/list")["prompts"]]
    got = inspect("prompts/get", "--prompt-name", "test_prompt_with_arguments",
                  "--prompt-args", "arg1=hello", "arg2=world")
    assert got["messages"][0]["content"]["text"] == "Prompt with arguments: arg1='hello', arg2='world'"
