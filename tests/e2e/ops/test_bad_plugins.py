# SPDX-License-Identifier: MIT
"""A plugin that crashes, exits, blocks or prints: it is named, contained, and left out at last."""

import contextlib
import datetime
import json
import re
import subprocess
import threading

import httpx
import pytest
from conftest import ANSWER_SECONDS, Gateway, binary, environment, eventually
from odd import build_plugin
from preload_support import fast  # noqa: F401 (a fixture)


@pytest.fixture(scope="module")
def module(tmp_path_factory):
    return build_plugin(tmp_path_factory.mktemp("module"), "bad_plugin")


@pytest.fixture
def start(module, tmp_path):
    """Starts gateways with the bad plugin, one after the other, on one data directory."""
    running = []

    def begin(*sets, plugins=None, args=()):
        running.append(Gateway(tmp_path / "data", sets=[f"plugins=+{plugins or module}", *sets], args=args))
        return running[-1]

    yield begin
    for gateway in running:
        if gateway.process.poll() is None:
            gateway.process.kill()
            gateway.process.wait()


def lose(gateway, tool):
    """Calls what ends the gateway; its exit status."""
    with pytest.raises(httpx.HTTPError):
        gateway.call(tool, headers={"X-Notegate-Agent": "ada"})
    status = gateway.process.wait(ANSWER_SECONDS)
    gateway.read_all()
    return status


def logged(gateway, where):
    return [json.loads(line) for line in gateway.errors if line.startswith("{") and f'"where":"{where}"' in line]


@pytest.mark.plain_build
@pytest.mark.parametrize("tool, status, cause, named", [
    ("bad_crashes", -11, "SIGSEGV", True), ("bad_crashes_later", -6, "SIGABRT", False), ("bad_exits", 70, "exit()", True)])
def test_a_crash_is_told_with_module_tool_and_agent(start, module, tool, status, cause, named):
    gateway = start("log.format=json")
    assert lose(gateway, tool) == status
    line, = logged(gateway, "crash")
    assert line["level"] == "error" and cause in line["message"] and line["module"] == str(module)
    assert (line["tool"], line["agent"]) == ((tool, "ada") if named else ("", ""))


@pytest.mark.plain_build
def test_a_plugin_that_crashed_three_times_is_left_out(start, module, tmp_path):
    for _ in range(3):
        gateway = start("log.format=json", "bad_plugin.start_until=/")
        assert gateway.call("bad_prints").status_code == 200
        lose(gateway, "bad_crashes")
    gateway = start("log.format=json", "bad_plugin.start_until=/")
    line, = logged(gateway, "crash")
    assert "left out" in line["message"] and str(tmp_path / "data" / "crashed") in line["message"]
    assert gateway.call("bad_prints").json()["code"] == "UNKNOWN_TOOL"
    assert gateway.call("notebook", {"mode": "list"}).status_code == 200
    ready = gateway.client.get("/readyz")
    assert ready.status_code == 200 and ready.json()["status"] == "degraded" and "bad_plugin" in ready.text
    checked = subprocess.run([binary(), "check", "--json", "--data-dir", str(tmp_path / "data"), "--set", f"plugins=+{module}"],
                             check=False, capture_output=True, text=True, env=environment(), timeout=ANSWER_SECONDS)
    found = [line for line in json.loads(checked.stdout)["checks"] if str(module) in line["message"] and line["check"] == "plugin"]
    assert checked.returncode == 1 and any("left out" in line["message"] and not line["ok"] for line in found), checked.stdout
    gateway.process.terminate()
    gateway.process.wait(ANSWER_SECONDS)
    # Old crashes do not count: as if it were eleven minutes later.
    crashed = tmp_path / "data" / "crashed"
    lines = [line.split(" ", 1) for line in crashed.read_text().splitlines()]
    crashed.write_text("".join(f"{int(time) - 660} {rest}\n" for time, rest in lines))
    gateway = start()
    assert gateway.call("bad_prints").status_code == 200
    assert crashed.read_text() == ""


def test_a_tool_that_blocks_an_event_loop_is_named_and_runs_on_workers(start, tmp_path):
    gateway = start("log.format=json")

    def call(name):
        thread = threading.Thread(target=gateway.call, args=("bad_blocks_loop", {"until": str(tmp_path / name)}))
        thread.start()
        return thread

    first = call("first")
    line = eventually(lambda: logged(gateway, "watchdog"), what="the watchdog's line")[0]
    assert line["level"] == "error" and "bad_blocks_loop" in line["message"] and "bad_plugin" in line["message"]
    (tmp_path / "first").touch()
    first.join(ANSWER_SECONDS)
    second = call("second")
    for _ in range(20):
        assert gateway.client.get("/healthz").status_code == 200
        assert gateway.call("notebook", {"mode": "list"}).status_code == 200
    assert second.is_alive()
    assert "notegate_blocked_loops_total 1" in gateway.client.get("/metrics").text
    (tmp_path / "second").touch()
    second.join(ANSWER_SECONDS)


