# SPDX-License-Identifier: MIT
"""A reload while calls run, by signal and over REST: what holds, what needs a restart, plugins that come in."""

import concurrent.futures
import json
import os
import re
import shutil
import signal
import threading

import httpx
import pytest
from cli_support import BUILD, notegate
from conftest import eventually

WRITE = {"mode": "write", "newStr": "text"}
TIMEOUT = 120


class Configured:
    """A gateway whose configuration file can be written again."""

    def __init__(self, start, path, **first):
        self.path = path
        self.write(**first)
        self.gateway = start(args=["--config", str(path)])

    def write(self, **keys):
        keys = {"log.format": "json"} | {name.replace("__", "."): value for name, value in keys.items()}
        self.path.write_text("".join(f"{name}: {json.dumps(value)}\n" for name, value in keys.items()))

    def reload(self, **keys):
        self.write(**keys)
        return {change["key"]: change for change in self.gateway.reload()["changes"]}

    def tools(self):
        return [tool["name"] for tool in self.gateway.client.get("/v1/tools").json()["tools"]]


@pytest.fixture
def configured(start, tmp_path):
    return lambda **first: Configured(start, tmp_path / "notegate.yaml", **first)


def limit(gateway, name):
    text = gateway.client.get("/metrics").text
    return float(re.search(rf'^notegate_limit{{name="{name}"}} (\S+)$', text, re.M).group(1))


def test_limits_hold_at_once_or_are_said_to_need_a_restart(configured):
    made = configured()
    report = made.gateway
    changes = made.reload(limits__body=100, limits__depth=5, limits__queue=7, limits__connections=50,
                          limits__streams=3, limits__buffered="1MiB", limits__result="2MiB",
                          limits__call_timeout="9s", limits__workers=3, limits__stream_backlog=99, tools__max_answer="8KiB",
                          mcp__session_timeout="5min", history__keep="1d", journal__keep="9d", shutdown_timeout="3s", shutdown_delay="1s",
                          audit__reads="true", audit__keep="9d", audit__max_size="1GiB", auth="on", audit="on")
    holds = {key for key, change in changes.items() if change["holds"]}
    assert holds == {"limits.body", "limits.depth", "limits.queue", "limits.connections", "limits.streams",
                     "limits.buffered", "limits.result", "limits.call_timeout", "mcp.session_timeout", "history.keep",
                     "journal.keep", "tools.max_answer", "audit.reads", "audit.keep", "audit.max_size",
                     "shutdown_timeout", "shutdown_delay"}
    assert set(changes) - holds == {"limits.workers", "limits.stream_backlog", "auth", "audit"}
    assert all("restart" in changes[key]["message"] for key in set(changes) - holds)
    for name, value in {"body": 100, "depth": 5, "queue": 7, "connections": 50, "streams": 3,
                        "call_timeout": 9}.items():
        assert limit(made.gateway, name) == value
    assert report.call("notebook", {"mode": "read", "name": "x" * 200}).status_code == 413
    # A value that needs a restart is reported until then; set back to the running value, it needs none.
    again = made.gateway.reload()
    assert again["restart_needed"] and {change["key"] for change in again["changes"]} == set(changes) - holds
    assert made.reload().keys() == holds
    assert made.gateway.reload() == {"changes": [], "restart_needed": False}
    assert report.call("notebook", {"mode": "read", "name": "x" * 200}).status_code != 413


def test_hosts_and_origins(configured):
    made = configured()
    client = made.gateway.client
    asked = {"Host": "gateway.example", "Origin": "https://pages.example"}
    assert client.get("/v1/tools", headers=asked).status_code == 403
    changes = made.reload(allowed_hosts=["gateway.example"], allowed_origins=["https://pages.example"])
    assert all(changes[key]["holds"] for key in ("allowed_hosts", "allowed_origins"))
    assert client.get("/v1/tools", headers=asked).status_code == 200
    made.reload()
    assert client.get("/v1/tools", headers=asked).status_code == 403


