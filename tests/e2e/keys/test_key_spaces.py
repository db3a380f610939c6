# SPDX-License-Identifier: MIT
"""The spaces of a key: the first is the default, and those that nothing uses yet are named."""

import json

import pytest
from conftest import Gateway
from keys_support import bearer, notegate

LINE = "space `{}` is new: no documents, no other key"


def made(data, name, *options):
    """A new key, and the lines that name new spaces."""
    done = notegate(data, "key", "add", name, *options)
    assert done.returncode == 0, done.stderr
    return done, [line for line in done.stderr.splitlines() if " is new: " in line]


@pytest.mark.parametrize("beside", [False, True])
def test_the_command_names_a_new_space(tmp_path, beside):
    data = tmp_path / "data"
    root = made(data, "root", "--role", "admin")[0].stdout.strip()
    gateway = Gateway(data) if beside else None
    assert made(data, "ada", "--space", "team")[1] == [LINE.format("team")]
    done, lines = made(data, "bob", "--space", "team", "--space", "taem")
    assert lines == [LINE.format("taem")] and len(done.stdout.splitlines()) == 1
    done, lines = made(data, "eve", "--space", "other", "--json")
    assert lines == [LINE.format("other")] and json.loads(done.stdout)["new_spaces"] == ["other"]
    # Its own space and `shared` exist for every agent.
    assert made(data, "dan")[1] == []
    assert made(data, "kim", "--space", "~kim", "--space", "shared")[1] == []
    changed = notegate(data, "key", "set", "bob", "--space", "team", "--space", "tame")
    assert changed.returncode == 0 and changed.stderr.splitlines() == [LINE.format("tame")]
    assert notegate(data, "key", "set", "bob", "--mode", "ask").stderr == "", "spaces that stay are not told again"
    if gateway:
        listed = gateway.client.get("/v1/keys", headers=bearer(root)).json()["keys"]
        assert not [key for key in listed if "new_spaces" in key], "only the answer that made it"
        assert gateway.stop() == 0


def test_rest_lists_new_spaces(start, tmp_path):
    folder = tmp_path / "folder"
    folder.mkdir()
    gateway = start(sets=[f"roots=filed:{folder}"])
    write = {"mode": "create", "name": "n", "newStr": "text"}
    assert gateway.call("notebook", write, {"X-Notegate-Space": "written"}).status_code == 200

    def add(agent, *spaces, **headers):
        answer = gateway.client.post("/v1/keys", json={"agent": agent, "role": "admin", "spaces": spaces},
                                     headers=headers)
        assert answer.status_code == 201, answer.text
        return answer.json()

    first = add("root", "written", "filed", "new", "~other")
    assert first["new_spaces"] == ["new", "~other"]
    key = bearer(first["key"])
    assert "new_spaces" not in add("ada", "new", **key)
    assert add("bob", "newer", **key)["new_spaces"] == ["newer"]
    # A revoked key has its spaces no more.
    listed = gateway.client.get("/v1/keys?name=bob", headers=key).json()["keys"]
    assert gateway.client.delete(f"/v1/keys/{listed[0]['id']}", headers=key).status_code == 200
    assert add("bob", "newer", **key)["new_spaces"] == ["newer"]
    refused = gateway.client.post("/v1/keys", json={"agent": "x", "spaces": ["not a space"]}, headers=key)
    assert refused.status_code == 400 and "new_spaces" not in refused.text


def test_the_first_space_is_the_default_of_every_tool(start):
    gateway = start()
    made = gateway.client.post("/v1/keys", json={"agent": "root", "role": "admin"})
    admin = bearer(made.json()["key"])

    def add(agent, *spaces):
        body = {"agent": agent, "spaces": spaces} if spaces else {"agent": agent}
        answer = gateway.client.post("/v1/keys", json=body, headers=admin)
        assert answer.status_code == 201, answer.text
        return answer.json()["id"], bearer(answer.json()["key"])

    def change(ident, *spaces):
        answer = gateway.client.patch(f"/v1/keys/{ident}", json={"spaces": spaces}, headers=admin)
        assert answer.status_code == 200, answer.text

    def write(key, name):
        """Makes a notebook and an entry of this name, without a space."""
        for tool, arguments in (
            ("notebook", {"mode": "create", "name": name, "newStr": "text"}),
            ("notebook_create", {"collection": "pages", "title": name, "content": "text"}),
        ):
            answer = gateway.call(tool, arguments, key)
            assert answer.status_code == 200, answer.text

    def where(name):
        """The spaces that have the notebook, and those that have the entry."""
        found = {"notebook": [], "notebook_list": []}
        for space in ("team", "shared", "~ada", "~kim"):
            headers = {**admin, "X-Notegate-Space": space}
            for tool, arguments in (("notebook", {"mode": "list"}), ("notebook_list", {"collection": "pages"})):
                answer = gateway.call(tool, arguments, headers)
                assert answer.status_code == 200, answer.text
                found[tool] += [space] if name in answer.text else []
        return found["notebook"], found["notebook_list"]

    write(add("kim")[1], "plain")
    assert where("plain") == (["~kim"], ["shared"])
    ident, ada = add("ada", "team", "~ada", "shared")
    write(ada, "first")
    assert where("first") == (["team"], ["team"])
    assert gateway.client.get("/v1/me", headers=ada).json()["default_space"] == "team"
    change(ident, "shared", "team")
    write(ada, "second")
    assert where("second") == (["shared"], ["shared"])
    change(ident, "~ada", "shared")
    write(ada, "third")
    assert where("third") == (["~ada"], ["~ada"])
    change(ident)
    write(ada, "fourth")
    assert where("fourth") == (["~ada"], ["shared"])


def test_the_command_says_what_a_new_key_changes(tmp_path):
    data = tmp_path / "data"
    first, others = "This is the first key", "notegate key list` shows them"
    assert first in made(data, "ada")[0].stderr
    done = made(data, "ada", "--role", "reader")[0]
    assert "ada has 2 keys now" in done.stderr and first not in done.stderr
    done = made(data, "bob")[0]
    assert first not in done.stderr and others not in done.stderr
    assert others not in made(data, "ada", "--json")[0].stderr
    assert notegate(data, "key", "revoke", "ada").returncode == 0
    assert others not in made(data, "ada")[0].stderr, "revoked ones are none"
