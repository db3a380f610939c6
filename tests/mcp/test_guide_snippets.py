# SPDX-License-Identifier: MIT
"""The snippets of api/guides/clients.md that run on Node, as they stand there, against a gateway that wants keys."""

import json
import re
import shlex

import pytest

from conftest import SOURCE, e2e

GUIDE = (SOURCE / "api" / "guides" / "clients.md").read_text()


@pytest.fixture
def keyed(tmp_path):
    """A gateway with one key, and that key."""
    running = e2e.Gateway(tmp_path / "data")
    key = running.client.post("/v1/keys", json={"agent": "ada"}).json()["key"]
    made = running.client.post("/v1/tools/notebook", json={"mode": "create", "name": "guide", "newStr": "x"},
                               headers={"Authorization": f"Bearer {key}"})
    assert made.status_code == 200
    yield running, key
    assert running.stop() == 0


def blocks(kind):
    return re.findall(rf"^```{kind}\n(.*?)^```$", GUIDE, re.M | re.S)


@pytest.mark.parametrize("package", ["@modelcontextprotocol/client", "@modelcontextprotocol/sdk/client/index.js"])
def test_typescript(keyed, node, tmp_path, package):
    gateway, key = keyed
    text = next(text for text in blocks("js") if f'from "{package}"' in text)
    (tmp_path / "node_modules").symlink_to(node.modules)
    (tmp_path / "snippet.mjs").write_text(text.replace("127.0.0.1:8420", f"127.0.0.1:{gateway.port}"))
    code, out, errors = node.run(tmp_path / "snippet.mjs", cwd=tmp_path, extra={"NOTEGATE_KEY": key})
    assert code == 0, out + errors
    assert "guide" in out


def test_inspector(keyed, node, tmp_path):
    gateway, key = keyed
    text = next(text for text in blocks("sh") if text.startswith("npx @modelcontextprotocol/inspector"))
    text = text.replace("127.0.0.1:8420", f"127.0.0.1:{gateway.port}").replace("$NOTEGATE_KEY", key).replace("\\\n", "")
    program = node.modules / "@modelcontextprotocol" / "inspector" / "clients" / "launcher" / "build" / "index.js"
    home = tmp_path / "home"
    home.mkdir()
    # With --strict it also judges the schemas: what some client would not take is an error.
    for more in ([], ["--strict"]):
        code, out, errors = node.run(program, *shlex.split(text)[2:], *more, cwd=tmp_path, extra={"HOME": str(home)})
        assert code == 0, out + errors
        assert {"notebook", "fileEditor"} <= {tool["name"] for tool in json.loads(out)["tools"]}
        assert "0 errors" in errors, errors