def test_names_that_cannot_match_change_nothing(configured):
    made = configured(allowed_hosts=["gateway.example"])
    made.path.write_text('allowed_hosts: ["*"]\n')
    answer = made.gateway.client.post("/v1/reload")
    assert answer.status_code == 400 and 'allowed_hosts has "*"' in answer.json()["message"]
    assert made.gateway.client.get("/v1/tools", headers={"Host": "gateway.example"}).status_code == 200


def test_what_the_next_start_would_refuse_is_refused(configured):
    made = configured(limits__body=1000)
    made.path.write_text("limits.body: 500\ntimezone: Mars/Olympus\n")
    answer = made.gateway.client.post("/v1/reload")
    assert answer.status_code == 400 and "timezone is 'Mars/Olympus'" in answer.json()["message"]
    assert limit(made.gateway, "body") == 1000
    # The same by the command, while the gateway serves.
    done = notegate("check", "--data-dir", made.gateway.data_dir, "--config", str(made.path))
    assert done.returncode == 1 and "failed timezone: " in done.stdout, done.stdout


def test_a_bad_configuration_changes_nothing(configured):
    made = configured(limits__body=1000)
    made.path.write_text("limits.body: 500\nlimits.nonsense: 1\n")
    answer = made.gateway.client.post("/v1/reload")
    assert answer.status_code == 400 and "limits.nonsense" in answer.json()["message"]
    assert limit(made.gateway, "body") == 1000
    made.gateway.process.send_signal(signal.SIGHUP)
    eventually(lambda: len(made.gateway.logged("nothing was changed", "limits.nonsense")) == 2, what="both lines")
    assert limit(made.gateway, "body") == 1000


def test_only_admins_may(configured):
    made = configured()
    added = notegate("key", "add", "ann", "--data-dir", made.gateway.data_dir, "--json")
    key = re.search(r"ng_[A-Za-z0-9_-]{20,}", added.stdout).group(0)
    client = made.gateway.client
    assert client.post("/v1/reload").status_code == 401
    answer = client.post("/v1/reload", headers={"Authorization": f"Bearer {key}"})
    assert answer.status_code == 403 and "admin" in answer.json()["message"]
    added = notegate("key", "add", "root", "--role", "admin", "--data-dir", made.gateway.data_dir, "--json")
    key = re.search(r"ng_[A-Za-z0-9_-]{20,}", added.stdout).group(0)
    answer = client.post("/v1/reload", headers={"Authorization": f"Bearer {key}"})
    assert answer.json() == {"changes": [], "restart_needed": False}


def test_a_plugin_comes_in_while_calls_run(configured):
    made = configured(plugins=["notebook"])
    gateway = made.gateway
    assert made.tools() == ["notebook"]
    before = gateway.client.get("/v1/tools").headers["etag"]
    stop = threading.Event()

    done = [0] * 4

    def load(number):
        with httpx.Client(base_url=gateway.url, timeout=TIMEOUT, trust_env=False) as client:
            while not stop.is_set():
                assert client.post("/v1/tools/notebook", json=WRITE).status_code == 200
                assert client.get("/v1/tools").status_code == 200
                assert client.post("/v1/tools/no_such_tool", json={}).status_code == 404
                done[number] += 1

    def all_went_on():
        before = list(done)
        eventually(lambda: all(now > then for now, then in zip(done, before)), what="calls of everybody")

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        workers = [pool.submit(load, number) for number in range(4)]
        try:
            all_went_on()
            changes = made.reload(plugins=["notebook", "file_editor"], file_editor__max_file_size="1KiB")
            all_went_on()
        finally:
            stop.set()
        assert all(worker.exception() is None for worker in workers)
    assert changes["plugins"]["holds"] and "file_editor was added" in changes["plugins"]["message"]
    assert made.tools()[0] == "notebook" and "fileEditor" in made.tools()
    assert gateway.client.get("/v1/tools").headers["etag"] != before
    path = str(gateway.data_dir / "files" / "a.txt")
    answer = gateway.call("fileEditor", {"command": "create", "path": path, "file_text": "text"})
    assert answer.status_code == 200, answer.text
    # Its own keys hold, its calls are counted, and the description of everything has it.
    answer = gateway.call("fileEditor", {"command": "create", "path": path + "2", "file_text": "x" * 2000})
    assert answer.status_code >= 400, answer.text
    assert 'notegate_calls_total{tool="fileEditor",outcome="ok"} 1' in gateway.client.get("/metrics").text
    assert "/v1/tools/fileEditor" in gateway.client.get("/openapi.json").json()["paths"]
    # Reloads after it, and with it gone.
    assert made.reload(plugins=["notebook", "file_editor"], file_editor__max_file_size="1KiB") == {}
    changes = made.reload(plugins=["notebook"])
    assert not changes["plugins"]["holds"] and changes["plugins"]["message"] == "file_editor stays until a restart"
    assert gateway.call("fileEditor", {"command": "view", "path": path}).status_code == 200


