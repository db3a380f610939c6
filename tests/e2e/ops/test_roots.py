# SPDX-License-Identifier: MIT
"""The gateway's own files are no root and no file of a root; a root is the folder that has its name now."""

import os
import signal
import subprocess

import httpx
import pytest

from cli_support import Gateway, notegate

WAIT_S = 120


@pytest.fixture
def home(tmp_path):
    """A folder with the data directory where it is by default."""
    data = tmp_path / "home" / ".local" / "share" / "notegate"
    data.mkdir(parents=True, mode=0o700)
    return tmp_path / "home", data


def editor(gateway, path, command="view", **more):
    answer = httpx.post(f"{gateway.url}/v1/tools/fileEditor", json={"command": command, "path": str(path), **more},
                        timeout=WAIT_S, trust_env=False)
    return answer.status_code, answer.json() if answer.status_code != 200 else answer.text


def says(text, *parts):
    for part in parts:
        assert str(part) in text, (part, text)


@pytest.mark.parametrize("which,how", [("home", "holds"), ("data", "is"), ("data/sub", "lies in")])
def test_a_root_with_the_data_directory(home, which, how):
    folder, data = home
    (data / "sub").mkdir()
    root = {"home": folder, "data": data, "data/sub": data / "sub"}[which]
    words = ("--root", root, "--data-dir", data)
    for done in (notegate("serve", "--listen", "127.0.0.1:0", *words), notegate("check", *words)):
        assert done.returncode == 1
        says(done.stdout + done.stderr, f"The root {root} {how} the data directory {data}", "Choose a separate folder")


def test_a_root_with_the_configuration_or_the_key(tmp_path):
    conf, data = tmp_path / "conf", tmp_path / "data"
    conf.mkdir()
    key, file = conf / "tls.key", conf / "notegate.yaml"
    key.write_text("key\n")
    file.write_text("log.level: info\n")
    done = notegate("check", "--config", file, "--root", conf, "--data-dir", data)
    assert done.returncode == 1
    says(done.stdout + done.stderr, f"The root {conf} holds the configuration file {file}")
    done = notegate("check", "--set", f"tls.key={key}", "--root", conf, "--data-dir", data)
    assert done.returncode == 1
    says(done.stdout + done.stderr, f"The root {conf} holds the TLS key {key}")


def test_a_root_with_a_data_directory_that_is_not_made_yet(tmp_path):
    for data in (tmp_path / "data", tmp_path / "deep" / "data"):
        done = notegate("check", "--root", tmp_path, "--data-dir", data)
        assert done.returncode == 1
        says(done.stdout, f"failed root: The root {tmp_path} holds the data directory {data}", "Choose a separate folder")
    other = tmp_path / "other"
    other.mkdir()
    done = notegate("check", "--root", other, "--data-dir", tmp_path / "data", "--listen", "127.0.0.1:0")
    assert done.returncode == 0 and list(tmp_path.iterdir()) == [other], done.stdout


def test_a_reload_with_such_a_root(home, tmp_path):
    folder, data = home
    config, root = tmp_path / "notegate.yaml", tmp_path / "root"
    root.mkdir()
    config.write_text(f"roots: [{root}]\n")
    with Gateway(data, "--config", str(config)) as gateway:
        config.write_text(f"roots: [{folder}]\n")
        done = notegate("check", "--config", config, "--data-dir", data)
        assert done.returncode == 1
        says(done.stdout, f"The root {folder} holds the data directory {data}")
        gateway.process.send_signal(signal.SIGHUP)
        line = next(line for line in gateway.process.stderr if "nothing was changed" in line)
        says(line, f"The root {folder} holds the data directory {data}")
        assert gateway.stop()[0] == 0


