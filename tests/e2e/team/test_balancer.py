# SPDX-License-Identifier: MIT
"""packaging/compose.yaml as processes: three gateways behind haproxy, with the file's own configuration. They are restarted
one after the other under load, and no client notices."""

import collections
import contextlib
import os
import shutil
import subprocess
import threading
import time

import httpx
import pytest

from balancer_support import GATEWAYS, PATIENCE, Team, compose, front_config
from conftest import Gateway, eventually
from keys_support import bearer
from mcp_support import Session, call, modern
from servers import free_port, give_back
from sse_support import Stream

PLUGINS = "agent_notebook,conformance"
REST_CLIENTS = 2
MCP_CLIENTS = 2
SESSION_CLIENTS = 2
FOLLOWERS = 2
WATCHERS = 2
# shutdown_timeout
SHUTDOWN_SECONDS = 10
# Calls of each client between two steps of the test.
STEADY = 3


@pytest.fixture
def team(tmp_path, servers):
    made = Team(tmp_path, servers, PLUGINS)
    with contextlib.closing(made):
        for name in GATEWAYS:
            made.wait_up(name)
        yield made


class Client(threading.Thread):
    """Calls append(line) again and again until told to end; every call must succeed."""

    def __init__(self, team, number, stop):
        super().__init__(daemon=True)
        self.name = f"{type(self).__name__} {number}"
        self.front, self.key, self.http = team.front, team.key, team.client(team.key)
        self.page = create(self.http, self.name)
        self.stop = stop
        self.kept, self.fault = [], None
        self.start()

    def run(self):
        try:
            while not self.stop.is_set():
                line = f"{self.name} line {len(self.kept)}"
                self.append(line)
                self.kept.append(line)
        except Exception as fault:  # told by the test
            self.fault = f"{self.name}: {fault!r}"

    def append(self, line):
        raise NotImplementedError


def create(http, title):
    answer = http.post("/v1/tools/notebook_create", json={"collection": "pages", "title": title, "content": "begin\n"})
    assert answer.status_code == 200, answer.text
    return {"collection": "pages", "notebook_id": answer.json()["result"]["notebook_id"]}


class RestClient(Client):
    def append(self, line):
        answer = self.http.post("/v1/tools/notebook_update", json=self.page | {"append": line + "\n"})
        assert answer.status_code == 200, answer.text


class StatelessClient(Client):
    def append(self, line):
        body, headers = modern({"name": "notebook_update", "arguments": self.page | {"append": line + "\n"}})
        answer = self.http.post("/mcp", json=body, headers=headers)
        assert answer.status_code == 200, answer.text
        assert answer.json()["result"].get("isError") is not True, answer.text


class SessionClient(Client):
    """In one session of an older version, whichever gateway has it."""

    def run(self):
        with contextlib.closing(Session(self.front, headers=bearer(self.key))) as self.session:
            super().run()

    def append(self, line):
        answer = self.session.post(call("notebook_update", self.page | {"append": line + "\n"}))
        assert answer.status_code == 200, answer.text
        assert answer.json()["result"].get("isError") is not True, answer.text


class StreamClient(SessionClient):
    """Its calls tell their progress: an event stream each, complete and in order."""

    def append(self, line):
        token = f"{line} progress"
        events = self.session.stream(call("test_tool_with_progress", number=len(self.kept), meta={"progressToken": token}))
        assert events.status == 200, events.status
        messages = events.rest()
        assert [message.get("method") for message in messages] == ["notifications/progress"] * 3 + [None], messages
        steps = [message["params"]["progress"] for message in messages[:-1]]
        assert steps == sorted(steps) and {message["params"]["progressToken"] for message in messages[:-1]} == {token}
        assert messages[-1]["id"] == len(self.kept) and "result" in messages[-1]
        super().append(line)