def test_a_plugin_that_blocks_has_half_of_the_workers(start, tmp_path):
    gateway = start("limits.workers=8")
    threads = [threading.Thread(target=gateway.call, args=("bad_blocks", {"until": str(tmp_path / "go")}),
                                kwargs={"headers": {"X-Notegate-Agent": agent}}) for agent in ("a", "b") for _ in range(6)]
    for thread in threads:
        thread.start()
    eventually(lambda: 'notegate_in_use{name="workers"} 4' in gateway.client.get("/metrics").text, what="four busy workers")
    view = {"command": "view", "path": str(tmp_path / "data" / "files")}
    for _ in range(10):
        assert gateway.client.get("/readyz").status_code == 200
        assert gateway.call("fileEditor", view, {"X-Notegate-Agent": "a"}).status_code == 200
    assert all(thread.is_alive() for thread in threads)
    (tmp_path / "go").touch()
    for thread in threads:
        thread.join(ANSWER_SECONDS)


STUCK = 'notegate_calls_stuck{plugin="bad_plugin",tool="bad_blocks"}'


def stuck(gateway):
    """A call that its timeout answered, and that the plugin does not end."""
    answer = gateway.call("bad_blocks", {"until": str(gateway.data_dir / "go")}, {"X-Notegate-Agent": "ada"})
    assert answer.status_code == 504 and answer.json()["code"] == "TIMEOUT"
    eventually(lambda: f"{STUCK} 1" in gateway.client.get("/metrics").text, what="a stuck call")
    line, = eventually(lambda: [line for line in logged(gateway, "call") if line["level"] == "error"], what="a line about it")
    assert "bad_blocks (plugin bad_plugin) of ada has not ended" in line["message"]


def test_a_call_that_does_not_end_is_told_of_until_it_does(start):
    gateway = start("log.format=json", "limits.call_timeout=1s")
    stuck(gateway)
    ready = gateway.client.get("/readyz").json()
    assert ready["status"] == "degraded"
    assert ready["reasons"] == ["1 call of bad_blocks (plugin bad_plugin) has not ended after its timeout"]
    (gateway.data_dir / "go").touch()
    eventually(lambda: set(gateway.client.get("/readyz").json()) == {"status", "version"}, what="the end of it")
    assert gateway.client.get("/readyz").json()["status"] == "ready"
    assert STUCK not in gateway.client.get("/metrics").text
    eventually(lambda: any("bad_blocks (plugin bad_plugin) of ada has ended" in line["message"] and line["level"] == "info"
                           for line in logged(gateway, "call")), what="a line about it")


@pytest.mark.plain_build  # a minute there
@pytest.mark.long
def test_a_call_that_does_not_end_is_told_of_each_minute(fast, start):  # noqa: F811
    """And a stop that it delays says so by default, after shutdown_timeout and five seconds."""
    gateway = start("log.format=json", "limits.call_timeout=1s")
    stuck(gateway)

    def told():
        return [line for line in logged(gateway, "call") if line["level"] == "error"]

    lines = eventually(lambda: told() if len(told()) > 1 else None, what="the next line about it")
    first, again = (int(re.search(r"of ada has not ended (\d+) s after its timeout", line["message"])[1]) for line in lines[:2])
    assert first >= 1 and again >= first + 60
    gateway.process.terminate()
    assert gateway.process.wait(ANSWER_SECONDS) == 0
    gateway.read_all()
    stopping, last = logged(gateway, "serve")[-2:]
    assert stopping["message"] == "stopping"
    assert "stopping took too long" in last["message"] and "bad_blocks (plugin bad_plugin) of ada" in last["message"]
    between = [datetime.datetime.fromisoformat(line["time"]) for line in (stopping, last)]
    assert between[1] - between[0] >= datetime.timedelta(seconds=14)


def test_a_stop_names_the_call_that_delays_it(fast, start):  # noqa: F811
    gateway = start("log.format=json", "limits.call_timeout=1s", "shutdown_timeout=1s")
    stuck(gateway)
    gateway.process.terminate()
    assert gateway.process.wait(ANSWER_SECONDS) == 0
    gateway.read_all()
    line = logged(gateway, "serve")[-1]
    assert "stopping took too long" in line["message"] and "bad_blocks (plugin bad_plugin) of ada" in line["message"]