def test_a_plugin_whose_keys_were_known_before(configured):
    """Its module is loaded already, for its keys: it comes in all the same, and as it is configured now."""
    made = configured(plugins=["notebook"], file_editor__max_file_size="1KiB")
    gateway = made.gateway
    for _ in range(3):
        assert made.reload(plugins=["notebook"], file_editor__max_file_size="1KiB") == {}
    changes = made.reload(plugins=["notebook", "file_editor"], file_editor__max_file_size="2KiB")
    assert list(changes) == ["plugins"] and changes["plugins"]["holds"], changes
    assert "file_editor was added" in changes["plugins"]["message"]
    assert "fileEditor" in made.tools()
    path = str(gateway.data_dir / "files" / "a.txt")
    for size, good in ((1500, True), (2500, False)):
        answer = gateway.call("fileEditor", {"command": "create", "path": f"{path}{size}", "file_text": "x" * size})
        assert (answer.status_code == 200) == good, answer.text
    # Later changes are compared with the present values; twice in the list is one plugin.
    both = ["notebook", "file_editor", "file_editor"]
    assert list(made.reload(plugins=both, file_editor__max_file_size="2KiB")) == []
    changes = made.reload(plugins=both, file_editor__max_file_size="3KiB")
    assert not changes["file_editor.max_file_size"]["holds"], changes


@pytest.mark.parametrize("plugin, told", [
    ("no_such_plugin", "no_such_plugin"),
    ("/no/such/module.so", "/no/such/module.so"),
])
def test_a_plugin_that_cannot_be_loaded_leaves_the_rest(configured, plugin, told):
    made = configured(plugins=["notebook"])
    for _ in range(3):
        made.write(plugins=["notebook", "file_editor", plugin], limits__body=500)
        answer = made.gateway.client.post("/v1/reload")
        assert answer.status_code == 400 and told in answer.json()["message"]
        assert made.tools() == ["notebook"] and limit(made.gateway, "body") > 500
    assert made.reload(plugins=["notebook", "file_editor"])["plugins"]["holds"]
    assert "fileEditor" in made.tools()


def test_a_replaced_module_is_told_of(configured, tmp_path):
    module = tmp_path / "file_editor.so"
    built = BUILD / "modules" / "plugins" / "file_editor.so"
    shutil.copy(built, module)
    made = configured(plugins=["notebook", str(module)])
    assert made.reload(plugins=["notebook", str(module)]) == {}
    shutil.copy(built, tmp_path / "newer")
    os.rename(tmp_path / "newer", module)
    changes = made.reload(plugins=["notebook", str(module)])
    assert not changes["plugins"]["holds"]
    assert changes["plugins"]["message"] == f"the file {module} was replaced; it is loaded after a restart"


def test_many_ask_at_once(configured):
    made = configured()

    def ask(number):
        with httpx.Client(base_url=made.gateway.url, timeout=TIMEOUT, trust_env=False) as client:
            return client.post("/v1/reload").status_code

    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        assert set(pool.map(ask, range(64))) <= {200, 503}
    assert made.gateway.reload() == {"changes": [], "restart_needed": False}
