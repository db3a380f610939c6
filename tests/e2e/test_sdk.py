# SPDX-License-Identifier: MIT
"""A plugin from outside the tree: built against the installed SDK with pkg-config and cc, then called over REST and MCP."""

import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import threading
import urllib.error
import urllib.request

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BINARY = pathlib.Path(os.environ.get("NOTEGATE_TEST_BINARY", str(ROOT / "build" / "dev" / "bin" / "notegate")))
BUILD = BINARY.resolve().parents[1]
TIMEOUT = 60
TOO_LONG = "a name that is much too long to be greeted, by anybody"
TOO_LONG_SENTENCE = f"`name` has {len(TOO_LONG)} bytes, at most 40 are allowed"
MCP_VERSION = "2025-11-25"


def run(*command, **more):
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=TIMEOUT, **more).stdout


@pytest.fixture(scope="module")
def module(tmp_path_factory):
    """hello.so, as an author builds it."""
    for tool in ("cc", "pkg-config", "cmake"):
        if shutil.which(tool) is None:
            pytest.skip(f"{tool} is not installed")
    folder = tmp_path_factory.mktemp("sdk")
    prefix = folder / "prefix"
    run("cmake", "--install", str(BUILD), "--prefix", str(prefix))
    found = next(prefix.rglob("notegate.pc"))
    flags = run(
        "pkg-config",
        f"--define-variable=prefix={prefix}",
        "--cflags",
        "notegate",
        env={**os.environ, "PKG_CONFIG_PATH": str(found.parent)},
    )
    built = folder / "hello.so"
    source = ROOT / "tests" / "sdk" / "hello" / "hello.c"
    warnings = ["-Wall", "-Wextra", "-Werror"]
    run("cc", *warnings, "-shared", "-fPIC", *shlex.split(flags), "-o", str(built), str(source))
    return built


@pytest.fixture
def gateway(module, tmp_path):
    """The address of a gateway that serves the plugin beside its own."""
    process = subprocess.Popen(
        [BINARY, "serve", "--listen", "127.0.0.1:0", "--data-dir", tmp_path / "data"]
        + ["--set", f"plugins=+{module}", "--set", "hello.greeting=Servus"],
        stdout=subprocess.PIPE,
        cwd=tmp_path,
        text=True,
    )
    lines = []
    reader = threading.Thread(target=lambda: lines.append(process.stdout.readline()), daemon=True)
    reader.start()
    reader.join(TIMEOUT)
    found = re.search(r"http://\S+", lines[0] if lines else "")
    if found is None:
        process.kill()
        process.wait(TIMEOUT)
        pytest.fail(f"the gateway did not start: {lines!r}")
    yield found.group(0)
    process.terminate()
    assert process.wait(TIMEOUT) == 0
    process.stdout.close()


def request(url, body=None, headers=None):
    """Status, headers, and the answer: JSON, also out of a stream of one event."""
    data = None if body is None else json.dumps(body).encode()
    sent = urllib.request.Request(url, data=data, headers={"Content-Type": "application/json", **(headers or {})})
    try:
        with urllib.request.urlopen(sent, timeout=TIMEOUT) as answer:
            status, fields, text = answer.status, answer.headers, answer.read().decode()
    except urllib.error.HTTPError as error:
        status, fields, text = error.code, error.headers, error.read().decode()
    if text.startswith(("event:", "data:", "id:", ":")):
        text = next(line[5:] for line in reversed(text.splitlines()) if line.startswith("data:") and line[5:].strip())
    return status, fields, json.loads(text) if text else None


class Mcp:
    """A session of the era that has sessions."""

    def __init__(self, url):
        self.url = url + "/mcp"
        self.headers = {"Accept": "application/json, text/event-stream"}
        self.number = 0
        client = {"protocolVersion": MCP_VERSION, "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
        status, fields, answer = self.post("initialize", client)
        assert status == 200, answer
        if fields["Mcp-Session-Id"]:
            self.headers["Mcp-Session-Id"] = fields["Mcp-Session-Id"]
        self.headers["MCP-Protocol-Version"] = answer["result"]["protocolVersion"]
        request(self.url, {"jsonrpc": "2.0", "method": "notifications/initialized"}, self.headers)

    def post(self, method, params):
        self.number += 1
        body = {"jsonrpc": "2.0", "id": self.number, "method": method, "params": params}
        return request(self.url, body, self.headers)

    def call(self, name, arguments):
        status, _, answer = self.post("tools/call", {"name": name, "arguments": arguments})
        assert status == 200, answer
        return answer["result"]


def test_rest(gateway):
    status, _, answer = request(gateway + "/v1/tools/hello", {"name": "you"})
    assert (status, answer["result"], answer["revision"]) == (200, "Servus, you! (1)", 1)
    status, _, answer = request(gateway + "/v1/tools/hello", {"name": "you"})
    assert (status, answer["result"], answer["revision"]) == (200, "Servus, you! (2)", 2)


def test_rest_errors(gateway):
    status, _, answer = request(gateway + "/v1/tools/hello", {"name": TOO_LONG})
    assert status == 422
    assert answer["code"] == "HELLO_TOO_LONG"
    assert answer["message"] == TOO_LONG_SENTENCE
    assert answer["hint"] == "Greet by the first name."
    status, _, answer = request(gateway + "/v1/tools/hello", {})
    assert (status, answer["code"]) == (400, "INVALID_INPUT")


def test_listed_once(gateway):
    status, _, answer = request(gateway + "/v1/tools")
    assert status == 200
    names = [tool["name"] for tool in answer["tools"]]
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
    shown = run(BINARY, "check", "--data-dir", tmp_path / "data", "--set", f"plugins={module}")
    assert "hello 1.0.0" in shown
    shown = run(BINARY, "check", "--help-config", "--set", f"plugins={module}")
    assert "hello.greeting" in shown
