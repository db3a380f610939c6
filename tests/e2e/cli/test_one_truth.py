# SPDX-License-Identifier: MIT
"""Commands beside a gateway are about that one; without one, about the one that would start, and they make no store."""

import json
import os
import re
import signal
import socket
import subprocess
import tempfile
import threading

import pytest

from cli_support import BINARY, Gateway, environment, notegate, wait_for

PLUGINS = "notebook,file_editor,cells,opennotes,agent_notebook"
USER = 1234  # an ordinary user, where the tests run as root


@pytest.fixture(name="data")
def fixture_data(tmp_path):
    return tmp_path / "data"


@pytest.fixture(name="own")
def fixture_own(tmp_path):
    """The environment of a user who has never run notegate, with all plugins."""
    home, temporary = tmp_path / "home", tmp_path / "temporary"
    home.mkdir()
    temporary.mkdir()
    more = {"NOTEGATE_PLUGINS": PLUGINS, "HOME": str(home), "XDG_CONFIG_HOME": str(home / "config"),
            "XDG_DATA_HOME": str(home / "share"), "TMPDIR": str(temporary)}
    if os.geteuid() == 0:
        more["NOTEGATE_DATA_DIR"] = str(home / "share" / "notegate")  # root's is the machine's, whoever's home it is
    return environment(**more)


def tools(*words, env):
    done = notegate("tools", *words, env=env)
    assert done.returncode == 0, done.stderr
    return [tool["name"] for tool in json.loads(done.stdout)["tools"]], done.stderr


def differences(*words, code=0):
    """Of each key, what `check` says about it."""
    done = notegate("check", *words)
    assert done.returncode == code, done.stdout
    return dict(re.findall(r"^ok     difference: (\S+): (.*)$", done.stdout, re.M))


# ---- without a gateway ----


@pytest.mark.parametrize("words, code", [
    (("tools",), 0), (("tools", "notebook"), 0), (("tools", "--format", "openai"), 0),
    (("call", "notebook", "--help"), 0), (("check", "--help-config"), 0),
    (("check", "--listen", "127.0.0.1:0"), 0), (("check", "--json", "--listen", "127.0.0.1:0"), 0),
    (("key", "list"), 1), (("key", "revoke", "ada"), 1), (("verify",), 1)])
def test_looking_makes_nothing(own, words, code):
    done = notegate(*words, env=own)
    assert done.returncode == code, (done.stdout, done.stderr)
    for place in ("HOME", "TMPDIR"):
        assert os.listdir(own[place]) == [], place


def test_looking_adds_nothing_to_a_folder(own, tmp_path):
    """Also where the data directory is there, without a store."""
    empty = tmp_path / "empty"
    empty.mkdir(mode=0o700)
    for words in (("tools",), ("check", "--listen", "127.0.0.1:0")):
        assert notegate(*words, "--data-dir", empty, env=own).returncode == 0
    assert os.listdir(empty) == os.listdir(own["TMPDIR"]) == []


@pytest.mark.parametrize("words, code, says", [
    (("notebook", "mode=list"), 0, "Available notebooks"), (("notebook", '{"mode": "list"}'), 0, "Available notebooks"),
    (("notebook_list", "collection=pages"), 0, '"total":0'), (("fileEditor", "command=view", "path={file}", "--root", "{root}"), 0, "hello"),
    (("nosuchtool", "a=b"), 1, "UNKNOWN_TOOL")])
def test_a_call_that_reads_makes_nothing(own, tmp_path, words, code, says):
    data, root = tmp_path / "data", tmp_path / "root"
    root.mkdir()
    (root / "file").write_text("hello\n")
    words = [word.replace("{file}", str(root / "file")).replace("{root}", str(root)) for word in words]
    done = notegate("call", *words, "--data-dir", data, env=own)
    assert done.returncode == code and says in done.stdout + done.stderr, (done.stdout, done.stderr)
    assert not data.exists() and os.listdir(own["HOME"]) == os.listdir(own["TMPDIR"]) == []