def test_the_standard_output_of_mcp_is_the_protocols(module, tmp_path):
    messages = [{"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "bad_prints", "arguments": {}}}]
    process = subprocess.Popen([binary(), "mcp", "--data-dir", str(tmp_path / "data"), "--set", f"plugins=+{module}"],
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment())
    for message in messages:
        process.stdin.write(json.dumps(message) + "\n")
    process.stdin.flush()
    answers = [json.loads(process.stdout.readline()) for _ in range(2)]
    out, err = process.communicate(timeout=ANSWER_SECONDS)
    assert [answer["id"] for answer in answers] == [1, 2] and answers[1]["result"]["content"][0]["text"] == "done"
    assert out == "" and "printed by a tool" in err


def test_a_start_that_hangs_is_named(fast, module, tmp_path):  # noqa: F811
    process = subprocess.Popen(
        [binary(), "check", "--data-dir", str(tmp_path / "data"), "--set", f"plugins=+{module}", "--set",
         f"bad_plugin.start_until={tmp_path / 'go'}", "--set", "log.level=info"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment())
    line = process.stderr.readline()
    assert "start()" in line and "bad_plugin" in line
    (tmp_path / "go").touch()
    out, err = process.communicate(timeout=ANSWER_SECONDS)
    assert process.returncode == 0, out + err
    assert json.loads(err)["message"] == "start() of the plugin bad_plugin has returned", err


def deferred(gateway, what, plugin="bad_plugin"):
    text = gateway.client.get("/metrics").text
    return float(re.search(rf'^notegate_plugin_deferred_{what}{{plugin="{plugin}"}} (\S+)$', text, re.M).group(1))


def test_calls_that_a_plugin_never_finishes_are_counted(start, tmp_path):
    """Their callers are told TIMEOUT, and their memory stays: /metrics says whose they are."""
    config = tmp_path / "notegate.yaml"
    config.write_text("limits:\n  call_timeout: 200ms\n")
    count = tmp_path / "count"
    count.touch()
    gateway = start(args=["--config", str(config)])
    assert deferred(gateway, "calls") == 0 and deferred(gateway, "oldest_seconds") == 0
    # On a busy machine a call may end before the plugin has it: `count` has a byte for each that it has.
    while count.stat().st_size < 3:
        assert gateway.call("bad_leaks", {"count": str(count)}).json()["code"] == "TIMEOUT"
    # What follows is to end well, on a busy disk, too.
    config.write_text("limits:\n  call_timeout: 1h\n")
    assert [change["holds"] for change in gateway.reload()["changes"]] == [True]

    def each_is_counted():
        return deferred(gateway, "calls") == count.stat().st_size

    eventually(each_is_counted, what="the calls that the plugin has")
    eventually(lambda: deferred(gateway, "oldest_seconds") >= 0.6, what="the age of the oldest to grow")
    # Those that are finished are not among them.
    path = str(gateway.data_dir / "files" / "a.txt")
    assert gateway.call("fileEditor", {"command": "create", "path": path, "file_text": "x"}).status_code == 200
    eventually(lambda: deferred(gateway, "calls", "file_editor") == 0, what="no call of file_editor is left")
    eventually(each_is_counted, what="the calls that the plugin still has")
    gateway.process.kill()


def listening(port):
    """The number of the socket that listens there."""
    with open("/proc/net/tcp", encoding="ascii") as table:
        words = [line.split() for line in table][1:]
    return next(word[9] for word in words if word[3] == "0A" and int(word[1].split(":")[1], 16) == port)


@pytest.mark.parametrize("what, told", [
    ("eventpoll", "event loop"), ("socket:[{}]", "its listening socket"), ("notegate.lock", "the lock of its data directory")])
def test_a_gateway_whose_descriptors_are_closed_ends(fast, start, what, told):  # noqa: F811
    """It would stay and serve no client; its service starts it again."""
    gateway = start("log.format=json")
    assert gateway.call("notebook", {"mode": "create", "name": "kept", "newStr": "x"}).status_code == 200
    with contextlib.suppress(httpx.HTTPError):
        gateway.client.post("/v1/tools/bad_closes", json={"until": what.format(listening(gateway.port))}, timeout=1)
    assert gateway.process.wait(ANSWER_SECONDS) == 1
    gateway.read_all()
    line, = logged(gateway, "serve")[-1:]
    assert line["level"] == "error" and told in line["message"] and "descriptor" in line["message"], line
    again = start()
    assert again.call("notebook", {"mode": "read", "name": "kept"}).json()["result"] == "x"
