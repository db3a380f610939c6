# SPDX-License-Identifier: MIT
"""A plugin from outside the tree: built against the installed SDK with pkg-config and cc, then called over REST and MCP."""

import json
import os
import pathlib
import shlex
import shutil
import subprocess

import pytest
from conftest import Gateway, binary, environment

ROOT = pathlib.Path(__file__).resolve().parents[3]
TIMEOUT = 300
TOO_LONG = "a name that is much too long to be greeted, by anybody"
TOO_LONG_SENTENCE = f"`name` has {len(TOO_LONG)} bytes, at most 40 are allowed"
MCP_VERSION = "2025-11-25"


def run(*command, **more):
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=TIMEOUT, **more).stdout


@pytest.fixture(scope="module", name="build")
def from_outside(tmp_path_factory):
    """Builds an example as an author does; its module."""
    for tool in ("cc", "pkg-config", "cmake"):
        if shutil.which(tool) is None:
            pytest.skip(f"{tool} is not installed")
    folder = tmp_path_factory.mktemp("sdk")
    prefix = folder / "prefix"
    run("cmake", "--install", str(pathlib.Path(binary()).resolve().parents[1]), "--prefix", str(prefix))
    found = next(prefix.rglob("notegate.pc"))
    flags = run(
        "pkg-config",
        f"--define-variable=prefix={prefix}",
        "--cflags",
        "notegate",
        env={**os.environ, "PKG_CONFIG_PATH": str(found.parent)},
    )

    def build_example(name):
        built = folder / f"{name}.so"
        source = ROOT / "tests" / "sdk" / name / f"{name}.c"
        warnings = ["-Wall", "-Wextra", "-Werror"]
        run("cc", *warnings, "-shared", "-fPIC", *shlex.split(flags), "-o", str(built), str(source))
        return built

    return build_example


@pytest.fixture(scope="module")
def module(build):
    return build("hello")


@pytest.fixture
def gateway(module, tmp_path):
    """A gateway that serves the plugin beside its own."""
    running = Gateway(tmp_path / "data", sets=[f"plugins=+{module}", "hello.greeting=Servus"])
    yield running
    assert running.stop() == 0


def answer_of(response):
    """JSON, also out of a stream of events."""
    if response.headers.get("content-type", "").startswith("text/event-stream"):
        data = [line[5:] for line in response.text.splitlines() if line.startswith("data:") and line[5:].strip()]
        return json.loads(data[-1])
    return response.json()