class Attack:
    """A gateway with a root that has ways to the data directory, and keys of two agents."""

    def __init__(self, start, tmp_path):
        self.root = tmp_path / "root"
        self.root.mkdir()
        self.gateway = start(sets=["plugins=notebook,file_editor"], args=["--root", str(self.root)])
        self.data = self.gateway.data_dir
        self.alice, self.bob, self.eve = (self.add(*words) for words in (
            ("alice",), ("bob", "--role", "reader", "--space", "shared"), ("eve", "--space", "shared")))
        self.call(self.alice, "notebook", mode="create", name="private", newStr="alice's own")

    def add(self, *words):
        done = notegate("key", "add", *words, "--data-dir", self.data)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def post(self, path, key, body):
        return httpx.post(self.gateway.url + path, json=body, timeout=WAIT_S, trust_env=False, headers={
            "Authorization": f"Bearer {key}", "Accept": "application/json, text/event-stream"})

    def call(self, key, tool, **args):
        return self.post(f"/v1/tools/{tool}", key, args)

    def read(self, key, path):
        quoted = "".join(c if c.isalnum() or c in "-._~" else f"%{ord(c):02X}" for c in str(path))
        return self.post("/mcp", key, {"jsonrpc": "2.0", "id": 1, "method": "resources/read",
                                       "params": {"uri": f"notegate://shared/file/{quoted}"}}).json()

    def listed(self, key):
        answer = self.post("/mcp", key, {"jsonrpc": "2.0", "id": 1, "method": "resources/list", "params": {}}).json()
        return [item["uri"] for item in answer["result"]["resources"] if "/file/" in item["uri"]]

    def is_closed(self, path):
        for key in (self.bob, self.eve):
            assert self.read(key, path)["error"]["code"] == -32002
            assert self.call(key, "fileEditor", command="view", path=str(path)).json()["code"] == "PATH_OUTSIDE_ROOTS"
        moved = self.call(self.eve, "fileEditor", command="move", path=str(path), destination=str(self.root / "out"))
        assert moved.status_code == 403 and moved.json()["code"] == "PATH_OUTSIDE_ROOTS", moved.text
        assert not (self.root / "out").exists()


@pytest.fixture
def attack(start, tmp_path):
    return Attack(start, tmp_path)


def test_no_name_leads_to_what_is_the_gateways(attack):
    names = ("notegate.db", "notegate.db-wal", "mcp.key")
    (attack.root / "soft").symlink_to(attack.data)
    (attack.root / "sub").mkdir()
    for name in names:
        assert (attack.data / name).exists()
        os.link(attack.data / name, attack.root / "sub" / name)
        (attack.root / name).symlink_to(attack.data / name)
        attack.is_closed(attack.data / name)
        attack.is_closed(attack.root / "soft" / name)
        attack.is_closed(attack.root / name)
        attack.is_closed(attack.root / "sub" / name)
    assert attack.listed(attack.bob) == []
    assert attack.call(attack.alice, "notebook", mode="read", name="private").text.count("alice's own") == 1


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount")
def test_no_mount_leads_to_it(attack):
    for target in ("folder", "above"):
        (attack.root / target).mkdir()
    (attack.root / "file").write_text("")
    mounts = ((attack.data, "folder"), (attack.data.parent, "above"), (attack.data / "notegate.db", "file"))
    for source, target in mounts:
        if subprocess.run(["mount", "--bind", source, attack.root / target], check=False).returncode != 0:
            pytest.skip("mounting is not permitted here")
    try:
        attack.is_closed(attack.root / "folder" / "mcp.key")
        attack.is_closed(attack.root / "above" / attack.data.name / "notegate.db-wal")
        attack.is_closed(attack.root / "file")
        assert [item for item in attack.listed(attack.bob) if "notegate.db" in item or "mcp.key" in item] == []
    finally:
        for _, target in reversed(mounts):
            subprocess.run(["umount", "-l", attack.root / target], check=False)