class Watcher(threading.Thread):
    """A session that subscribes to a page once, and reads its own stream; when it ends, goes on behind the last event."""

    def __init__(self, team, page):
        super().__init__(daemon=True)
        self.name = "watcher"
        self.session = Session(team.front, headers=bearer(team.key))
        self.http = team.client(team.key)
        self.uri = f"notegate://shared/pages/{page}"
        self.told, self.ids, self.streams, self.fault, self.ended = 0, [], 0, None, threading.Event()
        for method, params in (("logging/setLevel", {"level": "error"}), ("resources/subscribe", {"uri": self.uri})):
            answer = self.session.post({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
            assert answer.status_code == 200 and "result" in answer.json(), answer.text
        self.start()

    def run(self):
        last = {}
        try:
            while not self.ended.is_set():
                events = self.session.get(**last)
                assert events.status == 200, events.status
                self.streams += 1
                while (event := events.next()) is not None:
                    if event.get("id"):
                        last = {"Last-Event-ID": event["id"]}
                        self.ids.append(tuple(int(part) for part in event["id"].split("-")))
                    if self.uri in event.get("data", ""):
                        self.told += 1
        except Exception as fault:  # told by the test
            self.fault = f"{self.name}: {fault!r}"

    def check(self, http, page):
        """The last change, too, is told of, whenever it was made."""
        before = self.told
        answer = http.post("/v1/tools/notebook_update", json=page | {"append": "watched\n"})
        assert answer.status_code == 200, answer.text
        eventually(lambda: self.told > before or self.fault, PATIENCE, "a notification")
        assert self.fault is None, self.fault

    def close(self):
        self.ended.set()
        answer = self.session.client.delete("/mcp", headers=self.session.headers)
        assert answer.status_code == 204, answer.text
        self.join(PATIENCE)
        assert not self.is_alive() and self.fault is None, self.fault
        assert self.ids == sorted(self.ids)
        self.session.close()


class Follower(threading.Thread):
    """Reads the change feed from its beginning; when a stream ends, continues at whichever gateway it comes to."""

    def __init__(self, team, number, ignored):
        super().__init__(daemon=True)
        self.name, self.ignored = f"follower {number}", ignored
        self.url, self.headers = team.front.url + "/v1/events?collection=pages", bearer(team.key)
        self.told, self.streams, self.fault, self.ended = [], 0, None, threading.Event()
        self.start()

    def run(self):
        last = {"Last-Event-ID": "0"}
        try:
            while not self.ended.is_set():
                with Stream(self.url, headers=self.headers | last) as stream:
                    self.streams += 1
                    self.read(stream)
                    last = {"Last-Event-ID": self.told[-1][0]} if self.told else last
        except BaseException as fault:  # told by the test; pytest.fail() too
            self.fault = f"{self.name}: {fault!r}"

    def count(self):
        return sum(page != self.ignored for _, page, _ in self.told)

    def read(self, stream):
        while not self.ended.is_set():
            event = stream.next()
            if event is None:
                assert stream.error is None, stream.error
                return
            if event.name == "change":
                told = event.json()
                self.told.append((event.id, told["id"], told["revision"]))


def lines_of(http, page):
    answer = http.post("/v1/tools/notebook_read", json=page)
    assert answer.status_code == 200, answer.text
    return answer.json()["result"]["content"].splitlines()


def step(clients):
    """Each client goes on by some calls."""
    goals = [(client, len(client.kept) + STEADY) for client in clients]
    eventually(lambda: all(len(client.kept) >= goal or client.fault for client, goal in goals), PATIENCE, "calls")
    assert [client.fault for client in clients if client.fault] == []


def end(clients, followers, stop):
    """Every acknowledged line is there once, and every follower heard of each revision once, in order."""
    stop.set()
    for client in clients:
        client.join(PATIENCE)
        assert not client.is_alive() and client.fault is None, client.fault
    revisions = {client.page["notebook_id"]: list(range(1, len(client.kept) + 2)) for client in clients}
    total = sum(len(numbers) for numbers in revisions.values())
    for follower in followers:
        eventually(lambda follower=follower: follower.count() >= total or follower.fault, PATIENCE, "all events")
        follower.ended.set()
        assert follower.fault is None, follower.fault
        numbers = [int(number) for number, _, _ in follower.told]
        assert numbers == sorted(set(numbers))
        told = collections.defaultdict(list)
        for _, page, revision in follower.told:
            if page != follower.ignored:
                told[page].append(revision)
        assert told == revisions
    for client in clients:
        assert lines_of(client.http, client.page) == ["begin", *client.kept]
        client.http.close()


def each_restarted(team):
    team.key = team.make_key("ada", "--role", "admin")
    stop = threading.Event()
    with team.client(team.key) as http:
        page = create(http, "watched")
        watchers = [Watcher(team, page["notebook_id"]) for _ in range(WATCHERS)]
        followers = [Follower(team, number, page["notebook_id"]) for number in range(FOLLOWERS)]
        kinds = ((RestClient, REST_CLIENTS), (StatelessClient, MCP_CLIENTS), (SessionClient, SESSION_CLIENTS),
                 (StreamClient, SESSION_CLIENTS))
        clients = [kind(team, number, stop) for kind, count in kinds for number in range(count)]
        step(clients)
        for name in GATEWAYS:
            team.restart(name)
            step(clients)
            for watcher in watchers:
                watcher.check(http, page)
        end(clients, followers, stop)
        for watcher in watchers:
            watcher.close()
    # Each restart ended the streams of its gateway.
    assert sum(follower.streams for follower in followers) >= FOLLOWERS + 1
    return watchers


@pytest.mark.long
def test_rolling_restart(team):
    watchers = each_restarted(team)
    assert sum(watcher.streams for watcher in watchers) > WATCHERS


@pytest.mark.long
def test_rolling_restart_of_any_gateway(tmp_path, servers):
    """The load balancer knows nothing of sessions: nearly all of their requests are forwarded."""
    with contextlib.closing(Team(tmp_path, servers, PLUGINS, sticky=False)) as made:
        for name in GATEWAYS:
            made.wait_up(name)
        each_restarted(made)


def test_haproxy_takes_the_configuration(tmp_path):
    """As it stands in packaging/compose.yaml, without a word of complaint."""
    program = shutil.which("haproxy") or "/usr/sbin/haproxy"
    if not os.path.exists(program):
        pytest.skip("haproxy is missing")
    (tmp_path / "haproxy.cfg").write_text(compose()["configs"]["front"]["content"])
    checked = subprocess.run([program, "-c", "-f", str(tmp_path / "haproxy.cfg")], capture_output=True, text=True, timeout=PATIENCE)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert "WARNING" not in checked.stderr and "NOTICE" not in checked.stderr, checked.stderr


def test_no_gateway_is_ready(servers):
    """The answer of haproxy itself has the form of a gateway's."""
    ports = {name: free_port() for name in GATEWAYS}
    try:
        front = servers.haproxy(front_config(ports, sticky=True))
        eventually(lambda: set(front.states().values()) == {"DOWN"}, PATIENCE, "haproxy's checks")
        answer = httpx.get(front.url + "/v1/tools", timeout=PATIENCE, trust_env=False)
        assert answer.status_code == 503 and int(answer.headers["Retry-After"]) > 0
        assert answer.json()["code"] == "BACKEND_UNAVAILABLE" and answer.json()["error"] is True
    finally:
        for port in ports.values():
            give_back(port)


def test_the_compose_file_is_one_topology():
    """Each gateway is told how the others reach it, haproxy knows all of them, and there is time enough to stop."""
    services = compose()["services"]
    assert [name for name in services if name.startswith("gateway-")] == list(GATEWAYS)
    for name in GATEWAYS:
        environment = services[name]["environment"]
        assert environment["NOTEGATE_CLUSTER_ADVERTISE"] == f"http://{name}:8420"
        assert environment["NOTEGATE_LISTEN"].endswith(":8420")
        assert f"server {name} {name}:8420\n" in compose()["configs"]["front"]["content"]
        delay = int(environment["NOTEGATE_SHUTDOWN_DELAY"].removesuffix("s"))
        # haproxy gives up after two of its checks; the others hear of a leaving gateway with the next heartbeat.
        assert delay >= 4
        assert int(services[name]["stop_grace_period"].removesuffix("s")) > delay + SHUTDOWN_SECONDS


def test_not_ready_before_it_refuses(team):
    """SIGTERM: /readyz says so at once, calls are taken until haproxy sends none any more."""
    gateway = team.gateways["gateway-2"]
    key = bearer(team.make_key("ada", "--role", "admin"))
    with httpx.Client(base_url=gateway.url, timeout=PATIENCE, trust_env=False) as direct:
        gateway.process.terminate()
        answer = eventually(lambda: (lambda told: told if told.status_code == 503 else None)(
            direct.get("/readyz", headers=key)), PATIENCE, "503")
        assert "stopping" in answer.json()["message"] and answer.headers["Connection"] == "close"
        assert direct.get("/v1/tools", headers=key).status_code == 200
        eventually(lambda: team.front.states()["gateway-2"].startswith("DOWN"), PATIENCE, "DOWN")
        assert direct.get("/v1/tools", headers=key).status_code == 200, "haproxy knows before the gateway refuses"
    assert gateway.process.wait(PATIENCE) == 0


def test_a_second_signal_ends_the_delay(tmp_path):
    gateway = Gateway(tmp_path / "data", ["plugins=", "shutdown_delay=5min"])
    gateway.process.terminate()
    eventually(lambda: gateway.client.get("/readyz").status_code == 503, PATIENCE, "503")
    assert gateway.client.get("/v1/tools").status_code == 200
    begun = time.monotonic()
    gateway.process.terminate()
    assert gateway.process.wait(PATIENCE) == 0 and time.monotonic() - begun < 60
    assert gateway.logged("shutdown_delay")
