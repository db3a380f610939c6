# SPDX-License-Identifier: MIT
"""The official TypeScript SDK, versions 1 and 2, over HTTP and stdio, in both eras: everything an application does with
a server, and no error on the way."""

import re

import pytest

from conftest import WITH_FIXTURES, e2e

MODERN = "2026-07-28"
# On stdio both SDKs hand out the answer before the notifications that they read together with it, and then do not know these
# any more; they say so.
TOO_LATE = re.compile(r"Error: Received a progress notification for an unknown token: .*\"progress\":(\d+),\"total\":(\d+)")
PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR42mP4z8AAAAMBAQD3A0FDAAAAAElFTkSuQmCC"


@pytest.fixture
def stdio(tmp_path):
    """The command line of `notegate mcp` on a data directory of its own."""
    command = [e2e.binary(), "mcp", "--data-dir", str(tmp_path / "data")]
    for item in WITH_FIXTURES:
        command += ["--set", item]
    return command


def expect_content(seen):
    assert seen["text"] == "This is a simple text response for testing."
    assert seen["image"] == {"type": "image", "data": PNG, "mimeType": "image/png"}
    assert (seen["audio"]["type"], seen["audio"]["mimeType"]) == ("audio", "audio/wav")
    assert seen["embedded"]["resource"] == {
        "uri": "test://embedded-resource", "mimeType": "text/plain", "text": "This is an embedded resource content."}
    assert seen["mixed"] == ["text", "image", "resource"]
    assert seen["failed"]["isError"] is True
    assert seen["failed"]["content"][0]["text"] == "This tool intentionally returns an error for testing"
    assert seen["header"] == "Region: north \u00e9"
    assert seen["unknown"]["code"] == -32602


def expect_asking(seen, asked):
    assert seen == {
        "elicitation": 'User response: action=accept, content={"username":"ann","email":"ann@example.org"}',
        "defaults": 'Elicitation completed: action=accept, content={"name":"John Doe","age":30,"score":95.5,'
                    '"status":"active","verified":true}',
        "sampling": "LLM response: model says hello",
        "roots": 'The client has 1 roots: [{"uri":"file:///tmp/a","name":"a"}]',
        "multiple": "All answers came, from Ann",
        "rounds": "Ann likes blue",
        "state": "state-ok: the state came back as it was sent",
        "prompt": "Use this context: a context",
    }
    assert asked == ["Who are you?", "Please review and update the form fields with defaults", "What is your name?",
                     "Step 1: What is your name?", "Step 2: What is your favorite color?", "Please confirm",
                     "What context should the prompt use?"]


def expect_reading(seen, missing_code):
    assert {"test://static-text", "test://static-binary", "test://watched-resource"} <= set(seen["resources"])
    assert "test://template/{id}/data" in seen["templates"]
    assert seen["text"]["text"] == "This is the content of the static text resource."
    assert (seen["binary"]["blob"], seen["binary"]["mimeType"]) == (PNG, "image/png")
    assert seen["template"]["text"] == '{"id":"abc","templateTest":true,"data":"Data for ID: abc"}'
    assert seen["missing"]["code"] == missing_code
    assert "test_prompt_with_arguments" in seen["prompts"]
    assert seen["prompt"] == "Prompt with arguments: arg1='hello', arg2='world'"
    assert seen["promptImage"] == ["image", "text"]
    assert seen["completion"] == ["paris", "park", "party"]


def expect_everything(seen, missing_code, is_http=True):
    """Results of every client, for every protocol version and transport."""
    assert seen["version"]["name"] == "notegate"
    assert {"notebook", "test_simple_text", "json_schema_2020_12_tool"} <= set(seen["tools"])
    assert {"$schema", "$defs", "allOf", "if", "then", "else"} <= set(seen["schema"])
    expect_content(seen["content"])
    running = seen["running"]
    progress = [[0, 100], [50, 100], [100, 100]]
    late = [] if is_http else [found for error in seen["errors"] if (found := TOO_LATE.match(error))]
    assert running["progress"] + [[int(found[1]), int(found[2])] for found in late] == progress
    assert running["done"] == "Progress went from 0 to 100"
    assert running["after"] == "This is a simple text response for testing."
    expect_asking(seen["asking"], seen["asked"])
    expect_reading(seen["reading"], missing_code)
    watching = seen["watching"]
    assert watching["updated"] == sorted([watching["uri"], "test://watched-resource"])
    assert watching["content"] == "one\ntwo"
    assert watching["watched"] is True
    assert seen["logs"] == ["Tool execution started", "Tool processing data", "Tool execution completed"]
    assert len(seen["errors"]) == len(late), seen["errors"]


def test_v1_http(script, url):
    seen = script("sdk_v1.mjs", url)
    expect_everything(seen, -32002)
    assert seen["session"] is True
    assert seen["resumed"] == "The answer came after the stream had been closed"


def test_v1_stdio(script, stdio):
    expect_everything(script("sdk_v1.mjs", *stdio), -32002, is_http=False)


@pytest.mark.parametrize("era", ["legacy", "auto", MODERN])
def test_v2_http(script, url, era):
    seen = script("sdk_v2.mjs", era, url)
    expect_v2(seen, era, is_http=True)


@pytest.mark.parametrize("era", ["legacy", "auto", MODERN])
def test_v2_stdio(script, stdio, era):
    expect_v2(script("sdk_v2.mjs", era, *stdio), era, is_http=False)


def test_v1_stdio_through_a_running_gateway(script, gateway):
    """`notegate mcp` on a data directory that is served hands every message to that gateway."""
    seen = script("sdk_v1.mjs", e2e.binary(), "mcp", "--data-dir", gateway.data_dir)
    expect_everything(seen, -32002, is_http=False)


def expect_v2(seen, era, is_http):
    modern = era != "legacy"
    expect_everything(seen, -32602, is_http)  # it maps the code of older servers, -32002, to this
    assert (seen["era"], seen["protocol"]) == (("modern", MODERN) if modern else ("legacy", "2025-11-25"))
    if modern:
        assert MODERN in seen["discovered"]


def expect_tasks(seen):
    assert seen["done"]["types"][0] == "taskCreated" and seen["done"]["types"][-1] == "result"
    assert seen["done"]["result"]["content"][0]["text"] == "Computed it in 0.2 seconds"
    assert (seen["status"], seen["again"]) == ("completed", "Computed it in 0.2 seconds")
    failed = seen["failed"]
    assert failed.get("error") or failed["result"]["isError"] is True, failed
    assert seen["cancelled"]["types"][-1] == "error" and "result" not in seen["cancelled"]
    assert seen["asked"]["result"]["content"][0]["text"] == "Would have deleted a.txt"
    assert seen["listed"] is True
    assert seen["unknown"]["code"] == -32602
    assert seen["errors"] == []


def test_v1_tasks_http(script, url):
    expect_tasks(script("tasks_v1.mjs", url))


def test_v1_tasks_stdio(script, stdio):
    expect_tasks(script("tasks_v1.mjs", *stdio))