def test_a_call_makes_a_store_where_it_is_named(own):
    """By an ordinary user: root's default data directory is the machine's."""
    env = {name: value for name, value in own.items() if name != "NOTEGATE_DATA_DIR"}
    user = {"user": USER, "group": USER, "extra_groups": []} if os.geteuid() == 0 else {}

    def call(*words):
        return subprocess.run([BINARY, "call", "notebook", *words, "--set", "listen=127.0.0.1:0"], env=env, cwd="/",
                              capture_output=True, text=True, timeout=120, check=False, **user)

    with tempfile.TemporaryDirectory(dir="/tmp") as home:  # pytest's folders are root's alone
        if user:
            os.chown(home, USER, USER)
        env |= {"HOME": home, "XDG_CONFIG_HOME": f"{home}/config", "XDG_DATA_HOME": f"{home}/share", "TMPDIR": home}
        write = ("mode=create", "name=plan", "newStr=text")
        done = call(*write)
        assert done.returncode == 1 and done.stdout == "", done.stdout
        assert f"there is no store in {home}/share/notegate yet" in done.stderr and "`notegate serve`" in done.stderr
        assert os.listdir(home) == []
        done = call(*write, "--data-dir", f"{home}/named")
        assert done.returncode == 0, done.stderr
        assert "plan" in call("mode=list", "--data-dir", f"{home}/named").stdout
        assert "plan" not in call("mode=list").stdout
        assert os.listdir(home) == ["named"]


def test_tools_are_those_of_the_gateway(own, tmp_path):
    """Nothing to work on: neither an attached notebook nor a folder of notes."""
    data = tmp_path / "data"
    before, told = tools("--data-dir", data, env=own)
    assert told == "" and not data.exists()
    assert "notebook" in before and "createNotebook" in before
    assert "addNotebookCell" not in before and not any(name.startswith("opennotes_") for name in before)
    with Gateway(data, "--set", f"plugins={PLUGINS}"):
        assert tools("--data-dir", data, env=own)[0] == before
    assert tools("--data-dir", data, env=own)[0] == before, "with its store"
    # A tool that is not listed now may be called, so it can be shown.
    shown = notegate("tools", "addNotebookCell", "--data-dir", tmp_path / "other", env=own)
    assert shown.returncode == 0 and "addNotebookCell" in shown.stdout


def test_tools_of_a_folder_of_notes(own, tmp_path):
    notes, data = tmp_path / "notes", tmp_path / "data"
    notes.mkdir()
    (notes / "a.md").write_text("# A\n")
    config = f"opennotes.notebooks={notes}"
    before, told = tools("--data-dir", data, "--set", config, env=own)
    assert told == "" and "opennotes_search" in before and not data.exists()
    with Gateway(data, "--set", f"plugins={PLUGINS}", "--set", config):
        assert tools("--data-dir", data, env=own)[0] == before


def test_tools_of_a_gateway_that_does_not_start(own, tmp_path):
    done = notegate("tools", "--root", tmp_path / "missing", env=own)
    assert done.returncode == 0 and "addNotebookCell" in done.stdout
    assert "does not start; its modules alone are asked: " in done.stderr
    assert str(tmp_path / "missing") in done.stderr
    assert os.listdir(own["HOME"]) == os.listdir(own["TMPDIR"]) == []


def test_check_without_a_store(own, tmp_path):
    data = tmp_path / "above" / "data"
    done = notegate("check", "--data-dir", data, "--listen", "127.0.0.1:0", env=own)
    assert done.returncode == 0, done.stdout
    for line in (f"data directory: {data} does not exist yet", f"root: {data}/files does not exist yet",
                 "documents: answers", "gateway: it starts, tried with an empty data directory, which is gone"):
        assert f"ok     {line}\n" in done.stdout
    report = json.loads(notegate("check", "--json", "--data-dir", data, "--listen", "127.0.0.1:0", env=own).stdout)
    assert report["ok"] is True and {"check": "documents", "ok": True, "message": "answers"} in report["checks"]
    report = json.loads(notegate("check", "--json", "--data-dir", data, "--listen", "0.0.0.0:0", env=own).stdout)
    assert report["ok"] is False and any(f"key add NAME --data-dir {data}`" in one["message"] for one in report["checks"] if not one["ok"])
    file = tmp_path / "file"
    file.write_text("")
    done = notegate("check", "--data-dir", file / "data", env=own)
    assert done.returncode == 1 and f"failed data directory: {file}/data" in done.stdout, done.stdout