def test_a_root_that_is_replaced(tmp_path):
    root, old = tmp_path / "root", tmp_path / "root.old"
    root.mkdir()
    config = tmp_path / "notegate.yaml"
    config.write_text(f"roots: [{root}]\n")
    with Gateway(tmp_path / "data", "--config", str(config), "--set", "plugins=notebook,file_editor") as gateway:
        assert editor(gateway, root / "a.txt", "create", file_text="one\n")[0] == 200
        root.rename(old)
        status, body = editor(gateway, root / "b.txt", "create", file_text="two\n")
        assert status == 503 and f"The root {root} is not there any more" in body["message"], body
        assert not root.exists() and not (old / "b.txt").exists()
        root.mkdir()
        (root / "new.txt").write_text("new\n")
        assert editor(gateway, root / "b.txt", "create", file_text="two\n")[0] == 200
        assert (root / "b.txt").read_text() == "two\n" and not (old / "b.txt").exists()
        assert "new" in editor(gateway, root / "new.txt")[1]
        assert editor(gateway, root / "a.txt")[0] == 404
        # A reload looks at what did not change, too: a named root that is missing is refused.
        root.rename(tmp_path / "root.older")
        gateway.process.send_signal(signal.SIGHUP)
        line = next(line for line in gateway.process.stderr if "nothing was changed" in line)
        says(line, root)
        root.mkdir()
        assert editor(gateway, root / "c.txt", "create", file_text="three\n")[0] == 200
        assert (root / "c.txt").read_text() == "three\n"
        assert gateway.stop()[0] == 0


def test_a_move_between_spaces_tells_no_other_place(start, tmp_path):
    team, shared = tmp_path / "secret-team", tmp_path / "shared"
    team.mkdir()
    shared.mkdir()
    gateway = start(sets=["plugins=notebook,file_editor"],
                    args=["--root", f"team:{team}", "--root", str(shared)])
    keys = {}
    for name, words in (("alice", ("--space", "team", "--space", "shared")), ("bob", ("--space", "shared"))):
        done = notegate("key", "add", name, *words, "--data-dir", gateway.data_dir)
        assert done.returncode == 0, done.stderr
        keys[name] = {"Authorization": f"Bearer {done.stdout.strip()}"}

    def call(name, path, command, **more):
        return httpx.post(f"{gateway.url}/v1/tools/fileEditor", headers=keys[name], timeout=WAIT_S, trust_env=False,
                          json={"command": command, "path": str(path), **more})

    def events(name, last):
        seen = []
        with httpx.stream("GET", f"{gateway.url}/v1/events?since=0", headers=keys[name], timeout=WAIT_S,
                          trust_env=False) as stream:
            for line in stream.iter_lines():
                seen += [line] if line.startswith("data:") else []
                if line.startswith("data:") and last in line:
                    return "\n".join(seen)
        raise AssertionError(seen)

    assert call("alice", team / "hidden-name", "create", file_text="x").status_code == 200
    assert call("alice", team / "hidden-name", "move", destination=str(shared / "open")).status_code == 200
    refused = call("bob", shared / "open", "undo_edit")
    assert refused.status_code == 403 and refused.json()["code"] == "FORBIDDEN", refused.text
    assert "moved here from a place" in refused.text
    assert call("bob", shared / "marker", "create", file_text="x").status_code == 200
    told = events("bob", "marker")
    assert "moved" in told and str(shared / "open") in told
    for text in (told, refused.text):
        assert "hidden-name" not in text and "secret-team" not in text
    done = call("alice", shared / "open", "undo_edit")
    assert done.status_code == 200 and str(team / "hidden-name") in done.text
    assert call("alice", shared / "last", "create", file_text="x").status_code == 200
    told = events("bob", str(shared / "last"))
    assert "hidden-name" not in told and "secret-team" not in told
    # The same in the other direction: a caller that sees only the old place does not learn the new one.
    assert call("alice", shared / "open2", "create", file_text="x").status_code == 200
    assert call("alice", shared / "open2", "move", destination=str(team / "hidden-name-2")).status_code == 200
    assert call("alice", shared / "end", "create", file_text="x").status_code == 200
    assert "hidden-name" not in events("bob", str(shared / "end"))