class Mcp:
    """A session of the handshake protocol."""

    def __init__(self, gateway):
        self.client = gateway.client
        self.headers = {"Accept": "application/json, text/event-stream"}
        self.number = 0
        client = {"protocolVersion": MCP_VERSION, "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
        response = self.post("initialize", client)
        if "Mcp-Session-Id" in response.headers:
            self.headers["Mcp-Session-Id"] = response.headers["Mcp-Session-Id"]
        self.headers["MCP-Protocol-Version"] = answer_of(response)["result"]["protocolVersion"]
        note = {"jsonrpc": "2.0", "method": "notifications/initialized"}
        assert self.client.post("/mcp", json=note, headers=self.headers).status_code == 202

    def post(self, method, params):
        self.number += 1
        body = {"jsonrpc": "2.0", "id": self.number, "method": method, "params": params}
        response = self.client.post("/mcp", json=body, headers=self.headers)
        assert response.status_code == 200, response.text
        return response

    def call(self, name, arguments):
        return answer_of(self.post("tools/call", {"name": name, "arguments": arguments}))["result"]


def test_rest(gateway):
    for times in (1, 2):
        response = gateway.call("hello", {"name": "you"})
        assert response.status_code == 200
        assert response.json()["result"] == f"Servus, you! ({times})"
        assert response.json()["revision"] == times


def test_rest_errors(gateway):
    response = gateway.call("hello", {"name": TOO_LONG})
    assert response.status_code == 422
    answer = response.json()
    assert answer["code"] == "HELLO_TOO_LONG"
    assert answer["message"] == TOO_LONG_SENTENCE
    assert answer["hint"] == "Greet by the first name."
    response = gateway.call("hello")
    assert (response.status_code, response.json()["code"]) == (400, "INVALID_INPUT")


def test_listed_once(gateway):
    names = [tool["name"] for tool in gateway.client.get("/v1/tools").json()["tools"]]
    assert names.count("hello") == 1
    assert "notebook" in names


def test_mcp(gateway):
    session = Mcp(gateway)
    result = session.call("hello", {"name": "Zoë"})
    assert result.get("isError", False) is False
    assert result["content"][0]["text"] == "Servus, Zoë! (1)"
    result = session.call("hello", {"name": TOO_LONG})
    assert result["isError"] is True
    assert TOO_LONG_SENTENCE in result["content"][0]["text"]
    assert result["_meta"]["notegate/error"]["code"] == "HELLO_TOO_LONG"


def test_check(module, tmp_path):
    shown = run(binary(), "check", "--data-dir", tmp_path / "data", "--set", f"plugins={module}", env=environment())
    assert "hello 1.0.0" in shown
    shown = run(binary(), "check", "--help-config", "--set", f"plugins={module}", env=environment())
    assert "hello.greeting" in shown


# ---- glossary, which the guide quotes ----

TERMS = 120


def test_cases_of_the_glossary(build):
    """Its change, query and search."""
    cases = ROOT / "tests" / "sdk" / "glossary" / "cases.json"
    shown = run(binary(), "test-plugin", str(build("glossary")), str(cases), env=environment())
    assert shown.splitlines()[-1] == f"{len(json.loads(cases.read_text()))} cases, 0 failed"


def test_a_list_of_resources_from_a_query(build, tmp_path):
    """All pages of it, and each document."""
    running = Gateway(tmp_path / "data", sets=[f"plugins={build('glossary')}"])
    for number in range(TERMS):
        made = running.call("glossary_set", {"term": f"t{number:03}", "meaning": f"number {number}"})
        assert made.status_code == 200, made.text
    session = Mcp(running)
    found, params = [], {}
    while params is not None:
        page = answer_of(session.post("resources/list", params))["result"]
        found += page["resources"]
        params = {"cursor": page["nextCursor"]} if "nextCursor" in page else None
    assert [entry["name"] for entry in found] == [f"t{number:03}" for number in range(TERMS)]
    read = answer_of(session.post("resources/read", {"uri": found[7]["uri"]}))["result"]
    assert json.loads(read["contents"][0]["text"]) == {"term": "t007", "meaning": "number 7"}
    assert running.stop() == 0


def test_its_kind_is_searched_by_the_tool_search(build, tmp_path):
    """Without more work than its `find`, over REST and MCP, and each hit can be read."""
    running = Gateway(tmp_path / "data", sets=[f"plugins=search,{build('glossary')}"])
    running.call("glossary_set", {"term": "Gateway", "meaning": "A program that others call through it."})
    running.call("glossary_set", {"term": "call", "meaning": "What goes through a gateway."})
    running.call("glossary_set", {"term": "other", "meaning": "Nothing of that."})
    found = running.call("search", {"query": "gateway"}).json()["result"]
    assert [(hit["kind"], hit["title"]) for hit in found["hits"]] == [("term", "call")]
    assert (found["total"], found["complete"]) == (1, True) and "gateway" in found["hits"][0]["excerpt"]
    session = Mcp(running)
    same = session.call("search", {"query": "gateway", "kinds": ["term"]})["structuredContent"]
    assert same["hits"] == found["hits"]
    read = answer_of(session.post("resources/read", {"uri": found["hits"][0]["uri"]}))["result"]
    assert json.loads(read["contents"][0]["text"])["term"] == "call"
    refused = running.call("search", {"query": "gateway", "kinds": ["terms"]})
    assert refused.status_code == 400 and '"terms"' in refused.json()["message"]
    assert running.stop() == 0