# ---- beside a gateway ----


def test_check_compares(data):
    with Gateway(data, "--set", "limits.body=8192KiB", "--set", "history.keep=0"):
        told = differences("--data-dir", data, "--set", "limits.result=16MiB", "--set", "history.keep=0")
        assert told["limits.body"] == "the gateway runs with 8MiB (command line), this check with 4MiB (default)"
        assert told["limits.result"] == "the gateway runs with 8MiB (default), this check with 16MiB (command line)"
        assert told.keys() == {"listen", "limits.body", "limits.result"}
        same = notegate("check", "--data-dir", data, "--set", "history.keep=0", "--listen", "127.0.0.1:0",
                        "--set", "limits.body=8MiB")
        assert same.returncode == 0 and "difference" not in same.stdout
        assert "ok     values: the running gateway has those of this check; secrets are not compared\n" in same.stdout
        other = differences("--data-dir", data, "--set", "plugins=notebook,cells", "--set", "cells.max_kernels=2")
        there = "the gateway runs with"
        assert other["cells.max_kernels"] == f"{there} no value (unknown key), this check with 2 (command line)"
        assert other["plugins"] == f"{there} notebook (environment), this check with notebook, cells (command line)"
        report = json.loads(notegate("check", "--json", "--data-dir", data).stdout)
        told = [one for one in report["checks"] if one["check"] == "difference"]
        assert report["ok"] is True and any(one["message"].startswith("limits.body: ") for one in told)


def test_check_after_a_reload(data, tmp_path):
    file = tmp_path / "notegate.yaml"
    file.write_text("limits.result: 1MiB\nlisten: 127.0.0.1:0\n")
    words = ("--data-dir", data, "--config", file)
    with Gateway(data, "--config", str(file)) as gateway:
        file.write_text("limits.result: 2MiB\ntimezone: Europe/Berlin\nlisten: 127.0.0.1:0\n")
        told = differences(*words)
        assert told["limits.result"] == "the gateway runs with 1MiB (file), this check with 2MiB (file)"
        gateway.process.send_signal(signal.SIGHUP)
        wait_for(lambda: "limits.result" not in differences(*words), "the reload")
        # A value that needs a restart.
        told = "the gateway runs with no value (default), this check with Europe/Berlin (file)"
        assert differences(*words) == {"timezone": told}


class Between(threading.Thread):
    """A line to the socket of a gateway, which writes `new` for `old` in what is asked."""

    def __init__(self, data, old, new):
        super().__init__(daemon=True)
        self.old, self.new = old, new
        self.there = str(data / "notegate.sock")
        self.moved = f"{self.there}.moved"
        os.rename(self.there, self.moved)
        self.server = socket.socket(socket.AF_UNIX)
        self.server.bind(self.there)
        self.server.listen()
        self.start()

    def run(self):
        while True:
            try:
                client, _ = self.server.accept()
            except OSError:
                return
            with client, socket.socket(socket.AF_UNIX) as gateway:
                gateway.connect(self.moved)
                asked = client.recv(65536)  # nothing, where a command only looks whether one listens
                asked = asked.replace(self.old, self.new)
                gateway.sendall(asked.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))
                while asked and (piece := gateway.recv(65536)):
                    client.sendall(piece)

    def stop(self):
        self.server.shutdown(socket.SHUT_RDWR)
        self.server.close()
        self.join()
        os.rename(self.moved, self.there)


@pytest.mark.parametrize("old, new, why", [
    (b"/v1/config", b"/v1/future", "it is of an older version, which does not show them"),
    (b"GET /v1/config HTTP/1.1", b"GET /v1/config HTTP/1.1\r\nOrigin: https://other.example",
     'The Origin header names "https://other.example"')])
def test_check_beside_a_gateway_that_does_not_tell(data, old, new, why):
    """One that does not know the route, and one that refuses the request."""
    with Gateway(data):
        line = Between(data, old, new)
        done = notegate("check", "--data-dir", data, "--listen", "127.0.0.1:0")
        line.stop()
    assert done.returncode == 0, done.stdout
    told = "ok     values: those of the running gateway are unknown, and may differ from the ones of this check: "
    assert f"{told}{why}" in done.stdout
